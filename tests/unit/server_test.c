/*
 * server_test.c - transcripts: what a client says, line by line, and what it is told.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/buffer.h"
#include "agent/message.h"
#include "agent/server.h"

#define HEAD "{\"jsonrpc\":\"2.0\","
#define INITIALIZE(revision, capabilities) \
	HEAD "\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"" revision \
	     "\",\"capabilities\":" capabilities \
	     ",\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}"
#define INITIALIZED HEAD "\"method\":\"notifications/initialized\"}"
#define META \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* One tool that answers at once, one that waits until the test says so. */
struct backend {
	struct call *waiting[64];
	unsigned count, cancelled;
};

static const char *const colours[] = { "red", "green", NULL };
static const struct field echo_in[] = {
	{ .name = "text", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, .help = "what to say" },
	{ .name = "times", .type = FIELD_INTEGER, .min = 1, .max = 3 },
	{ .name = "loud", .type = FIELD_BOOLEAN },
	{ .name = "words", .type = FIELD_TEXTS },
	{ .name = "env", .type = FIELD_NAMED },
	{ .name = "colour", .type = FIELD_TEXT, .words = colours },
	{ 0 },
};
static const struct field echo_out[] = {
	{ .name = "said",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "what was said" },
	{ 0 },
};
static const struct field none[] = { { 0 } };

static void echo_start(struct call *c, const json_t *arguments)
{
	autobuffer struct buffer text = { 0 };

	buffer_text(&text, field_text(arguments, "text", ""));
	call_log(c, LEVEL_INFO, "said %s", text.data);
	call_answer_text(c, &text, json_pack("{s:s}", "said", text.data));
}

static void wait_start(struct call *c, const json_t *arguments)
{
	struct backend *d = call_context(c);

	(void)arguments;
	d->waiting[d->count++] = c;
}

static void wait_cancel(struct call *c)
{
	struct backend *d = call_context(c);

	d->cancelled++;
	for (unsigned i = 0; i < d->count; i++)
		if (d->waiting[i] == c)
			d->waiting[i] = NULL;
	call_refuse(c, "never sent");
}

static void wait_progress(struct call *c, struct buffer *text)
{
	(void)c;
	buffer_text(text, "still waiting");
}

static const struct tool echoes = { .name = "echo",
	.title = "Echo",
	.description = "Say it again.",
	.input = echo_in,
	.output = echo_out,
	.hints = TOOL_READ_ONLY,
	.start = echo_start };
static const struct tool waits = { .name = "wait",
	.title = "Wait",
	.description = "Wait.",
	.input = none,
	.output = none,
	.hints = TOOL_DESTRUCTIVE,
	.start = wait_start,
	.cancel = wait_cancel,
	.progress = wait_progress };
static const struct tool *const tools[] = { &echoes, &waits };

struct world {
	struct server *server;
	struct backend backend;
	struct buffer sent;
	bool busy;
	int64_t now_ms;
};

static void send_line(void *context, const json_t *message)
{
	struct world *w = context;
	char *text = json_dumps(message, JSON_COMPACT);

	assert_non_null(text);
	assert_null(strchr(text, '\n'));
	buffer_text(&w->sent, text);
	buffer_text(&w->sent, "\n");
	free(text);
}

static bool is_busy(void *context)
{
	return ((struct world *)context)->busy;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct server_setup s = { .tools = tools,
		.tool_count = 2,
		.instructions = "Do.",
		.tool_context = &w->backend,
		.send = send_line,
		.busy = is_busy,
		.context = w };

	w->server = server_new(&s);
	*state = w;
	return w->server ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;

	server_cancel_all(w->server);
	server_free(w->server);
	buffer_free(&w->sent);
	free(w);
	return 0;
}

/* Say a line; what is sent in return, valid until the next one. */
static const char *say(struct world *w, const char *line)
{
	w->sent.used = 0;
	buffer_text(&w->sent, "");
	server_line(w->server, line, strlen(line), w->now_ms);
	return w->sent.data;
}

static void answers(struct world *w, const char *line, const char *part)
{
	const char *said = say(w, line);

	if (!strstr(said, part))
		fail_msg("%s\n  was answered: %s\n  expected: %s", line, said, part);
}

static void is_silent(struct world *w, const char *line)
{
	assert_string_equal(say(w, line), "");
}

