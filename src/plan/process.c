/*
 * process.c - see process.h.
 *
 * Runs in: the launcher and carrel-policy. PURE: no system calls.
 */
#include "plan/process.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "plan/bare.h"
#include "plan/emit.h"
#include "plan/network.h"
#include "plan/settings.h"
#include "plan/uapi.h"

struct emitter {
	struct plan *plan;
	struct error *e;
	int result; /* of the first operation that failed, else 0 */
};

/* After a failure it adds nothing more: a caller looks at @m->result once, at its end. */
static void emit(struct emitter *m, struct op op)
{
	if (m->result >= 0)
		m->result = emit_to(m->plan, op, m->e);
}

/* Half of what the smallest pid_max has (proc_sys_kernel(5)); no honest build comes near. */
enum { PIDS_DEFAULT = 16384 };

static void emit_limit(struct emitter *m, int resource, const struct number_value *limit,
	uint64_t value, const char *why)
{
	if (limit && !limit->set)
		return;
	emit(m,
		(struct op){ .kind = OP_RLIMIT,
			.from = (uint16_t)resource,
			.value = value,
			.why = why,
			.source = limit ? &limit->source : NULL });
}

/* A setting that is a limit of each process. */
static void emit_rlimit(struct emitter *m, const struct setting *s)
{
	const struct number_value *limit = policy_number(m->plan->policy, s);

	emit_limit(m, s->rlimit - 1, limit, settings_rlimit(s, limit->value), s->name);
}

static void emit_limits(struct emitter *m)
{
	const struct policy *policy = m->plan->policy;

	emit_limit(m, RLIMIT_CORE, NULL, 1, "no core files, nor a core handler of the host");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings_table[i].rlimit && i != SETTING_OPEN_FILES)
			emit_rlimit(m, &settings_table[i]);
	/* Init is counted with the others. Without a user namespace the kernel would count all
	 * that the caller runs: then there is no limit by default. */
	if (policy->pids.set)
		emit_limit(m, RLIMIT_NPROC, &policy->pids,
			policy->pids.value + (policy->pids.value < UINT64_MAX),
			"pids, where no cgroup counts them");
	else if (m->plan->clone_flags)
		emit_limit(m, RLIMIT_NPROC, NULL, PIDS_DEFAULT, "pids, by default");
}

/* Rights on files as each ABI of Landlock knows them: landlock(7). */
static uint64_t handled_rights(int abi)
{
	uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

	if (abi >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	if (abi >= 9)
		rights |= LANDLOCK_ACCESS_FS_RESOLVE_UNIX;
	return rights;
}

static const uint64_t reading =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

/*
 * The rights that Landlock is to give to one node; 0 if it gives no more than "/" does.
 * @everywhere: the rights that "/" gives.
 */
static uint64_t node_rights(const struct node *n, uint64_t handled, uint64_t everywhere)
{
	const uint64_t file = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
		LANDLOCK_ACCESS_FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_RESOLVE_UNIX;
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
		LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV;

	switch (n->kind) {
	case NODE_DEV:
		return handled & device;
	case NODE_PROC:
	case NODE_DEVPTS:
		return handled & (device | LANDLOCK_ACCESS_FS_READ_DIR);
	case NODE_BIND:
	case NODE_TMPFS:
	case NODE_SHM:
	case NODE_OVERLAY:
	case NODE_SCRATCH:
	case NODE_TMP:
		handled &= n->writable ? ~0ULL : reading & ~everywhere;
		return handled & (n->is_dir ? ~0ULL : file);
	case NODE_LINK:
	case NODE_HOST_ROOT:
	case NODE_SHELL:
	case NODE_PIN:
	case NODE_PROTECT:
	case NODE_HIDE:
		return 0;
	}
	return 0;
}

static void emit_landlock(struct emitter *m, const struct tree *tree)
{
	int abi = m->plan->facts->landlock_abi;
	uint64_t handled = handled_rights(abi);
	/* If the root shows only what is named, only that can be read; the root's own directories can be listed. */
	uint64_t everywhere = tree_host_root(tree) ? reading : LANDLOCK_ACCESS_FS_READ_DIR;

	if (m->plan->walls[WALL_LANDLOCK].state != WALL_ON)
		return;
	emit(m,
		(struct op){ .kind = OP_LANDLOCK_NEW,
			.value = handled,
			.from = (uint16_t)abi,
			.why = m->plan->clone_flags ? "the file rules once more"
						    : "the file rules" });
	if (m->result >= 0 && !m->plan->clone_flags)
		m->result = bare_landlock(m->plan, tree, handled, m->e);
	if (m->plan->clone_flags)
		emit(m,
			(struct op){ .kind = OP_LANDLOCK_PATH,
				.path = "/",
				.value = everywhere,
				.why = everywhere == reading ? "readable"
							     : "the directories on the way" });
	for (size_t i = 0; m->plan->clone_flags && i < tree->count; i++) {
		const struct node *n = &tree->nodes[i];
		uint64_t rights = n->redundant ? 0 : node_rights(n, handled, everywhere);

		if (rights)
			emit(m,
				(struct op){ .kind = OP_LANDLOCK_PATH,
					.slot = n->mount_slot,
					.path = n->path,
					.value = rights,
					.why = n->why,
					.source = n->line });
	}
	emit(m,
		(struct op){
			.kind = OP_LANDLOCK_ON, .why = "files, signals and abstract sockets" });
}

static void state(struct plan *plan, enum wall wall, enum wall_state st, const char *why)
{
	plan->walls[wall] = (struct wall_fact){ st, why };
}

static void state_walls(struct plan *plan)
{
	const struct policy *policy = plan->policy;
	const struct facts *facts = plan->facts;

	for (int i = 0; i < WALL_COUNT; i++)
		state(plan, (enum wall)i, WALL_ON, NULL);
	if (policy->net == NET_HOST)
		state(plan, WALL_NET_NS, WALL_OFF, "the policy says `net host`");
	if (policy->nested.on) {
		state(plan, WALL_NESTED_NAMESPACES, WALL_OFF, "the policy says `nested`");
		/* A task under Landlock's file rules may not mount: landlock(7). */
		state(plan, WALL_LANDLOCK, WALL_OFF, "the policy says `nested`");
	} else if (facts->landlock_abi == 0) {
		state(plan, WALL_LANDLOCK, WALL_UNAVAILABLE,
			"this kernel does not have it, or it is not in the lsm= list");
	}
	bool landlock = plan->walls[WALL_LANDLOCK].state == WALL_ON;
	if (!landlock || facts->landlock_abi < 9)
		state(plan, WALL_UNIX_SOCKETS, WALL_UNAVAILABLE,
			facts->sockets_why ? facts->sockets_why
				: landlock
				? "sockets outside the hidden places can be reached by path: Landlock ABI < 9"
				: "sockets outside the hidden places can be reached by path: no Landlock");
	if (facts->uid != 0)
		state(plan, WALL_UNPRIVILEGED_UID, WALL_ON, "the caller is not root");
	else if (!facts->privileged)
		state(plan, WALL_UNPRIVILEGED_UID, WALL_UNAVAILABLE, facts->unprivileged_why);
	if (facts->refused_keyring)
		state(plan, WALL_KEYRING, WALL_UNAVAILABLE, facts->refused_keyring);
	if (facts->refused_proc)
		state(plan, WALL_PID_NS, WALL_UNAVAILABLE, facts->refused_proc);
	if (!plan->clone_flags)
		bare_walls(plan);
}

/*
 * A wall that the machine does not have is an error where the policy requires it, and where it is
 * part of every session unless the policy says `degraded`. Landlock and the refusal of sockets by
 * path come and go with the kernel: they are reported, and can be required.
 */
static int check_walls(struct plan *plan, struct error *e)
{
	const struct policy *policy = plan->policy;

	for (size_t i = 0; i < policy->require_count; i++)
		for (int w = 0; w < WALL_COUNT; w++) {
			if (plan->walls[w].state == WALL_ON ||
				strcmp(policy->requires[i].word,
					plan_wall_name((enum wall)w)) != 0)
				continue;
			int r = error_set(e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP),
				plan->walls[w].why, "the policy requires the wall %s",
				policy->requires[i].word);
			return r;
		}
	if (plan->walls[WALL_UNPRIVILEGED_UID].state == WALL_UNAVAILABLE &&
		!policy->degraded.on) {
		int r = error_set(e, ERROR_UNAVAILABLE, "plan", ERROR_OWN(ENOTSUP),
			plan->walls[WALL_UNPRIVILEGED_UID].why,
			"as root, the command cannot be given an unprivileged uid");
		error_hint(e,
			"run carrel as an ordinary user, or accept with --degraded that "
			"the command may read what only root can read");
		return r;
	}
	return 0;
}

