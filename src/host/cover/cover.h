/*
 * cover.h - covers again what somebody outside has uncovered, so that a session lives beside its user.
 *
 * When a file is replaced or removed on the host, the kernel detaches what is mounted on it in every mount namespace
 * (vfs_rename() and vfs_unlink(), detach_mounts()): git replaces `.git/config` by a rename, useradd(8) `/etc/shadow`.
 * Then the session could write the one and read the other. No mount can prevent that.
 *
 * Runs in: S, and in the coverer, a child of S outside the session. S starts the coverer when the command has run for a moment, so
 * that a short command does not pay for it, and gives up at once the rights that only the coverer needs (confine_settle()). The
 * coverer waits under a filter of its own (policy/coverer.policy). For each event it starts a child, which enters the session's
 * namespaces, does the work (cover_again.h) and ends. The session can neither see nor signal them. If one of them dies, the
 * kernel kills the processes that it had stopped, and S ends the session.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "box/box.h"
#include "box/view.h"
#include "host/quarantine/newpath_watch.h"
#include "host/report/report.h"
#include "plan/plan.h"

/* The report names so many processes, and counts the others. */
enum { COVER_HOLDERS = 16 };

/* The place that an operation of the plan covers; the array is indexed by operation. `times`: how often it was uncovered. */
struct cover_place {
	uint32_t times;
	uint32_t told; /* so many of `times` S has reported (`verbose`) */
	bool gone;     /* nothing exists there any more */
	uint64_t longest_us;
	dev_t dev; /* of the file or directory that is there now */
	ino_t ino;
};

/* A process that was killed because it held the uncovered file. */
struct cover_holder {
	pid_t process; /* as seen from outside */
	int32_t op;    /* the place */
	char name[16]; /* as the process called itself */
};

enum cover_failure {
	COVER_FAILED_NOT, /* it was covered */
	COVER_FAILED_NAMESPACE,
	COVER_FAILED_STOP,    /* a process did not stop */
	COVER_FAILED_TABLE,   /* the mount table could not be read */
	COVER_FAILED_KIND,    /* this kind cannot be covered: a link, the place of a bind */
	COVER_FAILED_LINKS,   /* the protected file has a second name now */
	COVER_FAILED_COVER,   /* the kernel refused the mount */
	COVER_FAILED_AGAIN,   /* the host replaced it faster than it was covered */
	COVER_FAILED_HOLDERS, /* the search for processes that hold it failed */
	COVER_FAILED_GONE,    /* it does not exist, and its directory cannot be watched */
	COVER_FAILED_DIED,    /* the coverer or its child died */
};

/* Memory shared by S, the coverer and its child. S reads it after each answer. */
struct cover_board {
	int64_t asked_ns; /* CLOCK_MONOTONIC: when S saw the event */
	int32_t result;   /* 0 or -errno */
	enum cover_failure failed;
	int32_t failed_op; /* the place; -1: none */
	pid_t culprit;     /* COVER_FAILED_STOP: the process that did not stop; 0: unknown */
	uint32_t holder_count;
	struct cover_holder holders[COVER_HOLDERS];
	struct cover_place places[]; /* plan->op_count */
};

/* What the coverer needs. */
struct cover_task {
	const struct plan *plan;
	const struct box *box;
	pid_t init;
	int proc; /* the host's /proc */
	const int *
		view; /* the mount namespace of each view, VIEW_COUNT of them; -1: no such view */
	struct cover_board *board;
};

struct cover {
	const struct plan *plan;
	pid_t init;
	int epoll;
	uint64_t event;
	int mounts;                /* init's mount table; -1: S cannot read it */
	struct cover_board *board; /* NULL: no coverer runs */
	pid_t coverer;             /* 0: none */
	int socket;                /* to the coverer; -1: none */
	bool settled;              /* S has given up the rights that only the coverer needs */
	int gone; /* inotify: the directories of hidden files that do not exist now; -1: none */
	bool ready; /* the coverer has reported that it runs */
	bool pending, again;
	int64_t late_ns; /* while `pending`: if the coverer has not answered by then, that is a failure */
	struct newpath_watch *newpath; /* the caller's */
	struct explain *
		explain; /* the caller's: traces the session, and gives way when the coverer stops it; NULL: none */
	uint32_t holders_told;
	void *apart; /* the caller's, before cover_begin(): memory that the coverer does not get; NULL: none */
	size_t apart_size;
};

#define COVER_NONE ((struct cover){ .mounts = -1, .socket = -1, .gone = -1 })

/*
 * cover_watch - watch init's mount table from now on; a place that is bare already is found at once. @epoll will
 * report events with @event and @event + 1 as their data: for each the caller calls cover_event(). @newpath: begun; it is given
 * the protected paths that do not exist any more. Returns 0; -ENOENT: /proc of this machine hides init, so that S cannot
 * watch; or -errno.
 */
MUST_CHECK int cover_watch(struct cover *c, const struct plan *plan, pid_t init,
	struct newpath_watch *newpath, int epoll, uint64_t event);

/*
 * cover_begin - start the coverer, then cover_settle(). A second call does nothing. @box: names the memory that an idle
 * process gives back (box/rest.h). @view: the mount namespaces of the session's views (VIEW_COUNT), borrowed; -1: none.
 * Where the coverer cannot be started, the first event ends the session. Returns as cover_settle().
 * cover_settle - S gives up the rights that only the coverer needs (confine_self.h), unless it has done so: at the latest before it
 * reads what tools left. 0; or -errno: then the session has to end, and its report must not claim that S was confined.
 */
MUST_CHECK int cover_begin(struct cover *c, const struct box *box, const int view[VIEW_COUNT]);
MUST_CHECK int cover_settle(struct cover *c);

/* cover_event - 0: every place is covered, is being covered, or does not exist; -errno with @e: the session has to end. */
MUST_CHECK int cover_event(struct cover *c, uint64_t event, struct error *e);

/* cover_late_ns - by when (CLOCK_MONOTONIC) the caller calls cover_event() with @event + 1, event or not; 0: nothing is pending. */
int64_t cover_late_ns(const struct cover *c);

/*
 * cover_finish - the session is about to end: find out whether it ended by itself, or because a place could not be covered and
 * the kernel killed the stopped processes. Waits some seconds at most for the coverer's answer. 0, or -errno with @e as
 * cover_event().
 */
MUST_CHECK int cover_finish(struct cover *c, struct error *e);

/*
 * cover_end - kill the coverer, without waiting: its open views would keep the session's mounts alive. cover_report() still works.
 * cover_reap - reap it, later, when S has nothing else to do.
 */
void cover_end(struct cover *c);
void cover_reap(struct cover *c);

/*
 * cover_report - into @report: the places that were covered again, and the processes that were killed for it. @arena owns the
 * lists. 0 or -ENOMEM.
 * cover_kept - plan->kept (which file stood at each protected path) brought up to date: a file that the host itself put
 * there was not made by a tool. @arena owns *@ret. 0 or -ENOMEM. Both can be called for a session that was never watched.
 */
MUST_CHECK int cover_report(const struct cover *c, struct arena *arena, struct report *report);
MUST_CHECK int cover_kept(const struct cover *c, const struct plan *plan, struct arena *arena,
	const struct kept_path **ret_kept);
