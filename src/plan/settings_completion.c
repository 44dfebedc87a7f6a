/*
 * settings_completion.c - the settings table and the verbs' own words for shells.
 *
 * Runs in: the build. PURE: bytes go to the caller's function.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "plan/settings_output.h"

/* What a verb takes beside settings. tests/lint/completions holds it to what --help says. */
struct verb_words {
	const char *verb; /* with its second word, where it has one */
	bool settings;
	const char *options;
	const char *words; /* what stands alone */
};

#define EXEC_OPTIONS \
	"--session -s --cwd --env --tty --timeout --grace --cpu-time --file-size --open-files --memory " \
	"--pids --cpus --output-budget --output-max --merge-output --report --quiet --workspace-mode --net"

static const struct verb_words verb_words[] = {
	{ "run", true, "", "" },
	{ "session start", true, "--json --foreground --die-with", "" },
	{ "session list", false, "--json", "" },
	{ "session show", false, "--session -s --json", "" },
	{ "session end", false, "--session -s --json", "" },
	{ "exec", false, EXEC_OPTIONS " --detach --name --stop", "" },
	{ "shell", true, "--session -s", "" },
	{ "read", false, "--session -s --lines --chars --bytes", "" },
	{ "scratch path", false, "--session -s", "" },
	{ "scratch list", false, "--session -s --json", "" },
	{ "scratch put", false, "--session -s --force", "" },
	{ "scratch get", false, "--session -s", "" },
	{ "scratch remove", false, "--session -s", "" },
	{ "promote", false, "--session -s --copy --force --dry-run --json", "" },
	{ "prompt", false, "--session -s --template", "" },
	{ "gc", false, "--dry-run --scratch-base", "" },
	{ "why", true, "--session -s --json", "" },
	{ "plan", true, "--json", "" },
	{ "policy show", true, "--json", "" },
	{ "policy check", false, "--system", "" },
	{ "doctor", false, "--json", "" },
	{ "attest", true, "--json", "" },
	{ "mcp", true, "", "" },
	{ "pad", false, "--session -s --json", "write append read clear" },
	{ "help", false, "", "" },
};
enum { VERB_COUNT = sizeof(verb_words) / sizeof(verb_words[0]) };

static size_t first_length(size_t i)
{
	return strcspn(verb_words[i].verb, " ");
}

/* The first words, each once: those of one verb stand side by side. */
static void put_verbs(struct output *o)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		size_t length = first_length(i);

		if (i && length == first_length(i - 1) &&
			!strncmp(verb_words[i].verb, verb_words[i - 1].verb, length))
			continue;
		output_text(o, i ? " " : "");
		for (size_t n = 0; n < length; n++)
			output_char(o, verb_words[i].verb[n]);
	}
}

/* The second words of the verb of entry @i, of which it is the first. */
static void put_second_words(struct output *o, size_t i)
{
	size_t length = first_length(i);

	for (size_t at = i; at < VERB_COUNT && first_length(at) == length &&
		!strncmp(verb_words[at].verb, verb_words[i].verb, length);
		at++) {
		output_text(o, at > i ? " " : "");
		output_text(o, verb_words[at].verb + length + 1);
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
static void put_words(struct output *o, const struct setting *s)
{
	if (s->kind == KIND_PROFILE)
		output_text(o, "agent strict ci container");
	else if (s->kind == KIND_FILTER)
		output_text(o, "default strict nested");
	else
		for (size_t i = 0; s->words[i]; i++) {
			output_text(o, i ? " " : "");
			output_text(o, s->words[i]);
		}
}

static void put_options(struct output *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->system_only)
			continue;
		output_text(o, " --");
		output_text(o, s->name);
		if (s->kind == KIND_FLAG) {
			output_text(o, " --no-");
			output_text(o, s->name);
		}
	}
}

/* A comment of all three languages: what is a line of a file and no option. */
static void put_remark(struct output *o, const char *shell)
{
	output_text(o, "# ");
	output_text(o, shell);
	output_text(o,
		" completion for carrel, made from its settings table\n# in the system policy only:");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].system_only) {
			output_char(o, ' ');
			output_text(o, settings_table[i].name);
		}
	output_char(o, '\n');
}

static void bash_cases(struct output *o, enum completes what, const char *action)
{
	bool first = true;

	output_text(o, "\t");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->system_only || s->kind == KIND_FLAG || what_completes(s) != what)
			continue;
		output_text(o, first ? "--" : "|--");
		output_text(o, s->name);
		first = false;
	}
	output_text(o, ")\n\t\t");
	output_text(o, action);
	output_text(o, "\n\t\treturn ;;\n");
}

