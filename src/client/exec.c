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
#include "client/exec_explain.h"
#include "client/exec_notes.h"
#include "client/exec_report.h"
#include "client/execution.h"
#include "client/options.h"
#include "client/path.h"
#include "host/facts/facts.h"
#include "host/promote/promote_guard.h"
#include "host/report/output.h"
#include "host/report/verbose.h"
#include "plan/policy.h"
#include "plan/settings.h"

enum { GUARD_ARENA_SIZE = 128 << 20 }; /* address space, as a note may need it */

/* The options of exec besides the settings that one execution can have. */
enum option {
	OPTION_SESSION,
	OPTION_COMMAND,
	OPTION_DETACH,
	OPTION_NAME,
	OPTION_STOP,
	OPTION_COUNT,
};

static const char usage[] = "carrel exec [-s ID] [OPTIONS] -- COMMAND [ARGUMENT ...]";

static const char help[] =
	"usage: carrel exec [-s ID] [OPTIONS] -- COMMAND [ARGUMENT ...]\n"
	"       carrel exec [-s ID] [OPTIONS] -c LINE [WORD ...]\n"
	"       carrel exec [-s ID] --stop NAME\n\n"
	"Runs COMMAND in a live session, with the caller's own standard descriptors.\n\n"
	"  -s, --session ID        the session, or the beginning of its id; default: $CARREL_SESSION\n"
	"  -c, --command LINE      the command is /bin/sh -c LINE\n"
	"  --detach                leave it running in the session, as a service\n"
	"  --name NAME             the service's name\n"
	"  --stop NAME             end that service\n\n"
	"For this command alone, and never looser than the session has it:\n";

struct exec {
	struct client_session session;
	struct client_option options[OPTION_COUNT + SETTING_COUNT];
	size_t option_count;
	const struct client_option
		*given[SETTING_COUNT];  /* among the options; NULL: not of an execution */
	uint64_t values[SETTING_COUNT]; /* numbers, and words by their index */
	struct execution_request request;
	struct execution_end end;
	struct explain refused;
	bool explained;
	struct report_file report;
	struct error error;
	char *cwd;
	const char **passed; /* the words of --pass-fd */
	struct execution running;
	const char *env
		[]; /* NAME=VALUE; room for as many as there are arguments, and a NULL; then `passed` */
};

static void init_options(struct exec *x)
{
	const struct client_option own[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_COMMAND] = { .name = "command", .letter = 'c', .placeholder = "LINE" },
		[OPTION_DETACH] = { .name = "detach" },
		[OPTION_NAME] = { .name = "name", .placeholder = "NAME" },
		[OPTION_STOP] = { .name = "stop", .placeholder = "NAME" },
	};

	memcpy(x->options, own, sizeof(own));
	x->option_count = OPTION_COUNT;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];
		struct client_option *o = &x->options[x->option_count];

		if (!s->per_execution)
			continue;
		*o = (struct client_option){ .name = s->name,
			.placeholder = s->placeholder,
			.values = i == SETTING_ENV     ? x->env
				: i == SETTING_PASS_FD ? x->passed
						       : NULL };
		x->given[i] = o;
		x->option_count++;
	}
}

static bool is_given(const struct exec *x, enum setting_id id)
{
	return x->given[id]->count > 0;
}

/* A caller that passes on a whole environment names these, too. Leave them out if they name this session and no other. */
static bool is_set_anyway(
	const struct exec *x, const char *variable, const char *const *environment)
{
	const char *session = x->options[OPTION_SESSION].value;

	if (!session)
		session = facts_env(environment, "CARREL_SESSION");
	if (!strncmp(variable, "PWD=", 4))
		return x->cwd && !strcmp(variable + 4, x->cwd);
	if (!strncmp(variable, "CARREL_SESSION=", 15))
		return session && !strcmp(variable + 15, session);
	return policy_own_variable(variable, strlen(variable));
}

/* Find the entry for the variable of @entry: the last value overrides the earlier ones. */
static unsigned find_variable(const char *const *env, unsigned count, const char *entry)
{
	size_t length = strcspn(entry, "=") + 1;

	for (unsigned i = 0; i < count; i++)
		if (!strncmp(env[i], entry, length))
			return i;
	return count;
}

