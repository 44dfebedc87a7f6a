/*
 * confined.c - see confined.h.
 *
 * Runs in: the launcher or the supervisor; enter() and what it calls in the child.
 */
#include "host/process/confined.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parent.h"
#include "box/sys.h"
#include "host/process/confine_self.h"
#include "plan/embedded.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* waitid(2), Linux 5.4 */
#endif

/* A killed child has this long to end, ms; one that hangs in a file system is left to the kernel. */
enum { PATIENCE_MS = 500 };

/* Descriptors in the child: a walk 32 directories deep, and some to spare. */
enum { DESCRIPTORS_MAX = 128 };

/* All rights that Landlock knows up to its ABI 5, lowest first. */
static const uint64_t rights_of_abi[] = { (1u << 13) - 1, (1u << 14) - 1, (1u << 15) - 1,
	(1u << 15) - 1, (1u << 16) - 1 };

/* Shared by both. Only what the child has left when it is dead is read. */
struct shared {
	int32_t result;
	uint32_t finished;
	uint64_t used;
	char bytes[];
};

int answer_put(struct answer *answer, const void *bytes, size_t size)
{
	if (size > answer->size - answer->used)
		return -E2BIG;
	memcpy(answer->bytes + answer->used, bytes, size);
	answer->used += size;
	return 0;
}

/* --- the child's walls ------------------------------------------------------------------------- */

/* Close every descriptor but those to keep, lowest first. */
static int close_others(const struct confined *what)
{
	unsigned first = 0;

	for (;;) {
		unsigned next = UINT_MAX;

		for (size_t i = 0; i < what->keep_count; i++)
			if ((unsigned)what->keep[i] >= first && (unsigned)what->keep[i] < next)
				next = (unsigned)what->keep[i];
		int r = next > first
			? sys_close_range(first, next == UINT_MAX ? UINT_MAX : next - 1)
			: 0;
		if (r < 0 || next == UINT_MAX)
			return r;
		first = next + 1;
	}
}

static int limit(int resource, uint64_t value)
{
	/* The system call itself: 64 bits, and one type for @resource in every libc. */
	struct rlimit64 now;

	if (syscall(SYS_prlimit64, 0, resource, NULL, &now) < 0)
		return -errno;
	if (now.rlim_max < value)
		value = now.rlim_max;
	const struct rlimit64 wanted = { value, value };

	return syscall(SYS_prlimit64, 0, resource, &wanted, NULL) < 0 ? -errno : 0;
}

static int limit_self(int64_t deadline_ns)
{
	int64_t left = (deadline_ns - clock_now_ns()) / 1000000000 + 1;
	int r = limit(RLIMIT_CORE, 0);

	if (r >= 0)
		r = limit(RLIMIT_FSIZE, 0);
	if (r >= 0)
		r = limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
	return r < 0 ? r : limit(RLIMIT_CPU, (uint64_t)(left > 1 ? left : 1));
}

/* Drop all of them, or all but @kept (a mask of the first 32). */
static int drop_capabilities(unsigned kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	data[0].permitted = data[0].effective = kept;
	if (syscall(SYS_capset, &header, data) < 0 || syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].permitted &= ~kept;
	data[0].effective &= ~kept;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (data[i].effective | data[i].permitted | data[i].inheritable)
			return -EPERM;
	return 0;
}

bool confined_is_foreign(int fd)
{
	struct stat st;

	return geteuid() == 0 && fstat(fd, &st) == 0 && st.st_uid != 0;
}

