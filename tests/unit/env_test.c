/*
 * env_test.c - what gets into the payload's environment, and who is named for it.
 *
 * Runs in: the unit tests. Pure.
 */
/* ctest: as=any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "plan/env.h"

static const char *const caller[] = { "PATH=/usr/bin", "HOME=/home/u", "LC_ALL=C",
	"LC_TIME=de_DE", "LC=no", "AWS_SECRET_ACCESS_KEY=hunter2", "SSH_AUTH_SOCK=/run/agent",
	"TMPDIR=/var/tmp", "CARREL_SESSION=forged", "EMPTY=", "=odd", "noequals", "TWICE=1",
	"TWICE=2", "BYTES=\xff\n", NULL };

struct session {
	struct arena arena;
	struct policy policy;
	struct facts facts;
	struct plan plan;
	struct error e;
	struct env_rule rules[16];
	struct word_rule scratch_envs[2];
};

/* An `env` line as a policy has it: NAME, NAME=VALUE, or -NAME for `unsetenv`. */
static void add_rule(struct session *s, const char *line)
{
	const char *equals = strchr(line, '=');
	struct env_rule *rule = &s->rules[s->policy.env_count];
	bool unset = *line == '-';
	const char *name = line + unset;
	size_t length = equals ? (size_t)(equals - name) : strlen(name);

	assert_true(s->policy.env_count < 16);
	*rule = (struct env_rule){ .unset = unset,
		.name = arena_copy(&s->arena, name, length),
		.value = equals ? equals + 1 : NULL,
		.source = { .layer = LAYER_FILE,
			.file = "p",
			.line = (unsigned)s->policy.env_count + 1 } };
	s->policy.env_count++;
}

static void start(struct session *s, const char *const *lines)
{
	*s = (struct session){
		.facts = { .workspace = "/home/u/ws",
			.cwd = "/home/u/ws/sub",
			.scratch_dir = "/tmp/carrel-x/scratch",
			.session_name = "carrel-x",
			.session_dir = "/tmp/carrel-x",
			.environ = caller },
	};
	assert_int_equal(arena_init(&s->arena, 16 << 20), 0);
	s->policy.envs = s->rules;
	s->policy.scratch_envs = s->scratch_envs;
	for (; *lines; lines++)
		add_rule(s, *lines);
	s->plan = (struct plan){ .policy = &s->policy, .facts = &s->facts, .arena = &s->arena };
	assert_int_equal(plan_environment(&s->plan, &s->e), 0);
	assert_null(s->plan.envp[s->plan.env_count]);
}

#define LINES(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* Exactly these, in any order, beside carrel's own six. */
static void check(struct session *s, const char *const *expected)
{
	size_t count = 6;

	for (; *expected; expected++, count++) {
		bool found = false;

		for (size_t i = 0; i < s->plan.env_count; i++)
			found |= !strcmp(s->plan.envp[i], *expected);
		if (!found)
			fail_msg("%s is missing", *expected);
	}
	if (s->plan.env_count != count)
		fail_msg("%zu variables instead of %zu, the first is %s", s->plan.env_count,
			count, s->plan.envp[0]);
	arena_free(&s->arena);
}

static void test_nothing_by_itself(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES());
	assert_string_equal(s.plan.path_env, "/usr/local/bin:/usr/bin:/bin");
	check(&s, LINES());
}

static void test_own(void **state)
{
	static const char *const own[][2] = { { "CARREL_SESSION", "x" },
		{ "CARREL_WORKSPACE", "/home/u/ws" },
		{ "CARREL_SCRATCH", "/tmp/carrel-x/scratch" },
		{ "CARREL_TOOL_RESULTS", "/tmp/carrel-x/tool-results" },
		{ "TMPDIR", "/tmp/carrel-x/scratch/tmp" }, { "PWD", "/home/u/ws/sub" } };
	struct session s;

	(void)state;
	/* No line of a policy and no variable of the caller is above them. */
	start(&s, LINES("CARREL_SESSION", "CARREL_*", "*", "PWD=/", "-*"));
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(plan_find_env(&s.plan, own[i][0]), own[i][1]);
	for (size_t i = 0; i < s.plan.env_count; i++)
		assert_null(plan_env_rule(&s.plan, s.plan.envp[i]));
	check(&s, LINES());
	start(&s, LINES("-CARREL_*", "-TMP*"));
	check(&s, LINES());
}

