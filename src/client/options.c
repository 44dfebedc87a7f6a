/*
 * options.c - see options.h.
 *
 * Runs in: the client. PURE.
 */
#include "client/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/settings.h"

struct reader {
	int argc, next;
	const char *const *argv;
	struct client_option *options;
	size_t count;
	const char *usage;
	struct error *e;
};

static int option_error(struct reader *r, const char *on, const char *what)
{
	int result = error_set(r->e, ERROR_USAGE, "options", 0, on, "%s", what);

	error_hint(r->e, "%s", r->usage);
	return result;
}

static struct client_option *find_option(struct reader *r, const char *name, size_t length)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strncmp(r->options[i].name, name, length) && !r->options[i].name[length])
			return &r->options[i];
	return NULL;
}

/* The verb has no option for this setting of sessions: say where it belongs, and which options the verb has. */
static int of_session(struct reader *r, const char *word)
{
	char own[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < r->count; i++) {
		const char *name = r->options[i].name;

		if (!settings_find(name, strlen(name)))
			continue;
		int n = snprintf(own + used, sizeof(own) - used, "%s%s",
			used ? ", " : "; one execution can have: ", name);
		if (n > 0 && used + (size_t)n < sizeof(own))
			used += (size_t)n;
	}
	own[used] = '\0';
	error_hint(r->e, "give it to `carrel session start`%s", own);
	return option_error(r, word, "this is a setting of the whole session");
}

static int unknown(struct reader *r, const char *word)
{
	const char *best = NULL;
	const struct setting *setting = strncmp(word, "--", 2) != 0
		? NULL
		: settings_find(word + 2, strcspn(word + 2, "="));

	if (setting && !setting->system_only)
		return of_session(r, word);
	for (size_t i = 0; i < r->count && !best; i++)
		if (!strncmp(word, "--", 2) && text_nearest(word + 2, &r->options[i].name, 1))
			best = r->options[i].name;
	if (best)
		error_hint(r->e, "did you mean --%s?", best);
	return option_error(r, word, "unknown option");
}

static int take_option(
	struct reader *r, struct client_option *o, const char *word, const char *value)
{
	const char *mistaken = o->placeholder || value
		? NULL
		: settings_mistaken_word(r->argc, r->argv, r->next);

	if (mistaken && settings_find(o->name, strlen(o->name)))
		return option_error(r, mistaken,
			"this would be the command, and a flag takes no value: it stands behind --");
	if (!o->placeholder && value)
		return option_error(r, word, "a flag takes no value");
	if (o->placeholder && !value) {
		if (r->next >= r->argc || !strcmp(r->argv[r->next], "--"))
			return option_error(r, word, "a value is missing");
		value = r->argv[r->next++];
	}
	if (o->values)
		o->values[o->count] = value;
	o->value = value;
	o->off = false;
	o->count++;
	return 0;
}

static int read_word(struct reader *r, const char *word)
{
	if (word[1] != '-') {
		for (size_t i = 0; i < r->count; i++)
			if (r->options[i].letter && word[1] == r->options[i].letter && !word[2])
				return take_option(r, &r->options[i], word, NULL);
		return unknown(r, word);
	}
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
	struct client_option *o = find_option(r, word + 2, length);

	if (!o && length > 3 && !strncmp(word, "--no-", 5) && !equals) {
		o = find_option(r, word + 5, length - 3);
		/* --no-FLAG turns off a flag that is a setting, as everywhere. */
		if (o && !o->placeholder && settings_find(o->name, strlen(o->name))) {
			o->off = true;
			o->count = 0;
			return 0;
		}
		o = NULL;
	}
	return o ? take_option(r, o, word, equals ? equals + 1 : NULL) : unknown(r, word);
}

int options_read(int argc, const char *const *argv, int first, struct client_option *options,
	size_t count, const char *usage, int *ret_next, struct error *e)
{
	struct reader r = { .argc = argc,
		.next = first,
		.argv = argv,
		.options = options,
		.count = count,
		.usage = usage,
		.e = e };

	while (r.next < argc && argv[r.next][0] == '-' && argv[r.next][1]) {
		const char *word = argv[r.next++];

		if (!strcmp(word, "--"))
			break;
		if (!strcmp(word, "-h") || !strcmp(word, "--help"))
			return 1;
		int result = read_word(&r, word);
		if (result < 0)
			return result;
	}
	*ret_next = r.next;
	return 0;
}
