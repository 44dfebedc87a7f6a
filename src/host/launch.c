/*
 * launch.c - see launch.h.
 *
 * Runs in: the launcher, outside; box_init() takes over in the child.
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
#include "box/box.h"
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

/* A user namespace that maps @uid/@gid to the payload's kernel ids. Returns a descriptor or -errno. */
static int make_user_ns(const struct facts *facts, uid_t uid, gid_t gid, char *stack)
{
	char path[64];
	pid_t parent = getpid();
	pid_t pid = clone(hold, stack + HOLDER_STACK, CLONE_NEWUSER | CLONE_VM | SIGCHLD, &parent);

	if (pid < 0)
		return -errno;
	int fd = write_maps(pid, false, uid, facts->kernel_uid, gid, facts->kernel_gid);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (fd >= 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	(void)kill(pid, SIGKILL); /* not reaped yet, so the pid is still ours */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

static int make_user_namespaces(struct box *box, const struct plan *plan)
{
	char *stack = mmap(NULL, HOLDER_STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int r = 0;

	if (stack == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < plan->idmap_count && r >= 0; i++) {
		/* Entry 0 is the session's own: inside the payload has the caller's uid. */
		r = make_user_ns(plan->facts, plan->idmaps[i].disk_uid, plan->idmaps[i].disk_gid,
			stack);
		if (r >= 0)
			box->idmap_ns[i] = r;
	}
	(void)munmap(stack, HOLDER_STACK);
	if (r < 0)
		return r;
	box->user_ns = box->idmap_ns[0];
	return 0;
}

static void close_namespaces(struct box *box)
{
	for (size_t i = 0; i < PLAN_IDMAP_MAX; i++)
		fd_close(&box->idmap_ns[i]);
	box->user_ns = -1;
}

static int tell_mapped(struct launch *l, const struct plan *plan)
{
	struct channel_record record = { .kind = CHANNEL_MAPPED };
	const struct facts *facts = plan->facts;

	if (!(plan->clone_flags & CLONE_NEWUSER))
		return 0;
	int r = write_maps(l->pid, true, facts->uid, facts->uid, facts->gid, facts->gid);
	return r < 0 ? r : channel_send(l->channel, &record, NULL, 0);
}

static int clone_init(struct launch *ret, struct box *box, const struct plan *plan,
	struct error *e)
{
	int pair[2], pidfd = -1;
	struct clone_args args = {
		.flags = plan->clone_flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, ERROR_LIMIT, "launch", errno, NULL, "cannot make the channel");
	box->channel = pair[1];
	long pid = sys_clone3(&args);
	if (pid == 0)
		box_init(box);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return explain_clone(plan, (int)-pid, e);
	}
	*ret = (struct launch){ .pidfd = pidfd, .pid = (pid_t)pid, .channel = pair[0] };
	return 0;
}

int launch_init(struct launch *ret, const struct plan *plan, bool want_pty, char *args,
	size_t args_size, struct error *e)
{
	struct box box = { .plan = plan, .user_ns = -1, .want_pty = want_pty,
		.caller_args = args, .caller_args_size = args_size };
	struct launch l = { .pidfd = -1, .channel = -1 };

	for (size_t i = 0; i < PLAN_IDMAP_MAX; i++)
		box.idmap_ns[i] = -1;
	box.umask = umask(0);
	(void)umask(box.umask);
	int r = plan->facts->privileged ? make_user_namespaces(&box, plan) : 0;
	if (r < 0) {
		close_namespaces(&box);
		return explain_clone(plan, -r, e);
	}
	r = clone_init(&l, &box, plan, e);
	close_namespaces(&box);
	if (r < 0)
		return r;
	r = tell_mapped(&l, plan);
	if (r < 0) {
		launch_kill(&l);
		return error_set(e, ERROR_NAMESPACES, "launch", -r, NULL,
			"cannot write the maps of the user namespace");
	}
	*ret = l;
	return 0;
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
