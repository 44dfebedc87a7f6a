/*
 * channel.h - the records between the supervisor and init.
 *
 * Runs in: both ends of one SOCK_SEQPACKET pair. Every record has the same size; one that is
 * shorter or longer, has another magic or an unknown kind is a failure of the session. Descriptors
 * travel beside a record by SCM_RIGHTS (unix(7)).
 */
#pragma once

#include <stdint.h>

#define CHANNEL_MAGIC 0x63726c31u /* "crl1": changes with the layout */
#define CHANNEL_FDS_MAX 8
#define CHANNEL_STREAMS 3

enum channel_kind {
	/* supervisor -> init */
	CHANNEL_GO = 1, /* maps are written, the plan stands; descriptors: one user
			     * namespace for each idmap of the plan, the session's own first */
	CHANNEL_SESSION, /* the session directory stands: it is made while init is at the first operations */
	CHANNEL_EXEC, /* start the command, in front of its terminal with flag = 1; the streams
			     * in `streams` come as descriptors, the others are the terminal */
	CHANNEL_SIGNAL, /* number = signal, to the command's process group; flag = 1: to everything */
	CHANNEL_CONTINUE, /* SIGCONT to the command's group; flag = 1: in front of its terminal */
	/* init -> supervisor */
	CHANNEL_FAILED, /* operation op failed with errnum; nothing was started */
	CHANNEL_READY, /* the plan is applied; descriptor: the terminal's master, if one was asked for */
	CHANNEL_STOPPED, /* the command was stopped by signal `number` */
	CHANNEL_ENDED,   /* the command ended, or could not be started. With a terminal init
			     * stays until the channel is closed: its end would throw away what
			     * the terminal still holds */
};

enum channel_started { STARTED_NO = 0, STARTED_YES = 1, STARTED_UNKNOWN = 2 };

/* Operation numbers below zero: steps of init that are no operation of the plan. */
enum channel_step {
	STEP_SETUP = -2,      /* init's own beginning */
	STEP_PTY = -3,        /* the terminal */
	STEP_LOOP = -4,       /* init's event loop */
	STEP_CWD = -5,        /* the payload: working directory */
	STEP_STDIO = -6,      /* the payload: descriptors */
	STEP_EXEC = -7,       /* the payload: execve */
	STEP_NAMESPACES = -8, /* init before the plan: the namespaces */
};

struct channel_record {
	uint32_t magic;
	uint32_t kind; /* enum channel_kind */
	int32_t op;    /* FAILED, ENDED that did not start: operation or step */
	int32_t errnum;
	int32_t number;      /* signal */
	int32_t wait_status; /* ENDED: as wait(2) gives it */
	uint32_t started;    /* ENDED: enum channel_started */
	uint32_t flag;       /* EXEC, SIGNAL, CONTINUE; ENDED: 1 = nothing but init is left */
	uint32_t streams;    /* EXEC: bit N = descriptor N was sent */
	uint32_t reserved;
	uint64_t user_us; /* ENDED: CPU time of the command and its waited-for children */
	uint64_t system_us;
	uint64_t max_rss_kib;
};

/*
 * channel_send - one record, with @fd_count descriptors. 0 or -errno.
 * channel_receive - one record. @ret_fds: room for CHANNEL_FDS_MAX, filled with -1 where none came.
 * Returns 1, 0 at end of file, -EPROTO for anything that is not exactly one record (descriptors
 * that came with it are closed), or -errno.
 */
__attribute__((warn_unused_result)) int channel_send(
	int fd, const struct channel_record *record, const int *fds, unsigned fd_count);
__attribute__((warn_unused_result)) int channel_receive(
	int fd, struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX]);
