/*
 * settings_print.c - the settings table for people and shells: help, man page, completions.
 *
 * Runs in: the launcher (--help) and the build (the rest). PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/settings.h"

#define HELP_COLUMN 26

struct output {
	settings_write_fn write;
	void *context;
	int error;
	size_t used;
	char buffer[1024];
};

static void flush(struct output *o)
{
	if (o->error == 0 && o->used > 0)
		o->error = o->write(o->context, o->buffer, o->used);
	o->used = 0;
}

static void put(struct output *o, char c)
{
	if (o->used == sizeof(o->buffer))
		flush(o);
	o->buffer[o->used++] = c;
}

static void puts_text(struct output *o, const char *text)
{
	while (*text)
		put(o, *text++);
}

/* Each byte of @special gets a backslash (or what @escape is) in front. */
static void puts_escaped(
	struct output *o, const char *text, const char *special, const char *escape)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			puts_text(o, escape);
		put(o, *text);
	}
}

static int finish(struct output *o)
{
	flush(o);
	return o->error;
}

/* --- help ------------------------------------------------------------------------------------- */

static void help_setting(struct output *o, const struct setting *s)
{
	size_t width = 4 + strlen(s->name) + (s->placeholder ? 1 + strlen(s->placeholder) : 0);

	puts_text(o, "  --");
	puts_text(o, s->name);
	if (s->placeholder) {
		put(o, ' ');
		puts_text(o, s->placeholder);
	}
	if (width + 2 > HELP_COLUMN) {
		put(o, '\n');
		width = 0;
	}
	for (; width < HELP_COLUMN; width++)
		put(o, ' ');
	puts_text(o, s->help);
	put(o, '\n');
}

int settings_print_help(settings_write_fn write, void *context)
{
	struct output o = { .write = write, .context = context };

	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		puts_text(&o, group ? "\n" : "");
		puts_text(&o, settings_group_title((enum setting_group)group));
		puts_text(&o, ":\n");
		for (size_t i = 0; i < SETTING_COUNT; i++)
			if (settings_table[i].group == group && !settings_table[i].system_only)
				help_setting(&o, &settings_table[i]);
	}
	puts_text(&o,
		"\nEach of these is a line of a policy file too, without the dashes. A flag is "
		"turned off by\n--no-NAME, in a file by `NAME no`. PATH may start with ~/, "
		"$HOME, $WORKSPACE or $SCRATCH.\nSIZE: 4096, 512K, 1G. DURATION: 10, 500ms, "
		"1.5s, 5m, 2h, 1d.\n");
	return finish(&o);
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
		return "Locked, it can only be made smaller, and not be given where it was not.";
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
		return "Locked, it can be added to, and what was said stays.";
	case LOCK_SHADOWED:
		return "Locked, it can be added to, and nothing later shows such a path in "
		       "another way.";
	}
	return "";
}

static const char man_special[] = "\\*_<>#`";

static void man_setting(struct output *o, const struct setting *s)
{
	puts_text(o, s->system_only ? "*" : "*--");
	puts_text(o, s->name);
	put(o, '*');
	if (s->placeholder) {
		puts_text(o, " _");
		puts_escaped(o, s->placeholder, man_special, "\\");
		put(o, '_');
	}
	puts_text(o, "\n\t");
	/* one line of help: a sentence without its capital and its full stop */
	put(o,
		(char)(s->help[0] >= 'a' && s->help[0] <= 'z' ? s->help[0] - 'a' + 'A'
							      : s->help[0]));
	puts_escaped(o, s->help + 1, man_special, "\\");
	puts_text(o, ".");
	if (s->kind == KIND_WALL) {
		puts_text(o, " The layers:");
		for (size_t i = 0; s->words[i]; i++) {
			puts_text(o, i ? ", " : " ");
			puts_text(o, s->words[i]);
		}
		put(o, '.');
	}
	if (s->merge == MERGE_LIST)
		puts_text(o, " Can be given many times.");
	put(o, ' ');
	puts_text(o, lock_text((enum setting_lock)s->lock));
	puts_text(o, "\n\n");
}

