/*
 * promote.c - see promote.h.
 *
 * Runs in: the client.
 */
#include "client/promote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "base/json.h"
#include "client/place.h"
#include "client/talk.h"
#include "client/verb.h"
#include "host/promote/promote.h"
#include "host/promote/promote_dest.h"
#include "host/promote/promote_guard.h"
#include "host/tree/beneath.h"

enum {
	OPTION_SESSION,
	OPTION_COPY,
	OPTION_FORCE,
	OPTION_DRY_RUN,
	OPTION_JSON,
	OPTION_COUNT,
};

static const struct verb_help help = {
	"carrel promote [-s ID] [--copy] [--force] [--dry-run] [--json] SOURCE... DEST",
	"Moves files and directories out of the scratch, to where they stay: DEST is a\n"
	"directory, or for one SOURCE a new name, in the workspace or in a directory that\n"
	"the session's policy names with promote-to. A SOURCE is relative to the scratch; a\n"
	"DEST that is relative starts from the workspace.\n"
	"\n"
	"  -s, --session ID   which session; default: CARREL_SESSION\n"
	"      --copy         leave them in the scratch, too\n"
	"      --force        replace a file that is there (never a directory)\n"
	"      --dry-run      only say what would be done\n"
	"      --json         say what was done as one JSON document\n"
};

/* One artifact, and what became of it. */
struct item {
	const char *source, *path;
	int r;
	struct promote_result result;
};

struct job {
	struct place *place;
	struct promote_options options;
	struct promote_dest dest;
	struct item *items;
	size_t count;
	struct error *e;
};

static int open_dest(struct job *j, const char *dest, bool many)
{
	const char *whole = dest[0] == '/'
		? dest
		: arena_join(&j->place->arena, j->place->guard.roots[0].path, '/', dest);

	if (!whole || !dest[0])
		return error_set(j->e, ERROR_PROMOTE, "promote", whole ? EINVAL : ENOMEM, dest,
			"cannot promote there");
	int r = promote_dest_open(&j->dest, &j->place->arena, &j->place->guard, whole,
		many ? PROMOTE_DEST_DIR : PROMOTE_DEST_EITHER, j->e);
	if ((r == -ENOTDIR || r == -ENOENT) && many)
		error_hint(j->e,
			"for several artifacts the destination is a directory that exists");
	return r;
}

