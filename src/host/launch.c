/*
 * launch.c - see launch.h.
 *
 * Runs in: the launcher, outside; begin_main() takes over in the child.
 */
#include "host/launch.h"

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
#include "box/begin.h"
#include "box/channel.h"
#include "box/sys.h"
#include "host/explain.h"

enum { HOLDER_STACK = 16 * 1024 };

static int write_text(int dir, const char *name, const char *text)
{
	autofd int fd = fd_open_at(dir, name, O_WRONLY, 0);

	return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

/* One id inside for one outside; see user_namespaces(7). */
static int write_maps(pid_t pid, bool deny_setgroups, uint32_t uid, uint32_t kernel_uid,
	uint32_t gid, uint32_t kernel_gid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "/proc/%d", (int)pid);
	autofd int dir = fd_open_at(AT_FDCWD, text, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	int r = deny_setgroups ? write_text(dir, "setgroups", "deny") : 0;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", gid, kernel_gid);
	if (r >= 0)
		r = write_text(dir, "gid_map", text);
	(void)snprintf(text, sizeof(text), "%u %u 1\n", uid, kernel_uid);
	return r < 0 ? r : write_text(dir, "uid_map", text);
}

/* Lives until its namespace has a descriptor; shares our memory and touches none of it. */
static int hold(void *parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != *(pid_t *)parent)
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
	pid_t pid =
		clone(hold, stack + HOLDER_STACK, CLONE_NEWUSER | CLONE_VM | SIGCHLD, &parent);

	if (pid < 0)
		return -errno;
	l->holders[l->holder_count++] = pid;
	int r = write_maps(
		pid, false, map->disk_uid, facts->kernel_uid, map->disk_gid, facts->kernel_gid);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (r >= 0)
		r = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	/* Not reaped yet, so the pid is still ours. One that lives is not waited for: it ends with us. */
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
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void reap_holders(struct launch *l)
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

/* The word to init, with a user namespace for each owner that is idmapped. */
static int send_go(struct launch *l, const struct plan *plan)
{
	struct channel_record record = { .kind = CHANNEL_GO };
	int fds[PLAN_IDMAP_MAX];
	size_t count = 0;
	int r = 0;

	if (plan->idmap_count) {
		char *stack = mmap(NULL, HOLDER_STACK * PLAN_IDMAP_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (stack == MAP_FAILED)
			return -errno;
		l->holder_stack = stack;
	}
	for (; count < plan->idmap_count && r >= 0; count++) {
		/* A stack each: the one before may still be on its way out. */
		r = make_user_ns(l, plan->facts, &plan->idmaps[count],
			l->holder_stack + count * HOLDER_STACK);
		fds[count] = r;
	}
	if (r >= 0)
		r = channel_send(l->channel, &record, fds, (unsigned)count);
	close_all(fds, count);
	return r; /* the holders are reaped when there is time */
}

static int start_init(struct launch *l, const struct identity *id, struct error *e)
{
	int pair[2], pidfd = -1;
	struct clone_args args = {
		.flags = (l->flags & CLONE_NEWUSER) | CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct begin begin = { .box = l->box,
		.arena = l->arena->base,
		.arena_size = l->arena->size,
		.flags = l->flags & ~(unsigned long)CLONE_NEWUSER };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(
			e, ERROR_LIMIT, "launch", errno, NULL, "cannot make the channel");
	begin.channel = pair[1];
	long pid = sys_clone3(&args);
	if (pid == 0)
		begin_main(&begin);
	(void)close(pair[1]);
	l->channel = pair[0];
	if (pid < 0) {
		fd_close(&l->channel);
		return explain_clone((int)-pid, e);
	}
	l->pidfd = pidfd;
	l->init = (pid_t)pid;
	if (!(l->flags & CLONE_NEWUSER))
		return 0;
	int r = write_maps(l->init, true, id->uid, id->uid, id->gid, id->gid);
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
	/* What all but a few policies ask for; launch_init() begins again for those. */
	struct launch l = { .pidfd = -1,
		.channel = -1,
		.arena = arena,
		.flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
			CLONE_NEWNET };
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (!identity->privileged)
		l.flags |= CLONE_NEWUSER;
	l.box = arena_alloc(arena, sizeof(*l.box));
	/* Ignored by a caller, children would vanish without a status: wait(2). */
	if (!l.box || sigaction(SIGCHLD, &dfl, NULL) < 0)
		return error_set(e, ERROR_LIMIT, "launch", ENOMEM, NULL, "no memory");
	int r = start_init(&l, identity, e);
	if (r >= 0)
		*ret = l;
	return r;
}

/* A policy that wants other namespaces than most (net host): once more, now that it is known. */
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

int launch_init(struct launch *l, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e)
{
	int r = 0;

	if (l->flags != (plan->clone_flags & ~(unsigned long)CLONE_NEWPID))
		r = begin_again(l, plan, e);
	if (r < 0)
		return r;
	*l->box = (struct box){ .plan = plan,
		.want_pty = want_pty,
		.caller_args = args,
		.caller_args_size = args_size,
		.umask = umask(0) };
	(void)umask(l->box->umask);
	r = arena_seal(l->arena);
	if (r >= 0)
		r = send_go(l, plan);
	/* Init has ended before it was told anything: why is on the channel, for the supervisor. */
	if (r >= 0 || r == -EPIPE)
		return 0;
	launch_kill(l);
	return error_set(e, ERROR_INTERNAL, "launch", -r, NULL,
		"the session's user namespace could not be made");
}

int launch_session(struct launch *l, struct error *e)
{
	const struct channel_record record = { .kind = CHANNEL_SESSION };
	int r = channel_send(l->channel, &record, NULL, 0);

	reap_holders(l);
	return r >= 0 || r == -EPIPE ? 0
				     : error_set(e, ERROR_INTERNAL, "launch", -r, NULL,
					       "init cannot be told that the session stands");
}

void launch_kill(struct launch *l)
{
	siginfo_t info;

	if (l->pidfd >= 0) {
		/* Ends everything in the pid namespace; waitid returns when the last one is dead. */
		(void)sys_pidfd_send_signal(l->pidfd, SIGKILL);
		while (waitid(P_PIDFD, (id_t)l->pidfd, &info, WEXITED) < 0 && errno == EINTR)
			;
	}
	reap_holders(l);
	fd_close(&l->pidfd);
	fd_close(&l->channel);
}
