/*
 * policy_source.c - from a place back to the setting that stands there.
 *
 * Runs in: carrel-policy. PURE.
 */
#include <string.h>

#include "plan/policy_line.h"

const char *policy_source_setting(const struct policy *p, const struct source *source)
{
	for (size_t i = 0; i < p->line_count && source->file; i++) {
		const struct source *s = &p->lines[i].source;

		if (s->layer == source->layer && s->line == source->line && s->file &&
			!strcmp(s->file, source->file))
			return settings_table[p->lines[i].id].name;
	}
	return NULL;
}
