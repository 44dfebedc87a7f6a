/*
 * sweeper.c - see sweeper.h.
 *
 * Runs in: the supervisor, and the process that sweeps, outside.
 */
#include "host/session/sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/process/confine_self.h"
#include "host/session/session_sweep.h"

#define NOTICES "notices"
#define LOCK "sweep.lock"
enum {
	NOTICES_BLOCK = 2048,
	NOTICES_SHOWN = 16384, /* bytes, of what is said at once */
	NOTICES_MAX = 1 << 20, /* bytes; a file that nobody reads does not grow further */
	LOWEST_PRIORITY = 19,
	IO_CLASS_IDLE = 3 << 13, /* IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0): ioprio_set(2) */
};

/* --- notices ----------------------------------------------------------------------------------- */

void sweeper_show_notices(int place)
{
	char text[NOTICES_BLOCK], taken[64];

	/* Taken first: of two launches one shows them. */
	(void)snprintf(taken, sizeof(taken), "%s.%d", NOTICES, (int)getpid());
	if (renameat(place, NOTICES, place, taken) < 0)
		return;
	autofd int fd = fd_open_at(place, taken, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	(void)unlinkat(place, taken, 0);
	for (size_t shown = 0; fd >= 0 && shown < NOTICES_SHOWN;) {
		ssize_t n = read(fd, text, sizeof(text));

		/* If nobody reads them, they are lost. */
		if (n <= 0 || fd_write_all(STDERR_FILENO, text, (size_t)n) < 0)
			break;
		shown += (size_t)n;
	}
}

/* Where a sweep's stderr goes: to the file, or nowhere. */
static int open_notices(int place)
{
	struct stat st;
	autofd int fd = fd_open_at(
		place, NOTICES, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > NOTICES_MAX)
		return fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	return take_fd(&fd);
}

/* --- the process ------------------------------------------------------------------------------- */

/* Signals as the kernel gives them, so that anybody can end it; and it ends itself in time. */
static void be_killable(void)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < SIGRTMIN; s++)
		if (s != SIGKILL && s != SIGSTOP)
			(void)sigaction(s, &dfl, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(SWEEPER_SECONDS);
}

/* A machine may refuse any of these: the sweep does its work all the same. */
static void be_modest(void)
{
	const struct sched_param none = { 0 };

	(void)setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
	(void)syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &none);
	(void)syscall(SYS_ioprio_set, 1, 0, IO_CLASS_IDLE);
}

/* The caller's streams are not ours to hold open: somebody may read them to their end. */
static int take_streams(int place)
{
	autofd int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	autofd int notices = open_notices(place);

	return null < 0 || notices < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
			dup2(notices, 2) < 0
		? -EIO
		: 0;
}

static long close_fds(unsigned first, unsigned last)
{
	return syscall(SYS_close_range, first, last, 0);
}

/* Close all else that the supervisor has open: the sweep must not hold its locks either. */
static int close_others(int records, int place)
{
	unsigned low = (unsigned)(records < place ? records : place);
	unsigned high = (unsigned)(records < place ? place : records);

	if (low > 3 && close_fds(3, low - 1) < 0)
		return -errno;
	if (high > low + 1 && close_fds(low + 1, high - 1) < 0)
		return -errno;
	return close_fds(high + 1, ~0u) < 0 ? -errno : 0;
}

static void sweep(int records, int place)
{
	struct session_sweep_how how = { 0 };
	struct session_sweep found;
	struct error e = { 0 };

	if (take_streams(place) < 0 || close_others(records, place) < 0)
		return;
	int lock = fd_open_at(place, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return; /* another one is at it */
	if (session_sweep(records, &how, &found, &e) < 0 || e.code != ERROR_NONE)
		(void)error_report(&e);
}

void sweeper_start(int records, const char *own)
{
	autofd int place = fd_open_at(records, "..", O_RDONLY | O_DIRECTORY, 0);

	if (place < 0)
		return;
	sweeper_show_notices(place);
	if (!session_sweep_needed(records, own))
		return;
	/* A grandchild, so that init reaps it and not this process. */
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			(void)setsid(); /* a child is no leader: it cannot fail */
			be_killable();
			be_modest();
			/* S may not have done so yet, and this process reads names that tools made. */
			if (confine_settle() >= 0)
				sweep(records, place);
		}
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}
