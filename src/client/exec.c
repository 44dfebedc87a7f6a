/*
 * exec.c - see exec.h.
 *
 * Runs in: the client.
 */
#include "client/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "client/exec_report.h"
#include "client/execution.h"
#include "client/options.h"
#include "client/path.h"
#include "host/facts/facts.h"
#include "host/promote/promote_guard.h"
#include "host/report/output.h"
#include "plan/policy.h"

enum { GUARD_ARENA_SIZE = 128 << 20 }; /* address space, as a note may need it */

enum option {
	OPTION_SESSION,
	OPTION_CWD,
	OPTION_ENV,
	OPTION_TTY,
	OPTION_TIMEOUT,
	OPTION_GRACE,
	OPTION_CPU_TIME,
	OPTION_FILE_SIZE,
	OPTION_OPEN_FILES,
	OPTION_MEMORY,
	OPTION_PIDS,
	OPTION_CPUS,
	OPTION_OUTPUT_BUDGET,
	OPTION_OUTPUT_MAX,
	OPTION_MERGE_OUTPUT,
	OPTION_REPORT,
	OPTION_QUIET,
	OPTION_WORKSPACE_MODE,
	OPTION_NET,
	OPTION_DETACH,
	OPTION_NAME,
	OPTION_STOP,
	OPTION_COUNT,
};

static const char usage[] = "carrel exec [-s ID] [OPTIONS] -- COMMAND [ARGUMENT ...]";

static const char help[] =
	"usage: carrel exec [-s ID] [OPTIONS] -- COMMAND [ARGUMENT ...]\n"
	"       carrel exec [-s ID] --stop NAME\n\n"
	"Runs COMMAND in a live session, with the caller's own standard descriptors.\n\n"
	"  -s, --session ID        the session, or the beginning of its id; default: $CARREL_SESSION\n"
	"      --cwd DIR           where the command starts\n"
	"      --env NAME[=VALUE]  a variable for the command; without a value the caller's\n"
	"      --tty auto|yes|no   a terminal of its own; auto: when standard input is one\n"
	"      --timeout DURATION  end the command after that long, with status 124\n"
	"      --grace DURATION    between asking it to end and killing it\n"
	"      --cpu-time DURATION processor time of each process\n"
	"      --file-size SIZE    largest file a process can write\n"
	"      --open-files N      open descriptors of each process\n"
	"      --memory SIZE       memory of the command and what it starts\n"
	"      --pids N            processes and threads of it\n"
	"      --cpus N            processors that it may keep busy, such as 0.5\n"
	"      --output-budget CHARS  show head and tail of longer output; all of it is saved\n"
	"      --output-max SIZE   end the command when stdout or stderr is longer\n"
	"      --merge-output      standard error goes where standard output goes\n"
	"      --report FILE|fd:N  where the JSON report goes\n"
	"      --quiet             no messages but errors\n"
	"      --workspace-mode ro the workspace cannot be written by this command\n"
	"      --net none          no network for this command\n"
	"      --detach            leave it running in the session, as a service\n"
	"      --name NAME         the service's name\n"
	"      --stop NAME         end that service\n";

struct exec {
	struct client_session session;
	struct client_option options[OPTION_COUNT];
	struct execution_request request;
	struct execution_end end;
	struct report_file report;
	uint64_t output_budget, output_max; /* where they are given */
	struct error error;
	char *cwd;
	struct execution running;
	const char *env[]; /* NAME=VALUE; room for as many as there are arguments, and a NULL */
};

