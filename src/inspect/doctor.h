/*
 * doctor.h - the groups of checks that `carrel doctor` makes.
 *
 * Runs in: carrel-inspect, outside. Each adds findings and changes nothing but the session-like
 * directory that doctor.c makes and removes.
 */
#pragma once

#include "host/launch/prepare.h"
#include "inspect/finding.h"
#include "inspect/probe.h"

struct doctor {
	struct prepared p; /* facts and plan, as far as they could be worked out */
	bool planned;      /* all of it */
	struct arena arena;
	struct findings findings;
	struct probe probe;
	const char *base;      /* the scratch base */
	const char *directory; /* a directory of ours in it, or NULL */
	int held;              /* that, locked, so that no sweep takes it; or why not: -errno */
	const char *workspace; /* the caller's, or the directory where its own is refused */
	bool own_workspace;    /* the second */
	const char *const *environ;
	bool json;
	bool strict;        /* a warning counts, also one about what this kernel cannot have */
	bool lacks;         /* the kernel has a wall that this machine does not switch on */
	const char *cause;  /* the check that failed, and makes others fail; NULL */
	struct error error; /* why there is no plan */
	char launcher[2048];
	char said[4096]; /* what the launcher wrote to stderr */
};

/*
 * doctor_follows - whether @check fails only because d->cause did: then it adds a note, since that is no failure of its own.
 * @r: the result of the check; if that is a success, it adds nothing.
 */
bool doctor_follows(struct doctor *d, const char *check, int r);

/* doctor_namespaces - each namespace, and all at once as the launcher makes them. */
void doctor_namespaces(struct doctor *d);

/* doctor_mounts - the mount calls, a fresh procfs, idmapped mounts. */
void doctor_mounts(struct doctor *d);

/* doctor_walls - system-call filter, Landlock, capabilities, keyring. */
void doctor_walls(struct doctor *d);

/* doctor_caller - who asks, with which capabilities, and the limits it lives under. */
void doctor_caller(struct doctor *d);

/* doctor_machine - sysctls, security modules, cgroups. */
void doctor_machine(struct doctor *d);

/* doctor_scratch - the scratch base: type, space, flags, what can be done in it. */
void doctor_scratch(struct doctor *d);

/* doctor_sessions - real ones, through the launcher. */
void doctor_sessions(struct doctor *d);
