/*
 * policy_arguments.c - settings on the command line, read into lines.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/policy_line.h"

int policy_fail_setting(const struct policy_place *at, const char *name)
{
	int r = policy_fail(at, "unknown setting '%.60s'", name);
	const char *nearest = settings_nearest(name + strspn(name, "-"));

	if (nearest)
		error_hint(at->e, "did you mean '%s'?", nearest);
	return r;
}

int policy_add_flag_word(struct policy_place *at, const struct setting *s, const char *word)
{
	if (!word || !strcmp(word, "yes"))
		return policy_add_flag(at, s, true);
	if (!strcmp(word, "no"))
		return policy_add_flag(at, s, false);
	return policy_fail(
		at, "'%s' is followed by yes, no or nothing, not '%.60s'", s->name, word);
}

/* Lines of the command line all have this very pointer as their source's file. */
static const char command_line[] = POLICY_COMMAND_LINE;

/* The characters that lose their meaning behind a backslash on the command line. */
static const char *argument_special(const struct setting *s, const char *value)
{
	switch (s->kind) {
	case KIND_PATH_EARLY:
	case KIND_PATH_LATE:
	case KIND_PATH_RULE:
		return s->id == SETTING_UNIX_SOCKET ? "$~:" : "$~";
	case KIND_DEVICE:
	case KIND_DIRS:
	case KIND_POLICY_FILE:
		return "$~";
	case KIND_GLOB_RULE:
		return "$~*?[";
	case KIND_PROMOTE:
		return "$~:*?[";
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_REPORT: /* fd:N */
		return "$~:";
	case KIND_ENV: /* a pattern where it is only a name; else '*' is a letter of the value */
		return strchr(value, '=') ? "$" : "*";
	case KIND_ENV_NAME:
	case KIND_HOST:
		return "*";
	default:
		return "";
	}
}

/*
 * Whether carrel sets this variable anyway, so that the option is passed over: a caller that passes
 * its whole environment on names these, too. PWD counts only with the value that it has.
 */
static bool is_set_anyway(const char *variable, const struct policy_resolver *r)
{
	if (strncmp(variable, "PWD=", 4) != 0)
		return policy_own_variable(variable, strlen(variable));
	return (r->cwd && !strcmp(variable + 4, r->cwd)) ||
		(r->pwd && !strcmp(variable + 4, r->pwd));
}

static int add_argument(struct policy *p, const struct policy_resolver *r,
	const struct source *source, const struct setting *s, const char *value,
	struct error *e)
{
	struct policy_place at = {
		.p = p,
		.r = r,
		.source = *source,
		.dir = r->cwd,
		.setting = s->name,
		.e = e,
	};
	if (s->system_only) {
		error_hint(e, "write it into /etc/carrel/policy");
		return policy_fail(&at, "only the system policy can have '%s'", s->name);
	}
	if (s->id == SETTING_ENV && is_set_anyway(value, r)) {
		p->passed_over = value;
		return 0;
	}
	const char *word = word_from_argument(p, value, argument_special(s, value));
	if (!word)
		return policy_full(e);
	/* a file that is named here is a layer of its own, below the command line */
	return policy_add_word(
		&at, s, s->id == SETTING_POLICY ? LAYER_FILE : source->layer, word);
}

int policy_add_setting(struct policy *p, const char *from, const char *name, const char *value,
	const struct policy_resolver *r, struct error *e)
{
	/* below the command line, whichever is read first */
	struct source source = { .layer = LAYER_FILE, .file = from };
	struct policy_place at = { .p = p, .r = r, .source = source, .setting = name, .e = e };
	const struct setting *s = settings_find(name, strlen(name));

	if (!s)
		return policy_fail_setting(&at, name);
	if (s->kind == KIND_FLAG)
		return policy_add_flag_word(&at, s, value);
	if (!value)
		return policy_fail(&at, "'%s' needs %s", s->name, s->placeholder);
	return add_argument(p, r, &source, s, value, e);
}

struct arguments {
	struct policy *p;
	const struct policy_resolver *r;
	struct error *e;
	const char *const *argv;
	int argc, next;
	struct policy_verb_flag *flags;
	size_t flag_count;
};

static struct policy_verb_flag *find_flag(struct arguments *a, const char *name, size_t length)
{
	for (size_t i = 0; i < a->flag_count; i++)
		if (!strncmp(a->flags[i].name, name, length) && !a->flags[i].name[length])
			return &a->flags[i];
	return NULL;
}

/* The value of --name: behind the '=' or the next argument. NULL with the error. */
static const char *take_value(struct arguments *a, struct policy_place *at, const char *name,
	const char *placeholder, const char *equals)
{
	if (equals)
		return equals + 1;
	if (a->next < a->argc && strncmp(a->argv[a->next], "--", 2) != 0)
		return a->argv[a->next++];
	(void)policy_fail(at, "a value is missing");
	if (a->next < a->argc && strcmp(a->argv[a->next], "--") != 0)
		error_hint(a->e, "a value that starts with dashes is written --%s=VALUE", name);
	else
		error_hint(a->e, "--%s %s", name, placeholder);
	return NULL;
}

