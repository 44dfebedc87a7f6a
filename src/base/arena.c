/*
 * arena.c - see arena.h.
 *
 * Runs in: the launcher and carrel-policy.
 */
#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h, since 5.14 */
#endif

/* PAGE_BYTES: the largest page there is, of any machine. */
enum { PAGE_BYTES = 65536, FEW_BYTES = 65536, MANY_BYTES = 1 << 19, HUGE_BYTES = 1 << 21 };

static int reserve(struct arena *a, size_t size, int sharing)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	*a = (struct arena){ .base = base, .size = size };
	return 0;
}

int arena_init(struct arena *a, size_t size)
{
	return reserve(a, size, MAP_PRIVATE);
}

int arena_init_shared(struct arena *a, size_t size)
{
	return reserve(a, size, MAP_SHARED);
}

int arena_seal(struct arena *a)
{
	return mprotect(a->base, a->size, PROT_READ) < 0 ? -errno : 0;
}

void arena_free(struct arena *a)
{
	if (a->base)
		(void)munmap(a->base, a->size);
	*a = (struct arena){ 0 };
}

void arena_expect(struct arena *a, size_t size)
{
	size_t odd = ((uintptr_t)a->base + a->used) & (HUGE_BYTES - 1);
	size_t begin = a->used + (odd ? HUGE_BYTES - odd : 0);
	size_t whole = (size + HUGE_BYTES - 1) & ~(size_t)(HUGE_BYTES - 1);

	if (size < MANY_BYTES || begin >= a->size / 2 || whole > a->size / 2 - begin)
		return;
	a->used = begin;
	/* Neither changes what is there: where huge pages are refused, small ones are taken at once. */
	(void)madvise(a->base + begin, whole, MADV_HUGEPAGE);
	(void)madvise(a->base + begin, size, MADV_POPULATE_WRITE);
}

void *arena_alloc(struct arena *a, size_t size)
{
	size_t aligned = (size + 15) & ~(size_t)15;

	if (aligned < size || aligned > a->size - a->used)
		return NULL;
	void *p = a->base + a->used;
	a->used += aligned;
	return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return arena_alloc(a, bytes);
}

static void *push(struct arena *a, void *items, size_t count, size_t size, size_t first)
{
	if (items && (count < first || (count & (count - 1)) != 0))
		return items;
	size_t capacity = count < first ? first : count * 2;
	/* Nothing was taken behind the array: it grows where it is. */
	if (items && (char *)items + ((count * size + 15) & ~(size_t)15) == a->base + a->used)
		return arena_array(a, capacity - count, size) ? items : NULL;
	void *grown = arena_array(a, capacity, size);

	if (grown && items)
		memcpy(grown, items, count * size);
	return grown;
}

void *arena_push(struct arena *a, void *items, size_t count, size_t size)
{
	return push(a, items, count, size, 8);
}

void *arena_push_many(struct arena *a, void *items, size_t count, size_t size)
{
	return push(a, items, count, size, 128);
}

char *arena_rest(const struct arena *a, size_t *ret_size)
{
	*ret_size = a->size - a->used;
	return a->base + a->used;
}

char *arena_keep(struct arena *a, size_t kept, size_t written)
{
	memset(a->base + a->used + kept, 0, written - kept);
	return arena_alloc(a, kept);
}

void arena_lend(const struct arena *a, struct arena *ret_near, struct arena *ret_far)
{
	size_t half = (a->size - a->used) / 2 & ~(size_t)15;

	*ret_near = (struct arena){ .base = a->base + a->used, .size = half };
	*ret_far = (struct arena){ .base = ret_near->base + half, .size = half };
}

void arena_take_back(struct arena *lent)
{
	size_t few = lent->used;

	/* Give many pages back to the kernel, which is possible for shared ones alone. */
	if (few > FEW_BYTES) {
		size_t odd = (uintptr_t)lent->base & (PAGE_BYTES - 1);
		size_t begin = odd ? PAGE_BYTES - odd : 0;

		if (madvise(lent->base + begin, few - begin, MADV_REMOVE) == 0)
			few = begin;
	}
	memset(lent->base, 0, few);
	*lent = (struct arena){ 0 };
}

char *arena_copy(struct arena *a, const char *text, size_t length)
{
	char *p = length == SIZE_MAX ? NULL : arena_alloc(a, length + 1);

	if (p) {
		memcpy(p, text, length);
		p[length] = '\0';
	}
	return p;
}

char *arena_join(struct arena *a, const char *left, char between, const char *right)
{
	size_t l = strlen(left), r = strlen(right);
	char *p = arena_alloc(a, l + r + 2);

	if (p) {
		memcpy(p, left, l);
		p[l] = between;
		memcpy(p + l + 1, right, r + 1);
	}
	return p;
}

char *arena_format(struct arena *a, const char *format, ...)
{
	va_list args;
	size_t room;
	char *p = arena_rest(a, &room);

	va_start(args, format);
	int length = vsnprintf(p, room, format, args);
	va_end(args);
	if (length >= 0 && (size_t)length < room)
		return arena_keep(a, (size_t)length + 1, (size_t)length + 1);
	(void)arena_keep(a, 0, room);
	return NULL;
}
