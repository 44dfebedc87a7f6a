/*
 * settings_completion.c - the settings table and the verbs' own words for shells.
 *
 * Runs in: the build. PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/writer.h"
#include "plan/settings.h"

/* What a verb takes beside settings. tests/lint/completions holds it to what --help says. */
struct verb_words {
	const char *verb; /* with its second word, where it has one */
	enum { SETTINGS_NONE, SETTINGS_ALL, SETTINGS_EXECUTION } settings;
	const char *options;
	const char *words; /* what stands alone */
};

static const struct verb_words verb_words[] = {
	{ "run", SETTINGS_ALL, "--command -c", "" },
	{ "session start", SETTINGS_ALL, "--json --foreground --die-with", "" },
	{ "session list", SETTINGS_NONE, "--json", "" },
	{ "session show", SETTINGS_NONE, "--session -s --json", "" },
	{ "session end", SETTINGS_NONE, "--session -s --json", "" },
	{ "exec", SETTINGS_EXECUTION, "--session -s --command -c --detach --name --stop", "" },
	{ "shell", SETTINGS_ALL, "--session -s", "" },
	{ "classify", SETTINGS_NONE, "--session -s --json", "" },
	{ "read", SETTINGS_NONE, "--session -s --lines --chars --bytes", "" },
	{ "scratch path", SETTINGS_NONE, "--session -s", "" },
	{ "scratch list", SETTINGS_NONE, "--session -s --json", "" },
	{ "scratch put", SETTINGS_NONE, "--session -s --force", "" },
	{ "scratch get", SETTINGS_NONE, "--session -s", "" },
	{ "scratch remove", SETTINGS_NONE, "--session -s", "" },
	{ "promote", SETTINGS_NONE, "--session -s --copy --force --dry-run --json", "" },
	{ "prompt", SETTINGS_NONE, "--session -s --template", "" },
	{ "gc", SETTINGS_NONE, "--dry-run --scratch-base", "" },
	{ "plan", SETTINGS_ALL, "--json --command -c", "" },
	{ "policy show", SETTINGS_ALL, "--json", "" },
	{ "policy check", SETTINGS_NONE, "--system", "" },
	{ "doctor", SETTINGS_NONE, "--json", "" },
	{ "attest", SETTINGS_ALL, "--json", "" },
	{ "mcp", SETTINGS_ALL, "", "" },
	{ "pad", SETTINGS_NONE, "--session -s --json", "write append read clear" },
	{ "help", SETTINGS_NONE, "", "" },
};
enum { VERB_COUNT = sizeof(verb_words) / sizeof(verb_words[0]) };

static size_t first_length(size_t i)
{
	return strcspn(verb_words[i].verb, " ");
}

/* The first words, each once: those of one verb stand side by side. */
static void put_verbs(struct writer *o)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		size_t length = first_length(i);

		if (i && length == first_length(i - 1) &&
			!strncmp(verb_words[i].verb, verb_words[i - 1].verb, length))
			continue;
		writer_text(o, i ? " " : "");
		for (size_t n = 0; n < length; n++)
			writer_char(o, verb_words[i].verb[n]);
	}
}

/* The second words of the verb of entry @i, of which it is the first. */
static void put_second_words(struct writer *o, size_t i)
{
	size_t length = first_length(i);

	for (size_t at = i; at < VERB_COUNT && first_length(at) == length &&
		!strncmp(verb_words[at].verb, verb_words[i].verb, length);
		at++) {
		writer_text(o, at > i ? " " : "");
		writer_text(o, verb_words[at].verb + length + 1);
	}
}

/* Entry @i is the first of a verb that has second words. */
static bool begins_second_words(size_t i)
{
	size_t length = first_length(i);

	return verb_words[i].verb[length] &&
		(i == 0 || first_length(i - 1) != length ||
			strncmp(verb_words[i].verb, verb_words[i - 1].verb, length) != 0);
}

enum completes { COMPLETES_NOTHING, COMPLETES_FILES, COMPLETES_DIRS, COMPLETES_WORDS };

