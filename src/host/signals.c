/*
 * signals.c - see signals.h.
 *
 * Runs in: S.
 */
#include "host/signals.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals_block(struct signals *ret)
{
	static const int wanted[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGWINCH, SIGTSTP, SIGCONT };
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct signals s = { .fd = -1 };
	struct sigaction old;
	sigset_t all, read;

	if (sigfillset(&all) < 0 || sigemptyset(&read) < 0 ||
		sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		(void)sigaddset(&read, wanted[i]);
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN) {
		s.hup_ignored = true;
		(void)sigdelset(&read, SIGHUP);
	}
	/* Ignored by a caller, our child would vanish without a status: wait(2). */
	if (sigaction(SIGCHLD, &dfl, NULL) < 0)
		return -errno;
	s.fd = signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.fd < 0)
		return -errno;
	*ret = s;
	return 0;
}

bool signals_stop_self(int signal, bool whole_job)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t one, pending;

	(void)sigaction(signal, &dfl, NULL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, signal);
	(void)kill(whole_job ? 0 : getpid(), signal);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL); /* it takes effect here */
	(void)sigprocmask(SIG_BLOCK, &one, NULL);
	/* What continued us is blocked, so it is still there to be read. */
	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

int signals_die_with_parent(void)
{
	pid_t parent = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0)
		return -errno;
	return getppid() != parent;
}
