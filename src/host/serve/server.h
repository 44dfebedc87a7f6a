/*
 * server.h - the state of a supervisor that serves; shared by serve*.c and by nothing else.
 *
 * Runs in: S. Fixed tables, so that nothing grows with the number of executions that there have been.
 */
#pragma once

#include "base/json.h"
#include "box/channel.h"
#include "host/egress/live.h"
#include "host/serve/control.h"
#include "host/serve/serve.h"

enum {
	SERVER_CLIENTS = 512,
	SERVER_SLOTS = 512, /* monitors: idle, at work, ending */
	SERVER_SPARE = 1,   /* monitors that wait for the next execution */
	SERVER_IDLE =
		8, /* at most, while the session is in use: they need not be forked again */
	SERVER_ENDED = 32, /* services that ended and are remembered, with their logs */
};

enum slot_state {
	SLOT_FREE,
	SLOT_IDLE,    /* a monitor without work */
	SLOT_OPENING, /* asked to open a file, for OPEN or CLASSIFY */
	SLOT_PTY,     /* asked for a terminal, or the client is preparing it */
	SLOT_RUNNING,
	SLOT_STOPPING, /* asked to end; the grace is running */
	SLOT_KILLING,  /* everything was sent SIGKILL */
	SLOT_LINGERS,  /* ended; its terminal is still being read */
};

/* What a service writes, on its way to its log. */
struct slot_log {
	int pipe; /* what it writes to, our end, non-blocking; -1: it has no log, or closed it */
	int file;       /* what it is written to; -1: that could not be made */
	uint64_t size;  /* of the file */
	uint64_t lost;  /* bytes that could not be written since the last that could */
	int64_t due_ns; /* when the pipe is looked at again; 0: when there is something in it */
};

#define SLOT_NO_LOG ((struct slot_log){ .pipe = -1, .file = -1 })

/* A monitor, what it has to do, and for whom. */
struct slot {
	enum slot_state state;
	int channel;    /* our end, non-blocking */
	int32_t pid;    /* inside; 0: it has not said yet */
	pid_t host_pid; /* as S sees it; 0: not known; asked for with a cgroup or `explain` */
	struct cgroup group;          /* of the execution */
	struct cgroup_figures before; /* of the session's group, when @group was made */
	bool waits;                   /* SLOT_PTY: for the monitor's pid, not for a terminal */
	unsigned view;                /* enum view: which init it is a child of */
	int client;      /* index; -1: nobody waits (a service, or its client is gone) */
	uint64_t tag;    /* of the request */
	uint32_t kind;   /* SLOT_OPENING: CONTROL_OPEN or CONTROL_CLASSIFY */
	uint32_t number; /* of the execution */
	bool detached, timed_out, has_tty;
	unsigned form;                 /* CLASSIFY: the request's flag */
	bool started;                  /* CHANNEL_STARTED came */
	bool cpu_time, file_size;      /* it has that limit */
	uint64_t moved;                /* newpath_watch_count() when it began */
	int64_t begun_ns, deadline_ns; /* deadline 0: none */
	int64_t grace_ms;
	char *requested_path;            /* CLASSIFY: the path as it was asked about */
	size_t looked_at;                /* CLASSIFY: bytes of it that the monitor was sent */
	struct control_message *request; /* SLOT_PTY: until the command begins */
	struct slot_log log;             /* of a service */
	char name[64];                   /* of a service */
	char command[64];                /* for people: the first words */
};

/* How a service ended. */
struct ended_service {
	uint32_t number; /* 0: none */
	struct control_record how;
	int64_t ended_ns;
	bool has_log;
	char name[64], command[64];
};

struct server_client {
	int fd;            /* -1: free */
	bool ends_session; /* it asked for the end and waits for its word */
	uint64_t end_tag;
	uint32_t stops; /* the execution whose end it waits for; 0: none */
	uint64_t stop_tag;
};

/* What `session allow` has asked for and carrel-egress has not answered yet: one request at a time. */
struct live_change {
	char (*texts)[NETRULE_TEXT_MAX]; /* of the rules; NULL: nothing is asked for */
	size_t count, next;
	bool remove;
	int client; /* -1: it is gone */
	uint64_t tag;
	int64_t deadline_ns; /* 0: nothing is asked for */
	uid_t uid;
	pid_t pid;
};

