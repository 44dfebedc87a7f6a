/*
 * serve_monitor_test.c - what a supervisor makes of a monitor that was taken over: records that none of ours
 * would send, and clients that are gone when they are to be told.
 *
 * Runs in: a test program. The monitor is the other end of a socket pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/launch/limits.h"
#include "host/serve/server.h"

struct world {
	struct limits limits;
	struct serve_settings settings;
	struct launch launch;
	struct serve_outcome out;
	struct server *s;
	int monitor, client;
};

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* One client, and one slot in @state with a monitor. */
static void begin(struct world *w, enum slot_state state)
{
	int pair[2];

	memset(w, 0, sizeof(*w));
	limits_init(&w->limits);
	w->settings = (struct serve_settings){ .listener = -1, .limits = &w->limits };
	w->launch.channel = -1;
	w->s = calloc(1, sizeof(*w->s));
	assert_non_null(w->s);
	w->s->settings = &w->settings;
	w->s->launch = &w->launch;
	w->s->out = &w->out;
	w->s->phase = SERVER_SERVING;
	w->s->listening = true;
	w->s->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < SERVER_CLIENTS; i++)
		w->s->clients[i].fd = -1;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	w->s->clients[0].fd = pair[0];
	w->s->client_count = 1;
	w->client = pair[1];
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	w->s->slot_count = 1;
	w->s->slots[0] = (struct slot){ .state = state,
		.channel = pair[0],
		.group = CGROUP_NONE,
		.log = SLOT_NO_LOG,
		.client = state == SLOT_IDLE ? -1 : 0,
		.number = 1,
		.tag = 7,
		.pid = 3,
		.kind = CONTROL_CLASSIFY };
	w->s->busy = state != SLOT_IDLE;
	w->monitor = pair[1];
}

/* As the loop does, until the monitor has nothing more to say. The slot must be free then. */
static void lost(struct world *w)
{
	for (int i = 0; i < 4; i++)
		server_slot_event(w->s, 0);
	assert_int_equal(w->s->slots[0].state, SLOT_FREE);
	assert_int_equal(w->s->busy, 0);
}

static void end(struct world *w)
{
	server_free_slot(w->s, &w->s->slots[0]);
	fd_close(&w->s->clients[0].fd);
	fd_close(&w->s->epoll);
	fd_close(&w->client);
	fd_close(&w->monitor);
	free(w->s);
}

/* The answer that the client has got. */
static uint16_t heard(struct world *w, struct control_message *m)
{
	int r = control_receive(w->client, m);

	assert_int_equal(r, 1);
	control_close_fds(m);
	return m->head.kind;
}

static void ask_for(struct world *w, const char *path)
{
	w->s->slots[0].requested_path = strdup(path);
	w->s->slots[0].looked_at = strlen(path);
}

/* The size that a body in a descriptor has is not to be taken for a length. */
static void a_path_without_end(void **state)
{
	const struct channel_record record = { .kind = CHANNEL_OPENED,
		.body = CHANNEL_BODY_FD };
	struct control_message *m = calloc(1, sizeof(*m));
	struct world w;

	(void)state;
	begin(&w, SLOT_OPENING);
	ask_for(&w, "/x");
	assert_int_equal(channel_send(w.monitor, &record, NULL, 0), 0);
	lost(&w);
	assert_int_equal(heard(&w, m), CONTROL_ERROR);
	end(&w);
	free(m);
}

static void a_path_that_leaves_no_room(void **state)
{
	const struct channel_record record = { .kind = CHANNEL_OPENED };
	char path[sizeof(((struct server *)NULL)->path)];
	struct control_message *m = calloc(1, sizeof(*m));
	struct world w;

	(void)state;
	memset(path, 'a', sizeof(path));
	begin(&w, SLOT_OPENING);
	ask_for(&w, "/x");
	assert_int_equal(channel_send_body(w.monitor, &record, NULL, 0, path, sizeof(path)), 0);
	lost(&w);
	assert_int_equal(heard(&w, m), CONTROL_ERROR);
	end(&w);
	free(m);
}

