/*
 * settings.h - the one table of all settings.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * Command line, policy files, help, man page and completions are made from this table: a setting
 * that is not in it is unknown everywhere. A flag takes no value on the command line (`--keep`,
 * `--no-keep`); in a file it is `keep`, `keep yes` or `keep no`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/writer.h"

enum setting_id {
	/* files */
	SETTING_WORKSPACE,
	SETTING_WORKSPACE_MODE,
	SETTING_READ,
	SETTING_WRITE,
	SETTING_HIDE,
	SETTING_PROTECT,
	SETTING_BIND,
	SETTING_TMPFS,
	SETTING_DEV,
	SETTING_CACHE,
	/* scratch */
	SETTING_SCRATCH_BASE,
	SETTING_SCRATCH_SIZE,
	SETTING_SCRATCH_ENV,
	SETTING_KEEP,
	SETTING_KEEP_FOR,
	SETTING_QUARANTINE_FOR,
	SETTING_PROMOTE,
	SETTING_PROMOTE_TO,
	/* process */
	SETTING_CWD,
	SETTING_ENV,
	SETTING_UNSETENV,
	SETTING_TTY,
	SETTING_PASS_FD,
	SETTING_DIE_WITH_PARENT,
	SETTING_NESTED,
	/* limits */
	SETTING_TIMEOUT,
	SETTING_GRACE,
	SETTING_MEMORY,
	SETTING_PIDS,
	SETTING_CPUS,
	SETTING_CPU_TIME,
	SETTING_FILE_SIZE,
	SETTING_OPEN_FILES,
	SETTING_OUTPUT_BUDGET,
	SETTING_OUTPUT_MAX,
	SETTING_LIFETIME,
	SETTING_IDLE_TIMEOUT,
	/* network */
	SETTING_NET,
	SETTING_ALLOW,
	SETTING_DENY,
	SETTING_TLS_NAME,
	SETTING_NET_CONNECTIONS,
	SETTING_NET_BYTES,
	SETTING_NET_LOG,
	SETTING_NET_RESOLVER,
	SETTING_EGRESS_PROXY,
	SETTING_EGRESS_PROXY_LOGIN,
	SETTING_NET_LIVE,
	SETTING_PUBLISH,
	SETTING_UNIX_SOCKET,
	/* system calls */
	SETTING_SYSCALLS,
	SETTING_SYSCALL,
	/* policy */
	SETTING_PROFILE,
	SETTING_INCLUDE,
	SETTING_POLICY,
	SETTING_WITH,
	SETTING_LOCK,
	SETTING_REQUIRE,
	SETTING_DEGRADED,
	/* output */
	SETTING_MERGE_OUTPUT,
	SETTING_REPORT,
	SETTING_EXPLAIN,
	SETTING_LEARN,
	SETTING_QUIET,
	SETTING_VERBOSE,
	SETTING_COUNT,
};

enum setting_group {
	GROUP_FILES,
	GROUP_SCRATCH,
	GROUP_PROCESS,
	GROUP_LIMITS,
	GROUP_NETWORK,
	GROUP_SYSCALLS,
	GROUP_POLICY,
	GROUP_OUTPUT,
	GROUP_COUNT,
};

enum setting_kind {
	KIND_FLAG,
	KIND_PATH_EARLY, /* one path, needed before the session exists: no $WORKSPACE, $SCRATCH */
	KIND_PATH_LATE, /* one path */
	KIND_PATH_RULE, /* a path rule; '-' in front: optional */
	KIND_GLOB_RULE, /* a path rule that may be a glob */
	KIND_BIND,      /* [-]SRC:DEST[:ro|rw] */
	KIND_TMPFS,     /* DEST[:SIZE] */
	KIND_PROMOTE,   /* GLOB:DIR */
	KIND_DIRS,      /* a directory, one of several */
	KIND_DEVICE,    /* [-]/dev/... */
	KIND_SIZE,
	KIND_DURATION,
	KIND_COUNT_NUMBER,
	KIND_CHARACTERS,  /* a number from 0 to POLICY_CHARACTERS_MAX */
	KIND_CPUS,        /* processors, in thousandths: 0.5, 2 */
	KIND_ENUM,        /* one of `words` */
	KIND_ENV,         /* NAME[=VALUE], NAME may be a glob without a value */
	KIND_ENV_NAME,    /* a name, perhaps a glob */
	KIND_SCRATCH_ENV, /* a plain name */
	KIND_FILTER,      /* name of a shipped filter */
	KIND_SYSCALL,     /* allow|errno NAME|GROUP [if EXPR] */
	KIND_WALL,        /* one of `words`: a wall that must stand */
	KIND_SETTING,     /* the name of a setting that can be locked */
	KIND_PROFILE,     /* where a policy starts: a shipped profile, or the user's own */
	KIND_INCLUDE,     /* a shipped list, whose lines are read in its place */
	KIND_POLICY_FILE, /* include: a file */
	KIND_PRESET,   /* include: a shipped text NAME.with or NAME.cache, or the user's own */
	KIND_REPORT,   /* a path or fd:N */
	KIND_HOST,     /* HOST[:PORT[,PORT...]] or @SET: plan/netrule.h */
	KIND_RESOLVER, /* ADDRESS[:PORT] */
	KIND_PROXY,    /* http://HOST:PORT */
	KIND_PUBLISH,  /* PORT[:HOSTPORT] */
	KIND_PASS_FD,  /* N[:M]: a descriptor of the caller's, and its number inside */
};

