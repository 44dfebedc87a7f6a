/*
 * bare_launch.c - the least that the walls of a launch cost: the system calls alone.
 *
 *     bare_launch COMMAND [ARGUMENT...]
 *
 * Runs in: the host, started by tests/bench/run. One process makes the namespaces and as many
 * mounts, directories, files and rules as the default plan has, gives up what init gives up, and runs
 * the command; its parent waits. Nobody reads a policy, looks at the machine, decides, checks,
 * supervises or reports, there is no session directory, and nothing is where a session needs it. What
 * is above this figure is carrel's; what is below it cannot be had with these walls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/confine.h"
#include "box/sys.h"
#include "host/process/uid_maps.h"
#include "plan/embedded.h"

/* As many as `carrel plan -- true` shows: mkdir, mkfile, clone and pick, landlock-path. */
enum { DIRECTORIES = 13, FILES = 7, BINDS = 27, RULES = 14, NAME_BYTES = 32 };

#define SKELETON "/tmp"

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "bare_launch: %s: %s\n", what, strerror(errno));
	_exit(125);
}

static void need(int r, const char *what)
{
	if (r < 0) {
		errno = -r;
		give_up(what);
	}
}

static void need_call(long r, const char *what)
{
	if (r < 0)
		give_up(what);
}

static void make_skeleton(void)
{
	char name[NAME_BYTES];

	need_call(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "propagation");
	need_call(
		mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "proc");
	need_call(
		mount("tmpfs", SKELETON, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"), "tmpfs");
	for (int i = 0; i < DIRECTORIES; i++) {
		(void)snprintf(name, sizeof(name), SKELETON "/%d", i);
		need_call(mkdir(name, 0755), name);
	}
	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), SKELETON "/0/%d", i);
		need_call(mknod(name, S_IFREG | 0444, 0), name);
	}
	need_call(
		mount("devpts", SKELETON "/1", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance"),
		"devpts");
	for (int i = 0; i < BINDS; i++) {
		(void)snprintf(name, sizeof(name), SKELETON "/%d", 2 + i % (DIRECTORIES - 2));
		need_call(mount(i % 2 ? "/usr/bin" : "/usr", name, NULL, MS_BIND, NULL), name);
	}
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	need(sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr), "read-only");
}

static void give_up_access(void)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE
	};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return;
	need_call(rules, "Landlock");
	for (int i = 0; i < RULES; i++) {
		char name[NAME_BYTES];

		(void)snprintf(name, sizeof(name), SKELETON "/%d", i % DIRECTORIES);
		struct landlock_path_beneath_attr rule = {
			.allowed_access = attr.handled_access_fs,
			.parent_fd = open(i ? name : "/", O_PATH | O_CLOEXEC),
		};
		need_call(rule.parent_fd, name);
		need_call(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
				  &rule, 0),
			"rule");
		(void)close(rule.parent_fd);
	}
	need_call(syscall(SYS_landlock_restrict_self, rules, 0), "Landlock");
	(void)close(rules);
}

static void filter_calls(void)
{
	const struct embedded_filter *filter = embedded_find_filter("default");
	struct sock_fprog program = { 0 };

	errno = ENOENT;
	if (!filter)
		give_up("filter");
	program.len = filter->count;
	program.filter = (struct sock_filter *)filter->code;
	need_call(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "filter");
}

static _Noreturn void be_init(char **command, int mapped)
{
	char byte;
	int status;

	if (mapped >= 0 && read(mapped, &byte, 1) != 1)
		give_up("maps");
	need_call(unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
			  CLONE_NEWNET),
		"namespaces");
	need(confine_loopback(), "loopback");
	make_skeleton();
	need(confine_capabilities(false), "capabilities");
	need(confine_no_new_privs(), "no_new_privs");
	give_up_access();
	filter_calls();
	pid_t pid = fork();
	if (pid == 0) {
		(void)execv(command[0], command);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		give_up(command[0]);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv)
{
	int pipes[2] = { -1, -1 }, status;
	struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };

	errno = EINVAL;
	if (argc < 2)
		give_up("usage: bare_launch COMMAND [ARGUMENT...]");
	if (geteuid() != 0) {
		args.flags |= CLONE_NEWUSER;
		need_call(pipe(pipes), "pipe");
	}
	long pid = sys_clone3(&args);
	need(pid < 0 ? (int)pid : 0, "clone3");
	if (pid == 0)
		be_init(argv + 1, pipes[0]);
	if (pipes[1] >= 0) {
		need(uid_maps_write(
			     (pid_t)pid, true, geteuid(), geteuid(), getegid(), getegid()),
			"maps");
		need_call(write(pipes[1], "", 1), "pipe");
	}
	if (waitpid((pid_t)pid, &status, 0) != (pid_t)pid)
		give_up("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
