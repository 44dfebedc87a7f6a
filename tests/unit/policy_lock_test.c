/*
 * policy_lock_test.c - what the system policy locks, nothing later loosens: neither a layer, nor the
 * choice of another profile, nor a symbolic link.
 *
 * Runs in: the unit tests.
 */
/* ctest: as=any */
#include "policy_fixture.h"

#include "plan/plan.h"

struct lock_case {
	const char *system; /* the system policy; its first line is the lock */
	const char *later;  /* the user's policy */
	const char
		*loosens; /* the setting that is refused, at the user's last line; NULL: fine */
};

static const struct lock_case cases[] = {
	/* single values */
	{ "lock timeout\ntimeout 10", "timeout 11", "timeout" },
	{ "lock timeout\ntimeout 10", "timeout 10", NULL },
	{ "lock timeout\ntimeout 10", "timeout 9", NULL },
	{ "lock timeout", "timeout 9", NULL },
	{ "lock grace", "grace 6", "grace" },
	{ "lock grace", "grace 4", NULL },
	{ "lock scratch-size\nscratch-size 1M", "scratch-size 2M", "scratch-size" },
	{ "lock file-size\nfile-size 1M", "file-size 1025K", "file-size" },
	{ "lock open-files\nopen-files 100", "open-files 101", "open-files" },
	{ "lock output-budget\noutput-budget 100", "output-budget 101", "output-budget" },
	{ "lock output-budget\noutput-budget 100", "output-budget 0", NULL },
	{ "lock output-budget", "output-budget 5", NULL },
	{ "lock output-max\noutput-max 1K", "output-max 1025", "output-max" },
	{ "lock output-max\noutput-max 1K", "output-max 1023", NULL },
	{ "lock merge-output", "merge-output", "merge-output" },
	{ "lock memory\nmemory 1G", "memory 2G", "memory" },
	{ "lock memory\nmemory 1G", "memory 512M", NULL },
	{ "lock memory", "memory 512M", NULL },
	{ "lock pids\npids 100", "pids 101", "pids" },
	{ "lock pids\npids 100", "pids 99", NULL },
	{ "lock cpus\ncpus 1.5", "cpus 1.501", "cpus" },
	{ "lock cpus\ncpus 1.5", "cpus 0.5", NULL },
	{ "lock cpu-time\ncpu-time 1m", "cpu-time 61", "cpu-time" },
	{ "lock keep-for", "keep-for 1h", "keep-for" },
	{ "lock keep-for\nkeep-for 2h", "keep-for 1h", NULL },
	{ "lock keep", "keep", "keep" },
	{ "lock keep\nkeep", "keep no", NULL },
	{ "lock nested", "nested", "nested" },
	{ "lock degraded", "degraded", "degraded" },
	{ "lock degraded\ndegraded", "degraded no", NULL },
	{ "lock die-with-parent\ndie-with-parent", "die-with-parent no", "die-with-parent" },
	{ "lock die-with-parent", "die-with-parent", NULL },
	{ "lock quiet", "quiet", "quiet" },
	{ "lock net", "net host", "net" },
	{ "lock unix-socket", "unix-socket /srv/sql", "unix-socket" },
	{ "lock unix-socket\nunix-socket /srv/sql", "unix-socket /srv/sql", NULL },
	{ "lock write", "unix-socket /srv/sql", "unix-socket" },
	{ "lock with", "with proxy", "with" },
	{ "lock with", "cache npm", NULL },
	{ "lock cache", "cache npm", "cache" },
	{ "lock net\nnet host", "net none", NULL },
	{ "lock workspace-mode", "workspace-mode ro", NULL },
	{ "lock workspace-mode\nworkspace-mode ro", "workspace-mode overlay",
		"workspace-mode" },
	{ "lock workspace-mode\nworkspace-mode overlay", "workspace-mode direct",
		"workspace-mode" },
	{ "lock workspace-mode\nworkspace-mode overlay", "workspace-mode ro", NULL },
	{ "lock tty\ntty no", "tty yes", "tty" },
	{ "lock tty", "tty auto", NULL },
	{ "lock syscalls", "syscalls strict", "syscalls" },
	{ "lock syscalls", "syscalls default", NULL },
	{ "lock syscalls", "syscall allow ptrace", "syscall" },
	{ "lock syscalls", "syscall errno ptrace", NULL },
	{ "lock syscalls", "nested", "nested" },
	{ "lock syscalls\nnested", "nested", NULL },
	{ "lock workspace", "workspace /w", "workspace" },
	{ "lock scratch-base", "scratch-base /s", "scratch-base" },
	{ "lock cwd", "cwd /s", "cwd" },
	{ "lock report\nreport /r", "report /r2", "report" },
	{ "lock report\nreport /r", "report //r", NULL },
	/* lists that must not grow */
	{ "lock read", "read /x", NULL }, /* `read /` is there already */
	{ "lock read", "read ~/.ssh/id", "read" },
	{ "lock read", "write /x", "write" },
	{ "lock read", "bind /x:/y", "bind" },
	{ "lock read\nhide /x", "read /x/y", "read" },
	{ "lock read\ntmpfs /x", "read /x/y", "read" },
	{ "lock read", "hide /x\nprotect /y\ntmpfs /z", NULL },
	{ "lock write\nwrite /w", "write /w/sub", NULL },
	{ "lock write\nwrite /w", "write /w2", "write" },
	{ "lock write", "read /x", NULL },
	{ "lock write", "bind /x:/y:rw", "bind" },
	{ "lock write", "bind /x:/y", NULL },
	{ "lock write\nwrite /w\nread /w/ro", "write /w/ro/x", "write" },
	{ "lock write\nwrite /w", "write /w/../etc", "write" },
	{ "lock bind\nbind /a:/b", "bind /a:/b", NULL },
	{ "lock bind\nbind /a:/b", "bind /a:/c", "bind" },
	{ "lock tmpfs", "tmpfs /x", "tmpfs" },
	{ "lock dev", "dev /dev/kvm", "dev" },
	{ "lock env", "env NEW=1", "env" },
	{ "lock env", "env PATH", NULL },
	{ "lock env", "env PATH=/evil", "env" },
	{ "lock env", "unsetenv PATH", NULL },
	{ "lock unsetenv", "env SECRET_KEY", "env" },
	{ "lock unsetenv", "env S*", "env" },
	{ "lock unsetenv", "env OTHER", NULL },
	{ "lock env", "scratch-env PATH2", "scratch-env" },
	{ "lock env\nscratch-env T2", "scratch-env T2", NULL },
	{ "lock unsetenv", "scratch-env SECRET_KEY", "scratch-env" },
	{ "lock unsetenv", "scratch-env OTHER", NULL },
	{ "lock pass-fd", "pass-fd 5:9", "pass-fd" },
	{ "lock pass-fd\npass-fd 5:9", "pass-fd 5:9", NULL },
	{ "lock pass-fd\npass-fd 5:9", "pass-fd 6:9", "pass-fd" },
	{ "lock scratch-env", "scratch-env T2", "scratch-env" },
	{ "lock scratch-env\nscratch-env T2", "scratch-env T2", NULL },
	{ "lock promote", "promote a:out", "promote" },
	{ "lock promote\npromote a:out", "promote a:out", NULL },
	{ "lock promote\npromote a:out", "promote a:other", "promote" },
	{ "lock promote-to\npromote-to /r", "promote-to //r/.", NULL },
	{ "lock promote-to\npromote-to /r", "promote-to /r/sub", "promote-to" },
	{ "lock syscall", "syscall allow ptrace", "syscall" },
	{ "lock syscall", "syscall errno ptrace", NULL },
	{ "lock require\nrequire landlock", "require mounts", NULL },
	{ "lock profile", "profile open", "profile" },
	{ "lock profile", "profile agent", NULL },
	{ "lock profile\nprofile closed", "profile agent", "profile" },
	{ "lock policy", "policy /f", "policy" },
	/* hidden and protected */
	{ "lock hide", "hide /more\nread /elsewhere", NULL },
	{ "lock hide", "read ~/.ssh", "read" },
	{ "lock hide", "read ~/.ssh/config", "read" },
	{ "lock hide", "read ~/.sshx", NULL },
	{ "lock hide", "write ~/.ssh/known_hosts", "write" },
	{ "lock hide", "protect ~/.ssh", "protect" },
	{ "lock hide", "tmpfs ~/.ssh/x", "tmpfs" },
	{ "lock hide", "bind /x:$HOME/.ssh", "bind" },
	{ "lock hide", "bind ~/.ssh:/x", "bind" },
	{ "lock hide", "bind ~/.ssh/id:/x", "bind" },
	{ "lock hide", "bind ~:/x", "bind" },
	{ "lock hide", "bind /:/x", "bind" },
	{ "lock hide", "bind /usr:/x", NULL },
	{ "lock hide", "read ~/.config/gh/token", "read" },
	{ "lock hide", "read ~/.config/gh/token/x", "read" },
	{ "lock hide", "read ~/.config/gh/tokens", NULL },
	{ "lock hide", "read ~/.config/a/b/token", NULL },
	{ "lock hide", "bind ~/.config:/x", "bind" },
	{ "lock hide\nhide /h/[a-c]?", "read /h/bx/y", "read" },
	{ "lock hide\nhide /h/[a-c]?", "read /h/dx", NULL },
	{ "lock hide\nhide /h/[!a-c]x", "read /h/dx", "read" },
	{ "lock hide\nhide /h/*a*b", "read /h/aaxab/q", "read" },
	{ "lock hide\nhide /h/*a*b", "read /h/aaxa", NULL },
	{ "lock hide\nhide '/h/*'x*", "read /h/*xy", "read" },
	{ "lock hide\nhide '/h/*'x*", "read /h/axy", NULL },
	{ "lock hide\nhide /h/[[:alpha:]]*", "read /h/keys", "read" },
	{ "lock hide\nhide /h/[[:alpha:]]*", "read /h/1", NULL },
	{ "lock hide\nhide /h/*", "read /h/.x",
		NULL }, /* which the line does not hide either */
	{ "lock hide\nhide /h/.*", "read /h/.x/y", "read" },
	{ "lock hide", "workspace ~/.ssh", "workspace" },
	{ "lock hide", "workspace ~/.ssh/x", "workspace" },
	{ "lock protect", "write $WORKSPACE/.git/config", "write" },
	{ "lock protect", "bind ~/ws/.git:/x:rw", "bind" },
	{ "lock protect", "bind ~/ws/.git:/x", NULL },
	{ "lock protect", "write $WORKSPACE/.git", NULL },
	{ "lock protect", "hide $WORKSPACE/.git/config", NULL },
};

