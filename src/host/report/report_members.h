/*
 * report_members.h - members of the report, for the files that write it.
 *
 * Runs in: the launcher and S, outside.
 */
#pragma once

#include "base/json.h"
#include "base/name.h"

static inline void put_string(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static inline void put_unsigned(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_unsigned(j, value);
}

static inline void put_known(struct json *j, const char *key, bool known, uint64_t value)
{
	json_key(j, key);
	if (known)
		json_unsigned(j, value);
	else
		json_null(j);
}

static inline void put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

/* "errno" and "errno_name": both null where there is none. */
static inline void put_errno(struct json *j, int errnum)
{
	put_known(j, "errno", errnum > 0, (uint64_t)errnum);
	put_string(j, "errno_name", name_errno(errnum));
}

/* "key":null instead of an object: true where it was written. */
static inline bool put_absent(struct json *j, const char *key, bool absent)
{
	json_key(j, key);
	if (absent)
		json_null(j);
	else
		json_object_begin(j);
	return absent;
}