static enum completes what_completes(const struct setting *s)
{
	switch ((int)s->kind) {
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_DIRS:
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
static void put_words(struct writer *o, const struct setting *s)
{
	if (s->kind == KIND_PROFILE)
		writer_text(o, "agent strict ci container");
	else if (s->kind == KIND_FILTER)
		writer_text(o, "default strict nested");
	else
		for (size_t i = 0; s->words[i]; i++) {
			writer_text(o, i ? " " : "");
			writer_text(o, s->words[i]);
		}
}

/* What the verb of @v takes beside its words. */
static void put_options(struct writer *o, const struct verb_words *v)
{
	writer_text(o, v->options);
	writer_text(o, *v->words ? " " : "");
	writer_text(o, v->words);
}

/* The settings among its options. */
static void put_settings(struct writer *o, const struct verb_words *v)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (v->settings == SETTINGS_NONE || s->system_only ||
			(v->settings == SETTINGS_EXECUTION && !s->per_execution))
			continue;
		writer_text(o, " --");
		writer_text(o, s->name);
		if (s->kind == KIND_FLAG) {
			writer_text(o, " --no-");
			writer_text(o, s->name);
		}
	}
}

/* A comment of all three languages: what is a line of a file and no option. */
static void put_remark(struct writer *o, const char *shell)
{
	writer_text(o, "# ");
	writer_text(o, shell);
	writer_text(o,
		" completion for carrel, made from its settings table\n# in the system policy only:");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].system_only) {
			writer_char(o, ' ');
			writer_text(o, settings_table[i].name);
		}
	writer_char(o, '\n');
}

static void bash_cases(struct writer *o, enum completes what, const char *action)
{
	bool first = true;

	writer_text(o, "\t");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->system_only || s->kind == KIND_FLAG || what_completes(s) != what)
			continue;
		writer_text(o, first ? "--" : "|--");
		writer_text(o, s->name);
		first = false;
	}
	writer_text(o, ")\n\t\t");
	writer_text(o, action);
	writer_text(o, "\n\t\treturn ;;\n");
}

static void bash_words(struct writer *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (what_completes(s) != COMPLETES_WORDS)
			continue;
		writer_text(o, "\t--");
		writer_text(o, s->name);
		writer_text(o, ")\n\t\tmapfile -t COMPREPLY < <(compgen -W '");
		put_words(o, s);
		writer_text(o, "' -- \"$word\")\n\t\treturn ;;\n");
	}
}

/* What follows the verb: its second word, then its options. */
static void bash_verbs(struct writer *o)
{
	writer_text(o, "\tcase $verb in\n\t");
	for (size_t i = 0, first = 1; i < VERB_COUNT; i++)
		if (begins_second_words(i)) {
			writer_text(o, first ? "" : "|");
			for (size_t n = 0; n < first_length(i); n++)
				writer_char(o, verb_words[i].verb[n]);
			first = 0;
		}
	writer_text(o, ")\n\t\tverb+=\" ${COMP_WORDS[2]}\" ;;\n\tesac\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!begins_second_words(i))
			continue;
		writer_text(o, "\tif [ \"$COMP_CWORD\" -eq 2 ] && [ \"${COMP_WORDS[1]}\" = ");
		for (size_t n = 0; n < first_length(i); n++)
			writer_char(o, verb_words[i].verb[n]);
		writer_text(o, " ]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '");
		put_second_words(o, i);
		writer_text(o, " --help' -- \"$word\")\n\t\treturn\n\tfi\n");
	}
	writer_text(o,
		"\tif [ \"$verb\" = help ]; then\n\t\t[ \"$COMP_CWORD\" -gt 2 ] ||\n"
		"\t\t\tmapfile -t COMPREPLY < <(compgen -W '");
	put_verbs(o);
	writer_text(o, " --help' -- \"$word\")\n\t\treturn\n\tfi\n\tcase $verb in\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];

		writer_text(o, "\t'");
		writer_text(o, v->verb);
		writer_text(o, "') options='");
		put_options(o, v);
		put_settings(o, v);
		writer_text(o, "' ;;\n");
	}
	writer_text(o, "\tesac\n");
}

