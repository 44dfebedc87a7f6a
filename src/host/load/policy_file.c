/*
 * policy_file.c - see policy_file.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/load/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/facts/resolve.h"
#include "host/tree/plainfile.h"
#include "plan/path.h"

static int note_loaded(struct policy_loader *l, const char *path)
{
	const char **grown = arena_push(l->arena, (void *)l->loaded, l->count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->loaded = grown;
	l->loaded[l->count++] = path;
	return 0;
}

static bool is_roots(uid_t uid)
{
	struct stat root;

	return uid == 0 || (stat("/", &root) == 0 && uid == root.st_uid);
}

static void hint(const char *path, const char *policy, const char *what, struct error *e)
{
	if (!strcmp(path, policy))
		error_hint(e, "%s", what);
	else
		error_hint(e, "%s is found by way of it; %s", policy, what);
}

/* Check one of the files, directories and links by way of which @policy is found. */
static int trust_entry(enum layer layer, const char *path, const struct stat *st,
	const char *policy, struct error *e)
{
	bool own = layer == LAYER_USER && st->st_uid == geteuid();
	mode_t others = S_IWGRP | S_IWOTH;

	if (!own && !is_roots(st->st_uid)) {
		int r = error_set(e, ERROR_POLICY, "policy", 0, path,
			"a policy of uid %u is not obeyed", st->st_uid);

		hint(path, policy,
			layer == LAYER_SYSTEM
				? "chown root, where it is root's policy"
				: "a policy of your own lies in $XDG_CONFIG_HOME, or ~/.config",
			e);
		return r;
	}
	/*
	 * The mode of a link means nothing. In a sticky directory names are their owners', and those are looked
	 * at as well. A user's own group is often nobody else's.
	 */
	if (S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX)))
		others = 0;
	else if (own && st->st_gid == getegid())
		others = S_IWOTH;
	if (!(st->st_mode & others))
		return 0;
	int r = error_set(e, ERROR_POLICY, "policy", 0, path,
		"a policy that others can write is not obeyed");

	hint(path, policy, "chmod go-w, where what is in it is right", e);
	return r;
}

/* Check the file at @path, which is canonical, and every directory above it. */
static int trust_way(struct arena *a, enum layer layer, const char *path, const char *policy,
	struct error *e)
{
	char *entry = arena_copy(a, path, strlen(path));
	int r = entry ? 0 : -ENOMEM;

	for (bool root = false; r == 0 && !root;) {
		struct stat st;

		r = lstat(entry, &st) < 0 ? -errno : trust_entry(layer, entry, &st, policy, e);
		root = !entry[1];
		entry[path_parent_length(entry)] = '\0';
	}
	return r;
}

/*
 * Whoever can change a link on the way chooses the policy. sshd checks a file of keys in the same
 * way (StrictModes).
 */
static int trust_found(
	const struct resolver *found_by, enum layer layer, const char *path, struct error *e)
{
	int r = 0;

	if (layer != LAYER_SYSTEM && layer != LAYER_USER)
		return 0;
	for (size_t i = 0; i < found_by->link_count && r == 0; i++)
		r = trust_way(found_by->arena, layer, found_by->links[i].path, path, e);
	return r < 0 ? r : trust_way(found_by->arena, layer, path, path, e);
}

int policy_file_trust(struct arena *a, enum layer layer, const char *path, struct error *e)
{
	struct resolver res = { .arena = a };
	struct resolved found;
	int r = resolve_path(&res, path, 0, &found);

	if (r >= 0)
		r = found.exists ? trust_found(&res, layer, found.path, e) : 0;
	resolve_done(&res);
	return r < 0 ? error_set(e, ERROR_POLICY, "policy", -r, path, "cannot look at it") : 0;
}

