/*
 * attest_process.c - descriptors, environment, limits and filter; see attest_process.h.
 *
 * Runs in: carrel-inspect.
 */
#include "inspect/attest_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "inspect/attest_mounts.h"
#include "inspect/attest_session.h"

enum { ENVIRON_MAX = 4 << 20 };

/* --- descriptors ------------------------------------------------------------------------------ */

/* Whether a descriptor's mount is in the session's table, or the descriptor has none (a pipe, a socket). */
static bool is_inside(pid_t pid, const char *number, const char *target)
{
	char name[64], text[1024], wanted[32], line[32];

	if (target[0] != '/')
		return true;
	(void)snprintf(name, sizeof(name), "fdinfo/%s", number);
	if (attest_read(pid, name, text, sizeof(text)) < 0 ||
		!attest_field(text, "mnt_id", wanted, sizeof(wanted)))
		return false;
	(void)snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)pid);
	FILE *table = fopen(name, "re");
	bool found = false, at_start = true;
	size_t length = strlen(wanted);
	while (table && fgets(line, sizeof(line), table)) {
		if (at_start && !strncmp(line, wanted, length) && line[length] == ' ')
			found = true;
		at_start = strchr(line, '\n') != NULL;
	}
	if (table)
		(void)fclose(table);
	return found;
}

static bool check_descriptor(struct findings *f, pid_t pid, const char *number, bool exact)
{
	char path[80], target[PATH_MAX / 2];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, number);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return true; /* closed since */
	target[n] = '\0';
	if (!exact && is_inside(pid, number, target))
		return true;
	findings_add(f, VERDICT_FAIL, "descriptors", number, "open in the payload: %s", target);
	return false;
}

void attest_descriptors(struct findings *f, pid_t payload, bool exact)
{
	char path[64];
	struct dirent *entry;
	bool right = true;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)payload);
	DIR *dir = opendir(path);
	if (!dir) {
		findings_add(f, VERDICT_FAIL, "descriptors", "payload", "cannot be read: %s",
			strerror(errno));
		return;
	}
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
			strcmp(entry->d_name, "0") != 0 && strcmp(entry->d_name, "1") != 0 &&
			strcmp(entry->d_name, "2") != 0)
			right = check_descriptor(f, payload, entry->d_name, exact) && right;
	(void)closedir(dir);
	if (right)
		findings_add(f, VERDICT_OK, "descriptors", "payload", "%s",
			exact ? "0, 1 and 2 only"
			      : "0, 1, 2 and what the command itself opened");
}

/* --- environment ------------------------------------------------------------------------------ */

static const char *find_variable(const char *block, size_t size, const char *wanted)
{
	for (const char *at = block; at < block + size; at += strlen(at) + 1)
		if (!strcmp(at, wanted))
			return at;
	return NULL;
}

static bool is_planned(
	struct findings *f, const struct plan *plan, const char *session, const char *text)
{
	const char *own = plan->facts->session_name, *dash = "carrel-";

	for (size_t i = 0; i < plan->env_count; i++) {
		const char *planned = attest_rename(
			f->arena, plan->envp[i], own + strlen(dash), session + strlen(dash));

		if (planned && !strcmp(planned, text))
			return true;
	}
	return false;
}

static void check_variables(struct findings *f, const struct plan *plan, const char *session,
	const char *block, size_t size)
{
	size_t count = 0, wrong = 0;

	for (const char *at = block; at < block + size; at += strlen(at) + 1) {
		count++;
		if (is_planned(f, plan, session, at))
			continue;
		wrong++;
		findings_add(f, VERDICT_FAIL, "environment", at, "not as planned");
	}
	if (count != plan->env_count)
		findings_add(f, VERDICT_FAIL, "environment", "payload",
			"%zu variables, %zu were planned", count, plan->env_count);
	else if (!wrong)
		findings_add(f, VERDICT_OK, "environment", "payload",
			"%zu variables, as planned", count);
}

