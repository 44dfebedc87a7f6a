/*
 * serve_end.c - tell a client that its execution is over, and how it ended.
 *
 * Runs in: S.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/explain/explain.h"
#include "host/launch/notes.h"
#include "host/serve/server.h"

/* Answer the clients that wait for the end of a service. */
static void answer_stoppers(struct server *s, uint32_t number)
{
	for (unsigned i = 0; i < s->client_slots; i++) {
		struct server_client *c = &s->clients[i];
		const struct control_record done = {
			.kind = CONTROL_DONE, .tag = c->stop_tag, .execution = number
		};

		if (c->fd < 0 || c->stops != number)
			continue;
		c->stops = 0;
		server_answer(s, (int)i, &done, NULL, 0, NULL, 0);
	}
}

/* As limits_settle() for a run. Where the kernel killed the monitor with the command, only the group knows how it ended. */
static bool settle_limits(struct server *s, struct slot *slot, struct control_record *record,
	struct limits_usage *ret_usage)
{
	const struct cgroup_figures *ret = &ret_usage->figures;
	struct cgroup_figures session;
	bool limited = limits_execution_read(s->settings->limits, &slot->group, ret_usage);

	if (slot->group.dir < 0)
		return limited;
	cgroup_read(&s->settings->limits->session.group, &session);
	bool ours = ret->oom_events > 0 || session.oom_events > slot->before.oom_events;
	if (ret->oom_kills > 0 && record->started == STARTED_UNKNOWN &&
		(slot->started || ours)) {
		record->started = slot->started ? STARTED_YES : STARTED_UNKNOWN;
		record->wait_status = SIGKILL;
	}
	bool failed = record->started != STARTED_NO && record->wait_status != 0;
	if (failed && ret->oom_kills > 0 && ours)
		record->limit = CONTROL_LIMIT_MEMORY;
	else if (failed && ret->tasks_refused > 0)
		record->limit = CONTROL_LIMIT_PIDS;
	else if (failed && session.tasks_refused > slot->before.tasks_refused)
		record->limit = CONTROL_LIMIT_PIDS; /* where newer kernels note it */
	return true;
}

/* Has the kernel counted more than when a command of this view failed last? Others may have run beside this one. */
static bool has_tried(
	struct server *s, const struct slot *slot, const struct channel_record *ended)
{
	uint32_t *route = &s->no_route[slot->view], *listener = &s->no_listener[slot->view];
	const bool none = (slot->view & VIEW_NET_NONE) || notes_has_no_network(s->plan);
	const bool more = ended->no_route > *route || (none && ended->no_listener > *listener);

	*route = ended->no_route;
	*listener = ended->no_listener;
	return more;
}

/* Find what the network refused the command. Returns how many bytes of @ret are names or a text. */
static size_t find_network(struct server *s, const struct slot *slot,
	const struct channel_record *ended, struct control_record *record,
	char ret[NOTES_TEXT_MAX])
{
	const struct egress *g = &s->launch->egress;
	const uint64_t began_us = (uint64_t)slot->begun_ns / 1000;
	struct error trouble;

	if (!ended || record->started != STARTED_YES || record->wait_status == 0)
		return 0;
	const bool tried = has_tried(s, slot, ended);
	if ((slot->view & VIEW_NET_NONE) || notes_has_no_network(s->plan)) {
		record->number = tried ? CONTROL_NETWORK_NONE : CONTROL_NETWORK_UNKNOWN;
		return 0;
	}
	if (s->plan->policy->net != NET_ALLOW)
		return 0;
	/* carrel-egress reported names before it answered the command. Of ports the kernel answers: it may not have reported
	 * these yet. */
	server_settle_network(s);
	if (notes_refused(g, began_us, NOTES_NAMES_SHOWN, ret, NOTES_NAMES_MAX)) {
		record->number = CONTROL_NETWORK_NAMES;
		return strlen(ret) + 1;
	}
	if (notes_trouble(g, s->plan->policy, began_us, true, &trouble)) {
		record->number = CONTROL_NETWORK_TEXT;
		return error_format(&trouble, ret, NOTES_TEXT_MAX) + 1;
	}
	record->number = tried ? CONTROL_NETWORK_ADDRESS : CONTROL_NETWORK_UNKNOWN;
	return 0;
}

void server_send_end(struct server *s, struct slot *slot, struct control_record *record,
	const struct channel_record *ended)
{
	char body[NOTES_TEXT_MAX + sizeof(struct limits_usage)];
	struct limits_usage usage;
	size_t size = find_network(s, slot, ended, record, body);

	if (settle_limits(s, slot, record, &usage)) {
		memcpy(body + size, &usage, sizeof(usage));
		size += sizeof(usage);
	}
	record->kind = CONTROL_ENDED;
	record->tag = slot->tag;
	record->execution = slot->number;
	if (slot->begun_ns) {
		record->streams = (uint32_t)(newpath_watch_count(&s->out->watch) - slot->moved);
		record->wall_us = (uint64_t)(clock_now_ns() - slot->begun_ns) / 1000;
	}
	if (slot->timed_out)
		record->limit = CONTROL_LIMIT_TIMEOUT;
	if (slot->detached) {
		server_note_end(s, slot, record);
		answer_stoppers(s, slot->number);
	}
	if (s->launch->explain && slot->host_pid > 0)
		explain_mark(s->launch->explain, slot->host_pid, slot->view);
	autofd int refused = s->launch->explain && slot->client >= 0 && slot->host_pid > 0
		? explain_take(s->launch->explain, slot->host_pid)
		: -1;
	server_answer(s, slot->client, record, body, size, &refused, refused >= 0 ? 1 : 0);
}
