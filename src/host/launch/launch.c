/*
 * launch.c - see launch.h.
 *
 * Runs in: the launcher, outside; begin_main() takes over in the child.
 */
#include "host/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"
#include "box/begin.h"
#include "box/channel.h"
#include "box/sys.h"
#include "host/egress/login.h"
#include "host/egress/netlog.h"
#include "host/egress/publish.h"
#include "host/explain/explain.h"
#include "host/machine/container.h"
#include "host/machine/explain.h"
#include "host/process/leaked.h"
#include "host/process/tuning.h"
#include "host/process/reaper.h"
#include "host/process/uid_maps.h"

enum { HOLDER_STACK = 16 * 1024, FILES_ARENA_SIZE = 1 << 20 };

/* The holder of a user namespace: it lives until the launcher has a descriptor of the namespace.
 * It shares our memory and writes none of it. */
static int hold(void *parent)
{
	if (parent_die_with(*(pid_t *)parent, SIGKILL) < 0)
		_exit(1);
	for (;;)
		(void)pause();
}

/* A user namespace that maps @map's owner to the payload's kernel ids. A descriptor or -errno. */
static int make_user_ns(
	struct launch *l, const struct facts *facts, const struct idmap *map, char *stack)
{
	char path[64];
	pid_t parent = getpid();
	/* It sends no signal when it ends: nobody is to be woken for it. */
	pid_t pid = clone(hold, stack + HOLDER_STACK, CLONE_NEWUSER | CLONE_VM, &parent);

	if (pid < 0)
		return -errno;
	l->holders[l->holder_count++] = pid;
	int r = uid_maps_write(
		pid, false, map->disk_uid, facts->kernel_uid, map->disk_gid, facts->kernel_gid);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (r >= 0)
		r = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	/* It is not reaped yet, so its pid is still ours. A holder that still lives is not waited
	 * for: it ends with us. */
	if (kill(pid, SIGKILL) < 0) {
		int fault = -errno;

		l->holder_count--;
		if (r >= 0)
			(void)close(r);
		r = fault;
	}
	return r;
}

