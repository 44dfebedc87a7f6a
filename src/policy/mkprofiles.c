/*
 * mkprofiles.c - build step: the shipped profiles, read as the launcher reads a policy, as tables.
 *
 * Runs in: the build only; never installed. May not: read a text in any other way than the launcher.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/embedded.h"
#include "plan/policy_line.h"

enum { ARENA_SIZE = 16 << 20 };

static void write_string(FILE *out, const char *text)
{
	if (!text) {
		fputs("NULL", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++)
		/* Three octal digits always: no digit that follows is taken for one of them. */
		if (isalnum((unsigned char)*text) || strchr("/._-: ", *text))
			fputc(*text, out);
		else
			fprintf(out, "\\%03o", (unsigned)(unsigned char)*text);
	fputc('"', out);
}

static void write_line(FILE *out, const struct policy_line *l)
{
	fputs("\t{ .text = ", out);
	write_string(out, l->text);
	fputs(", .dest = ", out);
	write_string(out, l->dest);
	fputs(",\n\t\t.source = { .layer = LAYER_PROFILE, .file = ", out);
	write_string(out, l->source.file);
	fprintf(out,
		", .line = %uU },\n\t\t.number = %lluU, .hash = %uU, .id = %u, .kind = %u, "
		".optional = %d, .glob = %d },\n",
		l->source.line, (unsigned long long)l->number, l->hash, l->id, l->kind,
		l->optional, l->glob);
}

static __attribute__((noinline)) int write_profile(
	FILE *out, size_t index, struct arena *arena, struct error *e)
{
	const struct embedded_text *text = &embedded_texts[index];
	const struct policy_names names = { 0 };
	const struct policy_resolver res = {
		.names = &names,
		.texts = embedded_texts,
		.text_count = embedded_text_count,
		.filters = embedded_filters,
		.filter_count = embedded_filter_count,
	};
	struct policy p;
	const char *shown = arena_format(arena, "profile:%s", text->name);

	if (!shown)
		return error_no_memory(e, "profiles");
	policy_init(&p, arena);
	int r = policy_add_text(&p, LAYER_PROFILE, shown, text->text, text->size, &res, e);
	if (r < 0)
		return r;
	fprintf(out, "/* %s */\nstatic const struct policy_line lines_%zu[] = {\n", text->name,
		index);
	for (size_t i = 0; i < p.line_count; i++) {
		if (p.lines[i].net)
			return error_set(e, ERROR_POLICY, "profiles", 0, text->name,
				"a shipped profile allows and denies no hosts");
		write_line(out, &p.lines[i]);
	}
	fputs("};\n\n", out);
	return 0;
}

static bool is_profile(const struct embedded_text *text)
{
	return !strchr(text->name, '.') && policy_is_profile(text);
}

static int write_all(FILE *out, struct arena *arena, struct error *e)
{
	int r = 0;

	fputs("/* Written by mkprofiles from policy/: do not edit. */\n"
	      "#include \"plan/embedded.h\"\n#include \"plan/policy_line.h\"\n\n",
		out);
	for (size_t i = 0; i < embedded_text_count && r >= 0; i++)
		if (is_profile(&embedded_texts[i]))
			r = write_profile(out, i, arena, e);
	fputs("const struct embedded_profile embedded_profiles[] = {\n", out);
	for (size_t i = 0; i < embedded_text_count; i++)
		if (is_profile(&embedded_texts[i]))
			fprintf(out,
				"\t{ \"%s\", lines_%zu, sizeof(lines_%zu) / sizeof(lines_%zu[0]) },\n",
				embedded_texts[i].name, i, i, i);
	fputs("};\nconst size_t embedded_profile_count =\n"
	      "\tsizeof(embedded_profiles) / sizeof(embedded_profiles[0]);\n",
		out);
	return r;
}

int main(int argc, char **argv)
{
	struct error e = { 0 };
	struct arena arena;
	static char text[1024];

	if (argc != 2) {
		(void)fputs("usage: mkprofiles OUT.c\n", stderr);
		return 2;
	}
	FILE *out = arena_init(&arena, ARENA_SIZE) < 0 ? NULL : fopen(argv[1], "we");
	if (!out) {
		perror(argv[1]);
		return 1;
	}
	int r = write_all(out, &arena, &e);
	bool is_bad = ferror(out) != 0;
	if ((fclose(out) != 0 || is_bad) && r >= 0)
		r = error_set(&e, ERROR_INTERNAL, "profiles", EIO, argv[1], "cannot write");
	if (r >= 0)
		return 0;
	/* A half-written table must not look newer than its sources. */
	(void)unlink(argv[1]);
	(void)error_format(&e, text, sizeof(text));
	(void)fputs(text, stderr);
	return 1;
}
