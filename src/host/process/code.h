/*
 * code.h - where this program's own read-only parts lie in memory.
 *
 * Runs in: the launcher. What a session needs while it is idle is a small part of what setting it up
 * took; the rest is given back (madvise(2)) and read again from the page cache when it is needed.
 */
#pragma once

#include "box/box.h"

/* code_find - the segments of this executable that cannot be written. Fewer than there are is no error. */
void code_find(struct box_code *ret);
