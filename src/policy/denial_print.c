/*
 * denial_print.c - what was refused, for people and as JSON: in the words of `carrel why`.
 *
 * Runs in: carrel-policy, outside. It shows what tools have chosen so that no terminal obeys it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "policy/denial.h"

enum { SHOWN_MAX = 24 }; /* on a terminal */

/* --- for people --------------------------------------------------------------------------------- */

static void put(struct writer *out, const char *text)
{
	writer_visible(out, text, strlen(text), "");
}

static void label(struct writer *out, const char *name)
{
	writer_format(out, "    %-9s", name);
}

static void put_lines(struct writer *out, const struct why_answer *a)
{
	for (size_t i = 0; i < a->line_count; i++) {
		label(out, "line");
		if (a->lines[i].text) {
			put(out, a->lines[i].text);
			writer_text(out, "  ");
		}
		writer_text(out, "(");
		put(out, a->lines[i].place);
		writer_text(out, ")\n");
	}
}

static void put_change(struct writer *out, const struct why_change *c)
{
	label(out, c->option ? "change" : "fixed");
	put(out, c->option ? c->option : c->locked);
	writer_format(out, "  (to %s)\n", c->aim);
}

/* A program takes it for an older kernel, and most go on by another way. */
static bool is_unknown(const struct denial *d)
{
	return d->answer.kind == WHY_CALL && d->entry->errnum == ENOSYS;
}

static void put_denial(struct writer *out, const struct denial *d)
{
	const char *name = name_errno(d->entry->errnum);

	writer_format(out, "  %s ", d->verb);
	put(out, d->what);
	writer_format(out, ": %s", name ? name : "refused");
	if (d->times > 1)
		writer_format(out, ", %llu times", (unsigned long long)d->times);
	writer_text(out, ", ");
	put(out, d->entry->name[0] ? d->entry->name : "?");
	if (d->entry->pid)
		writer_format(out, " (%d)", (int)d->entry->pid);
	if (d->answer.kind != WHY_CALL)
		writer_format(out, ", %s", d->call);
	writer_text(out, "\n");
	if (d->answer.because) {
		label(out, "because");
		put(out, d->answer.because);
		writer_text(out, "\n");
	}
	put_lines(out, &d->answer);
	if (d->change)
		put_change(out, d->change);
}

static void put_unknown(const struct denials *d, struct writer *out)
{
	const char *between =
		"carrel: note: taken for calls that an older kernel lacks (ENOSYS): ";

	for (size_t i = 0; i < d->count; i++) {
		if (!is_unknown(&d->all[i]))
			continue;
		writer_text(out, between);
		put(out, d->all[i].call);
		between = ", ";
	}
	if (between[0] == ',')
		writer_text(out, "\n");
}

size_t denials_shown(const struct denials *d)
{
	size_t shown = 0;

	for (size_t i = 0; i < d->count; i++)
		shown += !is_unknown(&d->all[i]);
	return shown;
}

int denials_text(const struct denials *d, struct writer *out)
{
	const size_t shown = denials_shown(d);

	if (shown)
		writer_format(out, "carrel: refused: %zu %s\n", shown,
			shown == 1 ? "thing" : "things");
	size_t left = SHOWN_MAX;
	for (size_t i = 0; i < d->count && left; i++)
		if (!is_unknown(&d->all[i])) {
			put_denial(out, &d->all[i]);
			left--;
		}
	if (shown > SHOWN_MAX)
		writer_format(out, "  and %zu more, which the report has (--report)\n",
			shown - SHOWN_MAX);
	put_unknown(d, out);
	if (d->unexplained)
		writer_format(out,
			"carrel: note: there was no time to look up %llu more calls that failed\n",
			(unsigned long long)d->unexplained);
	return writer_finish(out);
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void put_args(struct json *j, const struct denial *d)
{
	json_key(j, "arguments");
	json_array_begin(j);
	for (int i = 0; i < EXPLAIN_ARGUMENTS && d->answer.kind == WHY_CALL; i++)
		json_unsigned(j, d->entry->args[i]);
	json_array_end(j);
}

static void put_json_lines(struct json *j, const struct denial *d)
{
	json_key(j, "lines");
	json_array_begin(j);
	for (size_t i = 0; i < d->answer.line_count; i++) {
		json_object_begin(j);
		put_text(j, "line", d->answer.lines[i].text);
		put_text(j, "place", d->answer.lines[i].place);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_json_change(struct json *j, const struct why_change *c)
{
	json_key(j, "change");
	if (!c) {
		json_null(j);
		return;
	}
	json_object_begin(j);
	put_text(j, "to", c->aim);
	put_text(j, "option", c->option);
	put_text(j, "line", c->line);
	put_text(j, "fixed", c->locked);
	json_object_end(j);
}

int denials_json(const struct denials *d, struct json *j)
{
	json_array_begin(j);
	for (size_t i = 0; i < d->count; i++) {
		const struct denial *one = &d->all[i];

		json_object_begin(j);
		put_text(j, "tried", one->verb);
		put_text(j, "what", one->what);
		put_text(j, "call", one->call);
		put_args(j, one);
		json_key(j, "errno");
		json_unsigned(j, (uint64_t)one->entry->errnum);
		put_text(j, "errno_name", name_errno(one->entry->errnum));
		json_key(j, "times");
		json_unsigned(j, one->times);
		put_text(j, "name", one->entry->name);
		json_key(j, "pid");
		json_number(j, one->entry->pid);
		put_text(j, "seen", one->answer.seen);
		put_text(j, "because", one->answer.because);
		put_json_lines(j, one);
		put_json_change(j, one->change);
		json_object_end(j);
	}
	json_array_end(j);
	return json_finish(j);
}
