/*
 * doctor.c - `carrel doctor`: what this machine allows, found by trying.
 *
 * Runs in: carrel-inspect, outside. Leaves nothing: it names and locks the one directory that it makes like that
 * of a session that is being made, so that even after a SIGKILL the next sweep removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/session_name.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "base/parent.h"
#include "host/facts/facts.h"
#include "host/facts/identity.h"
#include "inspect/doctor.h"
#include "inspect/inspect.h"

enum {
	DOCTOR_ARENA = 16 << 20,
	MAKE_ROUNDS = 100 /* a sweep can take the directory in each round, within some µs */
};

/* --- what there is to judge ------------------------------------------------------------------- */

/* Lock it as soon as it exists. -EAGAIN: a sweep, which sees an unlocked directory, was faster. */
static int hold_directory(const char *path)
{
	struct stat st;
	autofd int dir = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dir < 0)
		return dir == -ENOENT ? -EAGAIN : dir;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstat(dir, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -EAGAIN : take_fd(&dir);
}

/* Make a directory with a name as session.c gives to those that it is making. */
static int try_to_make(struct doctor *d)
{
	char id[SESSION_ID_LENGTH + 1];
	int r = session_make_id(id);

	if (r < 0)
		return r;
	const char *path =
		arena_format(&d->arena, "%s/." SESSION_NAME_PREFIX "%s", d->base, id);
	if (!path)
		return -ENOMEM;
	if (mkdir(path, 0700) < 0)
		return -errno;
	d->held = hold_directory(path);
	if (d->held == -EAGAIN) {
		(void)rmdir(path); /* the sweep removes it, too */
		return -EAGAIN;
	}
	d->directory = path; /* whether it is held: doctor_scratch says that */
	return 0;
}

static int make_directory(struct doctor *d)
{
	int r = -EAGAIN;

	for (int i = 0; i < MAKE_ROUNDS && r == -EAGAIN; i++)
		r = try_to_make(d);
	return r;
}

static int plan_with(struct doctor *d, const char *workspace, struct error *e)
{
	const char *const argv[] = { "carrel", "run", "--workspace", workspace, "--", "true",
		NULL };
	const char *const plain[] = { "carrel", "run", "--", "true", NULL };

	return workspace ? prepare(&d->p, PREPARE_PLAN, 6, argv, 2, d->environ, NULL, 0, e)
			 : prepare(&d->p, PREPARE_PLAN, 4, plain, 2, d->environ, NULL, 0, e);
}

/* If there are no facts, the scratch base that they would have been about. */
static const char *guess_base(const struct doctor *d)
{
	const char *tmp = facts_env(d->environ, "TMPDIR");

	if (d->p.policy.scratch_base.value)
		return d->p.policy.scratch_base.value;
	return tmp && tmp[0] == '/' ? tmp : "/tmp";
}

/* People call this from the home directory: that it cannot be a workspace is no fault. */
static void find_workspace(struct doctor *d)
{
	struct error *e = &d->error;
	int r = plan_with(d, NULL, e);

	if (r < 0 && e->code == ERROR_WORKSPACE) {
		/* Copied, because the policy that it may come from is freed. */
		const char *base = guess_base(d);
		d->base = arena_copy(&d->arena, base, strlen(base));
		if (d->base && make_directory(d) >= 0) {
			prepare_free(&d->p);
			*e = (struct error){ 0 };
			d->own_workspace = true;
			r = plan_with(d, d->directory, e);
		}
	}
	d->planned = r >= 0;
}

static void report_plan(struct doctor *d)
{
	const struct error *e = &d->error;

	if (d->planned)
		findings_add(&d->findings, VERDICT_OK, "plan", NULL,
			"the policy can be planned here: %zu operations", d->p.plan.op_count);
	else
		findings_add(&d->findings, VERDICT_FAIL, "plan", e->on[0] ? e->on : NULL,
			"%s%s%s", e->what, error_why(e) ? ": " : "",
			error_why(e) ? error_why(e) : "");
	if (!d->planned && e->hint[0])
		findings_remedy(&d->findings, "%s", e->hint);
}

static void gather(struct doctor *d)
{
	struct identity who = { .uid = geteuid(), .gid = getegid() };

	find_workspace(d);
	/* The facts may be missing: find out who the caller is in any case. */
	if (identity_choose(&who, &d->error) < 0)
		who.privileged = false;
	if (!d->planned && d->error.code == ERROR_UNAVAILABLE && who.uid == 0 &&
		!who.privileged)
		findings_add(&d->findings, VERDICT_NOTE, "plan", NULL,
			"cannot be made, as long as unprivileged-uid fails");
	else
		report_plan(d);
	d->probe = (struct probe){ .privileged = who.privileged,
		.uid = who.uid,
		.gid = who.gid,
		.kernel_uid = who.kernel_uid,
		.kernel_gid = who.kernel_gid };
	d->workspace = d->own_workspace ? d->directory : d->p.facts.workspace;
	if (d->p.facts.scratch_base)
		d->base = d->p.facts.scratch_base;
	else if (!d->base)
		d->base = guess_base(d);
	if (!d->directory && make_directory(d) < 0)
		d->directory = NULL; /* doctor_scratch says so */
}

/* --- sessions --------------------------------------------------------------------------------- */

