/*
 * explain.h - `explain`: what the walls refused while a session ran, who asked for it, and which line says so.
 *
 * Runs in: S. It starts two children before it confines itself:
 * the observer traces all that descends from init (ptrace(2), PTRACE_SEIZE) from before init has the plan, so that no
 * process of the session has run unseen, and notes on a board the calls that failed as refused ones do (observer.h);
 * the narrator waits for the end, and becomes `carrel-policy explain`, which finds out what each entry means.
 * May not: decide anything. No wall depends on the observer; if it dies, the kernel lets go what it traced, and the
 * session goes on: the list is then not complete, and says so. See docs/explain.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/explain/board.h"
#include "plan/plan.h"

struct explain {
	const struct plan *plan; /* NULL: nothing is explained */
	struct explain_board *board;
	int memory; /* the board, as a descriptor */
	pid_t self, observer, narrator;
	bool observes; /* init is traced */
	int socket;    /* to the observer */
	int word;      /* to the narrator: a byte, and it begins */
	int answer;    /* from it */
	uint32_t *
		told; /* of each entry, how many of its refusals an execution was told; NULL: none yet */
	const char *missing; /* why the list is not complete; NULL: it is */
	bool nothing;        /* the narrator knows all that there is, and that is nothing */
	/* What the narrator said; in the arena of explain_tell(). */
	const char *json, *text, *learned;
	size_t json_size, text_size, learned_size;
};

#define EXPLAIN_NONE ((struct explain){ .memory = -1, .socket = -1, .word = -1, .answer = -1 })

/*
 * explain_begin - the two children, where the policy of @plan says `explain` or `learn`; else nothing. @settings: words of the command line that are settings; @count of them. After it
 * explain_end() is due. 0, or -errno with @e (ERROR_LIMIT).
 */
MUST_CHECK int explain_begin(struct explain *x, const struct plan *plan,
	const char *const *settings, size_t count, struct error *e);

/* explain_observe - before init has the plan: from now on all that it starts is seen. 0, or -errno with @e (ERROR_UNAVAILABLE). */
MUST_CHECK int explain_observe(struct explain *x, pid_t init, struct error *e);

/*
 * explain_give_way - end the observer: everything goes on untraced, as before the call returns. Whoever has to stop the
 * session does this first, since a process has one tracer. @x may be NULL: nobody observes.
 */
void explain_give_way(struct explain *x);

/* explain_stop - the session is over, and init is still to be waited for, which its tracer would hold up. */
void explain_stop(struct explain *x);

/*
 * explain_tell - have the narrator say what was refused: some seconds at most. @arena: owns what it says. What cannot
 * be said is in `missing`.
 */
void explain_tell(struct explain *x, struct arena *arena);

/*
 * explain_mark - in a live session, when an execution has ended: what it was refused, it was in @view, not in the session's own.
 * @monitor: as the host sees it; whatever it executes has one view.
 */
void explain_mark(struct explain *x, pid_t monitor, unsigned view);

/*
 * explain_take - in a live session: what an execution was refused that has just ended, as a board of its own, the caller's.
 * @monitor: as the host sees it. The descriptor, or -errno: there is none.
 */
MUST_CHECK int explain_take(struct explain *x, pid_t monitor);

/*
 * explain_board - in a client of a live session: a narrator for @board (taken) of the session that @settings mean; then
 * explain_tell(), explain_print(), explain_end(). 0 or -errno.
 */
MUST_CHECK int explain_board(
	struct explain *x, int board, const char *const *settings, size_t count);

/* explain_print - what the narrator said for people, and what is missing, on stderr; nothing can be done where that fails. */
void explain_print(const struct explain *x);

/* explain_end - end both children and free everything. */
void explain_end(struct explain *x);
