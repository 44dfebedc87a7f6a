/*
 * plan_printer.h - writing lines of text in columns. For plan_print*.c only.
 *
 * Runs in: carrel-policy. PURE. Calls need not be checked: the first failure is kept, and everything
 * after it is passed over.
 */
#pragma once

#include <stddef.h>

#include "plan/plan_print.h"

struct printer {
	const struct plan_view *view;
	const struct plan *plan;
	int error;     /* first failure, -errno */
	size_t column; /* characters since the newline */
	size_t used;
	char buffer[1024];
};

/* printer_flush - hand on what is in the buffer. */
void printer_flush(struct printer *o);

/* printer_char, printer_own, printer_format - carrel's own text, as it is; the last one at most 255 bytes. */
void printer_char(struct printer *o, char c);
void printer_own(struct printer *o, const char *text);
void printer_format(struct printer *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* printer_pad - blanks up to @column, at least one. */
void printer_pad(struct printer *o, size_t column);

/*
 * printer_bytes - text from outside: what is no printable character as \xNN, and a backslash in front of
 * each byte of @special.
 */
void printer_bytes(struct printer *o, const char *text, size_t size, const char *special);

/* printer_text - the same with the session's id replaced; backslashes are doubled. */
void printer_text(struct printer *o, const char *text);

/* printer_word - one word of a command line, so that a shell reads the same word. */
void printer_word(struct printer *o, const char *word);

/* printer_source - " [profile:agent:12]" and the like; nothing for NULL. */
void printer_source(struct printer *o, const struct source *source);

/* plan_print_session - the section "session" of plan_print(). */
void plan_print_session(struct printer *o);

/* printer_size, printer_duration - as a policy says them. */
void printer_size(struct printer *o, uint64_t bytes);
void printer_duration(struct printer *o, uint64_t ms);
