/*
 * plan_fixture.h - machines that are made up: a listing of files instead of a file system, and the
 * facts that the host side would find on it.
 *
 * Runs in: the unit tests. Pure but for reading the listings. What git adds is left out.
 *
 * A listing has lines of these forms; later ones replace earlier ones:
 *
 *     uid N | gid N | privileged KERNEL-UID | lacks TEXT | landlock ABI
 *     refuses TEXT (namespaces and mounts) | refuses-proc TEXT | refuses-keyring TEXT
 *     home PATH | cwd PATH | scratch-base PATH | env NAME=VALUE
 *     TYPE MODE UID:GID PATH [-> TARGET]      TYPE: d directory, f file, l link, c device
 *     gone PATH                               and all below it
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/embedded.h"
#include "plan/path.h"
#include "plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED __attribute__((unused))
#define TEXT_MAX (256 * 1024)

struct entry {
	const char *path;
	const char *target; /* of a link */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

struct machine {
	struct arena *arena;
	struct facts facts;
	struct entry entries[512];
	size_t entry_count;
	const char *environ[64];
	size_t environ_count;
};

/* The file's text, NUL-terminated, or NULL where there is none. */
static UNUSED char *read_text(struct arena *arena, const char *path)
{
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	char *text = arena_alloc(arena, TEXT_MAX + 1);

	if (fd == -ENOENT)
		return NULL;
	assert_true(fd >= 0);
	assert_non_null(text);
	assert_true(fd_read_file(fd, text, TEXT_MAX) >= 0);
	return text;
}

/* --- reading a listing ------------------------------------------------------------------------ */

static UNUSED struct entry *machine_find(struct machine *m, const char *path)
{
	for (size_t i = 0; i < m->entry_count; i++)
		if (!strcmp(m->entries[i].path, path))
			return &m->entries[i];
	return NULL;
}

static UNUSED void machine_remove(struct machine *m, const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->entry_count; i++)
		if (!path_below(path, m->entries[i].path))
			m->entries[kept++] = m->entries[i];
	m->entry_count = kept;
}

static UNUSED void machine_add(struct machine *m, char type, const char *rest)
{
	static const char types[] = "dflc";
	static const mode_t modes[] = { S_IFDIR, S_IFREG, S_IFLNK, S_IFCHR };
	unsigned mode, uid, gid;
	int at = 0;

	assert_int_equal(sscanf(rest, "%o %u:%u %n", &mode, &uid, &gid, &at), 3);
	const char *path = rest + at, *arrow = strstr(path, " -> ");
	size_t length = arrow ? (size_t)(arrow - path) : strlen(path);
	struct entry e = {
		.path = arena_copy(m->arena, path, length),
		.target = arrow ? arrow + 4 : NULL,
		.mode = modes[strchr(types, type) - types] | mode,
		.uid = uid,
		.gid = gid,
	};
	struct entry *old = machine_find(m, e.path);

	assert_true(e.path[0] == '/' && (type == 'l') == (arrow != NULL));
	assert_true(m->entry_count < COUNT(m->entries));
	if (old)
		*old = e;
	else
		m->entries[m->entry_count++] = e;
}

