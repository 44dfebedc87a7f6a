/*
 * capture.h - an output stream of a tool, kept within a budget of characters.
 *
 * Runs in: carrel-agent, outside. Head, marker, tail and the file of the full output are those of
 * host/stdio/budget.h; here they go to memory instead of to a descriptor. May not: hold more than the budget.
 */
#pragma once

#include "agent/buffer.h"
#include "agent/loop.h"
#include "host/stdio/budget.h"

enum { CAPTURE_EARLY = 16, CAPTURE_BLOCK = 65536 + CAPTURE_EARLY };

struct capture {
	struct loop *loop;
	struct watch watch;            /* our end of the pipe */
	void (*passed)(void *context); /* or NULL: something came */
	void *context;
	char *block; /* read into; the caller's */
	uint64_t limit, max_bytes;
	bool begun;                /* something came, and `budget` is made */
	struct budget budget;      /* its figures are 0 if nothing came */
	struct buffer kept;        /* what the budget passed */
	char early[CAPTURE_EARLY]; /* what the budget has not taken yet */
	size_t early_size;
	bool over;            /* the stream has ended, or was cut */
	int dir;              /* of the full output */
	const char *dir_path; /* both borrowed */
	char name[BUDGET_NAME_MAX];
};

/*
 * capture_open - a pipe, and a budget of @limit characters and @max_bytes for what comes out of it.
 * @block: CAPTURE_BLOCK bytes, borrowed; it is used only while an event is handled, so that all captures can share it.
 * @own_user: the command runs as our own user.
 * @ret_write: the end for the command, the caller's. Returns 0, or -errno: then nothing is left open.
 */
MUST_CHECK int capture_open(struct capture *c, struct loop *loop, char *block, uint64_t limit,
	uint64_t max_bytes, bool own_user, int *ret_write);

/*
 * capture_start - begin to read. @dir, @dir_path, @name: as budget_save_in(). 0 or -errno.
 */
MUST_CHECK int capture_start(
	struct capture *c, int dir, const char *dir_path, const char *name);

/* capture_is_over - more than max_bytes came: the caller has to end the command. */
static inline bool capture_is_over(const struct capture *c)
{
	return c->begun && budget_is_over(&c->budget);
}

/* capture_cut - the pipe has no writer any more: read the rest and end. */
void capture_cut(struct capture *c);

/* capture_close - free everything but `kept` and the figures of the budget. */
void capture_close(struct capture *c);

/* capture_free - free `kept`, too. */
void capture_free(struct capture *c);
