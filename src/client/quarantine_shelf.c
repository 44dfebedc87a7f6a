/*
 * quarantine_shelf.c - see quarantine_shelf.h.
 *
 * Runs in: the client, outside.
 */
#include "client/quarantine_shelf.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

enum { ARENA_SIZE = 256 << 20 }; /* address space */

/* Two names of the list of places may lead to the same directory. */
static bool is_known(const struct quarantine_shelf *s, int fd)
{
	struct stat st, other;

	if (fstat(fd, &st) < 0)
		return true;
	for (unsigned i = 0; i < s->place_count; i++)
		if (fstat(s->records[i], &other) == 0 && other.st_dev == st.st_dev &&
			other.st_ino == st.st_ino)
			return true;
	return false;
}

static void open_places(struct quarantine_shelf *s, const char *const *environment)
{
	for (unsigned n = 0; n < STATE_PLACES; n++) {
		struct state_place place;

		if (state_place_nth(&place, environment, n) < 0)
			continue;
		autofd int fd = quarantine_record_open(place.dir);
		if (fd >= 0 && !is_known(s, fd))
			s->records[s->place_count++] = take_fd(&fd);
		state_place_close(&place);
	}
}

static int read_place(struct quarantine_shelf *s, int records)
{
	struct quarantine_record *list = NULL;
	size_t count = 0;
	int r = quarantine_record_list(records, &s->arena, &list, &count);

	for (size_t i = 0; r >= 0 && i < count; i++) {
		struct quarantine_entry *grown =
			arena_push(&s->arena, s->entries, s->count, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->entries = grown;
		grown[s->count++] =
			(struct quarantine_entry){ .record = &list[i], .records = records };
	}
	return r;
}

int quarantine_shelf_open(
	struct quarantine_shelf *ret, const char *const *environment, struct error *e)
{
	*ret = (struct quarantine_shelf){ 0 };
	if (arena_init(&ret->arena, ARENA_SIZE) < 0)
		return error_no_memory(e, "session");
	int r = 0;

	open_places(ret, environment);
	for (unsigned i = 0; i < ret->place_count && r >= 0; i++)
		r = read_place(ret, ret->records[i]);
	return r < 0 ? error_set(e, ERROR_STATE, "session", -r, NULL,
			       "cannot read the records of what was quarantined")
		     : 0;
}

void quarantine_shelf_close(struct quarantine_shelf *s)
{
	while (s->place_count > 0)
		fd_close(&s->records[--s->place_count]);
	arena_free(&s->arena);
}

const struct quarantine_entry *quarantine_shelf_find(
	const struct quarantine_shelf *s, const char *word, struct error *e)
{
	const struct quarantine_entry *found = NULL;
	size_t length = strlen(word);
	int r = 0;

	for (size_t i = 0; i < s->count && length > 0; i++) {
		if (strncmp(s->entries[i].record->id, word, length) != 0)
			continue;
		if (found) {
			r = error_set(e, ERROR_PATH, "session", 0, word,
				"more than one thing in quarantine has an id that begins so");
			found = NULL;
			break;
		}
		found = &s->entries[i];
	}
	if (!found && r == 0) {
		r = error_set(
			e, ERROR_PATH, "session", 0, word, "nothing in quarantine has this id");
		error_hint(e, "carrel quarantine list shows what there is");
	}
	return found;
}

size_t quarantine_shelf_size(const char *const *environment)
{
	struct quarantine_shelf s = { 0 };
	size_t count = 0;

	open_places(&s, environment);
	for (unsigned i = 0; i < s.place_count; i++) {
		count += quarantine_record_count(s.records[i]);
		fd_close(&s.records[i]);
	}
	return count;
}
