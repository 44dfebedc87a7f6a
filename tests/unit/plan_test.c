/*
 * plan_test.c - policy + machine -> plan: every case of tests/golden, byte for byte.
 *
 * Runs in: the unit tests. A case is a directory: `facts` (a listing, on top of tests/golden/machine),
 * `policy` (a policy file) and `args` (one argument a line) go in, `plan.txt` is what must come
 * out: the plan as text, or the error. CARREL_GOLDEN_WRITE=1 writes them anew, to be read.
 *
 * Whatever the golden file says, no plan may break what no_loose_ends() and only_asked_for() look at,
 * and its JSON is held against docs/plan.schema.json.
 */
#include "plan_fixture.h"

#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>

#include "plan/plan_build.h"
#include "plan/plan_print.h"
#include "plan/uapi.h"

#define GOLDEN CARREL_SOURCE_DIR "/tests/golden"
#define VALIDATOR CARREL_SOURCE_DIR "/tests/lib/validate_report.py"
#define SESSION "SESSION"

enum { CASES_LEAST = 40, CASES_MAX = 128 };

struct golden {
	const char *name;
	struct arena arena;
	struct machine machine;
	struct policy policy;
	struct policy_names names;
	struct policy_resolver resolver;
	struct embedded_text *texts;
	struct plan plan;
	struct error e;
	const char *argv[32];
	int argc, next;
	int result;
	bool is_broken; /* something that holds for every plan does not hold */
	char *text;     /* of the plan or of the error */
	size_t used;
};

static char *golden_path(struct golden *g, const char *file)
{
	return arena_format(&g->arena, "%s/%s/%s", GOLDEN, g->name, file);
}

static int keep_text(void *context, const void *data, size_t size)
{
	struct golden *g = context;

	if (size >= TEXT_MAX - g->used)
		return -ENOSPC;
	memcpy(g->text + g->used, data, size);
	g->used += size;
	g->text[g->used] = '\0';
	return 0;
}

/* --- from a case to its plan ------------------------------------------------------------------ */

static void read_arguments(struct golden *g)
{
	char *text = read_text(&g->arena, golden_path(g, "args"));

	g->argv[g->argc++] = "carrel";
	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n');

		assert_true(end && g->argc < (int)COUNT(g->argv) - 1);
		*end = '\0';
		g->argv[g->argc++] = line;
		line = end + 1;
	}
}

/* The shipped texts, and one more: the profile that most cases have. */
static void prepare_resolver(struct golden *g)
{
	char *profile = read_text(&g->arena, GOLDEN "/profile");

	g->texts = arena_array(&g->arena, embedded_text_count + 1, sizeof(*g->texts));
	assert_true(g->texts && profile);
	memcpy(g->texts, embedded_texts, embedded_text_count * sizeof(*g->texts));
	g->texts[embedded_text_count] =
		(struct embedded_text){ "golden", profile, strlen(profile) };
	g->resolver = (struct policy_resolver){
		.cwd = g->machine.facts.cwd,
		.names = &g->names,
		.texts = g->texts,
		.text_count = embedded_text_count + 1,
	};
}

static void name_places(struct golden *g)
{
	const struct facts *f = &g->machine.facts;

	g->names = (struct policy_names){
		.home = f->home,
		.workspace = f->workspace,
		.scratch = f->scratch_dir,
		.xdg_config_home = arena_format(&g->arena, "%s/.config", f->home),
		.xdg_cache_home = arena_format(&g->arena, "%s/.cache", f->home),
		.xdg_data_home = arena_format(&g->arena, "%s/.local/share", f->home),
		.xdg_state_home = arena_format(&g->arena, "%s/.local/state", f->home),
	};
}

static int build(struct golden *g)
{
	char *policy = read_text(&g->arena, golden_path(g, "policy"));
	int r = policy_add_arguments(
		&g->policy, g->argc, g->argv, 1, &g->resolver, NULL, 0, &g->next, &g->e);

	if (r >= 0 && policy)
		r = policy_add_text(&g->policy, LAYER_FILE, "/etc/golden/policy", policy,
			strlen(policy), &g->resolver, &g->e);
	if (r >= 0)
		r = policy_finish(&g->policy, "golden", &g->resolver, &g->e);
	if (r < 0)
		return r;
	machine_place(&g->machine, &g->policy);
	name_places(g);
	r = policy_expand(&g->policy, &g->names, &g->e);
	if (r < 0)
		return r;
	machine_facts(&g->machine, &g->policy);
	g->machine.facts.saves_outputs = g->policy.output_budget.set;
	return plan_build(&g->plan, &g->arena, &g->policy, &g->machine.facts, g->argv + g->next,
		NULL, 123, &g->e);
}

static void start(struct golden *g, const char *name)
{
	*g = (struct golden){ .name = name };
	assert_int_equal(arena_init(&g->arena, 256 << 20), 0);
	g->text = arena_alloc(&g->arena, TEXT_MAX);
	g->machine.arena = &g->arena;
	policy_init(&g->policy, &g->arena);
	assert_true(machine_read(&g->machine, GOLDEN "/machine"));
	(void)machine_read(&g->machine, golden_path(g, "facts"));
	read_arguments(g);
	name_places(g);
	prepare_resolver(g);
	g->result = build(g);
}

