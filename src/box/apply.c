/*
 * apply.c - walking the plan, and the operations that shape the mount tree.
 *
 * Runs in: init. No heap, no stdio. Nothing is decided here: an operation works or the session
 * ends. No path is followed twice: a source is opened by its canonical path without symbolic links,
 * compared with the facts, and only its descriptor is used from then on.
 */
#include "box/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/channel.h"
#include "box/clone.h"
#include "box/confine.h"
#include "box/fresh.h"
#include "box/network.h"
#include "box/number.h"
#include "box/scaffold.h"
#include "box/sys.h"
#include "box/view.h"

struct applier {
	struct box *box;
	int root;         /* later paths are relative to it */
	bool has_session; /* the supervisor has said that its directory stands */
	unsigned views;   /* bit N: view N is to be made, with its channel */
	int channels[VIEW_COUNT];
	bool six;       /* the session's block of IPv6 stands */
	bool two_steps; /* this kernel has no open_tree_attr(2) */
	int landlock;   /* the rule set being built, -1 before and after */
	struct scaffold scaffold;
	int slots[PLAN_SLOT_MAX];
};

static int slot_fd(const struct applier *a, uint16_t slot)
{
	return slot < PLAN_SLOT_MAX && a->slots[slot] >= 0 ? a->slots[slot] : -EBADF;
}

static int slot_put(struct applier *a, uint16_t slot, int fd)
{
	if (fd < 0)
		return fd;
	if (slot >= PLAN_SLOT_MAX || a->slots[slot] >= 0)
		return -EBADF;
	a->slots[slot] = fd;
	return 0;
}

static int open_exact(int dirfd, const char *path, const struct op *op)
{
	struct stat st;
	int fd = sys_openat2(
		dirfd, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return fd;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (op->flags & OPF_CHECKED) &&
		(st.st_dev != op->dev || st.st_ino != op->ino))
		r = -ESTALE; /* somebody replaced it since the policy was resolved */
	if (r == 0 && !(op->flags & OPF_LINK) && S_ISLNK(st.st_mode))
		r = -ELOOP;
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return fd;
}

static bool is_in_session(const struct applier *a, const char *path)
{
	const char *dir = a->box->plan->facts->session_dir;
	size_t length = strlen(dir);

	return !strncmp(path, dir, length) && (path[length] == '/' || !path[length]);
}

/* Whether @op needs what S makes while init does the first operations: the session directory, user
 * namespaces, channels. */
static bool needs_session(const struct applier *a, const struct op *op)
{
	if (op->kind == OP_CLONE || op->kind == OP_LANDLOCK_PATH)
		return (op->flags & OPF_IDMAP) || is_in_session(a, op->path);
	return op->kind == OP_KEYRING || op->kind == OP_ENTER_USER_NS || op->kind == OP_FILTER;
}

static int await_session(struct applier *a)
{
	struct channel_record record;
	int fds[CHANNEL_FDS_MAX];
	unsigned next = 0;

	if (a->has_session)
		return 0;
	if (a->box->apart)
		channel_await(BOX_CHANNEL, BOX_TRIES_SESSION);
	int r = channel_receive(BOX_CHANNEL, &record, fds);

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (record.kind != CHANNEL_SESSION)
		return -EPROTO;
	a->has_session = true;
	a->views = a->box->live ? (unsigned)record.number : 0;
	for (; next < a->box->plan->idmap_count; next++)
		a->box->idmap_ns[next] = fds[next];
	for (unsigned view = 0; view < VIEW_COUNT; view++)
		a->channels[view] = a->views & (1u << view) ? fds[next++] : -1;
	return 0;
}

/* The mount tree is complete and init still has all its rights. Each tighter view continues from
 * here as a process of its own. A view makes no further views. */
static int make_views(struct applier *a)
{
	int r = 0;

	for (unsigned view = 0; view < VIEW_COUNT && r == 0; view++)
		if (a->views & (1u << view))
			r = a->channels[view] < 0 ? -EPROTO
						  : view_fork(a->box, view, a->channels[view]);
	return r < 0 ? r : 0;
}

static int apply_clone(struct applier *a, const struct op *op)
{
	unsigned recursive = op->flags & OPF_RECURSIVE ? AT_RECURSIVE : 0;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE };
	int r = recursive ? scaffold_remove(&a->scaffold) : 0;

	if (r < 0)
		return r;
	int fd = open_exact(AT_FDCWD, op->path, op);
	if (fd < 0)
		return fd;
	if (op->flags & OPF_RDONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (op->flags & OPF_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	if (!(op->flags & OPF_DEV))
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if (op->flags & OPF_IDMAP) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (unsigned)a->box->idmap_ns[op->from];
	}
	int tree = clone_with(&a->two_steps, fd, "", AT_EMPTY_PATH | recursive, &attr);
	if (tree == -ENOSYS)
		tree = clone_set_attr(
			sys_open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | recursive),
			recursive, &attr);
	(void)close(fd);
	return slot_put(a, op->slot, tree);
}

