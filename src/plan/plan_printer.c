/*
 * plan_printer.c - see plan_printer.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include "plan/plan_printer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/settings.h"

/* --- of the text alone ------------------------------------------------------------------------ */

void printer_own(struct printer *o, const char *text)
{
	if (!o->as_json)
		writer_text(&o->json.out, text);
}

void printer_format(struct printer *o, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printer_own(o, text);
}

void printer_pad(struct printer *o, size_t column)
{
	if (!o->as_json)
		writer_pad(&o->json.out, column);
}

void printer_place(struct printer *o, const struct source *source)
{
	char place[512];

	if (!source || o->as_json)
		return;
	if (source->layer == LAYER_DEFAULT)
		(void)snprintf(place, sizeof(place), "%s", plan_word_source(source));
	else
		policy_format_source(source, policy_source_setting(o->plan->policy, source),
			place, sizeof(place));
	printer_own(o, " [");
	writer_visible(&o->json.out, place, strlen(place), "\\");
	printer_own(o, "]");
}

/* --- of the document alone -------------------------------------------------------------------- */

static void put_key(struct printer *o, const char *key)
{
	if (key)
		json_key(&o->json, key);
}

void printer_object(struct printer *o, const char *key)
{
	if (!o->as_json)
		return;
	put_key(o, key);
	json_object_begin(&o->json);
}

void printer_end_object(struct printer *o)
{
	if (o->as_json)
		json_object_end(&o->json);
}

void printer_array(struct printer *o, const char *key)
{
	if (!o->as_json)
		return;
	put_key(o, key);
	json_array_begin(&o->json);
}

void printer_end_array(struct printer *o)
{
	if (o->as_json)
		json_array_end(&o->json);
}

void printer_bool(struct printer *o, const char *key, bool value)
{
	if (!o->as_json)
		return;
	put_key(o, key);
	json_bool(&o->json, value);
}

/* --- of both ---------------------------------------------------------------------------------- */

static const char *shown(struct printer *o, const char *text)
{
	const char *own = plan_view_text(o->view, text);

	if (text && !own)
		writer_fail(&o->json.out, -ENOMEM);
	return own;
}

void printer_name(
	struct printer *o, const char *key, const char *before, const char *text, size_t size)
{
	if (o->as_json && key) {
		json_key(&o->json, key);
		json_bytes(&o->json, text, size);
	} else if (!o->as_json && before) {
		printer_own(o, before);
		writer_visible(&o->json.out, text, size, "\\");
	}
}

void printer_string(struct printer *o, const char *key, const char *before, const char *text)
{
	text = shown(o, text);
	if (o->as_json) {
		put_key(o, key);
		json_string(&o->json, text);
	} else if (before && text) {
		printer_own(o, before);
		writer_visible(&o->json.out, text, strlen(text), "\\");
	}
}

void printer_known(
	struct printer *o, const char *key, const char *before, bool known, uint64_t value)
{
	if (!o->as_json && before && known)
		printer_format(o, "%s%llu", before, (unsigned long long)value);
	if (!o->as_json || !key)
		return;
	json_key(&o->json, key);
	if (known)
		json_unsigned(&o->json, value);
	else
		json_null(&o->json);
}

void printer_number(struct printer *o, const char *key, const char *before, uint64_t value)
{
	printer_known(o, key, before, true, value);
}

void printer_number_item(struct printer *o, const char *before, uint64_t value)
{
	if (o->as_json)
		json_unsigned(&o->json, value);
	else
		printer_format(o, "%s%llu", before, (unsigned long long)value);
}

void printer_value(struct printer *o, const char *key, const char *before, bool known,
	const struct setting *s, uint64_t value)
{
	char text[32];

	printer_known(o, key, NULL, known, value);
	if (!known || !before)
		return;
	policy_format_number(s, value, text, sizeof(text));
	printer_own(o, before);
	printer_own(o, text);
}

static bool is_printable(const char *text)
{
	for (size_t size = strlen(text); size > 0;) {
		size_t n = text_printable_length(text, size);

		if (n == 0)
			return false;
		text += n;
		size -= n;
	}
	return true;
}

void printer_word(struct printer *o, const char *before, const char *word)
{
	static const char bare[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"%+,-./:=@_^";

	if (o->as_json) {
		printer_string(o, NULL, NULL, word);
		return;
	}
	printer_own(o, before);
	word = shown(o, word);
	if (!word)
		return;
	if (*word && word[strspn(word, bare)] == '\0') {
		printer_own(o, word);
	} else if (is_printable(word) && !strchr(word, '\'')) {
		printer_own(o, "'");
		printer_own(o, word);
		printer_own(o, "'");
	} else {
		printer_own(o, "$'");
		writer_visible(&o->json.out, word, strlen(word), "\\'");
		printer_own(o, "'");
	}
}

void printer_source(struct printer *o, const struct source *source)
{
	printer_place(o, source);
	if (!o->as_json)
		return;
	if (!source) {
		printer_string(o, "source", NULL, NULL);
		return;
	}
	printer_object(o, "source");
	printer_string(o, "layer", NULL, policy_layer_name(source->layer));
	printer_string(o, "file", NULL, source->file);
	printer_known(o, "line", NULL, source->line > 0, source->line);
	printer_string(o, "setting", NULL, policy_source_setting(o->plan->policy, source));
	printer_end_object(o);
}
