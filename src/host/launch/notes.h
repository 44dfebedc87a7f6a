/*
 * notes.h - what a user is told at the end of a run that is no error: why something may not have worked as meant, and
 * the option that changes it.
 *
 * Runs in: the launcher, when the session is over. May not: change a status, say anything where the policy says `quiet`.
 */
#pragma once

#include <stdbool.h>

#include "host/egress/egress.h"
#include "host/launch/prepare.h"

/*
 * notes_work_tree - the workspace is a directory inside of a git work tree because the caller worked there, and git
 * cannot write `.git` from it. @failed: a command of the run, or NULL: say it in any case. Costs nothing where the
 * workspace was chosen, or the command does not name git.
 */
void notes_work_tree(const struct prepared *p, const char *const *failed);

/* notes_presets - a preset that ships with carrel was asked for, and nothing that it names exists. */
void notes_presets(const struct prepared *p);

/* notes_refusals - the network refused something: the first few names, and the option that allows them. */
void notes_refusals(const struct policy *policy, const struct egress *egress);

/* notes_egress_lost - carrel-egress ended while the session runs. */
void notes_egress_lost(const struct policy *policy);
