/*
 * parent.h - ending with the process that made this one.
 *
 * Runs in: every process outside the box.
 */
#pragma once

#include <errno.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * parent_die_with - have the kernel send @signal when @parent ends: prctl(2), PR_SET_PDEATHSIG.
 *
 * @parent is what the maker's getpid() said before the fork. The kernel sends nothing for a parent
 * that ended before the request, so the parent is looked at afterwards. Returns 0; -ESRCH where it
 * has ended already and no signal will come; another -errno of prctl.
 */
static inline int parent_die_with(pid_t parent, int signal)
{
	if (prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}