/* --- legacy ----------------------------------------------------------------------------------- */

static void revisions_are_negotiated(void **state)
{
	static const char *const known[] = { INITIALIZE("2025-11-25", "{}"),
		INITIALIZE("2025-06-18", "{}"), INITIALIZE("2025-03-26", "{}"),
		INITIALIZE("2024-11-05", "{}") };
	static const char *const names[] = { "2025-11-25", "2025-06-18", "2025-03-26",
		"2024-11-05" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		void *fresh;
		char version[64];

		assert_int_equal(setup(&fresh), 0);
		(void)snprintf(
			version, sizeof(version), "{\"protocolVersion\":\"%s\"", names[i]);
		answers(fresh, known[i], version);
		assert_non_null(
			strstr(((struct world *)fresh)->sent.data, "\"instructions\":\"Do.\""));
		/* what a revision does not know is not sent */
		const char *list = say(fresh, HEAD "\"id\":1,\"method\":\"tools/list\"}");

		assert_int_equal(strstr(list, "\"outputSchema\"") != NULL, i < 2);
		assert_int_equal(strstr(list, "\"annotations\"") != NULL, i < 3);
		assert_null(strstr(list, "resultType"));
		list = say(fresh,
			HEAD "\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
			     "\"echo\",\"arguments\":{\"text\":\"hi\"}}}");
		assert_int_equal(strstr(list, "structuredContent") != NULL, i < 2);
		teardown(&fresh);
	}
	answers(*state, INITIALIZE("1999-01-01", "{}"), "\"protocolVersion\":\"2025-11-25\"");
}

static void nothing_before_initialize(void **state)
{
	struct world *w = *state;

	answers(w, HEAD "\"id\":7,\"method\":\"tools/list\"}",
		"\"id\":7,\"error\":{\"code\":-32600,\"message\":\"not initialized");
	answers(w,
		HEAD "\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
		     "\"arguments\":{\"text\":\"x\"}}}",
		"\"code\":-32600");
	answers(w,
		HEAD
		"\"id\":9,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}",
		"\"code\":-32600");
	answers(w, HEAD "\"id\":10,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{}}\n");
	is_silent(w, INITIALIZED);
	is_silent(w, "");
	is_silent(w, "  \t ");
	answers(w, HEAD "\"id\":1,\"method\":\"initialize\"}", "\"code\":-32602");
	answers(w,
		HEAD "\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":3}}",
		"\"code\":-32602");
	answers(w, INITIALIZE("2025-11-25", "[]"), "\"code\":-32602");
	answers(w, INITIALIZE("2025-11-25", "{}"), "\"result\"");
	answers(w, INITIALIZE("2025-11-25", "{}"), "already initialized");
}

static void bad_messages(void **state)
{
	struct world *w = *state;

	answers(w, "{", "\"id\":null,\"error\":{\"code\":-32700");
	answers(w, "\xff", "\"code\":-32700");
	answers(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
		"\"code\":-32700");
	answers(w, HEAD "\"id\":9223372036854775807,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"result\":{}}\n");
	answers(w, HEAD "\"id\":9223372036854775808,\"method\":\"ping\"}",
		"\"id\":null,\"error\":{\"code\":-32600,\"message\":\"the line cannot be read: a "
		"number has more than 64 bits (at byte");
	answers(w, HEAD "\"id\":1,\"method\":\"ping\",\"params\":{\"a\":1e999}}",
		"\"id\":null,\"error\":{\"code\":-32600");
	answers(w, "[]", "\"code\":-32600");
	answers(w, "[" HEAD "\"id\":1,\"method\":\"ping\"}]", "\"code\":-32600");
	answers(w, "7", "\"code\":-32600");
	answers(w, HEAD "\"id\":3,\"method\":5}", "\"id\":3,\"error\":{\"code\":-32600");
	answers(w, HEAD "\"id\":4,\"method\":\"no/such\"}",
		"\"id\":4,\"error\":{\"code\":-32601");
	answers(w, HEAD "\"id\":5,\"method\":\"\\u001b[2J\"}", "␛[2J");
	answers(w, HEAD "\"id\":6,\"method\":\"ping\",\"params\":[1]}", "\"code\":-32602");
	is_silent(w, HEAD "\"method\":\"no/such\"}");
	is_silent(w, HEAD "\"id\":1,\"result\":{}}");
	w->sent.used = 0;
	server_long_line(w->server);
	assert_non_null(strstr(w->sent.data, "longer than 16 MiB"));
}

