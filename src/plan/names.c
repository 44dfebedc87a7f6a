/*
 * names.c - the words for operations and walls.
 *
 * Runs in: every program that shows a plan or a report. PURE.
 */
#include "plan/plan.h"
#include "plan/settings.h"

static const char *const op_names[OP_KIND_COUNT] = {
	[OP_CLONE] = "clone",
	[OP_TMPFS] = "tmpfs",
	[OP_MKDIR] = "mkdir",
	[OP_MKFILE] = "mkfile",
	[OP_SYMLINK] = "symlink",
	[OP_PICK] = "pick",
	[OP_OVERLAY] = "overlay",
	[OP_PROC] = "proc",
	[OP_DEVPTS] = "devpts",
	[OP_ROOT_SEAL] = "root-seal",
	[OP_ROOT_NEW] = "root-new",
	[OP_ATTACH] = "attach",
	[OP_ROOT_PIVOT] = "root-pivot",
	[OP_NET_ADDRESS] = "net-address",
	[OP_NET_LOCAL] = "net-local",
	[OP_NET_LISTEN] = "net-listen",
	[OP_NET_PUBLISH] = "net-publish",
	[OP_KEYRING] = "keyring",
	[OP_ENTER_USER_NS] = "enter-user-ns",
	[OP_NO_NESTED] = "no-nested",
	[OP_IDENTITY] = "identity",
	[OP_RLIMIT] = "rlimit",
	[OP_CAPABILITIES] = "capabilities",
	[OP_NO_NEW_PRIVS] = "no-new-privs",
	[OP_LANDLOCK_NEW] = "landlock-new",
	[OP_LANDLOCK_PATH] = "landlock-path",
	[OP_LANDLOCK_ON] = "landlock-on",
	[OP_NO_SOCKETS] = "no-sockets",
	[OP_HIDE_SELF] = "hide-self",
	[OP_FILTER] = "filter",
};

/* Ended by a NULL: `require` takes these words, and no others. */
const char *const settings_walls[WALL_COUNT + 1] = {
	[WALL_USER_NS] = "user-namespace",
	[WALL_MOUNT_NS] = "mount-namespace",
	[WALL_PID_NS] = "pid-namespace",
	[WALL_IPC_NS] = "ipc-namespace",
	[WALL_UTS_NS] = "uts-namespace",
	[WALL_NET_NS] = "net-namespace",
	[WALL_CGROUP_NS] = "cgroup-namespace",
	[WALL_MOUNTS] = "mounts",
	[WALL_SYSCALLS] = "syscalls",
	[WALL_CAPABILITIES] = "capabilities",
	[WALL_NO_NEW_PRIVS] = "no-new-privs",
	[WALL_LANDLOCK] = "landlock",
	[WALL_UNPRIVILEGED_UID] = "unprivileged-uid",
	[WALL_NESTED_NAMESPACES] = "nested-namespaces",
	[WALL_KEYRING] = "keyring",
	[WALL_UNIX_SOCKETS] = "unix-sockets",
	[WALL_SUPERVISOR] = "supervisor",
};

const char *plan_op_name(enum op_kind kind)
{
	return (unsigned)kind < OP_KIND_COUNT ? op_names[kind] : "unknown";
}

const char *plan_wall_name(enum wall wall)
{
	return (unsigned)wall < WALL_COUNT ? settings_walls[wall] : "unknown";
}
