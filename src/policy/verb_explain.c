/*
 * verb_explain.c - `carrel-policy explain SETTING...`: what a session that has ended was refused.
 *
 * Runs in: carrel-policy, outside, as the caller; the session's narrator has become it (host/explain/narrator.h). Standard
 * input is the observer's board; the session's supervisor reads standard output. May not: change anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/explain/narrator.h"
#include "policy/denial.h"
#include "policy/verbs.h"

extern char **environ;

/* Collects the answer before it is sent: its length is sent first. */
struct part {
	char *text;
	size_t used, size;
};

static int part_write(void *context, const void *data, size_t size)
{
	struct part *p = context;

	if (size > p->size - p->used)
		return -ENOBUFS;
	memcpy(p->text + p->used, data, size);
	p->used += size;
	return 0;
}

static int part_init(struct part *p)
{
	*p = (struct part){ .size = NARRATOR_ANSWER_MAX };
	p->text = malloc(p->size);
	return p->text ? 0 : -ENOMEM;
}

/* --- the parts ---------------------------------------------------------------------------------- */

static int write_json(const struct denials *d, struct part *p)
{
	char buffer[1024];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), part_write, p);
	return denials_json(d, &j);
}

static int write_text(const struct denials *d, struct part *p,
	int (*print)(const struct denials *d, struct writer *out))
{
	char buffer[1024];
	struct writer out;

	writer_init(&out, buffer, sizeof(buffer), part_write, p);
	return print(d, &out);
}

/* @learned: empty if nobody asked for it. */
static int write_parts(
	const struct denials *d, struct part *json, struct part *text, struct part *learned)
{
	int r = part_init(json);

	if (r < 0)
		return r;
	r = part_init(text);
	if (r < 0)
		return r;
	r = part_init(learned);
	if (r < 0)
		return r;
	r = write_json(d, json);
	if (r < 0)
		return r;
	r = write_text(d, text, denials_text);
	if (r < 0 || !d->w->p->policy.learn.value)
		return r;
	return write_text(d, learned, denials_learn);
}

static int answer(const struct denials *d)
{
	struct part json, text, learned;
	int r = write_parts(d, &json, &text, &learned);

	if (r < 0)
		return r;
	const struct narrator_head head = { .magic = EXPLAIN_MAGIC,
		.json = (uint32_t)json.used,
		.text = (uint32_t)text.used,
		.learned = (uint32_t)learned.used,
		.nothing = !denials_shown(d) && !d->unexplained };
	r = fd_write_all(STDOUT_FILENO, &head, sizeof(head));
	if (r < 0)
		return r;
	r = fd_write_all(STDOUT_FILENO, json.text, json.used);
	if (r < 0)
		return r;
	r = fd_write_all(STDOUT_FILENO, text.text, text.used);
	return r < 0 ? r : fd_write_all(STDOUT_FILENO, learned.text, learned.used);
}

/* --- what it is about ---------------------------------------------------------------------------- */

static int read_board(struct explain_board *ret, struct error *e)
{
	size_t used = 0;

	while (used < sizeof(*ret)) {
		ssize_t n = pread(
			STDIN_FILENO, (char *)ret + used, sizeof(*ret) - used, (off_t)used);

		if (n <= 0)
			break;
		used += (size_t)n;
	}
	return used == sizeof(*ret) && ret->magic == EXPLAIN_MAGIC
		? 0
		: error_set(e, ERROR_PROTOCOL, "close", 0, NULL,
			  "this is not what an observer notes");
}

/* What `run` and `session start` take beside settings. */
#define VERB_FLAGS \
	{ \
		PREPARE_COMMAND_LINE, { .name = "json" }, { .name = "foreground" }, \
		{ \
			.name = "die-with", .placeholder = "PID" \
		} \
	}

