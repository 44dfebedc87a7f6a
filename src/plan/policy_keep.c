/*
 * policy_keep.c - keeping the lines that were read, and saying what is wrong with one.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * A hash table over the lines finds, within one source, a setting with one value that is given twice,
 * and a path or variable with two meanings.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "plan/policy_line.h"

#define WORK_LEAST ((size_t)256)

static bool is_command_line(const struct source *source)
{
	return source->layer == LAYER_COMMAND && !strcmp(source->file, POLICY_COMMAND_LINE);
}

int policy_fail(const struct policy_place *at, const char *format, ...)
{
	bool command = is_command_line(&at->source);
	char on[1024], what[128];
	va_list args;

	if (command)
		(void)snprintf(on, sizeof(on), "--%s", at->setting ? at->setting : "");
	else
		policy_format_source(&at->source, at->setting, on, sizeof(on));
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return error_set(at->e, command ? ERROR_USAGE : ERROR_POLICY,
		command ? "options" : "policy", 0, on, "%s", what);
}

int policy_full(struct error *e)
{
	return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), NULL,
		"the policy needs more memory than is set aside");
}

char *policy_work(struct policy *p, int which, size_t size)
{
	struct policy_work *w = &p->work[which];

	if (size > w->size) {
		w->size = size < 2 * w->size + WORK_LEAST ? 2 * w->size + WORK_LEAST : size;
		w->text = arena_alloc(p->arena, w->size);
	}
	if (!w->text)
		w->size = 0;
	return w->text;
}

void policy_format_source(
	const struct source *source, const char *setting, char *ret_text, size_t size)
{
	bool is_default = source->layer == LAYER_DEFAULT || !source->file;
	struct writer w;

	writer_init(&w, ret_text, size - 1, NULL, NULL);
	writer_text(&w, is_default ? "default" : source->file);
	if (!is_default && setting && is_command_line(source)) {
		writer_text(&w, ": --");
		writer_text(&w, setting);
	} else if (!is_default && source->line > 0) {
		writer_char(&w, ':');
		writer_number(&w, source->line);
	}
	ret_text[w.used] = '\0'; /* what does not fit is cut */
}

/* --- keeping a line --------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

const char *policy_line_subject(const struct policy_line *l)
{
	bool moved = l->id == SETTING_BIND || l->id == SETTING_TMPFS;

	return moved ? l->dest : l->text;
}

int policy_line_topic(const struct policy_line *l)
{
	const struct setting *s = &settings_table[l->id];

	if (s->merge != MERGE_LIST)
		return 0;
	switch (s->kind) {
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_DEVICE:
		return TOPIC_PATH;
	case KIND_ENV:
	case KIND_ENV_NAME:
	case KIND_SCRATCH_ENV:
		return TOPIC_ENV;
	default:
		return TOPIC_OTHER + l->id;
	}
}

static bool same_effect(const struct policy_line *a, const struct policy_line *b)
{
	return a->id == b->id && a->kind == b->kind && a->number == b->number &&
		a->glob == b->glob && same_text(a->text, b->text) &&
		same_text(a->dest, b->dest);
}

/* Name both lines. On the command line both have the same place: their names say which they are. */
static int fail_both(const struct policy_place *at, const struct policy_line *old,
	const struct policy_line *l)
{
	const char *dashes = is_command_line(&old->source) ? "--" : "";
	const char *name = settings_table[l->id].name, *other = settings_table[old->id].name;
	const char *subject = policy_line_topic(l) ? policy_line_subject(l) : NULL;
	char place[512];
	int r;

	if (!subject)
		r = policy_fail(at, "'%s%s' is given twice", dashes, name);
	else if (old->id == l->id)
		r = policy_fail(at, "two lines '%s%s' contradict each other about '%.200s'",
			dashes, name, subject);
	else
		r = policy_fail(at, "'%s%s' contradicts '%s%s' about '%.200s'", dashes, name,
			dashes, other, subject);
	if (*dashes) {
		error_hint(at->e, "keep one of them");
		return r;
	}
	policy_format_source(&old->source, other, place, sizeof(place));
	error_hint(at->e, "the other line is %s; keep one of them", place);
	return r;
}

/* Whether a line gives or takes a variable's value. scratch-env does not: it says what a variable is for. */
static bool is_value(const struct policy_line *l)
{
	return l->id == SETTING_ENV || l->id == SETTING_UNSETENV;
}

