/*
 * settings.c - the table behind settings.h.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include "plan/settings.h"

#include <string.h>
#include <sys/resource.h>

#include "base/text.h"
#include "plan/policy.h"

static const char *const mode_words[] = { "direct", "overlay", "ro", NULL };
static const char *const tty_words[] = { "auto", "yes", "no", NULL };
static const char *const net_words[] = { "none", "allow", "host", NULL };

#define AT(member_) .member = (unsigned short)offsetof(struct policy, member_)
#define SETTING(id_, name_, group_, kind_, merge_, lock_) \
	.name = (name_), .id = SETTING_##id_, .group = GROUP_##group_, .kind = KIND_##kind_, \
	.merge = MERGE_##merge_, .lock = LOCK_##lock_
#define PER_EXECUTION .per_execution = true
#define EVERYDAY .everyday = true
#define EXECUTION(limit_) PER_EXECUTION, .limit = 1 + EXECUTION_##limit_
#define RLIMIT(resource_) .rlimit = 1 + RLIMIT_##resource_

/* clang-format off: one setting, one paragraph */
const struct setting settings_table[SETTING_COUNT] = {
[SETTING_WORKSPACE] = {
	SETTING(WORKSPACE, "workspace", FILES, PATH_EARLY, LAST, FIXED), AT(workspace),
	.placeholder = "DIR|git",
	.help = "the project, writable: the current directory; git: its work tree",
},
[SETTING_WORKSPACE_MODE] = {
	SETTING(WORKSPACE_MODE, "workspace-mode", FILES, ENUM, LAST, RANK),
	.placeholder = "direct|ro|overlay", .words = mode_words, PER_EXECUTION,
	.help = "writable, read-only, or writes kept apart; default: direct",
	.execution_help = "the workspace cannot be written by this command",
},
[SETTING_READ] = {
	SETTING(READ, "read", FILES, PATH_RULE, LIST, NO_MORE),
	.placeholder = "PATH",
	.help = "readable; -PATH: where it exists",
},
[SETTING_WRITE] = {
	SETTING(WRITE, "write", FILES, PATH_RULE, LIST, NO_MORE), EVERYDAY,
	.placeholder = "PATH",
	.help = "readable and writable; -PATH: where it exists",
},
[SETTING_HIDE] = {
	SETTING(HIDE, "hide", FILES, GLOB_RULE, LIST, SHADOWED),
	.placeholder = "PATH-OR-GLOB",
	.help = "empty inside, whatever is there; * ? [ ] within one name",
},
[SETTING_PROTECT] = {
	SETTING(PROTECT, "protect", FILES, PATH_RULE, LIST, SHADOWED),
	.placeholder = "PATH",
	.help = "read-only, or absent, inside something writable",
},
[SETTING_BIND] = {
	SETTING(BIND, "bind", FILES, BIND, LIST, NO_MORE),
	.placeholder = "SRC:DEST[:ro|rw]",
	.help = "SRC seen at DEST, read-only unless rw; -SRC: if it exists",
},
[SETTING_TMPFS] = {
	SETTING(TMPFS, "tmpfs", FILES, TMPFS, LIST, NO_MORE),
	.placeholder = "DEST[:SIZE]",
	.help = "empty writable memory at DEST, removed with the session",
},
[SETTING_DEV] = {
	SETTING(DEV, "dev", FILES, DEVICE, LIST, NO_MORE),
	.placeholder = "NODE",
	.help = "a device node below /dev; -NODE: where it exists",
},
[SETTING_CACHE] = {
	SETTING(CACHE, "cache", FILES, PRESET, LIST, NO_MORE),
	.placeholder = "NAME",
	.help = "a cache that sessions share: npm, pip, cargo, go, ccache, ...",
},
[SETTING_SCRATCH_BASE] = {
	SETTING(SCRATCH_BASE, "scratch-base", SCRATCH, PATH_EARLY, LAST, FIXED),
	AT(scratch_base), .placeholder = "DIR",
	.help = "where sessions have their directories; default: $TMPDIR",
},
[SETTING_SCRATCH_SIZE] = {
	SETTING(SCRATCH_SIZE, "scratch-size", SCRATCH, SIZE, LAST, SMALLER),
	AT(scratch_size), .placeholder = "SIZE",
	.help = "a scratch in memory that holds no more than this",
},
[SETTING_SCRATCH_ENV] = {
	SETTING(SCRATCH_ENV, "scratch-env", SCRATCH, SCRATCH_ENV, LIST, NO_MORE),
	.placeholder = "NAME",
	.help = "a variable that names the scratch, as CARREL_SCRATCH does",
},
[SETTING_KEEP] = {
	SETTING(KEEP, "keep", SCRATCH, FLAG, LAST, OFF), AT(keep),
	.help = "leave the scratch behind, and say where it is",
},
[SETTING_KEEP_FOR] = {
	SETTING(KEEP_FOR, "keep-for", SCRATCH, DURATION, LAST, UNSET_LEAST),
	AT(keep_for_ms), .placeholder = "DURATION",
	.help = "leave the scratch behind for that long",
},
[SETTING_QUARANTINE_FOR] = {
	SETTING(QUARANTINE_FOR, "quarantine-for", SCRATCH, DURATION, LAST, FIXED),
	AT(quarantine_for_ms), .placeholder = "DURATION",
	.help = "gc removes what was quarantined after that long; default: 30d",
},
[SETTING_PROMOTE] = {
	SETTING(PROMOTE, "promote", SCRATCH, PROMOTE, LIST, NO_MORE),
	.placeholder = "GLOB:DIR",
	.help = "after success, move GLOB of the scratch to DIR of the workspace",
},
[SETTING_PROMOTE_TO] = {
	SETTING(PROMOTE_TO, "promote-to", SCRATCH, DIRS, LIST, NO_MORE),
	.placeholder = "DIR",
	.help = "a further directory that artifacts may be promoted to",
},
[SETTING_CWD] = {
	SETTING(CWD, "cwd", PROCESS, PATH_LATE, LAST, FIXED), AT(cwd),
	.placeholder = "DIR", PER_EXECUTION,
	.help = "where the command starts; default: the current directory",
	.execution_help = "where the command starts",
},
[SETTING_ENV] = {
	SETTING(ENV, "env", PROCESS, ENV, LIST, NO_MORE), EVERYDAY,
	.placeholder = "NAME[=VALUE]", PER_EXECUTION,
	.help = "a variable for the command; without a value the caller's",
},
[SETTING_UNSETENV] = {
	SETTING(UNSETENV, "unsetenv", PROCESS, ENV_NAME, LIST, MORE_OK),
	.placeholder = "NAME",
	.help = "a variable the command does not get; * within NAME",
},
[SETTING_TTY] = {
	SETTING(TTY, "tty", PROCESS, ENUM, LAST, FIXED),
	.placeholder = "auto|yes|no", .words = tty_words, PER_EXECUTION,
	.help = "a terminal of its own; auto: when standard input is one",
},
[SETTING_PASS_FD] = {
	SETTING(PASS_FD, "pass-fd", PROCESS, PASS_FD, LIST, NO_MORE),
	.placeholder = "N[:M]", PER_EXECUTION,
	.help = "the caller's descriptor N, as M: a pipe or connected socket",
},
[SETTING_DIE_WITH_PARENT] = {
	SETTING(DIE_WITH_PARENT, "die-with-parent", PROCESS, FLAG, LAST, ON),
	AT(die_with_parent),
	.help = "end the session when the caller ends",
},
[SETTING_NESTED] = {
	SETTING(NESTED, "nested", PROCESS, FLAG, LAST, OFF), AT(nested),
	.help = "let the command make user namespaces (weaker)",
},
[SETTING_TIMEOUT] = {
	SETTING(TIMEOUT, "timeout", LIMITS, DURATION, LAST, SMALLER), AT(timeout_ms), EVERYDAY,
	.placeholder = "DURATION", EXECUTION(TIMEOUT),
	.help = "end the command after that long, with status 124",
},
[SETTING_GRACE] = {
	SETTING(GRACE, "grace", LIMITS, DURATION, LAST, SMALLER), AT(grace_ms),
	.placeholder = "DURATION", EXECUTION(GRACE),
	.help = "time between asking it to end and killing it; default: 5s",
	.execution_help = "time between asking it to end and killing it",
},
[SETTING_MEMORY] = {
	SETTING(MEMORY, "memory", LIMITS, SIZE, LAST, SMALLER), AT(memory),
	.placeholder = "SIZE", EXECUTION(MEMORY),
	.help = "memory of all processes together; needs cgroup v2",
	.execution_help = "memory of the command and what it starts; needs cgroup v2",
},
[SETTING_PIDS] = {
	SETTING(PIDS, "pids", LIMITS, COUNT_NUMBER, LAST, SMALLER), AT(pids),
	.placeholder = "N", EXECUTION(PIDS),
	.help = "processes and threads at one time",
},
[SETTING_CPUS] = {
	SETTING(CPUS, "cpus", LIMITS, CPUS, LAST, SMALLER), AT(cpus_milli),
	.placeholder = "N", EXECUTION(CPUS),
	.help = "processors' worth of time, as in 0.5 or 2; needs cgroup v2",
},
[SETTING_CPU_TIME] = {
	SETTING(CPU_TIME, "cpu-time", LIMITS, DURATION, LAST, SMALLER), AT(cpu_time_ms),
	.placeholder = "DURATION", EXECUTION(CPU_TIME), RLIMIT(CPU),
	.help = "processor time of each process",
},
[SETTING_FILE_SIZE] = {
	SETTING(FILE_SIZE, "file-size", LIMITS, SIZE, LAST, SMALLER), AT(file_size),
	.placeholder = "SIZE", EXECUTION(FILE_SIZE), RLIMIT(FSIZE),
	.help = "largest file a process can write",
},
[SETTING_OPEN_FILES] = {
	SETTING(OPEN_FILES, "open-files", LIMITS, COUNT_NUMBER, LAST, SMALLER),
	AT(open_files), .placeholder = "N", EXECUTION(OPEN_FILES), RLIMIT(NOFILE),
	.help = "open descriptors of each process, 16 or more",
	.execution_help = "open descriptors of each process",
},
[SETTING_OUTPUT_BUDGET] = {
	SETTING(OUTPUT_BUDGET, "output-budget", LIMITS, CHARACTERS, LAST, SMALLER),
	AT(output_budget), .placeholder = "CHARS", PER_EXECUTION,
	.help = "show head and tail of longer output; all of it is saved",
},
[SETTING_OUTPUT_MAX] = {
	SETTING(OUTPUT_MAX, "output-max", LIMITS, SIZE, LAST, SMALLER), AT(output_max),
	.placeholder = "SIZE", PER_EXECUTION,
	.help = "end the command when stdout or stderr is longer",
},
[SETTING_LIFETIME] = {
	SETTING(LIFETIME, "lifetime", LIMITS, DURATION, LAST, SMALLER), AT(lifetime_ms),
	.placeholder = "DURATION",
	.help = "of a live session, at most; default: 1d",
},
[SETTING_IDLE_TIMEOUT] = {
	SETTING(IDLE_TIMEOUT, "idle-timeout", LIMITS, DURATION, LAST, SMALLER),
	AT(idle_timeout_ms), .placeholder = "DURATION",
	.help = "end a live session that nobody uses for so long; default: 2h",
},
[SETTING_NET] = {
	SETTING(NET, "net", NETWORK, ENUM, LAST, RANK_DOWN), EVERYDAY,
	.placeholder = "none|allow|host", .words = net_words, PER_EXECUTION,
	.help = "own loopback, and what allow names, or the host's; default: none",
	.execution_help = "no network for this command",
},
[SETTING_ALLOW] = {
	SETTING(ALLOW, "allow", NETWORK, HOST, LIST, NO_MORE), EVERYDAY,
	.placeholder = "HOST[:PORT,...]|@SET",
	.help = "a name, *.NAME or address that can be reached; ports: 80,443",
},
[SETTING_DENY] = {
	SETTING(DENY, "deny", NETWORK, HOST, LIST, MORE_OK),
	.placeholder = "HOST[:PORT,...]|@SET",
	.help = "one that cannot, whatever allow says; without ports at none",
},
[SETTING_TLS_NAME] = {
	SETTING(TLS_NAME, "tls-name", NETWORK, FLAG, LAST, ON), AT(tls_name),
	.help = "on port 443, TLS for the allowed name alone; default: yes",
},
[SETTING_NET_CONNECTIONS] = {
	SETTING(NET_CONNECTIONS, "net-connections", NETWORK, COUNT_NUMBER, LAST, SMALLER),
	AT(net_connections), .placeholder = "N",
	.help = "connections at one time, with net allow",
},
[SETTING_NET_BYTES] = {
	SETTING(NET_BYTES, "net-bytes", NETWORK, SIZE, LAST, SMALLER),
	AT(net_bytes), .placeholder = "SIZE",
	.help = "bytes of all connections together, with net allow",
},
[SETTING_NET_LOG] = {
	SETTING(NET_LOG, "net-log", NETWORK, REPORT, LAST, FIXED), AT(net_log),
	.placeholder = "FILE|fd:N",
	.help = "where a line of JSON goes for each decision about the network",
},
[SETTING_NET_RESOLVER] = {
	SETTING(NET_RESOLVER, "net-resolver", NETWORK, RESOLVER, LAST, FIXED),
	AT(net_resolver), .placeholder = "ADDRESS[:PORT]",
	.help = "who is asked for names, instead of the host's resolver",
},
[SETTING_EGRESS_PROXY] = {
	SETTING(EGRESS_PROXY, "egress-proxy", NETWORK, PROXY, LAST, FIXED), AT(egress_proxy),
	.placeholder = "http://HOST:PORT",
	.help = "the host network's proxy, by which allowed names are reached",
},
[SETTING_EGRESS_PROXY_LOGIN] = {
	SETTING(EGRESS_PROXY_LOGIN, "egress-proxy-login", NETWORK, PATH_EARLY, LAST, FIXED),
	AT(egress_proxy_login), .placeholder = "FILE",
	.help = "the file with USER:PASSWORD for it; hidden inside",
},
[SETTING_NET_LIVE] = {
	SETTING(NET_LIVE, "net-live", NETWORK, FLAG, LAST, OFF), AT(net_live),
	.help = "let carrel session allow add names to the live session",
},
[SETTING_PUBLISH] = {
	SETTING(PUBLISH, "publish", NETWORK, PUBLISH, LIST, NO_MORE),
	.placeholder = "PORT[:HOSTPORT]",
	.help = "a server inside that the host reaches on its loopback; 0: any",
},
[SETTING_UNIX_SOCKET] = {
	SETTING(UNIX_SOCKET, "unix-socket", NETWORK, PATH_RULE, LIST, NO_MORE),
	.placeholder = "PATH",
	.help = "a unix socket of the host that may be connected to; -PATH",
},
[SETTING_SYSCALLS] = {
	SETTING(SYSCALLS, "syscalls", SYSCALLS, FILTER, LAST, FIXED), AT(syscalls),
	.placeholder = "NAME",
	.help = "the shipped system-call filter; default: default",
},
[SETTING_SYSCALL] = {
	SETTING(SYSCALL, "syscall", SYSCALLS, SYSCALL, LIST, NO_MORE),
	.placeholder = "allow|errno NAME|GROUP [if EXPR]",
	.help = "change the filter: let a call or a group pass, or refuse it",
},
[SETTING_PROFILE] = {
	SETTING(PROFILE, "profile", POLICY, PROFILE, LAST, FIXED), EVERYDAY,
	.placeholder = "NAME",
	.help = "the policy to start from: shipped, or your own; default: agent",
},
[SETTING_INCLUDE] = {
	SETTING(INCLUDE, "include", POLICY, INCLUDE, LIST, NEVER),
	.placeholder = "LIST",
	.help = "a shipped list: hide, protect, toolchains, environment",
},
[SETTING_POLICY] = {
	SETTING(POLICY, "policy", POLICY, POLICY_FILE, LIST, NO_MORE),
	.placeholder = "FILE",
	.help = "read a policy file, over the system's and the user's",
},
[SETTING_WITH] = {
	SETTING(WITH, "with", POLICY, PRESET, LIST, NO_MORE),
	.placeholder = "NAME",
	.help = "ssh-agent, proxy, x11, ...; `carrel policy presets` lists them",
},
[SETTING_LOCK] = {
	SETTING(LOCK, "lock", POLICY, SETTING, LIST, NEVER),
	.placeholder = "SETTING", .system_only = true,
	.help = "system policy only: nothing later loosens that setting",
},
[SETTING_REQUIRE] = {
	SETTING(REQUIRE, "require", POLICY, WALL, LIST, MORE_OK),
	.placeholder = "WALL", .words = settings_walls,
	.help = "refuse to start without that wall, even if degraded",
},
[SETTING_DEGRADED] = {
	SETTING(DEGRADED, "degraded", POLICY, FLAG, LAST, OFF), AT(degraded),
	.help = "start without what this machine does not have (weaker)",
},
[SETTING_MERGE_OUTPUT] = {
	SETTING(MERGE_OUTPUT, "merge-output", OUTPUT, FLAG, LAST, FIXED), AT(merge_output),
	PER_EXECUTION,
	.help = "stderr goes where stdout goes, in the order written",
},
[SETTING_REPORT] = {
	SETTING(REPORT, "report", OUTPUT, REPORT, LAST, FIXED), AT(report),
	.placeholder = "FILE|fd:N", PER_EXECUTION,
	.help = "where the JSON report goes",
},
[SETTING_EXPLAIN] = {
	SETTING(EXPLAIN, "explain", OUTPUT, FLAG, LAST, FIXED), AT(explain),
	PER_EXECUTION,
	.help = "say at the end what was refused, and what allows it; slow",
	.execution_help = "say what it was refused; needs session start --explain",
},
[SETTING_LEARN] = {
	SETTING(LEARN, "learn", OUTPUT, PATH_EARLY, LAST, FIXED), AT(learn),
	.placeholder = "FILE",
	.help = "explain, and write what allows it as a policy to review",
},
[SETTING_QUIET] = {
	SETTING(QUIET, "quiet", OUTPUT, FLAG, LAST, FIXED), AT(quiet),
	PER_EXECUTION,
	.help = "no messages but errors",
},
[SETTING_VERBOSE] = {
	SETTING(VERBOSE, "verbose", OUTPUT, FLAG, LAST, FIXED), AT(verbose),
	.help = "say what the session is, and what it does without",
},
};
/* clang-format on */

