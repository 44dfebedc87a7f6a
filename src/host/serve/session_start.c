/*
 * session_start.c - see session_start.h.
 *
 * Runs in: the launcher, then S. The order is that of a `run`: options -> launch -> policy -> facts
 * -> plan -> session -> apply -> serve -> close -> report.
 */
#include "host/serve/session_start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "host/explain/explain.h"
#include "host/explain/learn_file.h"
#include "host/launch/caller.h"
#include "host/launch/finish.h"
#include "host/launch/launch.h"
#include "host/launch/limits.h"
#include "host/launch/notes.h"
#include "host/launch/prepare.h"
#include "host/process/signals.h"
#include "host/report/verbose.h"
#include "host/serve/serve.h"
#include "host/serve/session_note.h"
#include "host/serve/session_show.h"
#include "host/session/manifest.h"
#include "host/session/state.h"
#include "host/session/sweeper.h"

enum { LOG_MAX = 32768 };
enum { FLAG_JSON, FLAG_FOREGROUND, FLAG_DIE_WITH, FLAG_COUNT };

struct start {
	struct prepared *p;
	struct policy_verb_flag flags[FLAG_COUNT];
	struct session session;
	struct launch launch;
	struct signals signals;
	struct state state;
	struct outcome outcome;
	struct limits limits;
	struct serve_outcome served;
	struct report report;
	struct report_file report_file;
	struct explain explain;
	struct learn_file learn;
	struct error error;
	bool has_session, listening;
	int listener, die_with;
	int said; /* the pipe to the process that waits for this one, or -1 */
	int log;  /* what would go to stderr once nobody is there to read it, or -1 */
};

/* --- what is said ---------------------------------------------------------------------------- */

/* Closes everything of the caller: its terminal, and pipes that somebody reads to the end, under
 * whatever number. Our own descriptors are close-on-exec, inherited ones are not. */
static void close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		uint64_t fd = 0;

		if (text_parse_count(entry->d_name, &fd) == 0 && fd > 2 && fd < INT32_MAX &&
			fcntl((int)fd, F_GETFD) == 0)
			(void)close((int)fd);
	}
	if (dir)
		(void)closedir(dir);
}

static void leave_caller(struct start *s)
{
	close_inherited();
	autofd int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	if (null < 0)
		return;
	/* Where it fails the caller's descriptors stay open, which is only a nuisance. */
	for (int fd = 0; fd < 3; fd++)
		(void)!dup3(fd == 2 && s->log >= 0 ? s->log : null, fd, 0);
}

