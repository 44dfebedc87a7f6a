/*
 * manifest.c - see manifest.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/session/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/writer.h"
#include "host/process/process_stat.h"
#include "host/quarantine/newpath.h"
#include "plan/path.h"

/*
 * Records of texts, each ended by a NUL: a word, and what belongs to it.
 *   init PID STARTED                                   first; who ends last of all that is inside
 *   keep MILLISECONDS                                  then, if a policy says so: of quarantine
 *   begun SECONDS NANOSECONDS DEVICE INODE WORKSPACE   next, once; review git directories
 *   absent ROOT PATH LENGTH-OF-WHAT-EXISTED            a protected path
 *   write PATH, protect PATH, watch PATH, link PATH TARGET   rules of git's that are not `absent` ones
 */
#define MANIFEST "protected"
enum { ARENA_SIZE = 64 << 20, MANIFEST_MAX = 4 << 20 };

/* A killed session has so many ms to end. A process that lives longer is busy in the kernel. */
enum { PATIENCE = 2000 };

/* With its NUL. */
static void put_field(struct writer *w, const char *text)
{
	writer_bytes(w, text, strlen(text) + 1);
}

static void put_number(struct writer *w, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	put_field(w, text);
}

/* 0; -errno: it is not known whether it lives. */
static int put_init(struct writer *w, pid_t init)
{
	int64_t started = process_started(init);

	if (started < 0)
		return started == -ENOENT || started == -ESRCH ? 0 : (int)started;
	put_field(w, "init");
	put_number(w, (uint64_t)init);
	put_number(w, (uint64_t)started);
	return 0;
}

static void put_begun(struct writer *w, const struct facts *facts)
{
	put_field(w, "begun");
	put_number(w, (uint64_t)facts->begun.tv_sec);
	put_number(w, (uint64_t)facts->begun.tv_nsec);
	put_number(w, facts->workspace_dev);
	put_number(w, facts->workspace_ino);
	put_field(w, facts->workspace);
}

static void put_absent(struct writer *w, const struct absent_path *a)
{
	put_field(w, "absent");
	put_field(w, a->root);
	put_field(w, a->path);
	put_number(w, a->existing_prefix);
}

/* The word of a rule that has a record; NULL: it has none, or is an absent path of the plan's. */
static const char *word_of(const struct gitdir_rule *rule)
{
	if (rule->kind == GITDIR_WRITE)
		return "write";
	if (rule->kind == GITDIR_WATCH)
		return rule->exists ? "link" : "watch";
	return rule->kind == GITDIR_PROTECT && rule->exists ? "protect" : NULL;
}

static void put_rule(struct writer *w, const struct gitdir_rule *rule)
{
	const char *word = word_of(rule);

	if (!word)
		return;
	put_field(w, word);
	put_field(w, rule->path);
	if (!strcmp(word, "link"))
		put_field(w, rule->target);
}

static bool is_reviewed(const struct plan *plan)
{
	return plan->policy->workspace_mode == WORKSPACE_DIRECT &&
		plan->facts->git_rule_count > 0;
}