static void init_options(struct exec *x, const char **env)
{
	const struct client_option table[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_CWD] = { .name = "cwd", .placeholder = "DIR" },
		[OPTION_ENV] = { .name = "env", .placeholder = "NAME[=VALUE]", .values = env },
		[OPTION_TTY] = { .name = "tty", .placeholder = "auto|yes|no" },
		[OPTION_TIMEOUT] = { .name = "timeout", .placeholder = "DURATION" },
		[OPTION_GRACE] = { .name = "grace", .placeholder = "DURATION" },
		[OPTION_CPU_TIME] = { .name = "cpu-time", .placeholder = "DURATION" },
		[OPTION_FILE_SIZE] = { .name = "file-size", .placeholder = "SIZE" },
		[OPTION_OPEN_FILES] = { .name = "open-files", .placeholder = "N" },
		[OPTION_MEMORY] = { .name = "memory", .placeholder = "SIZE" },
		[OPTION_PIDS] = { .name = "pids", .placeholder = "N" },
		[OPTION_CPUS] = { .name = "cpus", .placeholder = "N" },
		[OPTION_OUTPUT_BUDGET] = { .name = "output-budget", .placeholder = "CHARS" },
		[OPTION_OUTPUT_MAX] = { .name = "output-max", .placeholder = "SIZE" },
		[OPTION_MERGE_OUTPUT] = { .name = "merge-output" },
		[OPTION_REPORT] = { .name = "report", .placeholder = "FILE|fd:N" },
		[OPTION_QUIET] = { .name = "quiet" },
		[OPTION_WORKSPACE_MODE] = { .name = "workspace-mode", .placeholder = "ro" },
		[OPTION_NET] = { .name = "net", .placeholder = "none" },
		[OPTION_DETACH] = { .name = "detach" },
		[OPTION_NAME] = { .name = "name", .placeholder = "NAME" },
		[OPTION_STOP] = { .name = "stop", .placeholder = "NAME" },
	};

	memcpy(x->options, table, sizeof(table));
}

static int read_tty(struct exec *x)
{
	const char *word = x->options[OPTION_TTY].value;

	x->request.tty = TTY_AUTO;
	if (!word || !strcmp(word, "auto"))
		return 0;
	if (strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)
		return error_set(
			&x->error, ERROR_USAGE, "options", 0, word, "--tty is auto, yes or no");
	x->request.tty = word[0] == 'y' ? TTY_YES : TTY_NO;
	return 0;
}

/* A name alone takes the caller's value; one that the caller has not is passed over. */
static int read_env(struct exec *x, const char *const *environment)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < x->options[OPTION_ENV].count; i++) {
		const char *word = x->env[i];
		const char *value = strchr(word, '=') ? NULL : facts_env(environment, word);

		int r = policy_check_variable(x->options[OPTION_ENV].name, word, &x->error);
		if (r < 0)
			return r;
		if (!strchr(word, '=') && !value)
			continue;
		/* The caller's own entry, whole: the name stands in front of the value. */
		x->env[kept++] = value ? value - strlen(word) - 1 : word;
	}
	x->env[kept] = NULL;
	x->request.envp = x->env;
	return 0;
}

/* Relative to the caller's own directory, as everywhere on a command line. */
static int read_cwd(struct exec *x)
{
	const char *word = x->options[OPTION_CWD].value;

	x->cwd = word ? client_absolute(word, &x->error) : NULL;
	x->request.cwd = x->cwd;
	return word && !x->cwd ? -EINVAL : 0;
}

