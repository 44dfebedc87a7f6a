/*
 * board.h - what the observer of a session has noted: the system calls that were refused.
 *
 * Runs in: the observer, which writes it, S, and carrel-policy, which says what each entry means. Tools choose what is on
 * it: paths, names and arguments are bytes, and a reader checks numbers and lengths.
 */
#pragma once

#include <stdint.h>

#include "box/view.h"

#define EXPLAIN_MAGIC 0x63727232u /* "crr2": changes with the layout */

enum {
	EXPLAIN_ENTRIES_MAX = 1024,
	EXPLAIN_TEXT_MAX =
		1000, /* bytes of a path or an address; the observer does not list a longer one */
	EXPLAIN_ARGUMENTS = 6,
};

enum explain_kind {
	EXPLAIN_CALL, /* by its number and arguments */
	EXPLAIN_PATH, /* `text` is the path, absolute; not followed, and not cleaned */
	EXPLAIN_HOST, /* `text` is "ADDRESS:PORT" */
};

/* What was tried with a path. */
enum explain_try { EXPLAIN_READ, EXPLAIN_WRITE, EXPLAIN_REMOVE, EXPLAIN_CONNECT };

struct explain_entry {
	uint32_t times;
	int32_t number; /* of the system call */
	int32_t errnum; /* that it got */
	int32_t pid; /* the first process that got it, as the session sees it; 0: not known */
	int32_t monitor; /* carrel's process that started the execution it belongs to, as the host sees it; 0: not known */
	uint64_t args[EXPLAIN_ARGUMENTS];
	uint8_t kind, attempt; /* enum explain_kind, enum explain_try */
	uint8_t view;          /* of the execution it belongs to: VIEW_..., 0: the session's */
	char name[16];         /* that process, as it called itself; ended by a NUL */
	uint16_t length;       /* of text */
	char text[EXPLAIN_TEXT_MAX];
};

struct explain_board {
	uint32_t magic;
	uint32_t count;
	uint64_t unlisted;  /* refusals for which there was no room, or no name */
	uint32_t unwatched; /* there was no room for so many threads: they ran unseen */
	uint32_t
		finished; /* the observer saw the end of init; on an execution's board: it ended before that */
	struct explain_entry entries[EXPLAIN_ENTRIES_MAX];
};
