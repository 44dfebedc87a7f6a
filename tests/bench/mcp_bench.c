/*
 * mcp_bench.c - a call of `exec` over MCP against what it stands for, interleaved.
 *
 *     mcp_bench ROUNDS SERVER [ARGUMENT...]
 *
 * Runs in: a program of its own, started by tests/bench/run. Prints one line of JSON for each, in
 * milliseconds: a call of exec with /bin/true; posix_spawn and wait of /bin/true, and one round trip
 * of JSON (`ping`, to the same server); and that round trip alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ROUNDS_MAX = 20000, WARM_UP = 20, KINDS = 3 };

#define HEAD "{\"jsonrpc\":\"2.0\","

static const char initialize[] = HEAD
	"\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
	"\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
static const char ping[] = HEAD "\"id\":1,\"method\":\"ping\"}\n";
static const char call[] = HEAD
	"\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"exec\",\"arguments\":{\"argv\":"
	"[\"/bin/true\"]}}}\n";

struct server {
	int in, out;
	pid_t pid;
};

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "mcp_bench: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a valid clock */
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* One message there, one line back, which must have @part. */
static void ask(const struct server *s, const char *text, const char *part)
{
	static char answer[65536];
	size_t used = 0;

	if (write(s->in, text, strlen(text)) != (ssize_t)strlen(text))
		give_up("the server does not read");
	do {
		ssize_t n = read(s->out, answer + used, sizeof(answer) - 1 - used);

		if (n <= 0)
			give_up("the server is gone");
		used += (size_t)n;
	} while (answer[used - 1] != '\n' && used < sizeof(answer) - 1);
	answer[used] = '\0';
	errno = EPROTO;
	if (!strstr(answer, part))
		give_up(answer);
}

static void spawn_true(void)
{
	char path[] = "/bin/true", *words[] = { path, NULL };
	pid_t pid;
	int status = -1;

	errno = posix_spawn(&pid, words[0], NULL, NULL, words, environ);
	if (errno || waitpid(pid, &status, 0) != pid || status != 0)
		give_up(words[0]);
}

static double time_one(const struct server *s, unsigned kind)
{
	double start = now_ms();

	if (kind == 0) {
		ask(s, call, "\"status\":0");
	} else {
		if (kind == 1)
			spawn_true();
		ask(s, ping, "\"result\":{}");
	}
	return now_ms() - start;
}

static void start(struct server *s, char **command)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		give_up("pipe");
	errno = posix_spawn_file_actions_init(&actions);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (!errno)
		errno = posix_spawn(&s->pid, command[0], &actions, NULL, command, environ);
	if (errno)
		give_up(command[0]);
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->out = out[0];
	ask(s, initialize, "\"protocolVersion\"");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	double *times[KINDS];
	struct server s;
	int status;

	errno = EINVAL;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		give_up("usage: mcp_bench ROUNDS SERVER [ARGUMENT...]");
	start(&s, argv + 2);
	for (unsigned k = 0; k < KINDS; k++) {
		times[k] = calloc(rounds, sizeof(double));
		if (!times[k])
			give_up("memory");
		for (unsigned i = 0; i < WARM_UP; i++)
			(void)time_one(&s, k);
	}
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned k = 0; k < KINDS; k++)
			times[(k + i) % KINDS][i] = time_one(&s, (k + i) % KINDS);
	for (unsigned k = 0; k < KINDS; k++) {
		qsort(times[k], rounds, sizeof(double), compare);
		printf("{\"rounds\":%lu,\"median\":%.4f,\"p10\":%.4f,\"p90\":%.4f,\"least\":%.4f}\n",
			rounds, times[k][rounds / 2], times[k][rounds / 10],
			times[k][rounds * 9 / 10], times[k][0]);
	}
	close(s.in);
	if (waitpid(s.pid, &status, 0) != s.pid || status != 0)
		give_up("the server ended badly");
	return 0;
}
