/*
 * error.h - one failure, described where it was detected.
 *
 * Runs in: every process outside the box (the launcher and the other programs).
 * May not: print, exit, allocate. A struct error is filled once, by the function that saw the
 * failure, and travels up unchanged; main() prints it and the report quotes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))

/* Stable codes, for programs. The list is documented in docs/report.md; never reuse one. */
enum error_code {
	ERROR_NONE,
	ERROR_USAGE,       /* command line: unknown, abbreviated, duplicated, conflicting */
	ERROR_POLICY,      /* a policy line is wrong; `on` is file:line */
	ERROR_LOCKED,      /* a setting that the system policy locked was loosened */
	ERROR_WORKSPACE,   /* missing, not a directory, refused, not writable */
	ERROR_PATH,        /* a read/write/bind/... path is missing or unusable */
	ERROR_SCRATCH,     /* scratch base or session directory cannot be used */
	ERROR_REPORT,      /* the report cannot be opened or written */
	ERROR_DESCRIPTOR,  /* stdin, stdout or stderr would be a way out */
	ERROR_NAMESPACES,  /* the machine refuses user (or other) namespaces */
	ERROR_UNAVAILABLE, /* this machine does not have a wall or a limit that was asked for */
	ERROR_APPLY,       /* an operation of the plan failed inside */
	ERROR_EXEC,        /* the command could not be started (126, 127) */
	ERROR_PROTOCOL,    /* init ended or spoke wrongly: what happened is not known */
	ERROR_LIMIT,       /* descriptors, processes or memory of carrel itself ran out */
	ERROR_TEARDOWN,    /* something could not be removed */
	ERROR_STATE,       /* the state directory cannot be used, or not be trusted */
	ERROR_SESSION,     /* no such session, not only one, or it does not answer */
	ERROR_ENDING,      /* the session is ending: nothing new is begun in it */
	ERROR_VERSION,     /* the other side speaks another version of the control protocol */
	ERROR_REQUEST, /* a request that is no request: over a bound, malformed, out of order */
	ERROR_PEER,    /* a client of another user */
	ERROR_LOOSENS, /* a request for more than the session's policy allows */
	ERROR_EXECUTION, /* there is no such execution or service */
	ERROR_PROMOTE,   /* an artifact could not be promoted */
	ERROR_INTERNAL,  /* any other failed system call */
};

struct error {
	enum error_code code;
	int errnum; /* errno value, 0 where there is none */
	bool own;   /* `what` names the cause, so that errnum is for programs alone */
	int op;     /* operation number of the plan, -1 where there is none */
	char stage
		[16]; /* options facts policy plan session launch supervise promote close report */
	char what[128]; /* what failed, a clause: "cannot open the scratch base" */
	char on[1024]; /* on what: a path, file:line, an argument. May be cut, never unterminated */
	char hint[384]; /* what to do about it; empty where nothing helps */
};

/* The statuses that are not a command's own; as env(1) and timeout(1) have them. */
enum error_status {
	STATUS_TIMED_OUT = 124,
	STATUS_CARREL = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

/*
 * ERROR_OWN - for the errnum of error_set(), where carrel itself found the fault and the clause names it ("the
 * report is a directory"): programs get the number, and the text for people does not repeat it.
 */
#define ERROR_OWN(errnum) (-(errnum))

/*
 * error_is_own - whether a call that failed with @errnum says nothing of what it asked about: carrel lacks descriptors or
 * memory, was interrupted, or is refused the call itself. It must not pass for "nothing is there".
 */
bool error_is_own(int errnum);

/*
 * error_set - describe a failure and return -errnum (-EINVAL where errnum is 0). For EMFILE the
 * hint is set as well.
 * @e:      filled in; an error that is already set is kept (the first is the cause). NULL allowed.
 * @errnum: of the system call that failed, 0 where there is none, or ERROR_OWN().
 * @on:     what it failed on, or NULL.
 * @format: the clause for `what`.
 */
int error_set(struct error *e, enum error_code code, const char *stage, int errnum,
	const char *on, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* error_no_memory - error_set() for what every stage can run out of. Returns -ENOMEM. */
int error_no_memory(struct error *e, const char *stage);

/* error_hint - add what the user can do. Keeps an earlier hint. */
void error_hint(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* error_below - `on`, if there is one, is relative to the directory @dir: make it whole. */
void error_below(struct error *e, const char *dir);

/* error_cause - the errnum of @e, as error_set() takes it for another error with the same cause. */
int error_cause(const struct error *e);

/* error_why - the errno in words, NULL where there is none or `what` names the cause already. */
const char *error_why(const struct error *e);

/* error_code_find - the code that a stable word names; ERROR_INTERNAL for an unknown one. */
enum error_code error_code_find(const char *name);

/* error_code_name - the stable word for a code, e.g. "namespaces". Never NULL. */
const char *error_code_name(enum error_code code);

/*
 * error_format - "carrel: what: on: why\n" and, where there is one, "carrel: hint: ...\n".
 * Control characters in `on` are shown as \xNN so that a name with a newline stays on one line.
 * Returns the length written, without the NUL; the text is cut to @size.
 */
size_t error_format(const struct error *e, char *ret_text, size_t size);
