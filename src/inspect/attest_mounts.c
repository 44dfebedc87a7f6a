/*
 * attest_mounts.c - see attest_mounts.h.
 *
 * Runs in: carrel-inspect. PURE.
 *
 * A mount of the session is one of four kinds: planned (it is seen at the path of an attach
 * operation); below a planned one that is recursive; the host's own (only if "/" is the host's,
 * and then sealed); or one that nobody asked for.
 */
#include "inspect/attest_mounts.h"

#include <stdio.h>
#include <string.h>

#include "plan/path.h"

struct slot_seen {
	bool known;
	dev_t dev;
};

struct judge {
	struct findings *f;
	const struct plan *plan;
	const char *session;
	const struct mount_table *host, *seen;
	bool (*is_gone)(const char *path);
	const struct op **planned; /* per mount of `seen`: its attach operation, or NULL */
	struct slot_seen *picked;  /* per slot: the device of what was picked from it */
	bool sealed;               /* "/" is the host's own */
	size_t host_mounts, below;
};

static const char *rename_path(struct judge *j, const char *path)
{
	const char *renamed = path
		? attest_rename(j->f->arena, path, j->plan->facts->session_name, j->session)
		: NULL;

	if (path && !renamed)
		j->f->overflow = true;
	return renamed ? renamed : "";
}

const char *attest_rename(struct arena *a, const char *text, const char *from, const char *to)
{
	size_t length = from ? strlen(from) : 0;

	if (!length || strlen(to) != length || !strstr(text, from))
		return text;
	char *copy = arena_copy(a, text, strlen(text));
	for (char *at = copy; at && (at = strstr(at, from)); at += length)
		memcpy(at, to, length);
	return copy;
}

/* The operation that filled a slot. */
static const struct op *find_maker(const struct plan *plan, uint16_t slot)
{
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct op *op = &plan->ops[i];
		bool makes = op->kind == OP_CLONE || op->kind == OP_TMPFS ||
			op->kind == OP_PICK || op->kind == OP_OVERLAY || op->kind == OP_PROC ||
			op->kind == OP_DEVPTS;

		if (makes && op->slot == slot)
			return op;
	}
	return NULL;
}

static int op_number(const struct judge *j, const struct op *op)
{
	return (int)(op - j->plan->ops);
}

static void wrong(struct judge *j, const struct mount *m, const char *what)
{
	char flags[80];

	mount_flags_text(m->flags, flags, sizeof(flags));
	findings_add(j->f, VERDICT_FAIL, "mount", m->target, "%s: %s of %s is there, %s", what,
		m->root, m->type, flags);
}

/* --- what the plan demands of a mount --------------------------------------------------------- */

static unsigned flags_demanded(const struct op *maker)
{
	unsigned flags = MOUNT_NOSUID;

	if (maker->flags & OPF_RDONLY)
		flags |= MOUNT_RDONLY;
	if ((maker->flags & OPF_NOEXEC) || maker->kind == OP_PROC || maker->kind == OP_DEVPTS)
		flags |= MOUNT_NOEXEC;
	if (!(maker->flags & OPF_DEV) && maker->kind != OP_DEVPTS)
		flags |= MOUNT_NODEV;
	if (maker->kind == OP_CLONE && (maker->flags & OPF_IDMAP))
		flags |= MOUNT_IDMAPPED;
	return flags;
}

/* The names of the demanded flags that a mount lacks, then those it must not have. NULL: none. */
static const char *flags_wrong(struct judge *j, const struct mount *m, unsigned demanded)
{
	char missing[80], text[200];
	unsigned lacks = demanded & ~m->flags;

	if (m->flags & MOUNT_SHARED)
		return "it is not private";
	if ((m->flags & MOUNT_IDMAPPED) && !(demanded & MOUNT_IDMAPPED))
		return "it is idmapped, which was not planned";
	if (!lacks)
		return NULL;
	/* "rw" comes first if read-only is not among the missing flags. */
	mount_flags_text(lacks, missing, sizeof(missing));
	(void)snprintf(
		text, sizeof(text), "it lacks %s", missing + (lacks & MOUNT_RDONLY ? 0 : 3));
	const char *copy = arena_copy(j->f->arena, text, strlen(text));
	if (!copy)
		j->f->overflow = true;
	return copy ? copy : "it lacks flags";
}

