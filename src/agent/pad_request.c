/*
 * pad_request.c - see pad_request.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/pad_request.h"

#include <errno.h>
#include <string.h>

#include "agent/harmless.h"
#include "base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define ACTIONS "write, append, read, clear"
#define SECTIONS "goal, findings, artifacts, errors, main"
#define EXAMPLE "{\"action\": \"write\", \"section\": \"findings\", \"content\": \"the text\"}"

static const char *const actions[] = { "write", "append", "read", "clear" };
static const char *const fields[] = { "action", "section", "content" };

const char *pad_action_name(enum pad_action action)
{
	return actions[action];
}

/* What somebody sent, to be quoted: harmless and short. */
static void quote(struct buffer *why, const char *text, size_t size)
{
	enum { SHOWN = 40 };
	size_t cut = size;

	if (size > SHOWN) /* never inside a character: the text is valid UTF-8 */
		for (cut = SHOWN; cut > 0 && (text[cut] & 0xc0) == 0x80; cut--)
			;
	buffer_text(why, "\"");
	harmless_add(why, text, cut);
	buffer_text(why, cut < size ? "…\"" : "\"");
}

/* A field that is there and not null. */
static const json_t *request_field(const json_t *value, const char *name)
{
	const json_t *found = json_object_get(value, name);

	return json_is_null(found) ? NULL : found;
}

static int check_names(const json_t *value, struct buffer *why)
{
	const char *name;
	json_t *each;

	if (!request_field(value, "action") && request_field(value, "op")) {
		buffer_text(why, "the parameter is called `action`, not `op`: " EXAMPLE);
		return -EINVAL;
	}
	json_object_foreach((json_t *)value, name, each)
	{
		if (!strcmp(name, "action") || !strcmp(name, "section") ||
			!strcmp(name, "content"))
			continue;
		const char *nearest = text_nearest(name, fields, LENGTH(fields));

		buffer_text(why, "there is no parameter ");
		quote(why, name, strlen(name));
		if (nearest)
			buffer_format(why, "; did you mean `%s`?", nearest);
		else if (!strcmp(name, "text") || !strcmp(name, "value") ||
			!strcmp(name, "data"))
			buffer_text(why, "; the text belongs in `content`: " EXAMPLE);
		else
			buffer_text(
				why, "; they are `action`, `section` and `content`: " EXAMPLE);
		return -EINVAL;
	}
	return 0;
}

static int read_action(const json_t *value, struct pad_request *q, struct buffer *why)
{
	const json_t *action = request_field(value, "action");

	if (!action) {
		buffer_text(
			why, "`action` is missing: it is one of " ACTIONS ", as in " EXAMPLE);
		return -EINVAL;
	}
	if (!json_is_string(action)) {
		buffer_text(why, "`action` must be a string: one of " ACTIONS);
		return -EINVAL;
	}
	for (size_t i = 0; i < LENGTH(actions); i++)
		if (!strcmp(actions[i], json_string_value(action))) {
			q->action = (enum pad_action)i;
			return 0;
		}
	const char *nearest = text_nearest(json_string_value(action), actions, LENGTH(actions));

	buffer_text(why, "there is no action ");
	quote(why, json_string_value(action), json_string_length(action));
	if (nearest)
		buffer_format(why, "; did you mean \"%s\"?", nearest);
	else
		buffer_text(why,
			": `action` says what to do (" ACTIONS
			"), the text belongs in `content`. To save it: "
			"{\"action\": \"write\", \"content\": \"your text\"}");
	return -EINVAL;
}

static int read_section(const json_t *value, struct pad_request *q, struct buffer *why)
{
	static const char *const sections[] = { "goal", "findings", "artifacts", "errors",
		"main" };
	const json_t *section = request_field(value, "section");
	bool saves = q->action == PAD_WRITE || q->action == PAD_APPEND;

	q->section = saves ? PAD_MAIN : PAD_SECTIONS;
	if (!section)
		return 0;
	if (!json_is_string(section)) {
		buffer_text(why, "`section` must be a string: one of " SECTIONS);
		return -EINVAL;
	}
	q->section = pad_section_find(json_string_value(section));
	if (q->section != PAD_SECTIONS)
		return 0;
	const char *nearest =
		text_nearest(json_string_value(section), sections, LENGTH(sections));

	buffer_text(why, "there is no section ");
	quote(why, json_string_value(section), json_string_length(section));
	if (nearest)
		buffer_format(why, "; did you mean \"%s\"?", nearest);
	else
		buffer_text(why,
			": `section` names the category (" SECTIONS
			"), the text itself belongs in `content`: " EXAMPLE);
	return -EINVAL;
}

static int read_content(const json_t *value, struct pad_request *q, struct buffer *why)
{
	const json_t *content = request_field(value, "content");
	const char *action = actions[q->action];

	if (q->action == PAD_READ || q->action == PAD_CLEAR) {
		if (!content)
			return 0;
		buffer_format(why,
			"\"%s\" takes no `content`; to save a text, the action is write "
			"or append: " EXAMPLE,
			action);
		return -EINVAL;
	}
	if (!content) {
		buffer_format(why,
			"`content` is missing: \"%s\" needs the text to save, as in "
			"{\"action\": \"%s\", \"section\": \"%s\", \"content\": "
			"\"the text\"}",
			action, action, pad_section_name(q->section));
		return -EINVAL;
	}
	if (!json_is_string(content)) {
		buffer_text(why,
			"`content` must be a string; put structured data into one as JSON text");
		return -EINVAL;
	}
	if (json_string_length(content) == 0) {
		buffer_format(why,
			"`content` is empty; to erase a section: {\"action\": \"clear\", "
			"\"section\": \"%s\"}",
			pad_section_name(q->section));
		return -EINVAL;
	}
	q->content = json_string_value(content);
	q->size = json_string_length(content);
	return 0;
}

