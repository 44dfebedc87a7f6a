/*
 * policy_parse_test.c - the language of policy files and of the command line: what it accepts, and
 * for everything else the place, the reason and the nearest word.
 *
 * Runs in: the unit tests.
 */
/* ctest: as=any */
#include "policy_fixture.h"

struct wrong {
	const char *text;
	unsigned line;
	const char *what;
	const char *hint;
};

static const struct wrong wrong_lines[] = {
	/* names */
	{ "raed /x", 1, "unknown setting 'raed'", "did you mean 'read'?" },
	{ "read /a\n\n# x\nwork /x", 4, "unknown setting 'work'", "did you mean 'workspace'?" },
	{ "--hide /x", 1, "unknown setting '--hide'", "did you mean 'hide'?" },
	{ "Read /x", 1, "unknown setting 'Read'", "did you mean 'read'?" },
	{ "mem 1G", 1, "unknown setting 'mem'", "did you mean 'memory'?" },
	{ "pid 10", 1, "unknown setting 'pid'", "did you mean 'pids'?" },
	{ "read=/x", 1, "unknown setting 'read=/x'", NULL },
	{ "xyzzyxyzzy 1", 1, "unknown setting", "" },
	/* arguments */
	{ "read", 1, "'read' needs PATH", NULL },
	{ "read   # nothing", 1, "'read' needs PATH", NULL },
	{ "read \"\"", 1, "an empty path", NULL },
	{ "timeout 1 2", 1, "takes one argument; '2' is too much", NULL },
	{ "workspace /a /b", 1, "takes one argument", NULL },
	{ "keep maybe", 1, "'keep' is followed by yes, no or nothing, not 'maybe'", NULL },
	{ "keep yes yes", 1, "more than one word", NULL },
	{ "workspace-mode rw", 1, "unknown word 'rw'", "direct|ro|overlay" },
	{ "workspace-mode direc", 1, "unknown word 'direc'", "did you mean 'direct'?" },
	{ "net alow", 1, "unknown word 'alow'", "none|allow|host" },
	{ "tty maybe", 1, "unknown word 'maybe'", "auto|yes|no" },
	/* numbers */
	{ "memory 0", 1, "'0' is not a size", NULL },
	{ "memory 1.5G", 1, "'1.5G' is not a size", NULL },
	{ "memory 99999999999T", 1, "'99999999999T' is too large", NULL },
	{ "pids 0", 1, "'0' is not a whole number", NULL },
	{ "pids 1.5", 1, "'1.5' is not a whole number", NULL },
	{ "pids 99999999999999999999", 1, "too large", NULL },
	{ "cpus 0", 1, "'0' is not a number", "" },
	{ "cpus 0.009", 1, "'0.009' is less than 0.01", NULL },
	{ "cpus 1.0001", 1, "'1.0001' is not a number", NULL },
	{ "cpus half", 1, "'half' is not a number", NULL },
	{ "cpus 99999999999999999999", 1, "too large", NULL },
	{ "promote a", 1, "'a' has no directory to go to", NULL },
	{ "promote a:", 1, "'a' has no directory to go to", NULL },
	{ "promote a:b:c", 1, "more than one colon", NULL },
	{ "promote '':b", 1, "an empty path", NULL },
	{ "promote **:b", 1, "'**' is not understood", NULL },
	{ "promote a:b a:c", 1, "two lines 'promote' contradict each other about '$SCRATCH/a'",
		NULL },
	{ "scratch-size 0", 1, "'0' is not a size", NULL },
	{ "scratch-size ''", 1, "'' is not a size", NULL },
	{ "scratch-size -1", 1, "'-1' is not a size", NULL },
	{ "scratch-size 12x", 1, "'12x' is not a size", NULL },
	{ "scratch-size 18446744073709551616", 1, "is too large", NULL },
	{ "scratch-size '1 K'", 1, "is not a size", NULL },
	{ "file-size 123bogus", 1, "is not a size", NULL },
	{ "timeout 0", 1, "is not a duration", NULL },
	{ "timeout 5x", 1, "is not a duration", NULL },
	{ "grace -1s", 1, "is not a duration", NULL },
	{ "cpu-time 999999999999d", 1, "is too large", NULL },
	{ "open-files 0", 1, "is not a whole number", NULL },
	{ "open-files 1", 1, "'1' is less than 16, which carrel itself needs inside", NULL },
	{ "open-files 15", 1, "'15' is less than 16", NULL },
	{ "open-files many", 1, "is not a whole number", NULL },
	{ "output-budget ''", 1, "'' is not a number of characters, 0 or more", "" },
	{ "output-budget -1", 1, "'-1' is not a number of characters", NULL },
	{ "output-budget 12x", 1, "'12x' is not a number of characters", NULL },
	{ "output-budget 20K", 1, "'20K' is not a number of characters", NULL },
	{ "output-budget 16777217", 1, "'16777217' is too large", "at most 16777216" },
	{ "output-budget 18446744073709551616", 1, "is too large", NULL },
	{ "output-max 0", 1, "'0' is not a size", NULL },
	{ "output-max ''", 1, "'' is not a size", NULL },
	{ "output-max -1", 1, "'-1' is not a size", NULL },
	{ "output-max 12x", 1, "'12x' is not a size", NULL },
	{ "tmpfs /x:0", 1, "is not a size", NULL },
	/* paths */
	{ "read $FOO/x", 1, "unknown name $FOO", "$XDG_RUNTIME_DIR" },
	{ "read ${HOME/x", 1, "no name behind '$'", "\\$" },
	{ "read /a$", 1, "no name behind '$'", NULL },
	{ "read ${}", 1, "no name behind '$'", NULL },
	{ "read $HOMER/x", 1, "unknown name $HOMER", NULL },
	{ "read ~root/x", 1, "only ~ and ~/", "./~NAME" },
	{ "hide /a/**/b", 1, "'**' is not understood", NULL },
	{ "hide /a/[bc", 1, "'[' without ']'", NULL },
	{ "hide /a/[b/c]", 1, "'[' without ']'", NULL },
	{ "bind /a", 1, "has no destination", NULL },
	{ "bind /a:/b:rx", 1, "'rx' is neither ro nor rw", "\\:" },
	{ "bind /a:/b:ro:x", 1, "is neither ro nor rw", NULL },
	{ "bind :/b", 1, "an empty path", NULL },
	{ "bind /a:", 1, "an empty path", NULL },
	{ "dev /etc/passwd", 1, "is not a node below /dev", NULL },
	{ "dev /dev/../etc", 1, "is not a node below /dev", NULL },
	{ "dev kvm", 1, "is not a node below /dev", NULL },
	/* variables */
	{ "env 1A=x", 1, "'1A=x' is not the name of a variable", NULL },
	{ "env =x", 1, "is not the name of a variable", NULL },
	{ "env L*=x", 1, "is not the name of a variable", NULL },
	{ "env A=$NO", 1, "unknown name $NO", NULL },
	{ "unsetenv A=b", 1, "is not the name of a variable", NULL },
	{ "scratch-env 'A B'", 1, "is not the name of a variable", NULL },
	{ "scratch-env A*", 1, "is not the name of a variable", NULL },
	{ "env CARREL_SCRATCH=/x", 1, "'CARREL_SCRATCH' is carrel's own to set",
		"of your own" },
	{ "env A B\nenv CARREL_X", 2, "'CARREL_X' is carrel's own to set", NULL },
	{ "env PWD=/", 1, "'PWD' is carrel's own to set", "'cwd'" },
	{ "unsetenv CARREL_SESSION", 1, "'CARREL_SESSION' is carrel's own to set", NULL },
	{ "scratch-env CARREL_SESSION", 1, "'CARREL_SESSION' is carrel's own to set",
		"in any case" },
	{ "scratch-env PATH", 1, "'PATH' cannot name the scratch", "no command" },
	{ "env A=1\nscratch-env A", 2, "'scratch-env' contradicts 'env' about 'A'",
		"the other line is /p/policy:1" },
	{ "scratch-env A\nunsetenv A", 2, "'unsetenv' contradicts 'scratch-env'", NULL },
	/* words */
	{ "require landlok", 1, "unknown wall 'landlok'", "did you mean 'landlock'?" },
	{ "require seccomp", 1, "unknown wall 'seccomp'", NULL },
	{ "profile hide", 1, "'hide' is a list, not a profile", "include hide" },
	{ "include open", 1, "'open' is a profile, not a list", "profile open" },
	{ "include hdie", 1, "unknown list 'hdie'", "hide" },
	{ "syscalls strct", 1, "unknown filter 'strct'", "did you mean 'strict'?" },
	{ "syscalls ../x", 1, "is not the name of a filter", NULL },
	{ "syscall alow ptrace", 1, "unknown action 'alow'", "did you mean 'allow'?" },
	{ "syscall allow", 1, "'syscall' needs allow|errno NAME|GROUP", NULL },
	{ "syscall allow a/b", 1, "names no system call", NULL },
	{ "syscall errno ptrace when x", 1, "only 'if EXPR' can follow", NULL },
	{ "syscall errno ptrace if", 1, "only 'if EXPR' can follow", NULL },
	{ "profile agnt", 1, "unknown profile 'agnt'", "did you mean 'agent'?" },
	{ "profile default.policy", 1, "unknown profile", NULL },
	{ "lock hide", 1, "only the system policy can have 'lock'", "/etc/carrel/policy" },
	{ "report fd:x", 1, "is not a descriptor", NULL },
	{ "report fd:-1", 1, "is not a descriptor", NULL },
	{ "report fd:99999999999", 1, "is not a descriptor", NULL },
	/* quoting and bytes */
	{ "read \"/a", 1, "a quotation (\") that is not closed", NULL },
	{ "read '/a", 1, "a quotation (') that is not closed", NULL },
	{ "read /a\\", 1, "a backslash at the end of the line", NULL },
	{ "read /a\\q", 1, "unknown escape '\\q'", NULL },
	{ "read /a\\x4", 1, "\\x needs two hexadecimal digits", NULL },
	{ "read /a\\x00", 1, "\\x needs two hexadecimal digits, not 00", NULL },
	{ "\xef\xbb\xbfread /a", 1, "the file begins with a byte order mark", "without it" },
	{ "read /a\n\xef\xbb\xbfread /a", 2, "unknown setting '\xef\xbb\xbfread'", NULL },
	{ "read /a\r\nread /b", 1, "a control character (0x0d)", "plain newlines" },
	{ "read /a\x01", 1, "a control character (0x01)", "\\x01" },
	{ "read '/a\x7f'", 1, "a control character (0x7f)", "\\x7f" },
	/* twice, and against one another */
	{ "timeout 5\nread /a\ntimeout 5", 3, "'timeout' is given twice",
		"the other line is /p/policy:1" },
	{ "keep\nkeep no", 2, "'keep' is given twice", "/p/policy:1" },
	{ "profile agent\nprofile open", 2, "'profile' is given twice", "/p/policy:1" },
	{ "read /a\nwrite /a/", 2, "'write' contradicts 'read' about '/a'", "/p/policy:1" },
	{ "hide ~/x\nread $HOME/x", 2, "'read' contradicts 'hide' about '$HOME/x'",
		"/p/policy:1" },
	{ "protect /a\nhide //a", 2, "'hide' contradicts 'protect' about '/a'", "/p/policy:1" },
	{ "bind /a:/b\nread /b", 2, "'read' contradicts 'bind' about '/b'", "/p/policy:1" },
	{ "bind /a:/b\nbind /c:/b", 2, "two lines 'bind' contradict each other about '/b'",
		NULL },
	{ "bind /a:/b\nbind /a:/b:rw", 2, "two lines 'bind' contradict each other about '/b'",
		NULL },
	{ "tmpfs /b\ntmpfs /b:1M", 2, "two lines 'tmpfs' contradict each other about '/b'",
		NULL },
	{ "dev /dev/kvm\nhide /dev/kvm", 2, "contradicts 'dev'", NULL },
	{ "env A=1\nenv A=2", 2, "two lines 'env' contradict each other about 'A'",
		"/p/policy:1" },
	{ "env A\nunsetenv A", 2, "'unsetenv' contradicts 'env' about 'A'", NULL },
};

