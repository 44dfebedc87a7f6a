/*
 * sha256.h - SHA-256 (FIPS 180-4), to name policies and filters by their content.
 *
 * Runs in: every process outside the box. May not: fail, allocate. Not written for
 * secrets: what is hashed here is public, and a digest is compared with memcmp.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32                        /* bytes of a digest */
#define SHA256_HEX_SIZE (2 * SHA256_SIZE + 1) /* its hexadecimal form with the NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t length;   /* bytes taken so far */
	uint8_t block[64]; /* the last, incomplete block */
};

/* sha256_init, sha256_update, sha256_final - a digest in pieces. */
void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t size);
void sha256_final(struct sha256 *s, uint8_t ret_digest[SHA256_SIZE]);

/* sha256 - the digest of @size bytes. */
void sha256(const void *data, size_t size, uint8_t ret_digest[SHA256_SIZE]);

/* sha256_hex - the digest in lower-case hexadecimal, NUL-terminated. */
void sha256_hex(const uint8_t digest[SHA256_SIZE], char ret_text[SHA256_HEX_SIZE]);
