/*
 * channel.c - see channel.h.
 *
 * Runs in: init and the supervisor. No heap, no stdio.
 */
#include "box/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
};

int channel_send(int fd, const struct channel_record *record, const int *fds, unsigned fd_count)
{
	struct channel_record copy = *record;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t n;

	copy.magic = CHANNEL_MAGIC;
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
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(copy) ? 0 : -EPROTO;
}

static void close_all(int fds[CHANNEL_FDS_MAX])
{
	for (int i = 0; i < CHANNEL_FDS_MAX; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

int channel_receive(int fd, struct channel_record *ret_record, int ret_fds[CHANNEL_FDS_MAX])
{
	struct channel_record record;
	struct iovec iov = { .iov_base = &record, .iov_len = sizeof(record) };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
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
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len <= CMSG_LEN(sizeof(int) * CHANNEL_FDS_MAX))
		memcpy(ret_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n == 0 && !c)
		return 0;
	if (n != (ssize_t)sizeof(record) || record.magic != CHANNEL_MAGIC ||
		(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		close_all(ret_fds);
		return -EPROTO;
	}
	*ret_record = record;
	return 1;
}
