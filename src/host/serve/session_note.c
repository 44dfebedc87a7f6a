/*
 * session_note.c - see session_note.h.
 *
 * Runs in: the launcher.
 */
#include "host/serve/session_note.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "host/promote/promote_guard.h"
#include "host/session/state.h"
#include "host/stdio/budget.h"
#include "plan/settings.h"

enum { GUARD_ARENA_SIZE = 4 << 20 };

static int note(int record, const struct plan *plan, const char *name, const char *text,
	struct error *e)
{
	autofd int fd =
		fd_open_at(record, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : fd_write_all(fd, text, strlen(text));

	return r < 0 ? error_set(e, ERROR_SCRATCH, "session", -r, plan->facts->session_dir,
			       "cannot record the %s of executions", name)
		     : 0;
}

/* Note what a client needs: it owns the pipes, and reports where a command was looked for in vain. */
static int note_defaults(int record, const struct plan *plan, struct error *e)
{
	const struct policy *p = plan->policy;
	char text[96];

	(void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %d\n",
		p->output_budget.set ? p->output_budget.value : BUDGET_NONE,
		p->output_max.set ? p->output_max.value : UINT64_MAX, p->merge_output.on);
	int r = note(record, plan, "output", text, e);
	if (r >= 0)
		r = note(record, plan, "net", settings_table[SETTING_NET].words[p->net], e);
	return r < 0 ? r : note(record, plan, "path", plan->path_env, e);
}

static int note_guard(int record, const struct plan *plan, struct error *e)
{
	struct promote_guard guard;
	struct arena arena; /* the plan's is sealed */
	int r = arena_init(&arena, GUARD_ARENA_SIZE);

	if (r >= 0) {
		r = promote_guard_from_plan(&guard, &arena, plan);
		if (r >= 0)
			r = promote_guard_write(record, &guard);
		arena_free(&arena);
	}
	return r < 0 ? error_set(e, ERROR_SCRATCH, "session", -r, plan->facts->session_dir,
			       "cannot record where artifacts may go")
		     : 0;
}

int session_note(int record, const struct plan *plan, bool explained, struct error *e)
{
	int r = note_guard(record, plan, e);

	if (r >= 0)
		r = note_defaults(record, plan, e);
	return r >= 0 && explained ? note(record, plan, STATE_EXPLAINED, "yes\n", e) : r;
}
