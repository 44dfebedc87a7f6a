/*
 * budget.h - the output budget of one stream: its head as it comes, the rest held back, and at the
 * end a line that says how much is missing and where all of it is, and the tail.
 *
 * Runs in: S, or the client of an exec: whoever owns the pipe. May not: wait (except for the disk that
 * the full output is written to), hold more than four bytes for each character of the budget.
 *
 * A budget of N characters (base/chars.h says what one is) has a head of N - N/2 and a tail of N/2.
 * Up to N characters nothing is changed: the head goes out as it comes, what is beyond it when the
 * stream ends. With more than N the head is followed, on a line of its own, by
 *
 *     ... [83,450 chars omitted — full output saved to PATH]
 *
 * and the tail. The file is made at the moment the budget is exceeded; what came before that is still
 * held. `max_bytes` bounds the stream: what is beyond it is counted, and is not in the file.
 *
 * Without a budget (BUDGET_NONE) there is the bound alone: the stream passes up to it, unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/stdio/pump.h"

#define BUDGET_NONE UINT64_MAX
#define BUDGET_NAME_MAX 64

struct budget {
	uint64_t limit;     /* characters, or BUDGET_NONE */
	uint64_t max_bytes; /* UINT64_MAX: no bound */
	int dir;            /* borrowed: the directory of the full output; -1: there is none */
	const char *dir_path; /* borrowed: what it is called in the marker */
	char name[BUDGET_NAME_MAX];
	bool goes; /* that directory is removed when the stream ends, and the marker says so */

	uint64_t bytes, chars; /* what came */
	uint64_t dropped;      /* characters beyond the bound, without a budget */
	uint64_t stored;       /* bytes that went through `store` */
	uint64_t head_bytes;   /* of these, bytes that were passed */
	size_t early;       /* bytes of an open sequence that were passed and not yet counted */
	unsigned char last; /* last byte passed, with something passed at all */
	char *store;        /* ring of the last store_size bytes; behind it the marker */
	size_t store_size;
	bool exceeded;
	bool ending;          /* the marker is made */
	size_t marker_length; /* bytes of it; 0: none */
	uint64_t next;        /* where in `store` what goes out next begins */

	int file;          /* owned; -1: not made, or given up */
	int file_error;    /* errno that ended the file, 0: none */
	bool file_made;    /* there is one under that name */
	uint64_t in_file;  /* bytes */
	uint64_t to_write; /* output-max less in_file */
};

/*
 * budget_init - a stream with at most @limit characters (BUDGET_NONE: any number), of which at most
 * @max_bytes are kept (UINT64_MAX: all). Returns 0 or -ENOMEM; then @b needs no budget_free().
 */
MUST_CHECK int budget_init(struct budget *b, uint64_t limit, uint64_t max_bytes);

/*
 * budget_save_in - say where the full output goes, before the first byte. Without it there is no file.
 * @dir: a descriptor of the directory, O_PATH is enough; borrowed, as is @dir_path, its path for
 * the marker. @name: of the file, e.g. "1.stdout.txt"; copied. No file of that name may exist.
 * @goes: the directory is removed when the stream ends, and the marker says so.
 */
void budget_save_in(
	struct budget *b, int dir, const char *dir_path, const char *name, bool goes);

/* budget_filter - @b as a filter of the pump that relays the stream. @b outlives the pump. */
struct pump_filter budget_filter(struct budget *b);

/* budget_is_over - more than `max_bytes` came: the command is to be ended. */
static inline bool budget_is_over(const struct budget *b)
{
	return b->bytes > b->max_bytes;
}

/* budget_omitted - how many characters are in neither the head nor the tail. */
uint64_t budget_omitted(const struct budget *b);

/* budget_path - dir_path/name into @ret_path (cut to @size), "" where no file was made. */
void budget_path(const struct budget *b, char *ret_path, size_t size);

/* budget_free - close the file and give the memory back; the figures stay. Twice is allowed. */
void budget_free(struct budget *b);
