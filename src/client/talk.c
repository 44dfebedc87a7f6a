/*
 * talk.c - see talk.h.
 *
 * Runs in: the client.
 */
#include "client/talk.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

int talk_result(const void *data, size_t size, struct error *e)
{
	int r = fd_write_all(STDOUT_FILENO, data, size);

	return r < 0
		? error_set(e, ERROR_INTERNAL, "report", -r, NULL, "cannot write the result")
		: 0;
}

int talk_json(void *context, const void *data, size_t size)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, data, size);
}

void talk_name(const char *name, char *ret_text, size_t size)
{
	(void)text_visible(&name, "\\", ret_text, size);
}
