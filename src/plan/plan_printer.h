/*
 * plan_printer.h - what a plan is written to: lines of text in columns, or a JSON document. For plan_print*.c only.
 *
 * Runs in: carrel-policy. PURE. Calls need not be checked: the first failure is kept, and everything
 * after it is passed over.
 *
 * One walk over the plan writes both. A value has the key of a member, for the document, and the
 * text in front of it: where one of them is NULL, the value is not in that form. Only the text has
 * what joins values in a line, only the document has objects and arrays.
 */
#pragma once

#include <stddef.h>

#include "base/json.h"
#include "plan/plan_print.h"

struct setting;

struct printer {
	const struct plan_view *view;
	const struct plan *plan;
	bool as_json;
	struct json json; /* the text is written to the writer of it, too */
	char buffer[2048];
};

/* --- of the text alone ------------------------------------------------------------------------ */

/* printer_own, printer_format - carrel's own text, as it is; the last one at most 255 bytes. */
void printer_own(struct printer *o, const char *text);
void printer_format(struct printer *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* printer_pad - blanks up to @column, at least one. */
void printer_pad(struct printer *o, size_t column);

/* printer_place - " [profile:agent:12]" and the like; nothing for NULL. */
void printer_place(struct printer *o, const struct source *source);

/* --- of the document alone -------------------------------------------------------------------- */

/* printer_object, printer_array - begin one; @key is NULL for an element of an array. */
void printer_object(struct printer *o, const char *key);
void printer_end_object(struct printer *o);
void printer_array(struct printer *o, const char *key);
void printer_end_array(struct printer *o);

/* printer_bool - yes or no. The text says it in other words. */
void printer_bool(struct printer *o, const char *key, bool value);

/* --- of both ---------------------------------------------------------------------------------- */

/*
 * printer_string - a text from outside, with the session's id replaced. NULL is null in the document, and nothing in
 * the text. What is no printable character is written as \xNN there, backslashes are doubled.
 */
void printer_string(struct printer *o, const char *key, const char *before, const char *text);

/* printer_name - the same for the first @size bytes, as they are. */
void printer_name(
	struct printer *o, const char *key, const char *before, const char *text, size_t size);

/*
 * printer_number, printer_known - a number. One that is not @known is null, and nothing in the
 * text.
 */
void printer_number(struct printer *o, const char *key, const char *before, uint64_t value);
void printer_known(
	struct printer *o, const char *key, const char *before, bool known, uint64_t value);

/* printer_number_item - a number that is an element of an array. */
void printer_number_item(struct printer *o, const char *before, uint64_t value);

/* printer_value - the same as printer_known for the value of a setting. The text has it as a policy would. */
void printer_value(struct printer *o, const char *key, const char *before, bool known,
	const struct setting *s, uint64_t value);

/*
 * printer_word - an element: one word of a command line. The text has it so that a shell reads the
 * same word.
 */
void printer_word(struct printer *o, const char *before, const char *word);

/* printer_source - printer_place(), and the member "source". */
void printer_source(struct printer *o, const struct source *source);

/* plan_print_session - the section "session". */
void plan_print_session(struct printer *o);
