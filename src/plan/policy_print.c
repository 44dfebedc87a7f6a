/*
 * policy_print.c - the effective policy as a policy file again.
 *
 * Runs in: the launcher (for the digest) and carrel-policy. PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/writer.h"
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
	struct writer out;
	char buffer[1024];
};

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

	writer_text(&o->out, "\\x");
	writer_char(&o->out, hex[byte >> 4]);
	writer_char(&o->out, hex[byte & 15]);
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
		writer_text(&o->out, c == '\n' ? "\\n" : "\\t");
	} else {
		if (strchr(special, c))
			writer_char(&o->out, '\\');
		writer_char(&o->out, c);
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
		writer_char(&o->out, '"');
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
			writer_char(&o->out, byte);
		else
			put_escaped(o, byte, good, wild ? " \"'\\#$*?[~:" : "\"\\$");
	}
	if (quotes && !wild)
		writer_char(&o->out, '"');
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
		writer_char(&o->out, ' ');
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

	policy_format_number(s, number, text, sizeof(text));
	writer_text(&o->out, text);
}

static void put_argument(
	struct printer *o, const struct setting *s, const struct policy_line *l)
{
	enum form form = path_form(o, l->glob);

	switch (s->kind) {
	case KIND_FLAG:
		writer_text(&o->out, l->number ? "yes" : "no");
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
		writer_char(&o->out, ':');
		put_part(o, l->dest, form, false, true);
		if (l->kind == PATH_BIND_RW)
			writer_text(&o->out, ":rw");
		return;
	case KIND_PROMOTE:
		put_part(o, l->text, form, true, true);
		writer_char(&o->out, ':');
		put_part(o, l->dest, path_form(o, false), false, true);
		return;
	case KIND_TMPFS:
		put_part(o, l->dest, form, false, true);
		if (l->number) {
			writer_char(&o->out, ':');
			put_number(o, s, l->number);
		}
		return;
	case KIND_ENV:
		writer_text(&o->out, l->text);
		if (l->dest) {
			writer_char(&o->out, '=');
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
	case KIND_PASS_FD:
		writer_text(&o->out, l->dest);
		return;
	case KIND_ENV_NAME:
	case KIND_HOST: /* its bytes mean themselves, bare */
	case KIND_RESOLVER:
	case KIND_PROXY:
		writer_text(&o->out, l->text);
		return;
	case KIND_PUBLISH:
		writer_text(&o->out, l->dest);
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
	writer_pad(&o->out, 48);
	writer_text(&o->out, "# ");
	for (const char *c = place; *c; c++)
		if (is_control(*c))
			put_hex(o, *c);
		else
			writer_char(&o->out, *c);
}

static void put_rule(void *context, const struct setting *s, const struct policy_line *l)
{
	struct printer *o = context;

	writer_text(&o->out, s->name);
	writer_char(&o->out, ' ');
	if (l->optional && s->kind != KIND_GLOB_RULE && s->id != SETTING_PROTECT)
		writer_char(&o->out, '-');
	put_argument(o, s, l);
	put_source(
		o, &l->source, s->id == SETTING_NET && o->p->net_implied ? "allow" : s->name);
	writer_char(&o->out, '\n');
}

/*
 * Print, as comments, what a person wants to know and a policy file may not hold: `lock` is for the
 * system policy only.
 */
static void put_remarks(struct printer *o)
{
	writer_text(&o->out, "# profile ");
	writer_text(&o->out, o->p->profile.value);
	put_source(o, &o->p->profile.source, "profile");
	writer_char(&o->out, '\n');
	for (size_t i = 0; i < o->p->lock_count; i++) {
		writer_text(&o->out, "# lock ");
		writer_text(&o->out, o->p->locks[i].word);
		put_source(o, &o->p->locks[i].source, "lock");
		writer_char(&o->out, '\n');
	}
}

int policy_print(const struct policy *p, bool sources, writer_fn write, void *context)
{
	struct printer o = { .p = p, .sources = sources };

	writer_init(&o.out, o.buffer, sizeof(o.buffer), write, context);
	if (sources)
		put_remarks(&o);
	policy_walk(p, put_rule, &o);
	return writer_finish(&o.out);
}

/* --- one rule by its place -------------------------------------------------------------------- */

struct pick {
	struct printer out;
	const struct source *source;
	const char *path; /* if a path rule has exactly this source: its path; else NULL */
	bool done;
};

static void pick_rule(void *context, const struct setting *s, const struct policy_line *l)
{
	struct pick *k = context;
	const struct source *at = &l->source;

	/* The line that was written is the `allow` line. */
	if (s->id == SETTING_NET && k->out.p->net_implied)
		return;
	if (k->done || at->layer != k->source->layer || at->line != k->source->line ||
		!at->file || !k->source->file || strcmp(at->file, k->source->file) != 0 ||
		(k->path && k->path != l->text && k->path != l->dest))
		return;
	put_rule(&k->out, s, l);
	k->done = true;
}

int policy_print_rule(
	const struct policy *p, const struct source *source, char *ret, size_t size)
{
	struct pick k = { .source = source, .out = { .p = p } };

	writer_init(&k.out.out, ret, size - 1, NULL, NULL);
	for (size_t i = 0; i < p->path_count; i++)
		if (&p->paths[i].source == source)
			k.path = p->paths[i].path ? p->paths[i].path : p->paths[i].dest;
	policy_walk(p, pick_rule, &k);
	size_t used = k.out.out.used;
	int r = writer_finish(&k.out.out);
	if (used && ret[used - 1] == '\n')
		used--;
	ret[used] = '\0';
	return r < 0 ? r : (int)used;
}