/* The directory of its file system that the mount @m shows at @path. */
static const char *root_below(struct judge *j, const struct mount *m, const char *path)
{
	const char *rest = path_below(m->target, path);
	const char *text;

	if (!rest || !*rest)
		return m->root;
	text = arena_format(j->f->arena, "%s/%s", strcmp(m->root, "/") ? m->root : "", rest);
	if (!text)
		j->f->overflow = true;
	return text ? text : "";
}

static const char *clone_wrong(struct judge *j, const struct mount *m, const struct op *maker)
{
	const char *path = rename_path(j, maker->path);
	const struct mount *source = mount_table_at(j->host, path);

	if (!source)
		return "its source is on no mount of the host";
	if (source->dev != m->dev || strcmp(root_below(j, source, path), m->root) != 0)
		return "it shows something else than its source";
	if (!(maker->flags & OPF_RDONLY) && (m->flags & MOUNT_RDONLY) &&
		!(source->flags & MOUNT_RDONLY))
		return "it is read-only, but was planned writable";
	return NULL;
}

static bool dev_of_host(const struct judge *j, dev_t dev)
{
	for (size_t i = 0; i < j->host->count; i++)
		if (j->host->items[i].dev == dev)
			return true;
	return false;
}

static const char *new_wrong(
	const struct judge *j, const struct mount *m, const char *type, const char *root)
{
	if (strcmp(m->type, type) != 0)
		return "its file system is of another type";
	if (strcmp(m->root, root) != 0)
		return "it shows another part of its file system";
	if (dev_of_host(j, m->dev))
		return "it is one of the host's, not the session's own";
	return NULL;
}

/* Several mounts show parts of one slot: all of them must be of the same file system. */
static const char *pick_wrong(struct judge *j, const struct mount *m, const struct op *maker)
{
	const char *root = arena_format(j->f->arena, "/%s", maker->path);
	struct slot_seen *from = &j->picked[maker->from < PLAN_SLOT_MAX ? maker->from : 0];

	if (!root) {
		j->f->overflow = true;
		return "memory ran out";
	}
	if (from->known && from->dev != m->dev)
		return "it is not of the session's skeleton";
	*from = (struct slot_seen){ true, m->dev };
	return new_wrong(j, m, "tmpfs", root);
}

static const char *source_wrong(struct judge *j, const struct mount *m, const struct op *maker)
{
	switch ((unsigned)maker->kind) {
	case OP_CLONE:
		return clone_wrong(j, m, maker);
	case OP_PICK:
		return pick_wrong(j, m, maker);
	case OP_TMPFS:
		return new_wrong(j, m, "tmpfs", "/");
	case OP_OVERLAY:
		return new_wrong(j, m, "overlay", "/");
	case OP_PROC:
		return new_wrong(j, m, "proc", "/");
	case OP_DEVPTS:
		return new_wrong(j, m, "devpts", "/");
	}
	return "no operation makes it";
}

/* --- each of the plan's, then each of the session's ------------------------------------------- */

static void judge_planned(struct judge *j, const struct op *attach, const char *path)
{
	const struct op *maker = find_maker(j->plan, attach->slot);
	const struct mount *m = mount_table_at(j->seen, path);
	char flags[80];

	if (!maker) {
		findings_add(j->f, VERDICT_FAIL, "mount", path, "operation %d attaches nothing",
			op_number(j, attach));
		return;
	}
	if (!m || strcmp(m->target, path) != 0) {
		bool gone = (attach->flags & OPF_OPTIONAL) && j->is_gone(path);

		findings_add(j->f, gone ? VERDICT_NOTE : VERDICT_FAIL, "mount", path,
			gone ? "operation %d: it is gone on the host, and needs no cover (%s)"
			     : "operation %d: nothing is mounted here (%s)",
			op_number(j, attach),
			maker->why ? maker->why : plan_op_name(maker->kind));
		return;
	}
	j->planned[m - j->seen->items] = attach;
	const char *bad = flags_wrong(j, m, flags_demanded(maker));
	if (!bad)
		bad = source_wrong(j, m, maker);
	if (bad) {
		wrong(j, m, bad);
		return;
	}
	mount_flags_text(m->flags, flags, sizeof(flags));
	findings_add(j->f, VERDICT_OK, "mount", path, "%s, %s (operation %d: %s)", m->type,
		flags, op_number(j, attach),
		maker->why ? maker->why : plan_op_name(maker->kind));
}