static void print(struct golden *g, bool json)
{
	const struct plan_view view = {
		.plan = &g->plan, .session = SESSION, .write = keep_text, .context = g
	};

	g->used = 0;
	if (g->result < 0)
		g->used = error_format(&g->e, g->text, TEXT_MAX);
	else
		assert_int_equal(plan_print(&view, json), 0);
}

/* --- what holds for every plan ---------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void broken(
	struct golden *g, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_error("%s: %s\n", g->name, text);
	g->is_broken = true;
}

static bool makes_slot(const struct op *op)
{
	return op->kind == OP_CLONE || op->kind == OP_TMPFS || op->kind == OP_PICK ||
		op->kind == OP_OVERLAY || op->kind == OP_PROC || op->kind == OP_DEVPTS;
}

static bool uses_slot(const struct op *op)
{
	return op->kind == OP_ATTACH || op->kind == OP_MKDIR || op->kind == OP_MKFILE ||
		op->kind == OP_SYMLINK || op->kind == OP_ROOT_NEW ||
		op->kind == OP_ROOT_PIVOT || op->kind == OP_NO_NESTED;
}

static bool is_made(const struct plan *p, size_t before, uint16_t slot)
{
	for (size_t i = 0; i < before; i++)
		if (makes_slot(&p->ops[i]) && p->ops[i].slot == slot)
			return true;
	return false;
}

static bool has_directory(const struct plan *p, size_t before, uint16_t slot, const char *path)
{
	size_t length = path_parent_length(path);

	if (!strchr(path, '/'))
		return true;
	for (size_t i = 0; i < before; i++)
		if (p->ops[i].kind == OP_MKDIR && p->ops[i].slot == slot &&
			strlen(p->ops[i].path) == length &&
			!strncmp(p->ops[i].path, path, length))
			return true;
	return false;
}

/* What an operation needs was made by an earlier one; the filter closes the plan. */
static void no_loose_ends(struct golden *g)
{
	const struct plan *p = &g->plan;

	assert_true(p->op_count > 0 && p->ops[p->op_count - 1].kind == OP_FILTER);
	for (size_t i = 0; i < p->op_count; i++) {
		const struct op *op = &p->ops[i];
		bool fine = true;

		if (makes_slot(op))
			fine = !is_made(p, i, op->slot);
		if (uses_slot(op))
			fine = is_made(p, i, op->slot);
		if (op->kind == OP_PICK || op->kind == OP_OVERLAY)
			fine = fine && is_made(p, i, op->from);
		if (op->kind == OP_MKDIR || op->kind == OP_MKFILE || op->kind == OP_SYMLINK)
			fine = fine && has_directory(p, i, op->slot, op->path);
		for (size_t j = 0; j < i && op->kind == OP_ATTACH; j++)
			fine = fine &&
				(p->ops[j].kind != OP_ATTACH ||
					strcmp(p->ops[j].path, op->path) != 0);
		if (!fine)
			broken(g, "operation %zu hangs in the air", i);
	}
	for (size_t i = 0; i < p->entry_count; i++) {
		size_t length = path_parent_length(p->entries[i].path);
		bool fine = !strchr(p->entries[i].path, '/');

		for (size_t j = 0; j < i && !fine; j++)
			fine = strlen(p->entries[j].path) == length &&
				!strncmp(p->entries[j].path, p->entries[i].path, length);
		if (!fine)
			broken(g, "the session lacks the parent of %s", p->entries[i].path);
	}
}

static bool may_write(const struct golden *g, const char *path)
{
	const struct facts *f = &g->machine.facts;

	if (g->policy.workspace_mode == WORKSPACE_DIRECT && path_below(f->workspace, path))
		return true;
	if (path_below(f->session_dir, path))
		return true;
	for (size_t i = 0; i < f->path_count; i++)
		if ((f->paths[i].rule->kind == PATH_WRITE ||
			    f->paths[i].rule->kind == PATH_BIND_RW) &&
			path_below(f->paths[i].source, path))
			return true;
	return false;
}

/* As root: what others could not read, and a line of the policy reads in itself. */
static bool may_map(const struct golden *g, const char *path)
{
	const struct facts *f = &g->machine.facts;

	if (may_write(g, path) || path_below(f->workspace, path))
		return true;
	for (size_t i = 0; i < f->path_count; i++) {
		mode_t need = S_ISDIR(f->paths[i].mode) ? S_IROTH | S_IXOTH : S_IROTH;

		if (f->paths[i].exists && f->paths[i].rule->kind != PATH_HIDE &&
			f->paths[i].rule->kind != PATH_PROTECT &&
			(f->paths[i].mode & need) != need && !strcmp(f->paths[i].source, path))
			return true;
	}
	return false;
}

