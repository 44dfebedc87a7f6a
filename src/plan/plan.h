/*
 * plan.h - the plan: what will be done, in order, decided before anything is done.
 *
 * Runs in: made by the launcher (and by carrel-policy for `carrel plan`), read by the box.
 * PURE: policy + facts go in, a plan comes out; no system call is made on the way, so the same
 * input gives the same plan on any machine (tests/golden). When the plan is complete, the launcher
 * makes the arena that holds it read-only, and init does so with its own mapping before it reads it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "plan/policy.h"

struct sock_filter;

/* --- facts: what the host side found out, once ------------------------------------------------ */

/*
 * A symbolic link on the way to a path. If its directory is carrel's own, carrel makes the link
 * there.
 */
struct link_fact {
	const char *path;   /* absolute, its directory canonical */
	const char *target; /* as written in the link */
};

/* One thing a path rule names, resolved. A glob gives one of these for each match. */
struct path_fact {
	const struct path_rule *rule;
	const char *path; /* canonical: where it is seen inside (for bind: the destination) */
	const char
		*source;  /* canonical: what is shown there; differs from path only for bind */
	bool exists;      /* the source */
	bool dest_exists; /* something is at `path` on the host to mount on */
	bool is_link;     /* protect and hide: the last component is a symbolic link itself */
	bool covered;     /* protect and hide: a bind shows something else at `path` */
	mode_t mode;      /* of the source: type and permission bits */
	uid_t uid;
	gid_t gid;
	dev_t dev;
	ino_t ino;
	/*
	 * Hide and protect: another mount shows at `path` what lies at this path. NULL: `path` is
	 * what was named.
	 */
	const char *same_as;
	const char
		*shown; /* protect, read: show this text in its place; NULL: the thing itself */
	size_t parent_exists; /* absent protect: length of the leading part of `path` that exists */
};

enum wall {
	WALL_USER_NS,
	WALL_MOUNT_NS,
	WALL_PID_NS,
	WALL_IPC_NS,
	WALL_UTS_NS,
	WALL_NET_NS,
	WALL_CGROUP_NS,
	WALL_MOUNTS,
	WALL_SYSCALLS,
	WALL_CAPABILITIES,
	WALL_NO_NEW_PRIVS,
	WALL_LANDLOCK,
	WALL_UNPRIVILEGED_UID,
	WALL_NESTED_NAMESPACES, /* none can be made inside */
	WALL_KEYRING,
	WALL_UNIX_SOCKETS,
	WALL_SUPERVISOR,
	WALL_COUNT,
};

enum wall_state { WALL_UNAVAILABLE, WALL_OFF, WALL_ON };

struct wall_fact {
	enum wall_state state;
	const char *why; /* NULL where on and nothing to add */
};

/* A directory that artifacts may be promoted to: a `promote-to` line, resolved. */
struct promote_root {
	const char *path; /* canonical */
	dev_t dev;
	ino_t ino;
};

/*
 * Places that every session shapes whatever the policy says. The host side resolves each once;
 * facts.system is parallel to plan_system_paths.
 */
enum system_path {
	SYSTEM_PROC,
	SYSTEM_DEV,
	SYSTEM_RUN,
	SYSTEM_TMP,
	SYSTEM_VAR_TMP,
	SYSTEM_DEV_NULL, /* from here on: device nodes of the minimal /dev */
	SYSTEM_DEV_ZERO,
	SYSTEM_DEV_FULL,
	SYSTEM_DEV_RANDOM,
	SYSTEM_DEV_URANDOM,
	SYSTEM_DEV_TTY,
	SYSTEM_PATH_COUNT,
};
extern const char *const plan_system_paths[SYSTEM_PATH_COUNT];

struct gitdir_rule; /* host/git/gitdirs.h */

/* An entry of a directory on the way to something hidden: without mounts (plan/bare.h). */
struct split_entry {
	const char *name;
	bool is_dir; /* else a regular file: nothing else is listed */
};

/* A remark for people who look at the session; nobody has to act on it. */
struct note_fact {
	const char *path, *why;
};

struct split_fact {
	const char *path; /* canonical */
	const struct split_entry *entries;
	size_t count;
};

