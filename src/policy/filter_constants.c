/*
 * filter_constants.c - the kernel's constants that a filter may name.
 *
 * Runs in: mkpolicy, carrel-policy, tests. PURE.
 */
#include <string.h>

#include "base/text.h"
#include "policy/filter.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct constant {
	const char *name;
	uint64_t value;
};

/*
 * Numbers, not the headers' names: the tables must hold also where the headers are older, and must
 * be the same for both architectures. Nothing that differs between them may be in here.
 */
static const struct constant constants[] = {
	/* clone, unshare, setns: linux/sched.h */
	{ "CLONE_NEWTIME", 0x00000080 },
	{ "CLONE_VM", 0x00000100 },
	{ "CLONE_FS", 0x00000200 },
	{ "CLONE_FILES", 0x00000400 },
	{ "CLONE_SIGHAND", 0x00000800 },
	{ "CLONE_PTRACE", 0x00002000 },
	{ "CLONE_VFORK", 0x00004000 },
	{ "CLONE_PARENT", 0x00008000 },
	{ "CLONE_THREAD", 0x00010000 },
	{ "CLONE_NEWNS", 0x00020000 },
	{ "CLONE_SYSVSEM", 0x00040000 },
	{ "CLONE_SETTLS", 0x00080000 },
	{ "CLONE_UNTRACED", 0x00800000 },
	{ "CLONE_NEWCGROUP", 0x02000000 },
	{ "CLONE_NEWUTS", 0x04000000 },
	{ "CLONE_NEWIPC", 0x08000000 },
	{ "CLONE_NEWUSER", 0x10000000 },
	{ "CLONE_NEWPID", 0x20000000 },
	{ "CLONE_NEWNET", 0x40000000 },
	{ "CLONE_IO", 0x80000000 },
	{ "SIGCHLD", 17 },
	/* scheduling: linux/sched.h */
	{ "SCHED_IDLE", 5 },
	/* terminals and files: asm-generic/ioctls.h, linux/fs.h, linux/sockios.h */
	{ "TCGETS", 0x5401 },
	{ "TCSETS", 0x5402 },
	{ "TCSETSW", 0x5403 },
	{ "TCSETSF", 0x5404 },
	{ "TCSBRK", 0x5409 },
	{ "TCXONC", 0x540A },
	{ "TCFLSH", 0x540B },
	{ "TIOCEXCL", 0x540C },
	{ "TIOCNXCL", 0x540D },
	{ "TIOCSCTTY", 0x540E },
	{ "TIOCGPGRP", 0x540F },
	{ "TIOCSPGRP", 0x5410 },
	{ "TIOCOUTQ", 0x5411 },
	{ "TIOCSTI", 0x5412 },
	{ "TIOCGWINSZ", 0x5413 },
	{ "TIOCSWINSZ", 0x5414 },
	{ "FIONREAD", 0x541B },
	{ "TIOCLINUX", 0x541C },
	{ "TIOCCONS", 0x541D },
	{ "TIOCPKT", 0x5420 },
	{ "FIONBIO", 0x5421 },
	{ "TIOCNOTTY", 0x5422 },
	{ "TIOCSETD", 0x5423 },
	{ "TIOCGETD", 0x5424 },
	{ "TCSBRKP", 0x5425 },
	{ "TIOCGSID", 0x5429 },
	{ "TIOCGPTN", 0x80045430 },
	{ "TIOCSPTLCK", 0x40045431 },
	{ "TIOCVHANGUP", 0x5437 },
	{ "TIOCGPTPEER", 0x5441 },
	{ "FIONCLEX", 0x5450 },
	{ "FIOCLEX", 0x5451 },
	{ "FIOASYNC", 0x5452 },
	{ "TIOCSLCKTRMIOS", 0x5457 },
	{ "TCGETS2", 0x802C542A },
	{ "TCSETS2", 0x402C542B },
	{ "TCSETSW2", 0x402C542C },
	{ "TCSETSF2", 0x402C542D },
	{ "FIOQSIZE", 0x5460 },
	{ "FICLONE", 0x40049409 },
	{ "FICLONERANGE", 0x4020940D },
	{ "FIDEDUPERANGE", 0xC0189436 },
	{ "FS_IOC_FIEMAP", 0xC020660B },
	{ "FS_IOC_GETFLAGS", 0x80086601 },
	{ "FS_IOC_SETFLAGS", 0x40086602 },
	{ "FS_IOC_FSSETXATTR", 0x401C5820 },
	{ "FS_IOC_SET_ENCRYPTION_POLICY", 0x800C6613 },
	{ "FS_IOC_ADD_ENCRYPTION_KEY", 0xC0506617 },
	{ "FS_IOC_REMOVE_ENCRYPTION_KEY", 0xC0406618 },
	{ "FS_IOC_ENABLE_VERITY", 0x40806685 },
	/* open and modes: fcntl.h, sys/stat.h; only what is the same everywhere */
	{ "O_WRONLY", 01 },
	{ "O_RDWR", 02 },
	{ "O_ACCMODE", 03 },
	{ "O_CREAT", 0100 },
	{ "O_EXCL", 0200 },
	{ "O_TRUNC", 01000 },
	{ "O_APPEND", 02000 },
	{ "O_NONBLOCK", 04000 },
	{ "O_CLOEXEC", 02000000 },
	{ "__O_TMPFILE", 020000000 },
	{ "S_ISUID", 04000 },
	{ "S_ISGID", 02000 },
	{ "S_IFMT", 0170000 },
	{ "S_IFSOCK", 0140000 },
	{ "S_IFREG", 0100000 },
	{ "S_IFBLK", 0060000 },
	{ "S_IFCHR", 0020000 },
	{ "S_IFIFO", 0010000 },
	/* fcntl: linux/fcntl.h */
	{ "F_GETFL", 3 },
	{ "F_SETFL", 4 },
	{ "F_SETOWN", 8 },
	{ "F_SETSIG", 10 },
	{ "F_SETOWN_EX", 15 },
	{ "F_SETLEASE", 1024 },
	{ "F_NOTIFY", 1026 },
	{ "F_SETDELEG", 1040 },
	/* sockets: linux/socket.h, linux/net.h, linux/in.h, linux/netlink.h */
	{ "AF_UNSPEC", 0 },
	{ "AF_UNIX", 1 },
	{ "SOL_SOCKET", 1 },
	{ "SO_ERROR", 4 },
	{ "SO_KEEPALIVE", 9 },
	{ "SO_OOBINLINE", 10 },
	{ "SO_LINGER", 13 },
	{ "SO_PASSCRED", 16 },
	{ "SO_RCVLOWAT", 18 },
	{ "TCP_NODELAY", 1 },
	{ "AF_INET", 2 },
	{ "AF_AX25", 3 },
	{ "AF_IPX", 4 },
	{ "AF_X25", 9 },
	{ "AF_INET6", 10 },
	{ "AF_KEY", 15 },
	{ "AF_NETLINK", 16 },
	{ "AF_PACKET", 17 },
	{ "AF_RDS", 21 },
	{ "AF_LLC", 26 },
	{ "AF_CAN", 29 },
	{ "AF_TIPC", 30 },
	{ "AF_BLUETOOTH", 31 },
	{ "AF_RXRPC", 33 },
	{ "AF_ALG", 38 },
	{ "AF_NFC", 39 },
	{ "AF_VSOCK", 40 },
	{ "AF_KCM", 41 },
	{ "AF_QIPCRTR", 42 },
	{ "AF_SMC", 43 },
	{ "AF_XDP", 44 },
	{ "AF_MCTP", 45 },
	{ "SOCK_STREAM", 1 },
	{ "SOCK_DGRAM", 2 },
	{ "SOCK_RAW", 3 },
	{ "SOCK_RDM", 4 },
	{ "SOCK_SEQPACKET", 5 },
	{ "SOCK_DCCP", 6 },
	{ "SOCK_PACKET", 10 },
	{ "SOCK_TYPE_MASK", 0xf },
	{ "SOCK_NONBLOCK", 04000 },
	{ "SOCK_CLOEXEC", 02000000 },
	{ "IPPROTO_IP", 0 },
	{ "IPPROTO_ICMP", 1 },
	{ "IPPROTO_TCP", 6 },
	{ "IPPROTO_UDP", 17 },
	{ "IPPROTO_DCCP", 33 },
	{ "IPPROTO_ICMPV6", 58 },
	{ "IPPROTO_L2TP", 115 },
	{ "IPPROTO_SCTP", 132 },
	{ "IPPROTO_UDPLITE", 136 },
	{ "IPPROTO_RAW", 255 },
	{ "IPPROTO_SMC", 256 },
	{ "IPPROTO_MPTCP", 262 },
	{ "NETLINK_ROUTE", 0 },
	{ "NETLINK_USERSOCK", 2 },
	{ "NETLINK_SOCK_DIAG", 4 },
	{ "NETLINK_XFRM", 6 },
	{ "NETLINK_AUDIT", 9 },
	{ "NETLINK_NETFILTER", 12 },
	{ "NETLINK_KOBJECT_UEVENT", 15 },
	{ "NETLINK_GENERIC", 16 },
	/* prctl: linux/prctl.h */
	{ "PR_SET_PDEATHSIG", 1 },
	{ "PR_GET_PDEATHSIG", 2 },
	{ "PR_GET_DUMPABLE", 3 },
	{ "PR_SET_DUMPABLE", 4 },
	{ "PR_GET_KEEPCAPS", 7 },
	{ "PR_SET_KEEPCAPS", 8 },
	{ "PR_SET_NAME", 15 },
	{ "PR_GET_NAME", 16 },
	{ "PR_GET_SECCOMP", 21 },
	{ "PR_SET_SECCOMP", 22 },
	{ "PR_CAPBSET_READ", 23 },
	{ "PR_CAPBSET_DROP", 24 },
	{ "PR_SET_TSC", 26 },
	{ "PR_GET_SECUREBITS", 27 },
	{ "PR_SET_SECUREBITS", 28 },
	{ "PR_SET_TIMERSLACK", 29 },
	{ "PR_GET_TIMERSLACK", 30 },
	{ "PR_TASK_PERF_EVENTS_DISABLE", 31 },
	{ "PR_TASK_PERF_EVENTS_ENABLE", 32 },
	{ "PR_SET_MM", 35 },
	{ "PR_SET_CHILD_SUBREAPER", 36 },
	{ "PR_GET_CHILD_SUBREAPER", 37 },
	{ "PR_SET_NO_NEW_PRIVS", 38 },
	{ "PR_GET_NO_NEW_PRIVS", 39 },
	{ "PR_SET_THP_DISABLE", 41 },
	{ "PR_GET_THP_DISABLE", 42 },
	{ "PR_CAP_AMBIENT", 47 },
	{ "PR_GET_SPECULATION_CTRL", 52 },
	{ "PR_SET_SPECULATION_CTRL", 53 },
	{ "PR_SET_IO_FLUSHER", 57 },
	{ "PR_GET_IO_FLUSHER", 58 },
	{ "PR_SCHED_CORE", 62 },
	{ "PR_SET_MDWE", 65 },
	{ "PR_GET_MDWE", 66 },
	{ "PR_SET_MEMORY_MERGE", 67 },
	{ "PR_GET_MEMORY_MERGE", 68 },
	{ "PR_GET_SHADOW_STACK_STATUS", 74 },
	{ "PR_SET_SHADOW_STACK_STATUS", 75 },
	{ "PR_LOCK_SHADOW_STACK_STATUS", 76 },
	{ "PR_SET_VMA", 0x53564d41 },
	{ "PR_SET_PTRACER", 0x59616d61 },
	/* personality: linux/personality.h */
	{ "PER_LINUX", 0 },
	{ "PER_LINUX32", 8 },
	{ "ADDR_NO_RANDOMIZE", 0x0040000 },
	{ "READ_IMPLIES_EXEC", 0x0400000 },
	{ "PER_QUERY", 0xffffffff },
	/* the rest */
	{ "PROT_READ", 1 },
	{ "PROT_WRITE", 2 },
	{ "PROT_EXEC", 4 },
	{ "KEYCTL_JOIN_SESSION_KEYRING", 1 },
	{ "SECCOMP_SET_MODE_FILTER", 1 },
};

bool filter_constant(const char *name, uint64_t *ret_value)
{
	for (size_t i = 0; i < LENGTH(constants); i++) {
		if (strcmp(constants[i].name, name) != 0)
			continue;
		*ret_value = constants[i].value;
		return true;
	}
	return false;
}

const char *filter_nearest_constant(const char *word)
{
	const char *names[LENGTH(constants)];

	for (size_t i = 0; i < LENGTH(constants); i++)
		names[i] = constants[i].name;
	return text_nearest(word, names, LENGTH(constants));
}
