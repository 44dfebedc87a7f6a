/*
 * network.h - the session's network, where the policy allows hosts: addresses on the loopback, and listeners.
 *
 * Runs in: init, while it has its rights over its network namespace; network_count() in every monitor.
 */
#pragma once

#include "plan/plan.h"

/*
 * network_address - put the session's own blocks of addresses on the loopback. 1; 0: without the
 * one of IPv6, which this kernel or its loopback does not have; or -errno. See: rtnetlink(7).
 */
__attribute__((warn_unused_result)) int network_address(void);

/*
 * network_local - have the kernel take @block for its own. Where it has no IPv6, none of those is local: what connects
 * to one fails. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_local(const struct net_local *block);

/*
 * network_count - what processes of this network namespace tried in vain since it was made. The kernel counts; a tool can add to it and
 * take nothing away. @ret_no_route: connections and datagrams to an address without a route. @ret_no_listener: datagrams to a
 * port of the loopback without a listener, as many hosts have their resolver there. Each is 0 where it cannot be read.
 * See: /proc/net/snmp, RFC 4293 (ipSystemStatsOutNoRoutes), RFC 4113 (udpNoPorts).
 */
void network_count(uint32_t *ret_no_route, uint32_t *ret_no_listener);

/*
 * network_pool - make the sockets with which servers inside are connected to, CHANNEL_POOL of each
 * family that there is, and send them to the supervisor in the same way: whoever has one connects
 * in this network namespace. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_pool(int channel);

/*
 * network_refusals - make the sockets that hear of connections which the kernel refuses, and send them to the supervisor in the same
 * way. Without one nothing is lost but what a user is told: a kernel that makes none is no failure. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_refusals(int channel);

/*
 * network_listen - make the sockets of the resolver and a listener for each port of @plan, and send them to the
 * supervisor over @channel (CHANNEL_SOCKETS); none stays open here. @six: what network_address() returned. 0 or -errno.
 */
__attribute__((warn_unused_result)) int network_listen(
	const struct plan *plan, int channel, bool six);
