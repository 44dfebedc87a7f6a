/*
 * attack_tasks.c - attempts on processes and on what a process is: init, the host's processes,
 * identity, capabilities, limits, keys, shared memory.
 *
 * Runs in: a session; for the control arm, outside. The attempts on a process take a pid, or the
 * word `child` for one that the attack starts itself.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "attack.h"

/* --- another process -------------------------------------------------------------------------- */

/* A child dies with the attack, holds none of its descriptors, and is ready to be attacked. */
static pid_t start_child(void)
{
	char byte;
	int ready[2];

	if (pipe(ready) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(1);
		(void)close(2);
		if (write(ready[1], "", 1) == 1 && close(ready[0]) == 0 && close(ready[1]) == 0)
			(void)alarm(20);
		for (;;)
			(void)pause();
	}
	return pid > 0 && read(ready[0], &byte, 1) == 1 ? pid : -1;
}

static pid_t target_of(const char *text)
{
	return strcmp(text, "child") != 0 ? (pid_t)strtol(text, NULL, 10) : start_child();
}

static int trace(char *const *arg)
{
	return attack_result(ptrace(PTRACE_SEIZE, target_of(arg[0]), NULL, NULL));
}

static int attach(char *const *arg)
{
	return attack_result(ptrace(PTRACE_ATTACH, target_of(arg[0]), NULL, NULL));
}

/* Stop a process on its way out, until a file appears. */
static int hold_exit(char *const *arg)
{
	if (ptrace(PTRACE_SEIZE, target_of(arg[0]), NULL, PTRACE_O_TRACEEXIT) < 0)
		return -errno;
	while (access(arg[1], F_OK) < 0)
		(void)usleep(20000);
	return 0;
}

/* Wait, and let anybody trace it: Yama asks for that where the tracer is no ancestor (PR_SET_PTRACER). */
static int be_traceable(char *const *arg)
{
	(void)arg;
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* EINVAL: without Yama */
	return pause();
}

static int copy_memory(char *const *arg, bool write)
{
	static char local[16];
	struct iovec here = { .iov_base = local, .iov_len = 1 };
	struct iovec there = { .iov_base = NULL, .iov_len = 1 };
	pid_t pid = target_of(arg[0]);
	ssize_t n = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
			  : process_vm_readv(pid, &here, 1, &there, 1, 0);

	/* Nothing is mapped at 0: EFAULT comes after the question whether one may. */
	return n >= 0 || errno == EFAULT ? 0 : -errno;
}

static int read_memory(char *const *arg)
{
	return copy_memory(arg, false);
}

static int write_memory(char *const *arg)
{
	return copy_memory(arg, true);
}

static int take_descriptor(char *const *arg)
{
	int pidfd = (int)syscall(SYS_pidfd_open, target_of(arg[0]), 0);

	return pidfd < 0 ? -errno : attack_result(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

static int advise_memory(char *const *arg)
{
	struct iovec there = { .iov_base = NULL, .iov_len = 0 };
	int pidfd = (int)syscall(SYS_pidfd_open, target_of(arg[0]), 0);

	if (pidfd < 0)
		return -errno;
	return attack_result(
		syscall(SYS_process_madvise, pidfd, &there, 1, 20 /* MADV_COLD */, 0));
}

static int compare_files(char *const *arg)
{
	pid_t pid = target_of(arg[0]);

	return attack_result(syscall(SYS_kcmp, getpid(), pid, 2 /* KCMP_FILES */, 0, 0));
}

static int signal_process(char *const *arg)
{
	return attack_result(kill((pid_t)strtol(arg[0], NULL, 10), 0));
}

/* Is it gone, or stopped? See: proc_pid_stat(5). */
static bool runs(pid_t pid)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *state = strrchr(text, ')');
	return state && state[1] && !strchr("ZXTt", state[2]);
}

/* Every signal there is. A child of ours obeys when it gets a processor. */
static int end_process(char *const *arg)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	int moments = strcmp(arg[0], "child") != 0 ? 20 : 6000;
	pid_t pid = target_of(arg[0]);

	for (int s = 1; s <= 64; s++) {
		(void)kill(pid, s);
		if (!runs(pid))
			return 0;
	}
	for (; moments > 0 && runs(pid); moments--)
		(void)nanosleep(&moment, NULL);
	return runs(pid) ? ATTACK_HELD : 0;
}

