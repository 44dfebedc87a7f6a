/*
 * begin.c - see begin.h.
 *
 * Runs in: init. No heap, no stdio. It ends with the launcher (PR_SET_PDEATHSIG and the end of the
 * channel). A file system that is made in advance is used only by the operation of the plan that asks for
 * it; where making it failed, that operation tries again and fails under its own number.
 */
#include "box/begin.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/confine.h"
#include "box/fresh.h"
#include "box/sys.h"

enum { SIGNAL_SET_SIZE = 8 }; /* of the kernel's sigset_t, bytes; sigaction(2) */

/* Closes every descriptor of the launcher but the channel, whatever its flags. */
static int keep_channel(int channel)
{
	if (channel != BOX_CHANNEL && dup3(channel, BOX_CHANNEL, O_CLOEXEC) < 0)
		return -errno;
	int r = sys_close_range(0, BOX_CHANNEL - 1);
	return r < 0 ? r : sys_close_range(BOX_CHANNEL + 1, ~0U);
}

/* Init blocks all signals and the payload unblocks them. Their dispositions are reset here,
 * because execve(2) keeps an ignored signal ignored. */
static int reset_signals(void)
{
	/* The kernel's struct, all zero, means SIG_DFL. The C library's sigaction() is not used:
	 * it changes the signal mask for SIGABRT. */
	static const unsigned long dfl[8];
	sigset_t all;

	if (sigfillset(&all) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	for (int s = 1; s < 65; s++)
		if (s != SIGKILL && s != SIGSTOP &&
			syscall(SYS_rt_sigaction, s, dfl, NULL, SIGNAL_SET_SIZE) < 0)
			return -errno;
	return 0;
}

static int set_up(const struct begin *b)
{
	sigset_t child;

	int r = keep_channel(b->channel);

	if (r >= 0)
		r = reset_signals();
	if (r < 0)
		return r;
	/* Where the launcher has ended already, no death signal comes, but the channel reports its
	 * end of file. Without a pid namespace init stays alive to end what it started, and as a
	 * subreaper it adopts all processes that lose their parent (prctl(2)). */
	r = b->flags ? prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
		     : prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (r < 0 || setsid() < 0)
		return -errno;
	/* The caller's working directory lies below the mounts of the plan, where nothing is
	 * hidden. A monitor that opens /proc/self/cwd/NAME for a client would reach it. */
	if (chdir("/") < 0)
		return -errno;
	(void)umask(0);
	if (sigemptyset(&child) < 0 || sigaddset(&child, SIGCHLD) < 0)
		return -errno;
	int fd = signalfd(-1, &child, SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (dup3(fd, BOX_CHILDREN, O_CLOEXEC) < 0)
		return -errno;
	return close(fd) < 0 ? -errno : 0;
}

static int make_namespaces(const struct begin *b)
{
	if (!b->flags)
		return 0;
	if (unshare((int)b->flags) < 0)
		return -errno;
	return b->flags & CLONE_NEWNET ? confine_loopback() : 0;
}

static int make_ahead(struct box_made *ret)
{
	fresh_ahead(ret);
	if (ret->proc == BOX_SKELETON || ret->devpts == BOX_SKELETON)
		return -EBADF; /* dup3() below would replace it, and the wrong file would be mounted */
	if (ret->tmpfs < 0 || ret->tmpfs == BOX_SKELETON)
		return 0;
	if (dup3(ret->tmpfs, BOX_SKELETON, O_CLOEXEC) < 0 || close(ret->tmpfs) < 0)
		return -errno;
	ret->tmpfs = BOX_SKELETON;
	return 0;
}

static int wait_for_word(const struct begin *b, struct box *ret)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];

	if (b->box->apart)
		channel_await(BOX_CHANNEL, BOX_TRIES_PLAN);
	int r = channel_receive(BOX_CHANNEL, &record, fds);

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (record.kind != CHANNEL_GO || fds[0] >= 0)
		return -EPROTO;
	*ret = *b->box;
	for (unsigned i = 0; i < PLAN_IDMAP_MAX; i++)
		ret->idmap_ns[i] = -1;
	return mprotect(b->arena, b->arena_size, PROT_READ) < 0 ? -errno : 0;
}

/* 0 with @ret as the launcher filled it in, or -errno: @ret_step failed. */
static int prepare(const struct begin *begin, struct box *ret, int *ret_step)
{
	struct box_made made = { .proc = -1, .devpts = -1, .tmpfs = -1 };

	*ret_step = STEP_SETUP;
	int r = set_up(begin);
	if (r < 0)
		return r;
	*ret_step = STEP_NAMESPACES;
	r = make_namespaces(begin);
	if (r < 0)
		return r;
	*ret_step = STEP_SETUP;
	r = begin->flags ? make_ahead(&made) : 0;
	if (r < 0)
		return r;
	r = wait_for_word(begin, ret);
	ret->made = made;
	return r;
}

_Noreturn void begin_main(const struct begin *begin)
{
	struct box box;
	int step, r = prepare(begin, &box, &step);

	if (r < 0)
		box_fail(step, r);
	box_init(&box);
}
