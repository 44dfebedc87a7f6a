/*
 * filter.h - system-call filters: the language of policy/NAME.policy, read and compiled.
 *
 * Runs in: mkpolicy (build time), carrel-policy (for policies with `syscall` lines) and the tests.
 * Never in the launcher, which only loads what was compiled here. PURE but for the memory taken.
 *
 * The language, one statement a line, `#` starts a comment:
 *
 *     default ACTION                       what happens to a call that no line names; exactly once
 *     include FILE                         another file of policy/; more than once is harmless
 *     group @NAME = WORD...                a name for a set of calls (`+=` adds to it)
 *     ACTION WORD... [if TEST and TEST...] WORD: a call, @GROUP, or number:N for a new call
 *
 *     ACTION: allow | errno [ENAME] (EPERM where no name is given) | enosys | kill (the process)
 *     TEST:   OPERAND [& MASK] OP VALUE, OPERAND [& MASK] in {VALUE, VALUE...}
 *     OPERAND: arg0 to arg5 | low32(argN) | full(argN)      OP: == != < <= > >=
 *     VALUE, MASK: numbers and the kernel's constants, joined by |
 *
 * **The last line that names a call and whose tests hold decides**, so an included file (or a
 * shipped filter below a policy's own lines) is refined by what follows it.
 *
 * argN is compared on as many bits as the kernel looks at (a table of the calls that matter): an
 * ioctl request with high bits set is still that request. Where the width is not in the table it
 * must be written, low32(argN) or full(argN). Order is compared on 32 bits and less only.
 *
 * Whatever the text says, another ABI (i386, x32, on aarch64 the 32-bit one) kills the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/embedded.h"

struct sock_filter;
struct seccomp_data;

#define FILTER_SIZE_MAX 4096          /* instructions; BPF_MAXINSNS of the kernel */
#define FILTER_ARENA_SIZE (16u << 20) /* address space that one filter needs at most */

enum filter_op {
	FILTER_IN, /* equal to one of the values; == is a list of one */
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
};

struct filter_test {
	unsigned arg; /* 0 to 5 */
	enum filter_op op;
	uint64_t mask;          /* the argument is ANDed with it first */
	const uint64_t *values; /* all within the mask */
	size_t value_count;
};

/* One call of one line. */
struct filter_rule {
	const char *name;                /* as libseccomp knows it, or "number:N" */
	int x86_64, aarch64;             /* its numbers; negative where there is none */
	uint32_t action;                 /* SECCOMP_RET_* with its data */
	const struct filter_test *tests; /* all must hold; none: always */
	size_t test_count;
	const char *file;
	unsigned line;
};

struct filter_group {
	const char *name; /* with its @ */
	const char **words;
	size_t word_count;
};

/* A filter as it was read, for every architecture. Owned by the arena. */
struct filter {
	struct arena *arena;
	uint32_t default_action;
	const char *default_file; /* NULL: no `default` line yet */
	unsigned default_line;
	struct filter_rule *rules; /* in the order of the text */
	size_t rule_count;
	struct filter_group *groups;
	size_t group_count;
	const char **included; /* files that were read, each once */
	size_t included_count;
};

/* Where `include` finds files: a table such as embedded_texts. Borrowed. */
struct filter_texts {
	const struct embedded_text *texts;
	size_t count;
};

/* --- filter_parse.c --- */

/* filter_init - an empty filter whose memory is @arena (at least FILTER_ARENA_SIZE). */
void filter_init(struct filter *f, struct arena *arena);

/*
 * filter_parse - read the file @name of @texts, with what it includes, into @f.
 * Returns 0, or -EINVAL with ERROR_POLICY (on = file:line), or -ENOMEM with ERROR_LIMIT.
 * After failure @f is of no use.
 */
MUST_CHECK int filter_parse(
	struct filter *f, const struct filter_texts *texts, const char *name, struct error *e);

