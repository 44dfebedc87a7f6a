/*
 * error_report.c - see error_report.h.
 *
 * Runs in: every process outside the box.
 */
#include "base/error_report.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

int error_report(const struct error *e)
{
	char text[2048];

	if (e->code == ERROR_NONE)
		return STATUS_CARREL;
	size_t length = error_format(e, text, sizeof(text));
	/* If stderr cannot be written, the exit status alone reports the failure. */
	(void)!fd_write_all(STDERR_FILENO, text, length);
	return STATUS_CARREL;
}

int error_report_unknown_verb(const char *word, const char *const *names, size_t count)
{
	struct error e = { 0 };
	char words[128];
	(void)error_set(&e, ERROR_USAGE, "options", 0, word,
		word ? "there is no such verb" : "a verb is missing");
	const char *nearest = word ? text_nearest(word, names, count) : NULL;

	text_words(names, count, words, sizeof(words));
	if (nearest)
		error_hint(&e, "did you mean '%s'?", nearest);
	else if (words[0])
		error_hint(&e, "%s", words);
	return error_report(&e);
}
