/*
 * request.h - makes the request for an execution into the bytes of box/request.h, and sends it.
 *
 * Runs in: the client.
 */
#pragma once

#include "client/execution.h"

/*
 * request_send - ask session @fd for an execution with the descriptors of @stdio.
 * Returns 0 or -errno with @e.
 */
MUST_CHECK int request_send(int fd, const struct execution_request *request,
	const struct stdio *stdio, struct error *e);