static int read_numbers(struct exec *x)
{
	struct request *h = &x->request.head;
	const struct {
		enum option option;
		uint64_t *value;
	} numbers[] = {
		{ OPTION_TIMEOUT, &h->timeout_ms },
		{ OPTION_GRACE, &h->grace_ms },
		{ OPTION_CPU_TIME, &h->cpu_time_ms },
		{ OPTION_FILE_SIZE, &h->file_size },
		{ OPTION_OPEN_FILES, &h->open_files },
		{ OPTION_MEMORY, &h->memory },
		{ OPTION_PIDS, &h->pids },
		{ OPTION_CPUS, &h->cpus_milli },
		{ OPTION_OUTPUT_BUDGET, &x->output_budget },
		{ OPTION_OUTPUT_MAX, &x->output_max },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		r = options_number(&x->options[numbers[i].option], numbers[i].value, &x->error);
	return r;
}

/* The words of the settings; only the tighter ones can be asked for. */
static int read_view(struct exec *x)
{
	const char *mode = x->options[OPTION_WORKSPACE_MODE].value;
	const char *net = x->options[OPTION_NET].value;

	if ((mode && strcmp(mode, "ro") != 0) || (net && strcmp(net, "none") != 0))
		return error_set(&x->error, ERROR_LOOSENS, "options", 0,
			mode && strcmp(mode, "ro") != 0 ? mode : net,
			"an execution may only be tighter than its session: "
			"--workspace-mode ro, --net none");
	if (mode)
		x->request.head.flags |= REQUEST_WORKSPACE_RO;
	if (net)
		x->request.head.flags |= REQUEST_NET_NONE;
	return 0;
}

/* An execution may ask for less than the session's policy has. A service has no output. */
static int read_output(struct exec *x)
{
	const struct client_option *given[] = { &x->options[OPTION_OUTPUT_BUDGET],
		&x->options[OPTION_OUTPUT_MAX] };
	const uint64_t requested[] = { x->output_budget, x->output_max };
	struct stdio_output *out = &x->request.output;
	uint64_t *const bounds[] = { &out->budget, &out->max_bytes };

	*out = (struct stdio_output){ .budget = BUDGET_NONE, .max_bytes = UINT64_MAX };
	if (x->request.head.flags & REQUEST_DETACH)
		return 0;
	int r = client_output(&x->session, out, &x->error);
	for (unsigned i = 0; r >= 0 && i < 2; i++) {
		if (given[i]->count && requested[i] > *bounds[i])
			r = error_set(&x->error, ERROR_LOOSENS, "session", 0, given[i]->name,
				"an execution may tighten the session's policy and not loosen it");
		else if (given[i]->count)
			*bounds[i] = requested[i];
	}
	out->merge |= x->options[OPTION_MERGE_OUTPUT].count > 0;
	return r < 0 ? r : 0;
}

/* A service: its standard descriptors are /dev/null. */
static int read_detach(struct exec *x)
{
	static const unsigned char of_outputs[] = { OPTION_OUTPUT_BUDGET, OPTION_OUTPUT_MAX,
		OPTION_MERGE_OUTPUT };

	if (!x->options[OPTION_DETACH].count)
		return x->request.name
			? error_set(&x->error, ERROR_USAGE, "options", 0, "--name",
				  "only a service has a name: --detach is missing")
			: 0;
	for (unsigned i = 0; i < sizeof(of_outputs); i++)
		if (x->options[of_outputs[i]].count)
			return error_set(&x->error, ERROR_USAGE, "options", 0,
				x->options[of_outputs[i]].name,
				"a service (--detach) has no output of its own");
	if (x->request.tty == TTY_YES)
		return error_set(&x->error, ERROR_USAGE, "options", 0, "tty",
			"a service (--detach) has no terminal");
	x->request.head.flags |= REQUEST_DETACH;
	x->request.tty = TTY_NO;
	return 0;
}

static int read_request(
	struct exec *x, const char *const *words, const char *const *environment)
{
	mode_t mask = umask(0);
	int r = read_tty(x);

	(void)umask(mask);
	x->request.head.umask = mask & 0777;
	x->request.argv = words;
	x->request.name = x->options[OPTION_NAME].value;
	if (r >= 0)
		r = read_env(x, environment);
	if (r >= 0)
		r = read_cwd(x);
	if (r >= 0)
		r = read_numbers(x);
	if (r >= 0)
		r = read_view(x);
	if (r >= 0)
		r = read_detach(x);
	if (r < 0 || words[0])
		return r;
	r = error_set(&x->error, ERROR_USAGE, "options", 0, NULL, "there is no command to run");
	error_hint(&x->error, "%s", usage);
	return r;
}

/* Nothing else can be asked for at the same time. */
static int read_stop(struct exec *x, const char *word)
{
	int r = 0;

	for (unsigned i = 0; i < OPTION_COUNT && !word; i++)
		if (i != OPTION_SESSION && i != OPTION_STOP && i != OPTION_QUIET &&
			x->options[i].count)
			word = x->options[i].name;
	if (word)
		r = error_set(&x->error, ERROR_USAGE, "options", 0, word,
			"--stop ends a service and takes nothing else");
	return r;
}

static int stop_service(struct exec *x)
{
	const char *name = x->options[OPTION_STOP].value;
	const struct control_record request = { .kind = CONTROL_STOP };
	struct control_message *answer = malloc(sizeof(*answer));
	int r = answer
		? client_ask(&x->session, &request, name, strlen(name) + 1, answer, &x->error)
		: error_no_memory(&x->error, "session");

	free(answer);
	return r < 0 ? STATUS_CARREL : 0;
}

static int write_report(struct exec *x, int status)
{
	const struct exec_report report = {
		.file = &x->report,
		.session = &x->session,
		.execution = &x->running,
		.end = &x->end,
		.argv = x->request.argv,
		.status = status,
		.error = &x->error,
	};

	if (x->report.kind == REPORT_FILE_NONE)
		return status;
	return exec_report_write(&report, x->error.code == ERROR_NONE ? &x->error : NULL);
}

static int no_memory(void)
{
	struct error e = { 0 };
	int r = error_no_memory(&e, "session");

	(void)r; /* told here */
	(void)error_report(&e);
	return STATUS_CARREL;
}

/* Tools can write the workspace; what else they can the client is not told. */
static int open_report(struct exec *x)
{
	const char *target = x->options[OPTION_REPORT].value;
	struct promote_guard guard;
	struct arena arena;

	if (!target)
		return 0;
	int r = arena_init(&arena, GUARD_ARENA_SIZE);
	if (r >= 0) {
		r = promote_guard_read(&guard, &arena, x->session.record);
		if (r >= 0) {
			const struct toolplace place = { &guard.roots[0].path, 1 };

			r = report_open(target, &place, &x->report, &x->error);
		}
		arena_free(&arena);
	}
	return r < 0 && x->error.code == ERROR_NONE
		? error_set(&x->error, ERROR_SESSION, "report", -r, x->session.id,
			  "cannot read where the session's workspace is")
		: r;
}

static int run_execution(struct exec *x)
{
	int status = STATUS_CARREL;

	/* A report that cannot be opened means that the command is not started. */
	int r = open_report(x);
	if (r >= 0)
		r = execution_run(&x->running, &x->session, &x->request, &x->end, &x->error);
	if (x->end.ended || r >= 0)
		status = execution_status(&x->end, &x->session, &x->request, &x->error);
	if (r < 0 && status == 0)
		status = STATUS_CARREL;
	/* What was saved stays as long as the session does. */
	if (x->end.number)
		output_report_faults(
			&x->running.stdio, x->options[OPTION_QUIET].count > 0, true);
	return write_report(x, status);
}

static void print_service(const struct exec *x)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%u\n", (unsigned)x->end.number);
	int r = fd_write_all(STDOUT_FILENO, text, (size_t)n);

	(void)r; /* it runs, whether somebody reads its number or not */
}

