/*
 * verb_why.c - `carrel why`: what a command would see, which line decides it, and what changes it.
 *
 * Runs in: carrel-policy, outside, as the caller; with -s a client of that session. May not: change anything.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "client/options.h"
#include "client/path.h"
#include "policy/verbs.h"
#include "policy/why.h"

extern char **environ;

enum { STATUS_BAD_INPUT = 2, SUBJECTS_MAX = 128 };

static const char usage[] =
	"usage: carrel why [--json] [SETTINGS] PATH | HOST[:PORT] | SYSCALL ...\n"
	"       carrel why [--json] [-s ID] PATH | HOST[:PORT] | SYSCALL ...\n\n"
	"Says what a command would find there, which line decides it, and what would change that:\n"
	"of a session with these settings, or of a live one (-s, --session, $CARREL_SESSION). Nothing is\n"
	"started.\n\n";

static const char hint[] = "carrel why [SETTINGS] | -s ID  PATH | HOST[:PORT] | SYSCALL ...";

/* --- the questions ---------------------------------------------------------------------------- */

static int say_note(const char *note)
{
	int r = fd_write_all(STDERR_FILENO, "carrel: note: ", 14);

	if (r >= 0)
		r = fd_write_visible(STDERR_FILENO, note);
	return r < 0 ? r : fd_write_all(STDERR_FILENO, "\n", 1);
}

/* @ret: the subject in the form in which it is looked up: a path is absolute. */
static int read_subject(struct why *w, const char *word, struct why_answer *a, const char **ret,
	struct error *e)
{
	const char *note = NULL;
	int r = why_tell(&w->arena, word, &a->kind, &note, e);

	if (r < 0)
		return r;
	if (note && say_note(note) < 0)
		return error_set(e, ERROR_INTERNAL, "plan", EIO, "stderr", "cannot write");
	a->subject = *ret = word;
	a->session = w->session ? w->session->id : NULL;
	if (a->kind != WHY_PATH)
		return 0;
	char *whole = client_absolute(word, e);
	if (!whole)
		return -EINVAL;
	if (strlen(whole) >= PATH_MAX)
		r = error_set(e, ERROR_PATH, "options", ENAMETOOLONG, word,
			"this path cannot be looked up");
	*ret = arena_copy(&w->arena, whole, strlen(whole));
	free(whole);
	return r < 0 ? r : *ret ? 0 : error_no_memory(e, "plan");
}

static int answer(struct why *w, const char *subject, struct why_answer *a, struct error *e)
{
	const struct prepared *p = w->session ? NULL : w->p;
	int r = 0;

	switch (a->kind) {
	case WHY_PATH:
		r = p ? why_path(w, p, subject, a, e) : why_live_path(w, subject, a, e);
		break;
	case WHY_HOST:
		r = why_host(w, p, subject, a, e);
		break;
	case WHY_CALL:
		r = why_call(w, p, subject, a, e);
		break;
	}
	return r < 0 ? r : why_changes(w, subject, a, e);
}

/* Answer all before printing one: half a document is of no use. */
static int answer_all(
	struct why *w, int count, const char *const *words, bool json, struct error *e)
{
	struct why_answer *answers;
	const char **subjects;
	int r = 0;

	if (count == 0 || count > SUBJECTS_MAX) {
		r = error_set(e, ERROR_USAGE, "options", 0, NULL,
			count ? "more than 128 questions at once"
			      : "there is nothing to look up");
		error_hint(e, "%s", hint);
		return r;
	}
	answers = arena_array(&w->arena, (size_t)count, sizeof(*answers));
	subjects = arena_array(&w->arena, (size_t)count, sizeof(*subjects));
	if (!answers || !subjects)
		return error_no_memory(e, "plan");
	for (int i = 0; i < count && r >= 0; i++)
		r = read_subject(w, words[i], &answers[i], &subjects[i], e);
	for (int i = 0; i < count && r >= 0; i++)
		r = answer(w, subjects[i], &answers[i], e);
	if (r < 0)
		return r;
	r = why_print(answers, (size_t)count, json);
	return r < 0
		? error_set(e, ERROR_INTERNAL, "plan", -r, "stdout", "cannot write the answer")
		: 0;
}

/* --- of whom ---------------------------------------------------------------------------------- */

static bool names_session(int argc, char **argv, int first)
{
	for (int i = first; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "-s") || !strcmp(argv[i], "--session") ||
			!strncmp(argv[i], "--session=", 10))
			return true;
	return false;
}

/* As with other verbs, the session is that of the environment; if a setting is given, a new session is meant. */
static bool means_session(int argc, char **argv, int first)
{
	const char *id = getenv("CARREL_SESSION");

	while (first < argc && !strcmp(argv[first], "--json"))
		first++;
	return id && *id && first < argc &&
		(argv[first][0] != '-' || !strcmp(argv[first], "--"));
}

/* 1: help was asked for. */
static int ask_session(struct why *w, int argc, char **argv, int first, struct error *e)
{
	enum { OPTION_SESSION, OPTION_JSON, OPTION_COUNT };
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_JSON] = { .name = "json" },
	};
	const char *const *words = (const char *const *)argv;
	int next = argc;
	int r = options_read(argc, words, first, options, OPTION_COUNT, hint, &next, e);

	if (r != 0)
		return r;
	r = why_live_begin(w, options[OPTION_SESSION].value, (const char *const *)environ, e);
	return r < 0
		? r
		: answer_all(w, argc - next, words + next, options[OPTION_JSON].count > 0, e);
}

/* Keep only the settings: other plans will be made with them and more. */
static int keep_settings(struct why *w, char **argv, int first, int end, struct error *e)
{
	const char **settings =
		arena_array(&w->arena, (size_t)(end - first) + 1, sizeof(*settings));

	if (!settings)
		return error_no_memory(e, "plan");
	for (int i = first; i < end; i++)
		if (strcmp(argv[i], "--json") != 0 && !(i == end - 1 && !strcmp(argv[i], "--")))
			settings[w->setting_count++] = argv[i];
	w->settings = settings;
	return 0;
}

/* 1: help was asked for. */
static int ask_plan(struct why *w, int argc, char **argv, int first, struct error *e)
{
	struct policy_verb_flag flags[] = { { .name = "json" } };
	int r = prepare_begin(&w->p, e);

	if (r < 0)
		return r;
	r = prepare_with(w->p, NULL, PREPARE_DRY, argc, (const char *const *)argv, first,
		(const char *const *)environ, flags, 1, e);
	if (r < 0 || w->p->help)
		return r < 0 ? r : 1;
	r = keep_settings(w, argv, first, w->p->next, e);
	return r < 0 ? r
		     : answer_all(w, argc - w->p->next, (const char *const *)argv + w->p->next,
			       flags[0].given, e);
}

int verb_why(int argc, char **argv, int first)
{
	struct why w = { 0 };
	struct error e = { 0 };
	int r = arena_init(&w.arena, WHY_ARENA);

	if (r < 0)
		r = error_no_memory(&e, "plan");
	else if (names_session(argc, argv, first) || means_session(argc, argv, first))
		r = ask_session(&w, argc, argv, first, &e);
	else
		r = ask_plan(&w, argc, argv, first, &e);
	int status = r < 0 ? STATUS_BAD_INPUT : r > 0 ? verb_usage(usage) : 0;
	if (r < 0)
		(void)error_report(&e);
	if (w.session)
		client_close(w.session);
	if (w.p)
		prepare_free(w.p);
	arena_free(&w.arena);
	return status;
}