/* An end that nobody waits for must not be counted. */
static void an_end_without_a_beginning(void **state)
{
	const struct channel_record record = { .kind = CHANNEL_ENDED, .started = STARTED_YES };
	struct control_message *m = calloc(1, sizeof(*m));
	struct world w;

	(void)state;
	begin(&w, SLOT_IDLE);
	assert_int_equal(channel_send(w.monitor, &record, NULL, 0), 0);
	lost(&w);
	assert_int_equal(control_receive(w.client, m), -EAGAIN);
	end(&w);

	/* The control arm: one that is at work is told of, once. */
	begin(&w, SLOT_RUNNING);
	assert_int_equal(channel_send(w.monitor, &record, NULL, 0), 0);
	assert_int_equal(channel_send(w.monitor, &record, NULL, 0), 0);
	lost(&w);
	assert_int_equal(heard(&w, m), CONTROL_ENDED);
	assert_int_equal(control_receive(w.client, m), -EAGAIN);
	end(&w);
	free(m);
}

static void a_terminal_that_was_not_asked_for(void **state)
{
	const struct channel_record record = { .kind = CHANNEL_READY, .number = 5 };
	struct control_message *m = calloc(1, sizeof(*m));
	struct world w;

	(void)state;
	begin(&w, SLOT_RUNNING);
	assert_int_equal(channel_send(w.monitor, &record, &w.monitor, 1), 0);
	lost(&w);
	assert_int_equal(heard(&w, m), CONTROL_ENDED);
	assert_int_equal(m->head.started, STARTED_UNKNOWN);
	end(&w);
	free(m);
}

/* More descriptors than a record has: none of them may stay in the supervisor. */
static void descriptors_that_are_too_many(void **state)
{
	enum { COUNT = CHANNEL_FDS_MAX + 1 };
	struct channel_record record = { .magic = CHANNEL_MAGIC, .kind = CHANNEL_STARTED };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * COUNT)];
	} control = { 0 };
	struct iovec iov = { .iov_base = &record, .iov_len = sizeof(record) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct world w;

	(void)state;
	begin(&w, SLOT_RUNNING);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int) * COUNT);
	for (int i = 0; i < COUNT; i++)
		memcpy(CMSG_DATA(&control.align) + sizeof(int) * (size_t)i, &w.monitor,
			sizeof(int));
	unsigned before = open_descriptors();
	assert_int_equal(sendmsg(w.monitor, &msg, MSG_NOSIGNAL), (ssize_t)sizeof(record));
	lost(&w);
	assert_int_equal(open_descriptors(), before - 1); /* the slot's own */
	end(&w);
}

/* Who asked has gone: telling so ends the client, its question and the monitor, each of them once. */
static void a_question_whose_client_is_gone(void **state)
{
	const struct channel_record record = { .kind = CHANNEL_OPENED };
	struct world w;

	(void)state;
	begin(&w, SLOT_OPENING);
	ask_for(&w, "/x/..");
	w.s->slots[0].looked_at =
		2; /* what is behind does not exist: nothing is asked of a plan */
	fd_close(&w.client);
	assert_int_equal(channel_send_body(w.monitor, &record, NULL, 0, "/x", 2), 0);
	server_slot_event(w.s, 0);
	assert_int_equal(w.s->slots[0].state, SLOT_FREE);
	assert_int_equal(w.s->busy, 0);
	assert_int_equal(w.s->client_count, 0);
	end(&w);
}

/* What never began has an end too, or its client would wait for one. */
static void a_terminal_that_is_given_up(void **state)
{
	struct control_message *m = calloc(1, sizeof(*m));
	struct world w;

	(void)state;
	begin(&w, SLOT_PTY);
	server_ask_to_end(w.s, &w.s->slots[0], SIGTERM);
	assert_int_equal(w.s->slots[0].state, SLOT_FREE);
	assert_int_equal(w.s->busy, 0);
	assert_int_equal(heard(&w, m), CONTROL_ENDED);
	assert_int_equal(m->head.started, STARTED_NO);
	assert_true(WIFSIGNALED(m->head.wait_status));
	end(&w);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_without_end),
		cmocka_unit_test(a_path_that_leaves_no_room),
		cmocka_unit_test(an_end_without_a_beginning),
		cmocka_unit_test(a_terminal_that_was_not_asked_for),
		cmocka_unit_test(descriptors_that_are_too_many),
		cmocka_unit_test(a_question_whose_client_is_gone),
		cmocka_unit_test(a_terminal_that_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
