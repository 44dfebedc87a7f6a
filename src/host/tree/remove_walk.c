/*
 * remove_walk.c - see remove_walk.h.
 *
 * Runs in: the supervisor and its removal workers, on trees that hostile tools wrote.
 * May not: follow a link, cross a mount, use "..", recurse.
 */
#include "host/tree/remove_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/tree/beneath.h"

enum {
	PASSES = 16,            /* over one directory, when entries keep on appearing */
	RAISED_PASSES = 100000, /* over the top; each stands for WALK_FRAMES levels of depth */
	RECORD_MAX = 24 + 256,  /* the longest record of getdents64 */
	SHARD_SEEN = 512,       /* entries after which a flat directory is split */
	STEPS_BETWEEN_LOOKS = 64, /* at the clock, where there is a deadline */
	SHARD_SHIFT = 4, /* inodes that share a block of the inode table stay together */
};

static struct walk_frame *top_frame(struct walk *w)
{
	return &w->frames[w->depth];
}

/* --- what is left behind ------------------------------------------------------------------- */

/* The path of @name in the current directory. True when it did not fit. */
static bool path_of(
	const struct walk *w, const char *base, const char *name, char *text, size_t size)
{
	size_t at = walk_append(text, size, 0, base);

	for (int i = 1; i <= w->depth; i++)
		at = walk_append(text, size, at, w->frames[i].name);
	if (name)
		at = walk_append(text, size, at, name);
	return at >= size - 1;
}

/* Why the first thing stays; @name in the current directory, NULL: the directory itself. */
static void record(struct walk *w, const char *name, int error)
{
	if (w->errnum)
		return;
	w->errnum = -error;
	if (w->first)
		w->first_cut = path_of(w, w->tree_name, name, w->first, 1024);
}

/*
 * @name in the current directory stays. While others work on the tree as well this says nothing
 * final: the leader's last walk starts with clean counters.
 */
static void note_left(struct walk *w, const char *name, int error)
{
	top_frame(w)->left++;
	w->remained++;
	record(w, name, error);
}

static void count_removed(struct walk *w)
{
	w->tally->removed++;
	if (w->consider && w->tally->removed >= w->consider_at)
		w->consider(w);
}

/* --- reading directories ------------------------------------------------------------------- */

