/*
 * remove_share.c - what a walk hands over to the other processes of its pool; see remove_walk.h.
 *
 * Runs in: the supervisor and its removal workers.
 * May not: touch the tree. Everything given away is a path below the tree, opened by the taker
 * without following a link; one that is no longer true by then is left for the last walk.
 */
#include "host/tree/remove_walk.h"

#include <string.h>

enum {
	SHARD_SEEN = 512, /* entries after which a flat directory is split */
};

size_t walk_append(char *text, size_t size, size_t at, const char *part)
{
	size_t length = strlen(part);

	if (at > 0 && at < size - 1 && part[0])
		text[at++] = '/';
	if (length > size - 1 - at)
		length = size - 1 - at;
	memcpy(text + at, part, length);
	text[at + length] = '\0';
	return at + length;
}

/*
 * Writes the place of the current directory (@name NULL) or of @name in it, relative to the whole
 * tree, into a job. False: too long.
 */
static bool job_path(const struct walk *w, const char *name, struct pool_job *job)
{
	size_t at = 0;

	job->path[0] = '\0';
	at = walk_append(job->path, POOL_PATH, at, w->prefix_parent);
	at = walk_append(job->path, POOL_PATH, at, w->prefix_name);
	for (int i = 1; i <= w->depth; i++)
		at = walk_append(job->path, POOL_PATH, at, w->frames[i].name);
	if (name)
		at = walk_append(job->path, POOL_PATH, at, name);
	return at < POOL_PATH - 1;
}

void walk_split(struct walk *w, struct walk_frame *f)
{
	unsigned hungry = f->shards || f->seen < SHARD_SEEN ? 0 : pool_hungry(w->pool);

	for (unsigned i = 1; i <= hungry; i++) {
		struct pool_job *job = pool_reserve(w->pool);

		if (!job)
			return;
		if (!job_path(w, NULL, job)) {
			pool_release(job);
			return;
		}
		job->shards = (uint8_t)(hungry + 1);
		job->shard = (uint8_t)i;
		f->shards = job->shards; /* and class 0 is ours */
		pool_post(w->pool, job);
	}
}

bool walk_give_away(struct walk *w, struct walk_frame *f, const char *name)
{
	/* The last entry is not given away: in a chain of directories it would wander about. */
	if (!w->pool || (f->at >= f->end && !f->full))
		return false;
	if (w->is_worker ? !pool_hungry(w->pool) : !pool_has_room(w->pool))
		return false;
	struct pool_job *job = pool_reserve(w->pool);
	if (!job)
		return false;
	job->shards = 0;
	if (!job_path(w, name, job)) {
		pool_release(job);
		return false;
	}
	pool_post(w->pool, job);
	f->left++;
	return true;
}
