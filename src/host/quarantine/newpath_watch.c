/*
 * newpath_watch.c - see newpath_watch.h.
 *
 * Runs in: S, while tools live.
 */
#include "host/quarantine/newpath_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "host/quarantine/newpath.h"
#include "host/quarantine/newpath_dirs.h"
#include "host/quarantine/newpath_judge.h"
#include "host/quarantine/quarantine.h"
#include "plan/path.h"

#define MS INT64_C(1000000)

enum {
	FIRST_MS = 20,    /* the first look: most commands have ended by then */
	POLL_MS = 20,     /* between looks, at the beginning */
	NOTIFY_MS = 2000, /* then inotify */
	REARM_MS = 2,     /* between two wake-ups */
	BUSY_MS =
		100, /* between two looks, if inotify cannot watch everything, or tools make things again and again */
	BUSY_COUNT = 32,  /* moves and judgements in a second: tools do so */
	LOOK_MS = 200,    /* the longest look: signals and time-outs wait for it */
	JUDGE_MS = 100,   /* of that, for judgements */
	JUDGE_COUNT = 64, /* judgements in a look */
	ARENA_SIZE = 64 << 20,
	NAMES_SIZE = 1 << 20,
};

/* One protected path that was absent, and what became of it. */
struct newpath_item {
	struct quarantine_item item;
	bool judged;
	bool stays; /* the last look said so */
	struct newpath_judgement judgement;
	uint64_t times;   /* that it was moved */
	const char *from; /* the first time; NULL: there was none */
	const char *to;
	const char *id; /* of its record; NULL: there is none */
};

struct newpath_state {
	struct arena arena;
	struct arena names; /* of one look */
	struct quarantine quarantine;
	struct newpath_dirs dirs;
	struct newpath_item *items;
	size_t count;
	size_t turn; /* the item that the next look begins with */
	struct newpath_budget budget;
	uint64_t times;
	int64_t begun_ns;
	int64_t second_ns; /* the second in which they were counted */
	unsigned in_second;
	int64_t look_ns, rearm_ns; /* when; 0: not */
	bool notified;             /* inotify was tried */
};

static void earlier(int64_t *due, int64_t at)
{
	if (at && (!*due || at < *due))
		*due = at;
}

static void set_due(struct newpath_watch *w)
{
	w->due_ns = 0;
	earlier(&w->due_ns, w->state->look_ns);
	earlier(&w->due_ns, w->state->rearm_ns);
}

/* --- the beginning --------------------------------------------------------------------------- */

void newpath_watch_begin(
	struct newpath_watch *w, const struct plan *plan, int epoll, uint64_t event)
{
	*w = (struct newpath_watch){ .plan = plan, .epoll = epoll, .event = event };
	if (plan->absent_count)
		w->due_ns = clock_now_ns() + FIRST_MS * MS;
}

/* Items of the same root share its descriptor. -errno: it cannot be opened; the check at the end reports that. */
static int find_root(const struct newpath_watch *w, const char *root)
{
	const struct facts *facts = w->plan->facts;
	const struct newpath_scope what = { .workspace = facts->workspace,
		.workspace_dev = facts->workspace_dev,
		.workspace_ino = facts->workspace_ino };
	struct newpath_state *s = w->state;
	int fd = -1;

	for (size_t i = s->count; i-- > 0;)
		if (!strcmp(s->items[i].item.root, root))
			return s->items[i].item.root_fd;
	int r = newpath_open_root(&what, root, &fd);
	return r < 0 ? r : fd;
}

