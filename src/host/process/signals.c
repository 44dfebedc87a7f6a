/*
 * signals.c - see signals.h.
 *
 * Runs in: S.
 */
#include "host/process/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals_block(struct signals *ret)
{
	/* Signals about this process, or about what it does with a terminal or a pipe. All others are for the
	 * command, whatever they mean to it: as pid 1 of a container S stands for it. */
	static const int own[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGSYS,
		SIGTRAP, SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ };
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct signals s = { .fd = -1 };
	struct sigaction old;
	sigset_t all, read;

	if (sigfillset(&all) < 0 || sigfillset(&read) < 0 ||
		sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(&read, own[i]);
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN) {
		s.hup_ignored = true;
		(void)sigdelset(&read, SIGHUP);
	}
	/* If the caller ignored it, a child would vanish without a status: wait(2). */
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
	/* The SIGCONT that continued us is blocked, so it can still be read. */
	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
}

bool signals_ask_to_end(const struct signals *s)
{
	struct signalfd_siginfo info;

	while (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
			info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT)
			return true;
	return false;
}
