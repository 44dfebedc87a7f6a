/*
 * policy_net_test.c - `net`, `allow`, `deny` and their kin: what they mean together, locks, sets.
 *
 * Runs in: the unit tests.
 */
/* ctest: as=any */
#include "policy_fixture.h"

#define USER_FILE "/home/u/.config/carrel/policy"
#define SYSTEM_FILE "/etc/carrel/policy"

/* Sets that ship, and of the user's own. */
static const struct embedded_text with_sets[] = {
	SHIPPED("agent", "read /\nsyscalls default\n"),
	SHIPPED("npm.hosts", "# registry\nregistry.npmjs.org\n"),
	SHIPPED("two.hosts", "@npm\nexample.org:8443 *.example.org\n"),
	SHIPPED("loop.hosts", "@back\n"),
	SHIPPED("back.hosts", "a.example.org\n@loop\n"),
	SHIPPED("policy.hosts", "net host\n"),
};

static int load_own_set(
	void *context, const char *name, struct policy_file *ret, struct error *e)
{
	static const char text[] = "@npm\nmine.example.org\n";

	(void)context;
	(void)e;
	if (strcmp(name, "mine") != 0)
		return 0;
	*ret = (struct policy_file){ .text = text,
		.size = sizeof(text) - 1,
		.path = "/home/u/.config/carrel/sets/mine" };
	return 1;
}

static void begin(struct fixture *f)
{
	start(f);
	f->resolver.texts = with_sets;
	f->resolver.text_count = COUNT(with_sets);
	f->resolver.load_set = load_own_set;
}

static void assert_net(struct fixture *f, enum net_mode mode, size_t rules)
{
	expand(f);
	assert_fine(f);
	assert_int_equal(f->policy.net, mode);
	assert_int_equal(f->policy.net_rule_count, rules);
	stop(f);
}

static void test_implied(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_net(&f, NET_NONE, 0);
	begin(&f); /* an allow line alone */
	add_args(&f, ARGS("--allow", "example.org"));
	assert_net(&f, NET_ALLOW, 1);
	begin(&f); /* above `net host` it narrows */
	add_text(&f, LAYER_USER, USER_FILE, "net host\n");
	add_args(&f, ARGS("--allow", "example.org"));
	assert_net(&f, NET_ALLOW, 1);
	begin(&f); /* below `net none` it has no effect, and nothing of it is left */
	add_text(&f, LAYER_USER, USER_FILE, "allow example.org\ndeny x.org\n");
	add_args(&f, ARGS("--net", "none"));
	assert_net(&f, NET_NONE, 0);
	begin(&f); /* deny alone allows nothing */
	add_args(&f, ARGS("--deny", "example.org"));
	assert_net(&f, NET_NONE, 0);
	begin(&f); /* an empty list is nothing, and is good */
	add_args(&f, ARGS("--net", "allow"));
	assert_net(&f, NET_ALLOW, 0);
	begin(&f); /* lists of all layers count; what is said twice is one */
	add_text(&f, LAYER_USER, USER_FILE,
		"allow example.org a.example.org\ndeny b.example.org\n");
	add_args(&f, ARGS("--allow", "Example.ORG.", "--allow", "example.org:8443"));
	assert_net(&f, NET_ALLOW, 4);
}

static void test_contradicts(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	add_args(&f, ARGS("--net", "none", "--allow", "example.org"));
	finish(&f);
	assert_fails(&f, ERROR_POLICY, "command line: --allow",
		"'allow example.org:80,443' contradicts 'net none'", "command line: --net");
	stop(&f);
	begin(&f);
	add_text(&f, LAYER_USER, USER_FILE, "allow example.org\nnet host\n");
	finish(&f);
	assert_fails(
		&f, ERROR_POLICY, USER_FILE ":1", "contradicts 'net host'", USER_FILE ":2");
	stop(&f);
}

