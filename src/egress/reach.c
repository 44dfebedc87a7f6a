/*
 * reach.c - see reach.h.
 *
 * Runs in: carrel-egress.
 *
 * If the policy names a proxy of the host's network, this does not resolve a name that the host's hosts(5) does not have: behind
 * such a proxy it often cannot. It asks the proxy for the name, and the proxy decides where that leads.
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

static void tunnelled(struct tunnel *t, int fd, int errnum, const char *why)
{
	struct reach *r = CONTAINER(t, struct reach, tunnel);
	const struct reached what = { .fd = fd, .decision = EGRESS_ALLOWED };

	if (fd < 0)
		fail(r, EGRESS_FAILED, errnum, why);
	else
		r->done(r, &what);
}

static void dialled(void *context, int fd, const struct target *target, int error)
{
	struct reach *r = context;
	const struct reached what = { .fd = fd, .decision = EGRESS_ALLOWED };
	const int yes = 1;

	r->dial = NULL;
	if (fd < 0) {
		fail(r, EGRESS_FAILED, -error,
			r->by_proxy ? "connect to the proxy" : "connect");
		return;
	}
	r->server = *target;
	/* If one of these fails, the same bytes arrive: TCP_NODELAY is about delay, SO_KEEPALIVE about servers that vanish. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	if (r->by_proxy)
		tunnel_start(&r->tunnel, fd, r->name->text, r->port);
	else
		r->done(r, &what);
}

/* Whether a name may be reached at this address: an address rule allows it, or it is a public address. */
static bool may_reach(struct egress *eg, uint16_t port, const struct target *target)
{
	int rule;

	if (netrules_address(eg->rules.set, target->family, target->address, port, &rule))
		return true;
	return rule < 0 && netrules_is_public(target->family, target->address);
}

static struct target target_of(unsigned family, const void *address)
{
	struct target target = { .family = (uint8_t)family };

	memcpy(target.address, address, family == 4 ? 4 : 16);
	return target;
}

static size_t add_target(struct egress *eg, uint16_t port, struct target *ret, unsigned family,
	const void *address)
{
	*ret = target_of(family, address);
	return may_reach(eg, port, ret);
}

/* The addresses that may be reached; the families take turns, IPv6 first. */
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
	return name->four_count ? target_of(4, name->four[0]) : target_of(6, name->six[0]);
}

/* The proxy is asked for it by its name, and nothing else is known of it here. */
static bool needs_proxy(const struct egress *eg, const struct name *name)
{
	return eg->rules.proxy && name->four_count + name->six_count == 0;
}

bool reach_may(
	struct egress *eg, const struct name *name, uint16_t port, struct target *ret_first)
{
	struct target targets[TARGETS_MAX + 1];

	*ret_first = first_of(name);
	if (needs_proxy(eg, name))
		return true;
	return list_targets(eg, name, port, targets) > 0;
}

static void start_dial(
	struct reach *r, const struct target *targets, size_t count, uint16_t port)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d) {
		fail(r, EGRESS_FAILED, ENOMEM, "connect");
		return;
	}
	memcpy(d->targets, targets, count * sizeof(*targets));
	d->count = count;
	d->port = port;
	d->done = dialled;
	d->context = r;
	r->dial = d;
	dial_start(&r->egress->loop, d);
}

/* --- by the proxy ------------------------------------------------------------------------------- */

static void proxy_resolved(struct waiter *waiter, struct name *name, int error)
{
	struct reach *r = CONTAINER(waiter, struct reach, waiter);
	struct target targets[TARGETS_MAX];
	size_t count = 0;

	if (error < 0) {
		fail(r, EGRESS_FAILED, -error, "resolve the proxy's name");
		return;
	}
	/* The policy names this host: its address may be a private one. */
	for (size_t i = 0; i < name->six_count; i++)
		targets[count++] = target_of(6, name->six[i]);
	for (size_t i = 0; i < name->four_count; i++)
		targets[count++] = target_of(4, name->four[i]);
	if (count == 0)
		fail(r, EGRESS_FAILED, ENOENT, "resolve the proxy's name");
	else
		start_dial(r, targets, count, r->egress->rules.proxy->ports[0]);
}

static void ask_proxy(struct reach *r)
{
	static const uint8_t four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };
	const struct netrule *proxy = r->egress->rules.proxy;
	const struct target here[2] = { target_of(4, four), target_of(6, six) };
	struct target target;

	r->by_proxy = true;
	r->tunnel = (struct tunnel){ .watch.fd = -1, .egress = r->egress, .done = tunnelled };
	if (proxy->kind == NETRULE_LOCALHOST) {
		start_dial(r, here, 2, proxy->ports[0]);
	} else if (proxy->kind == NETRULE_BLOCK) {
		target = target_of(proxy->family, proxy->address);
		start_dial(r, &target, 1, proxy->ports[0]);
	} else {
		struct name *name = names_get(r->egress, proxy->name);

		r->waiter.done = proxy_resolved;
		if (name)
			names_resolve(r->egress, name, &r->waiter);
		else
			fail(r, EGRESS_FAILED, ENOSPC, "resolve the proxy's name");
	}
}

/* --- either ------------------------------------------------------------------------------------- */

static void resolved(struct waiter *waiter, struct name *name, int error)
{
	struct reach *r = CONTAINER(waiter, struct reach, waiter);
	struct target targets[TARGETS_MAX + 1];

	if (error < 0) {
		fail(r, EGRESS_FAILED, -error, "resolve");
		return;
	}
	if (needs_proxy(r->egress, name)) {
		ask_proxy(r);
		return;
	}
	size_t count = list_targets(r->egress, name, r->port, targets);
	if (count == 0) {
		r->server = first_of(name);
		fail(r, EGRESS_DENIED_ADDRESS, 0, "no address that is everybody's");
		return;
	}
	start_dial(r, targets, count, r->port);
}

void reach_start(struct reach *r)
{
	const struct target target = r->server;

	r->waiter.done = resolved;
	r->server = (struct target){ 0 };
	if (r->name)
		names_resolve(r->egress, r->name, &r->waiter);
	else
		start_dial(r, &target, 1, r->port);
}

void reach_cancel(struct reach *r)
{
	names_cancel(&r->waiter);
	if (r->dial)
		dial_cancel(r->dial);
	r->dial = NULL;
	tunnel_cancel(&r->tunnel);
}
