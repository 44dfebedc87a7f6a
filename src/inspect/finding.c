/*
 * finding.c - see finding.h.
 *
 * Runs in: carrel-inspect.
 */
#include "inspect/finding.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"

static const char *const verdict_words[] = {
	[VERDICT_OK] = "ok",
	[VERDICT_NOTE] = "note",
	[VERDICT_WARN] = "warn",
	[VERDICT_FAIL] = "FAIL",
};

__attribute__((format(printf, 2, 0))) static const char *format_text(
	struct findings *f, const char *format, va_list args)
{
	char text[1024];

	(void)vsnprintf(text, sizeof(text), format, args);
	const char *copy = arena_copy(f->arena, text, strlen(text));
	if (!copy)
		f->overflow = true;
	return copy;
}

void findings_add(struct findings *f, enum verdict verdict, const char *check, const char *on,
	const char *format, ...)
{
	struct finding *items = arena_push(f->arena, f->items, f->count, sizeof(*items));
	va_list args;

	if (!items) {
		f->overflow = true;
		return;
	}
	f->items = items;
	struct finding *last = &items[f->count++];
	va_start(args, format);
	*last = (struct finding){ .verdict = verdict,
		.check = check,
		.on = on ? arena_copy(f->arena, on, strlen(on)) : NULL,
		.text = format_text(f, format, args) };
	va_end(args);
	if (on && !last->on)
		f->overflow = true;
}

void findings_remedy(struct findings *f, const char *format, ...)
{
	va_list args;

	if (!f->count)
		return;
	va_start(args, format);
	f->items[f->count - 1].remedy = format_text(f, format, args);
	va_end(args);
}

enum verdict findings_worst(const struct findings *f)
{
	enum verdict worst = VERDICT_OK;

	for (size_t i = 0; i < f->count; i++)
		if (f->items[i].verdict > worst)
			worst = f->items[i].verdict;
	return worst;
}

/* A name with a newline or an escape sequence stays one harmless line. */
static int print_parts(int fd, const char *const *parts, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = fd_write_visible(fd, parts[i] ? parts[i] : "");
	return r < 0 ? r : fd_write_all(fd, "\n", 1);
}

int findings_print(const struct findings *f, int fd)
{
	int r = 0;

	for (size_t i = 0; i < f->count && r >= 0; i++) {
		const struct finding *item = &f->items[i];
		const char *const line[] = { verdict_words[item->verdict],
			&"     "[strlen(verdict_words[item->verdict])], item -> check,
			item -> on ? " " : "", item->on, ": ", item->text };
		const char *const remedy[] = { "       remedy: ", item->remedy };

		r = print_parts(fd, line, sizeof(line) / sizeof(line[0]));
		if (r >= 0 && item->remedy)
			r = print_parts(fd, remedy, sizeof(remedy) / sizeof(remedy[0]));
	}
	return r;
}

static void json_member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

int findings_print_json(const struct findings *f, int fd)
{
	char buffer[2048];
	struct json j;

	json_init(&j, buffer, sizeof(buffer), fd_write_to, &fd);
	json_object_begin(&j);
	json_key(&j, "format");
	json_number(&j, 1);
	json_member(&j, "worst", verdict_words[findings_worst(f)]);
	json_key(&j, "checks");
	json_array_begin(&j);
	for (size_t i = 0; i < f->count; i++) {
		const struct finding *item = &f->items[i];

		json_object_begin(&j);
		json_member(&j, "verdict", verdict_words[item->verdict]);
		json_member(&j, "check", item->check);
		json_member(&j, "on", item->on);
		json_member(&j, "text", item->text);
		json_member(&j, "remedy", item->remedy);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	return json_finish(&j);
}