static void bash_words(struct output *o)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (what_completes(s) != COMPLETES_WORDS)
			continue;
		output_text(o, "\t--");
		output_text(o, s->name);
		output_text(o, ")\n\t\tmapfile -t COMPREPLY < <(compgen -W '");
		put_words(o, s);
		output_text(o, "' -- \"$word\")\n\t\treturn ;;\n");
	}
}

/* What follows the verb: its second word, then its options. */
static void bash_verbs(struct output *o)
{
	output_text(o, "\tcase $verb in\n\t");
	for (size_t i = 0, first = 1; i < VERB_COUNT; i++)
		if (begins_second_words(i)) {
			output_text(o, first ? "" : "|");
			for (size_t n = 0; n < first_length(i); n++)
				output_char(o, verb_words[i].verb[n]);
			first = 0;
		}
	output_text(o, ")\n\t\tverb+=\" ${COMP_WORDS[2]}\" ;;\n\tesac\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!begins_second_words(i))
			continue;
		output_text(o, "\tif [ \"$COMP_CWORD\" -eq 2 ] && [ \"${COMP_WORDS[1]}\" = ");
		for (size_t n = 0; n < first_length(i); n++)
			output_char(o, verb_words[i].verb[n]);
		output_text(o, " ]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '");
		put_second_words(o, i);
		output_text(o, " --help' -- \"$word\")\n\t\treturn\n\tfi\n");
	}
	output_text(o,
		"\tif [ \"$verb\" = help ]; then\n\t\t[ \"$COMP_CWORD\" -gt 2 ] ||\n"
		"\t\t\tmapfile -t COMPREPLY < <(compgen -W '");
	put_verbs(o);
	output_text(o, " --help' -- \"$word\")\n\t\treturn\n\tfi\n\tcase $verb in\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];

		output_text(o, "\t'");
		output_text(o, v->verb);
		output_text(o, "') options='");
		output_text(o, v->options);
		output_text(o, *v->words ? " " : "");
		output_text(o, v->words);
		if (v->settings)
			put_options(o);
		output_text(o, "' ;;\n");
	}
	output_text(o, "\tesac\n");
}

static void print_bash(struct output *o)
{
	put_remark(o, "bash");
	output_text(o,
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
	output_text(o,
		"\tesac\n"
		"\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W '");
	put_verbs(o);
	output_text(o, "' -- \"$word\")\n\t\treturn\n\tfi\n\tverb=${COMP_WORDS[1]} options=\n");
	bash_verbs(o);
	output_text(o,
		"\tcase $word in\n"
		"\t-*) mapfile -t COMPREPLY < <(compgen -W \"$options --help\" -- \"$word\") ;;\n"
		"\t*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -f -- \"$word\") ;;\n"
		"\tesac\n"
		"}\n"
		"complete -o filenames -F _carrel carrel\n");
}

/* One specification of zsh's _arguments; quoted as a whole in single quotes. */
static void zsh_setting(struct output *o, const struct setting *s)
{
	output_text(o, "\t\t'");
	if (s->merge == MERGE_LIST)
		output_char(o, '*');
	output_text(o, "--");
	output_text(o, s->name);
	output_char(o, '[');
	for (const char *c = s->help; *c; c++) {
		if (*c == '[' || *c == ']' || *c == ':' || *c == '\\')
			output_char(o, '\\');
		if (*c == '\'')
			output_text(o, "'\\'");
		output_char(o, *c);
	}
	output_char(o, ']');
	if (s->placeholder) {
		output_char(o, ':');
		output_escaped(o, s->placeholder, ":[]", "\\");
		output_char(o, ':');
	}
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		output_text(o, "_files -/");
		break;
	case COMPLETES_FILES:
		output_text(o, "_files");
		break;
	case COMPLETES_WORDS:
		output_char(o, '(');
		put_words(o, s);
		output_char(o, ')');
		break;
	case COMPLETES_NOTHING:
		break;
	}
	output_text(o, "' \\\n");
	if (s->kind == KIND_FLAG) {
		output_text(o, "\t\t'--no-");
		output_text(o, s->name);
		output_text(o, "[turn it off]' \\\n");
	}
}