struct facts {
	uid_t uid;
	gid_t gid;
	bool privileged; /* may build the mounts as root and map to an unprivileged uid */
	const char *unprivileged_why; /* root, but not privileged: what is missing */
	uid_t kernel_uid;             /* the payload's uid as the parent namespace sees it */
	gid_t kernel_gid;
	int landlock_abi;      /* 0: none */
	const char *home;      /* canonical, or NULL */
	const char *cwd;       /* the caller's, as getcwd gives it; NULL where deleted */
	const char *workspace; /* canonical */
	dev_t workspace_dev;
	ino_t workspace_ino;
	uid_t workspace_uid;
	gid_t workspace_gid;
	mode_t workspace_perm;    /* permission bits */
	const char *scratch_base; /* canonical */
	/* The directory of sockets ($XDG_RUNTIME_DIR), live sessions' among them; canonical. NULL: none, or
	 * it lies where the session never shows the host. */
	const char *runtime_dir;
	/* The directory of the session records (host/session/state_place.h); canonical; NULL: it does not exist yet. */
	const char *state_dir;
	const char *session_name; /* carrel-<id> */
	const char *session_dir;  /* scratch_base/session_name */
	const char *scratch_dir;  /* session_dir/scratch */
	/* An output that is cut may come into session_dir/tool-results: the session is live, or there is a
	 * budget. Else that directory is empty, read-only, and nowhere but inside; without namespaces the host
	 * has it in any case. */
	bool saves_outputs;
	struct path_fact *paths;
	size_t path_count;
	size_t socket_count;     /* of the host, hidden (host/facts/facts_cover.h) */
	const char *sockets_why; /* which of them can be reached; NULL: not looked for */
	/* Paths below the source of a bind: something would be mounted there, and the source has nothing to
	 * mount it on. */
	const char **unseated;
	size_t unseated_count;
	struct link_fact *links;
	size_t link_count;
	/* Privileged: directories on the way to a shown path that the payload's uid cannot pass. */
	const char **closed_dirs;
	size_t closed_count;
	struct promote_root *promote_roots; /* beside the workspace */
	size_t promote_root_count;
	/* What git's directories looked like, for the review at the end. */
	const struct gitdir_rule *git_rules;
	size_t git_rule_count;
	size_t git_mounts; /* how many of them need a mount */
	const struct note_fact
		*notes; /* what of the repositories was not understood, or not granted */
	size_t note_count;
	/* What the machine refuses, in words. Looked for only where the policy says `degraded`; NULL:
	 * nothing. */
	const char *refused_namespaces; /* one of them, or a mount inside */
	const char *refused_proc;       /* a new procfs, where mounts are allowed */
	const char *refused_keyring;
	const struct split_fact *splits;
	size_t split_count;
	struct timespec begun; /* CLOCK_REALTIME */
	struct path_fact system[SYSTEM_PATH_COUNT];
	const char *const *environ; /* the caller's environment, borrowed */
};

/* --- operations ------------------------------------------------------------------------------- */

enum op_kind {
	/* sources, into slots; why and source are for people */
	OP_CLONE,   /* slot <- open_tree(path), checked against dev and ino */
	OP_TMPFS,   /* slot <- a new tmpfs; value = size in bytes, 0 = the kernel's default */
	OP_MKDIR,   /* in slot: directory path; value = mode */
	OP_MKFILE,  /* in slot: file path with text, or empty; value = mode */
	OP_SYMLINK, /* in slot: link path -> text */
	OP_PICK,    /* slot <- clone of the directory or file `path` of slot `from` */
	OP_OVERLAY, /* slot <- overlay: lower = slot `from`, text = session dir's overlay/ */
	OP_PROC,    /* slot <- a new procfs of this pid namespace */
	OP_DEVPTS,  /* slot <- a new devpts instance */
	/* the tree */
	OP_ROOT_SEAL, /* the namespace's own root: recursive private, read-only, nosuid, nodev */
	OP_ROOT_NEW,  /* slot becomes the new root; later paths are below it */
	OP_ATTACH,    /* slot -> path; if text is set: -> text below what slot `from` shows */
	OP_ROOT_PIVOT, /* pivot to the new root, detach the old one */
	/* the network, where the policy says `net allow` */
	OP_NET_ADDRESS, /* the session's own block of addresses, `path`, on the loopback */
	OP_NET_LOCAL,   /* the block net_locals[value], `path`, is local */
	OP_NET_LISTEN, /* a listener for each of net_ports, and the resolver's; the supervisor gets them */
	OP_NET_PUBLISH, /* publishes[value]; with the first of them the sockets that connect to servers inside */
	/* the process */
	OP_KEYRING,       /* a new session keyring */
	OP_ENTER_USER_NS, /* privileged: setns to the prepared user namespace */
	OP_NO_NESTED,     /* user.max_user_namespaces = 0, through the new procfs in slot */
	OP_IDENTITY,      /* setgroups, setresgid, setresuid */
	OP_RLIMIT,        /* setrlimit(op->from, value) */
	OP_CAPABILITIES,  /* bounding, ambient, securebits, the three sets */
	OP_NO_NEW_PRIVS,
	OP_LANDLOCK_NEW,  /* value = handled rights, from = ABI */
	OP_LANDLOCK_PATH, /* path, which is slot's where that is not 0: value = allowed rights */
	OP_LANDLOCK_ON,
	OP_NO_SOCKETS, /* no socket but unix ones, where there is no network namespace */
	OP_HIDE_SELF,  /* pid 1 keeps no caller's memory and is not dumpable */
	OP_FILTER,     /* the system-call filter; always the last one */
	OP_KIND_COUNT,
};

