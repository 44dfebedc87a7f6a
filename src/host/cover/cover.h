/*
 * cover.h - covers again what somebody outside has uncovered, so that a session lives beside its user.
 *
 * When a file is replaced or removed on the host, the kernel detaches what is mounted on it in every mount namespace
 * (vfs_rename() and vfs_unlink(), detach_mounts()): git writes `.git/config` by a rename, useradd(8) `/etc/shadow`,
 * and then the one is writable inside and the other can be read. Nothing can prevent that from below.
 *
 * Runs in: S, and in the coverer, a child of S outside of the session. S starts it when the command has run for a moment, so that a
 * short one does not pay for it, and gives up at once what only the coverer may do (confine_settle()). The coverer waits under a
 * filter of its own (policy/coverer.policy). For each event it starts a child that goes into the session's namespaces, does
 * the work (cover_again.h) and ends. Neither can be seen or signalled from inside. If one of them dies, the kernel
 * kills what stood still, and S ends the session.
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

/* Processes that are named in the report; more are counted. */
enum { COVER_HOLDERS = 16 };

/* A place that was uncovered. By number of the operation that had covered it; `times` 0: it never was. */
struct cover_place {
	uint32_t times;
	uint32_t told; /* S: of them, with `verbose` */
	bool gone;     /* nothing is there any more */
	uint64_t longest_us;
	dev_t dev; /* what is there now */
	ino_t ino;
};

/* A process that was ended because it had hold of what was uncovered. */
struct cover_holder {
	pid_t process; /* as seen from outside */
	int32_t op;    /* the place */
	char name[16]; /* as the process called itself */
};

enum cover_failure {
	COVER_FAILED_NOT, /* it was covered */
	COVER_FAILED_NAMESPACE,
	COVER_FAILED_STOP,  /* a process did not stop */
	COVER_FAILED_TABLE, /* the mounts could not be read */
	COVER_FAILED_KIND, /* what is there now cannot be covered: a link, a place that is bound */
	COVER_FAILED_LINKS,   /* what is to be protected has a second name */
	COVER_FAILED_COVER,   /* the kernel refused */
	COVER_FAILED_AGAIN,   /* it was replaced faster than it was covered */
	COVER_FAILED_HOLDERS, /* who has hold of it could not be found out */
	COVER_FAILED_GONE,    /* it is gone, and its directory cannot be watched */
	COVER_FAILED_DIED,    /* the coverer or its child */
};

/* Shared by S, the coverer and its child; S reads it when an answer has come. */
struct cover_board {
	int64_t asked_ns; /* CLOCK_MONOTONIC: the event */
	int32_t result;   /* 0 or -errno */
	enum cover_failure failed;
	int32_t failed_op; /* the place; -1: none */
	pid_t culprit;     /* COVER_FAILED_STOP: the process; 0: not known */
	uint32_t holder_count;
	struct cover_holder holders[COVER_HOLDERS];
	struct cover_place places[]; /* plan->op_count */
};

/* For the coverer. */
struct cover_task {
	const struct plan *plan;
	const struct box *box;
	pid_t init;
	int proc; /* the host's /proc */
	const int *
		view; /* a mount namespace for each view, VIEW_COUNT of them; -1: there is none */
	struct cover_board *board;
};

struct cover {
	const struct plan *plan;
	pid_t init;
	int epoll;
	uint64_t event;
	int mounts;                /* init's mount table; -1: it cannot be seen */
	struct cover_board *board; /* NULL: there is no coverer */
	pid_t coverer;             /* 0: there is none */
	int socket;                /* to the coverer; -1: there is none */
	bool settled;              /* S has given up what only the coverer may do */
	int gone;   /* inotify: the directories of hidden things that are gone; -1: none */
	bool ready; /* the coverer has said that it is there */
	bool pending, again;
	int64_t late_ns; /* while something is pending: from then on no answer is a failure */
	struct newpath_watch *newpath; /* the caller's */
	struct explain *
		explain; /* the caller's: traces the session until it is to be stopped; NULL: nobody does */
	uint32_t holders_told;
};

#define COVER_NONE ((struct cover){ .mounts = -1, .socket = -1, .gone = -1 })

/*
 * cover_watch - from now on nobody may uncover anything; what is bare already is seen at once. In @epoll events will
 * have @event and @event + 1 as their data, and call for cover_event(). @newpath: begun; learns of protected paths that are
 * gone. 0; -ENOENT: the machine's /proc hides
 * init, and nothing can be seen; or -errno.
 */
MUST_CHECK int cover_watch(struct cover *c, const struct plan *plan, pid_t init,
	struct newpath_watch *newpath, int epoll, uint64_t event);

/*
 * cover_begin - start the coverer, and settle; the second time nothing. @box: what an idle
 * process gives back (box/rest.h). @view: the mount namespaces of the session's views (VIEW_COUNT), borrowed; -1: none.
 * Where no coverer can be had, an event ends the session. Returns as cover_settle().
 * cover_settle - S gives up what only the coverer may do (confine_self.h), where it has not yet: at the latest before it looks
 * at what tools left. 0; or -errno: the session has to end, and must not be said to have been supervised by a confined process.
 */
MUST_CHECK int cover_begin(struct cover *c, const struct box *box, const int view[VIEW_COUNT]);
MUST_CHECK int cover_settle(struct cover *c);

/* cover_event - 0: everything is covered, gone, or being covered; -errno with @e: the session has to end. */
MUST_CHECK int cover_event(struct cover *c, uint64_t event, struct error *e);

/* cover_late_ns - when cover_event() has to be called at the latest, with @event + 1; CLOCK_MONOTONIC; 0: nothing is pending. */
int64_t cover_late_ns(const struct cover *c);

/*
 * cover_finish - the session is about to end: whether it did so by itself, or because something could not be covered and
 * the kernel killed what stood still. 0, or -errno with @e as cover_event(). Waits for what is being done, some seconds
 * at most.
 */
MUST_CHECK int cover_finish(struct cover *c, struct error *e);

/*
 * cover_end - at once; what was done is still known. An open view would keep the mounts alive.
 * cover_reap - after it, when S has nothing else to do: what was killed then.
 */
void cover_end(struct cover *c);
void cover_reap(struct cover *c);

/*
 * cover_report - what was covered again, and who was ended for it. @arena: owns the lists. 0 or -ENOMEM.
 * cover_kept - what stood at protected paths (plan->kept) as it is meant to stand there now: the host's own new
 * files are no work of a tool. @arena: owns *@ret. 0 or -ENOMEM. Both also of a session that was never watched.
 */
MUST_CHECK int cover_report(const struct cover *c, struct arena *arena, struct report *report);
MUST_CHECK int cover_kept(const struct cover *c, const struct plan *plan, struct arena *arena,
	const struct kept_path **ret_kept);
