/*
 * filter_test.c - the shipped system-call filters: their tables of cases, their programs against
 * their texts, and their programs against libseccomp's.
 *
 * Runs in: the unit tests. Needs no privilege: programs run in an interpreter. What the kernel
 * makes of them is shown in filter_kernel_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/filter.h"

#define TABLE_MAX (256 * 1024)
#define LINES_MAX 1024

static const uint32_t archs[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };
static const char *const arch_names[] = { "x86_64", "aarch64" };

/* A shipped filter, read again from its text, and its program as it was embedded. */
struct subject {
	struct arena arena;
	struct filter f;
	char file[64];
	const struct sock_filter *code[2];
	unsigned short count[2];
};

static struct filter_texts all_texts(void)
{
	return (struct filter_texts){ embedded_texts, embedded_text_count };
}

static void show(const struct error *e)
{
	char text[2048];

	(void)error_format(e, text, sizeof(text));
	print_message("%s", text);
}

static void open_subject(struct subject *s, const char *name)
{
	struct filter_texts texts = all_texts();
	struct error e = { 0 };

	memset(s, 0, sizeof(*s));
	(void)snprintf(s->file, sizeof(s->file), "%s.policy", name);
	assert_int_equal(arena_init(&s->arena, FILTER_ARENA_SIZE), 0);
	filter_init(&s->f, &s->arena);
	int r = filter_parse(&s->f, &texts, s->file, &e);
	if (r < 0)
		show(&e);
	assert_int_equal(r, 0);
	for (size_t i = 0; i < embedded_filter_count; i++) {
		const struct embedded_filter *f = &embedded_filters[i];

		for (size_t a = 0; a < 2; a++) {
			if (f->arch != archs[a] || strcmp(f->name, name) != 0)
				continue;
			s->code[a] = f->code;
			s->count[a] = f->count;
		}
	}
	assert_non_null(s->code[0]);
	assert_non_null(s->code[1]);
}

static void close_subject(struct subject *s)
{
	arena_free(&s->arena);
}

/* Calls @visit for each shipped filter. */
static void for_each_filter(void (*visit)(struct subject *s, const char *name))
{
	size_t visited = 0;

	for (size_t i = 0; i < embedded_filter_count; i++) {
		struct subject s;

		if (embedded_filters[i].arch != archs[0])
			continue;
		open_subject(&s, embedded_filters[i].name);
		visit(&s, embedded_filters[i].name);
		close_subject(&s);
		visited++;
	}
	assert_true(visited >= 4);
}

/* --- tables ----------------------------------------------------------------------------------- */

/* One line of NAME.tests. */
struct row {
	char arch[16], call[64], result[32];
	uint64_t args[6];
};

static bool parse_number(const char *text, uint64_t *ret)
{
	char *end = NULL;

	*ret = 0;
	if ((text[0] < '0' || text[0] > '9') && text[0] != '-')
		return filter_constant(text, ret);
	*ret = strtoull(text, &end, 0);
	return *end == '\0';
}

/* A|B|C */
static bool parse_arg(char *text, uint64_t *ret)
{
	*ret = 0;
	while (text) {
		char *term = strsep(&text, "|");
		uint64_t value = 0;

		if (!parse_number(term, &value))
			return false;
		*ret |= value;
	}
	return true;
}

static bool parse_row(char *line, struct row *ret)
{
	char args[512] = "", *rest = args;
	struct row row = { 0 };

	if (sscanf(line, "%15s %63[^(](%511[^)]) -> %31s", row.arch, row.call, args,
		    row.result) != 4) {
		args[0] = '\0';
		if (sscanf(line, "%15s %63[^(]() -> %31s", row.arch, row.call, row.result) != 3)
			return false;
	}
	for (size_t i = 0; args[0] && rest; i++) {
		char *arg = strsep(&rest, ",");

		if (i == 6 || !parse_arg(arg + strspn(arg, " "), &row.args[i]))
			return false;
	}
	*ret = row;
	return true;
}

static bool parse_result(const char *text, uint32_t *ret)
{
	int errnum = filter_errno(text);

	if (!strcmp(text, "allow"))
		*ret = SECCOMP_RET_ALLOW;
	else if (!strcmp(text, "kill"))
		*ret = SECCOMP_RET_KILL_PROCESS;
	else if (errnum > 0)
		*ret = SECCOMP_RET_ERRNO | (uint32_t)errnum;
	else
		return false;
	return true;
}

