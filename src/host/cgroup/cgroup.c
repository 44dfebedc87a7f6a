/*
 * cgroup.c - see cgroup.h.
 *
 * Runs in: the launcher and the supervisor, outside.
 */
#include "host/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/cgroup/cgroup_place.h"

/* One turn of cpu.max: what the kernel's own default is. */
enum { CPU_PERIOD_US = 100000, FREEZE_ROUNDS = 64, READ_SIZE = 1024 };

bool cgroup_limits_of(const struct policy *policy, struct cgroup_limits *ret)
{
	*ret = (struct cgroup_limits){
		.memory_bytes = policy->memory.set ? policy->memory.value : 0,
		.tasks = policy->pids.set ? policy->pids.value : 0,
		.cpu_milli = policy->cpus_milli.set ? policy->cpus_milli.value : 0,
	};
	return cgroup_needs(ret) != 0;
}

unsigned cgroup_needs(const struct cgroup_limits *limits)
{
	return (limits->memory_bytes ? (unsigned)CGROUP_MEMORY : 0) |
		(limits->tasks ? (unsigned)CGROUP_PIDS : 0) |
		(limits->cpu_milli ? (unsigned)CGROUP_CPU : 0);
}

/* --- making ----------------------------------------------------------------------------------- */

/* Note the group's place before the group exists, for the sweep that may find its session dead. */
static int write_note(int note, const char *path)
{
	if (note < 0)
		return 0;
	autofd int fd =
		fd_open_at(note, CGROUP_NOTE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	return fd < 0 ? fd : fd_write_all(fd, path, strlen(path));
}

/* A new directory in @parent, opened. */
static int make_group(int parent, const char *name, struct cgroup *ret)
{
	if (mkdirat(parent, name, 0755) < 0)
		return -errno;
	int fd = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0) {
		(void)unlinkat(parent, name, AT_REMOVEDIR);
		return fd;
	}
	*ret = (struct cgroup){ .dir = fd };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

/* Make the session's group in a place that was found. */
static int make_session(struct cgroup_session *s, struct cgroup_place *place, const char *name,
	int note, unsigned need, unsigned want)
{
	if (!need && want && !(cgroup_controllers(place->dir, "cgroup.subtree_control") & want))
		return -ENOENT; /* it would be good for nothing */
	int n = snprintf(s->path, sizeof(s->path), "%s/%s",
		strcmp(place->path, "/") ? place->path : "", name);
	int r = n < 0 || (size_t)n >= sizeof(s->path) ? -ENAMETOOLONG
						      : write_note(note, s->path);

	if (r >= 0)
		r = make_group(place->dir, name, &s->group);
	if (r < 0)
		return r;
	s->place = take_fd(&place->dir);
	/* A group without this lock is that of a dead session. */
	if (flock(s->group.dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	s->controllers = cgroup_controllers(s->group.dir, "cgroup.controllers") & (need | want);
	/* While the groups below it hold on to them, nobody can turn them off above. */
	return need & ~s->controllers ? -ENOENT : cgroup_enable(s->group.dir, s->controllers);
}

static int session_failed(struct cgroup_session *s, struct cgroup_place *place, unsigned need,
	int r, struct error *e)
{
	struct error ignored = { 0 };

	if (place->lack == CGROUP_LACK_NOTHING)
		place->lack = r == -EROFS  ? CGROUP_LACK_WRITABLE
			: r == -ENOENT     ? CGROUP_LACK_CONTROLLERS
			: r == -EOPNOTSUPP ? CGROUP_LACK_ROOM
					   : CGROUP_LACK_RIGHTS;
	/* The user needs to hear the cause of the failure, not what followed. */
	(void)!cgroup_session_end(s, &ignored);
	fd_close(&place->dir);
	return need ? cgroup_explain(place, need, -r, e) : 0;
}

int cgroup_session_begin(struct cgroup_session *ret, const char *name, int note, unsigned need,
	unsigned want, struct error *e)
{
	struct cgroup_place place;

	*ret = CGROUP_SESSION_NONE;
	int r = cgroup_place_find(false, need, want, &place);
	if (r >= 0)
		r = make_session(ret, &place, name, note, need, want);
	return r < 0 ? session_failed(ret, &place, need, r, e) : 0;
}

int cgroup_check(unsigned need, struct error *e)
{
	struct cgroup_place place;
	int r = need ? cgroup_place_find(true, need, 0, &place) : 0;

	if (!need || r < 0)
		return need ? cgroup_explain(&place, need, -r, e) : 0;
	fd_close(&place.dir);
	return 0;
}

int cgroup_make(struct cgroup_session *s, const char *name, const struct cgroup_limits *limits,
	struct cgroup *ret, struct error *e)
{
	unsigned need = limits ? cgroup_needs(limits) : 0;
	struct cgroup made = CGROUP_NONE;

	*ret = made;
	if (s->group.dir < 0 && !need)
		return 0;
	int r = s->group.dir < 0 ? -ENODEV : cgroup_enable(s->group.dir, need);
	if (r < 0) {
		r = error_set(e, ERROR_UNAVAILABLE, "launch", -r, s->path,
			"this session cannot limit one execution");
		error_hint(
			e, "give the limit to the session: carrel session start --memory ...");
		return r;
	}
	s->controllers |= need;
	r = make_group(s->group.dir, name, &made);
	if (r < 0)
		return error_set(e, ERROR_LIMIT, "launch", -r, s->path,
			"cannot make a group for the execution");
	/* An execution's group dies as one; neither init nor another execution dies with it. */
	if (!strncmp(name, "exec-", strlen("exec-")) && (s->controllers & CGROUP_MEMORY)) {
		r = cgroup_write_file(made.dir, "memory.oom.group", "1");
		r = r == -ENOENT ? 0 : r;
	}
	if (r >= 0 && need)
		r = cgroup_limit(&made, limits, e);
	if (r < 0) {
		(void)!cgroup_remove(s->group.dir, &made); /* the cause comes first */
		return error_set(e, ERROR_UNAVAILABLE, "launch", -r, s->path,
			"cannot limit the execution's group");
	}
	*ret = made;
	return 0;
}

/* --- limits ----------------------------------------------------------------------------------- */

static int limit_memory(int dir, uint64_t bytes)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	int r = cgroup_write_file(dir, "memory.max", text);
	if (r < 0)
		return r;
	/* memory.max bounds memory alone: without this line the kernel would move to swap what exceeds it
	 * (cgroup-v2.rst, memory.swap.max). */
	r = cgroup_write_file(dir, "memory.swap.max", "0");
	return r == -ENOENT ? 0 : r;
}

static int limit_cpu(int dir, uint64_t milli)
{
	char text[48];
	uint64_t quota;

	if (__builtin_mul_overflow(milli, CPU_PERIOD_US / 1000, &quota))
		return -ERANGE;
	(void)snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, CPU_PERIOD_US);
	return cgroup_write_file(dir, "cpu.max", text);
}

int cgroup_limit(const struct cgroup *g, const struct cgroup_limits *limits, struct error *e)
{
	const char *what = "memory.max";
	char text[32];
	int r = limits->memory_bytes ? limit_memory(g->dir, limits->memory_bytes) : 0;

	if (r >= 0 && limits->tasks) {
		what = "pids.max";
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)limits->tasks);
		r = cgroup_write_file(g->dir, what, text);
		/* More than the machine can have is no limit: the kernel calls that "max". */
		if (r == -EINVAL)
			r = cgroup_write_file(g->dir, what, "max");
	}
	if (r >= 0 && limits->cpu_milli) {
		what = "cpu.max";
		r = limit_cpu(g->dir, limits->cpu_milli);
	}
	return r < 0 ? error_set(e, ERROR_UNAVAILABLE, "launch", -r, what,
			       "the group %s does not take its limit", g->name)
		     : 0;
}