int settings_print_man(settings_write_fn write, void *context)
{
	struct output o = { .write = write, .context = context };

	for (unsigned group = 0; group < GROUP_COUNT; group++) {
		const char *title = settings_group_title((enum setting_group)group);

		puts_text(&o, "## ");
		for (; *title; title++)
			put(&o,
				(char)(*title >= 'a' && *title <= 'z' ? *title - 'a' + 'A'
								      : *title));
		puts_text(&o, "\n\n");
		for (size_t i = 0; i < SETTING_COUNT; i++)
			if (settings_table[i].group == group)
				man_setting(&o, &settings_table[i]);
	}
	return finish(&o);
}

/* --- completions ------------------------------------------------------------------------------ */

static const char verbs[] = "run plan policy gc doctor attest";

enum completes { COMPLETES_NOTHING, COMPLETES_FILES, COMPLETES_DIRS, COMPLETES_WORDS };

static enum completes what_completes(const struct setting *s)
{
	switch ((int)s->kind) {
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
		return COMPLETES_DIRS;
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_DEVICE:
	case KIND_POLICY_FILE:
	case KIND_REPORT:
		return COMPLETES_FILES;
	case KIND_ENUM:
	case KIND_WALL:
	case KIND_PROFILE:
	case KIND_FILTER:
		return COMPLETES_WORDS;
	default:
		return COMPLETES_NOTHING;
	}
}

/* The words of a setting, one space apart. Profiles and filters are the shipped ones. */
static void put_words(struct output *o, const struct setting *s)
{
	if (s->kind == KIND_PROFILE)
		puts_text(o, "agent strict ci container");
	else if (s->kind == KIND_FILTER)
		puts_text(o, "default strict nested");
	else
		for (size_t i = 0; s->words[i]; i++) {
			puts_text(o, i ? " " : "");
			puts_text(o, s->words[i]);
		}
}

static void put_options(struct output *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->system_only)
			continue;
		puts_text(o, " --");
		puts_text(o, s->name);
		if (s->kind == KIND_FLAG) {
			puts_text(o, " --no-");
			puts_text(o, s->name);
		}
	}
	puts_text(o, " --help");
}

/* A comment of all three languages: what is a line of a file and no option. */
static void put_remark(struct output *o, const char *shell)
{
	puts_text(o, "# ");
	puts_text(o, shell);
	puts_text(o,
		" completion for carrel, made from its settings table\n# in the system policy only:");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].system_only) {
			put(o, ' ');
			puts_text(o, settings_table[i].name);
		}
	put(o, '\n');
}

static void bash_cases(struct output *o, enum completes what, const char *action)
{
	bool first = true;

	puts_text(o, "\t");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->system_only || s->kind == KIND_FLAG || what_completes(s) != what)
			continue;
		puts_text(o, first ? "--" : "|--");
		puts_text(o, s->name);
		first = false;
	}
	puts_text(o, ")\n\t\t");
	puts_text(o, action);
	puts_text(o, "\n\t\treturn ;;\n");
}

static void bash_words(struct output *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (what_completes(s) != COMPLETES_WORDS)
			continue;
		puts_text(o, "\t--");
		puts_text(o, s->name);
		puts_text(o, ")\n\t\tmapfile -t COMPREPLY < <(compgen -W '");
		put_words(o, s);
		puts_text(o, "' -- \"$word\")\n\t\treturn ;;\n");
	}
}

static void print_bash(struct output *o)
{
	put_remark(o, "bash");
	puts_text(o,
		"_carrel()\n"
		"{\n"
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} last= i\n"
		"\tCOMPREPLY=()\n"
		"\tif [ \"$COMP_CWORD\" -gt 0 ]; then\n"
		"\t\tlast=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tfi\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
		"\t\t\tmapfile -t COMPREPLY < <(compgen -c -f -- \"$word\")\n"
		"\t\t\treturn\n"
		"\t\tfi\n"
		"\tdone\n"
		"\tcase $last in\n");
	bash_cases(o, COMPLETES_DIRS, "mapfile -t COMPREPLY < <(compgen -d -- \"$word\")");
	bash_cases(o, COMPLETES_FILES, "mapfile -t COMPREPLY < <(compgen -f -- \"$word\")");
	bash_words(o);
	bash_cases(o, COMPLETES_NOTHING, ":");
	puts_text(o,
		"\tesac\n"
		"\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W '");
	puts_text(o, verbs);
	puts_text(o,
		"' -- \"$word\")\n\t\treturn\n\tfi\n"
		"\tmapfile -t COMPREPLY < <(compgen -W '");
	put_options(o);
	puts_text(o,
		" --' -- \"$word\")\n"
		"}\n"
		"complete -o filenames -F _carrel carrel\n");
}

