/*
 * passed.h - descriptors of the caller that a command gets beside its three streams (`pass-fd`).
 *
 * Runs in: S, and the client of an exec. May not: change the caller's descriptions; relay: what is passed is passed as it is.
 *
 * The caller names each descriptor, and gives the command what can be done with it and nothing
 * else. These are passed:
 *
 *   pipes, with and without a name (a jobserver); connected AF_UNIX stream and seqpacket sockets;
 *   null zero full random urandom; a memfd that is sealed, so that nobody can write it
 *
 * Everything that leads further than to itself is refused: a directory (openat(2) from it), an
 * O_PATH descriptor, a regular file (/proc/self/fd/N opens it again for writing, by the mount that
 * it came from, and fchmod(2) changes it), a block or other device, a terminal (what types into
 * it), a socket that listens, is not connected, is of the network or of another family (connect(2)
 * goes anywhere from the network namespace that it was made in), pidfds, namespaces, mounts,
 * seccomp notifications, epoll, and everything else without a type of file.
 *
 * A command that has a pipe with a name can change its mode and times, as with `write`: it is the
 * caller's own file.
 */
#pragma once

#include <sys/types.h>

#include "plan/pass.h"
#include "plan/policy.h"

/* A kind of descriptor that is passed; passed_kind_name() has the words of the report. */
enum passed_kind { PASSED_PIPE, PASSED_FIFO, PASSED_SOCKET, PASSED_DEVICE, PASSED_MEMFD };

struct passed_fd {
	struct pass_pair pair; /* `from` is borrowed */
	enum passed_kind kind;
};

struct passed {
	struct passed_fd fd[PASS_MAX];
	unsigned count;
};

/* passed_kind_name - the word of the report for it. Never NULL. */
const char *passed_kind_name(enum passed_kind kind);

/*
 * passed_classify - find out what @fd is. Returns NULL with @ret_kind, or the reason why no command
 * gets it: a clause for people, with what to do instead in @ret_hint where there is something.
 */
const char *passed_classify(int fd, enum passed_kind *ret_kind, const char **ret_hint);

/*
 * passed_prepare - look at the caller's descriptors. Call it before carrel writes a report to one
 * of them.
 * @pairs: @count, PASS_MAX at most, ascending by `to`. @most: how many files the command can have open; UINT64_MAX: not known here.
 * @reserved: "fd:N" of what carrel itself writes (`report`, `net-log`), or NULL; two of them.
 * Returns 0, or -errno with @e (ERROR_DESCRIPTOR).
 */
MUST_CHECK int passed_prepare(struct passed *ret, const struct pass_pair *pairs, size_t count,
	uint64_t most, const char *const reserved[2], struct error *e);

/* passed_of_policy - the same for the `pass-fd` lines of @policy. */
MUST_CHECK int passed_of_policy(
	struct passed *ret, const struct policy *policy, struct error *e);

/*
 * passed_of_words - the same for @count words N[:M] of a command line; of two for one number inside the later counts. How many
 * files the command can have open is not known here. @reserved: as one of those above.
 */
MUST_CHECK int passed_of_words(struct passed *ret, const char *const *words, unsigned count,
	const char *reserved, struct error *e);

/*
 * passed_check - judge @count descriptors that a client sent, for the numbers @to. @policy: the session's.
 * 0, or -errno with @e (ERROR_DESCRIPTOR).
 */
MUST_CHECK int passed_check(const int *fds, const struct pass_numbers *to,
	const struct policy *policy, struct error *e);

/*
 * passed_set_owner - as stdio_set_owner(): give a pipe to the payload's uid, so that it can open
 * /dev/fd/N inside.
 */
void passed_set_owner(int fd, uid_t uid, gid_t gid);

/* passed_fill - put the caller's descriptors, in order, into @fds. Returns how many there are. */
unsigned passed_fill(const struct passed *p, int *fds);

/*
 * passed_close - close them once the command has them: whoever waits for the end of a pipe must not
 * wait for carrel as well.
 */
void passed_close(const struct passed *p);
