/*
 * plan_print.c - a plan as text and as one JSON document; see plan_print.h and docs/plan.md.
 *
 * Runs in: carrel-policy. PURE.
 */
#include "plan/plan_print.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "plan/env.h"
#include "plan/plan_printer.h"
#include "plan/settings.h"

enum { COLUMN_STATE = 22, COLUMN_WHAT = 22, COLUMN_WHY = 72, COLUMN_ENV = 28 };

/* Begin a list of the document. In the text it is a title, and only if something is below it. */
static void begin_list(struct printer *o, const char *key, const char *title, bool any)
{
	printer_array(o, key);
	if (any)
		printer_format(o, "\n%s\n", title);
}

static void end_line(struct printer *o)
{
	printer_own(o, "\n");
	printer_end_object(o);
}

/* --- walls ------------------------------------------------------------------------------------ */

static void put_walls(struct printer *o)
{
	static const struct {
		unsigned long flag;
		const char *name;
	} namespaces[] = { { CLONE_NEWUSER, "user" }, { CLONE_NEWNS, "mount" },
		{ CLONE_NEWPID, "pid" }, { CLONE_NEWIPC, "ipc" }, { CLONE_NEWUTS, "uts" },
		{ CLONE_NEWNET, "net" }, { CLONE_NEWCGROUP, "cgroup" } };

	printer_own(o, "\nwalls\n");
	printer_object(o, "walls");
	for (int i = 0; i < WALL_COUNT; i++) {
		const struct wall_fact *w = &o->plan->walls[i];
		const char *name = plan_wall_name((enum wall)i);

		printer_object(o, name);
		printer_format(o, "  %s", name);
		printer_pad(o, COLUMN_STATE);
		printer_string(o, "state", "", plan_wall_states[w->state]);
		printer_string(o, "why", ": ", w->why);
		end_line(o);
	}
	printer_end_object(o);
	printer_array(o, "cloned");
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		if (o->plan->clone_flags & namespaces[i].flag)
			printer_string(o, NULL, NULL, namespaces[i].name);
	printer_end_array(o);
}

/* --- operations ------------------------------------------------------------------------------- */

static void put_flags(struct printer *o, const struct op *op)
{
	const char *before = " (";

	printer_array(o, "flags");
	for (const struct plan_flag_word *f = plan_flag_words; f->word; f++) {
		if (!(op->flags & f->flag))
			continue;
		printer_string(o, NULL, before, f->word);
		if (f->flag == OPF_IDMAP)
			printer_format(o, " %u:%u", o->plan->idmaps[op->from].disk_uid,
				o->plan->idmaps[op->from].disk_gid);
		before = ", ";
	}
	printer_own(o, *before == ',' ? ")" : "");
	printer_end_array(o);
}

static uint64_t handled_rights(const struct plan *plan)
{
	uint64_t handled = 0;

	for (size_t i = 0; i < plan->op_count; i++)
		if (plan->ops[i].kind == OP_LANDLOCK_NEW)
			handled = plan->ops[i].value;
	return handled;
}

static void put_rights(struct printer *o, const struct op *op)
{
	bool all = op->value == handled_rights(o->plan);
	const char *before = "";

	printer_array(o, "rights");
	printer_own(o, all ? "everything" : "");
	for (unsigned bit = 0; bit < 64 && (o->as_json || !all); bit++) {
		const char *word = plan_word_right(bit);
		char unknown[16];

		if (!(op->value & (UINT64_C(1) << bit)))
			continue;
		(void)snprintf(unknown, sizeof(unknown), "right-%u", bit);
		printer_string(o, NULL, before, word ? word : unknown);
		before = " ";
	}
	printer_end_array(o);
}

static void put_skeleton(struct printer *o, const struct op *op)
{
	printer_number(o, "slot", "slot ", op->slot);
	printer_string(o, "path", ": ", op->path);
	if (op->kind == OP_SYMLINK) {
		printer_string(o, "target", " -> ", op->text);
		return;
	}
	printer_number(o, "mode", NULL, op->value);
	printer_format(o, " (%04o)", (unsigned)op->value);
	if (op->kind != OP_MKFILE)
		return;
	printer_number(o, "bytes", op->text ? ", " : NULL, op->text ? strlen(op->text) : 0);
	printer_own(o, op->text ? " bytes" : "");
}

