/*
 * plan_json.c - a plan as one JSON document; see plan_print.h and docs/plan.md.
 *
 * Runs in: carrel-policy. PURE.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/json.h"
#include "plan/env.h"
#include "plan/plan_print.h"

struct writer {
	const struct plan_view *view;
	const struct plan *plan;
	struct json json;
	int error; /* a text that could not be made; kept apart from the document's own errors */
};

static void put_string(struct writer *w, const char *key, const char *text)
{
	const char *shown = plan_view_text(w->view, text);

	if (text && !shown)
		w->error = -ENOMEM;
	if (key)
		json_key(&w->json, key);
	json_string(&w->json, shown);
}

static void put_unsigned(struct writer *w, const char *key, uint64_t value)
{
	json_key(&w->json, key);
	json_unsigned(&w->json, value);
}

static void put_bool(struct writer *w, const char *key, bool value)
{
	json_key(&w->json, key);
	json_bool(&w->json, value);
}

static void put_known(struct writer *w, const char *key, bool known, uint64_t value)
{
	json_key(&w->json, key);
	if (known)
		json_unsigned(&w->json, value);
	else
		json_null(&w->json);
}

/* A setting that nobody gave, and that has no default, is null. */
static void put_number(struct writer *w, const char *key, const struct number_value *number)
{
	put_known(w, key, number->set || number->value, number->value);
}

static void begin_object(struct writer *w, const char *key)
{
	if (key)
		json_key(&w->json, key);
	json_object_begin(&w->json);
}

static void begin_array(struct writer *w, const char *key)
{
	json_key(&w->json, key);
	json_array_begin(&w->json);
}

static void put_source(struct writer *w, const struct source *source)
{
	static const char *const layers[] = {
		[LAYER_DEFAULT] = "default",
		[LAYER_PROFILE] = "profile",
		[LAYER_SYSTEM] = "system",
		[LAYER_USER] = "user",
		[LAYER_FILE] = "file",
		[LAYER_COMMAND] = "command-line",
	};

	if (!source) {
		put_string(w, "source", NULL);
		return;
	}
	begin_object(w, "source");
	put_string(w, "layer", layers[source->layer]);
	put_string(w, "file", source->file);
	json_key(&w->json, "line");
	if (source->line)
		json_unsigned(&w->json, source->line);
	else
		json_null(&w->json);
	put_string(w, "setting", policy_source_setting(w->plan->policy, source));
	json_object_end(&w->json);
}

/* --- the session ------------------------------------------------------------------------------ */