static void calls_that_are_wrong(void **state)
{
	static const char *const wrong[][2] = {
		{ "{}", "`text` is missing: what to say" },
		{ "{\"text\":null}", "`text` is missing" },
		{ "{\"text\":1}", "`text` must be of type string" },
		{ "{\"text\":\"a\\u0000b\"}", "NUL" },
		{ "{\"text\":\"a\",\"txet\":1}", "did you mean `text`?" },
		{ "{\"text\":\"a\",\"zzzzzzz\":1}", "there are: `text` `times`" },
		{ "{\"text\":\"a\",\"times\":4}", "`times` must be between 1 and 3" },
		{ "{\"text\":\"a\",\"times\":1.5}", "`times` must be of type integer" },
		{ "{\"text\":\"a\",\"times\":1e300}", "`times` must be of type integer" },
		{ "{\"text\":\"a\",\"times\":4.0}", "`times` must be between 1 and 3" },
		{ "{\"text\":\"a\",\"loud\":\"yes\"}", "`loud` must be of type boolean" },
		{ "{\"text\":\"a\",\"words\":[1]}", "`words` must be an array of strings" },
		{ "{\"text\":\"a\",\"env\":[\"A\"]}", "`env` must be an object of strings" },
		{ "{\"text\":\"a\",\"colour\":\"blue\"}", "one of: \\\"red\\\" \\\"green\\\"" },
	};
	struct world *w = *state;
	char line[512];

	(void)say(w, INITIALIZE("2025-11-25", "{}"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(line, sizeof(line),
			HEAD "\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"echo\",\"arguments\":%s}}",
			wrong[i][0]);
		answers(w, line, wrong[i][1]);
		assert_non_null(strstr(w->sent.data, "\"isError\":true"));
	}
	answers(w, HEAD "\"id\":1,\"method\":\"tools/call\"}", "\"code\":-32602");
	answers(w, HEAD "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"nosuch\"}}",
		"\"code\":-32602,\"message\":\"Unknown tool: nosuch\"");
	answers(w,
		HEAD "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
		     "\"arguments\":[]}}",
		"\"code\":-32602");
	answers(w, HEAD "\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
		"\"code\":-32602");
}

static void several_calls_and_their_ids(void **state)
{
	struct world *w = *state;
	const char *slow =
		HEAD "\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}";

	(void)say(w, INITIALIZE("2025-11-25", "{}"));
	is_silent(w, slow);
	answers(w, slow,
		"\"id\":\"a\",\"error\":{\"code\":-32600,\"message\":\"a request with this id");
	is_silent(w, HEAD "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}");
	answers(w, HEAD "\"id\":2,\"method\":\"ping\"}", "\"id\":2,\"result\"");
	assert_int_equal(server_calls(w->server), 2);
	/* cancelled: silence, and its id is free again */
	is_silent(w,
		HEAD
		"\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}");
	is_silent(w,
		HEAD
		"\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}");
	is_silent(w,
		HEAD "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":[]}}");
	is_silent(w, HEAD "\"method\":\"notifications/cancelled\"}");
	assert_int_equal(w->backend.cancelled, 1);
	is_silent(w, slow);
	/* the other one ends */
	w->sent.used = 0;
	call_refuse(w->backend.waiting[1], "\033[1mtry again");
	assert_string_equal(w->sent.data,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
		"\"␛[1mtry again\"}],\"isError\":true}}\n");
	/* too many */
	for (int i = 10; i < 10 + SERVER_CALLS_MAX - 1; i++) {
		char line[128];

		(void)snprintf(line, sizeof(line),
			HEAD "\"id\":%d,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"wait\"}}",
			i);
		is_silent(w, line);
	}
	answers(w, HEAD "\"id\":99,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}",
		"32 calls are under way");
	server_cancel_all(w->server);
	assert_int_equal(server_calls(w->server), 0);
}