static void put_clone(struct printer *o, const struct op *op)
{
	printer_string(o, "path", " <- ", op->path);
	printer_known(o, "idmap", NULL, op->flags & OPF_IDMAP, op->from);
	if (!(op->flags & OPF_CHECKED)) {
		printer_known(o, "expected", NULL, false, 0);
		return;
	}
	printer_object(o, "expected");
	printer_number(o, "dev_major", NULL, major(op->dev));
	printer_number(o, "dev_minor", NULL, minor(op->dev));
	printer_number(o, "ino", NULL, op->ino);
	printer_end_object(o);
}

static void put_new_mount(struct printer *o, const struct op *op)
{
	printer_number(o, "slot", "slot ", op->slot);
	if (op->kind == OP_CLONE)
		put_clone(o, op);
	if (op->kind == OP_PICK || op->kind == OP_OVERLAY)
		printer_number(o, "from", " <- slot ", op->from);
	if (op->kind == OP_PICK)
		printer_string(o, "path", ": ", op->path);
	if (op->kind == OP_OVERLAY) {
		printer_own(o, " below");
		printer_number(o, "store", ", slot ", op->value);
		printer_own(o, " above");
	}
	if (op->kind == OP_TMPFS)
		printer_value(o, "size", ", at most ", op->value > 0,
			&settings_table[SETTING_SCRATCH_SIZE], op->value);
	put_flags(o, op);
}

static void put_limit(struct printer *o, const struct op *op)
{
	const struct setting *s = plan_rlimit_setting(op->from);
	bool seconds = s && s->kind == KIND_DURATION;

	printer_string(o, "limit", "", plan_word_rlimit(op->from));
	printer_number(o, "value", s ? NULL : " ", op->value);
	if (s) /* the document has it as the kernel takes it */
		printer_value(o, NULL, " ", true, s, seconds ? op->value * 1000 : op->value);
}

static void put_ports(struct printer *o)
{
	printer_own(o, "127.0.0.1:53");
	printer_array(o, "ports");
	for (size_t i = 0; i < o->plan->net_port_count; i++)
		printer_number_item(o, " *:", o->plan->net_ports[i]);
	printer_end_array(o);
}

/* Print the object of an operation. Kinds without a line here have none. */
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
		printer_number(o, "slot", "slot ", op->slot);
		printer_string(o, "path", " -> ", op->path);
		return;
	case OP_ROOT_SEAL:
		printer_own(o, "/ (private, read-only, nosuid, nodev)");
		return;
	case OP_NO_NESTED:
		printer_own(o, "user.max_user_namespaces = 0, through ");
		printer_number(o, "slot", "slot ", op->slot);
		return;
	case OP_ROOT_NEW:
	case OP_ROOT_PIVOT:
		printer_number(o, "slot", "slot ", op->slot);
		return;
	case OP_IDENTITY:
		printer_format(o, "uid %u, gid %u", f->uid, f->gid);
		return;
	case OP_RLIMIT:
		put_limit(o, op);
		return;
	case OP_LANDLOCK_NEW:
		printer_number(o, "abi", "ABI ", op->from);
		if (o->as_json)
			put_rights(o, op);
		return;
	case OP_LANDLOCK_PATH:
		printer_string(o, "path", "", op->path);
		printer_own(o, ": ");
		put_rights(o, op);
		return;
	case OP_NET_ADDRESS:
	case OP_NET_LOCAL:
	case OP_NET_PUBLISH:
		printer_string(o, "path", "", op->path);
		return;
	case OP_NET_LISTEN:
		put_ports(o);
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
	begin_list(o, "operations", "operations", true);
	for (size_t i = 0; i < o->plan->op_count; i++) {
		const struct op *op = &o->plan->ops[i];

		printer_object(o, NULL);
		printer_number(o, "number", NULL, i);
		printer_format(o, "  %3zu  ", i);
		printer_string(o, "name", "", plan_op_name(op->kind));
		printer_pad(o, COLUMN_WHAT);
		put_what(o, op);
		printer_pad(o, COLUMN_WHY);
		printer_own(o, "# ");
		printer_string(o, "why", "", op->why);
		printer_source(o, op->source);
		end_line(o);
	}
	printer_end_array(o);
}

/* --- what is not done by operations ----------------------------------------------------------- */

