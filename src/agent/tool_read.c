/*
 * tool_read.c - the tool `read`: a file, or a slice of it, as text; a picture as a picture.
 *
 * Runs in: carrel-agent, outside. The file was opened inside: the tool can read no more than the session can.
 * May not: hold more of a file than the budget, or than a picture may have.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/harmless.h"
#include "agent/image.h"
#include "agent/tool_file.h"
#include "base/chars.h"
#include "base/fd.h"
#include "host/tree/slice.h"

#define PICTURE_MAX ((off_t)5 << 20)
/* To count lines or characters of more than this would keep other calls waiting. */
#define COUNTED_MAX ((off_t)1 << 30)

struct work {
	struct tool_file file; /* first */
	struct slice slice;
	bool sliced; /* the call asks for a slice; otherwise the beginning is read */
	uint64_t budget;
};

struct part {
	struct buffer text;
	struct slice_found found;
	off_t size;
	bool cut; /* there was more than the budget */
};

static void refuse_read(struct work *w, const char *text)
{
	struct call *c = w->file.call;

	tool_file_free(&w->file);
	call_refuse(c, "%s", text);
}

/* --- a picture -------------------------------------------------------------------------------- */

static int read_all(int fd, size_t size, char *ret)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(fd, ret + at, size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* or it became shorter meanwhile */
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* NULL, or why a host could not show it: such a picture would stay in the conversation (image.h). */
static const char *find_fault(const char *type, const char *data, size_t size)
{
	struct image_size is;

	if (!image_measure(type, data, size, &is))
		return "the file begins like a picture, but it is not a whole and valid one: read "
		       "slices of its `bytes`";
	if (is.width > IMAGE_SIDE_MAX || is.height > IMAGE_SIDE_MAX)
		return "the picture is too large: up to 8,000 pixels a side are shown. Make a smaller "
		       "one with `exec`, or read slices of its `bytes`";
	return NULL;
}

static void answer_picture(
	struct work *w, int fd, off_t size, const char *type, const char *path)
{
	autobuffer struct buffer base64 = { 0 }, shown = { 0 };
	char *data = malloc((size_t)size);
	int r = data ? read_all(fd, (size_t)size, data) : -ENOMEM;
	const char *fault = r == 0 ? find_fault(type, data, (size_t)size) : NULL;

	if (r == 0 && !fault)
		image_base64(&base64, data, (size_t)size);
	free(data);
	if (r < 0)
		return tool_file_refuse(&w->file, -r);
	if (fault)
		return refuse_read(w, fault);
	harmless_add(&shown, path, strlen(path));
	json_t *content = base64.failed
		? NULL
		: json_pack("[{s:s, s:s%, s:s}]", "type", "image", "data", base64.data,
			  base64.used, "mimeType", type);
	json_t *structured = json_pack("{s:s, s:I, s:s, s:b}", "path", shown.data, "size",
		(json_int_t)size, "mime_type", type, "cut", 0);
	struct call *c = w->file.call;

	tool_file_free(&w->file);
	call_answer(c, content, structured, false);
}

/* --- text ------------------------------------------------------------------------------------- */

static int read_part(const struct work *w, int fd, struct part *ret)
{
	int r = slice_find(fd, &w->slice, &ret->found);

	if (r < 0)
		return r;
	uint64_t length = ret->found.end - ret->found.start;
	uint64_t most = w->budget * CHARS_LENGTH_MAX;
	size_t want = (size_t)(length < most ? length : most);

	if (!buffer_reserve(&ret->text, want))
		return -ENOMEM;
	while (ret->text.used < want) {
		ssize_t n = pread(fd, ret->text.data + ret->text.used, want - ret->text.used,
			(off_t)(ret->found.start + ret->text.used));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* it became shorter meanwhile */
		ret->text.used += (size_t)n;
	}
	size_t fits = chars_offset(ret->text.data, ret->text.used, w->budget);
	ret->cut = fits < ret->text.used || (!w->sliced && ret->found.more);
	ret->text.used = fits;
	return 0;
}

/* Say how to read on. After a slice that is by bytes, since nothing else was counted before it. */
static void note_cut(const struct work *w, const struct part *p, struct buffer *note)
{
	size_t chars = chars_count(p->text.data, p->text.used);
	size_t first = w->sliced ? (size_t)p->found.start + p->text.used : chars;

	buffer_format(note,
		"[%zu characters of a file of %lld bytes. More: `chars`, `lines` or `bytes`, as "
		"FIRST:LAST; it goes on with \"%s\": \"%zu:%zu\"]",
		chars, (long long)p->size, w->sliced ? "bytes" : "chars", first + 1,
		first + (w->sliced ? p->text.used : chars));
}

static void answer_text(struct work *w, const struct part *p, const char *path)
{
	autobuffer struct buffer shown = { 0 }, place = { 0 }, note = { 0 };

	harmless_add(&shown, p->text.data, p->text.used);
	harmless_add(&place, path, strlen(path));
	json_t *content = shown.failed
		? NULL
		: json_pack("[{s:s, s:s%}]", "type", "text", "text", shown.data, shown.used);
	if (p->cut)
		note_cut(w, p, &note);
	else if (p->text.used == 0)
		buffer_text(&note, p->size ? "[this slice is empty]" : "[the file is empty]");
	if (note.used > 0)
		(void)json_array_append_new(
			content, json_pack("{s:s, s:s}", "type", "text", "text", note.data));
	json_t *structured = json_pack("{s:s, s:I, s:s%, s:b, s:I, s:I}", "path", place.data,
		"size", (json_int_t)p->size, "text", shown.data, shown.used, "cut", p->cut,
		"start", (json_int_t)p->found.start, "end",
		(json_int_t)(p->found.start + p->text.used));
	struct call *c = w->file.call;

	tool_file_free(&w->file);
	call_answer(c, structured ? content : NULL, structured, false);
}

static void read_opened(struct tool_file *f, int *fd, const char *path)
{
	struct work *w = (struct work *)f;
	autofd int file = take_fd(fd);
	struct part p = { 0 };
	struct stat st;
	char head[IMAGE_HEAD];

	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return tool_file_refuse(f, S_ISDIR(st.st_mode) ? EISDIR : ENODEV);
	ssize_t n = pread(file, head, sizeof(head), 0);
	const char *type = n > 0 ? image_type(head, (size_t)n) : NULL;
	if (type && !w->sliced && st.st_size > PICTURE_MAX)
		return refuse_read(w,
			"the picture is too large: up to 5 MiB are shown. Make a smaller one with "
			"`exec`, or read slices of its bytes");
	if (type && !w->sliced)
		return answer_picture(w, file, st.st_size, type, path);
	if (w->sliced && w->slice.unit != SLICE_BYTES && st.st_size > COUNTED_MAX)
		return refuse_read(w,
			"the file is larger than 1 GiB: read it by `bytes`, or with `exec` and "
			"`sed -n FIRST,LASTp`");
	if (st.st_size == 0 && f->hidden.used > 0)
		return tool_file_refuse(f, EACCES);
	p.size = st.st_size;
	int r = read_part(w, file, &p);
	if (r < 0)
		tool_file_refuse(f, -r);
	else
		answer_text(w, &p, path);
	buffer_free(&p.text);
}

/* --- what it takes and gives ------------------------------------------------------------------ */

/* Read at most one of the three arguments. False: the call was refused. */
static bool read_slice(struct work *w, struct call *c, const json_t *arguments)
{
	static const char *const units[] = {
		[SLICE_LINES] = "lines", [SLICE_CHARS] = "chars", [SLICE_BYTES] = "bytes"
	};

	for (unsigned i = 0; i < 3; i++) {
		const char *text = field_text(arguments, units[i], NULL);

		if (!text)
			continue;
		if (w->sliced) {
			call_refuse(c, "give one of `lines`, `chars` and `bytes`");
			return false;
		}
		w->sliced = true;
		if (slice_parse((enum slice_unit)i, text, &w->slice) < 0) {
			call_refuse(c,
				"`%s` is FIRST:LAST, counted from 1, as in \"1200:1500\"; \"-100:\" "
				"are the last hundred",
				units[i]);
			return false;
		}
	}
	if (!w->sliced)
		w->slice = (struct slice){
			.unit = SLICE_CHARS, .first = 1, .last = (int64_t)w->budget
		};
	return true;
}

static void read_start(struct call *c, const json_t *arguments)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return call_refuse(c, "out of memory");
	w->file.opened = read_opened;
	w->budget = (uint64_t)field_integer(arguments, "budget", TOOLS_BUDGET);
	if (!read_slice(w, c, arguments)) {
		free(w);
		return;
	}
	tool_file_open(
		&w->file, c, field_text(arguments, "path", ""), O_RDONLY | O_NONBLOCK, 0);
}