/* --- processes -------------------------------------------------------------------------------- */

int cgroup_enter(const struct cgroup *g, pid_t pid)
{
	char text[16];

	if (g->dir < 0)
		return 0;
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return cgroup_write_file(g->dir, "cgroup.procs", text);
}

/*
 * Kill the processes of a frozen group: such a process neither starts others nor ends and gives its
 * pid away.
 */
static int kill_listed(int dir)
{
	char text[READ_SIZE];
	autofd int list = fd_open_at(dir, "cgroup.procs", O_RDONLY, 0);
	unsigned pid = 0;
	ssize_t n;

	if (list < 0)
		return list;
	while ((n = read(list, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (unsigned)(text[i] - '0');
				continue;
			}
			if (pid > 0)
				(void)kill((pid_t)pid, SIGKILL); /* ESRCH: it has ended */
			pid = 0;
		}
	return n < 0 ? -errno : 0;
}

int cgroup_kill(const struct cgroup *g)
{
	if (g->dir < 0)
		return 0;
	int r = cgroup_write_file(g->dir, "cgroup.kill", "1");
	if (r != -ENOENT)
		return r;
	/*
	 * Before Linux 5.14 there is no cgroup.kill. A group with groups below it has no process of
	 * its own.
	 */
	r = cgroup_write_file(g->dir, "cgroup.freeze", "1");
	int killed = kill_listed(g->dir);
	int thawed = cgroup_write_file(g->dir, "cgroup.freeze", "0");
	return r < 0 ? r : killed < 0 ? killed : thawed;
}

int cgroup_watch(const struct cgroup *g)
{
	return fd_open_at(g->dir, "cgroup.events", O_RDONLY | O_NONBLOCK, 0);
}

int cgroup_is_empty(int watch)
{
	char text[128];
	ssize_t n = pread(watch, text, sizeof(text) - 1, 0);

	if (n < 0)
		return errno == ENODEV ? 1 : -errno; /* removed: nobody can be in it */
	text[n] = '\0';
	return strstr(text, "populated 0") != NULL;
}

int cgroup_wait_empty(const struct cgroup *g, int timeout_ms)
{
	int64_t deadline_ms = clock_now_ns() / 1000000 + timeout_ms;

	if (g->dir < 0)
		return 0;
	autofd int watch = cgroup_watch(g);
	if (watch < 0)
		return watch;
	for (;;) {
		struct pollfd p = { .fd = watch, .events = POLLPRI };
		int r = cgroup_is_empty(watch);

		if (r != 0)
			return r < 0 ? r : 0;
		int64_t left_ms = deadline_ms - clock_now_ns() / 1000000;
		if (left_ms <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left_ms) < 0 && errno != EINTR)
			return -errno;
	}
}
