/*
 * code.c - see code.h.
 *
 * Runs in: the launcher.
 */
#include "host/process/code.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

void code_find(struct box_code *ret)
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