static void test_wrong_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(wrong_lines); i++) {
		const struct wrong *w = &wrong_lines[i];
		struct fixture f;
		char on[64];

		start(&f);
		add_text(&f, LAYER_USER, "/p/policy", w->text);
		(void)snprintf(on, sizeof(on), "/p/policy:%u", w->line);
		if (f.result == 0)
			fail_msg("accepted: %s", w->text);
		assert_fails(&f, ERROR_POLICY, on, w->what, w->hint);
		stop(&f);
	}
}

struct wrong_arguments {
	const char *argv[8];
	const char *on;
	const char *what;
	const char *hint;
};

static const struct wrong_arguments wrong_arguments[] = {
	{ { "--hid", "x" }, "--hid", "unknown option", "did you mean '--hide'?" },
	{ { "--work", "x" }, "--work", "unknown option", "did you mean '--workspace'?" },
	{ { "--jsn" }, "--jsn", "unknown option", "did you mean '--json'?" },
	{ { "-k" }, "-k", "unknown option", "two dashes" },
	{ { "-" }, "-", "unknown option", NULL },
	{ { "--no-read", "x" }, "--no-read", "unknown option", NULL },
	{ { "--no-" }, "--no-", "unknown option", NULL },
	{ { "--mem=1G" }, "--mem", "unknown option", "did you mean '--memory'?" },
	{ { "--memory=0" }, "--memory", "'0' is not a size", NULL },
	{ { "--cpus=0.001" }, "--cpus", "'0.001' is less than 0.01", NULL },
	{ { "--keep=yes" }, "--keep", "a flag takes no value", "--no-keep" },
	{ { "--no-keep=x" }, "--keep", "a flag takes no value", NULL },
	{ { "--read" }, "--read", "a value is missing", "--read PATH" },
	{ { "--read", "--", "cmd" }, "--read", "a value is missing", "--read PATH" },
	{ { "--read", "--keep" }, "--read", "a value is missing", "--read=VALUE" },
	{ { "--read=" }, "--read", "an empty path", NULL },
	{ { "--timeout", "0" }, "--timeout", "'0' is not a duration", NULL },
	{ { "--keep", "yes", "--", "true" }, "--keep", "'yes' would be the command",
		"--no-keep" },
	{ { "--keep", "yes", "--quiet", "true" }, "--keep", "'yes' would be the command",
		NULL },
	{ { "--no-keep", "no", "make" }, "--keep", "'no' would be the command", "behind --" },
	{ { "--syscall", "allow" }, "--syscall", "needs allow|errno NAME|GROUP", NULL },
	{ { "--syscall", "allow", "--keep" }, "--syscall", "needs allow|errno", NULL },
	{ { "--syscall=allow", "ptrace" }, "--syscall", "needs allow|errno", NULL },
	{ { "--syscall", "allow", "ptrace", "if", "arg0" }, "--syscall",
		"a part of one argument", "--syscall 'allow ptrace if EXPR'" },
	{ { "--env", "PWD=/elsewhere" }, "--env", "'PWD' is carrel's own to set", "cwd" },
	{ { "--env", "CARREL_SESSION=x" }, "--env", "carrel's own to set", NULL },
	{ { "--env", "CARREL_MINE" }, "--env", "carrel's own to set", NULL },
	{ { "-c" }, "--command", "a value is missing", "--command LINE" },
	{ { "-cx" }, "-cx", "unknown option", "two dashes" },
	{ { "--read", "/a", "--hide", "/a" }, "--hide",
		"'--hide' contradicts '--read' about '/a'", "keep one" },
	{ { "--lock", "hide" }, "--lock", "only the system policy can have 'lock'", NULL },
	{ { "--profile", "nope" }, "--profile", "unknown profile 'nope'", NULL },
	{ { "--read", "$FOO" }, "--read", "unknown name $FOO", NULL },
	{ { "--require", "x" }, "--require", "unknown wall", NULL },
	{ { "--syscall", "deny x" }, "--syscall", "unknown action 'deny'", "allow or errno" },
};