static int write_note(int record, const struct plan *plan, pid_t init)
{
	const struct facts *facts = plan->facts;
	struct writer w;
	char buffer[3072];
	bool reviewed = is_reviewed(plan);
	autofd int fd =
		fd_open_at(record, MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fd;
	writer_init(&w, buffer, sizeof(buffer), fd_write_to, &fd);
	int r = put_init(&w, init);
	if (r < 0)
		return r;
	if (plan->policy->quarantine_for_ms.set) {
		put_field(&w, "keep");
		put_number(&w, plan->policy->quarantine_for_ms.value);
	}
	if (reviewed)
		put_begun(&w, facts);
	for (size_t i = 0; i < plan->absent_count; i++)
		put_absent(&w, &plan->absents[i]);
	for (size_t i = 0; reviewed && i < facts->git_rule_count; i++)
		put_rule(&w, &facts->git_rules[i]);
	return writer_finish(&w);
}

int manifest_write(int record, const struct plan *plan, pid_t init, struct error *e)
{
	int r = plan->absent_count || is_reviewed(plan) ? write_note(record, plan, init) : 0;

	if (r >= 0)
		return 0;
	r = error_set(e, ERROR_STATE, "session", -r, plan->facts->session_name,
		"cannot record the protected paths in the state directory");
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(e,
			"free some space there, or name another directory with XDG_STATE_HOME");
	else if (r == -EFBIG)
		error_hint(e, "raise `ulimit -f`");
	return r;
}

void manifest_discard(int record)
{
	(void)unlinkat(record, MANIFEST, 0); /* ENOENT: there was none */
}

/* --- reading ---------------------------------------------------------------------------------- */

struct note {
	struct arena *arena;
	const char *at, *end; /* what is still to be read */
	pid_t init;           /* 0: not noted */
	int64_t started;
	struct newpath_scope what;
	struct absent_path *absents;
	struct gitdir_rule *rules;
};

/* The next text, or NULL at the end (a torn note ends where it was torn: no command had begun). */
static const char *next(struct note *n)
{
	const char *text = n->at;
	const char *stop = text < n->end ? memchr(text, '\0', (size_t)(n->end - text)) : NULL;

	if (stop)
		n->at = stop + 1;
	return stop ? text : NULL;
}

/* Absolute, no longer than a path can be, and without an empty, "." or ".." component. */
static bool is_canonical(const char *path)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return false;
	for (const char *at = path; *at && path[1];) {
		size_t length = strcspn(++at, "/");

		if (length == 0 || (length <= 2 && strspn(at, ".") >= length))
			return false;
		at += length;
	}
	return true;
}

/* Each of the readers returns 1; 0: the note ends in the middle of a record; or -errno. */
static int read_path(struct note *n, const char **ret_path)
{
	const char *text = next(n);

	if (text)
		*ret_path = text;
	return !text ? 0 : is_canonical(text) ? 1 : -EBADMSG;
}

static int read_number(struct note *n, uint64_t max, uint64_t *ret_number)
{
	const char *text = next(n);

	if (!text)
		return 0;
	if (strcmp(text, "0") == 0) {
		*ret_number = 0;
		return 1;
	}
	return text_parse_count(text, ret_number) < 0 || *ret_number > max ? -EBADMSG : 1;
}

static int read_init(struct note *n)
{
	uint64_t pid = 0, started = 0;

	if (n->init || n->what.review || n->what.absent_count || n->what.git_rule_count)
		return -EBADMSG;
	int r = read_number(n, INT32_MAX, &pid);
	if (r > 0)
		r = read_number(n, INT64_MAX, &started);
	if (r > 0 && pid == 0)
		return -EBADMSG;
	n->init = r > 0 ? (pid_t)pid : 0;
	n->started = (int64_t)started;
	return r;
}

static int read_begun(struct note *n)
{
	uint64_t seconds = 0, nanoseconds = 0, device = 0, inode = 0;
	const char *workspace = NULL;

	if (n->what.review || n->what.absent_count || n->what.git_rule_count)
		return -EBADMSG;
	int r = read_number(n, INT64_MAX, &seconds);
	if (r > 0)
		r = read_number(n, 999999999, &nanoseconds);
	if (r > 0)
		r = read_number(n, UINT64_MAX, &device);
	if (r > 0)
		r = read_number(n, UINT64_MAX, &inode);
	if (r > 0)
		r = read_path(n, &workspace);
	if (r <= 0)
		return r;
	n->what.begun = (struct timespec){ (time_t)seconds, (long)nanoseconds };
	n->what.workspace = workspace;
	n->what.workspace_dev = device;
	n->what.workspace_ino = inode;
	n->what.review = true;
	return 1;
}

