/*
 * tool_list.c - the tool `list`: a directory, as the session sees it.
 *
 * Runs in: carrel-agent, outside. The directory was opened inside, and its mounts are those of the
 * session: what is hidden there is hidden here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/harmless.h"
#include "agent/tool_file.h"
#include "base/fd.h"
#include "host/tree/beneath.h"

enum { ENTRIES_MAX = 20000, LIMIT = 1000, LIMIT_MAX = 10000, BLOCK = 32768 };

struct work {
	struct tool_file file; /* first */
	size_t limit;
};

struct names {
	char **name;
	size_t count;
	bool more; /* there are more than ENTRIES_MAX */
};

static void names_free(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->name[i]);
	free(n->name);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(int dir, struct names *ret, char *block)
{
	struct beneath_list list = { .fd = dir, .buffer = block, .size = BLOCK };
	struct beneath_entry *entry;
	int r;

	while ((r = beneath_next(&list, &entry)) > 0) {
		if (ret->count == ENTRIES_MAX) {
			ret->more = true;
			return 0;
		}
		char *copy = strdup(entry->name);
		if (!copy)
			return -ENOMEM;
		ret->name[ret->count++] = copy;
	}
	return r;
}

static const char *type_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	default:
		return "special";
	}
}

static int add_entry(int dir, const char *name, json_t *entries, struct buffer *text)
{
	autobuffer struct buffer shown = { 0 };
	struct stat st;
	struct tm tm;
	char when[32];

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	harmless_add(&shown, name, strlen(name));
	if (!gmtime_r(&st.st_mtime, &tm) ||
		!strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		when[0] = '\0';
	buffer_format(text, "%10lld  %s  %s%s\n", (long long)st.st_size, when, shown.data,
		S_ISDIR(st.st_mode)           ? "/"
			: S_ISLNK(st.st_mode) ? "@"
					      : "");
	return json_array_append_new(entries,
		json_pack("{s:s, s:s, s:I, s:s}", "name", shown.data, "type",
			type_word(st.st_mode), "size", (json_int_t)st.st_size, "modified",
			when));
}

/* Make both forms of the answer; 0 or -errno. */
static int list_entries(
	const struct work *w, int dir, json_t *entries, struct buffer *text, bool *ret_cut)
{
	struct names n = { .name = calloc(ENTRIES_MAX, sizeof(char *)) };
	char *block = malloc(BLOCK);
	int r = n.name && block ? read_names(dir, &n, block) : -ENOMEM;

	free(block);
	if (r == 0 && n.count > 1)
		qsort(n.name, n.count, sizeof(n.name[0]), compare);
	for (size_t i = 0; i < n.count && i < w->limit && r == 0; i++)
		r = add_entry(dir, n.name[i], entries, text);
	*ret_cut = n.more || n.count > w->limit;
	if (n.count == 0)
		buffer_text(text, "(empty)\n");
	if (*ret_cut)
		buffer_format(text,
			"[%s%zu entries, the first %zu are shown; `exec` with find or ls "
			"shows others]\n",
			n.more ? "more than " : "", n.count, w->limit);
	names_free(&n);
	return r < 0 ? (r == -1 ? -ENOMEM : r) : 0;
}

static void list_opened(struct tool_file *f, int *fd, const char *path)
{
	struct work *w = (struct work *)f;
	autofd int dir = take_fd(fd);
	autobuffer struct buffer text = { 0 }, shown = { 0 };
	json_t *entries = json_array();
	bool cut = false;

	harmless_add(&shown, path, strlen(path));
	buffer_format(&text, "%s:\n", shown.data ? shown.data : "");
	int r = list_entries(w, dir, entries, &text, &cut);
	/* A directory below a hidden one may be shown again. */
	if (r == 0 && json_array_size(entries) == 0 && f->hidden.used > 0)
		r = -EACCES;
	if (r < 0) {
		json_decref(entries);
		return tool_file_refuse(f, -r);
	}
	struct call *c = w->file.call;
	tool_file_free(f);
	call_answer_text(c, &text,
		json_pack(
			"{s:s, s:o, s:b}", "path", shown.data, "entries", entries, "cut", cut));
}

static void list_start(struct call *c, const json_t *arguments)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return call_refuse(c, "out of memory");
	w->file.opened = list_opened;
	w->limit = (size_t)field_integer(arguments, "limit", LIMIT);
	tool_file_open(
		&w->file, c, field_text(arguments, "path", "."), O_RDONLY | O_DIRECTORY, 0);
}

static const struct field input[] = {
	{ .name = "path",
		.type = FIELD_TEXT,
		.help = "A directory; relative to the scratch, which is the default" },
	{ .name = "limit",
		.type = FIELD_INTEGER,
		.min = 1,
		.max = LIMIT_MAX,
		.help = "Entries that are returned at most (1000)" },
	{ 0 },
};

static const struct field entry[] = {
	{ .name = "name", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "type",
		.type = FIELD_TEXT,
		.flags = FIELD_REQUIRED,
		.help = "file, directory, link or special" },
	{ .name = "size", .type = FIELD_INTEGER, .flags = FIELD_REQUIRED, .help = "Bytes" },
	{ .name = "modified", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, .help = "UTC" },
	{ 0 },
};

static const struct field output[] = {
	{ .name = "path", .type = FIELD_TEXT, .flags = FIELD_REQUIRED },
	{ .name = "entries", .type = FIELD_OBJECTS, .flags = FIELD_REQUIRED, .fields = entry },
	{ .name = "cut",
		.type = FIELD_BOOLEAN,
		.flags = FIELD_REQUIRED,
		.help = "There are more entries than were returned" },
	{ 0 },
};

const struct tool tool_list = {
	.name = "list",
	.title = "List a directory",
	.description =
		"The entries of a directory with type, size and time; of the scratch by default.",
	.input = input,
	.output = output,
	.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	.start = list_start,
};