static void test_wrong_arguments(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(wrong_arguments); i++) {
		const struct wrong_arguments *w = &wrong_arguments[i];
		struct policy_verb_flag flags[] = { { .name = "json" },
			{ .name = "command", .letter = 'c', .placeholder = "LINE" } };
		struct fixture f;
		int count = 0;

		while (w->argv[count])
			count++;
		start(&f);
		f.result = policy_add_arguments(
			&f.policy, count, w->argv, 0, &f.resolver, flags, 2, &f.next, &f.e);
		if (f.result == 0)
			fail_msg("accepted: %s", w->argv[0]);
		assert_fails(&f, ERROR_USAGE, w->on, w->what, w->hint);
		assert_int_equal(f.next, -1);
		stop(&f);
	}
}

static void test_arguments(void **state)
{
	static const char *const argv[] = { "carrel", "run", "--read=/a=b", "--json", "--keep",
		"--env", "A=b=c", "--hide", "-x", "--", "cmd", "--read" };
	struct policy_verb_flag flag = { .name = "json" };
	struct fixture f;

	(void)state;
	start(&f);
	f.result = policy_add_arguments(
		&f.policy, COUNT(argv), argv, 2, &f.resolver, &flag, 1, &f.next, &f.e);
	assert_fine(&f);
	assert_int_equal(f.next, 10);
	assert_true(flag.given);
	expand(&f);
	assert_fine(&f);
	assert_non_null(find_path(&f.policy, "/a=b"));
	assert_int_equal(the_path(&f.policy, "/a=b")->source.line, 2);
	assert_non_null(find_path(&f.policy, "/home/u/ws/-x"));
	assert_string_equal(the_env(&f.policy, "A")->value, "b=c");
	assert_true(f.policy.keep.on);
	stop(&f);

	/* the first word without dashes ends the options; help ends the reading */
	start(&f);
	add_args(&f, ARGS("--quiet", "ls", "--bogus"));
	assert_fine(&f);
	assert_int_equal(f.next, 2);
	f.result = policy_add_arguments(&f.policy, 2, ARGS("--help", "--bogus"), 0, &f.resolver,
		NULL, 0, &f.next, &f.e);
	assert_int_equal(f.result, 1);
	f.result = policy_add_arguments(
		&f.policy, 1, ARGS("-h"), 0, &f.resolver, NULL, 0, &f.next, &f.e);
	assert_int_equal(f.result, 1);
	stop(&f);
}

