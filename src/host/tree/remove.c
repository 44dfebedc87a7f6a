/*
 * remove.c - see remove.h.
 *
 * Runs in: the supervisor (the leader) and the workers it forks for the time of one removal.
 */
#include "host/tree/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/beneath.h"
#include "host/tree/remove_walk.h"

enum {
	CONSIDER_FROM = 256, /* entries removed when the watch is started */
	CONSIDER_AT = 512,   /* and when it is read: the tree is large */
	BUSY_WORKERS = 4,    /* at most, where unlinking keeps a processor busy */
};

/* The leader's own state, beside its walk. */
struct leader {
	unsigned wanted; /* as in struct remove_options */
	int64_t wall_us, cpu_us;
};

static int64_t clock_us(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now); /* both clocks exist on every Linux */
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static unsigned count_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

/*
 * How many processes: as many as processors where unlinking is work; more where it is waiting (a
 * disk that is told about every freed block, a network), because then the waits overlap.
 */
static unsigned suggest_workers(const struct leader *l)
{
	unsigned processors = count_processors();
	int64_t wall_us = clock_us(CLOCK_MONOTONIC) - l->wall_us;
	int64_t cpu_us = clock_us(CLOCK_PROCESS_CPUTIME_ID) - l->cpu_us;

	if (cpu_us * 10 < wall_us * 7)
		return POOL_MAX_WORKERS;
	return processors < BUSY_WORKERS ? processors : BUSY_WORKERS;
}

/* --- workers ------------------------------------------------------------------------------- */

/* Opens a job's directory and begins its walk. @job->path is cut into parent and name. */
static int begin_job(struct walk *w, int tree_fd, struct pool_job *job, int *ret_parent_fd)
{
	autofd int parent_fd = -1;
	char *slash = strrchr(job->path, '/');
	char *name = slash ? slash + 1 : job->path;

	if (slash) {
		*slash = '\0';
		parent_fd = beneath_open(
			tree_fd, job->path, O_PATH | O_DIRECTORY, BENEATH_SAME_MOUNT);
		if (parent_fd < 0)
			return parent_fd;
	}
	/* The top is opened anew: readers of one description would share its position. */
	int at = slash ? parent_fd : tree_fd;
	int fd = name[0] ? beneath_open_dir(at, name)
			 : beneath_open(at, ".", O_RDONLY | O_DIRECTORY, BENEATH_SAME_MOUNT);
	if (fd < 0)
		return fd;
	w->prefix_parent = slash ? job->path : "";
	w->prefix_name = name;
	w->keep_top = job->shards != 0;
	walk_begin(w, at, fd, name);
	w->frames[0].shards = job->shards;
	w->frames[0].shard = job->shard;
	*ret_parent_fd = take_fd(&parent_fd);
	return fd;
}

/* Does one job. What fails is left for the leader's last walk, which reports it. */
static void run_job(struct walk *w, int tree_fd, struct pool_job *job)
{
	autofd int parent_fd = -1;
	autofd int fd = begin_job(w, tree_fd, job, &parent_fd);

	if (fd >= 0)
		walk_run(w);
}

static void worker_main(struct pool *pool, unsigned index, void *context)
{
	const struct walk *leader = context;
	struct walk w = {
		.pool = pool,
		.tally = &pool->tallies[index],
		.count_bytes = leader->count_bytes,
		.deadline_ns = leader->deadline_ns,
		.is_worker = true,
	};
	struct pool_job *job;

	while ((job = pool_next(pool)) != NULL) {
		run_job(&w, leader->frames[0].fd, job);
		pool_rest(pool, job);
	}
}

/* --- the leader ---------------------------------------------------------------------------- */

