/*
 * policy_test.c - layers, profiles, includes, expansion, printing; and the shipped texts themselves.
 *
 * Runs in: the unit tests.
 */
/* ctest: as=any */
#include "policy_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/settings.h"

/* --- layers ----------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	expand(&f);
	assert_fine(&f);
	assert_string_equal(f.policy.profile.value, "agent");
	assert_int_equal(f.policy.profile.source.layer, LAYER_DEFAULT);
	assert_int_equal(f.policy.grace_ms.value, 5000);
	assert_int_equal(f.policy.net, NET_NONE);
	assert_int_equal(f.policy.tty, TTY_AUTO);
	assert_int_equal(f.policy.workspace_mode, WORKSPACE_DIRECT);
	assert_string_equal(f.policy.syscalls.value, "default");
	assert_null(f.policy.workspace.value);
	assert_false(f.policy.timeout_ms.set);
	stop(&f);
}

/* The order of reading does not matter, only the layer does. */
static void test_layers(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_args(&f, ARGS("--timeout", "4"));
	add_text(&f, LAYER_USER, "/u/policy", "timeout 2\ngrace 2\ncpu-time 2\nread /u\n");
	add_text(&f, LAYER_FILE, "/f/policy", "timeout 3\ngrace 3\nread /f\n");
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy",
		"timeout 1\ngrace 1\ncpu-time 1\nfile-size 1\nread /s\n");
	finish(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.timeout_ms.value, 4000);
	assert_int_equal(f.policy.grace_ms.value, 3000);
	assert_int_equal(f.policy.cpu_time_ms.value, 2000);
	assert_int_equal(f.policy.file_size.value, 1);
	assert_int_equal(f.policy.cpu_time_ms.source.layer, LAYER_USER);
	assert_int_equal(f.policy.cpu_time_ms.source.line, 3);
	for (size_t i = 1; i < f.policy.path_count; i++)
		assert_true(
			f.policy.paths[i - 1].source.layer <= f.policy.paths[i].source.layer);
	stop(&f);
}

/* About one path or one variable the later layer has the last word. */
static void test_replaced(void **state)
{
	struct fixture f;
	size_t ssh = 0;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/u/policy",
		"read ~/.ssh/\nenv SECRET=1\nunsetenv PATH\nscratch-env A B\n");
	add_args(&f, ARGS("--env", "SECRET=2", "--write", "/", "--env", "A=1"));
	expand(&f);
	assert_fine(&f);
	for (size_t i = 0; i < f.policy.path_count; i++)
		ssh += f.policy.paths[i].path &&
			!strcmp(f.policy.paths[i].path, "/home/u/.ssh");
	assert_int_equal(ssh, 1);
	assert_int_equal(the_path(&f.policy, "/home/u/.ssh")->kind, PATH_READ);
	assert_int_equal(the_path(&f.policy, "/")->kind, PATH_WRITE);
	assert_string_equal(the_env(&f.policy, "SECRET")->value, "2");
	assert_true(the_env(&f.policy, "PATH")->unset);
	assert_true(the_env(&f.policy, "SECRET*")->unset);
	assert_string_equal(the_env(&f.policy, "A")->value, "1");
	assert_int_equal(f.policy.scratch_env_count, 1);
	assert_string_equal(f.policy.scratch_envs[0].word, "B");
	stop(&f);
}

static void test_flags_off(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "keep\nquiet yes\nverbose\n");
	add_args(&f, ARGS("--no-keep", "--no-verbose"));
	finish(&f);
	assert_fine(&f);
	assert_false(f.policy.keep.on);
	assert_int_equal(f.policy.keep.source.layer, LAYER_COMMAND);
	assert_false(f.policy.verbose.on);
	assert_true(f.policy.quiet.on);
	stop(&f);
}

