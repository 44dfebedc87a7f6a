/*
 * coverer.h - the process that waits until the host has uncovered something: cover.h.
 *
 * Runs in: the coverer, a child of S outside the session.
 */
#pragma once

#include <sys/types.h>

#include "box/view.h"
#include "host/cover/cover_again.h"

/*
 * coverer_main - confine this process, send a byte, and then for each byte from @socket do the work once and send one back. The
 * process ends when @parent ends or closes the socket. @t: complete. Closes all descriptors but @socket and those of @t.
 */
_Noreturn void coverer_main(struct cover_task *t, pid_t parent, int socket);