static void pass_descriptors(struct plan *plan)
{
	const struct policy *policy = plan->policy;

	for (size_t i = 0; i < policy->pass_count && i < PASS_MAX; i++)
		plan->pass.number[plan->pass.count++] = policy->passes[i].pair.to;
}

int plan_process(
	struct plan *plan, const struct tree *tree, uint16_t proc_slot, struct error *e)
{
	struct emitter m = { .plan = plan, .e = e };

	state_walls(plan);
	pass_descriptors(plan);
	int r = check_walls(plan, e);
	if (r < 0)
		return r;
	r = plan_network(plan, e);
	if (r < 0)
		return r;
	if (!plan->facts->refused_keyring)
		emit(&m,
			(struct op){ .kind = OP_KEYRING, .why = "the caller's keys stay out" });
	if (plan->facts->privileged)
		emit(&m,
			(struct op){ .kind = OP_ENTER_USER_NS,
				.why = "nothing inside has a right over the other namespaces" });
	if (!plan->policy->nested.on && proc_slot)
		emit(&m,
			(struct op){ .kind = OP_NO_NESTED,
				.slot = proc_slot,
				.why = "exactly one user namespace" });
	emit(&m, (struct op){ .kind = OP_IDENTITY, .why = "the payload's uid and gid" });
	emit_limits(&m);
	emit(&m,
		(struct op){ .kind = OP_HIDE_SELF,
			.why = "pid 1 shows no memory, descriptors or environment" });
	emit(&m,
		(struct op){ .kind = OP_CAPABILITIES,
			.flags = plan->clone_flags ? 0 : OPF_OPTIONAL,
			.why = "none, in any set" });
	emit(&m,
		(struct op){ .kind = OP_NO_NEW_PRIVS,
			.why = "setuid bits and file capabilities are dead" });
	emit_landlock(&m, tree);
	if (!plan->clone_flags && plan->policy->net == NET_NONE)
		emit(&m,
			(struct op){ .kind = OP_NO_SOCKETS,
				.why = "there is no network namespace",
				.source = &plan->policy->net_source });
	/* Last of the limits: the operations before need descriptors themselves. */
	emit_rlimit(&m, &settings_table[SETTING_OPEN_FILES]);
	emit(&m,
		(struct op){ .kind = OP_FILTER,
			.why = "system-call filter",
			.source = &plan->policy->syscalls.source });
	return m.result;
}
