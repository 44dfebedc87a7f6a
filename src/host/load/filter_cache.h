/*
 * filter_cache.h - the system-call filter of a policy that has `syscall` lines of its own.
 *
 * Runs in: the launcher (and carrel-policy for `plan`), outside, before anything is cloned. Such a
 * filter is compiled by `carrel-policy compile` and kept in $XDG_CACHE_HOME/carrel/filters (or
 * ~/.cache/...) under the digest of everything it was made of; the launcher only loads it. May not:
 * trust what it finds there without looking: owner, mode, size, digests and every jump are checked,
 * and a file that fails is compiled again. May not leave anything but that file behind.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "plan/embedded.h"
#include "plan/policy.h"

#define FILTER_FILE_MAGIC "carrel\x01\x02"
#define FILTER_FILE_VERSION 1
#define FILTER_FILE_COUNT_MAX 4096 /* instructions; BPF_MAXINSNS of the kernel */

/* What precedes the instructions, in a file and from `carrel-policy compile`. */
struct filter_file_header {
	char magic[8];
	uint32_t version;
	uint32_t arch;                /* AUDIT_ARCH_* */
	uint8_t inputs[SHA256_SIZE];  /* of what it was made of: filter_cache_inputs() */
	uint8_t content[SHA256_SIZE]; /* of the instructions */
	uint32_t count;
	uint32_t reserved; /* 0 */
};

/*
 * filter_cache_inputs - the digest that names a compiled filter: of this program's version, the
 * shipped filters' texts and programs, the architecture, the shipped filter below, and the lines in
 * their order.
 */
void filter_cache_inputs(const char *base, const char *const *lines, size_t count,
	uint8_t ret_digest[SHA256_SIZE]);

/*
 * filter_cache_accept - is this a compiled filter for these inputs and this machine?
 * @data: header and instructions, aligned for both. Returns the number of instructions, or -EINVAL
 * (anything that is not exactly so, a jump out of the program, an unknown instruction included).
 */
MUST_CHECK int filter_cache_accept(
	const void *data, size_t size, const uint8_t inputs[SHA256_SIZE]);

/*
 * filter_cache_load - the shipped filter @base with the `syscall` lines of @policy on top.
 * @env: for XDG_CACHE_HOME and HOME. @ret: in @arena, so is its code.
 * Returns 0 or -errno with @e: ERROR_POLICY as carrel-policy has it (file:line of the wrong line),
 * ERROR_INTERNAL (carrel-policy is missing or gave no answer), ERROR_LIMIT. A cache that cannot be
 * used costs time, nothing else.
 */
MUST_CHECK int filter_cache_load(struct arena *arena, const struct policy *policy,
	const char *base, const char *const *env, const struct embedded_filter **ret,
	struct error *e);
