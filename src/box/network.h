/*
 * network.h - the session's network, where the policy allows hosts: addresses on the loopback, and listeners.
 *
 * Runs in: init, while it has its rights over its network namespace; network_unrouted() in every monitor.
 */
#pragma once

#include "plan/plan.h"

/*
 * network_address - the session's own blocks of addresses on the loopback. 1; 0: without the one of IPv6, which this kernel or its
 * loopback does not have; or -errno. See: rtnetlink(7).
 */
__attribute__((warn_unused_result)) int network_address(void);

/*
 * network_local - have the kernel take @block for its own. Where it has no IPv6, none of those is local: what connects
 * to one fails. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_local(const struct net_local *block);

/*
 * network_unrouted - how often processes of this network namespace looked for something outside of it since it was made: connections
 * and datagrams for which there was no route, and datagrams to a port of the loopback that nobody listens at, as a host's resolver may be
 * there. The kernel counts them; a tool can add to them and take nothing away. 0 also where they cannot be read.
 * See: /proc/net/snmp, RFC 4293 (ipSystemStatsOutNoRoutes), RFC 4113 (udpNoPorts).
 */
uint32_t network_unrouted(void);

/*
 * network_pool - make the sockets that servers inside are connected to with, CHANNEL_POOL of each family that there is, and send
 * them to the supervisor in the same way: whoever has one connects in this network namespace. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_pool(int channel);

/*
 * network_listen - make the sockets of the resolver and a listener for each port of @plan, and send them to the
 * supervisor over @channel (CHANNEL_SOCKETS); none stays open here. @six: what network_address() returned. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_listen(
	const struct plan *plan, int channel, bool six);
