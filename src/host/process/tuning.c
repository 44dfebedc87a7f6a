/*
 * tuning.c - see tuning.h.
 *
 * Runs in: the launcher. No heap.
 */
#include "host/process/tuning.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* --- on which processor init begins -------------------------------------------------------------- */

enum {
	LOADAVG_BYTES = 128,
	RUNNING_FIELD = 4, /* of /proc/loadavg: 2/123 */
	BITS = sizeof(unsigned long) * CHAR_BIT,
};

/* 8,192 processors, the most that Linux is built for. */
struct mask {
	unsigned long words[8192 / BITS];
	size_t size; /* bytes that the kernel uses */
};

static int number(const char *text)
{
	char *end;

	errno = 0;
	long value = strtol(text, &end, 10);
	return end == text || errno || value < 0 || value > INT_MAX ? -1 : (int)value;
}

int tuning_running(const char *loadavg)
{
	for (int field = 1; loadavg && field < RUNNING_FIELD; field++) {
		loadavg = strchr(loadavg, ' ');
		loadavg += loadavg != NULL;
	}
	return loadavg ? number(loadavg) : -1;
}

/* The number of runnable processes; -1: /proc does not show it. */
static int count_running(void)
{
	char text[LOADAVG_BYTES];
	autofd int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return tuning_running(text);
}

static bool has_room(const struct mask *m)
{
	int count = 0;

	for (size_t i = 0; i < m->size / sizeof(m->words[0]); i++)
		count += __builtin_popcountl(m->words[i]);
	/* The launcher and the child are among those who run. */
	int running = count > 1 ? count_running() : -1;
	return running > 0 && running <= count;
}

static bool read_mask(pid_t pid, struct mask *ret)
{
	long size = syscall(SYS_sched_getaffinity, pid, sizeof(ret->words), ret->words);

	ret->size = size > 0 ? (size_t)size : 0;
	return size > 0;
}

static bool set_mask(pid_t pid, const struct mask *m)
{
	return syscall(SYS_sched_setaffinity, pid, m->size, m->words) == 0;
}

/*
 * Give @pid the widest mask: one with every bit set is no narrower than the cpuset, now and when
 * that grows. If the caller has a mask of its own, @pid gets that one, as if inherited.
 */
static void give_back(pid_t pid, const struct mask *own)
{
	struct mask m = { .size = own->size };

	memset(m.words, 0xff, own->size);
	if (!set_mask(pid, &m) || !read_mask(pid, &m) || m.size != own->size ||
		memcmp(m.words, own->words, own->size) != 0)
		(void)set_mask(pid, own);
}

void tuning_move(pid_t child, int here)
{
	struct mask own, others;

	if (here < 0 || !read_mask(0, &own) ||
		(size_t)here / BITS >= own.size / sizeof(own.words[0]))
		return;
	others = own;
	others.words[(size_t)here / BITS] &= ~(1UL << ((size_t)here % BITS));
	/* EINVAL: there is no other. */
	if (set_mask(child, &others))
		give_back(child, &own);
}

bool tuning_part(pid_t child)
{
	struct mask own;
	/* The C library does not offer this call. */
	long class = syscall(SYS_sched_getscheduler, 0);

	if (class < 0 || (class & ~SCHED_RESET_ON_FORK) != SCHED_OTHER || !read_mask(0, &own) ||
		!has_room(&own))
		return false;
	tuning_move(child, sched_getcpu());
	return true;
}

/* --- memory that an idle session gives back ----------------------------------------------------- */

void tuning_find_code(struct box_code *ret)
{
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), bias = 0;

	ret->count = 0;
	ret->page = page;
	for (unsigned long i = 0; header && i < count; i++)
		if (header[i].p_type == PT_PHDR)
			bias = (uintptr_t)header - header[i].p_vaddr;
	for (unsigned long i = 0; header && i < count && ret->count < BOX_CODE_MAX; i++) {
		uintptr_t start = (bias + header[i].p_vaddr) & ~(page - 1);
		uintptr_t end =
			(bias + header[i].p_vaddr + header[i].p_memsz + page - 1) & ~(page - 1);

		if (header[i].p_type != PT_LOAD || (header[i].p_flags & PF_W))
			continue;
		ret->start[ret->count] = (void *)start;
		ret->size[ret->count++] = end - start;
	}
}
