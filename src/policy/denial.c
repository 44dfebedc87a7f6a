/*
 * denial.c - see denial.h: which refusals came from a wall, and what explains each.
 *
 * Runs in: carrel-policy, outside.
 */
#include "policy/denial.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "plan/path.h"

extern char **environ;

/* Each entry takes several plans: stop after this time. The process that prints waits longer than that. */
enum { PATIENCE_MS = 6000 };

/* --- one entry ---------------------------------------------------------------------------------- */

static const struct why_change *change_for(const struct why_answer *a, const char *aim)
{
	for (size_t i = 0; i < a->change_count; i++)
		if (!strcmp(a->changes[i].aim, aim))
			return &a->changes[i];
	return NULL;
}

static bool is_kept_away(const struct why_answer *a)
{
	return a->surface &&
		(!strcmp(a->surface, "hidden") || !strcmp(a->surface, "protected"));
}

/*
 * Whether the session's plan would refuse this, and a line of the policy or a wall is the reason. If the file's own mode
 * refuses it, no setting allows it.
 */
static bool is_refused(struct denial *d, enum why_try try, const char *aim)
{
	const struct why_answer *a = &d->answer;
	int errnum = d->entry->errnum, outcome = a->outcome[try];

	d->change = change_for(a, aim);
	/* No route leads to an address that no line of `net allow` names. */
	if (try == TRY_CONNECT && errnum == ENETUNREACH && !strcmp(a->seen, "denied"))
		return d->change != NULL;
	if (outcome != errnum && !(errnum == EBUSY && outcome > 0) &&
		!(try == TRY_CONNECT && errnum == ENOENT && !a->exists))
		return false;
	return d->change || is_kept_away(a);
}

/* If the file is not writable on the host either, no wall of carrel is the reason. */
static bool is_hosts_read_only(struct why *w, const char *path)
{
	char *at = arena_copy(&w->arena, path, strlen(path));
	struct statvfs st;

	while (at && statvfs(at, &st) < 0 && at[1])
		at[path_parent_length(at)] = '\0';
	return !at || (st.f_flag & ST_RDONLY);
}

static bool is_only_readable(const struct denial *d)
{
	const char *surface = d->answer.surface;

	return d->entry->errnum == EROFS && surface && !strcmp(surface, "readable");
}

/*
 * Found out without a plan: the caller has no right to write that file, or to make one there, and the command has only the
 * caller's rights. A machine has thousands of those, and each would cost some plans.
 */
static bool is_closed_by_mode(struct why *w, const struct denial *d)
{
	const struct why_answer *a = &d->answer;
	char *at = arena_copy(&w->arena, a->path, strlen(a->path));

	if (!at || d->entry->attempt != EXPLAIN_WRITE || !is_only_readable(d) ||
		w->p->facts.privileged || !a->line_count || !a->lines[0].text ||
		strncmp(a->lines[0].text, "read ", 5) != 0)
		return false;
	if (!a->exists)
		at[path_parent_length(at)] = '\0';
	return faccessat(AT_FDCWD, *at ? at : "/", W_OK, AT_EACCESS) < 0 && errno == EACCES;
}

/* The wall has refused it, and without the wall the mode of the file would have: no setting allows it. */
static bool is_refused_twice(struct why *w, struct denial *d)
{
	struct why_answer *a = &d->answer;

	if (!is_only_readable(d) || is_hosts_read_only(w, a->path))
		return false;
	a->because = "read-only in a session; outside, its owner and mode refuse it as well";
	return true;
}

/* To remove a name is to write its directory, unless the thing with that name is itself protected. */
static int ask_parent(struct why *w, struct denial *d, struct error *e)
{
	size_t length = path_parent_length(d->what);
	const char *parent = arena_copy(&w->arena, d->what, length ? length : 1);
	struct why_answer a = { .kind = WHY_PATH, .subject = parent };
	int r = parent ? why_path(w, w->p, parent, &a, e) : error_no_memory(e, "plan");

	if (r < 0)
		return r;
	r = why_changes(w, parent, &a, e);
	if (r < 0)
		return r;
	d->answer = a;
	return 0;
}

/* A tool wanted to make something in a directory that the session does not see. */
static int judge_directory(struct why *w, struct denial *d, bool *ret, struct error *e)
{
	int r = ask_parent(w, d, e);

	d->change = r >= 0 ? change_for(&d->answer, "write") : NULL;
	*ret = d->change && !d->answer.exists;
	return r == -ENOMEM ? r : 0;
}

