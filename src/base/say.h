/*
 * say.h - what carrel says to people: on stderr, in one form.
 *
 * Runs in: every process outside the box.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { SAY_STATUS = 125 }; /* the exit status where carrel itself failed */

/* say_error - @e on stderr, where there is one (its code is not ERROR_NONE). Returns SAY_STATUS. */
int say_error(const struct error *e);

/* say_unknown_verb - @word (NULL: none was given) is not one of @names. Returns SAY_STATUS. */
int say_unknown_verb(const char *word, const char *const *names, size_t count);