static int read_entry(char *const *arg)
{
	char path[128], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/%s", arg[0], arg[1]);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	/* Address 0 of a memory that was opened is not mapped: EIO. */
	return n > 0 || (fd >= 0 && n < 0 && errno == EIO) ? 0 : n < 0 ? -errno : ATTACK_ABSENT;
}

static int follow_entry(char *const *arg)
{
	char path[128], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%s/%s", arg[0], arg[1]);
	return attack_result(readlink(path, text, sizeof(text)));
}

/* --- oneself ---------------------------------------------------------------------------------- */

static int raise_limit(char *const *arg)
{
	int resource = (int)strtol(arg[0], NULL, 10);
	struct {
		unsigned long long soft, hard;
	} limit;

	if (syscall(SYS_prlimit64, 0, resource, NULL, &limit) < 0)
		return -errno;
	limit.hard++;
	return attack_result(syscall(SYS_prlimit64, 0, resource, &limit, NULL));
}

static int limit_of(char *const *arg)
{
	struct rlimit limit;
	int resource = (int)strtol(arg[1], NULL, 10);
	pid_t pid = (pid_t)strtol(arg[0], NULL, 10);

	if (syscall(SYS_prlimit64, pid, resource, NULL, &limit) < 0)
		return -errno;
	limit.rlim_max++;
	return attack_result(syscall(SYS_prlimit64, pid, resource, &limit, NULL));
}

static int find_capability(char *const *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3];

	(void)arg;
	if (syscall(SYS_capget, &header, set) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (set[i].effective | set[i].permitted | set[i].inheritable)
			return 0;
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 ||
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			return 0;
	return ATTACK_ABSENT;
}

static int miss_no_new_privs(char *const *arg)
{
	(void)arg;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? ATTACK_HELD : 0;
}

static int miss_securebits(char *const *arg)
{
	const int need = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	(void)arg;
	return (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & need) == need ? ATTACK_HELD : 0;
}

static int clear_securebits(char *const *arg)
{
	(void)arg;
	return attack_result(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}

static int become(char *const *arg)
{
	uid_t uid = (uid_t)strtoul(arg[0], NULL, 10);

	return attack_result(syscall(SYS_setresuid, uid, uid, uid));
}

static int join_group(char *const *arg)
{
	gid_t gid = (gid_t)strtoul(arg[0], NULL, 10);

	return attack_result(syscall(SYS_setgroups, 1, &gid));
}

/* Started from a set-uid file of that user. */
static int is_effectively(char *const *arg)
{
	return geteuid() == (uid_t)strtoul(arg[0], NULL, 10) ? 0 : ATTACK_HELD;
}

/* CAP_NET_RAW, from a file that has it. */
static int has_raw_right(char *const *arg)
{
	(void)arg;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, set) < 0)
		return -errno;
	return set[0].effective & (1u << CAP_NET_RAW) ? 0 : ATTACK_ABSENT;
}

static int run_program(char *const *arg)
{
	(void)execv(arg[0], arg);
	return -errno;
}

/* --- keys ------------------------------------------------------------------------------------- */

static long keyctl(
	int operation, unsigned long a, const void *b, const void *c, unsigned long d)
{
	return syscall(SYS_keyctl, operation, a, b, c, d);
}

/* A key in a keyring of the caller, and then a program: RING DESCRIPTION PROGRAM... */
static int plant_key(char *const *arg)
{
	bool user = !strcmp(arg[0], "user");
	long ring = user ? KEY_SPEC_USER_KEYRING : KEY_SPEC_SESSION_KEYRING;

	if (!user && keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, NULL, NULL, 0) < 0)
		return -errno;
	long key = syscall(SYS_add_key, "user", arg[1], "secret", 6, ring);
	if (key < 0)
		return -errno;
	(void)syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, 30);
	return run_program(arg + 2);
}