static void test_locks(void **state)
{
	static const struct {
		const char *system, *option, *value, *on, *what;
	} cases[] = {
		{ "lock net\n", "--allow", "x.org", "command line: --allow",
			"'allow' loosens 'net'" },
		{ "lock net\n", "--net", "allow", "command line: --net",
			"'net' loosens 'net'" },
		{ "lock allow\nallow x.org\n", "--allow", "y.org", "command line: --allow",
			"'allow' loosens 'allow'" },
		{ "lock allow\nallow x.org\n", "--allow", "x.org:81", "command line: --allow",
			"'allow' loosens 'allow'" },
		{ "lock allow\nallow x.org\n", "--net", "host", "command line: --net",
			"'net' loosens 'allow'" },
		{ "lock deny\ndeny x.org\n", "--net", "host", "command line: --net",
			"'net' loosens 'deny'" },
		{ "lock tls-name\n", "--no-tls-name", NULL, "command line: --tls-name",
			"'tls-name' loosens 'tls-name'" },
		{ "lock net-live\n", "--net-live", NULL, "command line: --net-live",
			"'net-live' loosens 'net-live'" },
		{ "lock publish\npublish 8080\n", "--publish", "8080:0",
			"command line: --publish", "'publish' loosens 'publish'" },
		{ "lock publish\n", "--publish", "9090", "command line: --publish",
			"'publish' loosens 'publish'" },
		{ "lock net-connections\nnet-connections 5\n", "--net-connections", "6",
			"command line: --net-connections", "loosens" },
		{ "lock net-bytes\nnet-bytes 5M\n", "--net-bytes", "6M",
			"command line: --net-bytes", "loosens" },
		{ "lock net-log\nnet-log /l\n", "--net-log", "/m", "command line: --net-log",
			"loosens" },
		{ "lock net-resolver\n", "--net-resolver", "192.0.2.1",
			"command line: --net-resolver", "loosens" },
		{ "lock egress-proxy\negress-proxy http://p:1\n", "--egress-proxy",
			"http://p:2", "command line: --egress-proxy", "loosens" },
		{ "lock egress-proxy\n", "--egress-proxy", "http://p:2",
			"command line: --egress-proxy", "loosens" },
		{ "lock egress-proxy-login\n", "--egress-proxy-login", "/l",
			"command line: --egress-proxy-login", "loosens" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&f);
		add_text(&f, LAYER_SYSTEM, SYSTEM_FILE, cases[i].system);
		add_args(&f, ARGS(cases[i].option, cases[i].value));
		expand(&f);
		assert_fails(&f, ERROR_LOCKED, cases[i].on, cases[i].what, "locked at");
		stop(&f);
	}
	begin(&f); /* what is there already, and what is tighter, may be said again */
	add_text(&f, LAYER_SYSTEM, SYSTEM_FILE,
		"lock net allow deny net-connections\nallow x.org\ndeny y.org\nnet-connections 5\n");
	add_args(&f, ARGS("--allow", "x.org", "--deny", "z.org", "--net-connections", "4"));
	assert_net(&f, NET_ALLOW, 3);
	begin(&f);
	add_text(&f, LAYER_SYSTEM, SYSTEM_FILE,
		"lock net allow deny\nallow x.org\ndeny y.org\n");
	add_args(&f, ARGS("--net", "none"));
	assert_net(&f, NET_NONE, 0);
}

static void assert_rule(const struct fixture *f, size_t number, const char *expected)
{
	char text[NETRULE_TEXT_MAX];

	assert_true(netrule_format(f->policy.net_rules[number].rule, text, sizeof(text)) > 0);
	assert_string_equal(text, expected);
}

static void test_sets(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	add_args(&f, ARGS("--allow", "@two", "--deny", "@npm"));
	finish(&f);
	assert_fine(&f);
	assert_int_equal(f.policy.net_rule_count, 4);
	assert_rule(&f, 0, "registry.npmjs.org:80,443");
	assert_string_equal(f.policy.net_rules[0].source.file, "set:npm");
	assert_int_equal(f.policy.net_rules[0].source.line, 2);
	assert_int_equal(f.policy.net_rules[0].source.layer, LAYER_COMMAND);
	assert_rule(&f, 2, "*.example.org:80,443");
	assert_true(f.policy.net_rules[3].rule->deny);
	stop(&f);
	begin(&f);
	add_args(&f, ARGS("--allow", "@mine"));
	assert_net(&f, NET_ALLOW, 2);
}

