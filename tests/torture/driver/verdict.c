/*
 * verdict.c - see verdict.h.
 *
 * Runs in: the torture driver.
 */
#include "verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "view.h"

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467 /* Linux 6.15 */
#endif

enum { STATUS_CARREL = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

struct judgement {
	struct world *w;
	const struct trace_point *point;
	const struct trace_result *r;
	struct world_left *left;
	const struct reference *good;
	int status;          /* of the launcher, -1 where a signal ended it */
	bool launcher_shot;  /* by this point */
	enum trace_kind hit; /* the process that was hit */
	unsigned call;       /* and its call */
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static bool bad(
	struct judgement *j, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(j->why, j->size, format, list);
	va_end(list);
	return false;
}

static bool says(const struct judgement *j, const char *text)
{
	return strstr(j->left->report, text) != NULL;
}

static bool has_report(const struct judgement *j)
{
	return j->left->report[0] != '\0';
}

/* The command ran to its own end with status 0. */
static bool command_succeeded(const struct judgement *j)
{
	return j->r->command_ended && WIFEXITED(j->r->command_status) &&
		WEXITSTATUS(j->r->command_status) == 0;
}

static void find_hit(struct judgement *j)
{
	for (unsigned i = 0; i < j->r->process_count; i++) {
		const struct trace_process *p = &j->r->processes[i];

		if (strcmp(p->path, j->point->path) != 0)
			continue;
		j->hit = p->kind;
		if (j->point->index < p->count)
			j->call = p->calls[j->point->index];
	}
}

/* --- the walls ------------------------------------------------------------------------------ */

/*
 * Inside, a call that failed and was passed over is a wall that may be missing without any sign
 * outside (a keyring, a locked bit). These are the calls whose failure cannot matter: what they
 * give back was not going to be used again, or only for telling what happened. And file systems
 * are made in advance, where it can be done, or else later: all of them are seen in the mount
 * table, which was compared.
 */
static bool may_pass_over(unsigned call, uint64_t argument, int error)
{
	switch (call) {
	case SYS_fcntl: /* musl sets what O_CLOEXEC has set already, for old kernels */
		return argument == F_SETFD;
	case SYS_close:
	case SYS_munmap:
	case SYS_madvise:        /* memory that is given back */
	case SYS_rt_sigprocmask: /* by the C library, around fork */
	case SYS_umask:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_getppid:
	case SYS_getpid:
	case SYS_kill: /* whether anybody is left: taken for "perhaps" */
	case SYS_set_tid_address:
	case SYS_clone: /* after the command has run: whether one more could be started */
	case SYS_fsopen:
	case SYS_fsconfig:
	case SYS_fsmount:
		return true;
	case SYS_open_tree_attr: /* a clone with its attributes, or else in two calls: seen there too */
		return error == EPERM;
	case SYS_read:
	case SYS_write:
#ifdef SYS_poll /* not everywhere */
	case SYS_poll:
#endif
	case SYS_ppoll:
	case SYS_recvmsg:
	case SYS_sendmsg:
		return error == EINTR;
	default:
		return false;
	}
}

bool verdict_may_pass_over(
	const struct trace_process *hit, const struct trace_point *point, uint64_t argument)
{
	if (hit->kind != KIND_INIT && hit->kind != KIND_PAYLOAD && hit->kind != KIND_MONITOR)
		return true;
	return may_pass_over(hit->calls[point->index], argument, point->error);
}

static bool check_walls(struct judgement *j)
{
	char difference[700];

	if (!j->r->command_started || j->r->view_torn)
		return true;
	if (strcmp(j->r->view, j->good->view) != 0) {
		view_first_difference(
			j->good->view, j->r->view, difference, sizeof(difference));
		return bad(j, "the command ran with other walls: %s", difference);
	}
	/* What it saw from inside; a command that was cut short must have seen the same so far. */
	size_t length = strlen(j->left->output);
	if (strncmp(j->left->output, j->good->output, length) != 0) {
		view_first_difference(
			j->good->output, j->left->output, difference, sizeof(difference));
		return bad(j, "the command saw other walls: %s", difference);
	}
	return true;
}

/* --- the truth ------------------------------------------------------------------------------ */

static bool check_report(struct judgement *j)
{
	const char *text = j->left->report;
	const char *status = strstr(text, "\"exit_status\":");
	size_t length = strlen(text);

	if (strncmp(text, "{\"schema\":1,", 12) != 0 || strcmp(text + length - 2, "}\n") != 0)
		return bad(j, "the report is not whole");
	if (j->launcher_shot)
		return true; /* it was about to say more, or had said all */
	if (!status || strtol(status + strlen("\"exit_status\":"), NULL, 10) != j->status)
		return bad(j, "the report has another exit status than %d", j->status);
	if (says(j, "\"started\":\"yes\"") && !j->r->command_started)
		return bad(j, "the report says started, and it was not");
	if (says(j, "\"started\":\"no\"") && j->r->command_started)
		return bad(j, "the report says not started, and it was");
	if (says(j, "\"status\":0,") && !command_succeeded(j))
		return bad(j, "the report says status 0, and the command did not succeed");
	if (j->status == STATUS_CARREL && says(j, "\"error\":null"))
		return bad(j, "status 125, and the report has no error");
	return true;
}

static bool check_status(struct judgement *j)
{
	if (j->launcher_shot)
		return true;
	if (j->status < 0) /* a crash at its start is no lie, but later it would be */
		return !j->r->command_started ||
			bad(j, "the launcher crashed, and the command ran");
	if (j->status == 0 && !command_succeeded(j))
		return bad(j, "status 0, and the command did not run to its end");
	if (j->status == 0 && !has_report(j))
		return bad(j, "status 0, and there is no report");
	if ((j->status == STATUS_NOT_EXECUTABLE || j->status == STATUS_NOT_FOUND) &&
		j->r->command_started)
		return bad(j, "status %d, and the command ran", j->status);
	if (j->status > 128 && !j->r->command_started && !says(j, "\"started\":\"unknown\""))
		return bad(j, "status %d, and the command did not run", j->status);
	if (j->status > 0 && j->status < STATUS_CARREL)
		return bad(j, "status %d, which the command did not give", j->status);
	return true;
}

static bool check_words(struct judgement *j)
{
	if (j->status != STATUS_CARREL || strncmp(j->left->messages, "carrel: ", 8) == 0)
		return true;
	/* Where the message itself is what failed, the report must have it, if there is one. */
	if (j->hit == KIND_LAUNCHER && (j->call == SYS_write || j->call == SYS_writev))
		return true;
	return bad(j, "status 125 without a word");
}

/* --- what is left --------------------------------------------------------------------------- */

static bool check_base(struct judgement *j)
{
	if (!j->left->base[0])
		return true;
	bool told = j->status == STATUS_CARREL &&
		(!has_report(j) || says(j, "\"result\":\"partial\"") ||
			says(j, "\"result\":\"failed\"") || says(j, "\"teardown\":null"));
	if (!j->launcher_shot && j->status >= 0 && !told)
		return bad(j, "left in the scratch base, and not told: %.200s", j->left->base);
	int status = world_gc(j->w, j->left);
	if (status != 0)
		return bad(j, "gc ended with status %d", status);
	return !j->left->base[0] || bad(j, "left behind by gc: %.200s", j->left->base);
}

static bool has_line(const char *text, const char *line, size_t length)
{
	for (; *text; text += strcspn(text, "\n") + 1)
		if (strcspn(text, "\n") == length && !strncmp(text, line, length))
			return true;
	return false;
}

/* The first line of @text that @other has not; NULL where it has all of them. */
static const char *lacks(const char *other, const char *text, size_t *ret_length)
{
	for (; *text; text += *ret_length + 1) {
		*ret_length = strcspn(text, "\n");
		if (!has_line(other, text, *ret_length))
			return text;
	}
	return NULL;
}

bool verdict_git(const struct world_left *left, const struct reference *good, bool standing,
	char *ret_why, size_t size)
{
	size_t length = 0;
	const char *line = standing ? NULL : lacks(good->git, left->git, &length);

	if (line) {
		(void)snprintf(ret_why, size, "git would obey .git/%.*s", (int)length, line);
		return false;
	}
	for (const char *rest = good->git; (line = lacks(left->git, rest, &length));
		rest = line + length + 1) {
		char gone[64];

		(void)snprintf(
			gone, sizeof(gone), "/.git/%.*s\"", (int)strcspn(line, "/\n"), line);
		if (strstr(left->report, gone))
			continue;
		(void)snprintf(ret_why, size, "gone is .git/%.*s", (int)length, line);
		return false;
	}
	return true;
}

static bool check_git(struct judgement *j)
{
	/* That a child of its own could not look is no reason for the launcher to let it stand. */
	bool reads = j->hit == KIND_READER || j->hit == KIND_HELPER;
	bool standing = j->r->command_started && j->status != 0 && !reads;

	size_t length;

	if (!j->w->git)
		return true;
	if (!verdict_git(j->left, j->good, standing, j->why, j->size))
		return false;
	return !command_succeeded(j) || j->left->quarantined ||
		lacks(j->good->git, j->left->git, &length) ||
		bad(j, "what the command left is neither there nor in quarantine");
}

static bool check_workspace(struct judgement *j)
{
	char expected[WORLD_TEXT];
	const char *name = j->w->protected_name;

	if (!strcmp(j->left->workspace, j->good->workspace)) {
		/* What a command left at a protected path is the user's to see, not to lose. */
		if (name[0] && !j->w->git && command_succeeded(j) && !j->left->quarantined)
			return bad(j,
				"what lay at the protected path is neither there nor in quarantine");
		return true;
	}
	/* Only what the command itself made, where nobody lived or was able to move it. */
	(void)snprintf(expected, sizeof(expected), "%s\n%s", name, j->good->workspace);
	if (name[0] && !strcmp(j->left->workspace, expected) && j->r->command_started &&
		j->status != 0)
		return true;
	/* A command that began, and was killed with its session before it had cleared up its own file. */
	(void)snprintf(expected, sizeof(expected), "%s" WORLD_MADE "\n%s",
		j->w->git ? ".git/\n" : "", j->good->workspace + (j->w->git ? 6 : 0));
	if (!strcmp(j->left->workspace, expected) && j->r->command_started &&
		(j->launcher_shot || j->status == STATUS_CARREL))
		return true;
	return bad(j, "the workspace is not as it was: %.200s", j->left->workspace);
}

static bool check_left(struct judgement *j)
{
	if (j->r->survivors)
		return bad(j, "%u processes outlived the launcher: %s", j->r->survivors,
			j->r->survivor);
	if (j->left->mounted)
		return bad(j, "a mount is left");
	if (strcmp(j->left->reports, "") != 0 &&
		strcmp(j->left->reports, "report.json\n") != 0 &&
		!(j->launcher_shot && strstr(j->left->reports, ".carrel-report-")))
		return bad(j, "left beside the report: %.200s", j->left->reports);
	return check_git(j) && check_workspace(j) && check_base(j);
}

/* -------------------------------------------------------------------------------------------- */

enum outcome verdict(struct world *w, const struct trace_point *point,
	const struct trace_result *r, struct world_left *left, const struct reference *good,
	char *ret_why, size_t size)
{
	struct judgement j = { .w = w,
		.point = point,
		.r = r,
		.left = left,
		.good = good,
		.why = ret_why,
		.size = size,
		.status =
			WIFEXITED(r->launcher_status) ? WEXITSTATUS(r->launcher_status) : -1 };

	find_hit(&j);
	j.launcher_shot = r->reached && !point->error && j.hit == KIND_LAUNCHER;
	if (r->hung) {
		(void)bad(&j, "it hung");
		return OUTCOME_VIOLATION;
	}
	if (!check_walls(&j) || (has_report(&j) && !check_report(&j)) || !check_status(&j) ||
		!check_words(&j) || !check_left(&j))
		return OUTCOME_VIOLATION;
	bool passed_over = r->reached && point->error && r->command_started &&
		(j.hit == KIND_INIT || j.hit == KIND_PAYLOAD) && j.status == 0;
	if (passed_over && !may_pass_over(j.call, r->argument, point->error)) {
		(void)bad(&j, "a failure inside was passed over");
		return OUTCOME_VIOLATION;
	}
	if (!r->reached)
		return OUTCOME_UNREACHED;
	if (j.launcher_shot)
		return OUTCOME_KILLED;
	if (j.status < 0)
		return OUTCOME_CRASHED;
	if (j.status == 0)
		return OUTCOME_SAME;
	return r->command_started ? OUTCOME_TOLD : OUTCOME_REFUSED;
}

const char *verdict_good(const struct trace_result *r, const struct world_left *left)
{
	static const char *const walls[] = { "CapInh:\t0000000000000000\n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n",
		"CapBnd:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
		"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "SigIgn:\t0000000000000000\n",
		"NSpid: ", "namespace user: own\n", "namespace mnt: own\n",
		"namespace pid: own\n", "namespace ipc: own\n", "namespace uts: own\n",
		"namespace net: own\n", "namespace cgroup: own\n", "mounts read\n",
		"environment read\n", " / ro,nosuid" };
	static const char *const seen[] = { "begin\n", "status 0\n",
		"secret-in-environment no\n", "interface lo\n", "workspace 0\n", "scratch 0\n",
		"end\n" };
	static const char *const obeyed[] = { "COMMIT_EDITMSG", "logs/HEAD", "sparse-checkout",
		"git-rebase-todo", "hooks" };
	static const char *const open_probes[] = { "root-write 0\n", "shadow READ\n",
		"hidden READ\n", "read-only 0\n", "proc-1-environ READ\n", "user-namespace 0\n",
		"network-namespace 0\n", "keyring 0\n", "vsock 0\n", "ptrace-1 0\n" };

	if (r->hung || r->survivors || r->overflow)
		return "the run itself";
	if (!WIFEXITED(r->launcher_status) || WEXITSTATUS(r->launcher_status) != 0 ||
		!r->command_started || !r->command_ended)
		return "the command";
	for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++)
		if (!strstr(r->view, walls[i]))
			return walls[i];
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		if (!strstr(left->output, seen[i]))
			return seen[i];
	for (size_t i = 0; i < sizeof(open_probes) / sizeof(open_probes[0]); i++)
		if (strstr(left->output, open_probes[i]))
			return open_probes[i];
	for (size_t i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]); i++)
		if (strstr(left->git, obeyed[i]))
			return "a repository that obeys nobody";
	/* That of a live session is about no execution. */
	bool started = left->notes[0] || strstr(left->report, "\"started\":\"yes\"");
	if (!left->report[0] || !started || left->base[0] || left->mounted)
		return "a clean end";
	return NULL;
}
