/*
 * serve_log.c - the logs of services, and how those ended.
 *
 * Runs in: S. What a service writes comes through a pipe and goes to tool-results/service-N.log: tools read it
 * there, and only carrel writes it. When the file is full it becomes service-N.log.1, in place of an older one.
 * May not: wait for a service, look at what it wrote, be kept busy by it. A look takes LOOK_BYTES at most, and
 * until the next one the service fills its pipe and then waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "host/serve/server.h"

enum {
	FILE_BYTES = 512 << 10, /* of each of the two files of a log */
	LOOK_BYTES = 64 << 10,
	DRAIN_BYTES = 1 << 20,   /* the most that a pipe holds without a capability: pipe(7) */
	LOOK_AGAIN_NS = 5000000, /* for each service that has just been looked at */
};

struct log_name {
	char text[40];
};

static struct log_name name_of(uint32_t number, bool older)
{
	struct log_name name;

	(void)snprintf(name.text, sizeof(name.text), "tool-results/service-%u.log%s",
		(unsigned)number, older ? ".1" : "");
	return name;
}

/* --- the file -------------------------------------------------------------------------------- */

static int open_file(const struct server *s, struct slot *slot)
{
	const struct log_name name = name_of(slot->number, false);

	slot->log.size = 0;
	slot->log.file = fd_open_at(s->settings->session_dir, name.text,
		O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	return slot->log.file < 0 ? slot->log.file : 0;
}

/* Where the new file cannot be made, each look tries again. */
static int next_file(const struct server *s, struct slot *slot)
{
	const struct log_name from = name_of(slot->number, false),
			      to = name_of(slot->number, true);
	int dir = s->settings->session_dir;

	fd_close(&slot->log.file);
	if (renameat(dir, from.text, dir, to.text) < 0 && errno != ENOENT)
		return -errno;
	return open_file(s, slot);
}

static int put(const struct server *s, struct slot *slot, const char *data, size_t size)
{
	bool full = slot->log.size + size > FILE_BYTES;
	int r = slot->log.file < 0 || full ? next_file(s, slot) : 0;

	if (r < 0)
		return r;
	r = fd_write_all(slot->log.file, data, size);
	if (r < 0)
		return r;
	slot->log.size += size;
	return 0;
}

/*
 * On a full disk what the service writes is lost, and the service goes on; the log says so at the
 * place where writing works again.
 */
static void put_or_lose(
	const struct server *s, struct slot *slot, const char *data, size_t size)
{
	char note[96];
	int r = 0;

	if (slot->log.lost) {
		int n = snprintf(note, sizeof(note),
			"\n[carrel: %llu bytes are missing here: they could not be written]\n",
			(unsigned long long)slot->log.lost);

		r = put(s, slot, note, (size_t)n);
		if (r >= 0)
			slot->log.lost = 0;
	}
	if (r >= 0)
		r = put(s, slot, data, size);
	if (r < 0)
		slot->log.lost += size;
}

/* --- the pipe -------------------------------------------------------------------------------- */

static void close_pipe(struct server *s, struct slot *slot)
{
	if (slot->log.due_ns)
		s->logs_due--;
	slot->log.due_ns = 0;
	if (slot->log.pipe >= 0)
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, slot->log.pipe, NULL);
	fd_close(&slot->log.pipe);
}

/* Returns whether there may be more to come. */
static bool look(struct server *s, struct slot *slot, size_t most)
{
	while (most > 0) {
		size_t room = most < sizeof(s->path) ? most : sizeof(s->path);
		ssize_t n = read(slot->log.pipe, s->path, room);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		put_or_lose(s, slot, s->path, (size_t)n);
		most -= (size_t)n;
	}
	return true;
}

/* The events of the pipe are off from here on, until it is due: epoll_ctl(2), EPOLLONESHOT. */
void server_log_event(struct server *s, unsigned index)
{
	struct slot *slot = &s->slots[index];

	if (slot->state == SLOT_FREE || slot->log.pipe < 0 || slot->log.due_ns)
		return;
	if (!look(s, slot, LOOK_BYTES)) {
		close_pipe(s, slot);
		return;
	}
	s->logs_due++;
	slot->log.due_ns = clock_now_ns() + (int64_t)s->logs_due * LOOK_AGAIN_NS;
}

