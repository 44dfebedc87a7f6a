/*
 * budget.c - see budget.h.
 *
 * Runs in: S, or the client of an exec. May not: wait, except for a disk.
 */
#include "host/stdio/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/chars.h"
#include "base/fd.h"
#include "host/stdio/budget_marker.h"

enum { MARKER_SIZE = PATH_MAX + 512, SLACK = 4096 };

int budget_init(struct budget *b, uint64_t limit, uint64_t max_bytes)
{
	size_t size = limit == BUDGET_NONE ? 0 : (size_t)limit * CHARS_LENGTH_MAX + SLACK;

	*b = (struct budget){ .limit = limit, .max_bytes = max_bytes, .dir = -1, .file = -1 };
	b->to_write = max_bytes;
	if (!size)
		return 0;
	/* Untouched pages cost nothing: ASCII needs a quarter of them. */
	void *mapped = mmap(NULL, size + MARKER_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	b->store = mapped;
	b->store_size = size;
	return 0;
}

void budget_save_in(
	struct budget *b, int dir, const char *dir_path, const char *name, bool goes)
{
	b->goes = goes;
	b->dir = dir;
	b->dir_path = dir_path;
	(void)snprintf(b->name, sizeof(b->name), "%s", name);
}

static uint64_t head_limit(const struct budget *b)
{
	return b->limit - b->limit / 2;
}

uint64_t budget_omitted(const struct budget *b)
{
	return b->exceeded ? b->chars - b->limit : b->dropped;
}

void budget_path(const struct budget *b, char *ret_path, size_t size)
{
	if (b->file_made)
		(void)snprintf(ret_path, size, "%s/%s", b->dir_path, b->name);
	else if (size)
		ret_path[0] = '\0';
}

/* --- what is held ----------------------------------------------------------------------------- */

static void store_put(struct budget *b, const char *data, size_t size)
{
	/* If @data is larger than the store, its beginning would be overwritten at once: skip it. */
	size_t skipped = size > b->store_size ? size - b->store_size : 0;
	size_t at = (size_t)((b->stored + skipped) % b->store_size);
	size_t rest = size - skipped, first = b->store_size - at;

	first = first < rest ? first : rest;
	memcpy(b->store + at, data + skipped, first);
	memcpy(b->store, data + skipped + first, rest - first);
	b->stored += size;
}

/* Copy up to @size bytes that were stored from @from on. Returns their number. */
static size_t store_get(const struct budget *b, uint64_t from, char *ret_data, size_t size)
{
	uint64_t rest = b->stored - from;
	size_t at = (size_t)(from % b->store_size), first = b->store_size - at;

	size = rest < size ? (size_t)rest : size;
	first = first < size ? first : size;
	memcpy(ret_data, b->store + at, first);
	memcpy(ret_data + first, b->store, size - first);
	return size;
}

/* Where the last @count characters begin. */
static uint64_t store_tail(const struct budget *b, uint64_t count)
{
	char around[CHARS_LENGTH_MAX];
	uint64_t from = b->stored;

	for (; count > 0 && from > 0; count--) {
		size_t size = from < sizeof(around) ? (size_t)from : sizeof(around);

		(void)store_get(b, from - size, around, size);
		from -= chars_last_length(around, size);
	}
	return from;
}

/* --- the file --------------------------------------------------------------------------------- */

static void file_fail(struct budget *b, int errnum)
{
	b->file_error = errnum;
	fd_close(&b->file);
}

static void file_put(struct budget *b, const char *data, size_t size)
{
	size = size < b->to_write ? size : (size_t)b->to_write;
	while (b->file >= 0 && size > 0) {
		ssize_t n = write(b->file, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			file_fail(b, n < 0 ? errno : EIO);
			return;
		}
		data += n;
		size -= (size_t)n;
		b->in_file += (uint64_t)n;
		b->to_write -= (uint64_t)n;
	}
}

/* Make the file: what follows exceeds the budget. Everything up to here is in the store, unwrapped. */
static void file_make(struct budget *b)
{
	if (b->dir < 0)
		return;
	b->file = fd_open_at(
		b->dir, b->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->file < 0) {
		file_fail(b, -b->file);
		return;
	}
	b->file_made = true;
	file_put(b, b->store, (size_t)b->stored);
}

/* --- the filter ------------------------------------------------------------------------------- */

/* There is no budget, only the bound. Returns how much of @whole goes on. */
static size_t take_bounded(struct budget *b, const char *data, size_t whole)
{
	uint64_t left = b->bytes < b->max_bytes ? b->max_bytes - b->bytes : 0;

	if (left >= whole)
		return whole;
	size_t pass = chars_boundary(data, whole, (size_t)left);
	b->dropped += chars_count(data + pass, whole - pass);
	return pass;
}

/* Take @whole bytes, which begin and end at a boundary. Returns how many of them belong to the head. */
static size_t take_whole(struct budget *b, const char *data, size_t whole, uint64_t count)
{
	uint64_t head = head_limit(b), seen = b->chars;
	size_t pass = seen < head ? chars_offset(data, whole, head - seen) : 0;
	size_t kept = whole;

	b->head_bytes += pass;
	if (!b->exceeded && seen + count > b->limit)
		kept = chars_offset(data, whole, b->limit - seen);
	store_put(b, data, kept);
	if (kept < whole) {
		b->exceeded = true;
		file_make(b);
		store_put(b, data + kept, whole - kept);
		file_put(b, data + kept, whole - kept);
	} else if (b->exceeded) {
		file_put(b, data, whole);
	}
	return pass;
}

/*
 * Whether bytes that may become one character can be passed before the rest of it came: only if
 * there is room for each of them as a character of its own. Else the head could end within a
 * character.
 */
static bool passes_open(const struct budget *b)
{
	uint64_t left = b->limit == BUDGET_NONE
		? b->max_bytes - (b->bytes < b->max_bytes ? b->bytes : b->max_bytes)
		: head_limit(b) - (b->chars < head_limit(b) ? b->chars : head_limit(b));

	return left >= CHARS_LENGTH_MAX;
}

static size_t take_output(
	void *context, const char *data, size_t size, bool last, struct pump_range *ret_pass)
{
	struct budget *b = context;
	size_t open = last ? 0 : chars_open(data, size), whole = size - open;
	uint64_t count = chars_count(data, whole);
	size_t pass = b->limit == BUDGET_NONE ? take_bounded(b, data, whole)
					      : take_whole(b, data, whole, count);

	b->bytes += whole;
	b->chars += count;
	/* Some bytes were passed on before they were counted: they are not passed again. */
	ret_pass->start = b->early;
	ret_pass->end = pass;
	if (pass == whole && passes_open(b))
		ret_pass->end = size;
	if (ret_pass->end < ret_pass->start)
		ret_pass->end = ret_pass->start;
	b->early = ret_pass->end > whole ? ret_pass->end - whole : 0;
	if (ret_pass->end > ret_pass->start)
		b->last = (unsigned char)data[ret_pass->end - 1];
	return whole;
}

static void begin_ending(struct budget *b)
{
	b->ending = true;
	b->next = b->head_bytes;
	if (!b->exceeded)
		return;
	bool own_line = b->head_bytes == 0 || b->last == '\n';
	b->marker_length = budget_marker(b, own_line, b->store + b->store_size, MARKER_SIZE);
	b->next = store_tail(b, b->limit / 2);
	fd_close(&b->file);
}

/* Give out what was held back, piece by piece: all of it, or the marker and the tail. */
static size_t rest(void *context, char *ret_data, size_t size)
{
	struct budget *b = context;

	if (b->limit == BUDGET_NONE)
		return 0;
	if (!b->ending)
		begin_ending(b);
	if (b->marker_length) {
		size_t n = b->marker_length;

		/* Smaller than any buffer of a pump. */
		memcpy(ret_data, b->store + b->store_size, n);
		b->marker_length = 0;
		return n;
	}
	size_t n = store_get(b, b->next, ret_data, size);
	b->next += n;
	return n;
}

struct pump_filter budget_filter(struct budget *b)
{
	return (struct pump_filter){ .take = take_output, .rest = rest, .context = b };
}

void budget_free(struct budget *b)
{
	fd_close(&b->file);
	if (b->store)
		(void)munmap(b->store, b->store_size + MARKER_SIZE);
	b->store = NULL;
}