/* Which program the row is for, and what the kernel would hand to it. False: not this one. */
static bool fill_call(const struct row *row, size_t arch, struct seccomp_data *ret)
{
	struct seccomp_data d = { .arch = archs[arch] };
	bool is_own = !strcmp(row->arch, "any") || !strcmp(row->arch, arch_names[arch]);
	int nr = filter_number(row->call, archs[arch]);

	if (nr < 0 && (row->call[0] == '-' || (row->call[0] >= '0' && row->call[0] <= '9')))
		nr = (int)strtol(row->call, NULL, 0);
	else if (nr < 0)
		return false;
	memcpy(d.args, row->args, sizeof(row->args));
	if (!strcmp(row->arch, "i386") && arch == 0)
		d.arch = AUDIT_ARCH_I386;
	else if (!strcmp(row->arch, "x32") && arch == 0)
		nr |= 0x40000000;
	else if (!strcmp(row->arch, "arm") && arch == 1)
		d.arch = AUDIT_ARCH_ARM;
	else if (!is_own)
		return false;
	d.nr = nr;
	*ret = d;
	return true;
}

struct table_run {
	struct subject *s;
	const char *name;
	bool *hit; /* lines of the filter's own file that decided a case; [0]: the default */
	unsigned cases, failures, line;
};

static void run_row(struct table_run *t, const struct row *row)
{
	uint32_t wanted = 0;
	unsigned runs = 0;

	if (!parse_result(row->result, &wanted)) {
		print_error("%s.tests:%u: unknown result\n", t->name, t->line);
		t->failures++;
		return;
	}
	for (size_t a = 0; a < 2; a++) {
		struct filter_outcome out = { 0 };
		const struct filter_rule *rule = NULL;
		struct seccomp_data d = { 0 };

		if (!fill_call(row, a, &d))
			continue;
		runs++;
		uint32_t said = filter_eval(&t->s->f, archs[a], &d, &rule);
		int r = filter_run(t->s->code[a], t->s->count[a], &d, &out);
		if (r < 0 || out.action != wanted || said != wanted) {
			print_error("%s.tests:%u: %s %s: wanted %#x, text %#x, program %#x\n",
				t->name, t->line, arch_names[a], row->call, wanted, said,
				out.action);
			t->failures++;
		}
		if (rule && !strcmp(rule->file, t->s->file))
			t->hit[rule->line] = true;
		if (!rule && d.arch == archs[a] && wanted == t->s->f.default_action)
			t->hit[0] = true;
	}
	t->cases += runs;
	if (runs == 0) {
		print_error("%s.tests:%u: no architecture has the call\n", t->name, t->line);
		t->failures++;
	}
}

static void run_lines(struct table_run *t, char *text)
{
	while (text) {
		char *line = strsep(&text, "\n");
		struct row row;

		t->line++;
		if (!*line || *line == '#')
			continue;
		if (!parse_row(line, &row)) {
			print_error("%s.tests:%u: not understood\n", t->name, t->line);
			t->failures++;
			continue;
		}
		run_row(t, &row);
	}
}

/* Every line of the filter's own file must have decided a case. */
static unsigned count_lines(const struct table_run *t)
{
	const struct filter *f = &t->s->f;
	unsigned lines = 0, missed = 0, last = 0;

	for (size_t i = 0; i < f->rule_count; i++) {
		const struct filter_rule *rule = &f->rules[i];

		if (strcmp(rule->file, t->s->file) != 0 || rule->line == last)
			continue;
		last = rule->line;
		lines++;
		if (t->hit[rule->line])
			continue;
		print_error("%s:%u: no case reaches this line\n", rule->file, rule->line);
		missed++;
	}
	assert_int_equal(missed, 0);
	if (!t->hit[0])
		print_error("%s.tests: no case reaches the default\n", t->name);
	assert_true(t->hit[0]);
	return lines;
}

static void run_table(struct subject *s, const char *name)
{
	bool hit[LINES_MAX] = { false };
	struct table_run t = { s, name, hit, 0, 0, 0 };
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/policy/%s.tests", CARREL_SOURCE_DIR, name);
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	assert_true(fd >= 0);
	char *text = malloc(TABLE_MAX + 1);
	assert_non_null(text);
	assert_true(fd_read_file(fd, text, TABLE_MAX) > 0);
	run_lines(&t, text);
	free(text);
	assert_int_equal(t.failures, 0);
	unsigned lines = count_lines(&t);
	print_message("%s: %u cases, all %u lines reached\n", name, t.cases, lines);
}