int confined_only_below(const int *below, size_t count)
{
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	const size_t known = sizeof(rights_of_abi) / sizeof(*rights_of_abi);

	if (abi < 1) /* the kernel has none, or it is switched off */
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	const uint64_t handled = rights_of_abi[((size_t)abi < known ? (size_t)abi : known) - 1];
	struct landlock_ruleset_attr all = { .handled_access_fs = handled };
	autofd int ruleset = (int)sys_result(
		syscall(SYS_landlock_create_ruleset, &all, sizeof(all.handled_access_fs), 0));

	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < count; i++) {
		struct landlock_path_beneath_attr one = { .allowed_access =
								  LANDLOCK_ACCESS_FS_READ_FILE |
				LANDLOCK_ACCESS_FS_READ_DIR,
			.parent_fd = below[i] };

		if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &one,
			    0) < 0)
			return -errno;
	}
	return (int)sys_result(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

static int confine_child(const struct confined *what, pid_t parent)
{
	int r = parent_die_with(parent, SIGKILL);

	if (r < 0)
		return r;
	r = close_others(what);
	if (r < 0)
		return r;
	r = limit_self(what->deadline_ns);
	if (r < 0)
		return r;
	r = drop_capabilities(what->foreign ? 1u << CAP_DAC_READ_SEARCH : 0);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return confine_self_filter(EMBEDDED_READER_FILTER);
}

/*
 * This function is not sanitized: before a call that does not return, AddressSanitizer makes a
 * system call that the filter refuses.
 */
__attribute__((noreturn, no_sanitize("address"))) static void enter(
	const struct confined *what, struct shared *shared, size_t size, pid_t parent)
{
	struct answer answer = { .bytes = shared->bytes, .size = size };

	if (confine_child(what, parent) < 0)
		_exit(1);
	shared->result = what->work(what->context, &answer);
	shared->used = answer.used;
	shared->finished = 1;
	_exit(0);
}

/* --- the parent -------------------------------------------------------------------------------- */

/* Wait until the child has ended or it is @until_ns. Returns whether it has ended. */
static bool await_end(int pidfd, int64_t until_ns)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	for (;;) {
		int64_t left = until_ns - clock_now_ns();
		int ms = left <= 0                          ? 0
			: left > (int64_t)INT_MAX * 1000000 ? INT_MAX
							    : (int)((left + 999999) / 1000000);
		int r = poll(&ended, 1, ms);

		if (r > 0)
			return true;
		if ((r == 0 && left <= 0) || (r < 0 && errno != EINTR))
			return false;
	}
}

/*
 * 0: it ended as one that has done its work. It has ended, and can be waited for at once, unless
 * this process is traced, by strace(1) for one: then only when the tracer has seen the end. WNOHANG
 * would find no child until then.
 */
static int reap(int pidfd)
{
	siginfo_t info = { 0 };
	int r;

	do
		r = waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL);
	while (r < 0 && errno == EINTR);
	return r < 0 || info.si_code != CLD_EXITED || info.si_status != 0 ? -ECHILD : 0;
}

static int await_answer(int pidfd, int64_t deadline_ns)
{
	if (await_end(pidfd, deadline_ns))
		return reap(pidfd);
	(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* ESRCH: it has just ended */
	if (await_end(pidfd, clock_now_ns() + (int64_t)PATIENCE_MS * 1000000))
		(void)reap(pidfd); /* late is late */
	return -ETIMEDOUT;
}

static int take_answer(
	const struct shared *shared, char *ret_answer, size_t size, size_t *ret_used)
{
	if (shared->finished != 1 || shared->used > size || shared->result > 0 ||
		shared->result < -4095)
		return -EPROTO;
	memcpy(ret_answer, shared->bytes, shared->used);
	*ret_used = shared->used;
	return shared->result;
}

int confined_run(const struct confined *what, char *ret_answer, size_t size, size_t *ret_used)
{
	const size_t whole = sizeof(struct shared) + size;
	struct shared *shared =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const pid_t parent = getpid();
	int pidfd = -1, r;

	*ret_used = 0;
	if (shared == MAP_FAILED)
		return -errno;
	if (clock_now_ns() >= what->deadline_ns) {
		(void)munmap(shared, whole);
		return -ETIMEDOUT;
	}
	/* No exit signal: a SIGCHLD would look to the supervisor as if init had ended. See remove_pool.c. */
	long pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &pidfd, NULL, NULL);

	if (pid == 0)
		enter(what, shared, size, parent);
	if (pid < 0) {
		r = -errno;
	} else {
		r = await_answer(pidfd, what->deadline_ns);
		if (r == 0)
			r = take_answer(shared, ret_answer, size, ret_used);
		fd_close(&pidfd);
	}
	(void)munmap(shared, whole);
	return r;
}
