/*
 * settings_output.c - see settings_output.h.
 *
 * Runs in: the launcher (--help) and the build. PURE.
 */
#include "plan/settings_output.h"

#include <string.h>

static void flush_output(struct output *o)
{
	if (o->error == 0 && o->used > 0)
		o->error = o->write(o->context, o->buffer, o->used);
	o->used = 0;
}

void output_char(struct output *o, char c)
{
	if (o->used == sizeof(o->buffer))
		flush_output(o);
	o->buffer[o->used++] = c;
}

void output_text(struct output *o, const char *text)
{
	while (*text)
		output_char(o, *text++);
}

void output_escaped(struct output *o, const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			output_text(o, escape);
		output_char(o, *text);
	}
}

int output_finish(struct output *o)
{
	flush_output(o);
	return o->error;
}
