/*
 * gitreview_answer.c - what the child that reviews has answered, checked: see verdict_take() in gitreview.h.
 *
 * Runs in: the launcher, outside, when that child is dead.
 * May not: believe it. Tools made what the child read, and a mistake in its reading is theirs to use.
 */
#include "host/gitreview/gitreview_shared.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { RECORDS_MAX = 8192, WHY_MAX = 160 };

void verdict_add(struct verdicts *v, enum gitdir_kind kind, const char *path, const char *why)
{
	struct gitdir_rule *grown =
		path ? arena_push(v->arena, v->rules, v->count, sizeof(*grown)) : NULL;

	if (!grown) {
		v->full = true;
		return;
	}
	v->rules = grown;
	grown[v->count++] =
		(struct gitdir_rule){ .kind = kind, .path = path, .exists = true, .why = why };
}

/* next_text - the text at *@at, which ends before @end. NULL where it does not. */
static const char *next_text(const char **at, const char *end, size_t max)
{
	const char *text = *at;
	const char *stop = memchr(text, '\0', (size_t)(end - text));

	if (!stop || (size_t)(stop - text) > max)
		return NULL;
	*at = stop + 1;
	return text;
}

/* is_relative - without an empty, "." or ".." component; empty for the root itself. */
static bool is_relative(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 0 || (length <= 2 && strspn(path, ".") >= length))
			return false;
		path += length;
		if (*path == '/' && !*++path)
			return false;
	}
	return true;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static int take_record(struct verdicts *v, const char *const *roots, size_t root_count,
	const char **at, const char *end)
{
	if (end - *at < 2)
		return -EPROTO;
	const char kind = (*at)[0];
	const unsigned root = (unsigned char)(*at)[1] - (unsigned)'a';

	*at += 2;
	const char *path = next_text(at, end, PATH_MAX);
	const char *why = path ? next_text(at, end, WHY_MAX) : NULL;

	if ((kind != 'Q' && kind != 'L') || root >= root_count || !why || !is_relative(path) ||
		!is_printable(why) || (kind == 'Q' && !*path) ||
		strlen(path) + strlen(roots[root]) + 1 >= PATH_MAX)
		return -EPROTO;
	verdict_add(v, kind == 'L' ? GITDIR_LOCKED : GITDIR_QUARANTINE,
		*path ? arena_format(v->arena, "%s/%s", roots[root], path) : roots[root],
		arena_copy(v->arena, why, strlen(why)));
	return v->full ? -ENOMEM : 0;
}

int verdict_take(struct verdicts *v, const char *const *roots, size_t root_count,
	const char *answer, size_t used)
{
	const char *at = answer, *end = answer + used;
	int r = 0;

	while (at < end && r == 0)
		r = v->count == RECORDS_MAX ? -E2BIG
					    : take_record(v, roots, root_count, &at, end);
	if (r == -EPROTO)
		v->count = 0;
	return r;
}
