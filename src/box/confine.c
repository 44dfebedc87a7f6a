/*
 * confine.c - see confine.h.
 *
 * Runs in: init. No heap, no stdio.
 */
#include "box/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/payload.h"
#include "box/sys.h"
#include "plan/uapi.h"

int confine_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	int r = ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

int confine_keyring(void)
{
	long r = sys_result(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));

	/* A kernel without keyrings has no keys that could leak. */
	return r == -ENOSYS ? 0 : r < 0 ? (int)r : 0;
}

int confine_enter_user_ns(int user_ns)
{
	return setns(user_ns, CLONE_NEWUSER) < 0 ? -errno : 0;
}

int confine_no_nested(int proc)
{
	if (proc < 0)
		return proc;
	int fd = openat(proc, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, "0\n", 2);
	int r = n == 2 ? 0 : n < 0 ? -errno : -EIO;
	(void)close(fd);
	return r;
}

int confine_identity(const struct facts *facts)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	if (facts->privileged) {
		/* The system call itself: the C library's setuid() is made for threads and blocks
		 * signals to reach them all. */
		if (syscall(SYS_setgroups, 0, NULL) < 0)
			return -errno;
		if (syscall(SYS_setresgid, facts->gid, facts->gid, facts->gid) < 0)
			return -errno;
		if (syscall(SYS_setresuid, facts->uid, facts->uid, facts->uid) < 0)
			return -errno;
	}
	/* Where the id maps were not written as planned, the ids read as the overflow ids
	 * (user_namespaces(7)). */
	if (getresuid(&r, &e, &s) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return -errno;
	if (r != facts->uid || e != facts->uid || s != facts->uid)
		return -EPERM;
	if (rg != facts->gid || eg != facts->gid || sg != facts->gid)
		return -EPERM;
	return 0;
}

int confine_rlimit(unsigned resource, uint64_t value)
{
	/* As prlimit(2) has it: 64 bits, and the same type of resource in every libc. */
	struct {
		uint64_t rlim_cur, rlim_max;
	} old, limit = { value, value };

	if (syscall(SYS_prlimit64, 0, resource, NULL, &old) < 0)
		return -errno;
	if (limit.rlim_max > old.rlim_max)
		limit.rlim_cur = limit.rlim_max = old.rlim_max;
	/* The soft cpu limit sends SIGXCPU; one second later the hard one kills. */
	if (resource == RLIMIT_CPU && limit.rlim_max + 1 <= old.rlim_max)
		limit.rlim_max++;
	return syscall(SYS_prlimit64, 0, resource, &limit, NULL) < 0 ? -errno : 0;
}

int confine_tasks(uint64_t count)
{
	struct {
		uint64_t rlim_cur, rlim_max;
	} old, limit;

	int r = confine_rlimit(RLIMIT_NPROC, count);
	if (r < 0)
		return r;
	if (syscall(SYS_prlimit64, 0, RLIMIT_NPROC, NULL, &old) < 0)
		return -errno;
	/* This process counts as one: under a limit of one the kernel must refuse another. */
	limit = old;
	limit.rlim_cur = 1;
	if (syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, NULL) < 0)
		return -errno;
	r = payload_probe();
	if (r != -EAGAIN)
		return r < 0 ? r : -ENOTSUP;
	return syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &old, NULL) < 0 ? -errno : 0;
}

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno != EINVAL)
			return -errno;
		return cap > 0 ? 0 : -EINVAL; /* past the last one this kernel knows */
	}
	return 0;
}

/* Both need CAP_SETPCAP. Without it, and with no_new_privs, neither has an effect: no execve can
 * give a capability that is not permitted now, not even root's (capabilities(7)). */
static int lock_capabilities(void)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
		SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r = drop_bounding_set();

	if (r < 0)
		return r;
	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_capabilities(bool lock)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	int r = lock_capabilities();
	if (r < 0 && (lock || r != -EPERM))
		return r;
	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	if (syscall(SYS_capget, &header, none) < 0)
		return -errno;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (none[i].effective | none[i].permitted | none[i].inheritable)
			return -EPERM;
	return 0;
}

int confine_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* As struct landlock_ruleset_attr of the newest ABI; older kernels take the leading part. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

static int landlock_new(const struct op *op, int *ruleset)
{
	struct ruleset_attr attr = { .handled_access_fs = op->value };
	size_t size = sizeof(attr.handled_access_fs);

	if (op->from >= 6) {
		attr.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	long fd = sys_result(syscall(SYS_landlock_create_ruleset, &attr, size, 0));
	if (fd < 0)
		return (int)fd;
	*ruleset = (int)fd;
	return 0;
}

static int landlock_add(int ruleset, uint64_t rights, int place)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = rights,
		.parent_fd = place };

	return (int)sys_result(
		syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0));
}

static int landlock_path(const struct op *op, int place, int ruleset)
{
	if (place >= 0)
		return landlock_add(ruleset, op->value, place);
	int fd = sys_openat2(
		AT_FDCWD, op->path, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return fd;
	int r = landlock_add(ruleset, op->value, fd);
	(void)close(fd);
	return r;
}

int confine_landlock(const struct op *op, int place, int *ruleset)
{
	if (op->kind == OP_LANDLOCK_NEW)
		return landlock_new(op, ruleset);
	if (*ruleset < 0)
		return -EBADF;
	if (op->kind == OP_LANDLOCK_PATH)
		return landlock_path(op, place, *ruleset);
	long r = sys_result(syscall(SYS_landlock_restrict_self, *ruleset, 0));
	(void)close(*ruleset);
	*ruleset = -1;
	return (int)r;
}

int confine_hide_self(char *caller_args, size_t size, bool die_with_parent)
{
	static const char title[] = "carrel-init";

	if (caller_args && size >= sizeof(title)) {
		memset(caller_args, 0, size);
		memcpy(caller_args, title, sizeof(title));
	}
	if (prctl(PR_SET_NAME, title, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* The kernel clears the death signal when the uid changes (prctl(2), PR_SET_PDEATHSIG). */
	if (!die_with_parent)
		return 0;
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_sockets(void)
{
	/* The main filter, which is loaded after this one, kills calls of foreign ABIs, so
	 * comparing the number is enough. Only the low half of the family is compared: the kernel
	 * takes an int. */
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return confine_filter(code, sizeof(code) / sizeof(code[0]));
}

int confine_filter(const struct sock_filter *filter, unsigned short count)
{
	struct sock_fprog program = { .len = count, .filter = (struct sock_filter *)filter };

	if (!filter || !count)
		return -EINVAL;
	return (int)sys_result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}
