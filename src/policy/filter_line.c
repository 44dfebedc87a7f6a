/*
 * filter_line.c - a line of a filter cut into tokens, and errors that say where it stands.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE.
 */
#include "policy/filter_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/policy.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

int line_wrong(const struct line *l, const char *what, const char *word)
{
	char on[512];

	/* A command line has no line numbers, and only one setting that this can be about. */
	if (!strcmp(l->file, POLICY_COMMAND_LINE))
		(void)snprintf(on, sizeof(on), "--syscall");
	else
		(void)snprintf(on, sizeof(on), "%s:%u", l->file, l->number);
	if (word)
		return error_set(
			l->e, ERROR_POLICY, "policy", 0, on, "%s: '%.60s'", what, word);
	return error_set(l->e, ERROR_POLICY, "policy", 0, on, "%s", what);
}

int line_unknown(const struct line *l, const char *what, const char *word, const char *nearest)
{
	int r = line_wrong(l, what, word);

	if (nearest)
		error_hint(l->e, "did you mean '%s'?", nearest);
	return r;
}

int line_full(const struct line *l)
{
	return error_set(l->e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), l->file,
		"the filter needs more memory than is set aside");
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("_:@.-", c));
}

/* Length of the token at @s; 0 where none can begin there. */
static size_t token_length(const char *s)
{
	static const char *const pairs[] = { "==", "!=", "<=", ">=", "+=" };
	size_t n = 0;

	while (is_word_byte(s[n]))
		n++;
	if (n > 0)
		return n;
	for (size_t i = 0; i < LENGTH(pairs); i++)
		if (!strncmp(s, pairs[i], 2))
			return 2;
	return *s && strchr("<>&|{},()=", *s) ? 1 : 0;
}

int line_cut(struct line *l, const char *text, size_t size)
{
	size_t used = 0;

	if (size > LINE_MAX_BYTES)
		return line_wrong(l, "the line is longer than 1024 bytes", NULL);
	for (size_t i = 0; i < size && text[i] != '#';) {
		if (text[i] == ' ' || text[i] == '\t') {
			i++;
			continue;
		}
		size_t n = token_length(text + i);
		if (n == 0 || i + n > size) {
			char bad[2] = { text[i], '\0' };
			return line_wrong(l, "a byte that has no meaning here", bad);
		}
		if (l->count == TOKEN_MAX)
			return line_wrong(l, "more than 256 words in one line", NULL);
		l->tokens[l->count++] = memcpy(l->text + used, text + i, n);
		used += n;
		l->text[used++] = '\0';
		i += n;
	}
	return 0;
}

const char *line_peek(const struct line *l)
{
	return l->at < l->count ? l->tokens[l->at] : NULL;
}

bool line_accept(struct line *l, const char *token)
{
	const char *next = line_peek(l);

	if (!next || strcmp(next, token) != 0)
		return false;
	l->at++;
	return true;
}

int line_expect(struct line *l, const char *token)
{
	if (line_accept(l, token))
		return 0;
	char what[64];
	(void)snprintf(what, sizeof(what), "'%s' is expected", token);
	const char *found = line_peek(l);
	return line_wrong(l, what, found ? found : "end of line");
}

bool line_starts_word(const char *token)
{
	return token && is_word_byte(token[0]);
}
