/*
 * view.h - the walls around a process, as the kernel shows them to an observer outside.
 *
 * Runs in: the torture driver, while the process stands still at its execve.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* view_is_pid1 - whether it is the first process of a pid namespace below ours. */
bool view_is_pid1(pid_t pid);

/* view_is_stopped - whether it still stands in its ptrace stop: a killed process does not. */
bool view_is_stopped(pid_t pid);

/*
 * view_take - credentials, namespaces, mounts, descriptors, limits and environment of @pid as text.
 * What differs from run to run (session names, namespace and mount numbers, the kernel uid) is
 * replaced by what it means, so that two runs with the same walls give the same text.
 * What cannot be read is said.
 */
void view_take(pid_t pid, char *ret_text, size_t size);

/* view_first_difference - the first line of @b that is not the same in @a; copied, cut to @size. */
void view_first_difference(const char *a, const char *b, char *ret_text, size_t size);
