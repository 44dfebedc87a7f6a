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

static int write_text(int dir, const char *name, const char *text)
{
	autofd int fd = fd_open_at(dir, name, O_WRONLY, 0);

	return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

/* User mode: the caller's ids onto themselves; see user_namespaces(7). */
static int write_maps(pid_t pid, uid_t uid, gid_t gid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "/proc/%d", (int)pid);
	autofd int dir = fd_open_at(AT_FDCWD, text, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	int r = write_text(dir, "setgroups", "deny");
	(void)snprintf(text, sizeof(text), "%u %u 1\n", gid, gid);
	if (r >= 0)
		r = write_text(dir, "gid_map", text);
	(void)snprintf(text, sizeof(text), "%u %u 1\n", uid, uid);
	return r < 0 ? r : write_text(dir, "uid_map", text);
}

static int start_init(struct launch *l, const struct identity *id, struct error *e)
{
	int pair[2], pidfd = -1;
	struct clone_args args = {
		.flags = (l->flags & CLONE_NEWUSER) | CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct begin begin = { .box = l->box, .arena = l->arena->base,
		.arena_size = l->arena->size, .privileged = id->privileged,
		.session = { id->uid, id->gid }, .owner = { id->kernel_uid, id->kernel_gid },
		.flags = l->flags & ~(unsigned long)CLONE_NEWUSER };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, ERROR_LIMIT, "launch", errno, NULL, "cannot make the channel");
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
	int r = write_maps(l->init, id->uid, id->gid);
	if (r < 0) {
		launch_kill(l);
		r = error_set(e, ERROR_NAMESPACES, "launch", -r, NULL,
			"cannot write the maps of the user namespace");
		if (id->uid == 0 && r == -EPERM)
			error_hint(e, "uid 0 cannot be mapped without CAP_SETFCAP: run as another "
				"user, or give this root that capability (user_namespaces(7))");
		return r;
	}
	return 0;
}

int launch_begin(struct launch *ret, struct arena *arena, const struct identity *identity,
	struct error *e)
{
	/* What all but a few policies ask for; launch_init() begins again for those. */
	struct launch l = { .pidfd = -1, .channel = -1, .arena = arena,
		.flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET };
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
	const struct identity id = { .uid = f->uid, .gid = f->gid, .privileged = f->privileged,
		.kernel_uid = f->kernel_uid, .kernel_gid = f->kernel_gid };

	launch_kill(l);
	l->flags = plan->clone_flags & ~(unsigned long)CLONE_NEWPID;
	return start_init(l, &id, e);
}

int launch_init(struct launch *l, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e)
{
	const struct channel_record go = { .kind = CHANNEL_GO };
	int r = 0;

	if (l->flags != (plan->clone_flags & ~(unsigned long)CLONE_NEWPID))
		r = begin_again(l, plan, e);
	if (r < 0)
		return r;
	*l->box = (struct box){ .plan = plan, .want_pty = want_pty, .caller_args = args,
		.caller_args_size = args_size, .umask = umask(0) };
	(void)umask(l->box->umask);
	r = arena_seal(l->arena);
	if (r >= 0)
		r = channel_send(l->channel, &go, NULL, 0);
	/* Init has ended before it was told anything: why is on the channel, for the supervisor. */
	if (r >= 0 || r == -EPIPE)
		return 0;
	launch_kill(l);
	return error_set(e, ERROR_INTERNAL, "launch", -r, NULL,
		"init cannot be given the plan");
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
	fd_close(&l->pidfd);
	fd_close(&l->channel);
}