/* Who names it alone directs what is produced elsewhere. Beside carrel's own five. */
static void test_tmpdir(void **state)
{
	static const struct {
		const char *line, *value;
		unsigned source;
	} cases[] = { { "TMPDIR=/elsewhere", "/elsewhere", 2 }, { "TMPDIR", "/var/tmp", 2 },
		{ "-TMPDIR", NULL, 0 }, { "TMPDIR*", "/tmp/carrel-x/scratch/tmp", 0 },
		{ "-T*R", "/tmp/carrel-x/scratch/tmp", 0 } };
	struct session s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(&s, LINES("A=1", cases[i].line));
		const char *value = plan_find_env(&s.plan, "TMPDIR");

		assert_int_equal(value != NULL, cases[i].value != NULL);
		if (value) {
			const struct env_rule *rule =
				plan_env_rule(&s.plan, value - strlen("TMPDIR="));
			assert_string_equal(value, cases[i].value);
			assert_int_equal(rule ? rule->source.line : 0, cases[i].source);
		}
		arena_free(&s.arena);
	}
	/* The caller's where the caller has none: carrel's. */
	start(&s, LINES("TMPDIR"));
	s.facts.environ = LINES("A=1");
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	assert_string_equal(plan_find_env(&s.plan, "TMPDIR"), "/tmp/carrel-x/scratch/tmp");
	arena_free(&s.arena);
}

/* Without a network package managers do not try again, unless a line of the policy says so. */
static void test_retries(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES("npm_config_cache=/c"));
	check(&s, LINES("npm_config_cache=/c", "npm_config_fetch_retries=0"));
	start(&s, LINES("PIP_CACHE_DIR=/c", "CARGO_HOME=/d"));
	check(&s,
		LINES("PIP_CACHE_DIR=/c", "PIP_RETRIES=0", "CARGO_HOME=/d",
			"CARGO_NET_RETRY=0"));
	start(&s, LINES("npm_config_fetch_retries=5", "npm_config_cache=/c"));
	check(&s, LINES("npm_config_cache=/c", "npm_config_fetch_retries=5"));
	start(&s, LINES("npm_config_cache=/c", "-npm_config_fetch_retries"));
	check(&s, LINES("npm_config_cache=/c"));
	start(&s, LINES("npm_config_cache=/c"));
	s.policy.net = NET_ALLOW;
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	check(&s,
		LINES("npm_config_cache=/c", "npm_config_fetch_retry_mintimeout=1000",
			"npm_config_fetch_retry_maxtimeout=4000"));
	start(&s, LINES("npm_config_cache=/c"));
	s.policy.net = NET_HOST;
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	check(&s, LINES("npm_config_cache=/c"));
}

static void test_allowed(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES("PATH", "EMPTY", "ABSENT", "BYTES"));
	assert_string_equal(s.plan.path_env, "/usr/bin");
	check(&s, LINES("PATH=/usr/bin", "EMPTY=", "BYTES=\xff\n"));
	start(&s, LINES("LC_*"));
	check(&s, LINES("LC_ALL=C", "LC_TIME=de_DE"));
	start(&s, LINES("*_*_*_*_*"));
	check(&s, LINES());
}

static void test_globs(void **state)
{
	static const struct {
		const char *glob;
		bool matches; /* LC_TIME */
	} cases[] = { { "LC_TIME", true }, { "LC_TIM", false }, { "LC_TIMES", false },
		{ "*", true }, { "**", true }, { "L*", true }, { "*E", true },
		{ "L*_*E", true }, { "*T*M*", true }, { "*M*T*", false }, { "LC_TIME*", true },
		{ "*LC_TIME", true }, { "LC_?IME", false }, { "lc_time", false },
		{ "", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct session s;

		start(&s, LINES(cases[i].glob));
		if ((plan_find_env(&s.plan, "LC_TIME") != NULL) != cases[i].matches)
			fail_msg("%s", cases[i].glob);
		arena_free(&s.arena);
	}
}

static void test_order(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES("A=1", "A=2", "B=1", "-B", "C=1", "-*", "C=2", "-D", "D=1"));
	check(&s, LINES("C=2", "D=1"));
	start(&s, LINES("PATH", "PATH=/opt/bin"));
	check(&s, LINES("PATH=/opt/bin"));
	start(&s, LINES("PATH=/opt/bin", "PATH"));
	check(&s, LINES("PATH=/usr/bin"));
	/* Of a name that is there twice getenv(3) gives the first; only one can get in. */
	start(&s, LINES("TWICE"));
	check(&s, LINES("TWICE=2"));
}

