/*
 * close.c - see close.h.
 *
 * Runs in: the launcher, when every process of the session is dead.
 */
#include "host/close.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/say.h"
#include "box/sys.h"
#include "host/beneath.h"
#include "host/census.h"
#include "host/gitdirs.h"
#include "host/manifest.h"
#include "host/promote_tree.h"
#include "host/quarantine.h"
#include "host/remove.h"
#include "plan/path.h"

struct closer {
	const struct plan *plan;
	struct arena *arena;
	struct quarantine_item *items;
	size_t count;
	struct error *e;
};

static int no_memory(struct closer *c)
{
	return error_set(c->e, ERROR_LIMIT, "close", ENOMEM, NULL,
		"cannot look for what appeared at protected paths");
}

static int open_root(const struct plan *plan, const char *path, int *ret_fd)
{
	const struct facts *facts = plan->facts;
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	if (!strcmp(path, facts->workspace) &&
		(fstat(fd, &st) < 0 || st.st_dev != facts->workspace_dev ||
			st.st_ino != facts->workspace_ino))
		return -ESTALE;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* One descriptor for each writable root: items of the same root share it. */
static int find_root(struct closer *c, const char *root, int *ret_fd)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].root, root)) {
			*ret_fd = c->items[i].root_fd;
			return 0;
		}
	int r = open_root(c->plan, root, ret_fd);
	return r < 0 ? error_set(c->e, ERROR_TEARDOWN, "close", -r, root,
			       "cannot look for what appeared at protected paths")
		     : 0;
}

static int add_item(struct closer *c, const char *root, const char *path, size_t existing)
{
	struct quarantine_item *grown =
		arena_push(c->arena, c->items, c->count, sizeof(*grown));
	size_t root_length = strlen(root);
	int fd = -1;

	if (!grown)
		return no_memory(c);
	c->items = grown;
	int r = find_root(c, root, &fd);
	if (r < 0)
		return r;
	c->items[c->count++] = (struct quarantine_item){
		.root_fd = fd,
		.root = root,
		.path = path_below(root, path),
		.existing_prefix_len = existing > root_length ? existing - root_length - 1 : 0,
	};
	return 0;
}

static int add_absents(struct closer *c)
{
	int r = 0;

	for (size_t i = 0; i < c->plan->absent_count && r >= 0; i++) {
		const struct absent_path *a = &c->plan->absents[i];

		r = add_item(c, a->root, a->path, a->existing_prefix);
	}
	return r;
}

