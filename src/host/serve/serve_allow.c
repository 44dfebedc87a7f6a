/*
 * serve_allow.c - `carrel session allow`: the session's owner adds names to what it may reach, and
 * takes them back.
 *
 * Runs in: S. peer.h says who may ask: nobody inside. host/egress/live.h judges every rule before
 * any is sent; carrel-egress takes one after the other, and the client has its answer when it has
 * taken the last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/writer.h"
#include "host/egress/live.h"
#include "host/launch/notes.h"
#include "host/serve/peer.h"
#include "host/serve/server.h"

#define ANSWER_NS (3 * INT64_C(1000000000)) /* less than the client waits */

enum {
	ALLOWED_SHOWN = 64,
	ALLOWED_NAMED = 12, /* in a sentence */
	REFUSED_SHOWN = 16,
	REFUSED_MAX = 2048, /* bytes of them */
};

static int malformed(struct error *e)
{
	return error_set(e, ERROR_REQUEST, "session", 0, NULL,
		"the request is malformed, or out of order");
}

/* --- the request ------------------------------------------------------------------------------ */

/* How many texts there are, each with its NUL; 0: none, too many, or the last one has no NUL. */
static size_t count_texts(const struct control_message *m)
{
	size_t count = 0;

	if (m->size == 0 || m->body[m->size - 1] != '\0')
		return 0;
	for (size_t at = 0; at < m->size; at += strlen(m->body + at) + 1)
		count++;
	return count <= EGRESS_LIVE_MAX ? count : 0;
}