static void test_whole_caller(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES("*"));
	assert_string_equal(plan_find_env(&s.plan, "TMPDIR"), "/tmp/carrel-x/scratch/tmp");
	assert_string_equal(plan_find_env(&s.plan, "CARREL_SESSION"), "x");
	for (size_t i = 0; i < s.plan.env_count; i++) {
		assert_non_null(strchr(s.plan.envp[i], '='));
		assert_true(s.plan.envp[i][0] != '=');
		/* Init wipes the caller's own block. */
		for (size_t j = 0; caller[j]; j++)
			assert_ptr_not_equal(s.plan.envp[i], caller[j]);
	}
	arena_free(&s.arena);
}

static void test_scratch_env(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES("WORK=/mine"));
	s.scratch_envs[0].word = "WORK";
	s.scratch_envs[1].word = "OUT";
	s.policy.scratch_env_count = 2;
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	assert_string_equal(plan_find_env(&s.plan, "WORK"), "/tmp/carrel-x/scratch");
	assert_string_equal(plan_find_env(&s.plan, "OUT"), "/tmp/carrel-x/scratch");
	assert_null(plan_env_rule(&s.plan, "WORK=/tmp/carrel-x/scratch"));
	assert_int_equal(s.plan.env_count, 8);
	arena_free(&s.arena);
}

/* The line that is named for a variable is the one it came from. */
static void test_rule(void **state)
{
	static const struct {
		const char *name;
		unsigned line;
	} cases[] = { { "PATH", 1 }, { "LC_ALL", 4 }, { "LC_TIME", 3 }, { "HOME", 5 } };
	struct session s;

	(void)state;
	start(&s, LINES("PATH", "HOME=/x", "LC_*", "LC_ALL=C.UTF-8", "HO*", "-OTHER"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *value = plan_find_env(&s.plan, cases[i].name);

		assert_non_null(value);
		const char *entry = value - strlen(cases[i].name) - 1;
		const struct env_rule *rule = plan_env_rule(&s.plan, entry);
		assert_non_null(rule);
		assert_int_equal(rule->source.line, cases[i].line);
	}
	arena_free(&s.arena);
	/* A glob that the caller has nothing for is not where a set value came from. */
	start(&s, LINES("NEW=1", "NE*"));
	assert_int_equal(plan_env_rule(&s.plan, "NEW=1")->source.line, 1);
	arena_free(&s.arena);
}

static void test_cwd(void **state)
{
	struct session s;

	(void)state;
	start(&s, LINES());
	assert_string_equal(s.plan.cwd, "/home/u/ws/sub");
	s.facts.cwd = "/home/u/wsx";
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	assert_string_equal(s.plan.cwd, "/home/u/ws");
	s.facts.cwd = NULL;
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	assert_string_equal(s.plan.cwd, "/home/u/ws");
	s.policy.cwd.value = "/usr";
	assert_int_equal(plan_environment(&s.plan, &s.e), 0);
	assert_string_equal(s.plan.cwd, "/usr");
	assert_string_equal(plan_find_env(&s.plan, "PWD"), "/usr");
	arena_free(&s.arena);
}

static void test_full(void **state)
{
	struct session s;
	struct arena small;

	(void)state;
	start(&s, LINES("*"));
	assert_int_equal(arena_init(&small, 64), 0);
	s.plan.arena = &small;
	small.used = small.size;
	assert_true(plan_environment(&s.plan, &s.e) < 0);
	assert_int_equal(s.e.code, ERROR_LIMIT);
	arena_free(&small);
	arena_free(&s.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_by_itself),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_tmpdir),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_whole_caller),
		cmocka_unit_test(test_scratch_env),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_cwd),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