/* Every wall stands: report that to the waiting process, and go on in the background. */
static void report_ready(void *context)
{
	struct start *s = context;
	const struct facts *f = &s->p->facts;
	unsigned char status = 0;

	/* The session exists whether or not its description can be written. */
	(void)!(s->flags[FLAG_JSON].given ? session_show_json(&s->p->plan, &s->launch.egress)
					  : session_show_text(f, &s->launch.egress));
	notes_work_tree(s->p, NULL);
	notes_presets(s->p);
	sweeper_start(s->p->records, session_id(f->session_name));
	if (s->said < 0)
		return;
	leave_caller(s);
	int r = fd_write_all(s->said, &status, 1);
	fd_close(&s->said);
	/* If the starter does not learn that the session exists, nobody would end it. */
	if (r < 0)
		(void)kill(getpid(), SIGTERM);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int open_parent(struct start *s)
{
	const struct policy_verb_flag *flag = &s->flags[FLAG_DIE_WITH];
	uint64_t pid = 0;

	if (!flag->given)
		return 0;
	if (text_parse_count(flag->value, &pid) < 0 || pid > INT32_MAX)
		return error_set(&s->error, ERROR_USAGE, "options", 0, flag->value,
			"--die-with needs the number of a process");
	long fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (fd < 0)
		return error_set(&s->error, ERROR_USAGE, "options", errno, flag->value,
			"the process of --die-with does not exist");
	s->die_with = (int)fd;
	return 0;
}

/* A descriptor goes to one command, not to a session. */
static int refuse_pass(const struct pass_rule *rule, struct error *e)
{
	char on[256];

	policy_format_source(&rule->source, "pass-fd", on, sizeof(on));
	int r = error_set(e, ERROR_USAGE, "options", 0, on,
		"a live session is given no descriptors: each of its commands is");
	error_hint(
		e, "start it without, then: carrel exec --pass-fd %s -- COMMAND", rule->word);
	return r;
}

static int options_to_plan(struct start *s, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	const struct policy *policy = &s->p->policy;
	struct identity identity;
	struct error *e = &s->error;
	int r = identity_choose(&identity, e);

	if (r < 0)
		return r;
	r = launch_begin(&s->launch, &s->p->arena, &identity, e);
	if (r < 0)
		return r;
	r = prepare_with(s->p, &identity, PREPARE_PLAN, argc, argv, first, environment,
		s->flags, FLAG_COUNT, e);
	if (r < 0 || s->p->help)
		return r;
	if (s->p->argv && s->p->argv[0]) {
		r = error_set(e, ERROR_USAGE, "options", 0, s->p->argv[0],
			"`carrel session start` takes no command");
		error_hint(e, "start the session, then: carrel exec -s ID -- COMMAND");
		return r;
	}
	if (policy->pass_count)
		return refuse_pass(&policy->passes[0], e);
	r = policy->report.value ? prepare_report(s->p, &s->report_file, e) : 0;
	if (r < 0)
		return r;
	r = policy->learn.value
		? learn_file_open(policy->learn.value, &s->p->facts, &s->learn, e)
		: 0;
	if (r < 0)
		return r;
	r = launch_egress(&s->launch, policy, &s->p->facts, e);
	return r < 0 ? r : open_parent(s);
}

static int listen_to_clients(struct start *s)
{
	const struct facts *facts = s->p->plan.facts;
	const char *id = session_id(facts->session_name);
	char record[STATE_PATH_MAX];
	int length = snprintf(record, sizeof(record), "%s/sessions/%s", facts->state_dir, id);

	if (length >= (int)sizeof(record))
		return error_set(&s->error, ERROR_STATE, "session", ERROR_OWN(ENAMETOOLONG),
			facts->state_dir, "the state directory's path is too long");
	s->listener = state_listen(&s->state, id, record, &s->error);
	s->listening = s->listener >= 0;
	return s->listening ? 0 : s->listener;
}

static int begin_session(struct start *s, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	const struct plan *plan = &s->p->plan;
	struct error *e = &s->error;
	char *block;
	size_t block_size;
	int r = signals_block(&s->signals);

	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "launch", -r, NULL, "cannot block signals");
	caller_block(argc, argv, environment, &block, &block_size);
	/* Make the record first: it holds the note by which a sweep finds the groups. */
	r = session_create(&s->session, s->p->records, plan, e);
	if (r < 0)
		return r;
	s->has_session = true;
	r = limits_begin(&s->limits, plan, s->session.record, true, e);
	if (r < 0)
		return r;
	limits_fill_launch(&s->limits, &s->launch);
	r = explain_begin(&s->explain, plan, argv + first, (size_t)(s->p->next - first), e);
	s->launch.explain = s->explain.plan ? &s->explain : NULL;
	if (r < 0)
		return r;
	r = launch_init(&s->launch, plan, false, block, block_size, e);
	if (r < 0)
		return r;
	r = limits_enter(&s->limits, s->launch.init, e);
	if (r < 0)
		return r;
	r = launch_session(&s->launch, e);
	if (r < 0)
		return r;
	verbose_report(plan);
	r = manifest_write(s->session.record, plan, s->launch.init, e);
	if (r < 0)
		return r;
	r = session_note(s->session.record, plan, s->explain.plan != NULL, e);
	return r < 0 ? r : listen_to_clients(s);
}

static int serve_session(struct start *s)
{
	const struct policy *policy = &s->p->policy;
	const struct serve_settings settings = {
		.listener = s->listener,
		.die_with = s->die_with,
		.session_dir = s->session.dir,
		.limits = &s->limits,
		.lifetime_ms = (int64_t)policy->lifetime_ms.value,
		.idle_ms = (int64_t)policy->idle_timeout_ms.value,
		.ready = report_ready,
		.context = s,
	};
	int r = serve(&s->p->plan, &s->launch, &s->signals, &settings, &s->served, &s->error);
	s->outcome.ready = s->served.ready;
	s->outcome.confined = s->served.confined;
	s->outcome.breached = s->served.breached;
	s->outcome.unwatched = s->served.unwatched;
	s->outcome.op = s->served.op;
	s->outcome.cover = s->served.cover;
	s->outcome.watch = s->served.watch;
	s->outcome.errnum = s->served.errnum;
	return r;
}

/* --- the end --------------------------------------------------------------------------------- */

/* Send what was reported since stderr was closed to the clients that asked for the end. */
static void farewell(struct start *s)
{
	char *text = s->log >= 0 ? malloc(LOG_MAX + 1) : NULL;
	ssize_t n = text ? pread(s->log, text, LOG_MAX, 0) : 0;

	if (text)
		text[n > 0 ? n : 0] = '\0';
	serve_farewell(
		&s->served, text ? text : "", s->error.code != ERROR_NONE ? &s->error : NULL);
	free(text);
}

static int finish_start(struct start *s, int status)
{
	s->session.memory = take_fd(&s->launch.scratch);
	struct finish f = {
		.prepared = s->p,
		.live = true,
		.session = s->has_session ? &s->session : NULL,
		.outcome = &s->outcome,
		.signals = &s->signals,
		.limits = &s->limits,
		.egress = &s->launch.egress,
		.report = &s->report,
		.report_file = &s->report_file,
		.explain = &s->explain,
		.learn = &s->learn,
		.error = &s->error,
		.status = status,
	};

	/* Clients cannot find the session any more before its directory is removed. */
	if (s->listening)
		state_forget(&s->state, session_id(s->p->facts.session_name));
	fd_close(&s->listener);
	status = finish_session(&f);
	launch_kill(&s->launch);
	explain_end(&s->explain);
	learn_file_close(&s->learn);
	if (s->error.code != ERROR_NONE)
		error_report(&s->error);
	farewell(s);
	state_close(&s->state);
	prepare_free(s->p);
	return status;
}