/* Pid 1 is a copy of the launcher: check that nothing of the caller's can be found in it. */
static void check_init(struct findings *f, pid_t init, const char *secret, char *block)
{
	static const char *const files[] = { "environ", "cmdline" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		ssize_t n = attest_read(init, files[i], block, ENVIRON_MAX);

		if (n < 0 && n != -EACCES && n != -EPERM)
			findings_add(f, VERDICT_FAIL, "environment", "init", "%s: %s", files[i],
				strerror((int)-n));
		else if (n < 0)
			findings_add(f, VERDICT_OK, "environment", "init", "%s cannot be read",
				files[i]);
		else if (memmem(block, (size_t)n, secret, strlen(secret)))
			findings_add(f, VERDICT_FAIL, "environment", "init",
				"%s shows the caller's environment", files[i]);
		else
			findings_add(f, VERDICT_OK, "environment", "init",
				"%s shows nothing of the caller's", files[i]);
	}
}

void attest_environment(struct findings *f, const struct plan *plan, const char *session,
	pid_t init, pid_t payload, const char *secret)
{
	char *block = malloc(ENVIRON_MAX);
	ssize_t n = block ? attest_read(payload, "environ", block, ENVIRON_MAX) : -ENOMEM;

	if (n < 0)
		findings_add(f, VERDICT_FAIL, "environment", "payload", "cannot be read: %s",
			strerror((int)-n));
	else if (find_variable(block, (size_t)n, secret) &&
		!is_planned(f, plan, session, secret))
		findings_add(f, VERDICT_FAIL, "environment", "payload",
			"a variable of the caller's got in");
	else
		check_variables(f, plan, session, block, (size_t)n);
	if (block)
		check_init(f, init, secret, block);
	free(block);
}

/* --- limits ----------------------------------------------------------------------------------- */

void attest_limits(struct findings *f, const struct plan *plan, pid_t payload)
{
	struct rlimit own, seen;

	for (size_t i = 0; i < plan->op_count; i++) {
		const struct op *op = &plan->ops[i];

		if (op->kind != OP_RLIMIT)
			continue;
		if (prlimit(0, op->from, NULL, &own) < 0 ||
			prlimit(payload, op->from, NULL, &seen) < 0) {
			findings_add(f, VERDICT_FAIL, "limits", op->why, "cannot be read: %s",
				strerror(errno));
			continue;
		}
		uint64_t wanted = op->value < own.rlim_max ? op->value : own.rlim_max;
		bool right = seen.rlim_cur == wanted;
		findings_add(f, right ? VERDICT_OK : VERDICT_FAIL, "limits", op->why,
			right ? "%llu" : "%llu, not %llu", (unsigned long long)seen.rlim_cur,
			(unsigned long long)wanted);
	}
}

/* --- filter ----------------------------------------------------------------------------------- */

/* The program at @index, oldest first. Returns its length or -errno. The tracee is stopped. */
static long get_filter(pid_t pid, unsigned index, struct sock_filter *ret_code, size_t room)
{
	long n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)(uintptr_t)index, NULL);

	if (n < 0)
		return -errno;
	if ((size_t)n > room)
		return -E2BIG;
	n = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)(uintptr_t)index, ret_code);
	return n < 0 ? -errno : n;
}

static long stop_and_get(pid_t pid, unsigned index, struct sock_filter *ret_code, size_t room)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return -errno;
	long n = ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ? -errno : 0;
	while (n == 0 && waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			n = -errno;
	if (n == 0)
		n = get_filter(pid, index, ret_code, room);
	/* If this fails, the process has died meanwhile. A living one notices no more than a restarted read(2). */
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return n;
}

void attest_filter(
	struct findings *f, const struct plan *plan, pid_t payload, unsigned own_filters)
{
	struct sock_filter *code = calloc(BPF_MAXINSNS, sizeof(*code));
	long n = code ? stop_and_get(payload, own_filters, code, BPF_MAXINSNS) : -ENOMEM;

	if (n < 0)
		findings_add(f, VERDICT_NOTE, "syscalls", "payload",
			"the kernel does not show the filter's program: %s", strerror((int)-n));
	else if (n == plan->filter_count &&
		!memcmp(code, plan->filter, (size_t)n * sizeof(*code)))
		findings_add(f, VERDICT_OK, "syscalls", "payload",
			"the filter's %ld instructions are the plan's", n);
	else
		findings_add(f, VERDICT_FAIL, "syscalls", "payload",
			"the filter's %ld instructions are not the plan's %u", n,
			plan->filter_count);
	free(code);
}
