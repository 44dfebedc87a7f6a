/*
 * remove_walk.h - the walk of one process over (its part of) a tree that is being removed.
 *
 * Runs in: the supervisor and its removal workers. Used by remove.c only.
 * May not: report success; what is left after the leader's last walk decides that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/tree/remove_pool.h"

enum {
	WALK_FRAMES = 16,      /* directories open at once */
	WALK_SMALL_FRAMES = 3, /* these have a buffer on the stack: enough for most scratches */
	WALK_SMALL_BYTES = 640,
	WALK_BIG_BYTES = 64 << 10,
};

/* One open directory on the way down. */
struct walk_frame {
	int fd;
	uint32_t size;    /* of buffer */
	uint32_t at, end; /* unread records in it */
	uint32_t seen;    /* records read in this pass */
	uint32_t left;    /* entries known to be left behind in this pass */
	const char *name; /* in the parent's buffer, which is not refilled meanwhile */
	char *buffer;
	uint8_t passes;
	uint8_t shards; /* not 0: only entries of class `shard` are ours */
	uint8_t shard;
	bool full;     /* the last read filled the buffer: more is likely */
	bool end_seen; /* getdents64 returned 0 */
	bool tried;    /* rmdir was tried before the end was seen */
	bool unlocked; /* its mode was set to 0700 */
	bool again;    /* must be gone over again: something was put off */
};

struct walk {
	int parent_fd; /* holds frames[0].name */
	int depth;     /* index of the current frame, -1 when the walk is over */
	int limit;     /* frames that may be open */
	bool keep_top; /* only part of the top directory is ours: do not remove it */
	bool count_bytes;
	bool is_worker;
	bool raised; /* directories were raised into the top in this pass */
	uint32_t raised_passes;
	struct pool *pool;
	struct pool_tally *tally;
	const char *prefix_parent, *prefix_name; /* the top's place in the tree, for jobs */
	int64_t deadline_ns;                     /* CLOCK_MONOTONIC; 0: none */
	uint32_t steps;                          /* since the clock was looked at */
	bool late; /* the deadline is over: nothing more is touched */
	uint64_t remained;
	int errnum;
	const char *tree_name; /* for `first` */
	char *first;           /* 1024 bytes, NULL in workers */
	bool first_cut;
	/* Called by the leader once in a while: is it worth starting workers? NULL in workers. */
	void (*consider)(struct walk *w);
	void *context;
	uint64_t consider_at;
	char *big; /* WALK_FRAMES buffers, mapped when the first is needed */
	struct walk_frame frames[WALK_FRAMES];
	char small[WALK_SMALL_FRAMES][WALK_SMALL_BYTES] __attribute__((aligned(8)));
};

/* walk_begin - make the open directory @fd the top; @name is its name in @parent_fd. */
void walk_begin(struct walk *w, int parent_fd, int fd, const char *name);

/*
 * walk_run - empty the top directory and (without keep_top) remove it. The top's descriptor stays
 * open and the caller's; it is gone when `remained` did not grow. At the deadline it gives up (ETIME).
 */
void walk_run(struct walk *w);

/* walk_again - the same from the start, after others have read from the top's descriptor. */
void walk_again(struct walk *w);

/* walk_unlink - remove @name, no directory, from @dirfd. 0 or -errno. */
MUST_CHECK int walk_unlink(struct walk *w, int dirfd, const char *name, uint8_t type);

/*
 * walk_give_away - leave the directory @name in the current frame @f to a worker that is free.
 * False where no worker needs it: then the caller removes it.
 */
bool walk_give_away(struct walk *w, struct walk_frame *f, const char *name);

/*
 * walk_split - leave shares of the large flat directory @f, the current frame, to the workers that
 * have nothing to do. unlinkat(2) holds the directory's lock only for the entry; freeing the inode
 * comes after it, and that is what is done side by side. Shares go by inode number, so that all
 * agree on them without a word and inodes of one block stay together.
 */
void walk_split(struct walk *w, struct walk_frame *f);

/* walk_append - add a component to a path that is @at long; returns the new length, cut to fit. */
size_t walk_append(char *text, size_t size, size_t at, const char *part);

/* walk_end - give the buffers back. */
void walk_end(struct walk *w);
