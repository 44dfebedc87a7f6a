/*
 * tool_pad.c - the tool `pad`: the memory of a session, the same as that of `carrel pad`.
 *
 * Runs in: carrel-agent, outside. The pad is not reachable from inside.
 */
#include <errno.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/pad_request.h"
#include "agent/tools.h"

static void pad_start(struct call *c, const json_t *arguments)
{
	const struct agent_session *d = call_context(c);
	autobuffer struct buffer why = { 0 }, text = { 0 }, shown = { 0 };
	struct pad_request q;
	json_t *answer = NULL;
	int r = pad_request_read(arguments, &q, &why);

	if (r == 0)
		r = pad_request_run(d->pad, &q, &answer, &why);
	if (r < 0)
		return call_refuse(c, "%s", why.data ? why.data : strerror(-r));
	pad_request_text(answer, &text);
	harmless_add(&shown, text.data, text.used);
	if (shown.used == 0)
		buffer_text(&shown,
			q.section == PAD_SECTIONS ? "(the pad is empty)\n"
						  : "(the section is empty)\n");
	call_answer_text(c, &shown, answer);
}

/* The table requires nothing, since pad_request.h checks the request, and its answers teach. */
static const char *const actions[] = { "write", "append", "read", "clear", NULL };
static const char *const sections[] = { "goal", "findings", "artifacts", "errors", "main",
	NULL };

static const struct field input[] = {
	{ .name = "action",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.words = actions,
		.help = "write replaces a section, append adds to it, read and clear take one section or "
			"all of them" },
	{ .name = "section",
		.type = FIELD_TEXT,
		.words = sections,
		.help = "The category. Defaults to main on write and append, to all sections on read "
			"and clear" },
	{ .name = "content",
		.type = FIELD_TEXT,
		.flags = FIELD_BYTES,
		.help = "The text to save; required for write and append" },
	{ 0 },
};

static const struct field output[] = {
	{ .name = "action", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "section",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "The section, or \"all\"" },
	{ .name = "bytes", .type = FIELD_INTEGER, .help = "Size of the section afterwards" },
	{ .name = "sections",
		.type = FIELD_NAMED,
		.help = "The section and the text that were read" },
	{ 0 },
};

const struct tool tool_pad = {
	.name = "pad",
	.title = "Working memory",
	.description =
		"Working memory for this session: save what you found (paths, values, error "
		"messages), the goal, what was tried, so that it is not lost between calls. "
		"Not for progress tracking and not for final answers.",
	.input = input,
	.output = output,
	.hints = TOOL_DESTRUCTIVE,
	.free_form = true,
	.start = pad_start,
};
