/*
 * cover.c - see cover.h.
 *
 * Runs in: S; from coverer_main() on in the coverer.
 */
#include "host/cover/cover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "host/cover/coverer.h"
#include "host/cover/gone.h"
#include "host/cover/mountwatch.h"
#include "host/explain/explain.h"
#include "host/process/confine_self.h"
#include "host/report/verbose.h"
#include "plan/tree_node.h"

enum { WAIT_MS = 500, FINISH_MS = COVER_MOST_MS + 1000 };

static size_t board_size(const struct plan *plan)
{
	return sizeof(struct cover_board) + plan->op_count * sizeof(struct cover_place);
}

static int watch(const struct cover *c, int fd, uint32_t events, uint64_t event)
{
	struct epoll_event ev = { .events = events, .data.u64 = event };

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* --- its process --------------------------------------------------------------------------------- */

/* The pid is still the coverer's: only cover_reap() reaps it. */
static void kill_coverer(struct cover *c)
{
	if (c->socket < 0)
		return; /* killed already, or never started */
	if (c->coverer > 0)
		(void)kill(c->coverer, SIGKILL);
	fd_close(&c->socket);
}

void cover_reap(struct cover *c)
{
	while (c->coverer > 0 && waitpid(c->coverer, NULL, __WALL) < 0 && errno == EINTR)
		;
	c->coverer = 0;
}

/* --- watching ---------------------------------------------------------------------------------- */

int cover_watch(struct cover *c, const struct plan *plan, pid_t init,
	struct newpath_watch *newpath, int epoll, uint64_t event)
{
	c->plan = plan;
	c->init = init;
	c->epoll = epoll;
	c->event = event;
	c->newpath = newpath;
	c->mounts = mountwatch_open(init);
	return c->mounts < 0 ? c->mounts : watch(c, c->mounts, EPOLLPRI, event);
}

/* Whole pages. A page that S changes later the coverer would have for itself, for as long as the session lives. */
static void set_apart(const struct cover *c, int advice)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)c->apart;
	const uintptr_t first = (start + page - 1) & ~(page - 1);
	const uintptr_t end = (start + c->apart_size) & ~(page - 1);

	/* Where the kernel refuses it nothing but memory is lost. */
	if (first < end)
		(void)madvise((void *)first, end - first, advice);
}

