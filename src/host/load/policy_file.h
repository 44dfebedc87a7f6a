/*
 * policy_file.h - reading the files that policies are in.
 *
 * Runs in: the launcher and carrel-policy, outside. May not: change anything, wait for a FIFO.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/policy.h"

#define POLICY_FILE_SYSTEM_DIR "/etc/carrel"
#define POLICY_FILE_SYSTEM POLICY_FILE_SYSTEM_DIR "/policy"

struct policy_loader {
	struct arena *arena;  /* takes the texts */
	enum layer layer;     /* that files are read for: who may have written them */
	const char *profiles; /* the directory of the user's profiles; NULL: there is none */
	const char *presets;  /* of the user's presets */
	const char *sets;     /* that of the user's sets of hosts; NULL: there is none */
	const char **loaded;  /* canonical paths of every policy file that was read */
	size_t count;
};

/*
 * policy_file_trust - whether only those whose policy it is can change what @path leads to: on
 * LAYER_SYSTEM root, on LAYER_USER root and the caller. On other layers the file was named by
 * somebody who may name any. All that leads there is checked, up to "/": links, the directories
 * that they are in, those above the file. A file that is not there can be trusted. Where root is
 * nobody's id (user_namespaces(7)), its files belong to the owner of "/".
 * @path: absolute. 0, or -errno with @e (ERROR_POLICY).
 */
MUST_CHECK int policy_file_trust(
	struct arena *a, enum layer layer, const char *path, struct error *e);

/*
 * policy_file_load - the `load` of a struct policy_resolver; @context: a struct policy_loader.
 * A regular file of at most POLICY_SIZE_MAX bytes, by whatever links it is named, that can be trusted;
 * POLICY_STDIN: standard input, to its end.
 * Returns 0 or -errno with @e (ERROR_POLICY).
 */
MUST_CHECK int policy_file_load(
	void *context, const char *path, struct policy_file *ret, struct error *e);

/*
 * policy_file_add_layer - add the lines of the file @path to @policy, as those of @layer: LAYER_SYSTEM or
 * LAYER_USER. A file that does not exist adds nothing.
 * @res: its context is a struct policy_loader. Returns 0 or -errno with @e (ERROR_POLICY).
 */
MUST_CHECK int policy_file_add_layer(struct policy *policy, enum layer layer, const char *path,
	const struct policy_resolver *res, struct error *e);

/*
 * policy_file_load_profile - the `load_profile`: the file @name in the directory of the user's profiles, as trusted as
 * the user's policy. 1, 0 where there is none, or -errno with @e.
 */
MUST_CHECK int policy_file_load_profile(
	void *context, const char *name, struct policy_file *ret, struct error *e);

/* policy_file_load_preset - the `load_preset`, in the same way. */
MUST_CHECK int policy_file_load_preset(
	void *context, const char *name, struct policy_file *ret, struct error *e);

/* policy_file_load_set - the `load_set`: the same for a set of hosts. */
MUST_CHECK int policy_file_load_set(
	void *context, const char *name, struct policy_file *ret, struct error *e);
