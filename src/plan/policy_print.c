/*
 * policy_print.c - the effective policy, as a policy file again and as JSON.
 *
 * Runs in: the launcher (for the digest) and carrel-policy. PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "plan/policy_line.h"

/* How a text is to be read; see policy_line.h. */
enum form {
	FORM_PLAIN,
	FORM_TEMPLATE,
	FORM_PATTERN, /* plain, but a glob */
};

struct printer {
	const struct policy *p;
	bool sources;
	int (*write)(void *context, const void *data, size_t size);
	void *context;
	int error;      /* first failure; everything after it is passed over */
	size_t column;
	size_t used;
	char buffer[1024];
	struct json *json; /* set: JSON instead of text */
};

static void flush(struct printer *o)
{
	if (o->error == 0 && o->used > 0)
		o->error = o->write(o->context, o->buffer, o->used);
	o->used = 0;
}

static void put(struct printer *o, char c)
{
	if (o->used == sizeof(o->buffer))
		flush(o);
	o->buffer[o->used++] = c;
	o->column = c == '\n' ? 0 : o->column + 1;
}

static void puts_text(struct printer *o, const char *text)
{
	while (*text)
		put(o, *text++);
}

/* --- quoting ---------------------------------------------------------------------------------- */

/* A text, byte by byte; an active byte is one that is not there for itself. */
struct cursor {
	const char *at;
	enum form form;
	bool glob;
};

static bool next_byte(struct cursor *c, char *ret, bool *ret_active)
{
	bool glob = c->form == FORM_PATTERN || (c->form == FORM_TEMPLATE && c->glob);

	*ret = *c->at;
	*ret_active = false;
	if (!*c->at)
		return false;
	if (c->form != FORM_PLAIN && *c->at == '\\' && c->at[1]) {
		*ret = c->at[1];
		c->at += 2;
		return true;
	}
	*ret_active = (glob && strchr("*?[", *c->at)) || (c->form == FORM_TEMPLATE && *c->at == '$');
	c->at++;
	return true;
}

static void put_hex(struct printer *o, char c)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char byte = (unsigned char)c;

	puts_text(o, "\\x");
	put(o, hex[byte >> 4]);
	put(o, hex[byte & 15]);
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* A literal byte that cannot stand in a bare word. */
static bool needs_quotes(char c, bool colon)
{
	return is_control(c) || strchr(" \"'\\#$*?[~", c) || (colon && c == ':');
}

/* The literal byte @c behind a backslash where it needs one; @valid: part of valid UTF-8. */
static void put_escaped(struct printer *o, char c, bool valid, const char *special)
{
	if (!valid || (is_control(c) && c != '\n' && c != '\t')) {
		put_hex(o, c);
	} else if (c == '\n' || c == '\t') {
		puts_text(o, c == '\n' ? "\\n" : "\\t");
	} else {
		if (strchr(special, c))
			put(o, '\\');
		put(o, c);
	}
}

/*
 * One part of a word. Bare where it can be; in double quotes where it must be quoted; and with
 * backslashes where it has wild cards, which quotes would kill.
 */
static void put_part(struct printer *o, const char *text, enum form form, bool glob, bool colon)
{
	struct cursor c = { .at = text, .form = form, .glob = glob };
	bool active, wild = false, quotes = false;
	size_t valid = 0;
	char byte;

	while (next_byte(&c, &byte, &active)) {
		wild |= active && byte != '$';
		quotes |= !active && needs_quotes(byte, colon);
	}
	quotes |= !text_is_utf8(text, strlen(text));
	c.at = text;
	if (quotes && !wild)
		put(o, '"');
	for (;;) {
		const char *start = c.at;

		if (valid == 0)
			valid = text_utf8_length(start, strlen(start));
		if (!next_byte(&c, &byte, &active))
			break;
		bool good = valid > 0;
		/* an escaped byte of a template is ASCII: one step of the cursor, one character */
		valid -= valid > 0;
		if ((unsigned char)byte < 0x80)
			valid = 0;
		if (active || (!quotes && !wild))
			put(o, byte);
		else
			put_escaped(o, byte, good, wild ? " \"'\\#$*?[~:" : "\"\\$");
	}
	if (quotes && !wild)
		put(o, '"');
}

