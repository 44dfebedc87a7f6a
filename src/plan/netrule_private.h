/*
 * netrule_private.h - what the files of netrule.h share.
 *
 * Runs in: the launcher, carrel-policy, carrel-egress. PURE.
 */
#pragma once

#include "plan/netrule.h"

/* netrule_bits_same - whether two addresses share their first @bits bits. */
bool netrule_bits_same(const uint8_t *a, const uint8_t *b, unsigned bits);

/* netrule_is_mapped - whether an address of IPv6 is IPv4-mapped (::ffff:0:0/96): to connect(2) it is the inner one. */
bool netrule_is_mapped(const uint8_t *address);

/*
 * netrule_inner - the IPv4 address in one of IPv6 (mapped, NAT64, 6to4), or NULL. *@ret_bits: how many bits stand
 * before it.
 */
const uint8_t *netrule_inner(const uint8_t *address, unsigned *ret_bits);

/*
 * netrule_special - the length of the prefix, in bits, of the special range that @address lies in; -1:
 * it lies in none. A rule allows an address of such a range only if the rule's whole block lies in it.
 */
int netrule_special(unsigned family, const uint8_t *address);
