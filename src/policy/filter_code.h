/*
 * filter_code.h - a BPF program while it is written: from its end to its start, so that every jump
 * goes to an instruction that exists already. A label is the place of an instruction in `code`.
 *
 * Runs in: mkpolicy, carrel-policy, tests. For the filter_*.c files only.
 */
#pragma once

#include "policy/filter.h"

struct code {
	struct sock_filter *code; /* FILTER_SIZE_MAX; filled from the end */
	size_t start;             /* first instruction written */
	bool overflow;            /* there was no room for all of it */
};

/* code_return - a return of @action, an existing one or a new one. Returns its label. */
size_t code_return(struct code *c, uint32_t action);

/* code_load - load the word at @offset of struct seccomp_data, then go to @next. */
size_t code_load(struct code *c, uint32_t offset, size_t next);

/* code_jump - compare the loaded word with @k by @op (BPF_JEQ, ...). */
size_t code_jump(struct code *c, uint16_t op, uint32_t k, size_t yes, size_t no);

/* code_test - one test of a line, whatever was loaded before. */
size_t code_test(struct code *c, const struct filter_test *t, size_t yes, size_t no);

/*
 * code_tidy - the program without what cannot be reached.
 * @ret_code: room for FILTER_SIZE_MAX. 0, -E2BIG where it overflowed, -ENOMEM.
 */
MUST_CHECK int code_tidy(struct code *c, struct arena *arena, struct sock_filter *ret_code,
	unsigned short *ret_count);
