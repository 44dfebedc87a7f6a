/*
 * channel.c - see channel.h.
 *
 * Runs in: init and the supervisor. No heap, no stdio.
 */
#include "box/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX) +
		CMSG_SPACE(sizeof(struct ucred))];
};

int channel_send_parts(
	int fd, struct iovec parts[2], const int *fds, unsigned fd_count, int flags)
{
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = parts[1].iov_len ? 2 : 1 };
	union control control;
	ssize_t n;

	if (fd_count > CHANNEL_FDS_MAX)
		return -EINVAL;
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)(parts[0].iov_len + parts[1].iov_len) ? 0 : -EPROTO;
}

int channel_send_body(int fd, const struct channel_record *record, const int *fds,
	unsigned fd_count, const void *body, size_t body_size)
{
	struct channel_record copy = *record;
	struct iovec parts[2] = {
		{ .iov_base = &copy, .iov_len = sizeof(copy) },
		{ .iov_base = (void *)body, .iov_len = body_size },
	};

	copy.magic = CHANNEL_MAGIC;
	if (body_size)
		copy.body = (uint32_t)body_size;
	return body_size > CHANNEL_BODY_MAX ? -EINVAL
					    : channel_send_parts(fd, parts, fds, fd_count, 0);
}

int channel_send(int fd, const struct channel_record *record, const int *fds, unsigned fd_count)
{
	return channel_send_body(fd, record, fds, fd_count, NULL, 0);
}

static void close_all(int fds[CHANNEL_FDS_MAX])
{
	for (int i = 0; i < CHANNEL_FDS_MAX; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

static bool is_whole(const struct channel_record *record, size_t n, const struct msghdr *msg)
{
	size_t body = record->body == CHANNEL_BODY_FD ? 0 : record->body;

	return n >= sizeof(*record) && record->magic == CHANNEL_MAGIC &&
		n == sizeof(*record) + body && !(msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC));
}

/* The buffer also has room for the sender's credentials. Where none come, more descriptors fit
 * than are accepted. */
static void take_fds(struct msghdr *msg, const unsigned char *sent, size_t count,
	int ret_fds[CHANNEL_FDS_MAX])
{
	for (size_t i = 0; i < count; i++) {
		int fd;

		memcpy(&fd, sent + i * sizeof(fd), sizeof(fd));
		if (i < CHANNEL_FDS_MAX) {
			ret_fds[i] = fd;
			continue;
		}
		(void)close(fd);
		msg->msg_flags |= MSG_CTRUNC;
	}
}

/* Descriptors, and, where the receiver asked for it (SO_PASSCRED), who sent them. */
static void take_control(struct msghdr *msg, int ret_fds[CHANNEL_FDS_MAX], pid_t *ret_sender)
{
	char *at = msg->msg_control, *end = at + msg->msg_controllen;

	while (end - at >= (ptrdiff_t)sizeof(struct cmsghdr)) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)at;
		size_t size = c->cmsg_len - CMSG_LEN(0);
		struct ucred sender;

		if (c->cmsg_len < CMSG_LEN(0) || c->cmsg_len > (size_t)(end - at))
			return;
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_fds(msg, CMSG_DATA(c), size / sizeof(int), ret_fds);
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
			size == sizeof(sender)) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*ret_sender = sender.pid;
		}
		at += CMSG_ALIGN(c->cmsg_len);
	}
}

int channel_receive_from(int fd, struct channel_record *ret_record,
	int ret_fds[CHANNEL_FDS_MAX], void *ret_body, size_t room, pid_t *ret_sender)
{
	struct channel_record record;
	struct iovec iov[] = {
		{ .iov_base = &record, .iov_len = sizeof(record) },
		{ .iov_base = ret_body, .iov_len = room },
	};
	union control control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = room ? 2 : 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	for (int i = 0; i < CHANNEL_FDS_MAX; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* Our own senders never send more than this: the receiver may have no room for more. */
	int result = msg.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;

	take_control(&msg, ret_fds, ret_sender);
	if (n == 0 && ret_fds[0] < 0)
		return 0;
	if (!is_whole(&record, (size_t)n, &msg)) {
		close_all(ret_fds);
		return result;
	}
	*ret_record = record;
	return 1;
}

int channel_receive_body(int fd, struct channel_record *ret_record,
	int ret_fds[CHANNEL_FDS_MAX], void *ret_body, size_t room)
{
	pid_t ignored = 0;

	return channel_receive_from(fd, ret_record, ret_fds, ret_body, room, &ignored);
}

int channel_receive(int fd, struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX])
{
	return channel_receive_body(fd, ret_record, ret_fds, NULL, 0);
}

void channel_await(int fd, unsigned tries)
{
	while (tries-- > 0 && recv(fd, NULL, 0, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		;
}
