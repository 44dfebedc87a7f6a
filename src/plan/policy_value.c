/*
 * policy_value.c - one value of one setting: checked, and kept as a line.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/embedded.h"
#include "plan/policy_line.h"

#define WORK_SIZE ((size_t)40 * 1024)

int policy_fail(const struct policy_place *at, const char *format, ...)
{
	bool command = at->source.layer == LAYER_COMMAND && at->source.line > 0 &&
		!strcmp(at->source.file, POLICY_COMMAND_LINE);
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
	return error_set(e, ERROR_LIMIT, "policy", ENOMEM, NULL,
		"the policy does not fit into its memory");
}

char *policy_work(struct policy *p, int which, size_t size)
{
	if (size > WORK_SIZE)
		return arena_alloc(p->arena, size);
	if (!p->work[which])
		p->work[which] = arena_alloc(p->arena, WORK_SIZE);
	return p->work[which];
}

void policy_format_source(const struct source *source, const char *setting, char *ret_text,
	size_t size)
{
	if (source->layer == LAYER_DEFAULT || !source->file)
		(void)snprintf(ret_text, size, "default");
	else if (source->layer == LAYER_COMMAND && source->line > 0 && setting &&
		!strcmp(source->file, POLICY_COMMAND_LINE))
		(void)snprintf(ret_text, size, "%s: --%s", source->file, setting);
	else if (source->line > 0)
		(void)snprintf(ret_text, size, "%s:%u", source->file, source->line);
	else
		(void)snprintf(ret_text, size, "%s", source->file);
}

/* --- keeping a line --------------------------------------------------------------------------- */

static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return hash;
}

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
		return TOPIC_ENV;
	default:
		return TOPIC_OTHER + l->id;
	}
}

static bool same_effect(const struct policy_line *a, const struct policy_line *b)
{
	return a->id == b->id && a->kind == b->kind && a->number == b->number &&
		a->glob == b->glob && same_text(a->text, b->text) && same_text(a->dest, b->dest);
}

static void set_on_both(const struct policy_place *at, const struct policy_line *old,
	const char *what)
{
	char place[512];

	policy_format_source(&old->source, settings_table[old->id].name, place, sizeof(place));
	(void)policy_fail(at, "%s '%s' at %s", what, settings_table[old->id].name, place);
	error_hint(at->e, "the other line is %s; keep one of them", place);
}

/* A scalar twice, or one path or variable with two meanings, in one source: @old and @l. */
static int check_pair(const struct policy_place *at, const struct policy_line *old,
	const struct policy_line *l)
{
	int topic = policy_line_topic(l);

	if (topic == 0 && old->id == l->id) {
		set_on_both(at, old, "given twice, first as");
		return -EINVAL;
	}
	if (topic && policy_line_topic(old) == topic &&
		same_text(policy_line_subject(old), policy_line_subject(l)) &&
		!same_effect(old, l)) {
		set_on_both(at, old, "contradicts");
		return -EINVAL;
	}
	return 0;
}

/* Room for one more line; the table stays at most half full. 0 or -ENOMEM. */
static int grow_lines(struct policy *p)
{
	if (p->line_count < p->line_room)
		return 0;
	size_t room = p->line_room ? 2 * p->line_room : 512;
	struct policy_line *lines = arena_array(p->arena, room, sizeof(*lines));
	uint16_t *table = arena_array(p->arena, 2 * room, sizeof(*table));

	if (!lines || !table)
		return -ENOMEM;
	for (size_t i = 0; i < p->line_count; i++) {
		size_t slot = p->lines[i].hash & (2 * room - 1);

		lines[i] = p->lines[i];
		while (table[slot])
			slot = (slot + 1) & (2 * room - 1);
		table[slot] = (uint16_t)(i + 1);
	}
	p->lines = lines;
	p->line_room = room;
	p->line_table = table;
	p->line_slots = 2 * room;
	return 0;
}

