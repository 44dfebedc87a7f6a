/*
 * report_test.c - the report as a document: written for every kind of ending, read back by another
 * JSON reader and held against docs/report.schema.json by tests/lib/validate_report.py.
 *
 * Runs in: the unit tests, each in a directory of its own.
 */
/* ctest: sanitized=only cost=20 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/report/report.h"

#define VALIDATOR CARREL_SOURCE_DIR "/tests/lib/validate_report.py"
#define ODD "odd \xff\xed\xa0\x80\n\"\\\xc3\xa9\x1b[31m"

static const char *const plain_command[] = { "make", "-j2", "", NULL };

/* --- a directory for each test ---------------------------------------------------------------- */

static int enter_directory(void **state)
{
	char *path = strdup("/tmp/carrel-report-test-XXXXXX");

	*state = path;
	return path && mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

/* rmdir(2) shows that nothing but the named files was left. */
static int leave_directory(void **state)
{
	char *path = *state;

	(void)unlink("report.json");
	(void)unlink("argv");
	int r = chdir("/") == 0 ? rmdir(path) : -1;
	free(path);
	return r;
}

/* Runs the validator with up to two options; true where it is content. */
static bool validator_agrees(const char *first, const char *second, const char *third)
{
	const char *const argv[] = { VALIDATOR, first, second, third, NULL };
	char *const env[] = { NULL };
	pid_t pid;
	int status;

	if (posix_spawn(&pid, VALIDATOR, NULL, NULL, (char *const *)(uintptr_t)argv, env) != 0)
		return false;
	if (waitpid(pid, &status, 0) != pid)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void write_report(const struct report *r)
{
	struct report_file f = { 0 };
	struct error e = { 0 };

	assert_int_equal(report_open("report.json", NULL, &f, &e), 0);
	assert_int_equal(report_write(&f, r, &e), 0);
	assert_int_equal(e.code, ERROR_NONE);
}

static size_t read_report(char *ret_text, size_t size)
{
	autofd int fd = fd_open_at(AT_FDCWD, "report.json", O_RDONLY, 0);

	assert_true(fd >= 0);
	ssize_t n = fd_read_file(fd, ret_text, size - 1);
	assert_true(n > 0);
	return (size_t)n;
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

/* The report is valid and has these parts. */
static void expect(const struct report *r, const char *const *parts)
{
	char text[16384];

	write_report(r);
	assert_true(validator_agrees("report.json", NULL, NULL));
	(void)read_report(text, sizeof(text));
	for (; *parts; parts++)
		assert_contains(text, *parts);
}

/* A session in which everything is known. */
static struct report full_report(void)
{
	static const struct report_quarantine moved[] = { { "/w/.git/hooks", "/t/q/1", 1,
								  NULL },
		{ "/w/" ODD, "/t/q/" ODD, 1000, "0123456789ab" } };
	static const struct report_promotion promoted[] = {
		{ .source = ODD,
			.destination = "/w/" ODD,
			.how = "renamed",
			.files = 2,
			.bytes = 9 },
		{ .source = "a", .destination = "/w/a", .errnum = EEXIST, .why = "it exists" },
	};
	struct report r;

	report_init(&r, plain_command);
	r.session = "0123456789abcdef";
	r.started = REPORT_STARTED_YES;
	r.end = REPORT_END_STATUS;
	r.status = 3;
	r.exit_status = 3;
	r.wall_time_known = r.usage_known = true;
	r.wall_us = 1500000;
	r.user_us = 700001;
	r.system_us = UINT64_MAX;
	r.max_rss_bytes = 4096 * 1024;
	r.limits_known = true;
	r.pids_by = "cgroup";
	r.figures = (struct cgroup_figures){ 1 << 20, 2, 0, 77, -1, -1, 3, 1 };
	r.identity = REPORT_IDENTITY_PRIVILEGED;
	r.kernel_uid = r.kernel_gid = 4294967294U;
	for (unsigned i = 0; i < WALL_COUNT; i++)
		report_wall(&r, (enum wall)i, WALL_ON, NULL);
	r.landlock_abi = 7;
	r.policy_known = true;
	r.profile = "agent";
	memset(r.policy_digest, 0xa5, sizeof(r.policy_digest));
	r.workspace = "/w";
	r.workspace_mode = WORKSPACE_RO;
	r.scratch = "/tmp/carrel-0123456789abcdef/scratch";
	r.scratch_files = 12;
	r.scratch_bytes = 34567;
	r.promoted = promoted;
	r.promoted_count = 2;
	static const struct report_covered covered[] = { { "/w/" ODD, 3, 812, false },
		{ "/home/gone", 1, 90, true } };
	static const struct report_breach breaches[] = { { "/w/x", ODD, 77 },
		{ NULL, "", 4194304 } };

	r.covered = covered;
	r.covered_count = 2;
	r.breaches = breaches;
	static const struct report_network_name names[] = {
		{ .name = "example.org",
			.port = 443,
			.decision = "allowed",
			.times = 2,
			.rule = "allow example.org:443",
			.bytes_in = 7,
			.bytes_out = 8 },
		{ .name = ODD, .decision = "failed", .times = 1, .errnum = 111 },
	};
	r.network_known = true;
	r.network_rules = 3;
	r.network_untold = 1;
	r.network_log_lost = 2;
	r.network_names = names;
	r.network_name_count = 2;
	r.breach_count = 2;
	r.quarantined = moved;
	r.quarantined_count = 2;
	r.stdio[0] = REPORT_STREAM_CLOSED;
	r.stdio[1] = REPORT_STREAM_RELAY;
	r.stdio[2] = REPORT_STREAM_DIRECT;
	r.output[1] = (struct report_output){ .relayed = true,
		.characters = 7,
		.bytes = 9,
		.omitted = 5,
		.truncated = true,
		.path = "/t/" ODD,
		.saved_bytes = 8,
		.errnum = ENOSPC };
	r.output[2].relayed = true;
	r.teardown = REPORT_TEARDOWN_REMOVED;
	return r;
}

/* --- endings ---------------------------------------------------------------------------------- */

static void test_success(void **state)
{
	struct report r = full_report();

	(void)state;
	expect(&r,
		(const char *const[]){ "{\"schema\":1,\"carrel\":\"" CARREL_VERSION "\",",
			"\"session\":\"0123456789abcdef\"",
			"\"command\":[\"make\",\"-j2\",\"\"]",
			"\"started\":\"yes\",\"status\":3,\"signal\":null,\"exit_"
			"status\":3",
			"\"timed_out\":false,\"limit\":null",
			"\"system_us\":18446744073709551615", "\"max_rss_bytes\":4194304",
			"\"kernel_uid\":4294967294",
			"\"landlock\":{\"state\":\"on\",\"why\":null,\"abi\":7}",
			"\"digest\":\"sha256:a5a5", "\"mode\":\"ro\"",
			"\"how\":\"renamed\",\"files\":2,\"bytes\":9,\"errno\":null,"
			"\"errno_name\":null,\"text\":null}",
			"\"how\":null,\"files\":0,\"bytes\":0,\"errno\":17,"
			"\"errno_name\":\"EEXIST\",\"text\":\"it exists\"}]",
			"\"times\":3,\"microseconds\":812,\"gone\":false}",
			"{\"path\":\"/home/gone\",\"times\":1,\"microseconds\":90,\"gone\":true}]",
			"{\"path\":null,\"name\":\"\",\"pid\":4194304}]",
			"\"stdio\":{\"stdin\":\"closed\",\"stdout\":\"relay\",\"stderr\":"
			"\"direct\"}",
			"\"output\":{\"merged\":false,\"stdout\":{\"characters\":7,\"bytes\":9,"
			"\"omitted\":5,\"truncated\":true,\"path\":\"/t/odd",
			"\"saved_bytes\":8,\"errno\":28,\"errno_name\":\"ENOSPC\"},"
			"\"stderr\":{\"characters\":0,\"bytes\":0,\"omitted\":0,"
			"\"truncated\":false,\"path\":null,\"saved_bytes\":0,\"errno\":null,"
			"\"errno_name\":null}}",
			"\"teardown\":{\"result\":\"removed\",\"remaining\":0,\"path\":"
			"null,",
			"\"error\":null}\n", NULL });
}

/* One more or one fewer member, anywhere in the document, and the schema refuses it. */
static void test_schema_is_strict(void **state)
{
	struct report r = full_report();
	struct error e = { 0 };

	(void)state;
	(void)error_set(&e, ERROR_APPLY, "launch", EPERM, "/w", "cannot attach");
	error_hint(&e, "try something else");
	r.end = REPORT_END_SIGNAL;
	r.signal = SIGKILL;
	r.error = &e;
	write_report(&r);
	assert_true(validator_agrees("--strict", "report.json", NULL));
}

static void test_signal(void **state)
{
	struct report r = full_report();

	(void)state;
	r.end = REPORT_END_SIGNAL;
	r.signal = SIGSEGV;
	r.exit_status = 128 + SIGSEGV;
	expect(&r,
		(const char *const[]){
			"\"status\":null,\"signal\":{\"number\":11,\"name\":\"SIGSEGV\"},"
			"\"exit_status\":139",
			NULL });
	r.signal = 64;
	r.exit_status = 192;
	expect(&r, (const char *const[]){ "\"signal\":{\"number\":64,\"name\":null}", NULL });
}

static void test_limits(void **state)
{
	static const struct {
		enum report_limit limit;
		const char *text;
	} cases[] = {
		{ REPORT_LIMIT_TIMEOUT, "\"timed_out\":true,\"limit\":\"timeout\"" },
		{ REPORT_LIMIT_CPU_TIME, "\"timed_out\":false,\"limit\":\"cpu-time\"" },
		{ REPORT_LIMIT_FILE_SIZE, "\"timed_out\":false,\"limit\":\"file-size\"" },
		{ REPORT_LIMIT_OUTPUT, "\"timed_out\":false,\"limit\":\"output\"" },
		{ REPORT_LIMIT_MEMORY, "\"timed_out\":false,\"limit\":\"memory\"" },
		{ REPORT_LIMIT_PIDS, "\"timed_out\":false,\"limit\":\"pids\"" },
	};
	struct report r = full_report();

	(void)state;
	r.end = REPORT_END_SIGNAL;
	r.signal = SIGTERM;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.limit = cases[i].limit;
		expect(&r, (const char *const[]){ cases[i].text, NULL });
	}
}

/* What the kernel did not say is null, and nothing at all where nothing was asked for. */
static void test_figures(void **state)
{
	struct report r = full_report();

	(void)state;
	expect(&r,
		(const char *const[]){
			"\"limits\":{\"pids_by\":\"cgroup\",\"memory_peak_bytes\":1048576,"
			"\"oom_kills\":0,\"cpu_us\":77,\"throttled_us\":null,"
			"\"throttled_periods\":null,\"tasks_peak\":3,\"tasks_refused\":1}",
			NULL });
	r.pids_by = "rlimit";
	expect(&r, (const char *const[]){ "\"limits\":{\"pids_by\":\"rlimit\"", NULL });
	r.pids_by = NULL;
	expect(&r, (const char *const[]){ "\"limits\":{\"pids_by\":null", NULL });
	r.limits_known = false;
	expect(&r, (const char *const[]){ "\"limits\":null", NULL });
}

static void test_never_started(void **state)
{
	struct report r;
	struct error e = { 0 };

	(void)state;
	report_init(&r, plain_command);
	(void)error_set(&e, ERROR_WORKSPACE, "facts", ENOENT, "/missing", "no workspace");
	r.error = &e;
	expect(&r,
		(const char *const[]){ "\"session\":null",
			"\"started\":\"no\",\"status\":null,\"signal\":null,\"exit_"
			"status\":125",
			"\"wall_us\":null", "\"max_rss_bytes\":null", "\"identity\":null",
			"\"user-namespace\":{\"state\":\"off\",\"why\":\"not reached\"}",
			"\"policy\":null,\"workspace\":null,\"scratch\":null,"
			"\"network\":null,\"published\":[],\"promoted\":[],\"covered_again\":[],\"breaches\":[],\"quarantined\":[]",
			"\"output\":null", "\"teardown\":null",
			"\"error\":{\"code\":\"workspace\",\"stage\":\"facts\","
			"\"operation\":null,"
			"\"errno\":2,\"errno_name\":\"ENOENT\",\"text\":\"no workspace\","
			"\"on\":\"/missing\",\"hint\":null}",
			NULL });
}

/* What was measured or seen before a command failed to start is not said of the command. */
static void test_not_started_has_no_outcome(void **state)
{
	struct report r = full_report();

	(void)state;
	r.started = REPORT_STARTED_NO;
	r.exit_status = 127;
	expect(&r,
		(const char *const[]){ "\"started\":\"no\",\"status\":null,\"signal\":null",
			"\"wall_us\":null,\"user_us\":null,\"system_us\":null", NULL });
}

static void test_unknown(void **state)
{
	struct report r = full_report();
	struct error e = { 0 };

	(void)state;
	r.started = REPORT_STARTED_UNKNOWN;
	r.end = REPORT_END_NONE;
	r.usage_known = false;
	(void)error_set(&e, ERROR_PROTOCOL, "supervise", 0, NULL, "init was lost");
	e.op = 0;
	r.error = &e;
	expect(&r,
		(const char *const[]){
			"\"started\":\"unknown\",\"status\":null,\"signal\":null",
			"\"wall_us\":1500000,\"user_us\":null",
			"\"operation\":0,\"errno\":null,\"errno_name\":null", "\"on\":null",
			NULL });
}

static void test_no_command(void **state)
{
	static const char *const none[] = { NULL };
	struct report r;

	(void)state;
	report_init(&r, none);
	expect(&r, (const char *const[]){ "\"command\":[]", NULL });
}

/* --- every word ------------------------------------------------------------------------------- */

static void test_every_error_code(void **state)
{
	(void)state;
	for (int code = ERROR_USAGE; code <= ERROR_INTERNAL; code++) {
		struct report r;
		struct error e = { 0 };

		report_init(&r, plain_command);
		(void)error_set(&e, (enum error_code)code, "close", 4000, ODD, "%s", ODD);
		r.error = &e;
		expect(&r,
			(const char *const[]){ error_code_name((enum error_code)code),
				"\"errno\":4000,\"errno_name\":null", NULL });
	}
}

static void test_every_teardown(void **state)
{
	struct report r = full_report();

	(void)state;
	r.teardown_remaining = 2;
	r.teardown_path = "/tmp/" ODD;
	r.teardown_errno = EPERM;
	for (int i = REPORT_TEARDOWN_REMOVED; i <= REPORT_TEARDOWN_FAILED; i++) {
		r.teardown = (enum report_teardown)i;
		r.scratch_kept = r.scratch_truncated = i == REPORT_TEARDOWN_KEPT;
		r.identity = REPORT_IDENTITY_USER;
		r.workspace_mode =
			i == REPORT_TEARDOWN_KEPT ? WORKSPACE_OVERLAY : WORKSPACE_DIRECT;
		r.stdio[0] = r.stdio[1] =
			i == REPORT_TEARDOWN_KEPT ? REPORT_STREAM_PTY : REPORT_STREAM_NONE;
		expect(&r,
			(const char *const[]){ "\"remaining\":2",
				"\"errno\":1,\"errno_name\":\"EPERM\"", NULL });
	}
}

static void test_every_wall_state(void **state)
{
	struct report r = full_report();

	(void)state;
	report_wall(&r, WALL_LANDLOCK, WALL_UNAVAILABLE, "the kernel has no Landlock");
	report_wall(&r, WALL_KEYRING, WALL_OFF, "the policy says degraded");
	report_wall(&r, WALL_MOUNTS, WALL_ON, "in place");
	r.landlock_abi = 0;
	expect(&r,
		(const char *const[]){ "\"landlock\":{\"state\":\"unavailable\","
				       "\"why\":\"the kernel has no Landlock\",\"abi\":null}",
			"\"keyring\":{\"state\":\"off\",\"why\":\"the policy says "
			"degraded\"}",
			"\"mounts\":{\"state\":\"on\",\"why\":\"in place\"}", NULL });
}

/* docs/report.md has a line for every field and every word of the schema. */
static void test_documented(void **state)
{
	(void)state;
	assert_true(validator_agrees("--docs", NULL, NULL));
}

/* --- bytes and sizes -------------------------------------------------------------------------- */

/* Writes @command to "argv" as it is, for the validator to compare. */
static void write_argv(const char *const *command)
{
	autofd int fd = fd_open_at(AT_FDCWD, "argv", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	for (; *command; command++)
		assert_int_equal(fd_write_all(fd, *command, strlen(*command) + 1), 0);
}

static void expect_command(struct report *r, const char *const *command)
{
	r->command = command;
	write_argv(command);
	write_report(r);
	assert_true(validator_agrees("--command=argv", "report.json", NULL));
}

static void test_any_bytes(void **state)
{
	struct report r = full_report();
	char every[256];
	const char *const command[] = { "/bin/sh", every, ODD, "\xed\xb3\xbf", "\xf0\x9f\x98",
		NULL };

	(void)state;
	for (int i = 0; i < 255; i++)
		every[i] = (char)(unsigned char)(i + 1);
	every[255] = '\0';
	r.workspace = r.scratch = r.session = r.profile = every;
	expect_command(&r, command);
}

/* The validator's control: another command is not taken for this one. */
static void test_other_command_is_noticed(void **state)
{
	struct report r = full_report();

	(void)state;
	write_argv((const char *const[]){ "make", "-j3", "", NULL });
	write_report(&r);
	assert_false(validator_agrees("--command=argv", "report.json", NULL));
}

static void test_huge(void **state)
{
	enum { WORDS = 3000, LONG = 120 * 1024 };
	struct report r = full_report();
	const char **command = calloc(WORDS + 2, sizeof(*command));
	char *word = malloc(LONG + 1);

	(void)state;
	assert_non_null(command);
	assert_non_null(word);
	for (int i = 0; i < LONG; i++)
		word[i] = (char)(i % 3 ? 'a' + i % 26 : 0xff - i % 100);
	word[LONG] = '\0';
	command[0] = word;
	for (int i = 1; i <= WORDS; i++)
		command[i] = ODD;
	expect_command(&r, command);
	free(word);
	free(command);
}

int main(void)
{
#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, enter_directory, leave_directory)
	const struct CMUnitTest tests[] = {
		TEST(test_success),
		TEST(test_schema_is_strict),
		TEST(test_signal),
		TEST(test_limits),
		TEST(test_figures),
		TEST(test_never_started),
		TEST(test_not_started_has_no_outcome),
		TEST(test_unknown),
		TEST(test_no_command),
		TEST(test_every_error_code),
		TEST(test_every_teardown),
		TEST(test_every_wall_state),
		TEST(test_documented),
		TEST(test_any_bytes),
		TEST(test_other_command_is_noticed),
		TEST(test_huge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
