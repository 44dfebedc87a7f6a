/*
 * coverer.h - the process that waits for what the host uncovers: cover.h.
 *
 * Runs in: the coverer, a child of S, outside of the session, from its first line to its end.
 */
#pragma once

#include <sys/types.h>

#include "box/view.h"
#include "host/cover/cover_again.h"

/*
 * coverer_main - confine itself, send a byte, and for each byte from @socket do the work once and send one back. It ends
 * with @parent, or with the socket. @t: complete; all descriptors but @socket and its own are closed.
 */
_Noreturn void coverer_main(struct cover_task *t, pid_t parent, int socket);