static UNUSED void machine_line(struct machine *m, char *line)
{
	struct facts *f = &m->facts;
	char *rest = strchr(line, ' ');
	const struct {
		const char *key;
		const char **text;
		unsigned *number;
	} keys[] = {
		{ "uid", NULL, &f->uid },
		{ "gid", NULL, &f->gid },
		{ "landlock", NULL, (unsigned *)&f->landlock_abi },
		{ "privileged", NULL, &f->kernel_uid },
		{ "lacks", &f->unprivileged_why, NULL },
		{ "refuses", &f->refused_namespaces, NULL },
		{ "refuses-proc", &f->refused_proc, NULL },
		{ "refuses-keyring", &f->refused_keyring, NULL },
		{ "home", &f->home, NULL },
		{ "cwd", &f->cwd, NULL },
		{ "scratch-base", &f->scratch_base, NULL },
		{ "env", &m->environ[m->environ_count], NULL },
		{ NULL, NULL, NULL },
	};

	if (!*line || *line == '#')
		return;
	if (!rest)
		fail_msg("not a line of a listing: %s", line);
	else
		*rest++ = '\0';
	if (strlen(line) == 1 && strchr("dflc", *line)) {
		machine_add(m, *line, rest);
		return;
	}
	if (!strcmp(line, "gone")) {
		machine_remove(m, rest);
		return;
	}
	size_t i = 0;
	while (keys[i].key && strcmp(keys[i].key, line) != 0)
		i++;
	if (!keys[i].key)
		fail_msg("a listing has no %s", line);
	if (keys[i].text)
		*keys[i].text = rest;
	else
		*keys[i].number = (unsigned)strtoul(rest, NULL, 10);
	m->environ_count += keys[i].text == &m->environ[m->environ_count];
	f->privileged = f->privileged || !strcmp(line, "privileged");
}

/* Reads one more listing on top. False where there is no such file. */
static UNUSED bool machine_read(struct machine *m, const char *path)
{
	char *text = read_text(m->arena, path);

	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n');

		assert_non_null(end);
		*end = '\0';
		machine_line(m, line);
		line = end + 1;
	}
	return text != NULL;
}

/* --- paths on it ------------------------------------------------------------------------------ */

struct found {
	const char *path;    /* canonical */
	struct entry *entry; /* NULL: there is nothing */
	size_t existing;
};

static UNUSED void machine_note_link(struct machine *m, const char *path, const char *target)
{
	struct facts *f = &m->facts;

	for (size_t i = 0; i < f->link_count; i++)
		if (!strcmp(f->links[i].path, path))
			return;
	f->links = arena_push(m->arena, f->links, f->link_count, sizeof(*f->links));
	assert_non_null(f->links);
	f->links[f->link_count++] =
		(struct link_fact){ arena_copy(m->arena, path, strlen(path)), target };
}

static UNUSED struct found machine_resolve(
	struct machine *m, const char *requested, bool follow_last)
{
	const char *done = "", *rest = requested;
	struct found found = { .existing = 1 };
	bool missing = false;

	for (int links = 0; links < 40;) {
		const char *part = rest + strspn(rest, "/"), *parent = done;
		int n = (int)strcspn(part, "/");

		if (!n)
			break;
		rest = part + n;
		done = arena_format(m->arena, "%s/%.*s", parent, n, part);
		struct entry *e = missing ? NULL : machine_find(m, done);
		missing = missing || !e;
		if (!missing)
			found.existing = strlen(done);
		if (!e || !S_ISLNK(e->mode) || (!follow_last && !rest[strspn(rest, "/")]))
			continue;
		machine_note_link(m, done, e->target);
		rest = arena_format(m->arena, "%s%s", e->target, rest);
		done = e->target[0] == '/' ? "" : parent;
		found.existing = *done ? strlen(done) : 1;
		links++;
	}
	found.path = *done ? done : "/";
	found.entry = machine_find(m, found.path);
	return found;
}

static UNUSED struct path_fact machine_fact(
	const struct machine *m, const struct path_rule *rule, const struct found *found)
{
	struct path_fact f = { .rule = rule,
		.path = found->path,
		.source = found->path,
		.parent_exists = found->existing };

	if (!found->entry)
		return f;
	f.exists = f.dest_exists = true;
	f.is_link = S_ISLNK(found->entry->mode);
	f.mode = found->entry->mode;
	f.uid = found->entry->uid;
	f.gid = found->entry->gid;
	f.dev = makedev(8, 1);
	f.ino = (ino_t)(found->entry - m->entries) + 2;
	return f;
}

static UNUSED void machine_add_fact(struct machine *m, struct path_fact fact)
{
	struct facts *f = &m->facts;

	f->paths = arena_push(m->arena, f->paths, f->path_count, sizeof(fact));
	assert_non_null(f->paths);
	f->paths[f->path_count++] = fact;
}

