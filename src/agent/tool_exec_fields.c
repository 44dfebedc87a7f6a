/*
 * tool_exec_fields.c - what the tool `exec` takes and gives.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/tool_exec_fields.h"

#include "agent/tools.h"

const struct field tool_exec_input[] = {
	{ .name = "command",
		.type = FIELD_TEXT,
		.help = "A line for the shell (bash, or sh where there is no bash). Either this or argv" },
	{ .name = "argv",
		.type = FIELD_TEXTS,
		.help = "A program and its arguments, without a shell" },
	{ .name = "cwd",
		.type = FIELD_TEXT,
		.help = "Working directory; relative to the workspace, which is the default" },
	{ .name = "timeout_seconds",
		.type = FIELD_INTEGER,
		.min = 1,
		.max = 604800,
		.help = "After this time the command and all it started are ended" },
	{ .name = "stdin",
		.type = FIELD_TEXT,
		.flags = FIELD_BYTES,
		.help = "Text for its standard input; empty without it" },
	{ .name = "env",
		.type = FIELD_NAMED,
		.help = "Variables to set besides those of the session" },
	{ .name = "budget",
		.type = FIELD_INTEGER,
		.min = 100,
		.max = TOOLS_BUDGET_MAX,
		.help = "Characters of stdout, and of stderr, that are returned (20000). Of longer output "
			"the middle is left out, and all of it is saved to a file that `read` can show "
			"in slices" },
	{ .name = "merge_output",
		.type = FIELD_BOOLEAN,
		.help = "stdout and stderr as one stream, in the order written" },
	{ 0 },
};

const struct field tool_exec_output[] = {
	{ .name = "execution",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED,
		.help = "Number of the execution in the session" },
	{ .name = "status",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED | FIELD_NULL,
		.help = "Exit status; null where a signal ended it" },
	{ .name = "signal",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED | FIELD_NULL,
		.help = "The signal that ended it" },
	{ .name = "timed_out", .type = FIELD_BOOLEAN, .flags = FIELD_REQUIRED },
	{ .name = "limit",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED | FIELD_NULL,
		.help = "The limit that ended it: timeout, cpu-time, file-size, memory, pids, output" },
	{ .name = "stdout",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "Within the budget, made harmless; stderr too with merge_output" },
	{ .name = "stderr", .type = FIELD_TEXT },
	{ .name = "stdout_chars",
		.type = FIELD_INTEGER,
		.flags = FIELD_REQUIRED,
		.help = "Characters that came, before the budget" },
	{ .name = "stderr_chars", .type = FIELD_INTEGER },
	{ .name = "stdout_file",
		.type = FIELD_TEXT,
		.help = "Where all of it is, if it was over the budget" },
	{ .name = "stderr_file", .type = FIELD_TEXT },
	{ .name = "notes",
		.type = FIELD_TEXTS,
		.help = "Walls that the command met, where trying again would be in vain" },
	{ .name = "wall_ms", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ .name = "cpu_ms", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ .name = "max_rss_bytes", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED },
	{ 0 },
};