static void test_tables(void **state)
{
	(void)state;
	for_each_filter(run_table);
}

/* --- programs against texts ------------------------------------------------------------------- */

static void sweep(struct subject *s, const char *name)
{
	for (size_t a = 0; a < 2; a++) {
		struct error e = { 0 };
		unsigned long cases = 0;
		int r = filter_check(&s->f, archs[a], s->code[a], s->count[a], &cases, &e);

		if (r < 0)
			show(&e);
		assert_int_equal(r, 0);
		assert_true(cases > 5000);
		assert_true(s->count[a] <= 400);
		print_message("%s %s: %u instructions, %lu calls judged alike\n", name,
			arch_names[a], s->count[a], cases);
	}
}

static void test_programs_equal_texts(void **state)
{
	(void)state;
	for_each_filter(sweep);
}

/* The embedded program is what the text gives now, so nothing above looked at something else. */
static void compile_again(struct subject *s, const char *name)
{
	struct sock_filter code[FILTER_SIZE_MAX];

	(void)name;
	for (size_t a = 0; a < 2; a++) {
		struct error e = { 0 };
		unsigned short count = 0;

		assert_int_equal(filter_compile(&s->f, archs[a], code, &count, &e), 0);
		assert_int_equal(count, s->count[a]);
		assert_memory_equal(code, s->code[a], count * sizeof(*code));
	}
}

static void test_embedded_is_current(void **state)
{
	(void)state;
	for_each_filter(compile_again);
}

/*
 * A step of the search may be one off without effect: where the number beside it is told apart
 * later on. All numbers are tried, so what is not found there is no fault.
 */
static bool may_be_harmless(const struct sock_filter *i, bool swap_jumps)
{
	return !swap_jumps && i->code == (BPF_JMP | BPF_JGE | BPF_K);
}

/* Control arm of the check: a program with one instruction changed is found out. */
static void break_each(struct subject *s, size_t a, bool swap_jumps)
{
	struct sock_filter code[FILTER_SIZE_MAX];
	unsigned tried = 0, found = 0;

	for (unsigned i = 0; i < s->count[a]; i++) {
		const struct sock_filter *good = &s->code[a][i];
		struct error e = { 0 };

		if (swap_jumps && (BPF_CLASS(good->code) != BPF_JMP || good->jt == good->jf))
			continue;
		memcpy(code, s->code[a], s->count[a] * sizeof(*code));
		code[i].k ^= swap_jumps ? 0 : 1;
		code[i].jt = swap_jumps ? good->jf : good->jt;
		code[i].jf = swap_jumps ? good->jt : good->jf;
		bool is_found = filter_check(&s->f, archs[a], code, s->count[a], NULL, &e) < 0;
		if (!is_found && !may_be_harmless(good, swap_jumps))
			print_error("not found: %s %s instruction %u (%#x %u %u %#x)\n",
				s->file, arch_names[a], i, good->code, good->jt, good->jf,
				good->k);
		assert_true(is_found || may_be_harmless(good, swap_jumps));
		tried++;
		found += is_found;
	}
	assert_true(found * 10 > tried * 9);
}

static void break_filter(struct subject *s, const char *name)
{
	(void)name;
	for (size_t a = 0; a < 2; a++) {
		break_each(s, a, false);
		break_each(s, a, true);
	}
}

static void test_check_finds_faults(void **state)
{
	(void)state;
	for_each_filter(break_filter);
}

/* What the kernel can cache must not look at arguments: getppid, read and the like. */
static void test_plain_calls_are_cacheable(void **state)
{
	static const char *const plain[] = { "read", "write", "getppid", "close", "mmap",
		"futex", "newfstatat", "exit_group", "execve" };
	struct subject s;

	(void)state;
	open_subject(&s, "default");
	for (size_t a = 0; a < 2; a++) {
		unsigned cached = 0, longest = 0;

		for (int nr = 0; nr < 480; nr++) {
			struct seccomp_data d = { .nr = nr, .arch = archs[a] };
			struct filter_outcome out = { 0 };

			assert_int_equal(filter_run(s.code[a], s.count[a], &d, &out), 0);
			cached += out.action == SECCOMP_RET_ALLOW && !out.used_args;
			if (out.steps > longest)
				longest = out.steps;
		}
		for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
			struct seccomp_data d = { .nr = filter_number(plain[i], archs[a]),
				.arch = archs[a] };
			struct filter_outcome out = { 0 };

			assert_int_equal(filter_run(s.code[a], s.count[a], &d, &out), 0);
			assert_int_equal(out.action, SECCOMP_RET_ALLOW);
			assert_false(out.used_args);
		}
		print_message("default %s: %u calls are decided by their number, longest path "
			      "%u instructions\n",
			arch_names[a], cached, longest);
	}
	close_subject(&s);
}

