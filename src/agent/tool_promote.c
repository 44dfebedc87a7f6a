/*
 * tool_promote.c - the tool `promote`: artifacts out of the scratch, to where they are kept.
 *
 * Runs in: carrel-agent, outside. `carrel promote` does the work, so that it is not interrupted half-way, whatever
 * becomes of this program.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/harmless.h"
#include "agent/spawn.h"
#include "agent/tools.h"

struct work {
	struct spawn spawn;
	struct call *call;
};

static void work_free(struct work *w)
{
	spawn_free(&w->spawn);
	free(w);
}

/* Say what could not be promoted in the words of this tool: it has an argument, not an option. */
static void add_reasons(struct buffer *text, const struct buffer *said)
{
	static const char option[] = "--force replaces it";
	const char *from = said->data ? said->data : "";

	for (const char *at; (at = strstr(from, option)); from = at + sizeof(option) - 1) {
		buffer_add(text, from, (size_t)(at - from));
		buffer_text(text, "`overwrite` replaces it");
	}
	buffer_text(text, from);
}

/*
 * The launcher has printed a JSON document, for the structured form; the text is for people. If one artifact
 * could not be promoted, the others were: the document lists them after a failure, too.
 */
static void done(struct spawn *s)
{
	struct work *w = s->context;
	struct call *c = w->call;
	autobuffer struct buffer text = { 0 }, shown = { 0 };
	bool good = WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0;
	json_t *said =
		agent_session_json(s->text[0].data ? s->text[0].data : "", s->text[0].used);
	json_t *list = json_object_get(said, "promoted"), *each;
	bool some = json_array_size(list) > 0;
	size_t i;

	json_array_foreach(list, i, each) buffer_format(&text, "%s -> %s\n",
		json_string_value(json_object_get(each, "source")),
		json_string_value(json_object_get(each, "destination")));
	if (!good)
		add_reasons(&text, &s->text[1]);
	harmless_add(&shown, text.data, text.used);
	work_free(w);
	if (good && said)
		return call_answer_text(c, &shown, said);
	json_decref(said);
	call_refuse(c, "%s: %s",
		some ? "only the files with an arrow were promoted" : "nothing was promoted",
		shown.used ? shown.data : "it did not answer");
}

static void promote_start(struct call *c, const json_t *arguments)
{
	const json_t *sources = field_get(arguments, "sources"), *each;
	const struct agent_session *d = call_context(c);
	size_t i, count = 0;
	const char **words = calloc(json_array_size(sources) + 12, sizeof(*words));
	struct work *w = calloc(1, sizeof(*w));

	if (!words || !w || json_array_size(sources) == 0) {
		bool none = words && w;

		free(words);
		free(w);
		return call_refuse(c,
			none ? "`sources` is empty: name files of the scratch"
			     : "out of memory");
	}
	words[count++] = "promote";
	words[count++] = "-s";
	words[count++] = d->id;
	words[count++] = "--json";
	if (field_flag(arguments, "copy", false))
		words[count++] = "--copy";
	if (field_flag(arguments, "overwrite", false))
		words[count++] = "--force";
	if (field_flag(arguments, "dry_run", false))
		words[count++] = "--dry-run";
	words[count++] = "--";
	json_array_foreach(sources, i, each) words[count++] = json_string_value(each);
	words[count++] = field_text(arguments, "destination", "");
	w->call = c;
	int r = spawn_start(&w->spawn, d->loop, words, false, done, w);
	free(words);
	if (r == 0)
		return;
	free(w);
	call_refuse(c, "`carrel promote` could not be started: %s", strerror(-r));
}

static const struct field input[] = {
	{ .name = "sources",
		.type = FIELD_TEXTS,
		.flags = FIELD_REQUIRED,
		.help = "Files or directories in the scratch" },
	{ .name = "destination",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "A directory of the workspace, or for one source a new name in it" },
	{ .name = "copy", .type = FIELD_BOOLEAN, .help = "Leave them in the scratch too" },
	{ .name = "overwrite", .type = FIELD_BOOLEAN, .help = "Replace what is there" },
	{ .name = "dry_run", .type = FIELD_BOOLEAN, .help = "Only say what would be done" },
	{ 0 },
};

static const struct field promoted[] = {
	{ .name = "source", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "destination", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "how", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "files", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ .name = "bytes", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ 0 },
};

static const struct field output[] = {
	{ .name = "promoted",
		.type = FIELD_OBJECTS,
		.flags = FIELD_REQUIRED,
		.fields = promoted },
	{ 0 },
};

const struct tool tool_promote = {
	.name = "promote",
	.title = "Keep artifacts",
	.description =
		"Move files from the scratch to the workspace. The scratch is removed with the session: "
		"what the user should keep must be promoted.",
	.input = input,
	.output = output,
	.hints = TOOL_DESTRUCTIVE,
	.start = promote_start,
};
