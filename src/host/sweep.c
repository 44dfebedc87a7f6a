/*
 * sweep.c - see sweep.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/sweep.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/say.h"
#include "host/cgroup.h"
#include "host/facts.h"
#include "host/session.h"
#include "host/state_sweep.h"

enum { STATUS_CARREL = 125 };

static void say_name(void *context, const char *name)
{
	char text[NAME_MAX + 32];
	int length = snprintf(text, sizeof(text), "%s %s\n", (const char *)context, name);
	int r = fd_write_all(STDOUT_FILENO, text, (size_t)length);

	(void)r; /* told as far as somebody listens */
}

static int read_options(int argc, const char *const *argv, int first, bool *ret_dry_run,
	const char **ret_base, struct error *e)
{
	for (int i = first; i < argc; i++) {
		if (!strcmp(argv[i], "--dry-run")) {
			*ret_dry_run = true;
		} else if (!strcmp(argv[i], "--scratch-base") && i + 1 < argc) {
			*ret_base = argv[++i];
		} else if (!strncmp(argv[i], "--scratch-base=", 15)) {
			*ret_base = argv[i] + 15;
		} else {
			int r = error_set(e, ERROR_USAGE, "options", 0, argv[i],
				"gc does not know this argument");
			error_hint(e, "carrel gc [--dry-run] [--scratch-base DIR]");
			return r;
		}
	}
	return 0;
}

static void say_entry(void *context, const char *name)
{
	char text[NAME_MAX + 32];
	int length = snprintf(text, sizeof(text), "%s entry %s\n", (const char *)context, name);
	int r = fd_write_all(STDOUT_FILENO, text, (size_t)length);

	(void)r; /* told as far as somebody listens */
}

/* Live sessions whose supervisor was killed are known here, wherever their scratch base is. */
static __attribute__((noinline)) int sweep_state(
	const char *base, bool dry_run, const char *const *environment, struct error *e)
{
	const struct state_sweep how = {
		.dry_run = dry_run,
		.swept = base,
		.each = say_name,
		.each_entry = say_entry,
		.context = (void *)(dry_run ? "would remove" : "removed"),
	};
	struct state state;
	int r = state_open(&state, environment, false, e);

	if (r < 0)
		return r;
	r = state_sweep(&state, &how, e);
	state_close(&state);
	return r;
}

int sweep_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	struct error e = { 0 };
	struct session_sweep swept;
	bool dry_run = false;
	const char *base = facts_env(environment, "TMPDIR");

	(void)closed;
	if (!base || base[0] != '/')
		base = "/tmp";
	if (argc > first && (!strcmp(argv[first], "--help") || !strcmp(argv[first], "-h"))) {
		static const char usage[] =
			"usage: carrel gc [--dry-run] [--scratch-base DIR]\n";

		return fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL
										 : 0;
	}
	int r = read_options(argc, argv, first, &dry_run, &base, &e);
	if (r >= 0)
		r = session_sweep(base, dry_run ? SWEEP_DRY_RUN : 0, say_name,
			(void *)(dry_run ? "would remove" : "removed"), &swept, &e);
	if (r >= 0)
		r = sweep_state(base, dry_run, environment, &e);
	/* Groups whose session directory is gone, or was in another base. */
	if (r >= 0)
		r = cgroup_sweep(dry_run, say_name,
			(void *)(dry_run ? "would remove cgroup" : "removed cgroup"), &e);
	(void)say_error(&e);
	return r < 0 || e.code != ERROR_NONE ? STATUS_CARREL : 0;
}
