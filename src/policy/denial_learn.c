/*
 * denial_learn.c - writes a policy that would have allowed what was refused. A person has to read it before anybody uses it.
 *
 * Runs in: carrel-policy, outside. Tools choose what is in it. A line takes effect only if a plan that was made with it still hides
 * what was hidden and protects what was protected; all others are remarks. The least comes first: what is read, what is written, calls, the network.
 */
#include <errno.h>
#include <string.h>

#include "base/name.h"
#include "plan/path.h"
#include "plan/surface.h"
#include "plan/tree_node.h"
#include "policy/denial.h"

extern char **environ;

/* From so many files of a directory on, the line names the directory; but never one that is less deep than this. */
enum { FILES_MOST = 3, DEPTH_LEAST = 2 };

enum rank { RANK_READ, RANK_WRITE, RANK_OTHER, RANK_CALL, RANK_NET, RANK_COUNT };

/* A line and what it is for. */
struct lesson {
	const char *line; /* of a policy */
	const char *setting, *value;
	enum rank rank;
	const char *doubt;  /* why it is a remark; NULL: it holds */
	const char *parent; /* of its path; NULL: it has none */
	bool merged;        /* it has become part of the line of its directory */
	const struct denial *first;
	size_t count; /* how many refusals it is for */
};

struct lessons {
	const struct denials *d;
	struct lesson *all;
	size_t count, room;
};

/* --- what may not be learned --------------------------------------------------------------------- */

/* Calls that reach the walls themselves, or the least tested parts of the kernel. */
static bool is_reaching(const char *call)
{
	static const char *const names[] = { "add_key", "bpf", "chroot", "clone", "clone3",
		"delete_module", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
		"init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp",
		"kexec_file_load", "kexec_load", "keyctl", "mount", "mount_setattr",
		"move_mount", "name_to_handle_at", "open_by_handle_at", "open_tree",
		"open_tree_attr", "perf_event_open", "pidfd_getfd", "pivot_root",
		"process_vm_writev", "request_key", "setns", "swapon", "umount2", "unshare",
		"userfaultfd" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(call, names[i]))
			return true;
	return false;
}

/* The filter judges this call by its arguments; a line that names the call would allow all of them. */
static bool depends(struct why *w, const char *call)
{
	struct why_answer a = { .kind = WHY_CALL, .subject = call };
	struct error e = { 0 };

	return why_call(w, w->p, call, &a, &e) < 0 || !strcmp(a.seen, "depends");
}

static const char *doubt_call(struct why *w, const struct denial *d)
{
	if (d->entry->errnum == ENOSYS)
		return "a program takes this for an older kernel, and most do without it";
	if (is_reaching(d->call))
		return "it reaches the walls themselves";
	return depends(w, d->call)
		? "it is refused by its arguments, and this line would allow all of them"
		: NULL;
}

static bool is_rule_of(const struct path_fact *f, enum path_kind kind)
{
	return f->rule->kind == kind;
}

/* Whether the plan @after hides or protects @path at least as well as @before does. */
static bool is_still_kept(
	const struct prepared *before, const struct prepared *after, const char *path)
{
	struct surface was, is;

	plan_surface(&before->plan, path, &was);
	plan_surface(&after->plan, path, &is);
	return (was.read || !is.read) && (was.write || !is.write) &&
		(!was.quarantined || is.quarantined || !is.write);
}

/* Whether the plan @after still hides or protects everything that @before does: each path of its lines, and each derived from them. */
static bool still_kept(const struct prepared *before, const struct prepared *after)
{
	const struct plan *plan = &before->plan;
	bool kept = true;

	for (size_t i = 0; i < plan->node_count && kept; i++)
		if (plan->nodes[i].kind == NODE_HIDE || plan->nodes[i].kind == NODE_PROTECT)
			kept = is_still_kept(before, after, plan->nodes[i].path);
	for (size_t i = 0; i < before->facts.path_count && kept; i++)
		if (is_rule_of(&before->facts.paths[i], PATH_HIDE) ||
			is_rule_of(&before->facts.paths[i], PATH_PROTECT))
			kept = is_still_kept(before, after, before->facts.paths[i].path);
	for (size_t i = 0; i < plan->absent_count && kept; i++)
		kept = is_still_kept(before, after, plan->absents[i].path);
	return kept;
}

