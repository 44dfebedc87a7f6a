/*
 * quarantine_text.c - see quarantine_text.h.
 *
 * Runs in: the client, outside.
 */
#include "client/quarantine_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "client/talk.h"
#include "host/tree/plainfile.h"

enum { TEXT_MAX = 1 << 20 };

int quarantine_text_read(struct quarantine_text *ret, struct arena *a, int place)
{
	struct quarantine_text t = { 0 };
	autofd int fd = plainfile_reopen(place);
	char *text = fd < 0 ? NULL : arena_alloc(a, TEXT_MAX + 1);

	if (!text)
		return fd < 0 ? fd : -ENOMEM;
	ssize_t n = fd_read_up_to(fd, text, TEXT_MAX + 1);
	if (n < 0)
		return (int)n;
	t.size = (size_t)n;
	t.text = text;
	t.cut = t.size > TEXT_MAX;
	if (t.cut)
		t.size = TEXT_MAX;
	*ret = t;
	return 0;
}

/* --- printing --------------------------------------------------------------------------------- */

static size_t line_length(const char *text, size_t size)
{
	const char *end = memchr(text, '\n', size);

	return end ? (size_t)(end - text) : size;
}

/* Print a piece without tabs and NULs. A character that does not fit whole is shown as its bytes. */
static int print_piece(const char *text, size_t length, struct error *e)
{
	char piece[512], shown[4 * sizeof(piece)];
	int r = 0;

	while (r >= 0 && length > 0) {
		size_t take = length < sizeof(piece) - 1 ? length : sizeof(piece) - 1;
		const char *at = piece;

		memcpy(piece, text, take);
		piece[take] = '\0';
		while (*at && r >= 0) {
			size_t size = text_visible(&at, "\\", shown, sizeof(shown));

			r = talk_result(shown, size, e);
		}
		text += take;
		length -= take;
	}
	return r;
}

/* Print one line without its end. A tab is harmless; a NUL is shown as \x00. */
static int print_line(const char *prefix, const char *text, size_t length, struct error *e)
{
	int r = talk_result(prefix, strlen(prefix), e);

	while (r >= 0 && length > 0) {
		size_t piece = 0;

		while (piece < length && text[piece] && text[piece] != '\t')
			piece++;
		r = print_piece(text, piece, e);
		if (r >= 0 && piece < length)
			r = text[piece] ? talk_result("\t", 1, e) : talk_result("\\x00", 4, e);
		piece += piece < length;
		text += piece;
		length -= piece;
	}
	return r < 0 ? r : talk_result("\n", 1, e);
}

static int print_lines(const char *text, size_t size, const char *prefix, struct error *e)
{
	int r = 0;

	while (size > 0 && r >= 0) {
		size_t length = line_length(text, size);
		size_t step = length + (length < size);

		r = print_line(prefix, text, length, e);
		text += step;
		size -= step;
	}
	return r;
}

int quarantine_text_print(const struct quarantine_text *t, const char *prefix, struct error *e)
{
	static const char more[] = "... and more\n";
	int r = print_lines(t->text, t->size, prefix, e);

	return r < 0 || !t->cut ? r : talk_result(more, sizeof(more) - 1, e);
}

/* --- comparing -------------------------------------------------------------------------------- */

bool quarantine_text_same(const struct quarantine_text *a, const struct quarantine_text *b)
{
	return a->absent == b->absent && a->size == b->size && a->cut == b->cut &&
		(a->size == 0 || !memcmp(a->text, b->text, a->size));
}

/* How many bytes both begin with, in whole lines. @ret_lines: how many lines. */
static size_t common_start(
	const struct quarantine_text *a, const struct quarantine_text *b, size_t *ret_lines)
{
	size_t at = 0, lines = 0;

	for (;;) {
		size_t left = a->size - at, right = b->size - at;
		size_t length = left ? line_length(a->text + at, left) : 0;

		if (left <= length || right <= length ||
			memcmp(a->text + at, b->text + at, length + 1) != 0)
			break;
		at += length + 1;
		lines++;
	}
	*ret_lines = lines;
	return at;
}

/* How many bytes both end with, after @start, in whole lines. */
static size_t common_end(
	const struct quarantine_text *a, const struct quarantine_text *b, size_t start)
{
	size_t most = (a->size < b->size ? a->size : b->size) - start, same = 0, whole = 0;

	while (same < most && a->text[a->size - 1 - same] == b->text[b->size - 1 - same]) {
		same++;
		/* In both texts a line begins here. */
		size_t at = a->size - same, bt = b->size - same;
		if ((at == start || a->text[at - 1] == '\n') &&
			(bt == start || b->text[bt - 1] == '\n'))
			whole = same;
	}
	return whole;
}

int quarantine_text_diff(const struct quarantine_text *was, const struct quarantine_text *would,
	bool *ret_differ, struct error *e)
{
	char where[64];
	size_t lines;

	*ret_differ = !quarantine_text_same(was, would);
	if (!*ret_differ)
		return 0;
	size_t start = common_start(was, would, &lines);
	size_t end = common_end(was, would, start);
	int length = snprintf(where, sizeof(where), "@@ line %zu @@\n", lines + 1);
	int r = talk_result(where, (size_t)length, e);

	if (r >= 0)
		r = print_lines(was->text + start, was->size - start - end, "-", e);
	return r < 0 ? r : print_lines(would->text + start, would->size - start - end, "+", e);
}