static int plan_session(struct start *s, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	/* The directory of sockets is made before the plan, which covers it. */
	int r = state_open(&s->state, environment, true, &s->error);

	return r < 0 ? r : options_to_plan(s, argc, argv, first, environment);
}

static int start_and_serve(struct start *s, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	int r = plan_session(s, argc, argv, first, environment);

	report_init(&s->report, s->p->argv ? s->p->argv : argv + argc);
	if (r >= 0)
		r = begin_session(s, argc, argv, first, environment);
	if (r >= 0)
		r = serve_session(s);
	else
		launch_kill(&s->launch);
	egress_end(&s->launch.egress);
	limits_settle(&s->limits, &s->outcome, &s->error);
	return finish_start(s,
		r < 0 ? STATUS_CARREL : 0); /* the signals' descriptor goes with the process */
}

static int supervise_in_this_process(
	int argc, const char *const *argv, int first, const char *const *environment, int said)
{
	struct start *s = calloc(1, sizeof(*s));
	const struct error no_memory = {
		.code = ERROR_LIMIT, .errnum = ENOMEM, .op = -1, .what = "cannot start"
	};

	if (!s) {
		error_report(&no_memory);
		return STATUS_CARREL;
	}
	s->launch = (struct launch){ .pidfd = -1,
		.channel = -1,
		.scratch = -1,
		.egress = EGRESS_NONE,
		.live = true,
		.views = { [0 ... VIEW_COUNT - 1] = -1 } };
	s->session = SESSION_NONE;
	s->explain = EXPLAIN_NONE;
	s->learn.dir = -1;
	s->signals.fd = s->listener = s->die_with = s->state.dir = s->log = -1;
	s->outcome.op = -1;
	limits_init(&s->limits);
	s->said = said;
	s->flags[FLAG_JSON] = (struct policy_verb_flag){ .name = "json" };
	s->flags[FLAG_FOREGROUND] = (struct policy_verb_flag){ .name = "foreground" };
	s->flags[FLAG_DIE_WITH] =
		(struct policy_verb_flag){ .name = "die-with", .placeholder = "PID" };
	if (said >= 0)
		s->log = memfd_create("carrel-log", MFD_CLOEXEC);
	int status = STATUS_CARREL;
	if (prepare_begin(&s->p, &s->error) < 0)
		error_report(&s->error);
	else {
		s->p->live = true;
		status = start_and_serve(s, argc, argv, first, environment);
	}
	free(s);
	return status;
}

/* --- background ------------------------------------------------------------------------------ */

static int say_failed(enum error_code code, const char *what, int errnum)
{
	struct error e = { 0 };
	(void)error_set(&e, code, "launch", errnum, NULL, "%s", what);

	error_report(&e);
	return STATUS_CARREL;
}

/* The supervisor has reported on stderr what went wrong, unless it was killed or ended well. */
static int wait_for_word(int fd, pid_t pid)
{
	unsigned char status;
	int end = 0;
	ssize_t n;

	do
		n = read(fd, &status, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return status;
	if (n < 0)
		return say_failed(
			ERROR_PROTOCOL, "it is not known whether the session started", errno);
	if (waitpid(pid, &end, 0) != pid || !WIFEXITED(end) || WEXITSTATUS(end) == 0)
		return say_failed(ERROR_PROTOCOL,
			"the session ended before it reported that it had started", 0);
	return STATUS_CARREL;
}

static int in_background(
	int argc, const char *const *argv, int first, const char *const *environment)
{
	int said[2];

	if (pipe2(said, O_CLOEXEC) < 0)
		return say_failed(ERROR_LIMIT, "cannot start the session", errno);
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(said[0]);
		(void)setsid(); /* a child is no leader: it cannot fail */
		_exit(supervise_in_this_process(argc, argv, first, environment, said[1]));
	}
	(void)close(said[1]);
	int status = pid < 0 ? say_failed(ERROR_LIMIT, "cannot fork", errno)
			     : wait_for_word(said[0], pid);
	(void)close(said[0]);
	return status;
}

static int show_help(void)
{
	static const char usage[] =
		"usage: carrel session start [SETTINGS] [--json] [--foreground] [--die-with PID]\n\n"
		"Sets a session up and leaves it running: carrel exec runs commands in it, and\n"
		"carrel session end ends it. It ends by itself after idle-timeout or lifetime, or\n"
		"when the process PID ends. The settings are those of carrel run.\n";

	return fd_write_all(STDOUT_FILENO, usage, sizeof(usage) - 1) < 0 ? STATUS_CARREL : 0;
}

static bool has_word(int argc, const char *const *argv, int first, const char *word)
{
	for (int i = first; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], word))
			return true;
	return false;
}

int session_start_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	(void)closed;
	if (has_word(argc, argv, first, "--help") || has_word(argc, argv, first, "-h"))
		return show_help();
	if (has_word(argc, argv, first, "--foreground"))
		return supervise_in_this_process(argc, argv, first, environment, -1);
	return in_background(argc, argv, first, environment);
}