int pad_request_read(const json_t *value, struct pad_request *ret, struct buffer *ret_why)
{
	struct pad_request q = { 0 };

	if (!json_is_object(value)) {
		buffer_text(ret_why, "a request is a JSON object, as in " EXAMPLE);
		return -EINVAL;
	}
	int r = check_names(value, ret_why);
	if (r == 0)
		r = read_action(value, &q, ret_why);
	if (r == 0)
		r = read_section(value, &q, ret_why);
	if (r == 0)
		r = read_content(value, &q, ret_why);
	if (r == 0)
		*ret = q;
	return r;
}

json_t *pad_request_words(int count, const char *const *words)
{
	autobuffer struct buffer text = { 0 };
	json_t *request = json_object();
	int at = 1, r = 0;

	if (count > 0)
		r |= json_object_set_new(request, "action", json_string(words[0]));
	bool saves = count > 0 && (!strcmp(words[0], "write") || !strcmp(words[0], "append"));
	/* `write SECTION` without a text is a mistake: the name is not the text. */
	if (count > at && (!saves || pad_section_find(words[at]) != PAD_SECTIONS))
		r |= json_object_set_new(request, "section", json_string(words[at++]));
	for (int i = at; i < count; i++) {
		if (i > at)
			buffer_text(&text, " ");
		buffer_text(&text, words[i]);
	}
	if (count > at)
		r |= json_object_set_new(
			request, "content", json_stringn(text.data, text.used));
	if (r == 0 && !text.failed)
		return request;
	json_decref(request);
	return NULL;
}

static const char *section_word(enum pad_section section)
{
	return section == PAD_SECTIONS ? "all" : pad_section_name(section);
}

static json_t *read_answer(int pad, const struct pad_request *q, int *ret_error)
{
	struct buffer text[PAD_SECTIONS] = { 0 };
	json_t *sections = json_object();
	int r = pad_read(pad, q->section, text);

	for (unsigned i = 0; i < PAD_SECTIONS; i++) {
		if (r == 0 && (text[i].used > 0 || q->section == (enum pad_section)i) &&
			json_object_set_new(sections, pad_section_name((enum pad_section)i),
				json_stringn(text[i].data ? text[i].data : "", text[i].used)) <
				0)
			r = -ENOMEM;
		buffer_free(&text[i]);
	}
	*ret_error = r;
	return json_pack("{s:s, s:s, s:o}", "action", "read", "section",
		section_word(q->section), "sections", sections);
}

int pad_request_run(int pad, const struct pad_request *q, json_t **ret, struct buffer *ret_why)
{
	size_t bytes = 0;
	json_t *answer = NULL;
	int r = 0;

	switch (q->action) {
	case PAD_WRITE:
		r = pad_write(pad, q->section, q->content, q->size, &bytes);
		break;
	case PAD_APPEND:
		r = pad_append(pad, q->section, q->content, q->size, &bytes);
		break;
	case PAD_READ:
		answer = read_answer(pad, q, &r);
		break;
	case PAD_CLEAR:
		r = pad_clear(pad, q->section);
		break;
	}
	if (r == -EFBIG)
		buffer_format(ret_why,
			"section \"%s\" would have %zu bytes; it may have %zu. Write "
			"a shorter text, clear the section, or put the text into a "
			"file in the scratch and note its path here",
			pad_section_name(q->section), bytes, PAD_SECTION_MAX);
	if (r == -EWOULDBLOCK)
		buffer_format(ret_why,
			"the pad is busy: another process has held it for %d s, it may be "
			"stopped. Nothing was %s; try again later",
			PAD_PATIENCE_MS / 1000, q->action == PAD_READ ? "read" : "changed");
	if (r == 0 && !answer)
		answer = json_pack("{s:s, s:s, s:I}", "action", actions[q->action], "section",
			section_word(q->section), "bytes", (json_int_t)bytes);
	if (r == 0 && !answer)
		r = -ENOMEM;
	if (r == 0)
		*ret = answer;
	else
		json_decref(answer);
	return r;
}

void pad_request_text(const json_t *answer, struct buffer *b)
{
	const json_t *sections = json_object_get(answer, "sections");
	const char *section = json_string_value(json_object_get(answer, "section"));
	const char *action = json_string_value(json_object_get(answer, "action"));
	bool whole = !strcmp(section, "all");
	const char *name;
	json_t *text;

	if (!sections && !strcmp(action, "clear"))
		buffer_format(b, "%s: cleared\n", section);
	else if (!sections)
		buffer_format(b, "%s: saved, it has %lld bytes\n", section,
			json_integer_value(json_object_get(answer, "bytes")));
	json_object_foreach((json_t *)sections, name, text)
	{
		if (whole)
			buffer_format(b, "%s## %s\n", b->used ? "\n" : "", name);
		buffer_add(b, json_string_value(text), json_string_length(text));
		if (b->used && b->data[b->used - 1] != '\n')
			buffer_text(b, "\n");
	}
}
