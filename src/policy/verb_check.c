/*
 * verb_check.c - finds everything that is wrong with a policy file, each fault with its line.
 *
 * Runs in: carrel-policy, outside, as the caller. May not: change anything.
 *
 * It reads a file as the launcher does, and that ends at the first fault. So it blanks a wrong line
 * out in the copy in memory, and reads the rest again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/text.h"
#include "host/facts/facts.h"
#include "host/load/policy_file.h"
#include "plan/embedded.h"
#include "policy/compile.h"
#include "policy/verbs.h"

extern char **environ;

#define SYSTEM_POLICY "/etc/carrel/policy"
enum { ARENA_SIZE = 256 << 20, FAULTS_MAX = 50 };

struct check {
	struct arena arena;         /* of one reading: reset for the next one */
	struct policy_file file;    /* its text is blanked out line by line */
	struct policy_loader files; /* those that it includes */
	struct policy_resolver resolver;
	struct policy_names names;
	enum layer layer;
	struct error fault; /* the last one that was found */
	char cwd[PATH_MAX / 2], path[PATH_MAX / 2];
};

/* Make up the names that a file may use, since it can be right on a machine that lacks them. */
static int make_names(struct check *c, struct error *e)
{
	const struct facts facts = {
		.workspace = "/workspace",
		.scratch_dir = "/tmp/carrel-SESSION/scratch",
	};

	int r = facts_names(&c->names, c->files.arena, &facts, (const char *const *)environ, e);
	if (r < 0)
		return r;
	if (!c->names.home)
		c->names.home = "/home";
	if (!c->names.xdg_runtime_dir)
		c->names.xdg_runtime_dir = "/run/user/0";
	return 0;
}

/* Calls and conditions of `syscall` lines: only the compiler knows their names. */
static int check_filter(struct check *c, const struct policy *p, struct error *e)
{
	const char *base = p->syscalls.value ? p->syscalls.value : "default";
	struct compile_line *lines =
		arena_array(&c->arena, p->syscall_rule_count + 1, sizeof(*lines));
	const void *data;
	size_t size;

	if (!lines)
		return error_no_memory(e, "policy");
	for (size_t i = 0; i < p->syscall_rule_count; i++)
		lines[i] = (struct compile_line){ p->syscall_rules[i].source.file,
			p->syscall_rules[i].source.line, p->syscall_rules[i].text };
	return compile_filter(&c->arena, base, lines, p->syscall_rule_count, &data, &size, e);
}

/* Check everything about a policy that does not depend on the machine. */
static int read_once(struct check *c, struct error *e)
{
	struct policy p;

	policy_init(&p, &c->arena);
	int r = policy_add_text(
		&p, c->layer, c->file.path, c->file.text, c->file.size, &c->resolver, e);
	if (r < 0)
		return r;
	r = policy_finish(&p, "agent", &c->resolver, e);
	if (r < 0)
		return r;
	r = policy_expand(&p, &c->names, e);
	if (r < 0)
		return r;
	if (p.syscall_rule_count)
		r = check_filter(c, &p, e);
	return r;
}

/* Blank out the line of this file that @e is about. False: it is about something else. */
static bool empty_line(struct check *c, const struct error *e)
{
	size_t length = strlen(c->file.path);
	char *text = (char *)(uintptr_t)c->file.text, *end = text + c->file.size;
	uint64_t line;

	if (strncmp(e->on, c->file.path, length) != 0 || e->on[length] != ':' ||
		text_parse_count(e->on + length + 1, &line) < 0)
		return false;
	while (--line && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		text = newline ? newline + 1 : end;
	}
	char *newline = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
	size_t size = (size_t)((newline ? newline : end) - text);
	memmove(text, text + size, (size_t)(end - text) - size);
	c->file.size -= size;
	return size > 0; /* if the line was empty already, the fault is elsewhere */
}