static void reap_one(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

void launch_reap(struct launch *l)
{
	while (l->holder_count)
		reap_one(l->holders[--l->holder_count]);
	if (l->holder_stack)
		(void)munmap(l->holder_stack, (size_t)HOLDER_STACK * PLAN_IDMAP_MAX);
	l->holder_stack = NULL;
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fd_close(&fds[i]);
}

/* A user namespace for each owner that is idmapped. launch_reap() reaps the holders. */
static int make_user_nss(struct launch *l, int fds[PLAN_IDMAP_MAX], unsigned *ret_count)
{
	const struct plan *plan = l->box->plan;

	if (!plan->idmap_count)
		return 0;
	char *stack = mmap(NULL, HOLDER_STACK * PLAN_IDMAP_MAX, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return -errno;
	l->holder_stack = stack;
	for (unsigned i = 0; i < plan->idmap_count; i++) {
		/* Each holder has a stack of its own: the one before may still be running. */
		int r = make_user_ns(
			l, plan->facts, &plan->idmaps[i], stack + (size_t)i * HOLDER_STACK);

		if (r < 0)
			return r;
		fds[(*ret_count)++] = r;
	}
	return 0;
}

/*
 * Clone init, in a child like that of fork(2): with clone3(2), but with clone(2) where there are no
 * namespaces, since the filters of containers refuse clone3(2).
 */
static long clone_init(struct launch *l, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = (l->flags & CLONE_NEWUSER) | CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	if (l->flags)
		return sys_clone3(&args);
	/* A process that loses its parent inside must stay our descendant, even if init is lost
	 * (prctl(2), PR_SET_CHILD_SUBREAPER). */
	int filters = leaked_filters();
	if (filters < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return filters < 0 ? filters : -errno;
	l->filters = (unsigned)filters;
	l->bare = true;
	/* The third argument is the pidfd's place on every architecture: clone(2). */
	return sys_result(
		syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, ret_pidfd, NULL, NULL));
}

static int start_init(struct launch *l, const struct identity *id, struct error *e)
{
	int pair[2], pidfd = -1;
	struct begin begin = { .box = l->box,
		.arena = l->arena->base,
		.arena_size = l->arena->size,
		.flags = l->flags & ~(unsigned long)CLONE_NEWUSER };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(
			e, ERROR_LIMIT, "launch", errno, NULL, "cannot make the channel");
	begin.channel = pair[1];
	long pid = clone_init(l, &pidfd);
	if (pid == 0)
		begin_main(&begin);
	(void)close(pair[1]);
	l->channel = pair[0];
	if (pid < 0) {
		fd_close(&l->channel);
		return explain_clone((int)-pid, l->live, e);
	}
	l->pidfd = pidfd;
	l->init = (pid_t)pid;
	l->box->apart = tuning_part(l->init);
	if (!(l->flags & CLONE_NEWUSER))
		return 0;
	int r = uid_maps_write(l->init, true, id->uid, id->uid, id->gid, id->gid);
	if (r < 0) {
		launch_kill(l);
		r = error_set(e, ERROR_NAMESPACES, "launch", -r, NULL,
			"cannot write the maps of the user namespace");
		if (id->uid == 0 && r == -EPERM)
			error_hint(e,
				"uid 0 cannot be mapped without CAP_SETFCAP: run as another "
				"user, or give this root that capability (user_namespaces(7))");
		return r;
	}
	return 0;
}

int launch_begin(struct launch *ret, struct arena *arena, const struct identity *identity,
	struct error *e)
{
	/* The namespaces that most policies ask for; launch_init() begins again for the others. */
	struct launch l = { .pidfd = -1,
		.channel = -1,
		.scratch = -1,
		.live = ret->live,
		.egress = EGRESS_NONE,
		.views = { [0 ... VIEW_COUNT - 1] = -1 },
		.mounts = { [0 ... VIEW_COUNT - 1] = -1 },
		.arena = arena,
		.flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
			CLONE_NEWNET };
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (!identity->privileged)
		l.flags |= CLONE_NEWUSER;
	l.box = arena_alloc(arena, sizeof(*l.box));
	/* The command gets the caller's umask. Carrel's own must leave the owner's bits, so that
	 * carrel can use what it makes. */
	l.umask = umask(0);
	(void)umask(l.umask & ~(mode_t)S_IRWXU);
	/* If the caller ignores SIGCHLD, children leave no status (wait(2)). */
	if (!l.box || sigaction(SIGCHLD, &dfl, NULL) < 0)
		return error_no_memory(e, "launch");
	int r = start_init(&l, identity, e);
	*ret = l;
	return r;
}

/* The policy wants other namespaces than init was given (`net host` in a file): init is started
 * again, now that the policy is known. */
static int begin_again(struct launch *l, const struct plan *plan, struct error *e)
{
	const struct facts *f = plan->facts;
	const struct identity id = {
		.uid = f->uid, .gid = f->gid, .privileged = f->privileged
	};

	launch_kill(l);
	l->flags = plan->clone_flags & ~(unsigned long)CLONE_NEWPID;
	return start_init(l, &id, e);
}

/* A live session needs its namespaces and its own /proc, whatever the policy accepts. */
static int refuse_live(const struct plan *plan, struct error *e)
{
	bool proc = plan->clone_flags != 0;
	int r = error_set(e, ERROR_UNAVAILABLE, "launch", 0,
		proc ? plan->facts->refused_proc : plan->facts->refused_namespaces,
		"this machine cannot hold a live session, degraded or not");

	container_hint(proc ? CONTAINER_PROC : CONTAINER_NAMESPACES, true, e);
	return r;
}

int launch_init(struct launch *l, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e)
{
	int r = 0;

	/* Monitors use the numbers in their own /proc to find the processes that they end. */
	if (l->live && (!plan->clone_flags || plan->facts->refused_proc))
		r = refuse_live(plan, e);
	if (r >= 0 && l->flags != (plan->clone_flags & ~(unsigned long)CLONE_NEWPID))
		r = begin_again(l, plan, e);
	if (r < 0) {
		launch_kill(l);
		return r;
	}
	*l->box = (struct box){ .plan = plan,
		.apart = l->box->apart,
		.want_pty = want_pty,
		.dies_as_one = l->dies_as_one,
		.tasks_by_rlimit = l->tasks_by_rlimit,
		.live = l->live,
		.caller_args = args,
		.caller_args_size = args_size,
		.umask = l->umask };
	if (l->live) {
		tuning_find_code(&l->box->code);
		l->box->arena = l->arena->base;
		l->box->arena_size = l->arena->size;
	}
	const struct channel_record go = { .kind = CHANNEL_GO };
	r = l->explain ? explain_observe(l->explain, l->init, e) : 0;
	if (r < 0) {
		launch_kill(l);
		return r;
	}
	r = arena_seal(l->arena);
	if (r >= 0)
		r = channel_send(l->channel, &go, NULL, 0);
	/* Init ended before it got the plan. Why is in its record on the channel, which the
	 * supervisor reads. */
	if (r >= 0 || r == -EPIPE)
		return 0;
	launch_kill(l);
	return error_set(e, ERROR_INTERNAL, "launch", -r, NULL, "cannot send init the plan");
}

/*
 * Open the files of the caller that carrel-egress is given. @ret_log: left as it is where there is
 * no log; @ret_login: empty: none.
 */
static int open_files(const struct policy *policy, const struct facts *facts, int *ret_log,
	char ret_login[LOGIN_TEXT_MAX], struct error *e)
{
	bool login = policy->egress_proxy.value && policy->egress_proxy_login.value;
	struct toolplace place;
	autofd int log = -1;

	ret_login[0] = '\0';
	if (!policy->net_log.value && !login)
		return 0;
	__attribute__((cleanup(arena_free))) struct arena arena = { 0 };
	if (arena_init(&arena, FILES_ARENA_SIZE) < 0 || toolplace_of(&place, &arena, facts) < 0)
		return error_no_memory(e, "launch");
	if (policy->net_log.value) {
		log = netlog_open(policy->net_log.value, &place, e);
		if (log < 0)
			return log;
	}
	int r = login
		? login_read(policy->egress_proxy_login.value, &place, &arena, ret_login, e)
		: 0;
	if (r >= 0)
		*ret_log = take_fd(&log);
	return r;
}

int launch_egress(struct launch *l, const struct policy *policy, const struct facts *facts,
	struct error *e)
{
	char login[LOGIN_TEXT_MAX];
	autofd int log = -1;

	if (policy->net != NET_ALLOW && policy->publish_count == 0)
		return 0;
	int r = open_files(policy, facts, &log, login, e);
	if (r < 0)
		return r;
	r = egress_begin(&l->egress, policy, log, login[0] ? login : NULL, e);
	explicit_bzero(login, sizeof(login));
	return r < 0 ? r : publish_begin(&l->egress, policy, e);
}

/* A channel for each tighter view that a live session can be asked for. */
static int make_views(struct launch *l, int fds[VIEW_COUNT], unsigned *ret_count)
{
	unsigned views = view_bits(l->box->plan);

	for (unsigned view = 0; view < VIEW_COUNT; view++) {
		int pair[2];

		if (!(views & (1u << view)))
			continue;
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			return -errno;
		l->views[view] = pair[0];
		fds[(*ret_count)++] = pair[1];
	}
	return (int)views;
}

int launch_session(struct launch *l, struct error *e)
{
	struct channel_record record = { .kind = CHANNEL_SESSION };
	int fds[CHANNEL_FDS_MAX];
	_Static_assert(PLAN_IDMAP_MAX + VIEW_COUNT <= CHANNEL_FDS_MAX, "they are sent at once");
	unsigned count = 0;
	const char *what = "the session's user namespace could not be made";
	int r = make_user_nss(l, fds, &count);

	if (r >= 0) {
		what = "cannot report to init that the session is ready";
		r = l->live ? make_views(l, fds, &count) : 0;
		record.number = r;
	}
	if (r >= 0)
		r = channel_send(l->channel, &record, fds, count);
	close_all(fds, count);
	if (r >= 0 || r == -EPIPE)
		return 0;
	return error_set(e, ERROR_INTERNAL, "launch", -r, NULL, "%s", what);
}

/* Without a pid namespace the processes that init left behind are our children now. */
static void end_leaked(const struct launch *l)
{
	/* It fails only without /proc, which init could read a moment ago. */
	(void)!leaked_end(l->filters);
	reaper_reap_unexpected(0);
}

static void close_channels(struct launch *l)
{
	fd_close(&l->channel);
	for (unsigned view = 0; l->live && view < VIEW_COUNT; view++)
		fd_close(&l->views[view]);
}

void launch_close_views(struct launch *l)
{
	for (unsigned view = 0; view < VIEW_COUNT; view++)
		if (l->mounts[view] > 0)
			fd_close(&l->mounts[view]);
}

void launch_kill(struct launch *l)
{
	siginfo_t info;

	if (l->explain && l->explain->observes)
		explain_stop(l->explain);
	if (l->pidfd >= 0) {
		/* SIGKILL to init ends everything in its pid namespace; waitid returns when the
		 * last process is dead (pid_namespaces(7)). */
		(void)sys_pidfd_send_signal(l->pidfd, SIGKILL);
		/* Init also ends when its channel is closed: the wait ends even if the signal does
		 * not reach it. */
		close_channels(l);
		while (waitid(P_PIDFD, (id_t)l->pidfd, &info, WEXITED) < 0 && errno == EINTR)
			;
		if (l->bare)
			end_leaked(l);
	}
	launch_reap(l);
	fd_close(&l->pidfd);
	close_channels(l);
}
