/*
 * exec_notes.c - see exec_notes.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/exec_notes.h"

#include <stdlib.h>
#include <string.h>

#include "agent/harmless.h"

/* One command may make many of them: the first few are enough. */
enum { MOVED_SHOWN = 5 };

static void add(json_t *notes, struct buffer *text, const struct buffer *note)
{
	if (!note->data || note->failed)
		return;
	(void)json_array_append_new(notes, json_stringn(note->data, note->used));
	buffer_format(text, "[%s]\n", note->data);
}

/* Of "carrel: WHAT\ncarrel: hint: ..." the first line: the remedy is the user's. */
static void add_first_line(struct buffer *note, const char *said)
{
	static const char prefix[] = "carrel: ";

	if (!strncmp(said, prefix, sizeof(prefix) - 1))
		said += sizeof(prefix) - 1;
	harmless_add(note, said, strcspn(said, "\n"));
}

void exec_notes_network(
	const struct control_record *end, const char *said, json_t *notes, struct buffer *text)
{
	autobuffer struct buffer note = { 0 };

	if (end->number == CONTROL_NETWORK_NONE)
		buffer_text(&note,
			"this session has no network: do not retry a download or an installation");
	if (end->number == CONTROL_NETWORK_NAMES) {
		buffer_text(&note,
			"this session reaches only what `status` lists as allowed. Refused:");
		harmless_add(&note, said, strlen(said));
		buffer_text(&note, ". Do not retry it: say what you need");
	}
	if (end->number == CONTROL_NETWORK_ADDRESS)
		buffer_text(&note,
			"this session reaches only what `status` lists as allowed, and an address that is not among it was tried. Do not retry it: say what you need");
	if (end->number == CONTROL_NETWORK_TEXT) {
		add_first_line(&note, said);
		buffer_text(&note, ". If it is needed, say so");
	}
	if (note.used)
		add(notes, text, &note);
}

/* How many times this happened since the last command. It keeps the new count. */
static json_int_t is_new(struct agent_session *d, const char *path, json_int_t times)
{
	json_int_t before = json_integer_value(json_object_get(d->moved, path));

	(void)json_object_set_new(d->moved, path, json_integer(times));
	return times - before;
}

static void add_moved(const json_t *each, json_t *notes, struct buffer *text)
{
	const char *path = json_string_value(json_object_get(each, "path"));
	const char *to = json_string_value(json_object_get(each, "to"));
	autobuffer struct buffer note = { 0 };

	harmless_add(&note, path, strlen(path));
	buffer_text(&note, " is protected: what was made there was ");
	if (to) {
		buffer_text(&note, "moved to ");
		harmless_add(&note, to, strlen(to));
	} else {
		buffer_text(&note, "removed");
	}
	buffer_text(&note, ". Do not make it again: say what you need");
	for (size_t i = 0; i < note.used; i++) /* one line */
		if (note.data[i] == '\n' || note.data[i] == '\t')
			note.data[i] = ' ';
	add(notes, text, &note);
}

void exec_notes_moved(struct agent_session *d, const struct control_message *m, json_t *notes,
	struct buffer *text)
{
	autobuffer struct buffer rest = { 0 };
	char *said = NULL;
	ssize_t size = control_read_text(m, &said);
	json_t *list = size < 0 ? NULL : agent_session_json(said, (size_t)size);
	unsigned count = 0;
	size_t i;
	json_t *each;

	free(said);
	if (list && !d->moved)
		d->moved = json_object();
	json_array_foreach(list, i, each)
	{
		const char *path = json_string_value(json_object_get(each, "path"));

		if (path && d->moved &&
			is_new(d, path, json_integer_value(json_object_get(each, "times"))) >
				0 &&
			count++ < MOVED_SHOWN)
			add_moved(each, notes, text);
	}
	json_decref(list);
	if (count <= MOVED_SHOWN)
		return;
	buffer_format(&rest, "%u more were moved to quarantine", count - MOVED_SHOWN);
	add(notes, text, &rest);
}
