/*
 * tool_exec_fields.h - the schema of the tool `exec`.
 *
 * Runs in: carrel-agent, outside.
 */
#pragma once

#include "agent/field.h"

/* Each ends with an entry without a name. */
extern const struct field tool_exec_input[], tool_exec_output[];
