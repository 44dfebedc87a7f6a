/*
 * session_name.c - see session_name.h.
 *
 * Runs in: every process outside.
 */
#include "base/session_name.h"

#include <string.h>

bool session_is_id(const char *text)
{
	return strlen(text) == SESSION_ID_LENGTH &&
		strspn(text, "abcdefghijklmnopqrstuvwxyz234567") == SESSION_ID_LENGTH;
}

bool session_is_name(const char *name)
{
	size_t prefix = strlen(SESSION_NAME_PREFIX);

	return !strncmp(name, SESSION_NAME_PREFIX, prefix) && session_is_id(name + prefix);
}

const char *session_id(const char *name)
{
	return name + strlen(SESSION_NAME_PREFIX);
}
