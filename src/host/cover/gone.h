/*
 * gone.h - what was covered, and is not there any more: nothing but its directory tells that it comes back.
 *
 * Runs in: S.
 */
#pragma once

#include "host/cover/cover.h"

/*
 * gone_look_after - after each answer of the coverer: watch for what it found to be gone. c->again: something is there
 * again. 0; -errno: it cannot be watched, and the board says what.
 * gone_drain - the watches have spoken: the same, unless an answer is due, which is followed by it.
 */
MUST_CHECK int gone_look_after(struct cover *c);
MUST_CHECK int gone_drain(struct cover *c);