/* --- one rule --------------------------------------------------------------------------------- */

/* The words of a `syscall` line, each quoted on its own. */
static void put_words(struct printer *o, const char *text)
{
	char word[POLICY_SYSCALL_MAX + 1];
	size_t length;

	for (;; text += length + 1) {
		length = strcspn(text, " ");
		(void)snprintf(word, sizeof(word), "%.*s", (int)length, text);
		put_part(o, word, FORM_PLAIN, false, false);
		if (!text[length])
			return;
		put(o, ' ');
	}
}

static enum form path_form(const struct printer *o, bool glob)
{
	if (!o->p->expanded)
		return FORM_TEMPLATE;
	return glob ? FORM_PATTERN : FORM_PLAIN;
}

static void put_number(struct printer *o, const struct setting *s, uint64_t number)
{
	char text[32];

	if (s->kind == KIND_DURATION)
		text_format_duration(number, text, sizeof(text));
	else if (s->kind == KIND_SIZE || s->kind == KIND_TMPFS)
		text_format_size(number, text, sizeof(text));
	else
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	puts_text(o, text);
}

static void put_argument(struct printer *o, const struct setting *s, const struct policy_line *l)
{
	enum form form = path_form(o, l->glob);

	switch (s->kind) {
	case KIND_FLAG:
		puts_text(o, l->number ? "yes" : "no");
		return;
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_DEVICE:
	case KIND_PATH_LATE:
		put_part(o, l->text, form, l->glob, false);
		return;
	case KIND_BIND:
		put_part(o, l->text, form, false, true);
		put(o, ':');
		put_part(o, l->dest, form, false, true);
		if (l->kind == PATH_BIND_RW)
			puts_text(o, ":rw");
		return;
	case KIND_TMPFS:
		put_part(o, l->dest, form, false, true);
		if (l->number) {
			put(o, ':');
			put_number(o, s, l->number);
		}
		return;
	case KIND_ENV:
		puts_text(o, l->text);
		if (l->dest) {
			put(o, '=');
			put_part(o, l->dest, form, false, false);
		}
		return;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
		put_number(o, s, l->number);
		return;
	case KIND_ENV_NAME:
		puts_text(o, l->text);
		return;
	case KIND_SYSCALL:
		put_words(o, l->text);
		return;
	default:
		put_part(o, l->text, FORM_PLAIN, false, false);
		return;
	}
}

/* "  # file:line". The name of a file can hold anything. */
static void put_source(struct printer *o, const struct source *source, const char *setting)
{
	char place[512];

	if (!o->sources)
		return;
	policy_format_source(source, setting, place, sizeof(place));
	do
		put(o, ' ');
	while (o->column < 48);
	puts_text(o, "# ");
	for (const char *c = place; *c; c++)
		if (is_control(*c))
			put_hex(o, *c);
		else
			put(o, *c);
}

static void put_json(struct printer *o, const struct setting *s, const struct policy_line *l);

static void put_rule(struct printer *o, enum setting_id id, const struct policy_line *l)
{
	const struct setting *s = &settings_table[id];

	if (o->json) {
		put_json(o, s, l);
		return;
	}
	puts_text(o, s->name);
	put(o, ' ');
	if (l->optional && s->kind != KIND_GLOB_RULE && id != SETTING_PROTECT)
		put(o, '-');
	put_argument(o, s, l);
	put_source(o, &l->source, s->name);
	put(o, '\n');
}

/* --- JSON ------------------------------------------------------------------------------------- */