static void test_added_setting(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.result =
		policy_add_setting(&f.policy, "CARREL_KEEP", "keep", NULL, &f.resolver, &f.e);
	add_args(&f, ARGS("--no-keep"));
	finish(&f);
	assert_fine(&f);
	assert_false(f.policy.keep.on);
	stop(&f);

	start(&f);
	f.result = policy_add_setting(&f.policy, "CARREL_X", "timeout", "0", &f.resolver, &f.e);
	assert_fails(&f, ERROR_POLICY, "CARREL_X", "'0' is not a duration", NULL);
	stop(&f);

	start(&f);
	f.result = policy_add_setting(&f.policy, "CARREL_X", "timeuot", "0", &f.resolver, &f.e);
	assert_fails(
		&f, ERROR_POLICY, "CARREL_X", "unknown setting", "did you mean 'timeout'?");
	stop(&f);

	start(&f);
	f.result = policy_add_setting(&f.policy, "CARREL_X", "read", NULL, &f.resolver, &f.e);
	assert_fails(&f, ERROR_POLICY, "CARREL_X", "'read' needs PATH", NULL);
	stop(&f);
}

/* --- what contradicts across lines ------------------------------------------------------------ */

/* A terminal is one stream, of which nothing is counted or cut. */
static void test_output_conflicts(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "tty yes\n");
	add_args(&f, ARGS("--output-budget", "0"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "command line: --output-budget", "contradicts 'tty'",
		"/u/policy:1");
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--output-max", "1M", "--tty", "yes"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "command line: --output-max", "contradicts 'tty'",
		"command line: --tty");
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--output-budget", "5", "--tty", "auto", "--output-max=1M"));
	finish(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.output_budget.value, 5);
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--merge-output", "--tty", "yes"));
	finish(&f);
	assert_fine(&f);
	stop(&f);
}

static void test_quiet_and_verbose(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_args(&f, ARGS("--verbose", "--quiet"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "command line: --quiet", "'quiet' contradicts 'verbose'",
		"command line: --verbose");
	stop(&f);

	start(&f); /* the later layer wins */
	add_text(&f, LAYER_USER, "/u/policy", "quiet\n");
	add_args(&f, ARGS("--verbose"));
	finish(&f);
	assert_fine(&f);
	assert_true(f.policy.verbose.on && !f.policy.quiet.on);
	stop(&f);

	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "verbose\n");
	add_args(&f, ARGS("--quiet"));
	finish(&f);
	assert_fine(&f);
	assert_true(f.policy.quiet.on && !f.policy.verbose.on);
	stop(&f);
}

static void test_keep_conflicts(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_args(&f, ARGS("--keep-for", "1h", "--keep"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "command line: --keep-for", "contradicts 'keep'",
		"command line: --keep");
	stop(&f);

	start(&f); /* the later layer wins */
	add_text(&f, LAYER_USER, "/u/policy", "keep\n");
	add_args(&f, ARGS("--keep-for", "1h"));
	finish(&f);
	assert_fine(&f);
	assert_true(f.policy.keep_for_ms.set && !f.policy.keep.on);
	stop(&f);

	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "keep-for 1h\n");
	add_args(&f, ARGS("--keep"));
	finish(&f);
	assert_fine(&f);
	assert_true(!f.policy.keep_for_ms.set && f.policy.keep.on);
	stop(&f);

	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "keep-for 1h\n");
	add_args(&f, ARGS("--no-keep"));
	finish(&f);
	assert_fine(&f);
	assert_true(!f.policy.keep_for_ms.set && !f.policy.keep.on);
	stop(&f);

	start(&f); /* the bounded one wins over the variable of the environment */
	f.result =
		policy_add_setting(&f.policy, "CARREL_KEEP", "keep", NULL, &f.resolver, &f.e);
	add_args(&f, ARGS("--keep-for", "1h"));
	finish(&f);
	assert_fine(&f);
	assert_true(f.policy.keep_for_ms.set && !f.policy.keep.on);
	stop(&f);
}

/* --- profiles and includes -------------------------------------------------------------------- */

