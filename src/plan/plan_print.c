/*
 * plan_print.c - a plan as text; see plan_print.h.
 *
 * Runs in: carrel-policy. PURE.
 */
#include "plan/plan_print.h"

#include <string.h>

#include "plan/env.h"
#include "plan/plan_printer.h"

enum { COLUMN_STATE = 22, COLUMN_WHAT = 22, COLUMN_WHY = 72, COLUMN_ENV = 28 };

/* --- walls ------------------------------------------------------------------------------------ */

static void put_walls(struct printer *o)
{
	printer_own(o, "\nwalls\n");
	for (int i = 0; i < WALL_COUNT; i++) {
		const struct wall_fact *w = &o->plan->walls[i];

		printer_format(o, "  %s", plan_wall_name((enum wall)i));
		printer_pad(o, COLUMN_STATE);
		printer_own(o, plan_wall_states[w->state]);
		if (w->why) {
			printer_own(o, ": ");
			printer_text(o, w->why);
		}
		printer_char(o, '\n');
	}
}

/* --- operations ------------------------------------------------------------------------------- */

static void put_flags(struct printer *o, const struct op *op)
{
	const char *before = " (";

	for (const struct plan_flag_word *f = plan_flag_words; f->word; f++) {
		if (!(op->flags & f->flag))
			continue;
		printer_own(o, before);
		printer_own(o, f->word);
		if (f->flag == OPF_IDMAP)
			printer_format(o, " %u:%u", o->plan->idmaps[op->from].disk_uid,
				o->plan->idmaps[op->from].disk_gid);
		before = ", ";
	}
	if (*before == ',')
		printer_char(o, ')');
}

static void put_rights(struct printer *o, const struct op *op)
{
	uint64_t handled = 0;
	const char *before = "";

	for (size_t i = 0; i < o->plan->op_count; i++)
		if (o->plan->ops[i].kind == OP_LANDLOCK_NEW)
			handled = o->plan->ops[i].value;
	if (op->value == handled) {
		printer_own(o, "everything");
		return;
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(op->value & (UINT64_C(1) << bit)))
			continue;
		const char *word = plan_word_right(bit);
		printer_own(o, before);
		if (word)
			printer_own(o, word);
		else
			printer_format(o, "right-%u", bit);
		before = " ";
	}
}

static void put_skeleton(struct printer *o, const struct op *op)
{
	printer_format(o, "slot %u: ", op->slot);
	printer_text(o, op->path);
	if (op->kind == OP_SYMLINK) {
		printer_own(o, " -> ");
		printer_text(o, op->text);
	} else {
		printer_format(o, " (%04o)", (unsigned)op->value);
		if (op->kind == OP_MKFILE && op->text)
			printer_format(o, ", %zu bytes", strlen(op->text));
	}
}

static void put_new_mount(struct printer *o, const struct op *op)
{
	printer_format(o, "slot %u", op->slot);
	switch ((int)op->kind) {
	case OP_CLONE:
		printer_own(o, " <- ");
		printer_text(o, op->path);
		break;
	case OP_PICK:
		printer_format(o, " <- slot %u: ", op->from);
		printer_text(o, op->path);
		break;
	case OP_OVERLAY:
		printer_format(
			o, " <- slot %u below, slot %u above", op->from, (unsigned)op->value);
		break;
	case OP_TMPFS:
		if (op->value) {
			printer_own(o, ", at most ");
			printer_size(o, op->value);
		}
		break;
	default:
		break;
	}
	put_flags(o, op);
}

static void put_limit(struct printer *o, const struct op *op)
{
	printer_own(o, plan_word_rlimit(op->from));
	printer_char(o, ' ');
	if (op->source == &o->plan->policy->cpu_time_ms.source)
		printer_duration(o, op->value * 1000);
	else if (op->source == &o->plan->policy->file_size.source)
		printer_size(o, op->value);
	else
		printer_format(o, "%llu", (unsigned long long)op->value);
}

static void put_what(struct printer *o, const struct op *op)
{
	const struct facts *f = o->plan->facts;

	switch (op->kind) {
	case OP_CLONE:
	case OP_TMPFS:
	case OP_PICK:
	case OP_OVERLAY:
	case OP_PROC:
	case OP_DEVPTS:
		put_new_mount(o, op);
		return;
	case OP_MKDIR:
	case OP_MKFILE:
	case OP_SYMLINK:
		put_skeleton(o, op);
		return;
	case OP_ATTACH:
		printer_format(o, "slot %u -> ", op->slot);
		printer_text(o, op->path);
		return;
	case OP_ROOT_SEAL:
		printer_own(o, "/ (private, read-only, nosuid, nodev)");
		return;
	case OP_ROOT_NEW:
	case OP_ROOT_PIVOT:
		printer_format(o, "slot %u", op->slot);
		return;
	case OP_NO_NESTED:
		printer_format(o, "user.max_user_namespaces = 0, through slot %u", op->slot);
		return;
	case OP_IDENTITY:
		printer_format(o, "uid %u, gid %u", f->uid, f->gid);
		return;
	case OP_RLIMIT:
		put_limit(o, op);
		return;
	case OP_LANDLOCK_NEW:
		printer_format(o, "ABI %u", op->from);
		return;
	case OP_LANDLOCK_PATH:
		printer_text(o, op->path);
		printer_own(o, ": ");
		put_rights(o, op);
		return;
	case OP_FILTER:
		printer_format(o, "%u instructions", o->plan->filter_count);
		return;
	case OP_KEYRING:
	case OP_ENTER_USER_NS:
	case OP_CAPABILITIES:
	case OP_NO_NEW_PRIVS:
	case OP_LANDLOCK_ON:
	case OP_NO_SOCKETS:
	case OP_HIDE_SELF:
	case OP_KIND_COUNT:
		return;
	}
}

