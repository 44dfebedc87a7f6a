/*
 * why_subject.c - decides what a word of `carrel why` is: a path, a host or a system call.
 *
 * Runs in: carrel-policy, outside, as the caller. May look whether a file is there.
 *
 * In this order: a word with a slash, or one that begins with a dot, is a path; the name of a system call is that call, and a note says
 * if there is a file of that name, too; the name of an existing file is a path; what looks like a name or an address of a host is one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/why.h"

static int wrong(struct error *e, const char *word, const char *what, const char *hint)
{
	int r = error_set(e, ERROR_USAGE, "options", 0, word, "%s", what);

	error_hint(e, "%s", hint);
	return r;
}

/* The length of a colon and a port after a host, or after "[ADDRESS]"; 0: there is none. -EINVAL: it is no port. */
static int port_length(const char *text)
{
	uint64_t port;

	if (text[0] != ':')
		return text[0] ? -EINVAL : 0;
	if (text_parse_count(text + 1, &port) < 0 || port > 65535)
		return -EINVAL;
	return (int)strlen(text);
}

static bool is_address6(const char *text, size_t length)
{
	char copy[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return inet_pton(AF_INET6, copy, &address) == 1;
}

/* Letters, digits, '-' and '_' between dots; 253 bytes at most. See: RFC 1123, 2.1. */
static bool is_name(const char *text, size_t length)
{
	size_t label = 0;

	if (!length || length > 253)
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '.') {
			if (!label)
				return false;
			label = 0;
			continue;
		}
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '-' || c == '_') ||
			++label > 63)
			return false;
	}
	return true;
}

/* 1: a host; 0: no host; -EINVAL: a host with an invalid port. */
static int is_host(const char *word)
{
	if (word[0] == '[') {
		const char *end = strchr(word, ']');

		if (!end || !is_address6(word + 1, (size_t)(end - word) - 1))
			return 0;
		return port_length(end + 1) < 0 ? -EINVAL : 1;
	}
	if (is_address6(word, strlen(word)))
		return 1;
	size_t length = strcspn(word, ":");
	if (!is_name(word, length))
		return 0;
	if (word[length])
		return port_length(word + length) < 0 ? -EINVAL : 1;
	return memchr(word, '.', length) || !strcmp(word, "localhost");
}

static bool is_there(const char *word)
{
	struct stat st;

	return lstat(word, &st) == 0;
}

int why_tell(struct arena *arena, const char *word, enum why_kind *ret, const char **ret_note,
	struct error *e)
{
	int r = 0;

	*ret_note = NULL;
	if (!*word)
		return wrong(e, NULL, "an empty word is no path, no host and no system call",
			"carrel why [SETTINGS] PATH | HOST[:PORT] | SYSCALL");
	if (strstr(word, "://"))
		return wrong(e, word, "this is an address of a document, not of a host",
			"name the host alone: example.org:443");
	if (strchr(word, '/') || word[0] == '.') {
		*ret = WHY_PATH;
	} else if (filter_number(word, AUDIT_ARCH_X86_64) != -EINVAL) {
		*ret = WHY_CALL;
		if (is_there(word))
			*ret_note = arena_format(arena,
				"'%s' is taken for the system call; the file of that name is ./%s",
				word, word);
	} else if (is_there(word)) {
		*ret = WHY_PATH;
		if (is_host(word) == 1)
			*ret_note = arena_format(arena,
				"'%s' is taken for the file; of a host of that name ask with a port, %s:443",
				word, word);
	} else {
		r = is_host(word);
		*ret = WHY_HOST;
		if (r < 0)
			return wrong(e, word, "what is behind the host is no port",
				"a port is a number from 1 to 65535");
		if (!r) {
			const char *call = filter_nearest_call(arena, word);

			(void)error_set(e, ERROR_USAGE, "options", 0, word,
				"this is no path, no host and no system call");
			if (call)
				error_hint(e, "did you mean '%s'? ./%s is a path", call, word);
			else
				error_hint(e, "./%s is a path, %s:443 a host", word, word);
			return -EINVAL;
		}
	}
	return 0;
}
