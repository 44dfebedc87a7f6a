/*
 * policy_fixture.h - what the policy tests share: layers as texts, shipped texts and files that are
 * made up, and everything that came of them.
 *
 * Runs in: the unit tests.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/embedded.h"
#include "plan/policy.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED __attribute__((unused))

/* Shipped texts as the tests want them: small, and with one of each kind. */
#define SHIPPED(name_, text_) \
	{ \
		.name = (name_), .text = (text_), .size = sizeof(text_) - 1 \
	}
static const struct embedded_text shipped[] = {
	SHIPPED("agent",
		"# the usual\nread /\nnet none\nsyscalls default\ninclude hide\n"
		"protect $WORKSPACE/.git/config\nenv PATH\nunsetenv SECRET*\n"),
	SHIPPED("open", "read /\nwrite /srv\nnet host\ntimeout 9h\nsyscalls default\n"),
	SHIPPED("closed", "read /usr\nsyscalls strict\n"),
	SHIPPED("hide", "hide ~/.ssh\nhide ~/.config/*/token\nhide $XDG_RUNTIME_DIR/bus\n"),
	SHIPPED("looping", "syscalls default\nprofile looping\n"),
	SHIPPED("relative", "syscalls default\nread data\n"),
	SHIPPED("wrong", "syscalls default\nraed /\n"),
	SHIPPED("proxy.with", "# proxy - a network\nnet host\n"),
	SHIPPED("npm.cache", "# npm - packages\nwrite -$CACHES/npm\n"),
	SHIPPED("default.policy", "not a profile\n"),
};

static const struct embedded_filter filters[] = { { .name = "default" }, { .name = "strict" } };

static const struct policy_names names = {
	.home = "/home/u",
	.workspace = "/home/u/ws",
	.scratch = "/tmp/carrel-1/scratch",
	.xdg_config_home = "/home/u/.config",
	.caches = "/home/u/.cache/carrel/caches",
};

struct file {
	const char *path;
	const char *text;
};

struct fixture {
	struct arena arena;
	struct policy policy;
	struct policy_resolver resolver;
	struct error e;
	const struct file *files; /* up to one without a path */
	int result;
	int next;
};

static UNUSED int load_file(
	void *context, const char *path, struct policy_file *ret, struct error *e)
{
	const struct fixture *f = context;

	(void)e;
	for (const struct file *file = f->files; file && file->path; file++)
		if (!strcmp(file->path, path)) {
			*ret = (struct policy_file){ .text = file->text,
				.size = strlen(file->text),
				.path = file->path };
			return 0;
		}
	return -ENOENT;
}

static UNUSED void start(struct fixture *f)
{
	*f = (struct fixture){ .next = -1 };
	assert_int_equal(arena_init(&f->arena, 64 << 20), 0);
	policy_init(&f->policy, &f->arena);
	f->resolver = (struct policy_resolver){
		.cwd = "/home/u/ws",
		.names = &names,
		.texts = shipped,
		.text_count = COUNT(shipped),
		.filters = filters,
		.filter_count = COUNT(filters),
		.load = load_file,
		.context = f,
	};
}

static UNUSED void stop(struct fixture *f)
{
	arena_free(&f->arena);
}

/* Each step is passed over after a failure. */
static UNUSED void add_bytes(
	struct fixture *f, enum layer layer, const char *name, const char *text, size_t size)
{
	if (f->result == 0)
		f->result = policy_add_text(
			&f->policy, layer, name, text, size, &f->resolver, &f->e);
}

static UNUSED void add_text(
	struct fixture *f, enum layer layer, const char *name, const char *text)
{
	add_bytes(f, layer, name, text, strlen(text));
}

/* @argv: up to a NULL, without the program's name. */
static UNUSED void add_args(struct fixture *f, const char *const *argv)
{
	const char *all[32] = { "carrel" };
	int count = 1;

	while (argv[count - 1] && count < 31) {
		all[count] = argv[count - 1];
		count++;
	}
	if (f->result == 0)
		f->result = policy_add_arguments(
			&f->policy, count, all, 1, &f->resolver, NULL, 0, &f->next, &f->e);
}

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static UNUSED void finish(struct fixture *f)
{
	if (f->result == 0)
		f->result = policy_finish(&f->policy, "agent", &f->resolver, &f->e);
}

static UNUSED void expand(struct fixture *f)
{
	finish(f);
	if (f->result == 0)
		f->result = policy_expand(&f->policy, &names, &f->e);
}

static UNUSED void assert_fine(const struct fixture *f)
{
	if (f->result < 0)
		fail_msg("%d: %s: %s (%s)", f->result, f->e.on, f->e.what, f->e.hint);
}

/* It failed with this code, at exactly this place, and said these words. NULL: not looked at. */
static UNUSED void assert_fails(const struct fixture *f, enum error_code code, const char *on,
	const char *what, const char *hint)
{
	if (f->result >= 0)
		fail_msg("no error, expected: %s: %s", on, what);
	if (f->e.code != code || (on && strcmp(f->e.on, on) != 0) ||
		(what && !strstr(f->e.what, what)) || (hint && !strstr(f->e.hint, hint)))
		fail_msg("%s: '%s': '%s' hint '%s'; expected '%s': '%s' hint '%s'",
			error_code_name(f->e.code), f->e.on, f->e.what, f->e.hint, on ? on : "",
			what ? what : "", hint ? hint : "");
}

struct sink {
	char text[128 * 1024];
	size_t used;
};

static UNUSED int sink_write(void *context, const void *data, size_t size)
{
	struct sink *s = context;

	if (size >= sizeof(s->text) - s->used)
		return -ENOSPC;
	memcpy(s->text + s->used, data, size);
	s->used += size;
	s->text[s->used] = '\0';
	return 0;
}

/* The last rule of a kind, or NULL. */
static UNUSED const struct path_rule *find_rule(const struct policy *p, enum path_kind kind)
{
	for (size_t i = p->path_count; i > 0; i--)
		if (p->paths[i - 1].kind == kind)
			return &p->paths[i - 1];
	return NULL;
}

static UNUSED const struct path_rule *find_path(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < p->path_count; i++)
		if (p->paths[i].path && !strcmp(p->paths[i].path, path))
			return &p->paths[i];
	return NULL;
}

static UNUSED const struct env_rule *find_env(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->env_count; i++)
		if (!strcmp(p->envs[i].name, name))
			return &p->envs[i];
	return NULL;
}

/* The same where the test cannot go on without it. */
static UNUSED const void *there(const void *found, const char *what)
{
	if (!found) {
		fail_msg("there is no %s", what);
		abort();
	}
	return found;
}

static UNUSED const struct path_rule *the_rule(const struct policy *p, enum path_kind kind)
{
	return there(find_rule(p, kind), "such rule");
}

static UNUSED const struct path_rule *the_path(const struct policy *p, const char *path)
{
	return there(find_path(p, path), path);
}

static UNUSED const struct env_rule *the_env(const struct policy *p, const char *name)
{
	return there(find_env(p, name), name);
}
