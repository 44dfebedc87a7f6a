/*
 * policy_number.c - sizes, durations and counts: of a line of a policy, and of an option that is none.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/policy_line.h"

enum {
	CPUS_LEAST = 10, /* thousandths: what the kernel gives out at least, 1 ms in 100 ms */
	OPEN_FILES_LEAST = 16, /* init, which has the limit too, was seen to need 9 */
};

static int fail_number(
	const struct policy_place *at, const char *word, int why, const char *form)
{
	if (why != -ERANGE)
		return policy_fail(at, "'%.60s' is not %s", word, form);
	error_hint(at->e, "write %s", form);
	return policy_fail(at, "'%.60s' is too large", word);
}

/* 0 is allowed: a caller may want to see nothing of the output. */
static int read_characters(const struct policy_place *at, const char *word, uint64_t *ret)
{
	uint64_t number = 0;
	int r = strcmp(word, "0") != 0 ? text_parse_count(word, &number) : 0;

	if (r < 0)
		return fail_number(at, word, r, "a number of characters, 0 or more");
	if (number > POLICY_CHARACTERS_MAX) {
		error_hint(at->e, "at most %d; without `%s` output passes as it is",
			POLICY_CHARACTERS_MAX, at->setting);
		return policy_fail(at, "'%.60s' is too large", word);
	}
	*ret = number;
	return 0;
}

int policy_line_size(const struct policy_place *at, const char *word, uint64_t *ret)
{
	int r = text_parse_size(word, ret);

	return r < 0 ? fail_number(at, word, r, "a size such as 4096, 512K, 1G or 2GiB") : 0;
}

int policy_line_number(
	const struct policy_place *at, const struct setting *s, const char *word, uint64_t *ret)
{
	int r;

	switch (s->kind) {
	case KIND_SIZE:
		return policy_line_size(at, word, ret);
	case KIND_DURATION:
		r = text_parse_duration(word, ret);
		return r < 0 ? fail_number(at, word, r,
				       "a duration such as 10, 500ms, 1.5s, 5m or 2h")
			     : 0;
	case KIND_CHARACTERS:
		return read_characters(at, word, ret);
	case KIND_CPUS:
		r = text_parse_thousandths(word, ret);
		if (r >= 0 && *ret < CPUS_LEAST)
			return policy_fail(at, "'%.60s' is less than 0.01", word);
		return r < 0 ? fail_number(at, word, r, "a number such as 0.5, 2 or 1.25") : 0;
	default:
		r = text_parse_count(word, ret);
		/* Not for one execution: its limit does not hold for init. */
		if (r >= 0 && at->p && s->id == SETTING_OPEN_FILES && *ret < OPEN_FILES_LEAST)
			return policy_fail(at,
				"'%.60s' is less than %d, which carrel itself needs inside",
				word, OPEN_FILES_LEAST);
		return r < 0 ? fail_number(at, word, r, "a whole number from 1 on") : 0;
	}
}

void policy_format_number(const struct setting *s, uint64_t number, char *ret_text, size_t size)
{
	if (s->kind == KIND_DURATION)
		text_format_duration(number, ret_text, size);
	else if (s->kind == KIND_CPUS)
		text_format_thousandths(number, ret_text, size);
	else if (s->kind == KIND_SIZE || s->kind == KIND_TMPFS)
		text_format_size(number, ret_text, size);
	else
		(void)snprintf(ret_text, size, "%llu", (unsigned long long)number);
}

const struct number_value *policy_number(const struct policy *p, const struct setting *s)
{
	return (const void *)((const char *)p + s->member);
}

struct policy_place policy_option_place(const char *name, struct error *e)
{
	return (struct policy_place){
		.source = { .layer = LAYER_COMMAND, .file = POLICY_COMMAND_LINE },
		.setting = name,
		.e = e,
	};
}
