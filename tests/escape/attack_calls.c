/*
 * attack_calls.c - system calls that reach past the namespaces or change them, foreign ABIs,
 * terminals, and sockets.
 *
 * Runs in: a session; for the control arm, outside, where the rights are those of a new user
 * namespace. Many attempts hand the kernel something that it refuses as nonsense (EFAULT, EINVAL,
 * EBADF): that answer shows that the call got through, and counts as escaped.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_alg.h>
#include <linux/mount.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include "attack.h"

/* The kernel itself has looked at the arguments. */
static int got_through(long result)
{
	if (result >= 0 || errno == EFAULT || errno == EINVAL || errno == EBADF ||
		errno == ENOENT || errno == ENOTTY || errno == ESRCH || errno == EOPNOTSUPP)
		return 0;
	return -errno;
}

/* --- calls by name, with arguments that mean nothing ------------------------------------------ */

static int call(char *const *arg)
{
	static const struct {
		const char *name;
		long number;
		long args[6];
	} calls[] = {
		{ "bpf", SYS_bpf, { 9999, 0, 0, 0, 0, 0 } },
		{ "perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0, 0 } },
		{ "userfaultfd", SYS_userfaultfd,
			{ 1 /* UFFD_USER_MODE_ONLY */, 0, 0, 0, 0, 0 } },
		{ "io_uring_setup", SYS_io_uring_setup, { 1, 0, 0, 0, 0, 0 } },
		{ "io_uring_enter", SYS_io_uring_enter, { -1, 0, 0, 0, 0, 0 } },
		{ "io_uring_register", SYS_io_uring_register, { -1, 0, 0, 0, 0, 0 } },
		{ "keyctl", SYS_keyctl, { 9999, 0, 0, 0, 0, 0 } },
		{ "setns", SYS_setns, { -1, 0, 0, 0, 0, 0 } },
		{ "unshare", SYS_unshare, { 0x1, 0, 0, 0, 0, 0 } },
		{ "pidfd_getfd", 438, { -1, 0, 0, 0, 0, 0 } },
		{ "kexec_load", SYS_kexec_load, { 0, 99999, 0, 0, 0, 0 } },
		{ "init_module", SYS_init_module, { 0, 0, 0, 0, 0, 0 } },
		{ "finit_module", SYS_finit_module, { -1, 0, 0, 0, 0, 0 } },
		{ "delete_module", SYS_delete_module, { 0, 0, 0, 0, 0, 0 } },
		{ "swapon", SYS_swapon, { 0, 0, 0, 0, 0, 0 } },
		{ "acct", SYS_acct, { 1, 0, 0, 0, 0, 0 } },
		{ "quotactl", SYS_quotactl, { 0x7fffffff, 0, 0, 0, 0, 0 } },
		{ "syslog", SYS_syslog, { 99, 0, 0, 0, 0, 0 } },
		{ "fanotify_init", SYS_fanotify_init, { 0x7fffffff, 0, 0, 0, 0, 0 } },
		{ "settimeofday", SYS_settimeofday, { 1, 0, 0, 0, 0, 0 } },
		{ "clock_settime", SYS_clock_settime, { 0, 0, 0, 0, 0, 0 } },
		{ "adjtimex", SYS_adjtimex, { 0, 0, 0, 0, 0, 0 } },
		{ "sethostname", SYS_sethostname, { 1, 5, 0, 0, 0, 0 } },
		{ "setdomainname", SYS_setdomainname, { 1, 5, 0, 0, 0, 0 } },
		{ "reboot", SYS_reboot, { 0, 0, 0, 0, 0, 0 } },
		{ "move_pages", SYS_move_pages, { 0, 1, 0, 0, 0, 0x7fff } },
		{ "migrate_pages", SYS_migrate_pages, { 999999, 1, 0, 0, 0, 0 } },
		{ "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0, 0, 0, 0 } },
#ifdef __x86_64__
		{ "iopl", SYS_iopl, { 99, 0, 0, 0, 0, 0 } },
		{ "ioperm", SYS_ioperm, { 0x10000000, 1, 1, 0, 0, 0 } },
		{ "modify_ldt", SYS_modify_ldt, { 1, 0, 0, 0, 0, 0 } },
#endif
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const long *a = calls[i].args;

		if (!strcmp(calls[i].name, arg[0]))
			return got_through(
				syscall(calls[i].number, a[0], a[1], a[2], a[3], a[4], a[5]));
	}
	return -EINVAL;
}

/* --- mounts ----------------------------------------------------------------------------------- */

static int remount_writable(char *const *arg)
{
	return attack_result(mount(NULL, arg[0], NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int mount_memory(char *const *arg)
{
	return attack_result(mount("none", arg[0], "tmpfs", 0, NULL));
}

static int bind_mount(char *const *arg)
{
	return attack_result(mount(arg[0], arg[1], NULL, MS_BIND | MS_REC, NULL));
}

static int unmount(char *const *arg)
{
	return attack_result(umount2(arg[0], MNT_DETACH));
}

static int clone_tree(char *const *arg)
{
	return attack_result(
		syscall(SYS_open_tree, AT_FDCWD, arg[0], OPEN_TREE_CLONE | AT_RECURSIVE));
}

static int move_a_mount(char *const *arg)
{
	return got_through(syscall(SYS_move_mount, AT_FDCWD, arg[0], AT_FDCWD, arg[1], 0));
}

static int open_fs(char *const *arg)
{
	return attack_result(syscall(SYS_fsopen, arg[0], 0));
}

static int pick_fs(char *const *arg)
{
	return got_through(syscall(SYS_fspick, AT_FDCWD, arg[0], 0));
}

static int clear_read_only(char *const *arg)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	return attack_result(
		syscall(SYS_mount_setattr, AT_FDCWD, arg[0], 0, &attr, sizeof(attr)));
}

static int pivot(char *const *arg)
{
	return got_through(syscall(SYS_pivot_root, arg[0], arg[0]));
}

static int change_root(char *const *arg)
{
	return attack_result(chroot(arg[0]));
}

/* --- namespaces ------------------------------------------------------------------------------- */

static unsigned long namespace_flag(const char *name)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} names[] = {
		{ "user", CLONE_NEWUSER },
		{ "mnt", CLONE_NEWNS },
		{ "pid", CLONE_NEWPID },
		{ "net", CLONE_NEWNET },
		{ "ipc", CLONE_NEWIPC },
		{ "uts", CLONE_NEWUTS },
		{ "cgroup", CLONE_NEWCGROUP },
		{ "time", CLONE_NEWTIME },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, name))
			return names[i].flag;
	return 0;
}

static int unshare_one(char *const *arg)
{
	return attack_result(syscall(SYS_unshare, namespace_flag(arg[0])));
}

/* The flags as clone takes them, with bits above the 32nd set as well. */
static int clone_one(char *const *arg)
{
	unsigned long high = arg[1] && !strcmp(arg[1], "high") ? 1UL << 40 : 0;
	long pid = syscall(SYS_clone, namespace_flag(arg[0]) | high | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return attack_result(pid);
}

static int clone3_one(char *const *arg)
{
	struct clone_args args = { .flags = namespace_flag(arg[0]), .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return attack_result(pid);
}

static int enter(char *const *arg)
{
	int fd = open(arg[0], O_RDONLY);

	return fd < 0 ? -errno : attack_result(setns(fd, 0));
}

static int enter_process(char *const *arg)
{
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(arg[0], NULL, 10), 0);

	return pidfd < 0 ? -errno : attack_result(setns(pidfd, CLONE_NEWUTS));
}

/* --- foreign ABIs, personality ---------------------------------------------------------------- */

static int call_x32(char *const *arg)
{
	(void)arg;
#ifdef __x86_64__
	/* getppid by its x32 number. Without the filter: an answer, or ENOSYS of the kernel. */
	long r = syscall(0x40000000L | SYS_getppid);

	return r < 0 && errno != ENOSYS ? -errno : 0;
#else
	return ATTACK_ABSENT;
#endif
}

static int call_int80(char *const *arg)
{
	(void)arg;
#ifdef __x86_64__
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(64L /* getppid */)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)r : 0;
#else
	return ATTACK_ABSENT;
#endif
}

static int change_personality(char *const *arg)
{
	unsigned long persona = strtoul(arg[0], NULL, 0);

	return attack_result(personality(persona));
}

/* --- terminals -------------------------------------------------------------------------------- */

/* On a descriptor that is no terminal the kernel says ENOTTY: the request got through. */
static int request(char *const *arg)
{
	unsigned long number = strtoul(arg[1], NULL, 0);
	char room[64] = "x"; /* for what the request may answer */

	return got_through(syscall(SYS_ioctl, (int)strtol(arg[0], NULL, 10), number, room));
}

/* --- sockets ---------------------------------------------------------------------------------- */

static int make_socket(char *const *arg)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} sockets[] = {
		{ "raw", AF_INET, SOCK_RAW, IPPROTO_ICMP },
		{ "raw6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
		{ "packet", AF_PACKET, SOCK_RAW, 0 },
		{ "packet-old", AF_INET, SOCK_PACKET, 0 },
		{ "vsock", AF_VSOCK, SOCK_STREAM, 0 },
		{ "alg", AF_ALG, SOCK_SEQPACKET, 0 },
		{ "netlink-audit", AF_NETLINK, SOCK_RAW, 9 },
		{ "netlink-uevent", AF_NETLINK, SOCK_RAW, 15 },
		{ "netlink-generic", AF_NETLINK, SOCK_RAW, 16 },
		{ "netlink-netfilter", AF_NETLINK, SOCK_RAW, 12 },
		{ "netlink-diag", AF_NETLINK, SOCK_RAW, 4 },
		{ "netlink-xfrm", AF_NETLINK, SOCK_RAW, 6 },
		{ "netlink-connector", AF_NETLINK, SOCK_DGRAM, 11 },
	};

	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
		if (!strcmp(sockets[i].name, arg[0]))
			return attack_result(socket(
				sockets[i].family, sockets[i].type, sockets[i].protocol));
	return -EINVAL;
}