static int keep_line(const struct policy_place *at, struct policy_line *l)
{
	struct policy *p = at->p;

	l->source = at->source;
	l->hash = (l->id + 1U) * 2654435761U;
	if (settings_table[l->id].merge == MERGE_LIST)
		l->hash = hash_text(2166136261U, policy_line_subject(l));
	if (p->line_count == POLICY_RULE_MAX)
		return policy_fail(at, "more than %d lines of policy", POLICY_RULE_MAX);
	if (grow_lines(p) < 0)
		return policy_full(at->e);
	size_t slot = l->hash & (p->line_slots - 1);
	for (; p->line_table[slot]; slot = (slot + 1) & (p->line_slots - 1)) {
		const struct policy_line *old = &p->lines[p->line_table[slot] - 1];

		if (old->hash != l->hash || old->source.file != l->source.file)
			continue;
		int r = check_pair(at, old, l);
		if (r < 0)
			return r;
	}
	p->lines[p->line_count++] = *l;
	p->line_table[slot] = (uint16_t)p->line_count;
	return 0;
}

/* --- kinds of values -------------------------------------------------------------------------- */

static int fail_number(const struct policy_place *at, const char *word, int why, const char *form)
{
	error_hint(at->e, "write %s", form);
	if (why == -ERANGE)
		return policy_fail(at, "'%.60s' is too large", word);
	return policy_fail(at, "'%.60s' is not %s", word, form);
}

static int read_number(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	int r;

	switch (s->kind) {
	case KIND_SIZE:
		r = text_parse_size(word, &l->number);
		return r < 0 ? fail_number(at, word, r,
				       "a size such as 4096, 512K, 1G or 2GiB") :
			       0;
	case KIND_DURATION:
		r = text_parse_duration(word, &l->number);
		return r < 0 ? fail_number(at, word, r,
				       "a duration such as 10, 500ms, 1.5s, 5m or 2h") :
			       0;
	default:
		r = text_parse_count(word, &l->number);
		return r < 0 ? fail_number(at, word, r, "a whole number from 1 on") : 0;
	}
}

static int fail_word(const struct policy_place *at, const char *what, const char *word,
	const char *nearest)
{
	int r = policy_fail(at, "unknown %s '%.60s'", what, word);

	if (nearest)
		error_hint(at->e, "did you mean '%s'?", nearest);
	return r;
}

static size_t count_words(const char *const *words)
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

/* One of the words of the setting; number is its index. */
static int read_enum(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	size_t count = count_words(s->words);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(s->words[i], word)) {
			l->text = s->words[i];
			l->number = i;
			return 0;
		}
	int r = fail_word(at, s->kind == KIND_WALL ? "layer" : "word", word,
		text_nearest(word, s->words, count));
	if (s->kind != KIND_WALL)
		error_hint(at->e, "one of %s", s->placeholder);
	return r;
}

static int keep_text(const struct policy_place *at, const char *text, struct policy_line *l)
{
	l->text = arena_copy(at->p->arena, text, strlen(text));
	return l->text ? 0 : policy_full(at->e);
}

/* A '-' in front makes it optional. */
static const char *read_optional(const char *word, struct policy_line *l)
{
	l->optional = word[0] == '-';
	return word + l->optional;
}

static int read_path_rule(const struct policy_place *at, const struct setting *s,
	const char *word, struct policy_line *l)
{
	static const unsigned char kinds[] = {
		[SETTING_READ] = PATH_READ,
		[SETTING_WRITE] = PATH_WRITE,
		[SETTING_HIDE] = PATH_HIDE,
		[SETTING_PROTECT] = PATH_PROTECT,
	};

	l->kind = kinds[s->id];
	if (s->id == SETTING_READ || s->id == SETTING_WRITE)
		word = read_optional(word, l);
	else
		l->optional = true;
	return template_path(at, word, s->kind == KIND_GLOB_RULE, &l->glob, &l->text);
}