/* What a second line of the same setting means. */
enum setting_merge {
	MERGE_LAST, /* the later layer wins; twice in one source is an error */
	MERGE_LIST, /* every line counts; several arguments on one line are several lines */
};

/* What "looser" means to `lock`. */
enum setting_lock {
	LOCK_NEVER,       /* cannot be locked */
	LOCK_FIXED,       /* no later layer may change it */
	LOCK_SMALLER,     /* a smaller number is tighter, none at all is loosest */
	LOCK_UNSET_LEAST, /* a smaller number is tighter, none at all is tightest */
	LOCK_OFF,         /* turning it on loosens */
	LOCK_ON,          /* turning it off loosens */
	LOCK_RANK,        /* an earlier word of `words` is looser */
	LOCK_RANK_DOWN,   /* a later word of `words` is looser */
	LOCK_NO_MORE,     /* any addition loosens */
	LOCK_MORE_OK,     /* additions tighten */
	LOCK_SHADOWED,    /* additions tighten; to show something there again loosens */
};

/*
 * The limits that one execution of a live session may have of its own, by their place in its request:
 * docs/control-protocol.md. A new one goes to the end, and changes CONTROL_VERSION.
 */
enum execution_limit {
	EXECUTION_TIMEOUT,
	EXECUTION_GRACE,
	EXECUTION_CPU_TIME,
	EXECUTION_FILE_SIZE,
	EXECUTION_OPEN_FILES,
	EXECUTION_MEMORY,
	EXECUTION_PIDS,
	EXECUTION_CPUS,
	EXECUTION_LIMIT_COUNT,
};

struct setting {
	const char *name;
	const char *placeholder;    /* of the argument; NULL for a flag */
	const char *help;           /* one line, no full stop */
	const char *execution_help; /* the same of one execution, where it differs */
	const char *const *words;   /* of KIND_ENUM and KIND_WALL, NULL-terminated */
	unsigned char id;           /* enum setting_id, equal to the index */
	unsigned char kind;
	unsigned char group;
	unsigned char merge;
	unsigned char lock;
	unsigned char limit;  /* 1 + enum execution_limit; 0: none of these */
	unsigned char rlimit; /* 1 + the RLIMIT_* that holds it in each process; 0: none does */
	bool per_execution;   /* one execution can have its own: an option of `exec` */
	bool system_only;     /* in the system policy and nowhere else */
	bool everyday;        /* what most people need: --help starts with these */
	unsigned short member; /* offset in struct policy for kinds with one plain member */
};

extern const struct setting settings_table[SETTING_COUNT];

/* Names of the walls that `require` knows, NULL-terminated. */
extern const char *const settings_walls[];

/* settings_find - the setting with exactly that name (@length bytes), or NULL. */
const struct setting *settings_find(const char *name, size_t length);

/* settings_nearest - the name that was probably meant, or NULL. */
const char *settings_nearest(const char *name);

/* settings_is_value - a setting with one value that is a number, or one of its words. */
bool settings_is_value(const struct setting *s);

/* settings_group_title - the heading of a group, e.g. "system calls". Never NULL. */
const char *settings_group_title(enum setting_group group);

/*
 * settings_arguments - how many arguments of a command line the value of @s takes if the first is
 * @word: two for `syscall` (`allow NAME`) unless they were quoted together, none for a flag, else
 * one.
 * settings_tightest - the one word of a ranked setting (LOCK_RANK, LOCK_RANK_DOWN) that no session
 * loosens. An execution can ask for no other. NULL: it is not ranked.
 */
int settings_arguments(const struct setting *s, const char *word);
const char *settings_tightest(const struct setting *s);

/*
 * settings_mistaken_word - the word at argv[next], behind a flag, if it was meant for the flag, as
 * in a file: `no`, or `yes` in front of more options. NULL: it is a command.
 */
const char *settings_mistaken_word(int argc, const char *const *argv, int next);

/*
 * settings_rlimit - convert @value from the unit of its setting to that of setrlimit(2): seconds
 * are rounded up.
 */
static inline uint64_t settings_rlimit(const struct setting *s, uint64_t value)
{
	return s->kind == KIND_DURATION ? value / 1000 + (value % 1000 > 0) : value;
}

/* settings_print_help - all settings, grouped and aligned, for --help. 0 or -errno. */
MUST_CHECK int settings_print_help(writer_fn write, void *context);

/* settings_print_execution_help - those that one execution can have, for --help of `exec`. 0 or -errno. */
MUST_CHECK int settings_print_execution_help(writer_fn write, void *context);

/*
 * settings_print_man - all settings as sections of a scdoc(5) page; with @execution those that one execution
 * can have, without sections. 0 or -errno.
 */
MUST_CHECK int settings_print_man(bool execution, writer_fn write, void *context);
