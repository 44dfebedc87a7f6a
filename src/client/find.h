/*
 * find.h - a live session, by its id, and a connection to its supervisor.
 *
 * Runs in: the client, which checks what lies in the state directory before it believes it.
 */
#pragma once

#include "base/error.h"
#include "host/serve/control.h"
#include "host/session/state.h"
#include "host/stdio/stdio.h"

struct client_session {
	char id[SESSION_ID_LENGTH + 1];
	char path
		[STATE_PATH_MAX]; /* of the session directory; scratch/ and tool-results/ are in it */
	int record; /* its record, where the notes for clients are (host/session/record.h), or -1 */
	int dir; /* the session directory, or -1 */
	int fd;  /* connection to its supervisor, or -1 */
};

#define CLIENT_NO_SESSION ((struct client_session){ .record = -1, .dir = -1, .fd = -1 })

/*
 * client_reach - as client_connect(), but succeeds also if somebody has removed the session directory: `dir` is -1 then. For
 * requests that need only the supervisor: such a session can still be listed, shown and ended.
 */
MUST_CHECK int client_reach(struct client_session *ret, const char *id,
	const char *const *environment, struct error *e);

/*
 * client_connect - the session that @id means, and a connection to it.
 * @id: a whole id, the beginning of one, or NULL for $CARREL_SESSION. @environment: the caller's.
 * The session's record says where the session directory is, and which inode it has.
 * Returns 0; or -errno with @e: ERROR_SESSION (none, several, not named; nobody answers: its supervisor was
 * killed, and carrel gc removes what it left), ERROR_STATE (its record or its directory is not the
 * caller's).
 */
MUST_CHECK int client_connect(struct client_session *ret, const char *id,
	const char *const *environment, struct error *e);

/*
 * client_supervisor - a pidfd for the supervisor at the other end of @connection, so that the caller can wait for
 * its end with poll(2): its last answer comes a moment before it is gone. The caller's; -errno if the supervisor
 * cannot be seen (another pid namespace). See: unix(7) SO_PEERCRED, pidfd_open(2).
 */
int client_supervisor(int connection);

/* client_await_end - wait until that supervisor is gone, half a minute at most; @pidfd may be -errno. */
void client_await_end(int pidfd);

/* client_close - close the descriptors. `autosession` does it at the end of a scope. */
void client_close(struct client_session *s);
#define autosession __attribute__((cleanup(client_close), unused))

/*
 * client_output - what the session's policy allows an execution that asks for nothing: "BUDGET MAX MERGE" in
 * the record, each a number; 2^64 - 1 (also BUDGET_NONE) means none. 0 or -errno with @e.
 */
MUST_CHECK int client_output(
	const struct client_session *s, struct stdio_output *ret, struct error *e);

/*
 * client_path_env - PATH as the session gives it to commands; the caller frees it. NULL: the client cannot learn it
 * (any more), which is no error, since it is only for a hint.
 */
char *client_path_env(const struct client_session *s);

/*
 * client_ask - send one request without descriptors, and wait for its one answer.
 * @answer: filled in; its descriptors are the caller's. Returns 0; or -errno with @e: the session's own
 * refusal, or ERROR_SESSION if it ended instead of answering.
 */
MUST_CHECK int client_ask(const struct client_session *s, const struct control_record *request,
	const void *body, size_t size, struct control_message *answer, struct error *e);

/*
 * client_open_file - open @path as a command of the session would: with all walls of the session.
 * @flags: O_*; O_NONBLOCK is always added. @ret_path: NULL, or room for the path that the file really has
 * inside. Returns the descriptor or -errno with @e (ERROR_PATH, with errno).
 */
MUST_CHECK int client_open_file(const struct client_session *s, const char *path, int flags,
	unsigned mode, char *ret_path, size_t size, struct error *e);