/* --- programs against libseccomp -------------------------------------------------------------- */

/* libseccomp's program, as an array. */
static size_t export_program(scmp_filter_ctx ctx, struct sock_filter *ret)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(seccomp_export_bpf(ctx, fileno(file)), 0);
	ssize_t n = pread(fileno(file), ret, FILTER_SIZE_MAX * sizeof(*ret), 0);
	assert_true(n > 0);
	assert_int_equal(fclose(file), 0);
	return (size_t)n / sizeof(*ret);
}

static scmp_filter_ctx new_context(uint32_t default_action, size_t arch)
{
	scmp_filter_ctx ctx = seccomp_init(default_action);
	uint32_t token = arch == 0 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;

	assert_non_null(ctx);
	if (token != seccomp_arch_native()) {
		assert_int_equal(seccomp_arch_add(ctx, token), 0);
		assert_int_equal(seccomp_arch_remove(ctx, seccomp_arch_native()), 0);
	}
	assert_int_equal(
		seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
	assert_int_equal(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), 0);
	return ctx;
}

/* The fate of @nr if no line with tests names it. False: some line does. */
static bool plain_fate(const struct filter *f, size_t arch, int nr, uint32_t *ret)
{
	*ret = f->default_action;
	for (size_t i = f->rule_count; i > 0; i--) {
		const struct filter_rule *rule = &f->rules[i - 1];

		if (filter_rule_number(rule, archs[arch]) != nr)
			continue;
		if (rule->test_count > 0)
			return false;
		*ret = rule->action;
		return true;
	}
	return true;
}

/*
 * Adds the call to libseccomp's filter, by the native number of its name: libseccomp translates.
 * False: it does not know the call, and could not be asked about it.
 */
static bool add_plain(scmp_filter_ctx ctx, size_t arch, int nr, uint32_t fate)
{
	char name[64];

	filter_name((uint32_t)nr, archs[arch], name, sizeof(name));
	int native = seccomp_syscall_resolve_name(name);
	if (native == __NR_SCMP_ERROR)
		return false;
	assert_int_equal(seccomp_rule_add(ctx, fate, native, 0), 0);
	return true;
}

/* All calls without tests in one libseccomp filter; the others are left out. */
static void compare_plain(struct subject *s, const char *name)
{
	struct sock_filter theirs[FILTER_SIZE_MAX];

	for (size_t a = 0; a < 2; a++) {
		scmp_filter_ctx ctx = new_context(s->f.default_action, a);
		bool known[601] = { false };
		unsigned compared = 0;
		uint32_t fate = 0;

		for (int nr = 0; nr <= 600; nr++)
			known[nr] = plain_fate(&s->f, a, nr, &fate) &&
				(fate == s->f.default_action || add_plain(ctx, a, nr, fate));
		size_t count = export_program(ctx, theirs);
		for (uint32_t i = 0; i <= 601 * 2 + 1; i++) {
			struct seccomp_data d = { .nr = (int)i, .arch = archs[a] };
			struct filter_outcome own = { 0 }, other = { 0 };

			if (i > 600)
				d.nr = (int)(0x40000000 + i - 601);
			if (i == 601 * 2 + 1)
				d.nr = -1;
			if (i <= 600 && !known[i])
				continue;
			assert_int_equal(filter_run(s->code[a], s->count[a], &d, &own), 0);
			assert_int_equal(filter_run(theirs, count, &d, &other), 0);
			if (own.action != other.action)
				print_error("%s %s %d\n", name, arch_names[a], d.nr);
			assert_int_equal(own.action, other.action);
			compared++;
		}
		assert_true(compared > 500);
		print_message(
			"%s %s: %u calls as libseccomp has them (its program for these alone:"
			" %zu instructions)\n",
			name, arch_names[a], compared, count);
		seccomp_release(ctx);
	}
}

