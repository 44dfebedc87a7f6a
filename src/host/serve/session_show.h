/*
 * session_show.h - where a session is: as members of a JSON object, and as `session start` prints it.
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

/* session_show_text, session_show_json - what `session start` prints, to stdout. 0 or -errno. */
MUST_CHECK int session_show_text(const struct facts *f, const struct egress *g);
MUST_CHECK int session_show_json(const struct plan *plan, const struct egress *g);