/* Two paths that the plan treats alike. */
static bool is_alike(const struct why_answer *a, const struct why_answer *b)
{
	return a->kind == WHY_PATH && a->surface && b->surface &&
		!strcmp(a->surface, b->surface) && !strcmp(a->seen, b->seen) && a->line_count &&
		b->line_count && !strcmp(a->lines[0].place, b->lines[0].place);
}

static bool is_beside(const char *a, const char *b)
{
	size_t length = path_parent_length(a);

	return length == path_parent_length(b) && !memcmp(a, b, length);
}

/* Reuse what was found out for an earlier entry, if it holds for this path as well: to find it out takes several plans. */
static bool is_known_change(const struct denials *all, struct denial *d, const char *aim)
{
	struct why_answer *a = &d->answer;

	for (size_t i = all->count; i > 0; i--) {
		const struct denial *o = &all->all[i - 1];
		const struct why_change *c = o->change;

		if (!is_alike(&o->answer, a))
			continue;
		if (c && c->value && c->value[0] == '/' && !strcmp(c->aim, aim) &&
			path_below(c->value, a->path)) {
			a->changes[a->change_count++] = *c;
			return true;
		}
		/* Nothing can be made in that directory, under no name. */
		if (!c && !a->exists && !o->answer.exists && is_beside(o->answer.path, a->path))
			return true;
	}
	return false;
}

/* Say what the tool tried in the words of `carrel why`. */
static const struct attempt {
	const char *aim;
	enum why_try try;
} attempts[] = {
	[EXPLAIN_READ] = { "read", TRY_READ },
	[EXPLAIN_WRITE] = { "write", TRY_WRITE },
	[EXPLAIN_REMOVE] = { "write", TRY_WRITE },
	[EXPLAIN_CONNECT] = { "connect", TRY_CONNECT },
};

static int judge_attempt(struct why *w, struct denial *d, bool *ret, struct error *e)
{
	const struct attempt *of = &attempts[d->entry->attempt];
	struct why_answer *a = &d->answer;
	int r = 0;

	d->verb = of->aim;
	if (d->entry->attempt == EXPLAIN_WRITE && !a->exists) {
		d->verb = "make";
		*ret = is_refused(d, TRY_MAKE, "make") || is_refused_twice(w, d);
		return *ret || d->entry->errnum != ENOENT ? 0 : judge_directory(w, d, ret, e);
	}
	*ret = is_refused(d, of->try, of->aim);
	if (d->entry->attempt == EXPLAIN_REMOVE) {
		d->verb = "remove";
		if (!*ret || !is_kept_away(a)) {
			r = ask_parent(w, d, e);
			*ret = r >= 0 && is_refused(d, TRY_WRITE, of->aim);
		}
	}
	*ret = *ret || (r >= 0 && is_refused_twice(w, d));
	return r;
}

static int judge_path(struct denials *all, struct denial *d, bool *ret, struct error *e)
{
	struct why *w = all->w;
	struct why_answer *a = &d->answer;

	if (d->entry->attempt >= sizeof(attempts) / sizeof(attempts[0]))
		return 0;
	a->kind = WHY_PATH;
	a->subject = d->what;
	int r = why_path(w, w->p, d->what, a, e);
	const char *aim = d->entry->attempt == EXPLAIN_WRITE && !a->exists
		? "make"
		: attempts[d->entry->attempt].aim;
	if (r == 0 && !is_closed_by_mode(w, d) && !is_known_change(all, d, aim))
		r = why_changes(w, d->what, a, e);
	if (r >= 0)
		r = judge_attempt(w, d, ret, e);
	if (r == -ENOMEM)
		return r;
	/* Nobody can say what refused that: a path that leads nowhere, a file that is gone. */
	*e = (struct error){ 0 };
	*ret = *ret && r >= 0;
	return 0;
}

static int judge_host(struct why *w, struct denial *d, bool *ret, struct error *e)
{
	struct why_answer *a = &d->answer;

	a->kind = WHY_HOST;
	a->subject = d->what;
	d->verb = "connect";
	int r = why_host(w, w->p, d->what, a, e);
	if (r >= 0)
		r = why_changes(w, d->what, a, e);
	*ret = r >= 0 && is_refused(d, TRY_CONNECT, "connect");
	return r;
}