static void consider_workers(struct walk *w)
{
	struct leader *l = w->context;

	if (!l->wall_us && !l->wanted) {
		l->wall_us = clock_us(CLOCK_MONOTONIC);
		l->cpu_us = clock_us(CLOCK_PROCESS_CPUTIME_ID);
		w->consider_at = CONSIDER_AT;
		return;
	}
	w->consider = NULL;
	unsigned count = l->wanted ? l->wanted : suggest_workers(l);
	/* Without workers the tree is removed all the same, only later. */
	if (count > 1 && pool_start(&w->pool, count - 1, w->frames[0].fd, worker_main, w) < 0)
		w->pool = NULL;
}

/* Helps until the queue is empty and the workers are done, then lets them go. */
static void finish_together(struct walk *w, int tree_fd)
{
	struct pool *pool = w->pool;

	do {
		struct pool_job *job;

		while ((job = pool_claim(pool)) != NULL) {
			run_job(w, tree_fd, job);
			pool_finish(pool, job);
		}
	} while (!pool_settle(pool));
	w->pool = NULL;
	pool_end(pool, w->tally);
}

/*
 * Remove the whole tree, opened as @fd. Only what the last walk finds counts, which the leader does
 * alone. Returns how many workers took part.
 */
static unsigned remove_opened(struct walk *w, int parent_fd, int fd, const char *name)
{
	unsigned workers = 0;

	walk_begin(w, parent_fd, fd, name);
	walk_run(w);
	w->consider = NULL;
	if (w->pool) {
		workers = w->pool->workers;
		finish_together(w, fd);
		w->remained = 0;
		w->errnum = 0;
		w->keep_top = false;
		walk_begin(w, parent_fd, fd, name);
		walk_again(w);
	}
	walk_end(w);
	return workers;
}

/* Remove an entry that is no directory, or that cannot be opened as one. */
static void remove_single(struct walk *w, int parent_fd, const char *name, int error)
{
	if (error == -ENOTDIR || error == -ELOOP)
		error = walk_unlink(w, parent_fd, name, DT_UNKNOWN);
	else if (error == -EXDEV)
		error = -EBUSY; /* a mount point */
	if (error == 0 || error == -ENOENT)
		return;
	w->remained = 1;
	w->errnum = -error;
	size_t length = strnlen(name, 255);
	memcpy(w->first, name, length);
	w->first[length] = '\0';
}

int remove_tree_with(int parent_fd, const char *name, const struct remove_options *options,
	struct remove_result *ret, struct error *e)
{
	struct leader leader = { .wanted = options ? options->workers : 0 };
	struct pool_tally tally = { 0 };
	struct walk w = {
		.tally = &tally,
		.tree_name = name,
		.prefix_parent = "",
		.prefix_name = "",
		.first = ret->first,
		.count_bytes = options && options->flags & REMOVE_COUNT_BYTES,
		.deadline_ns = options ? options->deadline_ns : 0,
		.consider = leader.wanted == 1 ? NULL : consider_workers,
		.consider_at = CONSIDER_FROM,
		.context = &leader,
	};

	*ret = (struct remove_result){ .workers = 1 };
	if (!beneath_is_name(name))
		return error_set(e, ERROR_INTERNAL, "close", EINVAL, name,
			"cannot remove a path of several names");
	autofd int fd = beneath_open_dir(parent_fd, name);
	if (fd >= 0)
		ret->workers += remove_opened(&w, parent_fd, fd, name);
	else
		remove_single(&w, parent_fd, name, fd);
	ret->removed = tally.removed;
	ret->files = tally.files;
	ret->bytes = tally.bytes;
	ret->remained = w.remained;
	ret->errnum = w.errnum;
	ret->first_cut = w.first_cut;
	if (!w.remained) {
		ret->first[0] = '\0'; /* noted in an earlier pass, and gone since */
		return 0;
	}
	return error_set(e, ERROR_TEARDOWN, "close", w.errnum, ret->first,
		"cannot remove all of the tree (%llu entries remain)",
		(unsigned long long)w.remained);
}

int remove_tree(int parent_fd, const char *name, struct remove_result *ret, struct error *e)
{
	return remove_tree_with(parent_fd, name, NULL, ret, e);
}
