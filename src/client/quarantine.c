/*
 * quarantine.c - see quarantine.h.
 *
 * Runs in: the client, outside.
 */
#include "client/quarantine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/autofree.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/error_report.h"
#include "client/quarantine_show.h"
#include "client/quarantine_shelf.h"
#include "client/talk.h"
#include "client/verb.h"
#include "host/quarantine/quarantine_held.h"
#include "host/stdio/stdio.h"

struct call {
	struct quarantine_shelf *shelf;
	const char *const *words;
	size_t count;
	bool json;
	struct error *e;
};

struct subverb {
	const char *name;
	bool json;
	size_t least, most;
	int (*run)(const struct call *c);
	struct verb_help help;
};

/* --- list ------------------------------------------------------------------------------------- */

enum state { STATE_HELD, STATE_CHANGED, STATE_GONE, STATE_UNKNOWN };

static const char *const state_words[] = {
	[STATE_HELD] = "held",
	[STATE_CHANGED] = "changed",
	[STATE_GONE] = "gone",
	[STATE_UNKNOWN] = "unknown",
};

static enum state state_of(const struct quarantine_record *r)
{
	struct quarantine_held h;
	int found = quarantine_held_open(r, &h);

	if (found < 0)
		return found == -ENOENT ? STATE_GONE : STATE_UNKNOWN;
	quarantine_held_close(&h);
	return h.changed ? STATE_CHANGED : STATE_HELD;
}

/* Print "@before PATH@after" and a newline; in the path what a terminal would obey is shown as \xNN. */
static int put_path(const char *before, const struct quarantine_record *r, const char *after,
	struct error *e)
{
	const char *const parts[] = { r->root[1] ? r->root : "", "/", r->from };
	int result = talk_result(before, strlen(before), e);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && result >= 0; i++)
		result = fd_write_visible(STDOUT_FILENO, parts[i]);
	if (result < 0)
		return error_set(
			e, ERROR_INTERNAL, "report", -result, NULL, "cannot write the result");
	return talk_result(after, strlen(after), e);
}

static int list_line(const struct quarantine_record *r, int64_t now, struct error *e)
{
	static const char *const after[] = {
		[STATE_HELD] = "\n",
		[STATE_CHANGED] = " (changed)\n",
		[STATE_GONE] = " (gone)\n",
		[STATE_UNKNOWN] = " (unknown)\n",
	};
	char age[24], before[64];

	quarantine_format_age(now - r->moved_s, age, sizeof(age));
	(void)snprintf(before, sizeof(before), "%s %5s  ", r->id, age);
	return put_path(before, r, after[state_of(r)], e);
}

static void put_place(struct json *j, const char *key, struct arena *a,
	const struct quarantine_record *r, const char *below)
{
	const char *path = arena_format(a, "%s/%s", r->root[1] ? r->root : "", below);

	json_key(j, key);
	if (path)
		json_string(j, path);
	else
		json_null(j);
}

static void put_json(struct json *j, struct arena *a, const struct quarantine_record *r)
{
	json_object_begin(j);
	json_key(j, "id");
	json_string(j, r->id);
	json_key(j, "state");
	json_string(j, state_words[state_of(r)]);
	put_place(j, "path", a, r, r->from);
	put_place(j, "to", a, r, r->to);
	json_key(j, "session");
	json_string(j, r->session);
	json_key(j, "since");
	json_number(j, r->moved_s);
	json_key(j, "until");
	json_number(j, r->until_s);
	json_object_end(j);
}

