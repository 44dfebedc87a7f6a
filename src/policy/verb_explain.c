/*
 * verb_explain.c - `carrel-policy explain SETTING...`: what a session that has ended was refused.
 *
 * Runs in: carrel-policy, outside, as the caller; started by the narrator of the session (host/explain/narrator.h). Standard
 * input is the board of the observer, standard output is read by the session's supervisor. May not: change anything.
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

/* What is said, before it is sent: its length comes first. */
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

static int answer(const struct denials *d)
{
	struct part json, text, learned;
	int r = part_init(&json);

	if (r >= 0)
		r = part_init(&text);
	if (r >= 0)
		r = part_init(&learned);
	if (r >= 0)
		r = write_json(d, &json);
	if (r >= 0)
		r = write_text(d, &text, denials_text);
	if (r >= 0 && d->w->p->policy.learn.value)
		r = write_text(d, &learned, denials_learn);
	if (r < 0)
		return r;
	const struct narrator_head head = { .magic = EXPLAIN_MAGIC,
		.json = (uint32_t)json.used,
		.text = (uint32_t)text.used,
		.learned = (uint32_t)learned.used };
	r = fd_write_all(STDOUT_FILENO, &head, sizeof(head));
	if (r >= 0)
		r = fd_write_all(STDOUT_FILENO, json.text, json.used);
	if (r >= 0)
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

/* The settings alone, as other plans are to be made with them and more; the command is none of them. */
static int keep_settings(struct why *w, char **argv, int first, int end, struct error *e)
{
	const char **settings =
		arena_array(&w->arena, (size_t)(end - first) + 1, sizeof(*settings));

	if (!settings)
		return error_no_memory(e, "plan");
	for (int i = first; i < end; i++) {
		if (!strcmp(argv[i], "-c") || !strcmp(argv[i], "--command"))
			i++;
		else if (strncmp(argv[i], "--command=", 10) != 0 && strcmp(argv[i], "--") != 0)
			settings[w->setting_count++] = argv[i];
	}
	w->settings = settings;
	return 0;
}

static int explain(struct why *w, int argc, char **argv, int first, struct error *e)
{
	struct policy_verb_flag flags[] = { PREPARE_COMMAND_LINE };
	struct explain_board *board = arena_alloc(&w->arena, sizeof(*board));
	struct denials found;
	int r = board ? read_board(board, e) : error_no_memory(e, "plan");

	if (r >= 0)
		r = prepare_begin(&w->p, e);
	if (r >= 0)
		r = prepare_with(w->p, NULL, PREPARE_DRY, argc, (const char *const *)argv,
			first, (const char *const *)environ, flags, 1, e);
	if (r >= 0)
		r = keep_settings(w, argv, first, argc, e);
	if (r >= 0)
		r = denials_find(&found, w, board, e);
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
	return r < 0 ? STATUS_CARREL : 0;
}