/* Of two values on the command line the later counts; of lists all. */
static void test_later_arguments(void **state)
{
	static const char *const argv[] = { "--timeout=5", "--keep", "--env", "A=1", "--read",
		"/a", "--profile=open", "--timeout", "6", "--env", "A=2", "--unsetenv", "B",
		"--env", "B=3", "--read", "/b", "--no-keep", "--json", "--json", "-c", "one",
		"-c", "two", "--profile", "agent", "--syscall", "allow", "ptrace", "--syscall",
		"errno mkdir", "--env", "PWD", "yes", "x" };
	struct policy_verb_flag flags[] = { { .name = "json" },
		{ .name = "command", .letter = 'c', .placeholder = "LINE" } };
	struct fixture f;

	(void)state;
	start(&f);
	f.result = policy_add_arguments(
		&f.policy, COUNT(argv), argv, 0, &f.resolver, flags, 2, &f.next, &f.e);
	assert_fine(&f);
	assert_string_equal(argv[f.next], "yes");
	assert_string_equal(flags[1].value, "two");
	assert_string_equal(f.policy.passed_over, "PWD");
	expand(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.timeout_ms.value, 6000);
	assert_false(f.policy.keep.on);
	assert_string_equal(f.policy.profile.value, "agent");
	assert_non_null(find_path(&f.policy, "/a"));
	assert_non_null(find_path(&f.policy, "/b"));
	assert_string_equal(the_env(&f.policy, "A")->value, "2");
	assert_string_equal(the_env(&f.policy, "B")->value, "3");
	assert_int_equal(f.policy.syscall_rule_count, 2);
	assert_string_equal(f.policy.syscall_rules[0].text, "allow ptrace");
	stop(&f);

	start(&f); /* what carrel sets anyway, as the caller has it */
	f.resolver.pwd = "/by/a/link";
	add_args(&f, ARGS("--env", "PWD=/by/a/link"));
	assert_fine(&f);
	assert_string_equal(f.policy.passed_over, "PWD=/by/a/link");
	stop(&f);
}