void server_log_due(struct server *s, struct slot *slot)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data.u64 = (uint64_t)SERVER_EVENT_LOG << 32 | (unsigned)(slot - s->slots),
	};

	s->logs_due--;
	slot->log.due_ns = 0;
	if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, slot->log.pipe, &event) < 0)
		close_pipe(s, slot); /* not to be watched any more: the service sees SIGPIPE */
}

static int watch_pipe(struct server *s, struct slot *slot)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data.u64 = (uint64_t)SERVER_EVENT_LOG << 32 | (unsigned)(slot - s->slots),
	};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, slot->log.pipe, &event) < 0 ? -errno : 0;
}

/* Make one pipe of both output streams, in place of what the client sent. */
static int make_pipe(struct server *s, struct slot *slot, struct control_message *m)
{
	const struct facts *facts = s->plan->facts;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	autofd int in = ends[1];
	slot->log.pipe = ends[0];
	if (fcntl(slot->log.pipe, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	/* As check_streams() does: for a tool that opens /dev/stdout. */
	if (facts->privileged)
		(void)!fchown(in, facts->kernel_uid, facts->kernel_gid);
	for (unsigned i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
		if (dup3(in, m->fds[i], O_CLOEXEC) < 0)
			return -errno;
	return watch_pipe(s, slot);
}

int server_log_begin(
	struct server *s, struct slot *slot, struct control_message *m, struct error *e)
{
	int r = make_pipe(s, slot, m);

	if (r < 0)
		return error_set(e, ERROR_LIMIT, "session", -r, NULL,
			"a log for the service cannot be made");
	(void)!open_file(
		s, slot); /* on a full disk it is tried again when there is something in it */
	return 0;
}

static void remove_log(const struct server *s, uint32_t number)
{
	for (int older = 0; older <= 1; older++)
		(void)unlinkat(s->settings->session_dir, name_of(number, older).text, 0);
}

void server_log_close(struct server *s, struct slot *slot)
{
	close_pipe(s, slot);
	fd_close(&slot->log.file);
}

/* --- services that ended --------------------------------------------------------------------- */

void server_note_end(struct server *s, struct slot *slot, const struct control_record *how)
{
	struct ended_service *ended = &s->ended[s->ended_next];
	bool has_log = slot->log.file >= 0;

	if (slot->log.pipe >= 0)
		(void)look(s, slot, DRAIN_BYTES);
	server_log_close(s, slot);
	if (how->started == STARTED_NO) { /* its client is told why */
		remove_log(s, slot->number);
		return;
	}
	if (ended->has_log)
		remove_log(s, ended->number);
	*ended = (struct ended_service){ .number = slot->number,
		.how = *how,
		.ended_ns = clock_now_ns(),
		.has_log = has_log };
	memcpy(ended->name, slot->name, sizeof(ended->name));
	memcpy(ended->command, slot->command, sizeof(ended->command));
	s->ended_next = (s->ended_next + 1) % SERVER_ENDED;
}

uint32_t server_find_log(const struct server *s, const char *word, bool *ret_has_log)
{
	const struct ended_service *last = NULL;
	uint64_t number = 0;

	if (text_parse_count(word, &number) < 0)
		number = 0;
	for (unsigned i = 0; i < s->slot_count; i++) {
		const struct slot *slot = &s->slots[i];

		if (slot->state == SLOT_FREE || !slot->detached ||
			(strcmp(slot->name, word) != 0 && slot->number != number))
			continue;
		*ret_has_log = slot->log.file >= 0;
		return slot->number;
	}
	for (unsigned i = 0; i < SERVER_ENDED; i++) {
		const struct ended_service *each = &s->ended[i];

		if (each->number && (!strcmp(each->name, word) || each->number == number) &&
			(!last || last->number < each->number))
			last = each;
	}
	*ret_has_log = last && last->has_log;
	return last ? last->number : 0;
}
