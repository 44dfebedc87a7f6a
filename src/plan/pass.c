/*
 * pass.c - see pass.h.
 *
 * Runs in: the launcher, clients and carrel-policy. PURE.
 */
#include "plan/pass.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/policy_line.h"

/* Read @length digits. -1: no number of a descriptor; one above INT_MAX is none. */
static int read_number(const char *text, size_t length)
{
	char digits[16];
	uint64_t number = 0;

	if (length == 1 && *text == '0')
		return 0;
	if (length == 0 || length >= sizeof(digits))
		return -1;
	memcpy(digits, text, length);
	digits[length] = '\0';
	return text_parse_count(digits, &number) < 0 || number > INT32_MAX ? -1 : (int)number;
}

int pass_read(const struct policy_place *at, const char *word, struct pass_pair *ret)
{
	const char *colon = strchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : strlen(word);
	struct pass_pair pair = { .from = read_number(word, length) };

	pair.to = colon ? read_number(colon + 1, strlen(colon + 1)) : pair.from;
	if (pair.from < 0 || pair.to < 0)
		return policy_fail(at, "'%.60s' is not a descriptor: N[:M]", word);
	if (pair.from < PASS_LEAST || pair.to < PASS_LEAST) {
		error_hint(at->e,
			"the command has the caller's 0, 1 and 2 in any case: redirect those");
		return policy_fail(at, "'%.60s': only descriptors above 2 are passed", word);
	}
	if (pair.to > PASS_NUMBER_MAX) {
		error_hint(at->e, "N:M gives it the number M inside, as in %d:9", pair.from);
		return policy_fail(
			at, "'%.60s': a number above %d inside", word, PASS_NUMBER_MAX);
	}
	*ret = pair;
	return 0;
}

int pass_read_option(
	const char *option, const char *word, struct pass_pair *ret, struct error *e)
{
	const struct policy_place at = policy_option_place(option, e);

	return pass_read(&at, word, ret);
}

int pass_read_line(const struct policy_place *at, const char *word, struct policy_line *l)
{
	struct pass_pair pair;
	char text[32];
	int r = pass_read(at, word, &pair);

	if (r < 0)
		return r;
	int length = snprintf(text, sizeof(text), "%d:%d", pair.from, pair.to);
	l->number = (uint64_t)pair.from;
	l->dest = arena_copy(at->p->arena, text, (size_t)length);
	if (!l->dest)
		return policy_full(at->e);
	l->text = strchr(l->dest, ':') + 1;
	return 0;
}

int pass_apply(struct policy *p, const struct policy_line *l)
{
	struct pass_rule *rules =
		arena_push(p->arena, p->passes, p->pass_count, sizeof(*rules));
	size_t at = p->pass_count;
	const struct pass_rule rule = {
		.pair = { .from = (int)l->number, .to = read_number(l->text, strlen(l->text)) },
		.word = l->dest,
		.inside = l->text,
		.source = l->source,
	};

	if (!rules)
		return -ENOMEM;
	p->passes = rules;
	/*
	 * Each number inside occurs once: of two lines about one number the merge has kept the
	 * later.
	 */
	for (; at > 0 && rules[at - 1].pair.to > rule.pair.to; at--)
		rules[at] = rules[at - 1];
	rules[at] = rule;
	p->pass_count++;
	return 0;
}

size_t pass_put(struct pass_pair *pairs, size_t count, const struct pass_pair *pair)
{
	size_t at = 0;

	while (at < count && pairs[at].to < pair->to)
		at++;
	if (at == count || pairs[at].to != pair->to)
		memmove(pairs + at + 1, pairs + at, (count++ - at) * sizeof(*pairs));
	pairs[at] = *pair;
	return count;
}

int pass_check_count(size_t count, const char *on, struct error *e)
{
	return count > PASS_MAX ? error_set(e, ERROR_USAGE, "options", ERROR_OWN(E2BIG), on,
					  "more than %d descriptors are passed", PASS_MAX)
				: 0;
}
