/*
 * sweep.c - see sweep.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/session/sweep.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/cgroup/cgroup.h"
#include "host/quarantine/quarantine_held.h"
#include "host/session/session_sweep.h"
#include "host/session/state_place.h"
#include "host/session/state_sweep.h"
#include "host/session/sweeper.h"

/* How gc was called, and what it has done. */
struct gc {
	bool dry_run;
	const char *base; /* --scratch-base: only what lies there; NULL: all */
	int failed;
	struct error *e;
};

static void print_removed(const struct gc *gc, const char *what, const char *name)
{
	char text[1024 + 64];
	int length = snprintf(text, sizeof(text), "%s %s%s\n",
		gc->dry_run ? "would remove" : "removed", what, name);
	/* Told as far as somebody listens. */
	(void)!fd_write_all(STDOUT_FILENO, text, (size_t)length);
}

static void print_session(void *context, const char *name)
{
	print_removed(context, "", name);
}

static void print_entry(void *context, const char *name)
{
	print_removed(context, "entry ", name);
}

static void print_cgroup(void *context, const char *name)
{
	print_removed(context, "cgroup ", name);
}

static int read_options(int argc, const char *const *argv, int first, struct gc *gc)
{
	for (int i = first; i < argc; i++) {
		if (!strcmp(argv[i], "--dry-run")) {
			gc->dry_run = true;
		} else if (!strcmp(argv[i], "--scratch-base") && i + 1 < argc) {
			gc->base = argv[++i];
		} else if (!strncmp(argv[i], "--scratch-base=", 15)) {
			gc->base = argv[i] + 15;
		} else {
			int r = error_set(gc->e, ERROR_USAGE, "options", 0, argv[i],
				"`carrel gc` has no such argument");
			error_hint(gc->e, "carrel gc [--dry-run] [--scratch-base DIR]");
			return r;
		}
	}
	return 0;
}

/* Report one failure, and do the rest all the same. */
static void keep_failure(struct gc *gc, int r, const struct error *e)
{
	if (r < 0)
		gc->failed = r;
	else if (e->code != ERROR_NONE)
		gc->failed = -EBUSY;
	if (e->code != ERROR_NONE && gc->e->code == ERROR_NONE)
		*gc->e = *e;
	else if (e->code != ERROR_NONE)
		error_report(e);
}

static void say_quarantined(void *context, const char *path)
{
	char shown[1024];

	(void)text_visible(&path, "\\", shown, sizeof(shown));
	print_removed(context, "from quarantine ", shown);
}

/* Remove what has been in quarantine for long enough. None of it lies in a scratch base that was named. */
static __attribute__((noinline)) void age_quarantine(struct gc *gc, int state)
{
	struct error e = { 0 };
	autofd int records = gc->base ? -ENOENT : quarantine_record_open(state);
	int r = records < 0
		? 0
		: quarantine_held_age(records, gc->dry_run, say_quarantined, gc, &e);

	keep_failure(gc, r, &e);
}

/* The sessions that are recorded in @place. */
static void sweep_place(struct gc *gc, const struct state_place *place)
{
	const struct session_sweep_how how = {
		.flags = gc->dry_run ? SWEEP_DRY_RUN : 0,
		.base = gc->base,
		.each = print_session,
		.context = gc,
	};
	struct session_sweep swept;
	struct error e = { 0 };
	autofd int records = state_place_sub(place, "sessions", false);

	age_quarantine(gc, place->dir);
	if (!gc->dry_run)
		sweeper_show_notices(place->dir);
	if (records < 0)
		return; /* no session was ever recorded here */
	int r = session_sweep(records, &how, &swept, &e);
	keep_failure(gc, r, &e);
}

/* Two names of the list may lead to the same directory. */
struct seen {
	dev_t dev;
	ino_t ino;
};

static bool is_seen(struct seen *seen, unsigned *count, int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return true;
	for (unsigned i = 0; i < *count; i++)
		if (seen[i].dev == st.st_dev && seen[i].ino == st.st_ino)
			return true;
	seen[(*count)++] = (struct seen){ st.st_dev, st.st_ino };
	return false;
}

/* Sweep wherever earlier sessions may be recorded: today's environment may be another. */
static void sweep_places(struct gc *gc, const char *const *environment)
{
	struct seen seen[STATE_PLACES];
	unsigned count = 0;

	for (unsigned n = 0; n < STATE_PLACES; n++) {
		struct state_place place;

		if (state_place_nth(&place, environment, n) < 0)
			continue;
		if (!is_seen(seen, &count, place.dir))
			sweep_place(gc, &place);
		state_place_close(&place);
	}
}

static void sweep_sockets(struct gc *gc, const char *const *environment)
{
	struct state state;
	struct error e = { 0 };
	int r = state_open(&state, environment, false, &e);

	if (r >= 0) {
		r = state_sweep(&state, gc->dry_run, print_entry, gc, &e);
		state_close(&state);
	}
	keep_failure(gc, r, &e);
}

/* Groups that no record names, or whose record was lost. */
static void sweep_cgroups(struct gc *gc)
{
	struct error e = { 0 };
	int r = cgroup_sweep(gc->dry_run, print_cgroup, gc, &e);

	keep_failure(gc, r, &e);
}

static int show_help(void)
{
	static const char usage[] = "usage: carrel gc [--dry-run] [--scratch-base DIR]\n";

	return fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
}

int sweep_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	struct error e = { 0 };
	struct gc gc = { .e = &e };

	(void)closed;
	if (argc > first && (!strcmp(argv[first], "--help") || !strcmp(argv[first], "-h")))
		return show_help();
	int r = read_options(argc, argv, first, &gc);
	if (r >= 0 && gc.base && access(gc.base, R_OK | X_OK) < 0)
		r = error_set(&e, ERROR_SCRATCH, "session", errno, gc.base,
			"cannot read the scratch base");
	if (r >= 0) {
		sweep_places(&gc, environment);
		sweep_sockets(&gc, environment);
		sweep_cgroups(&gc);
	}
	(void)error_report(&e);
	return r < 0 || gc.failed ? STATUS_CARREL : 0;
}
