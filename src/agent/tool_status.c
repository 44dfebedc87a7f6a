/*
 * tool_status.c - the tool `status`: where things are, what runs, what the client offered.
 *
 * Runs in: carrel-agent, outside.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/harmless.h"
#include "agent/tools.h"

struct work {
	struct session_request request; /* first */
	struct call *call;
	struct agent_session *session;
};

/* The session's own description, without the parts that do not concern a command inside. */
static json_t *describe(const struct work *w, const struct control_message *m)
{
	static const char *const passed[] = { "session", "workspace", "scratch", "tool_results",
		"profile", "net", "allow", "allow_more", "refused", "state", "age_ms",
		"lifetime_ms", "executions_total" };
	char *text = NULL;
	ssize_t size = control_read_text(m, &text);
	json_t *said = size < 0 ? NULL : agent_session_json(text, (size_t)size);
	json_t *value = server_describe(call_server(w->call));
	int r = said && value ? 0 : -1;

	free(text);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]) && r == 0; i++) {
		json_t *each = json_object_get(said, passed[i]);

		if (each)
			r = json_object_set(value, passed[i], each);
	}
	json_t *executions = json_object_get(said, "executions");
	if (r == 0)
		r = json_object_set_new(value, "executions_running",
			json_integer((json_int_t)json_array_size(executions)));
	json_decref(said);
	if (r == 0)
		return value;
	json_decref(value);
	return NULL;
}

static void status_network(const json_t *value, struct buffer *b)
{
	const char *net = json_string_value(json_object_get(value, "net"));
	json_int_t more = json_integer_value(json_object_get(value, "allow_more"));
	size_t i;
	json_t *each;

	if (!net)
		return;
	if (strcmp(net, "allow") != 0) {
		buffer_format(b, "network: %s\n", net);
		return;
	}
	buffer_text(b, "network: these hosts and no others:");
	json_array_foreach(json_object_get(value, "allow"), i, each)
		buffer_format(b, " %s", json_string_value(each));
	if (more > 0)
		buffer_format(b, " and %lld more", (long long)more);
	buffer_text(b, "\n");
	if (json_array_size(json_object_get(value, "refused")) == 0)
		return;
	buffer_text(b, "network: refused so far, do not retry:");
	json_array_foreach(json_object_get(value, "refused"), i, each)
		buffer_format(b, " %s", json_string_value(each));
	buffer_text(b, "\n");
}

static void status_text(const json_t *value, struct buffer *b)
{
	static const char *const lines[][2] = { { "workspace",
							"workspace (the user's project)" },
		{ "scratch", "scratch (not kept: promote what should stay)" },
		{ "tool_results", "full outputs" }, { "profile", "profile" } };
	size_t i;
	json_t *each;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *text = json_string_value(json_object_get(value, lines[i][0]));

		if (!text)
			continue;
		buffer_format(b, "%s: ", lines[i][1]);
		harmless_add(b, text, json_string_length(json_object_get(value, lines[i][0])));
		buffer_text(b, "\n");
	}
	status_network(value, b);
	buffer_format(b, "executions: %lld running, %lld in all\n",
		json_integer_value(json_object_get(value, "executions_running")),
		json_integer_value(json_object_get(value, "executions_total")));
	json_array_foreach(json_object_get(value, "roots"), i, each) buffer_format(
		b, "the client's root (a suggestion): %s\n", json_string_value(each));
}

static void status_answered(struct session_request *a, struct control_message *m)
{
	struct work *w = (struct work *)a;
	struct call *c = w->call;
	autobuffer struct buffer text = { 0 };
	json_t *value = m && m->head.kind == CONTROL_TEXT ? describe(w, m) : NULL;

	agent_session_forget(w->session, a);
	if (value)
		status_text(value, &text);
	else if (m && m->head.kind == CONTROL_ERROR)
		agent_session_explain(m, &text);
	free(w);
	if (value)
		return call_answer_text(c, &text, value);
	call_refuse(c, "the session cannot be described: %s",
		text.data   ? text.data
			: m ? "it did not answer"
			    : "it has ended");
}

static void status_start(struct call *c, const json_t *arguments)
{
	struct control_record record = { .kind = CONTROL_SHOW };
	struct work *w = calloc(1, sizeof(*w));

	(void)arguments;
	if (!w)
		return call_refuse(c, "out of memory");
	w->request.answer = status_answered;
	w->call = c;
	w->session = call_context(c);
	if (agent_session_send(w->session, &w->request, &record, NULL, 0, NULL, 0) == 0)
		return;
	free(w);
	call_refuse(c, "the session does not answer");
}

static const struct field input[] = { { 0 } };

static const struct field output[] = {
	{ .name = "session", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "workspace",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "The user's project" },
	{ .name = "scratch",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "For what is produced; removed with the session" },
	{ .name = "tool_results",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "Full copies of outputs that were cut" },
	{ .name = "profile", .type = FIELD_TEXT },
	{ .name = "net",
		.type = FIELD_TEXT,
		.help = "none: no network; allow: the hosts of `allow`; host: this machine's" },
	{ .name = "allow",
		.type = FIELD_TEXTS,
		.help = "HOST:PORT,... that commands can reach now; only the user can change it" },
	{ .name = "allow_more",
		.type = FIELD_INTEGER,
		.help = "Hosts beside those of `allow`" },
	{ .name = "refused",
		.type = FIELD_TEXTS,
		.help = "HOST[:PORT] that commands tried so far and were refused, 16 at most" },
	{ .name = "state", .type = FIELD_TEXT },
	{ .name = "age_ms", .type = FIELD_INTEGER },
	{ .name = "lifetime_ms", .type = FIELD_INTEGER },
	{ .name = "executions_total", .type = FIELD_INTEGER },
	{ .name = "executions_running", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ .name = "calls",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED,
		.help = "Calls under way, this one included" },
	{ .name = "revision",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "Of the protocol" },
	{ .name = "roots",
		.type = FIELD_TEXTS,
		.flags = FIELD_REQUIRED,
		.help = "What the client offered; it changes nothing that the session may do" },
	{ 0 },
};

const struct tool tool_status = {
	.name = "status",
	.title = "Session status",
	.description =
		"Where the workspace, the scratch and the saved outputs are, and what is running.",
	.input = input,
	.output = output,
	.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	.start = status_start,
};
