/*
 * session_name.c - see session_name.h.
 *
 * Runs in: every process outside.
 */
#include "base/session_name.h"

#include <string.h>

#include "base/fd.h"

/* Of base32: a character has five bits. */
static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

int session_make_id(char ret_id[SESSION_ID_LENGTH + 1])
{
	unsigned char random[SESSION_ID_LENGTH];
	int r = fd_random(random, sizeof(random));

	if (r < 0)
		return r;
	for (size_t i = 0; i < SESSION_ID_LENGTH; i++)
		ret_id[i] = digits[random[i] & 31];
	ret_id[SESSION_ID_LENGTH] = '\0';
	return 0;
}

bool session_is_id(const char *text)
{
	return strlen(text) == SESSION_ID_LENGTH && strspn(text, digits) == SESSION_ID_LENGTH;
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
