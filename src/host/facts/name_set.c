/*
 * name_set.c - see name_set.h.
 *
 * Runs in: the launcher and carrel-policy, outside; the supervisor at the end, under its filter.
 */
#include "host/facts/name_set.h"

#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/sys.h"
#include "host/tree/beneath.h"

enum { LIST_BYTES = 4 << 10 }; /* a directory that does not fit in is not listed */

/* Case counts for nothing here: some file systems find `.SSH` under the name `.ssh`. */
static uint32_t hash_name(const char *name, size_t length)
{
	uint32_t hash = 0x811c9dc5u; /* FNV-1a */

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];

		hash = (hash ^ (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c)) * 0x01000193u;
	}
	return hash;
}

/*
 * Whether a name that the listing of @fd lacks cannot be found in the directory either. That is so
 * on the usual local file systems. Others make an entry when it is asked for, have more than one
 * name for one, or ask a server; and ext4, f2fs and tmpfs have directories that fold the case of
 * Unicode's letters.
 */
static bool lists_all(int fd)
{
	struct statfs fs;
	unsigned flags = 0;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		break;
	default:
		return false;
	}
	/* Not ioctl(): the type of its second argument is not the same in every libc. */
	return syscall(SYS_ioctl, fd, FS_IOC_GETFLAGS, &flags) == 0 &&
		!(flags & FS_CASEFOLD_FL);
}

static size_t hash_entries(char *entries, size_t size, uint32_t *ret)
{
	const struct beneath_entry *entry;
	size_t count = 0;

	for (uint32_t at = 0; (entry = beneath_read_already(entries, &at, (uint32_t)size));)
		ret[count++] = hash_name(entry->name, strlen(entry->name));
	return count;
}

void name_set_read(struct name_set *ret, struct arena *arena, int dir)
{
	struct stat st;
	_Alignas(struct beneath_entry) char more[64];
	autofd int fd = sys_openat2(
		dir, ".", O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > LIST_BYTES || !lists_all(fd))
		return;
	size_t room;
	char *entries = arena_rest(arena, &room);
	ssize_t n = room < LIST_BYTES ? -1 : beneath_read(fd, entries, LIST_BYTES);
	if (n <= 0)
		return;
	/* An entry has 24 bytes at least, so the hashes fit over what has been read. */
	uint32_t *hashes = (void *)entries;
	size_t count = hash_entries(entries, (size_t)n, hashes);
	bool whole = beneath_read(fd, more, sizeof(more)) == 0;
	(void)arena_keep(arena, whole ? count * sizeof(*hashes) : 0, (size_t)n);
	if (whole)
		*ret = (struct name_set){ hashes, count };
}

bool name_set_lacks(const struct name_set *set, const char *name, size_t length)
{
	if (!set->hashes)
		return false;
	uint32_t hash = hash_name(name, length);
	for (size_t i = 0; i < set->count; i++)
		if (set->hashes[i] == hash)
			return false;
	return true;
}