enum server_phase {
	SERVER_STARTING,
	SERVER_SERVING,
	SERVER_ENDING, /* the grace of the last executions is running */
	SERVER_OVER,
};

struct server {
	const struct plan *plan;
	struct launch *launch;
	struct signals *signals;
	const struct serve_settings *settings;
	struct serve_outcome *out;
	struct error *e;
	enum server_phase phase;
	int64_t egress_ns; /* until then carrel-egress is to be ready; 0: it is not waited for */
	int epoll, timer;
	bool resting;      /* idle, and what is not needed then was given back */
	bool listening;    /* the listener is in the epoll set */
	int64_t listen_ns; /* where it is not: when to try again, CLOCK_MONOTONIC */
	int64_t begun_ns, idle_since_ns, end_deadline_ns;
	int64_t timer_ns; /* what the timer is set to; 0: nothing */
	uint32_t last_number;
	unsigned views_awaited; /* bit N: view N has not said READY; 0 is init itself */
	uint32_t no_route[VIEW_COUNT], no_listener[VIEW_COUNT]; /* when a command failed last */
	unsigned busy; /* slots that are neither free nor idle */
	unsigned client_count;
	unsigned
		client_slots; /* one more than the highest that was ever taken: the rest is untouched */
	struct server_client clients[SERVER_CLIENTS];
	unsigned slot_count; /* one more than the highest that was ever taken */
	struct slot slots[SERVER_SLOTS];
	struct ended_service ended[SERVER_ENDED]; /* the oldest is replaced */
	unsigned ended_next, logs_due;            /* logs that wait for their due_ns */
	struct live_change change;
	struct control_message in; /* what is being looked at */
	char path[4096];           /* the body of a monitor's answer */
};

/* The two halves of epoll data: what has an event, and the index of which. */
enum server_event {
	SERVER_EVENT_INIT, /* or the init of a tighter view */
	SERVER_EVENT_SIGNAL,
	SERVER_EVENT_TIMER,
	SERVER_EVENT_MOUNTS,
	SERVER_EVENT_LISTENER,
	SERVER_EVENT_PARENT,
	SERVER_EVENT_CLIENT,
	SERVER_EVENT_SLOT,
	SERVER_EVENT_NEWPATH,
	SERVER_EVENT_LOG,
	SERVER_EVENT_EGRESS,
};

/* serve.c */
/* The channel to the init of @view; view 0 is init itself. */
int server_init_channel(const struct server *s, unsigned view);
MUST_CHECK int server_watch(struct server *s, int fd, enum server_event what, unsigned index);
void server_begin_end(struct server *s);

/* server_listen_again - take clients again, where that had to stop for want of descriptors or memory. */
void server_listen_again(struct server *s);

/* serve_client.c: connections. A client that cannot be answered is dropped. */
void server_accept(struct server *s);
void server_client_event(struct server *s, unsigned index);
void server_answer(struct server *s, int client, const struct control_record *record,
	const void *body, size_t size, const int *fds, unsigned fd_count);
void server_refuse(struct server *s, int client, const struct control_record *request,
	const struct error *e);
void server_drop_client(struct server *s, unsigned index);

/* serve_begin.c: an execution is asked for, judged, and begun. */
/* Takes the descriptors of @m where the request has to wait; else they stay the caller's. */
MUST_CHECK int server_begin_execution(
	struct server *s, unsigned client, struct control_message *m, struct error *e);
MUST_CHECK int server_start_prepared(
	struct server *s, struct slot *slot, bool in_front, struct error *e);

/* serve_slot.c: monitors, and the end of executions. */
void server_fill_spare(struct server *s);
void server_slot_event(struct server *s, unsigned index);
/* A monitor in @view for a job of @client, or NULL with @e. */
struct slot *server_take_monitor(
	struct server *s, unsigned client, uint64_t tag, unsigned view, struct error *e);
