/*
 * init.c - pid 1 of a session, from clone to the end.
 *
 * Runs in: init. No heap, no stdio. May not: hold a descriptor of the host once the plan is
 * applied, start anything before every operation has succeeded, or outlive the supervisor.
 */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/apply.h"
#include "box/channel.h"
#include "box/number.h"
#include "box/payload.h"
#include "box/sys.h"

enum { STACK_SIZE = 64 * 1024 };

struct init {
	const struct box *box;
	int tty; /* the terminal's slave, or -1 */
	pid_t payload;
	void *stack;
	struct payload start;
};

_Noreturn void box_fail(int op, int error)
{
	struct channel_record record = { .kind = CHANNEL_FAILED, .op = op, .errnum = -error };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	(void)r; /* there is no other way to say it */
	_exit(1);
}

/* The terminal of the session, from its own devpts; init leads its session. See: ioctl_tty(2). */
static int open_pty(struct init *i, int *ret_master)
{
	int unlock = 0;
	int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return -errno;
	int r = ioctl(master, TIOCSPTLCK, &unlock) < 0 ? -errno : 0;
	if (r == 0) {
		i->tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		r = i->tty < 0 || ioctl(i->tty, TIOCSCTTY, 0) < 0 ? -errno : 0;
	}
	if (r < 0) {
		(void)close(master);
		return r;
	}
	*ret_master = master;
	return 0;
}

static int say_ready(struct init *i)
{
	struct channel_record record = { .kind = CHANNEL_READY };
	int master = -1, r = 0;

	if (i->box->want_pty)
		r = open_pty(i, &master);
	if (r < 0)
		return r;
	r = channel_send(BOX_CHANNEL, &record, &master, master >= 0 ? 1 : 0);
	if (master >= 0)
		(void)close(master);
	return r;
}

/*
 * A payload that died by a signal may have died before it became the command (killed from outside).
 * The kernel knows: PF_FORKNOEXEC in the flags of /proc/PID/stat, proc(5); it is set until execve.
 */
static enum channel_started payload_started(pid_t pid, int wait_status)
{
	char path[64], text[512];
	unsigned long flags = 0;

