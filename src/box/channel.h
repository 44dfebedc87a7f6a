/*
 * channel.h - the records between the supervisor and init, and between the supervisor and a monitor.
 *
 * Runs in: both ends of a SOCK_SEQPACKET pair. Every record has the same size, and its `body` says
 * how many bytes follow it in the same message; one that is shorter or longer, has another magic or
 * an unknown kind is a failure. Descriptors travel beside a record by SCM_RIGHTS (unix(7)).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define CHANNEL_MAGIC 0x63726c32u /* "crl2": changes with the layout */
#define CHANNEL_FDS_MAX 12
#define CHANNEL_STREAMS 3
#define CHANNEL_BODY_MAX 65536 /* bytes in one message; a longer body comes as a descriptor */

enum channel_kind {
	/* supervisor -> init */
	CHANNEL_GO = 1, /* maps are written, the plan stands */
	CHANNEL_SESSION, /* made while init is at the first operations: the session directory; and
			  * descriptors: a user namespace for each idmap of the plan, the session's own
			  * first, and a channel for each view in `number` */
	CHANNEL_EXEC, /* start the command, in front of its terminal with flag = 1; the streams
			     * in `streams` come as descriptors, the others are the terminal */
	CHANNEL_SIGNAL, /* number = signal, to the command's process group; flag = 1: to everything */
	CHANNEL_CONTINUE, /* SIGCONT to the command's group; flag = 1: in front of its terminal */
	CHANNEL_MONITOR, /* to init: one more monitor; descriptor: its end of a channel of its own */
	CHANNEL_DISMISS, /* to init: kill the monitor whose pid is `number` */
	CHANNEL_PTY,     /* to a monitor: make a terminal; READY brings its master */
	CHANNEL_OPEN, /* to a monitor: open the path in the body as the command would; number = O_* flags,
		       * streams = mode */
	/* init -> supervisor */
	CHANNEL_FAILED,  /* operation op failed with errnum; nothing was started */
	CHANNEL_SCRATCH, /* before READY: descriptor: the root of a scratch that is memory */
	CHANNEL_SOCKETS, /* before READY, with `net allow`: descriptors: listening sockets; `number`:
			  * CHANNEL_SOCKETS_*; with `publish`: sockets that are not connected, all of
			  * one family */
	CHANNEL_READY, /* the plan is applied; descriptors: with flag = 1 the mount namespace; the
			* terminal's master, if one was asked for */
	CHANNEL_STARTED, /* the command was executed; sent only where box.dies_as_one, or EXEC says so:
			  * the monitor may not live to say it with ENDED; and of a service */
	CHANNEL_STOPPED, /* the command was stopped by signal `number` */
	CHANNEL_OPENED, /* a monitor: the answer to OPEN: errnum, or a descriptor; body: its path */
	CHANNEL_ENDED, /* the command ended, or could not be started. With a terminal init
			     * stays until the channel is closed: its end would throw away what
			     * the terminal still holds */
};

enum channel_started { STARTED_NO = 0, STARTED_YES = 1, STARTED_UNKNOWN = 2 };

/* Operation numbers below zero: steps of init that are no operation of the plan. */
enum channel_step {
	STEP_SETUP = -2,        /* init's own beginning */
	STEP_PTY = -3,          /* the terminal */
	STEP_LOOP = -4,         /* init's event loop */
	STEP_CWD = -5,          /* the payload: working directory */
	STEP_STDIO = -6,        /* the payload: descriptors */
	STEP_EXEC = -7,         /* the payload: execve */
	STEP_NAMESPACES = -8,   /* init before the plan: the namespaces */
	STEP_LIMITS = -9,       /* the payload: tighter limits of one execution */
	STEP_MONITOR = -10,     /* a monitor's own beginning */
	STEP_INTERPRETER = -11, /* the payload: execve; its interpreter is missing */
};

