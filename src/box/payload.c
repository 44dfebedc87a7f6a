/*
 * payload.c - see payload.h.
 *
 * Runs in: the payload. One straight line; every restriction is already in force, taken over from
 * init. It shares its monitor's memory (CLONE_VM) but not its descriptors or signal handlers, and the
 * monitor stands still until execve or _exit (CLONE_VFORK), so nothing but *p may be written.
 */
#include "box/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/confine.h"
#include "box/number.h"
#include "box/sys.h"
#include "plan/settings.h"

enum { EXEC_PATH_MAX = 3072 }; /* the stack is small */

/*
 * Move a descriptor that still has the number @number out of the way. @from: those that are not
 * placed yet.
 */
static int make_free(int number, int *from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (from[i] != number)
			continue;
		from[i] = fcntl(number, F_DUPFD_CLOEXEC, CHANNEL_STREAMS);
		if (from[i] < 0)
			return -errno;
	}
	return 0;
}

/* Put each at its number, in ascending order, and close what lies between them. */
static int place_passed(struct payload *p)
{
	const struct pass_numbers *pass = p->command->pass;
	unsigned next = CHANNEL_STREAMS;
	int r = 0;

	for (unsigned i = 0; i < pass->count && r >= 0; i++) {
		int number = pass->number[i];

		r = make_free(number, p->passed + i + 1, pass->count - i - 1);
		if (r >= 0 && p->passed[i] == number)
			r = fcntl(number, F_SETFD, 0) < 0 ? -errno : 0;
		else if (r >= 0)
			r = dup3(p->passed[i], number, 0) < 0 ? -errno : 0;
	}
	for (unsigned i = 0; i < pass->count && r >= 0; i++) {
		unsigned number = (unsigned)pass->number[i];

		r = number > next ? sys_close_range(next, number - 1) : 0;
		next = number + 1;
	}
	return r < 0 ? r : sys_close_range(next, UINT_MAX);
}

static int place_descriptors(struct payload *p)
{
	for (int i = 0; i < CHANNEL_STREAMS; i++)
		if (dup3(p->stdio[i], i, 0) < 0)
			return -errno;
	return place_passed(p);
}

/*
 * With a terminal init leads the session and the command gets a process group of its own in the
 * foreground. Its parent is then in the session but not in the group, so that a stop (Ctrl-Z)
 * takes effect: the kernel drops stop signals for an orphaned process group (setpgid(2),
 * credentials(7)). Without a terminal the command gets its own group too, so that a SIGTSTP that
 * is passed on stops it; init's session has no controlling terminal then.
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

/* Where the kernel does not know the format, a shell runs the file, as in execvp(3). */
static int exec_path(struct payload *p, const char *path)
{
	const struct command *c = p->command;

	p->ret_at_exec = 1;
	(void)execve(path, (char *const *)c->argv, (char *const *)c->envp);
	int error = errno;
	if (error == ENOEXEC && c->shell_argv)
		(void)execve("/bin/sh", (char *const *)c->shell_argv, (char *const *)c->envp);
	/* The file exists: what is missing is the interpreter that its first line or its ELF
	 * header names. */
	if (error == ENOENT) {
		int fd = open(path, O_PATH | O_CLOEXEC);

		p->uninterpreted = p->uninterpreted || fd >= 0;
		if (fd >= 0)
			(void)close(fd);
	}
	p->ret_at_exec = 0;
	return -error;
}

static int exec_searched(struct payload *p)
{
	char path[EXEC_PATH_MAX];
	const char *name = p->command->argv[0];
	size_t length = strlen(name);
	int result = -ENOENT;

	if (!length)
		return -ENOENT;
	if (strchr(name, '/'))
		return exec_path(p, name);
	for (const char *dir = p->command->path_env;;) {
		const char *end = strchr(dir, ':');
		size_t n = end ? (size_t)(end - dir) : strlen(dir);

		/* An empty element of PATH means the working directory, which is untrusted: it is
		 * skipped. */
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

/* This can only lower limits: confine_rlimit() never goes above the session's own. */
static int tighten(const struct command *c)
{
	int r = 0;

	for (size_t i = 0; c->limits && i < SETTING_COUNT && r >= 0; i++) {
		const struct setting *s = &settings_table[i];
		uint64_t value = s->limit ? c->limits[s->limit - 1] : 0;

		if (s->rlimit && value)
			r = confine_rlimit(s->rlimit - 1, settings_rlimit(s, value));
	}
	return r;
}

/* Returns only where a step failed: @ret_step. */
static int become_command(struct payload *p, int *ret_step)
{
	sigset_t none;

	*ret_step = STEP_STDIO;
	int r = become_group(p);
	if (r < 0)
		return r;
	r = place_descriptors(p);
	if (r < 0)
		return r;
	/* Init has reset the dispositions when it started. */
	if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	*ret_step = STEP_LIMITS;
	r = tighten(p->command);
	if (r < 0)
		return r;
	(void)umask(p->umask);
	*ret_step = STEP_CWD;
	if (chdir(p->command->cwd) < 0)
		return -errno;
	r = exec_searched(p);
	*ret_step = r == -ENOENT && p->uninterpreted ? STEP_INTERPRETER : STEP_EXEC;
	return r;
}

static int payload_main(void *arg)
{
	struct payload *p = arg;
	int step, r = become_command(p, &step);

	p->ret_errno = -r;
	p->ret_step = step;
	_exit(127);
}

pid_t payload_start(struct payload *p, void *stack)
{
	pid_t pid = clone(payload_main, stack, CLONE_VM | CLONE_VFORK | SIGCHLD, p);

	return pid < 0 ? -errno : pid;
}

/*
 * A payload that died by a signal may have died before it became the command (killed from outside).
 * The kernel knows: PF_FORKNOEXEC in the flags of /proc/PID/stat, proc(5); it is set until execve.
 */
enum channel_started payload_started(pid_t pid)
{
	char path[64], text[512];
	unsigned long flags = 0;

	number_path(path, "/proc/", (unsigned)pid, "/stat");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return STARTED_UNKNOWN;
	text[n] = '\0';
	/* The name is in parentheses and may contain anything; fields are counted after the last. */
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 9; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return STARTED_UNKNOWN;
	for (at++; *at >= '0' && *at <= '9'; at++)
		flags = flags * 10 + (unsigned long)(*at - '0');
	return flags & 0x40 ? STARTED_NO : STARTED_YES;
}

int payload_probe(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return -errno;
	while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
