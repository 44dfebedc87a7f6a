/*
 * budget_marker.h - the line that stands where output was left out.
 *
 * Runs in: S, or the client of an exec. PURE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/stdio/budget.h"

#define BUDGET_FIGURE_SIZE 32 /* of a number with its commas */

/*
 * budget_marker - write the marker of @b, whose budget is exceeded. It ends with a newline; if what
 * was passed before did not end a line (@own_line is false), it also begins with one. It says what
 * really is in the file. Returns its length, below @size.
 */
size_t budget_marker(const struct budget *b, bool own_line, char *ret_text, size_t size);

/* budget_figure - @number with a comma before every third digit: "83,450". */
void budget_figure(uint64_t number, char ret_text[BUDGET_FIGURE_SIZE]);
