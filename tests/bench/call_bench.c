/*
 * call_bench.c - what one getppid(2) costs here, in nanoseconds.
 *
 *     call_bench COUNT [filter]
 *
 * Runs in: a session or outside, started by tests/bench/run. Prints one number: the best of ten
 * loops, since whatever disturbs a loop makes it slower. With `filter` a system-call filter of a
 * single instruction is put around it first: what any filter costs at the least.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOPS = 10 };

static double now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a valid clock */
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int put_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
	double best = 0;

	if (argc < 2 || (argc > 2 && strcmp(argv[2], "filter") != 0))
		return 2;
	unsigned long count = strtoul(argv[1], NULL, 10);
	if (!count || (argc > 2 && put_filter() < 0))
		return 1;
	for (int loop = 0; loop < LOOPS; loop++) {
		double start = now_ns();

		for (unsigned long i = 0; i < count / LOOPS; i++)
			(void)syscall(SYS_getppid);
		double each = (now_ns() - start) / (double)(count / LOOPS);
		if (!loop || each < best)
			best = each;
	}
	printf("%.2f\n", best);
	return 0;
}
