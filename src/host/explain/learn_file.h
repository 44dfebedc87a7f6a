/*
 * learn_file.h - the policy that `learn` writes: a new file, where no tool can write.
 *
 * Runs in: the launcher, outside, with the caller's rights. May not: follow a link at the end of the path, or replace
 * anything: a file that a person has reviewed stays as it is.
 */
#pragma once

#include "base/error.h"
#include "host/explain/explain.h"
#include "plan/plan.h"

struct learn_file {
	int dir;            /* O_PATH; -1: none */
	const char *target; /* as it was asked for; borrowed */
	char name[256];
};

/*
 * learn_file_open - check that the file can be made, and make nothing. @facts: where tools can write.
 * 0, or -errno with @e (ERROR_REPORT): it exists, or tools can write beside it, or the caller cannot.
 */
MUST_CHECK int learn_file_open(
	const char *target, const struct facts *facts, struct learn_file *ret, struct error *e);

/* learn_file_write - make the file, with what was learned. 0, or -errno with @e: then there is no file. */
MUST_CHECK int learn_file_write(
	const struct learn_file *f, const struct explain *x, struct error *e);

/* learn_file_close - close its directory; the file stays. */
void learn_file_close(struct learn_file *f);
