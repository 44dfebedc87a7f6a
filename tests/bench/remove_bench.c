/*
 * remove_bench.c - remove_tree() against `rm -rf`, interleaved, over three shapes of a large tree.
 *
 * Runs in: a program of its own, started by tests/bench/run.
 * Usage: remove_bench DIRECTORY [ENTRIES [ROUNDS [BYTES]]]
 * DIRECTORY is on the file system to be measured. Prints one line of JSON for each shape:
 *   {"shape":"100x1000","rm_ms":...,"remove_ms":...,"ratio":...,"workers":...}   (medians)
 *
 * All trees of a shape are made and written to the disk before the first is removed: ext4 is slow
 * in making inodes where others have just been freed, and a file that never reached the disk is
 * cheap to remove. The order of the two changes with every round.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/remove.h"

extern char **environ;

enum { ROUNDS_MAX = 32 };

struct bench {
	int fd;
	unsigned rounds;
	unsigned bytes;
	unsigned workers; /* that took part last */
};

__attribute__((noreturn)) static void give_up(const char *what)
{
	(void)fprintf(stderr, "remove_bench: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		give_up("clock");
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void make_files(const struct bench *b, int dir, unsigned count)
{
	static const char data[4096];
	char name[32];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "file-%u", i);
		autofd int fd = fd_open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || fd_write_all(fd, data, b->bytes) < 0)
			give_up(name);
	}
}

static void make_tree(const struct bench *b, const char *name, unsigned dirs, unsigned files)
{
	char text[32];

	if (mkdirat(b->fd, name, 0700) < 0)
		give_up(name);
	autofd int top = fd_open_at(b->fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (dirs <= 1)
		make_files(b, top, files);
	for (unsigned i = 0; i < dirs && dirs > 1; i++) {
		(void)snprintf(text, sizeof(text), "dir-%u", i);
		if (mkdirat(top, text, 0700) < 0)
			give_up(text);
		autofd int dir = fd_open_at(top, text, O_RDONLY | O_DIRECTORY, 0);
		make_files(b, dir, files);
	}
}

static double time_rm(const struct bench *b, const char *name)
{
	char target[64];
	char *const argv[] = { "rm", "-rf", target, NULL };
	double start = now_ms();
	pid_t pid;
	int status;

	(void)snprintf(target, sizeof(target), "%s", name);
	if (fchdir(b->fd) < 0 || posix_spawn(&pid, "/bin/rm", NULL, NULL, argv, environ) != 0 ||
		waitpid(pid, &status, 0) != pid || status != 0)
		give_up("rm");
	return now_ms() - start;
}

static double time_remove(struct bench *b, const char *name)
{
	struct remove_result result;
	double start = now_ms();
	int status = remove_tree(b->fd, name, &result, NULL);

	errno = -status;
	if (status < 0)
		give_up(name);
	b->workers = result.workers;
	return now_ms() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void measure(struct bench *b, unsigned dirs, unsigned files)
{
	double rm[ROUNDS_MAX], own[ROUNDS_MAX];
	char name[2][32];

	for (unsigned i = 0; i < b->rounds; i++) {
		(void)snprintf(name[0], sizeof(name[0]), "rm-%u", i);
		(void)snprintf(name[1], sizeof(name[1]), "own-%u", i);
		make_tree(b, name[0], dirs, files);
		make_tree(b, name[1], dirs, files);
	}
	if (syncfs(b->fd) < 0)
		give_up("sync");
	for (unsigned i = 0; i < b->rounds; i++) {
		(void)snprintf(name[0], sizeof(name[0]), "rm-%u", i);
		(void)snprintf(name[1], sizeof(name[1]), "own-%u", i);
		if (i % 2)
			own[i] = time_remove(b, name[1]);
		rm[i] = time_rm(b, name[0]);
		if (!(i % 2))
			own[i] = time_remove(b, name[1]);
	}
	double rm_ms = median(rm, b->rounds), own_ms = median(own, b->rounds);
	(void)printf("{\"shape\":\"%ux%u\",\"bytes\":%u,\"rounds\":%u,\"rm_ms\":%.1f,"
		     "\"remove_ms\":%.1f,\"ratio\":%.3f,\"workers\":%u}\n",
		dirs, files, b->bytes, b->rounds, rm_ms, own_ms, own_ms / rm_ms, b->workers);
	(void)fflush(stdout);
}

/* A count between 1 and @max, or the fallback where the argument is not given. */
static unsigned number(const char *text, unsigned fallback, unsigned max)
{
	char *end;

	if (!text)
		return fallback;
	unsigned long value = strtoul(text, &end, 10);
	errno = EINVAL;
	if (*end || value < 1 || value > max)
		give_up(text);
	return (unsigned)value;
}

int main(int argc, char **argv)
{
	const char *args[4] = { NULL };
	char path[256];

	for (int i = 1; i < argc && i <= 4; i++)
		args[i - 1] = argv[i];
	errno = EINVAL;
	if (!args[0])
		give_up("usage: remove_bench DIRECTORY [ENTRIES [ROUNDS [BYTES]]]");
	unsigned entries = number(args[1], 100000, 10000000);
	struct bench b = {
		.rounds = number(args[2], 3, ROUNDS_MAX),
		.bytes = number(args[3], 100, 4096),
	};
	(void)snprintf(path, sizeof(path), "%s/remove-bench-XXXXXX", args[0]);
	if (!mkdtemp(path))
		give_up(path);
	b.fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	measure(&b, 100, entries / 100);
	measure(&b, entries / 100, 100);
	measure(&b, 1, entries);
	if (close(b.fd) < 0 || chdir("/") < 0 || rmdir(path) < 0)
		give_up(path);
	return 0;
}
