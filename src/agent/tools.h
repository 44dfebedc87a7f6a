/*
 * tools.h - the tools of the server, a file for each.
 *
 * Runs in: carrel-agent, outside. A tool works on files and processes only through the session
 * (agent/agent_session.h), and may do no more than the session's own commands.
 */
#pragma once

#include "agent/agent_session.h"
#include "agent/server.h"

enum {
	TOOLS_BUDGET = 20000, /* characters of an output, as host/stdio/budget.h counts them */
	TOOLS_BUDGET_MAX = 200000,
};

extern const struct tool tool_exec, tool_read, tool_write, tool_list, tool_promote, tool_pad,
	tool_status;