struct word {
	const char *text;  /* behind `hide`, in a file or as an argument */
	const char *plain; /* what becomes of it */
	bool glob;
};

static const struct word file_words[] = {
	{ "/a", "/a", false },
	{ "\"/a b\"", "/a b", false },
	{ "'/a b'", "/a b", false },
	{ "/a\\ b", "/a b", false },
	{ "/a\\nb\\t\\x41\\xff", "/a\nb\tA\xff", false },
	{ "\"/a\\\"b\\\\c'\"", "/a\"b\\c'", false },
	{ "'/a\"\\n'", "/a\"\\n", false },
	{ "/a'b c'\"d e\"f", "/ab cd ef", false },
	{ "/a#b # comment", "/a#b", false },
	{ "\"/a # b\"", "/a # b", false },
	{ "caf\xc3\xa9/\xe9", "/p/caf\xc3\xa9/\xe9", false },
	{ "x", "/p/x", false },
	{ "./-x", "/p/-x", false },
	{ "../x/..", "/p/../x/..", false },
	{ "~", "/home/u", false },
	{ "~/x", "/home/u/x", false },
	{ "\\~/x", "/p/~/x", false },
	{ "'~/x'", "/p/~/x", false },
	{ "./~x", "/p/~x", false },
	{ "$HOME", "/home/u", false },
	{ "${HOME}", "/home/u", false },
	{ "\"$HOME/a b\"", "/home/u/a b", false },
	{ "${HOME}x", "/home/ux", false },
	{ "/mnt$WORKSPACE", "/mnt/home/u/ws", false },
	{ "'/$HOME'", "/$HOME", false },
	{ "/\\$HOME", "/$HOME", false },
	{ "$WORKSPACE/$SCRATCH", "/home/u/ws/tmp/carrel-1/scratch", false },
	{ "//a///b/./c/.//", "/a/b/c", false },
	{ "/", "/", false },
	{ "/.", "/", false },
	{ "/./", "/", false },
	{ "/..", "/..", false },
	{ "/a*b", "/a*b", true },
	{ "/a?/[!b]", "/a?/[!b]", true },
	{ "/a/[]x]", "/a/[]x]", true },
	{ "\"/a*b\"", "/a*b", false },
	{ "/a\\*b", "/a*b", false },
	{ "/a\\*b*", "/a\\*b*", true },
	{ "'/a\\'*", "/a\\\\*", true },
	{ "/a:b", "/a:b", false },
};

