/*
 * session_allow.c - see session_allow.h.
 *
 * Runs in: the client. It reads sets of hosts, since they are files of the caller's; the supervisor judges what they name.
 */
#include "client/session_allow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/error_report.h"
#include "client/find.h"
#include "client/options.h"
#include "client/verb.h"
#include "host/load/hosts.h"

enum { ARENA_SIZE = 16 << 20, PATIENCE_S = 5 };
enum { OPTION_SESSION, OPTION_REMOVE, OPTION_COUNT };

static const struct verb_help help = {
	.usage = "carrel session allow [-s ID] [--remove] HOST[:PORT,...]|@SET...",
	.about =
		"Lets the commands of a live session reach these names as well, as `allow` lines do. The session\n"
		"has to be started with net-live; what its policy denies stays denied, and a port needs a line\n"
		"that names it, but for 80 and 443. With --remove they are taken back, and what is connected by\n"
		"them is reset.\n",
};

/* The texts, each with its NUL, as one body. Its size, or -errno with @e. */
static ssize_t join(const char **texts, size_t count, char *ret, size_t room, struct error *e)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(texts[i]) + 1;

		if (used + length > room)
			return error_set(e, ERROR_LIMIT, "options", ERROR_OWN(E2BIG), NULL,
				"these are too many hosts for one change");
		memcpy(ret + used, texts[i], length);
		used += length;
	}
	return (ssize_t)used;
}

static int ask_session(
	struct client_session *s, const char *body, size_t size, bool remove, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_ALLOW, .flag = remove };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct control_message *answer = malloc(sizeof(*answer));

	if (!answer)
		return error_no_memory(e, "session");
	/* A supervisor that was stopped must not keep the caller waiting. */
	(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	int r = client_ask(s, &request, body, size, answer, e);
	if (r >= 0)
		control_close_fds(answer);
	free(answer);
	return r;
}

static int ask(const char *id, const char *body, size_t size, bool remove,
	const char *const *environment, struct error *e)
{
	struct client_session s = CLIENT_NO_SESSION;
	int r = client_connect(&s, id, environment, e);

	if (r >= 0)
		r = ask_session(&s, body, size, remove, e);
	client_close(&s);
	return r;
}

static int change(const struct client_option *o, const char **words, size_t count,
	const char *const *environment, struct error *e)
{
	struct arena arena;
	const char **texts;
	size_t text_count;

	if (arena_init(&arena, ARENA_SIZE) < 0)
		return error_no_memory(e, "options");
	int r = hosts_read(
		&arena, "session allow", words, count, environment, &texts, &text_count, e);
	char *body = arena_alloc(&arena, CONTROL_BODY_MAX);
	if (r >= 0 && !body)
		r = error_no_memory(e, "options");
	ssize_t size = r < 0 ? r : join(texts, text_count, body, CONTROL_BODY_MAX, e);
	if (size >= 0)
		size = ask(o[OPTION_SESSION].value, body, (size_t)size,
			o[OPTION_REMOVE].count > 0, environment, e);
	arena_free(&arena);
	return (int)size;
}

int session_allow_command(
	int argc, const char *const *argv, int first, const char *const *environment)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_REMOVE] = { .name = "remove" },
	};
	struct error e = { 0 };
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	size_t count = 0;
	int r = words ? verb_read(&help, argc, argv, first, options, OPTION_COUNT, words,
				&count, 1, (size_t)argc, &e)
		      : error_no_memory(&e, "options");

	if (r == 0)
		r = change(options, words, count, environment, &e);
	free(words);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