/* Whether a protected path is still the thing that was protected, and no link leads to it. */
static bool is_same(const struct kept_path *kept)
{
	struct stat st;
	autofd int fd = sys_openat2(AT_FDCWD, kept->path, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return true; /* gone: nobody obeys what is not there */
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == kept->dev &&
		st.st_ino == kept->ino;
}

/*
 * A protected thing that was renamed away on the host took its protection with it, and no event
 * tells: what stands in its place may be the tools'. Where the session was ended because of a
 * replacement that was seen, it is the host's.
 */
static int add_replaced(struct closer *c, bool breached)
{
	int r = 0;

	for (size_t i = 0; !breached && i < c->plan->kept_count && r >= 0; i++)
		if (!is_same(&c->plan->kept[i]))
			r = add_item(c, c->plan->kept[i].root, c->plan->kept[i].path, 0);
	return r;
}

/* The writable place that @path lies in: the workspace, or a repository that was granted. */
static const char *root_of(const struct facts *facts, const char *path)
{
	if (path_below(facts->workspace, path))
		return facts->workspace;
	for (size_t i = 0; i < facts->git_rule_count; i++)
		if (facts->git_rules[i].kind == GITDIR_WRITE &&
			path_below(facts->git_rules[i].path, path))
			return facts->git_rules[i].path;
	return NULL;
}

/* What no mount could prevent and git on the host would obey: docs/git.md. */
static int add_reviewed(struct closer *c)
{
	const struct facts *facts = c->plan->facts;
	struct gitdir_rule *rules = NULL;
	size_t count = 0;

	if (c->plan->policy->workspace_mode != WORKSPACE_DIRECT)
		return 0;
	int r = gitdirs_review(c->arena, facts->workspace, facts->uid, facts->begun,
		facts->git_rules, facts->git_rule_count, &rules, &count, c->e);
	for (size_t i = 0; i < count && r >= 0; i++) {
		const char *root = rules[i].kind == GITDIR_QUARANTINE
			? root_of(facts, rules[i].path)
			: NULL;

		if (root && *path_below(root, rules[i].path))
			r = add_item(c, root, rules[i].path, 0);
	}
	return r;
}

static void close_items(const struct closer *c)
{
	for (size_t i = 0; i < c->count; i++) {
		bool shared = false;

		for (size_t j = 0; j < i; j++)
			shared = shared || c->items[j].root_fd == c->items[i].root_fd;
		if (!shared)
			(void)close(c->items[i].root_fd);
	}
}

/* What still stands is no part of it: that is an error, and told as one. */
static int report_moves(const struct plan *plan, const struct quarantine_result *found,
	struct arena *arena, struct report *report)
{
	struct report_quarantine *list = arena_array(arena, found->count, sizeof(*list));
	size_t count = 0;

	for (size_t i = 0; list && i < found->count; i++) {
		const struct quarantine_move *m = &found->moves[i];
		const char *in = m->aside ? m->item->root : plan->facts->scratch_base;
		struct report_quarantine *moved = &list[count];

		if (m->errnum)
			continue;
		moved->path = arena_format(arena, "%s/%s", m->item->root, m->from);
		moved->to = m->to ? arena_format(arena, "%s/%s", in, m->to) : NULL;
		moved->aside = m->aside;
		if (!moved->path || (m->to && !moved->to))
			return -ENOMEM;
		count++;
	}
	report->quarantined = list;
	report->quarantined_count = count;
	return found->count && !list ? -ENOMEM : 0;
}

static void tell_moves(const struct report *report)
{
	for (size_t i = 0; i < report->quarantined_count; i++) {
		const struct report_quarantine *moved = &report->quarantined[i];
		struct error line = { 0 };
		int r = error_set(&line, ERROR_TEARDOWN, "close", 0, moved->path,
			"quarantined, since the host would obey it");

		if (moved->aside)
			error_hint(&line,
				"it could not be moved to the scratch base, and is now %s",
				moved->to);
		else if (moved->to)
			error_hint(&line, "it is now %s", moved->to);
		(void)r; /* said here */
		(void)say_error(&line);
	}
}

int close_quarantine(const struct plan *plan, const struct session *session, bool breached,
	struct arena *arena, struct report *report, struct error *e)
{
	struct quarantine_result found = { .arena = arena };
	struct closer c = { .plan = plan, .arena = arena, .e = e };
	int r = add_absents(&c);
	int replaced = add_replaced(&c, breached);
	int reviewed = add_reviewed(&c);

	/* What could be listed is dealt with, whatever else failed. */
	int checked =
		quarantine_check(c.items, c.count, session->base, session->name, &found, e);
	close_items(&c);
	int reported = report_moves(plan, &found, arena, report);
	if (found.count && !plan->policy->quiet.on)
		tell_moves(report);
	if (reported < 0)
		reported = no_memory(&c);
	r = r < 0 ? r : replaced;
	return r < 0 ? r : reviewed < 0 ? reviewed : checked < 0 ? checked : reported;
}

/* What the scratch at @name in @dir holds, on top of what is counted already. */
static void count_scratch(int dir, const char *name, struct report *report)
{
	struct census held;

	if (census_tree(dir, name, CENSUS_MAX_MS, &held) < 0) {
		report->scratch_truncated = true;
		return;
	}
	report->scratch_files += held.files;
	report->scratch_bytes += held.bytes;
	report->scratch_truncated |= held.truncated;
}

/* A scratch that is memory is kept as a copy on disk, where it would have been without scratch-size. */
static int save_memory(const struct plan *plan, const struct session *session, struct error *e)
{
	const char *path = plan->facts->scratch_dir;
	struct promote_tree saved;
	struct error why = { 0 };
	autofd int to = beneath_open(session->dir, "scratch",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH_SAME_MOUNT);

	if (to < 0)
		return error_set(
			e, ERROR_SCRATCH, "close", -to, path, "cannot keep the scratch");
	int r = promote_tree_save(
		session->memory, to, plan->policy->scratch_size.value, path, &saved, &why);
	if (r >= 0)
		return 0;
	r = error_set(e, ERROR_SCRATCH, "close", why.errnum, why.on, "%s", why.what);
	error_hint(e, "the scratch was memory; what could be copied of it is in %s", path);
	return r;
}

static int keep_directory(const struct plan *plan, struct session *session, bool lost,
	struct arena *arena, struct report *report, struct error *e)
{
	const struct policy *policy = plan->policy;
	int saved = session->memory >= 0 ? save_memory(plan, session, e) : 0;
	struct error unmarked = { 0 };
	int r = session_keep(session,
		policy->keep_for_ms.set && !lost ? policy->keep_for_ms.value : 0, &unmarked);

	if (r < 0 && saved == 0)
		*e = unmarked;
	r = saved < 0 ? saved : r;
	report->teardown = REPORT_TEARDOWN_KEPT;
	report->scratch_kept = true;
	if (policy->report.value)
		count_scratch(session->dir, "scratch", report);
	if (!policy->quiet.on || lost) {
		const char *text = arena_format(arena, "carrel: kept%s: %s\n",
			saved < 0 ? " in part" : "", plan->facts->scratch_dir);
		int told = text ? fd_write_all(STDERR_FILENO, text, strlen(text)) : -ENOMEM;

		(void)told; /* nobody is there to read it */
	}
	return r;
}

/* What tools left, and nothing of what lies beside it: outputs, an overlay's layers, notes. */
static void count_removed(const struct session *session, struct report *report)
{
	const struct remove_options options = { .flags = REMOVE_COUNT_BYTES };
	struct remove_result gone;

	if (session->memory >= 0) {
		count_scratch(session->memory, ".", report);
		return;
	}
	int r = remove_tree_with(session->dir, "scratch", &options, &gone, NULL);
	report->scratch_files = gone.files;
	report->scratch_bytes = gone.bytes;
	/* What stays is met once more, and told, when the whole directory is removed. */
	report->scratch_truncated = r < 0;
}

int close_directory(const struct plan *plan, struct session *session, bool lost,
	struct arena *arena, struct report *report, struct error *e)
{
	struct remove_result gone;

	manifest_discard(session->dir);
	if (lost || plan->policy->keep.on || plan->policy->keep_for_ms.set)
		return keep_directory(plan, session, lost, arena, report, e);
	if (plan->policy->report.value)
		count_removed(session, report);
	int r = remove_tree(session->base, session->name, &gone, e);
	report->teardown = r >= 0 ? REPORT_TEARDOWN_REMOVED
		: gone.removed    ? REPORT_TEARDOWN_PARTIAL
				  : REPORT_TEARDOWN_FAILED;
	report->teardown_remaining = gone.remained;
	report->teardown_errno = gone.errnum;
	if (gone.remained)
		report->teardown_path =
			arena_format(arena, "%s/%s", plan->facts->scratch_base, gone.first);
	if (r < 0)
		error_below(e, plan->facts->scratch_base);
	return r;
}
