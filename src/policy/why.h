/*
 * why.h - what a command of a session would find at a path, a host or a system call, and which line decides it.
 * For verb_why.c and why_*.c alone.
 *
 * Runs in: carrel-policy, outside, as the caller; with -s a client of the session. May not: change anything, nor
 * guess. Answers come from the plan that a launch would follow, from the text that its filter was compiled
 * from, or from the session itself; it names a remedy only after it has made a plan with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "client/find.h"
#include "host/launch/prepare.h"
#include "plan/surface.h"
#include "policy/filter.h"

#define WHY_LINES_MAX 32       /* lines of a filter about one call */
#define WHY_CHANGES_MAX 4      /* remedies of one answer */
#define WHY_UNKNOWN (-1)       /* nobody can say the outcome */
#define WHY_ARENA (512u << 20) /* address space */

enum why_kind { WHY_PATH, WHY_HOST, WHY_CALL };

/* What is tried, and how it ends: an errno value, 0, or WHY_UNKNOWN. */
enum why_try { TRY_READ, TRY_WRITE, TRY_MAKE, TRY_CONNECT, TRY_CALL, TRY_COUNT };

/* A line that decides, or one of those that do. */
struct why_line {
	const char *
		text; /* as a policy file, or a filter's text, has it; NULL: nobody wrote one */
	const char *place; /* file:line, "command line: --hide" */
};

/* What would change the answer, or what forbids that. */
struct why_change {
	const char *aim; /* "read", "write", "make", "connect", "call" */
	const char
		*option;  /* words for a command line, quoted for a shell; NULL: see `locked` */
	const char *line; /* the same as a line of a policy */
	const char *locked; /* why it is refused, and where the lock stands; NULL: it is not */
	const char *setting, *value; /* of `option`: its words, as they are; NULL: none */
};

struct why_answer {
	enum why_kind kind;
	const char *subject; /* as it was asked */
	const char *session; /* the live one that was asked, or NULL */
	const char *seen;    /* one stable word: carrel-why(1) */
	const char *because; /* for people, or NULL */
	const char *surface; /* of a path, or NULL */
	const char *path;    /* as the session sees it, or NULL */
	bool exists;
	int outcome[TRY_COUNT];
	struct why_line lines[WHY_LINES_MAX]; /* the one that decides comes first */
	size_t line_count;
	struct why_change changes[WHY_CHANGES_MAX];
	size_t change_count;
};

/* What is asked: a plan that was made for it, or a live session. */
struct why {
	struct arena arena; /* owns the answers */
	struct prepared *p; /* NULL with a live session where a new one like it is refused */
	struct client_session *session;
	const char *lines; /* of a live session: its policy, each line with its place */
	const char *const *settings; /* as they were given, without --json and the subjects */
	int setting_count;
};

/* --- why_subject.c --- */

/*
 * why_tell - what @word is: a path (it has a slash, or is there), a host, or a system call.
 * @ret_note: what else it could be, for a note; NULL: nothing. 0, or -EINVAL with @e (ERROR_USAGE).
 */
MUST_CHECK int why_tell(struct arena *arena, const char *word, enum why_kind *ret,
	const char **ret_note, struct error *e);

/* --- why_walk.c --- */

/* What a path of the session leads to, and how far it could be followed. */
struct why_walked {
	const char *path; /* as the session sees it */
	size_t existing;  /* bytes of it that exist: all of them where `exists` */
	bool exists;
	bool known; /* false: only the kernel knows, inside */
	int refused; /* EACCES: a directory on the way, `path` up to `existing`, cannot be entered; else 0 */
	struct stat st; /* if it exists; for a thing of carrel's own only the type */
};

/*
 * why_walk - follow @asked, absolute, as the session of @plan would.
 * 0; -ELOOP, -ENAMETOOLONG, -ENOTDIR: it leads nowhere; -ENOMEM or another -errno.
 */
MUST_CHECK int why_walk(const struct plan *plan, struct arena *arena, const char *asked,
	struct why_walked *ret);

/* --- why_try.c --- */

/* The ids that the payload has for a thing. */
struct why_ids {
	bool change; /* the payload is another user than the caller */
	bool mapped; /* this looks at it outside of an idmapped mount, in which all other owners are nobody */
	bool overlay; /* and it is the lower layer of an overlay: the user who mounted that must have the right, too */
	uid_t uid;
	gid_t gid;
};

/* A file, and the walls before it. */
struct why_thing {
	int fd; /* O_PATH; or -1: every attempt gets `refused` */
	int refused;
	struct why_ids ids;
	struct stat st;
	bool read, write; /* what the policy lets a command do there */
	bool device;      /* a node of the session's own /dev */
	bool mounts, landlock,
		sockets; /* walls that stand; `sockets`: the host's sockets are refused by path */
};

/*
 * why_access - may the payload do @mode (R_OK, W_OK, X_OK) with it, by owner, mode, access control list, and the
 * mount that `fd` was opened on? It asks the kernel with the payload's ids.
 * Returns the errno that the payload would see; 0; or -errno: that cannot be found out.
 * See: faccessat2(2), setfsuid(2), mount_setattr(2) MOUNT_ATTR_IDMAP.
 */