static const struct field input[] = {
	{ .name = "path",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "A file; relative to the scratch" },
	{ .name = "lines",
		.type = FIELD_TEXT,
		.max = 64,
		.help = "FIRST:LAST, counted from 1; negative numbers count from the end" },
	{ .name = "chars", .type = FIELD_TEXT, .max = 64, .help = "The same for characters" },
	{ .name = "bytes", .type = FIELD_TEXT, .max = 64, .help = "The same for bytes" },
	{ .name = "budget",
		.type = FIELD_INTEGER,
		.min = 100,
		.max = TOOLS_BUDGET_MAX,
		.help = "Characters that are returned at most (20000)" },
	{ 0 },
};

static const struct field output[] = {
	{ .name = "path",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "As the session has it" },
	{ .name = "size",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED,
		.help = "Of the file, bytes" },
	{ .name = "text", .type = FIELD_TEXT, .help = "Made harmless; not for pictures" },
	{ .name = "cut",
		.type = FIELD_BOOLEAN,
		.flags = FIELD_REQUIRED,
		.help = "There was more than the budget" },
	{ .name = "start",
		.type = FIELD_INTEGER,
		.help = "Where the text begins, bytes from 0" },
	{ .name = "end", .type = FIELD_INTEGER, .help = "Where it ends" },
	{ .name = "mime_type",
		.type = FIELD_TEXT,
		.help = "Of a picture, which is in the content" },
	{ 0 },
};

const struct tool tool_read = {
	.name = "read",
	.title = "Read a file",
	.description =
		"Read a file, or a slice of it by lines, characters or bytes; also the full output of "
		"a command that was cut. PNG, JPEG, GIF and WebP files come back as pictures to look at.",
	.input = input,
	.output = output,
	.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	.start = read_start,
};