static int reach(int fd, const struct sockaddr *address, socklen_t size)
{
	char byte;

	if (fd < 0)
		return -errno;
	if (connect(fd, address, size) < 0)
		return errno == ENOENT ? ATTACK_ABSENT : -errno;
	return read(fd, &byte, 1) == 1 ? 0 : ATTACK_HELD;
}

static int connect_tcp(char *const *arg)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = inet_addr(arg[0]),
		.sin_port = htons((uint16_t)strtoul(arg[1], NULL, 10)),
	};

	return reach(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to));
}

/* The answer is awaited for a second. */
static int ask_udp(char *const *arg)
{
	struct timeval second = { .tv_sec = 1 };
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = inet_addr(arg[0]),
		.sin_port = htons((uint16_t)strtoul(arg[1], NULL, 10)),
	};
	char byte = '?';
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) < 0)
		return -errno;
	if (sendto(fd, &byte, 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, &byte, 1, 0) < 0)
		return -errno;
	return read(fd, &byte, 1) == 1 ? 0 : -errno;
}

static int connect_unix(char *const *arg)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	bool abstract = arg[0][0] == '@';
	size_t length = strlen(arg[0]);

	if (length >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, arg[0], length);
	if (abstract)
		to.sun_path[0] = '\0';
	socklen_t size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !abstract);
	return reach(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&to, size);
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "call", 1, call },
		{ "remount", 1, remount_writable },
		{ "mount", 1, mount_memory },
		{ "bind", 2, bind_mount },
		{ "umount", 1, unmount },
		{ "open-tree", 1, clone_tree },
		{ "move-mount", 2, move_a_mount },
		{ "fsopen", 1, open_fs },
		{ "fspick", 1, pick_fs },
		{ "mount-setattr", 1, clear_read_only },
		{ "pivot-root", 1, pivot },
		{ "chroot", 1, change_root },
		{ "unshare", 1, unshare_one },
		{ "clone", 1, clone_one },
		{ "clone3", 1, clone3_one },
		{ "setns", 1, enter },
		{ "setns-process", 1, enter_process },
		{ "x32", 0, call_x32 },
		{ "int80", 0, call_int80 },
		{ "personality", 1, change_personality },
		{ "ioctl", 2, request },
		{ "socket", 1, make_socket },
		{ "tcp", 2, connect_tcp },
		{ "udp", 2, ask_udp },
		{ "unix", 1, connect_unix },
	};

	return attack_main(argc, argv, attacks, sizeof(attacks) / sizeof(attacks[0]));
}
