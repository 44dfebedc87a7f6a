/*
 * session.c - see session.h.
 *
 * Runs in: the client.
 */
#include "client/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/autofree.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "client/find.h"
#include "client/options.h"
#include "client/quarantine_shelf.h"
#include "client/session_allow.h"
#include "client/session_logs.h"
#include "host/serve/session_start.h"

enum { PATIENCE_S = 5 };
enum show { /* flags of CONTROL_SHOW */
	SHOW_JSON,
	SHOW_TEXT,
	SHOW_LINE,
	SHOW_NETWORK = CONTROL_SHOW_NETWORK,
	SHOW_NETWORK_TEXT = CONTROL_SHOW_NETWORK_TEXT,
};
enum { OPTION_SESSION, OPTION_JSON, OPTION_FOLLOW, OPTION_COUNT };

static const char usage[] = "usage: carrel session start [SETTINGS] [--json] [--foreground] "
			    "[--die-with PID]\n"
			    "       carrel session list [--json]\n"
			    "       carrel session show [-s ID] [--json]\n"
			    "       carrel session net [-s ID] [--json]\n"
			    "       carrel session allow [-s ID] [--remove] HOST...\n"
			    "       carrel session logs [-s ID] NAME [--follow]\n"
			    "       carrel session end [-s ID] [--json]\n";

static const char *const words[] = { "start", "list", "show", "net", "allow", "logs", "end" };
enum { WORD_COUNT = sizeof(words) / sizeof(words[0]) };

static int write_stdout(const void *data, size_t size)
{
	return fd_write_all(STDOUT_FILENO, data, size);
}

/* A supervisor that was stopped, or is no supervisor, must not keep the caller waiting. */
static void set_patience(int fd)
{
	const struct timeval t = { .tv_sec = PATIENCE_S };

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* @ret: the caller frees it. Returns its length, or -errno with @e. */
static ssize_t fetch_session(const struct client_session *s, enum show how,
	struct control_message *answer, char **ret, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_SHOW, .flag = how };

	set_patience(s->fd);
	int r = client_ask(s, &request, NULL, 0, answer, e);
	if (r < 0)
		return r;
	ssize_t n = control_read_text(answer, ret);
	control_close_fds(answer);
	return n < 0 ? error_set(e, ERROR_PROTOCOL, "session", (int)-n, s->id,
			       "the session's answer cannot be read")
		     : n;
}

/* --- list ------------------------------------------------------------------------------------ */

/* A session that does not answer is no error: it is ending, or was killed, and gc will remove it. */
static __attribute__((noinline)) int list_one(const struct state_session *found,
	const char *const *environment, bool json, bool first, struct control_message *answer)
{
	struct client_session s;
	struct error e = { 0 };
	char *text = NULL;
	int r = client_reach(&s, found->id, environment, &e);

	if (r < 0)
		return 0;
	ssize_t size = fetch_session(&s, json ? SHOW_JSON : SHOW_LINE, answer, &text, &e);
	client_close(&s);
	if (size < 0)
		return 0;
	if (json && size && text[size - 1] == '\n')
		size--;
	if (json && !first)
		r = write_stdout(",", 1);
	if (r >= 0)
		r = write_stdout(text, (size_t)size);
	free(text);
	return r < 0 ? r : 1;
}

/* Say that something is in quarantine, also from sessions that are over: somebody has to look at it. */
static void tell_quarantine(const char *const *environment)
{
	size_t count = quarantine_shelf_size(environment);
	struct error line = { 0 };

	if (count == 0)
		return;
	(void)error_set(&line, ERROR_PATH, "session", 0, NULL,
		count == 1 ? "%zu path that a tool made is in quarantine"
			   : "%zu paths that tools made are in quarantine",
		count);

	error_hint(&line, "carrel quarantine list");
	(void)error_report(&line);
}

static int list(const char *const *environment, bool json, struct error *e)
{
	autofree struct control_message *answer = malloc(sizeof(*answer));
	struct state_session at = { 0 };
	struct state state;
	bool first = true;
	int r = answer ? state_open(&state, environment, false, e)
		       : error_no_memory(e, "session");

	if (r < 0)
		return r;
	r = json ? write_stdout("[", 1) : 0;
	while (r >= 0 && (r = state_next(&state, &at)) > 0) {
		r = list_one(&at, environment, json, first, answer);
		first = first && r <= 0;
	}
	if (r >= 0 && json)
		r = write_stdout("]\n", 2);
	state_close(&state);
	if (r >= 0 && !json)
		tell_quarantine(environment);
	return r < 0
		? error_set(e, ERROR_INTERNAL, "session", -r, NULL, "cannot list the sessions")
		: 0;
}

/* --- show and end ---------------------------------------------------------------------------- */

static int show_one(
	const char *id, const char *const *environment, enum show how, struct error *e)
{
	autofree struct control_message *answer = malloc(sizeof(*answer));
	autosession struct client_session s = CLIENT_NO_SESSION;
	autofree char *text = NULL;

	if (!answer)
		return error_no_memory(e, "session");
	int r = client_reach(&s, id, environment, e);
	if (r < 0)
		return r;
	ssize_t size = fetch_session(&s, how, answer, &text, e);
	return size < 0 ? (int)size : write_stdout(text, (size_t)size);
}

