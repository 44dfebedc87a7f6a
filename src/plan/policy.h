/*
 * policy.h - what a session may do: the merged lines of all layers, typed, each with its source.
 *
 * Runs in: the launcher and carrel-policy. PURE: no file is opened here; texts come in, an
 * effective policy comes out, all of it in one arena.
 *
 * Order of use:  policy_init -> policy_add_text / policy_add_setting (layer by layer, profile
 * first, command line last) -> policy_expand (fills $HOME and so on) -> plan_build.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* Layers, weakest first; each over the last. The number orders them. */
enum layer {
	LAYER_DEFAULT,  /* the value where nobody says anything */
	LAYER_PROFILE,  /* shipped: profile:NAME */
	LAYER_SYSTEM,   /* /etc/carrel/policy */
	LAYER_USER,     /* $XDG_CONFIG_HOME/carrel/policy */
	LAYER_FILE,     /* --policy FILE */
	LAYER_COMMAND,  /* the command line */
};

/* Where a rule was written. Shown as "file:line" or "command line: --hide". */
struct source {
	enum layer layer;
	unsigned line;    /* 1-based line; on the command line the index in argv */
	const char *file; /* "profile:agent", a path as it was named, or "command line" */
};

struct text_value {
	const char *value; /* NULL where unset */
	struct source source;
};

struct number_value {
	uint64_t value; /* unit by name: bytes, milliseconds, count */
	bool set;
	struct source source;
};

struct flag_value {
	bool on;
	struct source source;
};

enum path_kind {
	PATH_READ,    /* readable */
	PATH_WRITE,   /* writable */
	PATH_HIDE,    /* there, but empty: nothing below it can be seen */
	PATH_PROTECT, /* read-only (or absent) inside something writable */
	PATH_BIND_RO, /* `path` shown at `dest` */
	PATH_BIND_RW,
	PATH_TMPFS,   /* empty writable memory at `dest` */
	PATH_DEV,     /* a device node of the host, shown at the same path */
};

/*
 * One path line. `path` is absolute after policy_expand(), not yet resolved: the host side
 * resolves it. A leading '-' in the line (`read -~/.cargo`, as in systemd) sets `optional`: a
 * path that is missing is then passed over; hide and protect are always optional in that sense.
 */
struct path_rule {
	enum path_kind kind;
	bool optional;
	bool glob;        /* hide only: has *, ? or [; one component at a time, never ** */
	const char *path; /* source path; NULL for tmpfs */
	const char *dest; /* bind and tmpfs; otherwise NULL */
	uint64_t size;    /* tmpfs: bytes, 0 = kernel's default */
	struct source source;
};

/* One `env` or `unsetenv` line. */
struct env_rule {
	bool unset;
	const char *name;  /* may be a glob (only '*') where value is NULL */
	const char *value; /* NULL: take the caller's, where it has one */
	struct source source;
};

/* One `syscall` line, checked for grammar; names are resolved by carrel-policy. */
struct syscall_rule {
	const char *text; /* "allow NAME", "errno NAME if arg0 == 1", ... */
	struct source source;
};

struct word_rule { /* require LAYER, lock SETTING, scratch-env NAME */
	const char *word;
	struct source source;
};

enum workspace_mode { WORKSPACE_DIRECT, WORKSPACE_RO, WORKSPACE_OVERLAY };
enum tty_mode { TTY_AUTO, TTY_YES, TTY_NO };
enum net_mode { NET_NONE, NET_HOST };

struct policy {
	struct text_value profile;

	struct text_value workspace;       /* default: the cwd */
	enum workspace_mode workspace_mode;
	struct source workspace_mode_source;
	struct path_rule *paths;           /* weakest layer first; inside a layer in line order */
	size_t path_count;

	struct text_value scratch_base;    /* default: $TMPDIR, else /tmp */
	struct number_value scratch_size;  /* bytes; set = bounded (tmpfs) */
	struct word_rule *scratch_envs;
	size_t scratch_env_count;
	struct flag_value keep;
	struct number_value keep_for_ms;

	struct text_value cwd;             /* default: the caller's cwd where it is visible inside */
	struct env_rule *envs;
	size_t env_count;
	enum tty_mode tty;
	struct source tty_source;
	struct flag_value die_with_parent;
	struct flag_value nested;

	struct number_value timeout_ms;
	struct number_value grace_ms;      /* default 5 s */
	struct number_value cpu_time_ms;
	struct number_value file_size;     /* bytes */
	struct number_value open_files;

	enum net_mode net;
	struct source net_source;

	struct text_value syscalls;        /* name of a shipped filter; default "default" */
	struct syscall_rule *syscall_rules;
	size_t syscall_rule_count;

	struct word_rule *requires;        /* layers that must be on: landlock, seccomp, ... */
	size_t require_count;
	struct word_rule *locks;
	size_t lock_count;
	struct flag_value degraded;

	struct text_value report;          /* a path or "fd:N" */
	struct flag_value quiet;
	struct flag_value verbose;

	struct arena *arena;               /* owns every text above */
};

/* What the small named set of variables stands for. All absolute; NULL = not available. */
struct policy_names {
	const char *home;      /* ~ and $HOME */
	const char *workspace; /* $WORKSPACE, resolved */
	const char *scratch;   /* $SCRATCH */
	const char *xdg_config_home, *xdg_cache_home, *xdg_data_home, *xdg_state_home,
		*xdg_runtime_dir;
};
