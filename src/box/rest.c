/*
 * rest.c - see rest.h.
 *
 * Runs in: init and monitors. No heap, no stdio.
 */
#include "box/rest.h"

#include <errno.h>

static REST_FUNCTION int wait_at_rest(
	const struct box *box, struct pollfd *events, nfds_t count)
{
	rest_give_back(box, (const void *)wait_at_rest);
	return poll(events, count, -1);
}

int rest_poll(const struct box *box, struct pollfd *events, nfds_t count)
{
	int n;

	do {
		n = poll(events, count, REST_AFTER_MS);
		if (n == 0)
			n = wait_at_rest(box, events, count);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