static void test_profile(void **state)
{
	struct fixture f;

	(void)state;
	start(&f); /* a whole profile replaces the one below, a list adds */
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "profile open\n");
	add_text(&f, LAYER_USER, "/u/policy", "profile closed\ninclude hide\n");
	expand(&f);
	assert_fine(&f);
	assert_string_equal(f.policy.profile.value, "closed");
	assert_string_equal(f.policy.profile.source.file, "/u/policy");
	assert_null(find_path(&f.policy, "/"));
	assert_null(find_path(&f.policy, "/srv"));
	assert_non_null(find_path(&f.policy, "/usr"));
	assert_string_equal(f.policy.syscalls.value, "strict");
	assert_int_equal(the_path(&f.policy, "/home/u/.ssh")->source.layer, LAYER_USER);
	assert_string_equal(the_path(&f.policy, "/home/u/.ssh")->source.file, "list:hide");
	assert_int_equal(the_path(&f.policy, "/home/u/.ssh")->source.line, 1);
	stop(&f);

	start(&f);
	add_text(&f, LAYER_USER, "/u/policy", "profile closed\n");
	add_args(&f, ARGS("--profile", "open"));
	expand(&f);
	assert_fine(&f);
	assert_string_equal(f.policy.profile.value, "open");
	assert_int_equal(f.policy.timeout_ms.value, 9 * 3600000);
	assert_int_equal(f.policy.timeout_ms.source.layer, LAYER_PROFILE);
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--profile", "wrong"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "profile:wrong:2", "unknown setting 'raed'", "read");
	stop(&f);

	start(&f);
	f.result = policy_finish(&f.policy, "missing", &f.resolver, &f.e);
	assert_fails(&f, ERROR_POLICY, "missing", "no such profile", NULL);
	stop(&f);
}

static void test_include(void **state)
{
	static const struct file files[] = {
		{ "/p/sub/more", "read here\ntimeout 7\npolicy ../deep\nread there\n" },
		{ "/p/sub/../deep", "write w\n" },
		{ "/home/u/.config/mine", "hide a\n" },
		{ NULL, NULL },
	};
	struct fixture f;
	const struct path_rule *rule;

	(void)state;
	start(&f);
	f.files = files;
	add_text(&f, LAYER_USER, "/p/policy",
		"read first\npolicy sub/more\nread last\npolicy $XDG_CONFIG_HOME/mine\n");
	expand(&f);
	assert_fine(&f);
	rule = the_path(&f.policy, "/p/sub/here");
	assert_int_equal(rule->source.layer, LAYER_USER);
	assert_string_equal(rule->source.file, "/p/sub/more");
	assert_int_equal(rule->source.line, 1);
	assert_non_null(find_path(&f.policy, "/p/sub/../w"));
	assert_non_null(find_path(&f.policy, "/p/sub/there"));
	assert_non_null(find_path(&f.policy, "/p/last"));
	assert_non_null(find_path(&f.policy, "/home/u/.config/a"));
	assert_int_equal(f.policy.timeout_ms.value, 7000);
	stop(&f);

	start(&f); /* --policy is a layer of its own, below the command line */
	f.files = files;
	add_args(&f, ARGS("--timeout", "3", "--policy", "/p/sub/more"));
	expand(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.timeout_ms.value, 3000);
	assert_int_equal(the_path(&f.policy, "/p/sub/here")->source.layer, LAYER_FILE);
	stop(&f);

	start(&f);
	f.files = files;
	add_text(&f, LAYER_USER, "/p/policy", "\npolicy nowhere\n");
	assert_fails(&f, ERROR_POLICY, "/p/nowhere", "cannot read the policy", "/p/policy:2");
	assert_int_equal(f.result, -ENOENT);
	stop(&f);

	start(&f); /* what the tools can write is not known yet, and never policy */
	add_text(&f, LAYER_USER, "/p/policy", "policy $WORKSPACE/x\n");
	assert_fails(&f, ERROR_POLICY, "/p/policy:1", "$WORKSPACE is not known here", NULL);
	stop(&f);

	start(&f);
	f.resolver.load = NULL;
	add_text(&f, LAYER_USER, "/p/policy", "policy /x\n");
	assert_fails(&f, ERROR_POLICY, "/p/policy:1", "no file can be included here", NULL);
	stop(&f);
}

