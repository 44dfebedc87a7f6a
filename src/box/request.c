/*
 * request.c - see request.h.
 *
 * Runs in: the client, the supervisor and the monitor. No heap, no stdio.
 */
#include "box/request.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

const char *request_next(const char *text)
{
	return text + strlen(text) + 1;
}

/* @count texts from @at on; NULL where they do not all end before @end. */
static const char *skip_texts(const char *at, const char *end, size_t count)
{
	for (; at && count; count--) {
		const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;

		at = nul ? nul + 1 : NULL;
	}
	return at;
}

static bool variables_are_named(const struct request_view *v)
{
	const char *at = v->envp;

	for (uint32_t i = 0; i < v->head.envc; i++, at = request_next(at))
		if (at[0] == '=' || !strchr(at, '='))
			return false;
	return true;
}

/* "3,9,10" and nothing else: ascending, from 3 to PASS_NUMBER_MAX. Returns whether it is that. */
static bool read_numbers(const char *text, struct pass_numbers *ret)
{
	int last = 2;

	for (ret->count = 0; ret->count < PASS_MAX; text++) {
		int number = 0;

		for (; *text >= '0' && *text <= '9' && number <= PASS_NUMBER_MAX; text++)
			number = number * 10 + (*text - '0');
		if (number <= last || number > PASS_NUMBER_MAX)
			return false;
		ret->number[ret->count++] = last = number;
		if (*text != ',')
			return *text == '\0';
	}
	return false;
}

int request_read(const void *data, size_t size, struct request_view *ret)
{
	struct request_view v;
	const char *end = (const char *)data + size;

	if (size < sizeof(v.head) || size > REQUEST_SIZE_MAX)
		return -EPROTO;
	memcpy(&v.head, data, sizeof(v.head));
	if ((v.head.flags & ~(uint32_t)REQUEST_FLAGS_ALL) || v.head.umask > 0777 ||
		!v.head.argc || v.head.argc > REQUEST_WORDS_MAX ||
		v.head.envc > REQUEST_WORDS_MAX)
		return -EPROTO;
	v.argv = (const char *)data + sizeof(v.head);
	v.envp = skip_texts(v.argv, end, v.head.argc);
	v.cwd = v.envp ? skip_texts(v.envp, end, v.head.envc) : NULL;
	v.name = v.cwd ? skip_texts(v.cwd, end, 1) : NULL;
	bool pass = (v.head.flags & REQUEST_PASS) != 0;
	if (!v.name || skip_texts(v.name, end, 1u + pass) != end || !variables_are_named(&v))
		return -EPROTO;
	v.pass.count = 0;
	if (pass && !read_numbers(request_next(v.name), &v.pass))
		return -EPROTO;
	if (v.cwd[0] && v.cwd[0] != '/')
		return -EPROTO;
	*ret = v;
	return 0;
}