static void print_bash(struct writer *o)
{
	put_remark(o, "bash");
	writer_text(o,
		"_carrel()\n"
		"{\n"
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} last= verb options i\n"
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
		"\tcase $last in\n"
		"\t-s|--session)\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W "
		"\"$(carrel session list 2>/dev/null | cut -d ' ' -f 1)\" -- \"$word\")\n"
		"\t\treturn ;;\n"
		"\t--template)\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		"\t\treturn ;;\n");
	bash_cases(o, COMPLETES_DIRS, "mapfile -t COMPREPLY < <(compgen -d -- \"$word\")");
	bash_cases(o, COMPLETES_FILES, "mapfile -t COMPREPLY < <(compgen -f -- \"$word\")");
	bash_words(o);
	bash_cases(o, COMPLETES_NOTHING, ":");
	writer_text(o,
		"\tesac\n"
		"\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W '");
	put_verbs(o);
	writer_text(o, "' -- \"$word\")\n\t\treturn\n\tfi\n\tverb=${COMP_WORDS[1]} options=\n");
	bash_verbs(o);
	writer_text(o,
		"\tcase $word in\n"
		"\t-*) mapfile -t COMPREPLY < <(compgen -W \"$options --help\" -- \"$word\") ;;\n"
		"\t*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -f -- \"$word\") ;;\n"
		"\tesac\n"
		"}\n"
		"complete -o filenames -F _carrel carrel\n");
}

/* One specification of zsh's _arguments; quoted as a whole in single quotes. */
static void zsh_setting(struct writer *o, const struct setting *s)
{
	writer_text(o, "\t\t'");
	if (s->merge == MERGE_LIST)
		writer_char(o, '*');
	writer_text(o, "--");
	writer_text(o, s->name);
	writer_char(o, '[');
	for (const char *c = s->help; *c; c++) {
		if (*c == '[' || *c == ']' || *c == ':' || *c == '\\')
			writer_char(o, '\\');
		if (*c == '\'')
			writer_text(o, "'\\'");
		writer_char(o, *c);
	}
	writer_char(o, ']');
	if (s->placeholder) {
		writer_char(o, ':');
		writer_escaped(o, s->placeholder, ":[]", "\\");
		writer_char(o, ':');
	}
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		writer_text(o, "_files -/");
		break;
	case COMPLETES_FILES:
		writer_text(o, "_files");
		break;
	case COMPLETES_WORDS:
		writer_char(o, '(');
		put_words(o, s);
		writer_char(o, ')');
		break;
	case COMPLETES_NOTHING:
		break;
	}
	writer_text(o, "' \\\n");
	if (s->kind == KIND_FLAG) {
		writer_text(o, "\t\t'--no-");
		writer_text(o, s->name);
		writer_text(o, "[turn it off]' \\\n");
	}
}

/* Second words, and the options of verbs that take no settings; others fall through. */
static void zsh_verbs(struct writer *o)
{
	writer_text(o,
		"\tlocal verb=$words[2]\n\tif [[ $verb = help ]]; then\n"
		"\t\t(( CURRENT > 3 )) || compadd -a verbs\n\t\treturn\n\tfi\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!begins_second_words(i))
			continue;
		writer_text(o, "\tif [[ $verb = ");
		for (size_t n = 0; n < first_length(i); n++)
			writer_char(o, verb_words[i].verb[n]);
		writer_text(o, " ]]; then\n\t\tif (( CURRENT == 3 )); then\n\t\t\tcompadd -- ");
		put_second_words(o, i);
		writer_text(o, "\n\t\t\treturn\n\t\tfi\n\t\tverb+=\" $words[3]\"\n\tfi\n");
	}
	writer_text(o, "\tcase $verb in\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];

		writer_text(o, "\t'");
		writer_text(o, v->verb);
		writer_text(o, "')\n\t\tcompadd -- ");
		put_options(o, v);
		if (v->settings == SETTINGS_EXECUTION)
			put_settings(o, v);
		writer_text(o,
			v->settings == SETTINGS_ALL ? " ;;\n"
						    : " --help\n\t\t_files\n\t\treturn ;;\n");
	}
	writer_text(o, "\tesac\n");
}