static void test_cycles(void **state)
{
	static const struct file files[] = {
		{ "/p/a", "policy b\n" },
		{ "/p/b", "# x\npolicy c\n" },
		{ "/p/c", "policy /p/a\n" },
		{ "/d/1", "policy 2\n" },
		{ "/d/2", "policy 3\n" },
		{ "/d/3", "policy 4\n" },
		{ "/d/4", "policy 5\n" },
		{ "/d/5", "policy 6\n" },
		{ "/d/6", "policy 7\n" },
		{ "/d/7", "policy 8\n" },
		{ "/d/8", "read /eight\n" },
		{ "/d/twice", "policy 8\npolicy 8\n" },
		{ NULL, NULL },
	};
	struct fixture f;

	(void)state;
	start(&f);
	f.files = files;
	add_text(&f, LAYER_USER, "/p/a", "policy b\n");
	assert_fails(&f, ERROR_POLICY, "/p/c:1", "'/p/a' includes itself",
		"/p/a -> /p/b -> /p/c -> /p/a");
	stop(&f);

	start(&f);
	add_args(&f, ARGS("--profile", "looping"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "profile:looping:2", "'profile:looping' includes itself",
		NULL);
	stop(&f);

	start(&f);
	f.files = files;
	add_args(&f, ARGS("--policy", "/d/1"));
	assert_fine(&f); /* eight deep */
	add_text(&f, LAYER_USER, "/d/0", "policy 1\n");
	assert_fails(&f, ERROR_POLICY, "/d/7:1", "more than 8 texts", "/d/0 -> /d/1");
	stop(&f);

	start(&f); /* the same file twice is no cycle */
	f.files = files;
	add_args(&f, ARGS("--policy", "/d/twice"));
	expand(&f);
	assert_fine(&f);
	assert_non_null(find_path(&f.policy, "/eight"));
	stop(&f);
}

/* --- expansion -------------------------------------------------------------------------------- */

static void test_missing_names(void **state)
{
	struct fixture f;

	(void)state;
	start(&f); /* hide, protect and -PATH are passed over */
	add_text(&f, LAYER_USER, "/p/policy",
		"hide $XDG_DATA_HOME/x\nprotect $XDG_DATA_HOME/y\nread -$XDG_DATA_HOME/z\n"
		"bind -$XDG_DATA_HOME/z:/b\nread /kept\n");
	expand(&f);
	assert_fine(&f);
	assert_int_equal(find_rule(&f.policy, PATH_BIND_RO) != NULL, 0);
	assert_non_null(find_path(&f.policy, "/kept"));
	assert_null(find_path(&f.policy, "/x"));
	stop(&f);

	static const char *const lines[] = { "read $XDG_DATA_HOME/x\n",
		"write $XDG_DATA_HOME/x\n", "bind /a:$XDG_DATA_HOME/x\n",
		"tmpfs $XDG_DATA_HOME/x\n", "env A=$XDG_DATA_HOME\n", "cwd $XDG_DATA_HOME\n",
		"workspace $XDG_DATA_HOME\n", "report $XDG_DATA_HOME/x\n" };
	for (size_t i = 0; i < COUNT(lines); i++) {
		start(&f);
		add_text(&f, LAYER_USER, "/p/policy", lines[i]);
		expand(&f);
		assert_fails(&f, ERROR_POLICY, "/p/policy:1",
			"$XDG_DATA_HOME stands for nothing here", NULL);
		stop(&f);
	}

	start(&f); /* not before there is a workspace */
	add_args(&f, ARGS("--workspace", "$WORKSPACE/x"));
	finish(&f);
	assert_fails(
		&f, ERROR_USAGE, "--workspace", "$WORKSPACE stands for nothing here", NULL);
	stop(&f);
}

/* A home with everything in its name that means something elsewhere. */
static void test_odd_home(void **state)
{
	static const struct policy_names odd = {
		.home = "/h/a*b [c]$HOME\\\n\xff", .workspace = "/", .scratch = "/s"
	};
	struct fixture f;

	(void)state;
	start(&f);
	f.resolver.names = &odd;
	add_text(&f, LAYER_USER, "/p/policy",
		"hide ~/*\nread ~/x\nenv A=$HOME/y\nread $WORKSPACE/z\nworkspace ~/w\n");
	f.result = policy_finish(&f.policy, "open", &f.resolver, &f.e);
	assert_fine(&f);
	f.result = policy_expand(&f.policy, &odd, &f.e);
	assert_fine(&f);
	assert_string_equal(
		the_rule(&f.policy, PATH_HIDE)->path, "/h/a\\*b \\[c]$HOME\\\\\n\xff/*");
	assert_non_null(find_path(&f.policy, "/h/a*b [c]$HOME\\\n\xff/x"));
	assert_string_equal(the_env(&f.policy, "A")->value, "/h/a*b [c]$HOME\\\n\xff/y");
	assert_non_null(find_path(&f.policy, "/z"));
	assert_string_equal(f.policy.workspace.value, "/h/a*b [c]$HOME\\\n\xff/w");
	stop(&f);
}

/* What is hidden in the home is hidden where else the program may keep it; nothing else moves. */
static void test_elsewhere(void **state)
{
	static const struct policy_names moved = {
		.home = "/h",
		.account_home = "/a*$b",
		.xdg_config_home = "/c",
		.xdg_cache_home = "/h/.cache",
		.xdg_data_home = "/h/.local/share2",
		.xdg_state_home = "/h/.local",
		.workspace = "/w",
		.scratch = "/s",
	};
	struct fixture f;

	(void)state;
	start(&f);
	f.resolver.names = &moved;
	add_text(&f, LAYER_USER, "/p/policy",
		"hide ~/.ssh\nhide ~/.config/x*\nhide ~/.cache/y\nhide ~/.local/share/z\n"
		"hide ~/.local/state/s\nhide ~\nhide ~/.configs\nread ~/r\nhide /o\n");
	f.result = policy_finish(&f.policy, "open", &f.resolver, &f.e);
	assert_fine(&f);
	f.result = policy_expand(&f.policy, &moved, &f.e);
	assert_fine(&f);
	static const char *const expected[] = { "/h/.ssh", "/a*$b/.ssh", "/h/.config/x*",
		"/a\\*$b/.config/x*", "/c/x*", "/h/.cache/y", "/a*$b/.cache/y",
		"/h/.local/share/z", "/a*$b/.local/share/z", "/h/.local/share2/z",
		"/h/.local/state/s", "/a*$b/.local/state/s", "/h/.local/s", "/h", "/h/.configs",
		"/a*$b/.configs", "/h/r", "/o" };
	size_t count = sizeof(expected) / sizeof(expected[0]), at = 0;
	for (size_t i = 0; i < f.policy.path_count; i++) {
		const struct path_rule *rule = &f.policy.paths[i];

		if (rule->source.layer != LAYER_USER)
			continue;
		assert_true(at < count);
		assert_string_equal(rule->path, expected[at]);
		at++;
	}
	assert_int_equal(at, count);
	stop(&f);
}

/* --- printing --------------------------------------------------------------------------------- */

static const char everything[] =
	"workspace \"/w s/\\xff\\n\"\nworkspace-mode overlay\nread -/a '/b c' \"$HOME/$x\"\n";

static const char odd_text[] =
	"workspace \"/w s/\\xff\\n\"\nworkspace-mode overlay\nread -/a '/b c' \"$HOME/\\$x\"\n"
	"read caf\xc3\xa9 \"/q\\\"'\\\\#\" ${HOME}s '~'\nwrite -$WORKSPACE/t\n"
	"hide /h*/'*'/[a-c]?/\\ x \"/no*glob\" $HOME/a\\$b*\nprotect $WORKSPACE/.git/config\n"
	"bind -/s\\:1:\"/d :2\":rw\nbind /r:$SCRATCH/r\ntmpfs /t\\::3M\ntmpfs /u\n"
	"dev -/dev/kvm\nscratch-base /sb\nscratch-env TMP2\nkeep no\nkeep-for 90m\n"
	"cwd '$WORKSPACE'\nenv LC_* A= B=\"x y\" C='$HOME' D=~/z E='~/z' F=\\xfe*?\n"
	"unsetenv G*\ntty yes\ndie-with-parent\nnested no\ntimeout 1500ms\ngrace 1d\n"
	"cpu-time 61\nfile-size 1000\nopen-files 16\nnet host\nsyscalls strict\n"
	"merge-output\n"
	"syscall allow @io if arg0 & 0xff == \"#1\"\nsyscall errno ptrace\n"
	"require landlock mounts\ndegraded\nreport fd:5\nquiet\nverbose no\n";

static void print_policy(const struct policy *p, bool sources, struct sink *s)
{
	s->used = 0;
	s->text[0] = '\0';
	assert_int_equal(policy_print(p, sources, sink_write, s), 0);
}

/* What is printed is a policy that prints the same: with its sources, and as it is on this machine. */
static void check_round_trip(const char *text, bool expanded)
{
	static struct sink first, second, bare;
	struct fixture f;

	start(&f);
	add_text(&f, LAYER_USER, "/p/policy", text);
	f.result = f.result ? f.result : policy_finish(&f.policy, "closed", &f.resolver, &f.e);
	if (expanded && f.result == 0)
		f.result = policy_expand(&f.policy, &names, &f.e);
	assert_fine(&f);
	print_policy(&f.policy, true, &first);
	print_policy(&f.policy, false, &bare);
	assert_null(strchr(bare.text, '\xff'));
	stop(&f);

	start(&f);
	add_bytes(&f, LAYER_USER, "/other/policy", first.text, first.used);
	f.result = f.result ? f.result : policy_finish(&f.policy, "closed", &f.resolver, &f.e);
	if (expanded && f.result == 0)
		f.result = policy_expand(&f.policy, &names, &f.e);
	assert_fine(&f);
	print_policy(&f.policy, false, &second);
	assert_string_equal(second.text, bare.text);
	stop(&f);
}

static void test_print(void **state)
{
	struct fixture f;
	static struct sink s;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/p/policy", everything);
	assert_fails(&f, ERROR_POLICY, "/p/policy:3", "unknown name $x", NULL);
	stop(&f);
	check_round_trip(odd_text, false);
	check_round_trip(odd_text, true);
	check_round_trip("output-budget 0\noutput-max 3G\nmerge-output no\n", true);
	check_round_trip("", true);

	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net\ntimeout 90\n");
	add_text(&f, LAYER_USER, "/u/a\nb", "hide \"/a b\"\nread /c\n");
	add_args(&f, ARGS("--read", "/\xff"));
	finish(&f);
	assert_fine(&f);
	print_policy(&f.policy, true, &s);
	assert_non_null(
		strstr(s.text, "# profile agent                                 # default\n"));
	assert_non_null(strstr(s.text,
		"# lock net                                      # /etc/carrel/policy:1\n"));
	assert_non_null(strstr(s.text,
		"timeout 90s                                     # /etc/carrel/policy:2\n"));
	assert_non_null(strstr(
		s.text, "hide \"/a b\"                                     # /u/a\\x0ab:1\n"));
	assert_non_null(strstr(s.text,
		"read \"/\\xff\"                                    # command line: --read\n"));
	assert_non_null(
		strstr(s.text, "grace 5s                                        # default\n"));
	assert_non_null(strstr(
		s.text, "hide $HOME/.config/*/token                      # list:hide:2\n"));
	stop(&f);
}

/* The bytes that a digest is taken of do not depend on where a rule was written. */
static void test_digest_bytes(void **state)
{
	static struct sink a, b;
	struct fixture f;

	(void)state;
	start(&f);
	add_text(&f, LAYER_USER, "/p/policy", "# one\ntimeout 60\nread /x/ ~/y\n");
	finish(&f);
	assert_fine(&f);
	print_policy(&f.policy, false, &a);
	stop(&f);
	start(&f);
	add_args(&f, ARGS("--timeout=1m", "--read", "/x", "--read", "$HOME//y"));
	finish(&f);
	assert_fine(&f);
	print_policy(&f.policy, false, &b);
	stop(&f);
	assert_string_equal(a.text, b.text);
	assert_null(strchr(a.text, '#'));
}

static int refuse_write(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return -EPIPE;
}

static void test_json(void **state)
{
	struct fixture f;
	static struct sink s;

	(void)state;
	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net\n");
	add_args(&f,
		ARGS("--read", "/\xff\"", "--bind", "-/a:/b:rw", "--tmpfs", "/t:1K",
			"--timeout", "2", "--env", "A=1", "--keep"));
	finish(&f);
	assert_fine(&f);
	s.used = 0;
	assert_int_equal(policy_print_json(&f.policy, sink_write, &s), 0);
	assert_non_null(strstr(s.text,
		"{\"profile\":{\"value\":\"agent\",\"source\":{\"layer\":\"default\"}}"));
	assert_non_null(strstr(s.text,
		"{\"setting\":\"net\",\"source\":{\"layer\":\"system\",\"file\":\"/etc/carrel/policy\",\"line\":1}}"));
	assert_non_null(strstr(s.text,
		"{\"setting\":\"read\",\"path\":\"/\\udcff\\\"\",\"optional\":false,\"source\":{\"layer\":\"command-line\",\"file\":\"command line\",\"line\":1}}"));
	assert_non_null(strstr(
		s.text, "\"path\":\"/a\",\"dest\":\"/b\",\"optional\":true,\"mode\":\"rw\""));
	assert_non_null(strstr(s.text, "\"dest\":\"/t\",\"optional\":false,\"size\":1024"));
	assert_non_null(strstr(s.text, "{\"setting\":\"timeout\",\"milliseconds\":2000,"));
	assert_non_null(strstr(s.text, "{\"setting\":\"env\",\"name\":\"A\",\"value\":\"1\","));
	assert_non_null(strstr(s.text, "{\"setting\":\"keep\",\"value\":true,"));
	assert_int_equal(policy_print_json(&f.policy, refuse_write, NULL), -EPIPE);
	assert_int_equal(policy_print(&f.policy, true, refuse_write, NULL), -EPIPE);
	stop(&f);
}

/* --- the shipped texts ------------------------------------------------------------------------ */

static const char *const real_names[] = { "agent", "strict", "ci", "container", "hide",
	"protect", "toolchains", "environment" };
static char real_files[COUNT(real_names)][64 * 1024];
static struct embedded_text real_texts[COUNT(real_names)];

static int read_shipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(real_names); i++) {
		char path[512];

		(void)snprintf(
			path, sizeof(path), "%s/policy/%s", CARREL_SOURCE_DIR, real_names[i]);
		autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
		ssize_t n = fd < 0 ? fd
				   : fd_read_file(fd, real_files[i], sizeof(real_files[i]) - 1);
		if (n < 0)
			return -1;
		real_texts[i] = (struct embedded_text){
			.name = real_names[i], .text = real_files[i], .size = (size_t)n
		};
	}
	return 0;
}