static bool use_big_buffer(struct walk *w, struct walk_frame *f)
{
	if (!w->big) {
		void *big =
			mmap(NULL, (size_t)WALK_FRAMES * WALK_BIG_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (big == MAP_FAILED)
			return false;
		w->big = big;
	}
	f->buffer = w->big + (size_t)(f - w->frames) * WALK_BIG_BYTES;
	f->size = WALK_BIG_BYTES;
	return true;
}

static int refill(struct walk *w, struct walk_frame *f)
{
	if ((!f->buffer || (f->full && f->size < WALK_BIG_BYTES)) && !use_big_buffer(w, f) &&
		!f->buffer)
		return -ENOMEM;
	ssize_t n = beneath_read(f->fd, f->buffer, f->size);
	if (n < 0)
		return (int)n;
	f->at = 0;
	f->end = (uint32_t)n;
	f->full = (uint32_t)n + RECORD_MAX > f->size;
	f->end_seen = n == 0;
	return 0;
}

/* Reading went far enough that rmdir may be tried: after a short read it usually succeeds. */
static bool is_read(const struct walk_frame *f)
{
	if (f->end_seen)
		return true;
	return f->end && !f->full && !f->left && !f->again && !f->tried && !f->shards;
}

/* beneath_next() does not fit: between two reads the walk may have to stop, or to take a larger buffer. */
static struct beneath_entry *next_entry(struct walk *w, struct walk_frame *f)
{
	for (;;) {
		struct beneath_entry *entry = beneath_read_already(f->buffer, &f->at, f->end);

		if (entry) {
			f->seen++;
			return entry;
		}
		if (is_read(f))
			return NULL;
		int result = refill(w, f);
		if (result < 0) {
			f->end_seen = true;
			if (result != -ENOENT) { /* else somebody removed it: empty */
				record(w, NULL, result);
				f->left++;
			}
			return NULL;
		}
		if (w->pool && f->full)
			walk_split(w, f);
	}
}

/* --- going down ---------------------------------------------------------------------------- */

static void push_frame(struct walk *w, int fd, const char *name)
{
	w->depth++;
	struct walk_frame *f = top_frame(w);
	*f = (struct walk_frame){ .fd = fd, .name = name };
	if (w->depth < WALK_SMALL_FRAMES) {
		f->buffer = w->small[w->depth];
		f->size = WALK_SMALL_BYTES;
	}
}

void walk_begin(struct walk *w, int parent_fd, int fd, const char *name)
{
	w->parent_fd = parent_fd;
	w->depth = -1;
	w->raised_passes = 0;
	w->raised = false;
	w->limit = WALK_FRAMES;
	push_frame(w, fd, name);
}

void walk_end(struct walk *w)
{
	if (w->big)
		(void)munmap(w->big, (size_t)WALK_FRAMES * WALK_BIG_BYTES);
	w->big = NULL;
}

/* Starts over with the current directory. */
static void rewind_frame(struct walk *w, struct walk_frame *f)
{
	f->at = f->end = f->seen = f->left = 0;
	f->full = f->end_seen = f->tried = f->again = false;
	if (lseek(f->fd, 0, SEEK_SET) < 0)
		f->end_seen = true; /* then rmdir says what is left */
	if (w->depth > 0)
		return;
	w->raised = false;
	/* The walk meets everything that is left once more: count it again. */
	w->remained = 0;
	w->errnum = 0;
}

/*
 * Moves the directory @name from the current frame up to the top, where it is met again. The name
 * cannot be foreseen, and RENAME_NOREPLACE makes sure that nothing is replaced.
 */
static int raise_directory(struct walk *w, const char *name)
{
	static const char hex[] = "0123456789abcdef";
	struct walk_frame *f = top_frame(w);
	unsigned char random[16];
	char fresh[] = ".carrel-raised-0123456789abcdef0123456789abcdef";
	int result = fd_random(random, sizeof(random));

	if (result < 0)
		return result;
	for (unsigned i = 0; i < 16; i++) {
		fresh[15 + 2 * i] = hex[random[i] >> 4];
		fresh[16 + 2 * i] = hex[random[i] & 15];
	}
	for (int attempt = 0; attempt < 2; attempt++) {
		if (syscall(SYS_renameat2, f->fd, name, w->frames[0].fd, fresh,
			    RENAME_NOREPLACE) == 0) {
			w->raised = true;
			return 0;
		}
		result = -errno;
		/* Its ".." changes, so it must be writable itself (rename(2)). */
		if (result != -EACCES || beneath_unlock_dir(f->fd, name) < 0)
			break;
	}
	return result;
}

/*
 * No descriptor is left for a directory below the current one. The current one is given up, and
 * from now on what lies this deep is raised instead of entered. Its parent goes over it again.
 */
static bool shrink(struct walk *w)
{
	if (w->depth < 1)
		return false;
	w->raised = true; /* what was counted as left is counted again */
	if (w->depth == 1) {
		w->limit = 2;
		return false;
	}
	w->limit = w->depth;
	fd_close(&top_frame(w)->fd);
	w->depth--;
	top_frame(w)->again = true;
	return true;
}

/* The directory @name has entries: enter it, give it away, or raise it. */
static void enter_dir(struct walk *w, struct walk_frame *f, const char *name)
{
	if (walk_give_away(w, f, name))
		return;
	int result = w->depth + 1 < w->limit ? beneath_open_dir(f->fd, name) : -EMLINK;
	if (result >= 0) {
		push_frame(w, result, name);
		return;
	}
	if ((result == -EMFILE || result == -ENFILE) && w->depth >= 1) {
		if (shrink(w))
			return;
		result = -EMLINK;
	}
	if (result == -EMLINK)
		result = raise_directory(w, name);
	/*
	 * EXDEV also says that the directory was moved away between lookup and check
	 * (RESOLVE_BENEATH): only one that gives EXDEV each time is a mount point, which rmdir
	 * would have called busy.
	 */
	if (result == -EXDEV && f->passes >= PASSES)
		result = -EBUSY;
	if (result == -ENOTDIR || result == -ELOOP || result == -EXDEV)
		f->again = true; /* it has become something else meanwhile */
	else if (result < 0 && result != -ENOENT)
		note_left(w, name, result);
}

/* --- removing ------------------------------------------------------------------------------ */

int walk_unlink(struct walk *w, int dirfd, const char *name, uint8_t type)
{
	struct stat st = { 0 };

	if (w->count_bytes && (type == DT_REG || type == DT_UNKNOWN)) {
		if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
			type = DT_CHR; /* anything that is not counted */
	}
	if (unlinkat(dirfd, name, 0) < 0)
		return -errno;
	if (type == DT_REG || type == DT_UNKNOWN) {
		w->tally->files++;
		w->tally->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	}
	count_removed(w);
	return 0;
}

static int remove_dir(struct walk *w, int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		return errno == EEXIST ? -ENOTEMPTY : -errno;
	count_removed(w);
	return 0;
}

/* Tries the removal that the entry's type suggests, then the other. */
static int remove_name(struct walk *w, struct walk_frame *f, const char *name, uint8_t type)
{
	int result;

	if (type == DT_DIR) {
		result = remove_dir(w, f->fd, name);
		if (result == -ENOTDIR)
			result = walk_unlink(w, f->fd, name, DT_UNKNOWN);
		return result;
	}
	result = walk_unlink(w, f->fd, name, type);
	if (result == -EISDIR)
		result = remove_dir(w, f->fd, name);
	return result;
}

static void remove_entry(
	struct walk *w, struct walk_frame *f, const struct beneath_entry *entry)
{
	if (f->shards && (entry->ino >> SHARD_SHIFT) % f->shards != f->shard)
		return;
	int result = remove_name(w, f, entry->name, entry->type);
	if (result == -EACCES && !f->unlocked) {
		f->unlocked = true;
		if (fchmod(f->fd, 0700) == 0)
			result = remove_name(w, f, entry->name, entry->type);
	}
	/* EPERM: the directory is immutable, which the kernel finds out before it finds it full. */
	if (result == -ENOTEMPTY || (result == -EPERM && entry->type == DT_DIR))
		enter_dir(w, f, entry->name);
	else if (result == -EISDIR || result == -ENOTDIR)
		f->again = true; /* changed its type twice in between */
	else if (result < 0 && result != -ENOENT)
		note_left(w, entry->name, result);
}

/* --- going up ------------------------------------------------------------------------------ */

/* Leaves the current directory, which is gone or (@left) is not. */
static void pop_frame(struct walk *w, bool left)
{
	struct walk_frame *f = top_frame(w);

	w->depth--;
	if (left)
		w->remained++;
	if (w->depth < 0)
		return;
	fd_close(&f->fd);
	top_frame(w)->left += left;
}

/* Goes over the current directory once more, where that may still help. */
static bool repeat_frame(struct walk *w, struct walk_frame *f)
{
	if (w->depth == 0 && w->raised) {
		if (w->raised_passes++ >= RAISED_PASSES)
			return false;
	} else if (f->passes++ >= PASSES) {
		return false;
	}
	rewind_frame(w, f);
	return true;
}

/* Part of the directory is others' to remove, or something in it stays. */
static bool is_spoken_for(const struct walk *w, const struct walk_frame *f)
{
	return f->left || f->shards || (w->depth == 0 && w->keep_top);
}

/* All entries of the current directory were seen: remove it, read on, or go over it again. */
static void finish_frame(struct walk *w, struct walk_frame *f)
{
	bool again = f->again || (w->depth == 0 && w->raised);

	if (is_spoken_for(w, f)) {
		if (!again || !repeat_frame(w, f))
			pop_frame(w, true);
		return;
	}
	int parent_fd = w->depth > 0 ? w->frames[w->depth - 1].fd : w->parent_fd;
	int result = remove_dir(w, parent_fd, f->name);
	if (result == 0 || result == -ENOENT) {
		pop_frame(w, false);
		return;
	}
	if (result == -ENOTEMPTY && !f->end_seen) {
		f->tried = true;
		return;
	}
	if (result == -ENOTEMPTY && repeat_frame(w, f))
		return;
	if (result == -ENOTDIR && w->depth > 0) {
		w->frames[w->depth - 1].again = true; /* swapped for something else */
		pop_frame(w, false);
		return;
	}
	record(w, NULL, result);
	pop_frame(w, true);
}

static bool is_late(struct walk *w)
{
	if (w->deadline_ns && !w->late && w->steps++ % STEPS_BETWEEN_LOOKS == 0)
		w->late = clock_now_ns() >= w->deadline_ns;
	return w->late;
}

/* The walk does not count what it leaves: the caller has no time. */
static void give_up(struct walk *w)
{
	while (w->depth >= 0)
		pop_frame(w, w->depth == 0);
	w->errnum = ETIME;
}

void walk_run(struct walk *w)
{
	while (w->depth >= 0) {
		if (is_late(w)) {
			give_up(w);
			return;
		}
		struct walk_frame *f = top_frame(w);
		struct beneath_entry *entry = next_entry(w, f);

		if (entry)
			remove_entry(w, f, entry);
		else
			finish_frame(w, f);
	}
}

void walk_again(struct walk *w)
{
	rewind_frame(w, top_frame(w));
	walk_run(w);
}
