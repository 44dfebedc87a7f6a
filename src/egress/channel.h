/*
 * channel.h - receives the supervisor's records and acts on them.
 *
 * Runs in: carrel-egress.
 */
#pragma once

#include "base/error.h"

struct egress;

/* channel_start - listen to the supervisor on EGRESS_FD_CHANNEL. 0 or -errno. */
MUST_CHECK int channel_start(struct egress *eg);
