/*
 * spawn.h - runs the launcher, for what that does best: start a session, promote, make the prompt.
 *
 * Runs in: carrel-agent, outside. May not: search PATH: it runs the launcher that belongs to this program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/buffer.h"
#include "agent/loop.h"

/* A launcher at work; it lies in the struct of its owner. */
struct spawn {
	struct loop *loop;
	pid_t pid;
	struct watch ended;     /* a pidfd */
	struct watch stream[2]; /* its stdout and stderr, ours to read */
	struct buffer text[2];  /* what came, each up to SPAWN_MAX */
	int status;             /* as wait(2), once it is over */
	void (*done)(struct spawn *s);
	void *context;
};

#define SPAWN_MAX ((size_t)1 << 20)

/*
 * spawn_start - run `carrel WORDS...`, stdin /dev/null.
 * @words: NULL at the end. @done: called in the loop when it has ended; may call spawn_free().
 * @own_stderr: its stderr is ours, and not collected. Returns 0, or -errno: then nothing is left.
 */
MUST_CHECK int spawn_start(struct spawn *s, struct loop *loop, const char *const *words,
	bool own_stderr, void (*done)(struct spawn *s), void *context);

/* spawn_free - free everything; it first kills a launcher that is still at work. */
void spawn_free(struct spawn *s);

/*
 * spawn_wait - run `carrel WORDS...` and wait for its end; nothing else is served meanwhile.
 * @ret_text: its stdout, appended. Its stderr is ours.
 * Returns its exit status (128 + N for signal N), or -errno.
 */
MUST_CHECK int spawn_wait(const char *const *words, struct buffer *ret_text);
