/*
 * explain.c - see explain.h.
 *
 * Runs in: the launcher, outside. The sysctls are read only once something has failed; what they
 * say is a hint, never a decision.
 */
#include "host/machine/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/channel.h"
#include "host/machine/container.h"
#include "plan/path.h"

/* The first character of a sysctl, or 0 where it cannot be read. */
static char sysctl(const char *path)
{
	char text[64];
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);

	return n > 0 ? text[0] : '\0';
}

/* The machine may allow user namespaces, and none of another kind. See: namespaces(7), ENOSPC. */
static bool hint_kind(int errnum, struct error *e)
{
	static const char *const kinds[] = { "user", "mnt", "pid", "ipc", "uts", "net",
		"cgroup" };
	char path[64];

	for (size_t i = 0; errnum == ENOSPC && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		(void)snprintf(
			path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
		if (sysctl(path) != '0')
			continue;
		error_hint(e,
			"user.max_%s_namespaces is 0: as root, "
			"`sysctl -w user.max_%s_namespaces=15000`",
			kinds[i], kinds[i]);
		return true;
	}
	return false;
}

static void hint_namespaces(int errnum, bool live, struct error *e)
{
	bool none = sysctl("/proc/sys/user/max_user_namespaces") == '0';

	if (hint_kind(errnum, e))
		return;
	/* Inside another carrel both are so: the call is refused, and the limit is 0. */
	if (errnum == ENOSYS && (none || !container_is_one()))
		error_hint(e,
			"a system-call filter is in the way: inside another carrel, its policy must "
			"say `nested`");
	else if (none)
		(void)hint_kind(ENOSPC, e);
	else if (container_is_one())
		container_hint(CONTAINER_NAMESPACES, live, e);
	else if (sysctl("/proc/sys/kernel/unprivileged_userns_clone") == '0')
		error_hint(e,
			"kernel.unprivileged_userns_clone is 0: as root, "
			"`sysctl -w kernel.unprivileged_userns_clone=1`");
	else if (sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == '1')
		error_hint(e,
			"AppArmor restricts user namespaces here (Ubuntu 24.04 and later): install "
			"an AppArmor profile for carrel with `userns,`, or as root "
			"`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`");
	else
		error_hint(e,
			"no sysctl forbids it: a system-call filter or a security module of "
			"whatever started this shell does (a service with RestrictNamespaces=, a "
			"snap), or this is a chroot; try it from a plain login");
}

int explain_clone(int errnum, bool live, struct error *e)
{
	if (errnum == EAGAIN || errnum == ENOMEM) {
		int r = error_set(
			e, ERROR_LIMIT, "launch", errnum, NULL, "cannot start another process");
		error_hint(e, "raise `ulimit -u`, or end other processes of this user");
		return r;
	}
	if (errnum == EMFILE || errnum == ENFILE)
		return error_set(
			e, ERROR_LIMIT, "launch", errnum, NULL, "cannot start another process");
	int r = error_set(e, ERROR_NAMESPACES, "launch", errnum, NULL,
		"the machine refuses a new user namespace");
	hint_namespaces(errnum, live, e);
	return r;
}

static const char *step_text(int step)
{
	switch (step) {
	case STEP_SETUP:
		return "init cannot be set up";
	case STEP_PTY:
		return "no terminal can be opened inside";
	case STEP_LOOP:
		return "init failed";
	case STEP_CWD:
		return "cannot enter the working directory inside";
	case STEP_STDIO:
		return "cannot hand over the standard descriptors";
	case STEP_LIMITS:
		return "cannot set the limits of the command";
	case STEP_EXEC:
	case STEP_INTERPRETER:
		return "cannot start the command";
	default:
		return "init failed in an unknown step";
	}
}

/* Say the commonest refusals in words; errno alone would say "Permission denied" for each. */
static void hint_op(const struct op *op, int errnum, bool live, struct error *e)
{
	if (errnum == ESTALE)
		error_hint(
			e, "it was replaced while the session was being prepared; try again");
	else if (op->kind == OP_ATTACH && (errnum == ENOENT || errnum == ENOTDIR))
		error_hint(e, "the bind of a directory above has nothing to mount this on");
	else if (op->kind == OP_PROC && container_is_one())
		container_hint(CONTAINER_PROC, live, e);
	else if (op->kind == OP_PROC && (errnum == EPERM || errnum == EACCES))
		error_hint(e,
			"something is mounted over parts of /proc, and then the kernel refuses a "
			"new one; a container that does so is run with `--security-opt "
			"unmask=/proc/*` (podman) or `systempaths=unconfined` (docker)");
	else if (op->kind == OP_CLONE && (op->flags & OPF_IDMAP) && errnum == EPERM)
		container_hint(CONTAINER_UID, live, e); /* nor may the root of a rootless one */
	else if (op->kind == OP_CLONE && (op->flags & OPF_IDMAP) && errnum == EINVAL)
		error_hint(e,
			"its file system has no idmapped mounts: run carrel as an ordinary user, "
			"or put the directory on ext4, xfs or btrfs (tmpfs since Linux 6.3)");
	else if (errnum == EPERM || errnum == EACCES)
		hint_namespaces(errnum, live, e);
}

/* No cgroup could count the processes, or the operation would not have been tried. */
static int explain_tasks(int op, struct error *e)
{
	int r = error_set(e, ERROR_UNAVAILABLE, "launch", ERROR_OWN(ENOTSUP), "pids",
		"pids cannot be limited: no cgroup, and root is exempt from the rlimit");

	e->op = op;
	error_hint(e,
		"run carrel as an ordinary user, or give it a cgroup: `systemd-run --scope -p "
		"Delegate=yes -- carrel run ...`; in a container `podman run --security-opt "
		"unmask=/sys/fs/cgroup`, `docker run --privileged`");
	return r;
}

/*
 * Find the first directory of @path that has such a program outside: its length, and **@ret_dir. 0:
 * none has.
 */
static size_t find_outside(const char *name, const char *path, const char **ret_dir)
{
	while (*path) {
		size_t length = strcspn(path, ":");
		char file[1024];
		struct stat st;
		int n = snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, name);

		if (*path == '/' && n > 0 && (size_t)n < sizeof(file) && stat(file, &st) == 0 &&
			S_ISREG(st.st_mode) && (st.st_mode & 0111)) {
			*ret_dir = path;
			return length;
		}
		path += length + (path[length] == ':');
	}
	return 0;
}

