/*
 * policy_source.c - what a place is called, and from a place back to the setting that stands there.
 *
 * Runs in: carrel-policy. PURE.
 */
#include <string.h>

#include "plan/policy_line.h"

static const char *find_setting(
	const struct policy_line *lines, size_t count, const struct source *source)
{
	for (size_t i = 0; i < count && source->file; i++) {
		const struct source *s = &lines[i].source;

		if (s->layer == source->layer && s->line == source->line && s->file &&
			!strcmp(s->file, source->file))
			return settings_table[lines[i].id].name;
	}
	return NULL;
}

const char *policy_source_setting(const struct policy *p, const struct source *source)
{
	const char *name = find_setting(p->lines, p->line_count, source);

	return name ? name : find_setting(p->shipped, p->shipped_count, source);
}

const char *policy_layer_name(enum layer layer)
{
	static const char *const names[] = {
		[LAYER_DEFAULT] = "default",
		[LAYER_PROFILE] = "profile",
		[LAYER_SYSTEM] = "system",
		[LAYER_USER] = "user",
		[LAYER_FILE] = "file",
		[LAYER_COMMAND] = "command-line",
	};

	return names[layer];
}
