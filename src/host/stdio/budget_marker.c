/*
 * budget_marker.c - see budget_marker.h.
 *
 * Runs in: S, or the client of an exec. May not: look at anything but the budget.
 */
#include "host/stdio/budget_marker.h"

#include <stdio.h>
#include <string.h>

void budget_figure(uint64_t number, char ret_text[BUDGET_FIGURE_SIZE])
{
	char plain[BUDGET_FIGURE_SIZE];
	int length = snprintf(plain, sizeof(plain), "%llu", (unsigned long long)number);
	char *to = ret_text;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = plain[i];
	}
	*to = '\0';
}

#define BUDGET_GOES "; gone with the session, --keep-for 1h leaves it"

/* Why the file holds less than everything. */
static const char *why_short(const struct budget *b)
{
	return b->file_error ? strerror(b->file_error) : "output-max";
}

/* "full output saved to PATH", and what is true where it is not. */
static int describe_file(const struct budget *b, char *ret_text, size_t size)
{
	char saved[BUDGET_FIGURE_SIZE], all[BUDGET_FIGURE_SIZE];

	budget_figure(b->in_file, saved);
	budget_figure(b->bytes, all);
	if (!b->file_made)
		return snprintf(ret_text, size, "full output not saved%s%s",
			b->file_error ? ": " : "",
			b->file_error ? strerror(b->file_error) : "");
	/* The caller reads this text after the session, when the file may be gone. */
	const char *gone = b->goes ? BUDGET_GOES : "";
	if (b->in_file < b->bytes)
		return snprintf(ret_text, size, "first %s of %s bytes saved to %s/%s: %s%s",
			saved, all, b->dir_path, b->name, why_short(b), gone);
	return snprintf(
		ret_text, size, "full output saved to %s/%s%s", b->dir_path, b->name, gone);
}

size_t budget_marker(const struct budget *b, bool own_line, char *ret_text, size_t size)
{
	char omitted[BUDGET_FIGURE_SIZE];
	char *at = ret_text, *end = ret_text + size;

	budget_figure(budget_omitted(b), omitted);
	at += snprintf(at, (size_t)(end - at), "%s... [%s chars omitted \xe2\x80\x94 ",
		own_line ? "" : "\n", omitted);
	at += describe_file(b, at, (size_t)(end - at));
	at += snprintf(at, (size_t)(end - at), "]\n");
	return (size_t)(at - ret_text);
}
