/*
 * policy.h - what a session may do: the merged lines of all layers, typed, each with its source.
 *
 * Runs in: the launcher and carrel-policy. PURE: no file is opened here; texts come in, an
 * effective policy comes out, all of it in one arena.
 *
 * Order of use:
 *
 *     policy_init
 *     policy_add_arguments, policy_add_text   the layers, in any order: each line knows its layer
 *     policy_finish     chooses the profile, merges, gives workspace, scratch-base and report
 *     policy_print ...  (here, where the paths are still as they were written)
 *     policy_expand     fills $HOME, $SCRATCH and so on; judges the locks
 *     plan_build
 *     policy_check_facts  judges the locks again, on the paths as they were resolved
 *
 * Until policy_expand() the paths of rules, `cwd` and values of env are templates: "$HOME/.ssh", a
 * literal dollar or backslash behind a backslash. After it they are plain bytes (a rule with `glob`
 * set: a pattern as base/glob.h reads it).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/writer.h"
#include "plan/netrule.h"
#include "plan/pass.h"

/* Layers, weakest first. Each overrides those before it: the number orders them. */
enum layer {
	LAYER_DEFAULT, /* the value that holds where no layer sets one */
	LAYER_PROFILE, /* shipped: profile:NAME */
	LAYER_SYSTEM,  /* /etc/carrel/policy */
	LAYER_USER,    /* $XDG_CONFIG_HOME/carrel/policy */
	LAYER_FILE,    /* --policy FILE */
	LAYER_COMMAND, /* the command line */
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
	uint64_t value; /* unit by name: bytes, milliseconds, thousandths, count */
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
	PATH_TMPFS, /* empty writable memory at `dest` */
	PATH_DEV,   /* a device node of the host, shown at the same path */
};

/*
 * One path line. `path` is absolute after policy_expand(), not yet resolved: the host side
 * resolves it. A leading '-' in the line (`read -~/.cargo`, as in systemd) sets `optional`: a
 * path that is missing is then passed over; hide and protect are always optional in that sense.
 */
struct path_rule {
	enum path_kind kind;
	bool optional;
	bool glob; /* hide only: has *, ? or [; one component at a time, never ** */
	bool socket; /* it is about a unix socket: `unix-socket`, or one of the host's that is hidden */
	bool records; /* protect only: records of sessions are believed there, no line makes it writable */
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

struct word_rule { /* require WALL, lock SETTING, scratch-env NAME */
	const char *word;
	struct source source;
};

/* One `pass-fd` line. */
struct pass_rule {
	struct pass_pair pair;
	const char *word, *inside; /* N:M, and M alone */
	struct source source;
};

/* One `promote` line, or one `promote-to` line: then `pattern` is NULL. */
struct promote_rule {
	const char *pattern; /* absolute glob, below the scratch */
	const char *dir;     /* absolute */
	struct source source;
};

/* One `allow` or `deny` line. */
struct net_rule {
	const struct netrule *rule;
	struct source source;
};

enum { PUBLISH_MAX = 16 }; /* ports of one session */

/* One `publish` line. */
struct publish_rule {
	const char *text; /* "PORT:HOSTPORT" */
	uint16_t port;
	uint16_t host_port; /* 0: the kernel chooses */
	struct source source;
};

/* In the place of a workspace's path: the work tree of git that holds the cwd. */
#define WORKSPACE_GIT "git"

enum workspace_mode { WORKSPACE_DIRECT, WORKSPACE_RO, WORKSPACE_OVERLAY };
enum tty_mode { TTY_AUTO, TTY_YES, TTY_NO };
enum net_mode { NET_NONE, NET_ALLOW, NET_HOST };

struct policy_work {
	char *text;
	size_t size;
};

struct policy {
	struct text_value profile;

	struct text_value workspace; /* default: the cwd; or WORKSPACE_GIT */
	enum workspace_mode workspace_mode;
	struct source workspace_mode_source;
	struct path_rule *paths; /* weakest layer first; inside a layer in line order */
	size_t path_count, path_room;

	struct text_value scratch_base;   /* default: $TMPDIR, else /tmp */
	struct number_value scratch_size; /* bytes; set = bounded (tmpfs) */
	struct word_rule *scratch_envs;
	size_t scratch_env_count;
	struct flag_value keep;
	struct number_value keep_for_ms;
	struct number_value quarantine_for_ms; /* default: 30 days */
	struct promote_rule *promotes;         /* after success, in this order */
	size_t promote_count;
	struct promote_rule *promote_tos; /* where artifacts may go, beside the workspace */
	size_t promote_to_count;