static int judge_removal(const struct server *s, const char *text, char *ret, struct error *e)
{
	if (strlen(text) >= NETRULE_TEXT_MAX ||
		egress_live_find(&s->launch->egress, text) < 0) {
		int r = error_set(e, ERROR_POLICY, "session", ERROR_OWN(ENOENT), text,
			"no such line was added to the session");

		error_hint(e, "carrel session net lists them; what the policy says stays");
		return r;
	}
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

static int judge(struct server *s, const struct control_message *m, struct live_change *c,
	struct error *e)
{
	const struct egress *g = &s->launch->egress;
	size_t at = 0;

	for (size_t i = 0; i < c->count; i++, at += strlen(m->body + at) + 1) {
		int r = c->remove ? judge_removal(s, m->body + at, c->texts[i], e)
				  : egress_live_judge(s->plan, m->body + at, c->texts[i], e);

		if (r < 0)
			return r;
	}
	if (!c->remove && g->live_count + c->count > EGRESS_LIVE_MAX)
		return error_set(e, ERROR_LIMIT, "session", ERROR_OWN(ENOSPC), NULL,
			"a session can be given %d lines while it lives, those taken back included",
			EGRESS_LIVE_MAX);
	return 0;
}

int server_allow(struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct live_change c = { .remove = m->head.flag == 1,
		.count = count_texts(m),
		.client = (int)client,
		.tag = m->head.tag };

	if (c.count == 0 || m->head.flag > 1)
		return malformed(e);
	if (s->change.texts || s->launch->egress.asked)
		return error_set(e, ERROR_LIMIT, "session", ERROR_OWN(EBUSY), NULL,
			"carrel-egress has not answered the last change yet");
	c.texts = calloc(c.count, sizeof(*c.texts));
	if (!c.texts)
		return error_no_memory(e, "session");
	int r = judge(s, m, &c, e);
	if (r < 0) {
		free(c.texts);
		return r;
	}
	peer_who(s->clients[client].fd, &c.pid, &c.uid);
	c.deadline_ns = clock_now_ns() + ANSWER_NS;
	s->change = c;
	s->launch->egress.answered = false; /* that of a change which came too late */
	server_allow_go_on(s);
	return 0;
}

/* --- one rule after the other ----------------------------------------------------------------- */

static void finish(struct server *s, const struct error *e)
{
	const struct control_record request = { .kind = CONTROL_ALLOW, .tag = s->change.tag };
	const struct control_record done = { .kind = CONTROL_DONE, .tag = s->change.tag };
	int client = s->change.client;

	free(s->change.texts);
	s->change = (struct live_change){ .client = -1 };
	if (e)
		server_refuse(s, client, &request, e);
	else
		server_answer(s, client, &done, NULL, 0, NULL, 0);
}

static void fail(struct server *s, int errnum, const char *what)
{
	struct error e = { 0 };
	int r = error_set(&e, ERROR_UNAVAILABLE, "session", errnum,
		s->change.texts[s->change.next], "%s", what);

	(void)r; /* it goes to the client */
	finish(s, &e);
}

/* 1: asked; 0: there is nothing to ask; or -errno. */
static int ask_next(struct server *s)
{
	struct live_change *c = &s->change;
	struct egress *g = &s->launch->egress;
	const char *text = c->texts[c->next];
	int known = egress_live_find(g, text);
	struct egress_live rule = { .uid = c->uid, .pid = c->pid };

	/* A rule that is there already, or that is gone already, is not sent again. */
	if (c->remove ? known < 0 : known >= 0)
		return 0;
	memcpy(rule.text, text, sizeof(rule.text));
	int r = egress_live_ask(g, s->plan->policy, &rule, c->remove ? known : -1);
	return r < 0 ? r : 1;
}

void server_allow_go_on(struct server *s)
{
	struct live_change *c = &s->change;
	struct egress *g = &s->launch->egress;

	while (c->texts) {
		if (g->asked && g->channel >= 0)
			return;
		if (g->asked || g->channel < 0) {
			g->asked = false;
			fail(s, EPIPE, "carrel-egress has ended");
			return;
		}
		if (g->answered) {
			g->answered = false;
			if (g->answer != 0) {
				fail(s, g->answer, "carrel-egress does not take the rule");
				return;
			}
			c->next++;
		}
		int r = 0;
		while (c->next < c->count && (r = ask_next(s)) == 0)
			c->next++;
		if (r < 0)
			fail(s, -r, "carrel-egress cannot be asked");
		else if (c->next == c->count)
			finish(s, NULL);
	}
}

/* The line that was asked for last may still be taken: g->asked stays, and no other change begins before that is known. */
void server_allow_late(struct server *s)
{
	struct error e = { 0 };
	int r = error_set(&e, ERROR_UNAVAILABLE, "session", ETIMEDOUT,
		s->change.texts[s->change.next], "carrel-egress does not answer");

	error_hint(&e,
		"it may be stopped; carrel session net shows whether it takes the line later");
	(void)r; /* it goes to the client */
	finish(s, &e);
}

void server_allow_forget(struct server *s, unsigned client)
{
	if (s->change.client == (int)client)
		s->change.client = -1;
}

/* --- what is allowed now ---------------------------------------------------------------------- */

/* Whether a line that was added since is about the host of @name: what was refused before may be allowed now. */
static bool is_added(const struct egress *g, const char *name)
{
	size_t host = strcspn(name, ":");

	for (size_t i = 0; i < g->live_count; i++) {
		const char *text = g->live[i].text;
		size_t skip = text[0] == '*', length = strcspn(text, ":") - skip;

		if (!g->live[i].removed[0] && (skip ? length < host : length == host) &&
			!memcmp(name + host - length, text + skip, length))
			return true;
	}
	return false;
}

/* Names that tools asked for, as a policy could have them. */
static void put_refused(struct json *j, const struct egress *g)
{
	char names[REFUSED_MAX];

	json_array_begin(j);
	(void)notes_refused(g, 0, REFUSED_SHOWN, names, sizeof(names));
	for (char *at = names, *end; *at; at = end) {
		end = at + 1 + strcspn(at + 1, " ");
		const char kept = *end;

		*end = '\0';
		if (!is_added(g, at + 1))
			json_string(j, at + 1);
		*end = kept;
	}
	json_array_end(j);
}

void server_put_allowed(struct json *j, const struct server *s)
{
	const struct policy *p = s->plan->policy;
	const struct egress *g = &s->launch->egress;
	uint64_t more = 0;
	unsigned shown = 0;

	json_key(j, "allow");
	json_array_begin(j);
	for (size_t i = g->live_count; i-- > 0;)
		if (!g->live[i].removed[0] && shown++ < ALLOWED_SHOWN)
			json_string(j, g->live[i].text);
	for (size_t i = 0; i < p->net_rule_count; i++) {
		char text[NETRULE_TEXT_MAX];

		if (!p->net_rules[i].rule->deny && shown++ < ALLOWED_SHOWN &&
			netrule_format(p->net_rules[i].rule, text, sizeof(text)) >= 0)
			json_string(j, text);
	}
	json_array_end(j);
	more = shown > ALLOWED_SHOWN ? shown - ALLOWED_SHOWN : 0;
	json_key(j, "allow_more");
	json_unsigned(j, more);
	json_key(j, "refused");
	put_refused(j, &s->launch->egress);
}

/* Ports are said where they are not the usual ones. */
static void put_host(struct writer *o, const char *text, unsigned *count)
{
	static const char usual[] = ":80,443";
	size_t length = strlen(text), end = sizeof(usual) - 1;

	if (length > end && !strcmp(text + length - end, usual))
		length -= end;
	if ((*count)++ >= ALLOWED_NAMED)
		return;
	writer_text(o, *count > 1 ? ", " : "");
	writer_bytes(o, text, length);
}

int server_show_allowed(const struct server *s, char *ret, size_t size)
{
	const struct policy *p = s->plan->policy;
	const struct egress *g = &s->launch->egress;
	char text[NETRULE_TEXT_MAX];
	unsigned count = 0;
	struct writer o;

	writer_init(&o, ret, size, NULL, NULL);
	for (size_t i = 0; i < g->live_count; i++)
		if (!g->live[i].removed[0])
			put_host(&o, g->live[i].text, &count);
	for (size_t i = 0; i < p->net_rule_count; i++)
		if (!p->net_rules[i].rule->deny &&
			netrule_format(p->net_rules[i].rule, text, sizeof(text)) >= 0)
			put_host(&o, text, &count);
	if (count > ALLOWED_NAMED)
		writer_format(&o, " and %u more", count - ALLOWED_NAMED);
	int r = writer_finish(&o);
	return r < 0 ? r : (int)o.used;
}
