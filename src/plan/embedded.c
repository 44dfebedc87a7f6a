/*
 * embedded.c - look-ups in the embedded tables.
 *
 * Runs in: every program that has policies. PURE.
 */
#include "plan/embedded.h"

#include <linux/audit.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "carrel ships no system-call filter for this architecture"
#endif

const struct embedded_text *embedded_find(const char *name)
{
	for (size_t i = 0; i < embedded_text_count; i++)
		if (!strcmp(embedded_texts[i].name, name))
			return &embedded_texts[i];
	return NULL;
}

const struct embedded_filter *embedded_find_filter(const char *name)
{
	for (size_t i = 0; i < embedded_filter_count; i++)
		if (embedded_filters[i].arch == NATIVE_ARCH &&
			!strcmp(embedded_filters[i].name, name))
			return &embedded_filters[i];
	return NULL;
}
