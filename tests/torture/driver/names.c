/*
 * names.c - names of system calls, for the tables that the torture driver prints.
 *
 * Runs in: the torture driver. A call without a name here is shown by its number.
 */
#include <stdio.h>
#include <sys/syscall.h>

#include "trace.h"

#define NAME(call) \
	{ \
		SYS_##call, #call \
	}

static const struct {
	unsigned number;
	const char *name;
} names[] = {
#ifdef SYS_arch_prctl
	NAME(arch_prctl),
#endif
#ifdef SYS_open
	NAME(open),
	NAME(poll),
	NAME(stat),
	NAME(lstat),
	NAME(access),
	NAME(pipe),
	NAME(fork),
	NAME(dup2),
	NAME(mkdir),
	NAME(unlink),
	NAME(rename),
	NAME(readlink),
	NAME(symlink),
#endif
#ifdef SYS_pause
	NAME(pause),
#endif
	NAME(brk),
	NAME(capget),
	NAME(capset),
	NAME(chdir),
	NAME(clock_gettime),
	NAME(clone),
	NAME(clone3),
	NAME(close),
	NAME(close_range),
	NAME(dup),
	NAME(dup3),
	NAME(epoll_create1),
	NAME(epoll_ctl),
	NAME(epoll_pwait),
	NAME(execve),
	NAME(exit),
	NAME(exit_group),
	NAME(faccessat),
	NAME(faccessat2),
	NAME(fchdir),
	NAME(fchmod),
	NAME(fchown),
	NAME(fcntl),
	NAME(fdatasync),
	NAME(flock),
	NAME(fsconfig),
	NAME(fsmount),
	NAME(fsopen),
	NAME(fstat),
	NAME(fstatfs),
	NAME(ftruncate),
	NAME(getcwd),
	NAME(getdents64),
	NAME(getegid),
	NAME(geteuid),
	NAME(getgid),
	NAME(getgroups),
	NAME(getpid),
	NAME(getppid),
	NAME(getrandom),
	NAME(getuid),
	NAME(ioctl),
	NAME(keyctl),
	NAME(kill),
	NAME(landlock_add_rule),
	NAME(landlock_create_ruleset),
	NAME(landlock_restrict_self),
	NAME(linkat),
	NAME(lseek),
	NAME(madvise),
	NAME(mkdirat),
	NAME(mmap),
	NAME(mount_setattr),
	NAME(move_mount),
	NAME(mprotect),
	NAME(mremap),
	NAME(munmap),
	NAME(newfstatat),
	NAME(open_tree),
	NAME(openat),
	NAME(openat2),
	NAME(pidfd_open),
	NAME(pidfd_send_signal),
	NAME(pipe2),
	NAME(pivot_root),
	NAME(ppoll),
	NAME(prctl),
	NAME(prlimit64),
	NAME(pwrite64),
	NAME(read),
	NAME(readlinkat),
	NAME(recvmsg),
	NAME(renameat),
	NAME(renameat2),
	NAME(rt_sigaction),
	NAME(rt_sigprocmask),
	NAME(sched_getaffinity),
	NAME(seccomp),
	NAME(sendmsg),
	NAME(sendto),
	NAME(set_tid_address),
	NAME(setgid),
	NAME(setgroups),
	NAME(setns),
	NAME(setpgid),
	NAME(setresgid),
	NAME(setresuid),
	NAME(setrlimit),
	NAME(setsid),
	NAME(setuid),
	NAME(signalfd4),
	NAME(socket),
	NAME(socketpair),
	NAME(statx),
	NAME(symlinkat),
	NAME(timerfd_create),
	NAME(timerfd_settime),
	NAME(umask),
	NAME(umount2),
	NAME(unlinkat),
	NAME(unshare),
	NAME(wait4),
	NAME(waitid),
	NAME(write),
	NAME(writev),
};

const char *trace_call_name(unsigned number, char ret_text[16])
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return names[i].name;
	(void)snprintf(ret_text, 16, "call %u", number);
	return ret_text;
}
