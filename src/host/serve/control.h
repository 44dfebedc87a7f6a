/*
 * control.h - the records between a client and the supervisor of a live session.
 *
 * Runs in: both ends of a SOCK_SEQPACKET socket in the state directory. docs/control-protocol.md says
 * the same in words, for clients in other languages; the two change together, and CONTROL_VERSION with
 * them. All numbers are in the machine's byte order: both ends are on one machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CONTROL_MAGIC 0x6c727263u /* "crrl" */
#define CONTROL_VERSION 1
#define CONTROL_BODY_MAX 65536 /* bytes behind one record */
#define CONTROL_BODY_FD \
	UINT32_MAX /* EXEC, TEXT: the body is in the last descriptor, a sealed memfd */
#define CONTROL_FDS_MAX 12
#define CONTROL_TEXT_MAX (1 << 20) /* bytes of a text beside its record */

enum control_kind {
	/* client -> supervisor */
	CONTROL_EXEC =
		1, /* body: a request (box/request.h); streams: which of 0, 1, 2 were sent */
	CONTROL_START,    /* the terminal is ready: let the command begin; flag 1: in front */
	CONTROL_SIGNAL,   /* number: signal to the command's group; flag 1: to its whole tree */
	CONTROL_CONTINUE, /* SIGCONT; flag 1: in front of its terminal */
	CONTROL_CLOSE,    /* the terminal was read to its end */
	CONTROL_SHOW, /* answered by TEXT: the session as JSON; flag 1: for people, 2: in one line,
		       * 3: its policy, each line with its place; 4: its network, 5: the same for people */
	CONTROL_STOP, /* body: the name or number of a service; answered by DONE when it is over; flag 1:
		       * only wait for it, do not ask it to end */
	CONTROL_OPEN,     /* body: a path, with its NUL; number: O_* flags; streams: mode */
	CONTROL_CLASSIFY, /* body: a path, with its NUL; answered by TEXT: one JSON object;
			   * flag 1: one line for people, 2: a line for each field */
	CONTROL_END,      /* end the session; answered by DONE when nothing of it is left */
	CONTROL_LOG,   /* body: the name or number of a service; answered by DONE: its number */
	CONTROL_MOVED, /* what was taken away from protected paths so far, after one more look;
			* answered by TEXT: JSON */
	CONTROL_ALLOW, /* body: rules of `allow`, each with its NUL; answered by DONE; flag 1: they are taken back */
	/* supervisor -> client */
	CONTROL_ACCEPTED = 64, /* execution: its number from here on */
	CONTROL_TERMINAL,      /* descriptor: the master of the execution's terminal */
	CONTROL_STOPPED,       /* number: the signal that stopped the command */
	CONTROL_ENDED,  /* the command ended, or could not be started: the fields below */
	CONTROL_TEXT,   /* body: what was asked for: JSON, or for people */
	CONTROL_OPENED, /* descriptor; body: its path as the session sees it */
	CONTROL_DONE,   /* body: what there is to say, for people; may be empty */
	CONTROL_ERROR, /* number: errno or 0; flag 1: the message names the cause already; body: code,
			 * message, on what, hint; each with its NUL */
};

enum {
	CONTROL_SHOW_POLICY = 3,
	CONTROL_SHOW_NETWORK,
	CONTROL_SHOW_NETWORK_TEXT,
	CONTROL_SHOW_ALLOWED
};                                /* flags of SHOW */
enum { CONTROL_FORM_FIELDS = 2 }; /* a flag of CLASSIFY */

/* Which limit ended a command. The numbers are those of the report's words. */
enum control_limit {
	CONTROL_LIMIT_NONE,
	CONTROL_LIMIT_TIMEOUT,
	CONTROL_LIMIT_CPU_TIME,
	CONTROL_LIMIT_FILE_SIZE,
	CONTROL_LIMIT_MEMORY,
	CONTROL_LIMIT_PIDS,
};

struct control_record {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;      /* enum control_kind */
	uint64_t tag;       /* the client's own: an answer carries that of its request */
	uint32_t execution; /* its number; 0: none */
	int32_t number;     /* ENDED, where it was started: enum control_network */
	uint32_t flag;
	uint32_t streams;
	int32_t wait_status; /* ENDED: as wait(2) gives it; where not started: errno in `number` */
	uint32_t started;    /* ENDED: 0 no, 1 yes, 2 unknown */
	uint32_t limit;      /* ENDED: enum control_limit */
	uint32_t body;       /* bytes behind the record */
	uint64_t wall_us, user_us, system_us, max_rss_bytes; /* ENDED */
};

/* What the network refused a command that failed, as far as the session knows. */
enum control_network {
	CONTROL_NETWORK_UNKNOWN,
	CONTROL_NETWORK_NONE, /* the session, or the command, has no network, and something inside looked for one */
	CONTROL_NETWORK_NAMES, /* names were refused while it ran: they are in the body */
	CONTROL_NETWORK_ADDRESS, /* something inside tried an address that no line of `allow` opens */
	CONTROL_NETWORK_TEXT, /* it is in the body, a line and perhaps a hint: notes_trouble() */
};

/* A record as it arrived. */
struct control_message {
	struct control_record head;
	int fds[CONTROL_FDS_MAX]; /* -1 where none came; the receiver's */
	unsigned fd_count;
	size_t size;                     /* of body */
	char body[CONTROL_BODY_MAX + 1]; /* a NUL is behind it */
};

/*
 * control_send - one record with its body and descriptors. Never waits.
 * Returns 0, -EAGAIN (the other side does not read), -EPIPE, -ECONNRESET, or another -errno.
 */
MUST_CHECK int control_send(int fd, const struct control_record *record, const void *body,
	size_t size, const int *fds, unsigned fd_count);

/*
 * control_receive - one record.
 * @ret: filled in; its descriptors belong to the caller.
 * Returns 1; 0 at the end; -EAGAIN; -EPROTO: no record, or too long a one; -EPROTONOSUPPORT: a record of
 * another version (head is filled in); -E2BIG: too many descriptors. No descriptor is left open then.
 */
MUST_CHECK int control_receive(int fd, struct control_message *ret);

/*
 * control_seal - put a body that is too long for a record into a file that cannot change any more.
 * Returns the descriptor, the caller's, or -errno. See: memfd_create(2), fcntl(2) F_ADD_SEALS.
 */
MUST_CHECK int control_seal(const void *data, size_t size);

/*
 * control_read_text - read what a TEXT says, in its record or beside it.
 * @ret: the text, a NUL behind it; the caller's to free. Returns its length, -EPROTO where @m is no
 * TEXT or what came with it is no file of a size within bounds, -ENOMEM, or another -errno.
 */
MUST_CHECK ssize_t control_read_text(const struct control_message *m, char **ret);

/* control_close_fds - close what came with a message and was not taken. */
void control_close_fds(struct control_message *m);

/* control_send_error - @e as an ERROR record, the answer to @request. As control_send(). */
MUST_CHECK int control_send_error(
	int fd, const struct control_record *request, const struct error *e);

/* control_read_error - an ERROR record as a struct error; the stage is "session". */
void control_read_error(const struct control_message *m, struct error *ret);
