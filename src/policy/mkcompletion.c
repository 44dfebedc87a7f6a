/*
 * mkcompletion.c - makes a completion script from the settings table, a file of verbs, and a template for its shell.
 *
 * Runs in: the build only; never installed. May not: know more of any shell than how it quotes.
 *
 * A line of the template that begins with "@each LIST@" is written once for each row of LIST, with what stands between
 * two '@' replaced. Lists of verbs: verb, first (each first word once), second (of those that have one). Lists of
 * settings: option (all), flag, dirs, files, words, plain (by what completes their value); with `execution` after
 * it those that one execution can have. Every other line is written as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/writer.h"
#include "plan/settings.h"

enum { FILE_MAX = 64 * 1024, VERB_MAX = 64 };

struct verb {
	const char *verb, *settings, *options;
};

/* What fills a line in: a verb or a setting. */
struct row {
	const struct verb *verb;
	const struct setting *setting;
	bool execution;
};

struct maker {
	const char *shell;
	struct writer out;
	char buffer[4096];
	struct verb verbs[VERB_MAX];
	size_t verb_count;
};

static size_t first_length(const struct verb *v)
{
	return strcspn(v->verb, " ");
}

static bool same_first(const struct verb *a, const struct verb *b)
{
	return first_length(a) == first_length(b) &&
		!strncmp(a->verb, b->verb, first_length(a));
}

/* "VERB: SETTINGS: OPTIONS" */
static int read_verbs(struct maker *m, char *text)
{
	for (char *line = text, *end; *line; line = end + 1) {
		end = line + strcspn(line, "\n");
		if (!*end)
			return -EBADMSG;
		*end = '\0';
		if (*line == '#')
			continue;
		char *settings = strchr(line, ':');
		char *options = settings ? strchr(settings + 1, ':') : NULL;
		if (!options || m->verb_count == VERB_MAX)
			return -EBADMSG;
		*settings++ = *options++ = '\0';
		m->verbs[m->verb_count++] = (struct verb){ line,
			settings + strspn(settings, " "), options + strspn(options, " ") };
	}
	return 0;
}

static const char *list_of(const struct setting *s)
{
	switch ((int)s->kind) {
	case KIND_FLAG:
		return "flag";
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_DIRS:
		return "dirs";
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_DEVICE:
	case KIND_POLICY_FILE:
	case KIND_REPORT:
		return "files";
	case KIND_ENUM:
	case KIND_WALL:
	case KIND_PROFILE:
	case KIND_INCLUDE:
	case KIND_FILTER:
		return "words";
	default:
		return "plain";
	}
}

/* Inside of single quotes; zsh's _arguments has special characters of its own. */
static void put_text(struct maker *m, const char *text)
{
	bool zsh = !strcmp(m->shell, "zsh"), fish = !strcmp(m->shell, "fish");

	for (; *text; text++) {
		if (strchr(fish ? "'\\" : zsh ? "[]:\\" : "", *text))
			writer_char(&m->out, '\\');
		writer_text(&m->out, *text == '\'' && !fish ? "'\\'" : "");
		writer_char(&m->out, *text);
	}
}

/* The shipped texts that the setting may name, or NULL. */
static const char *shipped_words(const struct setting *s)
{
	switch (s->kind) {
	case KIND_PROFILE:
		return "agent strict ci container";
	case KIND_INCLUDE:
		return "hide protect toolchains environment";
	case KIND_FILTER:
		return "default strict nested";
	default:
		return NULL;
	}
}

/* Separated by one space. */
static void put_words(struct maker *m, const struct row *r)
{
	const struct setting *s = r->setting;
	const char *tightest = r->execution ? settings_tightest(s) : NULL;
	const char *fixed = tightest ? tightest : shipped_words(s);

	if (fixed) {
		writer_text(&m->out, fixed);
		return;
	}
	for (size_t i = 0; s->words[i]; i++)
		writer_format(&m->out, "%s%s", i ? " " : "", s->words[i]);
}

static bool put_setting(struct maker *m, const struct row *r, const char *name)
{
	const struct setting *s = r->setting;

	if (!strcmp(name, "name"))
		writer_text(&m->out, s->name);
	else if (!strcmp(name, "help"))
		put_text(m, r->execution && s->execution_help ? s->execution_help : s->help);
	else if (!strcmp(name, "placeholder"))
		put_text(m, s->placeholder ? s->placeholder : "");
	else if (!strcmp(name, "star"))
		writer_text(&m->out, s->merge == MERGE_LIST ? "*" : "");
	else if (!strcmp(name, "words"))
		put_words(m, r);
	else
		return false;
	return true;
}

