/*
 * policy_word.c - the words of one line of a policy: quotes, escapes, comments.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <string.h>

#include "plan/policy_line.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t put_byte(char *out, size_t used, char c, bool literal)
{
	if (literal && strchr(WORD_SPECIAL, c))
		out[used++] = '\\';
	out[used++] = c;
	return used;
}

/* The escape at *at (a backslash); *ret gets its byte, *at moves behind it. */
static int read_escape(
	const struct policy_place *place, const char **at, const char *end, char *ret)
{
	const char *p = *at + 1;

	if (p == end)
		return policy_fail(place, "a backslash at the end of the line");
	if (*p == 'n' || *p == 't') {
		*ret = *p == 'n' ? '\n' : '\t';
	} else if (*p == 'x') {
		int high = end - p > 2 ? hex_digit(p[1]) : -1;
		int low = high >= 0 ? hex_digit(p[2]) : -1;

		if (low < 0 || (high == 0 && low == 0))
			return policy_fail(place, "\\x needs two hexadecimal digits, not 00");
		*ret = (char)(unsigned char)(high * 16 + low);
		p += 2;
	} else if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
		(*p >= 'A' && *p <= 'Z')) {
		error_hint(
			place->e, "known: \\n \\t \\xNN, and a backslash before punctuation");
		return policy_fail(place, "unknown escape '\\%c'", *p);
	} else {
		*ret = *p;
	}
	*at = p + 1;
	return 0;
}

/* A byte that has no business in a line of text, outside quotes and inside. */
static int check_byte(const struct policy_place *place, char c)
{
	unsigned char byte = (unsigned char)c;

	if ((byte >= 0x20 || c == '\t') && byte != 0x7f)
		return 0;
	if (c == '\r')
		error_hint(place->e, "save the file with plain newlines");
	else
		error_hint(place->e, "write it as \\x%02x", byte);
	return policy_fail(place, "a control character (0x%02x)", byte);
}

/* Copies the bytes from @p on that mean themselves and do not end the word; how many. */
static size_t copy_plain(const char *p, const char *end, char *out)
{
	static const bool special[256] = {
		[0 ... ' '] = true, [0x7f] = true, ['"'] = true, ['\''] = true, ['\\'] = true
	};
	const char *at = p;

	while (at < end && !special[(unsigned char)*at])
		*out++ = *at++;
	return (size_t)(at - p);
}

int policy_read_word(
	const struct policy_place *place, const char **at, const char *end, char *out)
{
	const char *p = *at;
	char quote = '\0';
	size_t used = 0;

	while (p < end && is_blank(*p))
		p++;
	if (p == end || *p == '#') {
		*at = end;
		return 0;
	}
	for (; p < end && (quote || !is_blank(*p));) {
		size_t run = quote ? 0 : copy_plain(p, end, out + used);
		char c = *p;

		if (run) {
			used += run;
			p += run;
			continue;
		}
		int r = check_byte(place, c);
		if (r < 0)
			return r;
		if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? '\0' : c;
			p++;
		} else if (c == '\\' && quote != '\'') {
			r = read_escape(place, &p, end, &c);
			if (r < 0)
				return r;
			used = put_byte(out, used, c, true);
		} else {
			used = put_byte(out, used, c, quote == '\'' || (quote && c != '$'));
			p++;
		}
	}
	if (quote)
		return policy_fail(place, "a quotation (%c) that is not closed", quote);
	out[used] = '\0';
	*at = p;
	return 1;
}