static int run_list(const struct call *c)
{
	char buffer[1024];
	struct json j;
	int r = 0;

	if (!c->json) {
		for (size_t i = 0; i < c->shelf->count && r >= 0; i++)
			r = list_line(c->shelf->entries[i].record, time(NULL), c->e);
		return r;
	}
	json_init(&j, buffer, sizeof(buffer), talk_json, NULL);
	json_object_begin(&j);
	json_key(&j, "quarantined");
	json_array_begin(&j);
	for (size_t i = 0; i < c->shelf->count; i++)
		put_json(&j, &c->shelf->arena, c->shelf->entries[i].record);
	json_array_end(&j);
	json_object_end(&j);
	r = json_finish(&j);
	return r < 0
		? error_set(c->e, ERROR_INTERNAL, "report", -r, NULL, "cannot write the list")
		: 0;
}

/* --- one of them ------------------------------------------------------------------------------ */

/* The thing that @word means, opened. 0 or -errno with @e. */
static int open_one(const struct call *c, const char *word, const struct quarantine_entry **ret,
	struct quarantine_held *held, struct error *e)
{
	const struct quarantine_entry *entry = quarantine_shelf_find(c->shelf, word, e);

	if (!entry)
		return -EINVAL;
	*ret = entry;
	int r = quarantine_held_open(entry->record, held);
	if (r >= 0)
		return 0;
	char path[1024];
	quarantine_record_place(entry->record, path, sizeof(path));
	(void)error_set(e, ERROR_PATH, "session", r == -ENOENT ? 0 : -r, path,
		r == -ENOENT ? "it is not there any more, or another thing is"
			     : "cannot look at what was quarantined");
	if (r == -ENOENT)
		error_hint(e, "carrel quarantine remove %s takes it off the list",
			entry->record->id);
	return r;
}

static int run_show(const struct call *c)
{
	const struct quarantine_entry *entry;
	struct quarantine_held held;
	int r = open_one(c, c->words[0], &entry, &held, c->e);

	if (r < 0)
		return r;
	r = quarantine_show(&held, &c->shelf->arena, c->e);
	quarantine_held_close(&held);
	return r;
}

static int run_diff(const struct call *c)
{
	const struct quarantine_entry *entry;
	struct quarantine_held held;
	int r = open_one(c, c->words[0], &entry, &held, c->e);

	if (r < 0)
		return r;
	r = quarantine_diff(&held, &c->shelf->arena, c->e);
	quarantine_held_close(&held);
	return r;
}

static int forget(const struct quarantine_entry *entry, struct error *e)
{
	int r = quarantine_record_forget(entry->records, entry->record->id);

	return r < 0 ? error_set(e, ERROR_STATE, "session", -r, entry->record->id,
			       "cannot remove the record of it")
		     : 0;
}

static int restore_one(const struct call *c, const char *word, struct error *e)
{
	const struct quarantine_entry *entry;
	struct quarantine_held held;
	int r = open_one(c, word, &entry, &held, e);

	if (r < 0)
		return r;
	if (held.changed) {
		r = error_set(e, ERROR_PATH, "session", 0, entry->record->id,
			"it has changed since it was quarantined: a tool may have written it");
		error_hint(e, "look at it with carrel quarantine show %s, and move it yourself",
			entry->record->id);
	} else {
		r = quarantine_held_restore(&held, e);
	}
	quarantine_held_close(&held);
	if (r >= 0)
		r = forget(entry, e);
	return r < 0 ? r : put_path("restored ", entry->record, "\n", e);
}

/* Remove one entry; if the thing itself is gone already, remove its record. */
static int remove_one(const struct call *c, const char *word, struct error *e)
{
	const struct quarantine_entry *entry = quarantine_shelf_find(c->shelf, word, e);
	struct quarantine_held held;

	if (!entry)
		return -EINVAL;
	int r = quarantine_held_open(entry->record, &held);
	if (r >= 0) {
		r = quarantine_held_remove(&held, e);
		quarantine_held_close(&held);
	} else if (r == -ENOENT) {
		r = 0;
	} else {
		r = error_set(e, ERROR_PATH, "session", -r, entry->record->root,
			"cannot look at what was quarantined");
	}
	if (r >= 0)
		r = forget(entry, e);
	return r < 0 ? r : put_path("removed ", entry->record, "\n", e);
}

