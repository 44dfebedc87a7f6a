/*
 * policy_print.c - the effective policy as a policy file again.
 *
 * Runs in: the launcher (for the digest) and carrel-policy. PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	int error; /* first failure; everything after it is passed over */
	size_t column;
	size_t used;
	char buffer[1024];
};

static void flush_printer(struct printer *o)
{
	if (o->error == 0 && o->used > 0)
		o->error = o->write(o->context, o->buffer, o->used);
	o->used = 0;
}

static void put_char(struct printer *o, char c)
{
	if (o->used == sizeof(o->buffer))
		flush_printer(o);
	o->buffer[o->used++] = c;
	o->column = c == '\n' ? 0 : o->column + 1;
}

static void puts_text(struct printer *o, const char *text)
{
	while (*text)
		put_char(o, *text++);
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
	*ret_active =
		(glob && strchr("*?[", *c->at)) || (c->form == FORM_TEMPLATE && *c->at == '$');
	c->at++;
	return true;
}

static void put_hex(struct printer *o, char c)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char byte = (unsigned char)c;

	puts_text(o, "\\x");
	put_char(o, hex[byte >> 4]);
	put_char(o, hex[byte & 15]);
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
			put_char(o, '\\');
		put_char(o, c);
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
		put_char(o, '"');
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
			put_char(o, byte);
		else
			put_escaped(o, byte, good, wild ? " \"'\\#$*?[~:" : "\"\\$");
	}
	if (quotes && !wild)
		put_char(o, '"');
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
		put_char(o, ' ');
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
	else if (s->kind == KIND_CPUS)
		text_format_thousandths(number, text, sizeof(text));
	else if (s->kind == KIND_SIZE || s->kind == KIND_TMPFS)
		text_format_size(number, text, sizeof(text));
	else
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	puts_text(o, text);
}

static void put_argument(
	struct printer *o, const struct setting *s, const struct policy_line *l)
{
	enum form form = path_form(o, l->glob);

	switch (s->kind) {
	case KIND_FLAG:
		puts_text(o, l->number ? "yes" : "no");
		return;
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_DEVICE:
	case KIND_DIRS:
	case KIND_PATH_LATE:
		put_part(o, l->text, form, l->glob, false);
		return;
	case KIND_BIND:
		put_part(o, l->text, form, false, true);
		put_char(o, ':');
		put_part(o, l->dest, form, false, true);
		if (l->kind == PATH_BIND_RW)
			puts_text(o, ":rw");
		return;
	case KIND_PROMOTE:
		put_part(o, l->text, form, true, true);
		put_char(o, ':');
		put_part(o, l->dest, path_form(o, false), false, true);
		return;
	case KIND_TMPFS:
		put_part(o, l->dest, form, false, true);
		if (l->number) {
			put_char(o, ':');
			put_number(o, s, l->number);
		}
		return;
	case KIND_ENV:
		puts_text(o, l->text);
		if (l->dest) {
			put_char(o, '=');
			put_part(o, l->dest, form, false, false);
		}
		return;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
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
		put_char(o, ' ');
	while (o->column < 48);
	puts_text(o, "# ");
	for (const char *c = place; *c; c++)
		if (is_control(*c))
			put_hex(o, *c);
		else
			put_char(o, *c);
}

static void put_rule(void *context, const struct setting *s, const struct policy_line *l)
{
	struct printer *o = context;

	puts_text(o, s->name);
	put_char(o, ' ');
	if (l->optional && s->kind != KIND_GLOB_RULE && s->id != SETTING_PROTECT)
		put_char(o, '-');
	put_argument(o, s, l);
	put_source(o, &l->source, s->name);
	put_char(o, '\n');
}

/* What only a reader wants to know: a locked line is valid in the system policy and nowhere else. */
static void put_remarks(struct printer *o)
{
	puts_text(o, "# profile ");
	puts_text(o, o->p->profile.value);
	put_source(o, &o->p->profile.source, "profile");
	put_char(o, '\n');
	for (size_t i = 0; i < o->p->lock_count; i++) {
		puts_text(o, "# lock ");
		puts_text(o, o->p->locks[i].word);
		put_source(o, &o->p->locks[i].source, "lock");
		put_char(o, '\n');
	}
}

int policy_print(const struct policy *p, bool sources,
	int (*write)(void *context, const void *data, size_t size), void *context)
{
	struct printer o = { .p = p, .sources = sources, .write = write, .context = context };

	if (sources)
		put_remarks(&o);
	policy_walk(p, put_rule, &o);
	flush_printer(&o);
	return o.error;
}
