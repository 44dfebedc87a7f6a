/*
 * embedded.h - what the build step made of policy/: texts and compiled filters.
 *
 * Runs in: every program that has policies. The tables are written by mkpolicy and mkprofiles into
 * generated C files; nothing else defines them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct policy_line; /* plan/policy_line.h */
struct sock_filter; /* linux/filter.h */

/* One file of policy/, byte for byte. */
struct embedded_text {
	const char *name; /* file name, e.g. "agent" or "hide" */
	const char *text; /* NUL-terminated */
	size_t size;      /* bytes without the NUL */
};

/* One shipped filter, for one architecture. */
struct embedded_filter {
	const char *name; /* e.g. "default" (policy/default.policy) */
	uint32_t arch;    /* AUDIT_ARCH_* it was built for */
	const struct sock_filter *code;
	unsigned short count; /* instructions */
};

/*
 * Filters that no policy may name: those of carrel's own processes outside, under which nothing can
 * be started, and the one that `syscalls strict` chooses itself.
 */
#define EMBEDDED_OWN_FILTER "supervisor"
#define EMBEDDED_SETTLED_FILTER "settled"       /* on top of it: host/process/confine_self.h */
#define EMBEDDED_COVERER_FILTER "coverer"       /* host/cover/cover.h */
#define EMBEDDED_OBSERVER_FILTER "observer"     /* host/explain/explain.h */
#define EMBEDDED_READER_FILTER "reader"         /* host/process/confined.h */
#define EMBEDDED_STRICT_NET_FILTER "strict-net" /* `syscalls strict` with a network */
#define EMBEDDED_EGRESS_FILTER "egress"         /* egress/confine.h */

/* A shipped profile and all that it includes, read when carrel was built. */
struct embedded_profile {
	const char *name;
	const struct policy_line *lines; /* as policy_add_text() keeps them, on LAYER_PROFILE */
	size_t count;
};

extern const struct embedded_profile embedded_profiles[];
extern const size_t embedded_profile_count;
extern const struct embedded_text embedded_texts[];
extern const size_t embedded_text_count;
extern const struct embedded_filter embedded_filters[];
extern const size_t embedded_filter_count;

/* embedded_find - the text with that name, or NULL. */
const struct embedded_text *embedded_find(const char *name);

/* embedded_find_filter - the filter with that name for the architecture the caller runs on, or NULL. */
const struct embedded_filter *embedded_find_filter(const char *name);
