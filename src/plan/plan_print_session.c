/*
 * plan_print_session.c - the first part of a plan: the session; see plan_print.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include <stdio.h>
#include <string.h>

#include "plan/plan_printer.h"
#include "plan/settings.h"

enum { COLUMN_VALUE = 14 };

static void put_field(struct printer *o, const char *name)
{
	printer_own(o, "  ");
	printer_own(o, name);
	printer_pad(o, COLUMN_VALUE);
}

static void end_field(struct printer *o, const struct source *source)
{
	printer_place(o, source);
	printer_own(o, "\n");
}

static void put_identity(struct printer *o)
{
	const struct facts *f = o->plan->facts;
	bool known = !f->privileged || !o->view->session;

	printer_object(o, "identity");
	printer_string(o, "mode", NULL, f->privileged ? "privileged" : "user");
	printer_number(o, "uid", NULL, f->uid);
	printer_number(o, "gid", NULL, f->gid);
	printer_known(o, "kernel_uid", NULL, known, f->kernel_uid);
	printer_known(o, "kernel_gid", NULL, known, f->kernel_gid);
	printer_array(o, "idmaps");
	for (size_t i = 0; i < o->plan->idmap_count; i++) {
		printer_object(o, NULL);
		printer_number(o, "disk_uid", NULL, o->plan->idmaps[i].disk_uid);
		printer_number(o, "disk_gid", NULL, o->plan->idmaps[i].disk_gid);
		printer_end_object(o);
	}
	printer_end_array(o);
	printer_end_object(o);
	put_field(o, "identity");
	if (!f->privileged)
		printer_format(o, "user: uid %u and gid %u, inside as outside", f->uid, f->gid);
	else
		printer_format(o, "privileged: uid %u and gid %u inside, to the host ", f->uid,
			f->gid);
	if (f->privileged && known)
		printer_format(o, "uid %u and gid %u", f->kernel_uid, f->kernel_gid);
	else if (f->privileged)
		printer_own(o, "a uid and gid that nobody else has");
	end_field(o, NULL);
}

static void put_profile(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	put_field(o, "profile");
	printer_string(o, "profile", "", p->profile.value);
	printer_source(o, &p->profile.source);
	end_field(o, NULL);
}

static void put_network(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	printer_string(o, "net", NULL, settings_table[SETTING_NET].words[p->net]);
	put_field(o, "network");
	printer_own(o,
		p->net == NET_HOST             ? "the host's"
			: p->net == NET_ALLOW  ? "what the policy allows, by name"
			: o->plan->clone_flags ? "none but the loopback"
					       : "none, and no socket for one");
	end_field(o, &p->net_source);
}

static void put_workspace(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	printer_object(o, "workspace");
	put_field(o, "workspace");
	printer_string(o, "path", "", o->plan->facts->workspace);
	printer_string(o, "mode", " (", plan_workspace_modes[p->workspace_mode]);
	printer_own(o, ")");
	printer_source(o, &p->workspace.source);
	end_field(o, NULL);
	printer_end_object(o);
}

/* A number that no layer set and that has no default is printed as null. */
static void put_part(
	struct printer *o, enum setting_id id, const char *key, const char *before, bool told)
{
	const struct setting *s = &settings_table[id];
	const struct number_value *n = policy_number(o->plan->policy, s);

	printer_value(o, key, told && n->set ? before : NULL, n->set || n->value, s, n->value);
	printer_place(o, told && n->set ? &n->source : NULL);
}

static void put_scratch(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	printer_object(o, "scratch");
	put_field(o, "scratch");
	printer_string(o, "path", "", o->plan->facts->scratch_dir);
	printer_string(o, "base", NULL, o->plan->facts->scratch_base);
	put_part(o, SETTING_SCRATCH_SIZE, "size", ", in memory, at most ", true);
	printer_bool(o, "keep", p->keep.on);
	put_part(o, SETTING_KEEP_FOR, "keep_for_ms", ", kept for ", !p->keep.on);
	if (p->keep.on)
		printer_own(o, ", kept at the end");
	else if (!p->keep_for_ms.set)
		printer_own(o, ", removed at the end");
	end_field(o, p->keep.on ? &p->keep.source : NULL);
	printer_end_object(o);
}

static void put_filter(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	printer_object(o, "filter");
	put_field(o, "syscalls");
	printer_string(o, "name", "", p->syscalls.value ? p->syscalls.value : "default");
	printer_number(
		o, "lines", p->syscall_rule_count ? " and " : NULL, p->syscall_rule_count);
	printer_own(o, p->syscall_rule_count ? " `syscall` lines" : "");
	printer_own(o, p->nested.on ? ", nested" : "");
	printer_number(o, "instructions", ", ", o->plan->filter_count);
	printer_own(o, " instructions");
	printer_source(o, &p->syscalls.source);
	end_field(o, NULL);
	printer_end_object(o);
}