static void put_ops(struct printer *o)
{
	printer_own(o, "\noperations\n");
	for (size_t i = 0; i < o->plan->op_count; i++) {
		const struct op *op = &o->plan->ops[i];

		printer_format(o, "  %3zu  %s", i, plan_op_name(op->kind));
		printer_pad(o, COLUMN_WHAT);
		put_what(o, op);
		printer_pad(o, COLUMN_WHY);
		printer_own(o, "# ");
		if (op->why)
			printer_text(o, op->why);
		printer_source(o, op->source);
		printer_char(o, '\n');
	}
}

/* --- what is not done by operations ----------------------------------------------------------- */

static void put_entries(struct printer *o)
{
	printer_own(o, "\nmade in the session directory\n");
	for (size_t i = 0; i < o->plan->entry_count; i++) {
		printer_own(o, "  ");
		printer_text(o, o->plan->entries[i].path);
		printer_own(o, o->plan->entries[i].is_file ? "\n" : "/\n");
	}
}

static void put_absents(struct printer *o)
{
	if (o->plan->absent_count)
		printer_own(o, "\nprotected and absent: moved to quarantine if it appears\n");
	for (size_t i = 0; i < o->plan->absent_count; i++) {
		printer_own(o, "  ");
		printer_text(o, o->plan->absents[i].path);
		printer_source(o, o->plan->absents[i].source);
		printer_char(o, '\n');
	}
}

static void put_promotions(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	if (p->promote_count)
		printer_own(o, "\npromoted where the command succeeds\n");
	for (size_t i = 0; i < p->promote_count; i++) {
		printer_own(o, "  ");
		printer_text(o, p->promotes[i].pattern);
		printer_own(o, " -> ");
		printer_text(o, p->promotes[i].dir);
		printer_source(o, &p->promotes[i].source);
		printer_char(o, '\n');
	}
	if (p->promote_to_count)
		printer_own(o, "\nartifacts may also be promoted to\n");
	for (size_t i = 0; i < p->promote_to_count; i++) {
		printer_own(o, "  ");
		printer_text(o, p->promote_tos[i].dir);
		printer_source(o, &p->promote_tos[i].source);
		printer_char(o, '\n');
	}
}

static void put_notes(struct printer *o)
{
	const struct facts *f = o->plan->facts;

	if (f->note_count)
		printer_own(o, "\nnoted in the repositories of the workspace\n");
	for (size_t i = 0; i < f->note_count; i++) {
		printer_own(o, "  ");
		printer_text(o, f->notes[i].path);
		printer_own(o, ": ");
		printer_text(o, f->notes[i].why);
		printer_char(o, '\n');
	}
}

static void put_environment(struct printer *o)
{
	printer_own(o, "\nenvironment\n");
	for (size_t i = 0; i < o->plan->env_count; i++) {
		const char *entry = o->plan->envp[i];
		const struct env_rule *rule = plan_env_rule(o->plan, entry);
		size_t length = strcspn(entry, "=");

		printer_own(o, "  ");
		if (rule && !rule->value) {
			/* The caller's: its name alone, its value may be a secret. */
			printer_bytes(o, entry, length, "\\");
			printer_pad(o, COLUMN_ENV);
			printer_own(o, "the caller's");
		} else {
			printer_text(o, entry);
		}
		if (rule)
			printer_source(o, &rule->source);
		printer_char(o, '\n');
	}
}

static void put_command(struct printer *o)
{
	const char *const *argv = o->plan->argv;

	if (!argv || !argv[0])
		return;
	printer_own(o, "\ncommand\n ");
	for (; *argv; argv++) {
		printer_char(o, ' ');
		printer_word(o, *argv);
	}
	printer_char(o, '\n');
}

int plan_print(const struct plan_view *view)
{
	struct printer o = { .view = view, .plan = view->plan };

	plan_print_session(&o);
	put_walls(&o);
	put_ops(&o);
	put_entries(&o);
	put_absents(&o);
	put_promotions(&o);
	put_notes(&o);
	put_environment(&o);
	put_command(&o);
	printer_flush(&o);
	return o.error;
}