static const struct word argument_words[] = {
	{ "/a b", "/a b", false },
	{ "/a\nb\"'#", "/a\nb\"'#", false },
	{ "\xff\xfe", "/home/u/ws/\xff\xfe", false },
	{ "x", "/home/u/ws/x", false },
	{ "/a\\b", "/a\\b", false },
	{ "/a\\\\b", "/a\\\\b", false },
	{ "/a\\$HOME", "/a$HOME", false },
	{ "/a\\\\$b", NULL, false },
	{ "$HOME/x", "/home/u/x", false },
	{ "~/x", "/home/u/x", false },
	{ "\\~", "/home/u/ws/~", false },
	{ "/a\\~", "/a\\~", false },
	{ "/a*", "/a*", true },
	{ "/a\\*", "/a*", false },
	{ "/a\\n*", "/a\\\\n*", true },
	{ "/a:b", "/a:b", false },
};

static void check_word(const struct word *w, bool argument)
{
	struct fixture f;
	char line[256];

	start(&f);
	if (argument) {
		add_args(&f, ARGS("--hide", w->text));
	} else {
		(void)snprintf(line, sizeof(line), "hide %s", w->text);
		add_text(&f, LAYER_USER, "/p/policy", line);
	}
	expand(&f);
	if (!w->plain) {
		/* "\\$b" on the command line: one backslash, then a literal dollar */
		assert_fine(&f);
		assert_string_equal(the_rule(&f.policy, PATH_HIDE)->path, "/a\\$b");
	} else {
		const struct path_rule *rule;

		assert_fine(&f);
		rule = the_rule(&f.policy, PATH_HIDE);
		if (strcmp(rule->path, w->plain) != 0 || rule->glob != w->glob)
			fail_msg("'%s' became '%s'%s, not '%s'", w->text, rule->path,
				rule->glob ? " (glob)" : "", w->plain);
	}
	stop(&f);
}

static void test_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(file_words); i++)
		check_word(&file_words[i], false);
	for (size_t i = 0; i < COUNT(argument_words); i++)
		check_word(&argument_words[i], true);
}

/* Every byte but NUL can be written, as itself or as \xNN. */
static void test_every_byte(void **state)
{
	struct fixture f;
	char line[64], plain[8];

	(void)state;
	for (unsigned byte = 1; byte < 256; byte++) {
		start(&f);
		(void)snprintf(line, sizeof(line), "read /a\\x%02xb", byte);
		(void)snprintf(plain, sizeof(plain), "/a%cb", (int)byte);
		add_text(&f, LAYER_USER, "/p/policy", line);
		expand(&f);
		assert_fine(&f);
		if (byte == '/')
			assert_non_null(find_path(&f.policy, "/a/b"));
		else
			assert_string_equal(the_rule(&f.policy, PATH_READ)->path, plain);
		stop(&f);
	}
}

