/*
 * live_verdict.c - the verdicts of live.h.
 *
 * Runs in: the torture driver.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "live.h"
#include "view.h"

enum { STATUS_CARREL = 125, STATUS_SIGNALLED = 256, ABSENT = -2 };

struct live {
	struct world *w;
	const struct trace_point *point;
	const struct trace_result *r;
	struct world_left *left;
	const struct reference *good;
	const struct trace_process *hit;         /* NULL: the point was not reached */
	const struct trace_process *commands[3]; /* [1]: the witness, [2]: the marker */
	int start, exec, witness, end;           /* as noted; ABSENT where it was not begun */
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static bool bad(struct live *l, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)vsnprintf(l->why, l->size, format, list);
	va_end(list);
	return false;
}

static int noted(const struct world_left *left, const char *word)
{
	char key[32];
	const char *at = left->notes;

	(void)snprintf(key, sizeof(key), "%s ", word);
	while (at && strncmp(at, key, strlen(key)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return at ? (int)strtol(at + strlen(key), NULL, 10) : ABSENT;
}

static bool shot(const struct live *l)
{
	return l->hit && !l->point->error;
}

static bool is_hit(const struct live *l, enum trace_kind kind)
{
	return l->hit && l->hit->kind == kind;
}

static bool is_above(const struct trace_process *p, const struct trace_process *command)
{
	return !strncmp(command->path, p->path, strlen(p->path));
}

/* A monitor that no execution has come to; another one stands in for it. */
static bool is_spare(const struct live *l)
{
	return is_hit(l, KIND_MONITOR) && l->commands[1] && l->commands[2] &&
		!is_above(l->hit, l->commands[1]) && !is_above(l->hit, l->commands[2]);
}

static bool is_poll(unsigned call)
{
#ifdef SYS_poll /* not everywhere */
	if (call == SYS_poll)
		return true;
#endif
	return call == SYS_ppoll;
}

/* A monitor whose execution is over and told, and which waits to be dismissed. That it ends is what would come next. */
static bool is_done(const struct live *l)
{
	return is_hit(l, KIND_MONITOR) && l->r->after_command &&
		is_poll(l->hit->calls[l->point->index]);
}

/* Whether the process that was hit is @command's, its monitor's, or one of the clients "0.N". */
static bool hit_is_of(
	const struct live *l, const struct trace_process *command, const char *client)
{
	if (!l->hit)
		return false;
	if (!strcmp(l->hit->path, client))
		return true;
	if (l->hit->kind != KIND_MONITOR && l->hit->kind != KIND_PAYLOAD)
		return false;
	/* One that never was a command: that of what was hit. */
	return !command || is_above(l->hit, command);
}

/* Pids depend on which of two is forked first. */
static void mask_pids(char *text)
{
	char *at = text;

	while ((at = strstr(at, "NSpid:")))
		for (at += strlen("NSpid:"); *at && *at != '\n'; at++)
			if (isdigit((unsigned char)*at) || *at == '\t')
				*at = ' ';
}

/* One digit or two: all blanks are one. */
static bool begins_as(const char *text, const char *whole)
{
	while (*text) {
		if (isblank((unsigned char)*text) && isblank((unsigned char)*whole)) {
			text += strspn(text, " \t");
			whole += strspn(whole, " \t");
			continue;
		}
		if (*text++ != *whole++)
			return false;
	}
	return true;
}

static bool check_walls(struct live *l)
{
	char difference[700];

	mask_pids(l->r->view);
	mask_pids(l->good->view);
	mask_pids(l->left->output);
	mask_pids(l->good->output);
	if (!l->r->view_torn && !begins_as(l->r->view, l->good->view)) {
		view_first_difference(
			l->good->view, l->r->view, difference, sizeof(difference));
		return bad(l, "a command ran with other walls: %s", difference);
	}
	if (!begins_as(l->left->output, l->good->output)) {
		view_first_difference(
			l->good->output, l->left->output, difference, sizeof(difference));
		return bad(l, "the command saw other walls: %s", difference);
	}
	return true;
}

static bool check_client(struct live *l, const char *name, int status, const char *path)
{
	bool own = l->hit && !strcmp(l->hit->path, path);

	if (status == ABSENT || status == 0)
		return true;
	if (own && (shot(l) || status > STATUS_SIGNALLED))
		return true; /* killed, or it died of the failure: it has said nothing wrong */
	if (status < 0 || status > STATUS_SIGNALLED)
		return bad(l, "%s crashed: %d", name, status);
	if (own &&
		(l->hit->calls[l->point->index] == SYS_write ||
			l->hit->calls[l->point->index] == SYS_writev))
		return true; /* the words are what failed */
	return strstr(l->left->messages, "carrel: ") ||
		bad(l, "%s %d without a word", name, status);
}

static bool check_execution(struct live *l)
{
	const struct trace_process *marker = l->commands[2];
	bool ended_well =
		marker && WIFEXITED(marker->status) && WEXITSTATUS(marker->status) == 0;

	if (l->exec == ABSENT)
		return true;
	if (l->exec == 0 && !ended_well)
		return bad(l, "status 0, and the command did not run to its end");
	if (l->exec == 0 && strlen(l->left->output) < strlen(l->good->output))
		return bad(l, "status 0, and the output is not whole");
	if (l->exec > 0 && l->exec < STATUS_CARREL)
		return bad(l, "status %d, which the command did not give", l->exec);
	if ((l->exec == 126 || l->exec == 127) && marker)
		return bad(l, "status %d, and the command ran", l->exec);
	if (l->exec > 128 && l->exec < STATUS_SIGNALLED && !marker)
		return bad(l, "status %d, and the command did not run", l->exec);
	return true;
}

/* What does not concern all of the session must not concern another execution. */
static bool check_others(struct live *l)
{
	bool unharmed = strstr(l->left->notes, "witness 0 unharmed") != NULL;

	if (l->hit &&
		(l->hit->kind == KIND_SUPERVISOR || l->hit->kind == KIND_INIT ||
			l->hit->kind == KIND_HELPER || l->hit->kind == KIND_READER))
		return true;
	if (l->witness != ABSENT && !unharmed && !hit_is_of(l, l->commands[1], "0.2"))
		return bad(l, "another execution was harmed");
	if (l->exec > 0 && !hit_is_of(l, l->commands[2], "0.3") && l->commands[2])
		return bad(
			l, "the marker was harmed by what befell another: status %d", l->exec);
	return true;
}

/* The supervisor that quarantines: where it, or a client, was hit gc comes after it, and the next start. */
static bool check_git(struct live *l)
{
	bool reads = is_hit(l, KIND_READER) || is_hit(l, KIND_HELPER);
	bool standing = l->hit && !reads && (l->exec != 0 || l->end != 0);

	if (!l->w->git)
		return true;
	if (!verdict_git(l->left, l->good, standing, l->why, l->size))
		return false;
	return l->exec != 0 || l->end != 0 || l->left->quarantined ||
		bad(l, "what the command left is neither there nor in quarantine");
}

static bool check_left(struct live *l)
{
	bool well = l->start == 0 && l->exec == 0 && l->witness == 0 && l->end == 0;

	if (l->r->survivors)
		return bad(l, "%u processes outlived the session: %s", l->r->survivors,
			l->r->survivor);
	if (l->left->mounted)
		return bad(l, "a mount is left");
	if (strcmp(l->left->workspace, l->good->workspace) != 0 && l->exec == 0)
		return bad(l, "the workspace is not as it was: %.200s", l->left->workspace);
	if (!check_git(l))
		return false;
	if (strstr(l->left->notes, "stray ") && !shot(l) && !is_hit(l, KIND_CLIENT))
		return bad(l, "the start failed, and its session lives");
	if (well && strstr(l->left->notes, "left "))
		return bad(l, "the end succeeded, and the session lives");
	if (well && (l->left->base[0] || !l->left->report[0]) && !is_hit(l, KIND_SUPERVISOR))
		return bad(l, "all went well, but left is: %.200s", l->left->base);
	int status = world_gc(l->w, l->left);
	if (status != 0)
		return bad(l, "gc ended with status %d", status);
	if (l->left->base[0])
		return bad(l, "left behind by gc: %.200s", l->left->base);
	return !l->left->state[0] || strstr(l->left->state, "cannot be read") ||
		bad(l, "left in the state directory: %.200s", l->left->state);
}

static void read_all(struct live *l)
{
	for (unsigned i = 0; i < l->r->process_count; i++) {
		const struct trace_process *p = &l->r->processes[i];

		if (p->command > 0 && p->command < 3)
			l->commands[p->command] = p;
		if (l->r->reached && !strcmp(p->path, l->point->path))
			l->hit = p;
	}
	l->start = noted(l->left, "start");
	l->exec = noted(l->left, "exec");
	l->witness = noted(l->left, "witness");
	l->end = noted(l->left, "end");
}

enum outcome live_verdict(struct world *w, const struct trace_point *point,
	const struct trace_result *r, struct world_left *left, const struct reference *good,
	char *ret_why, size_t size)
{
	struct live l = { .w = w,
		.point = point,
		.r = r,
		.left = left,
		.good = good,
		.why = ret_why,
		.size = size };

	read_all(&l);
	if (r->hung || r->overflow || l.start == ABSENT) {
		(void)bad(&l, r->hung ? "it hung" : "there is more than can be followed");
		return OUTCOME_VIOLATION;
	}
	if (!check_walls(&l) || !check_client(&l, "start", l.start, "0.1") ||
		!check_client(&l, "witness", l.witness, "0.2") ||
		!check_client(&l, "exec", l.exec, "0.3") ||
		!check_client(&l, "end", l.end, "0.4") || !check_execution(&l) ||
		!check_others(&l) || !check_left(&l))
		return OUTCOME_VIOLATION;
	if (!r->reached)
		return OUTCOME_UNREACHED;
	bool well = !l.start && !l.exec && !l.witness && !l.end;
	if (well && point->error && !is_spare(&l) && !is_done(&l) &&
		!verdict_may_pass_over(l.hit, point, r->argument)) {
		(void)bad(&l, "a failure inside was passed over");
		return OUTCOME_VIOLATION;
	}
	if (shot(&l))
		return OUTCOME_KILLED;
	return well ? OUTCOME_SAME : l.exec == ABSENT ? OUTCOME_REFUSED : OUTCOME_TOLD;
}

const char *live_verdict_good(const struct trace_result *r, const struct world_left *left)
{
	static const char *const clients[] = { "start 0 named\n", "exec 0 \n",
		"witness 0 unharmed\n", "end 0 \n" };

	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
		if (!strstr(left->notes, clients[i]))
			return clients[i];
	if (r->commands != 2)
		return "two commands";
	if (left->state[0])
		return "an empty state directory";
	return verdict_good(r, left);
}