/* Nothing of the host is writable, or shown as the command's own, but what was asked for. */
static void only_asked_for(struct golden *g)
{
	const struct plan *p = &g->plan;

	for (size_t i = 0; i < p->op_count; i++) {
		const struct op *op = &p->ops[i];

		if (op->kind != OP_CLONE)
			continue;
		if (!(op->flags & (OPF_RDONLY | OPF_DEV)) && !may_write(g, op->path))
			broken(g, "operation %zu makes %s writable", i, op->path);
		if ((op->flags & OPF_IDMAP) && !may_map(g, op->path))
			broken(g, "operation %zu opens %s", i, op->path);
	}
}

/* Without mounts: Landlock alone keeps what is hidden, and what may not be written. */
static void only_allowed(struct golden *g)
{
	const struct plan *p = &g->plan;
	const struct facts *f = &g->machine.facts;

	for (size_t i = 0; i < p->op_count; i++) {
		const struct op *op = &p->ops[i];

		if (p->clone_flags || op->kind != OP_LANDLOCK_PATH)
			continue;
		if ((op->value & LANDLOCK_ACCESS_FS_WRITE_FILE) &&
			!path_below("/dev", op->path) && !may_write(g, op->path))
			broken(g, "operation %zu makes %s writable", i, op->path);
		for (size_t j = 0; j < f->path_count; j++)
			if (f->paths[j].rule->kind == PATH_HIDE && f->paths[j].exists &&
				path_below(op->path, f->paths[j].path))
				broken(g, "operation %zu shows %s", i, f->paths[j].path);
	}
}

static void no_secret(struct golden *g)
{
	if (strstr(g->text, "hunter2"))
		broken(g, "the value of a caller's variable is shown");
}

/* --- the cases -------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text, size_t size)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, size), 0);
}

/* The first line that differs, or 0. */
static size_t first_difference(const char *a, const char *b)
{
	size_t line = 1;

	for (; *a && *a == *b; a++, b++)
		line += *a == '\n';
	return *a == *b ? 0 : line;
}

static bool check_case(const char *name, const char *directory)
{
	struct golden *g = calloc(1, sizeof(*g));
	bool write = getenv("CARREL_GOLDEN_WRITE") != NULL;

	assert_non_null(g);
	start(g, name);
	print(g, false);
	const char *path = golden_path(g, "plan.txt"), *expected = read_text(&g->arena, path);
	if (write)
		write_file(path, g->text, g->used);
	size_t line = expected ? first_difference(expected, g->text) : 1;
	if (line && !write)
		print_error("%s: line %zu of %s is not what comes out:\n%s\n", name, line, path,
			g->text);
	no_secret(g);
	if (g->result >= 0) {
		no_loose_ends(g);
		only_asked_for(g);
		only_allowed(g);
		print(g, true);
		no_secret(g);
		write_file(arena_format(&g->arena, "%s/%s.json", directory, name), g->text,
			g->used);
	}
	bool fine = (!line || write) && !g->is_broken;
	arena_free(&g->arena);
	free(g);
	return fine;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t list_cases(char **ret_names, size_t max)
{
	DIR *dir = opendir(GOLDEN);
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && count < max)
			ret_names[count++] = strdup(entry->d_name);
	if (dir)
		(void)closedir(dir);
	qsort(ret_names, count, sizeof(*ret_names), compare_names);
	return count;
}

static void validate(const char *options, const char *dir, const char *name)
{
	char *script, *argv[] = { (char *)"sh", (char *)"-c", NULL, NULL };
	char *env[] = { NULL };
	int status = 0;
	pid_t pid;

	assert_true(asprintf(&script, "exec %s --schema plan %s %s/%s.json", VALIDATOR, options,
			    dir, name) > 0);
	argv[2] = script;
	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	free(script);
}

static char json_dir[] = "/tmp/carrel-plan-test-XXXXXX";

static void test_case(void **state)
{
	assert_true(check_case(*state, json_dir));
}

/* Behind all cases: one program for all documents, it is slow to start. */
static void test_documents(void **state)
{
	(void)state;
	validate("--docs", json_dir, "*");
	validate("--strict", json_dir, "overlay-root");
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(json_dir) ? 0 : -1;
}

static int remove_directory(void **state)
{
	DIR *dir = opendir(json_dir);
	struct dirent *entry;

	(void)state;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	(void)closedir(dir);
	return rmdir(json_dir);
}

/* Each case is a test of its own, by the name of its directory. */
int main(void)
{
	struct CMUnitTest tests[CASES_MAX + 1] = { 0 };
	char *names[CASES_MAX];
	size_t count = list_cases(names, CASES_MAX);

	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest){
			.name = names[i], .test_func = test_case, .initial_state = names[i]
		};
	tests[count] = (struct CMUnitTest)cmocka_unit_test(test_documents);
	int failed = _cmocka_run_group_tests(
		"golden", tests, count + 1, make_directory, remove_directory);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	return failed + (count < CASES_LEAST);
}