/* Returns the number of faults, which it has printed; -errno with @e: the file could not be checked. */
static int check_file(struct check *c, const char *path, struct error *e)
{
	bool absolute = path[0] == '/';
	int length = snprintf(c->path, sizeof(c->path), "%s%s%s", absolute ? "" : c->cwd,
		absolute ? "" : "/", path);
	int faults = 0;

	if (length < 0 || (size_t)length >= sizeof(c->path))
		return error_set(e, ERROR_POLICY, "policy", ENAMETOOLONG, path,
			"cannot read the policy file");
	if (!strcmp(c->path, SYSTEM_POLICY))
		c->files.layer = LAYER_SYSTEM;
	int r = policy_file_load(&c->files, c->path, &c->file, e);
	if (r < 0)
		return r;
	if (!strcmp(c->file.path, SYSTEM_POLICY))
		c->layer = LAYER_SYSTEM;
	while (faults < FAULTS_MAX) {
		c->fault.code = ERROR_NONE;
		c->fault.hint[0] = '\0';
		if (arena_init(&c->arena, ARENA_SIZE) < 0)
			return error_no_memory(e, "policy");
		r = read_once(c, &c->fault);
		arena_free(&c->arena);
		if (r >= 0)
			break;
		faults++;
		(void)error_report(&c->fault);
		if (!empty_line(c, &c->fault))
			break;
	}
	return faults;
}

static int check_in(struct arena *arena, const char *path, enum layer layer, struct error *e)
{
	struct check *c = arena_alloc(arena, sizeof(*c));

	if (!c)
		return error_no_memory(e, "policy");
	c->layer = layer;
	c->files.arena = arena;
	c->resolver = (struct policy_resolver){
		.cwd = getcwd(c->cwd, sizeof(c->cwd)) && c->cwd[0] == '/' ? c->cwd : NULL,
		.names = &c->names,
		.texts = embedded_texts,
		.text_count = embedded_text_count,
		.filters = embedded_filters,
		.filter_count = embedded_filter_count,
		.load = policy_file_load,
		.load_profile = policy_file_load_profile,
		.load_preset = policy_file_load_preset,
		.load_set = policy_file_load_set,
		.context = &c->files,
	};
	int r = make_names(c, e);
	if (r >= 0 && c->names.xdg_config_home) {
		c->files.profiles = arena_join(
			c->files.arena, c->names.xdg_config_home, '/', "carrel/profiles");
		c->files.presets = arena_join(
			c->files.arena, c->names.xdg_config_home, '/', "carrel/with");
	}
	return r < 0 ? r : check_file(c, path, e);
}

static int check_files(int argc, char **argv, enum layer layer, struct error *e)
{
	int faults = 0;

	for (int i = 0; i < argc; i++) {
		struct arena arena;

		if (arena_init(&arena, ARENA_SIZE) < 0)
			return error_no_memory(e, "policy");
		int r = check_in(&arena, argv[i], layer, e);
		arena_free(&arena);
		if (r < 0)
			return r;
		faults += r;
	}
	return faults;
}

int verb_check(int argc, char **argv, int first)
{
	static const char usage[] = "carrel policy check [--system] FILE ...";
	enum layer layer = LAYER_FILE;
	struct error e = { 0 };

	for (; first < argc && argv[first][0] == '-' && strcmp(argv[first], "--") != 0;
		first++) {
		if (!strcmp(argv[first], "--system")) {
			layer = LAYER_SYSTEM;
		} else if (!strcmp(argv[first], "--help") || !strcmp(argv[first], "-h")) {
			static const char help[] =
				"usage: carrel policy check [--system] FILE ...\n";

			return verb_write(NULL, help, sizeof(help) - 1) < 0 ? STATUS_CARREL : 0;
		} else {
			(void)error_set(&e, ERROR_USAGE, "options", 0, argv[first],
				"`carrel policy check` has no such option");
			error_hint(&e, "%s", usage);
			return error_report(&e);
		}
	}
	first += first < argc && !strcmp(argv[first], "--");
	if (first == argc) {
		(void)error_set(&e, ERROR_USAGE, "options", 0, NULL, "no policy file is named");
		error_hint(&e, "%s", usage);
		return error_report(&e);
	}
	int r = check_files(argc - first, argv + first, layer, &e);
	if (r < 0)
		return error_report(&e);
	return r ? STATUS_FINDINGS : 0;
}
