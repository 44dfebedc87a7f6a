/*
 * site.h - a process stops in front of one instruction: a breakpoint of the processor's, which changes nothing in the
 * process. Of a launch's five hundred calls a point is one, and with PTRACE_SYSCALL each of those before it costs two
 * stops; the instruction that makes it is met some thirty times.
 *
 * Runs in: the torture driver.
 *
 * Linux keeps these registers for each thread, gives them to no child, and empties them at execve. See ptrace(2),
 * PTRACE_POKEUSER; Intel SDM vol. 3, 18.2 (debug registers).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* site_of - of the instruction pointer at a call's entry: where the instruction stands that made the call. */
uint64_t site_of(uint64_t instruction_pointer);

/* site_arm - the process @pid, which stands in a ptrace stop, is to stop before it executes what is at @site. Only one
 * site at a time. 0 or -errno (not with this processor). */
int site_arm(pid_t pid, uint64_t site);

/* site_disarm - no longer. */
void site_disarm(pid_t pid);

/* site_is_at - whether it stands in front of @site. */
bool site_is_at(pid_t pid, uint64_t site);

/* site_works - whether a child of ours does stop: an emulated processor may keep the registers and never look. */
bool site_works(void);
