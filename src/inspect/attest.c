/*
 * attest.c - `carrel attest`: a session as the kernel shows it, against its plan.
 *
 * Runs in: carrel-inspect, outside. It works out the plan with the launcher's own code, starts a
 * session with the launcher itself, and looks at that from outside. It believes nothing that the session
 * says about itself but its name, and the mounts must then confirm that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/facts/facts.h"
#include "host/launch/prepare.h"
#include "inspect/attest_mounts.h"
#include "inspect/attest_process.h"
#include "inspect/attest_session.h"
#include "inspect/inspect.h"

/* Room for a line of 65,536 groups: setgroups(2). Only the pages that are touched use memory. */
enum { STATUS_MAX = 1 << 20 };
enum { ATTEST_ARENA = 512 << 20 }; /* address space; pages are taken as they are touched */
#define SECRET_NAME "CARREL_ATTEST_SECRET"

struct attest {
	struct prepared p;
	struct arena arena;
	struct findings findings;
	struct attest_session session;
	const char *name;        /* of the session, carrel-<id> */
	const char *secret;      /* a variable that only the launcher gets */
	const char *const *argv; /* the launcher's */
	const char *const *environ;
	bool json, probe;
	char launcher[2048];
	char own_status[STATUS_MAX], status[STATUS_MAX];
};

static int usage(void)
{
	static const char text[] =
		"usage: carrel attest [--json] [SETTINGS] [-- COMMAND [ARGUMENT ...]]\n\n"
		"Starts a session as `carrel run` would, looks at it from outside, and says what\n"
		"differs from its plan. `carrel run --help` lists the settings.\n";

	return fd_write_all(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? INSPECT_BROKEN : 0;
}

/* The caller's environment and one variable whose name no policy lets in. */
static int make_environment(struct attest *a, const char *const *environment, struct error *e)
{
	unsigned char random[16];
	size_t count = 0;

	while (environment[count])
		count++;
	const char **copy = arena_array(&a->arena, count + 2, sizeof(*copy));
	int r = fd_random(random, sizeof(random));
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "options", -r, NULL, "no random bytes");
	a->secret = arena_format(&a->arena, SECRET_NAME "=%02x%02x%02x%02x%02x%02x%02x%02x",
		random[0], random[1], random[2], random[3], random[4], random[5], random[6],
		random[7]);
	if (!copy || !a->secret)
		return error_no_memory(e, "options");
	for (size_t i = 0; i < count; i++)
		copy[i] = environment[i];
	copy[count] = a->secret;
	a->environ = copy;
	return 0;
}

/* The same settings for the launcher, without the options of attest itself. */
static int make_arguments(struct attest *a, int argc, const char *const *argv, struct error *e)
{
	const char **copy = arena_array(&a->arena, (size_t)argc + 4, sizeof(*copy));
	size_t n = 0;
	int next = a->p.next;

	if (!copy)
		return error_no_memory(e, "options");
	copy[n++] = "carrel";
	copy[n++] = "run";
	for (int i = 2; i < next && strcmp(argv[i], "--") != 0; i++)
		if (!a->json || strcmp(argv[i], "--json") != 0)
			copy[n++] = argv[i];
	copy[n++] = "--";
	a->probe = next >= argc;
	if (a->probe)
		copy[n++] = "cat";
	for (int i = next; i < argc; i++)
		copy[n++] = argv[i];
	a->argv = copy;
	return 0;
}

/* The only thing that attest takes from inside; the mounts must show that it is true. */
static int find_name(struct attest *a, struct error *e)
{
	enum { SIZE = 4 << 20 };
	const char *const key = "CARREL_SESSION=";
	char *block = arena_alloc(&a->arena, SIZE);
	ssize_t n = block ? attest_read(a->session.payload, "environ", block, SIZE) : -ENOMEM;

	if (n < 0)
		return error_set(e, ERROR_INTERNAL, "supervise", (int)-n, NULL,
			"cannot read the payload's environment");
	for (const char *at = block; at < block + n; at += strlen(at) + 1)
		if (!strncmp(at, key, strlen(key)))
			a->name = arena_format(&a->arena, "carrel-%s", at + strlen(key));
	if (!a->name || strlen(a->name) != strlen(a->p.facts.session_name))
		return error_set(e, ERROR_PROTOCOL, "supervise", 0, NULL,
			"the payload's environment does not name its session");
	return 0;
}

static bool is_gone(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 && errno == ENOENT;
}

static int look_at_mounts(struct attest *a, struct mount_table *host, struct error *e)
{
	struct mount_table seen = { .arena = &a->arena };
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)a->session.payload);
	int r = mount_table_read(&seen, path, e);
	/* Read the host's mounts once more: something may have been mounted since, before the session's start. */
	if (r < 0)
		return r;
	r = mount_table_read(host, "/proc/self/mountinfo", e);
	if (r < 0)
		return r;
	attest_mounts(&a->findings, &a->p.plan, a->name, host, &seen, is_gone);
	return 0;
}

