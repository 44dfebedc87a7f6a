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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/descendants.h"
#include "box/network.h"
#include "box/number.h"
#include "box/rest.h"
#include "box/sys.h"

enum { STACK_SIZE = 64 * 1024, PATH_SIZE = 4095 };

static char *body_room(const struct monitor *m)
{
	return (char *)m->stack + STACK_SIZE;
}

static void *words_room(const struct monitor *m)
{
	return body_room(m) + CHANNEL_BODY_MAX;
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

/* Moves @fd to a number that neither monitor_loop() nor the payload uses. Takes @fd; returns the
 * new one or -errno. */
static int above_streams(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, BOX_CHILDREN + 1);
	int r = up < 0 ? -errno : up;

	(void)close(fd);
	return r;
}

/* The terminal of the execution, from the session's devpts. See: ioctl_tty(2). */
int monitor_open_pty(struct monitor *m, int *ret_master)
{
	int unlock = 0;
	bool own = m->box->plan->clone_flags != 0;
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
	m->tty = r;
	*ret_master = master;
	return 0;
}

/* Ends everything that the execution left. For init that is every process there is. */
static void clear_up(struct monitor *m)
{
	if (!m->is_init) {
		int r = descendants_end(BOX_CHILDREN);

		if (r < 0)
			box_fail(STEP_LOOP, r); /* and the supervisor ends what is left */
		return;
	}
	(void)kill(-1, SIGKILL); /* ESRCH: there is nobody left */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Resets the monitor, so that the next execution finds it as if it were new. */
static void forget_execution(struct monitor *m)
{
	m->payload = 0;
	m->ended = false;
}

/*
 * Ends an execution. The monitor then waits for the next one, unless it still has something of
 * this one: a terminal, a service's processes, or a group.
 * With a terminal it kills and reaps everything else first and stays until the supervisor has read
 * what the terminal still holds: it is the session leader, and its end hangs the terminal up
 * (termios(3), credentials(7)).
 * Init without a terminal just ends: the kernel then kills everything in the pid namespace
 * (pid_namespaces(7)).
 */
static void end_execution(struct monitor *m)
{
	bool stays = !m->is_init && !m->once && m->tty < 0;
	char byte;

	m->last.kind = CHANNEL_ENDED;
	if (m->tty >= 0 || !m->is_init)
		clear_up(m);
	if (m->tty >= 0)
		(void)close(m->tty);
	/* Every process that loses its parent becomes init's child, zombies included. So where
	 * wait finds no child, nothing is left at all, and the supervisor need not wait for more.
	 * (kill(-1, 0) would look at every process of the machine.) */
	siginfo_t child;
	m->last.flag = m->is_init
		? waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 &&
			errno == ECHILD
		: stays;
	int r = channel_send(BOX_CHANNEL, &m->last, NULL, 0);
	if (r < 0)
		_exit(1); /* the supervisor takes a missing record for an unknown outcome */
	if (stays) {
		forget_execution(m);
		return;
	}
	while (m->tty >= 0 && (read(BOX_CHANNEL, &byte, 1) > 0 || errno == EINTR))
		errno = 0;
	_exit(0);
}

/* @end: from waitid(2) with WNOWAIT: the payload is not reaped yet, since a reaped process has no
 * /proc entry. */
static void payload_ended(struct monitor *m, const siginfo_t *end)
{
	struct channel_record record = { .op = -1 };
	struct rusage usage;
	int status;

	if (end->si_code != CLD_EXITED && m->box->plan->facts->refused_proc)
		/* The machine's own /proc numbers processes otherwise than this pid namespace. */
		record.started = m->start.ret_at_exec ? STARTED_YES : STARTED_NO;
	else if (end->si_code != CLD_EXITED)
		record.started = payload_started(m->payload);
	else
		record.started = STARTED_YES;
	/* The command still counts against the limit here: this tells whether it ended because the
	 * limit was reached. */
	if (m->box->tasks_by_rlimit)
		record.number = -payload_probe();
	if (wait4(m->payload, &status, 0, &usage) != m->payload)
		box_fail(STEP_LOOP, -errno);
	record.wait_status = status;
	record.user_us =
		(uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
	record.system_us =
		(uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
	record.max_rss_kib = (uint64_t)usage.ru_maxrss;
	if (m->start.ret_step) {
		record.started = STARTED_NO;
		record.op = m->start.ret_step;
		record.errnum = m->start.ret_errno;
	}
	if (status != 0)
		network_count(&record.no_route, &record.no_listener);
	m->last = record;
	m->ended = true;
}

static void payload_stopped(int signal)
{
	struct channel_record record = { .kind = CHANNEL_STOPPED, .op = -1, .number = signal };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	if (r < 0)
		box_fail(STEP_LOOP, r);
}

/* Reaps what has ended; orphaned processes become children of init or of a monitor. Returns false
 * where there is no child any more. */
static bool reap_children(struct monitor *m)
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
		if (child.si_pid == m->payload && !stopped && !m->ended) {
			payload_ended(m, &child);
			if (!m->stays)
				return true;
			continue;
		}
		if (waitid(P_PID, (id_t)child.si_pid, &child, WEXITED | WSTOPPED | WNOHANG) < 0)
			box_fail(STEP_LOOP, -errno);
		if (stopped && child.si_pid == m->payload)
			payload_stopped(child.si_status);
	}
}

static void reap(struct monitor *m)
{
	struct signalfd_siginfo info;

	if (read(BOX_CHILDREN, &info, sizeof(info)) != (ssize_t)sizeof(info))
		box_fail(STEP_LOOP, -EIO);
	bool more = reap_children(m);
	if (m->ended && (!m->stays || !more))
		end_execution(m);
}

static int take_front(struct monitor *m, pid_t group)
{
	return ioctl(m->tty, TIOCSPGRP, &group) < 0 ? -errno : 0;
}

/* Finds what is to be run: the plan's command, or a request in the record's body or in a sealed
 * file. */
static int find_command(struct monitor *m, const struct channel_record *record, int body_fd)
{
	const struct plan *plan = m->box->plan;
	struct request_view *view = &m->request;
	const char *data = body_room(m);
	size_t size = record->body;
	int r = 0;

	if (!record->body) {
		command_of_plan(&m->command, plan);
		m->start.umask = m->box->umask;
		return 0;
	}
	if (record->body == CHANNEL_BODY_FD)
		r = command_map(body_fd, &data, &size);
	if (r >= 0)
		r = request_read(data, size, view);
	if (r < 0)
		return r;
	m->stays = (view->head.flags & REQUEST_DETACH) != 0;
	m->start.umask = (mode_t)view->head.umask;
	command_of_request(&m->command, words_room(m), plan, view);
	return 0;
}

/* The kernel may kill this process together with the command, and then nobody else could report
 * that the command ran. The client of a service learns that it runs, not how it ends. */
static void send_started(void)
{
	struct channel_record record = { .kind = CHANNEL_STARTED };
	int r = channel_send(BOX_CHANNEL, &record, NULL, 0);

	if (r < 0 && r != -EPIPE)
		box_fail(STEP_LOOP, r);
}

/* Take the streams that were sent, what is passed beside them, and a request too long for its record. */
static int take_descriptors(
	struct monitor *m, const struct channel_record *record, const int fds[CHANNEL_FDS_MAX])
{
	unsigned sent = 0, next = 0, apart = record->body == CHANNEL_BODY_FD;

	while (sent < CHANNEL_FDS_MAX && fds[sent] >= 0)
		sent++;
	int r = find_command(m, record, sent ? fds[sent - 1] : -1);
	if (r < 0)
		return r;
	/* A stream that comes without a descriptor is the terminal. None of them is below 3: monitor_loop(). */
	for (int f = 0; f < CHANNEL_STREAMS; f++)
		m->start.stdio[f] = record->streams & (1u << f) ? fds[next++] : m->tty;
	for (unsigned i = 0; i < m->command.pass->count; i++)
		m->start.passed[i] = fds[next++];
	return next + apart == sent ? 0 : -EPROTO;
}

static void start_payload(
	struct monitor *m, const struct channel_record *record, int fds[CHANNEL_FDS_MAX])
{
	if (m->payload > 0)
		box_fail(STEP_LOOP, -EPROTO);
	m->start = (struct payload){
		.command = &m->command, .tty = m->tty, .in_front = record->flag != 0
	};
	int r = take_descriptors(m, record, fds);
	if (r < 0)
		box_fail(STEP_EXEC, r);
	m->once = m->stays || record->number || record->body == CHANNEL_BODY_FD;
	m->payload = payload_start(&m->start, (char *)m->stack + STACK_SIZE);
	if (m->payload < 0)
		box_fail(STEP_EXEC, m->payload);
	if ((m->box->dies_as_one || record->number || m->stays) && !m->start.ret_step)
		send_started();
	for (int f = 0; f < CHANNEL_FDS_MAX; f++)
		if (fds[f] >= 0)
			(void)close(fds[f]);
	/* It is closed only now: closing the last descriptor of a detached mount waits for a grace
	 * period of RCU, here while the command runs already. The command never had this
	 * descriptor. */
	if (m->is_init)
		(void)close(BOX_SKELETON);
}

static void send_signal(struct monitor *m, const struct channel_record *record)
{
	/* ESRCH: it has just ended; the record about that is on its way. */
	if (record->flag && m->is_init)
		(void)kill(-1, record->number);
	else if (record->flag) {
		int r = descendants_signal(getpid(), record->number);

		if (r < 0)
			box_fail(STEP_LOOP, r);
	} else if (m->payload > 0 && !m->ended)
		(void)kill(-m->payload, record->number);
}

static void continue_payload(struct monitor *m, const struct channel_record *record)
{
	if (m->payload <= 0 || m->ended)
		return;
	if (m->tty >= 0) {
		int r = take_front(m, record->flag ? m->payload : getpid());

		if (r < 0 && r != -ESRCH && r != -EPERM)
			box_fail(STEP_LOOP, r);
	}
	(void)kill(-m->payload, SIGCONT);
}

static void make_pty(struct monitor *m)
{
	struct channel_record record = { .kind = CHANNEL_READY };
	int master = -1;
	int r = m->tty >= 0 ? -EPROTO : monitor_open_pty(m, &master);

	if (r >= 0)
		r = channel_send(BOX_CHANNEL, &record, &master, 1);
	if (r < 0)
		box_fail(STEP_PTY, r);
	(void)close(master);
}

/* Opens a file as the command would: all walls hold for this process too. The answer has the path
 * that the descriptor really leads to, for a client that asks what a name means in the session. */
static void open_file(struct monitor *m, const struct channel_record *record)
{
	struct channel_record answer = { .kind = CHANNEL_OPENED };
	char *path = body_room(m), link[64];
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

static void handle_record(struct monitor *m)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive_body(
		BOX_CHANNEL, &record, fds, body_room(m), m->is_init ? 0 : CHANNEL_BODY_MAX);

	if (r == 0) {
		/* The supervisor is gone and the session ends, or the supervisor has dismissed
		 * this monitor. */
		if (!m->is_init && m->payload > 0)
			clear_up(m);
		_exit(m->payload > 0);
	}
	if (r < 0)
		box_fail(STEP_LOOP, r);
	switch ((enum channel_kind)record.kind) {
	case CHANNEL_EXEC:
		start_payload(m, &record, fds);
		return;
	case CHANNEL_SIGNAL:
		send_signal(m, &record);
		return;
	case CHANNEL_CONTINUE:
		continue_payload(m, &record);
		return;
	case CHANNEL_PTY:
		make_pty(m);
		return;
	case CHANNEL_OPEN:
		open_file(m, &record);
		return;
	case CHANNEL_GO:
	case CHANNEL_SESSION:
	case CHANNEL_MONITOR:
	case CHANNEL_DISMISS:
	case CHANNEL_FAILED:
	case CHANNEL_SCRATCH:
	case CHANNEL_SOCKETS:
	case CHANNEL_READY:
	case CHANNEL_STARTED:
	case CHANNEL_STOPPED:
	case CHANNEL_OPENED:
	case CHANNEL_ENDED:
		break;
	}
	box_fail(STEP_LOOP, -EPROTO);
}

_Noreturn void monitor_loop(struct monitor *m)
{
	struct pollfd events[] = {
		{ .fd = BOX_CHANNEL, .events = POLLIN },
		{ .fd = BOX_CHILDREN, .events = POLLIN },
	};

	/* The payload puts its streams at 0 to 2, so no received descriptor may have these
	 * numbers. */
	for (int fd = 0; fd < CHANNEL_STREAMS; fd++)
		if (dup3(BOX_CHANNEL, fd, O_CLOEXEC) < 0)
			box_fail(STEP_STDIO, -errno);
	for (;;) {
		int r = rest_poll(m->box, events, 2);

		if (r < 0)
			box_fail(STEP_LOOP, r);
		if (events[1].revents)
			reap(m);
		if (events[0].revents)
			handle_record(m);
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

pid_t monitor_fork(struct monitor *m, int channel)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid != 0)
		return pid < 0 ? -errno : (pid_t)pid;
	/* Reports its pid, so that the supervisor can have it killed from outside. */
	struct channel_record ready = { .kind = CHANNEL_READY, .number = getpid() };
	int r = set_up(channel);
	if (r >= 0)
		r = channel_send(BOX_CHANNEL, &ready, NULL, 0);
	/* It reports nothing here: the channel may still be init's, and a record on it would end
	 * the session. The supervisor learns that the monitor is gone from the monitor's own
	 * channel. */
	if (r < 0)
		_exit(1);
	monitor_loop(m);
}