enum op_flag {
	OPF_RDONLY = 1 << 0,
	OPF_NOEXEC = 1 << 1,
	OPF_RECURSIVE = 1 << 2,
	OPF_IDMAP = 1 << 3, /* CLONE: idmapped by plan.idmaps[from] */
	OPF_LINK = 1 << 4,  /* the path itself is a symbolic link: do not follow, do mount */
	OPF_DEV = 1 << 5,   /* device nodes work on it */
	OPF_OWNED = 1 << 7, /* TMPFS: belongs to the payload */
	OPF_OPTIONAL =
		1 << 8, /* LANDLOCK_PATH: what has gone since is not allowed; CAPABILITIES: the
			 * bounding set and the securebits stay where they cannot be changed;
			 * ATTACH: where the place has gone since, there is nothing to cover */
	OPF_CHECKED = 1 << 6, /* CLONE: device and inode must be those of the facts */
	OPF_SHARED =
		1 << 9, /* ATTACH: the supervisor gets a clone of the mount, as a descriptor */
};

/* The session's own proxy, with `net allow`: 127.0.0.1 inside, at this port. */
#define PLAN_PROXY_PORT 3128
#define PLAN_PROXY_URL "http://127.0.0.1:3128"

/* A block of addresses that a policy allows: with `net allow` what connects to it finds a listener. */
struct net_local {
	uint8_t family; /* 4 or 6 */
	uint8_t bits;
	uint8_t address[16]; /* network order */
};

#define PLAN_NO_SLOT 0xffff
#define PLAN_SLOT_MAX 768 /* more path rules than this are refused with a clear error */

struct op {
	enum op_kind kind;
	unsigned flags; /* OPF_* */
	uint16_t slot;
	uint16_t from;
	const char *path;
	const char *text;
	uint64_t value;
	dev_t dev;
	ino_t ino;
	const char *why;             /* for people: "workspace (direct)" */
	const struct source *source; /* the line that asked for it, or NULL */
};

/*
 * An owner on disk that is shown as the payload's own uid and gid. Entry 0 is the caller's and is
 * the session's user namespace itself; each further one costs a namespace of its own.
 */
struct idmap {
	uid_t disk_uid;
	gid_t disk_gid;
};
#define PLAN_IDMAP_MAX 8

/* Something to make in the session directory, by the host side, before the launch. */
struct session_entry {
	const char *path; /* relative to the session directory */
	bool is_file;
	bool owned; /* belongs to the payload's kernel ids, with `mode` */
	mode_t mode;
};

/* A protected path that existed: the same thing must be there at the end. */
struct kept_path {
	const char *root; /* the writable place it lies in */
	const char *path;
	dev_t dev;
	ino_t ino;
};

/* A protected path that did not exist: nothing may be there at the end. */
struct absent_path {
	const char *root;       /* the writable place it lies in (absolute, canonical) */
	const char *path;       /* absolute */
	size_t existing_prefix; /* bytes of `path` that existed at the start */
	const struct source *source;
};

enum surface_kind {
	SURFACE_OUTSIDE,
	SURFACE_READABLE,
	SURFACE_WORKSPACE,
	SURFACE_SCRATCH,
	SURFACE_TOOL_RESULTS,
	SURFACE_PROTECTED,
	SURFACE_HIDDEN,
};

struct node; /* plan/tree.h */

struct plan {
	const struct policy *policy;
	const struct facts *facts;

	unsigned long clone_flags; /* CLONE_NEW*; none: see plan/bare.h */
	struct op *ops;
	size_t op_count;
	size_t slot_count;

	struct idmap idmaps[PLAN_IDMAP_MAX];
	size_t idmap_count; /* 0 in user mode */

	const char *const *argv;       /* the command */
	const char *const *shell_argv; /* "/bin/sh" in front: for a script without #! */
	const char *const *envp;
	size_t env_count;
	const char *cwd;
	const char *path_env;     /* PATH as the payload sees it, for looking the command up */
	struct pass_numbers pass; /* descriptors of the caller's, beside the streams */

	const struct sock_filter *filter;
	unsigned short filter_count;

	const struct net_local *net_locals;
	size_t net_local_count;
	uint16_t net_ports[NETRULE_LISTEN_MAX +
		1]; /* ascending, each once; PLAN_PROXY_PORT is one */
	size_t net_port_count;

	const struct node *nodes; /* what is seen where: plan/tree.h */
	size_t node_count;
	struct session_entry *entries;
	size_t entry_count;
	struct absent_path *absents;
	size_t absent_count;
	struct kept_path *kept;
	size_t kept_count;
	struct wall_fact walls[WALL_COUNT];

	struct arena *arena;
};

/* plan_op_name - the word for an operation, e.g. "clone". Never NULL. */
const char *plan_op_name(enum op_kind kind);

/* plan_wall_name - the stable word for a wall, e.g. "landlock". Never NULL. */
const char *plan_wall_name(enum wall wall);