static int look_at_processes(struct attest *a, struct error *e)
{
	const struct facts *facts = &a->p.facts;
	char value[32];
	struct status_expected x = { .privileged = facts->privileged,
		.uid = facts->uid,
		.gid = facts->gid,
		.own_status = a->own_status };
	pid_t pids[] = { a->session.init, a->session.payload };
	ssize_t n = attest_read(getpid(), "status", a->own_status, sizeof(a->own_status));

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]) && n >= 0; i++) {
		x.who = i == 0 ? "init" : "payload";
		n = attest_read(pids[i], "status", a->status, sizeof(a->status));
		if (n >= 0)
			attest_status(&a->findings, a->status, &x);
	}
	if (n < 0)
		return error_set(e, ERROR_INTERNAL, "supervise", (int)-n, x.who,
			"cannot read a process' status");
	bool counted = attest_field(a->own_status, "Seccomp_filters", value, sizeof(value));
	attest_namespaces(&a->findings, &a->p.plan, a->session.payload);
	attest_descriptors(&a->findings, a->session.payload, a->probe);
	attest_environment(&a->findings, &a->p.plan, a->name, a->session.init,
		a->session.payload, a->secret);
	attest_limits(&a->findings, &a->p.plan, a->session.payload);
	attest_filter(&a->findings, &a->p.plan, a->session.payload,
		counted ? (unsigned)strtoul(value, NULL, 10) : 0);
	return 0;
}

/* The probe ends well, and its session leaves nothing behind. */
static void judge_end(struct attest *a, int status)
{
	const struct policy *policy = &a->p.policy;
	bool kept = policy->keep.on || policy->keep_for_ms.set;
	const char *dir = attest_rename(
		&a->arena, a->p.facts.session_dir, a->p.facts.session_name, a->name);
	struct stat st;

	if (a->probe && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		findings_add(&a->findings, VERDICT_FAIL, "end", NULL,
			"the launcher's wait status is %#x, not 0", (unsigned)status);
	if (!dir || (lstat(dir, &st) == 0) != kept)
		findings_add(&a->findings, VERDICT_FAIL, "end", dir,
			kept ? "was to be kept, but does not exist" : "is left behind");
	else
		findings_add(&a->findings, VERDICT_OK, "end", dir, "%s",
			kept ? "kept, as planned" : "the session directory does not exist");
}

static bool is_over(struct attest *a)
{
	char value[32];

	return attest_read(a->session.payload, "status", a->status, sizeof(a->status)) < 0 ||
		!attest_field(a->status, "State", value, sizeof(value)) || value[0] == 'Z' ||
		value[0] == 'X' ||
		/* A process that ends has lost its memory before it is dead. */
		!attest_field(a->status, "VmSize", value, sizeof(value));
}

static int look_at_session(struct attest *a, struct mount_table *host, struct error *e)
{
	int r = find_name(a, e);

	if (r < 0)
		return r;
	r = look_at_mounts(a, host, e);
	return r < 0 ? r : look_at_processes(a, e);
}

static int inspect_session(struct attest *a, struct error *e)
{
	struct mount_table host = { .arena = &a->arena };
	int r = inspect_launcher(a->launcher, sizeof(a->launcher));

	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "launch", -r, "carrel",
			"the launcher is not where it was installed");
	r = mount_table_read(&host, "/proc/self/mountinfo", e);
	if (r < 0)
		return r;
	r = attest_session_start(&a->session, a->launcher, a->argv, a->environ, a->probe, e);
	if (r < 0)
		return r;
	r = look_at_session(a, &host, e);
	bool over = !a->probe && is_over(a);
	int status = attest_session_end(&a->session);
	if (over) {
		/* The process ended while it was read: do not believe what was found. */
		*e = (struct error){ 0 };
		return attest_session_ended(NULL, status, e);
	}
	if (r < 0)
		return r;
	judge_end(a, status);
	return 0;
}

static int attest_with(struct attest *a, int argc, const char *const *argv,
	const char *const *environment, struct error *e)
{
	struct policy_verb_flag json = { .name = "json" };
	int r = arena_init(&a->arena, ATTEST_ARENA);

	if (r < 0)
		return error_no_memory(e, "options");
	a->findings.arena = &a->arena;
	r = make_environment(a, environment, e);
	if (r >= 0)
		r = prepare(&a->p, PREPARE_PLAN, argc, argv, 2, a->environ, &json, 1, e);
	if (r < 0 || a->p.help)
		return r;
	if (a->p.policy.from_stdin)
		return error_set(e, ERROR_USAGE, "options", 0, "--policy -",
			"attest reads the settings twice, standard input only once: name a file");
	a->json = json.given;
	r = make_arguments(a, argc, argv, e);
	return r < 0 ? r : inspect_session(a, e);
}

int attest_main(int argc, const char *const *argv, const char *const *environment)
{
	struct attest *a = calloc(1, sizeof(*a));
	struct error e = { 0 };

	if (!a)
		return INSPECT_BROKEN;
	int r = attest_with(a, argc, argv, environment, &e);
	int status = r < 0 ? error_report(&e) : a->p.help ? usage() : INSPECT_OK;
	if (r >= 0 && !a->p.help) {
		status = inspect_print(&a->findings, a->json);
		if (status == 0 && findings_worst(&a->findings) == VERDICT_FAIL)
			status = INSPECT_LESS;
	}
	prepare_free(&a->p);
	arena_free(&a->arena);
	free(a);
	return status;
}