static int add_item(struct newpath_watch *w, const struct absent_path *absent)
{
	struct newpath_state *s = w->state;
	size_t root_length = strlen(absent->root);
	struct newpath_item *items = arena_push(&s->arena, s->items, s->count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	s->items = items;
	struct quarantine_item item = {
		.root_fd = find_root(w, absent->root),
		.root = absent->root,
		.path = path_below(absent->root, absent->path),
		.existing_prefix_len = absent->existing_prefix > root_length
			? absent->existing_prefix - root_length - 1
			: 0,
	};
	if (item.root_fd < 0)
		return error_is_own(-item.root_fd) ? item.root_fd : 0;
	bool judged = newpath_judge_applies(&item);
	items[s->count++] = (struct newpath_item){ .item = item, .judged = judged };
	return newpath_dirs_add(&s->dirs, &s->arena, &item, judged);
}

static void forget_state(struct newpath_watch *w)
{
	struct arena arena = w->state->arena, names = w->state->names;

	newpath_watch_stop(w);
	w->state = NULL; /* it lies in the arena */
	arena_free(&names);
	arena_free(&arena);
}

static int make_state(struct newpath_watch *w)
{
	struct arena arena, names;
	int r = arena_init(&arena, ARENA_SIZE);

	if (r < 0)
		return r;
	r = arena_init(&names, NAMES_SIZE);
	w->state = r < 0 ? NULL : arena_alloc(&arena, sizeof(*w->state));
	if (!w->state) {
		arena_free(&arena);
		return -ENOMEM;
	}
	struct newpath_state *s = w->state;
	s->arena = arena;
	s->names = names;
	s->dirs.fd = -1;
	s->begun_ns = clock_now_ns();
	const struct quarantine_log log = { .dir = AT_FDCWD,
		.state = w->plan->facts->state_dir,
		.keep_ms = w->plan->policy->quarantine_for_ms.value };
	quarantine_begin(
		&s->quarantine, w->plan->facts->session_name + strlen("carrel-"), &log);
	s->quarantine.live = true;
	for (size_t i = 0; i < w->plan->absent_count && r >= 0; i++)
		r = add_item(w, &w->plan->absents[i]);
	if (r < 0)
		forget_state(w);
	return r;
}

/* False: there is no memory or no descriptor; it is tried again soon, and the check at the end finds everything. */
static bool have_state(struct newpath_watch *w)
{
	if (w->state || make_state(w) >= 0)
		return true;
	w->due_ns = clock_now_ns() + BUSY_MS * MS;
	return false;
}

/* --- looking --------------------------------------------------------------------------------- */

static void count_work(struct newpath_state *s)
{
	int64_t now = clock_now_ns();

	if (now - s->second_ns >= 1000 * MS) {
		s->second_ns = now;
		s->in_second = 0;
	}
	s->in_second++;
}

static bool is_busy(const struct newpath_state *s)
{
	return s->in_second > BUSY_COUNT && clock_now_ns() - s->second_ns < 1000 * MS;
}

/* Tell the user at once the first time, since what was moved is the user's. Count the other times. */
static void note_moved(struct newpath_state *s, struct newpath_item *it, size_t length)
{
	struct report_quarantine moved;

	it->times++;
	s->times++;
	count_work(s);
	if (it->times > 1)
		return;
	const char *root = it->item.root;
	it->from = arena_format(&s->arena, "%s/%.*s", root, (int)length, it->item.path);
	it->to = arena_format(&s->arena, "%s/%s", root, s->quarantine.to);
	if (s->quarantine.id[0])
		it->id = arena_copy(&s->arena, s->quarantine.id, strlen(s->quarantine.id));
	moved = (struct report_quarantine){
		.path = it->from, .to = it->to, .id = it->id, .times = 1
	};
	if (it->from && it->to)
		newpath_report(&moved, 1);
}

struct at_look {
	struct newpath_state *state;
	struct newpath_item *item;
};

static bool may_stay(void *context, const struct quarantine_item *item, size_t length)
{
	const struct at_look *at = context;

	/* git makes the path itself; it does not make what stands in its way. */
	if (at->item->judged && !item->path[length])
		at->item->stays = newpath_judge(&at->item->judgement, item, &at->state->budget);
	return at->item->stays;
}

/* Move what stands there, or let it stay until judgement.again_ns. -errno: it could not be moved; the check at the end reports that. */
static int look_at(struct newpath_state *s, struct newpath_item *it)
{
	struct at_look at = { s, it };
	size_t length;

	s->budget.child_started = false;
	int r = quarantine_take(&s->quarantine, &it->item, may_stay, &at, &length);
	if (r > 0)
		note_moved(s, it, length);
	if (s->budget.child_started)
		count_work(s);
	return r;
}

/*
 * Look at the items one after the other: their number bounds the work, and the budget that of judgements. If the budget
 * is not enough, the next look comes soon and begins with the first item that was left.
 */
static void look_at_all(struct newpath_state *s)
{
	struct quarantine_listing listing = { .root_fd = -1 };
	struct arena names = s->names; /* a copy: frees at the end what this look takes */
	int64_t next = 0, now = clock_now_ns();
	size_t turn = s->turn;

	s->budget =
		(struct newpath_budget){ .until_ns = now + JUDGE_MS * MS, .left = JUDGE_COUNT };
	for (size_t i = 0; i < s->count; i++) {
		struct newpath_item *it = &s->items[(turn + i) % s->count];
		bool was_cut = s->budget.cut;

		it->stays = false;
		if (quarantine_is_absent(&listing, &names, &it->item, s->count - i))
			continue;
		if (look_at(s, it) < 0)
			earlier(&next, clock_now_ns() + BUSY_MS * MS);
		if (it->stays)
			earlier(&next, it->judgement.again_ns);
		if (s->budget.cut && !was_cut)
			s->turn = (turn + i) % s->count;
		if (clock_now_ns() - now < LOOK_MS * MS)
			continue;
		if (!s->budget.cut)
			s->turn = (turn + i + 1) % s->count;
		s->budget.cut = true;
		break;
	}
	if (s->budget.cut)
		earlier(&next, clock_now_ns() + POLL_MS * MS);
	s->look_ns = next;
}

/* --- when ------------------------------------------------------------------------------------- */

static void arm(struct newpath_watch *w, int op)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = w->event };
	struct newpath_state *s = w->state;

	s->rearm_ns = 0;
	if (epoll_ctl(w->epoll, op, s->dirs.fd, &event) < 0) {
		fd_close(&s->dirs.fd); /* then S looks every BUSY_MS instead */
		earlier(&s->look_ns, clock_now_ns() + BUSY_MS * MS);
	}
}