static _Noreturn void become(
	const struct doctor *d, pid_t parent, const char *const *argv, int err)
{
	int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (parent_die_with(parent, SIGTERM) == 0 && dup2(null, STDIN_FILENO) >= 0 &&
		dup2(null, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		(void)execve(d->launcher, (char *const *)argv, (char *const *)d->environ);
	_exit(INSPECT_BROKEN);
}

/* Returns the launcher's exit status or -errno; d->said is what it printed. */
static int run_session(struct doctor *d, const char *option, const char *value)
{
	const char *argv[9] = { "carrel", "run" };
	size_t n = 2;
	int pair[2], status;

	if (option) {
		argv[n++] = option;
		argv[n++] = value;
	}
	if (d->own_workspace) {
		argv[n++] = "--workspace";
		argv[n++] = d->directory;
	}
	argv[n++] = "--";
	argv[n++] = "true";
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	autofd int from = pair[0], to = pair[1];
	pid_t parent = getpid(), child = fork();
	if (child == 0)
		become(d, parent, argv, to);
	fd_close(&to);
	if (child < 0)
		return -EAGAIN;
	ssize_t length = fd_read_file(from, d->said, sizeof(d->said) - 1);
	if (length < 0)
		d->said[0] = '\0';
	fd_close(&from);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_session(struct doctor *d, const char *check, const char *option,
	const char *value, enum verdict verdict, const char *good)
{
	static const char prefix[] = "carrel: ", hint[] = "\ncarrel: hint: ";
	int status = run_session(d, option, value);

	if (status == 0) {
		findings_add(&d->findings, VERDICT_OK, check, NULL, "%s", good);
		return;
	}
	if (!d->planned && !d->cause)
		d->cause = "plan";
	if (doctor_follows(d, check, -EPERM))
		return;
	char *remedy = strstr(d->said, hint);
	char *text = d->said + (strncmp(d->said, prefix, strlen(prefix)) ? 0 : strlen(prefix));
	findings_add(&d->findings, verdict, check, NULL, "status %d: %.*s", status,
		(int)strcspn(text, "\n"), text);
	if (!remedy)
		return;
	remedy += strlen(hint);
	findings_remedy(&d->findings, "%.*s", (int)strcspn(remedy, "\n"), remedy);
}

void doctor_sessions(struct doctor *d)
{
	int r = inspect_launcher(d->launcher, sizeof(d->launcher));

	if (r < 0) {
		findings_add(&d->findings, VERDICT_FAIL, "session", NULL,
			"the launcher is not where it was installed");
		return;
	}
	check_session(d, "session", NULL, NULL, VERDICT_FAIL, "a command was run in one");
	check_session(d, "overlay", "--workspace-mode", "overlay", VERDICT_WARN,
		"a command was run with a copy-on-write workspace");
}

/* --- the verb --------------------------------------------------------------------------------- */

static int usage(void)
{
	static const char text[] =
		"usage: carrel doctor [--strict] [--json]\n\n"
		"Tries what sessions need and says what this machine allows, and what to change.\n"
		"The status is 0 where sessions have every wall that this kernel can have; with\n"
		"--strict also a wall that only a newer kernel has, or another warning, makes it 1.\n";

	return fd_write_all(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? INSPECT_BROKEN : 0;
}

static int examine(struct doctor *d)
{
	static void (*const groups[])(struct doctor * d) = { doctor_caller, doctor_namespaces,
		doctor_mounts, doctor_walls, doctor_machine, doctor_scratch, doctor_sessions };

	d->findings.arena = &d->arena;
	gather(d);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		groups[i](d);
	if (d->directory && rmdir(d->directory) < 0)
		findings_add(&d->findings, VERDICT_WARN, "scratch-base", d->directory,
			"cannot be removed: %s", strerror(errno));
	fd_close(&d->held);
	int status = inspect_print(&d->findings, d->json);
	if (status != 0)
		return status;
	switch (findings_worst(&d->findings)) {
	case VERDICT_OK:
	case VERDICT_NOTE:
		return INSPECT_OK;
	case VERDICT_WARN:
		return d->strict || d->lacks ? INSPECT_LESS : INSPECT_OK;
	case VERDICT_FAIL:
		break;
	}
	return INSPECT_REFUSED;
}

enum { OPTION_JSON, OPTION_STRICT, OPTION_COUNT };

/* 0; 1: help was asked for; or -errno with @e. */
static int read_options(
	int argc, const char *const *argv, bool ret_options[OPTION_COUNT], struct error *e)
{
	static const char *const names[OPTION_COUNT] = { "--json", "--strict" };

	for (int i = 2; i < argc; i++) {
		size_t n = 0;

		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return 1;
		while (n < OPTION_COUNT && strcmp(argv[i], names[n]) != 0)
			n++;
		if (n == OPTION_COUNT || ret_options[n]) {
			int r = error_set(e, ERROR_USAGE, "options", 0, argv[i],
				n < OPTION_COUNT ? "this option is given once"
						 : "there is no such option");
			error_hint(e, "carrel doctor [--strict] [--json]");
			return r;
		}
		ret_options[n] = true;
	}
	return 0;
}

static int doctor_with(const char *const *environment, const bool options[OPTION_COUNT])
{
	struct doctor *d = calloc(1, sizeof(*d));

	if (!d || arena_init(&d->arena, DOCTOR_ARENA) < 0) {
		free(d);
		return INSPECT_BROKEN;
	}
	d->held = -ENOENT;
	d->environ = environment;
	d->json = options[OPTION_JSON];
	d->strict = options[OPTION_STRICT];
	int status = examine(d);
	prepare_free(&d->p);
	arena_free(&d->arena);
	free(d);
	return status;
}

int doctor_main(int argc, const char *const *argv, const char *const *environment)
{
	struct error e = { 0 };
	bool options[OPTION_COUNT] = { false };
	int r = read_options(argc, argv, options, &e);

	if (r != 0)
		return r > 0 ? usage() : error_report(&e);
	return doctor_with(environment, options);
}