struct channel_record {
	uint32_t magic;
	uint32_t kind; /* enum channel_kind */
	int32_t op;    /* FAILED, ENDED that did not start: operation or step */
	int32_t errnum;
	int32_t number;      /* signal; ENDED: EAGAIN = no process more could be started then;
			      * EXEC: 1 = the monitor is in a group that is killed with its command */
	int32_t wait_status; /* ENDED: as wait(2) gives it */
	uint32_t started;    /* ENDED: enum channel_started */
	uint32_t flag;    /* EXEC, SIGNAL, CONTINUE; ENDED: 1 = nothing but init is left; from a
			      * monitor: 1 = it waits for the next EXEC */
	uint32_t streams; /* EXEC: bit N = descriptor N was sent */
	uint32_t body;    /* bytes behind this record; EXEC: CHANNEL_BODY_FD = in the last
			      * descriptor, a sealed memfd */
	uint32_t no_route,
		no_listener; /* ENDED, a command that failed: network_count(), else 0 */
	uint64_t user_us;    /* ENDED: CPU time of the command and its waited-for children */
	uint64_t system_us;
	uint64_t max_rss_kib;
};

#define CHANNEL_BODY_FD UINT32_MAX

enum {
	/* SOCKETS: bits of `number` */
	CHANNEL_SOCKETS_DNS = 1,     /* the first two are the resolver's, UDP and TCP */
	CHANNEL_SOCKETS_POOL = 2,    /* for `publish` */
	CHANNEL_SOCKETS_SIX = 4,     /* the session's block of IPv6 stands */
	CHANNEL_SOCKETS_REFUSED = 8, /* they hear of connections that the kernel refuses */
	CHANNEL_POOL = 64,           /* sockets of one family that are made for `publish` */
};

/*
 * channel_send - one record, with @fd_count descriptors. 0 or -errno.
 * channel_receive - one record. @ret_fds: room for CHANNEL_FDS_MAX, filled with -1 where none came.
 * Returns 1, 0 at end of file, -EPROTO for anything that is not exactly one record (descriptors
 * that came with it are closed), or -errno.
 * channel_send_body, channel_receive_body - the same with bytes behind the record; @room: of
 * @ret_body. A longer body is -EPROTO.
 * channel_receive_from - the same, and who sent it: *@ret_sender is the pid as the receiver sees it, where
 * the socket has SO_PASSCRED (unix(7)), else it is left alone.
 */
__attribute__((warn_unused_result)) int channel_send(
	int fd, const struct channel_record *record, const int *fds, unsigned fd_count);
__attribute__((warn_unused_result)) int channel_receive(
	int fd, struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX]);
__attribute__((warn_unused_result)) int channel_send_body(int fd,
	const struct channel_record *record, const int *fds, unsigned fd_count,
	const void *body, size_t body_size);
__attribute__((warn_unused_result)) int channel_receive_body(int fd,
	struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX], void *ret_body,
	size_t room);
__attribute__((warn_unused_result)) int channel_receive_from(int fd,
	struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX], void *ret_body,
	size_t room, pid_t *ret_sender);

/*
 * channel_await - wait without sleeping until a record is there or @fd's other end is closed: ask @tries times at most,
 * which takes less than a microsecond each. To wake a reader that sleeps on another processor of a virtual machine takes
 * 40 to 100 of them. Call it only where nobody else wants the processor (box.apart); a read that follows may sleep.
 */
void channel_await(int fd, unsigned tries);

/*
 * channel_send_parts - one message of any protocol: @parts (a head and what follows it, which may be empty),
 * and @fd_count descriptors, CHANNEL_FDS_MAX at most. @flags: of sendmsg(2); MSG_NOSIGNAL is added.
 * Returns 0, -EPROTO where less than all was taken, or -errno.
 */
__attribute__((warn_unused_result)) int channel_send_parts(
	int fd, struct iovec parts[2], const int *fds, unsigned fd_count, int flags);
