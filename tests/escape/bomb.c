/*
 * bomb.c - commands that use up what they can get; for the tests of limits.
 *
 * Runs in: a session. Bounded in themselves, so that a machine on which a limit does not hold survives.
 *
 *   bomb memory MIB    touch that much memory; "survived" where it was given
 *   bomb hold MIB      the same, and keep it from the file `held` on until there is a file `go`
 *   bomb tasks N       start N processes that stay; status 1 at the first refusal
 *   bomb threads N     the same with threads
 *   bomb count N       start N that stay until all are counted; print how many there were
 *   bomb file MIB      write that much into the file `big`
 *   bomb shm MIB       the same in /dev/shm
 *   bomb spin MS       use the processor until that much time of the clock is over
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void stay(void)
{
	for (;;)
		(void)pause();
}

static int use_memory(long mib)
{
	for (long i = 0; i < mib; i++) {
		char *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			return 3;
		memset(page, 0x5a, 1 << 20);
	}
	(void)puts("survived");
	return 0;
}

static int hold_memory(long mib)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	int r = use_memory(mib);
	int fd = r ? -1 : open("held", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return 3;
	while (access("go", F_OK) < 0)
		(void)nanosleep(&pause, NULL);
	return 0;
}

static int use_tasks(long count, int only_count)
{
	long started = 0;

	for (; started < count; started++) {
		pid_t pid = fork();

		if (pid == 0)
			stay();
		if (pid < 0)
			break;
	}
	(void)printf("%ld\n", started);
	(void)fflush(stdout);
	return only_count || started == count ? 0 : errno == EAGAIN ? 1 : 2;
}

static void *stay_thread(void *arg)
{
	stay();
	return arg;
}

static int use_threads(long count)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, 65536) != 0)
		return 3;
	for (long i = 0; i < count; i++) {
		int r = pthread_create(&thread, &attr, stay_thread, NULL);

		if (r != 0) {
			(void)printf("%ld\n", i);
			return r == EAGAIN ? 1 : 2;
		}
	}
	return 0;
}

static int use_file(const char *path, long mib)
{
	static char block[1 << 20];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (long i = 0; fd >= 0 && i < mib; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return 1;
	return fd < 0 ? 3 : 0;
}

static int spin(long ms)
{
	struct timespec from, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	do
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
	return 0;
}

int main(int argc, char **argv)
{
	char *end;
	long n = argc == 3 ? strtol(argv[2], &end, 10) : 0;

	if (argc != 3 || n < 1 || *end)
		return 64;
	if (!strcmp(argv[1], "memory"))
		return use_memory(n);
	if (!strcmp(argv[1], "hold"))
		return hold_memory(n);
	if (!strcmp(argv[1], "tasks") || !strcmp(argv[1], "count"))
		return use_tasks(n, argv[1][0] == 'c');
	if (!strcmp(argv[1], "threads"))
		return use_threads(n);
	if (!strcmp(argv[1], "file") || !strcmp(argv[1], "shm"))
		return use_file(argv[1][0] == 'f' ? "big" : "/dev/shm/big", n);
	return strcmp(argv[1], "spin") ? 64 : spin(n);
}