static void put_entries(struct printer *o)
{
	begin_list(o, "session_entries", "made in the session directory", true);
	for (size_t i = 0; i < o->plan->entry_count; i++) {
		printer_object(o, NULL);
		printer_string(o, "path", "  ", o->plan->entries[i].path);
		printer_own(o, o->plan->entries[i].is_file ? "" : "/");
		printer_string(
			o, "type", NULL, o->plan->entries[i].is_file ? "file" : "directory");
		printer_bool(o, "owned", o->plan->entries[i].owned);
		end_line(o);
	}
	printer_end_array(o);
}

static void put_absents(struct printer *o)
{
	begin_list(o, "absent", "protected and absent: moved to quarantine if it appears",
		o->plan->absent_count > 0);
	for (size_t i = 0; i < o->plan->absent_count; i++) {
		printer_object(o, NULL);
		printer_string(o, "path", "  ", o->plan->absents[i].path);
		printer_string(o, "root", NULL, o->plan->absents[i].root);
		printer_source(o, o->plan->absents[i].source);
		end_line(o);
	}
	printer_end_array(o);
}

static void put_promotions(struct printer *o)
{
	const struct policy *p = o->plan->policy;

	begin_list(o, "promote", "promoted where the command succeeds", p->promote_count > 0);
	for (size_t i = 0; i < p->promote_count; i++) {
		printer_object(o, NULL);
		printer_string(o, "pattern", "  ", p->promotes[i].pattern);
		printer_string(o, "directory", " -> ", p->promotes[i].dir);
		printer_source(o, &p->promotes[i].source);
		end_line(o);
	}
	printer_end_array(o);
	begin_list(
		o, "promote_to", "artifacts may also be promoted to", p->promote_to_count > 0);
	for (size_t i = 0; i < p->promote_to_count; i++) {
		printer_object(o, NULL);
		printer_string(o, "directory", "  ", p->promote_tos[i].dir);
		printer_source(o, &p->promote_tos[i].source);
		end_line(o);
	}
	printer_end_array(o);
}

static void put_notes(struct printer *o)
{
	const struct facts *f = o->plan->facts;

	begin_list(o, "notes", "noted in the repositories of the workspace", f->note_count > 0);
	for (size_t i = 0; i < f->note_count; i++) {
		printer_object(o, NULL);
		printer_string(o, "path", "  ", f->notes[i].path);
		printer_string(o, "why", ": ", f->notes[i].why);
		end_line(o);
	}
	printer_end_array(o);
}

/* The value of a variable of the caller's may be a secret: print only the name. */
static void put_environment(struct printer *o)
{
	begin_list(o, "environment", "environment", true);
	for (size_t i = 0; i < o->plan->env_count; i++) {
		const char *entry = o->plan->envp[i];
		const struct env_rule *rule = plan_env_rule(o->plan, entry);
		size_t length = strcspn(entry, "=");
		bool callers = rule && !rule->value;

		printer_object(o, NULL);
		printer_name(o, "name", "  ", entry, length);
		if (callers)
			printer_pad(o, COLUMN_ENV);
		printer_own(o, callers ? "the caller's" : "=");
		printer_string(o, "from", NULL,
			!rule             ? "carrel"
				: callers ? "caller"
					  : "policy");
		printer_string(o, "value", "", callers ? NULL : entry + length + 1);
		printer_source(o, rule ? &rule->source : NULL);
		end_line(o);
	}
	printer_end_array(o);
}

static void put_command(struct printer *o)
{
	const char *const *argv = o->plan->argv;
	bool any = argv && argv[0];

	begin_list(o, "command", "command", any);
	for (const char *before = "  "; any && *argv; argv++, before = " ")
		printer_word(o, before, *argv);
	printer_own(o, any ? "\n" : "");
	printer_end_array(o);
}

int plan_print(const struct plan_view *view, bool json)
{
	struct printer o = { .view = view, .plan = view->plan, .as_json = json };

	json_init(&o.json, o.buffer, sizeof(o.buffer), view->write, view->context);
	printer_object(&o, NULL);
	plan_print_session(&o);
	put_walls(&o);
	put_ops(&o);
	put_entries(&o);
	put_absents(&o);
	put_promotions(&o);
	put_notes(&o);
	put_environment(&o);
	put_command(&o);
	printer_end_object(&o);
	return json ? json_finish(&o.json) : writer_finish(&o.json.out);
}
