/*
 * tool_write.c - the tool `write`: a text, or bytes, into a file.
 *
 * Runs in: carrel-agent, outside. The file is opened inside, so that a file that is protected, or not writable for
 * another reason, cannot be opened. It is truncated only when it is known to be a regular file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/harmless.h"
#include "agent/image.h"
#include "agent/tool_file.h"
#include "base/fd.h"

struct work {
	struct tool_file file; /* first */
	const char *text;      /* of the call */
	size_t size;
	bool append;
};

static int write_whole(const struct work *w, int fd, off_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENODEV;
	if (!w->append && ftruncate(fd, 0) < 0)
		return -errno;
	int r = fd_write_all(fd, w->text, w->size);
	*ret_size = (w->append ? st.st_size : 0) + (off_t)w->size;
	return r;
}

static void write_opened(struct tool_file *f, int *fd, const char *path)
{
	struct work *w = (struct work *)f;
	autofd int file = take_fd(fd);
	autobuffer struct buffer shown = { 0 }, text = { 0 };
	off_t size = 0;
	int r = write_whole(w, file, &size);

	if (r < 0)
		return tool_file_refuse(f, -r);
	harmless_add(&shown, path, strlen(path));
	buffer_format(&text, "%s %zu bytes to %s\n", w->append ? "appended" : "wrote", w->size,
		shown.data);
	struct call *c = w->file.call;
	size_t written = w->size;
	tool_file_free(f);
	call_answer_text(c, &text,
		json_pack("{s:s, s:I, s:I}", "path", shown.data, "bytes", (json_int_t)written,
			"size", (json_int_t)size));
}

static void write_start(struct call *c, const json_t *arguments)
{
	const json_t *content = field_get(arguments, "content");
	bool binary = !strcmp(field_text(arguments, "encoding", "utf8"), "base64");
	unsigned mode = field_flag(arguments, "executable", false) ? 0777 : 0666;
	struct work *w = calloc(1, sizeof(*w));
	int flags = O_WRONLY | O_CREAT | O_NONBLOCK;

	if (!w)
		return call_refuse(c, "out of memory");
	w->text = json_string_value(content);
	w->size = json_string_length(content);
	w->append = field_flag(arguments, "append", false);
	if (binary) {
		bool good = image_from_base64(&w->file.held, w->text, w->size) &&
			!w->file.held.failed;

		w->text = w->file.held.data ? w->file.held.data : "";
		w->size = w->file.held.used;
		if (!good) {
			buffer_free(&w->file.held);
			free(w);
			return call_refuse(
				c, "`content` is not base64; send text with `encoding` utf8");
		}
	}
	w->file.opened = write_opened;
	const struct agent_session *d = call_context(c);

	tool_file_open(&w->file, c, field_text(arguments, "path", ""),
		flags | (w->append ? O_APPEND : 0), mode & ~d->umask & 0777);
}

static const char *const encodings[] = { "utf8", "base64", NULL };

static const struct field input[] = {
	{ .name = "path",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "A relative path is in the scratch, which is not kept; a file of the workspace is "
			"named by its absolute path" },
	{ .name = "content",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED | FIELD_BYTES,
		.help = "What the file is to hold" },
	{ .name = "encoding",
		.type = FIELD_TEXT,
		.words = encodings,
		.help = "Of content: utf8, or base64 for anything that is not text" },
	{ .name = "append", .type = FIELD_BOOLEAN, .help = "Add to what is there" },
	{ .name = "executable", .type = FIELD_BOOLEAN, .help = "A new file can be executed" },
	{ 0 },
};

static const struct field output[] = {
	{ .name = "path",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "As the session has it" },
	{ .name = "bytes", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED, .help = "Written" },
	{ .name = "size",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED,
		.help = "Of the file afterwards" },
	{ 0 },
};

const struct tool tool_write = {
	.name = "write",
	.title = "Write a file",
	.description =
		"Write a file whole, or add to it. What is produced and not part of the user's project "
		"goes to the scratch: give a relative path. Protected files cannot be written.",
	.input = input,
	.output = output,
	.hints = TOOL_DESTRUCTIVE, /* not idempotent: what is appended twice is there twice */
	.start = write_start,
};