static int apply_tmpfs(struct applier *a, const struct op *op)
{
	const struct facts *f = a->box->plan->facts;

	if (!(op->flags & OPF_OWNED))
		return slot_put(a, op->slot, fresh_skeleton(&a->box->made));
	/* Root makes it and gives it to the payload; in user mode the caller owns it from the
	 * start. */
	return slot_put(a, op->slot,
		f->privileged ? fresh_tmpfs(op->value, &f->kernel_uid, &f->kernel_gid)
			      : fresh_tmpfs(op->value, NULL, NULL));
}

static int apply_skeleton(struct applier *a, const struct op *op)
{
	int dir = slot_fd(a, op->slot);

	if (dir < 0)
		return dir;
	if (op->kind == OP_MKDIR)
		return mkdirat(dir, op->path, (mode_t)op->value) < 0 ? -errno : 0;
	if (op->kind == OP_SYMLINK)
		return symlinkat(op->text, dir, op->path) < 0 ? -errno : 0;
	if (!op->text)
		return mknodat(dir, op->path, S_IFREG | (mode_t)op->value, 0) < 0 ? -errno : 0;
	int fd = openat(dir, op->path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		(mode_t)op->value);
	if (fd < 0)
		return -errno;
	ssize_t size = (ssize_t)strlen(op->text);
	ssize_t n = write(fd, op->text, (size_t)size);
	int r = n == size ? 0 : n < 0 ? -errno : -EIO;
	(void)close(fd);
	return r;
}

static int apply_pick(struct applier *a, const struct op *op)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE };
	int from = slot_fd(a, op->from);

	if (from < 0)
		return from;
	if (op->flags & OPF_RDONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (op->flags & OPF_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	int tree = clone_with(&a->two_steps, from, op->path, AT_SYMLINK_NOFOLLOW, &attr);
	if (tree == -ENOSYS)
		tree = clone_set_attr(
			scaffold_pick(&a->scaffold, op->from, &a->slots[op->from], op->path), 0,
			&attr);
	return slot_put(a, op->slot, tree);
}

static int apply_overlay(struct applier *a, const struct op *op)
{
	uint16_t store_slot = (uint16_t)op->value;
	int lower = slot_fd(a, op->from), store = slot_fd(a, store_slot);

	if (lower < 0 || store < 0)
		return -EBADF;
	int overlay = fresh_overlay(lower, store);
	if (overlay == -EINVAL) {
		lower = scaffold_attach(&a->scaffold, op->from, &a->slots[op->from]);
		if (lower < 0)
			return lower;
		store = scaffold_attach(&a->scaffold, store_slot, &a->slots[store_slot]);
		overlay = store < 0 ? store : fresh_overlay(lower, store);
	}
	return slot_put(a, op->slot, overlay);
}

static int apply_root_seal(struct applier *a)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	int r = scaffold_remove(&a->scaffold);

	if (r >= 0)
		r = sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr);
	if (r < 0)
		return r;
	a->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return a->root < 0 ? -errno : 0;
}

/*
 * pivot_root(2) takes only an attached mount, so the new root is attached at /proc of the old root
 * and goes away with it. The tree is made private first: as root it is still a peer of the host's
 * mounts, and pivot_root(2) refuses a shared parent.
 */
static int apply_root_new(struct applier *a, const struct op *op)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };
	int r = scaffold_remove(&a->scaffold);
	int slot = slot_fd(a, op->slot);

	if (r >= 0)
		r = sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr);
	if (r < 0 || slot < 0)
		return r < 0 ? r : slot;
	int at = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return -errno;
	r = sys_move_mount(slot, at);
	(void)close(at);
	a->root = slot;
	return r;
}

static int apply_attach(struct applier *a, const struct op *op)
{
	int slot = slot_fd(a, op->slot);

	if (slot < 0 || op->path[0] != '/')
		return -EBADF;
	if (op->text) {
		int on = slot_fd(a, op->from);

		return on < 0 ? on : sys_move_mount_into(slot, on, op->text);
	}
	int at = sys_openat2(a->root, op->path + 1, O_PATH | O_NOFOLLOW,
		RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH);
	if (at < 0)
		return at;
	int r = sys_move_mount(slot, at);
	(void)close(at);
	return r;
}

/*
 * A cover of one of the host's sockets. The host's programs remove theirs at any time, also after the launcher has
 * listed them; what is not there any more needs no cover. Any other failure ends the session.
 */
static int attach_or_leave(struct applier *a, const struct op *op)
{
	int r = apply_attach(a, op);

	return (op->flags & OPF_OPTIONAL) && r == -ENOENT ? 0 : r;
}

static int apply_root_pivot(struct applier *a, const struct op *op)
{
	int root = slot_fd(a, op->slot);

	if (root < 0)
		return root;
	if (fchdir(root) < 0)
		return -errno;
	/* pivot_root(2), notes: with "." for both, the old root lies on top of the new one, and is
	 * detached. */
	int r = sys_pivot_root(".", ".");
	if (r < 0)
		return r;
	return umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ? -errno : 0;
}