/* A promotion starts from the scratch and the workspace, wherever the policy lies. */
static void test_promote(void **state)
{
	struct fixture f;
	const struct policy *p = &f.policy;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/p/q/policy",
		"promote d/*.png:out \\*.a\\:b:~/r \\*:$WORKSPACE/x\npromote-to ~/r ../s\n");
	expand(&f);
	assert_fine(&f);
	assert_int_equal(p->promote_count, 3);
	assert_string_equal(p->promotes[0].pattern, "/tmp/carrel-1/scratch/d/*.png");
	assert_string_equal(p->promotes[0].dir, "/home/u/ws/out");
	assert_string_equal(p->promotes[2].pattern, "/tmp/carrel-1/scratch/\\*");
	assert_string_equal(p->promotes[2].dir, "/home/u/ws/x");
	assert_int_equal(p->promote_to_count, 2);
	assert_string_equal(p->promote_tos[0].dir, "/home/u/r");
	assert_string_equal(p->promote_tos[1].dir, "/p/q/../s");
	assert_int_equal(p->promote_tos[1].source.line, 2);
	stop(&f);
}

static void test_kinds(void **state)
{
	static const char text[] =
		"workspace ../ws\nworkspace-mode ro\nread -/a /b\nwrite -w\n"
		"hide /h\nprotect /pr\nbind -/s\\:1:/d\\:2:rw\nbind a:/e\n"
		"tmpfs /t:1M\ndev -/dev/kvm\nscratch-base ~/s\nscratch-size 2G\n"
		"scratch-env TMP2\ncwd $WORKSPACE/sub\nenv LC_* A=$SCRATCH/x\n"
		"unsetenv B*\ntty no\ndie-with-parent\nnested yes\ntimeout 1.5\n"
		"grace 200ms\nmemory 2G\npids 50\ncpus 0.25\ncpu-time 1m\n"
		"file-size 1K\nopen-files 99\nnet host\n"
		"output-budget 0\noutput-max 3K\nmerge-output\n"
		"syscalls strict\nsyscall  allow   @io  if  arg0 == 1\n"
		"require landlock keyring\ndegraded no\nreport r.json\nquiet\n"
		"verbose no\n";
	struct fixture f;
	const struct policy *p = &f.policy;
	const struct path_rule *rule;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/p/q/policy", text);
	expand(&f);
	assert_fine(&f);
	assert_string_equal(p->workspace.value, "/p/q/../ws");
	assert_int_equal(p->workspace_mode, WORKSPACE_RO);
	assert_true(the_path(p, "/a")->optional);
	assert_false(the_path(p, "/b")->optional);
	assert_int_equal(the_path(p, "/b")->source.line, 3);
	assert_string_equal(the_path(p, "/b")->source.file, "/p/q/policy");
	rule = the_path(p, "/p/q/w");
	assert_true(rule->kind == PATH_WRITE && rule->optional);
	rule = the_path(p, "/s:1");
	assert_true(rule->kind == PATH_BIND_RW && rule->optional);
	assert_string_equal(rule->dest, "/d:2");
	rule = the_path(p, "/p/q/a");
	assert_true(rule->kind == PATH_BIND_RO && !rule->optional);
	rule = the_rule(p, PATH_TMPFS);
	assert_true(!rule->path && rule->size == 1 << 20);
	assert_string_equal(rule->dest, "/t");
	rule = the_rule(p, PATH_DEV);
	assert_true(rule->optional);
	assert_string_equal(rule->path, "/dev/kvm");
	assert_true(the_path(p, "/pr")->optional);
	assert_string_equal(p->scratch_base.value, "/home/u/s");
	assert_int_equal(p->scratch_size.value, UINT64_C(2) << 30);
	assert_string_equal(p->scratch_envs[0].word, "TMP2");
	assert_string_equal(p->cwd.value, "/home/u/ws/sub");
	assert_null(the_env(p, "LC_*")->value);
	assert_string_equal(the_env(p, "A")->value, "/tmp/carrel-1/scratch/x");
	assert_true(the_env(p, "B*")->unset);
	assert_true(p->tty == TTY_NO && p->net == NET_HOST);
	assert_true(p->die_with_parent.on && p->nested.on && p->quiet.on);
	assert_true(!p->verbose.on && !p->degraded.on && !p->keep.on);
	assert_int_equal(p->timeout_ms.value, 1500);
	assert_int_equal(p->grace_ms.value, 200);
	assert_int_equal(p->memory.value, UINT64_C(2) << 30);
	assert_int_equal(p->pids.value, 50);
	assert_int_equal(p->cpus_milli.value, 250);
	assert_int_equal(p->cpu_time_ms.value, 60000);
	assert_int_equal(p->file_size.value, 1024);
	assert_int_equal(p->open_files.value, 99);
	assert_true(p->output_budget.set && p->output_budget.value == 0);
	assert_int_equal(p->output_max.value, 3072);
	assert_true(p->merge_output.on);
	assert_string_equal(p->syscalls.value, "strict");
	assert_string_equal(p->syscall_rules[0].text, "allow @io if arg0 == 1");
	assert_int_equal(p->require_count, 2);
	assert_string_equal(p->report.value, "/p/q/r.json");
	stop(&f);
}

