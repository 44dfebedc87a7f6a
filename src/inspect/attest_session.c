/*
 * attest_session.c - see attest_session.h.
 *
 * Runs in: carrel-inspect; between fork and execve in its child.
 */
#include "inspect/attest_session.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"
#include "base/text.h"
#include "box/sys.h"

enum {
	LOOK_AGAIN_MS = 5,
	START_MS = 60000,  /* for a command that never becomes one */
	ANSWER_MS = 10000, /* it runs, or its terminal answered for it: it must be found soon */
	END_MS = 20000,    /* more than the grace that a command has by default */
	STATUS_TEXT = 3072,
	FORKED_NOT_EXECUTED = 0x40,
};

ssize_t attest_read(pid_t pid, const char *name, char *ret_text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	return fd < 0 ? fd : fd_read_file(fd, ret_text, size - 1);
}

bool attest_field(const char *status, const char *name, char *ret_value, size_t size)
{
	size_t length = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) != 0 || line[length] != ':')
			continue;
		line += length + 1;
		line += strspn(line, " \t");
		size_t value = strcspn(line, "\n");
		while (value && (line[value - 1] == ' ' || line[value - 1] == '\t'))
			value--;
		if (value >= size)
			return false;
		for (size_t i = 0; i < value; i++)
			ret_value[i] = line[i] == '\t' ? ' ' : line[i];
		ret_value[value] = '\0';
		return true;
	}
	return false;
}

/* --- starting --------------------------------------------------------------------------------- */

static _Noreturn void become_launcher(pid_t parent, const char *launcher,
	const char *const *argv, const char *const *environment, int in, int out)
{
	/* The launcher dies with us, and the session with it: the launcher passes a TERM on. */
	if (parent_die_with(parent, SIGTERM) < 0 || dup2(in, STDIN_FILENO) < 0 ||
		dup2(out, STDOUT_FILENO) < 0)
		_exit(INT8_MAX);
	(void)execve(launcher, (char *const *)argv, (char *const *)environment);
	_exit(INT8_MAX);
}

static int spawn(struct attest_session *s, const char *launcher, const char *const *argv,
	const char *const *environment, int in, int out)
{
	pid_t parent = getpid();

	s->launcher = fork();
	if (s->launcher < 0)
		return -errno;
	if (s->launcher == 0)
		become_launcher(parent, launcher, argv, environment, in, out);
	s->pidfd = (int)sys_result(syscall(SYS_pidfd_open, s->launcher, 0));
	return s->pidfd < 0 ? s->pidfd : 0;
}

static int spawn_probe(struct attest_session *s, const char *launcher, const char *const *argv,
	const char *const *environment)
{
	static const char word[] = "carrel attest\n";
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) < 0)
		return -errno;
	s->in = to[1];
	autofd int child_in = to[0];
	if (pipe2(from, O_CLOEXEC) < 0)
		return -errno;
	s->out = from[0];
	autofd int child_out = from[1];
	int r = spawn(s, launcher, argv, environment, child_in, child_out);
	return r < 0 ? r : fd_write_all(s->in, word, sizeof(word) - 1);
}

static int spawn_command(struct attest_session *s, const char *launcher,
	const char *const *argv, const char *const *environment)
{
	autofd int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	return null < 0 ? null : spawn(s, launcher, argv, environment, null, null);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* The child of @parent with the lowest pid in its innermost pid namespace, which is not ours. */
static pid_t find_child(pid_t parent)
{
	char text[STATUS_TEXT], value[128], wanted[16];
	pid_t found = -1;
	long lowest = LONG_MAX;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	(void)snprintf(wanted, sizeof(wanted), "%d", (int)parent);
	while (proc && (entry = readdir(proc))) {
		uint64_t pid;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
			text_parse_count(entry->d_name, &pid) < 0 ||
			attest_read((pid_t)pid, "status", text, sizeof(text)) < 0)
			continue;
		if (!attest_field(text, "PPid", value, sizeof(value)) ||
			strcmp(value, wanted) != 0)
			continue;
		if (!attest_field(text, "NSpid", value, sizeof(value)))
			continue;
		const char *inner = strrchr(value, ' ');
		long number = inner ? strtol(inner, NULL, 10) : LONG_MAX;
		if (number < lowest) {
			lowest = number;
			found = (pid_t)pid;
		}
	}
	if (proc)
		(void)closedir(proc);
	return found;
}