/* A name alone takes the caller's value; a name that the caller does not have is passed over. */
static int read_env(struct exec *x, const char *const *environment)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < x->given[SETTING_ENV]->count; i++) {
		const char *word = x->env[i];
		const char *value = strchr(word, '=') ? NULL : facts_env(environment, word);

		if (is_set_anyway(x, word, environment)) {
			if (!is_given(x, SETTING_QUIET))
				verbose_passed_over(word);
			continue;
		}
		int r = policy_check_variable(x->given[SETTING_ENV]->name, word, &x->error);
		if (r < 0)
			return r;
		if (!strchr(word, '=') && !value)
			continue;
		/* The whole entry of the caller: the name stands before the value. */
		const char *entry = value ? value - strlen(word) - 1 : word;
		unsigned at = find_variable(x->env, kept, entry);
		x->env[at] = entry;
		kept += at == kept;
	}
	x->env[kept] = NULL;
	x->request.envp = x->env;
	return 0;
}

/* A relative path starts from the caller's own directory, as everywhere on a command line. */
static int read_cwd(struct exec *x)
{
	const char *word = x->given[SETTING_CWD]->value;

	x->request.cwd = x->cwd = word ? client_absolute(word, &x->error) : NULL;
	return word && !x->cwd ? -EINVAL : 0;
}

/* Read a number, or one of the setting's words; of ranked words only the tightest, which loosens no session. */
static int read_setting(struct exec *x, const struct setting *s)
{
	const char *word = x->given[s->id]->value, *tightest = settings_tightest(s);
	int r = policy_read_value(s, word, &x->values[s->id], &x->error);

	if (r < 0)
		return r;
	if (tightest && strcmp(word, tightest) != 0)
		return error_set(&x->error, ERROR_LOOSENS, "options", 0, word,
			"an execution may only be tighter than its session: --%s %s", s->name,
			tightest);
	if (s->limit)
		x->request.head.limits[s->limit - 1] = x->values[s->id];
	return 0;
}

static int read_settings(struct exec *x)
{
	static const enum tty_mode ttys[] = { TTY_AUTO, TTY_YES, TTY_NO };
	int r = 0;

	for (size_t i = 0; i < SETTING_COUNT && r >= 0; i++) {
		const struct setting *s = &settings_table[i];

		if (x->given[i] && x->given[i]->count && settings_is_value(s))
			r = read_setting(x, s);
	}
	x->request.tty = ttys[x->values[SETTING_TTY]];
	if (is_given(x, SETTING_WORKSPACE_MODE))
		x->request.head.flags |= REQUEST_WORKSPACE_RO;
	if (is_given(x, SETTING_NET))
		x->request.head.flags |= REQUEST_NET_NONE;
	if (r >= 0)
		r = read_cwd(x);
	return r < 0 ? r
		     : passed_of_words(&x->request.passed, x->passed,
			       x->given[SETTING_PASS_FD]->count,
			       x->given[SETTING_REPORT]->value, &x->error);
}

/* An execution may ask for less than the session's policy has. A service has no output. */
static int read_output(struct exec *x)
{
	static const enum setting_id bounded[] = { SETTING_OUTPUT_BUDGET, SETTING_OUTPUT_MAX };
	const struct client_option *merge = x->given[SETTING_MERGE_OUTPUT];
	struct stdio_output *out = &x->request.output;
	uint64_t *const bounds[] = { &out->budget, &out->max_bytes };

	*out = (struct stdio_output){ .budget = BUDGET_NONE, .max_bytes = UINT64_MAX };
	if (x->request.head.flags & REQUEST_DETACH)
		return 0;
	int r = client_output(&x->session, out, &x->error);
	for (unsigned i = 0; r >= 0 && i < 2; i++) {
		uint64_t requested = x->values[bounded[i]];

		if (is_given(x, bounded[i]) && requested > *bounds[i])
			r = error_set(&x->error, ERROR_LOOSENS, "session", 0,
				settings_table[bounded[i]].name,
				"an execution may tighten the session's policy and not loosen it");
		else if (is_given(x, bounded[i]))
			*bounds[i] = requested;
	}
	out->merge = !merge->off && (out->merge || merge->count > 0);
	return r < 0 ? r : 0;
}

/* A service reads from /dev/null, and what it writes goes to its log. */
static int read_detach(struct exec *x)
{
	static const enum setting_id of_outputs[] = { SETTING_OUTPUT_BUDGET, SETTING_OUTPUT_MAX,
		SETTING_MERGE_OUTPUT };

	if (!x->options[OPTION_DETACH].count)
		return x->request.name
			? error_set(&x->error, ERROR_USAGE, "options", 0, "--name",
				  "only a service has a name: --detach is missing")
			: 0;
	for (unsigned i = 0; i < sizeof(of_outputs) / sizeof(of_outputs[0]); i++)
		if (is_given(x, of_outputs[i]))
			return error_set(&x->error, ERROR_USAGE, "options", 0,
				settings_table[of_outputs[i]].name,
				"what a service (--detach) writes goes to its log");
	if (x->request.tty == TTY_YES)
		return error_set(&x->error, ERROR_USAGE, "options", 0, "tty",
			"a service (--detach) has no terminal");
	x->request.head.flags |= REQUEST_DETACH | REQUEST_LOG;
	x->request.tty = TTY_NO;
	return 0;
}

