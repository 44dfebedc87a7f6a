/*
 * explain.c - see explain.h.
 *
 * Runs in: S.
 */
#include "host/explain/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/explain/narrator.h"
#include "host/explain/observer.h"

/* How long the observer may take to trace init, and the narrator to say what there is. */
enum { OBSERVE_MS = 5000, TELL_MS = 10000 };

/* A child of S without an exit signal: S would take SIGCHLD for the end of init. See remove_pool.c. */
static long start_child(void)
{
	return syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
}

static void reap(pid_t *pid)
{
	while (*pid > 0 && waitpid(*pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	*pid = 0;
}

/* --- the two children --------------------------------------------------------------------------- */

static int make_board(struct explain *x)
{
	x->memory = memfd_create("carrel-refusals", MFD_CLOEXEC);
	if (x->memory < 0 || ftruncate(x->memory, sizeof(*x->board)) < 0)
		return -errno;
	void *board =
		mmap(NULL, sizeof(*x->board), PROT_READ | PROT_WRITE, MAP_SHARED, x->memory, 0);
	if (board == MAP_FAILED)
		return -errno;
	x->board = board;
	x->board->magic = EXPLAIN_MAGIC;
	return 0;
}

static int start_observer(struct explain *x)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	long pid = start_child();
	if (pid == 0)
		observer_main(x->plan, x->board, x->self, pair[1]);
	int error = errno;
	(void)close(pair[1]);
	x->socket = pair[0];
	x->observer = pid > 0 ? (pid_t)pid : 0;
	return pid < 0 ? -error : 0;
}

static int start_narrator(struct explain *x, const char *const *settings, size_t count)
{
	int word[2], answer[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, word) < 0)
		return -errno;
	x->word = word[0];
	if (pipe2(answer, O_CLOEXEC) < 0) {
		int fault = -errno;

		(void)close(word[1]);
		return fault;
	}
	x->answer = answer[0];
	long pid = start_child();
	if (pid == 0)
		narrator_main(settings, count, x->self, word[1], x->memory, answer[1]);
	int error = errno;
	(void)close(word[1]);
	(void)close(answer[1]);
	x->narrator = pid > 0 ? (pid_t)pid : 0;
	return pid < 0 ? -error : 0;
}

static int start_processes(struct explain *x, const char *const *settings, size_t count)
{
	int r = make_board(x);

	if (r < 0)
		return r;
	r = start_observer(x);
	return r < 0 ? r : start_narrator(x, settings, count);
}

int explain_begin(struct explain *x, const struct plan *plan, const char *const *settings,
	size_t count, struct error *e)
{
	*x = EXPLAIN_NONE;
	if (!plan->policy->explain.on && !plan->policy->learn.value)
		return 0;
	/* The narrator reads the policies once more when the session is over. */
	if (plan->policy->from_stdin)
		return error_set(e, ERROR_USAGE, "options", 0, "--policy -",
			"a policy on standard input cannot be explained: it has to be a file");
	x->plan = plan;
	x->self = getpid();
	int r = start_processes(x, settings, count);
	if (r >= 0)
		return 0;
	explain_end(x);
	return error_set(e, ERROR_LIMIT, "launch", -r, NULL,
		"cannot start the processes that see what is refused");
}