/* Make a plan with that line. NULL, or why the line is doubtful. */
static const char *doubt_plan(struct why *w, const struct lesson *l)
{
	const char **words =
		arena_array(&w->arena, (size_t)w->setting_count + 2, sizeof(*words));
	struct prepared *p = NULL;
	struct error e = { 0 };
	int count = w->setting_count;

	if (!words)
		return "there was no memory to try it";
	memcpy(words, w->settings, (size_t)count * sizeof(*words));
	words[count++] = arena_format(&w->arena, "--%s=%s", l->setting, l->value);
	int r = prepare_begin(&p, &e);
	if (r < 0)
		return "there was no memory to try it";
	r = prepare_with(p, NULL, PREPARE_DRY, count, words, 0, (const char *const *)environ,
		NULL, 0, &e);
	const char *doubt = r < 0 ? "a session with it would not start"
		: still_kept(w->p, p)
		? NULL
		: "something that is hidden or protected would fall to it";
	prepare_free(p);
	return doubt;
}

/* Whether it is hidden or protected, or lies in something that is. */
static bool is_kept_place(
	struct why *w, const struct why_answer *a, enum node_kind kind, const char *surface)
{
	const struct plan *plan = &w->p->plan;

	if (a->surface && !strcmp(a->surface, surface))
		return true;
	for (size_t i = 0; a->path && i < plan->node_count; i++)
		if (plan->nodes[i].kind == kind && path_below(plan->nodes[i].path, a->path))
			return true;
	for (size_t i = 0; a->path && i < w->p->facts.path_count; i++)
		if (is_rule_of(&w->p->facts.paths[i],
			    kind == NODE_HIDE ? PATH_HIDE : PATH_PROTECT) &&
			path_below(w->p->facts.paths[i].path, a->path))
			return true;
	return false;
}

static const char *doubt_of(struct why *w, const struct denial *d, const struct lesson *l)
{
	const struct why_answer *a = &d->answer;

	if (l->rank == RANK_CALL)
		return doubt_call(w, d);
	if (is_kept_place(w, a, NODE_HIDE, "hidden"))
		return "this is hidden";
	if (is_kept_place(w, a, NODE_PROTECT, "protected"))
		return "this is protected";
	if (!l->value)
		return "this makes a wall weaker";
	return doubt_plan(w, l);
}

/* --- lines --------------------------------------------------------------------------------------- */

static enum rank rank_of(const char *setting)
{
	if (!strcmp(setting, "read"))
		return RANK_READ;
	if (!strcmp(setting, "write"))
		return RANK_WRITE;
	if (!strcmp(setting, "net"))
		return RANK_NET;
	return !strcmp(setting, "syscall") || !strcmp(setting, "nested") ? RANK_CALL
									 : RANK_OTHER;
}

static struct lesson *find(struct lessons *all, const char *line)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->all[i].line, line))
			return &all->all[i];
	return NULL;
}

static int learn_one(struct lessons *all, const struct denial *d)
{
	const struct why_change *c = d->change;
	struct why *w = all->d->w;

	if (!c || !c->line || !c->setting)
		return 0;
	struct lesson *known = find(all, c->line);
	if (known) {
		known->count++;
		return 0;
	}
	if (all->count == all->room)
		return -ENOBUFS;
	struct lesson *l = &all->all[all->count++];
	*l = (struct lesson){ .line = c->line,
		.setting = c->setting,
		.value = c->value,
		.rank = rank_of(c->setting),
		.first = d,
		.count = 1 };
	l->doubt = doubt_of(w, d, l);
	if (l->rank == RANK_READ || l->rank == RANK_WRITE) {
		size_t length = path_parent_length(l->value);

		l->parent = arena_copy(&w->arena, l->value, length);
		if (!l->parent)
			return -ENOMEM;
	}
	return 0;
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += path[0] == '/' && path[1] && path[1] != '/';
	return depth;
}

static bool is_beside(const struct lesson *a, const struct lesson *b)
{
	return !a->doubt && !a->merged && a->rank == b->rank && a->parent &&
		!strcmp(a->parent, b->parent);
}

