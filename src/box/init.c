/*
 * init.c - pid 1 of a session, from clone to the end.
 *
 * Runs in: init. No heap, no stdio. May not: hold a descriptor of the host once the plan is
 * applied, start anything before every operation has succeeded, or outlive the supervisor.
 *
 * In a `run` init keeps the one execution itself. In a live session it only forks monitors, when the
 * supervisor asks for one, and reaps.
 */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/apply.h"
#include "box/channel.h"
#include "box/descendants.h"
#include "box/monitor.h"
#include "box/rest.h"
#include "box/sys.h"
#include "box/view.h"

_Noreturn void box_fail(int op, int error)
{
	struct channel_record record = { .kind = CHANNEL_FAILED, .op = op, .errnum = -error };
	/* There is no other way to say it. */
	(void)!channel_send(BOX_CHANNEL, &record, NULL, 0);
	_exit(1);
}

static bool has_pid_ns(const struct box *box)
{
	return box->plan->clone_flags != 0;
}

/*
 * Open the mount namespace for the coverer, which covers again what the host replaces: from outside
 * nobody may open it any more, since init is not dumpable (namespaces(7), ptrace(2)). -ENOENT:
 * there is none, or no /proc that knows this process.
 */
static int open_view(const struct box *box)
{
	int view = has_pid_ns(box) ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -1;

	return view >= 0 ? view : has_pid_ns(box) ? -errno : -ENOENT;
}

static int send_ready(struct monitor *m, int view, int master)
{
	struct channel_record record = { .kind = CHANNEL_READY };
	int fds[2], r = 0;
	unsigned count = 0;

	if (m->box->want_pty && master < 0)
		r = monitor_open_pty(m, &master);
	if (r < 0)
		return r;
	if (view >= 0) {
		record.flag = 1;
		fds[count++] = view;
	}
	if (master >= 0)
		fds[count++] = master;
	r = channel_send(BOX_CHANNEL, &record, fds, count);
	for (unsigned i = 0; i < count; i++)
		(void)close(fds[i]);
	return r;
}

/* STOPS_MAX: how often within STOPS_SECONDS init continues a monitor that was stopped; after that
 * init kills it. */
enum { MONITORS_MAX = 768, STOPS_MAX = 64, STOPS_SECONDS = 60 };

/* The live monitors. Any other child of init was left behind by a monitor that was killed. */
struct monitors {
	pid_t pids[MONITORS_MAX];
	size_t count;
	unsigned stops; /* since one was forked, or since `since` */
	time_t since;
};

static bool remove_monitor(struct monitors *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++) {
		if (all->pids[i] != pid)
			continue;
		all->pids[i] = all->pids[--all->count];
		return true;
	}
	return false;
}

static bool has_monitor(const struct monitors *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->pids[i] == pid)
			return true;
	return false;
}

/* Carrel never stops a monitor, but a tool can. A stopped spare monitor would delay the next
 * execution. */
static void continue_monitor(struct monitors *all, pid_t pid)
{
	struct timespec now = { 0 };

	if (!has_monitor(all, pid))
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - all->since >= STOPS_SECONDS) {
		all->since = now.tv_sec;
		all->stops = 0;
	}
	/* Under Landlock no process can signal the init of another view (landlock(7), scopes). A
	 * stopped one would block the supervisor as well. */
	if (kill(pid, ++all->stops > STOPS_MAX ? SIGKILL : SIGCONT) < 0 && errno == EPERM)
		box_fail(STEP_LOOP, -EPERM);
}

/* A monitor that ends by itself has cleared up. A tool can kill its own monitor, but init then
 * kills what it left. */
static void reap_all(struct monitors *all)
{
	struct signalfd_siginfo info;
	bool strays = false;
	int status;
	pid_t pid;

	if (read(BOX_CHILDREN, &info, sizeof(info)) != (ssize_t)sizeof(info))
		box_fail(STEP_LOOP, -EIO);
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
		if (WIFSTOPPED(status))
			continue_monitor(all, pid);
		else if (!remove_monitor(all, pid) || status != 0)
			strays = true;
	}
	int r = strays ? descendants_end_strays(all->pids, all->count) : 0;
	if (r < 0)
		box_fail(STEP_LOOP, r);
}