static const char *const group_titles[GROUP_COUNT] = {
	[GROUP_FILES] = "files",
	[GROUP_SCRATCH] = "scratch",
	[GROUP_PROCESS] = "process",
	[GROUP_LIMITS] = "limits",
	[GROUP_NETWORK] = "network",
	[GROUP_SYSCALLS] = "system calls",
	[GROUP_POLICY] = "policy",
	[GROUP_OUTPUT] = "output",
};

const char *settings_group_title(enum setting_group group)
{
	return (size_t)group < GROUP_COUNT ? group_titles[group] : "";
}

bool settings_is_value(const struct setting *s)
{
	switch ((int)s->kind) {
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
	case KIND_ENUM:
		return true;
	default:
		return false;
	}
}

int settings_arguments(const struct setting *s, const char *word)
{
	if (s->kind == KIND_FLAG)
		return 0;
	return s->kind == KIND_SYSCALL && (!strcmp(word, "allow") || !strcmp(word, "errno"))
		? 2
		: 1;
}

const char *settings_mistaken_word(int argc, const char *const *argv, int next)
{
	const char *word = next < argc ? argv[next] : "";

	if (!strcmp(word, "no") ||
		(!strcmp(word, "yes") && next + 1 < argc && argv[next + 1][0] == '-'))
		return word;
	return NULL;
}

const char *settings_tightest(const struct setting *s)
{
	size_t last = 0;

	if (s->lock != LOCK_RANK && s->lock != LOCK_RANK_DOWN)
		return NULL;
	while (s->lock == LOCK_RANK && s->words[last + 1])
		last++;
	return s->words[last];
}

const struct setting *settings_find(const char *name, size_t length)
{
	if (length == 0)
		return NULL;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];

		if (s->name[0] == name[0] && !strncmp(s->name, name, length) &&
			!s->name[length])
			return s;
	}
	return NULL;
}

const char *settings_nearest(const char *name)
{
	const char *names[SETTING_COUNT];

	for (size_t i = 0; i < SETTING_COUNT; i++)
		names[i] = settings_table[i].name;
	return text_nearest(name, names, SETTING_COUNT);
}
