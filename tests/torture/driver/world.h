/*
 * world.h - the directories that one worker of the torture driver uses, and what is left in them.
 *
 * Runs in: the torture driver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_PATH = 512, WORLD_TEXT = 16 * 1024, WORLD_ARGS = 48 };

struct world {
	const char *carrel, *protected_name;
	bool git;  /* the workspace is a repository */
	bool live; /* the runs are of a live session (live.h) */
	char root[WORLD_PATH], workspace[WORLD_PATH], base[WORLD_PATH], host[WORLD_PATH],
		home[WORLD_PATH], marker[WORLD_PATH], hidden[WORLD_PATH];
	char report[WORLD_PATH];
	char env_home[WORLD_PATH + 8], env_runtime[WORLD_PATH + 32], env_state[WORLD_PATH + 32];
	const char *argv[WORLD_ARGS], *envp[8];
};

#define WORLD_MADE "made-by-the-command" /* in the workspace, by the marker, for a moment */

#define WORLD_HOOKS \
	".git/hooks" /* in a repository, the protected name: the marker makes a hook in it, and a link */

/* What one run left, beside its status. Texts are NUL-terminated and cut. */
struct world_left {
	char output[WORLD_TEXT];    /* the command's */
	char messages[WORLD_TEXT];  /* stderr */
	char report[WORLD_TEXT];    /* empty: there is none */
	char workspace[WORLD_TEXT]; /* quarantine aside */
	char git[WORLD_TEXT];       /* its .git, quarantine aside; empty: no repository */
	char reports[WORLD_TEXT];   /* listing of the report's directory */
	char base[WORLD_TEXT];      /* listing of the scratch base */
	char notes[WORLD_TEXT];     /* of a live session: how its clients ended (live.h) */
	char state[WORLD_TEXT];     /* and the listing of its state directory */
	bool quarantined; /* the protected name lies in quarantine; of a repository: hooks and link */
	bool mounted; /* our mount table has one of ours */
};

/*
 * world_make - directories below @root/@name and the command line of the runs.
 * @git: the workspace is a repository. @settings: further settings for `carrel run`, ended by NULL. 0 or -errno.
 */
int world_make(struct world *w, const char *root, const char *name, const char *carrel,
	const char *marker, const char *protected_name, bool git, bool live,
	const char *const *settings);

/* world_look - fill in everything but output and messages. */
void world_look(const struct world *w, struct world_left *left);

/* world_gc - run `carrel gc` on the scratch base and list that again. Its exit status. */
int world_gc(const struct world *w, struct world_left *left);

/* world_clean - whatever is left, for the next run. 0 or -errno. */
int world_clean(const struct world *w);
