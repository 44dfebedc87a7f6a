/*
 * filter_names.c - the words of the filter language: calls, errors, argument widths.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE. Calls come from libseccomp; those that are newer
 * than any libseccomp this is built with are in a table of their own, so that a filter means the
 * same whatever version compiled it.
 */
#include "policy/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* Numbers from here on are the same on every architecture (the kernel's scripts/syscall.tbl). */
#define FIRST_COMMON_NUMBER 424
#define LAST_NUMBER 511 /* above every call the tables of names can hold */

struct new_call {
	const char *name;
	int x86_64, aarch64; /* -1: the architecture has none */
};

static const struct new_call new_calls[] = {
	{ "uretprobe", 335, -1 },
	{ "uprobe", 336, -1 },
	{ "cachestat", 451, 451 },
	{ "fchmodat2", 452, 452 },
	{ "map_shadow_stack", 453, 453 },
	{ "futex_wake", 454, 454 },
	{ "futex_wait", 455, 455 },
	{ "futex_requeue", 456, 456 },
	{ "statmount", 457, 457 },
	{ "listmount", 458, 458 },
	{ "lsm_get_self_attr", 459, 459 },
	{ "lsm_set_self_attr", 460, 460 },
	{ "lsm_list_modules", 461, 461 },
	{ "mseal", 462, 462 },
	{ "setxattrat", 463, 463 },
	{ "getxattrat", 464, 464 },
	{ "listxattrat", 465, 465 },
	{ "removexattrat", 466, 466 },
	{ "open_tree_attr", 467, 467 },
	{ "file_getattr", 468, 468 },
	{ "file_setattr", 469, 469 },
};

static uint32_t scmp_arch(uint32_t arch)
{
	return arch == AUDIT_ARCH_AARCH64 ? SCMP_ARCH_AARCH64 : SCMP_ARCH_X86_64;
}

/* number:N, where N means the same call on every architecture. */
static int explicit_number(const char *name)
{
	char *end = NULL;

	if (name[7] < '0' || name[7] > '9')
		return -EINVAL;
	unsigned long n = strtoul(name + 7, &end, 10);
	if (*end || n < FIRST_COMMON_NUMBER || n > LAST_NUMBER)
		return -EINVAL;
	return (int)n;
}

int filter_number(const char *name, uint32_t arch)
{
	if (!strncmp(name, "number:", 7))
		return explicit_number(name);
	for (size_t i = 0; i < LENGTH(new_calls); i++) {
		if (strcmp(new_calls[i].name, name) != 0)
			continue;
		int nr =
			arch == AUDIT_ARCH_AARCH64 ? new_calls[i].aarch64 : new_calls[i].x86_64;
		return nr < 0 ? -ENOENT : nr;
	}
	int nr = seccomp_syscall_resolve_name_arch(scmp_arch(arch), name);
	if (nr == __NR_SCMP_ERROR)
		return -EINVAL;
	/* Negative: libseccomp's pseudo number of a call that only other architectures have. */
	return nr < 0 ? -ENOENT : nr;
}

int filter_rule_number(const struct filter_rule *rule, uint32_t arch)
{
	return arch == AUDIT_ARCH_AARCH64 ? rule->aarch64 : rule->x86_64;
}

void filter_name(uint32_t nr, uint32_t arch, char *ret_name, size_t size)
{
	for (size_t i = 0; i < LENGTH(new_calls); i++) {
		int own =
			arch == AUDIT_ARCH_AARCH64 ? new_calls[i].aarch64 : new_calls[i].x86_64;

		if (own >= 0 && (uint32_t)own == nr) {
			(void)snprintf(ret_name, size, "%s", new_calls[i].name);
			return;
		}
	}
	char *name = nr <= LAST_NUMBER
		? seccomp_syscall_resolve_num_arch(scmp_arch(arch), (int)nr)
		: NULL;
	if (name)
		(void)snprintf(ret_name, size, "%s", name);
	else
		(void)snprintf(ret_name, size, "number:%u", nr);
	free(name);
}