static int read_key(char *const *arg)
{
	char text[16];
	long ring = !strcmp(arg[0], "user") ? KEY_SPEC_USER_KEYRING : KEY_SPEC_SESSION_KEYRING;
	long key = keyctl(KEYCTL_SEARCH, (unsigned long)ring, "user", arg[1], 0);

	if (key < 0)
		return -errno;
	return attack_result(keyctl(KEYCTL_READ, (unsigned long)key, text, (void *)6UL, 0));
}

static int add_key(char *const *arg)
{
	(void)arg;
	long key =
		syscall(SYS_add_key, "user", "carrel-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING);

	return attack_result(key);
}

static int request_key(char *const *arg)
{
	(void)arg;
	/* There is none: the question is whether one may ask. */
	long key = syscall(SYS_request_key, "user", "carrel-escape-none", NULL, 0);

	return key < 0 && errno == ENOKEY ? 0 : attack_result(key);
}

/* --- shared memory and queues ----------------------------------------------------------------- */

static int find_shm(char *const *arg)
{
	int id = shmget((key_t)strtol(arg[0], NULL, 10), 0, 0);

	return id < 0 && errno == ENOENT ? ATTACK_ABSENT : attack_result(id);
}

/* Made, a program run, and taken away again: KEY PROGRAM... */
static int plant_shm(char *const *arg)
{
	int status, id = shmget((key_t)strtol(arg[0], NULL, 10), 16, IPC_CREAT | 0666);

	if (id < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		_exit(run_program(arg + 1) == 0);
	(void)waitpid(pid, &status, 0);
	(void)shmctl(id, IPC_RMID, NULL);
	_exit(0); /* the program has printed the verdict */
}

static int find_queue(char *const *arg)
{
	mqd_t queue = mq_open(arg[0], O_RDONLY);

	return queue < 0 && errno == ENOENT ? ATTACK_ABSENT : attack_result(queue);
}

static int plant_queue(char *const *arg)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	mqd_t queue = mq_open(arg[0], O_RDWR | O_CREAT | O_EXCL, 0666, &attr);
	int status;

	if (queue < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		_exit(run_program(arg + 1) == 0);
	(void)waitpid(pid, &status, 0);
	(void)mq_unlink(arg[0]);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const struct attack attacks[] = {
		{ "seize", 1, trace },
		{ "attach", 1, attach },
		{ "traceable", 0, be_traceable },
		{ "hold-exit", 2, hold_exit },
		{ "vm-read", 1, read_memory },
		{ "vm-write", 1, write_memory },
		{ "getfd", 1, take_descriptor },
		{ "madvise", 1, advise_memory },
		{ "kcmp", 1, compare_files },
		{ "signal", 1, signal_process },
		{ "end", 1, end_process },
		{ "proc-read", 2, read_entry },
		{ "proc-link", 2, follow_entry },
		{ "raise-limit", 1, raise_limit },
		{ "limit-of", 2, limit_of },
		{ "capability", 0, find_capability },
		{ "new-privs", 0, miss_no_new_privs },
		{ "securebits", 0, miss_securebits },
		{ "clear-securebits", 0, clear_securebits },
		{ "become", 1, become },
		{ "join-group", 1, join_group },
		{ "is-effectively", 1, is_effectively },
		{ "has-raw-right", 0, has_raw_right },
		{ "run", 1, run_program },
		{ "plant-key", 3, plant_key },
		{ "read-key", 2, read_key },
		{ "add-key", 0, add_key },
		{ "request-key", 0, request_key },
		{ "find-shm", 1, find_shm },
		{ "plant-shm", 2, plant_shm },
		{ "find-queue", 1, find_queue },
		{ "plant-queue", 2, plant_queue },
	};

	return attack_main(argc, argv, attacks, sizeof(attacks) / sizeof(attacks[0]));
}
