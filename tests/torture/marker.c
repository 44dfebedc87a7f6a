/*
 * marker.c - the command of the torture runs: says what it sees of each wall, and that it came to
 * its end.
 *
 * Runs in: a session, as the payload; and outside, as the control that shows every probe open.
 *
 *     marker HOST-DIRECTORY PROTECTED-NAME     of .git/hooks: a hook in it, and a link beside
 *     marker --witness      "ready", and at the end of its input "unharmed"
 *
 * One line for each probe, "NAME VALUE"; a value is 0 where the attempt succeeded, else its errno
 * (of reading: READ, empty or refused).
 * None of them depends on the session's name or on anything random, so that two runs with the same
 * walls print the same. The driver compares them byte for byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARKER_STATUS_BROKEN = 99 };

/* A wall that is missing must not hurt the machine that the tests run on: files are only opened. */
static void try_open(const char *name, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);

	printf("%s %d\n", name, fd < 0 ? errno : 0);
	if (fd >= 0)
		(void)close(fd);
}

/* An empty file in place of a hidden one can be opened, but there is nothing in it. */
static void try_read(const char *name, const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);

	printf("%s %s\n", name, n > 0 ? "READ" : n == 0 ? "empty" : "refused");
	if (fd >= 0)
		(void)close(fd);
}

static void try_below(const char *name, const char *directory, const char *entry, int flags)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, entry);
	try_open(name, path, flags);
}

/* Lines of /proc/self/status that describe walls. */
static void show_status(void)
{
	static const char *const wanted[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
		"NoNewPrivs", "Seccomp", "NSpid", "SigBlk" };
	char line[512];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			size_t length = strlen(wanted[i]);

			if (!strncmp(line, wanted[i], length) && line[length] == ':')
				(void)fputs(line, stdout);
		}
	printf("status %d\n", file ? 0 : errno);
	if (file)
		(void)fclose(file);
}

/* Interfaces of the network namespace, by name: alone in it there is but the loopback. */
static void show_network(void)
{
	char line[512];
	FILE *file = fopen("/proc/self/net/dev", "re");

	for (unsigned n = 0; file && fgets(line, sizeof(line), file); n++) {
		char *colon = strchr(line, ':');

		if (n < 2 || !colon)
			continue;
		*colon = '\0';
		printf("interface %s\n", line + strspn(line, " "));
	}
	if (file)
		(void)fclose(file);
}

/* In a child: whatever succeeds must not change what the later probes see. */
static void try_in_child(const char *name, int (*attempt)(void))
{
	int status = 0;

	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		_exit(attempt() < 0 ? errno & 0x7f : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(MARKER_STATUS_BROKEN);
	printf("%s %d\n", name, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static int new_user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int new_network(void)
{
	return unshare(CLONE_NEWNET);
}

static int read_keys(void)
{
	return (int)syscall(SYS_keyctl, 0L, -3L, 0L); /* KEYCTL_GET_KEYRING_ID, the session's */
}

static int vsock(void)
{
	return socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int seize_init(void)
{
	return ptrace(PTRACE_SEIZE, 1, NULL, NULL) < 0 ? -1 : 0;
}

static void say_done(const char *name, int result)
{
	printf("%s %d\n", name, result < 0 ? errno : 0);
}

/*
 * In a repository: what git would run, and links at names that it writes to. The hooks come in one step, so that
 * what is printed does not depend on how soon they are taken away.
 */
static void leave_in_git(const char *host)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/file", host);
	say_done("link", symlink(path, ".git/COMMIT_EDITMSG"));
	say_done("log", symlink(path, ".git/logs/HEAD"));
	say_done("sparse", symlink(path, ".git/info/sparse-checkout"));
	int fd =
		open(".git/rebase-merge/git-rebase-todo", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	say_done("todo", write(fd, "exec true\n", 10) == 10 ? close(fd) : -1);
	say_done("hooks", mkdir(".git/made-by-the-command", 0700));
	try_open("hook", ".git/made-by-the-command/pre-commit", O_CREAT | O_WRONLY);
	say_done("armed", rename(".git/made-by-the-command", ".git/hooks"));
}

/* What the tools would leave: a file in the workspace, some in the scratch, a protected one. */
static void leave_things(const char *host, const char *protected_name)
{
	const char *scratch = getenv("CARREL_SCRATCH");

	try_open("workspace", "made-by-the-command", O_CREAT | O_WRONLY);
	(void)unlink("made-by-the-command");
	if (scratch && mkdir("/tmp/kept", 0) == 0)
		try_below("scratch", scratch, "file", O_CREAT | O_WRONLY);
	if (!strcmp(protected_name, ".git/hooks"))
		leave_in_git(host);
	else if (protected_name[0])
		try_open("protected", protected_name, O_CREAT | O_WRONLY);
}

static int witness(void)
{
	char byte;

	puts("ready");
	if (fflush(stdout) != 0 || read(0, &byte, 1) != 0)
		return MARKER_STATUS_BROKEN;
	puts("unharmed");
	return fflush(stdout) == 0 ? 0 : MARKER_STATUS_BROKEN;
}

int main(int argc, char **argv)
{
	char secret[1024];

	if (argc == 2 && !strcmp(argv[1], "--witness"))
		return witness();
	if (argc != 3)
		return MARKER_STATUS_BROKEN;
	puts("begin");
	show_status();
	show_network();
	printf("secret-in-environment %s\n", getenv("TORTURE_SECRET") ? "yes" : "no");
	try_open("root-write", "/carrel-torture-probe", O_WRONLY | O_CREAT);
	(void)unlink("/carrel-torture-probe");
	try_read("shadow", "/etc/shadow");
	(void)snprintf(secret, sizeof(secret), "%s/secret", argv[1]);
	try_read("hidden", secret);
	try_below("read-only", argv[1], "file", O_WRONLY);
	try_below("fifo", argv[1], "fifo", O_RDWR);
	try_read("proc-1-environ", "/proc/1/environ");
	try_in_child("user-namespace", new_user_namespace);
	try_in_child("network-namespace", new_network);
	try_in_child("keyring", read_keys);
	try_in_child("vsock", vsock);
	try_in_child("ptrace-1", seize_init);
	leave_things(argv[1], argv[2]);
	puts("end");
	return fflush(stdout) == 0 ? 0 : MARKER_STATUS_BROKEN;
}
