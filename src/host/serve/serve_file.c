/*
 * serve_file.c - files as a live session sees them: OPEN and CLASSIFY.
 *
 * Runs in: S. The names are resolved by a monitor, inside, with all walls of the session: whatever links,
 * "..", or /proc/self mean, they mean it there. May not: resolve a path itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "host/serve/server.h"
#include "plan/surface.h"

enum { PATH_ROOM = 4096, ANSWER_ROOM = 32768 };

static int malformed(struct error *e)
{
	return error_set(e, ERROR_REQUEST, "session", 0, NULL,
		"a path must be absolute, shorter than 4096 bytes, and end with a NUL");
}

static int send_open(struct slot *slot, int flags, unsigned mode, const char *path, size_t size)
{
	struct channel_record record = {
		.kind = CHANNEL_OPEN, .number = flags, .streams = mode & 0777
	};

	return channel_send_body(slot->channel, &record, NULL, 0, path, size);
}

/* Ask the monitor about the first @length bytes of the path that the client asked about. */
static int look_at(struct server *s, struct slot *slot, size_t length)
{
	slot->looked_at = length;
	memcpy(s->path, slot->requested_path, length);
	s->path[length] = '\0';
	return send_open(slot, O_PATH, 0, s->path, length + 1);
}

int server_open_file(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	const int allowed = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY |
		O_NOFOLLOW | O_PATH | O_NONBLOCK;
	bool classify = m->head.kind == CONTROL_CLASSIFY;

	if (!m->size || m->size > PATH_ROOM || strlen(m->body) + 1 != m->size ||
		m->body[0] != '/' || (!classify && (m->head.number & ~allowed)))
		return malformed(e);
	struct slot *slot = server_take_monitor(s, client, m->head.tag, 0, e);
	if (!slot)
		return -EAGAIN;
	server_make_busy(s, slot, SLOT_OPENING);
	slot->kind = m->head.kind;
	slot->form = m->head.flag;
	slot->requested_path = classify ? malloc(m->size) : NULL;
	if (slot->requested_path)
		memcpy(slot->requested_path, m->body, m->size);
	/* Opening a FIFO or a device must not block the monitor. */
	int r = !classify ? send_open(slot, m->head.number | O_NONBLOCK, m->head.streams,
				    m->body, m->size)
		: slot->requested_path ? look_at(s, slot, m->size - 1)
				       : -ENOMEM;
	if (r < 0) {
		server_free_slot(s, slot);
		return error_set(e, ERROR_LIMIT, "session", -r, NULL,
			"the session cannot look at a file");
	}
	return 0;
}

/* A path that does not exist is classified by the nearest directory above it that exists. */
static size_t parent_length(const char *path, size_t length)
{
	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 1 && path[length - 1] != '/')
		length--;
	while (length > 1 && path[length - 1] == '/')
		length--;
	return length;
}

/* Join the resolved directory and what did not exist below it. False: it does not fit, or has a "..". */
static bool join_missing(
	const struct slot *slot, const char *found, size_t found_length, char ret[PATH_ROOM])
{
	const char *rest = slot->requested_path + slot->looked_at;

	if (found_length == 1)
		found_length = 0; /* "/" */
	if (found_length + strlen(rest) + 2 > PATH_ROOM)
		return false;
	memcpy(ret, found, found_length);
	char *to = ret + found_length;
	while (*rest) {
		size_t n;

		rest += strspn(rest, "/");
		n = strcspn(rest, "/");
		if (n == 2 && rest[0] == '.' && rest[1] == '.')
			return false; /* a ".." in a part that does not exist leads nowhere */
		if (n && !(n == 1 && rest[0] == '.')) {
			*to++ = '/';
			memcpy(to, rest, n);
			to += n;
		}
		rest += n;
	}
	if (to == ret)
		*to++ = '/';
	*to = '\0';
	return true;
}

/* The line of the policy that decides it, or NULL. */
static const char *rule_of(const struct server *s, const struct surface *surface, char ret[512])
{
	if (!surface->source)
		return NULL;
	policy_format_source(surface->source,
		policy_source_setting(s->plan->policy, surface->source), ret, 512);
	return ret;
}

static int write_json(const struct surface *surface, const char *rule, const char *resolved,
	bool exists, char *ret, size_t size)
{
	struct json j;

	json_init(&j, ret, size, NULL, NULL);
	json_object_begin(&j);
	json_key(&j, "surface");
	json_string(&j, plan_surface_name(surface->kind));
	json_key(&j, "read");
	json_bool(&j, surface->read);
	json_key(&j, "write");
	json_bool(&j, surface->write);
	json_key(&j, "exists");
	json_bool(&j, exists);
	json_key(&j, "why");
	json_string(&j, surface->why);
	json_key(&j, "rule");
	json_string(&j, rule);
	json_key(&j, "resolved");
	json_string(&j, resolved);
	json_object_end(&j);
	int r = json_finish(&j);
	return r < 0 ? r : (int)j.out.used;
}

