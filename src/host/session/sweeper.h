/*
 * sweeper.h - the sweep in the background: settle what killed sessions left, without holding
 * anybody up.
 *
 * Runs in: the supervisor, which starts it, and a process of its own, outside: a grandchild of the
 * supervisor, in a session of its own, with none of its descriptors. At most one a user, with the
 * lowest priority, killable by any signal, over after SWEEPER_SECONDS; what it did not come to is
 * left to the next, or to `carrel gc`.
 *
 * It writes its messages to the file `notices` of the state directory; the next launch, or gc,
 * shows them.
 */
#pragma once

#include "base/error.h"

enum { SWEEPER_SECONDS = 300 };

/*
 * sweeper_start - start one where a session that is dead left something, and show what earlier ones had to say.
 * @records: of session_open_records(). @own: the id of the session that asks. Nothing waits for it, and
 * nothing depends on it. Costs what session_sweep_needed() does.
 */
void sweeper_start(int records, const char *own);

/* sweeper_show_notices - what sweeps in the background said, on stderr, once. @place: the state directory. */
void sweeper_show_notices(int place);