/* Only a regular file: a FIFO would wait, a device would not end. */
static int read_policy(const struct policy_loader *l, const struct resolver *found_by,
	const char *path, struct policy_file *ret, struct error *e)
{
	struct arena *a = l->arena;
	struct stat st;
	autofd int place = fd_open_at(AT_FDCWD, path, O_PATH, 0);

	if (place < 0)
		return place;
	if (fstat(place, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	autofd int fd = plainfile_reopen(place);
	if (fd < 0)
		return fd;
	if (st.st_size > POLICY_SIZE_MAX)
		return -EFBIG;
	int r = trust_found(found_by, l->layer, path, e);
	if (r < 0)
		return r;
	char *text = arena_alloc(a, POLICY_SIZE_MAX + 2);
	if (!text)
		return -ENOMEM;
	ssize_t n = fd_read_file(fd, text, POLICY_SIZE_MAX);
	if (n < 0)
		return (int)n;
	*ret = (struct policy_file){ .text = text, .size = (size_t)n, .path = path };
	return 0;
}

/*
 * Standard input that was redirected from a file is that file, and is checked like every other:
 * nothing of the workspace is believed. A file without a name (a here-document) lies nowhere, and
 * nor does a pipe. A device such as /dev/null is no policy that somebody means, and an empty one is
 * not what was asked for.
 */
static int read_stdin(struct policy_loader *l, struct policy_file *ret, struct error *e)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && st.st_nlink > 0) {
		char *target = arena_alloc(l->arena, PATH_MAX);
		ssize_t n = target
			? readlinkat(AT_FDCWD, "/proc/self/fd/0", target, PATH_MAX - 1)
			: -1;

		if (n < 0)
			return target ? -errno : -ENOMEM;
		target[n] = '\0';
		return policy_file_load(l, target, ret, e);
	}
	if (S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO))
		return -ENODATA;
	char *text = arena_alloc(l->arena, POLICY_SIZE_MAX + 2);
	ssize_t size = text ? fd_read_file(STDIN_FILENO, text, POLICY_SIZE_MAX) : -ENOMEM;
	if (size < 0)
		return (int)size;
	*ret = (struct policy_file){
		.text = text, .size = (size_t)size, .path = "standard input"
	};
	return 0;
}

static int load_stdin(struct policy_loader *l, struct policy_file *ret, struct error *e)
{
	int r = read_stdin(l, ret, e);

	if (r >= 0 || (e && e->code != ERROR_NONE))
		return r;
	r = error_set(e, ERROR_POLICY, "policy", -r, "standard input",
		"cannot read the policy that `--policy -` names");
	error_hint(e, "it comes from a pipe or a file; a file named - is ./-");
	return r;
}

int policy_file_load(void *context, const char *path, struct policy_file *ret, struct error *e)
{
	struct policy_loader *l = context;
	struct resolver res = { .arena = l->arena };
	struct resolved found;

	if (!strcmp(path, POLICY_STDIN))
		return load_stdin(l, ret, e);
	int r = resolve_path(&res, path, 0, &found);

	if (r >= 0)
		r = found.exists ? read_policy(l, &res, found.path, ret, e) : -ENOENT;
	resolve_done(&res);
	if (r >= 0)
		r = note_loaded(l, found.path);
	if (r < 0)
		return error_set(
			e, ERROR_POLICY, "policy", -r, path, "cannot read the policy file");
	return 0;
}

/*
 * Whether that policy file does not exist. A file that cannot be seen may exist, and so may the
 * target of a dangling link: carrel must not skip what it says. Only the user's own policy may lie
 * in a home of somebody else, as after `sudo -u`.
 */
static bool is_absent(enum layer layer, const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return false;
	return errno == ENOENT || errno == ENOTDIR || (errno == EACCES && layer == LAYER_USER);
}

int policy_file_add_layer(struct policy *policy, enum layer layer, const char *path,
	const struct policy_resolver *res, struct error *e)
{
	struct policy_loader *loader = res->context;
	struct policy_file file;
	struct stat st;
	int r = 0;

	/* Whoever can write in this directory could also have removed the file. */
	if (layer == LAYER_SYSTEM &&
		(stat(POLICY_FILE_SYSTEM_DIR, &st) == 0 || error_is_own(errno)))
		r = policy_file_trust(loader->arena, layer, POLICY_FILE_SYSTEM_DIR, e);
	if (r < 0 || is_absent(layer, path))
		return r;
	loader->layer = layer;
	r = policy_file_load(loader, path, &file, e);
	/* The user's policy may name files of anybody, as the command line may. */
	if (layer == LAYER_USER)
		loader->layer = LAYER_FILE;
	if (r < 0)
		return r;
	return policy_add_text(policy, layer, file.path, file.text, file.size, res, e);
}

/* The file @name in a directory of the user's own. 1, 0 where there is none, or -errno. */
static int load_own(struct policy_loader *l, const char *dir, const char *name,
	struct policy_file *ret, struct error *e)
{
	const char *path = dir ? arena_join(l->arena, dir, '/', name) : NULL;
	enum layer layer = l->layer;
	struct stat st;

	if (!path)
		return dir ? -ENOMEM : 0;
	if (lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	l->layer = LAYER_USER;
	int r = policy_file_load(l, path, ret, e);
	l->layer = layer;
	return r < 0 ? r : 1;
}

int policy_file_load_profile(
	void *context, const char *name, struct policy_file *ret, struct error *e)
{
	struct policy_loader *l = context;

	return load_own(l, l->profiles, name, ret, e);
}

int policy_file_load_preset(
	void *context, const char *name, struct policy_file *ret, struct error *e)
{
	struct policy_loader *l = context;

	return load_own(l, l->presets, name, ret, e);
}

int policy_file_load_set(
	void *context, const char *name, struct policy_file *ret, struct error *e)
{
	struct policy_loader *l = context;

	return load_own(l, l->sets, name, ret, e);
}