static void test_plain_calls_equal_libseccomp(void **state)
{
	(void)state;
	for_each_filter(compare_plain);
}

/* One test of one line as libseccomp has it: true where its program says so. */
static bool libseccomp_holds(const struct filter_test *t, uint64_t value, const uint64_t *args)
{
	struct sock_filter code[FILTER_SIZE_MAX];
	scmp_filter_ctx ctx = new_context(SCMP_ACT_ERRNO(1), 0);
	struct scmp_arg_cmp cmp = { t->arg, SCMP_CMP_MASKED_EQ, t->mask, value };
	struct filter_outcome out = { 0 };
	struct seccomp_data d = { .nr = 16, .arch = AUDIT_ARCH_X86_64 };

	memcpy(d.args, args, sizeof(d.args));
	assert_int_equal(
		seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, &cmp), 0);
	size_t count = export_program(ctx, code);
	seccomp_release(ctx);
	assert_int_equal(filter_run(code, count, &d, &out), 0);
	return out.action == SCMP_ACT_ALLOW;
}

/* The generator's program for the same test alone. */
static bool own_holds(struct filter_test t, uint64_t value, const uint64_t *args)
{
	struct sock_filter code[FILTER_SIZE_MAX];
	struct arena arena = { 0 };
	struct error e = { 0 };
	unsigned short count = 0;
	struct filter_outcome out = { 0 };
	struct seccomp_data d = { .nr = 16, .arch = AUDIT_ARCH_X86_64 };

	assert_int_equal(arena_init(&arena, FILTER_ARENA_SIZE), 0);
	t.values = &value;
	t.value_count = 1;
	struct filter_rule rule = { "ioctl", 16, 29, SECCOMP_RET_ALLOW, &t, 1, "test", 1 };
	struct filter f = { .arena = &arena,
		.default_action = SECCOMP_RET_ERRNO | 1,
		.default_file = "test",
		.rules = &rule,
		.rule_count = 1 };
	assert_int_equal(filter_compile(&f, AUDIT_ARCH_X86_64, code, &count, &e), 0);
	memcpy(d.args, args, sizeof(d.args));
	assert_int_equal(filter_run(code, count, &d, &out), 0);
	arena_free(&arena);
	return out.action == SECCOMP_RET_ALLOW;
}

/* Every comparison of every shipped line, each value at and beside its edges, both ways. */
static void compare_tests(struct subject *s, const char *name)
{
	unsigned compared = 0;
	bool compares = false;

	for (size_t i = 0; i < s->f.rule_count; i++) {
		const struct filter_rule *rule = &s->f.rules[i];

		compares |= rule->test_count > 0;
		for (size_t k = 0; k < rule->test_count; k++) {
			const struct filter_test *t = &rule->tests[k];

			for (size_t v = 0; v < t->value_count && t->op <= FILTER_NE; v++) {
				uint64_t value = t->values[v];
				uint64_t tries[] = { value, value + 1,
					value | UINT64_C(1) << 32, value | ~t->mask,
					value ^ (t->mask & -t->mask), ~value };

				for (size_t n = 0; n < sizeof(tries) / sizeof(*tries); n++) {
					uint64_t args[6] = { 0 };
					struct filter_test equal = *t;

					equal.op = FILTER_IN;
					args[t->arg] = tries[n];
					assert_int_equal(own_holds(equal, value, args),
						libseccomp_holds(t, value, args));
					compared++;
				}
			}
		}
	}
	/* The reader tests one call; the second filter of the supervisor none. */
	assert_true(compares ? compared > 5 : !strcmp(name, "settled"));
	print_message("%s: %u comparisons as libseccomp makes them\n", name, compared);
}

static void test_comparisons_equal_libseccomp(void **state)
{
	(void)state;
	for_each_filter(compare_tests);
}

/* --- the language ----------------------------------------------------------------------------- */

/* Reads a filter from one text, `a.policy`, which may include "b.inc". */
static int read_text(struct subject *s, const char *text, struct error *e)
{
	static const char other[] = "group @pair = getpid getppid\n";
	struct embedded_text files[] = { { "a.policy", text, strlen(text) },
		{ "b.inc", other, sizeof(other) - 1 },
		{ "loop.inc", "include a.policy\n", 17 } };
	struct filter_texts texts = { files, 3 };

	memset(s, 0, sizeof(*s));
	assert_int_equal(arena_init(&s->arena, FILTER_ARENA_SIZE), 0);
	filter_init(&s->f, &s->arena);
	return filter_parse(&s->f, &texts, "a.policy", e);
}

