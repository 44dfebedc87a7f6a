/*
 * notes.c - see notes.h.
 *
 * Runs in: the launcher, when the session is over.
 */
#include "host/launch/notes.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/facts/facts.h"
#include "host/launch/supervise.h"
#include "plan/embedded.h"
#include "plan/env.h"
#include "plan/path.h"

enum {
	ARENA_SIZE = 1 << 20,
	REFUSALS_SHOWN = 3, /* of the names that were refused */
	PRESET_MAX = 128,   /* "with:" and a name */
};

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("._-", c));
}

/* `git`, `/usr/bin/git`, or a line of a shell's that has it as a word. */
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

/*
 * What `allow` has to have for @n, or nothing: the tool has chosen the name, so it must be one that a policy can have, and a
 * line that changes what was decided. The text is what netrule_format() makes of it, not what was sent.
 */
static bool allowing(struct arena *arena, const struct egress_name *n, char *ret, size_t size)
{
	struct error ignored = { 0 };
	struct netrule rule;

	if ((n->decision != EGRESS_DENIED_NAME && n->decision != EGRESS_DENIED_PORT) ||
		n->rule >= 0 || n->port > UINT16_MAX ||
		netrule_parse(&rule, arena, false, n->text, "allow", &ignored) < 0 ||
		rule.kind != NETRULE_NAME ||
		rule.name[0] == '_') /* SRV and its kin (RFC 2782): no host's name */
		return false;
	if (n->port && n->port != 80 && n->port != 443)
		return snprintf(ret, size, " %s:%u", rule.name, n->port) < (int)size;
	return snprintf(ret, size, " %s", rule.name) < (int)size;
}

unsigned notes_refused(const struct egress *egress, uint64_t since, char *ret, size_t size)
{
	struct arena arena; /* the plan's is sealed */
	unsigned count = 0;

	ret[0] = '\0';
	if (egress->refusals <= since || arena_init(&arena, ARENA_SIZE) < 0)
		return 0;
	for (size_t i = 0; i < egress->name_count && count < REFUSALS_SHOWN; i++) {
		size_t used = strlen(ret);

		if (egress->names[i].last > since &&
			allowing(&arena, &egress->names[i], ret + used, size - used))
			count++;
		else
			ret[used] = '\0';
	}
	arena_free(&arena);
	return count;
}

void notes_print_refused(const char *names, bool live)
{
	char options[NOTES_NAMES_MAX + REFUSALS_SHOWN * sizeof("--allow ")];
	struct error line = { 0 };
	size_t used = 0;

	for (const char *at = names; *at && used + sizeof(" --allow ") < sizeof(options);
		at++) {
		options[used++] = *at;
		if (*at == ' ')
			used += (size_t)snprintf(
				options + used, sizeof(options) - used, "--allow ");
	}
	options[used] = '\0';
	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the network refused what the policy does not allow");
	if (live)
		error_hint(&line,
			"if the command needs it, and the session has net-live: carrel session allow%s",
			names);
	else
		error_hint(&line, "if the command needs it:%s", options);
	(void)error_report(&line);
}

bool notes_has_no_network(const struct plan *plan)
{
	return (plan->clone_flags & CLONE_NEWNET) && plan->policy->net == NET_NONE;
}

void notes_print_none(bool live)
{
	struct error line = { 0 };

	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the command looked for a network, and the session has none");

	error_hint(&line,
		"%s`--allow HOST` for what it needs, or `--net host` for all that this machine reaches",
		live ? "give it to `carrel session start`: " : "");
	(void)error_report(&line);
}

void notes_print_address(void)
{
	struct error line = { 0 };

	(void)error_set(&line, ERROR_POLICY, "close", 0, NULL,
		"the command tried an address that no `allow` line opens");

	error_hint(&line, "`--explain` names it");
	(void)error_report(&line);
}

void notes_network(
	const struct plan *plan, const struct egress *egress, const struct outcome *o)
{
	char names[NOTES_NAMES_MAX];

	if (plan->policy->quiet.on)
		return;
	if (notes_has_no_network(plan)) {
		if (o->no_route || o->no_listener)
			notes_print_none(false);
	} else if (plan->policy->net == NET_ALLOW) {
		if (notes_refused(egress, 0, names, sizeof(names)))
			notes_print_refused(names, false);
		else if (o->no_route)
			notes_print_address();
	}
}

void notes_log_lost(const struct policy *policy, const struct egress *egress)
{
	struct error line = { 0 };

	if (policy->quiet.on || egress->log_lost == 0)
		return;
	(void)error_set(&line, ERROR_REPORT, "close", 0, policy->net_log.value,
		"the log of the network did not take all lines (%" PRIu64 " missing)",
		egress->log_lost);
	(void)error_report(&line);
}

void notes_egress_lost(const struct policy *policy)
{
	static const char line[] =
		"carrel: carrel-egress has ended: the session goes on without a network\n";

	/* Where stderr cannot be written the report says the same. */
	if (!policy->quiet.on)
		(void)!fd_write_all(STDERR_FILENO, line, sizeof(line) - 1);
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
