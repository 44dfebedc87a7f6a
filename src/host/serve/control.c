/*
 * control.c - see control.h.
 *
 * Runs in: the supervisor of a live session, and its clients.
 */
#include "host/serve/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/channel.h"

union control_fds {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * CONTROL_FDS_MAX)];
};

int control_send(int fd, const struct control_record *record, const void *body, size_t size,
	const int *fds, unsigned fd_count)
{
	struct control_record copy = *record;
	struct iovec parts[2] = {
		{ .iov_base = &copy, .iov_len = sizeof(copy) },
		{ .iov_base = (void *)body, .iov_len = size },
	};

	copy.magic = CONTROL_MAGIC;
	copy.version = CONTROL_VERSION;
	if (size)
		copy.body = (uint32_t)size;
	if (fd_count > CONTROL_FDS_MAX || size > CONTROL_BODY_MAX)
		return -EINVAL;
	return channel_send_parts(fd, parts, fds, fd_count, MSG_DONTWAIT);
}

int control_seal(const void *data, size_t size)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	autofd int fd = memfd_create("carrel-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_all(fd, data, size);

	if (r >= 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

/* It is read with pread(2): the file offset is shared with the sender. */
static ssize_t read_apart(int fd, char **ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || st.st_size > CONTROL_TEXT_MAX)
		return -EPROTO;
	char *text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	ssize_t n = pread(fd, text, (size_t)st.st_size, 0);
	if (n != st.st_size) {
		n = n < 0 ? -errno : -EPROTO;
		free(text);
		return n;
	}
	text[n] = '\0';
	*ret = text;
	return n;
}

ssize_t control_read_text(const struct control_message *m, char **ret)
{
	if (m->head.kind != CONTROL_TEXT)
		return -EPROTO;
	if (m->head.body == CONTROL_BODY_FD)
		return m->fd_count == 1 ? read_apart(m->fds[0], ret) : -EPROTO;
	char *text = malloc(m->size + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, m->body, m->size + 1);
	*ret = text;
	return (ssize_t)m->size;
}

void control_close_fds(struct control_message *m)
{
	for (unsigned i = 0; i < m->fd_count; i++)
		fd_close(&m->fds[i]);
	m->fd_count = 0;
}

/* Descriptors that were sent beyond the bound are closed by the kernel, and MSG_CTRUNC says so. */
static void take_fds(struct control_message *m, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	m->fd_count = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(m->fds, CMSG_DATA(c), m->fd_count * sizeof(int));
}

static int judge(const struct control_message *m, size_t n, const struct msghdr *msg)
{
	size_t body = m->head.body == CONTROL_BODY_FD ? 0 : m->head.body;

	if (msg->msg_flags & MSG_CTRUNC)
		return -E2BIG;
	if (n < sizeof(m->head) || m->head.magic != CONTROL_MAGIC)
		return -EPROTO;
	if (m->head.version != CONTROL_VERSION)
		return -EPROTONOSUPPORT;
	if ((msg->msg_flags & MSG_TRUNC) || n != sizeof(m->head) + body)
		return -EPROTO;
	return 1;
}

int control_receive(int fd, struct control_message *ret)
{
	struct iovec iov[] = {
		{ .iov_base = &ret->head, .iov_len = sizeof(ret->head) },
		{ .iov_base = ret->body, .iov_len = CONTROL_BODY_MAX },
	};
	union control_fds control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	ret->head = (struct control_record){ 0 };
	ret->fd_count = 0;
	for (unsigned i = 0; i < CONTROL_FDS_MAX; i++)
		ret->fds[i] = -1;
	bool reset = false;
	/* The other side closed without reading everything. The socket reports that once, and the
	 * records that it sent come after it (unix(7)). */
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
	if (n < 0)
		return -errno;
	take_fds(ret, &msg);
	if (n == 0 && !ret->fd_count)
		return 0;
	int r = judge(ret, (size_t)n, &msg);
	if (r < 0) {
		control_close_fds(ret);
		return r;
	}
	ret->size = ret->head.body == CONTROL_BODY_FD ? 0 : ret->head.body;
	ret->body[ret->size] = '\0';
	return 1;
}

int control_send_error(int fd, const struct control_record *request, const struct error *e)
{
	struct control_record record = { .kind = CONTROL_ERROR,
		.tag = request->tag,
		.execution = request->execution,
		.number = e->errnum,
		.flag = e->own };
	char body[2048];
	int n = snprintf(body, sizeof(body), "%s%c%s%c%s%c%s", error_code_name(e->code), 0,
		e->what, 0, e->on, 0, e->hint);

	if (n < 0 || (size_t)n >= sizeof(body))
		return -EMSGSIZE;
	return control_send(fd, &record, body, (size_t)n + 1, NULL, 0);
}

static const char *next_text(const char *at, const char *end)
{
	return at + strlen(at) < end ? at + strlen(at) + 1 : end;
}

void control_read_error(const struct control_message *m, struct error *ret)
{
	const char *end = m->body + m->size;
	const char *what = next_text(m->body, end);
	const char *on = next_text(what, end);
	const char *hint = next_text(on, end);
	int errnum = m->head.number > 0 ? m->head.number : 0;
	(void)error_set(ret, error_code_find(m->body), "session",
		m->head.flag ? ERROR_OWN(errnum) : errnum, on[0] ? on : NULL, "%s", what);

	if (hint[0])
		error_hint(ret, "%s", hint);
}