static bool put_verb(struct maker *m, const struct verb *v, const char *name)
{
	size_t first = first_length(v);

	if (!strcmp(name, "verb"))
		writer_text(&m->out, v->verb);
	else if (!strcmp(name, "first"))
		writer_bytes(&m->out, v->verb, first);
	else if (!strcmp(name, "second"))
		writer_text(&m->out, v->verb + first + (v->verb[first] == ' '));
	else if (!strcmp(name, "settings"))
		writer_text(&m->out, v->settings);
	else if (!strcmp(name, "options"))
		writer_text(&m->out, v->options);
	else
		return false;
	return true;
}

/* The rest of a line, for one row. */
static void put_row(struct maker *m, const struct row *r, const char *line)
{
	char name[32];

	for (const char *at; (at = strchr(line, '@')); line = at + strlen(name) + 2) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "@"), at + 1);
		writer_bytes(&m->out, line, (size_t)(at - line));
		if (at[strlen(name) + 1] != '@' ||
			!(r->verb ? put_verb(m, r->verb, name) : put_setting(m, r, name)))
			return writer_fail(&m->out, -EBADMSG);
	}
	writer_text(&m->out, line);
	writer_char(&m->out, '\n');
}

static bool put_verbs(struct maker *m, const char *list, const char *line)
{
	bool all = !strcmp(list, "verb"), first = !strcmp(list, "first");

	if (!all && !first && strcmp(list, "second") != 0)
		return false;
	for (size_t i = 0; i < m->verb_count; i++) {
		const struct verb *v = &m->verbs[i];

		if (all || (first ? !i || !same_first(v - 1, v) : strchr(v->verb, ' ') != NULL))
			put_row(m, &(struct row){ .verb = v }, line);
	}
	return true;
}

static bool put_settings(struct maker *m, const char *list, const char *line)
{
	size_t length = strcspn(list, " "), rows = 0;
	bool execution = !strcmp(list + length, " execution");
	bool all = !strncmp(list, "option", length);

	if (list[length] && !execution)
		return false;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];
		const char *own = list_of(s);

		if (s->system_only || (execution && !s->per_execution) ||
			(!all && (strncmp(own, list, length) != 0 || own[length])))
			continue;
		put_row(m, &(struct row){ .setting = s, .execution = execution }, line);
		rows++;
	}
	return rows > 0;
}

static int fill_template(struct maker *m, char *text)
{
	for (char *line = text, *end; *line; line = end + 1) {
		end = line + strcspn(line, "\n");
		if (!*end)
			return -EBADMSG;
		*end = '\0';
		if (strncmp(line, "@each ", 6) != 0) {
			writer_text(&m->out, line);
			writer_char(&m->out, '\n');
			continue;
		}
		char *list = line + 6, *rest = strchr(list, '@');
		if (!rest)
			return -EBADMSG;
		*rest++ = '\0';
		if (!put_verbs(m, list, rest) && !put_settings(m, list, rest))
			return -EBADMSG;
	}
	return 0;
}

/* DIR/NAME as a text that stays until the end. */
static int read_text(const char *dir, const char *name, char **ret)
{
	char path[2048];
	char *text = calloc(1, FILE_MAX + 1);

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	autofd int fd = text ? fd_open_at(AT_FDCWD, path, O_RDONLY, 0) : -ENOMEM;
	ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, FILE_MAX);
	*ret = text;
	return n < 0 ? (int)n : 0;
}

static int make_completion(struct maker *m, const char *dir, const char *name)
{
	char *verbs, *template;
	int r = read_text(dir, "verbs", &verbs);

	if (r < 0)
		return r;
	r = read_text(dir, name, &template);
	if (r < 0)
		return r;
	r = read_verbs(m, verbs);
	if (r < 0)
		return r;
	r = fill_template(m, template);
	return r < 0 ? r : writer_finish(&m->out);
}

int main(int argc, char **argv)
{
	static struct maker m;
	static const int out = STDOUT_FILENO;
	char name[64];

	if (argc != 3) {
		(void)fputs("usage: mkcompletion bash|zsh|fish DIR\n", stderr);
		return 2;
	}
	m.shell = argv[1];
	(void)snprintf(name, sizeof(name), "carrel.%s.in", m.shell);
	writer_init(&m.out, m.buffer, sizeof(m.buffer), fd_write_to, (void *)&out);
	int r = make_completion(&m, argv[2], name);
	if (r >= 0)
		return 0;
	(void)fprintf(stderr, "mkcompletion: %s: %s\n", name, strerror(-r));
	return 1;
}
