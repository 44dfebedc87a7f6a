/*
 * serve_show.c - a live session as one JSON object: docs/control-protocol.md, SHOW.
 *
 * Runs in: S.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "host/serve/server.h"
#include "host/serve/session_show.h"

enum { SHOW_ARENA_SIZE = 1 << 24 }; /* for twice as many rules as a policy can have */

static const char *state_word(enum slot_state state)
{
	switch (state) {
	case SLOT_PTY:
		return "starting";
	case SLOT_RUNNING:
		return "running";
	case SLOT_STOPPING:
	case SLOT_KILLING:
		return "ending";
	case SLOT_LINGERS:
		return "ended";
	case SLOT_FREE:
	case SLOT_IDLE:
	case SLOT_OPENING:
		break;
	}
	return "none";
}

/* The name of the log below the directory of tool results. */
static void show_log(struct json *j, uint32_t number, bool has_log)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "service-%u.log", (unsigned)number);
	json_key(j, "log");
	json_string(j, has_log ? name : NULL);
}

static void show_execution(struct json *j, const struct slot *slot, int64_t now_ns)
{
	json_object_begin(j);
	json_key(j, "execution");
	json_unsigned(j, slot->number);
	json_key(j, "command");
	json_string(j, slot->command);
	json_key(j, "state");
	json_string(j, state_word(slot->state));
	json_key(j, "service");
	json_bool(j, slot->detached);
	json_key(j, "name");
	json_string(j, slot->name[0] ? slot->name : NULL);
	json_key(j, "age_ms");
	json_number(j, slot->begun_ns ? (now_ns - slot->begun_ns) / 1000000 : 0);
	show_log(j, slot->number, slot->log.file >= 0);
	json_object_end(j);
}

/* As words; NULL: no limit. */
static const char *limit_word(uint32_t limit)
{
	static const char *const words[] = {
		[CONTROL_LIMIT_NONE] = NULL,
		[CONTROL_LIMIT_TIMEOUT] = "timeout",
		[CONTROL_LIMIT_CPU_TIME] = "cpu-time",
		[CONTROL_LIMIT_FILE_SIZE] = "file-size",
		[CONTROL_LIMIT_MEMORY] = "memory",
		[CONTROL_LIMIT_PIDS] = "pids",
	};

	return limit < sizeof(words) / sizeof(words[0]) ? words[limit] : NULL;
}

static bool is_exit(const struct control_record *how)
{
	return how->started == STARTED_YES && WIFEXITED(how->wait_status);
}

static bool is_signal(const struct control_record *how)
{
	return how->started != STARTED_NO && WIFSIGNALED(how->wait_status);
}

static void show_ended(struct json *j, const struct ended_service *ended, int64_t now_ns)
{
	const struct control_record *how = &ended->how;

	json_object_begin(j);
	json_key(j, "execution");
	json_unsigned(j, ended->number);
	json_key(j, "command");
	json_string(j, ended->command);
	json_key(j, "name");
	json_string(j, ended->name[0] ? ended->name : NULL);
	json_key(j, "exit");
	if (is_exit(how))
		json_number(j, WEXITSTATUS(how->wait_status));
	else
		json_null(j);
	json_key(j, "signal");
	if (is_signal(how))
		json_number(j, WTERMSIG(how->wait_status));
	else
		json_null(j);
	json_key(j, "limit");
	json_string(j, limit_word(how->limit));
	json_key(j, "wall_ms");
	json_unsigned(j, how->wall_us / 1000);
	json_key(j, "ended_ms_ago");
	json_number(j, (now_ns - ended->ended_ns) / 1000000);
	show_log(j, ended->number, ended->has_log);
	json_object_end(j);
}

/* The services that ended, the oldest first. */
static const struct ended_service *ended_at(const struct server *s, unsigned i)
{
	const struct ended_service *ended = &s->ended[(s->ended_next + i) % SERVER_ENDED];

	return ended->number ? ended : NULL;
}