static void test_wrong_sets(void **state)
{
	static const struct {
		const char *text, *on, *what, *hint;
	} cases[] = {
		{ "allow @loop\n", "set:back:2", "'set:loop' includes itself",
			"set:loop -> set:back -> set:loop" },
		{ "allow @nmp\n", USER_FILE ":1", "unknown set of hosts '@nmp'", "'@npm'" },
		{ "allow @\n", USER_FILE ":1", "unknown set of hosts '@'", NULL },
		{ "allow @npm @two\n", USER_FILE ":1", "'@two' follows a set of hosts",
			"a line for each" },
		{ "allow @policy/../npm\n", USER_FILE ":1", "unknown set of hosts", NULL },
		{ "deny @policy\n", NULL, NULL, NULL }, /* a set holds hosts: `net` is one */
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(&f);
		add_text(&f, LAYER_USER, USER_FILE, cases[i].text);
		if (cases[i].what)
			assert_fails(
				&f, ERROR_POLICY, cases[i].on, cases[i].what, cases[i].hint);
		else
			assert_net(&f, NET_NONE, 0);
		if (cases[i].what)
			stop(&f);
	}
	begin(&f); /* what the machine's policy says nobody else may choose */
	add_text(&f, LAYER_SYSTEM, SYSTEM_FILE, "allow @mine\n");
	assert_fails(&f, ERROR_POLICY, SYSTEM_FILE ":1", "unknown set of hosts '@mine'", NULL);
	stop(&f);
}

static void test_values(void **state)
{
	static const struct {
		const char *option, *value, *what;
	} wrong[] = {
		{ "--allow", "", NULL },
		{ "--allow", "a.*.b", "wildcard" },
		{ "--allow", "example.org:0", NULL },
		{ "--allow", "example.org:53", "port 53" },
		{ "--net-resolver", "example.org", "is not an address" },
		{ "--net-resolver", "192.0.2.0/24", "is not an address" },
		{ "--net-resolver", "192.0.2.1:53,54", "more than one port" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		begin(&f);
		add_args(&f, ARGS(wrong[i].option, wrong[i].value));
		assert_fails(&f, ERROR_USAGE, wrong[i].option, wrong[i].what, NULL);
		stop(&f);
	}
	static const char *const proxies[][2] = {
		{ "http://Proxy.Example.:3128/", "http://proxy.example:3128" },
		{ "http://192.0.2.1:80", "http://192.0.2.1:80" },
		{ "http://[2001:DB8::1]:3128", "http://[2001:db8::1]:3128" },
		{ "http://localhost:3128", "http://localhost:3128" },
	};
	for (size_t i = 0; i < COUNT(proxies); i++) {
		begin(&f);
		add_args(&f, ARGS("--egress-proxy", proxies[i][0]));
		finish(&f);
		assert_fine(&f);
		assert_string_equal(f.policy.egress_proxy.value, proxies[i][1]);
		stop(&f);
	}
	static const char *const resolvers[][2] = {
		{ "192.0.2.1", "192.0.2.1:53" },
		{ "192.0.2.1:5353", "192.0.2.1:5353" },
		{ "[2001:db8::1]", "[2001:db8::1]:53" },
	};
	for (size_t i = 0; i < COUNT(resolvers); i++) {
		begin(&f);
		add_args(&f, ARGS("--net-resolver", resolvers[i][0]));
		finish(&f);
		assert_fine(&f);
		assert_string_equal(f.policy.net_resolver.value, resolvers[i][1]);
		stop(&f);
	}
}

/* What is printed is a policy that says the same. */
static void test_printed(void **state)
{
	static struct sink first, second;
	struct fixture f;

	(void)state;
	first = second = (struct sink){ .used = 0 };
	begin(&f);
	add_args(&f,
		ARGS("--allow", "@two", "--allow", "[2001:db8::]/32", "--deny", "x.org",
			"--no-tls-name", "--net-resolver", "192.0.2.1", "--net-log", "/l",
			"--net-bytes", "5M", "--net-connections", "9"));
	finish(&f);
	assert_fine(&f);
	assert_int_equal(policy_print(&f.policy, false, sink_write, &first), 0);
	stop(&f);
	begin(&f);
	add_text(&f, LAYER_FILE, "session", first.text);
	finish(&f);
	assert_fine(&f);
	assert_int_equal(policy_print(&f.policy, false, sink_write, &second), 0);
	assert_string_equal(first.text, second.text);
	assert_non_null(strstr(first.text, "\nallow *.example.org:80,443\n"));
	stop(&f);
}

/* A list of names is as long as it has to be; other lines are counted apart. */
static void test_many(void **state)
{
	enum { MANY = 10000 };
	char *text = malloc(MANY * 32), *at = text;
	struct fixture f;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < MANY; i++)
		at += snprintf(at, 32, "allow host-%d.example.org\n", i);
	begin(&f);
	add_text(&f, LAYER_USER, USER_FILE, text);
	assert_net(&f, NET_ALLOW, MANY);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_implied),
		cmocka_unit_test(test_contradicts),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_wrong_sets),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
