/*
 * why_print.c - the answers of `carrel why`, for people and as JSON.
 *
 * Runs in: carrel-policy, outside.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "policy/why.h"

static const char *const kind_names[] = {
	[WHY_PATH] = "path",
	[WHY_HOST] = "host",
	[WHY_CALL] = "call",
};

static const char *const try_names[TRY_COUNT] = {
	[TRY_READ] = "read",
	[TRY_WRITE] = "write",
	[TRY_MAKE] = "make",
	[TRY_CONNECT] = "connect",
	[TRY_CALL] = "call",
};

/* --- for people ------------------------------------------------------------------------------- */

/* Print "  label    text\n", without anything that a terminal obeys. */
static int put(const char *label, const char *const *parts)
{
	char start[16];

	(void)snprintf(start, sizeof(start), "  %-9s", label);
	int r = fd_write_all(STDOUT_FILENO, start, strlen(start));
	for (; *parts && r >= 0; parts++)
		r = fd_write_visible(STDOUT_FILENO, *parts);
	return r < 0 ? r : fd_write_all(STDOUT_FILENO, "\n", 1);
}

/* "read ok, write EROFS". */
static void tell_outcomes(const struct why_answer *a, char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (int i = 0; i < TRY_COUNT; i++) {
		int outcome = a->outcome[i];

		if (outcome == WHY_UNKNOWN || (i == TRY_CALL && outcome == ESHUTDOWN) ||
			(!a->exists && a->kind == WHY_PATH && i == TRY_WRITE))
			continue;
		const char *name = outcome ? strerrorname_np(outcome) : "ok";
		int n = snprintf(ret + used, size - used, "%s%s %s", used ? ", " : "",
			try_names[i], name ? name : "?");
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

static int print_answer(const struct why_answer *a)
{
	char outcomes[128];
	int r = fd_write_visible(STDOUT_FILENO, a->path ? a->path : a->subject);

	if (r < 0)
		return r;
	r = fd_write_all(STDOUT_FILENO, "\n", 1);
	if (r < 0)
		return r;
	tell_outcomes(a, outcomes, sizeof(outcomes));
	r = put("seen",
		(const char *const[]){ a->seen, *outcomes ? ": " : "", outcomes, NULL });
	if (r >= 0 && a->session)
		r = put("session", (const char *const[]){ a->session, NULL });
	if (r >= 0 && a->because)
		r = put("because", (const char *const[]){ a->because, NULL });
	for (size_t i = 0; i < a->line_count && r >= 0; i++)
		r = put("line",
			(const char *const[]){ a->lines[i].text ? a->lines[i].text : "",
				a->lines[i].text ? "  (" : "(", a->lines[i].place, ")", NULL });
	for (size_t i = 0; i < a->change_count && r >= 0; i++) {
		const struct why_change *c = &a->changes[i];

		r = c->option ? put("change",
					(const char *const[]){
						c->option, "  (to ", c->aim, ")", NULL })
			      : put("fixed",
					(const char *const[]){
						c->locked, "  (to ", c->aim, ")", NULL });
	}
	return r;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void put_outcomes(struct json *j, const struct why_answer *a)
{
	json_key(j, "outcome");
	json_object_begin(j);
	for (int i = 0; i < TRY_COUNT; i++) {
		int outcome = a->outcome[i];

		if (outcome == WHY_UNKNOWN)
			continue;
		put_text(j, try_names[i],
			outcome == 0 ? "ok"
				: i == TRY_CALL && outcome == ESHUTDOWN
				? "killed"
				: strerrorname_np(outcome));
	}
	json_object_end(j);
}

static void put_lines(struct json *j, const struct why_answer *a)
{
	json_key(j, "lines");
	json_array_begin(j);
	for (size_t i = 0; i < a->line_count; i++) {
		json_object_begin(j);
		put_text(j, "line", a->lines[i].text);
		put_text(j, "place", a->lines[i].place);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_changes(struct json *j, const struct why_answer *a)
{
	json_key(j, "changes");
	json_array_begin(j);
	for (size_t i = 0; i < a->change_count; i++) {
		json_object_begin(j);
		put_text(j, "to", a->changes[i].aim);
		put_text(j, "option", a->changes[i].option);
		put_text(j, "line", a->changes[i].line);
		put_text(j, "fixed", a->changes[i].locked);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_answer(struct json *j, const struct why_answer *a)
{
	json_object_begin(j);
	put_text(j, "subject", a->subject);
	put_text(j, "session", a->session);
	put_text(j, "kind", kind_names[a->kind]);
	put_text(j, "seen", a->seen);
	put_outcomes(j, a);
	put_text(j, "because", a->because);
	if (a->kind == WHY_PATH) {
		put_text(j, "path", a->path);
		put_text(j, "surface", a->surface);
		json_key(j, "exists");
		json_bool(j, a->exists);
	}
	put_lines(j, a);
	put_changes(j, a);
	json_object_end(j);
}

int why_print(const struct why_answer *answers, size_t count, bool json)
{
	static const int out = STDOUT_FILENO;
	char buffer[1024];
	struct json j;
	int r = 0;

	for (size_t i = 0; i < count && !json && r >= 0; i++)
		r = print_answer(&answers[i]);
	if (!json)
		return r;
	json_init(&j, buffer, sizeof(buffer), fd_write_to, (void *)(uintptr_t)&out);
	json_array_begin(&j);
	for (size_t i = 0; i < count; i++)
		put_answer(&j, &answers[i]);
	json_array_end(&j);
	return json_finish(&j);
}