/* Replace many files of one directory by the directory, if that opens nothing hidden or protected. */
static int generalise(struct lessons *all, size_t at)
{
	struct why *w = all->d->w;
	const struct lesson *l = &all->all[at];
	size_t beside = 0;

	if (l->doubt || l->merged || !l->parent || depth_of(l->parent) < DEPTH_LEAST)
		return 0;
	for (size_t i = 0; i < all->count; i++)
		beside += is_beside(&all->all[i], l);
	if (beside < FILES_MOST || all->count == all->room)
		return 0;
	struct lesson whole = { .setting = l->setting,
		.value = l->parent,
		.line = arena_format(&w->arena, "%s %s", l->setting, l->parent),
		.rank = l->rank,
		.first = l->first };
	if (!whole.line)
		return -ENOMEM;
	if (strpbrk(l->parent, " \t\"'\\#$") || doubt_plan(w, &whole))
		return 0;
	const struct lesson one = *l;
	for (size_t i = 0; i < all->count; i++)
		if (is_beside(&all->all[i], &one)) {
			all->all[i].merged = true;
			whole.count += all->all[i].count;
		}
	all->all[all->count++] = whole;
	return 0;
}

/* Leave out a line if another line says the same for a directory above. */
static void leave_out(struct lessons *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct lesson *l = &all->all[i];

		for (size_t j = 0; j < all->count && l->parent && !l->doubt && !l->merged;
			j++) {
			struct lesson *o = &all->all[j];

			if (i == j || o->doubt || o->merged || o->rank > RANK_WRITE ||
				o->rank < l->rank || !path_below(o->value, l->value))
				continue;
			l->merged = true;
			o->count += l->count;
		}
	}
}

/* --- the text ------------------------------------------------------------------------------------ */

static void put(struct writer *out, const char *text)
{
	writer_visible(out, text, strlen(text), "");
}

static void put_evidence(struct writer *out, const struct lesson *l)
{
	const struct denial *d = l->first;
	const char *name = name_errno(d->entry->errnum);

	writer_text(out, "\n# ");
	put(out, d->entry->name[0] ? d->entry->name : "?");
	writer_format(out, ": %s ", d->verb);
	put(out, d->what);
	writer_format(out, ", %s, %llu %s", name ? name : "refused",
		(unsigned long long)d->times, d->times == 1 ? "time" : "times");
	if (l->count > 1)
		writer_format(out, "; and %zu more like it", l->count - 1);
	writer_text(out, "\n");
	if (d->answer.line_count && d->answer.lines[0].place) {
		writer_text(out, "# refused by: ");
		put(out, d->answer.lines[0].text ? d->answer.lines[0].text : "");
		writer_text(out, "  (");
		put(out, d->answer.lines[0].place);
		writer_text(out, ")\n");
	}
}

static void put_lesson(struct writer *out, const struct lesson *l)
{
	put_evidence(out, l);
	if (l->doubt)
		writer_format(out, "# not without thought: %s\n# ", l->doubt);
	put(out, l->line);
	writer_text(out, "\n");
}

/* Write a remark about what no line allows. */
static void put_fixed(struct writer *out, const struct denial *d)
{
	const struct lesson l = { .first = d, .count = 1 };

	if (d->change && d->change->line)
		return;
	put_evidence(out, &l);
	writer_text(out, "# no line allows this");
	if (d->change && d->change->locked) {
		writer_text(out, ": ");
		put(out, d->change->locked);
	}
	writer_text(out, "\n");
}

int denials_learn(const struct denials *d, struct writer *out)
{
	struct lessons all = { .d = d, .room = 2 * d->count + 1 };
	int r = 0;

	all.all = arena_array(&d->w->arena, all.room, sizeof(*all.all));
	if (!all.all)
		return -ENOMEM;
	for (size_t i = 0; i < d->count && r >= 0; i++)
		r = learn_one(&all, &d->all[i]);
	for (size_t i = 0; i < all.count && r >= 0; i++)
		r = generalise(&all, i);
	if (r < 0)
		return r;
	leave_out(&all);
	writer_text(out,
		"# Learned by `carrel run --learn` from what one run was refused. Read it before you use it:\n"
		"# each line gives every command with this policy what it says. `carrel policy check FILE`.\n");
	for (int rank = 0; rank < RANK_COUNT; rank++)
		for (size_t i = 0; i < all.count; i++)
			if ((int)all.all[i].rank == rank && !all.all[i].merged)
				put_lesson(out, &all.all[i]);
	for (size_t i = 0; i < d->count; i++)
		put_fixed(out, &d->all[i]);
	return writer_finish(out);
}
