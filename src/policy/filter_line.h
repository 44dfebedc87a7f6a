/*
 * filter_line.h - one line of a filter while it is read, and the conditions at its end.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. For the filter_*.c files only: what others use is
 * in filter.h.
 */
#pragma once

#include "policy/filter.h"

#define LINE_MAX_BYTES 1024
#define TOKEN_MAX 256 /* in one line */
#define TEST_MAX 6    /* in one line */
#define VALUE_MAX 64  /* in one list */

/* One line, cut into tokens, and how far it has been read. */
struct line {
	struct filter *f;
	const char *file;
	unsigned number;
	char *tokens[TOKEN_MAX]; /* in text */
	size_t count, at;
	char text[2 * LINE_MAX_BYTES]; /* every token with a NUL of its own */
	struct error *e;
};

/* A test as it was written: its mask depends on the call it is applied to. */
struct written_test {
	unsigned arg;
	unsigned bits; /* 0: the call's own width, else 32 or 64 */
	bool masked;
	uint64_t mask;
	enum filter_op op;
	uint64_t values[VALUE_MAX];
	size_t value_count;
};

struct written_tests {
	struct written_test tests[TEST_MAX];
	size_t count;
};

/* --- filter_line.c --- */

/* line_wrong - the error @what at this line, with @word quoted unless it is NULL. -EINVAL. */
int line_wrong(const struct line *l, const char *what, const char *word);

/* line_unknown - the same for a word that is not known; @nearest (or NULL) becomes the hint. */
int line_unknown(const struct line *l, const char *what, const char *word, const char *nearest);

/* line_full - the error for a full arena. -ENOMEM. */
int line_full(const struct line *l);

/* line_cut - cut @size bytes of text into tokens. 0, or -EINVAL with the error set. */
MUST_CHECK int line_cut(struct line *l, const char *text, size_t size);

/* line_peek - the next token, NULL at the end. */
const char *line_peek(const struct line *l);

/* line_accept - take the next token if it is @token. */
bool line_accept(struct line *l, const char *token);

/* line_expect - take @token. 0, or -EINVAL with the error set. */
MUST_CHECK int line_expect(struct line *l, const char *token);

/* line_starts_word - @token is a word, not punctuation or NULL. */
bool line_starts_word(const char *token);

/* --- filter_cond.c --- */

/* cond_parse - `if TEST and TEST...` up to the end of the line, or nothing. 0 or -EINVAL. */
MUST_CHECK int cond_parse(struct line *l, struct written_tests *ret);

/*
 * cond_apply - one written test as it is for the call @name: with the bits that the kernel looks at.
 * 0, -EINVAL with the error set (width unknown, a value that can never match), -ENOMEM.
 */
MUST_CHECK int cond_apply(const struct line *l, const struct written_test *t, const char *name,
	struct filter_test *ret);
