/*
 * name.h - the names of errno values and signals, as programs write them.
 *
 * Runs in: every process outside the box. May not: allocate, translate.
 * The C libraries disagree here (strerrorname_np and sigabbrev_np are glibc's own), so the table is ours.
 */
#pragma once

/* name_errno - "ENOENT" for ENOENT; NULL for 0 and for a number without a name. */
const char *name_errno(int errnum);

/*
 * name_signal - "SIGTERM" for SIGTERM; NULL for a number without a name. Real-time signals have
 * none: the C libraries count them from different numbers.
 */
const char *name_signal(int signal);