/* The bounds of a text, each one step below and at the bound. */
static void test_bounds(void **state)
{
	static char text[POLICY_SIZE_MAX + 2];
	struct fixture f;

	(void)state;
	memset(text, '\n', sizeof(text));
	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_SIZE_MAX);
	assert_fine(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_SIZE_MAX + 1);
	assert_fails(&f, ERROR_POLICY, "/p/policy", "longer than 1 MiB", NULL);
	stop(&f);

	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", "read /a\nread /\0b\n", 17);
	assert_fails(&f, ERROR_POLICY, "/p/policy:2", "a NUL byte", NULL);
	stop(&f);

	memset(text, 'a', sizeof(text));
	memcpy(text, "#", 1);
	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_LINE_MAX);
	assert_fine(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_LINE_MAX + 1);
	assert_fails(&f, ERROR_POLICY, "/p/policy:1", "a line of more than 8192 bytes", NULL);
	stop(&f);

	/* the longest word that fits on a line; as a path it is too long for the kernel */
	memcpy(text, "read /", 6);
	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_LINE_MAX);
	assert_fine(&f);
	expand(&f);
	assert_fails(&f, ERROR_POLICY, "/p/policy:1", "a path of more than 4095 bytes", NULL);
	stop(&f);

	memset(text, '$', sizeof(text));
	memcpy(text, "read '/", 7);
	text[POLICY_LINE_MAX - 1] = '\'';
	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, POLICY_LINE_MAX);
	assert_fine(&f);
	stop(&f);
}

static void test_many_lines(void **state)
{
	static char text[POLICY_SIZE_MAX];
	struct fixture f;
	size_t used = 0;

	(void)state;
	for (unsigned i = 0; i <= POLICY_RULE_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "read /%u\n", i);
	start(&f);
	add_bytes(&f, LAYER_USER, "/p/policy", text, used);
	assert_fails(&f, ERROR_POLICY, "/p/policy:4097", "more than 4096 lines", NULL);
	stop(&f);

	const char *cut = strstr(text, "read /1500\n");
	assert_non_null(cut);
	size_t length = (size_t)(cut - text);
	/* an arena that is too small is an error, not a crash */
	for (size_t size = 4096; size < 1 << 20; size *= 2) {
		start(&f);
		stop(&f);
		assert_int_equal(arena_init(&f.arena, size), 0);
		add_bytes(&f, LAYER_USER, "/p/policy", text, length);
		expand(&f);
		if (f.result < 0)
			assert_int_equal(f.e.code, ERROR_LIMIT);
		stop(&f);
	}
}

/* An argument may be longer than any line of a file. */
static void test_long_argument(void **state)
{
	static char value[120 * 1024];
	struct fixture f;

	(void)state;
	memset(value, '\\', sizeof(value) - 1);
	memcpy(value, "A=", 2);
	start(&f);
	add_args(&f, ARGS("--env", value));
	expand(&f);
	assert_fine(&f);
	assert_string_equal(the_env(&f.policy, "A")->value, value + 2);
	stop(&f);
}

static void test_no_directory(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.resolver.cwd = NULL;
	add_args(&f, ARGS("--read", "x"));
	assert_fails(&f, ERROR_USAGE, "--read", "a relative path, and no directory", "~/");
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--profile", "relative"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "profile:relative:2",
		"a relative path in a shipped text", NULL);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_lines),
		cmocka_unit_test(test_wrong_arguments),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_later_arguments),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_promote),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_long_argument),
		cmocka_unit_test(test_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
