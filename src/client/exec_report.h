/*
 * exec_report.h - the report about one execution of a live session: docs/report.md.
 *
 * Runs in: the client.
 */
#pragma once

#include "client/execution.h"
#include "host/explain/explain.h"
#include "host/report/report_file.h"

struct exec_report {
	struct report_file *file; /* after report_open() */
	const struct client_session *session;
	const struct execution *execution;
	const struct execution_end *end;
	const char *const *argv;
	const struct explain *refused; /* what was; NULL: that was not looked for */
	int status;                    /* what carrel would exit with */
	const struct error *error;
};

/* exec_report_write - write it. Returns the exit status: @r->status, or 125 if it cannot be written. */
int exec_report_write(const struct exec_report *r, struct error *e);
