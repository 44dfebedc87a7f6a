/*
 * report_network.c - what a session reached, what it was refused and what it published: see report.h.
 *
 * Runs in: the launcher and S, outside.
 */
#include "host/report/report.h"
#include "host/report/report_members.h"

void report_put_published(struct json *j, const struct report *r)
{
	json_key(j, "published");
	json_array_begin(j);
	for (size_t i = 0; i < r->published_count; i++) {
		json_object_begin(j);
		put_unsigned(j, "port", r->published[i].port);
		put_unsigned(j, "host_port", r->published[i].host_port);
		put_unsigned(j, "times", r->published[i].times);
		put_unsigned(j, "bytes_in", r->published[i].bytes_in);
		put_unsigned(j, "bytes_out", r->published[i].bytes_out);
		json_object_end(j);
	}
	json_array_end(j);
}

void report_put_live(struct json *j, const struct report *r)
{
	json_array_begin(j);
	for (size_t i = 0; i < r->network_live_count; i++) {
		const struct report_network_live *n = &r->network_live[i];

		json_object_begin(j);
		put_string(j, "rule", n->rule);
		put_unsigned(j, "uid", n->uid);
		put_unsigned(j, "pid", (uint64_t)n->pid);
		put_string(j, "added", n->added);
		put_string(j, "removed", n->removed);
		json_object_end(j);
	}
	json_array_end(j);
}

void report_put_network(struct json *j, const struct report *r)
{
	if (put_absent(j, "network", !r->network_known))
		return;
	put_unsigned(j, "rules", r->network_rules);
	put_bool(j, "lost", r->network_lost);
	put_unsigned(j, "untold", r->network_untold);
	put_unsigned(j, "log_lost", r->network_log_lost);
	json_key(j, "live");
	report_put_live(j, r);
	json_key(j, "names");
	json_array_begin(j);
	for (size_t i = 0; i < r->network_name_count; i++) {
		const struct report_network_name *n = &r->network_names[i];

		json_object_begin(j);
		put_string(j, "name", n->name);
		put_known(j, "port", n->port != 0, n->port);
		put_string(j, "decision", n->decision);
		put_string(j, "rule", n->rule);
		put_unsigned(j, "times", n->times);
		put_unsigned(j, "bytes_in", n->bytes_in);
		put_unsigned(j, "bytes_out", n->bytes_out);
		put_errno(j, n->errnum);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}