static uint32_t eval_call(struct subject *s, const char *call, uint64_t arg0, uint64_t arg1)
{
	struct seccomp_data d = {
		.nr = filter_number(call, archs[0]), .arch = archs[0], .args = { arg0, arg1 }
	};
	struct sock_filter code[FILTER_SIZE_MAX];
	struct filter_outcome out = { 0 };
	unsigned short count = 0;
	struct error e = { 0 };

	assert_int_equal(filter_compile(&s->f, archs[0], code, &count, &e), 0);
	assert_int_equal(filter_check(&s->f, archs[0], code, count, NULL, &e), 0);
	assert_int_equal(filter_run(code, count, &d, &out), 0);
	return out.action;
}

static void test_language(void **state)
{
	struct subject s;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(read_text(&s,
				 "# comment\n"
				 "include b.inc\ninclude b.inc\n"
				 "default errno ENOENT # of files\n"
				 "\tallow @pair\n"
				 "kill getppid\n"
				 "group @x = @pair kill\ngroup @x += ioctl\n"
				 "enosys kill\n"
				 "allow kill if arg0 > 5 and arg0 <= 0x10\n"
				 "allow tkill if arg0 in {1, 2|4, -1}\n"
				 "allow mmap if full(arg1) == 0x100000000\n"
				 "allow munmap if low32(arg1) != 7\n"
				 "allow number:470",
				 &e),
		0);
	assert_int_equal(eval_call(&s, "getpid", 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "getppid", 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(eval_call(&s, "read", 0, 0), SECCOMP_RET_ERRNO | ENOENT);
	assert_int_equal(eval_call(&s, "kill", 5, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(eval_call(&s, "kill", 6, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "kill", 0x100000010, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "kill", 0x11, 0), SECCOMP_RET_ERRNO | ENOSYS);
	assert_int_equal(eval_call(&s, "tkill", 6, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "tkill", 0xffffffff, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "tkill", 2, 0), SECCOMP_RET_ERRNO | ENOENT);
	assert_int_equal(eval_call(&s, "mmap", 0, 0x100000000), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "mmap", 0, 0), SECCOMP_RET_ERRNO | ENOENT);
	assert_int_equal(eval_call(&s, "mmap", 0, 0x100000001), SECCOMP_RET_ERRNO | ENOENT);
	assert_int_equal(eval_call(&s, "munmap", 0, 0x100000007), SECCOMP_RET_ERRNO | ENOENT);
	assert_int_equal(eval_call(&s, "munmap", 0, 8), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "number:470", 0, 0), SECCOMP_RET_ALLOW);
	close_subject(&s);
}

static void test_errors_name_place_and_word(void **state)
{
	static const struct {
		const char *text, *on, *what, *hint;
	} wrongs[] = {
		{ "default enosys\nallow opne\n", "a.policy:2", "opne", "open" },
		{ "default enosys\nalow open\n", "a.policy:2", "alow", "allow" },
		{ "include b.inc\nallow @pari\n", "a.policy:2", "@pari", "@pair" },
		{ "allow ioctl if arg1 == TIOCSTY\n", "a.policy:1", "TIOCSTY", "TIOCSTI" },
		{ "allow read\n", "a.policy:1", "no 'default'", "" },
		{ "default enosys\ndefault allow\n", "a.policy:2", "default already", "" },
		{ "default\n", "a.policy:1", "action", "" },
		{ "default allow read\n", "a.policy:1", "end of the line", "" },
		{ "include nowhere.inc\n", "a.policy:1", "nowhere.inc", "" },
		{ "include loop.inc\n", "loop.inc:1", "includes itself", "" },
		{ "include\n", "a.policy:1", "file name", "" },
		{ "group pair = read\n", "a.policy:1", "begins with @", "" },
		{ "group @p =\n", "a.policy:1", "empty", "" },
		{ "group @p += read\n", "a.policy:1", "unknown group", "" },
		{ "group @p = read\ngroup @p = write\n", "a.policy:2", "exists", "" },
		{ "group @p = @p\n", "a.policy:1", "unknown group", "" },
		{ "allow\n", "a.policy:1", "is expected", "" },
		{ "errno EFOO read\n", "a.policy:1", "EFOO", "" },
		{ "allow read if\n", "a.policy:1", "arg0 to arg5", "" },
		{ "allow ioctl if arg6 == 1\n", "a.policy:1", "arg6", "" },
		{ "allow ioctl if arg1 = 1\n", "a.policy:1", "comparison", "" },
		{ "allow ioctl if arg1 == 1 or arg1 == 2\n", "a.policy:1", "'and'", "" },
		{ "allow ioctl if arg1 == 0x1ffffffff\n", "a.policy:1", "not compared", "" },
		{ "allow ioctl if arg1 == 12x\n", "a.policy:1", "not a number", "" },
		{ "allow ioctl if arg1 == 0x10000000000000000\n", "a.policy:1", "64 bits", "" },
		{ "allow ioctl if arg1 & 0 == 0\n", "a.policy:1", "mask of 0", "" },
		{ "allow ioctl if arg1 & 3 == 4\n", "a.policy:1", "not compared", "" },
		{ "allow chmod if arg1 & 0x10000 == 0\n", "a.policy:1", "mask", "" },
		{ "allow mmap if arg1 < 4\n", "a.policy:1", "order", "" },
		{ "allow read if arg0 == 1\n", "a.policy:1", "how many bits", "low32(arg0)" },
		{ "allow ioctl if arg1 in {1, 2\n", "a.policy:1", "'}'", "" },
		{ "allow number:12\n", "a.policy:1", "number:12", "" },
		{ "allow read;\n", "a.policy:1", "no meaning", "" },
		{ "allow read\r\n", "a.policy:1", "no meaning", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct subject s;
		struct error e = { 0 };
		int r = read_text(&s, wrongs[i].text, &e);

		if (r != -EINVAL || strcmp(e.on, wrongs[i].on) != 0 ||
			!strstr(e.what, wrongs[i].what) || !strstr(e.hint, wrongs[i].hint)) {
			print_error("%s", wrongs[i].text);
			show(&e);
		}
		assert_int_equal(r, -EINVAL);
		assert_int_equal(e.code, ERROR_POLICY);
		assert_string_equal(e.on, wrongs[i].on);
		assert_non_null(strstr(e.what, wrongs[i].what));
		assert_non_null(strstr(e.hint, wrongs[i].hint));
		close_subject(&s);
	}
}

static void test_added_lines(void **state)
{
	struct subject s;
	struct error e = { 0 };

	(void)state;
	open_subject(&s, "default");
	assert_int_equal(eval_call(&s, "io_uring_setup", 0, 0), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(filter_parse_line(&s.f, "allow @io-uring", "mine", 3, &e), 0);
	assert_int_equal(filter_parse_line(&s.f, "errno ptrace", "mine", 4, &e), 0);
	assert_int_equal(
		filter_parse_line(&s.f, "errno EIO ioctl if arg1 == TCGETS", "mine", 5, &e), 0);
	assert_int_equal(eval_call(&s, "io_uring_setup", 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(eval_call(&s, "ptrace", 0, 0), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(eval_call(&s, "ioctl", 0, 0x100005401), SECCOMP_RET_ERRNO | EIO);
	assert_int_equal(eval_call(&s, "ioctl", 0, 0x5412), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(filter_parse_line(&s.f, "kill read", "mine", 6, &e), -EINVAL);
	assert_string_equal(e.on, "mine:6");
	close_subject(&s);
}

/* --- the interpreter -------------------------------------------------------------------------- */

static void test_interpreter_refuses(void **state)
{
	static const struct sock_filter wrongs[][2] = {
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) },
	};
	struct seccomp_data d = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct filter_outcome out = { 0 };

		assert_int_equal(filter_run(wrongs[i], 2, &d, &out), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_programs_equal_texts),
		cmocka_unit_test(test_embedded_is_current),
		cmocka_unit_test(test_check_finds_faults),
		cmocka_unit_test(test_plain_calls_are_cacheable),
		cmocka_unit_test(test_plain_calls_equal_libseccomp),
		cmocka_unit_test(test_comparisons_equal_libseccomp),
		cmocka_unit_test(test_language),
		cmocka_unit_test(test_errors_name_place_and_word),
		cmocka_unit_test(test_added_lines),
		cmocka_unit_test(test_interpreter_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
