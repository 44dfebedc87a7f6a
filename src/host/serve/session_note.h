/*
 * session_note.h - what clients of a live session read in its record, since they have no plan.
 *
 * Runs in: the launcher, before S confines itself.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "plan/plan.h"

/*
 * session_note - write down where artifacts may go, the defaults of an execution, where commands
 * are looked for, and whether what they are refused is seen (@explained). @record: borrowed. 0 or
 * -errno with @e.
 */
MUST_CHECK int session_note(
	int record, const struct plan *plan, bool explained, struct error *e);
