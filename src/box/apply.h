/*
 * apply.h - the operations of a plan, one after the other.
 *
 * Runs in: init.
 */
#pragma once

#include "box/box.h"

/*
 * box_apply - carry out every operation in order.
 * @box: file systems that were made ahead are taken out of it. @ret_op: the operation that failed.
 * Returns 0 or -errno; after a failure the caller must end.
 */
__attribute__((warn_unused_result)) int box_apply(struct box *box, int *ret_op);