static void progress_and_logging(void **state)
{
	struct world *w = *state;
	const char *echo =
		HEAD "\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
		     "\"arguments\":{\"text\":\"x\"}}}";

	(void)say(w, INITIALIZE("2025-11-25", "{}"));
	assert_int_equal(server_wait_ms(w->server, 0), -1);
	is_silent(w,
		HEAD "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\","
		     "\"_meta\":{\"progressToken\":\"t\"}}}");
	is_silent(w, HEAD "\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}");
	assert_int_equal(server_wait_ms(w->server, 0), 1000);
	server_tick(w->server, 999);
	assert_string_equal(w->sent.data, "");
	server_tick(w->server, 1500);
	assert_string_equal(w->sent.data,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
		"{\"progressToken\":\"t\",\"progress\":1.5,\"message\":\"still waiting\"}}\n");
	assert_int_equal(server_wait_ms(w->server, 1600), 900);
	w->busy = true; /* a slow client is spared */
	w->sent.used = 0;
	server_tick(w->server, 3000);
	assert_int_equal(w->sent.used, 0);
	w->busy = false;
	/* logging: warnings alone, until more is asked for */
	assert_null(strstr(say(w, echo), "notifications/message"));
	answers(w,
		HEAD
		"\"id\":6,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"loud\"}}",
		"\"code\":-32602");
	answers(w,
		HEAD
		"\"id\":6,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}",
		"\"result\":{}");
	answers(w, echo, "{\"level\":\"info\",\"logger\":\"carrel\",\"data\":\"said x\"}");
}

static void roots_are_a_suggestion(void **state)
{
	struct world *w = *state;

	(void)say(w, INITIALIZE("2025-11-25", "{\"roots\":{\"listChanged\":true}}"));
	answers(w, INITIALIZED, "\"id\":\"carrel-roots-1\",\"method\":\"roots/list\"");
	is_silent(w,
		HEAD "\"id\":\"carrel-roots-1\",\"result\":{\"roots\":[{\"uri\":\"file:///a\"},"
		     "{\"uri\":5},{\"uri\":\"file:///\\u001bb\"}]}}");
	json_t *said = server_describe(w->server);
	char *text = json_dumps(said, JSON_COMPACT);

	assert_string_equal(text,
		"{\"revision\":\"2025-11-25\",\"calls\":0,\"roots\":[\"file:///a\",\"file:///␛b\"]}");
	free(text);
	json_decref(said);
	answers(w, HEAD "\"method\":\"notifications/roots/list_changed\"}", "carrel-roots-2");
	is_silent(
		w, HEAD "\"id\":\"carrel-roots-1\",\"result\":{\"roots\":[]}}"); /* too late */
	is_silent(w,
		HEAD "\"id\":\"carrel-roots-2\",\"error\":{\"code\":-1,\"message\":\"no\"}}");
}

