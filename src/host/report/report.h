/*
 * report.h - the report: everything that is known about a session, as one JSON document.
 *
 * Runs in: the launcher, outside, after the session is closed. May not: find anything out itself;
 * it writes what the supervisor filled in. The document is described in docs/report.md and, for
 * programs, in docs/report.schema.json; those two and this file change together.
 *
 * Order of use: report_init, report_open (before anything is started), the fields are filled as
 * they become known, report_write (on every way out, also when nothing was started).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "host/cgroup/cgroup.h"
#include "host/report/report_file.h"
#include "plan/plan.h"

#define REPORT_SCHEMA 1 /* goes up when a field changes its meaning or is removed */

enum report_started {
	REPORT_STARTED_NO,      /* the payload's execve was not reached, or failed */
	REPORT_STARTED_YES,     /* it succeeded */
	REPORT_STARTED_UNKNOWN, /* init was lost before it said */
};

enum report_end {
	REPORT_END_NONE,   /* the command was not started, or nobody knows how it ended */
	REPORT_END_STATUS, /* the command ended with `status` */
	REPORT_END_SIGNAL, /* `signal` ended it */
};

enum report_limit {
	REPORT_LIMIT_NONE,
	REPORT_LIMIT_TIMEOUT,
	REPORT_LIMIT_CPU_TIME,
	REPORT_LIMIT_FILE_SIZE,
	REPORT_LIMIT_OUTPUT,
	REPORT_LIMIT_MEMORY,
	REPORT_LIMIT_PIDS,
};

enum report_identity {
	REPORT_IDENTITY_NONE, /* not decided yet */
	REPORT_IDENTITY_USER,
	REPORT_IDENTITY_PRIVILEGED,
};

enum report_stream {          /* how one of stdin, stdout and stderr reached the command */
	REPORT_STREAM_NONE,   /* not set up yet */
	REPORT_STREAM_DIRECT, /* the caller's own */
	REPORT_STREAM_RELAY,  /* a pipe of carrel's, copied */
	REPORT_STREAM_PTY,
	REPORT_STREAM_CLOSED, /* the caller's was closed */
};

enum report_teardown {
	REPORT_TEARDOWN_NONE, /* there was no session directory */
	REPORT_TEARDOWN_REMOVED,
	REPORT_TEARDOWN_KEPT,     /* as asked */
	REPORT_TEARDOWN_DEFERRED, /* no time left: the sweep removes the rest */
	REPORT_TEARDOWN_PARTIAL,  /* something could not be removed */
	REPORT_TEARDOWN_FAILED,   /* nothing could */
};

/* A protected path that was absent, appeared during the session, and was moved away. */
struct report_quarantine {
	const char *path; /* where it appeared */
	const char *
		to; /* where it (the first) is now; NULL: removed, since a full disk had no room even for a name */
	uint64_t
		times; /* that it was moved away: more than once only while the session lived */
	const char *id; /* for `carrel quarantine`; NULL: it could not be noted */
};

/* A path that was replaced on the host while the session ran, and covered again. */
struct report_covered {
	const char *path;
	uint64_t times;
	uint64_t longest_us; /* from the event to the mount */
	bool gone;           /* nothing is there any more */
};

/* A process that carrel ended because it held such a path. */
struct report_breach {
	const char *path; /* NULL: not known which */
	const char *name; /* as the process called itself: any bytes */
	pid_t process;    /* as seen from outside */
};

/* What was decided about one name or address at one port, in a session with `net allow`. */
struct report_network_name {
	const char *name;
	uint32_t port;        /* 0: its address was asked for, and no connection */
	const char *decision; /* "allowed", "denied-name", ... */
	const char *rule;     /* the line that decided; NULL: none */
	uint64_t times, bytes_in, bytes_out;
	int errnum; /* why it failed the last time */
};

/* A rule that was added while the session lived: `carrel session allow`. */
struct report_network_live {
	const char *rule;            /* HOST:PORT,... */
	uid_t uid;                   /* who asked */
	pid_t pid;                   /* as seen from outside */
	const char *added, *removed; /* times, UTC; removed NULL: it holds to the end */
};

/* A port of a server inside that the host reaches on its loopback: `publish`. */
struct report_published {
	uint16_t port, host_port;
	uint64_t times, bytes_in, bytes_out; /* of connections that ended */
};

/* One of stdout and stderr, where it has a budget or a bound. */
struct report_output {
	bool relayed;         /* the rest is filled in */
	uint64_t characters;  /* that came; base/chars.h says what one is */
	uint64_t bytes;       /* that came */
	uint64_t omitted;     /* characters that did not reach the caller */
	bool truncated;       /* more than output-max came */
	const char *path;     /* of the full output; NULL: was not saved */
	uint64_t saved_bytes; /* in it */
	int errnum;           /* why it could not be written, or not whole */
};

/* An artifact that was promoted at the end, or could not be. */
struct report_promotion {
	const char *source;      /* relative to the scratch; a pattern that was not expanded */
	const char *destination; /* absolute */
	const char *how;         /* promote_how_name(); NULL where it failed */
	uint64_t files, bytes;
	int errnum;      /* why it failed; may be 0 then, too */
	const char *why; /* what failed; NULL where nothing did */
};

