/*
 * probe.c - see probe.h.
 *
 * Runs in: carrel-inspect and its forked children.
 */
#include "inspect/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"
#include "box/sys.h"

static int write_file(const char *path, const char *text)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY, 0);

	return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

/* Map one id onto itself: a process without privilege may write that for itself. */
static int become_user(const struct probe *p)
{
	char text[64];

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	int r = write_file("/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "%u %u 1", p->gid, p->gid);
	if (r >= 0)
		r = write_file("/proc/self/gid_map", text);
	(void)snprintf(text, sizeof(text), "%u %u 1", p->uid, p->uid);
	return r < 0 ? r : write_file("/proc/self/uid_map", text);
}

static int write_map(pid_t pid, const char *name, unsigned inside, unsigned outside)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	(void)snprintf(text, sizeof(text), "%u %u 1\n", inside, outside);
	return write_file(path, text);
}

int probe_make_user_ns(const struct probe *p, uid_t inside, gid_t gid_inside)
{
	char path[64];
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t parent = getpid(), pid = (pid_t)sys_clone3(&args);

	if (pid < 0)
		return pid;
	if (pid == 0) {
		if (parent_die_with(parent, SIGKILL) < 0)
			_exit(1);
		for (;;)
			(void)pause();
	}
	int r = write_map(pid, "gid_map", gid_inside, p->kernel_gid);
	if (r >= 0)
		r = write_map(pid, "uid_map", inside, p->kernel_uid);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (r >= 0)
		r = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	(void)kill(pid, SIGKILL); /* not reaped yet, so the pid is still its own */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

static int enter_place(const struct probe *p, enum probe_place place)
{
	if (place == PROBE_HERE)
		return 0;
	if (place == PROBE_USER && p->privileged) {
		autofd int user = probe_make_user_ns(p, p->uid, p->gid);

		return user < 0 ? user : setns(user, CLONE_NEWUSER) < 0 ? -errno : 0;
	}
	int r = p->privileged ? 0 : become_user(p);
	if (r < 0 || place != PROBE_MOUNTS)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

static _Noreturn void run_child(pid_t parent, const struct probe *p, enum probe_place place,
	int (*try)(const struct probe *p), int out)
{
	int r = parent_die_with(parent, SIGKILL);

	if (r >= 0)
		r = enter_place(p, place);
	if (r >= 0)
		r = try(p);
	_exit(write(out, &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
}

int probe_run(const struct probe *p, enum probe_place place, int (*try)(const struct probe *p))
{
	int pair[2], result = -EIO;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	autofd int from = pair[0], to = pair[1];
	pid_t parent = getpid(), child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		run_child(parent, p, place, try, to);
	fd_close(&to);
	/* A child that was killed by the try (by a filter) sends nothing: that is a refusal. */
	ssize_t n = read(from, &result, sizeof(result));
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return n == (ssize_t)sizeof(result) ? result : n < 0 ? -EIO : -ECONNABORTED;
}
