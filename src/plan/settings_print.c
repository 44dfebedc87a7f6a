/*
 * settings_print.c - the settings table for people: help and man page.
 *
 * Runs in: the launcher (--help) and the build (the rest). PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/settings.h"
#include "plan/settings_output.h"

#define HELP_COLUMN 26

/* --- help ------------------------------------------------------------------------------------- */

static void help_setting(struct output *o, const struct setting *s)
{
	size_t width = 4 + strlen(s->name) + (s->placeholder ? 1 + strlen(s->placeholder) : 0);

	output_text(o, "  --");
	output_text(o, s->name);
	if (s->placeholder) {
		output_char(o, ' ');
		output_text(o, s->placeholder);
	}
	if (width + 2 > HELP_COLUMN) {
		output_char(o, '\n');
		width = 0;
	}
	for (; width < HELP_COLUMN; width++)
		output_char(o, ' ');
	output_text(o, s->help);
	output_char(o, '\n');
}

int settings_print_help(settings_write_fn write, void *context)
{
	struct output o = { .write = write, .context = context };

	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		output_text(&o, group ? "\n" : "");
		output_text(&o, settings_group_title((enum setting_group)group));
		output_text(&o, ":\n");
		for (size_t i = 0; i < SETTING_COUNT; i++)
			if (settings_table[i].group == group && !settings_table[i].system_only)
				help_setting(&o, &settings_table[i]);
	}
	output_text(&o,
		"\nEach of these is a line of a policy file too, without the dashes. A flag is "
		"turned off by\n--no-NAME, in a file by `NAME no`. PATH may start with ~/, "
		"$HOME, $WORKSPACE or $SCRATCH.\nSIZE: 4096, 512K, 1G. DURATION: 10, 500ms, "
		"1.5s, 5m, 2h, 1d.\n");
	return output_finish(&o);
}

/* --- man -------------------------------------------------------------------------------------- */

/* How `lock` judges the setting, as a sentence. */
static const char *lock_text(enum setting_lock lock)
{
	switch (lock) {
	case LOCK_NEVER:
		return "It cannot be locked.";
	case LOCK_FIXED:
		return "Locked, nothing later changes it.";
	case LOCK_SMALLER:
		return "Locked, it can only be made smaller.";
	case LOCK_UNSET_LEAST:
		return "Locked, it can only be made smaller, and cannot be set where it was not.";
	case LOCK_OFF:
		return "Locked, it can only be turned off.";
	case LOCK_ON:
		return "Locked, it can only be turned on.";
	case LOCK_RANK:
	case LOCK_RANK_DOWN:
		return "Locked, it can only be made tighter.";
	case LOCK_NO_MORE:
		return "Locked, nothing later adds to it.";
	case LOCK_MORE_OK:
		return "Locked, it can be added to, and its lines stay.";
	case LOCK_SHADOWED:
		return "Locked, it can be added to, and no later line shows such a path in "
		       "another way.";
	}
	return "";
}

static const char man_special[] = "\\*_<>#`";

static void man_setting(struct output *o, const struct setting *s)
{
	output_text(o, s->system_only ? "*" : "*--");
	output_text(o, s->name);
	output_char(o, '*');
	if (s->placeholder) {
		output_text(o, " _");
		output_escaped(o, s->placeholder, man_special, "\\");
		output_char(o, '_');
	}
	output_text(o, "\n\t");
	/* one line of help: a sentence without its capital and its full stop */
	output_char(o,
		(char)(s->help[0] >= 'a' && s->help[0] <= 'z' ? s->help[0] - 'a' + 'A'
							      : s->help[0]));
	output_escaped(o, s->help + 1, man_special, "\\");
	output_text(o, ".");
	if (s->kind == KIND_WALL) {
		output_text(o, " The layers:");
		for (size_t i = 0; s->words[i]; i++) {
			output_text(o, i ? ", " : " ");
			output_text(o, s->words[i]);
		}
		output_char(o, '.');
	}
	if (s->merge == MERGE_LIST)
		output_text(o, " Can be given many times.");
	output_char(o, ' ');
	output_text(o, lock_text((enum setting_lock)s->lock));
	output_text(o, "\n\n");
}

int settings_print_man(settings_write_fn write, void *context)
{
	struct output o = { .write = write, .context = context };

	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		const char *title = settings_group_title((enum setting_group)group);

		output_text(&o, "## ");
		for (; *title; title++)
			output_char(&o,
				(char)(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A'
								      : *title));
		output_text(&o, "\n\n");
		for (size_t i = 0; i < SETTING_COUNT; i++)
			if (settings_table[i].group == group)
				man_setting(&o, &settings_table[i]);
	}
	return output_finish(&o);
}
