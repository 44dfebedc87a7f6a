/*
 * identity.c - see identity.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/facts/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * Where the session's uids are taken from on a machine with all uids: above what systemd gives to
 * dynamic users and containers (UIDS-GIDS.md of systemd ends its container range at 0x6fffffff),
 * below 2^31. Each session has its own, so that not even two sessions of root share one.
 */
enum { UID_BASE = 0x70000000, UID_SPAN = 0x0f000000 };

#define INITIAL_USER_NS 0xEFFFFFFDu

static bool have_capabilities(void)
{
	static const unsigned needed[] = { CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN,
		CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_NET_ADMIN, CAP_SETPCAP };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!(data[needed[i] / 32].effective & (1u << (needed[i] % 32))))
			return false;
	return true;
}

static const char *read_number(const char *text, uint64_t *ret)
{
	text += strspn(text, " \t");
	*ret = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		*ret = *ret * 10 + (uint64_t)(*text - '0');
	return text;
}

/*
 * An id of this namespace that can be given away: out of the big range where all ids are there, else
 * the last one of the last extent (a rootless container has 65,536). 0: there is none but root.
 */
static int pick_id(const char *map_path, uint32_t random, uint32_t *ret_id)
{
	char text[1024];
	uint64_t best = 0;
	autofd int fd = fd_open_at(AT_FDCWD, map_path, O_RDONLY, 0);

	if (fd < 0)
		return fd;
	ssize_t n = fd_read_file(fd, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	for (const char *line = text; *line;) {
		uint64_t inside, outside, count;

		line = read_number(line, &inside);
		line = read_number(line, &outside);
		line = read_number(line, &count);
		line += strspn(line, " \t\n");
		if (count && inside + count - 1 > best)
			best = inside + count - 1;
		if (inside <= UID_BASE && inside + count >= UID_BASE + (uint64_t)UID_SPAN) {
			*ret_id = UID_BASE + random % UID_SPAN;
			return 0;
		}
	}
	*ret_id = best > 0xfffffffe ? 0 : (uint32_t)best;
	return 0;
}

/* The user namespace that the machine starts with, which has all ids, has a number that never changes (linux/nsfs.h). */
static bool has_all_ids(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == INITIAL_USER_NS;
}

/* Both ids, 0 where there is none to give away. The maps are read only where that is not known without them. */
static int pick_ids(uint32_t *ret_uid, uint32_t *ret_gid)
{
	uint32_t random;
	int r = fd_random(&random, sizeof(random));

	if (r < 0)
		return r;
	if (has_all_ids()) {
		*ret_uid = *ret_gid = UID_BASE + random % UID_SPAN;
		return 0;
	}
	r = pick_id("/proc/self/uid_map", random, ret_uid);
	return r < 0 ? r : pick_id("/proc/self/gid_map", random, ret_gid);
}

void identity_guess(struct identity *ret)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	*ret = (struct identity){ .uid = uid,
		.gid = gid,
		.privileged = uid == 0 && have_capabilities(),
		.kernel_uid = uid,
		.kernel_gid = gid };
}

int identity_choose(struct identity *ret, struct error *e)
{
	struct identity id;
	uint32_t uid = 0, gid = 0;

	identity_guess(&id);
	*ret = id;
	ret->privileged = false;
	if (id.uid != 0)
		return 0;
	if (!id.privileged) {
		ret->unprivileged_why =
			"this root lacks capabilities (CAP_SYS_ADMIN among them)";
		return 0;
	}
	int r = pick_ids(&uid, &gid);
	if (r < 0)
		return error_set(e, ERROR_INTERNAL, "facts", -r, "/proc/self/uid_map",
			"cannot find an unprivileged uid");
	if (!uid || !gid) {
		ret->unprivileged_why = "only one uid is mapped here";
		return 0;
	}
	ret->privileged = true;
	ret->kernel_uid = uid;
	ret->kernel_gid = gid;
	return 0;
}
