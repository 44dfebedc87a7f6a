/*
 * process_stat.h - what the kernel says of a process, and whether it is still the same one: proc(5).
 *
 * Runs in: the launcher, outside.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_STAT_BYTES = 1024 };

/* process_stat_read - the text of /proc/PID/stat; false, and an empty text, if there is no such process. */
bool process_stat_read(pid_t pid, char ret_text[PROCESS_STAT_BYTES]);

/*
 * process_stat_number - field @field of such a text, counted as in proc(5), from 3 on; the state, which
 * is a letter, is none. -1 where it is not such a text.
 */
int64_t process_stat_number(const char *stat, int field);

/* process_started - when @pid began, in clock ticks since the machine started. -ENOENT, -ESRCH: it is gone; or another -errno. */
int64_t process_started(pid_t pid);

/*
 * process_await_end - wait until the process @pid that began at @started has ended, at most
 * @patience milliseconds. If it was the first of a pid namespace, everything in there is dead then
 * (pid_namespaces(7)). If @pid began at another time it is another process, and the first one has
 * ended. Returns whether it has ended.
 */
bool process_await_end(pid_t pid, int64_t started, int patience);
