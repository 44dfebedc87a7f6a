/*
 * verb_policy.c - `carrel policy`: chooses its verb, and prints the effective policy (`show`), the sets and the presets.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/text.h"
#include "host/facts/facts.h"
#include "plan/embedded.h"
#include "policy/verbs.h"

extern char **environ;

enum { SET_COLUMN = 16 };

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* Keeps the text back: it is printed only when it is known that the locks hold. */
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
 * Paths are printed as they were written, but locks are judged on what the paths stand for: so this fills them in
 * afterwards. Workspace and scratch need not exist for that.
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

static int add_set(struct prepared *p, struct answer *a, const char *name, size_t length,
	const char *place)
{
	const char *line = arena_format(&p->arena, "@%.*s%*s# %s\n", (int)length, name,
		length < SET_COLUMN ? (int)(SET_COLUMN - length) : 1, "", place);

	return line ? keep_text(a, line, strlen(line)) : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Add those in the directory of the user's sets, which need not exist. */
static int add_own_sets(struct prepared *p, struct answer *a)
{
	struct policy_names names;
	struct error ignored = { 0 };
	const char **found = NULL;
	size_t count = 0;
	int r = facts_names(&names, &p->arena, NULL, (const char *const *)environ, &ignored);
	const char *path = r >= 0 && names.xdg_config_home
		? arena_join(&p->arena, names.xdg_config_home, '/', "carrel/sets")
		: NULL;
	DIR *dir = path ? opendir(path) : NULL;
	struct dirent *entry;

	while (r >= 0 && dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		found = arena_push(&p->arena, (void *)found, count, sizeof(*found));
		const char *name = found
			? arena_copy(&p->arena, entry->d_name, strlen(entry->d_name))
			: NULL;
		r = name ? 0 : -ENOMEM;
		if (name)
			found[count++] = name;
	}
	if (dir)
		(void)closedir(dir);
	if (count)
		qsort((void *)found, count, sizeof(*found), by_name);
	for (size_t i = 0; i < count && r >= 0; i++) {
		const char *place = arena_join(&p->arena, path, '/', found[i]);

		r = place ? add_set(p, a, found[i], strlen(found[i]), place) : -ENOMEM;
	}
	return r;
}

/* The sets of hosts that `allow @NAME` can name, and where each is. */
static int show_sets(void)
{
	struct prepared *p = NULL;
	struct error e = { 0 };
	int r = prepare_begin(&p, &e);

	if (r < 0)
		return error_report(&e);
	struct answer a = { .arena = &p->arena };
	for (size_t i = 0; i < embedded_text_count && r >= 0; i++) {
		const char *name = embedded_texts[i].name, *end = strstr(name, ".hosts");

		if (end && !end[strlen(".hosts")])
			r = add_set(p, &a, name, (size_t)(end - name), "shipped");
	}
	if (r >= 0)
		r = add_own_sets(p, &a);
	if (r >= 0)
		r = verb_write(NULL, a.text, a.used);
	prepare_free(p);
	return r < 0 ? verb_output_failed(r) : 0;
}

static int verb_show(int argc, char **argv, int first)
{
	if (argc == first + 1 && !strcmp(argv[first], "--sets"))
		return show_sets();
	return verb_prepared(PREPARE_MERGED, argc, argv, first,
		"usage: carrel policy show [--json] [SETTINGS]\n       carrel policy show --sets\n\n"
		"Prints the policy that `carrel run` would follow, each line with its place; or\n"
		"the sets of hosts that allow @NAME can name.\n\n",
		show_policy);
}

/* The rest of the line of @text that begins with @key, or an empty one. */
static void find_line(const char *text, const char *key, const char **ret, size_t *ret_length)
{
	const char *at = strstr(text, key);

	*ret = at ? at + strlen(key) : "";
	*ret_length = strcspn(*ret, "\n");
}

/* Print NAME, what it is, and for a preset what it gives away. */
static int put_preset(const struct embedded_text *text, bool gives)
{
	char line[512];
	const char *about, *away;
	size_t about_length, away_length, name = strcspn(text->name, ".");

	find_line(text->text, " - ", &about, &about_length);
	find_line(text->text, "\n# gives away: ", &away, &away_length);
	int n = snprintf(line, sizeof(line), "  %-12.*s %.*s%s%.*s%s", (int)name, text->name,
		(int)about_length, about, gives ? "\n               gives away: " : "",
		gives ? (int)away_length : 0, away, "\n");
	return n < 0 || (size_t)n >= sizeof(line) ? -ENOBUFS
						  : verb_write(NULL, line, (size_t)n);
}

static int put_presets(const char *title, const char *suffix)
{
	int r = verb_write(NULL, title, strlen(title));

	for (size_t i = 0; i < embedded_text_count && r >= 0; i++) {
		const char *dot = strchr(embedded_texts[i].name, '.');

		if (dot && !strcmp(dot, suffix))
			r = put_preset(&embedded_texts[i], !strcmp(suffix, ".with"));
	}
	return r;
}

/* The user's own presets are files: print only their names. */
static int put_own(void)
{
	const char *const *environment = (const char *const *)environ;
	const char *config = facts_env(environment, "XDG_CONFIG_HOME");
	const char *home = facts_env(environment, "HOME");
	char path[1024];
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s%s/carrel/with",
		config && config[0] == '/' ? config
			: home             ? home
					   : "",
		config && config[0] == '/' ? "" : "/.config");
	DIR *dir = opendir(path);
	struct dirent *entry;
	while (dir && r >= 0 && (entry = readdir(dir))) {
		char name[1024];
		const char *at = entry->d_name;

		if (at[0] == '.')
			continue;
		size_t length = text_visible(&at, "", name + 2, sizeof(name) - 4);
		memcpy(name, "  ", 2);
		name[2 + length] = '\n';
		r = verb_write(NULL, name, length + 3);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int verb_presets(int argc, char **argv, int first)
{
	static const char usage[] =
		"usage: carrel policy presets\n\nLists what --with and --cache can name, and what each "
		"gives away.\n";
	struct error e = { 0 };

	if (argc > first && (!strcmp(argv[first], "-h") || !strcmp(argv[first], "--help")))
		return verb_write(NULL, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
	if (argc > first) {
		(void)error_set(&e, ERROR_USAGE, "options", 0, argv[first],
			"`policy presets` takes no arguments");
		return error_report(&e);
	}
	int r = put_presets("--with NAME\n", ".with");
	if (r >= 0)
		r = put_own();
	if (r >= 0)
		r = put_presets("--cache NAME\n", ".cache");
	return r < 0 ? verb_output_failed(r) : 0;
}

int verb_policy(int argc, char **argv, int first)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv, int first);
	} verbs[] = { { "show", verb_show }, { "check", verb_check },
		{ "presets", verb_presets } };
	const char *word = argc > first ? argv[first] : NULL;
	const char *names[LENGTH(verbs)];

	if (word && (!strcmp(word, "-h") || !strcmp(word, "--help"))) {
		static const char usage[] = "usage: carrel policy show [--json] [SETTINGS]\n"
					    "       carrel policy check [--system] FILE ...\n"
					    "       carrel policy presets\n";

		return verb_write(NULL, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
	}
	for (size_t i = 0; i < LENGTH(verbs); i++) {
		if (word && !strcmp(verbs[i].name, word))
			return verbs[i].run(argc, argv, first + 1);
		names[i] = verbs[i].name;
	}
	return error_report_unknown_verb(word, names, LENGTH(names));
}
