/*
 * cover_again.c - see cover_again.h.
 *
 * Runs in: the coverer's child.
 */
#include "host/cover/cover_again.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/fresh.h"
#include "box/sys.h"
#include "host/cover/freeze.h"
#include "host/cover/holders.h"
#include "host/cover/mountwatch.h"
#include "host/cover/proc_text.h"
#include "plan/tree_node.h"

/* While the session is stopped the host may replace paths so often, before that counts as a failure. */
enum { ROUNDS = 64 };

struct work {
	const struct cover_task *task;
	struct freeze freeze;
	struct uncovered things[PLAN_SLOT_MAX];
	size_t thing_count;
	size_t thing_op[PLAN_SLOT_MAX];
};

static int failed(struct work *w, enum cover_failure why, int op, int r)
{
	w->task->board->failed = why;
	w->task->board->failed_op = op;
	return r;
}

/* --- covers ------------------------------------------------------------------------------------- */

static const struct node *node_at(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->node_count; i++)
		if (!strcmp(plan->nodes[i].path, path))
			return &plan->nodes[i];
	return NULL;
}

/* A read-only mount of an empty directory or file, not attached yet. A descriptor or -errno. */
static int make_empty(bool is_dir)
{
	struct box_made none = { .proc = -1, .devpts = -1, .tmpfs = -1 };
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		.propagation = MS_PRIVATE };
	autofd int tmpfs = fresh_skeleton(&none);

	if (tmpfs < 0)
		return tmpfs;
	if (!is_dir && mknodat(tmpfs, "nothing", S_IFREG | 0444, 0) < 0)
		return -errno;
	autofd int tree = is_dir
		? take_fd(&tmpfs)
		: sys_open_tree(tmpfs, "nothing", OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
	if (tree == -EINVAL) {
		/* Before Linux 6.15 the kernel clones attached mounts alone: attach it on the root, where no path leads. */
		autofd int root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
		int r = root < 0 ? root : sys_move_mount(tmpfs, root);

		if (r < 0)
			return r;
		tree = sys_open_tree(tmpfs, "nothing", OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
		if (fchdir(tmpfs) < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
			return -errno;
	}
	int r = tree < 0 ? tree : sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr);
	return r < 0 ? r : take_fd(&tree);
}

/* A read-only clone of what @at shows; @writable: one that can be written, to be a mount point. A descriptor or -errno. */
static int make_self(int at, bool is_dir, bool writable)
{
	unsigned recursive = is_dir ? AT_RECURSIVE : 0;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			(writable ? 0 : MOUNT_ATTR_RDONLY),
		.propagation = MS_PRIVATE };
	autofd int tree = sys_open_tree(at, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | recursive);
	int r = tree < 0 ? tree : sys_mount_setattr(tree, "", AT_EMPTY_PATH | recursive, &attr);

	return r < 0 ? r : take_fd(&tree);
}

static bool can_be_covered(const struct node *n)
{
	switch (n->kind) {
	case NODE_PROTECT:
		return !n->shown && !n->is_link;
	case NODE_PIN:
	case NODE_HIDE:
		return true;
	case NODE_LINK:
	case NODE_HOST_ROOT:
	case NODE_SHELL:
	case NODE_BIND:
	case NODE_TMPFS:
	case NODE_DEV:
	case NODE_PROC:
	case NODE_DEVPTS:
	case NODE_SHM:
	case NODE_OVERLAY:
	case NODE_SCRATCH:
	case NODE_TMP:
		break;
	}
	return false;
}

/* --- one place --------------------------------------------------------------------------------- */

static int add_thing(struct work *w, size_t op, const struct node *n, const struct stat *st)
{
	if (w->thing_count == PLAN_SLOT_MAX)
		return -E2BIG;
	w->thing_op[w->thing_count] = op;
	w->things[w->thing_count++] = (struct uncovered){ .path = n->path,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.is_dir = S_ISDIR(st->st_mode) };
	return 0;
}

static int cover_there(struct work *w, size_t op, const struct node *n, int at)
{
	struct cover_place *place = &w->task->board->places[op];
	struct stat st;

	if (fstat(at, &st) < 0)
		return failed(w, COVER_FAILED_COVER, (int)op, -errno);
	bool is_dir = S_ISDIR(st.st_mode);
	if (S_ISLNK(st.st_mode) || (n->kind == NODE_PIN && !is_dir))
		return failed(w, COVER_FAILED_KIND, (int)op, -ELOOP);
	/* A tool could write it by its other name. */
	if (n->kind == NODE_PROTECT && !is_dir && st.st_nlink > 1)
		return failed(w, COVER_FAILED_LINKS, (int)op, -EMLINK);
	autofd int tree = n->kind == NODE_HIDE ? make_empty(is_dir)
					       : make_self(at, is_dir, n->kind == NODE_PIN);
	int r = tree < 0 ? tree : sys_move_mount(tree, at);
	if (r == -ENOENT || r == -ESTALE)
		return 0; /* replaced meanwhile: the next round finds it bare in the table */
	if (r < 0)
		return failed(w, COVER_FAILED_COVER, (int)op, r);
	place->dev = st.st_dev;
	place->ino = st.st_ino;
	place->gone = false;
	/* An uncovered pin could only have been renamed: a process that is in it has gained nothing. */
	return n->kind == NODE_PIN ? 0 : add_thing(w, op, n, &st);
}

