/*
 * verbs.h - the verbs of carrel-agent, and how it says that one failed.
 *
 * Runs in: carrel-agent, outside, as the caller.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/error_report.h"

enum { AGENT_STATUS_BAD = 1 };

/* Each takes its own words, argv[0] being the verb, and returns the exit status. */

/* verb_mcp - `carrel mcp [SETTING...]`: an MCP server on stdin and stdout, and a session behind it. */
int verb_mcp(int argc, char **argv);

/* verb_pad - `carrel pad [-s ID] [--json] [REQUEST | WORD...]`: the pad of a session. */
int verb_pad(int argc, char **argv);