static void start_real(struct fixture *f, const char *profile)
{
	start(f);
	f->resolver.texts = real_texts;
	f->resolver.text_count = COUNT(real_texts);
	add_args(f, ARGS("--profile", profile));
	expand(f);
	assert_fine(f);
}

static void test_shipped(void **state)
{
	static const char *const hidden[] = { "/home/u/.ssh", "/home/u/.gnupg", "/home/u/.aws",
		"/home/u/.azure", "/home/u/.config/gcloud", "/home/u/.kube", "/home/u/.docker",
		"/home/u/.netrc", "/home/u/.npmrc", "/home/u/.pypirc",
		"/home/u/.git-credentials", "/home/u/.config/gh", "/home/u/.mozilla",
		"/home/u/.bash_history", "/etc/shadow", "/etc/gshadow", "/run/docker.sock",
		"/run/containerd" };
	static const char *const protected[] = { "/home/u/ws/.git/config",
		"/home/u/ws/.git/hooks", "/home/u/ws/.gitmodules", "/home/u/ws/.bashrc",
		"/home/u/ws/.envrc", "/home/u/ws/.vscode", "/home/u/ws/.idea",
		"/home/u/ws/.claude", "/home/u/ws/.cursor", "/home/u/ws/.mcp.json",
		"/home/u/ws/.husky" };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		start_real(&f, real_names[i]);
		for (size_t h = 0; h < COUNT(hidden); h++) {
			const struct path_rule *rule = find_path(&f.policy, hidden[h]);

			if (!rule || rule->kind != PATH_HIDE)
				fail_msg("%s does not hide %s", real_names[i], hidden[h]);
		}
		for (size_t h = 0; h < COUNT(protected); h++) {
			const struct path_rule *rule = find_path(&f.policy, protected[h]);

			if (!rule || rule->kind != PATH_PROTECT)
				fail_msg("%s does not protect %s", real_names[i], protected[h]);
		}
		for (size_t p = 0; p < f.policy.path_count; p++)
			assert_true(f.policy.paths[p].kind != PATH_WRITE);
		assert_int_equal(f.policy.net, NET_NONE);
		assert_int_equal(f.policy.workspace_mode, WORKSPACE_DIRECT);
		assert_false(f.policy.degraded.on || f.policy.nested.on);
		assert_non_null(find_env(&f.policy, "PATH"));
		assert_null(the_env(&f.policy, "PATH")->value);
		assert_string_equal(the_env(&f.policy, "XDG_CACHE_HOME")->value,
			"/tmp/carrel-1/scratch/.cache");
		assert_null(find_env(&f.policy, "TMPDIR"));
		assert_null(find_env(&f.policy, "SSH_AUTH_SOCK"));
		stop(&f);
	}
}

