/*
 * socket_bench.c - executions over a session's control socket against a spawn outside, interleaved.
 *
 *     socket_bench ROUNDS SOCKET
 *
 * Runs in: a program of its own, started by tests/bench/run: a client of docs/control-protocol.md with one
 * connection. Prints one line of JSON for each, in milliseconds: an execution of /bin/true in the session,
 * from EXEC to ENDED; posix_spawn and wait of /bin/true outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/request.h"
#include "host/serve/control.h"

extern char **environ;

enum { ROUNDS_MAX = 20000, WARM_UP = 20, KINDS = 2 };

static char path[] = "/bin/true";

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "socket_bench: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a valid clock */
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int connect_to(const char *socket_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	errno = ENAMETOOLONG;
	if (fd < 0 || strlen(socket_path) >= sizeof(address.sun_path))
		give_up(socket_path);
	memcpy(address.sun_path, socket_path, strlen(socket_path));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		give_up(socket_path);
	return fd;
}

/* The next record, which must be of this kind and about this execution. */
static void expect(int fd, enum control_kind kind, uint64_t tag, struct control_message *m)
{
	int r = control_receive(fd, m);

	errno = r < 0 ? -r : EPROTO;
	if (r <= 0 || m->head.kind != kind || m->head.tag != tag)
		give_up(r > 0 && m->head.kind == CONTROL_ERROR ? m->body : "no such answer");
}

static void execute(int fd, int null)
{
	static uint64_t tag;
	static struct control_message m;
	const struct request head = { .argc = 1, .umask = 022 };
	const struct control_record record = {
		.kind = CONTROL_EXEC, .tag = ++tag, .streams = 7
	};
	const int streams[] = { null, null, null };
	/* The words, no directory and no name; zeros are behind them. */
	char body[sizeof(head) + sizeof(path) + 2] = { 0 };

	memcpy(body, &head, sizeof(head));
	memcpy(body + sizeof(head), path, sizeof(path));
	if (control_send(fd, &record, body, sizeof(body), streams, 3) < 0)
		give_up("the session does not read");
	expect(fd, CONTROL_ACCEPTED, tag, &m);
	expect(fd, CONTROL_ENDED, tag, &m);
	if (m.head.started != STARTED_YES || m.head.wait_status != 0)
		give_up(path);
}

static void spawn_outside(void)
{
	char *words[] = { path, NULL };
	pid_t pid;
	int status = -1;

	errno = posix_spawn(&pid, path, NULL, NULL, words, environ);
	if (errno || waitpid(pid, &status, 0) != pid || status != 0)
		give_up(path);
}

static double time_one(unsigned kind, int fd, int null)
{
	double start = now_ms();

	if (kind == 0)
		execute(fd, null);
	else
		spawn_outside();
	return now_ms() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	double *times[KINDS];

	errno = EINVAL;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		give_up("usage: socket_bench ROUNDS SOCKET");
	int fd = connect_to(argv[2]);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		give_up("/dev/null");
	for (unsigned k = 0; k < KINDS; k++) {
		times[k] = calloc(rounds, sizeof(double));
		if (!times[k])
			give_up("memory");
		for (unsigned i = 0; i < WARM_UP; i++)
			(void)time_one(k, fd, null);
	}
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned k = 0; k < KINDS; k++)
			times[(k + i) % KINDS][i] = time_one((k + i) % KINDS, fd, null);
	for (unsigned k = 0; k < KINDS; k++) {
		qsort(times[k], rounds, sizeof(double), compare);
		printf("{\"rounds\":%lu,\"median\":%.4f,\"p10\":%.4f,\"p90\":%.4f,\"least\":%.4f}\n",
			rounds, times[k][rounds / 2], times[k][rounds / 10],
			times[k][rounds * 9 / 10], times[k][0]);
	}
	return 0;
}
