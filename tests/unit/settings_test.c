/*
 * settings_test.c - the settings table and what is printed from it.
 *
 * Runs in: the tests; no privileges.
 */
/* ctest: as=any */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/policy.h"
#include "plan/settings.h"

struct sink {
	char text[64 * 1024];
	size_t used;
};

static int sink_write(void *context, const void *data, size_t size)
{
	struct sink *s = context;

	if (size >= sizeof(s->text) - s->used)
		return -ENOSPC;
	memcpy(s->text + s->used, data, size);
	s->used += size;
	s->text[s->used] = '\0';
	return 0;
}

static int refuse_write(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return -EPIPE;
}

/* The settings of this version, exactly; one of a later version is unknown. */
static const char *const names[] = { "workspace", "workspace-mode", "read", "write", "hide",
	"protect", "bind", "tmpfs", "dev", "cache", "scratch-base", "scratch-size",
	"scratch-env", "keep", "keep-for", "quarantine-for", "promote", "promote-to", "cwd",
	"env", "unsetenv", "tty", "pass-fd", "die-with-parent", "nested", "timeout", "grace",
	"memory", "pids", "cpus", "cpu-time", "file-size", "open-files", "output-budget",
	"output-max", "lifetime", "idle-timeout", "net", "allow", "deny", "tls-name",
	"net-connections", "net-bytes", "net-log", "net-resolver", "egress-proxy",
	"egress-proxy-login", "net-live", "publish", "unix-socket", "syscalls", "syscall",
	"profile", "include", "policy", "with", "lock", "require", "degraded", "merge-output",
	"report", "explain", "learn", "quiet", "verbose" };

static void test_table(void **state)
{
	(void)state;
	assert_int_equal(SETTING_COUNT, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		assert_string_equal(s->name, names[i]);
		assert_int_equal(s->id, i);
		assert_ptr_equal(settings_find(names[i], strlen(names[i])), s);
		assert_non_null(s->help);
		assert_int_equal(s->placeholder == NULL, s->kind == KIND_FLAG);
		if (s->kind == KIND_ENUM || s->kind == KIND_WALL)
			assert_non_null(s->words);
		if (s->kind == KIND_FLAG || s->kind == KIND_SIZE || s->kind == KIND_DURATION)
			assert_true(s->member > 0 && s->member < sizeof(struct policy));
	}
}

static void test_unknown(void **state)
{
	static const char *const later[] = { "output", "egress-prox", "publish-port", "",
		"read ", "Read", "work", "workspacee" };

	(void)state;
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		assert_null(settings_find(later[i], strlen(later[i])));
	assert_null(settings_find("readable", 3));
	assert_non_null(settings_find("readable", 4));
	assert_string_equal(settings_nearest("scratchsize"), "scratch-size");
	assert_string_equal(settings_nearest("time"), "timeout");
	assert_null(settings_nearest("zzzzzz"));
}

static void assert_all_named(const struct sink *s, bool with_lock)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char option[64];

		if (settings_table[i].system_only && !with_lock)
			continue;
		(void)snprintf(option, sizeof(option), "%s", settings_table[i].name);
		if (!strstr(s->text, option))
			fail_msg("%s is missing", option);
	}
}

static void test_help(void **state)
{
	static struct sink s;
	size_t column = 0;

	(void)state;
	s = (struct sink){ .used = 0 };
	assert_int_equal(settings_print_help(sink_write, &s), 0);
	assert_all_named(&s, false);
	assert_null(strstr(s.text, "--lock"));
	for (size_t i = 0; i < s.used; i++) {
		column = s.text[i] == '\n' ? 0 : column + 1;
		if (column > 90)
			fail_msg("a line of more than 90 columns: %.40s", s.text + i - 60);
	}
	assert_int_equal(settings_print_help(refuse_write, NULL), -EPIPE);
}

static void test_man(void **state)
{
	static struct sink s;

	(void)state;
	s = (struct sink){ .used = 0 };
	assert_int_equal(settings_print_man(false, sink_write, &s), 0);
	assert_all_named(&s, true);
	assert_non_null(strstr(s.text, "## SYSTEM CALLS\n"));
	assert_non_null(strstr(s.text, "*lock* _SETTING_"));
	assert_null(strstr(s.text, "*--lock*"));
	assert_int_equal(settings_print_man(false, refuse_write, NULL), -EPIPE);
}

/* What one execution can have is said to it and nothing else is, and a place in the request is one setting's. */
static void test_execution(void **state)
{
	static struct sink help, man;
	bool taken[EXECUTION_LIMIT_COUNT] = { false };
	size_t limits = 0;

	(void)state;
	help.used = man.used = 0;
	assert_int_equal(settings_print_execution_help(sink_write, &help), 0);
	assert_int_equal(settings_print_man(true, sink_write, &man), 0);
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];
		char option[64];

		(void)snprintf(option, sizeof(option), "  --%s ", s->name);
		assert_int_equal(strstr(help.text, option) != NULL, s->per_execution);
		(void)snprintf(option, sizeof(option), "*--%s*", s->name);
		assert_int_equal(strstr(man.text, option) != NULL, s->per_execution);
		if (!s->limit)
			continue;
		assert_true(s->per_execution && s->lock == LOCK_SMALLER && s->member);
		assert_false(taken[s->limit - 1]);
		taken[s->limit - 1] = true;
		limits++;
	}
	assert_int_equal(limits, EXECUTION_LIMIT_COUNT);
	assert_non_null(strstr(help.text, "--workspace-mode ro "));
	assert_non_null(strstr(help.text, "--net none "));
	assert_int_equal(settings_print_execution_help(refuse_write, NULL), -EPIPE);
	assert_int_equal(settings_print_man(true, refuse_write, NULL), -EPIPE);
}

static void test_tightest(void **state)
{
	(void)state;
	assert_string_equal(settings_tightest(&settings_table[SETTING_WORKSPACE_MODE]), "ro");
	assert_string_equal(settings_tightest(&settings_table[SETTING_NET]), "none");
	assert_null(settings_tightest(&settings_table[SETTING_TTY]));
	assert_null(settings_tightest(&settings_table[SETTING_MEMORY]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_man),
		cmocka_unit_test(test_execution),
		cmocka_unit_test(test_tightest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
