/*
 * tracee.c - see tracee.h.
 *
 * Runs in: the observer.
 */
#include "host/explain/tracee.h"

static uint16_t *head_of(struct tracees *t, pid_t thread)
{
	return &t->heads[(uint32_t)thread % TRACEES_HEADS];
}

struct tracee *tracee_find(struct tracees *t, pid_t thread)
{
	for (uint16_t at = *head_of(t, thread); at; at = t->all[at - 1].next)
		if (t->all[at - 1].thread == thread)
			return &t->all[at - 1];
	return NULL;
}

struct tracee *tracee_add(struct tracees *t, pid_t thread)
{
	uint16_t *head = head_of(t, thread), at = t->free;

	if (at)
		t->free = t->all[at - 1].next;
	else if (t->used < TRACEES_MAX)
		at = ++t->used;
	else
		return NULL;
	t->all[at - 1] = (struct tracee){ .thread = thread, .next = *head };
	*head = at;
	return &t->all[at - 1];
}

void tracee_remove(struct tracees *t, pid_t thread)
{
	for (uint16_t *at = head_of(t, thread); *at; at = &t->all[*at - 1].next) {
		struct tracee *found = &t->all[*at - 1];
		uint16_t index = *at;

		if (found->thread != thread)
			continue;
		*at = found->next;
		*found = (struct tracee){ .next = t->free };
		t->free = index;
		return;
	}
}