/* Second words, and the options of verbs that take no settings; others fall through. */
static void zsh_verbs(struct output *o)
{
	output_text(o,
		"\tlocal verb=$words[2]\n\tif [[ $verb = help ]]; then\n"
		"\t\t(( CURRENT > 3 )) || compadd -a verbs\n\t\treturn\n\tfi\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!begins_second_words(i))
			continue;
		output_text(o, "\tif [[ $verb = ");
		for (size_t n = 0; n < first_length(i); n++)
			output_char(o, verb_words[i].verb[n]);
		output_text(o, " ]]; then\n\t\tif (( CURRENT == 3 )); then\n\t\t\tcompadd -- ");
		put_second_words(o, i);
		output_text(o, "\n\t\t\treturn\n\t\tfi\n\t\tverb+=\" $words[3]\"\n\tfi\n");
	}
	output_text(o, "\tcase $verb in\n");
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];

		output_text(o, "\t'");
		output_text(o, v->verb);
		output_text(o, "')\n\t\tcompadd -- ");
		output_text(o, v->options);
		output_text(o, *v->words ? " " : "");
		output_text(o, v->words);
		output_text(o, v->settings ? " ;;\n" : " --help\n\t\t_files\n\t\treturn ;;\n");
	}
	output_text(o, "\tesac\n");
}

static void print_zsh(struct output *o)
{
	output_text(o, "#compdef carrel\n");
	put_remark(o, "zsh");
	output_text(o,
		"_carrel()\n"
		"{\n"
		"\tlocal -a verbs=(");
	put_verbs(o);
	output_text(o,
		")\n\tif (( CURRENT == 2 )); then\n\t\tcompadd -a verbs\n\t\treturn\n\tfi\n");
	zsh_verbs(o);
	output_text(o, "\tshift words; (( CURRENT-- ))\n\t_arguments -S \\\n");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			zsh_setting(o, &settings_table[i]);
	output_text(o,
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

static void fish_verbs(struct output *o)
{
	for (size_t i = 0; i < VERB_COUNT; i++) {
		const struct verb_words *v = &verb_words[i];
		size_t length = first_length(i);

		if (begins_second_words(i)) {
			output_text(
				o, "complete -c carrel -f -n '__fish_seen_subcommand_from ");
			for (size_t n = 0; n < length; n++)
				output_char(o, v->verb[n]);
			output_text(o, "; and not __fish_seen_subcommand_from ");
			put_second_words(o, i);
			output_text(o, "' -a '");
			put_second_words(o, i);
			output_text(o, "'\n");
		}
		output_text(o, "complete -c carrel -n '__fish_seen_subcommand_from ");
		for (size_t n = 0; n < length; n++)
			output_char(o, v->verb[n]);
		if (v->verb[length]) {
			output_text(o, "; and __fish_seen_subcommand_from ");
			output_text(o, v->verb + length + 1);
		}
		output_text(o, "' -a '");
		output_text(o, v->options);
		output_text(o, *v->words ? " " : "");
		output_text(o, v->words);
		output_text(o, "'\n");
	}
}

static void fish_setting(struct output *o, const struct setting *s)
{
	output_text(o, "complete -c carrel -n '" FISH_SETTINGS "' -l ");
	output_text(o, s->name);
	switch (s->kind == KIND_FLAG ? COMPLETES_NOTHING : what_completes(s)) {
	case COMPLETES_DIRS:
		output_text(o, " -x -a '(__fish_complete_directories)'");
		break;
	case COMPLETES_FILES:
		output_text(o, " -r -F");
		break;
	case COMPLETES_WORDS:
		output_text(o, " -x -a '");
		put_words(o, s);
		output_char(o, '\'');
		break;
	case COMPLETES_NOTHING:
		output_text(o, s->kind == KIND_FLAG ? "" : " -x");
		break;
	}
	output_text(o, " -d '");
	output_escaped(o, s->help, "'\\", "\\");
	output_text(o, "'\n");
	if (s->kind == KIND_FLAG) {
		output_text(o, "complete -c carrel -n '" FISH_SETTINGS "' -l no-");
		output_text(o, s->name);
		output_text(o, " -d 'Turn it off'\n");
	}
}

static void print_fish(struct output *o)
{
	put_remark(o, "fish");
	output_text(o, "complete -c carrel -f -n __fish_use_subcommand -a '");
	put_verbs(o);
	output_text(o,
		"'\ncomplete -c carrel -f -n '" FISH_HELP "'\n"
		"complete -c carrel -f -n '" FISH_HELP "; and test (count $words) -eq 2' -a '");
	put_verbs(o);
	output_text(o, "'\n");
	fish_verbs(o);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!settings_table[i].system_only)
			fish_setting(o, &settings_table[i]);
	output_text(o, "complete -c carrel -s h -l help -d 'Show help'\n");
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
	return output_finish(&o);
}
