/*
 * agent_session.h - the agent's client of its session: where the session is, and the requests to it.
 *
 * Runs in: carrel-agent, outside. It is a client of the control socket (host/serve/control.h) like any other:
 * whatever the tools of an agent do here, they do through the session, and so within its walls.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/buffer.h"
#include "agent/loop.h"
#include "host/serve/control.h"
#include "host/stdio/stdio.h"

/* A request that waits for its answer; it lies in the struct of its owner. */
struct session_request {
	struct session_request *next;
	uint64_t tag;
	/*
	 * Called for each record that answers it, until agent_session_forget(). Whoever takes a descriptor of @m
	 * leaves -1 in its place. @m is NULL when the session is gone.
	 */
	void (*answer)(struct session_request *a, struct control_message *m);
};

struct agent_session {
	struct loop *loop;
	struct watch watch; /* the connection */
	struct session_request *requests;
	uint64_t last_tag;
	bool lost;                  /* the connection is gone */
	bool no_bash;               /* the session has none: sh runs command lines */
	unsigned umask;             /* for the files that commands make */
	struct stdio_output output; /* what the session allows the outputs of one command */
	bool own_user;              /* commands run as our own user */
	int null;                   /* /dev/null, for reading */
	char *block;                /* CAPTURE_BLOCK bytes, for all captures */
	int pad;                    /* the pad */
	struct control_message *in; /* the last record that came */
	int results;                /* the directory of tool results */
	json_t *started;            /* the answer of `session start` */
	json_t *moved; /* what the model was told about quarantine: path -> how often; NULL: nothing yet */
	const char *id, *scratch, *workspace, *tool_results; /* of it; paths are absolute */
};

/*
 * agent_session_open - connect to the session that `carrel session start --json` started.
 * @started: its answer, a reference is kept. Returns 0, or -errno with @e.
 */
MUST_CHECK int agent_session_open(
	struct agent_session *d, struct loop *loop, json_t *started, struct error *e);

/* agent_session_close - free everything. It does not end the session. */
void agent_session_close(struct agent_session *d);

/*
 * agent_session_send - send a record, and its descriptors (which stay the caller's).
 * @a: unused until now; `answer` is set. Returns 0, -EAGAIN (the session does not keep up), or -errno.
 */
MUST_CHECK int agent_session_send(struct agent_session *d, struct session_request *a,
	struct control_record *record, const void *body, size_t size, const int *fds,
	unsigned fd_count);

/* agent_session_forget - do not wait for an answer any more. */
void agent_session_forget(struct agent_session *d, struct session_request *a);

/*
 * agent_session_path - the path that a tool was given, made absolute: against the scratch.
 * Appends it to @b.
 */
void agent_session_path(const struct agent_session *d, const char *path, struct buffer *b);

/*
 * agent_session_json - a JSON document of the session or of the launcher. Names that are no UTF-8, which they
 * write as lone surrogates (base/json.h), are shown with U+FFFD. NULL: @text is no JSON.
 */
json_t *agent_session_json(const char *text, size_t size);

/* agent_session_explain - an ERROR record as a sentence for the model, appended to @b. */
void agent_session_explain(const struct control_message *m, struct buffer *b);
