/*
 * refusal.c - see refusal.h.
 *
 * Runs in: the launcher and carrel-policy, outside; machine_probe_main() takes over in the child.
 */
#include "host/machine/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/machine_probe.h"
#include "box/sys.h"
#include "host/process/uid_maps.h"

/* Try in a new user namespace, if the session would be made in one. Fills @shared. */
static int probe_machine(struct machine_probe *shared, const struct identity *id)
{
	const unsigned long flags =
		CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET;
	struct clone_args args = {
		.flags = (id->privileged ? 0u : CLONE_NEWUSER) | CLONE_NEWPID,
		.exit_signal = SIGCHLD,
	};
	siginfo_t info;
	int go[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	autofd int from = go[0], to = go[1];
	long pid = sys_clone3(&args);
	if (pid == 0)
		machine_probe_main(shared, flags, go);
	if (pid < 0) {
		shared->error = (int)pid;
		return pid == -EAGAIN || pid == -ENOMEM ? (int)pid : 0;
	}
	/* Root without CAP_SETFCAP may make the namespace and not map itself into it. */
	int mapped = id->privileged
		? 0
		: uid_maps_write((pid_t)pid, true, id->uid, id->uid, id->gid, id->gid);
	fd_close(&to);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	/* A child that was killed at it (by a filter) says nothing, and that is a refusal. */
	if (shared->step != MACHINE_PROBE_DONE && !shared->error)
		shared->error = -ECONNABORTED;
	if (!shared->error && mapped < 0) {
		shared->step = MACHINE_PROBE_MAPS;
		shared->error = mapped;
	}
	return 0;
}

static const char *step_text(enum machine_probe_step step)
{
	switch (step) {
	case MACHINE_PROBE_BEGIN:
		return "a new user or pid namespace is refused";
	case MACHINE_PROBE_NAMESPACES:
		return "new namespaces are refused";
	case MACHINE_PROBE_TREE:
	case MACHINE_PROBE_MOVE:
		return "mounts are refused";
	case MACHINE_PROBE_TMPFS:
		return "a new tmpfs is refused";
	case MACHINE_PROBE_MAPS:
		return "the maps of a new user namespace are refused";
	case MACHINE_PROBE_DONE:
		break;
	}
	return "refused";
}

/* Asks for the session keyring without making one. ENOSYS: a kernel without keyrings. */
static bool keyring_is_refused(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 &&
		(errno == EPERM || errno == EACCES);
}

static int describe(struct refusal *ret, struct arena *a, const struct machine_probe *found,
	struct error *e)
{
	int r = found->error ? found->error : found->proc;

	/* EPERM and ENOSYS are what a machine refuses with; other lacks may be over in a moment. */
	if (r < 0 && error_is_own(-r) && r != -EPERM && r != -ENOSYS)
		return error_set(e, ERROR_LIMIT, "facts", -r, NULL,
			"cannot find out what this machine refuses");
	if (found->error) {
		ret->namespaces = arena_format(
			a, "%s: %s", step_text(found->step), strerror(-found->error));
		return ret->namespaces ? 0 : error_no_memory(e, "facts");
	}
	if (found->proc < 0) {
		ret->proc = arena_format(a,
			"a new /proc is refused, and the machine's shows other processes: %s",
			strerror(-found->proc));
		return ret->proc ? 0 : error_no_memory(e, "facts");
	}
	return 0;
}

int refusal_find(
	struct refusal *ret, struct arena *a, const struct identity *id, struct error *e)
{
	struct machine_probe *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct refusal found = { 0 };

	if (shared == MAP_FAILED)
		return error_set(e, ERROR_LIMIT, "facts", errno, NULL, "out of memory");
	int r = probe_machine(shared, id);
	r = r < 0 ? error_set(e, ERROR_LIMIT, "facts", -r, NULL, "cannot start another process")
		  : describe(&found, a, shared, e);
	(void)munmap(shared, sizeof(*shared));
	if (r < 0)
		return r;
	if (keyring_is_refused())
		found.keyring = "keyctl is refused here, to the command as well";
	*ret = found;
	return 0;
}

bool refusal_format(const struct plan *plan, char *ret_line, size_t size)
{
	const struct facts *facts = plan->facts;
	const char *why = facts->refused_namespaces ? facts->refused_namespaces
		: facts->refused_proc               ? facts->refused_proc
						    : facts->unprivileged_why;
	size_t at = 0;

	if (!plan->policy->degraded.on)
		return false;
	for (int w = 0; w < WALL_COUNT; w++) {
		/* These two depend on the kernel alone, and need no `degraded`. */
		if (plan->walls[w].state != WALL_UNAVAILABLE || w == WALL_LANDLOCK ||
			w == WALL_UNIX_SOCKETS)
			continue;
		int n = snprintf(ret_line + at, size - at, "%s%s",
			at ? " " : "carrel: degraded, without: ", plan_wall_name((enum wall)w));
		if (n > 0 && (size_t)n < size - at)
			at += (size_t)n;
	}
	if (!at)
		return false;
	(void)snprintf(ret_line + at, size - at, ": %s\n", why ? why : "refused");
	return true;
}
