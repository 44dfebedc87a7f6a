/*
 * verb.c - what the verbs share; see verbs.h.
 *
 * Runs in: carrel-policy, outside.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "plan/settings.h"
#include "policy/verbs.h"

int verb_say(const struct error *e)
{
	char text[2048];
	size_t size = error_format(e, text, sizeof(text));

	/* Where stderr cannot be written, the status says it. */
	(void)!fd_write_all(STDERR_FILENO, text, size);
	return STATUS_CARREL;
}

int verb_unknown(const char *word, const char *const *names, size_t count)
{
	struct error e = { 0 };

	(void)error_set(&e, ERROR_USAGE, "options", 0, word,
		word ? "there is no such verb" : "a verb is missing");
	const char *nearest = word ? text_nearest(word, names, count) : NULL;
	if (nearest)
		error_hint(&e, "did you mean '%s'?", nearest);
	return verb_say(&e);
}

int verb_write(void *context, const void *data, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, data, size);
}

int verb_output_failed(int r)
{
	struct error e = { 0 };

	(void)error_set(&e, ERROR_INTERNAL, "plan", -r, "stdout", "cannot write the answer");
	return verb_say(&e);
}

int verb_usage(const char *usage)
{
	int r = verb_write(NULL, usage, strlen(usage));

	if (r >= 0)
		r = settings_print_help(verb_write, NULL);
	return r < 0 ? STATUS_CARREL : 0;
}
