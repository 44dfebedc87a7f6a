/*
 * mkpolicy.c - the build step that turns policy/ into tables: mkpolicy POLICYDIR OUT.c
 *
 * Runs in: the build, as its own program. Every file of POLICYDIR but NAME.tests becomes an
 * embedded text, every NAME.policy also a compiled filter for each architecture, and one more
 * text, "filters.digest", names all of that by content (the cache of filters compiled at run time
 * depends on it). May not: depend on the order of the directory, the time or the place: the same
 * policy/ gives the same bytes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "policy/filter.h"

#define TEXT_MAX (1u << 18)
#define FILE_MAX 128

struct tables {
	struct arena arena;
	struct embedded_text texts[FILE_MAX];
	size_t text_count;
	struct sha256 digest;
};

static const struct {
	const char *name;
	uint32_t arch;
} archs[] = {
	{ "AUDIT_ARCH_X86_64", AUDIT_ARCH_X86_64 },
	{ "AUDIT_ARCH_AARCH64", AUDIT_ARCH_AARCH64 },
};
#define ARCH_COUNT (sizeof(archs) / sizeof(archs[0]))

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix);
}

static int failed(struct error *e, int errnum, const char *on, const char *what)
{
	return error_set(e, ERROR_INTERNAL, "policy", errnum, on, "%s", what);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_text(struct tables *t, int dirfd, const char *name, struct error *e)
{
	autofd int fd = fd_open_at(dirfd, name, O_RDONLY, 0);
	struct embedded_text *text = &t->texts[t->text_count];

	if (fd < 0)
		return failed(e, -fd, name, "cannot open");
	if (t->text_count == FILE_MAX)
		return failed(e, E2BIG, name, "more than 128 files");
	char *data = arena_alloc(&t->arena, TEXT_MAX + 1);
	if (!data)
		return failed(e, ENOMEM, name, "cannot read");
	ssize_t size = fd_read_file(fd, data, TEXT_MAX);
	if (size < 0)
		return failed(e, (int)-size, name, "cannot read");
	text->name = arena_copy(&t->arena, name, strlen(name));
	if (!text->name)
		return failed(e, ENOMEM, name, "cannot read");
	text->text = data;
	text->size = (size_t)size;
	t->text_count++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct embedded_text *)a)->name,
		((const struct embedded_text *)b)->name);
}

static int read_texts(struct tables *t, const char *path, struct error *e)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return failed(e, errno, path, "cannot open the directory");
	while (r == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || ends_with(entry->d_name, ".tests"))
			continue;
		r = read_text(t, dirfd(dir), entry->d_name, e);
	}
	if (r == 0 && errno)
		r = failed(e, errno, path, "cannot read the directory");
	(void)closedir(dir); /* read only: nothing is lost */
	qsort(t->texts, t->text_count, sizeof(t->texts[0]), by_name);
	return r;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_literal(FILE *out, const char *text, size_t size)
{
	fputs("\t\t\"", out);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n')
			fputs(i + 1 < size ? "\\n\"\n\t\t\"" : "\\n", out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c >= 0x20 && c < 0x7f && c != '?')
			fputc(c, out);
		else
			fprintf(out, "\\%03o", c);
	}
	fputc('"', out);
}

static void write_text(FILE *out, const struct embedded_text *text)
{
	fprintf(out, "\t{ .name =\n");
	write_literal(out, text->name, strlen(text->name));
	fprintf(out, ",\n\t\t.text =\n");
	write_literal(out, text->text, text->size);
	fprintf(out, ",\n\t\t.size = %zu },\n", text->size);
}

static int write_filter(struct tables *t, FILE *out, const char *name, size_t arch,
	unsigned short *ret_count, struct error *e)
{
	const struct filter_texts texts = { t->texts, t->text_count };
	struct arena arena = { 0 };
	struct filter f;

	int r = arena_init(&arena, FILTER_ARENA_SIZE);
	if (r < 0)
		return failed(e, -r, name, "no memory to compile");
	filter_init(&f, &arena);
	struct sock_filter *code = arena_array(&arena, FILTER_SIZE_MAX, sizeof(*code));
	r = code ? filter_parse(&f, &texts, name, e) : -ENOMEM;
	if (r == 0)
		r = filter_compile(&f, archs[arch].arch, code, ret_count, e);
	if (r == 0)
		r = filter_check(&f, archs[arch].arch, code, *ret_count, NULL, e);
	for (size_t i = 0; r == 0 && i < *ret_count; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%08x },\n", code[i].code, code[i].jt,
			code[i].jf, code[i].k);
	if (r == 0)
		sha256_update(&t->digest, code, *ret_count * sizeof(*code));
	arena_free(&arena);
	return r;
}

