/*
 * emit.h - single operations and the places they need; plan_build.c says which, and in which order.
 *
 * Runs in: the launcher and carrel-policy. PURE. Each function appends to the plan that is being
 * built and returns 0, or -errno with the builder's error filled (ERROR_LIMIT, ERROR_PATH).
 */
#pragma once

#include "plan/plan.h"
#include "plan/tree.h"

/* Slot 0 is the skeleton: every empty directory, empty file and mount point that carrel adds. */
enum { SLOT_SKELETON = 0 };
#define SKELETON_EMPTY_FILE "nothing"
#define SKELETON_SHM "shm"

struct builder {
	struct plan *plan;
	struct tree tree;
	struct op *attaches; /* appended once all sources are taken */
	size_t attach_count;
	unsigned shells; /* directories made for nodes so far: their names in the skeleton */
	uint16_t proc_slot, root_slot, scratch_slot;
	struct error *e;
};

/* emit_full - the error of a plan that holds no more. Returns -ENOMEM. */
int emit_full(struct builder *b);

/* emit_no_memory - the error of a plan whose arena is full. Returns -ENOMEM. */
int emit_no_memory(struct error *e);

/* emit_to - one operation, at the end of @plan. */
MUST_CHECK int emit_to(struct plan *plan, struct op op, struct error *e);

/* emit_op - the same, at the end of the plan that @b builds. */
MUST_CHECK int emit_op(struct builder *b, struct op op);

/* emit_attach - have @slot attached at the node's place, once all sources are taken. */
MUST_CHECK int emit_attach(struct builder *b, struct node *n, uint16_t slot);

/* emit_slot - a slot that nothing uses yet. */
MUST_CHECK int emit_slot(struct builder *b, uint16_t *ret_slot);

/* emit_is_part - whether @n shows just what the tree of @up would show at its place. */
bool emit_is_part(const struct node *n, const struct node *up);

/*
 * emit_choose_idmap - decide whether a node is shown through an idmapped mount, and through which.
 * As root that is everything writable, and what the policy makes readable although its mode closes
 * it to others. A part of an idmapped tree (a pin, a protected path) keeps that tree's map. What is
 * bound into the tree from elsewhere does not: the map would open it. @up: the node that @n stands
 * on, or NULL.
 */
MUST_CHECK int emit_choose_idmap(struct builder *b, struct node *n, const struct node *up);

/* emit_clone - take the node's source into a slot of its own. @flags: OPF_* beyond what the node says. */
MUST_CHECK int emit_clone(
	struct builder *b, const struct node *n, unsigned flags, uint16_t *ret_slot);

/* emit_entry - note an entry of the session directory. The host side makes it before the launch. */
MUST_CHECK int emit_entry(struct builder *b, const char *path, bool is_file);

/*
 * emit_make - make one directory, file or link in a place that carrel fills, unless it is there.
 * @relative: the path below @place. @target: of a link. @n: the node that needs it.
 */
MUST_CHECK int emit_make(struct builder *b, const struct node *place, enum op_kind kind,
	const char *relative, const char *target, const struct node *n);

/* emit_way - make the directories between @up and the node, then the node's own place as @kind. */
MUST_CHECK int emit_way(
	struct builder *b, const struct node *n, const struct node *up, enum op_kind kind);

/*
 * emit_mount_point - make the place to mount @n on. Nothing is made on the host's tree: it must be
 * there.
 */
MUST_CHECK int emit_mount_point(struct builder *b, const struct node *n, const struct node *up);

/*
 * emit_pick - show the directory or file @path of the slot @from, which carrel filled, at the
 * node's place.
 */
MUST_CHECK int emit_pick(struct builder *b, struct node *n, uint16_t from, const char *path);
