/*
 * newpath_judge.h - whether a new path in a git directory may stay, because git itself writes it.
 *
 * Runs in: S, while tools live. Used by newpath_watch.c only. May not: read what it judges, beyond names: gitplain.h
 * does, in a child.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "host/quarantine/quarantine.h"

/* What is known of one path. Zeroed: nothing. */
struct newpath_judgement {
	bool plain;   /* it was, when it was looked at */
	bool changed; /* since then, for all one knows */
	unsigned graces;
	unsigned late;    /* how often there was no answer in time, one after the other */
	int64_t seen_ns;  /* not plain, and maybe still being written: since then */
	int64_t again_ns; /* CLOCK_MONOTONIC: look again; 0: when it changes */
	dev_t dev;
	ino_t ino;
	struct timespec ctime;
};

/* What one look may cost: S does nothing else meanwhile. */
struct newpath_budget {
	int64_t until_ns; /* no child is begun later: what would need one stays until the next look */
	unsigned left;      /* so many children more: what comes then is taken away unread */
	bool child_started; /* a reader was; it costs about a millisecond */
	bool cut;           /* something was left for the next look */
};

/* newpath_judge_applies - whether the path is one that git writes: others never stay. */
bool newpath_judge_applies(const struct quarantine_item *item);

/* newpath_judge - whether it may stay for now: until it changes, until j->again_ns, or until the next look. */
bool newpath_judge(struct newpath_judgement *j, const struct quarantine_item *item,
	struct newpath_budget *budget);