/* One specification of zsh's _arguments; quoted as a whole in single quotes. */
static void zsh_setting(struct output *o, const struct setting *s)
{
	puts_text(o, "\t\t'");
	if (s->merge == MERGE_LIST)
		put(o, '*');
	puts_text(o, "--");
	puts_text(o, s->name);
	put(o, '[');
	for (const char *c = s->help; *c; c++) {
		if (*c == '[' || *c == ']' || *c == ':' || *c == '\\')
			put(o, '\\');
		if (*c == '\'')
			puts_text(o, "'\\'");
		put(o, *c);
	}
	put(o, ']');
	if (s->placeholder) {
		put(o, ':');
		puts_escaped(o, s->placeholder, ":[]", "\\");
		put(o, ':');
	}
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		puts_text(o, "_files -/");
		break;
	case COMPLETES_FILES:
		puts_text(o, "_files");
		break;
	case COMPLETES_WORDS:
		put(o, '(');
		put_words(o, s);
		put(o, ')');
		break;
	case COMPLETES_NOTHING:
		break;
	}
	puts_text(o, "' \\\n");
	if (s->kind == KIND_FLAG) {
		puts_text(o, "\t\t'--no-");
		puts_text(o, s->name);
		puts_text(o, "[turn it off]' \\\n");
	}
}

static void print_zsh(struct output *o)
{
	puts_text(o, "#compdef carrel\n");
	put_remark(o, "zsh");
	puts_text(o,
		"_carrel()\n"
		"{\n"
		"\tif (( CURRENT == 2 )); then\n"
		"\t\tlocal -a verbs=(");
	puts_text(o, verbs);
	puts_text(o,
		")\n\t\tcompadd -a verbs\n\t\treturn\n\tfi\n"
		"\tshift words; (( CURRENT-- ))\n"
		"\t_arguments -S \\\n");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			zsh_setting(o, &settings_table[i]);
	puts_text(o,
		"\t\t'(- *)'{-h,--help}'[show help]' \\\n"
		"\t\t'*:: :_normal'\n"
		"}\n"
		"_carrel \"$@\"\n");
}

static void fish_setting(struct output *o, const struct setting *s)
{
	puts_text(o, "complete -c carrel -n 'not __fish_use_subcommand' -l ");
	puts_text(o, s->name);
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		puts_text(o, " -x -a '(__fish_complete_directories)'");
		break;
	case COMPLETES_FILES:
		puts_text(o, " -r -F");
		break;
	case COMPLETES_WORDS:
		puts_text(o, " -x -a '");
		put_words(o, s);
		put(o, '\'');
		break;
	case COMPLETES_NOTHING:
		puts_text(o, s->kind == KIND_FLAG ? "" : " -x");
		break;
	}
	puts_text(o, " -d '");
	puts_escaped(o, s->help, "'\\", "\\");
	puts_text(o, "'\n");
	if (s->kind == KIND_FLAG) {
		puts_text(o, "complete -c carrel -n 'not __fish_use_subcommand' -l no-");
		puts_text(o, s->name);
		puts_text(o, " -d 'Turn it off'\n");
	}
}

static void print_fish(struct output *o)
{
	put_remark(o, "fish");
	puts_text(o, "complete -c carrel -f -n __fish_use_subcommand -a '");
	puts_text(o, verbs);
	puts_text(o, "'\n");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			fish_setting(o, &settings_table[i]);
	puts_text(o, "complete -c carrel -s h -l help -d 'Show help'\n");
}

int settings_print_completion(const char *shell, settings_write_fn write, void *context)
{
	struct output o = { .write = write, .context = context };

	if (!strcmp(shell, "bash"))
		print_bash(&o);
	else if (!strcmp(shell, "zsh"))
		print_zsh(&o);
	else if (!strcmp(shell, "fish"))
		print_fish(&o);
	else
		return -EINVAL;
	return finish(&o);
}
