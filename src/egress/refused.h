/*
 * refused.h - connections that the session's kernel refused: an allowed name at a port that no line names has no
 * listener, and what tried it is to be told which line would open it.
 *
 * Runs in: carrel-egress. What it hears of decides nothing.
 */
#pragma once

#include "base/error.h"

struct egress;

/*
 * refused_hear - a raw socket of the session's network (box/network.c), which is taken: it is given the segments by which the
 * kernel refuses, and nothing else. 0 or -errno. See: raw(7), RFC 9293 3.5.2.
 */
MUST_CHECK int refused_hear(struct egress *eg, int fd);

/* refused_rest - at the end: tell of what was heard before. The kernel lets us hear of a refusal before the program does. */
void refused_rest(struct egress *eg);