MUST_CHECK int why_access(const struct why_thing *t, int mode);

/* why_try - the outcomes for a thing that exists. 0; -errno: they cannot be found out. */
MUST_CHECK int why_try(const struct why_thing *t, struct why_answer *a);

/* why_try_make - the outcome of making something in a directory that exists. Returns as why_access(). */
MUST_CHECK int why_try_make(const struct why_thing *dir);

/* why_judge - the word for what a path is, from what was found out about it. */
void why_judge(struct why_answer *a, enum surface_kind surface, bool quarantined, mode_t mode);

struct seen; /* plan/seen.h */

/*
 * why_open - look at what a session of @plan sees at @path, if that is the host's.
 * @ret->fd is the caller's. 0 or -errno.
 */
MUST_CHECK int why_open(const struct plan *plan, const struct seen *seen, const char *path,
	struct why_thing *ret);

/* --- answers ---------------------------------------------------------------------------------- */

/* why_path - about an absolute path, in the plan of @p. 0; -errno with @e (ERROR_PATH: it leads nowhere). */
MUST_CHECK int why_path(struct why *w, const struct prepared *p, const char *asked,
	struct why_answer *a, struct error *e);

/* why_live_path - about an absolute path, in the live session. As above; or ERROR_SESSION. */
MUST_CHECK int why_live_path(
	struct why *w, const char *asked, struct why_answer *a, struct error *e);

/* why_host - about "HOST[:PORT]". @p: NULL: in the live session. 0 or -errno with @e. */
MUST_CHECK int why_host(struct why *w, const struct prepared *p, const char *asked,
	struct why_answer *a, struct error *e);

/* why_call - about a system call, by its name. As above. */
MUST_CHECK int why_call(struct why *w, const struct prepared *p, const char *asked,
	struct why_answer *a, struct error *e);

/*
 * why_call_made - about a system call as it was made: @number with @args. Sets the outcome, the word for it and the one line
 * that decides. 0 or -errno with @e.
 */
MUST_CHECK int why_call_made(struct why *w, const struct prepared *p, long number,
	const uint64_t args[6], struct why_answer *a, struct error *e);

/* why_call_outcome - what @filter does to the call @nr with these arguments: an errno, 0; ESHUTDOWN: it dies. */
int why_call_outcome(const struct filter *filter, uint32_t arch, long nr,
	const uint64_t args[6], const struct filter_rule **ret_rule);

/* why_filter_line - the line that a rule of such a filter was read from. 0 or -errno. */
MUST_CHECK int why_filter_line(struct why *w, const struct prepared *p, const char *file,
	unsigned number, struct why_line *ret);

/* why_filter - the filter of @p, or of the session, as text. @ret_arch: AUDIT_ARCH_*. 0 or -errno with @e. */
MUST_CHECK int why_filter(struct why *w, const struct prepared *p, struct filter *ret,
	uint32_t *ret_arch, struct error *e);

/* why_rule - the line that was read at @source, in the arena, or NULL. */
const char *why_rule(
	struct arena *arena, const struct policy *policy, const struct source *source);

/* why_add_line - add that line to the answer; nothing if nobody wrote one. 0 or -ENOMEM. */
MUST_CHECK int why_add_line(struct why *w, const struct policy *policy,
	const struct source *source, struct why_answer *a);

/* --- why_change.c --- */

/* why_changes - find out what would change @a, by making plans. @asked: a path is absolute. 0 or -errno with @e. */
MUST_CHECK int why_changes(
	struct why *w, const char *asked, struct why_answer *a, struct error *e);

/* --- why_lines.c: the policy of a live session, as it tells it --- */

/* why_live_begin - connect to @id (NULL: $CARREL_SESSION), ask for its policy, and plan a new one like it. */
MUST_CHECK int why_live_begin(
	struct why *w, const char *id, const char *const *environment, struct error *e);

/*
 * why_net - the answer for a host in a session with `net allow`. `seen` stays NULL for a loopback address that no line names.
 * @has_port: @asked has a port. 0 or -errno.
 */
MUST_CHECK int why_net(struct why *w, const struct prepared *p, const char *asked,
	bool has_port, bool loopback, struct why_answer *a);

/*
 * why_live_line - line @n (from 0) of the session's policy that sets @setting. @ret_argument: what follows the
 * setting's name. @ret: the line and its place. False: there is no such line.
 */
bool why_live_line(struct why *w, const char *setting, unsigned n, const char **ret_argument,
	struct why_line *ret);

/* why_live_at - the line of the session's policy that stands at @place, or NULL. */
const char *why_live_at(struct why *w, const char *place);

/* why_line_place - where the line at @line was written, as it says itself, in the arena; empty: it does not say. NULL: no memory. */
const char *why_line_place(struct arena *arena, const char *line);

/* why_live_stands - whether the session has that wall. 0 or -errno with @e. */
MUST_CHECK int why_live_stands(struct why *w, enum wall wall, bool *ret, struct error *e);

/* --- why_print.c --- */

/* why_print - the answers, for people or as one JSON array. 0 or -errno of stdout. */
MUST_CHECK int why_print(const struct why_answer *answers, size_t count, bool json);
