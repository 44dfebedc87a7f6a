/*
 * session_name.h - what a session and its directory, its record and its group are called.
 *
 * Runs in: every process outside.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define SESSION_ID_LENGTH 20
#define SESSION_NAME_PREFIX \
	"carrel-" /* of its directory and its group: the id comes behind it */

/* session_is_id - whether @text has the form of a session's id. */
bool session_is_id(const char *text);

/* session_is_name - whether @name has the form carrel-<id>. */
bool session_is_name(const char *name);

/* session_make_id - an id that cannot be guessed: 100 random bits. 0 or -errno. */
MUST_CHECK int session_make_id(char ret_id[SESSION_ID_LENGTH + 1]);

/* session_id - the id in a name that has that form. */
const char *session_id(const char *name);
