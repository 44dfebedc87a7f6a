/*
 * serve_network.c - a live session's network: its sockets on their way to carrel-egress, what it reached and was refused so far (docs/control-protocol.md, SHOW).
 *
 * Runs in: S. Names are what tools asked for: text, and shown as such.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/writer.h"
#include "host/launch/network.h"
#include "host/launch/notes.h"
#include "host/serve/server.h"
#include "plan/settings.h"

enum { NETWORK_ARENA = 1 << 20 };

int server_give_sockets(
	const struct server *s, const struct channel_record *record, const int *fds)
{
	unsigned count = 0;

	while (count < CHANNEL_FDS_MAX && fds[count] >= 0)
		count++;
	return egress_sockets(&s->launch->egress, fds, count, record->number);
}

static void put_name(struct writer *o, const struct report_network_name *n)
{
	writer_format(o, "%-14s ", n->decision);
	writer_visible(o, n->name, strlen(n->name), "");
	if (n->port)
		writer_format(o, ":%" PRIu32, (uint32_t)n->port);
	writer_format(o, "  %" PRIu64 "x", n->times);
	if (n->bytes_in || n->bytes_out)
		writer_format(o, "  %" PRIu64 " bytes in, %" PRIu64 " out", n->bytes_in,
			n->bytes_out);
	if (n->rule)
		writer_format(o, "  (%s)", n->rule);
	writer_char(o, '\n');
}

static void put_live(struct writer *o, const struct report_network_live *n)
{
	writer_format(o, "%-14s allow %s  (%s, process %d of user %u",
		n->removed ? "removed" : "added", n->rule, n->added, (int)n->pid,
		(unsigned)n->uid);
	if (n->removed)
		writer_format(o, "; removed %s", n->removed);
	writer_text(o, ")\n");
}

static void put_text(struct writer *o, const struct report *r, const char *net)
{
	writer_format(o, "net            %s", net);
	if (r->network_known)
		writer_format(o, ", %" PRIu64 " lines", r->network_rules);
	if (r->network_live_count)
		writer_format(o, ", %" PRIu64 " added", (uint64_t)r->network_live_count);
	if (r->network_lost)
		writer_text(o, "; carrel-egress has ended: nothing is reached any more");
	writer_char(o, '\n');
	for (size_t i = 0; i < r->network_live_count; i++)
		put_live(o, &r->network_live[i]);
	for (size_t i = 0; i < r->network_name_count; i++)
		put_name(o, &r->network_names[i]);
	if (r->network_untold)
		writer_format(o, "%" PRIu64 " decisions more are not in the list\n",
			r->network_untold);
}

static int put_json(char *ret, size_t size, const struct report *r, const char *net)
{
	struct json j;

	json_init(&j, ret, size, NULL, NULL);
	json_object_begin(&j);
	json_key(&j, "net");
	json_string(&j, net);
	report_put_network(&j, r);
	json_object_end(&j);
	int result = json_finish(&j);
	return result < 0 ? result : (int)j.out.used;
}

/*
 * Read what carrel-egress has said since the loop read last; where it has ended, this does what the
 * loop would do.
 */
static void look(struct server *s, void (*read)(struct egress *))
{
	struct egress *g = &s->launch->egress;

	if (s->phase != SERVER_SERVING || g->channel < 0)
		return;
	read(g);
	if (g->lost)
		notes_egress_lost(s->plan->policy);
	server_allow_go_on(s);
}

void server_settle_network(struct server *s)
{
	look(s, egress_settle);
}

int server_show_network(struct server *s, bool json, char *ret, size_t size)
{
	const struct policy *policy = s->plan->policy;
	const char *net = settings_table[SETTING_NET].words[policy->net];
	struct report r = { 0 };
	struct arena arena;
	struct writer o;
	int result = arena_init(&arena, NETWORK_ARENA);

	if (result < 0)
		return result;
	look(s, egress_read);
	network_report(&r, &s->launch->egress, policy, &arena);
	if (json) {
		result = put_json(ret, size, &r, net);
	} else {
		writer_init(&o, ret, size, NULL, NULL);
		put_text(&o, &r, net);
		result = writer_finish(&o);
		result = result < 0 ? result : (int)o.used;
	}
	arena_free(&arena);
	return result;
}
