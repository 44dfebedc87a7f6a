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

void printer_flush(struct printer *o)
{
	if (o->error == 0 && o->used > 0)
		o->error = o->view->write(o->view->context, o->buffer, o->used);
	o->used = 0;
}

void printer_char(struct printer *o, char c)
{
	if (o->used == sizeof(o->buffer))
		printer_flush(o);
	o->buffer[o->used++] = c;
	/* One for each character, not for each byte. */
	o->column = c == '\n' ? 0 : o->column + (((unsigned char)c & 0xc0) != 0x80);
}

void printer_own(struct printer *o, const char *text)
{
	while (*text)
		printer_char(o, *text++);
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
	do
		printer_char(o, ' ');
	while (o->column < column);
}

void printer_bytes(struct printer *o, const char *text, size_t size, const char *special)
{
	while (size > 0) {
		size_t n = text_printable_length(text, size);

		if (n == 0)
			printer_format(o, "\\x%02x", (unsigned char)*text);
		else if (n == 1 && strchr(special, *text))
			printer_char(o, '\\');
		for (size_t i = 0; i < n; i++)
			printer_char(o, text[i]);
		text += n ? n : 1;
		size -= n ? n : 1;
	}
}

void printer_text(struct printer *o, const char *text)
{
	text = plan_view_text(o->view, text);
	if (text)
		printer_bytes(o, text, strlen(text), "\\");
	else if (o->error == 0)
		o->error = -ENOMEM;
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

void printer_word(struct printer *o, const char *word)
{
	static const char bare[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"%+,-./:=@_^";

	word = plan_view_text(o->view, word);
	if (!word) {
		o->error = o->error ? o->error : -ENOMEM;
	} else if (*word && word[strspn(word, bare)] == '\0') {
		printer_own(o, word);
	} else if (is_printable(word) && !strchr(word, '\'')) {
		printer_char(o, '\'');
		printer_own(o, word);
		printer_char(o, '\'');
	} else {
		printer_own(o, "$'");
		printer_bytes(o, word, strlen(word), "\\'");
		printer_char(o, '\'');
	}
}

void printer_source(struct printer *o, const struct source *source)
{
	char place[512];

	if (!source)
		return;
	if (source->layer == LAYER_DEFAULT)
		(void)snprintf(place, sizeof(place), "%s", plan_word_source(source));
	else
		policy_format_source(source, policy_source_setting(o->plan->policy, source),
			place, sizeof(place));
	printer_own(o, " [");
	printer_bytes(o, place, strlen(place), "\\");
	printer_char(o, ']');
}

void printer_size(struct printer *o, uint64_t bytes)
{
	char text[32];

	text_format_size(bytes, text, sizeof(text));
	printer_own(o, text);
}

void printer_duration(struct printer *o, uint64_t ms)
{
	char text[32];

	text_format_duration(ms, text, sizeof(text));
	printer_own(o, text);
}