/* A file that is not in the scratch itself may be in its tmp, which tools call $TMPDIR. */
static const char *find_source(struct job *j, const char *below)
{
	struct stat st;

	if (!below || !strncmp(below, PROMOTE_TMP, strlen(PROMOTE_TMP)) ||
		fstatat(j->place->scratch, below, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return below;
	const char *in_tmp = arena_format(&j->place->arena, PROMOTE_TMP "%s", below);
	autofd int fd = in_tmp ? beneath_open(j->place->scratch, in_tmp, O_PATH | O_NOFOLLOW,
					 BENEATH_SAME_MOUNT)
			       : -ENOMEM;

	return fd < 0 ? below : in_tmp;
}

static int move_one(struct job *j, struct item *item, struct error *e)
{
	const char *below = find_source(j, place_below(j->place, item->source));

	if (!below)
		return error_set(e, ERROR_PROMOTE, "promote", 0, item->source,
			"this is not in the scratch");
	if (place_is_mount_point(j->place, below) && !j->options.copy)
		return error_set(e, ERROR_PROMOTE, "promote", ERROR_OWN(EBUSY), below,
			"the session's own mounts need this");
	item->source = below;
	int r = promote_into(&j->dest, &j->place->arena, &j->place->guard, j->place->scratch,
		below, &j->options, true, &item->result, &item->path, e);
	if (r == -EEXIST)
		error_hint(e, "--force replaces it");
	return r;
}

/* Move each on its own: every failure is reported, and the first one is the status. */
static __attribute__((noinline)) int move_all(struct job *j)
{
	int first = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct error e = { 0 };
		struct item *item = &j->items[i];

		item->r = move_one(j, item, &e);
		if (item->r < 0) {
			(void)error_report(&e);
			first = first < 0 ? first : item->r;
		} else if (item->result.source_left && !j->options.copy) {
			(void)error_set(&e, ERROR_PROMOTE, "promote", 0, item->source,
				"promoted, but cannot be removed from the scratch");
			(void)error_report(&e);
		}
	}
	return first;
}

static void put_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

static __attribute__((noinline)) int print_json(const struct job *j)
{
	char buffer[2048];
	struct json json;

	json_init(&json, buffer, sizeof(buffer), talk_json, NULL);
	json_object_begin(&json);
	json_key(&json, "promoted");
	json_array_begin(&json);
	for (size_t i = 0; i < j->count; i++) {
		const struct item *item = &j->items[i];

		if (item->r < 0)
			continue;
		json_object_begin(&json);
		put_text(&json, "source", item->source);
		put_text(&json, "destination", item->path);
		put_text(&json, "how", promote_how_name(item->result.how));
		json_key(&json, "files");
		json_unsigned(&json, item->result.files);
		json_key(&json, "bytes");
		json_unsigned(&json, item->result.bytes);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_finish(&json);
}

static int put_name(const char *name, const char *behind)
{
	char text[1024];

	talk_name(name, text, sizeof(text));
	int r = talk_json(NULL, text, strlen(text));
	return r < 0 ? r : talk_json(NULL, behind, strlen(behind));
}

static __attribute__((noinline)) int print_lines(const struct job *j)
{
	int r = 0;

	for (size_t i = 0; i < j->count && r >= 0; i++) {
		if (j->items[i].r < 0)
			continue;
		r = put_name(j->items[i].source, " -> ");
		if (r >= 0)
			r = put_name(j->items[i].path, "\n");
	}
	return r;
}

static int promote_all(struct job *j, const char *const *words, size_t count, bool json)
{
	j->count = count - 1;
	j->items = arena_array(&j->place->arena, j->count, sizeof(*j->items));
	if (!j->items)
		return error_no_memory(j->e, "promote");
	for (size_t i = 0; i < j->count; i++)
		j->items[i].source = words[i];
	int r = open_dest(j, words[count - 1], j->count > 1);
	if (r < 0)
		return r;
	r = move_all(j);
	fd_close(&j->dest.fd);
	int told = json ? print_json(j) : print_lines(j);
	if (told < 0)
		return error_set(j->e, ERROR_INTERNAL, "report", -told, NULL,
			"cannot print what was promoted");
	return r;
}

static int run_promote(int argc, const char *const *argv, int first,
	const char *const *environment, const char **words, struct error *e)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_COPY] = { .name = "copy" },
		[OPTION_FORCE] = { .name = "force" },
		[OPTION_DRY_RUN] = { .name = "dry-run" },
		[OPTION_JSON] = { .name = "json" },
	};
	struct place place;
	size_t count;
	int r = verb_read(
		&help, argc, argv, first, options, OPTION_COUNT, words, &count, 2, SIZE_MAX, e);

	if (r != 0)
		return r;
	r = place_open(&place, options[OPTION_SESSION].value, environment, e);
	if (r < 0)
		return r;
	struct job job = { .place = &place,
		.options = { .copy = options[OPTION_COPY].count > 0,
			.force = options[OPTION_FORCE].count > 0,
			.dry_run = options[OPTION_DRY_RUN].count > 0 },
		.dest.fd = -1,
		.e = e };
	r = promote_all(&job, words, count, options[OPTION_JSON].count > 0);
	place_close(&place);
	return r;
}

int promote_command(int argc, const char *const *argv, int first,
	const char *const *environment, unsigned closed)
{
	struct error e = { 0 };
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int r = words ? run_promote(argc, argv, first, environment, words, &e)
		      : error_no_memory(&e, "options");

	(void)closed;
	free(words);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
