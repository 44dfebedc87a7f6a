/*
 * verb_policy.c - the effective policy, as it is written: `policy show`; and which of the two.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "host/facts/facts.h"
#include "policy/verbs.h"

extern char **environ;

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* What is printed, until it is known that the locks hold. */
struct answer {
	struct arena *arena;
	char *text;
	size_t used, room;
};

static int keep_text(void *context, const void *data, size_t size)
{
	struct answer *a = context;

	while (a->room - a->used < size) {
		size_t room = a->room ? 2 * a->room : 64 * 1024;
		char *text = arena_alloc(a->arena, room);

		if (!text)
			return -ENOMEM;
		if (a->used)
			memcpy(text, a->text, a->used);
		a->text = text;
		a->room = room;
	}
	memcpy(a->text + a->used, data, size);
	a->used += size;
	return 0;
}

/*
 * Paths are shown as they were written; then they are filled in, because locks are judged on what
 * they stand for. Workspace and scratch need not be there for that.
 */
static int judge_locks(struct prepared *p, struct error *e)
{
	const struct facts facts = {
		.workspace = p->facts.workspace,
		.scratch_dir = "/tmp/carrel-SESSION/scratch",
	};
	struct policy_names names;

	int r = facts_names(&names, &p->arena, &facts, (const char *const *)environ, e);
	return r < 0 ? r : policy_expand(&p->policy, &names, e);
}

static int show_policy(struct prepared *p, bool json, const char *rest)
{
	struct answer a = { .arena = &p->arena };
	struct error e = { 0 };

	if (rest) {
		(void)error_set(&e, ERROR_USAGE, "options", 0, rest,
			"`policy show` takes settings alone");
		error_hint(&e, "carrel policy show [--json] [SETTINGS]");
		return error_report(&e);
	}
	int r = json ? policy_print_json(&p->policy, keep_text, &a)
		     : policy_print(&p->policy, true, keep_text, &a);
	if (r < 0)
		return verb_output_failed(r);
	if (judge_locks(p, &e) < 0)
		return error_report(&e);
	r = verb_write(NULL, a.text, a.used);
	return r < 0 ? verb_output_failed(r) : 0;
}

static int verb_show(int argc, char **argv, int first)
{
	return verb_prepared(PREPARE_MERGED, argc, argv, first,
		"usage: carrel policy show [--json] [SETTINGS]\n\nPrints the policy that `carrel "
		"run` would follow, each line with its place.\n\n",
		show_policy);
}

int verb_policy(int argc, char **argv, int first)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv, int first);
	} verbs[] = { { "show", verb_show }, { "check", verb_check } };
	const char *word = argc > first ? argv[first] : NULL;
	const char *names[LENGTH(verbs)];

	if (word && (!strcmp(word, "-h") || !strcmp(word, "--help"))) {
		static const char usage[] = "usage: carrel policy show [--json] [SETTINGS]\n"
					    "       carrel policy check [--system] FILE ...\n";

		return verb_write(NULL, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
	}
	for (size_t i = 0; i < LENGTH(verbs); i++) {
		if (word && !strcmp(verbs[i].name, word))
			return verbs[i].run(argc, argv, first + 1);
		names[i] = verbs[i].name;
	}
	return error_report_unknown_verb(word, names, LENGTH(names));
}
