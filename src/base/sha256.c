/*
 * sha256.c - see sha256.h. The names are those of FIPS 180-4, section 6.2.
 *
 * Runs in: every process outside the box.
 */
#include "base/sha256.h"

#include <string.h>

static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint32_t constants[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152,
	0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
	0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3,
	0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t x)
{
	p[0] = (uint8_t)(x >> 24);
	p[1] = (uint8_t)(x >> 16);
	p[2] = (uint8_t)(x >> 8);
	p[3] = (uint8_t)x;
}

static void schedule(uint32_t w[64], const uint8_t block[64])
{
	for (size_t t = 0; t < 16; t++)
		w[t] = load_be32(block + 4 * t);
	for (size_t t = 16; t < 64; t++) {
		uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;

		w[t] = s1 + w[t - 7] + s0 + w[t - 16];
	}
}

/* One round. Its caller turns the names of the eight words instead of moving the words. */
static inline void mix_word(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
	uint32_t f, uint32_t g, uint32_t *h, uint32_t input)
{
	uint32_t sum1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
	uint32_t ch = (e & f) ^ (~e & g);
	uint32_t t1 = *h + sum1 + ch + input;
	uint32_t sum0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
	uint32_t maj = (a & b) ^ (a & c) ^ (b & c);

	*d += t1;
	*h = t1 + sum0 + maj;
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64];
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

	schedule(w, block);
	for (size_t t = 0; t < 64; t += 8) {
		mix_word(a, b, c, &d, e, f, g, &h, constants[t] + w[t]);
		mix_word(h, a, b, &c, d, e, f, &g, constants[t + 1] + w[t + 1]);
		mix_word(g, h, a, &b, c, d, e, &f, constants[t + 2] + w[t + 2]);
		mix_word(f, g, h, &a, b, c, d, &e, constants[t + 3] + w[t + 3]);
		mix_word(e, f, g, &h, a, b, c, &d, constants[t + 4] + w[t + 4]);
		mix_word(d, e, f, &g, h, a, b, &c, constants[t + 5] + w[t + 5]);
		mix_word(c, d, e, &f, g, h, a, &b, constants[t + 6] + w[t + 6]);
		mix_word(b, c, d, &e, f, g, h, &a, constants[t + 7] + w[t + 7]);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ 0 };
	memcpy(s->state, initial, sizeof(initial));
}

void sha256_update(struct sha256 *s, const void *data, size_t size)
{
	const uint8_t *at = data;
	size_t held = (size_t)(s->length % 64);

	s->length += size;
	if (held > 0 && size >= 64 - held) {
		memcpy(s->block + held, at, 64 - held);
		compress(s->state, s->block);
		at += 64 - held;
		size -= 64 - held;
		held = 0;
	}
	for (; held == 0 && size >= 64; at += 64, size -= 64)
		compress(s->state, at);
	if (size > 0)
		memcpy(s->block + held, at, size);
}

void sha256_final(struct sha256 *s, uint8_t ret_digest[SHA256_SIZE])
{
	static const uint8_t padding[64] = { 0x80 };
	uint8_t length_bits[8];
	size_t held = (size_t)(s->length % 64);

	store_be32(length_bits, (uint32_t)(s->length >> 29));
	store_be32(length_bits + 4, (uint32_t)(s->length << 3));
	sha256_update(s, padding, held < 56 ? 56 - held : 120 - held);
	sha256_update(s, length_bits, sizeof(length_bits));
	for (size_t i = 0; i < 8; i++)
		store_be32(ret_digest + 4 * i, s->state[i]);
}

void sha256(const void *data, size_t size, uint8_t ret_digest[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, data, size);
	sha256_final(&s, ret_digest);
}

void sha256_hex(const uint8_t digest[SHA256_SIZE], char ret_text[SHA256_HEX_SIZE])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_SIZE; i++) {
		ret_text[2 * i] = hex[digest[i] >> 4];
		ret_text[2 * i + 1] = hex[digest[i] & 15];
	}
	ret_text[2 * SHA256_SIZE] = '\0';
}
