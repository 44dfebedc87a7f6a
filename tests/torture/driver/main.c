/*
 * main.c - the torture driver: every system call of a launch failed in turn, every process killed at
 * each of its calls.
 *
 *     inject [-j WORKERS] [-e ERRNO[,ERRNO...]|-k] [-r] [-o ROLE] [-p PATH:INDEX] [-a NAME|-g] [-l] [-n COUNT] \
 *         DIRECTORY CARREL MARKER [SETTING...]
 *
 *     -e  errors to fail calls with, by name (EPERM,ENOMEM,EINTR); -k  kill instead
 *     -r  each call with one of the errors, in turn, instead of with each
 *     -o  only in launcher, helper, reader, init or payload     -p  only this one point, and show all of it
 *     -a  a protected name that the command makes: what must end in quarantine
 *     -g  a repository in the workspace, in which the command leaves hooks and links: the same
 *     -l  a live session instead of a run: start, two executions, end (live.h)
 *     -n  no more than so many points, evenly spread
 *
 * DIRECTORY and CARREL are absolute paths.
 *
 * Runs in: the tests, beside nothing. A first run counts the calls of each process; then there is
 * one run for each point, and a verdict on each (verdict.h). Prints what was counted and what came
 * of it. Status 0: no violation; 1: some; 2: it could not work; 77: the machine does not let it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "site.h"
#include "trace.h"
#include "verdict.h"
#include "world.h"

enum {
	/* Only what hangs meets them, also on a machine with other work. */
	TIME_LIMIT_MS = 120000,
	GRACE_MS = 120000,
	POINTS_MAX = 16384,
	ERRORS_MAX = 8,
	WORKERS_MAX = 16,
	CANNOT = 2,
	SKIPPED = 77
};

static const char *const kind_names[KIND_COUNT] = { "launcher", "helper", "reader", "init",
	"payload", "client", "supervisor", "monitor" };
static const char *const outcome_names[OUTCOME_COUNT] = { "as without", "refused", "told",
	"crashed", "killed", "unreached", "VIOLATION" };

struct options {
	int errors[ERRORS_MAX];
	unsigned error_count, workers, most;
	bool kill, live, git, in_turn, by_site;
	const char *only_role, *only_point, *protected_name;
	const char *root, *carrel, *marker;
	const char *const *settings;
};

struct plan_point {
	struct trace_point point;
	enum trace_kind kind;
	unsigned call;
};

/* Shared by the workers. */
struct shared {
	unsigned char outcomes[POINTS_MAX];
	bool broken[WORKERS_MAX];
};

struct worker {
	const struct options *o;
	struct world world;
	struct trace_result result;
	struct world_left *left;
	struct reference good;
	int children, null;
	int stdio_out[2];
	int messages;
};

static const struct {
	int number;
	const char *name;
} error_names[] = { { EPERM, "EPERM" }, { ENOMEM, "ENOMEM" }, { EINTR, "EINTR" },
	{ EIO, "EIO" }, { EACCES, "EACCES" }, { ENOENT, "ENOENT" }, { ENOSYS, "ENOSYS" },
	{ ENOSPC, "ENOSPC" }, { EMFILE, "EMFILE" }, { EAGAIN, "EAGAIN" } };

static const char *error_name(int number)
{
	for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
		if (error_names[i].number == number)
			return error_names[i].name;
	return "kill";
}

static void *need(void *memory)
{
	if (!memory || memory == MAP_FAILED) {
		(void)fputs("inject: no memory\n", stderr);
		exit(CANNOT);
	}
	return memory;
}

/* --- one run -------------------------------------------------------------------------------- */

static int worker_make(struct worker *k, const struct options *o, const char *name)
{
	sigset_t child;
	char path[WORLD_PATH + 16];

	*k = (struct worker){ .o = o };
	int r = world_make(&k->world, o->root, name, o->carrel, o->marker, o->protected_name,
		o->git, o->live, o->settings);
	if (r < 0)
		return r;
	k->left = need(calloc(1, sizeof(*k->left)));
	k->result.view = need(calloc(1, TRACE_VIEW));
	k->good.view = need(calloc(1, TRACE_VIEW));
	k->good.output = need(calloc(1, WORLD_TEXT));
	k->good.workspace = need(calloc(1, WORLD_TEXT));
	k->good.git = need(calloc(1, WORLD_TEXT));
	if (sigemptyset(&child) < 0 || sigaddset(&child, SIGCHLD) < 0 ||
		sigprocmask(SIG_BLOCK, &child, NULL) < 0 ||
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	k->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	k->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "%.400s/messages", k->world.root);
	k->messages = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (k->children < 0 || k->null < 0 || k->messages < 0)
		return -errno;
	return 0;
}

