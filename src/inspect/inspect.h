/*
 * inspect.h - the verbs of carrel-inspect.
 *
 * Runs in: carrel-inspect, outside, as the caller.
 */
#pragma once

#include "base/error.h"
#include "inspect/finding.h"

/* Exit statuses of both verbs. */
enum inspect_status {
	INSPECT_OK = 0,
	INSPECT_LESS = 1,     /* doctor: works with less; attest: something differs */
	INSPECT_REFUSED = 2,  /* doctor: sessions do not work here */
	INSPECT_BROKEN = 125, /* carrel-inspect itself failed */
};

/*
 * doctor_main, attest_main - one verb each. @argv: carrel-inspect's own, the verb at index 1.
 * Return the exit status.
 */
int doctor_main(int argc, const char *const *argv, const char *const *environment);
int attest_main(int argc, const char *const *argv, const char *const *environment);

/* inspect_print - print the findings to stdout; 0, or INSPECT_BROKEN, also if some are missing. */
int inspect_print(const struct findings *f, bool json);

/* inspect_launcher - the absolute path of `carrel`, never searched in PATH. 0 or -errno. */
MUST_CHECK int inspect_launcher(char *ret_path, size_t size);