/* How many words of the command line this flag takes; 0: it is no such flag, but a setting. */
static int flag_words(const char *word)
{
	if (!strcmp(word, "-c") || !strcmp(word, "--command") || !strcmp(word, "--die-with"))
		return 2;
	return !strcmp(word, "--json") || !strcmp(word, "--foreground") ||
		!strcmp(word, "--") || !strncmp(word, "--command=", 10) ||
		!strncmp(word, "--die-with=", 11);
}

/* Keep only the settings, without the command: other plans will be made with them and more. */
static int keep_settings(struct why *w, char **argv, int first, int end, struct error *e)
{
	const char **settings =
		arena_array(&w->arena, (size_t)(end - first) + 1, sizeof(*settings));

	if (!settings)
		return error_no_memory(e, "plan");
	for (int i = first; i < end;) {
		int passed = flag_words(argv[i]);

		if (!passed)
			settings[w->setting_count++] = argv[i];
		i += passed ? passed : 1;
	}
	w->settings = settings;
	return 0;
}

static int know_settings(struct why *w, int argc, char **argv, int first, struct error *e)
{
	struct policy_verb_flag flags[] = VERB_FLAGS;
	int r = prepare_begin(&w->p, e);

	if (r >= 0)
		r = prepare_with(w->p, NULL, PREPARE_DRY, argc, (const char *const *)argv,
			first, (const char *const *)environ, flags,
			sizeof(flags) / sizeof(flags[0]), e);
	return r < 0 ? r : keep_settings(w, argv, first, argc, e);
}

/* A live session: ask for its policy, and plan that anew. */
static int know_session(struct why *w, const char *id, struct error *e)
{
	int r = why_live_begin(w, id, (const char *const *)environ, e);

	return r < 0 || w->p ? r
			     : error_set(e, ERROR_SESSION, "session", 0, id,
				       "this machine refuses now what the session has");
}

/* The plan knows a line by its number in the session's policy. That policy says where the line was written. */
static int find_place(struct why *w, struct why_line *line)
{
	static const char here[] = "session:";
	const char *at = w->p->lines;

	if (!line->place || strncmp(line->place, here, sizeof(here) - 1) != 0)
		return 0;
	for (long n = strtol(line->place + sizeof(here) - 1, NULL, 10); at && n > 1; n--) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	const char *place = at ? why_line_place(&w->arena, at) : NULL;
	if (!place)
		return -ENOMEM;
	if (*place)
		line->place = place;
	return 0;
}

static int find_places(struct denials *d, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < d->count && r >= 0; i++)
		for (size_t j = 0; j < d->all[i].answer.line_count && r >= 0; j++)
			r = find_place(d->w, &d->all[i].answer.lines[j]);
	return r < 0 ? error_no_memory(e, "policy") : 0;
}

static int explain(struct why *w, int argc, char **argv, int first, struct error *e)
{
	struct explain_board *board = arena_alloc(&w->arena, sizeof(*board));
	struct denials found;
	int r = board ? read_board(board, e) : error_no_memory(e, "plan");

	if (r < 0)
		return r;
	r = argc == first + 2 && !strcmp(argv[first], "-s")
		? know_session(w, argv[first + 1], e)
		: know_settings(w, argc, argv, first, e);
	if (r < 0)
		return r;
	r = denials_find(&found, w, board, e);
	if (r < 0)
		return r;
	r = w->session ? find_places(&found, e) : 0;
	if (r < 0)
		return r;
	r = answer(&found);
	return r < 0
		? error_set(e, ERROR_INTERNAL, "close", -r, NULL, "cannot say what was refused")
		: 0;
}

int verb_explain(int argc, char **argv, int first)
{
	struct why w = { 0 };
	struct error e = { 0 };
	int r = arena_init(&w.arena, WHY_ARENA);

	r = r < 0 ? error_no_memory(&e, "plan") : explain(&w, argc, argv, first, &e);
	if (r < 0)
		(void)error_report(&e);
	if (w.session)
		client_close(w.session);
	return r < 0 ? STATUS_CARREL : 0;
}