/*
 * The document's key of a setting that is a number: its name, and the unit of a duration or of
 * processors.
 */
static void key_of(const struct setting *s, char *ret, size_t size)
{
	const char *unit = s->kind == KIND_DURATION ? "_ms"
		: s->kind == KIND_CPUS              ? "_milli"
						    : "";

	(void)snprintf(ret, size, "%s%s", s->name, unit);
	for (char *c = ret; *c; c++)
		*c = (char)(*c == '-' ? '_' : *c);
}

/*
 * Print the limits that are no operations: docs/limits.md says who enforces them. Those of live
 * sessions are in the text only if somebody set them: `run` has no use for them.
 */
static void put_limits(struct printer *o)
{
	static const enum setting_id limits[] = { SETTING_TIMEOUT, SETTING_GRACE,
		SETTING_MEMORY, SETTING_PIDS, SETTING_CPUS, SETTING_LIFETIME,
		SETTING_IDLE_TIMEOUT, SETTING_OUTPUT_BUDGET, SETTING_OUTPUT_MAX };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct setting *s = &settings_table[limits[i]];
		const struct number_value *n = policy_number(o->plan->policy, s);
		bool live = s->id == SETTING_LIFETIME || s->id == SETTING_IDLE_TIMEOUT;
		bool budget = s->id == SETTING_OUTPUT_BUDGET;
		char key[64];

		key_of(s, key, sizeof(key));
		printer_value(o, key, NULL, n->set || n->value, s, n->value);
		if (live ? !n->source.file : !n->set && !n->value)
			continue;
		put_field(o, budget ? "output" : s->name);
		printer_value(o, NULL, "", true, s, n->value);
		printer_own(o, budget ? " characters of each stream are shown" : "");
		end_field(o, &n->source);
	}
}

static void put_switches(struct printer *o)
{
	const struct policy *p = o->plan->policy;
	const struct {
		const char *key, *name, *text;
		const struct flag_value *flag;
	} flags[] = {
		{ "merge_output", "stderr", "goes where stdout goes", &p->merge_output },
		{ "nested", "nested", "namespaces can be made inside", &p->nested },
		{ "degraded", "degraded", "accepted: walls may be missing", &p->degraded },
		{ "die_with_parent", "dies", "with the process that started it",
			&p->die_with_parent },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		printer_bool(o, flags[i].key, flags[i].flag->on);
		if (!flags[i].flag->on)
			continue;
		put_field(o, flags[i].name);
		printer_own(o, flags[i].text);
		end_field(o, &flags[i].flag->source);
	}
}

/*
 * Print the caller's descriptors. Whether they are open and may be passed is checked when the
 * command starts.
 */
static void put_passes(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	printer_array(o, "pass_fds");
	for (size_t i = 0; i < p->pass_count; i++) {
		const struct pass_rule *rule = &p->passes[i];

		put_field(o, "descriptor");
		printer_object(o, NULL);
		printer_number(o, "from", "the caller's ", (uint64_t)rule->pair.from);
		printer_number(o, "to", ", inside ", (uint64_t)rule->pair.to);
		printer_end_object(o);
		end_field(o, &rule->source);
	}
	printer_end_array(o);
}

static void put_policy(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	put_field(o, "terminal");
	printer_string(o, "tty", "", plan_tty_modes[p->tty]);
	end_field(o, &p->tty_source);
	put_passes(o);
	put_limits(o);
	put_switches(o);
	if (p->report.value)
		put_field(o, "report");
	printer_string(o, "report", "", p->report.value);
	if (p->report.value)
		end_field(o, &p->report.source);
}

/* In the text, profile and network come earlier than the document's object "policy" that has them. */
void plan_print_session(struct printer *o)
{
	const struct plan *plan = o->plan;

	printer_own(o, "session\n");
	printer_number(o, "schema", NULL, 1);
	printer_string(o, "carrel", NULL, CARREL_VERSION);
	printer_string(o, "session", NULL, plan->facts->session_name + strlen("carrel-"));
	put_identity(o);
	if (!o->as_json)
		put_profile(o);
	put_workspace(o);
	put_scratch(o);
	put_field(o, "cwd");
	printer_string(o, "cwd", "", plan->cwd);
	end_field(o, NULL);
	if (!o->as_json)
		put_network(o);
	put_filter(o);
	printer_object(o, "policy");
	if (o->as_json) {
		put_profile(o);
		put_network(o);
	}
	put_policy(o);
	printer_end_object(o);
}