static bool is_filters(const struct denials *all, const struct denial *d)
{
	return why_call_outcome(&all->filter, all->arch, d->entry->number, d->entry->args,
		       NULL) == d->entry->errnum;
}

/* "socket(0x10, 0x3, 0x0)"; an argument that is an address is left out. */
static const char *show_call(struct why *w, const struct denial *d)
{
	enum { SHOWN = 3 };
	char text[SHOWN][24];

	for (int i = 0; i < SHOWN; i++) {
		unsigned long long value = d->entry->args[i];

		(void)snprintf(text[i], sizeof(text[i]), value >> 32 ? "..." : "0x%llx", value);
	}
	return arena_format(
		&w->arena, "%s(%s, %s, %s)", d->answer.subject, text[0], text[1], text[2]);
}

static int judge_call(const struct denials *all, struct denial *d, bool *ret, struct error *e)
{
	struct why *w = all->w;

	*ret = is_filters(all, d);
	if (!*ret)
		return 0;
	d->verb = "call";
	int r = why_call_made(w, w->p, d->entry->number, d->entry->args, &d->answer, e);
	if (r < 0)
		return r;
	d->what = show_call(w, d);
	r = d->what ? why_changes(w, d->answer.subject, &d->answer, e)
		    : error_no_memory(e, "plan");
	d->change = change_for(&d->answer, "call");
	return r;
}

/* --- all of them -------------------------------------------------------------------------------- */

/* The same thing was refused by another call, or with other arguments: by the same line. */
static struct denial *find_same(struct denials *all, const struct denial *d)
{
	for (size_t i = 0; i < all->count; i++) {
		struct denial *o = &all->all[i];

		if (o->answer.kind != d->answer.kind || o->entry->errnum != d->entry->errnum ||
			strcmp(o->verb, d->verb) != 0)
			continue;
		if (d->answer.kind != WHY_CALL && !strcmp(o->what, d->what))
			return o;
		if (d->answer.kind == WHY_CALL && o->entry->number == d->entry->number &&
			o->answer.line_count && d->answer.line_count &&
			!strcmp(o->answer.lines[0].place, d->answer.lines[0].place))
			return o;
	}
	return NULL;
}

static int judge(struct denials *all, struct denial *d, bool *ret, struct error *e)
{
	char name[64];

	*ret = false;
	if (d->entry->kind == EXPLAIN_CALL)
		return judge_call(all, d, ret, e);
	/* The filter refused this call whatever its path: that has an entry of its own. */
	if (is_filters(all, d))
		return 0;
	filter_name((uint32_t)d->entry->number, all->arch, name, sizeof(name));
	d->call = arena_copy(&all->w->arena, name, strlen(name));
	if (!d->call)
		return error_no_memory(e, "plan");
	return d->entry->kind == EXPLAIN_HOST ? judge_host(all->w, d, ret, e)
					      : judge_path(all, d, ret, e);
}

/*
 * An option of `carrel exec` has refused it, by a tighter view for that execution. No setting of the session allows it,
 * and the option has no other value.
 */
static void tell_view(struct denial *d)
{
	struct why_answer *a = &d->answer;
	const bool workspace = (d->entry->view & VIEW_WORKSPACE_RO) && d->change &&
		d->change->setting && !strcmp(d->change->setting, "workspace-mode");
	const bool net = (d->entry->view & VIEW_NET_NONE) && a->line_count &&
		!strcmp(a->lines[0].place, "command line: --net");

	if (!workspace && !net)
		return;
	a->lines[0] = (struct why_line){ .text = workspace ? "workspace-mode ro" : "net none",
		.place = workspace ? "carrel exec: --workspace-mode" : "carrel exec: --net" };
	a->line_count = 1;
	a->changes[0] = (struct why_change){ .aim = d->verb,
		.locked = workspace
			? "leave out --workspace-mode ro, with which this was executed"
			: "leave out --net none, with which this was executed" };
	a->change_count = 1;
	d->change = &a->changes[0];
}

