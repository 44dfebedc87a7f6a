/*
 * remove_pool.h - a few processes that share the removal of one large tree.
 *
 * Runs in: the supervisor (the leader) and the workers it forks for the time of one removal.
 * May not: decide what is removed or whether that succeeded. The pool only speeds things up:
 * work that gets lost in it (a worker that dies, a queue that is full) is found and done by the
 * leader's last pass over the tree.
 *
 * Processes and not threads: the launcher has no thread, and unlinking needs no shared memory but
 * this queue. A worker holds no descriptor of the supervisor's except the tree's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	POOL_MAX_WORKERS = 8,
	POOL_JOBS = 32,
	POOL_PATH = 480,
};

/* The work that one process has done so far. It alone writes this, and keeps it current in case it dies. */
struct pool_tally {
	uint64_t removed; /* entries: files, links, directories, ... */
	uint64_t files;   /* regular files among them */
	uint64_t bytes;   /* their sizes, where they were asked for */
};

/*
 * One piece of work: empty and remove the directory `path`, or, where `shards` is not 0, unlink
 * those of its entries that fall into class `shard` of `shards`.
 */
struct pool_job {
	uint32_t state;
	uint8_t shards;
	uint8_t shard;
	char path[POOL_PATH]; /* relative to the tree; empty: the tree itself */
};

struct pool {
	uint32_t turn;        /* futex word: changes whenever there is something to look at */
	uint32_t idle;        /* workers without a job */
	uint32_t ready;       /* jobs that no worker has taken */
	uint32_t outstanding; /* jobs posted and not finished */
	uint32_t closing;     /* no more work: leave */
	uint32_t workers;     /* processes beside the leader; set before any is started */
	int pidfds[POOL_MAX_WORKERS]; /* the leader's */
	struct pool_tally tallies[POOL_MAX_WORKERS];
	struct pool_job jobs[POOL_JOBS];
};

/* A worker runs this; @index is that of its tally. The worker's process ends when this returns. */
typedef void pool_main(struct pool *pool, unsigned index, void *context);

/*
 * pool_start - make the shared page and fork up to @count workers.
 * @tree_fd: the only descriptor the workers keep.
 * @ret: the pool; the leader ends it with pool_end(). Untouched on failure.
 * Fewer workers than asked for is success, none is not. 0 or -errno.
 */
MUST_CHECK int pool_start(
	struct pool **ret, unsigned count, int tree_fd, pool_main *run, void *context);

/* pool_hungry - how many workers have neither a job nor one waiting for them. */
unsigned pool_hungry(const struct pool *pool);

/* pool_has_room - whether the queue is short enough for one more directory. */
bool pool_has_room(const struct pool *pool);

/* pool_reserve - a free job to fill in, or NULL; then pool_post() or pool_release() it. */
struct pool_job *pool_reserve(struct pool *pool);
void pool_release(struct pool_job *job);
void pool_post(struct pool *pool, struct pool_job *job);

/* pool_claim - a posted job that is now the caller's, or NULL. Give it to pool_finish() when it is done. */
struct pool_job *pool_claim(struct pool *pool);
void pool_finish(struct pool *pool, struct pool_job *job);

/*
 * pool_next - for workers: wait for a job; NULL when the pool closes.
 * pool_rest - for workers: finish that job and count as idle again.
 */
struct pool_job *pool_next(struct pool *pool);
void pool_rest(struct pool *pool, struct pool_job *job);

/*
 * pool_settle - for the leader, when it has no job of its own: wait until something changes.
 * Returns true when all posted work is finished, or when a worker died (work may be lost then,
 * and the others are told to leave).
 */
bool pool_settle(struct pool *pool);

/*
 * pool_end - let the workers leave, wait for each of them, give the memory back.
 * @ret_total: the sum of their tallies is added to it.
 */
void pool_end(struct pool *pool, struct pool_tally *ret_total);
