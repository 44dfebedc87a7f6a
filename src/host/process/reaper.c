/*
 * reaper.c - see reaper.h.
 *
 * Runs in: S. May not: take the status of a child that S waits for itself.
 */
#include "host/process/reaper.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

bool reaper_is_pid1(void)
{
	return gettid() == 1; /* S has one thread, and musl knows this number without a call */
}

void reaper_reap_unexpected(pid_t own)
{
	for (;;) {
		siginfo_t info = { 0 };

		/* Look first: P_ALL would also reap children that somebody else waits for. */
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno != EINTR)
			return;
		if (info.si_pid == 0 || info.si_pid == own)
			return; /* with our own ended the session is over, and soon we are */
		(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
	}
}
