/*
 * request.c - see request.h.
 *
 * Runs in: the client.
 */
#include "client/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static size_t texts_size(const char *const *texts, uint32_t *ret_count)
{
	size_t size = 0;

	for (*ret_count = 0; texts && texts[*ret_count]; ++*ret_count)
		size += strlen(texts[*ret_count]) + 1;
	return size;
}

static char *put_text(char *at, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 1;

	memcpy(at, text ? text : "", size);
	return at + size;
}

static char *put_texts(char *at, const char *const *texts)
{
	for (; texts && *texts; texts++)
		at = put_text(at, *texts);
	return at;
}

/* "3,9,10". */
static void put_numbers(char *to, size_t size, const struct passed *passed)
{
	size_t used = 0;

	to[0] = '\0';
	for (unsigned i = 0; i < passed->count && used < size; i++)
		used += (size_t)snprintf(
			to + used, size - used, "%s%d", i ? "," : "", passed->fd[i].pair.to);
}

/* One block, freed by the caller. */
static char *make_body(const struct execution_request *request, bool want_pty, size_t *ret_size)
{
	struct request head = request->head;
	char pass[PASS_MAX * sizeof("1023,")];
	put_numbers(pass, sizeof(pass), &request->passed);
	size_t size = sizeof(head) + texts_size(request->argv, &head.argc) +
		texts_size(request->envp, &head.envc) +
		(request->cwd ? strlen(request->cwd) : 0) +
		(request->name ? strlen(request->name) : 0) + 2 + sizeof(pass);
	char *body = malloc(size);

	if (!body)
		return NULL;
	if (want_pty)
		head.flags |= REQUEST_TTY;
	if (pass[0])
		head.flags |= REQUEST_PASS;
	memcpy(body, &head, sizeof(head));
	char *at = put_texts(body + sizeof(head), request->argv);
	at = put_texts(at, request->envp);
	at = put_text(at, request->cwd);
	at = put_text(at, request->name);
	if (pass[0])
		at = put_text(at, pass);
	*ret_size = (size_t)(at - body);
	return body;
}

/* A long body goes beside the record. */
static int send_body(int fd, struct control_record *record, const char *body, size_t size,
	int *fds, unsigned count)
{
	if (size <= CONTROL_BODY_MAX)
		return control_send(fd, record, body, size, fds, count);
	autofd int sealed = control_seal(body, size);
	if (sealed < 0)
		return sealed;
	record->body = CONTROL_BODY_FD;
	fds[count++] = sealed;
	return control_send(fd, record, NULL, 0, fds, count);
}

int request_send(int fd, const struct execution_request *request, const struct stdio *stdio,
	struct error *e)
{
	struct control_record record = { .kind = CONTROL_EXEC };
	int fds[CONTROL_FDS_MAX];
	unsigned count = 0;
	size_t size = 0;
	char *body = make_body(request, stdio->want_pty, &size);
	int r = body ? 0 : -ENOMEM;

	if (r >= 0 && size > REQUEST_SIZE_MAX)
		r = -E2BIG;
	for (unsigned i = 0; i < STDIO_STREAMS; i++) {
		if (stdio->child_fd[i] < 0)
			continue;
		fds[count++] = stdio->child_fd[i];
		record.streams |= 1u << i;
	}
	count += passed_fill(&request->passed, fds + count);
	if (r >= 0)
		r = send_body(fd, &record, body, size, fds, count);
	free(body);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0; /* if the session has sent us away, its reason is there to be read */
	return r < 0 ? error_set(e, r == -E2BIG ? ERROR_REQUEST : ERROR_SESSION, "session", -r,
			       NULL, "the session cannot be asked for an execution")
		     : 0;
}