static void report_unwatched(const struct newpath_watch *w, int r)
{
	struct error line = { 0 };
	(void)error_set(&line, ERROR_UNAVAILABLE, "supervise", -r, NULL,
		"protected paths cannot be watched, and are looked at every %d ms", BUSY_MS);
	if (!w->plan->policy->quiet.on)
		error_report(&line);
}

/* Watch first, then look: the look sees what came into being before the watch. */
static void begin_notify(struct newpath_watch *w)
{
	struct newpath_state *s = w->state;
	int r = newpath_dirs_open(&s->dirs);

	s->notified = true;
	if (r < 0) {
		report_unwatched(w, r);
		return;
	}
	newpath_dirs_watch(&s->dirs);
	arm(w, EPOLL_CTL_ADD);
}

static void look_and_plan(struct newpath_watch *w, int64_t now)
{
	struct newpath_state *s = w->state;
	bool notify = now - s->begun_ns >= NOTIFY_MS * MS;

	if (notify && !s->notified)
		begin_notify(w);
	else if (s->dirs.fd >= 0)
		newpath_dirs_watch(&s->dirs);
	look_at_all(s);
	if (!notify)
		earlier(&s->look_ns, now + POLL_MS * MS);
	else if (s->dirs.fd < 0 || s->dirs.partial)
		earlier(&s->look_ns, now + BUSY_MS * MS);
	if (s->look_ns && s->look_ns < now + BUSY_MS * MS && is_busy(s))
		s->look_ns = now + BUSY_MS * MS;
}

/* The part of @path that exists on the host, at least that of @root. */
static size_t existing_part(const char *root, char *path)
{
	size_t length = strlen(path);
	struct stat st;

	while (length > strlen(root) && lstat(path, &st) < 0) {
		length = path_parent_length(path);
		path[length] = '\0';
	}
	return length;
}

