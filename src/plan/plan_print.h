/*
 * plan_print.h - a plan for people and for programs: `carrel plan`.
 *
 * Runs in: carrel-policy. PURE: bytes go to the caller's function, and nothing else happens. No
 * value of a variable that comes from the caller's environment is ever written.
 *
 * The same plan gives the same bytes. What is random in a plan is the session's id, and as root the
 * uid that was taken for it: both differ in the session that is really run.
 */
#pragma once

#include <stdbool.h>

#include "plan/plan.h"

struct plan_view {
	const struct plan *plan;
	/*
	 * Shown in place of the session's id, inside paths too; the kernel uid of privileged mode
	 * is then left out. NULL: both are shown as they are.
	 */
	const char *session;
	writer_fn write;
	void *context;
};

/*
 * plan_print - @json: as one JSON document, docs/plan.md, docs/plan.schema.json. Else as text: the
 * session, its walls, the numbered operations, one on a line, what is made in the session
 * directory, the protected paths that are absent, promotions, notes, the environment, the command.
 * Control characters, backslashes and bytes that are no UTF-8 are written as \xNN and \\.
 * Returns 0, -ENOMEM (the plan's arena, which takes texts with the id replaced, is full) or what
 * @write returned.
 */
MUST_CHECK int plan_print(const struct plan_view *view, bool json);

/* --- for the files that it is made of ------------------------------------------------------------------------- */

/*
 * plan_view_text - @text with the id replaced; what was changed is in the plan's arena. NULL: it is
 * full.
 */
const char *plan_view_text(const struct plan_view *view, const char *text);

/* plan_word_source - what a source is called: "profile:agent", "git", "default". Never NULL. */
const char *plan_word_source(const struct source *source);

/* plan_word_rlimit - the setting's word for an RLIMIT_*, "core" for the one that has none. */
const char *plan_word_rlimit(unsigned resource);

/* plan_rlimit_setting - the setting that is that RLIMIT_* and nothing else; NULL: there is none. */
const struct setting *plan_rlimit_setting(unsigned resource);

/* plan_word_right - the word for right number @bit of Landlock, e.g. "read-file"; NULL: unknown. */
const char *plan_word_right(unsigned bit);

/* Words of flags and modes: NULL behind the last. */
struct plan_flag_word {
	unsigned flag; /* OPF_* */
	const char *word;
};
extern const struct plan_flag_word plan_flag_words[];

extern const char *const plan_wall_states[]; /* by enum wall_state */
extern const char *const plan_workspace_modes[];
extern const char *const plan_tty_modes[];