/* As src/host/facts/facts_paths.c; what that refuses (a `read` of what is missing) is no case here. */
static UNUSED void machine_apply_rule(struct machine *m, const struct path_rule *rule)
{
	struct found found, dest;
	struct path_fact fact;

	if (rule->kind == PATH_HIDE && rule->glob) {
		for (size_t i = 0; i < m->entry_count; i++)
			if (!fnmatch(rule->path, m->entries[i].path, FNM_PATHNAME)) {
				found = machine_resolve(m, m->entries[i].path, true);
				machine_add_fact(m, machine_fact(m, rule, &found));
			}
		return;
	}
	bool protects = rule->kind == PATH_PROTECT;
	found = machine_resolve(
		m, rule->kind == PATH_TMPFS ? rule->dest : rule->path, !protects);
	fact = machine_fact(m, rule, &found);
	if (!fact.exists && !protects && rule->kind != PATH_TMPFS) {
		if (!rule->optional && rule->kind != PATH_HIDE)
			fail_msg("the listing lacks %s", rule->path);
		return;
	}
	if (rule->kind == PATH_TMPFS)
		fact.dest_exists = fact.exists && S_ISDIR(fact.mode);
	if (rule->kind == PATH_BIND_RO || rule->kind == PATH_BIND_RW) {
		dest = machine_resolve(m, rule->dest, true);
		fact.path = dest.path;
		fact.dest_exists =
			dest.entry && S_ISDIR(dest.entry->mode) == S_ISDIR(fact.mode);
	}
	machine_add_fact(m, fact);
	if (protects && fact.is_link) {
		found = machine_resolve(m, rule->path, true);
		machine_add_fact(m, machine_fact(m, rule, &found));
	}
}

/* As src/host/facts/facts_cover.c, for one bind that nothing stands on. */
static UNUSED void machine_cover(
	struct machine *m, const struct policy *policy, struct path_fact bind, size_t count)
{
	for (size_t i = 0; i < policy->path_count; i++) {
		const struct path_rule *rule = &policy->paths[i];

		if (rule->glob || (rule->kind != PATH_HIDE && rule->kind != PATH_PROTECT))
			continue;
		struct found place = machine_resolve(m, rule->path, false);
		const char *rest = path_below(bind.path, place.path);
		if (!rest || !*rest)
			continue;
		for (size_t j = 0; j < count; j++)
			if (m->facts.paths[j].rule == rule)
				m->facts.paths[j].covered = true;
		struct found found = machine_resolve(
			m, arena_format(m->arena, "%s/%s", bind.source, rest), false);
		if (!found.entry && rule->kind == PATH_HIDE)
			continue;
		struct path_fact fact = machine_fact(m, rule, &found);
		fact.path = found.entry ? place.path : found.path;
		machine_add_fact(m, fact);
	}
}

static UNUSED void machine_close_above(struct machine *m, const char *path)
{
	struct facts *f = &m->facts;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *part = arena_copy(m->arena, path, (size_t)(slash - path));
		const struct entry *e = machine_find(m, part);
		bool known = false;

		for (size_t i = 0; i < f->closed_count; i++)
			known |= !strcmp(f->closed_dirs[i], part);
		if (known || !e || (e->mode & S_IXOTH))
			continue;
		f->closed_dirs = arena_push(m->arena, (void *)f->closed_dirs, f->closed_count,
			sizeof(*f->closed_dirs));
		f->closed_dirs[f->closed_count++] = part;
	}
}

