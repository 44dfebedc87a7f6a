/*
 * gone.h - covered files that do not exist any more: S watches their directories, to see them come back.
 *
 * Runs in: S.
 */
#pragma once

#include "host/cover/cover.h"

/*
 * gone_look_after - after each answer of the coverer: watch for each file that it found missing. Sets c->again where one exists
 * again. 0; -errno: one cannot be watched, and the board names it.
 * gone_drain - inotify has reported something: do the same, unless the coverer is at work; its answer leads to it then.
 */
MUST_CHECK int gone_look_after(struct cover *c);
MUST_CHECK int gone_drain(struct cover *c);