	struct text_value cwd; /* default: the caller's cwd where it is visible inside */
	struct env_rule *envs;
	size_t env_count;
	enum tty_mode tty;
	struct source tty_source;
	struct pass_rule *passes; /* ascending by what they are inside, each once */
	size_t pass_count;
	struct flag_value die_with_parent;
	struct flag_value nested;

	struct number_value timeout_ms;
	struct number_value grace_ms; /* default 5 s */
	struct number_value memory;   /* bytes, of the whole session */
	struct number_value pids;
	struct number_value cpus_milli; /* thousandths of a processor */
	struct number_value cpu_time_ms;
	struct number_value file_size; /* bytes */
	struct number_value open_files;
	struct number_value output_budget;   /* characters */
	struct number_value output_max;      /* bytes */
	struct number_value lifetime_ms;     /* of a live session; default 1 day */
	struct number_value idle_timeout_ms; /* of a live session; default 2 hours */

	enum net_mode net;
	struct source net_source;
	bool net_implied;           /* by an `allow` line, whose source that is */
	struct net_rule *net_rules; /* `allow` and `deny`; none unless net is NET_ALLOW */
	size_t net_rule_count;
	struct flag_value tls_name; /* default: on */
	struct number_value net_connections;
	struct number_value net_bytes;
	struct text_value net_log;            /* a path or "fd:N" */
	struct text_value net_resolver;       /* ADDRESS:PORT; NULL: the host's */
	struct text_value egress_proxy;       /* "http://HOST:PORT"; NULL: none */
	struct text_value egress_proxy_login; /* a path; NULL: none */
	struct publish_rule *publishes;
	size_t publish_count;
	struct flag_value net_live; /* `carrel session allow` may add names */

	struct text_value syscalls; /* name of a shipped filter; default "default" */
	struct syscall_rule *syscall_rules;
	size_t syscall_rule_count;

	struct word_rule *withs; /* presets; their lines are among the others */
	size_t with_count;
	struct word_rule *caches;
	size_t cache_count;
	struct word_rule *requires; /* walls that must stand: landlock, seccomp, ... */
	size_t require_count;
	struct word_rule *locks;
	size_t lock_count;
	struct flag_value degraded;

	struct flag_value merge_output;
	struct text_value report; /* a path or "fd:N" */
	struct flag_value explain;
	struct text_value learn; /* a path; then `explain` holds as well */
	struct flag_value quiet;
	struct flag_value verbose;

	const char *passed_over; /* --env NAME of what carrel sets itself anyway; NULL: none */
	bool from_stdin;         /* `--policy -` was read */

	struct arena *arena; /* owns every text above */
	/* Owns the lines and the hosts, and what is needed while paths are looked up: init reads none of it. May be
	 * the same. */
	struct arena *local;

