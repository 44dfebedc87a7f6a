/*
 * hosts.c - see hosts.h.
 *
 * Runs in: a client of a live session.
 */
#include "host/load/hosts.h"

#include "host/facts/facts.h"
#include "host/load/policy_file.h"
#include "plan/embedded.h"
#include "plan/policy.h"

/* Read the words as lines of a policy, above a profile that says nothing about the network. */
static int read_words(struct policy *policy, const char *from, const char *const *words,
	size_t count, const struct policy_resolver *res, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = policy_add_setting(policy, from, "allow", words[i], res, e);
	return r < 0 ? r : policy_finish(policy, "agent", res, e);
}

int hosts_read(struct arena *arena, const char *from, const char *const *words,
	size_t word_count, const char *const *environment, const char ***ret_texts,
	size_t *ret_count, struct error *e)
{
	struct policy_loader loader = { .arena = arena };
	struct policy_names names;
	struct policy policy;
	const struct policy_resolver res = {
		.cwd = "/",
		.names = &names,
		.texts = embedded_texts,
		.text_count = embedded_text_count,
		.profiles = embedded_profiles,
		.profile_count = embedded_profile_count,
		.load_set = policy_file_load_set,
		.context = &loader,
	};

	policy_init(&policy, arena);
	int r = facts_names(&names, arena, NULL, environment, e);
	if (r >= 0 && names.xdg_config_home)
		loader.sets = arena_join(arena, names.xdg_config_home, '/', "carrel/sets");
	if (r >= 0)
		r = read_words(&policy, from, words, word_count, &res, e);
	if (r < 0)
		return r;
	const char **texts = arena_array(arena, policy.net_rule_count + 1, sizeof(*texts));
	if (!texts)
		return error_no_memory(e, "options");
	*ret_count = 0;
	for (size_t i = 0; i < policy.net_rule_count; i++) {
		char text[NETRULE_TEXT_MAX];
		int length = netrule_format(policy.net_rules[i].rule, text, sizeof(text));

		if (policy.net_rules[i].rule->deny)
			continue;
		texts[*ret_count] = length < 0 ? NULL : arena_copy(arena, text, (size_t)length);
		if (!texts[(*ret_count)++])
			return error_no_memory(e, "options");
	}
	*ret_texts = texts;
	return 0;
}