static void batches_of_the_revision_that_has_them(void **state)
{
	struct world *w = *state;

	(void)say(w, INITIALIZE("2025-03-26", "{}"));
	answers(w,
		"[" HEAD "\"id\":1,\"method\":\"ping\"}," HEAD "\"method\":\"x\"}," HEAD
		"\"id\":2,\"method\":\"nosuch\"},5,[]]",
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":"
		"{\"code\":-32601,\"message\":\"there is no such method: nosuch\"}},{\"jsonrpc\":"
		"\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"a message must be an object\"}},"
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,");
	is_silent(w, "[" HEAD "\"method\":\"x\"}]");
	/* the answers wait for the last one */
	is_silent(w,
		"[" HEAD
		"\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}," HEAD
		"\"id\":4,\"method\":\"ping\"}," HEAD
		"\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}]");
	w->sent.used = 0;
	call_refuse(w->backend.waiting[0], "no");
	assert_int_equal(w->sent.used, 0);
	is_silent(w, INITIALIZED);
	const char *said = say(w,
		HEAD "\"method\":\"notifications/cancelled\",\"params\":"
		     "{\"requestId\":5}}");

	assert_memory_equal(said, "[{", 2);
	assert_non_null(strstr(said, "\"id\":3"));
	assert_non_null(strstr(said, "\"id\":4"));
	assert_null(strstr(said, "\"id\":5"));
}

/* --- modern ----------------------------------------------------------------------------------- */

static void requests_speak_for_themselves(void **state)
{
	struct world *w = *state;

	answers(w, HEAD "\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
		"\"supportedVersions\":[\"2026-07-28\"]");
	assert_non_null(strstr(w->sent.data, "\"resultType\":\"complete\""));
	assert_non_null(strstr(w->sent.data, "\"instructions\":\"Do.\""));
	assert_non_null(strstr(w->sent.data, "io.modelcontextprotocol/serverInfo"));
	answers(w, HEAD "\"id\":2,\"method\":\"tools/list\",\"params\":{" META "}}",
		"\"cacheScope\":\"private\"");
	answers(w,
		HEAD
		"\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":"
		"{\"text\":\"x\"}," META "}}",
		"\"structuredContent\":{\"said\":\"x\"}");
	assert_null(strstr(w->sent.data, "notifications/message"));
	answers(w, HEAD "\"id\":4,\"method\":\"ping\",\"params\":{" META "}}",
		"\"code\":-32601");
	answers(w,
		HEAD "\"id\":5,\"method\":\"server/discover\",\"params\":{\"_meta\":{"
		     "\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\"}}}",
		"\"code\":-32022");
	assert_non_null(strstr(w->sent.data,
		"\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"1900-01-01\"}"));
	answers(w,
		HEAD "\"id\":6,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
		     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
		"\"code\":-32602");
	answers(w,
		HEAD "\"id\":7,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
		     "\"io.modelcontextprotocol/protocolVersion\":20260728}}}",
		"\"code\":-32602");
	answers(w, HEAD "\"id\":8,\"method\":\"server/discover\"}", "\"code\":-32602");
	/* both eras on one connection */
	answers(w, INITIALIZE("2025-11-25", "{}"), "\"protocolVersion\":\"2025-11-25\"");
	answers(w, HEAD "\"id\":9,\"method\":\"server/discover\",\"params\":{" META "}}",
		"complete");
}

static void logging_is_asked_for_with_the_request(void **state)
{
#define LEVEL(level) \
	HEAD "\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":" \
	     "\"x\"},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	     "\"io.modelcontextprotocol/clientCapabilities\":{}," \
	     "\"io.modelcontextprotocol/logLevel\":\"" level "\"}}}"
	struct world *w = *state;

	answers(w, LEVEL("debug"), "\"level\":\"info\"");
	answers(w, LEVEL("info"), "\"level\":\"info\"");
	assert_null(strstr(say(w, LEVEL("notice")), "notifications/message"));
	answers(w, LEVEL("loud"), "\"code\":-32602");
}

static void subscriptions_are_to_nothing(void **state)
{
	struct world *w = *state;

	answers(w,
		HEAD
		"\"id\":\"s\",\"method\":\"subscriptions/listen\",\"params\":{\"notifications\":"
		"{\"toolsListChanged\":true}," META "}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
		"\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"s\"},\"notifications\":{}}}");
	assert_int_equal(server_calls(w->server), 1);
	is_silent(w,
		HEAD
		"\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"s\"}}");
	assert_int_equal(server_calls(w->server), 0);
	answers(w, HEAD "\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{" META "}}",
		"\"code\":-32602");
}

static void schemas_say_what_is_checked(void **state)
{
	struct world *w = *state;

	(void)say(w, INITIALIZE("2025-11-25", "{}"));
	answers(w, HEAD "\"id\":1,\"method\":\"tools/list\"}",
		"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
		"\"description\":\"what to say\"},\"times\":{\"type\":\"integer\",\"minimum\":1,"
		"\"maximum\":3},\"loud\":{\"type\":\"boolean\"},\"words\":{\"type\":\"array\",\"items\":"
		"{\"type\":\"string\"}},\"env\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
		"\"string\"}},\"colour\":{\"type\":\"string\",\"enum\":[\"red\",\"green\"]}},\"required\":"
		"[\"text\"],\"additionalProperties\":false}");
	assert_non_null(strstr(w->sent.data,
		"\"annotations\":{\"title\":\"Echo\",\"readOnlyHint\":true,\"destructiveHint\":false,"
		"\"idempotentHint\":false,\"openWorldHint\":false}"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(revisions_are_negotiated),
		TEST(nothing_before_initialize),
		TEST(bad_messages),
		TEST(calls_that_are_wrong),
		TEST(several_calls_and_their_ids),
		TEST(progress_and_logging),
		TEST(roots_are_a_suggestion),
		TEST(batches_of_the_revision_that_has_them),
		TEST(requests_speak_for_themselves),
		TEST(logging_is_asked_for_with_the_request),
		TEST(subscriptions_are_to_nothing),
		TEST(schemas_say_what_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
