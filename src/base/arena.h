/*
 * arena.h - memory that is filled once, sealed, and never freed piece by piece.
 *
 * Runs in: the launcher and carrel-policy; the box reads what was sealed.
 * May not: grow after arena_seal(); a write to a sealed arena is a fault, and meant to be.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct arena {
	char *base;
	size_t used;
	size_t size; /* reserved address space, bytes; pages are taken as they are touched */
};

/* arena_init - reserve @size bytes of address space. 0 or -errno. */
MUST_CHECK int arena_init(struct arena *a, size_t size);

/* arena_init_shared - the same; a child forked later sees what is written meanwhile. */
MUST_CHECK int arena_init_shared(struct arena *a, size_t size);

/* arena_seal - make all of it read-only (mprotect(2)). 0 or -errno. */
MUST_CHECK int arena_seal(struct arena *a);

/* arena_free - give everything back. */
void arena_free(struct arena *a);

/*
 * arena_expect - about @size bytes are soon taken. If they are many, the kernel gives their pages at once, and as huge
 * ones where it has these (madvise(2)): what is taken next begins at such a page. Of few, those that are not taken after
 * all would cost more memory than time is saved.
 */
void arena_expect(struct arena *a, size_t size);

/* arena_alloc - @size zeroed bytes aligned for any type, or NULL when the arena is full. */
void *arena_alloc(struct arena *a, size_t size);

/* arena_array - @count zeroed elements of @size bytes, or NULL (overflow included). */
void *arena_array(struct arena *a, size_t count, size_t size);

/*
 * arena_push - append one zeroed element to a growing array in the arena.
 * @items: the array's first element or NULL; @count: elements in it; @size: bytes of one.
 * Returns the array's (perhaps moved) start with room for *count + 1, or NULL when full. The
 * capacity is the next power of two, so nothing beside the count need be kept.
 */
void *arena_push(struct arena *a, void *items, size_t count, size_t size);

/*
 * arena_push_many - the same for an array of which about a hundred elements are expected: it has that room at once
 * and is not copied on the way. An array is pushed to by one of the two, always the same.
 */
void *arena_push_many(struct arena *a, void *items, size_t count, size_t size);

/*
 * arena_rest - all that is left, zeroed, for something whose length is not known beforehand: write
 * it from the start, then call arena_keep() before anything else is taken.
 */
char *arena_rest(const struct arena *a, size_t *ret_size);

/* arena_keep - take the first @kept bytes of the @written ones for good; the others are zeroed again. */
char *arena_keep(struct arena *a, size_t kept, size_t written);

/*
 * arena_lend - lend what is left, in halves, for work that lasts a moment only. @ret_near begins
 * with what will be taken next: nothing may be taken until it is given back. @ret_far may be kept
 * meanwhile, but is not lent twice at a time.
 * arena_take_back - give @lent back; what was used of it is zeroed again.
 */
void arena_lend(const struct arena *a, struct arena *ret_near, struct arena *ret_far);
void arena_take_back(struct arena *lent);

/* arena_copy / arena_join / arena_format - text in the arena, NUL-terminated, or NULL when full. */
char *arena_copy(struct arena *a, const char *text, size_t length);
char *arena_join(struct arena *a, const char *left, char between, const char *right);
char *arena_format(struct arena *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
