/*
 * finding.h - statements about the machine or a session: collected, judged, printed.
 *
 * Runs in: carrel-inspect. May not: exit, print before everything is collected.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum verdict {
	VERDICT_OK,
	VERDICT_NOTE, /* worth knowing; nothing depends on it */
	VERDICT_WARN, /* sessions work, but with less */
	VERDICT_FAIL, /* sessions do not work, or are not what was planned */
};

struct finding {
	enum verdict verdict;
	const char *check;  /* stable word, for programs */
	const char *on;     /* a path or a name; NULL */
	const char *text;   /* what was found */
	const char *remedy; /* what to do about it; NULL */
};

struct findings {
	struct arena *arena; /* owns every text; `check` is borrowed */
	struct finding *items;
	size_t count;
	bool overflow; /* the arena was full: something is missing */
};

/* findings_add - one statement. @check: a literal. @on: copied, or NULL. */
void findings_add(struct findings *f, enum verdict verdict, const char *check, const char *on,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* findings_remedy - what to do about the last statement. */
void findings_remedy(struct findings *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* findings_worst - the gravest verdict of all; VERDICT_OK if there are none. */
enum verdict findings_worst(const struct findings *f);

/* findings_print - one line for each (and one for its remedy) to @fd. 0 or -errno. */
MUST_CHECK int findings_print(const struct findings *f, int fd);

/*
 * findings_print_json - one document to @fd:
 * {"format":1,"worst":"ok","checks":[{"verdict","check","on","text","remedy"}...]}. 0 or -errno.
 */
MUST_CHECK int findings_print_json(const struct findings *f, int fd);
