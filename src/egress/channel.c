/*
 * channel.c - see channel.h.
 *
 * Runs in: carrel-egress. An invalid record, or the end of the channel, ends the program: then the kernel
 * closes its sockets, and the session has no network.
 */
#include "egress/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/connection.h"
#include "egress/egress.h"
#include "egress/proxy.h"
#include "egress/publish.h"
#include "egress/refused.h"
#include "egress/relay.h"
#include "egress/server.h"

enum { DESCRIPTORS_MAX = 253 /* SCM_MAX_FD */, PATIENCE_MS = 1000 };

struct received {
	struct egress_record record;
	int fds[DESCRIPTORS_MAX];
	size_t count;
};

/* Receive one record and its descriptors. 0, -EAGAIN, or another -errno. */
static int receive(int fd, struct received *ret)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec data = { .iov_base = &ret->record, .iov_len = sizeof(ret->record) };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	ret->count = 0;
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	/* All descriptors of one message stand in one piece. */
	const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		ret->count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret->fds, CMSG_DATA(c), ret->count * sizeof(int));
	}
	if (n != (ssize_t)sizeof(ret->record) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
		ret->record.magic != EGRESS_MAGIC ||
		ret->record.text[sizeof(ret->record.text) - 1] != '\0')
		return -EPROTO;
	return 0;
}

static int take_sockets(struct egress *eg, const struct received *got)
{
	const int known = EGRESS_SOCKETS_DNS | EGRESS_SOCKETS_SIX | EGRESS_SOCKETS_REFUSED;
	bool with_dns = got->record.number & EGRESS_SOCKETS_DNS;
	bool refused = got->record.number & EGRESS_SOCKETS_REFUSED;

	if (got->record.number & ~known || (refused && with_dns))
		return -EPROTO;
	eg->six |= (got->record.number & EGRESS_SOCKETS_SIX) != 0;
	if (with_dns && (got->count < 2 || eg->dns.fd >= 0))
		return -EPROTO;
	for (size_t i = 0; i < got->count; i++) {
		int flags = fcntl(got->fds[i], F_GETFL), r;

		if (flags < 0 || fcntl(got->fds[i], F_SETFL, flags | O_NONBLOCK) < 0)
			return -errno;
		if (refused)
			r = refused_hear(eg, got->fds[i]);
		else if (with_dns && i == 0)
			r = server_start(eg, got->fds[i]);
		else
			r = relay_listen(eg, got->fds[i], with_dns && i == 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_published(struct egress *eg, const struct received *got)
{
	for (size_t i = 0; i < got->count; i++) {
		int fd = got->fds[i], flags = fcntl(fd, F_GETFL);

		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
			return -errno;
		int r = got->record.kind == EGRESS_POOL
			? publish_pool(eg, fd)
			: publish_listen(eg, fd, (uint16_t)got->record.port);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_rule(struct egress *eg, const struct egress_record *record)
{
	struct error e = { 0 };
	char text[sizeof(record->text)];
	int r = rules_add(&eg->rules, record->text, &e);

	if (r < 0)
		memcpy(text, e.what, sizeof(e.what));
	else
		text[0] = '\0';
	if (r >= 0)
		tell_rule(&eg->tell, eg->rules.count - 1, true, record->text);
	return tell_record(&eg->tell, EGRESS_REFUSED, -r, text, PATIENCE_MS);
}

static int take_unrule(struct egress *eg, const struct egress_record *record)
{
	int r = rules_remove(&eg->rules, record->rule);

	if (r >= 0) {
		tell_rule(&eg->tell, (size_t)record->rule, false, record->text);
		connection_cut(eg, record->rule);
		proxy_cut(eg, record->rule);
	}
	return tell_record(
		&eg->tell, EGRESS_REFUSED, -r, r < 0 ? "no such rule" : "", PATIENCE_MS);
}

static int take_end(struct egress *eg)
{
	uint32_t lost;

	refused_rest(eg);
	relay_end(eg);
	tell_rest(&eg->tell);
	eg->loop.ended = true;
	lost = eg->tell.lost_log_all;
	return tell_record(&eg->tell, EGRESS_DONE, lost < INT32_MAX ? (int32_t)lost : INT32_MAX,
		"", PATIENCE_MS);
}

static int take_record(struct egress *eg, const struct received *got)
{
	if (got->count > 0 && got->record.kind != EGRESS_SOCKETS &&
		got->record.kind != EGRESS_POOL && got->record.kind != EGRESS_PUBLISH)
		return -EPROTO;
	switch (got->record.kind) {
	case EGRESS_SOCKETS:
		return take_sockets(eg, got);
	case EGRESS_POOL:
	case EGRESS_PUBLISH:
		return take_published(eg, got);
	case EGRESS_RULE:
		return take_rule(eg, &got->record);
	case EGRESS_UNRULE:
		return take_unrule(eg, &got->record);
	case EGRESS_SYNC:
		refused_rest(eg);
		tell_rest(&eg->tell);
		return tell_record(
			&eg->tell, EGRESS_SYNCED, got->record.number, "", PATIENCE_MS);
	case EGRESS_END:
		return take_end(eg);
	default:
		return -EPROTO;
	}
}

static void channel_ready(struct watch *watch, uint32_t events)
{
	struct egress *eg = CONTAINER(watch, struct egress, channel);
	struct received got;
	int r = 0;

	(void)events;
	while (r == 0 && !eg->loop.ended) {
		r = receive(watch->fd, &got);
		if (r == 0)
			r = take_record(eg, &got);
	}
	if (r != 0 && r != -EAGAIN) {
		eg->failed = true;
		eg->loop.ended = true;
	}
}

int channel_start(struct egress *eg)
{
	eg->channel = (struct watch){ .fd = EGRESS_FD_CHANNEL, .ready = channel_ready };
	int r = loop_watch(&eg->loop, &eg->channel, EPOLLIN);
	if (r < 0)
		return r;
	return tell_record(
		&eg->tell, EGRESS_READY, eg->rules.resolver_count == 0, "", PATIENCE_MS);
}
