/*
 * egress.c - see egress.h.
 *
 * Runs in: S; between fork and execve in the child that becomes carrel-egress.
 */
#include "host/egress/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parent.h"
#include "box/channel.h"
#include "box/sys.h"
#include "host/egress/live.h"
#include "host/egress/publish.h"
#include "host/egress/rules.h"
#include "host/process/libexec.h"

#define PROGRAM "carrel-egress"

enum { FD_ABOVE = 16, STATUS_LOST = 127, STANDARD_SIGNALS = 32 };

bool egress_is_trouble(uint32_t decision)
{
	return decision >= EGRESS_DENIED_NAME && decision <= EGRESS_FAILED;
}

/* --- starting it ------------------------------------------------------------------------------ */

/* Move the descriptors, all at or above FD_ABOVE, to where the program expects them, and close everything else. */
static int place_descriptors(int channel, int rules, int log, int null)
{
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	if (dup2(channel, EGRESS_FD_CHANNEL) < 0 || dup2(rules, EGRESS_FD_RULES) < 0 ||
		(log >= 0 && dup2(log, EGRESS_FD_LOG) < 0))
		return -errno;
	return sys_close_range(log >= 0 ? EGRESS_FD_LOG + 1 : EGRESS_FD_LOG, ~0u);
}

/* Signals as the kernel has them; a session of its own, so that a terminal's ^C does not reach it. */
static int set_apart(pid_t parent)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < STANDARD_SIGNALS; s++)
		if (s != SIGKILL && s != SIGSTOP && sigaction(s, &dfl, NULL) < 0)
			return -errno;
	if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ||
		setsid() < 0 || chdir("/") < 0)
		return -errno;
	return parent_die_with(parent, SIGKILL);
}

static _Noreturn void become_egress(
	const char *path, pid_t parent, int channel, int rules, int log, int null)
{
	char *const argv[] = { PROGRAM, log >= 0 ? "--log" : NULL, NULL };
	char *const no_environment[] = { NULL };

	if (set_apart(parent) >= 0 && place_descriptors(channel, rules, log, null) >= 0)
		(void)execve(path, argv, no_environment);
	_exit(STATUS_LOST);
}

/* Above the numbers that are given out, so that none is overwritten before it is moved. */
static int raised(int fd)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);

	return r < 0 ? -errno : r;
}

/* What the policy was read into. The child executes a program at once: a copy of thousands of pages would be for nothing. */
static void advise_policy(const struct policy *policy, int advice)
{
	/* Where the kernel refuses it, the child has them. */
	(void)madvise(policy->local->base, policy->local->size, advice);
}

static int spawn(struct egress *g, const struct policy *policy, const char *path, int far,
	int rules, int log)
{
	autofd int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	autofd int high_null = null < 0 ? null : raised(null);
	autofd int high_far = raised(far);
	autofd int high_rules = raised(rules);
	autofd int high_log = log < 0 ? -1 : raised(log);
	pid_t parent = getpid();

	if (high_null < 0 || high_far < 0 || high_rules < 0 || (log >= 0 && high_log < 0))
		return -EMFILE;
	advise_policy(policy, MADV_DONTFORK);
	pid_t pid = fork();
	if (pid == 0)
		become_egress(path, parent, high_far, high_rules, high_log, high_null);
	int fault = pid < 0 ? -errno : 0;
	advise_policy(policy, MADV_DOFORK);
	if (fault < 0)
		return fault;
	/* It is a child of S, which reaps nothing before it supervises the session. */
	long pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		int r = -errno;

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	g->pidfd = (int)pidfd;
	return 0;
}

int egress_begin(struct egress *ret, const struct policy *policy, int log, const char *login,
	struct error *e)
{
	char path[PATH_MAX / 2];
	int pair[2];
	size_t size = EGRESS_NAMES_MAX * sizeof(struct egress_name);

	*ret = EGRESS_NONE;
	ret->begun = true;
	int r = libexec_path(PROGRAM, path, sizeof(path));
	if (r < 0)
		return error_set(e, ERROR_UNAVAILABLE, "launch", -r, PROGRAM,
			"cannot find the program that `net allow` needs");
	void *names =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (names == MAP_FAILED)
		return error_no_memory(e, "launch");
	ret->names = names;
	autofd int rules = egress_rules(policy, login);
	r = rules < 0                                                             ? rules
		: socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno
										  : 0;
	if (r < 0)
		return error_set(e, ERROR_LIMIT, "launch", -r, PROGRAM,
			"cannot make the channel and the rules");
	ret->channel = pair[0];
	r = spawn(ret, policy, path, pair[1], rules, log);
	(void)close(pair[1]);
	return r < 0 ? error_set(e, ERROR_UNAVAILABLE, "launch", -r, path,
			       "cannot start the program")
		     : 0;
}