/* Everything that a policy says of itself, with @count profiles that the build has read. */
static void print_embedded(
	const char *profile, size_t count, const char *system, struct sink *s)
{
	struct fixture f;
	struct source at = { .layer = LAYER_PROFILE, .line = 9, .file = "list:hide" };

	start(&f);
	f.resolver.texts = embedded_texts;
	f.resolver.text_count = embedded_text_count;
	f.resolver.filters = embedded_filters;
	f.resolver.filter_count = embedded_filter_count;
	f.resolver.profiles = embedded_profiles;
	f.resolver.profile_count = count;
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", system);
	add_args(&f, ARGS("--profile", profile, "--read", "/home/u/.aws", "--env", "PATH=/x"));
	expand(&f);
	/* Where the lock is broken the message names a line of the profile. */
	s->used = 0;
	s->text[0] = '\0';
	if (f.result < 0) {
		char text[1024];

		assert_int_equal(
			sink_write(s, text, error_format(&f.e, text, sizeof(text))), 0);
	} else {
		print_policy(&f.policy, true, s);
	}
	assert_string_equal(policy_source_setting(&f.policy, &at), "hide");
	assert_true((f.policy.shipped_count > 0) == (count > 0));
	stop(&f);
}

static void test_shipped_read_at_build(void **state)
{
	static struct sink from_text, from_build;

	(void)state;
	assert_true(embedded_profile_count >= 4);
	for (size_t i = 0; i < 2 * embedded_profile_count; i++) {
		const char *profile = embedded_profiles[i / 2].name;
		const char *system =
			i % 2 ? "lock net\n" : "lock hide\nlock net\nprofile strict\n";

		print_embedded(profile, 0, system, &from_text);
		print_embedded(profile, embedded_profile_count, system, &from_build);
		assert_string_equal(from_text.text, from_build.text);
		assert_int_equal(!strncmp(from_text.text, "carrel: ", 8), i % 2 == 0);
	}
}

