/*
 * settings_output.h - what the printers of the settings table share: bytes to the caller's function.
 *
 * Runs in: the launcher (--help) and the build. PURE.
 */
#pragma once

#include "plan/settings.h"

struct output {
	settings_write_fn write;
	void *context;
	int error; /* the first failure, -errno */
	size_t used;
	char buffer[1024];
};

/* output_char, output_text - one byte; a text. */
void output_char(struct output *o, char c);
void output_text(struct output *o, const char *text);

/* output_escaped - the same, with @escape in front of each byte of @special. */
void output_escaped(
	struct output *o, const char *text, const char *special, const char *escape);

/* output_finish - hand on what is left. 0, or the first failure. */
MUST_CHECK int output_finish(struct output *o);
