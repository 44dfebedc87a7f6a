/*
 * why_change.c - finds what would change an answer: an option, tried out in a plan, or the lock that forbids it.
 *
 * Runs in: carrel-policy, outside, as the caller. It names nothing that it has not tried: it asks the same question again, of
 * a plan with one option more.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plan/path.h"
#include "policy/why.h"

extern char **environ;

/* One option that may help. */
struct machine_probe {
	const char *name;  /* of a setting */
	const char *value; /* NULL: a flag */
	bool optional;     /* a path with '-' before it, since it need not exist */
};

struct asking {
	struct why *w;
	const char *subject; /* a path absolute */
	struct why_answer *answer;
	const char *aim;
	const char *locked; /* what the first lock said */
	bool contradicts;   /* a line of the same place says the opposite */
};

/* --- words ------------------------------------------------------------------------------------ */

static bool is_bare(const char *word)
{
	return *word &&
		!word[strspn(word,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			"/._-=:@%+,")];
}

/* One word as a shell reads it. @ret: room for four times the word and more. */
static void quote(const char *word, char *ret)
{
	bool plain = text_is_utf8(word, strlen(word));

	for (const char *c = word; *c && plain; c++)
		plain = (unsigned char)*c >= 0x20 && *c != 0x7f && *c != '\'';
	if (is_bare(word)) {
		memcpy(ret, word, strlen(word) + 1);
		return;
	}
	if (!plain)
		*ret++ = '$';
	*ret++ = '\'';
	for (; *word; word++) {
		unsigned char c = (unsigned char)*word;

		if (plain || (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\')) {
			*ret++ = *word;
		} else {
			(void)snprintf(ret, 5, "\\x%02x", c);
			ret += 4;
		}
	}
	memcpy(ret, "'", 2);
}

/* A path as an argument: '$' would begin a name. */
static const char *escape(struct arena *arena, const char *path, bool optional)
{
	char *copy = arena_alloc(arena, 2 * strlen(path) + 2);
	char *to = copy;

	if (!copy)
		return NULL;
	if (optional)
		*to++ = '-';
	for (; *path; path++) {
		if (*path == '$')
			*to++ = '\\';
		*to++ = *path;
	}
	return copy;
}

static const char *show_option(struct arena *arena, const char *option, const char *value)
{
	char *text = arena_alloc(arena, strlen(option) + (value ? 4 * strlen(value) : 0) + 8);

	if (!text)
		return NULL;
	size_t used = strlen(option);
	memcpy(text, option, used);
	if (value) {
		text[used++] = value[0] == '-' ? '=' : ' ';
		quote(value, text + used);
	}
	return text;
}

/* --- one attempt ------------------------------------------------------------------------------ */

/* The line of a policy that says the same as the option that was tried last. */
static const char *line_of(struct arena *arena, const struct policy *policy, const char *name)
{
	const struct source *source = NULL;

	if (!strcmp(name, "net"))
		source = &policy->net_source;
	else if (!strcmp(name, "allow") && policy->net_rule_count)
		source = &policy->net_rules[policy->net_rule_count - 1].source;
	else if (!strcmp(name, "workspace-mode"))
		source = &policy->workspace_mode_source;
	else if (!strcmp(name, "nested"))
		source = &policy->nested.source;
	else if (!strcmp(name, "syscall") && policy->syscall_rule_count)
		source = &policy->syscall_rules[policy->syscall_rule_count - 1].source;
	for (size_t i = 0; !source && i < policy->path_count; i++) {
		const struct path_rule *rule = &policy->paths[i];

		if (rule->source.layer == LAYER_COMMAND &&
			!strcmp(policy_path_setting(rule->kind), name) &&
			(i + 1 == policy->path_count ||
				policy->paths[i + 1].source.layer != LAYER_COMMAND ||
				policy->paths[i + 1].source.line < rule->source.line))
			source = &rule->source;
	}
	return source ? why_rule(arena, policy, source) : NULL;
}

static bool is_solved(const char *aim, const struct why_answer *a)
{
	if (!strcmp(aim, "read"))
		return a->exists && a->outcome[TRY_READ] == 0 && strcmp(a->seen, "empty") != 0;
	if (!strcmp(aim, "write"))
		return a->exists && a->outcome[TRY_WRITE] == 0;
	if (!strcmp(aim, "make"))
		return !a->exists && a->outcome[TRY_MAKE] == 0 && !strcmp(a->seen, "absent");
	if (!strcmp(aim, "connect"))
		return !strcmp(a->seen, "socket") || !strcmp(a->seen, "host") ||
			!strcmp(a->seen, "allowed");
	return a->outcome[TRY_CALL] == 0;
}

/* Ask the question once more, of the plan with the option in it. */
static bool ask_again(struct asking *q, const struct prepared *p)
{
	struct why_answer *again = arena_alloc(&q->w->arena, sizeof(*again));
	struct error e = { 0 };
	int r = 0;

	if (!again)
		return false;
	again->kind = q->answer->kind;
	again->subject = q->answer->subject;
	switch (q->answer->kind) {
	case WHY_PATH:
		r = why_path(q->w, p, q->subject, again, &e);
		break;
	case WHY_HOST:
		r = why_host(q->w, p, q->subject, again, &e);
		break;
	case WHY_CALL:
		r = why_call(q->w, p, q->subject, again, &e);
		break;
	}
	return r >= 0 && is_solved(q->aim, again);
}

static void note_refusal(struct asking *q, const struct error *e)
{
	if (e->code == ERROR_LOCKED && !q->locked)
		q->locked = arena_format(&q->w->arena, "%s (%s)", e->what, e->hint);
	if (e->code == ERROR_USAGE && strstr(e->what, "contradicts"))
		q->contradicts = true;
}

static int keep(struct asking *q, const struct prepared *p, const struct machine_probe *t,
	const char *option, const char *value)
{
	struct why_change *change = &q->answer->changes[q->answer->change_count++];

	change->aim = q->aim;
	change->option = show_option(&q->w->arena, option, value);
	change->line = line_of(&q->w->arena, &p->policy, t->name);
	change->setting = t->name;
	change->value = value;
	return change->option ? 1 : -ENOMEM;
}

/* 1: it helps, and is kept. */
static int try(struct asking *q, const struct machine_probe *t)
{
	struct why *w = q->w;
	size_t count = (size_t)w->setting_count;
	const char **words = arena_array(&w->arena, count + 3, sizeof(*words));
	const char *option = arena_format(&w->arena, "--%s", t->name);
	const char *value = !t->value || t->value[0] != '/'
		? t->value
		: escape(&w->arena, t->value, t->optional);
	struct prepared *p = NULL;
	struct error e = { 0 };

	if (!words || !option || (t->value && !value))
		return -ENOMEM;
	if (count)
		memcpy(words, w->settings, count * sizeof(*words));
	words[count++] = value && value[0] == '-'
		? arena_format(&w->arena, "%s=%s", option, value)
		: option;
	if (value && value[0] != '-')
		words[count++] = value;
	int r = prepare_begin(&p, &e);
	if (r < 0)
		return r;
	p->lines = w->p->lines;
	r = prepare_with(p, NULL, PREPARE_DRY, (int)count, words, 0,
		(const char *const *)environ, NULL, 0, &e);
	if (r < 0)
		note_refusal(q, &e);
	r = r < 0 || !ask_again(q, p) ? 0 : keep(q, p, t, option, value);
	prepare_free(p);
	return r;
}

/* The first that helps; where none does, what stands against them. */
static int try_all(struct asking *q, const struct machine_probe *attempts, size_t count)
{
	struct why_answer *a = q->answer;
	int r = 0;

	q->locked = NULL;
	q->contradicts = false;
	for (size_t i = 0; i < count && r == 0; i++)
		if (attempts[i].name)
			r = try(q, &attempts[i]);
	if (r != 0 || a->change_count == WHY_CHANGES_MAX)
		return r < 0 ? r : 0;
	const char *place = a->line_count ? a->lines[0].place : NULL;
	if (!q->locked && q->contradicts && place)
		q->locked = arena_format(
			&q->w->arena, "leave out the line that says so (%s)", place);
	if (q->locked)
		a->changes[a->change_count++] =
			(struct why_change){ .aim = q->aim, .locked = q->locked };
	return 0;
}

/* --- what may help ---------------------------------------------------------------------------- */

/* The place on the host of what was asked about, and its type; if it is not there, the place inside. */
static const char *host_path(struct asking *q, struct stat *ret_st)
{
	char *found = realpath(q->subject, NULL);
	const char *path = q->answer->path;

	*ret_st = (struct stat){ 0 };
	if (found && stat(found, ret_st) == 0)
		path = arena_copy(&q->w->arena, found, strlen(found));
	free(found);
	return path;
}

/* The nearest directory above that exists on the host. */
static const char *parent_of(struct asking *q, const char *path)
{
	char *dir = arena_copy(&q->w->arena, path, strlen(path));
	struct stat st;

	while (dir && dir[1]) {
		dir[path_parent_length(dir)] = '\0';
		if (stat(dir, &st) == 0)
			return S_ISDIR(st.st_mode) ? dir : NULL;
	}
	return NULL;
}

/*
 * No line lets a session make what is protected, since a `write` line is about what exists. Find out whether a lock forbids that
 * line; if not, say what has to be done before it.
 */
static int change_quarantined(struct asking *q, const char *path)
{
	const struct machine_probe write = { "write", path, true };
	struct why_answer *a = q->answer;
	size_t count = a->change_count;
	int r = try_all(q, &write, 1);

	if (r < 0 || a->change_count > count)
		return r;
	const char *option = show_option(&q->w->arena, "--write", path);
	const char *text = option
		? arena_format(&q->w->arena,
			  "no line lets a session make it; once it is there, %s", option)
		: NULL;
	if (!text)
		return -ENOMEM;
	a->changes[a->change_count++] = (struct why_change){ .aim = q->aim, .locked = text };
	return 0;
}

static int change_path(struct asking *q)
{
	struct why_answer *a = q->answer;
	struct stat st;
	const char *path = host_path(q, &st);
	const char *parent = path ? parent_of(q, path) : NULL;
	bool there = st.st_mode != 0, own = !strcmp(a->surface, "workspace");
	const struct machine_probe direct = { own ? "workspace-mode" : NULL, "direct", false };
	const struct machine_probe read[] = { { "read", path, false },
		{ S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? "dev" : NULL, path, false } };
	const struct machine_probe write[] = { direct, { "write", path, false },
		{ S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? "dev" : NULL, path, false } };
	const struct machine_probe make[] = { direct,
		{ parent ? "write" : NULL, parent, false } };
	const struct machine_probe connect[] = { { "read", path, false },
		{ "unix-socket", path, false } };
	int r = 0;

	if (!path || !strcmp(a->seen, "own"))
		return 0;
	if (S_ISSOCK(st.st_mode)) {
		q->aim = "connect";
		return strcmp(a->seen, "socket") != 0 ? try_all(q, connect, 2) : 0;
	}
	q->aim = "read";
	if (there && !is_solved(q->aim, a))
		r = try_all(q, read, 2);
	if (r < 0)
		return r;
	q->aim = "write";
	if (there && !is_solved(q->aim, a))
		r = try_all(q, write, 3);
	if (r < 0)
		return r;
	q->aim = "make";
	if (!strcmp(a->seen, "quarantined"))
		return change_quarantined(q, path);
	return !there && !is_solved(q->aim, a) ? try_all(q, make, 2) : 0;
}

/* A tool that asks a resolver of the host wants a name. A session that allows a name has a resolver of its own. */
static int change_resolver(struct asking *q)
{
	struct why_answer *a = q->answer;

	a->changes[a->change_count++] = (struct why_change){ .aim = q->aim,
		.locked =
			"the session has a resolver of its own for the names of --allow NAME" };
	return 0;
}

static bool is_resolver(const char *asked)
{
	const char *colon = strrchr(asked, ':');

	return colon && !strcmp(colon, ":53");
}

static int change_host(struct asking *q)
{
	struct why_answer *a = q->answer;
	const struct machine_probe net[] = { { "allow", q->subject, false },
		{ "net", "host", false } };

	q->aim = "connect";
	if (!strcmp(a->seen, "own"))
		return try_all(q, &net[1], 1);
	if (is_solved(q->aim, a))
		return 0;
	return is_resolver(q->subject) ? change_resolver(q) : try_all(q, net, 2);
}

int why_changes(struct why *w, const char *asked, struct why_answer *a, struct error *e)
{
	struct asking q = { .w = w, .subject = asked, .answer = a };
	struct machine_probe call[] = { { "nested", NULL, false }, { "syscall", NULL, false } };
	int r = 0;

	if (!w->p)
		return 0;
	if (a->kind == WHY_PATH) {
		r = change_path(&q);
	} else if (a->kind == WHY_HOST) {
		r = change_host(&q);
	} else if (strcmp(a->seen, "absent") != 0 && a->outcome[TRY_CALL] != 0) {
		q.aim = "call";
		call[1].value = arena_format(&w->arena, "allow %s", asked);
		r = call[1].value ? try_all(&q, call, 2) : -ENOMEM;
	}
	return r < 0 ? error_no_memory(e, "plan") : 0;
}
