/*
 * session_sweep.c - see session_sweep.h.
 *
 * Runs in: `carrel gc`, and the sweep in the background, outside.
 */
#include "host/session/session_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/cgroup/cgroup.h"
#include "host/session/manifest.h"
#include "host/session/record.h"
#include "host/session/session.h"
#include "host/tree/remove.h"

/* Whether a session directory is to stay: by the note that session_keep() made. */
static bool is_kept(int record)
{
	char text[32];
	uint64_t until = 0;
	autofd int fd = fd_open_at(record, "keep", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENOENT)
		return false;
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return true; /* somebody wanted it to stay; how long cannot be read */
	text[strcspn(text, "\n")] = '\0';
	if (text_parse_count(text, &until) < 0)
		return true;
	return until > (uint64_t)time(NULL);
}

/* One record, claimed, and what is left of its session. Too large for a stack. */
struct dead {
	const char *id;
	int record, base, dir;
	struct record_where where;
};

static void begin_dead(struct dead *d, const char *id)
{
	d->id = id;
	d->record = d->base = d->dir = -1;
	d->where.name[0] = '\0';
}

static void close_dead(struct dead *d)
{
	fd_close(&d->dir);
	fd_close(&d->base);
	fd_close(&d->record);
}

static bool is_same_directory(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
		sa.st_ino == sb.st_ino;
}

enum verdict { VERDICT_NOTHING, VERDICT_DEAD, VERDICT_KEPT };

/* A verdict; -EWOULDBLOCK: it lives; or -errno. */
static int judge(struct dead *d, int records, const char *base)
{
	d->record = record_claim(records, d->id);
	if (d->record < 0)
		return d->record == -ENOENT ? VERDICT_NOTHING : d->record;
	int r = record_read_where(d->record, &d->where);
	if (r == -ENOENT)
		return VERDICT_DEAD; /* killed before it had a directory */
	if (r < 0)
		return r;
	if (base && !is_same_directory(base, d->where.base))
		return VERDICT_NOTHING;
	r = record_open_where(&d->where, &d->base, &d->dir);
	if (r < 0 && r != -ENOENT)
		return r;
	return d->dir >= 0 && is_kept(d->record) ? VERDICT_KEPT : VERDICT_DEAD;
}

/* If the inode is not known, nothing was put into the directory yet: rmdir(2) removes it, and leaves somebody else's tree. */
static int remove_directory(const struct dead *d, struct error *e)
{
	struct remove_result gone;

	if (d->dir < 0)
		return 0;
	if (d->where.made)
		return remove_tree(d->base, d->where.name, &gone, e);
	(void)unlinkat(d->base, d->where.name, AT_REMOVEDIR);
	return 0;
}

static int settle_and_remove(const struct dead *d, int records, struct error *e)
{
	int r = manifest_settle(d->record, d->id, e);

	if (r < 0)
		return r;
	manifest_discard(d->record);
	r = cgroup_sweep_noted(d->record, d->where.name, e);
	if (r >= 0)
		r = remove_directory(d, e);
	if (r < 0) {
		error_below(e, d->where.base);
		return r;
	}
	r = record_remove(records, d->id, d->record);
	return r < 0 ? error_set(e, ERROR_TEARDOWN, "close", -r, d->id,
			       "cannot remove the record of a dead session")
		     : 0;
}

static void sweep_one(struct dead *d, int records, const struct session_sweep_how *how,
	struct session_sweep *ret, struct error *e)
{
	int verdict = judge(d, records, how->base);
	int r = verdict;

	if (verdict == VERDICT_DEAD && !(how->flags & SWEEP_DRY_RUN))
		r = settle_and_remove(d, records, e);
	else if (verdict < 0 && verdict != -EWOULDBLOCK)
		(void)error_set(e, ERROR_TEARDOWN, "close", -r, d->id,
			"cannot read the record of a dead session");
	if (r == -EWOULDBLOCK || r == -EBUSY)
		ret->live++;
	else if (r < 0)
		ret->failed++;
	else if (verdict == VERDICT_KEPT)
		ret->kept++;
	else if (verdict == VERDICT_DEAD && d->where.name[0]) {
		ret->removed++;
		if (how->each)
			how->each(how->context, d->where.name);
	}
}

int session_sweep(int records, const struct session_sweep_how *how, struct session_sweep *ret,
	struct error *e)
{
	struct dead *d = malloc(sizeof(*d));
	struct record_list *list = d ? record_list(records) : NULL;
	const char *id;

	*ret = (struct session_sweep){ 0 };
	if (!list) {
		free(d);
		return error_set(e, ERROR_STATE, "session", errno, NULL,
			"cannot read the records of sessions");
	}
	while ((id = record_next(list))) {
		begin_dead(d, id);
		sweep_one(d, records, how, ret, e);
		close_dead(d);
	}
	record_list_end(list);
	free(d);
	return 0;
}

bool session_sweep_needed(int records, const char *own)
{
	struct dead *d = malloc(sizeof(*d));
	struct record_list *list = d ? record_list(records) : NULL;
	bool needed = false;
	const char *id;

	while (list && !needed && (id = record_next(list))) {
		begin_dead(d, id);
		if (strcmp(id, own) != 0)
			needed = judge(d, records, NULL) == VERDICT_DEAD;
		close_dead(d);
	}
	if (list)
		record_list_end(list);
	free(d);
	return needed;
}
