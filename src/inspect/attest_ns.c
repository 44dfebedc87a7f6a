/*
 * attest_ns.c - the payload's namespaces against ours; see attest_process.h.
 *
 * Runs in: carrel-inspect, and a forked child of it that looks into the user namespace.
 */
#include "inspect/attest_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "inspect/attest_session.h"

static int open_ns(pid_t pid, const char *name)
{
	char path[64];

	if (pid > 0)
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	else
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
}

/* 1 the same namespace, 0 another one, -errno. */
static int same_ns(int a, int b)
{
	struct stat sa, sb;

	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return -errno;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static void check_one(struct findings *f, pid_t payload, const char *name, bool own)
{
	autofd int theirs = open_ns(payload, name), ours = open_ns(0, name);
	int same = same_ns(theirs, ours);

	if (same < 0)
		findings_add(f, VERDICT_FAIL, "namespaces", name, "cannot be looked at: %s",
			strerror(-same));
	else if (own == !same)
		findings_add(f, VERDICT_OK, "namespaces", name, "%s",
			own ? "the session's own" : "the caller's, as planned");
	else
		findings_add(f, VERDICT_FAIL, "namespaces", name, "%s",
			own ? "the caller's" : "not the caller's, as was planned");
}

/*
 * The user namespace that owns a namespace has all rights over it. The owner must be the session's user namespace, or as root the
 * one outside, in which no process of the session has a right.
 */
static void check_owner(
	struct findings *f, const struct plan *plan, pid_t payload, const char *name)
{
	autofd int ns = open_ns(payload, name);
	autofd int user = open_ns(plan->facts->privileged ? 0 : payload, "user");
	autofd int owner = ns < 0 ? ns : ioctl(ns, NS_GET_USERNS);
	int same = owner < 0 ? -errno : same_ns(owner, user);

	if (same != 1)
		findings_add(f, VERDICT_FAIL, "namespaces", name, "%s",
			same < 0 ? strerror(-same)
				 : "owned by another user namespace than planned");
}

static void check_level(struct findings *f, pid_t payload)
{
	autofd int theirs = open_ns(payload, "user"), ours = open_ns(0, "user");
	autofd int parent = theirs < 0 ? theirs : ioctl(theirs, NS_GET_PARENT);
	int same = parent < 0 ? -errno : same_ns(parent, ours);

	if (same == 1)
		findings_add(f, VERDICT_OK, "user-namespace", NULL, "exactly one below ours");
	else
		findings_add(f, VERDICT_FAIL, "user-namespace", NULL,
			"not exactly one below ours%s%s", same < 0 ? ": " : "",
			same < 0 ? strerror(-same) : "");
}

/* @file must map exactly one id: @inside to the id that Uid or Gid of the status has. */
static void check_map(
	struct findings *f, const char *file, const char *field, unsigned inside, pid_t payload)
{
	char status[3072], value[64], text[512];
	unsigned long first, outside, count;
	char *at = text;

	if (attest_read(payload, "status", status, sizeof(status)) < 0 ||
		attest_read(payload, file, text, sizeof(text)) < 0 ||
		!attest_field(status, field, value, sizeof(value))) {
		findings_add(f, VERDICT_FAIL, "user-namespace", file, "cannot be read");
		return;
	}
	first = strtoul(at, &at, 10);
	outside = strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	bool right = first == inside && outside == strtoul(value, NULL, 10) && count == 1 &&
		strspn(at, " \n") == strlen(at);
	findings_add(f, right ? VERDICT_OK : VERDICT_FAIL, "user-namespace", file,
		"%s%lu inside is %lu outside, %lu in all",
		right ? "" : "not as planned: ", first, outside, count);
}

/* The first byte of user.max_user_namespaces as seen in that namespace, or -errno. */
static int read_maximum(pid_t payload)
{
	char text[32];
	autofd int user = open_ns(payload, "user");

	if (user < 0 || setns(user, CLONE_NEWUSER) < 0)
		return user < 0 ? user : -errno;
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);
	return n < 0 ? (int)n : text[0];
}

/* A namespace shows its limits only inside: a child enters it, reads them and ends. */
static void check_nested(struct findings *f, bool nested, pid_t payload)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		int c = read_maximum(payload);

		_exit(c < 0 ? 2 : c == '0' ? 0 : 1);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	int none = child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
	if (none == 2)
		findings_add(f, VERDICT_NOTE, "nested-namespaces", NULL,
			"the caller may not enter the session's user namespace to look");
	else if ((none == 0) == !nested)
		findings_add(f, VERDICT_OK, "nested-namespaces", NULL, "%s",
			nested ? "allowed, as planned"
			       : "user.max_user_namespaces is 0 inside");
	else
		findings_add(f, VERDICT_FAIL, "nested-namespaces", NULL, "%s",
			nested ? "refused" : "user.max_user_namespaces is not 0 inside");
}

void attest_namespaces(struct findings *f, const struct plan *plan, pid_t payload)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} all[] = {
		{ "mnt", CLONE_NEWNS },
		{ "pid", CLONE_NEWPID },
		{ "ipc", CLONE_NEWIPC },
		{ "uts", CLONE_NEWUTS },
		{ "net", CLONE_NEWNET },
		{ "cgroup", CLONE_NEWCGROUP },
	};

	check_one(f, payload, "user", true);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool own = (plan->clone_flags & all[i].flag) != 0;

		check_one(f, payload, all[i].name, own);
		if (own)
			check_owner(f, plan, payload, all[i].name);
	}
	check_level(f, payload);
	check_map(f, "uid_map", "Uid", plan->facts->uid, payload);
	check_map(f, "gid_map", "Gid", plan->facts->gid, payload);
	check_nested(f, plan->policy->nested.on, payload);
}