static int add_entry(struct denials *all, const struct explain_entry *entry, struct error *e)
{
	struct denial d = { .entry = entry, .times = entry->times };
	bool refused;

	d.what = arena_copy(&all->w->arena, entry->text, entry->length);
	if (!d.what)
		return error_no_memory(e, "plan");
	int r = judge(all, &d, &refused, e);
	if (r < 0 || !refused)
		return r;
	if (entry->view)
		tell_view(&d);
	if (!d.call)
		d.call = d.answer.subject;
	struct denial *same = find_same(all, &d);
	if (same) {
		same->times += d.times;
		return 0;
	}
	struct denial *to = &all->all[all->count++];
	*to = d;
	if (d.change) /* it pointed into `d` */
		to->change = &to->answer.changes[d.change - d.answer.changes];
	return 0;
}

/* Check the entry: tools may have written it, if they took over the observer. */
static bool is_sound(const struct explain_entry *entry)
{
	return entry->length <= EXPLAIN_TEXT_MAX && entry->errnum > 0 && entry->errnum < 4096 &&
		entry->number >= 0 && !memchr(entry->text, '\0', entry->length) &&
		memchr(entry->name, '\0', sizeof(entry->name)) &&
		(entry->kind == EXPLAIN_CALL || entry->length > 0) &&
		(entry->kind != EXPLAIN_PATH || entry->text[0] == '/');
}

/*
 * Let @w be about the session with the options that make @view. The texts of the answers lie in the plans, which stay until the
 * program ends. If no such plan can be made now, the session's own is used.
 */
static int take_view(struct why *w, unsigned view, struct error *e)
{
	const size_t count = (size_t)w->setting_count;
	const char **words = arena_array(&w->arena, count + 4, sizeof(*words));
	struct prepared *p = NULL;
	struct error refused = { 0 };
	int used = w->setting_count;

	if (!words)
		return error_no_memory(e, "plan");
	if (count)
		memcpy(words, w->settings, count * sizeof(*words));
	if (view & VIEW_WORKSPACE_RO) {
		words[used++] = "--workspace-mode";
		words[used++] = "ro";
	}
	if (view & VIEW_NET_NONE) {
		words[used++] = "--net";
		words[used++] = "none";
	}
	int r = prepare_begin(&p, e);
	if (r < 0)
		return r;
	p->lines = w->p->lines;
	r = prepare_with(p, NULL, PREPARE_DRY, used, words, 0, (const char *const *)environ,
		NULL, 0, &refused);
	if (r < 0) {
		prepare_free(p);
		return 0;
	}
	w->p = p;
	w->settings = words;
	w->setting_count = used;
	return 0;
}

static bool has_view(const struct explain_board *board, uint32_t count, unsigned view)
{
	for (uint32_t i = 0; i < count; i++)
		if (board->entries[i].view == view)
			return true;
	return false;
}

/* Find what was refused in one view, the session's own (0) or a tighter one. */
static int find_in_view(struct denials *all, const struct explain_board *board, uint32_t count,
	unsigned view, int64_t until_ns, struct error *e)
{
	struct why *w = all->w;
	struct prepared *const p = w->p;
	const char *const *settings = w->settings;
	const int setting_count = w->setting_count;
	int r = view ? take_view(w, view, e) : 0;

	for (uint32_t i = 0; i < count && r >= 0; i++) {
		if (board->entries[i].view != view)
			continue;
		if (clock_now_ns() >= until_ns)
			all->unexplained++;
		else if (is_sound(&board->entries[i]))
			r = add_entry(all, &board->entries[i], e);
	}
	w->p = p;
	w->settings = settings;
	w->setting_count = setting_count;
	return r;
}

int denials_find(
	struct denials *ret, struct why *w, const struct explain_board *board, struct error *e)
{
	const int64_t until_ns = clock_now_ns() + (int64_t)PATIENCE_MS * 1000000;
	uint32_t count =
		board->count < EXPLAIN_ENTRIES_MAX ? board->count : EXPLAIN_ENTRIES_MAX;
	struct denials all = { .w = w };
	int r = why_filter(w, w->p, &all.filter, &all.arch, e);

	if (r < 0)
		return r;
	all.all = arena_array(&w->arena, count + 1, sizeof(*all.all));
	if (!all.all)
		return error_no_memory(e, "plan");
	for (unsigned view = 0; view < VIEW_COUNT && r >= 0; view++)
		if (has_view(board, count, view))
			r = find_in_view(&all, board, count, view, until_ns, e);
	*ret = all;
	return r;
}