/* All texts are borrowed and may be any bytes; NULL where a text is not known is written as null. */
struct report {
	const char *session; /* id without "carrel-"; NULL: the session has none yet */
	uint32_t
		execution; /* of a live session; 0: a session of its own. The report of an execution
			     * leaves out the session's walls and all else that the session's report tells */
	const char *const *command; /* argv, NULL-terminated; not NULL itself */

	enum report_started started;
	enum report_end end;
	int status;              /* with REPORT_END_STATUS: 0 to 255 */
	int signal;              /* with REPORT_END_SIGNAL */
	int exit_status;         /* what carrel exits with */
	enum report_limit limit; /* what ended it; TIMEOUT makes `timed_out` true */

	/* Outcome, times and memory of a command that was not started are written as null. */
	bool wall_time_known;
	uint64_t wall_us; /* from the release of the command to its end */
	bool usage_known;
	uint64_t user_us, system_us; /* the command and those it waited for */
	uint64_t max_rss_bytes;      /* ru_maxrss is in KiB: times 1024 */

	bool limits_known; /* the policy limits memory, pids or cpus; otherwise the object is null */
	const char *pids_by;           /* "cgroup" or "rlimit"; NULL: pids was not asked for */
	struct cgroup_figures figures; /* tasks_peak without init */

	enum report_identity identity;
	uid_t kernel_uid; /* the payload's, as seen outside */
	gid_t kernel_gid;

	/* What was in force when the command ran, not what was planned. Where a wall is not on and
	 * `why` is NULL, "not reached" is written. */
	struct wall_fact walls[WALL_COUNT];
	int landlock_abi; /* 0: none */

	bool policy_known;
	const char *profile;                /* NULL: no profile */
	uint8_t policy_digest[SHA256_SIZE]; /* of what `policy show` prints */

	const char *workspace; /* NULL: not resolved yet; the whole object is null */
	enum workspace_mode workspace_mode;

	const char *scratch;    /* NULL: none; the whole object is null */
	uint64_t scratch_files; /* regular ones, at the end */
	uint64_t scratch_bytes; /* of regular files, apparent sizes */
	bool scratch_truncated; /* counting stopped early: both are lower bounds */
	bool scratch_kept;

	bool network_known;        /* the policy says `net allow`: else the object is null */
	uint64_t network_rules;    /* lines of the policy */
	bool network_lost;         /* carrel-egress ended before the session */
	uint64_t network_untold;   /* decisions that are not in the list */
	uint64_t network_log_lost; /* lines that `net-log` did not take */
	const struct report_network_name *network_names;
	size_t network_name_count;
	const struct report_published *published;
	size_t published_count;
	const struct report_network_live *network_live;
	size_t network_live_count;

	const struct report_promotion *promoted;
	size_t promoted_count;

	const struct report_covered *covered;
	size_t covered_count;
	const struct report_breach *breaches;
	size_t breach_count;

	bool explained; /* carrel looked for refusals; otherwise `denials` is null */
	const char *
		denials; /* an array in JSON, as carrel-policy has written it; NULL: not known */
	size_t denials_size;
	const char *denials_missing; /* why it lacks some; NULL: it is complete */

	const struct report_quarantine *quarantined;
	size_t quarantined_count;

	enum report_stream stdio[3]; /* by descriptor */
	const struct passed *passed; /* descriptors that the command got beside them, or NULL */

	struct report_output
		output[3];  /* by descriptor; none relayed: the whole object is null */
	bool output_merged; /* stderr is in stdout */

	enum report_teardown teardown;
	uint64_t teardown_remaining; /* entries that could not be removed */
	const char *teardown_path;   /* the first of them */
	int teardown_errno;          /* and why */

	const struct error *error; /* NULL or code ERROR_NONE: null */
};

/*
 * report_init - a report about a command that was not started: every wall off and not reached,
 * exit_status 125.
 */
void report_init(struct report *ret, const char *const *command);

/* report_put_published - the member `published` of a JSON object: a list. */
void report_put_published(struct json *j, const struct report *r);

/* report_put_live - a list: the rules that were added to the network of a live session. */
void report_put_live(struct json *j, const struct report *r);

/* report_put_network - the member `network` of a JSON object: an object, or null where it is not known. */
void report_put_network(struct json *j, const struct report *r);

/* report_wall - say what became of one wall. @why: borrowed, NULL where there is nothing to add. */
void report_wall(struct report *r, enum wall wall, enum wall_state state, const char *why);

/*
 * report_write - write the document and put it in place; @f is used up, on failure too.
 * Nothing is written where @f is REPORT_FILE_NONE. SIGPIPE and SIGXFSZ must be blocked or ignored.
 * Returns 0, or -errno with @e (ERROR_REPORT): a file target is then as it was before, and nothing
 * is left beside it; on a stream a part may have been written.
 */
MUST_CHECK int report_write(struct report_file *f, const struct report *r, struct error *e);