static void take_text(int fd, bool is_pipe, char *text)
{
	ssize_t n =
		is_pipe ? read(fd, text, WORLD_TEXT - 1) : pread(fd, text, WORLD_TEXT - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
}

/* The command's output is a pipe (given as it is), stderr a file (relayed). */
static int run_once(struct worker *k, const struct trace_point *point)
{
	int out[2];

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 || ftruncate(k->messages, 0) < 0)
		return -errno;
	struct trace_setup setup = { .argv = k->world.argv,
		.envp = k->world.envp,
		.cwd = k->world.workspace,
		.live = k->o->live,
		.stdio = { k->null, out[1], k->messages },
		.time_limit_ms = TIME_LIMIT_MS,
		.grace_ms = GRACE_MS };
	int r = trace_run(&setup, point, k->children, &k->result);
	if (r >= 0) {
		take_text(out[0], true, k->left->output);
		take_text(k->messages, false, k->left->messages);
		world_look(&k->world, k->left);
	}
	(void)close(out[0]);
	(void)close(out[1]);
	return r;
}

/* The run that the others are compared with, in this worker's directories. */
static int make_reference(struct worker *k)
{
	const struct trace_point none = { .index = 0 };
	int r = run_once(k, &none);

	if (r < 0)
		return r;
	const char *lacking = k->o->live ? live_verdict_good(&k->result, k->left)
					 : verdict_good(&k->result, k->left);
	if (lacking) {
		(void)fprintf(stderr, "inject: a run without injection lacks: %s\n%s%s%s%s\n",
			lacking, k->left->messages, k->left->output, k->result.view,
			k->o->live ? k->left->notes : k->left->report);
		return -EBADMSG;
	}
	(void)snprintf(k->good.view, TRACE_VIEW, "%s", k->result.view);
	(void)snprintf(k->good.output, WORLD_TEXT, "%s", k->left->output);
	(void)snprintf(k->good.workspace, WORLD_TEXT, "%s", k->left->workspace);
	(void)snprintf(k->good.git, WORLD_TEXT, "%s", k->left->git);
	return world_clean(&k->world);
}

/* --- the points ----------------------------------------------------------------------------- */

static bool wanted(const struct options *o, const struct trace_process *p, unsigned index)
{
	char name[32];

	if (o->live && p->kind == KIND_LAUNCHER)
		return false;
	if (o->only_role && strcmp(o->only_role, kind_names[p->kind]) != 0)
		return false;
	(void)snprintf(name, sizeof(name), "%s:%u", p->path, index);
	return !o->only_point || !strcmp(o->only_point, name);
}

/* How many of the calls before it the same instruction has made. */
static unsigned calls_before(const struct trace_process *p, unsigned index)
{
	unsigned n = 0;

	for (unsigned i = 0; i < index; i++)
		n += p->sites[i] == p->sites[index];
	return n;
}

static unsigned add_points(
	const struct options *o, const struct trace_result *r, struct plan_point *points)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->process_count; i++) {
		const struct trace_process *p = &r->processes[i];

		for (unsigned c = 0; c < p->count; c++) {
			unsigned call = p->calls[c], count = o->kill ? 1 : o->error_count;
			/* By the manual pages these never return, or always succeed. */
			bool cannot_fail = call == SYS_exit || call == SYS_exit_group ||
				call == SYS_umask || call == SYS_getuid ||
				call == SYS_geteuid || call == SYS_getgid ||
				call == SYS_getegid;

			if (!wanted(o, p, c) || p->beyond || (cannot_fail && !o->kill))
				continue;
			for (unsigned e = 0; e < count && n < POINTS_MAX; e++) {
				if (o->in_turn && e != c % count)
					continue;
				points[n] =
					(struct plan_point){ .kind = p->kind, .call = call };
				points[n].point.index = c;
				points[n].point.site = o->by_site ? p->sites[c] : 0;
				points[n].point.before = calls_before(p, c);
				points[n].point.error = o->kill ? 0 : o->errors[e];
				(void)snprintf(points[n].point.path, TRACE_PATH, "%s", p->path);
				n++;
			}
		}
	}
	return n;
}

