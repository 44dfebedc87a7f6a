/*
 * verb_pad.c - `carrel pad`: the pad of a live session, for scripts and for hosts without MCP.
 *
 * Runs in: carrel-agent, outside, as the caller. Inside a session it finds no pad: neither the state
 * directory nor the session directory can be seen there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/message.h"
#include "agent/pad_request.h"
#include "agent/verbs.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/find.h"

extern char **environ;

/* A section of 1 MiB in which every byte is written as \u00XX. */
#define REQUEST_MAX ((size_t)8 << 20)

static const char usage[] =
	"usage: carrel pad [-s ID] [--json] [ACTION [SECTION] [TEXT ...]]\n"
	"       carrel pad [-s ID] [--json] '{\"action\": ..., \"section\": ..., \"content\": ...}'\n"
	"       carrel pad [-s ID] [--json] < REQUEST\n"
	"\n"
	"  ACTION    write, append, read, clear\n"
	"  SECTION   goal, findings, artifacts, errors, main\n"
	"  -s ID     the session; without it $CARREL_SESSION. A unique beginning is enough\n"
	"  --json    answer with a JSON object\n"
	"\n"
	"Without a section, write and append take main, read and clear take all of them.\n";

struct options {
	const char *session;
	bool json, help;
	int count; /* words behind the options */
	const char *const *words;
};

static bool names_session(const char *word)
{
	return !strcmp(word, "-s") || !strcmp(word, "--session");
}

static int parse(int argc, char **argv, struct options *ret, struct error *e)
{
	struct options o = { 0 };
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		} else if (!strcmp(argv[i], "--json")) {
			o.json = true;
		} else if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			o.help = true;
		} else if (names_session(argv[i]) && i + 1 < argc) {
			o.session = argv[++i];
		} else if (!strncmp(argv[i], "--session=", 10)) {
			o.session = argv[i] + 10;
		} else {
			error_set(e, ERROR_USAGE, "options", 0, argv[i],
				names_session(argv[i]) ? "a session is missing"
						       : "there is no such option");
			error_hint(e, "`carrel pad --help` shows the options");
			return -EINVAL;
		}
	}
	o.count = argc - i;
	o.words = (const char *const *)argv + i;
	*ret = o;
	return 0;
}

/* The pad of a session that lives: its supervisor answers at the socket. */
static int open_pad(const char *id, struct error *e)
{
	struct client_session session;
	int r = client_connect(&session, id, (const char *const *)environ, e);

	if (r < 0)
		return r;
	int pad = pad_open(session.record);
	if (pad < 0)
		pad = error_set(
			e, ERROR_SESSION, "session", -pad, session.path, "cannot open the pad");
	client_close(&session);
	return pad;
}

/* --- the request ------------------------------------------------------------------------------ */

static json_t *parse_request(const char *text, size_t size, struct error *e)
{
	enum message_code code;
	char why[128];
	json_t *value = message_parse(text, size, &code, why, sizeof(why));

	if (!value) {
		error_set(e, ERROR_USAGE, "options", 0, NULL,
			"the request is not a JSON object: %s", why);
		error_hint(e,
			"as in {\"action\": \"append\", \"section\": \"findings\", "
			"\"content\": \"the text\"}");
	}
	return value;
}

static json_t *load_stdin(struct error *e)
{
	json_t *value = NULL;
	char *text = malloc(REQUEST_MAX + 1);
	ssize_t n = text ? fd_read_file(STDIN_FILENO, text, REQUEST_MAX) : -ENOMEM;

	if (n < 0)
		error_set(
			e, ERROR_USAGE, "options", (int)-n, "stdin", "cannot read the request");
	else
		value = parse_request(text, (size_t)n, e);
	free(text);
	return value;
}

static json_t *request_of(const struct options *o, struct error *e)
{
	if (o->count == 0)
		return load_stdin(e);
	if (o->count == 1 && o->words[0][strspn(o->words[0], " \t\n")] == '{')
		return parse_request(o->words[0], strlen(o->words[0]), e);
	for (int i = 0; i < o->count; i++)
		if (!text_is_utf8(o->words[i], strlen(o->words[i]))) {
			error_set(e, ERROR_USAGE, "options", 0, o->words[i],
				"the text is not UTF-8");
			return NULL;
		}
	json_t *value = pad_request_words(o->count, o->words);

	if (!value)
		error_set(e, ERROR_LIMIT, "options", ERROR_OWN(ENOMEM), NULL, "out of memory");
	return value;
}

/* --- the answer ------------------------------------------------------------------------------- */

static int print_answer(const json_t *answer, bool json)
{
	autobuffer struct buffer b = { 0 };

	if (json) {
		char *text = json_dumps(answer, JSON_COMPACT);

		buffer_format(&b, "%s\n", text ? text : "");
		free(text);
	} else {
		pad_request_text(answer, &b);
	}
	if (b.failed || fd_write_all(STDOUT_FILENO, b.data ? b.data : "", b.used) < 0)
		return STATUS_CARREL;
	return 0;
}

static int refuse_request(const struct buffer *why)
{
	autobuffer struct buffer b = { 0 };

	buffer_format(&b, "carrel: %s\n", why->data ? why->data : "out of memory");
	(void)!fd_write_all(STDERR_FILENO, b.data, b.used);
	return AGENT_STATUS_BAD;
}

static int answer_request(const struct options *o, const json_t *value, struct error *e)
{
	autobuffer struct buffer why = { 0 };
	struct pad_request q;
	json_t *answer;

	if (pad_request_read(value, &q, &why) < 0) /* before it looks for a session */
		return refuse_request(&why);
	autofd int pad = open_pad(o->session, e);
	if (pad < 0)
		return error_report(e);
	int r = pad_request_run(pad, &q, &answer, &why);
	if (r == -EFBIG && why.data)
		return refuse_request(&why);
	if (r < 0) {
		error_set(e, why.data ? ERROR_SESSION : ERROR_INTERNAL, "session",
			why.data ? 0 : -r, pad_action_name(q.action), "%s",
			why.data ? why.data : "the pad failed");
		return error_report(e);
	}
	int status = print_answer(answer, o->json);
	json_decref(answer);
	return status;
}

int verb_pad(int argc, char **argv)
{
	struct options o;
	struct error e = { 0 };

	if (parse(argc, argv, &o, &e) < 0)
		return error_report(&e);
	if (o.help)
		return fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL
										 : 0;
	json_t *value = request_of(&o, &e);
	if (!value)
		return error_report(&e);
	int status = answer_request(&o, value, &e);
	json_decref(value);
	return status;
}
