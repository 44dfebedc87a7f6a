/*
 * uid_maps.h - which ids a user namespace has.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * uid_maps_write - one id inside for one outside, in the user namespace of @pid; see
 * user_namespaces(7). @deny_setgroups: as an ordinary user must. 0 or -errno.
 */
MUST_CHECK int uid_maps_write(pid_t pid, bool deny_setgroups, uint32_t uid, uint32_t kernel_uid,
	uint32_t gid, uint32_t kernel_gid);