/* The filters' code, and in @ret_rows the rows of the table that lists them. */
static int write_filters(struct tables *t, FILE *out, FILE *rows, struct error *e)
{
	for (size_t i = 0; i < t->text_count; i++) {
		const char *name = t->texts[i].name;

		if (!ends_with(name, ".policy"))
			continue;
		for (size_t a = 0; a < ARCH_COUNT; a++) {
			unsigned short count = 0;

			fprintf(out,
				"/* %s */\nstatic const struct sock_filter code_%zu_%zu[] = {\n",
				name, i, a);
			int r = write_filter(t, out, name, a, &count, e);
			if (r < 0)
				return r;
			fprintf(out, "};\n\n");
			fprintf(rows, "\t{ \"%.*s\", %s, code_%zu_%zu, %u },\n",
				(int)(strlen(name) - strlen(".policy")), name, archs[a].name, i,
				a, count);
		}
	}
	return 0;
}

static void digest_text(struct tables *t, const struct embedded_text *text)
{
	sha256_update(&t->digest, text->name, strlen(text->name) + 1);
	sha256_update(&t->digest, text->text, text->size + 1);
}

static int write_tables(struct tables *t, FILE *out, struct error *e)
{
	char *rows = NULL, hex[SHA256_HEX_SIZE];
	uint8_t digest[SHA256_SIZE];
	size_t size = 0;
	FILE *row_out = open_memstream(&rows, &size);

	if (!row_out)
		return failed(e, errno, "rows", "out of memory");
	fputs("/* Written by mkpolicy from policy/: do not edit. */\n"
	      "#include <linux/audit.h>\n#include <linux/filter.h>\n\n"
	      "#include \"plan/embedded.h\"\n\n",
		out);
	int r = write_filters(t, out, row_out, e);
	if (fclose(row_out) != 0 && r == 0)
		r = failed(e, errno, "rows", "out of memory");
	if (r == 0) {
		fputs("const struct embedded_text embedded_texts[] = {\n", out);
		for (size_t i = 0; i < t->text_count; i++) {
			write_text(out, &t->texts[i]);
			digest_text(t, &t->texts[i]);
		}
		sha256_final(&t->digest, digest);
		sha256_hex(digest, hex);
		write_text(
			out, &(struct embedded_text){ "filters.digest", hex, sizeof(hex) - 1 });
		fprintf(out, "};\nconst size_t embedded_text_count = %zu;\n\n",
			t->text_count + 1);
		fprintf(out, "const struct embedded_filter embedded_filters[] = {\n%s};\n",
			rows);
		fputs("const size_t embedded_filter_count =\n"
		      "\tsizeof(embedded_filters) / sizeof(embedded_filters[0]);\n",
			out);
	}
	free(rows);
	return r;
}

/* Write it whole or not at all: a half-written table must not look newer than its sources. */
static int write_file(struct tables *t, const char *path, struct error *e)
{
	const char *part = arena_format(&t->arena, "%s.part", path);
	FILE *out = part ? fopen(part, "we") : NULL;

	if (!out)
		return failed(e, errno, path, "cannot write");
	int r = write_tables(t, out, e);
	bool is_bad = ferror(out) != 0;
	if ((fclose(out) != 0 || is_bad) && r == 0)
		r = failed(e, EIO, path, "cannot write");
	if (r == 0 && rename(part, path) != 0)
		r = failed(e, errno, path, "cannot write");
	if (r < 0)
		(void)unlink(part); /* the failure that matters is known already */
	return r;
}

static int make_tables(
	struct tables *t, const char *directory, const char *path, struct error *e)
{
	int r = arena_init(&t->arena, (size_t)(FILE_MAX + 1) * (TEXT_MAX + 4096));

	if (r < 0)
		return failed(e, -r, directory, "out of memory");
	sha256_init(&t->digest);
	r = read_texts(t, directory, e);
	return r < 0 ? r : write_file(t, path, e);
}

int main(int argc, char **argv)
{
	struct error e = { 0 };
	char text[1024];

	if (argc != 3) {
		fputs("usage: mkpolicy POLICYDIR OUT.c\n", stderr);
		return 2;
	}
	struct tables *t = calloc(1, sizeof(*t));
	int r = t ? make_tables(t, argv[1], argv[2], &e)
		  : failed(&e, ENOMEM, NULL, "out of memory");
	if (r < 0) {
		(void)error_format(&e, text, sizeof(text));
		fputs(text, stderr);
	}
	free(t);
	return r < 0;
}