/* It is cloned without an exit signal: S would take SIGCHLD for the end of init. */
static int start_coverer(struct cover *c, const struct box *box, const int view[VIEW_COUNT])
{
	const pid_t self = getpid();
	int pair[2];
	autofd int proc = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);

	if (proc < 0 || view[0] < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -ENOENT;
	c->socket = pair[0];
	struct cover_task task = { .plan = c->plan,
		.box = box,
		.init = c->init,
		.proc = proc,
		.view = view,
		.board = c->board };
	set_apart(c, MADV_DONTFORK);
	pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	set_apart(c, MADV_DOFORK);
	if (pid == 0)
		coverer_main(&task, self, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		return -EAGAIN;
	c->coverer = pid;
	return watch(c, c->socket, EPOLLIN, c->event + 1);
}

static void begin(struct cover *c, const struct box *box, const int view[VIEW_COUNT])
{
	void *board = mmap(NULL, board_size(c->plan), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (board == MAP_FAILED)
		return;
	c->board = board;
	if (start_coverer(c, box, view) >= 0)
		return;
	kill_coverer(c);
	cover_reap(c);
	(void)munmap(board, board_size(c->plan));
	c->board = NULL;
}

int cover_begin(struct cover *c, const struct box *box, const int view[VIEW_COUNT])
{
	if (c->settled)
		return 0;
	if (c->mounts >= 0)
		begin(c, box, view);
	return cover_settle(c);
}

int cover_settle(struct cover *c)
{
	int r = c->settled ? 0 : confine_settle();

	c->settled |= r >= 0;
	return r;
}

/*
 * Ask the coverer to cover every bare place; cover_event() takes the answer. The short wait for the first answer is no loss, as
 * the session is stopped meanwhile; if it takes longer, S goes back to its time-outs and signals.
 */
static int ask(struct cover *c)
{
	struct pollfd answer = { .fd = c->socket, .events = POLLIN };
	char byte = 0;

	c->again = c->pending;
	if (c->pending)
		return 0;
	c->pending = true;
	explain_give_way(c->explain); /* a process has one tracer: freeze.h */
	c->board->asked_ns = clock_now_ns();
	c->late_ns = c->board->asked_ns + INT64_C(1000000) * FINISH_MS;
	/* EPIPE: it is dead; handle_answer() sees the end of its stream. */
	if (send(c->socket, &byte, 1, MSG_NOSIGNAL) != 1 && errno != EPIPE)
		return -errno;
	/* The first byte reports that the coverer runs; cover_event() takes the others. */
	while (poll(&answer, 1, WAIT_MS) > 0 && !c->ready)
		if (recv(c->socket, &byte, 1, MSG_DONTWAIT) == 1)
			c->ready = true;
		else
			break;
	return 0;
}

static const char *what_failed(enum cover_failure failed)
{
	static const char *const words[] = {
		[COVER_FAILED_NOT] = "it was covered",
		[COVER_FAILED_NAMESPACE] = "the session's namespaces cannot be entered",
		[COVER_FAILED_STOP] = "a process of the session did not stop",
		[COVER_FAILED_TABLE] = "its mounts cannot be read",
		[COVER_FAILED_KIND] = "what is there now cannot be covered",
		[COVER_FAILED_LINKS] =
			"what is there now has a second name, which nothing protects",
		[COVER_FAILED_COVER] = "it could not be mounted again",
		[COVER_FAILED_AGAIN] = "it was replaced faster than it was covered",
		[COVER_FAILED_HOLDERS] = "who has hold of it could not be found out",
		[COVER_FAILED_GONE] = "nobody could see it come back",
		[COVER_FAILED_DIED] = "the process that covers it again has died or hangs",
	};

	return failed < sizeof(words) / sizeof(*words) ? words[failed] : "";
}

static int fail(const struct cover *c, struct error *e)
{
	const struct cover_board *b = c->board;
	bool known = b->failed_op >= 0 && (size_t)b->failed_op < c->plan->op_count;
	int r = b->result < 0 ? b->result : -EPROTO;

	(void)error_set(e, ERROR_UNAVAILABLE, "supervise", 0,
		known ? c->plan->ops[b->failed_op].path : NULL,
		"the session was ended: a mount of it was removed from outside, and %s",
		what_failed(b->failed));
	error_hint(e,
		known ? "this path was replaced on the host while the session ran"
		      : "a path that was covered was replaced on the host while the session ran");
	return r;
}

/* --- events ------------------------------------------------------------------------------------ */

/* Report each process that was killed, also with `quiet`. */
static void tell(struct cover *c)
{
	const struct cover_board *b = c->board;

	for (; c->holders_told < b->holder_count && c->holders_told < COVER_HOLDERS;
		c->holders_told++) {
		const struct cover_holder *h = &b->holders[c->holders_told];
		struct error e = { 0 };

		(void)error_set(&e, ERROR_UNAVAILABLE, "supervise", 0,
			h->op >= 0 && (size_t)h->op < c->plan->op_count
				? c->plan->ops[h->op].path
				: NULL,
			"a process was ended, which had opened what was replaced on the host: %.15s "
			"(%d)",
			h->name, (int)h->process);
		(void)error_report(&e);
	}
}

static void tell_places(struct cover *c)
{
	for (size_t i = 0; c->plan->policy->verbose.on && i < c->plan->op_count; i++) {
		struct cover_place *place = &c->board->places[i];

		if (place->told != place->times)
			verbose_tell_covered(c->plan->ops[i].path, place->gone);
		place->told = place->times;
	}
}

/* This machine refuses something that the coverer needs: go on without it. 0: no mount is missing yet. */
static int do_without(struct cover *c, struct error *e)
{
	c->board = NULL;
	c->pending = c->again = false;
	fd_close(&c->socket);
	return mountwatch_lost(c->mounts, c->plan, e) ? -EIO : 0;
}

/* The coverer has not answered in time: it is stopped, or hangs. */
static int fail_late(struct cover *c, struct error *e)
{
	c->board->failed = COVER_FAILED_DIED;
	c->board->failed_op = -1;
	c->board->result = -ETIMEDOUT;
	c->pending = false;
	return fail(c, e);
}

int64_t cover_late_ns(const struct cover *c)
{
	return c->board && c->pending ? c->late_ns : 0;
}

static int handle_answer(struct cover *c, struct error *e)
{
	char byte;
	ssize_t n = recv(c->socket, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return c->pending && c->late_ns <= clock_now_ns() ? fail_late(c, e) : 0;
	if (!c->ready && n == 1) {
		c->ready = true;
		return 0;
	}
	if (!c->ready)
		return do_without(c, e);
	c->pending = false;
	if (n != 1) {
		c->board->failed = COVER_FAILED_DIED;
		c->board->failed_op = -1;
		c->board->result = -ECHILD;
	}
	tell(c);
	if (c->board->result < 0 || gone_look_after(c) < 0)
		return fail(c, e);
	tell_places(c);
	return c->again ? ask(c) : 0;
}

int cover_event(struct cover *c, uint64_t event, struct error *e)
{
	if (!c->board)
		return mountwatch_lost(c->mounts, c->plan, e) ? -EIO : 0;
	if (event == c->event) {
		const char *missing;
		int r = mountwatch_missing(c->mounts, c->plan, &missing);

		/* The coverer changes the table as well. -EINVAL: init has ended, which S sees by its pidfd. */
		return (r == 0 && !missing) || r == -EINVAL ? 0 : ask(c);
	}
	if (gone_drain(c) < 0)
		return fail(c, e);
	int r = handle_answer(c, e);
	return r == 0 && c->again && !c->pending ? ask(c) : r;
}

int cover_finish(struct cover *c, struct error *e)
{
	struct pollfd answer = { .fd = c->socket, .events = POLLIN };
	int r = 0;

	while (r == 0 && c->pending) {
		c->again = false;
		int n = poll(&answer, 1, FINISH_MS);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail_late(c, e);
		r = handle_answer(c, e);
	}
	return r;
}

void cover_end(struct cover *c)
{
	fd_close(&c->mounts);
	fd_close(&c->gone);
	kill_coverer(c);
}

/* --- for the end ------------------------------------------------------------------------------- */

int cover_report(const struct cover *c, struct arena *arena, struct report *report)
{
	size_t count = 0, at = 0;

	if (!c->board)
		return 0;
	for (size_t i = 0; i < c->plan->op_count; i++)
		count += c->board->places[i].times > 0;
	uint32_t named =
		c->board->holder_count < COVER_HOLDERS ? c->board->holder_count : COVER_HOLDERS;
	struct report_covered *covered = arena_array(arena, count + 1, sizeof(*covered));
	struct report_breach *breaches = arena_array(arena, named + 1u, sizeof(*breaches));
	if (!covered || !breaches)
		return -ENOMEM;
	for (size_t i = 0; i < c->plan->op_count; i++) {
		const struct cover_place *place = &c->board->places[i];

		if (place->times)
			covered[at++] = (struct report_covered){ .path = c->plan->ops[i].path,
				.times = place->times,
				.longest_us = place->longest_us,
				.gone = place->gone };
	}
	for (uint32_t i = 0; i < named; i++) {
		const struct cover_holder *h = &c->board->holders[i];

		breaches[i] = (struct report_breach){ .name = h->name, .process = h->process };
		if (h->op >= 0 && (size_t)h->op < c->plan->op_count)
			breaches[i].path = c->plan->ops[h->op].path;
	}
	report->covered = covered;
	report->covered_count = count;
	report->breaches = breaches;
	report->breach_count = named;
	return 0;
}

int cover_kept(const struct cover *c, const struct plan *plan, struct arena *arena,
	const struct kept_path **ret_kept)
{
	*ret_kept = plan->kept;
	if (!c->board || !plan->kept_count)
		return 0;
	struct kept_path *kept = arena_array(arena, plan->kept_count, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, plan->kept, plan->kept_count * sizeof(*kept));
	for (size_t i = 0; i < plan->op_count; i++) {
		const struct cover_place *place = &c->board->places[i];

		for (size_t j = 0; place->times && !place->gone && j < plan->kept_count; j++)
			if (!strcmp(kept[j].path, plan->ops[i].path)) {
				kept[j].dev = place->dev;
				kept[j].ino = place->ino;
			}
	}
	*ret_kept = kept;
	return 0;
}
