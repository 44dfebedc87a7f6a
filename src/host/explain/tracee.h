/*
 * tracee.h - the threads that the observer traces, by their number.
 *
 * Runs in: the observer. Bounded: if a session has more threads than there is room for, the others run untraced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/explain/board.h"

enum { TRACEES_MAX = 8192, TRACEES_HEADS = 4096 };

struct tracee {
	pid_t thread; /* 0: free */
	bool known;   /* the observer knows whose child it is; until then it stands still */
	bool own; /* carrel's own: it has executed nothing, and its calls are not looked at */
	bool inside;   /* it is in the call `number` */
	pid_t monitor; /* the one that started its execution */
	int32_t number;
	uint64_t args[EXPLAIN_ARGUMENTS];
	uint16_t next; /* 1 + index: in the same chain, or free */
};

struct tracees {
	uint16_t heads[TRACEES_HEADS];
	uint16_t free; /* 1 + index */
	uint16_t used; /* the entries from this one on were never taken */
	struct tracee all[TRACEES_MAX];
};

/* tracee_find - or NULL. tracee_add - it must not be there; NULL: no room. tracee_remove - also of one that is not there. */
struct tracee *tracee_find(struct tracees *t, pid_t thread);
struct tracee *tracee_add(struct tracees *t, pid_t thread);
void tracee_remove(struct tracees *t, pid_t thread);
