/*
 * session_show.h - where a session is, as members of a JSON object.
 *
 * Runs in: the launcher and S.
 */
#pragma once

#include "base/json.h"
#include "host/egress/egress.h"
#include "plan/plan.h"

/* session_show_paths - session, session_dir, scratch, tool_results, workspace, and net. */
void session_show_paths(struct json *j, const struct plan *plan);

/* session_show_published - published: a list of ports inside and ports of the host. */
void session_show_published(struct json *j, const struct egress *g);