static int cover_place(struct work *w, size_t op)
{
	const char *path = w->task->plan->ops[op].path;
	const struct node *n = node_at(w->task->plan, path);
	struct cover_place *place = &w->task->board->places[op];

	if (!n || !can_be_covered(n))
		return failed(w, COVER_FAILED_KIND, (int)op, -EOPNOTSUPP);
	autofd int at = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (at == -ENOENT || at == -ENOTDIR || at == -ELOOP) {
		place->gone = true;
		return at == -ELOOP ? failed(w, COVER_FAILED_KIND, (int)op, -ELOOP) : 0;
	}
	if (at < 0)
		return failed(w, COVER_FAILED_COVER, (int)op, at);
	return cover_there(w, op, n, at);
}

/* --- one view ---------------------------------------------------------------------------------- */

/* *@ret_bare: how many bare places were found where something exists. */
static int cover_round(struct work *w, int table, size_t *ret_bare)
{
	const struct plan *plan = w->task->plan;
	struct mountwatch_table text;
	int r = mountwatch_table_read(table, &text);

	*ret_bare = 0;
	if (r < 0)
		return failed(w, COVER_FAILED_TABLE, -1, r);
	for (size_t i = 0; i < plan->op_count && r >= 0; i++) {
		if (plan->ops[i].kind != OP_ATTACH ||
			mountwatch_table_has(&text, plan->ops[i].path))
			continue;
		r = cover_place(w, i);
		w->task->board->places[i].times |= 1u << 31; /* in this event: note_times() */
		*ret_bare += !w->task->board->places[i].gone;
	}
	mountwatch_table_free(&text);
	return r;
}

static int cover_view(struct work *w, int view)
{
	char name[64];
	size_t bare;
	int r = setns(view, CLONE_NEWNS) < 0 ? -errno : 0;

	if (r < 0)
		return failed(w, COVER_FAILED_NAMESPACE, -1, r);
	(void)snprintf(name, sizeof(name), "%d/mountinfo", (int)getpid());
	autofd int table = fd_open_at(w->task->proc, name, O_RDONLY, 0);
	if (table < 0)
		return failed(w, COVER_FAILED_TABLE, -1, table);
	for (int i = 0; i < ROUNDS; i++) {
		r = cover_round(w, table, &bare);
		if (r < 0 || bare == 0)
			return r;
	}
	return failed(w, COVER_FAILED_AGAIN, -1, -EAGAIN);
}

/* Enter the user namespace that owns the session's mounts, where an ordinary user has made them. */
static int enter_user_ns(struct work *w)
{
	if (w->task->plan->facts->privileged)
		return 0;
	autofd int owner = ioctl(w->task->view[0], NS_GET_USERNS);
	if (owner < 0 || setns(owner, CLONE_NEWUSER) < 0)
		return failed(w, COVER_FAILED_NAMESPACE, -1, -errno);
	return 0;
}

static int cover_views(struct work *w)
{
	int r = 0;

	for (unsigned view = 0; view < VIEW_COUNT && r >= 0; view++)
		if (w->task->view[view] >= 0)
			r = cover_view(w, w->task->view[view]);
	return r;
}

/* --- all of it --------------------------------------------------------------------------------- */

static void note_times(struct work *w)
{
	uint64_t us = (uint64_t)(clock_now_ns() - w->task->board->asked_ns) / 1000;

	for (size_t i = 0; i < w->task->plan->op_count; i++) {
		struct cover_place *place = &w->task->board->places[i];

		if (!(place->times >> 31))
			continue;
		place->times = (place->times & INT32_MAX) + 1;
		if (us > place->longest_us)
			place->longest_us = us;
	}
}

/* Kill a process that is stopped: none of its threads runs another instruction. */
static int end_holder(void *context, pid_t process, size_t thing)
{
	struct work *w = context;
	struct cover_board *board = w->task->board;
	struct proc_stat st;

	if (kill(process, SIGKILL) < 0)
		return errno == ESRCH ? 0 : -errno;
	if (board->holder_count++ >= COVER_HOLDERS)
		return 0;
	struct cover_holder *h = &board->holders[board->holder_count - 1];
	h->process = process;
	h->op = (int32_t)w->thing_op[thing];
	if (proc_stat_read(w->task->proc, process, &st) >= 0)
		memcpy(h->name, st.name, sizeof(h->name));
	return 0;
}

static int stop_all(struct work *w)
{
	int r = freeze_all(&w->freeze);

	w->task->board->culprit = w->freeze.culprit;
	return r < 0 ? failed(w, COVER_FAILED_STOP, -1, r) : 0;
}

int cover_again(const struct cover_task *t)
{
	static struct work w; /* too large for the stack; this process calls it once */

	w.task = t;
	int r = freeze_init(
		&w.freeze, t->proc, t->init, clock_now_ns() + (int64_t)COVER_MOST_MS * 1000000);
	if (r < 0)
		return r;
	r = stop_all(&w);
	if (r < 0)
		return r;
	r = enter_user_ns(&w);
	if (r < 0)
		return r;
	r = cover_views(&w);
	if (r < 0)
		return r;
	note_times(&w);
	/* A monitor may have become the command meanwhile. */
	r = w.thing_count ? stop_all(&w) : 0;
	if (r < 0)
		return r;
	r = w.thing_count ? holders_each(&w.freeze, w.things, w.thing_count, end_holder, &w)
			  : 0;
	if (r >= 0)
		r = freeze_release(&w.freeze);
	return r < 0 ? failed(&w, COVER_FAILED_HOLDERS, -1, r) : 0;
}
