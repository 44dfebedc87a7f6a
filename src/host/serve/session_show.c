/*
 * session_show.c - see session_show.h.
 *
 * Runs in: the launcher and S.
 */
#include "host/serve/session_show.h"

#include <string.h>

#include "plan/settings.h"

void session_show_paths(struct json *j, const struct plan *plan)
{
	const struct facts *f = plan->facts;

	json_key(j, "session");
	json_string(j, f->session_name + strlen("carrel-"));
	json_key(j, "session_dir");
	json_string(j, f->session_dir);
	json_key(j, "scratch");
	json_string(j, f->scratch_dir);
	json_key(j, "tool_results");
	char path[1024];
	size_t length = strlen(f->session_dir);
	if (length + sizeof("/tool-results") <= sizeof(path)) {
		memcpy(path, f->session_dir, length);
		memcpy(path + length, "/tool-results", sizeof("/tool-results"));
		json_string(j, path);
	} else {
		json_null(j);
	}
	json_key(j, "workspace");
	json_string(j, f->workspace);
	json_key(j, "net");
	json_string(j, settings_table[SETTING_NET].words[plan->policy->net]);
}

void session_show_published(struct json *j, const struct egress *g)
{
	json_key(j, "published");
	json_array_begin(j);
	for (size_t i = 0; i < g->published_count; i++) {
		json_object_begin(j);
		json_key(j, "port");
		json_unsigned(j, g->published[i].port);
		json_key(j, "host_port");
		json_unsigned(j, g->published[i].host_port);
		json_object_end(j);
	}
	json_array_end(j);
}