/* Every so-many-th: each kind of process and each error has its share. */
static unsigned thin_out(struct plan_point *points, unsigned count, unsigned most)
{
	if (!most || count <= most)
		return count;
	for (unsigned i = 0; i < most; i++)
		points[i] = points[(uint64_t)i * count / most];
	return most;
}

static void print_calls(const struct trace_result *r)
{
	printf("calls of a launch:");
	for (unsigned i = 0; i < r->process_count; i++)
		if (!r->processes[i].beyond)
			printf("%s %s (%s) %u", i ? "," : "", kind_names[r->processes[i].kind],
				r->processes[i].path, r->processes[i].count);
	printf("\n");
}

/* --- the workers ---------------------------------------------------------------------------- */

static void tell(const struct worker *k, const struct plan_point *p, const char *why)
{
	char room[16], status[32];
	int s = k->result.launcher_status;

	(void)snprintf(status, sizeof(status), "%s %d", WIFEXITED(s) ? "status" : "signal",
		WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
	printf("VIOLATION: %s %s:%u %s %s: %s [%s; %.200s]\n", kind_names[p->kind],
		p->point.path, p->point.index, trace_call_name(p->call, room),
		error_name(p->point.error), why, status, k->left->messages);
	(void)fflush(stdout);
}

static void show_all(const struct worker *k)
{
	printf("--- notes\n%s--- state\n%s", k->left->notes, k->left->state);
	printf("--- stderr\n%s--- stdout\n%s--- report\n%s--- base\n%s--- workspace\n%s--- git\n%s",
		k->left->messages, k->left->output, k->left->report, k->left->base,
		k->left->workspace, k->left->git);
	for (unsigned i = 0; i < k->result.process_count; i++)
		printf("--- process %s: %s, %u calls, wait status %#x\n",
			k->result.processes[i].path, kind_names[k->result.processes[i].kind],
			k->result.processes[i].count, (unsigned)k->result.processes[i].status);
}

static int try_point(struct worker *k, const struct plan_point *p, unsigned char *ret_outcome)
{
	char why[1600] = "";
	int r = run_once(k, &p->point);

	if (r < 0)
		return r;
	if (k->o->only_point)
		show_all(k);
	enum outcome outcome = (k->o->live ? live_verdict : verdict)(
		&k->world, &p->point, &k->result, k->left, &k->good, why, sizeof(why));
	if (outcome == OUTCOME_VIOLATION)
		tell(k, p, why);
	*ret_outcome = (unsigned char)outcome;
	return world_clean(&k->world);
}

static _Noreturn void work(const struct options *o, unsigned number,
	const struct plan_point *points, unsigned count, struct shared *shared)
{
	struct worker k;
	char name[16];

	(void)snprintf(name, sizeof(name), "w%u", number);
	int r = worker_make(&k, o, name);
	if (r >= 0)
		r = make_reference(&k);
	for (unsigned i = number; i < count && r >= 0; i += o->workers)
		r = try_point(&k, &points[i], &shared->outcomes[i]);
	if (r < 0)
		(void)fprintf(stderr, "inject: worker %u: %s\n", number, strerror(-r));
	shared->broken[number] = r < 0;
	_exit(r < 0);
}

static unsigned print_outcomes(
	const struct plan_point *points, unsigned count, const struct shared *shared)
{
	unsigned table[KIND_COUNT][OUTCOME_COUNT] = { 0 }, violations = 0;

	for (unsigned i = 0; i < count; i++)
		table[points[i].kind][shared->outcomes[i]]++;
	printf("%-10s%8s", "process", "points");
	for (int o = 0; o < OUTCOME_COUNT; o++)
		printf("%12s", outcome_names[o]);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		unsigned sum = 0;

		for (int o = 0; o < OUTCOME_COUNT; o++)
			sum += table[kind][o];
		if (!sum)
			continue;
		printf("\n%-10s%8u", kind_names[kind], sum);
		for (int o = 0; o < OUTCOME_COUNT; o++)
			printf("%12u", table[kind][o]);
		violations += table[kind][OUTCOME_VIOLATION];
	}
	printf("\npoints: %u, violations: %u\n", count, violations);
	return violations;
}