int server_show(const struct server *s, char *ret, size_t size)
{
	int64_t now_ns = clock_now_ns();
	struct json j;

	json_init(&j, ret, size, NULL, NULL);
	json_object_begin(&j);
	session_show_paths(&j, s->plan);
	session_show_published(&j, &s->launch->egress);
	server_put_allowed(&j, s);
	json_key(&j, "profile");
	json_string(&j, s->plan->policy->profile.value);
	json_key(&j, "pid");
	json_number(&j, getpid());
	json_key(&j, "state");
	json_string(&j, s->phase == SERVER_SERVING ? "live" : "ending");
	json_key(&j, "age_ms");
	json_number(&j, (now_ns - s->begun_ns) / 1000000);
	json_key(&j, "lifetime_ms");
	json_number(&j, s->settings->lifetime_ms);
	json_key(&j, "idle_timeout_ms");
	json_number(&j, s->settings->idle_ms);
	json_key(&j, "executions_total");
	json_unsigned(&j, s->out->executions);
	json_key(&j, "quarantined");
	json_unsigned(&j, newpath_watch_count(&s->out->watch));
	json_key(&j, "executions");
	json_array_begin(&j);
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state >= SLOT_PTY)
			show_execution(&j, &s->slots[i], now_ns);
	json_array_end(&j);
	json_key(&j, "ended_services");
	json_array_begin(&j);
	for (unsigned i = 0; i < SERVER_ENDED; i++)
		if (ended_at(s, i))
			show_ended(&j, ended_at(s, i), now_ns);
	json_array_end(&j);
	json_object_end(&j);
	int r = json_finish(&j);
	return r < 0 ? r : (int)j.out.used;
}

int server_show_moved(const struct server *s, char *ret, size_t size)
{
	const struct report_quarantine *list = NULL;
	struct arena arena;
	struct json j;
	size_t count = 0;
	int r = arena_init(&arena, CONTROL_TEXT_MAX);

	if (r < 0)
		return r;
	r = newpath_watch_report(&s->out->watch, &arena, &list, &count);
	json_init(&j, ret, size, NULL, NULL);
	json_array_begin(&j);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(&j);
		json_key(&j, "path");
		json_string(&j, list[i].path);
		json_key(&j, "to");
		json_string(&j, list[i].to);
		json_key(&j, "times");
		json_unsigned(&j, list[i].times);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (r >= 0)
		r = json_finish(&j);
	arena_free(&arena);
	return r < 0 ? r : (int)j.out.used;
}

/* --- for people ------------------------------------------------------------------------------ */

struct text {
	char *at;
	size_t room;
	bool full;
};

static void __attribute__((format(printf, 2, 3)))
put_format(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(t->at, t->room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->room) {
		t->full = true;
		return;
	}
	t->at += n;
	t->room -= (size_t)n;
}

/* Names of files may hold anything. */
static void put_visible(struct text *t, const char *name)
{
	size_t length = t->room >= 5 ? text_visible(&name, "", t->at, t->room) : 0;

	t->full |= *name != '\0';
	t->at += length;
	t->room -= length;
}

/* Whole seconds; less than one is "0s". */
static const char *format_age(int64_t ns, char ret[32])
{
	if (ns < 1000000000)
		return "0s";
	text_format_duration((uint64_t)ns / 1000000000 * 1000, ret, 32);
	return ret;
}

static void put_execution(struct text *t, const struct slot *slot, int64_t now_ns)
{
	char age[32];
	put_format(t, "  %-4u %-8s %-8s %s%s%s%s\n", (unsigned)slot->number,
		state_word(slot->state),
		format_age(slot->begun_ns ? now_ns - slot->begun_ns : 0, age), slot->name,
		slot->name[0] ? " " : "", slot->detached ? "(service) " : "", slot->command);
}

static void put_ended(struct text *t, const struct ended_service *ended, int64_t now_ns)
{
	const struct control_record *how = &ended->how;
	const char *limit = limit_word(how->limit);
	char age[32], word[32] = "unknown";

	if (limit)
		(void)snprintf(word, sizeof(word), "%s", limit);
	else if (is_exit(how))
		(void)snprintf(word, sizeof(word), "exit %d", WEXITSTATUS(how->wait_status));
	else if (is_signal(how))
		(void)snprintf(word, sizeof(word), "signal %d", WTERMSIG(how->wait_status));
	put_format(t, "  %-4u %-8s %-8s %s%s(service, ended) %s\n", (unsigned)ended->number,
		word, format_age(now_ns - ended->ended_ns, age), ended->name,
		ended->name[0] ? " " : "", ended->command);
}

