/*
 * policy_file.c - see policy_file.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/resolve.h"

static int note_loaded(struct policy_loader *l, const char *path)
{
	const char **grown = arena_push(l->arena, (void *)l->loaded, l->count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->loaded = grown;
	l->loaded[l->count++] = path;
	return 0;
}

/* Only a regular file: a FIFO would wait, a device would not end. */
static int read_policy(struct arena *a, const char *path, struct policy_file *ret)
{
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
		r = found.exists ? read_policy(l->arena, found.path, ret) : -ENOENT;
	if (r >= 0)
		r = note_loaded(l, found.path);
	if (r < 0)
		return error_set(
			e, ERROR_POLICY, "policy", -r, path, "cannot read the policy file");
	return 0;
}
