/*
 * settings_print.c - the settings table for people: help and man page.
 *
 * Runs in: the launcher (--help) and the build (the rest). PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/settings.h"

#define HELP_COLUMN 26

/* --- help ------------------------------------------------------------------------------------- */

/* The words that can be asked for; for one execution only the tightest of words that are ranked. */
static const char *placeholder_of(const struct setting *s, bool execution)
{
	const char *tightest = execution ? settings_tightest(s) : NULL;

	return tightest ? tightest : s->placeholder;
}

static const char *help_of(const struct setting *s, bool execution)
{
	return execution && s->execution_help ? s->execution_help : s->help;
}

static void help_setting(struct writer *o, const struct setting *s, bool execution)
{
	const char *placeholder = placeholder_of(s, execution);
	size_t width = 4 + strlen(s->name) + (placeholder ? 1 + strlen(placeholder) : 0);

	writer_text(o, "  --");
	writer_text(o, s->name);
	if (placeholder) {
		writer_char(o, ' ');
		writer_text(o, placeholder);
	}
	if (width + 2 > HELP_COLUMN) {
		writer_char(o, '\n');
		width = 0;
	}
	for (; width < HELP_COLUMN; width++)
		writer_char(o, ' ');
	writer_text(o, help_of(s, execution));
	writer_char(o, '\n');
}

/* Each setting once: the everyday ones in front, the others by their group. */
static void help_everyday(struct writer *o)
{
	writer_text(o, "everyday:\n");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].everyday)
			help_setting(o, &settings_table[i], false);
}

static void help_group(struct writer *o, enum setting_group group)
{
	writer_char(o, '\n');
	writer_text(o, settings_group_title(group));
	writer_text(o, ":\n");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->group == group && !s->system_only && !s->everyday)
			help_setting(o, s, false);
	}
}

int settings_print_help(writer_fn write, void *context)
{
	char buffer[1024];
	struct writer o;

	writer_init(&o, buffer, sizeof(buffer), write, context);
	help_everyday(&o);
	for (unsigned group = 0; group < GROUP_COUNT; group++)
		help_group(&o, (enum setting_group)group);
	writer_text(&o,
		"\nEach of these is a line of a policy file too, without the dashes. A flag is "
		"turned off by\n--no-NAME, in a file by `NAME no`. PATH may start with ~/, "
		"$HOME, $WORKSPACE or $SCRATCH.\nSIZE: 4096, 512K, 1G. DURATION: 10, 500ms, "
		"1.5s, 5m, 2h, 1d.\n");
	return writer_finish(&o);
}

int settings_print_execution_help(writer_fn write, void *context)
{
	char buffer[1024];
	struct writer o;

	writer_init(&o, buffer, sizeof(buffer), write, context);

	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].per_execution)
			help_setting(&o, &settings_table[i], true);
	return writer_finish(&o);
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

/* The name, what it takes, and the line of help: a sentence without its capital and its full stop. */
static void man_line(struct writer *o, const struct setting *s, bool execution)
{
	const char *placeholder = placeholder_of(s, execution), *text = help_of(s, execution);

	writer_text(o, s->system_only ? "*" : "*--");
	writer_text(o, s->name);
	writer_char(o, '*');
	if (placeholder) {
		writer_text(o, " _");
		writer_escaped(o, placeholder, man_special, "\\");
		writer_char(o, '_');
	}
	writer_text(o, "\n\t");
	writer_char(o, (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text));
	writer_escaped(o, text + 1, man_special, "\\");
	writer_char(o, '.');
}

static void man_setting(struct writer *o, const struct setting *s)
{
	man_line(o, s, false);
	if (s->kind == KIND_WALL) {
		writer_text(o, " The walls:");
		for (size_t i = 0; s->words[i]; i++) {
			writer_text(o, i ? ", " : " ");
			writer_text(o, s->words[i]);
		}
		writer_char(o, '.');
	}
	if (s->merge == MERGE_LIST)
		writer_text(o, " Can be given many times.");
	writer_char(o, ' ');
	writer_text(o, lock_text((enum setting_lock)s->lock));
	writer_text(o, "\n\n");
}

static void man_execution(struct writer *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (!s->per_execution)
			continue;
		man_line(o, s, true);
		writer_text(
			o, s->merge == MERGE_LIST ? " Can be given many times.\n\n" : "\n\n");
	}
}

int settings_print_man(bool execution, writer_fn write, void *context)
{
	char buffer[1024];
	struct writer o;

	writer_init(&o, buffer, sizeof(buffer), write, context);

	if (execution)
		man_execution(&o);
	for (unsigned group = 0; group < GROUP_COUNT && !execution; group++) {
		const char *title = settings_group_title((enum setting_group)group);

		writer_text(&o, "## ");
		for (; *title; title++)
			writer_char(&o,
				(char)(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A'
								      : *title));
		writer_text(&o, "\n\n");
		for (size_t i = 0; i < SETTING_COUNT; i++)
			if (settings_table[i].group == group)
				man_setting(&o, &settings_table[i]);
	}
	return writer_finish(&o);
}
