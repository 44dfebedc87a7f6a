/*
 * finish.h - close and report: the end of a session, on every way out.
 *
 * Runs in: the launcher, when every process of the session is dead (or none was ever there).
 */
#pragma once

#include "host/egress/egress.h"
#include "host/launch/limits.h"
#include "host/launch/prepare.h"
#include "host/launch/supervise.h"
#include "host/report/report.h"
#include "host/session/session.h"
#include "host/stdio/stdio.h"

struct finish {
	struct prepared *prepared;
	bool live;               /* a session of many executions: there is no single command */
	struct session *session; /* NULL: none was made */
	struct stdio *stdio;     /* NULL: not prepared */
	const struct outcome *outcome;
	const struct signals *signals;
	struct limits *limits; /* after limits_settle() */
	struct egress *
		egress; /* after egress_ask_end(): it ends while the session's directory is removed */
	struct report *report; /* after report_init() */
	struct report_file *report_file;
	struct explain *explain;  /* NULL: nothing is explained */
	struct learn_file *learn; /* with `explain` */
	struct error *error;      /* what went wrong so far; what goes wrong here is added */
	int status;               /* what carrel would exit with */
};

/*
 * finish_session - quarantine what appeared, keep or remove the session directory, write the report.
 * Returns the exit status: @f->status, or 125 where the command succeeded and this did not.
 */
int finish_session(struct finish *f);
