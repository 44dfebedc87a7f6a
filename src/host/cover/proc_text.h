/*
 * proc_text.h - the files of one process in /proc, through a descriptor of /proc that was opened before the caller
 * went into another mount namespace.
 *
 * Runs in: the coverer's child. Tools can have chosen what it reads: names, numbers of descriptors.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { PROC_TEXT_MAX = 2048 };

struct proc_stat {
	char name[16]; /* as the process chose it: any byte but NUL */
	char state;
	unsigned flags; /* PF_* of the kernel */
	pid_t process;  /* the thread group */
};

/* proc_read - the beginning of /proc/@pid/@name, as far as @size goes, with a NUL behind it. Bytes read, or -errno. */
MUST_CHECK ssize_t proc_read(int proc, pid_t pid, const char *name, char *ret, size_t size);

/* proc_read_all - all of it, in memory that proc_text_free() frees. 0 or -errno. */
MUST_CHECK int proc_read_all(int proc, pid_t pid, const char *name, char **ret_text);
void proc_text_free(char *text);

/* proc_stat_read - 0 or -errno. See: proc(5), /proc/PID/stat and status. */
MUST_CHECK int proc_stat_read(int proc, pid_t pid, struct proc_stat *ret);

/*
 * proc_each - @call for each number that is an entry of the directory /proc/@pid/@name. Ends with the first
 * result that is not 0 and returns it; 0; or -errno.
 */
MUST_CHECK int proc_each(int proc, pid_t pid, const char *name,
	int (*call)(void *context, pid_t number), void *context);
