/*
 * session_show.c - see session_show.h.
 *
 * Runs in: the launcher and S.
 */
#include "host/serve/session_show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
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

/* --- for whoever starts it -------------------------------------------------------------------- */

static int print_published(const struct egress *g)
{
	char line[64];
	int r = 0;

	for (size_t i = 0; i < g->published_count && r >= 0; i++) {
		int n = snprintf(line, sizeof(line), "published %u 127.0.0.1:%u\n",
			g->published[i].port, g->published[i].host_port);

		r = n < 0 ? -EINVAL : fd_write_all(STDOUT_FILENO, line, (size_t)n);
	}
	return r;
}

int session_show_text(const struct facts *f, const struct egress *g)
{
	const char *const parts[] = { "session ", f->session_name + strlen("carrel-"),
		"\nscratch ", f->scratch_dir, "\ntool-results ", f->session_dir,
		"/tool-results\nworkspace ", f->workspace, "\n" };
	int r = 0;

	/* @parts: labels and names by turns. In a name, bytes that a terminal would interpret are
	 * shown as \xNN. */
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r >= 0; i++)
		r = i % 2 ? fd_write_visible(STDOUT_FILENO, parts[i])
			  : fd_write_all(STDOUT_FILENO, parts[i], strlen(parts[i]));
	return r < 0 ? r : print_published(g);
}

int session_show_json(const struct plan *plan, const struct egress *g)
{
	static const int out = STDOUT_FILENO;
	char buffer[1024];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), fd_write_to, (void *)&out);
	json_object_begin(&j);
	session_show_paths(&j, plan);
	session_show_published(&j, g);
	json_key(&j, "pid");
	json_number(&j, getpid());
	json_object_end(&j);
	return json_finish(&j);
}