static int exec_with(struct exec *x, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	int next = argc;
	int r = options_read(
		argc, argv, first, x->options, OPTION_COUNT, usage, &next, &x->error);

	if (r > 0)
		return fd_write_all(STDOUT_FILENO, help, sizeof(help) - 1) < 0 ? STATUS_CARREL
									       : 0;
	bool stop = x->options[OPTION_STOP].count > 0;
	if (r >= 0)
		r = stop ? read_stop(x, argv[next]) : read_request(x, argv + next, environment);
	if (r >= 0)
		r = client_connect(
			&x->session, x->options[OPTION_SESSION].value, environment, &x->error);
	if (r < 0)
		return STATUS_CARREL;
	if (stop)
		return stop_service(x);
	if (read_output(x) < 0)
		return STATUS_CARREL;
	int status = run_execution(x);
	if (status == 0 && x->options[OPTION_DETACH].count)
		print_service(x);
	return status;
}

int exec_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	/* One block, and not given back: the program ends with it. */
	struct exec *x = calloc(1, sizeof(*x) + ((size_t)argc + 1) * sizeof(x->env[0]));

	(void)closed;
	if (!x)
		return no_memory();
	x->session = CLIENT_NO_SESSION;
	init_options(x, x->env);
	int status = exec_with(x, argc, argv, first, environment);
	(void)error_report(&x->error);
	client_close(&x->session);
	return status;
}
