/*
 * confine_self.h - the supervisor's own wall.
 *
 * Runs in: S, once init is cloned. A fault in S must not be worth more than what S still has to do:
 * watch, relay, quarantine, remove, report.
 */
#pragma once

#include "base/error.h"

/*
 * confine_self - no_new_privs, the capabilities that teardown needs and no others, and the shipped
 * `supervisor` filter. After this S can neither execute anything nor open a socket.
 * Returns 0 or -errno.
 */
MUST_CHECK int confine_self(void);
