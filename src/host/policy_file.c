/*
 * policy_file.c - see policy_file.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/resolve.h"
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

int policy_file_trust(
	enum layer layer, const char *path, const struct stat *st, struct error *e)
{
	bool own = layer == LAYER_USER && st->st_uid == geteuid();
	mode_t others = S_IWGRP | S_IWOTH;

	if (layer != LAYER_SYSTEM && layer != LAYER_USER)
		return 0;
	if (!own && !is_roots(st->st_uid)) {
		int r = error_set(e, ERROR_POLICY, "policy", 0, path,
			"what belongs to uid %u is not obeyed as a policy", st->st_uid);

		error_hint(e,
			layer == LAYER_SYSTEM
				? "chown root, where it is root's policy"
				: "a policy of your own lies in $XDG_CONFIG_HOME, or ~/.config");
		return r;
	}
	/* In a sticky directory names are their owners'. A user's own group is often nobody else's. */
	if (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX))
		others = 0;
	else if (own && st->st_gid == getegid())
		others = S_IWOTH;
	if (!(st->st_mode & others))
		return 0;
	int r = error_set(e, ERROR_POLICY, "policy", 0, path,
		"what others can write is not obeyed as a policy");

	error_hint(e, "chmod go-w, where what is in it is right");
	return r;
}

/* The directory that the file lies in, whoever named it by whatever links. */
static int trust_directory(const struct policy_loader *l, const char *path, struct error *e)
{
	size_t length = path_parent_length(path);
	char *dir = arena_copy(l->arena, path, length);
	struct stat st;

	if (!dir)
		return -ENOMEM;
	return stat(dir, &st) < 0 ? -errno : policy_file_trust(l->layer, dir, &st, e);
}

/* Only a regular file: a FIFO would wait, a device would not end. */
static int read_policy(const struct policy_loader *l, const char *path, struct policy_file *ret,
	struct error *e)
{
	struct arena *a = l->arena;
	struct stat st;
	autofd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > POLICY_SIZE_MAX)
		return -EFBIG;
	int r = policy_file_trust(l->layer, path, &st, e);
	if (r >= 0)
		r = trust_directory(l, path, e);
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

int policy_file_load(void *context, const char *path, struct policy_file *ret, struct error *e)
{
	struct policy_loader *l = context;
	struct resolver res = { .arena = l->arena };
	struct resolved found;
	int r = resolve_path(&res, path, 0, &found);

	if (r >= 0)
		r = found.exists ? read_policy(l, found.path, ret, e) : -ENOENT;
	if (r >= 0)
		r = note_loaded(l, found.path);
	if (r < 0)
		return error_set(
			e, ERROR_POLICY, "policy", -r, path, "cannot read the policy file");
	return 0;
}
