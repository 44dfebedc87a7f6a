/*
 * message_fuzz.c - any bytes as the input of the MCP server, cut anywhere: no crash, every line that it
 * says is one JSON-RPC message, and nothing is kept that was over a bound.
 *
 * Runs in: the tests. As a fuzzer (no main of its own with CARREL_LIBFUZZER): tests/fuzz/fuzz.bats.
 * Without the define it is a plain program that runs over the files it is given, once each.
 *
 * The first byte chooses: bits 0-3 how many bytes are read at a time, bit 4 whether the client is slow,
 * bit 5 whether `initialize` was said before.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lines.h"
#include "agent/message.h"
#include "agent/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_MAX_ = 4096, CALLS = 64 };

struct world {
	struct call *waiting[CALLS];
	unsigned count;
	bool slow;
};

static void fail(const char *what)
{
	(void)!write(STDERR_FILENO, what, strlen(what));
	__builtin_trap();
}

static void send_one(void *context, const json_t *message)
{
	(void)context;
	if (json_is_array(message))
		return;
	if (!json_is_object(message) || !json_is_string(json_object_get(message, "jsonrpc")))
		fail("what was said is no message\n");
	char *text = json_dumps(message, JSON_COMPACT);
	if (!text || strchr(text, '\n'))
		fail("what was said is not one line\n");
	free(text);
}

static bool is_slow(void *context)
{
	return ((struct world *)context)->slow;
}

static void echo(struct call *c, const json_t *arguments)
{
	call_refuse(c, "%s", field_text(arguments, "text", "nothing"));
}

static void wait_for_it(struct call *c, const json_t *arguments)
{
	struct world *w = call_context(c);

	(void)arguments;
	if (w->count == CALLS)
		return call_refuse(c, "full");
	w->waiting[w->count++] = c;
}

static void cancel(struct call *c)
{
	struct world *w = call_context(c);

	for (unsigned i = 0; i < w->count; i++)
		if (w->waiting[i] == c)
			w->waiting[i] = w->waiting[--w->count];
	call_refuse(c, "cancelled");
}

static const char *const words[] = { "red", "green", NULL };
static const struct field fields[] = {
	{ .name = "text", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, .help = "text" },
	{ .name = "times", .type = FIELD_INTEGER, .min = 1, .max = 9 },
	{ .name = "loud", .type = FIELD_BOOLEAN },
	{ .name = "argv", .type = FIELD_TEXTS },
	{ .name = "env", .type = FIELD_NAMED },
	{ .name = "colour", .type = FIELD_TEXT, .words = words },
	{ 0 },
};
static const struct tool tool_echo = { .name = "echo",
	.title = "e",
	.description = "e",
	.input = fields,
	.output = fields,
	.start = echo };
static const struct tool tool_wait = { .name = "wait",
	.title = "w",
	.description = "w",
	.input = fields + 6,
	.output = fields + 6,
	.start = wait_for_it,
	.cancel = cancel };
static const struct tool *const tools[] = { &tool_echo, &tool_wait };

static void hear(struct server *s, struct lines *l, bool last)
{
	char *line;
	size_t size;
	enum lines_what what;

	while ((what = lines_next(l, &line, &size)) != LINES_NONE ||
		(last && (what = lines_last(l, &line, &size)) != LINES_NONE)) {
		if (what == LINES_LONG) {
			server_long_line(s);
			continue;
		}
		if (size > LINE_MAX_)
			fail("a line over the bound\n");
		server_line(s, line, size, 1000);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char start[] =
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		"\"protocolVersion\":\"2025-03-26\",\"capabilities\":{\"roots\":{}}}}";
	struct world w = { .slow = size > 0 && (data[0] & 16) };
	const struct server_setup setup = { .tools = tools,
		.tool_count = 2,
		.tool_context = &w,
		.send = send_one,
		.busy = is_slow,
		.context = &w };
	struct server *s = size > 0 ? server_new(&setup) : NULL;
	struct lines l;

	if (!s)
		return 0;
	size_t step = (size_t)(data[0] & 15) * 37 + 1;
	lines_init(&l, LINE_MAX_);
	if (data[0] & 32)
		server_line(s, start, sizeof(start) - 1, 0);
	for (size_t at = 1; at < size;) {
		char *room;
		size_t space;

		if (lines_room(&l, &room, &space) < 0)
			break;
		size_t part = size - at < step ? size - at : step;
		part = part < space ? part : space;
		memcpy(room, data + at, part);
		lines_filled(&l, part);
		at += part;
		hear(s, &l, false);
		if (l.size > (size_t)256 << 10)
			fail("more is kept than a line\n");
	}
	hear(s, &l, true);
	server_tick(s, 5000);
	json_decref(server_describe(s));
	server_cancel_all(s);
	if (server_calls(s) != 0)
		fail("a call is left\n");
	server_free(s);
	lines_free(&l);
	return 0;
}

#ifndef CARREL_LIBFUZZER
int main(int argc, char **argv)
{
	static uint8_t data[1 << 20];

	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

		if (n < 0) {
			(void)fprintf(stderr, "%s cannot be read\n", argv[i]);
			return 1;
		}
		close(fd);
		LLVMFuzzerTestOneInput(data, (size_t)n);
	}
	return 0;
}
#endif