static void put_identity(struct writer *w)
{
	const struct facts *f = w->plan->facts;
	bool known = !f->privileged || !w->view->session;

	begin_object(w, "identity");
	put_string(w, "mode", f->privileged ? "privileged" : "user");
	put_unsigned(w, "uid", f->uid);
	put_unsigned(w, "gid", f->gid);
	put_known(w, "kernel_uid", known, f->kernel_uid);
	put_known(w, "kernel_gid", known, f->kernel_gid);
	begin_array(w, "idmaps");
	for (size_t i = 0; i < w->plan->idmap_count; i++) {
		begin_object(w, NULL);
		put_unsigned(w, "disk_uid", w->plan->idmaps[i].disk_uid);
		put_unsigned(w, "disk_gid", w->plan->idmaps[i].disk_gid);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
	json_object_end(&w->json);
}

static void put_places(struct writer *w)
{
	const struct policy *p = w->plan->policy;
	const struct facts *f = w->plan->facts;

	begin_object(w, "workspace");
	put_string(w, "path", f->workspace);
	put_string(w, "mode", plan_workspace_modes[p->workspace_mode]);
	put_source(w, &p->workspace.source);
	json_object_end(&w->json);
	begin_object(w, "scratch");
	put_string(w, "path", f->scratch_dir);
	put_string(w, "base", f->scratch_base);
	put_number(w, "size", &p->scratch_size);
	put_bool(w, "keep", p->keep.on);
	put_number(w, "keep_for_ms", &p->keep_for_ms);
	json_object_end(&w->json);
	put_string(w, "cwd", w->plan->cwd);
}

static void put_settings(struct writer *w)
{
	const struct policy *p = w->plan->policy;

	begin_object(w, "policy");
	put_string(w, "profile", p->profile.value);
	put_source(w, &p->profile.source);
	put_bool(w, "nested", p->nested.on);
	put_bool(w, "degraded", p->degraded.on);
	put_bool(w, "die_with_parent", p->die_with_parent.on);
	put_string(w, "tty", plan_tty_modes[p->tty]);
	put_string(w, "net", p->net == NET_NONE ? "none" : "host");
	put_number(w, "timeout_ms", &p->timeout_ms);
	put_number(w, "grace_ms", &p->grace_ms);
	put_string(w, "report", p->report.value);
	put_number(w, "memory", &p->memory);
	put_number(w, "pids", &p->pids);
	put_number(w, "cpus_milli", &p->cpus_milli);
	put_number(w, "output_budget", &p->output_budget);
	put_number(w, "output_max", &p->output_max);
	put_bool(w, "merge_output", p->merge_output.on);
	put_number(w, "lifetime_ms", &p->lifetime_ms);
	put_number(w, "idle_timeout_ms", &p->idle_timeout_ms);
	json_object_end(&w->json);
	begin_object(w, "filter");
	put_string(w, "name", p->syscalls.value ? p->syscalls.value : "default");
	put_unsigned(w, "lines", p->syscall_rule_count);
	put_unsigned(w, "instructions", w->plan->filter_count);
	put_source(w, &p->syscalls.source);
	json_object_end(&w->json);
}

static void put_walls(struct writer *w)
{
	static const struct {
		unsigned long flag;
		const char *name;
	} namespaces[] = { { CLONE_NEWUSER, "user" }, { CLONE_NEWNS, "mount" },
		{ CLONE_NEWPID, "pid" }, { CLONE_NEWIPC, "ipc" }, { CLONE_NEWUTS, "uts" },
		{ CLONE_NEWNET, "net" }, { CLONE_NEWCGROUP, "cgroup" } };

	begin_object(w, "walls");
	for (int i = 0; i < WALL_COUNT; i++) {
		begin_object(w, plan_wall_name((enum wall)i));
		put_string(w, "state", plan_wall_states[w->plan->walls[i].state]);
		put_string(w, "why", w->plan->walls[i].why);
		json_object_end(&w->json);
	}
	json_object_end(&w->json);
	begin_array(w, "cloned");
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		if (w->plan->clone_flags & namespaces[i].flag)
			json_string(&w->json, namespaces[i].name);
	json_array_end(&w->json);
}

/* --- operations ------------------------------------------------------------------------------- */

static void put_flags(struct writer *w, const struct op *op)
{
	begin_array(w, "flags");
	for (const struct plan_flag_word *f = plan_flag_words; f->word; f++)
		if (op->flags & f->flag)
			json_string(&w->json, f->word);
	json_array_end(&w->json);
}

static void put_rights(struct writer *w, const struct op *op)
{
	begin_array(w, "rights");
	for (unsigned bit = 0; bit < 64; bit++)
		if (op->value & (UINT64_C(1) << bit))
			json_string(&w->json, plan_word_right(bit));
	json_array_end(&w->json);
}

static void put_clone(struct writer *w, const struct op *op)
{
	put_string(w, "path", op->path);
	put_known(w, "idmap", op->flags & OPF_IDMAP, op->from);
	if (!(op->flags & OPF_CHECKED)) {
		put_string(w, "expected", NULL);
		return;
	}
	begin_object(w, "expected");
	put_unsigned(w, "dev_major", major(op->dev));
	put_unsigned(w, "dev_minor", minor(op->dev));
	put_unsigned(w, "ino", op->ino);
	json_object_end(&w->json);
}

static void put_mount_op(struct writer *w, const struct op *op)
{
	put_unsigned(w, "slot", op->slot);
	if (op->kind == OP_CLONE)
		put_clone(w, op);
	if (op->kind == OP_PICK || op->kind == OP_OVERLAY)
		put_unsigned(w, "from", op->from);
	if (op->kind == OP_PICK)
		put_string(w, "path", op->path);
	if (op->kind == OP_OVERLAY)
		put_unsigned(w, "store", op->value);
	if (op->kind == OP_TMPFS)
		put_known(w, "size", op->value > 0, op->value);
	put_flags(w, op);
}

/* What an operation is about; kinds without a line here have nothing of their own. */
static void put_subject(struct writer *w, const struct op *op)
{
	switch ((int)op->kind) {
	case OP_CLONE:
	case OP_TMPFS:
	case OP_PICK:
	case OP_OVERLAY:
	case OP_PROC:
	case OP_DEVPTS:
		put_mount_op(w, op);
		return;
	case OP_MKDIR:
	case OP_MKFILE:
	case OP_SYMLINK:
		put_unsigned(w, "slot", op->slot);
		put_string(w, "path", op->path);
		if (op->kind == OP_SYMLINK)
			put_string(w, "target", op->text);
		else
			put_unsigned(w, "mode", op->value);
		if (op->kind == OP_MKFILE)
			put_unsigned(w, "bytes", op->text ? strlen(op->text) : 0);
		return;
	case OP_ATTACH:
		put_unsigned(w, "slot", op->slot);
		put_string(w, "path", op->path);
		return;
	case OP_ROOT_NEW:
	case OP_ROOT_PIVOT:
	case OP_NO_NESTED:
		put_unsigned(w, "slot", op->slot);
		return;
	case OP_RLIMIT:
		put_string(w, "limit", plan_word_rlimit(op->from));
		put_unsigned(w, "value", op->value);
		return;
	case OP_LANDLOCK_NEW:
		put_unsigned(w, "abi", op->from);
		put_rights(w, op);
		return;
	case OP_LANDLOCK_PATH:
		put_string(w, "path", op->path);
		put_rights(w, op);
		return;
	default:
		return;
	}
}

static void put_ops(struct writer *w)
{
	begin_array(w, "operations");
	for (size_t i = 0; i < w->plan->op_count; i++) {
		const struct op *op = &w->plan->ops[i];

		begin_object(w, NULL);
		put_unsigned(w, "number", i);
		put_string(w, "name", plan_op_name(op->kind));
		put_subject(w, op);
		put_string(w, "why", op->why);
		put_source(w, op->source);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
}

static void put_lists(struct writer *w)
{
	const struct plan *plan = w->plan;

	begin_array(w, "session_entries");
	for (size_t i = 0; i < plan->entry_count; i++) {
		begin_object(w, NULL);
		put_string(w, "path", plan->entries[i].path);
		put_string(w, "type", plan->entries[i].is_file ? "file" : "directory");
		put_bool(w, "owned", plan->entries[i].owned);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
	begin_array(w, "absent");
	for (size_t i = 0; i < plan->absent_count; i++) {
		begin_object(w, NULL);
		put_string(w, "path", plan->absents[i].path);
		put_string(w, "root", plan->absents[i].root);
		put_source(w, plan->absents[i].source);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
}

static void put_promotions(struct writer *w)
{
	const struct policy *p = w->plan->policy;
	const struct facts *f = w->plan->facts;

	begin_array(w, "promote");
	for (size_t i = 0; i < p->promote_count; i++) {
		begin_object(w, NULL);
		put_string(w, "pattern", p->promotes[i].pattern);
		put_string(w, "directory", p->promotes[i].dir);
		put_source(w, &p->promotes[i].source);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
	begin_array(w, "promote_to");
	for (size_t i = 0; i < p->promote_to_count; i++) {
		begin_object(w, NULL);
		put_string(w, "directory", p->promote_tos[i].dir);
		put_source(w, &p->promote_tos[i].source);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
	begin_array(w, "notes");
	for (size_t i = 0; i < f->note_count; i++) {
		begin_object(w, NULL);
		put_string(w, "path", f->notes[i].path);
		put_string(w, "why", f->notes[i].why);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
}

/* The value of what comes from the caller may be a secret: it is null. */
static void put_environment(struct writer *w)
{
	begin_array(w, "environment");
	for (size_t i = 0; i < w->plan->env_count; i++) {
		const char *entry = w->plan->envp[i];
		const struct env_rule *rule = plan_env_rule(w->plan, entry);
		size_t length = strcspn(entry, "=");

		begin_object(w, NULL);
		json_key(&w->json, "name");
		json_bytes(&w->json, entry, length);
		put_string(w, "from", !rule ? "carrel" : rule->value ? "policy" : "caller");
		put_string(w, "value", rule && !rule->value ? NULL : entry + length + 1);
		put_source(w, rule ? &rule->source : NULL);
		json_object_end(&w->json);
	}
	json_array_end(&w->json);
}

static void put_command(struct writer *w)
{
	begin_array(w, "command");
	for (const char *const *argv = w->plan->argv; argv && *argv; argv++)
		put_string(w, NULL, *argv);
	json_array_end(&w->json);
}

int plan_print_json(const struct plan_view *view)
{
	struct writer w = { .view = view, .plan = view->plan };
	char buffer[2048];

	json_init(&w.json, buffer, sizeof(buffer), view->write, view->context);
	json_object_begin(&w.json);
	put_unsigned(&w, "schema", 1);
	put_string(&w, "carrel", CARREL_VERSION);
	put_string(&w, "session", view->plan->facts->session_name + strlen("carrel-"));
	put_identity(&w);
	put_places(&w);
	put_settings(&w);
	put_walls(&w);
	put_ops(&w);
	put_lists(&w);
	put_promotions(&w);
	put_environment(&w);
	put_command(&w);
	json_object_end(&w.json);
	int r = json_finish(&w.json);
	return r < 0 ? r : w.error;
}