int explain_observe(struct explain *x, pid_t init, struct error *e)
{
	struct pollfd answered = { .fd = x->socket, .events = POLLIN };
	const int32_t pid = init;
	int32_t answer = ECHILD;

	if (!x->plan)
		return 0;
	/* If it takes nothing, or nothing comes, it is dead. */
	if (send(x->socket, &pid, sizeof(pid), MSG_NOSIGNAL) == (ssize_t)sizeof(pid) &&
		poll(&answered, 1, OBSERVE_MS) > 0 &&
		recv(x->socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		answer = ECHILD;
	x->observes = answer == 0;
	if (answer == 0)
		return 0;
	int r = error_set(e, ERROR_UNAVAILABLE, "launch", answer, NULL,
		"cannot explain: the session cannot be traced");
	error_hint(e,
		answer == EPERM || answer == EACCES
			? "this machine refuses ptrace(2) (kernel.yama.ptrace_scope, a filter of "
			  "the container); without `explain` the command runs"
			: "without `explain` the command runs");
	return r;
}

/* --- the end ------------------------------------------------------------------------------------ */

/* The traced processes go on: the kernel detaches them before the observer can be reaped (ptrace(2)). */
static void end_observer(struct explain *x, const char *why)
{
	if (x->observer <= 0)
		return;
	if (waitpid(x->observer, NULL, __WALL | WNOHANG) == x->observer) {
		x->observer = 0;
		if (!x->board->finished)
			why = "the observer has died";
	} else {
		(void)kill(x->observer, SIGKILL);
		reap(&x->observer);
	}
	if (!x->missing)
		x->missing = why;
}

void explain_give_way(struct explain *x)
{
	if (x)
		end_observer(x, "what was replaced on the host had to be covered again");
}

void explain_stop(struct explain *x)
{
	end_observer(x, NULL);
	if (!x->board || x->missing)
		return;
	if (x->board->unwatched)
		x->missing = "there were more threads than can be followed";
	else if (x->board->unlisted)
		x->missing = "there were more refusals than can be listed";
}

/* @size bytes until @until_ns. 0 or -errno. */
static int read_answer(struct explain *x, int64_t until_ns, void *ret, size_t size)
{
	struct pollfd event = { .fd = x->answer, .events = POLLIN };
	size_t used = 0;

	while (used < size) {
		int64_t left = (until_ns - clock_now_ns()) / 1000000;

		int ready = left <= 0 ? 0 : poll(&event, 1, (int)left);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return -ETIMEDOUT;
		ssize_t n = read(x->answer, (char *)ret + used, size - used);
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		used += (size_t)n;
	}
	return 0;
}

static const char *read_part(
	struct explain *x, int64_t until_ns, struct arena *arena, size_t size, int *r)
{
	char *part = *r < 0 || size > NARRATOR_ANSWER_MAX ? NULL : arena_alloc(arena, size + 1);

	if (*r >= 0)
		*r = part ? read_answer(x, until_ns, part, size) : -ENOMEM;
	return part;
}

void explain_tell(struct explain *x, struct arena *arena)
{
	const int64_t until_ns = clock_now_ns() + (int64_t)TELL_MS * 1000000;
	struct narrator_head head = { 0 };
	int r = -ECHILD;

	if (x->word < 0)
		return;
	if (send(x->word, "", 1, MSG_NOSIGNAL) == 1)
		r = read_answer(x, until_ns, &head, sizeof(head));
	if (r >= 0 && head.magic != EXPLAIN_MAGIC)
		r = -EPROTO;
	const char *json = read_part(x, until_ns, arena, head.json, &r);
	const char *text = read_part(x, until_ns, arena, head.text, &r);
	const char *learned = read_part(x, until_ns, arena, head.learned, &r);
	if (r < 0) {
		x->missing = r == -ETIMEDOUT ? "what was refused was not looked up in time"
					     : "what was refused could not be looked up";
		return;
	}
	x->nothing = head.nothing;
	x->json = json;
	x->json_size = head.json;
	x->text = text;
	x->text_size = head.text;
	x->learned = learned;
	x->learned_size = head.learned;
}

/* Executions that share a monitor come one after the other: each gets the refusals since the one before. */
static uint32_t copy_entries(struct explain *x, pid_t monitor, struct explain_board *ret)
{
	const uint32_t count = x->board->count;
	uint32_t copied = 0;

	for (uint32_t i = 0; i < count && i < EXPLAIN_ENTRIES_MAX; i++) {
		const struct explain_entry *e = &x->board->entries[i];
		const uint32_t times = e->times;

		if (e->monitor != monitor || times <= x->told[i])
			continue;
		ret->entries[copied] = *e;
		ret->entries[copied++].times = times - x->told[i];
		x->told[i] = times;
	}
	return copied;
}

void explain_mark(struct explain *x, pid_t monitor, unsigned view)
{
	const uint32_t count = x->observes && view ? x->board->count : 0;

	for (uint32_t i = 0; i < count && i < EXPLAIN_ENTRIES_MAX; i++)
		if (x->board->entries[i].monitor == monitor)
			x->board->entries[i].view = (uint8_t)view;
}

int explain_take(struct explain *x, pid_t monitor)
{
	if (!x->observes)
		return -ENOENT;
	if (!x->told)
		x->told = calloc(EXPLAIN_ENTRIES_MAX, sizeof(*x->told));
	autofd int fd = memfd_create("carrel-refusals", MFD_CLOEXEC);
	if (!x->told || fd < 0 || ftruncate(fd, sizeof(*x->board)) < 0)
		return x->told ? -errno : -ENOMEM;
	struct explain_board *board =
		mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		return -errno;
	board->magic = EXPLAIN_MAGIC;
	board->count = copy_entries(x, monitor, board);
	board->finished = x->missing != NULL;
	(void)munmap(board, sizeof(*board));
	return take_fd(&fd);
}

int explain_board(struct explain *x, int board, const char *const *settings, size_t count)
{
	struct {
		uint32_t magic, count;
		uint64_t unlisted;
		uint32_t unwatched, finished;
	} head;
	_Static_assert(
		sizeof(head) == offsetof(struct explain_board, entries), "its beginning");

	*x = EXPLAIN_NONE;
	x->self = getpid();
	x->memory = board;
	if (pread(board, &head, sizeof(head), 0) == (ssize_t)sizeof(head) && head.finished)
		x->missing = "the observer of the session has ended";
	return start_narrator(x, settings, count);
}

void explain_print(const struct explain *x)
{
	static const char nothing[] = "carrel: nothing was refused\n";
	char line[256];

	if (x->text_size)
		(void)!fd_write_all(STDERR_FILENO, x->text, x->text_size);
	if (!x->missing && x->nothing)
		(void)!fd_write_all(STDERR_FILENO, nothing, sizeof(nothing) - 1);
	if (!x->missing)
		return;
	int length = snprintf(line, sizeof(line),
		"carrel: note: not all that was refused is listed: %s\n", x->missing);
	(void)!fd_write_all(STDERR_FILENO, line, (size_t)length);
}

void explain_end(struct explain *x)
{
	end_observer(x, NULL);
	if (x->narrator > 0)
		(void)kill(x->narrator, SIGKILL);
	reap(&x->narrator);
	fd_close(&x->socket);
	fd_close(&x->word);
	fd_close(&x->answer);
	fd_close(&x->memory);
	if (x->board)
		(void)munmap(x->board, sizeof(*x->board));
	free(x->told);
	x->told = NULL;
	x->board = NULL;
	x->plan = NULL;
}