	struct policy_line *lines; /* what was read, in reading order; see policy_line.h */
	size_t line_count;
	size_t host_count;    /* of them `allow` and `deny` */
	size_t line_room;     /* elements that `lines` has room for */
	uint32_t *line_table; /* hash table: 1 + index of a line */
	size_t line_slots;    /* slots of it, a power of two */
	const struct policy_line
		*shipped; /* the profile's lines, where it was read at build time */
	size_t shipped_count;
	struct policy *locked;      /* profile and system policy alone; NULL without locks */
	struct policy_work work[2]; /* scratch memory of the parser */
	bool expanded;              /* policy_expand() was done */
};

/* What the small named set of variables stands for. All absolute; NULL = not available. */
struct policy_names {
	const char *home; /* ~ and $HOME */
	const char *
		account_home; /* where it is another one: what is hidden in ~ is hidden there, too */
	const char *workspace; /* $WORKSPACE, resolved */
	const char *scratch;   /* $SCRATCH */
	const char *xdg_config_home, *xdg_cache_home, *xdg_data_home, *xdg_state_home,
		*xdg_runtime_dir;
	const char
		*caches; /* what sessions share is below it: `cache NAME` is its entry NAME */
	const char *ssh_auth_sock, *xauthority; /* of the caller */
};

/* A policy file as the loader found it. Borrowed until policy_finish(). */
struct policy_file {
	const char *text;
	size_t size;
	const char *path; /* canonical: relative paths in it start from its directory */
};

struct setting;
struct embedded_text;
struct embedded_profile;
struct embedded_filter;

/* What reading a policy needs from outside. Borrowed until policy_finish(). */
struct policy_resolver {
	const char *cwd; /* for relative paths on the command line; NULL: they are refused */
	const char *pwd; /* what the caller's own PWD is; NULL: it has none */
	const struct policy_names
		*names; /* home and xdg_*: for workspace, scratch-base, report, policy */
	const struct embedded_text *texts; /* shipped profiles and lists */
	size_t text_count;
	const struct embedded_profile
		*profiles; /* those of them that need not be read; NULL: none */
	size_t profile_count;
	const struct embedded_filter
		*filters; /* shipped filters; NULL: `syscalls` is not checked */
	size_t filter_count;
	/*
	 * load - read the policy file @path (absolute, at most POLICY_SIZE_MAX bytes), and refuse it
	 * where it lies in the workspace. 0, or -errno with @e (or without: then a plain "cannot read"
	 * is said). @path may be POLICY_STDIN: standard input. NULL: `policy` lines are refused.
	 */
	int (*load)(void *context, const char *path, struct policy_file *ret, struct error *e);
	/*
	 * load_profile - read the profile @name of the user's own. It may hold what a user's policy
	 * may hold, and is trusted like that. Returns 1; 0: there is none; or -errno with @e. NULL:
	 * nobody has any.
	 */
	int (*load_profile)(
		void *context, const char *name, struct policy_file *ret, struct error *e);
	/* load_preset - the same for the preset @name (`with`) of the user's own. */
	int (*load_preset)(
		void *context, const char *name, struct policy_file *ret, struct error *e);
	/* load_set - the same for a set of hosts of the user's own, as `allow @NAME` asks for. */
	int (*load_set)(
		void *context, const char *name, struct policy_file *ret, struct error *e);
	void *context;
};

#define POLICY_COMMAND_LINE "command line" /* source.file of the command line */
#define POLICY_STDIN "-"                   /* `--policy -` */
#define POLICY_SIZE_MAX (1024 * 1024)      /* bytes of one text */
#define POLICY_LINE_MAX 8192               /* bytes of one line */
#define POLICY_SYSCALL_MAX 512             /* bytes of the text of one `syscall` line */
#define POLICY_RULE_MAX 4096 /* lines of all layers together, but for `allow` and `deny` */
#define POLICY_HOST_MAX \
	32768 /* `allow` and `deny` lines of all layers together, those of sets included */
#define POLICY_CHARACTERS_MAX (16 * 1024 * 1024) /* an output budget lies in memory */
#define POLICY_PROFILE_NAME_MAX 64               /* bytes of the name of a user's profile */
#define POLICY_DEPTH_MAX 8                       /* texts that include one another */

/* Flags of a verb that are no settings, e.g. --json. */
struct policy_verb_flag {
	const char *name;        /* without dashes */
	char letter;             /* with one dash; 0: none */
	const char *placeholder; /* of its value; NULL: it takes none */
	bool given;              /* set by policy_add_arguments */
	const char *value;       /* set by policy_add_arguments, borrowed from argv */
};

/* policy_add_path - one more rule, behind all others. 0 or -ENOMEM. */
MUST_CHECK int policy_add_path(struct policy *p, const struct path_rule *rule);

/* policy_init - an empty policy with the defaults. @arena: owns everything, outlives @p. */
void policy_init(struct policy *p, struct arena *arena);

/*
 * policy_add_text - read one policy text and what it includes.
 * @name: for messages, and where relative paths start: an absolute canonical path, or
 *        "profile:NAME" (no relative paths). Borrowed. @text: borrowed until return.
 * Returns 0, or -errno with @e: ERROR_POLICY (on: file:line), ERROR_LIMIT.
 */
MUST_CHECK int policy_add_text(struct policy *p, enum layer layer, const char *name,
	const char *text, size_t size, const struct policy_resolver *r, struct error *e);

/*
 * policy_add_arguments - read settings from a command line, from argv[first] on, up to "--" (which
 * is passed over) or the first word without a dash.
 * @flags:    further flags of the verb, may be NULL. @ret_next: index of the first word after.
 * Returns 0; 1 where -h or --help was met (nothing after it was read); -errno with @e
 * (ERROR_USAGE, on: the argument).
 */
MUST_CHECK int policy_add_arguments(struct policy *p, int argc, const char *const *argv,
	int first, const struct policy_resolver *r, struct policy_verb_flag *flags,
	size_t flag_count, int *ret_next, struct error *e);

/*
 * policy_add_setting - one setting that came another way, such as a variable of the environment. Its
 * layer is LAYER_FILE: the command line overrides it, whichever is read first.
 * @from: what to call the place in messages ("CARREL_KEEP"). Borrowed.
 * @value: NULL for a flag. Returns 0, or -errno with @e (ERROR_POLICY, on: @from).
 */
MUST_CHECK int policy_add_setting(struct policy *p, const char *from, const char *name,
	const char *value, const struct policy_resolver *r, struct error *e);

/*
 * policy_finish - choose the profile, merge the layers, check what contradicts.
 * @default_profile: the one to use if no layer names one. After it workspace, scratch_base and report
 * are plain absolute paths (or NULL). Returns 0, or -errno with @e.
 */
MUST_CHECK int policy_finish(struct policy *p, const char *default_profile,
	const struct policy_resolver *r, struct error *e);

/*
 * policy_expand - put the names in and judge the locks. @names: all absolute; a line that needs one
 * that is NULL is an error, unless it is optional, hide or protect: then the line is dropped. A hide or
 * protect line with ~ in front holds for all places that it may be about: see policy_hide_elsewhere().
 * Returns 0, or -errno with @e: ERROR_POLICY, ERROR_USAGE, ERROR_LOCKED.
 */
MUST_CHECK int policy_expand(
	struct policy *p, const struct policy_names *names, struct error *e);

struct facts;

/*
 * policy_check_facts - judge `lock hide` and `lock protect` on the paths as the machine resolved
 * them, so that a symbolic link is no way around. 0, or -EPERM with @e (ERROR_LOCKED).
 */
MUST_CHECK int policy_check_facts(
	const struct policy *p, const struct facts *facts, struct error *e);

/*
 * policy_is_daemon - whether @path has the usual name of the socket of a daemon (docker, libvirt
 * and others) that starts whatever it is told to, outside of every wall.
 * policy_check_daemons - refuse such a socket in every line but `unix-socket PATH:gives-root`, by
 * whatever path a line leads to it. 0, or -EPERM with @e (ERROR_POLICY).
 */
bool policy_is_daemon(const char *path);
MUST_CHECK int policy_check_daemons(const struct facts *facts, struct error *e);

/* policy_number - the value in @p of a setting that is a number. */
const struct number_value *policy_number(const struct policy *p, const struct setting *s);

/* policy_format_number - a number of the setting @s as a policy says it: 4K, 1.5s, 0.5. */
void policy_format_number(
	const struct setting *s, uint64_t number, char *ret_text, size_t size);

/* policy_layer_name - "profile", "command-line" and the like. */
const char *policy_layer_name(enum layer layer);

/* policy_path_setting - the setting a path rule comes from, e.g. "bind". Never NULL. */
const char *policy_path_setting(enum path_kind kind);

/*
 * policy_read_value - read @word as the value of the setting @s (settings_is_value()): a number, or
 * the index of a word. It is for an option of a verb that reads no policy. @ret is untouched on
 * failure. 0 or -errno with the error (ERROR_USAGE), which names the option.
 */
MUST_CHECK int policy_read_value(
	const struct setting *s, const char *word, uint64_t *ret, struct error *e);

/* policy_own_variable - whether carrel sets the variable of that name (@length bytes) itself, in every session. */
bool policy_own_variable(const char *name, size_t length);

/*
 * policy_check_variable - whether the option @name may give a command the variable in @word,
 * NAME[=VALUE]: the rules of `env`.
 */
MUST_CHECK int policy_check_variable(const char *name, const char *word, struct error *e);

/*
 * policy_format_source - "file:line", "command line: --hide", "CARREL_KEEP", "default".
 * @setting: name for the command line, or NULL. Cut to @size, always terminated.
 */
void policy_format_source(
	const struct source *source, const char *setting, char *ret_text, size_t size);

/* policy_source_setting - the name of the setting that was read at @source, or NULL. */
const char *policy_source_setting(const struct policy *p, const struct source *source);

/*
 * policy_print - the effective policy as text that is a policy file again.
 * @sources: put the place of each line behind it as a comment. Without them the bytes depend on what
 *           the policy says and on nothing else: they are what the policy digest is taken of.
 * Before policy_expand() the paths are as written ($HOME/...), after it as they are on this machine.
 * Returns 0, or what @write returned.
 */
MUST_CHECK int policy_print(
	const struct policy *p, bool sources, writer_fn write, void *context);

/*
 * policy_print_rule - the one line that was read at @source, without its place, as policy_print() has it.
 * Where several rules stand in that line, the path rule whose own source @source is, else the first.
 * Returns the length (0: no rule came from there), or -ENOBUFS. Always terminated.
 */
MUST_CHECK int policy_print_rule(
	const struct policy *p, const struct source *source, char *ret, size_t size);

/* policy_print_json - the same as one JSON document (docs: "policy show --json"). 0 or -errno. */
MUST_CHECK int policy_print_json(const struct policy *p, writer_fn write, void *context);
