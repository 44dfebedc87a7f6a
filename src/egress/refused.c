/*
 * refused.c - see refused.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/refused.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/dial.h"
#include "egress/egress.h"
#include "egress/names.h"

enum {
	AT_ONCE = 32,    /* before others have their turn */
	REST_MAX = 1024, /* more than its queue holds */
	SEGMENT_MAX =
		128, /* bytes of one that are looked at: the greatest header of IPv4, and ports */
};

/* The port that refused: a segment of IPv4 has its packet's header before it. False: it is cut. */
static bool read_port(unsigned family, const uint8_t *segment, size_t size, uint16_t *ret_port)
{
	size_t at = family == 4 && size > 0 ? (size_t)(segment[0] & 0xf) * 4 : 0;

	if (size < at + sizeof(uint16_t))
		return false;
	*ret_port = (uint16_t)(segment[at] << 8 | segment[at + 1]);
	return true;
}

static bool read_address(const struct sockaddr_storage *from, struct target *ret)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	*ret = (struct target){ .family = from->ss_family == AF_INET6 ? 6 : 4 };
	if (from->ss_family == AF_INET) {
		memcpy(&four, from, sizeof(four));
		memcpy(ret->address, &four.sin_addr, 4);
	} else if (from->ss_family == AF_INET6) {
		memcpy(&six, from, sizeof(six));
		memcpy(ret->address, &six.sin6_addr, 16);
	}
	return from->ss_family == AF_INET || from->ss_family == AF_INET6;
}

/* Of the session's own addresses those count that are a name's; servers of tools have the others, and the loopback. */
static void tell_refusal(struct egress *eg, const struct target *to, uint16_t port)
{
	struct name *name = names_at(eg, to->family, to->address);
	char text[TARGET_TEXT_MAX];
	struct event event = { .decision = EGRESS_DENIED_PORT, .port = port, .rule = -1 };

	target_text(to, text);
	event.name = name ? name->text : text;
	if (!name && names_is_own(to->family, to->address))
		return;
	if (name ? netrules_name(eg->rules.set, name->text, port, &event.rule)
		 : netrules_address(eg->rules.set, to->family, to->address, port, &event.rule))
		return; /* it has a listener, so this is no refusal of ours */
	tell_event(&eg->tell, &event);
}

static void read_some(struct refused *r, int most)
{
	uint8_t segment[SEGMENT_MAX];
	struct target to;
	uint16_t port;

	for (int i = 0; i < most; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(r->watch.fd, segment, sizeof(segment), MSG_DONTWAIT,
			(struct sockaddr *)&from, &size);

		if (n < 0)
			return;
		if (read_address(&from, &to) && read_port(to.family, segment, (size_t)n, &port))
			tell_refusal(r->egress, &to, port);
	}
}

static void ready(struct watch *watch, uint32_t events)
{
	(void)events;
	read_some((struct refused *)watch, AT_ONCE);
}

void refused_rest(struct egress *eg)
{
	for (size_t i = 0; i < eg->refused_count; i++)
		read_some(&eg->refused[i], REST_MAX);
}

int refused_hear(struct egress *eg, int fd)
{
	const size_t room = sizeof(eg->refused) / sizeof(eg->refused[0]);

	if (eg->refused_count == room) {
		(void)close(fd);
		return -EMFILE;
	}
	struct refused *r = &eg->refused[eg->refused_count++];
	*r = (struct refused){ .watch = { .fd = fd, .ready = ready }, .egress = eg };
	return loop_watch(&eg->loop, &r->watch, EPOLLIN);
}