/* With -c LINE, a shell and the line come before the rest. The memory is not freed: the program ends with it. */
static int choose_words(struct exec *x, const char *const *words)
{
	const char *line = x->options[OPTION_COMMAND].value;
	size_t count = 0;

	while (words[count])
		count++;
	const char **all = line ? calloc(count + 4, sizeof(*all)) : NULL;
	x->request.argv = words;
	if (!line)
		return 0;
	if (!all)
		return error_no_memory(&x->error, "options");
	all[0] = "/bin/sh";
	all[1] = "-c";
	all[2] = line;
	memcpy(all + 3, words, count * sizeof(*all));
	x->request.argv = all;
	return 0;
}

static int read_request(
	struct exec *x, const char *const *words, const char *const *environment)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	x->request.head.umask = mask & 0777;
	x->request.name = x->options[OPTION_NAME].value;
	int r = choose_words(x, words);
	if (r >= 0)
		r = read_settings(x);
	if (r < 0)
		return r;
	r = read_env(x, environment);
	if (r >= 0)
		r = read_detach(x);
	if (r < 0 || x->request.argv[0])
		return r;
	r = error_set(&x->error, ERROR_USAGE, "options", 0, NULL, "there is no command to run");
	error_hint(&x->error, "%s", usage);
	return r;
}

/* Read --stop, which goes with nothing else. */
static int read_stop(struct exec *x, const char *word)
{
	int r = 0;

	for (size_t i = 0; i < x->option_count && !word; i++)
		if (i != OPTION_SESSION && i != OPTION_STOP &&
			&x->options[i] != x->given[SETTING_QUIET] && x->options[i].count)
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
		.refused = x->explained ? &x->refused : NULL,
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
	(void)error_no_memory(&e, "session");

	(void)error_report(&e);
	return STATUS_CARREL;
}

/* Tools can write the workspace; the client does not know what else they can write. */
static int open_report(struct exec *x)
{
	const char *target = x->given[SETTING_REPORT]->value;
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
	const struct client_option *explain = x->given[SETTING_EXPLAIN];
	int r = explain->count && !explain->off ? exec_explain_check(&x->session, &x->error)
						: 0;

	/* A report that cannot be opened means that the command is not started. */
	if (r >= 0)
		r = open_report(x);
	if (r >= 0)
		r = execution_run(&x->running, &x->session, &x->request, &x->end, &x->error);
	if (x->end.ended || r >= 0)
		status = execution_status(&x->end, &x->session, &x->request, &x->error);
	if (r < 0 && status == 0)
		status = STATUS_CARREL;
	exec_notes_print(&x->end, is_given(x, SETTING_QUIET));
	if (x->end.ended && !explain->off)
		x->explained = exec_explain(
			&x->refused, &x->session, &x->end, is_given(x, SETTING_QUIET));
	/* A saved output stays as long as the session does. */
	if (x->end.number)
		output_report_faults(&x->running.stdio, is_given(x, SETTING_QUIET), true);
	return write_report(x, status);
}

static void print_service(const struct exec *x)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%u\n", (unsigned)x->end.number);
	/* The service runs, whether somebody reads its number or not. */
	(void)!fd_write_all(STDOUT_FILENO, text, (size_t)n);
}

static int put(void *context, const void *data, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, data, size);
}

static int show_help(void)
{
	int r = put(NULL, help, sizeof(help) - 1);

	if (r >= 0)
		r = settings_print_execution_help(put, NULL);
	return r < 0 ? STATUS_CARREL : 0;
}

static int exec_with(struct exec *x, int argc, const char *const *argv, int first,
	const char *const *environment)
{
	int next = argc;
	int r = options_read(
		argc, argv, first, x->options, x->option_count, usage, &next, &x->error);

	if (r > 0)
		return show_help();
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
	/* One block, which nobody frees: it goes with the program. */
	struct exec *x = calloc(1, sizeof(*x) + 2 * ((size_t)argc + 1) * sizeof(x->env[0]));

	(void)closed;
	if (!x)
		return no_memory();
	x->session = CLIENT_NO_SESSION;
	x->passed = x->env + argc + 1;
	init_options(x);
	int status = exec_with(x, argc, argv, first, environment);
	(void)error_report(&x->error);
	client_close(&x->session);
	return status;
}
