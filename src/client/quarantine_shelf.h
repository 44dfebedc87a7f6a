/*
 * quarantine_shelf.h - everything that carrel has moved to quarantine, as its own records say.
 *
 * Runs in: the client, outside.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/quarantine/quarantine_record.h"
#include "host/session/state_place.h"

struct quarantine_entry {
	const struct quarantine_record *record;
	int records; /* the directory that the record lies in; the shelf's */
};

struct quarantine_shelf {
	struct arena arena; /* owns the texts */
	int records[STATE_PLACES];
	unsigned place_count;
	struct quarantine_entry *entries; /* the oldest first, place by place */
	size_t count;
};

/*
 * quarantine_shelf_open - read the records, also those that sessions of other environments have noted elsewhere.
 * Returns 0, or -errno with @e; call quarantine_shelf_close() in both cases.
 */
MUST_CHECK int quarantine_shelf_open(
	struct quarantine_shelf *ret, const char *const *environment, struct error *e);
void quarantine_shelf_close(struct quarantine_shelf *s);

/* quarantine_shelf_find - the entry whose id begins with @word. NULL with @e (ERROR_PATH): there is none, or several. */
const struct quarantine_entry *quarantine_shelf_find(
	const struct quarantine_shelf *s, const char *word, struct error *e);

/* quarantine_shelf_size - how many there are, by their names alone. */
size_t quarantine_shelf_size(const char *const *environment);
