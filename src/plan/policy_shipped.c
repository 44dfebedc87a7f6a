/*
 * policy_shipped.c - the texts that are shipped, and what a `profile` or an `include` line may name.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <string.h>

#include "plan/embedded.h"
#include "plan/policy_line.h"

const struct embedded_text *policy_find_text(const struct policy_resolver *r, const char *name)
{
	if (strchr(name, '.'))
		return NULL;
	for (size_t i = 0; i < r->text_count; i++)
		if (!strcmp(r->texts[i].name, name))
			return &r->texts[i];
	return NULL;
}

bool policy_is_profile(const struct embedded_text *text)
{
	return !strncmp(text->text, "syscalls ", 9) || strstr(text->text, "\nsyscalls ");
}

/* In the machine's policy a name means the shipped text: a user must not choose what that policy holds. */
bool policy_may_be_own(const struct policy_place *at, const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	size_t length = strlen(name);

	return !at->shipped && at->source.layer > LAYER_SYSTEM && length > 0 &&
		length <= POLICY_PROFILE_NAME_MAX && strspn(name, allowed) == length;
}

/* 1: the user has one of that name. */
static int find_own_profile(const struct policy_place *at, const char *word)
{
	struct policy_file file;

	if (!at->r->load_profile || !policy_may_be_own(at, word))
		return 0;
	return at->r->load_profile(at->r->context, word, &file, at->e);
}

/* Fail, and name the shipped profiles or the shipped lists. */
static int fail_shipped(const struct policy_place *at, bool profile, const char *word)
{
	const char *names[16];
	size_t count = 0;

	for (size_t i = 0; i < at->r->text_count && count < 16; i++)
		if (!strchr(at->r->texts[i].name, '.') &&
			policy_is_profile(&at->r->texts[i]) == profile)
			names[count++] = at->r->texts[i].name;
	return policy_fail_one_of(at, profile ? "profile" : "list", word, names, count);
}

int policy_read_profile(const struct policy_place *at, const char *word, struct policy_line *l)
{
	const struct embedded_text *text = policy_find_text(at->r, word);

	if (text && !policy_is_profile(text)) {
		int r = policy_fail(at, "'%.60s' is a list, not a profile", word);

		error_hint(at->e, "include %.60s", word);
		return r;
	}
	int own = text ? 1 : find_own_profile(at, word);
	if (own != 0)
		return own < 0 ? own : policy_keep_text(at, word, l);
	return fail_shipped(at, true, word);
}

/* Called only for a word that names no list: policy_parse.c reads the lines of a list in place of its name. */
int policy_read_include(const struct policy_place *at, const char *word)
{
	if (!policy_find_text(at->r, word))
		return fail_shipped(at, false, word);
	int r = policy_fail(at, "'%.60s' is a profile, not a list", word);

	error_hint(at->e, "profile %.60s", word);
	return r;
}
