/*
 * cgroup_stat.c - what a group has used; see cgroup.h.
 *
 * Runs in: the launcher and the supervisor, outside.
 */
#include <string.h>

#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_place.h"

/* The number at @text; -1: there is no number. */
static int64_t read_number(const char *text)
{
	int64_t value = 0;

	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, *text - '0', &value))
			return INT64_MAX;
	return value;
}

/* The number behind @key in lines of "key number". */
static int64_t find_number(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line && *line;) {
		if (!strncmp(line, key, length) && line[length] == ' ')
			return read_number(line + length + 1);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return -1;
}

static int64_t file_number(int dir, const char *file)
{
	char text[64];

	return cgroup_read_file(dir, file, text, sizeof(text)) < 0 ? -1 : read_number(text);
}

void cgroup_read(const struct cgroup *g, struct cgroup_figures *ret)
{
	char text[1024];

	*ret = (struct cgroup_figures){ -1, -1, -1, -1, -1, -1, -1, -1 };
	if (g->dir < 0)
		return;
	ret->memory_peak_bytes = file_number(g->dir, "memory.peak");
	if (cgroup_read_file(g->dir, "memory.events", text, sizeof(text)) >= 0) {
		ret->oom_events = find_number(text, "oom");
		ret->oom_kills = find_number(text, "oom_kill");
	}
	if (cgroup_read_file(g->dir, "cpu.stat", text, sizeof(text)) >= 0) {
		ret->cpu_us = find_number(text, "usage_usec");
		ret->throttled_us = find_number(text, "throttled_usec");
		ret->throttled_periods = find_number(text, "nr_throttled");
	}
	ret->tasks_peak = file_number(g->dir, "pids.peak");
	if (cgroup_read_file(g->dir, "pids.events", text, sizeof(text)) >= 0)
		ret->tasks_refused = find_number(text, "max");
}