static int add_rule(struct note *n, const struct gitdir_rule *rule)
{
	size_t count = n->what.git_rule_count;
	struct gitdir_rule *grown = arena_push(n->arena, n->rules, count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	n->rules = grown;
	grown[n->what.git_rule_count++] = *rule;
	return 1;
}

/* An absent path is added as a rule of git's, too: it is one, or does no harm as one. */
static int read_absent(struct note *n)
{
	struct absent_path absent = { 0 };
	uint64_t existing = 0;
	int r = read_path(n, &absent.root);

	if (r > 0)
		r = read_path(n, &absent.path);
	if (r > 0)
		r = read_number(n, PATH_MAX, &existing);
	if (r <= 0)
		return r;
	const char *below = path_below(absent.root, absent.path);
	if (!below || !*below || existing > strlen(absent.path))
		return -EBADMSG;
	absent.existing_prefix = (size_t)existing;
	struct absent_path *grown =
		arena_push(n->arena, n->absents, n->what.absent_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	n->absents = grown;
	grown[n->what.absent_count++] = absent;
	return add_rule(n,
		&(struct gitdir_rule){
			.kind = GITDIR_PROTECT, .path = absent.path, .why = "" });
}

static int read_rule(struct note *n, const char *word)
{
	static const struct {
		const char *word;
		enum gitdir_kind kind;
		bool exists;
	} kinds[] = { { "write", GITDIR_WRITE, true }, { "protect", GITDIR_PROTECT, true },
		{ "watch", GITDIR_WATCH, false }, { "link", GITDIR_WATCH, true } };
	struct gitdir_rule rule = { .why = "" };
	size_t i = 0;

	while (i < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[i].word, word) != 0)
		i++;
	if (i == sizeof(kinds) / sizeof(*kinds) || !n->what.review)
		return -EBADMSG;
	rule.kind = kinds[i].kind;
	rule.exists = kinds[i].exists;
	int r = read_path(n, &rule.path);
	if (r > 0 && rule.kind == GITDIR_WATCH && rule.exists) {
		rule.target = next(n);
		if (!rule.target)
			return 0;
		if (strlen(rule.target) >= PATH_MAX)
			return -EBADMSG;
	}
	return r > 0 ? add_rule(n, &rule) : r;
}

static int read_note(struct note *n)
{
	int r = 1;

	while (r > 0) {
		const char *word = next(n);

		if (!word)
			break;
		if (!strcmp(word, "init"))
			r = read_init(n);
		else if (!strcmp(word, "keep"))
			r = read_number(n, INT64_MAX, &n->what.log.keep_ms);
		else if (!strcmp(word, "begun"))
			r = read_begun(n);
		else if (!strcmp(word, "absent"))
			r = read_absent(n);
		else
			r = read_rule(n, word);
	}
	n->what.absents = n->absents;
	n->what.git_rules = n->rules;
	return r < 0 ? r : 0;
}

static int settle(struct note *n, int fd, struct error *e)
{
	const struct report_quarantine *moved = NULL;
	size_t count = 0;
	char *text = arena_alloc(n->arena, MANIFEST_MAX + 1);
	ssize_t size = text ? fd_read_file(fd, text, MANIFEST_MAX) : -ENOMEM;

	if (size < 0)
		return (int)size;
	n->at = text;
	n->end = text + size;
	int r = read_note(n);
	if (r < 0)
		return r;
	/*
	 * The lock goes when the launcher dies. What it ran is killed after that, and could put
	 * back what is moved here.
	 */
	if (n->init && !process_await_end(n->init, n->started, PATIENCE))
		return -EBUSY;
	r = newpath_quarantine(&n->what, n->arena, &moved, &count, e);
	newpath_report(moved, count);
	return r;
}

int manifest_settle(int record, const char *id, struct error *e)
{
	struct arena a;
	struct note note = { .arena = &a,
		.what = { .dead = true,
			.caller = geteuid(),
			.session_id = id,
			/* The state directory: a record is sessions/ID in it. */
			.log = { .dir = record, .state = "../.." } } };
	autofd int fd = fd_open_at(record, MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : arena_init(&a, ARENA_SIZE);
	if (r >= 0) {
		r = settle(&note, fd, e);
		arena_free(&a);
	}
	return r < 0 && r != -EBUSY
		? error_set(e, ERROR_TEARDOWN, "session", -r, id,
			  "cannot quarantine what a killed session left at protected paths")
		: r;
}