/*
 * Join the two words of `--syscall allow NAME`, which are one value, as in a file. A condition has
 * many words: only quotes tell where it ends.
 */
static const char *take_second(struct arguments *a, struct policy_place *at,
	const struct setting *s, const char *first)
{
	const char *next = a->next < a->argc ? a->argv[a->next] : "--";

	if (!strncmp(next, "--", 2)) {
		(void)policy_fail(at, "'--%s' needs %s", s->name, s->placeholder);
		return NULL;
	}
	if (++a->next < a->argc && !strcmp(a->argv[a->next], "if")) {
		(void)policy_fail(at, "a condition is a part of one argument");
		error_hint(a->e, "--%s '%s %s if EXPR'", s->name, first, next);
		return NULL;
	}
	const char *value = arena_join(a->p->arena, first, ' ', next);
	if (!value)
		(void)policy_full(a->e);
	return value;
}

static int check_word_behind(struct arguments *a, struct policy_place *at, const char *name)
{
	const char *word = settings_mistaken_word(a->argc, a->argv, a->next);

	if (!word)
		return 0;
	error_hint(a->e, "write --%s or --no-%s; a command of that name stands behind --", name,
		name);
	return policy_fail(at, "a flag takes no value, and '%s' would be the command", word);
}

static int fail_argument(
	struct arguments *a, struct policy_place *at, const char *name, size_t length)
{
	char word[64];

	(void)snprintf(word, sizeof(word), "%.*s", (int)(length < 60 ? length : 60), name);
	at->setting = word;
	int r = policy_fail(at, "unknown option");
	const char *nearest = settings_nearest(word);
	for (size_t i = 0; !nearest && i < a->flag_count; i++)
		if (text_nearest(word, &a->flags[i].name, 1))
			nearest = a->flags[i].name;
	if (nearest)
		error_hint(a->e, "did you mean '--%s'?", nearest);
	return r;
}

static int take_flag(struct arguments *a, struct policy_verb_flag *flag, const char *equals)
{
	struct policy_place at = policy_option_place(flag->name, a->e);

	flag->given = true;
	if (!flag->placeholder)
		return equals ? policy_fail(&at, "a flag takes no value") : 0;
	flag->value = take_value(a, &at, flag->name, flag->placeholder, equals);
	return flag->value ? 0 : -EINVAL;
}

/* Read one option. @name is the text behind the dashes. */
static int read_option(struct arguments *a, const char *name, const struct source *source)
{
	struct policy_place at = { .p = a->p, .r = a->r, .source = *source, .e = a->e };
	const char *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct setting *s = settings_find(name, length);
	struct policy_verb_flag *flag = s ? NULL : find_flag(a, name, length);
	bool off = false;

	if (flag)
		return take_flag(a, flag, equals);
	if (!s && length > 3 && !strncmp(name, "no-", 3)) {
		s = settings_find(name + 3, length - 3);
		off = s && s->kind == KIND_FLAG;
	}
	if (!s || (!off && !strncmp(name, "no-", 3)))
		return fail_argument(a, &at, name, length);
	at.setting = s->name;
	if (s->kind == KIND_FLAG) {
		int r = equals ? -EINVAL : check_word_behind(a, &at, s->name);
		if (!equals)
			return r < 0 ? r : policy_add_flag(&at, s, !off);
		error_hint(a->e, "write --%s or --no-%s", s->name, s->name);
		return policy_fail(&at, "a flag takes no value");
	}
	const char *value = take_value(a, &at, s->name, s->placeholder, equals);
	if (value && !equals && settings_arguments(s, value) == 2)
		value = take_second(a, &at, s, value);
	return value ? add_argument(a->p, a->r, source, s, value, a->e) : -EINVAL;
}

/* -X, of a verb that has it. */
static int read_letter(struct arguments *a, const char *word)
{
	for (size_t i = 0; i < a->flag_count; i++)
		if (a->flags[i].letter && word[1] == a->flags[i].letter && !word[2])
			return take_flag(a, &a->flags[i], NULL);
	error_hint(a->e, "options have two dashes and are written in full");
	return error_set(a->e, ERROR_USAGE, "options", 0, word, "unknown option");
}

int policy_add_arguments(struct policy *p, int argc, const char *const *argv, int first,
	const struct policy_resolver *r, struct policy_verb_flag *flags, size_t flag_count,
	int *ret_next, struct error *e)
{
	struct arguments a = {
		.p = p,
		.r = r,
		.e = e,
		.argv = argv,
		.argc = argc,
		.next = first,
		.flags = flags,
		.flag_count = flag_count,
	};

	while (a.next < argc && argv[a.next][0] == '-') {
		const char *word = argv[a.next];
		struct source source = {
			.layer = LAYER_COMMAND, .line = (unsigned)a.next++, .file = command_line
		};

		if (!strcmp(word, "--"))
			break;
		if (!strcmp(word, "-h") || !strcmp(word, "--help"))
			return 1;
		int result = strncmp(word, "--", 2) != 0 ? read_letter(&a, word)
							 : read_option(&a, word + 2, &source);
		if (result < 0)
			return result;
	}
	*ret_next = a.next;
	return 0;
}
