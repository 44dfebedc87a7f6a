/*
 * plan_print_session.c - the first part of a plan as text: the session; see plan_print.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include "base/text.h"
#include "plan/plan_printer.h"

enum { COLUMN_VALUE = 14 };

static void put_field(struct printer *o, const char *name)
{
	printer_own(o, "  ");
	printer_own(o, name);
	printer_pad(o, COLUMN_VALUE);
}

static void put_identity(struct printer *o)
{
	const struct facts *f = o->plan->facts;

	put_field(o, "identity");
	if (f->privileged && o->view->session)
		printer_format(o,
			"privileged: uid %u and gid %u inside, to the host a uid and gid that "
			"nobody else has",
			f->uid, f->gid);
	else if (f->privileged)
		printer_format(o,
			"privileged: uid %u and gid %u inside, to the host uid %u and gid %u",
			f->uid, f->gid, f->kernel_uid, f->kernel_gid);
	else
		printer_format(o, "user: uid %u and gid %u, inside as outside", f->uid, f->gid);
	printer_char(o, '\n');
}

static void put_scratch(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	put_field(o, "scratch");
	printer_text(o, o->plan->facts->scratch_dir);
	if (p->scratch_size.set) {
		printer_own(o, ", in memory, at most ");
		printer_size(o, p->scratch_size.value);
		printer_source(o, &p->scratch_size.source);
	}
	if (p->keep.on) {
		printer_own(o, ", kept at the end");
		printer_source(o, &p->keep.source);
	} else if (p->keep_for_ms.set) {
		printer_own(o, ", kept for ");
		printer_duration(o, p->keep_for_ms.value);
		printer_source(o, &p->keep_for_ms.source);
	} else {
		printer_own(o, ", removed at the end");
	}
	printer_char(o, '\n');
}

static void put_time_limit(
	struct printer *o, const char *name, const struct number_value *limit)
{
	if (!limit->set && !limit->value)
		return;
	put_field(o, name);
	printer_duration(o, limit->value);
	printer_source(o, &limit->source);
	printer_char(o, '\n');
}

/* Where the limits that are no operations are held: docs/limits.md. */
static void put_limits(struct printer *o)
{
	const struct policy *p = o->plan->policy;
	char text[32];

	if (p->memory.set) {
		put_field(o, "memory");
		printer_size(o, p->memory.value);
		printer_source(o, &p->memory.source);
		printer_char(o, '\n');
	}
	if (p->pids.set) {
		put_field(o, "pids");
		printer_format(o, "%llu", (unsigned long long)p->pids.value);
		printer_source(o, &p->pids.source);
		printer_char(o, '\n');
	}
	if (p->cpus_milli.set) {
		put_field(o, "cpus");
		text_format_thousandths(p->cpus_milli.value, text, sizeof(text));
		printer_own(o, text);
		printer_source(o, &p->cpus_milli.source);
		printer_char(o, '\n');
	}
	/* Of a live session; `run` has no use for them. */
	if (p->lifetime_ms.source.file)
		put_time_limit(o, "lifetime", &p->lifetime_ms);
	if (p->idle_timeout_ms.source.file)
		put_time_limit(o, "idle-timeout", &p->idle_timeout_ms);
}

static void put_output(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	if (p->output_budget.set) {
		put_field(o, "output");
		printer_format(o, "%llu characters of each stream are shown",
			(unsigned long long)p->output_budget.value);
		printer_source(o, &p->output_budget.source);
		printer_char(o, '\n');
	}
	if (p->output_max.set) {
		put_field(o, "output-max");
		printer_size(o, p->output_max.value);
		printer_source(o, &p->output_max.source);
		printer_char(o, '\n');
	}
	if (p->merge_output.on) {
		put_field(o, "stderr");
		printer_own(o, "goes where stdout goes");
		printer_source(o, &p->merge_output.source);
		printer_char(o, '\n');
	}
}

static void put_filter(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	put_field(o, "syscalls");
	printer_text(o, p->syscalls.value ? p->syscalls.value : "default");
	if (p->syscall_rule_count)
		printer_format(o, " and %zu `syscall` lines", p->syscall_rule_count);
	if (p->nested.on)
		printer_own(o, ", nested");
	printer_format(o, ", %u instructions", o->plan->filter_count);
	printer_source(o, &p->syscalls.source);
	printer_char(o, '\n');
}

static void put_switches(struct printer *o)
{
	const struct policy *p = o->plan->policy;
	const struct {
		const char *name;
		const struct flag_value *flag;
	} flags[] = {
		{ "nested", &p->nested },
		{ "degraded", &p->degraded },
		{ "dies", &p->die_with_parent },
	};
	static const char *const text[] = { "namespaces can be made inside",
		"accepted: walls may be missing", "with the process that started it" };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].flag->on)
			continue;
		put_field(o, flags[i].name);
		printer_own(o, text[i]);
		printer_source(o, &flags[i].flag->source);
		printer_char(o, '\n');
	}
}

void plan_print_session(struct printer *o)
{
	const struct plan *plan = o->plan;
	const struct policy *p = plan->policy;

	printer_own(o, "session\n");
	put_identity(o);
	put_field(o, "profile");
	printer_text(o, p->profile.value);
	printer_source(o, &p->profile.source);
	printer_own(o, "\n");
	put_field(o, "workspace");
	printer_text(o, plan->facts->workspace);
	printer_format(o, " (%s)", plan_workspace_modes[p->workspace_mode]);
	printer_source(o, &p->workspace.source);
	printer_own(o, "\n");
	put_scratch(o);
	put_field(o, "cwd");
	printer_text(o, plan->cwd);
	printer_own(o, "\n");
	put_field(o, "network");
	printer_own(o,
		p->net == NET_HOST          ? "the host's"
			: plan->clone_flags ? "none but the loopback"
					    : "none, and no socket for one");
	printer_source(o, &p->net_source);
	printer_char(o, '\n');
	put_filter(o);
	put_field(o, "terminal");
	printer_own(o, plan_tty_modes[p->tty]);
	printer_source(o, &p->tty_source);
	printer_char(o, '\n');
	put_time_limit(o, "timeout", &p->timeout_ms);
	put_time_limit(o, "grace", &p->grace_ms);
	put_limits(o);
	put_output(o);
	put_switches(o);
	if (p->report.value) {
		put_field(o, "report");
		printer_text(o, p->report.value);
		printer_source(o, &p->report.source);
		printer_char(o, '\n');
	}
}