	if (!WIFSIGNALED(wait_status))
		return STARTED_YES;
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

/*
 * With a terminal everything else is killed and reaped first and init stays until the supervisor has
 * read what the terminal still holds: as the leader of the session its end is a hangup.
 */
static _Noreturn void end_session(struct init *i, struct channel_record *record)
{
	char byte;

	record->kind = CHANNEL_ENDED;
	if (i->tty >= 0) {
		(void)kill(-1, SIGKILL); /* ESRCH: there is nobody left */
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
		(void)close(i->tty);
	}
	/* Zombies count as well, so nothing at all is left: the supervisor need not wait for more. */
	record->flag = kill(-1, 0) < 0 && errno == ESRCH;
	int r = channel_send(BOX_CHANNEL, record, NULL, 0);
	if (r < 0)
		_exit(1); /* the supervisor takes a missing record for an unknown outcome */
	while (i->tty >= 0 && (read(BOX_CHANNEL, &byte, 1) > 0 || errno == EINTR))
		errno = 0;
	_exit(0);
}

static void payload_ended(struct init *i)
{
	struct channel_record record = { .op = -1 };
	struct rusage usage;
	siginfo_t info = { 0 };
	int status;

	/* Look before reaping: a reaped process has no /proc entry. */
	if (waitid(P_PID, (id_t)i->payload, &info, WEXITED | WNOWAIT) < 0)
		box_fail(STEP_LOOP, -errno);
	if (info.si_code != CLD_EXITED)
		record.started = payload_started(i->payload, info.si_status & 0x7f);
	else
		record.started = STARTED_YES;
	if (wait4(i->payload, &status, 0, &usage) != i->payload)
		box_fail(STEP_LOOP, -errno);
	record.wait_status = status;
	record.user_us =
		(uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	record.system_us =
		(uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
	record.max_rss_kib = (uint64_t)usage.ru_maxrss;
	if (i->start.ret_step) {
		record.started = STARTED_NO;
		record.op = i->start.ret_step;
		record.errnum = i->start.ret_errno;
	}
	end_session(i, &record);
}

static void payload_stopped(int signal)
{
	struct channel_record record = { .kind = CHANNEL_STOPPED, .op = -1, .number = signal };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	if (r < 0)
		box_fail(STEP_LOOP, r);
}

/* Reap everything that has ended; orphans come to pid 1. */
static void reap(struct init *i)
{
	struct signalfd_siginfo info;

	if (read(BOX_CHILDREN, &info, sizeof(info)) != (ssize_t)sizeof(info))
		box_fail(STEP_LOOP, -EIO);
	for (;;) {
		siginfo_t child = { 0 };

		if (waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0) {
			if (errno == ECHILD)
				return;
			box_fail(STEP_LOOP, -errno);
		}
		if (child.si_pid == 0)
			return;
		bool stopped = child.si_code == CLD_STOPPED || child.si_code == CLD_TRAPPED;
		if (child.si_pid == i->payload && !stopped)
			payload_ended(i); /* does not return */
		if (waitid(P_PID, (id_t)child.si_pid, &child, WEXITED | WSTOPPED | WNOHANG) < 0)
			box_fail(STEP_LOOP, -errno);
		if (stopped && child.si_pid == i->payload)
			payload_stopped(child.si_status);
	}
}

static int take_front(struct init *i, pid_t group)
{
	return ioctl(i->tty, TIOCSPGRP, &group) < 0 ? -errno : 0;
}

static void start_payload(
	struct init *i, const struct channel_record *record, int fds[CHANNEL_FDS_MAX])
{
	int next = 0;

	if (i->payload > 0)
		box_fail(STEP_LOOP, -EPROTO);
	i->start = (struct payload){ .plan = i->box->plan,
		.tty = i->tty,
		.in_front = record->flag != 0,
		.umask = i->box->umask };
	for (int f = 0; f < CHANNEL_STREAMS; f++) {
		/* A stream that comes without a descriptor is the terminal. */
		bool sent = record->streams & (1u << f);
		int from = sent ? fds[next] : i->tty;
		int up = fcntl(from, F_DUPFD_CLOEXEC, BOX_CHILDREN + 1);

		if (up < 0)
			box_fail(STEP_STDIO, -errno);
		if (sent)
			(void)close(fds[next++]);
		i->start.stdio[f] = up;
	}
	i->payload = payload_start(&i->start, (char *)i->stack + STACK_SIZE);
	if (i->payload < 0)
		box_fail(STEP_EXEC, i->payload);
	for (int f = 0; f < CHANNEL_STREAMS; f++)
		(void)close(i->start.stdio[f]);
	/* Only now: the end of a detached mount waits for a grace period of RCU, here while the command
	 * runs already. It never was among the command's descriptors. */
	(void)close(BOX_FURNITURE);
}

static void send_signal(struct init *i, const struct channel_record *record)
{
	/* ESRCH: it has just ended; the record about that is on its way. */
	if (record->flag)
		(void)kill(-1, record->number);
	else if (i->payload > 0)
		(void)kill(-i->payload, record->number);
}

static void continue_payload(struct init *i, const struct channel_record *record)
{
	if (i->payload <= 0)
		return;
	if (i->tty >= 0) {
		int r = take_front(i, record->flag ? i->payload : getpid());

		if (r < 0 && r != -ESRCH && r != -EPERM)
			box_fail(STEP_LOOP, r);
	}
	(void)kill(-i->payload, SIGCONT);
}

static void handle_record(struct init *i)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive(BOX_CHANNEL, &record, fds);

	if (r == 0)
		_exit(1); /* the supervisor is gone, and the session with it */
	if (r < 0)
		box_fail(STEP_LOOP, r);
	switch ((enum channel_kind)record.kind) {
	case CHANNEL_EXEC:
		start_payload(i, &record, fds);
		return;
	case CHANNEL_SIGNAL:
		send_signal(i, &record);
		return;
	case CHANNEL_CONTINUE:
		continue_payload(i, &record);
		return;
	case CHANNEL_GO:
	case CHANNEL_SESSION:
	case CHANNEL_FAILED:
	case CHANNEL_READY:
	case CHANNEL_STOPPED:
	case CHANNEL_ENDED:
		break;
	}
	box_fail(STEP_LOOP, -EPROTO);
}

static _Noreturn void event_loop(struct init *i)
{
	struct pollfd events[] = {
		{ .fd = BOX_CHANNEL, .events = POLLIN },
		{ .fd = BOX_CHILDREN, .events = POLLIN },
	};

	for (;;) {
		if (poll(events, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			box_fail(STEP_LOOP, -errno);
		}
		if (events[1].revents)
			reap(i);
		if (events[0].revents)
			handle_record(i);
	}
}

_Noreturn void box_init(const struct box *box)
{
	struct box own = *box;
	struct init i = { .box = &own, .tty = -1 };
	int op = STEP_SETUP;

	i.stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int r = i.stack == MAP_FAILED ? -errno : box_apply(&own, &op);
	if (r < 0)
		box_fail(op, r);
	/* Slots, namespaces: nothing of the host's stays open. */
	r = sys_close_range(0, BOX_CHANNEL - 1);
	if (r >= 0)
		r = sys_close_range(BOX_FURNITURE + 1, ~0U);
	if (r < 0)
		box_fail(STEP_SETUP, r);
	r = say_ready(&i);
	if (r < 0)
		box_fail(STEP_PTY, r);
	event_loop(&i);
}
