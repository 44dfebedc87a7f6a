/*
 * view.h - tighter views of a live session: a second init for executions that may do less.
 *
 * Runs in: init, when the tree stands and no right is given up yet. A namespace cannot be tightened
 * for one execution later on: by then nothing inside may mount any more. So the views that clients can
 * request are made at the beginning, each a child of init in a mount (and network) namespace of its own,
 * and each goes through the rest of the plan as init does.
 */
#pragma once

#include "box/box.h"

/* Bits of a view; 0 is the session itself. */
enum view {
	VIEW_WORKSPACE_RO = 1,
	VIEW_NET_NONE = 2,
	VIEW_COUNT = 4,
};

/* view_bits - the views besides 0 that make sense under @plan: bit N stands for view N. */
unsigned view_bits(const struct plan *plan);

/*
 * view_fork - make @view. @channel: its end; both processes have given it up on return.
 * Returns 0 in init, 1 in the view, whose BOX_CHANNEL it then is, or -errno.
 */
__attribute__((warn_unused_result)) int view_fork(
	const struct box *box, unsigned view, int channel);
