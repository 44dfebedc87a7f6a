/*
 * slice.c - see slice.h.
 *
 * Runs in: whoever was given the descriptor. May not: open anything, move the descriptor's offset.
 *
 * Both ends of a slice are places between two units: "before unit N", counted from one end of the
 * file or from the other. Each is sought on its own, block by block.
 */
#include "host/tree/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/chars.h"
#include "base/fd.h"
#include "base/text.h"

enum { UNSIZED_MAX = 64 << 20, BLOCK = 256 * 1024, CONTEXT = CHARS_LENGTH_MAX - 1 };

struct seeker {
	int fd;
	enum slice_unit unit;
	uint64_t size; /* of the file, when it was looked at */
	char *block;   /* CONTEXT + BLOCK bytes */
};

/* --- reading a range -------------------------------------------------------------------------- */

/* One end of a range: a number that is not 0. Moves *at behind it. */
static int parse_end(const char **at, int64_t *ret)
{
	char digits[24];
	bool negative = **at == '-';
	const char *start = *at + negative;
	size_t length = strspn(start, "0123456789");
	uint64_t number;

	if (length == 0)
		return -EINVAL;
	if (length >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, start, length);
	digits[length] = '\0';
	int r = text_parse_count(digits, &number);
	if (r < 0)
		return r;
	if (number >= INT64_MAX)
		return -ERANGE;
	*ret = negative ? -(int64_t)number : (int64_t)number;
	*at = start + length;
	return 0;
}

int slice_parse(enum slice_unit unit, const char *text, struct slice *ret)
{
	struct slice s = { .unit = unit };
	int r = *text == ':' ? 0 : parse_end(&text, &s.first);

	if (r < 0)
		return r;
	if (!*text) {
		s.last = s.first;
	} else {
		if (*text++ != ':')
			return -EINVAL;
		r = *text ? parse_end(&text, &s.last) : 0;
		if (r < 0)
			return r;
	}
	if (*text)
		return -EINVAL;
	*ret = s;
	return 0;
}

/* --- reading the file ------------------------------------------------------------------------- */

/* Up to @size bytes from @offset on, fewer only at the end of the file. Their number or -errno. */
static ssize_t read_at(int fd, char *ret_data, size_t size, uint64_t offset)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = pread(fd, ret_data + used, size - used, (off_t)(offset + used));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* A file that reports size 0 (as those in /proc do) is as long as what can be read of it; some never end. */
static int find_size(struct seeker *s)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ESPIPE;
	s->size = (uint64_t)st.st_size;
	for (ssize_t n = st.st_size ? 0 : BLOCK; n == BLOCK;) {
		n = read_at(s->fd, s->block, BLOCK, s->size);
		if (n < 0)
			return (int)n;
		s->size += (uint64_t)n;
		if (s->size > UNSIZED_MAX)
			return -EFBIG;
	}
	return 0;
}

/* --- seeking ---------------------------------------------------------------------------------- */

/* Find the end of the first *count lines of a block, and subtract the lines found from *count. */
static size_t skip_lines(const char *data, size_t size, uint64_t *count)
{
	const char *at = data, *end = data + size;

	while (*count > 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline)
			return size;
		at = newline + 1;
		(*count)--;
	}
	return (size_t)(at - data);
}

static size_t skip_chars(const char *data, size_t size, bool last, uint64_t *count)
{
	size_t whole = size - (last ? 0 : chars_open(data, size));
	size_t all = chars_count(data, whole);

	if (*count >= all) {
		*count -= all;
		return whole;
	}
	size_t at = chars_offset(data, whole, *count);
	*count = 0;
	return at;
}

/* The place behind the first @count units. 0 or -errno. */
static int seek_forward(struct seeker *s, uint64_t count, uint64_t *ret)
{
	uint64_t at = 0;

	if (s->unit == SLICE_BYTES)
		at = count;
	while (s->unit != SLICE_BYTES && count > 0 && at < s->size) {
		size_t want = s->size - at < BLOCK ? (size_t)(s->size - at) : BLOCK;
		ssize_t n = read_at(s->fd, s->block, want, at);

		if (n < 0)
			return (int)n;
		if (n == 0) {
			s->size =
				at; /* it has become shorter, or says more than it has, as in /sys */
			break;
		}
		bool last = at + (uint64_t)n >= s->size || (size_t)n < want;
		at += s->unit == SLICE_LINES ? skip_lines(s->block, (size_t)n, &count)
					     : skip_chars(s->block, (size_t)n, last, &count);
	}
	*ret = at < s->size ? at : s->size;
	return 0;
}

