/*
 * prepare.h - options -> policy -> facts -> plan: everything before a launch.
 *
 * Runs in: the launcher, and carrel-policy for `plan` and `policy show`. May not: change anything
 * but what PREPARE_PLAN makes where it is missing: the state directory, the directories of `cache`
 * lines, and the cache of filters.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "host/facts/identity.h"
#include "host/report/report_file.h"
#include "plan/plan.h"

struct prepared {
	struct arena arena; /* owns all of the following */
	struct arena
		local; /* what init does not read, in memory of our own; empty: it is in `arena` */
	struct policy policy;
	struct facts facts;
	struct plan plan;
	const char *const *argv; /* the command, copied */
	uint8_t policy_digest
		[SHA256_SIZE]; /* of the merged policy; where a report is asked for */
	int records; /* the directory of records (host/session/record.h); PREPARE_PLAN only, else -1 */
	bool live; /* set by the caller: it is for a live session */
	/*
	 * Set by the caller, or NULL: a whole policy, as policy_print() writes it, that ranks below
	 * the command line.
	 */
	const char *lines;
	bool help; /* --help was asked for: nothing else is filled in */
	int next;  /* index in argv of the first word that is no setting */
};

/* -c LINE: the command is `/bin/sh -c LINE`, and what follows. */
#define PREPARE_COMMAND_LINE \
	((struct policy_verb_flag){ .name = "command", .letter = 'c', .placeholder = "LINE" })

enum prepare_until {
	PREPARE_MERGED, /* for `policy show`: paths as they were written; of the facts only the workspace */
	PREPARE_DRY, /* for `plan`: no file is written, a cache of filters included */
	PREPARE_PLAN,
};

/*
 * prepare - read all layers and work out the plan.
 * @argv, @first: the caller's arguments and where settings begin. @environment: its environment.
 * @flags, @flag_count: flags of the verb that are no settings; PREPARE_COMMAND_LINE is known here.
 * @ret: filled in as far as it came, also on failure: the report of a session that did not start
 * quotes it.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int prepare(struct prepared *ret, enum prepare_until until, int argc,
	const char *const *argv, int first, const char *const *environment,
	struct policy_verb_flag *flags, size_t flag_count, struct error *e);

/*
 * prepare_begin - make the arena alone, shared with children that are forked from here on, so that
 * init can be started before there is a plan; then call prepare_with() instead of prepare(). *@ret
 * lies in its own arena. 0 or -errno with @e.
 */
MUST_CHECK int prepare_begin(struct prepared **ret, struct error *e);

/* prepare_with - as prepare(), after prepare_begin(). @identity: chosen before, or NULL. */
MUST_CHECK int prepare_with(struct prepared *p, const struct identity *identity,
	enum prepare_until until, int argc, const char *const *argv, int first,
	const char *const *environment, struct policy_verb_flag *flags, size_t flag_count,
	struct error *e);

/* prepare_filter - the name of the shipped filter that @policy stands on. */
const char *prepare_filter(const struct policy *policy);

/*
 * prepare_report - open what the policy's `report` names, also where prepare() failed after it had
 * read that: report_open().
 */
MUST_CHECK int prepare_report(struct prepared *p, struct report_file *ret, struct error *e);

/* prepare_free - give the memory back. */
void prepare_free(struct prepared *p);
