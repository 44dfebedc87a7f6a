/*
 * reach.c - see reach.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/reach.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "egress/egress.h"

static void fail(struct reach *r, enum egress_decision decision, int errnum, const char *why)
{
	const struct reached what = {
		.fd = -1, .decision = decision, .errnum = errnum, .why = why
	};

	r->done(r, &what);
}

static void dialled(void *context, int fd, const struct target *target, int error)
{
	struct reach *r = context;
	const struct reached what = { .fd = fd, .decision = EGRESS_ALLOWED };
	const int yes = 1;

	r->dial = NULL;
	if (fd < 0) {
		fail(r, EGRESS_FAILED, -error, "connect");
		return;
	}
	r->server = *target;
	/* Neither changes what arrives: one is about delay, the other about servers that vanish. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	r->done(r, &what);
}

/* Whether a name may be reached at this address: by an address rule, or because it is everybody's. */
static bool may_reach(struct egress *eg, uint16_t port, const struct target *target)
{
	int rule;

	if (netrules_address(eg->rules.set, target->family, target->address, port, &rule))
		return true;
	return rule < 0 && netrules_is_public(target->family, target->address);
}

static size_t add_target(struct egress *eg, uint16_t port, struct target *ret, unsigned family,
	const void *address)
{
	*ret = (struct target){ .family = (uint8_t)family };
	memcpy(ret->address, address, family == 4 ? 4 : 16);
	return may_reach(eg, port, ret);
}

/* The addresses that may be reached, the families in turns, IPv6 first. */
static size_t list_targets(struct egress *eg, const struct name *name, uint16_t port,
	struct target ret[TARGETS_MAX + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < DNS_ADDRESSES_MAX; i++) {
		if (i < name->six_count)
			count += add_target(eg, port, &ret[count], 6, name->six[i]);
		if (i < name->four_count)
			count += add_target(eg, port, &ret[count], 4, name->four[i]);
	}
	return count;
}

static struct target first_of(const struct name *name)
{
	struct target target = { .family = name->four_count ? 4 : 6 };

	memcpy(target.address, name->four_count ? name->four[0] : name->six[0],
		name->four_count ? 4 : 16);
	return target;
}

bool reach_may(
	struct egress *eg, const struct name *name, uint16_t port, struct target *ret_first)
{
	struct target targets[TARGETS_MAX + 1];

	*ret_first = first_of(name);
	return list_targets(eg, name, port, targets) > 0;
}

static void start_dial(struct reach *r, const struct target *targets, size_t count)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d) {
		fail(r, EGRESS_FAILED, ENOMEM, "connect");
		return;
	}
	memcpy(d->targets, targets, count * sizeof(*targets));
	d->count = count;
	d->port = r->port;
	d->done = dialled;
	d->context = r;
	r->dial = d;
	dial_start(&r->egress->loop, d);
}

static void resolved(struct waiter *waiter, struct name *name, int error)
{
	struct reach *r = CONTAINER(waiter, struct reach, waiter);
	struct target targets[TARGETS_MAX + 1];

	if (error < 0) {
		fail(r, EGRESS_FAILED, -error, "resolve");
		return;
	}
	size_t count = list_targets(r->egress, name, r->port, targets);
	if (count == 0) {
		r->server = first_of(name);
		fail(r, EGRESS_DENIED_ADDRESS, 0, "no address that is everybody's");
		return;
	}
	start_dial(r, targets, count);
}

void reach_start(struct reach *r)
{
	const struct target target = r->server;

	r->waiter.done = resolved;
	r->server = (struct target){ 0 };
	if (r->name)
		names_resolve(r->egress, r->name, &r->waiter);
	else
		start_dial(r, &target, 1);
}

void reach_cancel(struct reach *r)
{
	names_cancel(&r->waiter);
	if (r->dial)
		dial_cancel(r->dial);
	r->dial = NULL;
}