/* Some are not met, since two runs are not quite the same; where nearly all are not, it is the driver that misses them. */
static bool misses(unsigned count, const struct shared *shared)
{
	unsigned unreached = 0;

	for (unsigned i = 0; i < count; i++)
		unreached += shared->outcomes[i] == OUTCOME_UNREACHED;
	if (unreached <= count / 4 * 3)
		return false;
	(void)fprintf(stderr, "inject: %u of %u points were not met\n", unreached, count);
	return true;
}

static int run_all(const struct options *o, const struct plan_point *points, unsigned count)
{
	struct shared *shared = need(mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	bool broken = false;

	memset(shared->outcomes, OUTCOME_UNREACHED, sizeof(shared->outcomes));
	(void)fflush(stdout);
	for (unsigned i = 0; i < o->workers; i++) {
		pid_t pid = fork();

		if (pid == 0)
			work(o, i, points, count, shared);
		if (pid < 0)
			return CANNOT;
	}
	while (wait(NULL) > 0)
		;
	for (unsigned i = 0; i < o->workers; i++)
		broken = broken || shared->broken[i];
	unsigned violations = print_outcomes(points, count, shared);
	return broken || misses(count, shared) ? CANNOT : violations ? 1 : 0;
}

/* --- the command line ----------------------------------------------------------------------- */

static bool read_errors(struct options *o, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ","), i = 0,
		       n = sizeof(error_names) / sizeof(error_names[0]);

		while (i < n &&
			(strlen(error_names[i].name) != length ||
				strncmp(error_names[i].name, list, length) != 0))
			i++;
		if (i == n || o->error_count == ERRORS_MAX)
			return false;
		o->errors[o->error_count++] = error_names[i].number;
		list += length + (list[length] == ',');
	}
	return true;
}

static bool read_options(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){ .workers = 2, .protected_name = "" };
	while ((c = getopt(argc, argv, "+j:e:kro:p:a:gln:")) >= 0) {
		if (c == 'j')
			o->workers = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'e' && !read_errors(o, optarg))
			return false;
		else if (c == 'o')
			o->only_role = optarg;
		else if (c == 'p')
			o->only_point = optarg;
		else if (c == 'a')
			o->protected_name = optarg;
		else if (c == '?')
			return false;
		else if (c == 'n')
			o->most = (unsigned)strtoul(optarg, NULL, 10);
		o->kill = o->kill || c == 'k';
		o->live = o->live || c == 'l';
		o->git = o->git || c == 'g';
		o->in_turn = o->in_turn || c == 'r';
	}
	if (argc - optind < 3 || !o->workers || o->workers > WORKERS_MAX ||
		o->kill == (o->error_count > 0) || (o->git && o->protected_name[0]))
		return false;
	if (o->git)
		o->protected_name = WORLD_HOOKS;
	o->root = argv[optind];
	o->carrel = argv[optind + 1];
	o->marker = argv[optind + 2];
	o->settings = (const char *const *)argv + optind + 3;
	/* The runs start in other directories. */
	return o->root[0] == '/' && o->carrel[0] == '/';
}

int main(int argc, char **argv)
{
	struct options o;
	struct worker first;

	if (argc > 1 && !strcmp(argv[1], "--scenario"))
		return live_scenario(argc - 2, argv + 2);
	if (!read_options(&o, argc, argv)) {
		(void)fputs(
			"usage: inject [-j N] -e ERRNO,...|-k [-r] [-o ROLE] [-p PATH:INDEX] [-a NAME|-g] [-l] [-n COUNT] "
			"DIRECTORY CARREL MARKER [SETTING...]\n",
			stderr);
		return CANNOT;
	}
	struct plan_point *points = need(calloc(POINTS_MAX, sizeof(*points)));
	(void)umask(022);
	o.by_site = site_works();
	int r = worker_make(&first, &o, "first");
	if (r >= 0)
		r = make_reference(&first);
	if (r == -EPERM || r == -EACCES) {
		printf("ptrace is refused on this machine\n");
		return SKIPPED;
	}
	if (r < 0) {
		(void)fprintf(stderr, "inject: the first run: %s\n", strerror(-r));
		return CANNOT;
	}
	print_calls(&first.result);
	unsigned count = thin_out(points, add_points(&o, &first.result, points), o.most);
	if (!count) {
		(void)fputs("inject: there is no such point\n", stderr);
		return CANNOT;
	}
	return run_all(&o, points, count);
}