/*
 * proc(5), /proc/PID/stat: PF_FORKNOEXEC stays set until execve begins. When execve has ended, there is an environment, which
 * is never empty in a session.
 */
static bool is_executed(pid_t pid)
{
	char text[1024];

	if (pid < 0 || attest_read(pid, "stat", text, sizeof(text)) < 0)
		return false;
	/* The name is in parentheses and may contain anything; fields are counted after the last. */
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 9; field++)
		at = strchr(at + 1, ' ');
	return at && !(strtoul(at, NULL, 10) & FORKED_NOT_EXECUTED) &&
		attest_read(pid, "environ", text, sizeof(text)) != 0;
}

static bool find_processes(struct attest_session *s)
{
	s->init = find_child(s->launcher);
	s->payload = s->init > 0 ? find_child(s->init) : -1;
	return is_executed(s->payload);
}

static int64_t now_ms(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_MONOTONIC, &t) < 0
		? INT64_MAX
		: (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Wait until the probe answers and is found, until the command runs, or until the launcher has ended. */
static int await(struct attest_session *s)
{
	struct pollfd events[] = {
		{ .fd = s->pidfd, .events = POLLIN },
		{ .fd = s->out, .events = POLLIN },
	};
	bool may_run = s->out < 0;
	int64_t deadline = now_ms() + START_MS;
	char byte;

	while (now_ms() < deadline) {
		int n = poll(events, 2, may_run ? LOOK_AGAIN_MS : START_MS);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && (events[1].revents & POLLIN) && read(s->out, &byte, 1) == 1) {
			may_run = true; /* or its terminal has answered for it */
			deadline = now_ms() + ANSWER_MS;
		}
		if (n > 0 && events[1].revents)
			events[1].fd = -1; /* it closed without an answer: its end comes next */
		if (may_run && find_processes(s))
			return 0;
		if (n > 0 && events[0].revents)
			return -ESRCH;
	}
	return -ETIMEDOUT;
}

int attest_session_ended(const char *command, int status, struct error *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	int r = error_set(e, ERROR_PROTOCOL, "launch", 0, command,
		"the session ended (status %d) before it could be examined", code);

	/* With 125 to 127 the launcher has said why itself. */
	if (code < 125 || code > 127)
		error_hint(e, "name a command that runs until it is ended");
	return r;
}

static int explain(int r, int status, const char *command, struct error *e)
{
	int code = status < 0       ? -1
		: WIFEXITED(status) ? WEXITSTATUS(status)
				    : 128 + WTERMSIG(status);

	if (r == -ETIMEDOUT)
		return error_set(e, ERROR_PROTOCOL, "launch", 0, command,
			"no session is found with this command in it");
	if (r != -ESRCH || code < 0)
		return error_set(
			e, ERROR_INTERNAL, "launch", -r, command, "cannot start a session");
	return attest_session_ended(command, status, e);
}

int attest_session_start(struct attest_session *ret, const char *launcher,
	const char *const *argv, const char *const *environment, bool probe, struct error *e)
{
	struct attest_session s = {
		.launcher = -1, .pidfd = -1, .in = -1, .out = -1, .init = -1, .payload = -1
	};
	const char *command = argv[0];

	for (size_t i = 0; argv[i] && command == argv[0]; i++)
		if (!strcmp(argv[i], "--") && argv[i + 1])
			command = argv[i + 1];
	int r = probe ? spawn_probe(&s, launcher, argv, environment)
		      : spawn_command(&s, launcher, argv, environment);

	if (r >= 0)
		r = await(&s);
	if (r >= 0) {
		*ret = s;
		return 0;
	}
	return explain(r, attest_session_end(&s), command, e);
}

int attest_session_end(struct attest_session *s)
{
	struct pollfd ended = { .fd = s->pidfd, .events = POLLIN };
	int status = -ECHILD;

	fd_close(&s->in);
	if (s->launcher > 0) {
		/* It is not reaped yet, so the pid is still its own. A probe ends by itself. */
		if (s->out < 0)
			(void)kill(s->launcher, SIGTERM);
		if (poll(&ended, 1, END_MS) == 0)
			(void)kill(s->launcher, SIGKILL);
		while (waitpid(s->launcher, &status, 0) < 0 && errno == EINTR)
			;
	}
	fd_close(&s->out);
	fd_close(&s->pidfd);
	s->launcher = -1;
	return status;
}
