/*
 * error_report.h - errors as people see them: on stderr, in one form.
 *
 * Runs in: every process outside the box.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* error_report - print @e on stderr, where there is one (its code is not ERROR_NONE). Returns STATUS_CARREL. */
int error_report(const struct error *e);

/* error_report_unknown_verb - @word (NULL: none was given) is not one of @names: report that. Returns STATUS_CARREL. */
int error_report_unknown_verb(const char *word, const char *const *names, size_t count);
