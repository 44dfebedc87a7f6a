/*
 * spawn_bench.c - start commands and wait for them, interleaved, and say how long each took.
 *
 *     spawn_bench ROUNDS COMMAND [ARGUMENT...] [::: COMMAND [ARGUMENT...]]...
 *     spawn_bench -p LOOPS MILLISECONDS COMMAND ... [::: ...]
 *
 * Runs in: a program of its own, started by tests/bench/run. Prints one line of JSON for each
 * command, in their order: the times in milliseconds, or with -p the launches per second of LOOPS
 * processes that each start one after the other. The first rounds only warm up. A command that
 * ends with another status than 0 ends the measurement.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 8, ROUNDS_MAX = 20000, WARM_UP = 5, WINDOWS = 5 };

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "spawn_bench: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a valid clock */
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double time_one(char **command)
{
	double start = now_ms();
	pid_t pid;
	int status = -1;

	errno = posix_spawn(&pid, command[0], NULL, NULL, command, environ);
	if (errno || waitpid(pid, &status, 0) != pid)
		give_up(command[0]);
	if (status != 0) {
		(void)fprintf(stderr, "spawn_bench: %s: wait status %#x\n", command[0],
			(unsigned)status);
		_exit(1);
	}
	return now_ms() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, unsigned count, double q)
{
	return sorted[(unsigned)((double)(count - 1) * q + 0.5)];
}

/* Round by round, every command once; who is first changes. */
static void measure_times(char ***commands, unsigned count, unsigned rounds)
{
	double *times[COMMANDS_MAX];

	for (unsigned c = 0; c < count; c++) {
		times[c] = calloc(rounds, sizeof(double));
		if (!times[c])
			give_up("memory");
		for (unsigned i = 0; i < (rounds < 20 ? 1 : WARM_UP); i++)
			(void)time_one(commands[c]);
	}
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned c = 0; c < count; c++) {
			unsigned which = (c + i) % count;

			times[which][i] = time_one(commands[which]);
		}
	for (unsigned c = 0; c < count; c++) {
		qsort(times[c], rounds, sizeof(double), compare);
		printf("{\"rounds\":%u,\"median\":%.4f,\"p10\":%.4f,\"p90\":%.4f}\n", rounds,
			quantile(times[c], rounds, 0.5), quantile(times[c], rounds, 0.1),
			quantile(times[c], rounds, 0.9));
		free(times[c]);
	}
}

static _Noreturn void loop(char **command, double until_ms, unsigned *ret_count)
{
	while (now_ms() < until_ms) {
		(void)time_one(command);
		(*ret_count)++;
	}
	_exit(0);
}

/* Launches per second of @loops processes for @ms. */
static double rate(char **command, unsigned loops, unsigned ms, unsigned *counts)
{
	double start = now_ms(), sum = 0;
	int status;

	memset(counts, 0, loops * sizeof(*counts));
	for (unsigned i = 0; i < loops; i++) {
		pid_t pid = fork();

		if (pid == 0)
			loop(command, start + ms, &counts[i]);
		if (pid < 0)
			give_up("fork");
	}
	while (wait(&status) > 0)
		if (status != 0)
			_exit(1);
	for (unsigned i = 0; i < loops; i++)
		sum += counts[i];
	return sum * 1000 / (now_ms() - start);
}

static void measure_rates(char ***commands, unsigned count, unsigned loops, unsigned ms)
{
	double rates[COMMANDS_MAX][WINDOWS];
	unsigned *counts = mmap(NULL, loops * sizeof(*counts), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (counts == MAP_FAILED)
		give_up("memory");
	for (unsigned w = 0; w < WINDOWS; w++)
		for (unsigned c = 0; c < count; c++)
			rates[c][w] = rate(commands[c], loops, ms / WINDOWS, counts);
	for (unsigned c = 0; c < count; c++) {
		qsort(rates[c], WINDOWS, sizeof(double), compare);
		printf("{\"loops\":%u,\"per_second\":%.1f}\n", loops, rates[c][WINDOWS / 2]);
	}
}

static unsigned number(const char *text, unsigned max)
{
	char *end = NULL;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	errno = EINVAL;
	if (!value || *end || value > max)
		give_up("a number is wrong");
	return (unsigned)value;
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	unsigned count = 0;
	int parallel = argc > 1 && !strcmp(argv[1], "-p");
	int first = parallel ? 4 : 2;

	errno = EINVAL;
	if (argc <= first)
		give_up("usage: spawn_bench ROUNDS|-p LOOPS MS COMMAND ... [::: COMMAND ...]");
	commands[count++] = argv + first;
	for (int i = first; i < argc; i++)
		if (!strcmp(argv[i], ":::") && count < COMMANDS_MAX) {
			argv[i] = NULL;
			commands[count++] = argv + i + 1;
		}
	if (parallel)
		measure_rates(commands, count, number(argv[2], 256), number(argv[3], 600000));
	else
		measure_times(commands, count, number(argv[1], ROUNDS_MAX));
	return 0;
}
