/*
 * explain.h - `explain`: what the walls refused while a session ran, who asked for it, and which line says so.
 *
 * Runs in: S, which starts two children before it confines itself:
 * the observer traces all that descends from init (ptrace(2), PTRACE_SEIZE) from before init has the plan, so that no
 * process of the session has run unseen, and notes on a board the calls that failed as refused ones do (observer.h);
 * the narrator waits for the end, and becomes `carrel-policy explain`, which finds out what each entry means.
 * May not: decide anything. No wall depends on the observer; if it dies, the kernel releases what it traced, and the
 * session goes on; the list is then not complete, and says so. See docs/explain.md.
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
	int word;      /* to the narrator: a byte makes it begin */
	int answer;    /* from it */
	uint32_t *
		told; /* for each entry, how many of its refusals executions were told so far; NULL: none yet */
	const char *missing; /* why the list is not complete; NULL: it is */
	bool nothing; /* the narrator has looked at everything, and nothing was refused */
	/* What the narrator said; in the arena of explain_tell(). */
	const char *json, *text, *learned;
	size_t json_size, text_size, learned_size;
};

#define EXPLAIN_NONE ((struct explain){ .memory = -1, .socket = -1, .word = -1, .answer = -1 })

/*
 * explain_begin - start the two children if the policy of @plan says `explain` or `learn`; otherwise do nothing. @settings: the words of the command
 * line that are settings; @count of them. Call explain_end() after it. 0, or -errno with @e (ERROR_LIMIT).
 */
MUST_CHECK int explain_begin(struct explain *x, const struct plan *plan,
	const char *const *settings, size_t count, struct error *e);

/* explain_observe - trace init, before it has the plan: from now on the observer sees all that init starts. 0, or -errno with @e (ERROR_UNAVAILABLE). */
MUST_CHECK int explain_observe(struct explain *x, pid_t init, struct error *e);

/*
 * explain_give_way - end the observer: when the call returns, everything goes on untraced. A caller that has to stop the
 * session does this first, since a process has one tracer. @x may be NULL: nobody observes.
 */
void explain_give_way(struct explain *x);

/* explain_stop - the session is over: end the observer before init is waited for, since a tracer would hold that up. */
void explain_stop(struct explain *x);

/*
 * explain_tell - have the narrator say what was refused; that takes some seconds at most. @arena: owns what it says. If it
 * cannot say everything, `missing` says why.
 */
void explain_tell(struct explain *x, struct arena *arena);

/*
 * explain_mark - in a live session, when an execution has ended: note that it ran in @view, and not in the session's own.
 * @monitor: as the host sees it; everything that it executes has the same view.
 */
void explain_mark(struct explain *x, pid_t monitor, unsigned view);

/*
 * explain_take - in a live session: a board of its own with what the execution that has just ended was refused.
 * @monitor: as the host sees it. The descriptor, the caller's, or -errno: there is none.
 */
MUST_CHECK int explain_take(struct explain *x, pid_t monitor);

/*
 * explain_board - in a client of a live session: start a narrator for @board (taken), of the session that @settings name; then
 * call explain_tell(), explain_print(), explain_end(). 0 or -errno.
 */
MUST_CHECK int explain_board(
	struct explain *x, int board, const char *const *settings, size_t count);

/* explain_print - print on stderr what the narrator said for people, and why something is missing; a failure is ignored. */
void explain_print(const struct explain *x);

/* explain_end - end both children and free everything. */
void explain_end(struct explain *x);