/*
 * filter_parse_line - one more `allow` or `errno` line, as a policy's `syscall` setting has it.
 * @file, @line: where it was written, for messages. Result as for filter_parse().
 */
MUST_CHECK int filter_parse_line(
	struct filter *f, const char *text, const char *file, unsigned line, struct error *e);

/* --- filter_names.c --- */

/*
 * filter_number - the number of a call on @arch (AUDIT_ARCH_*).
 * Returns it, -ENOENT where that architecture has no such call, -EINVAL where none has.
 */
int filter_number(const char *name, uint32_t arch);

/* filter_rule_number - the number of the rule's call on @arch, negative where there is none. */
int filter_rule_number(const struct filter_rule *rule, uint32_t arch);

/* filter_name - the call with number @nr on @arch into @ret_name, "number:N" where unknown. */
void filter_name(uint32_t nr, uint32_t arch, char *ret_name, size_t size);

/* filter_nearest_call - the known call that @word was probably meant to be, or NULL. */
const char *filter_nearest_call(struct arena *arena, const char *word);

/* filter_errno - the number of an error name such as "EPERM", or -EINVAL. */
int filter_errno(const char *name);

/* filter_width - bits the kernel looks at in argument @arg of a call: 16, 32, 64; 0 = not in the
 * table. */
unsigned filter_width(const char *name, unsigned arg);

/* --- filter_constants.c --- */

/* filter_constant - the value of a constant such as AF_UNIX. False where there is none. */
bool filter_constant(const char *name, uint64_t *ret_value);

/* filter_nearest_constant - the known constant that @word was probably meant to be, or NULL. */
const char *filter_nearest_constant(const char *word);

/* --- filter_eval.c --- */

/*
 * filter_eval - what the text says about one call, read line by line: no compiler in between.
 * @ret_rule: the line that decides, NULL where `default` or the ABI does. NULL allowed.
 * Returns SECCOMP_RET_*.
 */
uint32_t filter_eval(const struct filter *f, uint32_t arch, const struct seccomp_data *data,
	const struct filter_rule **ret_rule);

/* --- filter_gen.c --- */

/*
 * filter_compile - the BPF program of @f for @arch (AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64).
 * @ret_code: room for FILTER_SIZE_MAX instructions; @ret_count: how many there are.
 * Returns 0, -EINVAL (unknown architecture, no default), -E2BIG with ERROR_LIMIT, -ENOMEM.
 */
MUST_CHECK int filter_compile(const struct filter *f, uint32_t arch,
	struct sock_filter *ret_code, unsigned short *ret_count, struct error *e);

/* --- filter_run.c --- */

/* What a program did with one call. */
struct filter_outcome {
	uint32_t action;
	unsigned steps; /* instructions */
	bool used_args; /* not decided by the number alone: the kernel cannot cache it */
};

/*
 * filter_run - run a program in an interpreter of the kernel's classic BPF for seccomp.
 * Returns 0 or -EINVAL: an instruction the kernel refuses or that no program here has, a jump out
 * of the program, a load outside or across the words of struct seccomp_data. Any program is safe.
 */
MUST_CHECK int filter_run(const struct sock_filter *code, size_t count,
	const struct seccomp_data *data, struct filter_outcome *ret);

/* --- filter_check.c --- */

/*
 * filter_check - prove a program equal to the text: every number from 0 to 600, some beyond, x32
 * and other ABIs; for calls with tests every combination of values at, beside and above (high bits
 * set) those the text names, thinned out where there are more than FILTER_CHECK_MAX.
 * @ret_cases: how many calls were tried; NULL allowed.
 * Returns 0, or -EINVAL with ERROR_INTERNAL that names the first call that is judged differently.
 */
#define FILTER_CHECK_MAX 20000
MUST_CHECK int filter_check(const struct filter *f, uint32_t arch,
	const struct sock_filter *code, size_t count, unsigned long *ret_cases,
	struct error *e);
