/*
 * maker.c - see maker.h.
 *
 * Runs in: the maker. No heap, no stdio. It ends with the launcher (PR_SET_PDEATHSIG and the end of
 * the channel), holds nothing but namespaces, and starts nothing before it is told to.
 */
#include "box/maker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/confine.h"
#include "box/sys.h"

static _Noreturn void stop(const struct maker *m, int r)
{
	m->status->errnum = -r;
	_exit(1);
}

static int set_up(const struct maker *m)
{
	sigset_t all;

	(void)close(m->launcher_end);
	if (sigfillset(&all) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return getppid() == m->launcher ? 0 : -ESRCH;
}

static int wait_for_word(const struct maker *m, struct box *box)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive(m->channel, &record, fds);

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (record.kind != CHANNEL_GO)
		return -EPROTO;
	*box = *m->box;
	box->channel = m->channel;
	for (size_t i = 0; i < PLAN_IDMAP_MAX; i++)
		box->idmap_ns[i] = fds[i];
	box->user_ns = fds[0];
	return 0;
}

_Noreturn void maker_main(const struct maker *m)
{
	struct box box;
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_PARENT | CLONE_PARENT_SETTID,
		.parent_tid = (uint64_t)(uintptr_t)&m->status->init,
	};
	int r = set_up(m);

	if (r >= 0)
		r = unshare((int)m->flags) < 0 ? -errno : 0;
	if (r < 0)
		stop(m, r);
	m->status->step = MAKER_LOOPBACK;
	r = m->flags & CLONE_NEWNET ? confine_loopback() : 0;
	if (r < 0)
		stop(m, r);
	m->status->step = MAKER_WAIT;
	r = wait_for_word(m, &box);
	if (r < 0)
		stop(m, r);
	m->status->step = MAKER_SEAL;
	if (mprotect(m->arena, m->arena_size, PROT_READ) < 0)
		stop(m, -errno);
	m->status->step = MAKER_CLONE;
	long pid = sys_clone3(&args);
	if (pid == 0)
		box_init(&box);
	if (pid < 0)
		stop(m, (int)pid);
	m->status->step = MAKER_DONE;
	_exit(0);
}