/* Before the policy is expanded: who, where, and the session's own places. */
static UNUSED void machine_place(struct machine *m, const struct policy *policy)
{
	struct facts *f = &m->facts;
	const char *requested = policy->workspace.value ? policy->workspace.value : f->cwd;
	struct found found = machine_resolve(m, requested, true);

	if (!found.entry) {
		fail_msg("the listing lacks the workspace %s", requested);
		return;
	}
	f->environ = m->environ;
	f->workspace = found.path;
	f->workspace_dev = makedev(8, 1);
	f->workspace_ino = (ino_t)(found.entry - m->entries) + 2;
	f->workspace_uid = found.entry->uid;
	f->workspace_gid = found.entry->gid;
	requested = policy->scratch_base.value ? policy->scratch_base.value : f->scratch_base;
	f->scratch_base = machine_resolve(m, requested, true).path;
	f->session_name = "carrel-aaaabbbbccccddddeeee";
	f->session_dir = arena_format(m->arena, "%s/%s", f->scratch_base, f->session_name);
	f->scratch_dir = arena_format(m->arena, "%s/scratch", f->session_dir);
	if (!f->privileged)
		f->kernel_uid = f->uid;
	f->kernel_gid = f->privileged ? f->kernel_uid : f->gid;
}

/* As src/host/facts/facts_split.c. */
static UNUSED void machine_split(struct machine *m, const char *path, size_t length)
{
	struct facts *f = &m->facts;
	struct split_fact split = { .path = arena_copy(m->arena, path, length) };
	struct split_entry *entries = NULL;

	for (size_t i = 0; i < f->split_count; i++)
		if (!strcmp(f->splits[i].path, split.path))
			return;
	for (size_t i = 0; i < m->entry_count; i++) {
		const struct entry *e = &m->entries[i];
		const char *name = path_below(split.path, e->path);

		if (!name || !*name || strchr(name, '/') ||
			(!S_ISDIR(e->mode) && !S_ISREG(e->mode)))
			continue;
		entries = arena_push(m->arena, entries, split.count, sizeof(*entries));
		assert_non_null(entries);
		entries[split.count++] = (struct split_entry){ name, S_ISDIR(e->mode) };
	}
	split.entries = entries;
	struct split_fact *splits =
		arena_push(m->arena, (void *)f->splits, f->split_count, sizeof(split));
	assert_non_null(splits);
	splits[f->split_count++] = split;
	f->splits = splits;
}

static UNUSED void machine_split_above(struct machine *m, const char *path)
{
	for (size_t length = strlen(path); length > 1;) {
		const char *part = arena_copy(m->arena, path, length);

		length = path_parent_length(part);
		machine_split(m, path, length);
	}
}

static UNUSED void machine_splits(struct machine *m)
{
	struct facts *f = &m->facts;

	machine_split_above(m, f->session_dir);
	for (int i = SYSTEM_DEV; i <= SYSTEM_VAR_TMP; i++)
		if (f->system[i].exists)
			machine_split_above(m, f->system[i].path);
	for (size_t i = 0; i < f->path_count; i++)
		if (f->paths[i].rule->kind == PATH_HIDE && f->paths[i].exists)
			machine_split_above(m, f->paths[i].path);
}

/* After it: every path of the policy, and the system's. */
static UNUSED void machine_facts(struct machine *m, const struct policy *policy)
{
	struct facts *f = &m->facts;

	for (int i = 0; i < SYSTEM_PATH_COUNT; i++) {
		struct found found = machine_resolve(m, plan_system_paths[i], true);

		f->system[i] = machine_fact(m, NULL, &found);
	}
	for (size_t i = 0; i < policy->path_count; i++)
		machine_apply_rule(m, &policy->paths[i]);
	for (size_t i = 0, count = f->path_count; i < count; i++)
		if (f->paths[i].rule->dest && strcmp(f->paths[i].path, f->paths[i].source) != 0)
			machine_cover(m, policy, f->paths[i], count);
	if (f->refused_namespaces)
		machine_splits(m);
	if (!f->privileged)
		return;
	machine_close_above(m, f->workspace);
	machine_close_above(m, f->session_dir);
	for (size_t i = 0; i < f->path_count; i++)
		if (f->paths[i].exists && f->paths[i].rule->kind != PATH_HIDE &&
			f->paths[i].rule->kind != PATH_PROTECT)
			machine_close_above(m, f->paths[i].path);
}