/* The planned mount that @m stands on, some steps up; NULL: it stands on the host's. */
static const struct mount *find_planned(const struct judge *j, const struct mount *m)
{
	for (size_t left = j->seen->count; m && left; left--) {
		if (j->planned[m - j->seen->items])
			return m;
		m = mount_table_parent(j->seen, m);
	}
	return NULL;
}

static bool host_has(const struct judge *j, const struct mount *m, const char *target)
{
	for (size_t i = 0; i < j->host->count; i++) {
		const struct mount *h = &j->host->items[i];

		if (h->dev == m->dev && !strcmp(h->root, m->root) && !strcmp(h->target, target))
			return true;
	}
	return false;
}

/* A mount of the host that came along with a directory that is shown. */
static void judge_below(struct judge *j, const struct mount *m, const struct mount *up)
{
	const struct op *maker = find_maker(j->plan, j->planned[up - j->seen->items]->slot);
	const char *rest = path_below(up->target, m->target);

	if (!maker || maker->kind != OP_CLONE || !(maker->flags & OPF_RECURSIVE) || !rest) {
		wrong(j, m, "no operation put this here");
		return;
	}
	const char *source = rename_path(j, maker->path);
	const char *there = *rest
		? arena_format(j->f->arena, "%s/%s", strcmp(source, "/") ? source : "", rest)
		: source;
	if (!there)
		j->f->overflow = true;
	const char *bad = flags_wrong(j, m, flags_demanded(maker));
	if (!bad && (!there || !host_has(j, m, there)))
		bad = "the host has no such mount below the source";
	if (bad)
		wrong(j, m, bad);
	else
		j->below++;
}

static void judge_host(struct judge *j, const struct mount *m)
{
	const char *bad = j->sealed ? NULL : "no operation put this here";

	if (!bad)
		bad = flags_wrong(j, m, MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV);
	if (!bad && !host_has(j, m, m->target))
		bad = "neither the plan nor the host has it";
	if (bad)
		wrong(j, m, bad);
	else
		j->host_mounts++;
}

static void judge_rest(struct judge *j)
{
	for (size_t i = 0; i < j->seen->count; i++) {
		const struct mount *m = &j->seen->items[i];
		const struct mount *up = j->planned[i] ? NULL : find_planned(j, m);

		if (j->planned[i])
			continue;
		if (up)
			judge_below(j, m, up);
		else
			judge_host(j, m);
	}
	if (j->host_mounts)
		findings_add(j->f, VERDICT_OK, "host-mounts", NULL,
			"%zu mount%s of the host: all read-only, nosuid, nodev, private",
			j->host_mounts, j->host_mounts == 1 ? "" : "s");
	if (j->below)
		findings_add(j->f, VERDICT_OK, "mounts-below", NULL,
			"%zu mount%s below what is shown: flags as planned, private", j->below,
			j->below == 1 ? "" : "s");
}

void attest_mounts(struct findings *f, const struct plan *plan, const char *session,
	const struct mount_table *host, const struct mount_table *seen,
	bool (*is_gone)(const char *path))
{
	struct judge j = { .f = f,
		.plan = plan,
		.session = session,
		.host = host,
		.seen = seen,
		.is_gone = is_gone };

	j.planned = arena_array(f->arena, seen->count + 1, sizeof(*j.planned));
	j.picked = arena_array(f->arena, PLAN_SLOT_MAX, sizeof(*j.picked));
	if (!j.planned || !j.picked) {
		f->overflow = true;
		return;
	}
	if (!seen->count)
		findings_add(f, VERDICT_FAIL, "mount", "/", "the session has no mounts");
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct op *op = &plan->ops[i];

		if (op->kind == OP_ROOT_SEAL)
			j.sealed = true;
		if (op->kind == OP_ROOT_NEW)
			judge_planned(&j, op, "/");
		if (op->kind == OP_ATTACH)
			judge_planned(&j, op, rename_path(&j, op->path));
	}
	judge_rest(&j);
}