static int read_bind(const struct policy_place *at, char *word, struct policy_line *l)
{
	bool dash = word[0] == '-';
	char *source = word + dash;
	char *dest = word_split(source);
	char *mode = dest ? word_split(dest) : NULL;

	l->optional = dash;
	l->kind = PATH_BIND_RO;
	if (!dest)
		return policy_fail(at, "'%.60s' has no destination: SRC:DEST[:ro|rw]", word);
	if (mode && !strcmp(mode, "rw")) {
		l->kind = PATH_BIND_RW;
	} else if (mode && strcmp(mode, "ro") != 0) {
		error_hint(at->e, "a colon that belongs to a path is written \\:");
		return policy_fail(at, "'%.60s' is neither ro nor rw", mode);
	}
	int r = template_path(at, source, false, NULL, &l->text);
	if (r < 0)
		return r;
	return template_path(at, dest, false, NULL, &l->dest);
}

static int read_tmpfs(const struct policy_place *at, char *word, struct policy_line *l)
{
	const char *size = word_split(word);

	l->kind = PATH_TMPFS;
	if (size) {
		int r = text_parse_size(size, &l->number);

		if (r < 0)
			return fail_number(at, size, r,
				"a size such as 4096, 512K, 1G or 2GiB");
	}
	return template_path(at, word, false, NULL, &l->dest);
}

static int read_device(const struct policy_place *at, const char *word, struct policy_line *l)
{
	l->kind = PATH_DEV;
	word = read_optional(word, l);
	if (strncmp(word, "/dev/", 5) != 0 || strstr(word, "/.."))
		return policy_fail(at, "'%.60s' is no node below /dev", word);
	return template_path(at, word, false, NULL, &l->text);
}

/* @length bytes of a variable's name; '*' only where @glob. */
static bool is_env_name(const char *name, size_t length, bool glob)
{
	for (size_t i = 0; i < length; i++) {
		char c = name[i];
		bool digit = (c >= '0' && c <= '9') || c == '.' || c == '-';
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
			(glob && c == '*');

		if (!letter && (!digit || i == 0))
			return false;
	}
	return length > 0;
}

static int fail_env_name(const struct policy_place *at, const char *word)
{
	return policy_fail(at, "'%.60s' is no name of a variable", word);
}

static int read_env(const struct policy_place *at, const char *word, struct policy_line *l)
{
	size_t length = strcspn(word, "=");

	if (!is_env_name(word, length, !word[length]))
		return fail_env_name(at, word);
	l->text = arena_copy(at->p->arena, word, length);
	if (!l->text)
		return policy_full(at->e);
	return word[length] ? template_value(at, word + length + 1, &l->dest) : 0;
}

static int read_env_name(const struct policy_place *at, const struct setting *s,
	const char *word, struct policy_line *l)
{
	if (!is_env_name(word, strlen(word), s->kind == KIND_ENV_NAME))
		return fail_env_name(at, word);
	return keep_text(at, word, l);
}

static bool is_word(const char *word)
{
	size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return length > 0 && length <= 63 && !word[length];
}

static int read_filter(const struct policy_place *at, const char *word, struct policy_line *l)
{
	const struct policy_resolver *r = at->r;
	const char *names[64];
	size_t count = 0;

	if (!is_word(word))
		return policy_fail(at, "'%.60s' is no name of a filter", word);
	if (!r->filters)
		return keep_text(at, word, l);
	for (size_t i = 0; i < r->filter_count; i++) {
		if (!strcmp(r->filters[i].name, word))
			return keep_text(at, word, l);
		if (count < 64)
			names[count++] = r->filters[i].name;
	}
	return fail_word(at, "filter", word, text_nearest(word, names, count));
}

/* allow|errno NAME|GROUP [if EXPR]; the words are one space apart here. */
static int read_syscall(const struct policy_place *at, const char *word, struct policy_line *l)
{
	size_t action = strcspn(word, " ");
	const char *name = word + action + (word[action] == ' ');
	size_t length = strcspn(name, " ");

	if (strlen(word) > POLICY_SYSCALL_MAX)
		return policy_fail(at, "more than %d bytes", POLICY_SYSCALL_MAX);
	if ((action != 5 || strncmp(word, "allow", 5) != 0) &&
		(action != 5 || strncmp(word, "errno", 5) != 0)) {
		static const char *const actions[] = { "allow", "errno" };
		char first[64];

		(void)snprintf(first, sizeof(first), "%.*s", (int)(action < 60 ? action : 60),
			word);
		return fail_word(at, "action", first, text_nearest(first, actions, 2));
	}
	const char *bare = name + (*name == '@');
	size_t bare_length = length - (size_t)(bare - name);
	if (bare_length == 0 || bare_length > 63 ||
		strspn(bare, "abcdefghijklmnopqrstuvwxyz0123456789_-") != bare_length)
		return policy_fail(at, "'%.60s' names no system call or group", name);
	if (name[length] && (strncmp(name + length, " if ", 4) != 0 || !name[length + 4]))
		return policy_fail(at, "'%.60s': only 'if EXPR' can follow the name",
			name + length + 1);
	return keep_text(at, word, l);
}