/* Handle each on its own, as rm(1) does: every failure is reported, and the first one is the status. */
static int run_each(const struct call *c,
	int (*one)(const struct call *c, const char *word, struct error *e))
{
	int first = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct error e = { 0 };
		int r = one(c, c->words[i], &e);

		(void)error_report(&e);
		first = first < 0 ? first : r;
	}
	return first;
}

static int run_restore(const struct call *c)
{
	return run_each(c, restore_one);
}

static int run_remove(const struct call *c)
{
	return run_each(c, remove_one);
}

/* --- the verb --------------------------------------------------------------------------------- */

static const struct subverb subverbs[] = {
	{ "list", true, 0, 0, run_list,
		{ "carrel quarantine list [--json]",
			"What tools made at protected paths and carrel moved away: an id, how long ago,\n"
			"and where it appeared.\n\n"
			"      --json         as one JSON document\n" } },
	{ "show", false, 1, 1, run_show,
		{ "carrel quarantine show ID",
			"Where it appeared, where it is now, and what is in it.\n" } },
	{ "diff", false, 1, 1, run_diff,
		{ "carrel quarantine diff ID",
			"What would be there if it were restored, line by line; of a directory, file by\n"
			"file.\n" } },
	{ "restore", false, 1, SIZE_MAX, run_restore,
		{ "carrel quarantine restore ID...",
			"Moves it back to where it appeared. Look at it first: programs obey it there.\n"
			"Nothing is overwritten.\n" } },
	{ "remove", false, 1, SIZE_MAX, run_remove,
		{ "carrel quarantine remove ID...", "Removes it, with all that is in it.\n" } },
};
enum { SUBVERB_COUNT = sizeof(subverbs) / sizeof(subverbs[0]) };

static int run(const struct subverb *v, int argc, const char *const *argv, int first,
	const char *const *environment, const char **words, struct error *e)
{
	struct client_option options[] = { { .name = "json" } };
	struct quarantine_shelf shelf;
	size_t count;
	int r = verb_read(&v->help, argc, argv, first, options, v->json, words, &count,
		v->least, v->most, e);

	if (r != 0)
		return r;
	r = quarantine_shelf_open(&shelf, environment, e);
	const struct call call = { .shelf = &shelf,
		.words = words,
		.count = count,
		.json = options[0].count > 0,
		.e = e };
	if (r >= 0)
		r = v->run(&call);
	quarantine_shelf_close(&shelf);
	return r;
}

static int show_help(void)
{
	static const char usage[] =
		"usage: carrel quarantine [list|show|diff|restore|remove]\n\n";
	char line[128];
	int r = fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1);

	for (size_t i = 0; i < SUBVERB_COUNT && r >= 0; i++) {
		int length = snprintf(line, sizeof(line), "  %s\n", subverbs[i].help.usage);

		r = fd_write_all(STDOUT_FILENO, line, (size_t)length);
	}
	return r;
}

int quarantine_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	const char *names[SUBVERB_COUNT];
	const bool listed = first >= argc || !strcmp(argv[first], "--json");
	const char *word = listed ? "list" : argv[first];
	const struct subverb *verb = NULL;
	struct error e = { 0 };

	(void)closed;
	for (size_t i = 0; i < SUBVERB_COUNT; i++) {
		names[i] = subverbs[i].name;
		if (!strcmp(subverbs[i].name, word))
			verb = &subverbs[i];
	}
	if (!strcmp(word, "-h") || !strcmp(word, "--help"))
		return show_help() < 0 ? STATUS_CARREL : 0;
	if (!verb)
		return error_report_unknown_verb(word, names, SUBVERB_COUNT) ? STATUS_CARREL
									     : 0;
	autofree const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int r = words ? run(verb, argc, argv, first + !listed, environment, words, &e)
		      : error_no_memory(&e, "options");
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
