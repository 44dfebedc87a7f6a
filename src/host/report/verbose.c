/*
 * verbose.c - see verbose.h.
 *
 * Runs in: the launcher.
 */
#include "host/report/verbose.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/plan_print.h"

/* One line. A failed write is ignored: nobody reads stderr then. */
static void print_line(const char *const *parts, size_t count)
{
	int r = fd_write_all(STDERR_FILENO, "carrel: ", 8);

	for (size_t i = 0; i < count && r >= 0; i++)
		r = fd_write_visible(STDERR_FILENO, parts[i]);
	if (r >= 0)
		(void)!fd_write_all(STDERR_FILENO, "\n", 1);
}

static void print_item(const char *what, const char *on, const char *why)
{
	const char *const parts[] = { what, ": ", on, why ? ": " : "", why ? why : "" };

	print_line(parts, sizeof(parts) / sizeof(parts[0]));
}

void verbose_passed_over(const char *variable)
{
	print_item("--env is ignored, carrel sets this variable itself", variable, NULL);
}

void verbose_tell_covered(const char *path, bool gone)
{
	print_item(gone ? "removed on the host" : "replaced on the host, and covered again",
		path, NULL);
}

void verbose_report(const struct plan *plan)
{
	const struct facts *f = plan->facts;

	if (!plan->policy->verbose.on)
		return;
	print_item("session", f->session_name + strlen("carrel-"), NULL);
	print_item(
		"workspace", f->workspace, plan_workspace_modes[plan->policy->workspace_mode]);
	print_item("scratch", f->scratch_dir, NULL);
	for (size_t i = 0; i < WALL_COUNT; i++)
		if (plan->walls[i].state != WALL_ON)
			print_item(plan_wall_name((enum wall)i),
				plan_wall_states[plan->walls[i].state], plan->walls[i].why);
	for (size_t i = 0; i < f->note_count; i++)
		print_item("note", f->notes[i].path, f->notes[i].why);
}
