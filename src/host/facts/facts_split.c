/*
 * facts_split.c - see facts_split.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts_split.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/tree/beneath.h"
#include "plan/path.h"

enum { BUFFER_BYTES = 2048, ENTRIES_MAX = 8192 }; /* of all directories together */

struct splitter {
	struct facts *facts;
	struct arena *arena;
	struct split_fact *splits;
	size_t count, entries;
	struct error *e;
};

static unsigned char type_of(int dir, const struct beneath_entry *entry)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type;
	if (fstatat(dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static int add_entry(struct splitter *s, struct split_fact *split, struct split_entry **entries,
	int dir, const struct beneath_entry *entry)
{
	unsigned char type = type_of(dir, entry);

	/* A link leads to what is allowed at its own place; sockets and devices are not read. */
	if (type != DT_DIR && type != DT_REG)
		return 0;
	if (++s->entries > ENTRIES_MAX) {
		int r = error_set(s->e, ERROR_LIMIT, "facts", ERROR_OWN(E2BIG), split->path,
			"too many entries beside something hidden");

		error_hint(s->e,
			"without mounts each is allowed for itself; hide the whole "
			"directory, or let the machine allow namespaces");
		return r;
	}
	struct split_entry *grown =
		arena_push(s->arena, *entries, split->count, sizeof(**entries));
	const char *name = arena_copy(s->arena, entry->name, strlen(entry->name));
	if (!grown || !name)
		return error_no_memory(s->e, "facts");
	grown[split->count++] = (struct split_entry){ name, type == DT_DIR };
	*entries = grown;
	split->entries = grown;
	return 0;
}

static int list(struct splitter *s, struct split_fact *split)
{
	_Alignas(struct beneath_entry) char buffer[BUFFER_BYTES];
	struct split_entry *entries = NULL;
	struct beneath_entry *entry;
	autofd int dir =
		fd_open_at(AT_FDCWD, split->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct beneath_list names = { .fd = dir, .buffer = buffer, .size = sizeof(buffer) };
	int r = 0;

	/* If carrel cannot list the directory, the command cannot either. */
	while (dir >= 0 && r >= 0 && beneath_next(&names, &entry) > 0)
		r = add_entry(s, split, &entries, dir, entry);
	return r;
}

static int add_split(struct splitter *s, const char *path, size_t length)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strncmp(s->splits[i].path, path, length) && !s->splits[i].path[length])
			return 0;
	struct split_fact split = { .path = arena_copy(s->arena, path, length) };
	int r = split.path ? list(s, &split) : error_no_memory(s->e, "facts");
	if (r < 0)
		return r;
	struct split_fact *grown =
		arena_push(s->arena, s->splits, s->count, sizeof(*s->splits));
	if (!grown)
		return error_no_memory(s->e, "facts");
	grown[s->count++] = split;
	s->splits = grown;
	return 0;
}

/* Every directory above @path. */
static int split_above(struct splitter *s, const char *path)
{
	size_t length = strlen(path);
	char *part = arena_copy(s->arena, path, length);
	int r = part ? 0 : error_no_memory(s->e, "facts");

	while (r >= 0 && length > 1) {
		length = path_parent_length(part);
		r = add_split(s, part, length);
		part[length] = '\0';
	}
	return r;
}

int facts_split(struct facts *facts, struct arena *a, struct error *e)
{
	static const enum system_path places[] = { SYSTEM_DEV, SYSTEM_RUN, SYSTEM_TMP,
		SYSTEM_VAR_TMP };
	struct splitter s = { .facts = facts, .arena = a, .e = e };
	int r = split_above(&s, facts->session_dir);

	if (r >= 0 && facts->state_dir)
		r = split_above(&s, facts->state_dir);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && r >= 0; i++)
		if (facts->system[places[i]].exists)
			r = split_above(&s, facts->system[places[i]].path);
	for (size_t i = 0; i < facts->path_count && r >= 0; i++)
		if ((facts->paths[i].rule->kind == PATH_HIDE ||
			    facts->paths[i].rule->records) &&
			facts->paths[i].exists)
			r = split_above(&s, facts->paths[i].path);
	facts->splits = s.splits;
	facts->split_count = s.count;
	return r;
}