const char *filter_nearest_call(struct arena *arena, const char *word)
{
	static const uint32_t archs[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };
	const char **names =
		arena_array(arena, LENGTH(archs) * (LAST_NUMBER + 1), sizeof(*names));
	size_t count = 0;

	if (!names)
		return NULL;
	for (size_t a = 0; a < LENGTH(archs); a++) {
		for (uint32_t nr = 0; nr <= LAST_NUMBER; nr++) {
			char name[64];

			filter_name(nr, archs[a], name, sizeof(name));
			if (!strncmp(name, "number:", 7))
				continue;
			names[count] = arena_copy(arena, name, strlen(name));
			if (!names[count])
				return NULL;
			count++;
		}
	}
	return text_nearest(word, names, count);
}

int filter_errno(const char *name)
{
	for (int errnum = 1; errnum < 134; errnum++) {
		const char *known = strerrorname_np(errnum);

		if (known && !strcmp(known, name))
			return errnum;
	}
	return -EINVAL;
}

struct width {
	const char *name;
	const char *args; /* one letter each: h 16 bits (umode_t), d 32, q 64 */
};

/*
 * From the kernel's SYSCALL_DEFINEs. clone's flags are declared unsigned long but only their lower
 * 32 bits are used (lower_32_bits() in kernel/fork.c); unshare's and ptrace's really are 64.
 */
static const struct width widths[] = {
	{ "arch_prctl", "dq" },
	{ "bpf", "dqd" },
	{ "chmod", "qh" },
	{ "clock_adjtime", "dq" },
	{ "clock_settime", "dq" },
	{ "clone", "dqqqq" },
	{ "creat", "qh" },
	{ "dup3", "ddd" },
	{ "epoll_ctl", "dddq" },
	{ "execveat", "dqqqd" },
	{ "faccessat", "dqd" },
	{ "faccessat2", "dqdd" },
	{ "fchmod", "dh" },
	{ "fchmodat", "dqh" },
	{ "fchmodat2", "dqhd" },
	{ "fchown", "ddd" },
	{ "fcntl", "ddq" },
	{ "flock", "dd" },
	{ "futex", "qddqqd" },
	{ "getrandom", "qqd" },
	{ "getsockopt", "dddqq" },
	{ "inotify_add_watch", "dqd" },
	{ "ioctl", "ddq" },
	{ "keyctl", "dqqqq" },
	{ "kill", "dd" },
	{ "linkat", "dqdqd" },
	{ "madvise", "qqd" },
	{ "memfd_create", "qd" },
	{ "mkdir", "qh" },
	{ "mkdirat", "dqh" },
	{ "mknod", "qhd" },
	{ "mknodat", "dqhd" },
	{ "mmap", "qqqqqq" },
	{ "mprotect", "qqq" },
	{ "open", "qdh" },
	{ "openat", "dqdh" },
	{ "personality", "d" },
	{ "pidfd_open", "dd" },
	{ "pkey_mprotect", "qqqd" },
	{ "prctl", "dqqqq" },
	{ "prlimit64", "ddqq" },
	{ "process_madvise", "dqqdd" },
	{ "ptrace", "qqqq" },
	{ "recvmsg", "dqd" },
	{ "renameat2", "dqdqd" },
	{ "sched_setscheduler", "ddq" },
	{ "seccomp", "ddq" },
	{ "sendmsg", "dqd" },
	{ "setns", "dd" },
	{ "setpriority", "ddd" },
	{ "setrlimit", "dq" },
	{ "setsockopt", "dddqd" },
	{ "shmget", "dqd" },
	{ "socket", "ddd" },
	{ "socketpair", "dddq" },
	{ "syslog", "dqd" },
	{ "tgkill", "ddd" },
	{ "tkill", "dd" },
	{ "umount2", "qd" },
	{ "unlinkat", "dqd" },
	{ "unshare", "q" },
	{ "userfaultfd", "d" },
};

unsigned filter_width(const char *name, unsigned arg)
{
	for (size_t i = 0; i < LENGTH(widths); i++) {
		if (strcmp(widths[i].name, name) != 0)
			continue;
		if (arg >= strlen(widths[i].args))
			return 0;
		switch (widths[i].args[arg]) {
		case 'h':
			return 16;
		case 'd':
			return 32;
		default:
			return 64;
		}
	}
	return 0;
}