static void print_zsh(struct writer *o)
{
	writer_text(o, "#compdef carrel\n");
	put_remark(o, "zsh");
	writer_text(o,
		"_carrel()\n"
		"{\n"
		"\tlocal -a verbs=(");
	put_verbs(o);
	writer_text(o,
		")\n\tif (( CURRENT == 2 )); then\n\t\tcompadd -a verbs\n\t\treturn\n\tfi\n");
	zsh_verbs(o);
	writer_text(o, "\tshift words; (( CURRENT-- ))\n\t_arguments -S \\\n");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			zsh_setting(o, &settings_table[i]);
	writer_text(o,
		"\t\t'(- *)'{-h,--help}'[show help]' \\\n"
		"\t\t'*:: :_normal'\n"
		"}\n"
		"_carrel \"$@\"\n");
}

/* Verbs that take settings: those of the table with `settings`. */
#define FISH_SETTINGS \
	"__fish_seen_subcommand_from run start shell plan attest mcp; or begin; " \
	"__fish_seen_subcommand_from policy; and __fish_seen_subcommand_from show; end"

/* Its second word is a verb, and nothing follows. */
#define FISH_HELP "set -l words (commandline -opc); test \"$words[2]\" = help"

static void fish_verbs(struct writer *o)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];
		size_t length = first_length(i);

		if (begins_second_words(i)) {
			writer_text(
				o, "complete -c carrel -f -n '__fish_seen_subcommand_from ");
			for (size_t n = 0; n < length; n++)
				writer_char(o, v->verb[n]);
			writer_text(o, "; and not __fish_seen_subcommand_from ");
			put_second_words(o, i);
			writer_text(o, "' -a '");
			put_second_words(o, i);
			writer_text(o, "'\n");
		}
		writer_text(o, "complete -c carrel -n '__fish_seen_subcommand_from ");
		for (size_t n = 0; n < length; n++)
			writer_char(o, v->verb[n]);
		if (v->verb[length]) {
			writer_text(o, "; and __fish_seen_subcommand_from ");
			writer_text(o, v->verb + length + 1);
		}
		writer_text(o, "' -a '");
		put_options(o, v);
		if (v->settings == SETTINGS_EXECUTION)
			put_settings(o, v);
		writer_text(o, "'\n");
	}
}

static void fish_setting(struct writer *o, const struct setting *s)
{
	writer_text(o, "complete -c carrel -n '" FISH_SETTINGS "' -l ");
	writer_text(o, s->name);
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		writer_text(o, " -x -a '(__fish_complete_directories)'");
		break;
	case COMPLETES_FILES:
		writer_text(o, " -r -F");
		break;
	case COMPLETES_WORDS:
		writer_text(o, " -x -a '");
		put_words(o, s);
		writer_char(o, '\'');
		break;
	case COMPLETES_NOTHING:
		writer_text(o, s->kind == KIND_FLAG ? "" : " -x");
		break;
	}
	writer_text(o, " -d '");
	writer_escaped(o, s->help, "'\\", "\\");
	writer_text(o, "'\n");
	if (s->kind == KIND_FLAG) {
		writer_text(o, "complete -c carrel -n '" FISH_SETTINGS "' -l no-");
		writer_text(o, s->name);
		writer_text(o, " -d 'Turn it off'\n");
	}
}

static void print_fish(struct writer *o)
{
	put_remark(o, "fish");
	writer_text(o, "complete -c carrel -f -n __fish_use_subcommand -a '");
	put_verbs(o);
	writer_text(o,
		"'\ncomplete -c carrel -f -n '" FISH_HELP "'\n"
		"complete -c carrel -f -n '" FISH_HELP "; and test (count $words) -eq 2' -a '");
	put_verbs(o);
	writer_text(o, "'\n");
	fish_verbs(o);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			fish_setting(o, &settings_table[i]);
	writer_text(o, "complete -c carrel -s h -l help -d 'Show help'\n");
}

int settings_print_completion(const char *shell, writer_fn write, void *context)
{
	char buffer[1024];
	struct writer o;

	writer_init(&o, buffer, sizeof(buffer), write, context);

	if (!strcmp(shell, "bash"))
		print_bash(&o);
	else if (!strcmp(shell, "zsh"))
		print_zsh(&o);
	else if (!strcmp(shell, "fish"))
		print_fish(&o);
	else
		return -EINVAL;
	return writer_finish(&o);
}