static int write_line(const struct surface *surface, const char *rule, char *ret, size_t size)
{
	return snprintf(ret, size, "%-12s %c%c  %s%s%s%s", plan_surface_name(surface->kind),
		surface->read ? 'r' : '-', surface->write ? 'w' : '-', surface->why,
		rule ? " (" : "", rule ? rule : "", rule ? ")" : "");
}

/* A name may hold anything: one line each, whatever it holds. */
static bool put_field(char **at, size_t *room, const char *text)
{
	while (*text && *room > 8) {
		size_t n = text_visible(&text, "", *at, *room - 2);

		*at += n;
		*room -= n;
	}
	if (*text || *room < 2)
		return false;
	*(*at)++ = '\n';
	--*room;
	return true;
}

/* The walls that stand, by their names. */
static void name_walls(const struct plan *plan, char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (int i = 0; i < WALL_COUNT; i++) {
		if (plan->walls[i].state != WALL_ON)
			continue;
		int n = snprintf(ret + used, size - used, "%s%s", used ? " " : "",
			plan_wall_name((enum wall)i));
		if (n > 0 && (size_t)n < size - used)
			used += (size_t)n;
	}
}

static int write_fields(const struct plan *plan, const struct surface *surface,
	const char *rule, const char *resolved, bool exists, char *ret, size_t size)
{
	const struct facts *facts = plan->facts;
	char *at = ret, ids[32] = "", walls[512];
	const char *const fields[] = { plan_surface_name(surface->kind),
		surface->read ? "read" : "", surface->write ? "write" : "",
		surface->quarantined ? "quarantined" : "", exists ? "exists" : "", surface->why,
		rule ? rule : "", resolved ? resolved : "", ids, walls };

	if (facts->privileged)
		(void)snprintf(ids, sizeof(ids), "%u %u", facts->kernel_uid, facts->kernel_gid);
	name_walls(plan, walls, sizeof(walls));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!put_field(&at, &size, fields[i]))
			return -ENOBUFS;
	return (int)(at - ret);
}

static void answer_surface(
	struct server *s, struct slot *slot, const char *resolved, bool exists)
{
	const struct control_record request = { .tag = slot->tag };
	const struct control_record record = { .kind = CONTROL_TEXT, .tag = slot->tag };
	struct surface surface = { .kind = SURFACE_OUTSIDE,
		.why = "the path leads through what does not exist" };
	struct error e = { 0 };
	char rule[512];
	char *text = malloc(ANSWER_ROOM);

	if (resolved)
		plan_surface(s->plan, resolved, &surface);
	const char *line = rule_of(s, &surface, rule);
	int r = !text ? -ENOMEM
		: slot->form == CONTROL_FORM_FIELDS
		? write_fields(s->plan, &surface, line, resolved, exists, text, ANSWER_ROOM)
		: slot->form ? write_line(&surface, line, text, ANSWER_ROOM)
			     : write_json(&surface, line, resolved, exists, text, ANSWER_ROOM);
	if (r >= 0) {
		server_answer(s, slot->client, &record, text, (size_t)r, NULL, 0);
	} else {
		(void)error_set(
			&e, ERROR_LIMIT, "session", -r, NULL, "the answer does not fit");
		server_refuse(s, slot->client, &request, &e);
	}
	free(text);
}

static void classified(struct server *s, struct slot *slot, int errnum, size_t length)
{
	if (errnum && slot->looked_at > 1 &&
		look_at(s, slot, parent_length(slot->requested_path, slot->looked_at)) == 0)
		return; /* to be continued when the monitor answers */
	bool exists = slot->requested_path[slot->looked_at] == '\0';
	char *joined = exists ? NULL : malloc(PATH_ROOM);
	bool known = exists || (joined && join_missing(slot, s->path, length, joined));

	s->path[length] = '\0';
	answer_surface(s, slot, !known ? NULL : exists ? s->path : joined, exists);
	free(joined);
	server_rest_slot(s, slot);
}

/*
 * Files of /proc check who writes (oom_score_adj, autogroup), not who opened them. The writer
 * would be a client of the session, which has rights that its tools lack, and by a link a tool
 * could choose the file.
 */
static bool lends_rights(int fd)
{
	struct statfs fs;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY)
		return flags < 0;
	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

void server_opened(struct server *s, struct slot *slot, const struct channel_record *answer,
	int *fd, const char *path, size_t length)
{
	struct control_record opened = {
		.kind = CONTROL_OPENED, .tag = slot->tag, .number = answer->errnum
	};
	int client = slot->client;

	if (slot->kind == CONTROL_CLASSIFY) {
		classified(s, slot, answer->errnum, length);
		return;
	}
	server_rest_slot(s, slot);
	if (*fd >= 0 && lends_rights(*fd)) {
		opened.number = EACCES;
		fd_close(fd);
	}
	server_answer(s, client, &opened, path, length, fd, *fd >= 0 ? 1 : 0);
}
