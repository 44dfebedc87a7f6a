/*
 * newpath_judge.h - whether a new path in a git directory may stay, because git itself writes it.
 *
 * Runs in: S, while tools live. Used by newpath_watch.c only. May not: read more of what it judges than names: a child
 * reads the contents (gitplain.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "host/quarantine/quarantine.h"

/* What the looks so far have found out about one path. Zeroed: nothing. */
struct newpath_judgement {
	bool plain;   /* at the last look */
	bool changed; /* it may have changed since then */
	unsigned graces;
	unsigned late;    /* how many times in a row the child did not answer in time */
	int64_t seen_ns;  /* since when it is not plain, and maybe still being written */
	int64_t again_ns; /* CLOCK_MONOTONIC: look again; 0: when it changes */
	dev_t dev;
	ino_t ino;
	struct timespec ctime;
};

/* What one look may cost, since S does nothing else meanwhile. */
struct newpath_budget {
	int64_t until_ns; /* start no child later: a path that needs one stays until the next look */
	unsigned left;      /* so many children may still start; at 0 a path is moved unread */
	bool child_started; /* the last judgement started one, which costs about a millisecond */
	bool cut;           /* something was left for the next look */
};

/* newpath_judge_applies - whether git itself writes this path: other paths never stay. */
bool newpath_judge_applies(const struct quarantine_item *item);

/* newpath_judge - whether the path may stay for now: until it changes, until j->again_ns, or until the next look. */
bool newpath_judge(struct newpath_judgement *j, const struct quarantine_item *item,
	struct newpath_budget *budget);