/*
 * Refuse, in one source, a scalar that is given twice and a path or variable with two meanings:
 * @old and @l. On the command line the later of two values wins when lines are merged, so that an
 * alias or a wrapper can be overridden. A path with two meanings is refused there as well, since
 * the order does not say which one is meant.
 */
static int check_pair(const struct policy_place *at, const struct policy_line *old,
	const struct policy_line *l)
{
	int topic = policy_line_topic(l);

	if (is_command_line(&l->source) &&
		(topic == 0 || l->id == SETTING_PASS_FD || (is_value(old) && is_value(l))))
		return 0;
	if (topic == 0 && old->id == l->id)
		return fail_both(at, old, l);
	if (topic && policy_line_topic(old) == topic &&
		same_text(policy_line_subject(old), policy_line_subject(l)) &&
		!same_effect(old, l))
		return fail_both(at, old, l);
	return 0;
}

/*
 * Whether a line can contradict another: only those are in the table. `allow` and `deny` of one
 * host may stand side by side.
 */
static bool may_contradict(const struct policy_line *l)
{
	return !l->net;
}

/* The first slot of @l that is free. */
static size_t free_slot(const struct policy *p, const struct policy_line *l)
{
	size_t slot = l->hash & (p->line_slots - 1);

	while (p->line_table[slot])
		slot = (slot + 1) & (p->line_slots - 1);
	return slot;
}

/* The table stays at most half full of the lines that can be in it. */
static size_t slots_for(size_t room)
{
	size_t most = room < POLICY_RULE_MAX ? room : POLICY_RULE_MAX, slots = 64;

	while (slots < 2 * most)
		slots *= 2;
	return slots;
}

int policy_reserve_lines(struct policy *p, size_t more)
{
	size_t room = p->line_room ? 2 * p->line_room : 32;

	if (p->line_count + more <= p->line_room)
		return 0;
	if (room < p->line_count + more)
		room = p->line_count + more;
	size_t slots = slots_for(room);
	struct policy_line *lines = arena_array(p->local, room, sizeof(*lines));
	uint32_t *table = arena_array(p->local, slots, sizeof(*table));

	if (!lines || !table)
		return -ENOMEM;
	if (p->line_count > 0)
		memcpy(lines, p->lines, p->line_count * sizeof(*lines));
	p->lines = lines;
	p->line_room = room;
	p->line_table = table;
	p->line_slots = slots;
	for (size_t i = 0; i < p->line_count; i++)
		if (may_contradict(&lines[i]))
			table[free_slot(p, &lines[i])] = (uint32_t)(i + 1);
	return 0;
}

/* Refuses @l where it contradicts a line of its source, else enters it. */
static int enter_line(const struct policy_place *at, const struct policy_line *l)
{
	struct policy *p = at->p;
	size_t slot = l->hash & (p->line_slots - 1);

	for (; p->line_table[slot]; slot = (slot + 1) & (p->line_slots - 1)) {
		const struct policy_line *old = &p->lines[p->line_table[slot] - 1];

		if (old->hash != l->hash || old->source.file != l->source.file)
			continue;
		int r = check_pair(at, old, l);
		if (r < 0)
			return r;
	}
	p->line_table[slot] = (uint32_t)(p->line_count + 1);
	return 0;
}

static uint32_t hash_line(const struct policy_line *l)
{
	const char *subject =
		settings_table[l->id].merge == MERGE_LIST ? policy_line_subject(l) : NULL;

	if (l->net)
		return netrule_hash(l->net);
	return subject ? hash_bytes(subject, strlen(subject)) : (l->id + 1U) * 2654435761U;
}

int policy_keep_line(const struct policy_place *at, struct policy_line *l)
{
	struct policy *p = at->p;
	bool host = l->net != NULL;

	l->source = at->source;
	l->hash = hash_line(l);
	if (host && p->host_count == POLICY_HOST_MAX)
		return policy_fail(
			at, "more than %d lines `allow` and `deny`", POLICY_HOST_MAX);
	if (!host && p->line_count - p->host_count == POLICY_RULE_MAX)
		return policy_fail(at, "more than %d lines of policy", POLICY_RULE_MAX);
	if (policy_reserve_lines(p, 1) < 0)
		return policy_full(at->e);
	int r = may_contradict(l) ? enter_line(at, l) : 0;
	if (r < 0)
		return r;
	p->lines[p->line_count++] = *l;
	p->host_count += host;
	return 0;
}

int policy_add_flag(struct policy_place *at, const struct setting *s, bool on)
{
	struct policy_line l = { .id = s->id, .number = on };

	return policy_keep_line(at, &l);
}
