/*
 * session.c - see session.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/session/record.h"
#include "host/tree/beneath.h"
#include "host/tree/remove.h"

/*
 * A file in the record: the directory is kept on request. Its text says until when, in seconds
 * since 1970; 0: for ever.
 */
#define KEEP_FILE "keep"

static int scratch_error(const struct session *s, int r, const char *what, struct error *e)
{
	char on[1024];

	(void)snprintf(on, sizeof(on), "%s/%s", s->base_path, s->name);
	r = error_set(e, ERROR_SCRATCH, "session", -r, on, "%s", what);
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(
			e, "free some space there, or name another place with --scratch-base");
	return r;
}

int session_open_records(
	const char *const *environment, char path[STATE_PATH_MAX], struct error *e)
{
	struct state_place place;
	int r = state_place_open(&place, environment, true, e);

	if (r < 0)
		return r;
	r = state_place_sub(&place, "sessions", true);
	if (r < 0)
		r = state_place_error(
			place.path, -r, "cannot make the directory of records", e);
	memcpy(path, place.path, STATE_PATH_MAX);
	state_place_close(&place);
	return r;
}

static int make_entry(int dir, const struct session_entry *entry, const struct facts *facts)
{
	if (entry->is_file) {
		autofd int fd = fd_open_at(dir, entry->path, O_WRONLY | O_CREAT | O_EXCL, 0600);

		return fd < 0 ? fd : 0;
	}
	if (mkdirat(dir, entry->path, 0700) < 0)
		return -errno;
	if (!entry->owned)
		return 0;
	if (facts->privileged &&
		fchownat(dir, entry->path, facts->kernel_uid, facts->kernel_gid,
			AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchmodat(dir, entry->path, entry->mode, 0) < 0 ? -errno : 0;
}

static int make_entries(int dir, const struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < plan->entry_count && r >= 0; i++)
		r = make_entry(dir, &plan->entries[i], plan->facts);
	return r;
}

/* Make the session directory, and note its device and inode before anything is put into it. */
static int make_directory(struct session *s)
{
	struct stat st;

	if (mkdirat(s->base, s->name, 0700) < 0)
		return -errno;
	s->dir = fd_open_at(s->base, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s->dir < 0) {
		(void)unlinkat(s->base, s->name, AT_REMOVEDIR);
		return s->dir;
	}
	if (fstat(s->dir, &st) < 0)
		return -errno;
	return record_note_inode(s->record, st.st_dev, st.st_ino);
}

static void undo(struct session *s)
{
	struct remove_result gone;
	struct error ignored = { 0 };
	int r = s->dir >= 0 ? remove_tree(s->base, s->name, &gone, &ignored) : 0;

	if (r >= 0)
		/* The cause of the failure is what the user needs to hear; a sweep tries again. */
		(void)!record_remove(s->records, session_id(s->name), s->record);
	session_close(s);
}

static int make_session(struct session *s, const struct plan *plan, struct error *e)
{
	s->record = record_make(s->records, session_id(s->name), plan->facts->session_dir);
	if (s->record < 0) {
		int r = error_set(e, ERROR_STATE, "session", -s->record, s->name,
			"cannot record the session in the state directory");

		if (r == -ENOSPC || r == -EDQUOT)
			error_hint(e,
				"free some space there, or name another directory with "
				"XDG_STATE_HOME");
		return r;
	}
	int r = make_directory(s);
	if (r < 0)
		return scratch_error(s, r, "cannot make the session directory", e);
	r = make_entries(s->dir, plan);
	return r < 0 ? scratch_error(s, r, "cannot fill the session directory", e) : 0;
}

int session_create(struct session *ret, int records, const struct plan *plan, struct error *e)
{
	struct session s = SESSION_NONE;

	s.records = records;
	s.base_path = plan->facts->scratch_base;
	s.name = plan->facts->session_name;
	s.base = fd_open_at(AT_FDCWD, s.base_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s.base < 0)
		return scratch_error(&s, s.base, "cannot open the scratch base", e);
	int r = make_session(&s, plan, e);
	if (r < 0) {
		if (s.record >= 0)
			undo(&s);
		session_close(&s);
		return r;
	}
	*ret = s;
	return 0;
}

int session_keep(struct session *s, uint64_t keep_ms, struct error *e)
{
	char text[32];
	uint64_t until = keep_ms ? (uint64_t)time(NULL) + (keep_ms + 999) / 1000 : 0;
	int length = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)until);
	autofd int fd = fd_open_at(
		s->record, KEEP_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : fd_write_all(fd, text, (size_t)length);

	return r < 0 ? scratch_error(s, r, "cannot mark the session directory as kept", e) : 0;
}

int session_scratch(const struct session *s)
{
	return beneath_open(s->memory >= 0 ? s->memory : s->dir,
		s->memory >= 0 ? "." : "scratch", O_PATH | O_DIRECTORY | O_NOFOLLOW,
		BENEATH_SAME_MOUNT);
}

int session_forget(struct session *s)
{
	return s->alone ? record_leave(s->records, session_id(s->name), s->record)
			: record_remove(s->records, session_id(s->name), s->record);
}

void session_close(struct session *s)
{
	fd_close(&s->memory);
	fd_close(&s->dir);
	fd_close(&s->base);
	fd_close(&s->record);
}
