/*
 * promote_session.c - see promote_session.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/promote/promote_session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/facts/match.h"
#include "host/promote/promote.h"
#include "host/promote/promote_dest.h"
#include "host/promote/promote_guard.h"
#include "host/tree/beneath.h"

struct job {
	const struct plan *plan;
	struct arena *arena;
	struct promote_guard guard;
	int scratch;
	struct report_promotion *list;
	size_t count;
	int first; /* failure */
	struct until *until;
	struct error *e;
};

/* stderr shows the first failure; the report has all of them. */
static void note_promotion(struct job *j, const char *source, const char *destination, int r,
	const struct promote_result *done, const struct error *e)
{
	struct report_promotion *grown =
		arena_push(j->arena, j->list, j->count, sizeof(*grown));

	if (r < 0 && j->first == 0) {
		j->first = r;
		*j->e = *e;
	}
	if (!grown) {
		if (j->first == 0)
			j->first = error_set(j->e, ERROR_PROMOTE, "promote", ENOMEM, source,
				"cannot report what was promoted");
		return;
	}
	j->list = grown;
	grown[j->count++] = (struct report_promotion){
		.source = source,
		.destination = destination,
		.how = r < 0 ? NULL : promote_how_name(done->how),
		.files = r < 0 ? 0 : done->files,
		.bytes = r < 0 ? 0 : done->bytes,
		.errnum = r < 0 ? e->errnum : 0,
		.why = r < 0 ? arena_copy(j->arena, e->what, strlen(e->what)) : NULL,
	};
}

static void promote_each(
	struct job *j, const struct promote_dest *to, const char *const *sources, size_t count)
{
	const struct promote_options options = { .until = j->until };

	for (size_t i = 0; i < count; i++) {
		struct promote_result done = { 0 };
		struct error e = { 0 };
		const char *path;
		int r = promote_into(to, j->arena, &j->guard, j->scratch, sources[i], &options,
			false, &done, &path, &e);

		note_promotion(j, sources[i], path ? path : to->path, r, &done, &e);
	}
}

static bool has_wild_card(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern == '\\' && pattern[1])
			pattern++;
		else if (strchr("*?[", *pattern))
			return true;
	}
	return false;
}

/* Tools see one directory of the scratch as $TMPDIR, /tmp and /var/tmp: a pattern "dist/a" means a file there, too. */
static int find_in_tmp(
	struct job *j, const char *pattern, const char ***ret_sources, size_t *ret_count)
{
	if (!strncmp(pattern, PROMOTE_TMP, strlen(PROMOTE_TMP)))
		return 0;
	const char *in_tmp = arena_format(j->arena, PROMOTE_TMP "%s", pattern);

	return in_tmp ? match_beneath(j->arena, j->scratch, in_tmp, ret_sources, ret_count)
		      : -ENOMEM;
}

/* The workspace is the other place where a command leaves things. */
static void hint_where(struct job *j, const char *pattern, struct error *e)
{
	const char *workspace = j->plan->facts->workspace;
	autofd int fd = fd_open_at(AT_FDCWD, workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	autofd int there = fd < 0
		? fd
		: beneath_open(fd, pattern, O_PATH | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (there >= 0)
		error_hint(e, "it is in the workspace, and stays there: %s/%s", workspace,
			pattern);
	else
		error_hint(e,
			"it is looked for below $CARREL_SCRATCH, and then below $TMPDIR, which is its tmp");
}

/* No failure: a build that makes no *.whl is as good as one that does, as far as carrel knows. */
static void tell_nothing(const struct job *j, const char *pattern)
{
	struct error line = { 0 };
	(void)error_set(&line, ERROR_PROMOTE, "promote", 0, pattern,
		"nothing in the scratch matches, and nothing is promoted");

	if (!j->plan->policy->quiet.on)
		(void)error_report(&line);
}

static int find_sources(struct job *j, const struct promote_rule *rule,
	const char **ret_pattern, const char ***ret_sources, size_t *ret_count, struct error *e)
{
	const char *pattern =
		promote_pattern_below(j->arena, j->plan->facts->scratch_dir, rule->pattern);

	*ret_pattern = pattern ? pattern : rule->pattern;
	if (!pattern) /* was checked before the launch: no memory */
		return error_set(e, ERROR_PROMOTE, "promote", ERROR_OWN(ENOMEM), rule->pattern,
			"out of memory");
	int r = match_beneath(j->arena, j->scratch, pattern, ret_sources, ret_count);
	if (r == 0 && *ret_count == 0)
		r = find_in_tmp(j, pattern, ret_sources, ret_count);
	if (r < 0)
		return error_set(
			e, ERROR_PROMOTE, "promote", -r, pattern, "cannot find the artifacts");
	if (*ret_count > 0)
		return 0;
	if (!has_wild_card(pattern)) {
		r = error_set(e, ERROR_PROMOTE, "promote", ERROR_OWN(ENOENT), pattern,
			"there is no such artifact");
		hint_where(j, pattern, e);
		return r;
	}
	tell_nothing(j, pattern);
	return 0;
}

static void promote_rule(struct job *j, const struct promote_rule *rule)
{
	struct promote_dest to = { .fd = -1 };
	struct error e = { 0 };
	const char **sources = NULL, *pattern;
	size_t count = 0;
	int r = find_sources(j, rule, &pattern, &sources, &count, &e);

	if (r == 0 && count > 0)
		r = promote_dest_open(
			&to, j->arena, &j->guard, rule->dir, PROMOTE_DEST_MAKE, &e);
	if (r < 0)
		note_promotion(j, pattern, rule->dir, r, NULL, &e);
	else
		promote_each(j, &to, sources, count);
	fd_close(&to.fd);
}

int promote_session(const struct plan *plan, const struct session *session, struct until *until,
	struct arena *arena, struct report *report, struct error *e)
{
	const struct policy *policy = plan->policy;
	struct job j = { .plan = plan, .arena = arena, .until = until, .e = e };
	autofd int scratch = session_scratch(session);

	if (scratch < 0)
		return error_set(e, ERROR_PROMOTE, "promote", -scratch,
			plan->facts->scratch_dir, "cannot open the scratch");
	int r = promote_guard_from_plan(&j.guard, arena, plan);
	if (r < 0)
		return error_set(e, ERROR_PROMOTE, "promote", -r, plan->facts->scratch_dir,
			"cannot promote from the scratch");
	j.scratch = scratch;
	for (size_t i = 0; i < policy->promote_count; i++)
		promote_rule(&j, &policy->promotes[i]);
	report->promoted = j.list;
	report->promoted_count = j.count;
	return j.first;
}