int newpath_watch_add(struct newpath_watch *w, const struct kept_path *gone)
{
	int r = w->state ? 0 : make_state(w);

	if (r < 0)
		return r;
	struct newpath_state *s = w->state;
	const char *path = path_below(gone->root, gone->path);
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->items[i].item.root, gone->root) &&
			!strcmp(s->items[i].item.path, path))
			return 0;
	char *existing = arena_copy(&s->arena, gone->path, strlen(gone->path));
	if (!existing)
		return -ENOMEM;
	const struct absent_path absent = { .root = gone->root,
		.path = gone->path,
		.existing_prefix = existing_part(gone->root, existing) };
	r = add_item(w, &absent);
	s->look_ns = clock_now_ns();
	set_due(w);
	return r;
}

void newpath_watch_step(struct newpath_watch *w)
{
	int64_t now = clock_now_ns();

	if (!w->due_ns || now < w->due_ns)
		return;
	if (!have_state(w))
		return;
	struct newpath_state *s = w->state;
	if (s->look_ns ? now >= s->look_ns : !s->rearm_ns)
		look_and_plan(w, now);
	if (s->rearm_ns && now >= s->rearm_ns)
		arm(w, EPOLL_CTL_MOD);
	set_due(w);
}

void newpath_watch_look(struct newpath_watch *w)
{
	if (!w->plan || !have_state(w))
		return;
	look_and_plan(w, clock_now_ns());
	set_due(w);
}

void newpath_watch_wake(struct newpath_watch *w)
{
	struct newpath_state *s = w->state;
	int64_t now = clock_now_ns();
	bool changed;

	if (!s || s->dirs.fd < 0)
		return;
	bool relevant = newpath_dirs_drain(&s->dirs, &changed);
	for (size_t i = 0; changed && i < s->count; i++)
		s->items[i].judgement.changed = true;
	if (relevant)
		look_and_plan(w, now);
	/* While it is not armed, nothing that tools do wakes us. */
	s->rearm_ns = now + (is_busy(s) ? BUSY_MS : REARM_MS) * MS;
	set_due(w);
}

int newpath_watch_wait_ms(const struct newpath_watch *w)
{
	if (!w->due_ns)
		return -1;
	int64_t left = w->due_ns - clock_now_ns();
	return left <= 0 ? 0 : (int)((left + MS - 1) / MS);
}

/* --- the end ---------------------------------------------------------------------------------- */

void newpath_watch_stop(struct newpath_watch *w)
{
	struct newpath_state *s = w->state;

	w->due_ns = 0;
	if (!s)
		return;
	fd_close(&s->dirs.fd);
	quarantine_end(&s->quarantine);
	for (size_t i = 0; i < s->count; i++) {
		bool shared = false;

		for (size_t j = i + 1; j < s->count && !shared; j++)
			shared = s->items[j].item.root_fd == s->items[i].item.root_fd;
		if (!shared)
			(void)close(s->items[i].item.root_fd);
	}
}

uint64_t newpath_watch_count(const struct newpath_watch *w)
{
	return w->state ? w->state->times : 0;
}

static struct report_quarantine *find_path(
	struct report_quarantine *list, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].path, path))
			return &list[i];
	return NULL;
}

int newpath_watch_report(const struct newpath_watch *w, struct arena *arena,
	const struct report_quarantine **list, size_t *count)
{
	struct newpath_state *s = w->state;
	size_t room = *count;

	for (size_t i = 0; s && i < s->count; i++)
		room += s->items[i].from != NULL;
	if (room == *count)
		return 0;
	struct report_quarantine *all = arena_array(arena, room, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (*count)
		memcpy(all, *list, *count * sizeof(*all));
	for (size_t i = 0; i < s->count; i++) {
		const struct newpath_item *it = &s->items[i];

		if (!it->from || !it->to)
			continue;
		struct report_quarantine *at = find_path(all, *count, it->from);
		if (!at)
			at = &all[(*count)++];
		*at = (struct report_quarantine){ .path = it->from,
			.to = it->to,
			.id = it->id,
			.times = at->times + it->times };
	}
	*list = all;
	return 0;
}