void server_make_busy(struct server *s, struct slot *slot, enum slot_state state);
/* The monitor has told its pid: an execution that waited for that begins. */
void server_monitor_known(struct server *s, struct slot *slot);
void server_ask_to_end(struct server *s, struct slot *slot, int signal);
void server_kill_slot(struct slot *slot);
void server_free_slot(struct server *s, struct slot *slot);
/* Keep the monitor for the next execution: it has done nothing that another could not follow. */
void server_rest_slot(struct server *s, struct slot *slot);
/* Dismisses monitors without work until @most are left, and of tighter views SERVER_SPARE less. */
void server_dismiss_idle(struct server *s, unsigned most);
void server_slot_deadline(struct server *s, struct slot *slot);
MUST_CHECK int server_send_monitor(struct slot *slot, const struct channel_record *record);

/* serve_show.c: the session as JSON. Returns the length or -errno. */
MUST_CHECK int server_show(const struct server *s, char *ret, size_t size);
/* For people; @line: one line. */
MUST_CHECK int server_show_text(const struct server *s, bool line, char *ret, size_t size);
/* What was taken away from protected paths. */
MUST_CHECK int server_show_moved(const struct server *s, char *ret, size_t size);
/* Its policy, as `policy show` prints one. */
MUST_CHECK int server_show_policy(const struct server *s, char *ret, size_t size);

/*
 * serve_end.c: tell the client of @slot that its execution is over. @record: how; @ended: the monitor's record, NULL:
 * it has sent none.
 */
void server_send_end(struct server *s, struct slot *slot, struct control_record *record,
	const struct channel_record *ended);

/*
 * serve_network.c: what the session reached and was refused so far, as JSON or for people. Returns
 * the length or -errno.
 */
MUST_CHECK int server_show_network(struct server *s, bool json, char *ret, size_t size);

/* serve_allow.c: rules that are added to the network and taken back. */
MUST_CHECK int server_allow(
	struct server *s, unsigned client, struct control_message *m, struct error *e);
/* carrel-egress may have answered, or ended. */
void server_allow_go_on(struct server *s);
/* The client of that index is gone: it gets no answer. */
void server_allow_forget(struct server *s, unsigned client);
/* As a member of a JSON object: what commands may reach now, `allow` lines and added rules, the first of them. */
void server_put_allowed(struct json *j, const struct server *s);

/* server_give_sockets - hand the sockets of init's @record to carrel-egress; @fds, up to the first -1, are borrowed. 0 or -errno. */
MUST_CHECK int server_give_sockets(
	const struct server *s, const struct channel_record *record, const int *fds);

/* server_allow_late - carrel-egress, stopped or busy, has not answered in time: the client is told, and does not wait in vain. */
void server_allow_late(struct server *s);

/* server_settle_network - read what carrel-egress knows by now: egress_settle(). */
void server_settle_network(struct server *s);

/* server_show_allowed - the same for a sentence: "HOST, HOST:PORT and 3 more"; empty: nothing is. Its length or -errno. */
int server_show_allowed(const struct server *s, char *ret, size_t size);

/* serve_log.c: the logs of services, and how those ended. */
/* Lead what the service in @slot writes into a log, in place of the output streams in @m. */
MUST_CHECK int server_log_begin(
	struct server *s, struct slot *slot, struct control_message *m, struct error *e);
void server_log_event(struct server *s, unsigned index);
/* A pipe that was read a while ago is due: watch it again. */
void server_log_due(struct server *s, struct slot *slot);
/* The slot is given up: close its log and S's end of the pipe. */
void server_log_close(struct server *s, struct slot *slot);
/* The service of @slot is over, as @how says. */
void server_note_end(struct server *s, struct slot *slot, const struct control_record *how);
/* The service of that name or number: one that runs, else the last that ended; 0: none. */
uint32_t server_find_log(const struct server *s, const char *word, bool *ret_has_log);

/* serve_request.c: one record of a client. -errno with @e: refused. */
MUST_CHECK int server_handle(
	struct server *s, unsigned client, struct control_message *m, struct error *e);
/* serve_file.c: files as the session sees them. */
MUST_CHECK int server_open_file(
	struct server *s, unsigned client, struct control_message *m, struct error *e);
/* An opened path came back from a monitor. */
void server_opened(struct server *s, struct slot *slot, const struct channel_record *answer,
	int *fd, const char *path, size_t length);