static int apply_net_address(struct applier *a)
{
	int r = network_address();

	a->six = r > 0;
	return r < 0 ? r : 0;
}

static int apply_net_listen(struct applier *a)
{
	int r = network_listen(a->box->plan, BOX_CHANNEL, a->six);

	return r < 0 ? r : network_refusals(BOX_CHANNEL);
}

static int apply_landlock_path(struct applier *a, const struct op *op)
{
	int r = confine_landlock(op, op->slot ? slot_fd(a, op->slot) : -1, &a->landlock);

	/* It was removed since it was listed, or is a symbolic link now: it gets no rule. */
	return (op->flags & OPF_OPTIONAL) &&
			(r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -EINVAL)
		? 0
		: r;
}

static int apply_op(struct applier *a, const struct op *op)
{
	switch (op->kind) {
	case OP_CLONE:
		return apply_clone(a, op);
	case OP_TMPFS:
		return apply_tmpfs(a, op);
	case OP_MKDIR:
	case OP_MKFILE:
	case OP_SYMLINK:
		return apply_skeleton(a, op);
	case OP_PICK:
		return apply_pick(a, op);
	case OP_OVERLAY:
		return apply_overlay(a, op);
	case OP_PROC:
		return slot_put(a, op->slot, fresh_proc(&a->box->made));
	case OP_DEVPTS:
		return slot_put(a, op->slot, fresh_devpts(&a->box->made));
	case OP_ROOT_SEAL:
		return apply_root_seal(a);
	case OP_ROOT_NEW:
		return apply_root_new(a, op);
	case OP_ATTACH:
		return attach_or_leave(a, op);
	case OP_ROOT_PIVOT:
		return apply_root_pivot(a, op);
	case OP_NET_ADDRESS:
		return apply_net_address(a);
	case OP_NET_LOCAL:
		return op->value < a->box->plan->net_local_count
			? network_local(&a->box->plan->net_locals[op->value])
			: -EBADF;
	case OP_NET_LISTEN:
		return apply_net_listen(a);
	case OP_NET_PUBLISH:
		return op->value == 0 ? network_pool(BOX_CHANNEL) : 0;
	case OP_KEYRING:
		return confine_keyring();
	case OP_ENTER_USER_NS:
		return confine_enter_user_ns(a->box->idmap_ns[0]);
	case OP_NO_NESTED:
		return confine_no_nested(slot_fd(a, op->slot));
	case OP_IDENTITY:
		return confine_identity(a->box->plan->facts);
	case OP_RLIMIT:
		if (op->from != RLIMIT_NPROC || !op->source)
			return confine_rlimit(op->from, op->value);
		return a->box->tasks_by_rlimit ? confine_tasks(op->value) : 0;
	case OP_CAPABILITIES:
		return confine_capabilities(!(op->flags & OPF_OPTIONAL));
	case OP_NO_NEW_PRIVS:
		return confine_no_new_privs();
	case OP_LANDLOCK_NEW:
	case OP_LANDLOCK_ON:
		return confine_landlock(op, -1, &a->landlock);
	case OP_LANDLOCK_PATH:
		return apply_landlock_path(a, op);
	case OP_NO_SOCKETS:
		return confine_sockets();
	case OP_HIDE_SELF:
		return confine_hide_self(a->box->caller_args, a->box->caller_args_size,
			a->box->plan->clone_flags != 0);
	case OP_FILTER:
		return confine_filter(a->box->plan->filter, a->box->plan->filter_count);
	case OP_KIND_COUNT:
		break;
	}
	return -ENOSYS;
}

static int apply_next(struct applier *a, const struct op *op)
{
	int r = needs_session(a, op) ? await_session(a) : 0;

	if (r < 0)
		return r;
	/* This is the first operation on the process itself; all mounts are done. */
	if (op->kind == OP_KEYRING && a->box->live)
		r = make_views(a);
	if (r < 0)
		return r;
	r = apply_op(a, op);
	if (r < 0 || !(op->flags & OPF_SHARED))
		return r;
	return clone_share(a->slots[op->slot], BOX_CHANNEL);
}

int box_apply(struct box *box, int *ret_op)
{
	struct applier a = { .box = box, .root = -1, .landlock = -1 };
	const struct plan *plan = box->plan;

	for (size_t i = 0; i < PLAN_SLOT_MAX; i++)
		a.slots[i] = -1;
	for (size_t i = 0; i < plan->op_count; i++) {
		int r = apply_next(&a, &plan->ops[i]);

		if (r < 0) {
			*ret_op = (int)i;
			return r;
		}
	}
	/* The filter must be the last operation: a plan that ends with another one is malformed. */
	if (!plan->op_count || plan->ops[plan->op_count - 1].kind != OP_FILTER) {
		*ret_op = (int)plan->op_count;
		return -EBADMSG;
	}
	return 0;
}
