/*
 * notes.h - what a user is told at the end of a run beside errors: why something may not have
 * worked as meant, and the option that changes it.
 *
 * Runs in: the launcher, when the session is over. May not: change a status, say anything where the
 * policy says `quiet`.
 */
#pragma once

#include <stdbool.h>

#include "host/egress/egress.h"
#include "host/launch/prepare.h"

struct outcome; /* supervise.h */

/*
 * notes_work_tree - the workspace is a directory inside of a git work tree because the caller worked there, and git
 * cannot write `.git` from it. @failed: a command of the run, or NULL: say it in any case. Costs nothing where the
 * workspace was chosen, or the command does not name git.
 */
void notes_work_tree(const struct prepared *p, const char *const *failed);

/* notes_presets - a preset that ships with carrel was asked for, and nothing that it names exists. */
void notes_presets(const struct prepared *p);

/*
 * Bytes for notes_refused(): room for a name of the greatest length, and for short ones beside it; with its options the
 * text fits in a hint.
 */
enum { NOTES_NAMES_MAX = 280, NOTES_NAMES_SHOWN = 3 };

/* Bytes of what notes_trouble() says, as error_format() writes it, with a NUL. */
enum { NOTES_TEXT_MAX = 1024 };

/*
 * notes_network - print what the network refused a command that failed, as far as it is known: names, else addresses, or
 * that there was no network.
 * notes_refused - write the names that were refused after @since_us (CLOCK_MONOTONIC; 0: ever), @most at most, each as
 * " NAME[:PORT]" for an option; returns how many.
 * notes_trouble - what else carrel-egress refused after @since_us, or failed at: as an error with its remedy. @live: as
 * below. False: nothing.
 * notes_has_no_network - the session has a network namespace, with nothing but its loopback.
 * notes_print_refused - print the line about @names, as notes_refused() gives them. @live: the
 * remedy is one for a live session.
 * notes_print_none, notes_print_address - print the lines about no network, and about an address
 * that no line allows.
 */
void notes_network(
	const struct plan *plan, const struct egress *egress, const struct outcome *o);
unsigned notes_refused(
	const struct egress *egress, uint64_t since_us, unsigned most, char *ret, size_t size);
bool notes_trouble(const struct egress *egress, const struct policy *policy, uint64_t since_us,
	bool live, struct error *ret);
bool notes_has_no_network(const struct plan *plan);
void notes_print_refused(const char *names, bool live);
void notes_print_none(bool live);
void notes_print_address(void);

/* notes_unresolved - the policy allows names, and this machine names nobody who could be asked for them: said before the command. */
void notes_unresolved(const struct policy *policy, const struct egress *egress);

/* notes_log_lost - the log of the network has not all lines: its disk was full, or nobody read them. */
void notes_log_lost(const struct policy *policy, const struct egress *egress);

/* notes_egress_lost - carrel-egress ended while the session runs. */
void notes_egress_lost(const struct policy *policy);