/* Print the session's lines for people, as they would stand on standard error. */
static int put_end(const char *id, const char *text, size_t size)
{
	static const int out = STDOUT_FILENO;
	char buffer[1024];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), fd_write_to, (void *)&out);
	json_object_begin(&j);
	json_key(&j, "session");
	json_string(&j, id);
	json_key(&j, "messages");
	json_array_begin(&j);
	for (const char *end; size > 0; size -= (size_t)(end - text), text = end) {
		const char *newline = memchr(text, '\n', size);

		end = newline ? newline + 1 : text + size;
		json_bytes(&j, text, (size_t)((newline ? newline : end) - text));
	}
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}

static int end_one(const char *id, const char *const *environment, bool json, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_END };
	autofree struct control_message *answer = malloc(sizeof(*answer));
	autosession struct client_session s = CLIENT_NO_SESSION;

	if (!answer)
		return error_no_memory(e, "session");
	int r = client_reach(&s, id, environment, e);
	if (r < 0)
		return r;
	autofd int supervisor = client_supervisor(s.fd);
	r = client_ask(&s, &request, NULL, 0, answer, e);
	if (r < 0)
		return r;
	client_await_end(supervisor);
	/* Print what the session had to say: what was quarantined, where it was kept. */
	if (json)
		return put_end(s.id, answer->body, answer->size);
	return answer->size ? fd_write_all(STDERR_FILENO, answer->body, answer->size) : 0;
}

static int wrong_word(const char *word, struct error *e)
{
	const char *nearest = word ? text_nearest(word, words, WORD_COUNT) : NULL;
	int r = error_set(e, ERROR_USAGE, "options", 0, word, "%s",
		word ? "`carrel session` has no such verb" : "`carrel session` needs a verb");

	if (nearest)
		error_hint(e, "did you mean `carrel session %s`?", nearest);
	error_hint(e, "carrel session start|list|show|net|allow|logs|end");
	return r;
}

static __attribute__((noinline)) int do_word(const char *word, const struct client_option *o,
	const char *rest, const char *const *environment, struct error *e)
{
	const char *id = o[OPTION_SESSION].value ? o[OPTION_SESSION].value : rest;
	bool json = o[OPTION_JSON].count > 0;

	if (!strcmp(word, "list"))
		return list(environment, json, e);
	if (!strcmp(word, "show"))
		return show_one(id, environment, json ? SHOW_JSON : SHOW_TEXT, e);
	if (!strcmp(word, "net"))
		return show_one(id, environment, json ? SHOW_NETWORK : SHOW_NETWORK_TEXT, e);
	if (!strcmp(word, "logs"))
		return session_logs(o[OPTION_SESSION].value, rest, o[OPTION_FOLLOW].count > 0,
			environment, e);
	return end_one(id, environment, json, e);
}

/* Refuse the first argument that the verb @word cannot have. @rest: the id, or the name of a service. */
static int check_words(
	const char *word, const struct client_option *o, const char *rest, struct error *e)
{
	bool named = o[OPTION_SESSION].count > 0, logs = !strcmp(word, "logs");

	if (logs && !rest)
		return error_set(e, ERROR_USAGE, "options", 0, NULL,
			"`carrel session logs` needs the name or the number of a service");
	if (logs && o[OPTION_JSON].count)
		return error_set(e, ERROR_USAGE, "options", 0, "--json",
			"a log is what the service wrote, and nothing else");
	if (!logs && o[OPTION_FOLLOW].count)
		return error_set(
			e, ERROR_USAGE, "options", 0, "--follow", "only a log can be followed");
	if ((!strcmp(word, "list") && (named || rest)) || (!logs && named && rest))
		return error_set(e, ERROR_USAGE, "options", 0,
			rest ? rest : o[OPTION_SESSION].value, "too many arguments");
	return 0;
}

/* The id, or the name of a service, may come before the options, too. */
static int read_words(int argc, const char *const *argv, int first,
	struct client_option options[OPTION_COUNT], const char **ret_rest, struct error *e)
{
	static const char hint[] =
		"carrel session list|show|net|end [-s ID] [--json], or carrel session logs [-s ID] NAME";
	const char *rest = NULL;
	int next = argc;
	int r = options_read(argc, argv, first, options, OPTION_COUNT, hint, &next, e);

	if (r == 0 && next < argc) {
		rest = argv[next++];
		r = options_read(argc, argv, next, options, OPTION_COUNT, hint, &next, e);
	}
	if (r == 0 && next < argc)
		r = error_set(e, ERROR_USAGE, "options", 0, argv[next], "too many arguments");
	*ret_rest = rest;
	return r;
}

static bool is_word(const char *word)
{
	for (size_t i = 0; word && i < WORD_COUNT; i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

int session_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_JSON] = { .name = "json" },
		[OPTION_FOLLOW] = { .name = "follow" },
	};
	struct error e = { 0 };
	const char *word = first < argc ? argv[first] : NULL, *rest = NULL;

	if (word && !strcmp(word, "start"))
		return session_start_command(argc, argv, first + 1, environment, closed);
	if (word && !strcmp(word, "allow"))
		return session_allow_command(argc, argv, first + 1, environment);
	if (word && (!strcmp(word, "--help") || !strcmp(word, "-h")))
		return write_stdout(usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
	int r = is_word(word) ? read_words(argc, argv, first + 1, options, &rest, &e)
			      : wrong_word(word, &e);
	if (r > 0)
		return write_stdout(usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
	if (r >= 0)
		r = check_words(word, options, rest, &e);
	if (r >= 0)
		r = do_word(word, options, rest, environment, &e);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
