/*
 * why_lines.c - the policy of a live session, as its supervisor prints it, each line with its place.
 *
 * Runs in: carrel-policy, outside; a client of the session. The supervisor is carrel's own, and no tool of the
 * session can speak for it (client/find.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/why.h"

extern char **environ;

/* --- reading ---------------------------------------------------------------------------------- */

/* Where the comment begins that says where the line came from; the line's end if there is none. */
static const char *find_place(const char *line, size_t length)
{
	for (size_t i = length; i > 2; i--)
		if (!strncmp(line + i - 3, " # ", 3))
			return line + i - 3;
	return line + length;
}

static const char *copy_trimmed(struct arena *arena, const char *from, const char *to)
{
	while (to > from && to[-1] == ' ')
		to--;
	return arena_copy(arena, from, (size_t)(to - from));
}

/* Split the line at @at. @ret_argument: what follows its first word. False: no memory. */
static bool read_line(
	struct why *w, const char *at, const char **ret_argument, struct why_line *ret)
{
	size_t length = strcspn(at, "\n");
	const char *place = find_place(at, length);

	ret->text = copy_trimmed(&w->arena, at, place);
	ret->place = place < at + length
		? arena_copy(&w->arena, place + 3, (size_t)(at + length - place) - 3)
		: "";
	if (!ret->text || !ret->place)
		return false;
	*ret_argument = strchr(ret->text, ' ');
	*ret_argument = *ret_argument ? *ret_argument + 1 : "";
	return true;
}

const char *why_line_place(struct arena *arena, const char *line)
{
	size_t length = strcspn(line, "\n");
	const char *place = find_place(line, length);
	size_t used = (size_t)(place - line);

	return used < length ? arena_copy(arena, place + 3, length - used - 3)
			     : arena_copy(arena, "", 0);
}

bool why_live_line(struct why *w, const char *setting, unsigned n, const char **ret_argument,
	struct why_line *ret)
{
	size_t length = strlen(setting);

	for (const char *at = w->lines; at && *at; at += *at == '\n') {
		if (!strncmp(at, setting, length) && at[length] == ' ' && n-- == 0)
			return read_line(w, at, ret_argument, ret);
		at += strcspn(at, "\n");
	}
	return false;
}

const char *why_live_at(struct why *w, const char *place)
{
	struct why_line line;
	const char *argument;

	for (const char *at = w->lines; at && *at; at += *at == '\n') {
		size_t length = strcspn(at, "\n");
		const char *found = find_place(at, length);

		if (at[0] != '#' && (size_t)(at + length - found) == strlen(place) + 3 &&
			!strncmp(found + 3, place, strlen(place)))
			return read_line(w, at, &argument, &line) ? line.text : NULL;
		at += length;
	}
	return NULL;
}

/* --- asking ----------------------------------------------------------------------------------- */

static int ask_policy(struct why *w, struct error *e)
{
	const struct control_record request = { .kind = CONTROL_SHOW,
		.flag = CONTROL_SHOW_POLICY };
	struct control_message *answer = malloc(sizeof(*answer));
	char *text = NULL;
	int r = answer ? client_ask(w->session, &request, NULL, 0, answer, e)
		       : error_no_memory(e, "session");

	if (r >= 0) {
		ssize_t n = control_read_text(answer, &text);

		r = n < 0 ? error_set(e, ERROR_SESSION, "session", (int)-n, w->session->id,
				    "the session does not say what its policy is")
			  : 0;
		control_close_fds(answer);
	}
	if (r >= 0) {
		w->lines = arena_copy(&w->arena, text, strlen(text));
		r = w->lines ? 0 : error_no_memory(e, "session");
	}
	free(text);
	free(answer);
	return r;
}

/* Lines that belong to that session alone: a plan of a new session must not have them. */
static bool is_only_its_own(const char *line)
{
	return !strncmp(line, "promote", 7) || !strncmp(line, "report ", 7);
}

static const char *lines_for_another(struct why *w)
{
	char *copy = arena_alloc(&w->arena, strlen(w->lines) + 1);
	size_t used = 0;

	for (const char *at = w->lines; copy && *at;) {
		size_t length = strcspn(at, "\n");

		length += at[length] == '\n';
		if (!is_only_its_own(at)) {
			memcpy(copy + used, at, length);
			used += length;
		}
		at += length;
	}
	return copy;
}

/* The remark with the profile: "# profile NAME   # place". */
static const char *profile_of(struct why *w)
{
	static const char mark[] = "# profile ";
	const char *at = strstr(w->lines, mark);

	if (!at)
		return NULL;
	at += sizeof(mark) - 1;
	return arena_copy(&w->arena, at, strcspn(at, " \n"));
}

/* Plan a new session like it. If that would be refused, no remedy can be tried. */
static int plan_another(struct why *w, const char *const *environment, struct error *e)
{
	const char **settings = arena_array(&w->arena, 3, sizeof(*settings));
	const char *lines = lines_for_another(w), *profile = profile_of(w);
	struct error refused = { 0 };

	if (!settings || !lines)
		return error_no_memory(e, "session");
	settings[0] = "--profile";
	settings[1] = profile;
	w->settings = settings;
	w->setting_count = profile ? 2 : 0;
	int r = prepare_begin(&w->p, e);
	if (r < 0)
		return r;
	w->p->lines = lines;
	r = prepare_with(w->p, NULL, PREPARE_DRY, w->setting_count, w->settings, 0, environment,
		NULL, 0, &refused);
	if (r < 0) {
		prepare_free(w->p);
		w->p = NULL;
	}
	return 0;
}

int why_live_begin(
	struct why *w, const char *id, const char *const *environment, struct error *e)
{
	w->session = arena_alloc(&w->arena, sizeof(*w->session));
	if (!w->session)
		return error_no_memory(e, "session");
	*w->session = CLIENT_NO_SESSION;
	int r = client_connect(w->session, id, environment, e);
	if (r >= 0)
		r = ask_policy(w, e);
	return r < 0 ? r : plan_another(w, environment, e);
}
