/*
 * command.h - what a payload becomes: the plan's command, or that of a request to a live session.
 *
 * Runs in: the monitor. No heap: vectors for execve(2) lie where the monitor has room for them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "box/request.h"
#include "plan/plan.h"

struct command {
	const char *const *argv;
	const char *const *shell_argv; /* "/bin/sh" in front; NULL: none */
	const char *const *envp;
	const char *path_env;
	const char *cwd;
	const uint64_t
		*limits; /* by enum execution_limit; 0: as the session has it. NULL: none */
	const struct pass_numbers *pass; /* of descriptors beside the streams */
};

/* command_of_plan - the one command of a `run`. */
void command_of_plan(struct command *ret, const struct plan *plan);

/* command_room - how many bytes the vectors and PWD of a request's command take at most. */
size_t command_room(const struct plan *plan);

/*
 * command_map - map a request in a sealed file; the memory is not given back. 0 or -errno; -EPROTO:
 * no request has that size.
 */
__attribute__((warn_unused_result)) int command_map(
	int fd, const char **ret_data, size_t *ret_size);

/*
 * command_of_request - the command of an execution: the session's environment with the request's
 * variables over it. @room: command_room() bytes for these, aligned; it and @view stay in use.
 */
void command_of_request(struct command *ret, void *room, const struct plan *plan,
	const struct request_view *view);