/* Show ports, and what was added since the start; `session net` shows what the policy says. */
static void put_allowed(struct text *t, const struct server *s)
{
	const struct egress *g = &s->launch->egress;

	for (size_t i = 0; i < g->published_count; i++)
		put_format(t, "\npublished    %u at 127.0.0.1:%u", g->published[i].port,
			g->published[i].host_port);
	for (size_t i = 0; i < g->live_count; i++)
		if (!g->live[i].removed[0])
			put_format(t, "\nallowed      %s (%s, %s)", g->live[i].text,
				g->live[i].source, g->live[i].added);
}

int server_show_text(const struct server *s, bool line, char *ret, size_t size)
{
	const struct facts *f = s->plan->facts;
	struct text t = { .at = ret, .room = size };
	int64_t now_ns = clock_now_ns();
	char age[32];

	if (line) {
		put_format(&t, "%s  %-6s %-8s %3u running  ",
			f->session_name + strlen("carrel-"),
			s->phase == SERVER_SERVING ? "live" : "ending",
			format_age(now_ns - s->begun_ns, age), s->busy);
		put_visible(&t, f->workspace);
		put_format(&t, "\n");
		return t.full ? -ENOBUFS : (int)(t.at - ret);
	}
	put_format(&t, "session      %s (%s, %s old)\nworkspace    ",
		f->session_name + strlen("carrel-"),
		s->phase == SERVER_SERVING ? "live" : "ending",
		format_age(now_ns - s->begun_ns, age));
	put_visible(&t, f->workspace);
	put_format(&t, "\nscratch      ");
	put_visible(&t, f->scratch_dir);
	put_allowed(&t, s);
	put_format(&t, "\nsupervisor   pid %d, %llu executions so far\n", (int)getpid(),
		(unsigned long long)s->out->executions);
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state >= SLOT_PTY)
			put_execution(&t, &s->slots[i], now_ns);
	for (unsigned i = 0; i < SERVER_ENDED; i++)
		if (ended_at(s, i))
			put_ended(&t, ended_at(s, i), now_ns);
	return t.full ? -ENOBUFS : (int)(t.at - ret);
}

/* --- the policy ------------------------------------------------------------------------------ */

static int put_policy(void *context, const void *data, size_t size)
{
	struct text *t = context;

	if (size >= t->room)
		return -ENOBUFS;
	memcpy(t->at, data, size);
	t->at += size;
	t->room -= size;
	return 0;
}

/* Put the rules of the policy and those that were added, parsed again, into one list in @arena. */
static int with_live(const struct server *s, struct policy *policy, struct arena *arena)
{
	const struct egress *g = &s->launch->egress;
	size_t own = policy->net_rule_count;
	struct net_rule *rules = arena_array(arena, own + g->live_count, sizeof(*rules));
	struct netrule *added = arena_array(arena, g->live_count, sizeof(*added));

	if (!rules || !added)
		return -ENOMEM;
	if (own > 0)
		memcpy(rules, policy->net_rules, own * sizeof(*rules));
	for (size_t i = 0; i < g->live_count; i++) {
		if (g->live[i].removed[0])
			continue;
		int r = netrule_parse(&added[i], arena, false, g->live[i].text, "allow", NULL);
		if (r < 0)
			return r;
		rules[policy->net_rule_count++] = (struct net_rule){ .rule = &added[i],
			.source = { .layer = LAYER_COMMAND, .file = g->live[i].source } };
	}
	policy->net_rules = rules;
	return 0;
}

int server_show_policy(const struct server *s, char *ret, size_t size)
{
	struct policy policy = *s->plan->policy; /* its lists are the plan's */
	struct text t = { .at = ret, .room = size };
	struct arena arena = { 0 };

	/* Where no line names the workspace, it is the working directory that `session start` had. */
	if (!policy.workspace.value)
		policy.workspace.value = s->plan->facts->workspace;
	int r = arena_init(&arena, SHOW_ARENA_SIZE);
	if (r >= 0 && s->launch->egress.live_count)
		r = with_live(s, &policy, &arena);
	if (r >= 0)
		r = policy_print(&policy, true, put_policy, &t);
	arena_free(&arena);
	return r < 0 ? r : (int)(t.at - ret);
}
