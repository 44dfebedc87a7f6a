/*
 * tree_check.c - refuse rules about places that are the session's own. They would be passed over in
 * silence, or end in an operation that cannot work.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include "plan/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/path.h"

static int refuse_path(const struct policy *policy, const struct path_fact *f, const char *what,
	const char *hint, struct error *e)
{
	const struct source *source = &f->rule->source;
	char place[256], on[1024];

	policy_format_source(
		source, policy_source_setting(policy, source), place, sizeof(place));
	(void)snprintf(on, sizeof(on), "%s (%s)", f->path, place);
	int r = error_set(e, ERROR_PATH, "plan", 0, on, "%s", what);

	error_hint(e, "%s", hint);
	return r;
}

bool tree_is_own(const struct facts *facts, const struct path_fact *f)
{
	const struct path_fact *proc = &facts->system[SYSTEM_PROC];
	const struct path_fact *dev = &facts->system[SYSTEM_DEV];

	return (proc->exists && path_below(proc->path, f->path)) ||
		(dev->exists && !strcmp(dev->path, f->path));
}

/* Whether the rule shows something else in this place, or nothing. */
static bool replaces(enum path_kind kind)
{
	return kind == PATH_BIND_RO || kind == PATH_BIND_RW || kind == PATH_TMPFS;
}

/* A rule about the workspace itself and the line that chose the workspace: the later one wins. */
static int check_workspace(
	const struct policy *policy, const struct path_fact *f, struct error *e)
{
	enum path_kind kind = f->rule->kind;

	if (replaces(kind))
		return refuse_path(policy, f,
			"this is the workspace, and nothing else can be mounted over it",
			"name another workspace with --workspace", e);
	if (f->rule->source.layer < policy->workspace.source.layer)
		return 0;
	if (kind == PATH_HIDE)
		return refuse_path(policy, f, "the workspace is hidden",
			"name another workspace, or this one with --workspace", e);
	if (kind == PATH_PROTECT && policy->workspace_mode == WORKSPACE_DIRECT)
		return refuse_path(policy, f, "the workspace itself is protected",
			"use --workspace-mode ro, or overlay to keep the changes apart", e);
	return 0;
}

static bool makes_writable(const struct path_fact *f)
{
	return f->rule->kind == PATH_WRITE || f->rule->kind == PATH_BIND_RW;
}

/*
 * Whether @source is @own, or lies below it: at its own place, or at one where another mount shows
 * it. @ret_rest: the rest of @source.
 */
static bool is_shown_at(
	const struct facts *facts, const char *own, const char *source, const char **ret_rest)
{
	const char *rest = own ? path_below(own, source) : NULL;

	for (size_t i = 0; own && !rest && i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];

		if (f->same_as && f->rule->kind == PATH_HIDE && !strcmp(f->same_as, own))
			rest = path_below(f->path, source);
	}
	*ret_rest = rest;
	return rest;
}

/* Whether the path is, or lies in, another place whose records carrel believes. */
static bool is_records(const struct facts *facts, const char *source)
{
	for (size_t i = 0; i < facts->path_count; i++)
		if (facts->paths[i].rule->records && path_below(facts->paths[i].path, source))
			return true;
	return false;
}

/*
 * No tool may write what the host side will believe or remove. What *contains* such a place may be
 * made writable: the place is covered, and what leads there is pinned.
 */
static int check_writable(const struct policy *policy, const struct facts *facts,
	const struct path_fact *f, struct error *e)
{
	const char *source = f->source ? f->source : f->path;
	const char *below;

	if (path_below("/sys", source))
		return refuse_path(policy, f,
			"writing here changes the kernel and the devices of the whole machine",
			"it can be read as it is", e);
	if (is_shown_at(facts, facts->state_dir, source, &below) || is_records(facts, source))
		return refuse_path(policy, f,
			"the records of sessions lie here: what writes them makes carrel move and "
			"remove files",
			"name another directory, or another place for the records with "
			"XDG_STATE_HOME",
			e);
	if (is_shown_at(facts, facts->scratch_base, source, &below) &&
		(!*below || !strncmp(below, "carrel-", strlen("carrel-"))))
		return refuse_path(policy, f,
			"this is the scratch base, where other sessions have their scratch",
			"name a directory in it, or another base with --scratch-base", e);
	return 0;
}

int tree_check(const struct policy *policy, const struct facts *facts, struct error *e)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];
		enum path_kind kind = f->rule->kind;
		int r = 0;

		if (!f->exists && kind != PATH_TMPFS)
			continue;
		if (tree_is_own(facts, f) && kind != PATH_READ)
			r = refuse_path(policy, f,
				"the session has its own here, always the same",
				"/proc shows the session's processes; name single devices with `dev`",
				e);
		else if (!strcmp(f->path, "/") && kind != PATH_READ && kind != PATH_HIDE)
			r = refuse_path(policy, f,
				"the root directory can only be readable or hidden",
				"name the directories that are meant", e);
		else if (!strcmp(f->path, facts->workspace))
			r = check_workspace(policy, f, e);
		else if (makes_writable(f))
			r = check_writable(policy, facts, f, e);
		if (r < 0)
			return r;
	}
	return 0;
}