static void test_shipped_profiles(void **state)
{
	struct fixture f;

	(void)state;
	start_real(&f, "agent");
	assert_int_equal(the_path(&f.policy, "/")->kind, PATH_READ);
	assert_string_equal(f.policy.syscalls.value, "default");
	assert_true(the_path(&f.policy, "/home/u/.cargo")->optional);
	stop(&f);

	start_real(&f, "strict");
	assert_null(find_path(&f.policy, "/"));
	assert_null(find_path(&f.policy, "/home/u/.cargo"));
	assert_int_equal(the_path(&f.policy, "/usr")->kind, PATH_READ);
	assert_string_equal(f.policy.syscalls.value, "strict");
	for (size_t i = 0; i < f.policy.path_count; i++)
		assert_false(f.policy.paths[i].kind == PATH_READ &&
			!strncmp(f.policy.paths[i].path, "/home", 5));
	stop(&f);

	start_real(&f, "ci");
	assert_true(f.policy.timeout_ms.set && f.policy.die_with_parent.on);
	assert_int_equal(f.policy.tty, TTY_NO);
	assert_string_equal(the_env(&f.policy, "LC_ALL")->value, "C.UTF-8");
	stop(&f);

	start_real(&f, "container");
	assert_true(f.policy.grace_ms.value < 10000);
	assert_int_equal(the_path(&f.policy, "/run/secrets")->kind, PATH_HIDE);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_flags_off),
		cmocka_unit_test(test_added_setting),
		cmocka_unit_test(test_quiet_and_verbose),
		cmocka_unit_test(test_keep_conflicts),
		cmocka_unit_test(test_output_conflicts),
		cmocka_unit_test(test_profile),
		cmocka_unit_test(test_include),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_missing_names),
		cmocka_unit_test(test_odd_home),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_digest_bytes),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_shipped_read_at_build),
		cmocka_unit_test(test_shipped_profiles),
	};

	return cmocka_run_group_tests(tests, read_shipped, NULL);
}
