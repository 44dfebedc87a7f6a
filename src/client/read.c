/*
 * read.c - see read.h.
 *
 * Runs in: the client.
 */
#include "client/read.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "client/find.h"
#include "client/options.h"
#include "client/path.h"
#include "host/tree/slice.h"

enum { OPTION_SESSION, OPTION_LINES, OPTION_CHARS, OPTION_BYTES, OPTION_COUNT };

static const char usage[] =
	"carrel read [-s ID] PATH [--lines A:B | --chars A:B | --bytes A:B]";

static const char help[] =
	"usage: carrel read [-s ID] PATH [--lines A:B | --chars A:B | --bytes A:B]\n\n"
	"Prints a part of a file, as the session sees it. Counted from 1, both ends included;\n"
	"either can be left out, and a negative one is counted from the end: --lines -20:\n";

static int choose_slice(const struct client_option *o, struct slice *ret, struct error *e)
{
	static const enum slice_unit units[] = { SLICE_LINES, SLICE_CHARS, SLICE_BYTES };
	int chosen = -1;

	for (int i = OPTION_LINES; i <= OPTION_BYTES; i++) {
		if (!o[i].count)
			continue;
		if (chosen >= 0)
			return error_set(e, ERROR_USAGE, "options", 0, o[i].name,
				"only one of --lines, --chars and --bytes can be given");
		chosen = i;
	}
	if (chosen < 0)
		return slice_parse(SLICE_BYTES, ":", ret);
	int r = slice_parse(units[chosen - OPTION_LINES], o[chosen].value, ret);
	return r < 0 ? error_set(e, ERROR_USAGE, "options", 0, o[chosen].value,
			       "this is not a range: A:B, A:, :B or N")
		     : 0;
}

/*
 * A path that the policy hides looks empty, or absent: then this returns -errno with @e. The session's answer for people is
 * "hidden  --  WHY (RULE)".
 */
static int check_hidden(
	const struct client_session *s, const char *whole, const char *path, struct error *e)
{
	static const char word[] = "hidden ";
	const struct control_record request = { .kind = CONTROL_CLASSIFY, .flag = 1 };
	struct control_message *answer = malloc(sizeof(*answer));
	char on[sizeof(e->on)];
	int r = answer ? client_ask(s, &request, whole, strlen(whole) + 1, answer, NULL)
		       : -ENOMEM;
	const char *why = r < 0 || strncmp(answer->body, word, sizeof(word) - 1) != 0
		? NULL
		: strstr(answer->body, "--  ");

	if (why) {
		(void)snprintf(on, sizeof(on), "%s: %s", path, why + 4);
		*e = (struct error){ 0 };
		r = error_set(e, ERROR_PATH, "session", 0, on, "the session cannot read this");
	}
	free(answer);
	return why ? r : 0;
}

static int open_shown(
	const struct client_session *s, const char *whole, const char *path, struct error *e)
{
	struct stat st;
	autofd int fd = client_open_file(s, whole, O_RDONLY, 0, NULL, 0, e);

	if (fd >= 0 && fstat(fd, &st) < 0)
		return -errno;
	if (fd >= 0 && (!S_ISREG(st.st_mode) || st.st_size > 0))
		return take_fd(&fd);
	int r = check_hidden(s, whole, path, e);
	return r < 0 ? r : take_fd(&fd);
}

static int print_slice(const struct client_session *s, const char *path,
	const struct slice *slice, struct error *e)
{
	struct slice_found found;
	uint64_t bytes = 0;
	char *whole = client_absolute(path, e);
	autofd int fd = whole ? open_shown(s, whole, path, e) : -EINVAL;

	free(whole);
	if (fd < 0)
		return fd;
	int r = slice_find(fd, slice, &found);
	if (r >= 0)
		r = slice_copy(fd, &found, STDOUT_FILENO, &bytes);
	if (r == -ESPIPE || r == -EISDIR)
		return error_set(
			e, ERROR_PATH, "session", 0, path, "this is not a regular file");
	return r < 0 ? error_set(e, ERROR_PATH, "session", -r, path, "cannot read the file")
		     : 0;
}

/* @path: NULL: there was none, or more than one. */
static int read_path(const struct client_option *options, const char *path,
	const char *const *environment, struct error *e)
{
	autosession struct client_session s = CLIENT_NO_SESSION;
	struct slice slice;

	if (!path) {
		int r = error_set(
			e, ERROR_USAGE, "options", 0, NULL, "`carrel read` takes one path");

		error_hint(e, "%s", usage);
		return r;
	}
	int r = choose_slice(options, &slice, e);
	if (r < 0)
		return r;
	r = client_connect(&s, options[OPTION_SESSION].value, environment, e);
	return r < 0 ? r : print_slice(&s, path, &slice, e);
}

int read_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_LINES] = { .name = "lines", .placeholder = "A:B" },
		[OPTION_CHARS] = { .name = "chars", .placeholder = "A:B" },
		[OPTION_BYTES] = { .name = "bytes", .placeholder = "A:B" },
	};
	struct error e = { 0 };
	int next = argc;
	int r = options_read(argc, argv, first, options, OPTION_COUNT, usage, &next, &e);
	const char *path = r == 0 && next < argc ? argv[next] : NULL;

	(void)closed;
	/* The path may come before the options. */
	if (path)
		r = options_read(argc, argv, next + 1, options, OPTION_COUNT, usage, &next, &e);
	if (r > 0)
		return fd_write_all(STDOUT_FILENO, help, sizeof(help) - 1) < 0 ? STATUS_CARREL
									       : 0;
	if (r >= 0)
		r = read_path(options, next < argc ? NULL : path, environment, &e);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
