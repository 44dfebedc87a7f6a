/*
 * box.h - the inside: what the host side starts, and nothing else of the box.
 *
 * Runs in: init, pid 1 of the session. No heap, no stdio, no environment: system calls and
 * mem/str functions only (checked by the lint).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "plan/plan.h"

/* Init's descriptors from its beginning to its end. */
enum {
	BOX_CHANNEL = 3,
	BOX_CHILDREN = 4, /* signalfd for SIGCHLD */
	BOX_SKELETON =
		5, /* the tmpfs of empty directories, files and mount points; until the command runs */
};

/*
 * How often init asks before it sleeps: for the plan, for the session, and for the command's streams. The launcher asks
 * as well, for what init says when it has applied the plan.
 */
enum {
	BOX_TRIES_PLAN = 300,
	BOX_TRIES_SESSION = 200,
	BOX_TRIES_EXEC = 150,
	BOX_TRIES_READY = 1000
};

/* File systems made while the plan was still being worked out; -1: none, or handed out. */
struct box_made {
	int proc, devpts, tmpfs;
};

#define BOX_CODE_MAX 4

/* The program's own segments that cannot be written: host/process/tuning.h. */
struct box_code {
	void *start[BOX_CODE_MAX];
	size_t size[BOX_CODE_MAX];
	unsigned count;
	size_t page; /* of memory, in bytes */
};

struct box {
	const struct plan *plan; /* sealed */
	int idmap_ns
		[PLAN_IDMAP_MAX]; /* privileged: for each idmap of the plan; the first is the session's */
	struct box_made made;
	bool apart; /* init was given a processor that nobody else wanted: it may wait without sleeping */
	bool want_pty;
	bool dies_as_one;     /* the monitor is in a group that is killed with its command */
	bool tasks_by_rlimit; /* no cgroup counts the session's tasks: RLIMIT_NPROC does */
	struct box_code code; /* a live session: given back while it is idle */
	void *arena;          /* the same: the plan and all that led to it */
	size_t arena_size;
	bool live; /* a live session: init forks monitors; else it keeps the one execution itself */
	pid_t *view_inits; /* by view: init's own, filled in as they are forked */
	mode_t umask;      /* the caller's, for the payload */
	char *caller_args; /* the caller's argv and environment block, wiped in init */
	size_t caller_args_size;
};

/*
 * box_init - pid 1, from the plan to the end of the session. Applies it, sends READY, starts
 * the command on EXEC, and reports how it ended. Never returns; any failure is reported as FAILED
 * with the operation number where the channel still works, and ends the session.
 */
_Noreturn void box_init(const struct box *box);

/* box_fail - report a failure to the supervisor, if it still reads, and end. The session ends with
 * init. */
_Noreturn void box_fail(int op, int error);
