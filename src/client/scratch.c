/*
 * scratch.c - see scratch.h.
 *
 * Runs in: the client.
 */
#include "client/scratch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/place.h"
#include "client/scratch_file.h"
#include "client/scratch_list.h"
#include "client/talk.h"
#include "client/verb.h"
#include "host/report/toolplace.h"

enum { OPTION_SESSION, OPTION_OTHER, OPTION_COUNT };

struct call {
	struct place *place;
	const char *const *words;
	size_t count;
	bool other; /* the verb's own flag */
	struct error *e;
};

struct subverb {
	const char *name;
	const char *flag; /* its own, or NULL */
	size_t least, most;
	int (*run)(const struct call *c);
	struct verb_help help;
};

static int run_path(const struct call *c)
{
	int r = talk_result(c->place->scratch_path, strlen(c->place->scratch_path), c->e);

	return r < 0 ? r : talk_result("\n", 1, c->e);
}

static int fail_outside(const char *word, struct error *e)
{
	return error_set(e, ERROR_SCRATCH, "session", 0, word, "this is not in the scratch");
}

static int run_list(const struct call *c)
{
	struct scratch_list list;
	const char *below = NULL;

	if (c->count) {
		below = place_below(c->place, c->words[0]);
		if (!below)
			return fail_outside(c->words[0], c->e);
	}
	int r = scratch_list_read(&list, &c->place->arena, c->place->scratch, below, c->e);
	if (r < 0)
		return r;
	return c->other ? scratch_list_json(&list, c->place->scratch_path, c->e)
			: scratch_list_print(&list, c->e);
}

/* Print where it is now: a name that had directories in it has lost them. */
static int run_put(const struct call *c)
{
	const char *file = c->count > 1 ? c->words[1] : "-";
	const char *name, *path;
	autofd int fd = -1;

	if (strcmp(file, "-") != 0) {
		const char *const dirs[] = { c->place->guard.roots[0].path, c->place->dir };
		const struct toolplace tools = { dirs, 2 };

		fd = toolplace_open(&tools, &c->place->arena, file, c->e);
		if (fd < 0)
			return fd;
	}
	int r = scratch_put(c->place->scratch, c->words[0], fd < 0 ? STDIN_FILENO : fd,
		c->other, &c->place->arena, &name, c->e);
	if (r < 0)
		return r;
	path = arena_format(&c->place->arena, "%s/%s\n", c->place->scratch_path, name);
	return path ? talk_result(path, strlen(path), c->e) : -ENOMEM;
}

static int run_get(const struct call *c)
{
	const char *below = place_below(c->place, c->words[0]);

	if (!below)
		return fail_outside(c->words[0], c->e);
	return scratch_get(c->place->scratch, below, STDOUT_FILENO, c->e);
}

static int remove_one(const struct call *c, const char *name, struct error *e)
{
	const char *below = place_below(c->place, name);

	if (!below)
		return fail_outside(name, e);
	if (place_is_mount_point(c->place, below))
		return error_set(e, ERROR_SCRATCH, "session", ERROR_OWN(EBUSY), below,
			"the session's own mounts need this");
	return scratch_remove(c->place->scratch, below, &c->place->arena, e);
}

/* Remove each on its own, as rm(1) does: every failure is reported, and the first one is the status. */
static int run_remove(const struct call *c)
{
	int first = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct error e = { 0 };
		int r = remove_one(c, c->words[i], &e);

		(void)error_report(&e);
		first = first < 0 ? first : r;
	}
	return first;
}

#define ABOUT_SESSION "\n  -s, --session ID   which session; default: CARREL_SESSION\n"

static const struct subverb subverbs[] = {
	{ "path", NULL, 0, 0, run_path,
		{ "carrel scratch path [-s ID]",
			"Prints where the scratch is.\n" ABOUT_SESSION } },
	{ "list", "json", 0, 1, run_list,
		{ "carrel scratch list [-s ID] [--json] [DIR]",
			"What is in the scratch: type, size in bytes, time and name. At most 10000\n"
			"entries.\n" ABOUT_SESSION
			"      --json         as one JSON document\n" } },
	{ "put", "force", 1, 2, run_put,
		{ "carrel scratch put [-s ID] [--force] NAME [FILE]",
			"Writes FILE, or what comes on standard input, to NAME in the scratch, and\n"
			"prints where it is. Of NAME only the last component counts.\n" ABOUT_SESSION
			"      --force        replace a file of that name\n" } },
	{ "get", NULL, 1, 1, run_get,
		{ "carrel scratch get [-s ID] NAME",
			"Writes the file NAME of the scratch to standard output.\n" ABOUT_SESSION } },
	{ "remove", NULL, 1, SIZE_MAX, run_remove,
		{ "carrel scratch remove [-s ID] NAME...",
			"Removes files and directories, with all that is in them.\n" ABOUT_SESSION } },
};
enum { SUBVERB_COUNT = sizeof(subverbs) / sizeof(subverbs[0]) };

static int run_subverb(const struct subverb *v, int argc, const char *const *argv, int first,
	const char *const *environment, const char **words, struct error *e)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_OTHER] = { .name = v->flag },
	};
	struct place place;
	size_t count;
	int r = verb_read(&v->help, argc, argv, first, options,
		v->flag ? OPTION_COUNT : OPTION_OTHER, words, &count, v->least, v->most, e);

	if (r != 0)
		return r;
	r = place_open(&place, options[OPTION_SESSION].value, environment, e);
	if (r < 0)
		return r;
	const struct call call = { .place = &place,
		.words = words,
		.count = count,
		.other = options[OPTION_OTHER].count > 0,
		.e = e };
	r = v->run(&call);
	place_close(&place);
	return r;
}

static int show_help(int fd)
{
	static const char usage[] = "usage: carrel scratch path|list|put|get|remove\n\n";
	char line[128];
	int r = fd_write_all(fd, usage, sizeof(usage) - 1);

	for (size_t i = 0; i < SUBVERB_COUNT && r >= 0; i++) {
		int length = snprintf(line, sizeof(line), "  %s\n", subverbs[i].help.usage);

		r = fd_write_all(fd, line, (size_t)length);
	}
	return r;
}

static int fail_subverb(const char *word, struct error *e)
{
	const char *names[SUBVERB_COUNT];

	for (size_t i = 0; i < SUBVERB_COUNT; i++)
		names[i] = subverbs[i].name;
	const char *nearest = word ? text_nearest(word, names, SUBVERB_COUNT) : NULL;
	int r = error_set(e, ERROR_USAGE, "options", 0, word,
		word ? "`carrel scratch` has no such verb" : "`carrel scratch` needs a verb");
	if (nearest)
		error_hint(e, "did you mean `carrel scratch %s`?", nearest);
	else
		error_hint(e, "path, list, put, get or remove");
	return r;
}

int scratch_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	struct error e = { 0 };
	const char *word = first < argc ? argv[first] : NULL;
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	const struct subverb *verb = NULL;
	int r;

	(void)closed;
	for (size_t i = 0; word && i < SUBVERB_COUNT; i++)
		if (!strcmp(subverbs[i].name, word))
			verb = &subverbs[i];
	if (word && (!strcmp(word, "-h") || !strcmp(word, "--help")))
		r = show_help(STDOUT_FILENO);
	else if (!words)
		r = error_no_memory(&e, "options");
	else
		r = verb ? run_subverb(verb, argc, argv, first + 1, environment, words, &e)
			 : fail_subverb(word, &e);
	free(words);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
