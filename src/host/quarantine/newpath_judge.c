/*
 * newpath_judge.c - see newpath_judge.h.
 *
 * Runs in: S, while tools live.
 *
 * `git init` and `git clone` write config, hooks/\*.sample and branches. Moving them away in the middle would break git;
 * leaving a hook would let tools run code on the host. A plain file stays until it changes; a hook is moved at once;
 * anything else may be half written and gets 50 ms, a few times.
 */
#include "host/quarantine/newpath_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/git/gitplain.h"
#include "host/tree/beneath.h"

#define MS INT64_C(1000000)

enum {
	GRACE_MS = 50, /* to finish writing */
	GRACES = 8,    /* after so many a path that is not plain is moved at once */
	CHECK_MS =
		50,   /* S waits so long for the child, and twice as long after each time-out */
	LATE_MAX = 2, /* time-outs, on a busy machine; after them it counts as not plain */
	SETTLED_MS = 50,
	/* Look again so often: a write through an old mapping changes no time stamp and makes no event. */
	AGAIN_MS = 5000,
	NAMES_SIZE = 2048,
	NAMES_MAX = 256,
};

bool newpath_judge_applies(const struct quarantine_item *item)
{
	const char *root = strrchr(item->root, '/');

	return !strncmp(item->path, ".git/", 5) || strstr(item->path, "/.git/") ||
		(root && !strcmp(root, "/.git"));
}

static bool is_sample(const char *name)
{
	static const char suffix[] = ".sample";
	size_t length = strlen(name);

	return length >= sizeof(suffix) &&
		!strcmp(name + length - (sizeof(suffix) - 1), suffix);
}

/* Whether the directory holds something that is no sample, or too many names to tell. */
static bool is_armed(const struct quarantine_item *item)
{
	_Alignas(struct beneath_entry) char buffer[NAMES_SIZE];
	struct beneath_entry *entry;
	int r = -EBADF;
	autofd int fd = beneath_open(item->root_fd, item->path,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_ANY_MOUNT);

	struct beneath_list names = { .fd = fd, .buffer = buffer, .size = sizeof(buffer) };

	for (int i = 0; fd >= 0 && i < NAMES_MAX; i++) {
		r = beneath_next(&names, &entry);
		if (r <= 0 || !is_sample(entry->name))
			break;
	}
	return r != 0;
}

static bool is_unchanged(const struct newpath_judgement *j, const struct stat *st, int64_t now)
{
	return j->plain && !j->changed && (!j->again_ns || now < j->again_ns) &&
		j->dev == st->st_dev && j->ino == st->st_ino &&
		j->ctime.tv_sec == st->st_ctim.tv_sec &&
		j->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

static void note_plain(struct newpath_judgement *j, const struct stat *st, int64_t now)
{
	/* Two changes within one tick of the clock have the same ctime: look again soon after a change. */
	j->again_ns = now + (j->plain && !j->changed ? AGAIN_MS : SETTLED_MS) * MS;
	j->plain = true;
	j->changed = false;
	j->late = 0;
	j->seen_ns = 0;
	j->dev = st->st_dev;
	j->ino = st->st_ino;
	j->ctime = st->st_ctim;
}

enum answer { ANSWER_PLAIN, ANSWER_NOT_PLAIN, ANSWER_LATE, ANSWER_NEXT_TIME };

static enum answer ask(struct newpath_judgement *j, const struct quarantine_item *item,
	struct newpath_budget *b, int64_t now)
{
	if (b->left == 0)
		return ANSWER_NOT_PLAIN;
	if (now >= b->until_ns)
		return ANSWER_NEXT_TIME;
	b->left--;
	b->child_started = true;
	int r = gitplain_check(item->root_fd, item->path, now + (CHECK_MS << j->late) * MS);
	if (r == 1)
		return ANSWER_PLAIN;
	return r == -ETIMEDOUT && j->late < LATE_MAX ? ANSWER_LATE : ANSWER_NOT_PLAIN;
}

static bool may_grow(const struct quarantine_item *item, const struct stat *st)
{
	return S_ISREG(st->st_mode) || (S_ISDIR(st->st_mode) && !is_armed(item));
}

/* It is not plain. Does it still have time to become plain? */
static bool has_grace(struct newpath_judgement *j, int64_t now)
{
	if (!j->seen_ns && j->graces < GRACES) {
		j->graces++;
		j->seen_ns = now;
	}
	if (!j->seen_ns || now - j->seen_ns >= GRACE_MS * MS)
		return false;
	j->again_ns = j->seen_ns + GRACE_MS * MS;
	return true;
}

bool newpath_judge(struct newpath_judgement *j, const struct quarantine_item *item,
	struct newpath_budget *budget)
{
	struct stat st;
	int64_t now = clock_now_ns();
	enum answer answer = ANSWER_NOT_PLAIN;
	autofd int fd =
		beneath_open(item->root_fd, item->path, O_PATH | O_NOFOLLOW, BENEATH_ANY_MOUNT);

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (is_unchanged(j, &st, now))
		return true;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		answer = ask(j, item, budget, now);
	if (answer == ANSWER_PLAIN) {
		note_plain(j, &st, now);
		return true;
	}
	j->plain = false;
	j->again_ns = 0;
	bool stays = may_grow(item, &st);
	if (stays && answer == ANSWER_NEXT_TIME) {
		budget->cut = true;
		return true;
	}
	if (stays && answer == ANSWER_LATE) {
		j->late++;
		j->again_ns = now + GRACE_MS * MS;
		return true;
	}
	if (stays && has_grace(j, now))
		return true;
	j->seen_ns = 0;
	return false;
}
