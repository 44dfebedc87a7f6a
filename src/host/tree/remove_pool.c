/*
 * remove_pool.c - see remove_pool.h.
 *
 * Runs in: the supervisor and the workers it forks for one removal.
 */
#include "host/tree/remove_pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* waitid(2), Linux 5.4 */
#endif

enum job_state { JOB_FREE, JOB_RESERVED, JOB_READY, JOB_TAKEN };

/* How long the leader sleeps before it looks whether a worker died, ms. */
enum { SETTLE_MS = 20 };

static uint32_t load_word(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void add_word(uint32_t *word, uint32_t amount)
{
	(void)__atomic_add_fetch(word, amount, __ATOMIC_SEQ_CST);
}

static bool change(uint32_t *word, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Something happened: wake up to @count sleepers. */
static void turn_wake(struct pool *pool, int count)
{
	add_word(&pool->turn, 1);
	(void)syscall(SYS_futex, &pool->turn, FUTEX_WAKE, count, NULL, NULL, 0);
}

/* Sleeps while the turn is still @seen. @timeout_ms 0: no limit. */
static void turn_wait(struct pool *pool, uint32_t seen, unsigned timeout_ms)
{
	struct timespec limit = { .tv_nsec = (long)timeout_ms * 1000000 };

	/* EAGAIN, EINTR and ETIMEDOUT all mean the same: look again. */
	(void)syscall(
		SYS_futex, &pool->turn, FUTEX_WAIT, seen, timeout_ms ? &limit : NULL, NULL, 0);
}

/* The worker's process. It must not outlive the leader, whose lock it has inherited. */
__attribute__((noreturn)) static void worker_process(struct pool *pool, unsigned index,
	pid_t leader, int tree_fd, pool_main *run, void *context)
{
	unsigned tree = (unsigned)tree_fd;

	if (parent_die_with(leader, SIGKILL) < 0)
		_exit(1);
	/* The caller's pipes must not be held open, whatever becomes of this process. */
	if (tree > 0 && syscall(SYS_close_range, 0U, tree - 1, 0U) < 0)
		_exit(1);
	if (syscall(SYS_close_range, tree + 1, UINT_MAX, 0U) < 0)
		_exit(1);
	run(pool, index, context);
	_exit(0);
}

static int worker_start(
	struct pool *pool, unsigned index, int tree_fd, pool_main *run, void *context)
{
	int pidfd = -1;
	pid_t leader = getpid();
	/*
	 * No exit signal: a SIGCHLD would look to the supervisor as if init had ended. clone(2), as
	 * the supervisor's own filter refuses clone3; the arguments used are the same everywhere.
	 */
	long pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &pidfd, NULL, NULL);

	if (pid < 0)
		return -errno;
	if (pid == 0)
		worker_process(pool, index, leader, tree_fd, run, context);
	return pidfd;
}

int pool_start(struct pool **ret, unsigned count, int tree_fd, pool_main *run, void *context)
{
	struct pool *pool = mmap(
		NULL, sizeof(*pool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned started = 0;
	int result = -EINVAL;

	if (pool == MAP_FAILED)
		return -errno;
	for (; started < count && started < POOL_MAX_WORKERS; started++) {
		/* Born idle, so that work is shared out before they first run. */
		add_word(&pool->idle, 1);
		result = worker_start(pool, started, tree_fd, run, context);
		if (result < 0) {
			add_word(&pool->idle, UINT32_MAX);
			break;
		}
		pool->pidfds[started] = result;
	}
	if (!started) {
		(void)munmap(pool, sizeof(*pool));
		return result;
	}
	pool->workers = started;
	*ret = pool;
	return 0;
}

unsigned pool_hungry(const struct pool *pool)
{
	uint32_t idle = load_word(&pool->idle), ready = load_word(&pool->ready);

	return idle > ready && idle <= POOL_MAX_WORKERS ? idle - ready : 0;
}

bool pool_has_room(const struct pool *pool)
{
	/* Two waiting jobs for each process: none runs dry while the one that posts them works on its own. */
	return load_word(&pool->ready) < 2 * (load_word(&pool->idle) + 2);
}

struct pool_job *pool_reserve(struct pool *pool)
{
	for (unsigned i = 0; i < POOL_JOBS; i++) {
		if (load_word(&pool->jobs[i].state) == JOB_FREE &&
			change(&pool->jobs[i].state, JOB_FREE, JOB_RESERVED))
			return &pool->jobs[i];
	}
	return NULL;
}

void pool_release(struct pool_job *job)
{
	__atomic_store_n(&job->state, JOB_FREE, __ATOMIC_SEQ_CST);
}

void pool_post(struct pool *pool, struct pool_job *job)
{
	add_word(&pool->outstanding, 1);
	add_word(&pool->ready, 1);
	__atomic_store_n(&job->state, JOB_READY, __ATOMIC_SEQ_CST);
	if (load_word(&pool->idle) > 0)
		turn_wake(pool, 1);
}

struct pool_job *pool_claim(struct pool *pool)
{
	if (load_word(&pool->ready) == 0)
		return NULL;
	for (unsigned i = 0; i < POOL_JOBS; i++) {
		if (load_word(&pool->jobs[i].state) == JOB_READY &&
			change(&pool->jobs[i].state, JOB_READY, JOB_TAKEN)) {
			add_word(&pool->ready, UINT32_MAX);
			return &pool->jobs[i];
		}
	}
	return NULL;
}

void pool_finish(struct pool *pool, struct pool_job *job)
{
	__atomic_store_n(&job->state, JOB_FREE, __ATOMIC_SEQ_CST);
	if (__atomic_sub_fetch(&pool->outstanding, 1, __ATOMIC_SEQ_CST) == 0)
		turn_wake(pool, INT_MAX); /* the leader may be waiting for this */
}

struct pool_job *pool_next(struct pool *pool)
{
	for (;;) {
		uint32_t turn = load_word(&pool->turn);

		if (load_word(&pool->closing))
			return NULL;
		struct pool_job *job = pool_claim(pool);
		if (job) {
			add_word(&pool->idle, UINT32_MAX);
			return job;
		}
		turn_wait(pool, turn, 0);
	}
}

void pool_rest(struct pool *pool, struct pool_job *job)
{
	add_word(&pool->idle, 1);
	pool_finish(pool, job);
}

/* Has a worker ended without being told to? */
static bool somebody_died(const struct pool *pool)
{
	for (unsigned i = 0; i < pool->workers; i++) {
		siginfo_t info = { 0 };
		int result = waitid((idtype_t)P_PIDFD, (id_t)pool->pidfds[i], &info,
			WEXITED | WNOHANG | WNOWAIT | __WALL);

		if (result < 0 || info.si_pid != 0)
			return true;
	}
	return false;
}

bool pool_settle(struct pool *pool)
{
	uint32_t turn = load_word(&pool->turn);

	if (load_word(&pool->outstanding) == 0)
		return true;
	if (load_word(&pool->ready) > 0)
		return false;
	turn_wait(pool, turn, SETTLE_MS);
	return somebody_died(pool);
}

void pool_end(struct pool *pool, struct pool_tally *ret_total)
{
	__atomic_store_n(&pool->closing, 1, __ATOMIC_SEQ_CST);
	turn_wake(pool, INT_MAX);
	for (unsigned i = 0; i < pool->workers; i++) {
		siginfo_t info;
		int result;

		do
			result = waitid((idtype_t)P_PIDFD, (id_t)pool->pidfds[i], &info,
				WEXITED | __WALL);
		while (result < 0 && errno == EINTR);
		fd_close(&pool->pidfds[i]);
		ret_total->removed += pool->tallies[i].removed;
		ret_total->files += pool->tallies[i].files;
		ret_total->bytes += pool->tallies[i].bytes;
	}
	(void)munmap(pool, sizeof(*pool));
}
