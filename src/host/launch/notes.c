/*
 * notes.c - see notes.h.
 *
 * Runs in: the launcher, when the session is over.
 */
#include "host/launch/notes.h"

#include <stdio.h>
#include <string.h>

#include "base/error_report.h"
#include "host/facts/facts.h"
#include "plan/embedded.h"
#include "plan/env.h"
#include "plan/path.h"

enum {
	ARENA_SIZE = 1 << 20,
	PRESET_MAX = 128, /* "with:" and a name */
};

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("._-", c));
}

/* `git`, `/usr/bin/git`, or a line for a shell that has it as a word. */
static bool names_git(const char *text)
{
	for (const char *at = text; (at = strstr(at, "git")); at += 3)
		if ((at == text || !is_in_word(at[-1])) && (!at[3] || at[3] == ' '))
			return true;
	return false;
}

static bool any_names_git(const char *const *words)
{
	for (; *words; words++)
		if (names_git(*words))
			return true;
	return false;
}

void notes_work_tree(const struct prepared *p, const char *const *failed)
{
	const struct facts *f = &p->facts;
	const struct policy *policy = &p->policy;
	struct error line = { 0 }, ignored = { 0 };
	struct arena arena; /* the plan's is sealed */
	const char *top = NULL;

	if (policy->quiet.on || policy->workspace.value || !f->workspace ||
		policy->workspace_mode != WORKSPACE_DIRECT ||
		(failed && !any_names_git(failed)) || arena_init(&arena, ARENA_SIZE) < 0)
		return;
	if (facts_work_tree(f, &arena, &top, &ignored) == 0 && top &&
		strcmp(top, f->workspace) != 0 && path_below(top, f->workspace)) {
		(void)error_set(&line, ERROR_WORKSPACE, "close", 0, top,
			"the workspace is a part of a git work tree, whose .git cannot be written");

		error_hint(&line, "with --workspace git the workspace is all of %s", top);
		(void)error_report(&line);
	}
	arena_free(&arena);
}

/* Does a line of the shipped preset @word have an effect here? */
static bool gives_something(const struct plan *plan, const char *word)
{
	const struct policy *policy = plan->policy;
	char text[PRESET_MAX];

	if (snprintf(text, sizeof(text), "with:%s", word) >= (int)sizeof(text) ||
		(policy->net_source.file && !strcmp(policy->net_source.file, text)))
		return true;
	for (size_t i = 0; i < plan->facts->path_count; i++) {
		const struct path_rule *rule = plan->facts->paths[i].rule;

		if (rule && rule->source.file && !strcmp(rule->source.file, text))
			return true;
	}
	for (size_t i = 0; i < plan->env_count; i++) {
		const struct env_rule *rule = plan_env_rule(plan, plan->envp[i]);

		if (rule && rule->source.file && !strcmp(rule->source.file, text))
			return true;
	}
	return false;
}

static bool is_shipped(const char *word)
{
	for (size_t i = 0; i < embedded_text_count; i++) {
		const char *name = embedded_texts[i].name;
		size_t length = strlen(word);

		if (!strncmp(name, word, length) && !strcmp(name + length, ".with"))
			return true;
	}
	return false;
}

void notes_presets(const struct prepared *p)
{
	const struct policy *policy = &p->policy;

	for (size_t i = 0; i < policy->with_count && !policy->quiet.on; i++) {
		const char *word = policy->withs[i].word;
		struct error line = { 0 };

		if (!is_shipped(word) || gives_something(&p->plan, word))
			continue;
		(void)error_set(&line, ERROR_POLICY, "close", 0, word,
			"the preset gives nothing here: no file, device or variable of it exists");
		(void)error_report(&line);
	}
}
