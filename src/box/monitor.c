/*
 * monitor.c - see monitor.h.
 *
 * Runs in: init (run), or a child of init (live session). No heap, no stdio. May not: have two
 * commands at a time, or outlive the supervisor's end of its channel.
 */
#include "box/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/descendants.h"
#include "box/number.h"
#include "box/rest.h"
#include "box/sys.h"

enum { STACK_SIZE = 64 * 1024, PATH_SIZE = 4095 };

static char *body_room(const struct monitor *k)
{
	return (char *)k->stack + STACK_SIZE;
}

static void *words_room(const struct monitor *k)
{
	return body_room(k) + CHANNEL_BODY_MAX;
}

int monitor_prepare(struct monitor *ret, const struct box *box, bool is_init)
{
	size_t size = STACK_SIZE + CHANNEL_BODY_MAX + command_room(box->plan);
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED)
		return -errno;
	*ret = (struct monitor){ .box = box, .tty = -1, .is_init = is_init, .stack = stack };
	return 0;
}

/* Where monitor_loop() and the payload put nothing. Takes @fd; returns the new one or -errno. */
static int above_streams(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, BOX_CHILDREN + 1);
	int r = up < 0 ? -errno : up;

	(void)close(fd);
	return r;
}

/* The terminal of the execution, from the session's devpts. See: ioctl_tty(2). */
int monitor_open_pty(struct monitor *k, int *ret_master)
{
	int unlock = 0;
	bool own = k->box->plan->clone_flags != 0;
	int master = open(own ? "/dev/pts/ptmx" : "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return -errno;
	int r = ioctl(master, TIOCSPTLCK, &unlock) < 0 ? -errno : 0;
	if (r == 0) {
		int tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

		r = tty < 0 || ioctl(tty, TIOCSCTTY, 0) < 0 ? -errno : above_streams(tty);
	}
	if (r < 0) {
		(void)close(master);
		return r;
	}
	k->tty = r;
	*ret_master = master;
	return 0;
}

/* Everything that the execution left. With init it is everything there is. */
static void clear_up(struct monitor *k)
{
	if (!k->is_init) {
		int r = descendants_end(BOX_CHILDREN);

		if (r < 0)
			box_fail(STEP_LOOP, r); /* and the supervisor ends what is left */
		return;
	}
	(void)kill(-1, SIGKILL); /* ESRCH: there is nobody left */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Another execution finds what it would find in a new monitor. */
static void forget_execution(struct monitor *k)
{
	k->payload = 0;
	k->ended = false;
}

/*
 * A monitor waits for the next execution; not one that has something of this one about it: a terminal, a
 * service's processes, a group. With a terminal everything else is killed and reaped first and the monitor
 * stays until the supervisor has read what the terminal still holds: as the leader of the session its end is
 * a hangup. The end of init is the end of everything, so without a terminal it leaves the clearing up to
 * the kernel.
 */
static void end_execution(struct monitor *k)
{
	bool stays = !k->is_init && !k->once && k->tty < 0;
	char byte;

	k->last.kind = CHANNEL_ENDED;
	if (k->tty >= 0 || !k->is_init)
		clear_up(k);
	if (k->tty >= 0)
		(void)close(k->tty);
	/* All that lost its parent is init's, zombies too: without a child nothing at all is left, and the
	 * supervisor need not wait for more. (kill(2) would look at every process of the machine.) */
	siginfo_t child;
	k->last.flag = k->is_init
		? waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 &&
			errno == ECHILD
		: stays;
	int r = channel_send(BOX_CHANNEL, &k->last, NULL, 0);
	if (r < 0)
		_exit(1); /* the supervisor takes a missing record for an unknown outcome */
	if (stays) {
		forget_execution(k);
		return;
	}
	while (k->tty >= 0 && (read(BOX_CHANNEL, &byte, 1) > 0 || errno == EINTR))
		errno = 0;
	_exit(0);
}

/* @end: as waitid(2) tells it; not reaped yet, since a reaped process has no /proc entry. */
static void payload_ended(struct monitor *k, const siginfo_t *end)
{
	struct channel_record record = { .op = -1 };
	struct rusage usage;
	int status;

	if (end->si_code != CLD_EXITED && k->box->plan->facts->refused_proc)
		/* The numbers there are not ours. */
		record.started = k->start.ret_at_exec ? STARTED_YES : STARTED_NO;
	else if (end->si_code != CLD_EXITED)
		record.started = payload_started(k->payload);
	else
		record.started = STARTED_YES;
	/* While the command still counts: whether it ends with its limit reached. */
	if (k->box->tasks_by_rlimit)
		record.number = -payload_probe();
	if (wait4(k->payload, &status, 0, &usage) != k->payload)
		box_fail(STEP_LOOP, -errno);
	record.wait_status = status;
	record.user_us =
		(uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	record.system_us =
		(uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
	record.max_rss_kib = (uint64_t)usage.ru_maxrss;
	if (k->start.ret_step) {
		record.started = STARTED_NO;
		record.op = k->start.ret_step;
		record.errnum = k->start.ret_errno;
	}
	k->last = record;
	k->ended = true;
}

static void payload_stopped(int signal)
{
	struct channel_record record = { .kind = CHANNEL_STOPPED, .op = -1, .number = signal };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	if (r < 0)
		box_fail(STEP_LOOP, r);
}

/* Reap what has ended; orphans come to init and to a monitor. False: there is no child any more. */
static bool reap_children(struct monitor *k)
{
	for (;;) {
		siginfo_t child = { 0 };

		if (waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0) {
			if (errno == ECHILD)
				return false;
			box_fail(STEP_LOOP, -errno);
		}
		if (child.si_pid == 0)
			return true;
		bool stopped = child.si_code == CLD_STOPPED || child.si_code == CLD_TRAPPED;
		if (child.si_pid == k->payload && !stopped && !k->ended) {
			payload_ended(k, &child);
			if (!k->stays)
				return true;
			continue;
		}
		if (waitid(P_PID, (id_t)child.si_pid, &child, WEXITED | WSTOPPED | WNOHANG) < 0)
			box_fail(STEP_LOOP, -errno);
		if (stopped && child.si_pid == k->payload)
			payload_stopped(child.si_status);
	}
}

static void reap(struct monitor *k)
{
	struct signalfd_siginfo info;

	if (read(BOX_CHILDREN, &info, sizeof(info)) != (ssize_t)sizeof(info))
		box_fail(STEP_LOOP, -EIO);
	bool more = reap_children(k);
	if (k->ended && (!k->stays || !more))
		end_execution(k);
}

static int take_front(struct monitor *k, pid_t group)
{
	return ioctl(k->tty, TIOCSPGRP, &group) < 0 ? -errno : 0;
}

/* What is to be run: the plan's command, or a request in the record's body or a sealed file. */
static int find_command(struct monitor *k, const struct channel_record *record, int body_fd)
{
	const struct plan *plan = k->box->plan;
	struct request_view view;
	const char *data = body_room(k);
	size_t size = record->body;

	if (!record->body) {
		command_of_plan(&k->command, plan);
		k->start.umask = k->box->umask;
		return 0;
	}
	if (record->body == CHANNEL_BODY_FD) {
		struct stat st;

		if (fstat(body_fd, &st) < 0)
			return -errno;
		size = st.st_size > 0 && st.st_size <= (off_t)REQUEST_SIZE_MAX
			? (size_t)st.st_size
			: 0;
		data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, body_fd, 0) : NULL;
		if (!data)
			return -EPROTO;
		if (data == MAP_FAILED)
			return -errno;
	}
	int r = request_read(data, size, &view);
	if (r < 0)
		return r;
	k->stays = (view.head.flags & REQUEST_DETACH) != 0;
	k->start.umask = (mode_t)view.head.umask;
	command_of_request(&k->command, words_room(k), plan, &view);
	return 0;
}

/* The kernel may kill this process with the command, and then nobody else could say so; and who asked for a
 * service is told that it runs, not how it ends. */
static void send_started(void)
{
	struct channel_record record = { .kind = CHANNEL_STARTED };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	if (r < 0 && r != -EPIPE)
		box_fail(STEP_LOOP, r);
}

static void start_payload(
	struct monitor *k, const struct channel_record *record, int fds[CHANNEL_FDS_MAX])
{
	int next = 0;

	if (k->payload > 0)
		box_fail(STEP_LOOP, -EPROTO);
	k->start = (struct payload){
		.command = &k->command, .tty = k->tty, .in_front = record->flag != 0
	};
	/* A stream that comes without a descriptor is the terminal. None of them is below 3: monitor_loop(). */
	for (int f = 0; f < CHANNEL_STREAMS; f++)
		k->start.stdio[f] = record->streams & (1u << f) ? fds[next++] : k->tty;
	int r = find_command(k, record, fds[next]);
	if (r < 0)
		box_fail(STEP_EXEC, r);
	k->once = k->stays || record->number || record->body == CHANNEL_BODY_FD;
	k->payload = payload_start(&k->start, (char *)k->stack + STACK_SIZE);
	if (k->payload < 0)
		box_fail(STEP_EXEC, k->payload);
	if ((k->box->dies_as_one || record->number || k->stays) && !k->start.ret_step)
		send_started();
	for (int f = 0; f < CHANNEL_FDS_MAX; f++)
		if (fds[f] >= 0)
			(void)close(fds[f]);
	/* Only now: the end of a detached mount waits for a grace period of RCU, here while the command
	 * runs already. It never was among the command's descriptors. */
	if (k->is_init)
		(void)close(BOX_SKELETON);
}

static void send_signal(struct monitor *k, const struct channel_record *record)
{
	/* ESRCH: it has just ended; the record about that is on its way. */
	if (record->flag && k->is_init)
		(void)kill(-1, record->number);
	else if (record->flag) {
		int r = descendants_signal(getpid(), record->number);

		if (r < 0)
			box_fail(STEP_LOOP, r);
	} else if (k->payload > 0 && !k->ended)
		(void)kill(-k->payload, record->number);
}

static void continue_payload(struct monitor *k, const struct channel_record *record)
{
	if (k->payload <= 0 || k->ended)
		return;
	if (k->tty >= 0) {
		int r = take_front(k, record->flag ? k->payload : getpid());

		if (r < 0 && r != -ESRCH && r != -EPERM)
			box_fail(STEP_LOOP, r);
	}
	(void)kill(-k->payload, SIGCONT);
}

static void make_pty(struct monitor *k)
{
	struct channel_record record = { .kind = CHANNEL_READY };
	int master = -1;
	int r = k->tty >= 0 ? -EPROTO : monitor_open_pty(k, &master);

	if (r >= 0)
		r = channel_send(BOX_CHANNEL, &record, &master, 1);
	if (r < 0)
		box_fail(STEP_PTY, r);
	(void)close(master);
}

/*
 * A file as the command would get it: all walls hold for this process too. The answer brings the path
 * that the descriptor really has, for the one who asks what a name means in here.
 */
static void open_file(struct monitor *k, const struct channel_record *record)
{
	struct channel_record answer = { .kind = CHANNEL_OPENED };
	char *path = body_room(k), link[64];
	ssize_t length = 0;

	if (!record->body || path[record->body - 1] != '\0')
		box_fail(STEP_LOOP, -EPROTO);
	int fd = open(path, record->number | O_CLOEXEC | O_NOCTTY, (mode_t)record->streams);
	if (fd < 0) {
		answer.errnum = errno;
	} else {
		number_path(link, "/proc/self/fd/", (unsigned)fd, "");
		length = readlinkat(AT_FDCWD, link, path, PATH_SIZE);
	}
	int r = channel_send_body(BOX_CHANNEL, &answer, &fd, fd >= 0 ? 1 : 0, path,
		length > 0 ? (size_t)length : 0);
	if (r < 0)
		box_fail(STEP_LOOP, r);
	if (fd >= 0)
		(void)close(fd);
}

static void handle_record(struct monitor *k)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive_body(
		BOX_CHANNEL, &record, fds, body_room(k), k->is_init ? 0 : CHANNEL_BODY_MAX);

	if (r == 0) {
		/* The supervisor is gone, and the session with it; or it has no use for this monitor. */
		if (!k->is_init && k->payload > 0)
			clear_up(k);
		_exit(k->payload > 0);
	}
	if (r < 0)
		box_fail(STEP_LOOP, r);
	switch ((enum channel_kind)record.kind) {
	case CHANNEL_EXEC:
		start_payload(k, &record, fds);
		return;
	case CHANNEL_SIGNAL:
		send_signal(k, &record);
		return;
	case CHANNEL_CONTINUE:
		continue_payload(k, &record);
		return;
	case CHANNEL_PTY:
		make_pty(k);
		return;
	case CHANNEL_OPEN:
		open_file(k, &record);
		return;
	case CHANNEL_GO:
	case CHANNEL_SESSION:
	case CHANNEL_MONITOR:
	case CHANNEL_DISMISS:
	case CHANNEL_FAILED:
	case CHANNEL_SCRATCH:
	case CHANNEL_READY:
	case CHANNEL_STARTED:
	case CHANNEL_STOPPED:
	case CHANNEL_OPENED:
	case CHANNEL_ENDED:
		break;
	}
	box_fail(STEP_LOOP, -EPROTO);
}

_Noreturn void monitor_loop(struct monitor *k)
{
	struct pollfd events[] = {
		{ .fd = BOX_CHANNEL, .events = POLLIN },
		{ .fd = BOX_CHILDREN, .events = POLLIN },
	};

	/* The payload puts its streams there: what arrives must lie elsewhere. */
	for (int fd = 0; fd < CHANNEL_STREAMS; fd++)
		if (dup3(BOX_CHANNEL, fd, O_CLOEXEC) < 0)
			box_fail(STEP_STDIO, -errno);
	for (;;) {
		int r = rest_poll(k->box, events, 2);

		if (r < 0)
			box_fail(STEP_LOOP, r);
		if (events[1].revents)
			reap(k);
		if (events[0].revents)
			handle_record(k);
	}
}

/* The descriptors of init are not the monitor's. */
static int set_up(int channel)
{
	sigset_t child;

	if (dup3(channel, BOX_CHANNEL, O_CLOEXEC) < 0)
		return -errno;
	int r = sys_close_range(BOX_CHILDREN, ~0U);
	if (r < 0)
		return r;
	if (sigemptyset(&child) < 0 || sigaddset(&child, SIGCHLD) < 0)
		return -errno;
	int fd = signalfd(-1, &child, SFD_CLOEXEC); /* one of 0 to 2: they are closed in init */
	if (fd < 0 || dup3(fd, BOX_CHILDREN, O_CLOEXEC) < 0)
		return -errno;
	(void)close(fd);
	if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

pid_t monitor_fork(struct monitor *k, int channel)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid != 0)
		return pid < 0 ? -errno : (pid_t)pid;
	/* Its pid, for the case that it must be ended from outside. */
	struct channel_record ready = { .kind = CHANNEL_READY, .number = getpid() };
	int r = set_up(channel);
	if (r >= 0)
		r = channel_send(BOX_CHANNEL, &ready, NULL, 0);
	/* Without a word: the channel may still be init's, in whose name it would end the session. That the
	 * monitor is gone its own channel says. */
	if (r < 0)
		_exit(1);
	monitor_loop(k);
}