static unsigned count_lines(const char *text)
{
	unsigned lines = 1;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void test_cases(void **state)
{
	static const struct file files[] = { { "/f", "read /in/file\n" }, { NULL, NULL } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct lock_case *c = &cases[i];
		struct fixture f;
		char on[64], what[128];

		start(&f);
		f.files = files;
		add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", c->system);
		add_text(&f, LAYER_USER, "/u/policy", c->later);
		expand(&f);
		if (!c->loosens) {
			if (f.result < 0)
				fail_msg(
					"'%s' refuses '%s': %s", c->system, c->later, f.e.what);
		} else {
			if (f.result == 0)
				fail_msg("'%s' lets pass: %s", c->system, c->later);
			(void)snprintf(on, sizeof(on), "/u/policy:%u", count_lines(c->later));
			(void)snprintf(what, sizeof(what), "'%s' loosens '%.*s'", c->loosens,
				(int)(strcspn(c->system, "\n") - 5), c->system + 5);
			assert_fails(
				&f, ERROR_LOCKED, on, what, "locked at /etc/carrel/policy:1");
			assert_int_equal(f.result, -EPERM);
		}
		stop(&f);
	}
}

/* The control: without the lock, each refused line is accepted. */
static void test_without_lock(void **state)
{
	static const struct file files[] = { { "/f", "read /in/file\n" }, { NULL, NULL } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *system = strchr(cases[i].system, '\n');
		struct fixture f;

		start(&f);
		f.files = files;
		add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", system ? system : "");
		add_text(&f, LAYER_USER, "/u/policy", cases[i].later);
		expand(&f);
		assert_fine(&f);
		stop(&f);
	}
}

/* What a preset says is held to the locks as if it stood where the preset is named. */
static void test_presets(void **state)
{
	static const struct {
		const char *system, *later, *on;
	} wrong[] = {
		{ "lock net", "with proxy", "with:proxy:2" },
		{ "lock write", "cache npm", "cache:npm:2" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct fixture f;

		start(&f);
		add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", wrong[i].system);
		add_text(&f, LAYER_USER, "/u/policy", wrong[i].later);
		expand(&f);
		assert_int_equal(f.result, -EPERM);
		assert_int_equal(f.e.code, ERROR_LOCKED);
		assert_string_equal(f.e.on, wrong[i].on);
		stop(&f);
	}
}

static void test_every_layer(void **state)
{
	static const struct file files[] = { { "/f", "net host\n" }, { NULL, NULL } };
	struct fixture f;

	(void)state;
	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net\n");
	add_args(&f, ARGS("--net=host"));
	expand(&f);
	assert_fails(&f, ERROR_LOCKED, "command line: --net", "'net' loosens 'net'", NULL);
	stop(&f);

	start(&f);
	f.files = files;
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net\n");
	add_args(&f, ARGS("--policy", "/f"));
	expand(&f);
	assert_fails(&f, ERROR_LOCKED, "/f:1", "'net' loosens 'net'", NULL);
	stop(&f);

	start(&f); /* the system policy itself, and what it includes, may say what it wants */
	f.files = files;
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net\npolicy /f\n");
	expand(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.net, NET_HOST);
	stop(&f);
}

static void test_wrong_locks(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock hde\n");
	assert_fails(
		&f, ERROR_POLICY, "/etc/carrel/policy:1", "unknown setting 'hde'", "'hide'");
	stop(&f);
	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock lock\n");
	assert_fails(&f, ERROR_POLICY, "/etc/carrel/policy:1", "'lock' cannot be locked", NULL);
	stop(&f);
}

/* Another profile is no way around a lock. */
static void test_profile_change(void **state)
{
	struct fixture f;
	const struct path_rule *ssh;

	(void)state;
	start(&f); /* its values are held, its hidden paths stay */
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock net hide timeout\ntimeout 1h\n");
	add_args(&f, ARGS("--profile", "open"));
	expand(&f);
	assert_fine(&f);
	assert_string_equal(f.policy.profile.value, "open");
	assert_int_equal(f.policy.net, NET_NONE);
	assert_int_equal(f.policy.timeout_ms.value, 3600000);
	ssh = the_path(&f.policy, "/home/u/.ssh");
	assert_int_equal(ssh->kind, PATH_HIDE);
	assert_int_equal(the_path(&f.policy, "/srv")->kind, PATH_WRITE);
	for (size_t i = 1; i < f.policy.path_count; i++)
		assert_true(
			f.policy.paths[i - 1].source.layer <= f.policy.paths[i].source.layer);
	stop(&f);

	start(&f); /* its rules are additions */
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock write\n");
	add_args(&f, ARGS("--profile", "open"));
	expand(&f);
	assert_fails(&f, ERROR_LOCKED, "profile:open:2", "'write' loosens 'write'", NULL);
	stop(&f);

	start(&f); /* a tighter one is welcome */
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock write read net hide protect\n");
	add_args(&f, ARGS("--profile", "closed"));
	expand(&f);
	assert_fine(&f);
	assert_null(find_path(&f.policy, "/"));
	assert_non_null(find_path(&f.policy, "/usr"));
	stop(&f);
}

/* --- on resolved paths ------------------------------------------------------------------------ */

/* Facts as if the user's `read /link` led to @target; @hidden is what the profile's `hide` is. */
static int check_link(const char *later, const char *path, const char *source,
	const char *workspace, struct error *e)
{
	struct path_fact paths[8];
	struct facts facts = { .paths = paths, .workspace = workspace };
	struct fixture f;

	start(&f);
	add_text(&f, LAYER_SYSTEM, "/etc/carrel/policy", "lock hide protect\n");
	add_text(&f, LAYER_USER, "/u/policy", later);
	expand(&f);
	assert_fine(&f);
	for (size_t i = 0; i < f.policy.path_count; i++) {
		const struct path_rule *rule = &f.policy.paths[i];
		bool user = rule->source.layer == LAYER_USER;

		paths[facts.path_count++] = (struct path_fact){ .rule = rule,
			.path = user ? path : rule->path,
			.source = user ? source : rule->path,
			.exists = true };
	}
	int r = policy_check_facts(&f.policy, &facts, e);
	stop(&f);
	return r;
}

static void test_facts(void **state)
{
	struct error e = { 0 };

	(void)state;
	assert_int_equal(
		check_link("read /link", "/home/u/.ssh/id", "/home/u/.ssh/id", "/w", &e),
		-EPERM);
	assert_int_equal(e.code, ERROR_LOCKED);
	assert_string_equal(e.on, "/u/policy:1");
	assert_int_equal(check_link("read /link", "/home/u/x", "/home/u/x", "/w", NULL), 0);
	assert_int_equal(check_link("bind /link:/d", "/d", "/home/u/.ssh", "/w", NULL), -EPERM);
	assert_int_equal(check_link("bind /link:/d", "/d", "/home/u", "/w", NULL), -EPERM);
	assert_int_equal(check_link("bind /link:/d", "/d", "/usr", "/w", NULL), 0);
	assert_int_equal(check_link("write /link", "/home/u/ws/.git/config",
				 "/home/u/ws/.git/config", "/w", NULL),
		-EPERM);
	assert_int_equal(
		check_link("hide /link", "/home/u/.ssh", "/home/u/.ssh", "/w", NULL), 0);
	/* the workspace, chosen by standing in it */
	e = (struct error){ 0 };
	assert_int_equal(check_link("read /link", "/x", "/x", "/home/u/.ssh/x", &e), -EPERM);
	assert_string_equal(e.on, "default");
	assert_non_null(strstr(e.what, "'workspace' loosens 'hide'"));
}

static void test_facts_without_locks(void **state)
{
	struct facts facts = { .workspace = "/home/u/.ssh" };
	struct fixture f;

	(void)state;
	start(&f);
	expand(&f);
	assert_fine(&f);
	assert_int_equal(policy_check_facts(&f.policy, &facts, &f.e), 0);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_without_lock),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_every_layer),
		cmocka_unit_test(test_wrong_locks),
		cmocka_unit_test(test_profile_change),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_facts_without_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
