/*
 * mounts.c - see mounts.h.
 *
 * Runs in: carrel-inspect.
 */
#include "inspect/mounts.h"

#include <errno.h>
#include <libmount/libmount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "plan/path.h"

static bool has_option(const char *options, const char *name)
{
	return options && mnt_optstr_get_option(options, name, NULL, NULL) == 0;
}

static unsigned read_flags(struct libmnt_fs *fs)
{
	static const struct {
		const char *option;
		unsigned flag;
	} known[] = {
		{ "ro", MOUNT_RDONLY },
		{ "nosuid", MOUNT_NOSUID },
		{ "nodev", MOUNT_NODEV },
		{ "noexec", MOUNT_NOEXEC },
		{ "idmapped", MOUNT_IDMAPPED },
	};
	const char *options = mnt_fs_get_vfs_options(fs);
	unsigned long propagation = 0;
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_option(options, known[i].option))
			flags |= known[i].flag;
	if (has_option(mnt_fs_get_fs_options(fs), "ro"))
		flags |= MOUNT_FS_RDONLY;
	/* If the propagation cannot be read, take the worse case. */
	if (mnt_fs_get_propagation(fs, &propagation) != 0 ||
		(propagation & (MS_SHARED | MS_SLAVE)))
		flags |= MOUNT_SHARED;
	return flags;
}

static const char *copy_text(struct arena *a, const char *text)
{
	return arena_copy(a, text ? text : "", text ? strlen(text) : 0);
}

static int add_mount(struct mount_table *t, struct libmnt_fs *fs)
{
	struct mount *items = arena_push(t->arena, t->items, t->count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	t->items = items;
	struct mount *m = &items[t->count];
	*m = (struct mount){
		.id = mnt_fs_get_id(fs),
		.parent = mnt_fs_get_parent_id(fs),
		.dev = mnt_fs_get_devno(fs),
		.root = copy_text(t->arena, mnt_fs_get_root(fs)),
		.target = copy_text(t->arena, mnt_fs_get_target(fs)),
		.type = copy_text(t->arena, mnt_fs_get_fstype(fs)),
		.flags = read_flags(fs),
	};
	if (!m->root || !m->target || !m->type)
		return -ENOMEM;
	t->count++;
	return 0;
}

/* libmount would pass over a line that it cannot read, and we would miss a mount. */
static int refuse_line(struct libmnt_table *table, const char *file, int line)
{
	(void)table;
	(void)file;
	(void)line;
	return -EIO;
}

int mount_table_read(struct mount_table *t, const char *path, struct error *e)
{
	struct libmnt_table *table = mnt_new_table();
	struct libmnt_iter *at = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;
	int r = table && at ? 0 : -ENOMEM;

	if (r == 0)
		r = mnt_table_set_parser_errcb(table, refuse_line);
	if (r == 0)
		r = mnt_table_parse_file(table, path);
	if (r > 0)
		r = -EIO;
	while (r == 0 && mnt_table_next_fs(table, at, &fs) == 0)
		r = add_mount(t, fs);
	mnt_free_iter(at);
	mnt_unref_table(table);
	return r < 0
		? error_set(e, ERROR_INTERNAL, "facts", -r, path, "cannot read the mount table")
		: 0;
}

const struct mount *mount_table_parent(const struct mount_table *t, const struct mount *m)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].id == m->parent && &t->items[i] != m)
			return &t->items[i];
	return NULL;
}

static const struct mount *find_root(const struct mount_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->items[i].target, "/") && !mount_table_parent(t, &t->items[i]))
			return &t->items[i];
	return NULL;
}

/* The mount on which a walk along @path leaves @from: the one at the shallowest mount point on the way. */
static const struct mount *next_step(
	const struct mount_table *t, const struct mount *from, const char *path)
{
	const struct mount *next = NULL;

	for (size_t i = 0; i < t->count; i++) {
		const struct mount *m = &t->items[i];

		if (m == from || m->parent != from->id || !path_below(m->target, path))
			continue;
		if (!next || strlen(m->target) < strlen(next->target))
			next = m;
	}
	return next;
}

const struct mount *mount_table_at(const struct mount_table *t, const char *path)
{
	const struct mount *at = find_root(t), *next = at;

	/* Take no more steps than there are mounts: a table that is not a tree must not hold us. */
	for (size_t left = t->count; next && left; left--) {
		at = next;
		next = next_step(t, at, path);
	}
	return at;
}

void mount_flags_text(unsigned flags, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%s%s%s%s%s%s", flags & MOUNT_RDONLY ? "ro" : "rw",
		flags & MOUNT_NOSUID ? " nosuid" : "", flags & MOUNT_NODEV ? " nodev" : "",
		flags & MOUNT_NOEXEC ? " noexec" : "",
		flags & MOUNT_IDMAPPED ? " idmapped" : "",
		flags & MOUNT_SHARED ? " shared" : "");
}
