/*
 * payload.h - the process that becomes the command.
 *
 * Runs in: the payload, a vfork-like child of a monitor that shares the monitor's memory until execve.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "box/channel.h"
#include "box/command.h"

/* What the monitor gives the payload, and how far the payload came: written by it, read by the monitor. */
struct payload {
	const struct command *command;
	int stdio[CHANNEL_STREAMS]; /* all above 2 */
	int passed[PASS_MAX];       /* for the numbers of command->pass; all above 2 */
	int tty;                    /* the terminal, for a process group in front; or -1 */
	bool in_front;              /* the command's group is the terminal's foreground group */
	mode_t umask;
	int ret_step; /* enum channel_step it failed in, 0 while none has */
	int ret_errno;
	bool uninterpreted; /* the payload's own: a file was found whose interpreter was not */
	int ret_at_exec;    /* 1 from right before execve(2) on */
};

/*
 * payload_start - clone the child; returns its pid once it has become the command or has failed
 * (then @p says how), or -errno. @stack: the upper end of at least 16 KiB.
 */
__attribute__((warn_unused_result)) pid_t payload_start(struct payload *p, void *stack);

/*
 * payload_started - whether a payload that a signal ended, and that is not reaped yet, had become the
 * command. Needs a /proc of the caller's pid namespace.
 */
enum channel_started payload_started(pid_t pid);

/* payload_probe - 0 where one more process could be started now, else -errno (EAGAIN: the limit). */
__attribute__((warn_unused_result)) int payload_probe(void);
