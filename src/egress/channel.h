/*
 * channel.h - what the supervisor says, and what is done about it.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include "base/error.h"

struct egress;

/* channel_start - listen to the supervisor on EGRESS_FD_CHANNEL. 0 or -errno. */
MUST_CHECK int channel_start(struct egress *eg);