static void handle_record(struct monitor *m, struct monitors *all)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	int r = channel_receive(BOX_CHANNEL, &record, fds);

	if (r == 0)
		_exit(1); /* the supervisor is gone, and the session with it */
	if (r < 0)
		box_fail(STEP_LOOP, r);
	if (record.kind == CHANNEL_DISMISS && record.number > 1) {
		/* It may have ended, and another process may have its pid by now. */
		if (!has_monitor(all, record.number))
			return;
		/* Kill what is below the monitor first. */
		r = descendants_signal(record.number, SIGKILL);
		(void)kill(record.number, SIGKILL); /* ESRCH: it has ended */
		if (r < 0)
			box_fail(STEP_LOOP, r);
		return;
	}
	if (record.kind != CHANNEL_MONITOR || fds[0] < 0)
		box_fail(STEP_LOOP, -EPROTO);
	/* Where the fork fails, the supervisor sees that the channel is closed. */
	pid_t monitor = all->count < MONITORS_MAX ? monitor_fork(m, fds[0]) : -EAGAIN;
	if (monitor > 0) {
		all->pids[all->count++] = monitor;
		all->stops = 0;
	}
	(void)close(fds[0]);
}

static _Noreturn void serve_monitors(struct monitor *m)
{
	struct monitors all = { .count = 0 };
	struct pollfd events[] = {
		{ .fd = BOX_CHANNEL, .events = POLLIN },
		{ .fd = BOX_CHILDREN, .events = POLLIN },
	};

	/* The other views are not strays. Where Landlock does not scope signals, one view would
	 * end the others. */
	for (unsigned view = 0; view < VIEW_COUNT; view++)
		if (m->box->view_inits[view] > 0)
			all.pids[all.count++] = m->box->view_inits[view];
	for (;;) {
		int r = rest_poll(m->box, events, 2);

		if (r < 0)
			box_fail(STEP_LOOP, r);
		if (events[1].revents)
			reap_all(&all);
		if (events[0].revents)
			handle_record(m, &all);
	}
}

/* Without a devpts of its own, init opens the terminal now: once Landlock is on, it cannot reach
 * the machine's terminals. */
static int open_early(struct monitor *m, int *ret_master)
{
	int r = sys_close_range(0, BOX_CHANNEL - 1);

	if (r >= 0)
		r = sys_close_range(BOX_SKELETON + 1, ~0U);
	return r < 0 || !m->box->want_pty ? r : monitor_open_pty(m, ret_master);
}

/* Close all slots and namespaces: no descriptor of the host stays open. */
static int close_host_descriptors(const struct box *own)
{
	int r = sys_close_range(0, BOX_CHANNEL - 1);

	return r < 0 ? r : sys_close_range(own->live ? BOX_SKELETON : BOX_SKELETON + 1, ~0U);
}

_Noreturn void box_init(const struct box *box)
{
	struct box own = *box;
	pid_t view_inits[VIEW_COUNT] = { 0 };
	struct monitor m;
	int op = STEP_SETUP, master = -1;
	/* Without a pid namespace init clears up like a monitor: its own descendants are all there
	 * is. */
	int r = monitor_prepare(&m, &own, !own.live && has_pid_ns(&own));

	own.view_inits = view_inits;
	if (r < 0)
		box_fail(STEP_SETUP, r);
	r = has_pid_ns(&own) ? 0 : open_early(&m, &master);
	if (r < 0)
		box_fail(STEP_PTY, r);
	r = box_apply(&own, &op);
	if (r < 0)
		box_fail(op, r);
	r = has_pid_ns(&own) ? close_host_descriptors(&own) : 0;
	int view = r < 0 ? r : open_view(&own);
	if (view < 0 && view != -ENOENT)
		box_fail(STEP_SETUP, view);
	r = send_ready(&m, view, master);
	if (r < 0)
		box_fail(STEP_PTY, r);
	if (own.live)
		serve_monitors(&m);
	if (own.apart)
		channel_await(BOX_CHANNEL, BOX_TRIES_EXEC);
	monitor_loop(&m);
}
