/*
 * narrator.h - the process that becomes `carrel-policy explain` when the session is over, and what that answers.
 *
 * Runs in: the narrator, a child of S outside of the session, with the caller's own rights, as `carrel why` has them. S starts it
 * early, since S itself may execute no program later. It waits with only its own descriptors, and knows nothing of the session until then.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The beginning of its answer; the three texts follow, with nothing between them. */
struct narrator_head {
	uint32_t magic;               /* EXPLAIN_MAGIC */
	uint32_t json, text, learned; /* bytes: an array; for people; lines of a policy */
	uint32_t nothing;             /* it has looked everything up, and nothing was refused */
};

enum { NARRATOR_ANSWER_MAX = 8 << 20 };

/*
 * narrator_main - wait for a byte from @word; then become `carrel-policy explain @settings`, with the board @memory as standard
 * input and @answer as standard output. It ends with @parent.
 */
_Noreturn void narrator_main(const char *const *settings, size_t count, pid_t parent, int word,
	int memory, int answer);
