/*
 * classify.c - see classify.h.
 *
 * Runs in: the client.
 */
#include "client/classify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/find.h"
#include "client/options.h"
#include "client/path.h"

enum { OPTION_SESSION, OPTION_JSON, OPTION_COUNT };

static const char usage[] = "carrel classify [-s ID] [--json] PATH...";

static const char help[] =
	"usage: carrel classify [-s ID] [--json] PATH...\n\n"
	"Says for each path, as the session resolves it, which surface it is on: workspace,\n"
	"scratch, tool-results, readable, protected, hidden or outside; whether the session may\n"
	"read and write there; and the line of the policy that says so.\n";

static int write_stdout(const void *data, size_t size)
{
	return fd_write_all(STDOUT_FILENO, data, size);
}

/* {"path": as it was asked, and then the session's own members. */
static int put_json(const char *path, const struct control_message *answer)
{
	static const int out = STDOUT_FILENO;
	char buffer[512];
	struct json j;

	if (answer->size < 2 || answer->body[0] != '{')
		return -EPROTO;
	int r = write_stdout("{\"path\":", 8);
	json_init(&j, buffer, sizeof(buffer), json_write_fd, (void *)&out);
	json_string(&j, path);
	if (r >= 0)
		r = json_finish(&j);
	if (r >= 0)
		r = write_stdout(",", 1);
	return r < 0 ? r : write_stdout(answer->body + 1, answer->size - 1);
}

static int put_line(const char *path, const struct control_message *answer)
{
	int r = write_stdout(answer->body, answer->size);

	if (r >= 0)
		r = write_stdout("  ", 2);
	if (r >= 0)
		r = fd_write_visible(STDOUT_FILENO, path);
	return r < 0 ? r : write_stdout("\n", 1);
}

static int classify(const struct client_session *s, const char *path, bool json,
	struct control_message *answer, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_CLASSIFY, .flag = !json };
	char *whole = client_absolute(path, e);

	if (!whole)
		return -EINVAL;
	int r = client_ask(s, &request, whole, strlen(whole) + 1, answer, e);
	free(whole);
	if (r < 0)
		return r;
	r = json ? put_json(path, answer) : put_line(path, answer);
	return r < 0 ? error_set(e, ERROR_INTERNAL, "session", -r, path, "cannot tell") : 0;
}

static int classify_all(
	const struct client_session *s, const char *const *paths, bool json, struct error *e)
{
	struct control_message *answer = malloc(sizeof(*answer));
	int r = answer ? 0 : error_no_memory(e, "session");

	/* What is no path is said before anything is printed: half a document is none. */
	for (const char *const *path = paths; r >= 0 && *path; path++) {
		char *whole = client_absolute(*path, e);

		r = whole ? 0 : -EINVAL;
		free(whole);
	}
	for (bool first = true; r >= 0 && *paths; paths++, first = false) {
		if (json)
			r = write_stdout(first ? "[" : ",", 1);
		if (r >= 0)
			r = classify(s, *paths, json, answer, e);
	}
	if (r >= 0 && json)
		r = write_stdout("]\n", 2);
	free(answer);
	return r;
}

int classify_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_JSON] = { .name = "json" },
	};
	struct client_session s = CLIENT_NO_SESSION;
	struct error e = { 0 };
	int next = argc;
	int r = options_read(argc, argv, first, options, OPTION_COUNT, usage, &next, &e);

	(void)closed;
	if (r > 0)
		return write_stdout(help, sizeof(help) - 1) < 0 ? STATUS_CARREL : 0;
	if (r >= 0 && next == argc) {
		r = error_set(
			&e, ERROR_USAGE, "options", 0, NULL, "there is no path to classify");
		error_hint(&e, "%s", usage);
	}
	if (r >= 0)
		r = client_connect(&s, options[OPTION_SESSION].value, environment, &e);
	if (r >= 0)
		r = classify_all(&s, argv + next, options[OPTION_JSON].count > 0, &e);
	client_close(&s);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
