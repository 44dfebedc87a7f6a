/*
 * compile.c - see compile.h.
 *
 * Runs in: carrel-policy. May not: read or write any file but stdout.
 */
#include "policy/compile.h"

#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "host/load/filter_cache.h"
#include "policy/filter.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

static int full(struct error *e)
{
	return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), NULL,
		"out of memory: the filter cannot be compiled");
}

static int no_such_filter(const char *base, struct error *e)
{
	const char *names[64];
	size_t count = 0;

	for (size_t i = 0; i < embedded_filter_count && count < 64; i++)
		if (embedded_filters[i].arch == NATIVE_ARCH)
			names[count++] = embedded_filters[i].name;
	int r = error_set(
		e, ERROR_POLICY, "policy", 0, base, "there is no such system-call filter");
	const char *nearest = text_nearest(base, names, count);
	if (nearest)
		error_hint(e, "did you mean '%s'?", nearest);
	return r;
}

static int read_filter(struct filter *f, const char *base, const struct compile_line *lines,
	size_t count, struct error *e)
{
	const struct filter_texts texts = { embedded_texts, embedded_text_count };
	const char *file = arena_format(f->arena, "%s.policy", base);

	if (!file)
		return full(e);
	if (!embedded_find_filter(base))
		return no_such_filter(base, e);
	int r = filter_parse(f, &texts, file, e);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = filter_parse_line(f, lines[i].text, lines[i].file, lines[i].line, e);
	return r;
}

static void fill_header(struct filter_file_header *h, const char *base,
	const char *const *texts, size_t line_count, const struct sock_filter *code,
	uint32_t count)
{
	*h = (struct filter_file_header){
		.version = FILTER_FILE_VERSION, .arch = NATIVE_ARCH, .count = count
	};
	memcpy(h->magic, FILTER_FILE_MAGIC, sizeof(h->magic));
	filter_cache_inputs(base, texts, line_count, h->inputs);
	sha256(code, count * sizeof(*code), h->content);
}

int compile_filter(struct arena *arena, const char *base, const struct compile_line *lines,
	size_t count, const void **ret_data, size_t *ret_size, struct error *e)
{
	struct filter f;
	struct filter_file_header *h =
		arena_alloc(arena, sizeof(*h) + FILTER_SIZE_MAX * sizeof(struct sock_filter));
	const char **texts = arena_array(arena, count + 1, sizeof(*texts));
	unsigned short size = 0;

	if (!h || !texts)
		return full(e);
	for (size_t i = 0; i < count; i++)
		texts[i] = lines[i].text;
	filter_init(&f, arena);
	int r = read_filter(&f, base, lines, count, e);
	if (r < 0)
		return r;
	struct sock_filter *code = (struct sock_filter *)(h + 1);
	r = filter_compile(&f, NATIVE_ARCH, code, &size, e);
	/* A fault of the generator would be a hole: use no program that was not tried out. */
	if (r == 0)
		r = filter_check(&f, NATIVE_ARCH, code, size, NULL, e);
	if (r < 0)
		return r;
	fill_header(h, base, texts, count, code, size);
	*ret_data = h;
	*ret_size = sizeof(*h) + size * sizeof(*code);
	return 0;
}

/* --- the verb --------------------------------------------------------------------------------- */

static int parse_arguments(struct arena *arena, int argc, char **argv,
	struct compile_line **ret_lines, size_t *ret_count, struct error *e)
{
	size_t count = argc < 2 ? 0 : (size_t)(argc - 2) / 3;
	struct compile_line *lines = arena_array(arena, count + 1, sizeof(*lines));

	if (argc < 2 || (argc - 2) % 3 != 0 || isatty(STDOUT_FILENO)) {
		int r = error_set(e, ERROR_USAGE, "options", 0, NULL,
			"carrel-policy compile has other arguments");
		error_hint(e, "compile FILTER [FILE LINE TEXT]... >OUTPUT");
		return r;
	}
	if (!lines)
		return full(e);
	for (size_t i = 0; i < count; i++) {
		uint64_t line = 0;
		char **at = &argv[2 + 3 * i];

		/* The command line's own settings count from 0. */
		if (strcmp(at[1], "0") != 0 &&
			(text_parse_count(at[1], &line) < 0 || line > UINT_MAX))
			return error_set(
				e, ERROR_USAGE, "options", 0, at[1], "not a line number");
		lines[i] = (struct compile_line){ at[0], (unsigned)line, at[2] };
	}
	*ret_lines = lines;
	*ret_count = count;
	return 0;
}

static int compile_arguments(struct arena *arena, int argc, char **argv, struct error *e)
{
	struct compile_line *lines = NULL;
	const void *data = NULL;
	size_t count = 0, size = 0;

	int r = parse_arguments(arena, argc, argv, &lines, &count, e);
	if (r == 0)
		r = compile_filter(arena, argv[1], lines, count, &data, &size, e);
	if (r < 0)
		return r;
	r = fd_write_all(STDOUT_FILENO, data, size);
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "policy", -r, "stdout",
			"cannot write the compiled filter");
	return 0;
}

/* To stderr for people, to stdout for the launcher. */
static void report_fault(const struct error *e)
{
	char text[2048];
	size_t size = error_format(e, text, sizeof(text));

	if (!isatty(STDOUT_FILENO))
		/* If the answer cannot be written, the launcher sees none, and fails. */
		if (fd_write_all(STDOUT_FILENO, e, sizeof(*e)) < 0)
			return;
	if (fd_write_all(STDERR_FILENO, text, size) < 0)
		return;
}

int compile_main(int argc, char **argv)
{
	struct arena arena = { 0 };
	struct error e = { 0 };

	int r = arena_init(&arena, FILTER_ARENA_SIZE);
	if (r < 0)
		r = full(&e);
	else
		r = compile_arguments(&arena, argc, argv, &e);
	if (r < 0)
		report_fault(&e);
	arena_free(&arena);
	return r < 0 ? STATUS_CARREL : 0;
}