static int read_setting_name(const struct policy_place *at, const char *word,
	struct policy_line *l)
{
	const struct setting *s = settings_find(word, strlen(word));

	if (at->source.layer != LAYER_SYSTEM) {
		error_hint(at->e, "locks belong into /etc/carrel/policy");
		return policy_fail(at, "'lock' outside the system policy");
	}
	if (!s)
		return fail_word(at, "setting", word, settings_nearest(word));
	if (s->lock == LOCK_NEVER)
		return policy_fail(at, "'%s' cannot be locked", s->name);
	l->text = s->name;
	l->number = s->id;
	return 0;
}

static int read_report(const struct policy_place *at, const char *word, struct policy_line *l)
{
	uint64_t fd;

	if (strncmp(word, "fd:", 3) != 0)
		return template_path(at, word, false, NULL, &l->text);
	if (strcmp(word, "fd:0") != 0 && (text_parse_count(word + 3, &fd) < 0 || fd > INT_MAX))
		return policy_fail(at, "'%.60s' is no descriptor: fd:N", word);
	return keep_text(at, word, l);
}

static int read_profile(const struct policy_place *at, const char *word, struct policy_line *l)
{
	if (!policy_find_text(at->r, word))
		return fail_word(at, "profile", word, policy_nearest_text(at->r, word));
	return keep_text(at, word, l);
}

/* Kinds whose word has neither variables nor a structure of its own. */
static int read_plain(const struct policy_place *at, const struct setting *s, const char *word,
	struct policy_line *l)
{
	switch (s->kind) {
	case KIND_ENUM:
	case KIND_WALL:
		return read_enum(at, s, word, l);
	case KIND_ENV_NAME:
	case KIND_SCRATCH_ENV:
		return read_env_name(at, s, word, l);
	case KIND_FILTER:
		return read_filter(at, word, l);
	case KIND_SYSCALL:
		return read_syscall(at, word, l);
	case KIND_SETTING:
		return read_setting_name(at, word, l);
	case KIND_PROFILE:
		return read_profile(at, word, l);
	default:
		return read_number(at, s, word, l);
	}
}

int policy_add_value(struct policy_place *at, const struct setting *s, const char *word)
{
	struct policy_line l = { .id = s->id };
	char *own = NULL;
	int r;

	switch (s->kind) {
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_POLICY_FILE:
		r = template_path(at, word, false, NULL, &l.text);
		break;
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
		r = read_path_rule(at, s, word, &l);
		break;
	case KIND_BIND:
	case KIND_TMPFS:
		own = arena_copy(at->p->arena, word, strlen(word));
		if (!own)
			return policy_full(at->e);
		r = s->kind == KIND_BIND ? read_bind(at, own, &l) : read_tmpfs(at, own, &l);
		break;
	case KIND_DEVICE:
		r = read_device(at, word, &l);
		break;
	case KIND_ENV:
		r = read_env(at, word, &l);
		break;
	case KIND_REPORT:
		r = read_report(at, word, &l);
		break;
	default:
		own = word_plain(at->p, word);
		if (!own)
			return policy_full(at->e);
		r = read_plain(at, s, own, &l);
		break;
	}
	return r < 0 ? r : keep_line(at, &l);
}

int policy_add_flag(struct policy_place *at, const struct setting *s, bool on)
{
	struct policy_line l = { .id = s->id, .number = on };

	return keep_line(at, &l);
}