int egress_explain(const struct egress *g, struct error *e)
{
	return error_set(e, ERROR_UNAVAILABLE, "launch", 0, PROGRAM,
		g->lost ? "the program ended before it was ready: `net allow` needs it"
			: "the program is not ready in time: `net allow` needs it");
}

/* --- what it says ----------------------------------------------------------------------------- */

static int send_record(
	struct egress *g, const struct egress_record *record, const int *fds, unsigned count)
{
	struct iovec parts[2] = {
		{ .iov_base = (void *)(uintptr_t)record, .iov_len = sizeof(*record) },
	};

	return channel_send_parts(g->channel, parts, fds, count, MSG_DONTWAIT);
}

int egress_send(struct egress *g, const struct egress_record *record)
{
	return g->channel < 0 ? -EPIPE : send_record(g, record, NULL, 0);
}

int egress_send_fds(
	struct egress *g, const struct egress_record *record, const int *fds, unsigned count)
{
	return g->channel < 0 ? -EPIPE : send_record(g, record, fds, count);
}

int egress_sockets(struct egress *g, const int *fds, unsigned count, int what)
{
	const struct egress_record record = { .magic = EGRESS_MAGIC,
		.kind = what & CHANNEL_SOCKETS_POOL ? EGRESS_POOL : EGRESS_SOCKETS,
		.number = (what & CHANNEL_SOCKETS_DNS ? EGRESS_SOCKETS_DNS : 0) |
			(what & CHANNEL_SOCKETS_SIX ? EGRESS_SOCKETS_SIX : 0) |
			(what & CHANNEL_SOCKETS_REFUSED ? EGRESS_SOCKETS_REFUSED : 0) };
	int r = g->channel < 0 ? 0 : send_record(g, &record, fds, count);

	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

/* carrel-egress is dead, or has said what it may not: kill it. */
static void lose(struct egress *g)
{
	g->lost = true;
	fd_close(&g->channel);
	if (g->pidfd >= 0)
		(void)sys_pidfd_send_signal(g->pidfd, SIGKILL); /* it may have ended */
}

/*
 * When the list is full: the trouble that is longest ago makes room, or a command of a long session would not be told of its
 * own. What was reached stays in the list, whatever else tools ask for.
 */
static struct egress_name *make_room(struct egress *g)
{
	struct egress_name *oldest = NULL;

	for (size_t i = 0; i < g->name_count; i++) {
		struct egress_name *n = &g->names[i];

		if (egress_is_trouble(n->decision) && (!oldest || n->last_us < oldest->last_us))
			oldest = n;
	}
	if (oldest)
		egress_add(&g->untold, oldest->times);
	return oldest;
}

static struct egress_name *find_name(struct egress *g, const struct egress_record *record)
{
	for (size_t i = 0; i < g->name_count; i++) {
		struct egress_name *n = &g->names[i];

		if (n->port == record->port && n->decision == record->decision &&
			!strcmp(n->text, record->text))
			return n;
	}
	struct egress_name *n =
		g->name_count < EGRESS_NAMES_MAX ? &g->names[g->name_count++] : make_room(g);
	if (!n)
		return NULL;
	*n = (struct egress_name){ .port = record->port, .decision = record->decision };
	memcpy(n->text, record->text, strlen(record->text) + 1);
	return n;
}

/* No sum wraps: a counter that is full stays so. */
void egress_add(uint64_t *sum, uint64_t more)
{
	*sum = *sum > UINT64_MAX - more ? UINT64_MAX : *sum + more;
}

/* Behind the name, but for what is told again; what has another byte than an address is none. */
static void take_address(struct egress_name *n, const struct egress_record *record)
{
	const char *address = record->text + strlen(record->text) + 1;
	size_t length = strspn(address, "0123456789abcdef.:");

	if (length == 0 || length >= sizeof(n->address) || address[length])
		return;
	memcpy(n->address, address, length);
	n->address[length] = '\0';
}

/* No time is ahead of now. */
static void take_time(struct egress *g, struct egress_name *n, uint64_t us)
{
	uint64_t now_us = (uint64_t)clock_now_ns() / 1000;

	n->last_us = us < now_us ? us : now_us;
	if (n->last_us > g->trouble_us)
		g->trouble_us = n->last_us;
}

static void take_event(struct egress *g, struct egress_record *record)
{
	record->text[sizeof(record->text) - 1] = '\0';
	if (strlen(record->text) >= EGRESS_TEXT_MAX)
		record->text[EGRESS_TEXT_MAX - 1] = '\0';
	if (record->decision == EGRESS_PUBLISHED) {
		publish_event(g, record);
		return;
	}
	struct egress_name *n = find_name(g, record);

	egress_add(&g->untold, record->lost);
	/* carrel-egress sends the same refusals within a second as one event. */
	uint64_t times = record->count ? record->count : 1;
	if (!n) {
		egress_add(&g->untold, times);
		return;
	}
	if (egress_is_trouble(record->decision))
		take_time(g, n, record->duration_us);
	else
		egress_add(&n->duration_us, record->duration_us);
	egress_add(&n->times, times);
	egress_add(&n->bytes_in, record->bytes_in);
	egress_add(&n->bytes_out, record->bytes_out);
	n->rule = record->rule;
	n->errnum = record->decision == EGRESS_FAILED ? record->number : 0;
	if (record->decision == EGRESS_DENIED_ADDRESS)
		take_address(n, record);
}

/* 1: go on; 0: there is nothing more now; -1: carrel-egress is lost or done. */
static int read_one(struct egress *g)
{
	struct egress_record record;
	ssize_t n = recv(g->channel, &record, sizeof(record), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(record) || record.magic != EGRESS_MAGIC) {
		lose(g);
		return -1;
	}
	switch (record.kind) {
	case EGRESS_READY:
		g->ready = true;
		g->unresolved = record.number != 0;
		return 1;
	case EGRESS_EVENT:
		take_event(g, &record);
		return 1;
	case EGRESS_REFUSED:
		if (!g->asked)
			break; /* an answer to nothing */
		egress_live_answered(g, record.number < 0 ? EPROTO : record.number);
		return 1;
	case EGRESS_SYNCED:
		g->synced = record.number;
		return 1;
	case EGRESS_DONE:
		g->log_lost = record.number > 0 ? (uint64_t)record.number : 0;
		egress_add(&g->untold, record.lost);
		fd_close(&g->channel);
		return -1;
	default:
		break;
	}
	lose(g);
	return -1;
}

void egress_read(struct egress *g)
{
	for (int i = 0; i < EGRESS_AT_ONCE && g->channel >= 0; i++)
		if (read_one(g) <= 0)
			return;
}

/* Read until @done says so, or @most_ms are over. */
static void read_until(struct egress *g, bool (*done)(const struct egress *), int64_t most_ms)
{
	int64_t until = clock_now_ns() + most_ms * 1000000;

	while (g->channel >= 0 && !done(g)) {
		struct pollfd event = { .fd = g->channel, .events = POLLIN };
		int64_t left = (until - clock_now_ns()) / 1000000;

		if (left <= 0 || (poll(&event, 1, (int)left) < 0 && errno != EINTR))
			break;
		egress_read(g);
	}
}

static bool is_synced(const struct egress *g)
{
	return g->synced == g->sync_asked;
}

void egress_settle(struct egress *g)
{
	const struct egress_record sync = { .magic = EGRESS_MAGIC,
		.kind = EGRESS_SYNC,
		.number = (g->sync_asked + 1) & INT32_MAX };

	if (!g->ready || egress_send(g, &sync) < 0)
		return;
	g->sync_asked = sync.number;
	read_until(g, is_synced, EGRESS_SETTLE_MS);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* DONE closes the channel. */
static bool never(const struct egress *g)
{
	(void)g;
	return false;
}

void egress_ask_end(struct egress *g)
{
	const struct egress_record end = { .magic = EGRESS_MAGIC, .kind = EGRESS_END };

	if (g->channel >= 0 && g->ready && !g->ending)
		g->ending = send_record(g, &end, NULL, 0) >= 0;
}

static void take_rest(struct egress *g)
{
	bool lost = g->lost;

	egress_ask_end(g);
	if (!g->ending)
		return;
	read_until(g, never, EGRESS_END_MS);
	/* That it ends without DONE, when it is told to, takes nothing from the session. */
	g->lost = lost;
}

void egress_end(struct egress *g)
{
	siginfo_t info;

	if (g->channel >= 0 && g->ready)
		take_rest(g);
	fd_close(&g->channel);
	if (g->pidfd < 0)
		return;
	(void)sys_pidfd_send_signal(g->pidfd, SIGKILL); /* it may have ended */
	while (waitid(P_PIDFD, (id_t)g->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	fd_close(&g->pidfd);
}
