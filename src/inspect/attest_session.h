/*
 * attest_session.h - a real session to look at: started through the launcher, found from outside.
 *
 * Runs in: carrel-inspect, outside; the launcher is its child.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct attest_session {
	pid_t launcher;
	int pidfd;  /* the launcher's */
	int in;     /* a probe's stdin: closing it ends the probe; -1 for another command */
	int out;    /* a probe's stdout; -1 */
	pid_t init; /* both as seen from outside */
	pid_t payload;
};

/*
 * attest_session_start - start `carrel run` and wait until the payload is the command.
 * @argv: the launcher's, NULL-terminated. @probe: the command is cat(1): it gets pipes, and has
 * started when it answers. Another command gets /dev/null, and has started when the kernel says so.
 * Returns 0, or -errno with @e: then nothing runs any more.
 */
MUST_CHECK int attest_session_start(struct attest_session *ret, const char *launcher,
	const char *const *argv, const char *const *environment, bool probe, struct error *e);

/*
 * attest_session_end - end the probe by closing its stdin, another command by SIGTERM, and wait.
 * Returns the wait status of the launcher, or -errno.
 */
int attest_session_end(struct attest_session *s);

/*
 * attest_session_ended - the error for a session that ended too early. @status: its wait status;
 * @command: the name for the message. Returns -errno.
 */
int attest_session_ended(const char *command, int status, struct error *e);

/*
 * attest_read - all of /proc/@pid/@name, at most @size - 1 bytes; NUL-terminated.
 * Returns its length or -errno.
 */
MUST_CHECK ssize_t attest_read(pid_t pid, const char *name, char *ret_text, size_t size);

/*
 * attest_field - the value after "Name:" in the text of a /proc/PID/status, without the line's
 * end, with tabs as spaces. False: there is none, or it does not fit.
 */
bool attest_field(const char *status, const char *name, char *ret_value, size_t size);