/* Find the beginning of the last @count lines of a block, behind a newline; 0 if it has fewer. */
static size_t back_lines(const char *data, size_t size, uint64_t *count)
{
	for (;;) {
		const char *newline = memrchr(data, '\n', size);

		if (!newline)
			return 0;
		size = (size_t)(newline - data);
		if (--*count == 0)
			return size + 1;
	}
}

/*
 * The last @count characters of data[context..size). Without as many, the first boundary from
 * @context on: what is before it belongs to the block before.
 */
static size_t back_chars(const char *data, size_t context, size_t size, uint64_t *count)
{
	size_t first = context;

	while (first < size && chars_boundary(data, size, first) != first)
		first++;
	size_t all = chars_count(data + first, size - first);
	if (*count >= all) {
		*count -= all;
		return first;
	}
	size_t at = first + chars_offset(data + first, size - first, all - *count);
	*count = 0;
	return at;
}

/* For lines: the newline that ends the last line does not begin another one. */
static int skip_last_newline(struct seeker *s, uint64_t *end)
{
	char last = 0;
	ssize_t n = *end ? read_at(s->fd, &last, 1, *end - 1) : 0;

	if (n < 0)
		return (int)n;
	if (n > 0 && last == '\n')
		(*end)--;
	return 0;
}

/* The place before the last @count units. 0 or -errno. */
static int seek_backward(struct seeker *s, uint64_t count, uint64_t *ret)
{
	uint64_t end = s->size;
	int r = s->unit == SLICE_LINES && count > 0 ? skip_last_newline(s, &end) : 0;

	if (s->unit == SLICE_BYTES) {
		end = count < end ? end - count : 0;
		count = 0;
	}
	while (r == 0 && count > 0 && end > 0) {
		size_t size = end < BLOCK ? (size_t)end : BLOCK;
		size_t context = end - size < CONTEXT ? (size_t)(end - size) : CONTEXT;
		uint64_t start = end - size - context;
		ssize_t n = read_at(s->fd, s->block, context + size, start);

		if (n < 0)
			return (int)n;
		if ((size_t)n < context + size)
			return -ESTALE; /* it has become shorter: the end is somewhere else */
		if (s->unit == SLICE_LINES)
			end = start + context + back_lines(s->block + context, size, &count);
		else
			end = start + back_chars(s->block, context, context + size, &count);
	}
	*ret = end;
	return r;
}

/* The place before unit @number (from 1 on, or negative) or, with @behind, the one after it. */
static int seek_unit(struct seeker *s, int64_t number, bool behind, uint64_t *ret)
{
	if (number > 0)
		return seek_forward(s, (uint64_t)number - !behind, ret);
	return seek_backward(s, (uint64_t)-number - behind, ret);
}

static int find_bounds(struct seeker *s, const struct slice *slice, struct slice_found *ret)
{
	uint64_t start = 0, end;
	int r = find_size(s);

	if (r == 0 && slice->first)
		r = seek_unit(s, slice->first, false, &start);
	end = s->size;
	if (r == 0 && slice->last)
		r = seek_unit(s, slice->last, true, &end);
	if (r < 0)
		return r;
	ret->start = start;
	ret->end = end > start ? end : start;
	ret->more = ret->end < s->size;
	return 0;
}

int slice_find(int fd, const struct slice *s, struct slice_found *ret)
{
	struct seeker seeker = { .fd = fd, .unit = s->unit, .block = malloc(CONTEXT + BLOCK) };

	if (!seeker.block)
		return -ENOMEM;
	int r = find_bounds(&seeker, s, ret);
	free(seeker.block);
	return r;
}

int slice_copy(int fd, const struct slice_found *found, int out, uint64_t *ret_bytes)
{
	char *block = malloc(BLOCK);
	uint64_t at = found->start;
	int r = block ? 0 : -ENOMEM;

	while (r == 0 && at < found->end) {
		uint64_t rest = found->end - at;
		ssize_t n = read_at(fd, block, rest < BLOCK ? (size_t)rest : BLOCK, at);

		if (n <= 0) {
			r = (int)n;
			break;
		}
		r = fd_write_all(out, block, (size_t)n);
		if (r == 0)
			at += (uint64_t)n;
	}
	free(block);
	*ret_bytes = at - found->start;
	return r;
}
