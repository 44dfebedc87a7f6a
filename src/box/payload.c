/*
 * payload.c - see payload.h.
 *
 * Runs in: the payload. One straight line; every restriction is already in force, taken over from
 * init. It shares init's memory (CLONE_VM) but not its descriptors or signal handlers, and init
 * stands still until execve or _exit (CLONE_VFORK), so nothing but *p may be written.
 */
#include "box/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/sys.h"

enum { EXEC_PATH_MAX = 3072 }; /* the stack is small */

static int place_stdio(struct payload *p)
{
	for (int i = 0; i < CHANNEL_STREAMS; i++)
		if (dup3(p->stdio[i], i, 0) < 0)
			return -errno;
	return sys_close_range(3, UINT_MAX);
}

/*
 * With a terminal init leads its session: the command gets a process group of its own in front, so
 * that its parent is in the session but not in the group and a stop (Ctrl-Z) takes effect. Without
 * one it is the same, so that a SIGTSTP that is passed on stops it: the kernel drops one for an
 * orphaned group. Init's session has no controlling terminal then.
 */
static int become_group(struct payload *p)
{
	if (setpgid(0, 0) < 0)
		return -errno;
	if (p->tty < 0 || !p->in_front)
		return 0;
	pid_t self = getpid();
	return ioctl(p->tty, TIOCSPGRP, &self) < 0 ? -errno : 0;
}

/* Where the kernel does not know the format, a shell does: as execvp(3). */
static int exec_path(struct payload *p, const char *path)
{
	const struct plan *plan = p->plan;

	p->ret_at_exec = 1;
	(void)execve(path, (char *const *)plan->argv, (char *const *)plan->envp);
	int error = errno;
	if (error == ENOEXEC && plan->shell_argv) {
		(void)execve(
			"/bin/sh", (char *const *)plan->shell_argv, (char *const *)plan->envp);
	}
	p->ret_at_exec = 0;
	return -error;
}

static int exec_searched(struct payload *p)
{
	char path[EXEC_PATH_MAX];
	const char *name = p->plan->argv[0];
	size_t length = strlen(name);
	int result = -ENOENT;

	if (!length)
		return -ENOENT;
	if (strchr(name, '/'))
		return exec_path(p, name);
	for (const char *dir = p->plan->path_env;;) {
		const char *end = strchr(dir, ':');
		size_t n = end ? (size_t)(end - dir) : strlen(dir);

		/* An empty element would be the working directory: untrusted, so passed over. */
		if (n && n + length + 2 <= sizeof(path)) {
			memcpy(path, dir, n);
			path[n] = '/';
			memcpy(path + n + 1, name, length + 1);
			int r = exec_path(p, path);
			if (r == -EACCES)
				result = r; /* found, but not executable; go on searching */
			else if (r != -ENOENT && r != -ENOTDIR)
				return r;
		}
		if (!end)
			return result;
		dir = end + 1;
	}
}

static int payload_main(void *arg)
{
	struct payload *p = arg;
	sigset_t none;
	int step = STEP_STDIO, r = become_group(p);

	if (r >= 0)
		r = place_stdio(p);
	/* Dispositions are the default ones since init began. */
	if (sigemptyset(&none) < 0 || (r >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) < 0))
		r = -errno;
	if (r >= 0) {
		(void)umask(p->umask);
		step = STEP_CWD;
		r = chdir(p->plan->cwd) < 0 ? -errno : 0;
	}
	if (r >= 0) {
		step = STEP_EXEC;
		r = exec_searched(p);
	}
	p->ret_errno = -r;
	p->ret_step = step;
	_exit(127);
}

pid_t payload_start(struct payload *p, void *stack)
{
	pid_t pid = clone(payload_main, stack, CLONE_VM | CLONE_VFORK | SIGCHLD, p);

	return pid < 0 ? -errno : pid;
}
