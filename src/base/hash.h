/*
 * hash.h - a number for the place of a text in a hash table.
 *
 * Runs in: every process outside the box, and the build, which writes some into the program: the number is the same
 * on every machine. PURE. May not: be used where somebody gains by texts that collide.
 */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* hash_bytes - of @size bytes, eight at a time. */
static inline uint32_t hash_bytes(const void *data, size_t size)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 by the golden ratio */
	const char *at = data;
	uint64_t hash = size, word;

	for (; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ le64toh(word)) * odd;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, at, size);
	hash = (hash ^ le64toh(word)) * odd;
	return (uint32_t)(hash >> 32);
}