/* Whether such a program lies where the command was to start: no shell would find it there either. */
static bool is_here(const char *name, const char *cwd)
{
	char path[1024];
	struct stat st;
	int n = cwd ? snprintf(path, sizeof(path), "%s/%s", cwd, name) : -1;

	return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 &&
		S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* What is seen outside and not inside is a matter of the policy, not of PATH. */
static void hint_missing(
	const char *name, const char *cwd, const char *path_env, bool live, struct error *e)
{
	const char *dir;
	size_t length = find_outside(name, path_env, &dir);

	if (!length && is_here(name, cwd))
		error_hint(e, "the file in the current directory is ./%s", name);
	else if (length)
		error_hint(e, "it is in %.*s, which is not shown: `%s--read %.*s`", (int)length,
			dir, live ? "carrel session start " : "", (int)length, dir);
	else
		error_hint(e, "PATH inside is %s", *path_env ? path_env : "empty");
}

/*
 * @name is a path. If the program is there outside, the policy does not show it, or shows something
 * else in its place.
 */
static void hint_path(const char *name, const char *cwd, bool live, struct error *e)
{
	const char *start = live ? "carrel session start " : "";
	char path[1024], link[32];
	struct stat st;
	bool relative = name[0] != '/';
	int n = snprintf(path, sizeof(path), "%s%s%s", relative && cwd ? cwd : "",
		relative ? "/" : "", name);

	if ((relative && !cwd) || n < 0 || (size_t)n >= sizeof(path))
		return;
	autofd int fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || path[0] != '/')
		return;
	path[length] = '\0';
	/*
	 * In a place that everybody writes to only the file is shown; elsewhere what lies beside
	 * it, too.
	 */
	if (path_below("/tmp", path) || path_below("/var/tmp", path)) {
		error_hint(e,
			"/tmp and /var/tmp inside are the session's own: `%s--read %s`, or move it to "
			"the workspace",
			start, path);
		return;
	}
	char *slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	error_hint(e, "it is in %s, which is not shown: `%s--read %s`", path, start, path);
}

int explain_exec(int step, int errnum, const char *name, const char *cwd, const char *path_env,
	bool live, struct error *e)
{
	bool missing = errnum == ENOENT || errnum == ENOTDIR;

	if (step != STEP_EXEC && step != STEP_INTERPRETER) {
		(void)error_set(e, ERROR_APPLY, "launch", errnum, step == STEP_CWD ? cwd : NULL,
			"%s", step_text(step));
		return STATUS_CARREL;
	}
	(void)error_set(e, ERROR_EXEC, "launch", errnum, *name ? name : "''",
		step == STEP_INTERPRETER ? "cannot find the command's interpreter inside"
			: missing        ? "cannot find the command inside"
					 : "cannot execute the command");
	if (step == STEP_INTERPRETER)
		error_hint(
			e, "it is there: what its first line, or its ELF header, names is not");
	else if (missing && *name && path_env && !strchr(name, '/'))
		hint_missing(name, cwd, path_env, live, e);
	else if (missing && *name)
		hint_path(name, cwd, live, e);
	else if (!missing && errnum == EACCES)
		error_hint(e,
			"it needs the right to be executed (chmod +x), and a file system "
			"that is not mounted noexec");
	return missing ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

int explain_cwd(int errnum, const char *cwd, struct error *e)
{
	(void)explain_exec(STEP_CWD, errnum, "", cwd, NULL, false, e);
	return -errnum;
}

int explain_op(const struct plan *plan, int op, int errnum, bool live, struct error *e)
{
	if (op == STEP_NAMESPACES)
		return explain_clone(errnum, live, e);
	if (op < 0 || (size_t)op >= plan->op_count) {
		int r = error_set(e, ERROR_APPLY, "launch", errnum,
			op == STEP_CWD ? plan->cwd : NULL, "%s", step_text(op));
		return r;
	}
	const struct op *failed = &plan->ops[op];
	char on[1024];

	if (failed->kind == OP_RLIMIT && failed->from == RLIMIT_NPROC && errnum == ENOTSUP)
		return explain_tasks(op, e);

	(void)snprintf(on, sizeof(on), "%s%s%s", failed->path ? failed->path : "",
		failed->path && failed->why ? ": " : "", failed->why ? failed->why : "");
	int r = error_set(e, ERROR_APPLY, "launch", errnum, on, "operation %d (%s) failed", op,
		plan_op_name(failed->kind));
	e->op = op;
	hint_op(failed, errnum, live, e);
	return r;
}
