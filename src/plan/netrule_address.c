/*
 * netrule_address.c - which addresses are public, which are special, and which IPv6 ones hold an
 * IPv4 address.
 *
 * Runs in: the launcher, carrel-policy, carrel-egress. PURE.
 *
 * See: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), RFC 4291, RFC 6052 (NAT64),
 * RFC 3056 (6to4).
 */
#include <string.h>

#include "plan/netrule_private.h"

struct range {
	uint8_t address[16];
	uint8_t bits;
};

static const struct range special_four[] = {
	{ { 0 }, 8 },             /* this network; 0.0.0.0 is the host itself to connect(2) */
	{ { 10 }, 8 },            /* private, RFC 1918 */
	{ { 100, 64 }, 10 },      /* shared by a provider's customers, RFC 6598 */
	{ { 127 }, 8 },           /* loopback */
	{ { 169, 254 }, 16 },     /* link-local; metadata services of clouds */
	{ { 172, 16 }, 12 },      /* private */
	{ { 192, 0, 0 }, 24 },    /* protocol assignments */
	{ { 192, 0, 2 }, 24 },    /* documentation */
	{ { 192, 88, 99 }, 24 },  /* 6to4 relays, RFC 7526 */
	{ { 192, 168 }, 16 },     /* private */
	{ { 198, 18 }, 15 },      /* benchmarking: the session's own block */
	{ { 198, 51, 100 }, 24 }, /* documentation */
	{ { 203, 0, 113 }, 24 },  /* documentation */
	{ { 224 }, 4 },           /* multicast */
	{ { 240 }, 4 },           /* reserved, and the broadcast */
};

/* Inside of 2000::/3, the only part that IANA has given out for public use. */
static const struct range special_six[] = {
	{ { 0x20, 0x01 }, 23 }, /* protocol assignments: Teredo, ORCHID and others */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x3f, 0xff }, 20 },             /* documentation, RFC 9637 */
};

/*
 * Outside of 2000::/3. What is in none of these is reserved, with the eighth of all addresses it
 * lies in.
 */
static const struct range special_outside[] = {
	{ { 0 }, 128 },                                 /* unspecified */
	{ { [15] = 1 }, 128 },                          /* loopback */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48 }, /* NAT64 of a site, RFC 8215 */
	{ { 0 }, 8 },                                   /* reserved, IPv4-compatible */
	{ { 0xfc }, 7 },                                /* private, RFC 4193 */
	{ { 0xfe, 0x80 }, 10 },                         /* link-local */
	{ { 0xfe, 0xc0 }, 10 },                         /* site-local */
	{ { 0xff }, 8 },                                /* multicast */
};

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };

bool netrule_bits_same(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static int range_of(const struct range *list, size_t count, const uint8_t *address)
{
	for (size_t i = 0; i < count; i++)
		if (netrule_bits_same(list[i].address, address, list[i].bits))
			return list[i].bits;
	return -1;
}

const uint8_t *netrule_inner(const uint8_t *address, unsigned *ret_bits)
{
	if (memcmp(address, mapped, sizeof(mapped)) == 0 ||
		memcmp(address, nat64, sizeof(nat64)) == 0) {
		*ret_bits = 96;
		return address + 12;
	}
	if (address[0] == 0x20 && address[1] == 0x02) {
		*ret_bits = 16;
		return address + 2;
	}
	return NULL;
}

bool netrule_is_mapped(const uint8_t *address)
{
	return memcmp(address, mapped, sizeof(mapped)) == 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int netrule_special(unsigned family, const uint8_t *address)
{
	unsigned before;

	if (family == 4)
		return range_of(special_four, COUNT(special_four), address);
	const uint8_t *inner = netrule_inner(address, &before);
	if (inner) {
		int bits = range_of(special_four, COUNT(special_four), inner);

		return bits < 0 ? -1 : (int)before + bits;
	}
	if (address[0] >> 5 == 1)
		return range_of(special_six, COUNT(special_six), address);
	int bits = range_of(special_outside, COUNT(special_outside), address);
	return bits < 0 ? 3 : bits;
}

bool netrules_is_public(unsigned family, const uint8_t *address)
{
	return netrule_special(family, address) < 0;
}