static const char *const layer_names[] = {
	[LAYER_DEFAULT] = "default",
	[LAYER_PROFILE] = "profile",
	[LAYER_SYSTEM] = "system",
	[LAYER_USER] = "user",
	[LAYER_FILE] = "file",
	[LAYER_COMMAND] = "command-line",
};

static void json_source(struct json *j, const struct source *source)
{
	json_key(j, "source");
	json_object_begin(j);
	json_key(j, "layer");
	json_string(j, layer_names[source->layer]);
	if (source->layer != LAYER_DEFAULT && source->file) {
		json_key(j, "file");
		json_string(j, source->file);
		if (source->line) {
			json_key(j, "line");
			json_unsigned(j, source->line);
		}
	}
	json_object_end(j);
}

static void json_member(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void json_path(struct json *j, const struct setting *s, const struct policy_line *l)
{
	if (l->text)
		json_member(j, "path", l->text);
	if (l->dest)
		json_member(j, "dest", l->dest);
	json_key(j, "optional");
	json_bool(j, l->optional);
	if (s->kind == KIND_GLOB_RULE) {
		json_key(j, "glob");
		json_bool(j, l->glob);
	}
	if (s->kind == KIND_BIND)
		json_member(j, "mode", l->kind == PATH_BIND_RW ? "rw" : "ro");
	if (s->kind == KIND_TMPFS && l->number) {
		json_key(j, "size");
		json_unsigned(j, l->number);
	}
}

static void put_json(struct printer *o, const struct setting *s, const struct policy_line *l)
{
	struct json *j = o->json;

	json_object_begin(j);
	json_member(j, "setting", s->name);
	switch (s->kind) {
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_DEVICE:
	case KIND_BIND:
	case KIND_TMPFS:
		json_path(j, s, l);
		break;
	case KIND_ENV:
		json_member(j, "name", l->text);
		if (l->dest)
			json_member(j, "value", l->dest);
		break;
	case KIND_FLAG:
		json_key(j, "value");
		json_bool(j, l->number != 0);
		break;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
		json_key(j, s->kind == KIND_DURATION ? "milliseconds" : "value");
		json_unsigned(j, l->number);
		break;
	default:
		json_member(j, "value", l->text);
		break;
	}
	json_source(j, &l->source);
	json_object_end(j);
}

/* --- all rules -------------------------------------------------------------------------------- */

static void put_scalar(struct printer *o, const struct setting *s)
{
	const void *member = (const char *)o->p + s->member;
	const struct text_value *text = member;
	const struct number_value *number = member;
	const struct flag_value *flag = member;
	enum setting_id id = (enum setting_id)s->id;

	switch (s->kind) {
	case KIND_FLAG:
		if (flag->on || flag->source.layer != LAYER_DEFAULT)
			put_rule(o, id,
				&(struct policy_line){ .number = flag->on,
					.source = flag->source });
		return;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
		if (number->set)
			put_rule(o, id,
				&(struct policy_line){ .number = number->value,
					.source = number->source });
		return;
	default:
		if (text->value)
			put_rule(o, id,
				&(struct policy_line){ .text = text->value,
					.source = text->source });
		return;
	}
}

static void put_enum(struct printer *o, const struct setting *s)
{
	static const char *const modes[] = {
		[WORKSPACE_DIRECT] = "direct",
		[WORKSPACE_RO] = "ro",
		[WORKSPACE_OVERLAY] = "overlay",
	};
	const struct policy *p = o->p;
	struct policy_line l = { 0 };

	if (s->id == SETTING_WORKSPACE_MODE) {
		l.text = modes[p->workspace_mode];
		l.source = p->workspace_mode_source;
	} else if (s->id == SETTING_TTY) {
		l.text = s->words[p->tty];
		l.source = p->tty_source;
	} else {
		l.text = s->words[p->net];
		l.source = p->net_source;
	}
	put_rule(o, (enum setting_id)s->id, &l);
}

static void put_paths(struct printer *o)
{
	for (size_t i = 0; i < o->p->path_count; i++) {
		const struct path_rule *r = &o->p->paths[i];
		const char *name = policy_path_setting(r->kind);
		struct policy_line l = {
			.text = r->path,
			.dest = r->dest,
			.number = r->size,
			.source = r->source,
			.kind = (unsigned char)r->kind,
			.optional = r->optional,
			.glob = r->glob,
		};

		put_rule(o, (enum setting_id)settings_find(name, strlen(name))->id, &l);
	}
}

static void put_envs(struct printer *o)
{
	for (size_t i = 0; i < o->p->env_count; i++) {
		const struct env_rule *r = &o->p->envs[i];
		struct policy_line l = { .text = r->name, .dest = r->value, .source = r->source };

		put_rule(o, r->unset ? SETTING_UNSETENV : SETTING_ENV, &l);
	}
}

static void put_syscalls(struct printer *o)
{
	for (size_t i = 0; i < o->p->syscall_rule_count; i++) {
		const struct syscall_rule *r = &o->p->syscall_rules[i];

		put_rule(o, SETTING_SYSCALL,
			&(struct policy_line){ .text = r->text, .source = r->source });
	}
}

static void put_list(struct printer *o, enum setting_id id, const struct word_rule *rules,
	size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_rule(o, id,
			&(struct policy_line){ .text = rules[i].word, .source = rules[i].source });
}

static void put_setting(struct printer *o, const struct setting *s)
{
	const struct policy *p = o->p;

	switch ((int)s->id) {
	case SETTING_READ:
		put_paths(o);
		return;
	case SETTING_ENV:
		put_envs(o);
		return;
	case SETTING_SYSCALL:
		put_syscalls(o);
		return;
	case SETTING_SCRATCH_ENV:
		put_list(o, SETTING_SCRATCH_ENV, p->scratch_envs, p->scratch_env_count);
		return;
	case SETTING_REQUIRE:
		put_list(o, SETTING_REQUIRE, p->requires, p->require_count);
		return;
	default:
		if (s->kind == KIND_ENUM)
			put_enum(o, s);
		else if (s->member)
			put_scalar(o, s);
	}
}

/* What only a reader wants to know: a locked line is valid in the system policy and nowhere else. */
static void put_remarks(struct printer *o)
{
	puts_text(o, "# profile ");
	puts_text(o, o->p->profile.value);
	put_source(o, &o->p->profile.source, "profile");
	put(o, '\n');
	for (size_t i = 0; i < o->p->lock_count; i++) {
		puts_text(o, "# lock ");
		puts_text(o, o->p->locks[i].word);
		put_source(o, &o->p->locks[i].source, "lock");
		put(o, '\n');
	}
}

int policy_print(const struct policy *p, bool sources,
	int (*write)(void *context, const void *data, size_t size), void *context)
{
	struct printer o = { .p = p, .sources = sources, .write = write, .context = context };

	if (sources)
		put_remarks(&o);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		put_setting(&o, &settings_table[i]);
	flush(&o);
	return o.error;
}

int policy_print_json(const struct policy *p,
	int (*write)(void *context, const void *data, size_t size), void *context)
{
	char buffer[2048];
	struct json j;
	struct printer o = { .p = p, .json = &j };

	json_init(&j, buffer, sizeof(buffer), write, context);
	json_object_begin(&j);
	json_key(&j, "profile");
	json_object_begin(&j);
	json_member(&j, "value", p->profile.value);
	json_source(&j, &p->profile.source);
	json_object_end(&j);
	json_key(&j, "locks");
	json_array_begin(&j);
	for (size_t i = 0; i < p->lock_count; i++) {
		json_object_begin(&j);
		json_member(&j, "setting", p->locks[i].word);
		json_source(&j, &p->locks[i].source);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "rules");
	json_array_begin(&j);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		put_setting(&o, &settings_table[i]);
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}
