/*
 * signals.h - the supervisor's signals: blocked from the beginning, read from one descriptor.
 *
 * Runs in: S.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

struct signals {
	int fd;           /* signalfd, non-blocking; -1 while there is none */
	bool hup_ignored; /* started under nohup(1): a hangup ends nothing */
};

/*
 * signals_block - block everything that can be blocked and open the descriptor: SIGCHLD and what is
 * passed on are read from it. 0 or -errno.
 */
MUST_CHECK int signals_block(struct signals *ret);

/*
 * signals_stop_self - let the default action of SIGTSTP, SIGTTIN or SIGTTOU take effect on us, or
 * with whole_job on our process group as a terminal does (with the kernel's rule for orphaned
 * groups). Returns true after SIGCONT; false where the kernel discarded the signal, because our group
 * is orphaned and nobody could continue it.
 */
MUST_CHECK bool signals_stop_self(int signal, bool whole_job);

/*
 * signals_ask_to_end - read what is pending. Whether a signal asks this process to end; the others
 * mean nothing any more.
 */
bool signals_ask_to_end(const struct signals *s);
