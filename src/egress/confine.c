/*
 * confine.c - see confine.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/embedded.h"
#include "plan/uapi.h"

/* As struct landlock_ruleset_attr, whose header may be older: every right on files, and since ABI 6 the scopes. */
struct ruleset {
	uint64_t files, net, scopes;
};

/* All rights that Landlock knows up to its ABI 9, lowest first. */
static const uint64_t rights_of_abi[] = { (1u << 13) - 1, (1u << 14) - 1, (1u << 15) - 1,
	(1u << 15) - 1, (1u << 16) - 1, (1u << 16) - 1, (1u << 16) - 1, (1u << 16) - 1,
	(1u << 17) - 1 };

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

/* A ruleset without a rule: what it handles is refused everywhere. */
static int close_files(void)
{
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	const size_t known = sizeof(rights_of_abi) / sizeof(*rights_of_abi);

	if (abi < 1) /* the kernel has none, or it is switched off */
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	const struct ruleset all = {
		.files = rights_of_abi[((size_t)abi < known ? (size_t)abi : known) - 1],
		.scopes = abi < 6 ? 0
				  : LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL
	};
	const size_t size = abi < 4 ? sizeof(all.files)
		: abi < 6           ? 2 * sizeof(uint64_t)
				    : sizeof(all);
	autofd int ruleset = result(syscall(SYS_landlock_create_ruleset, &all, size, 0));

	if (ruleset < 0)
		return ruleset;
	return result(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return result(syscall(SYS_capset, &header, none));
}

/* Take as many descriptors as the limit allows, and write no core file: it would hold what was relayed. */
static int set_limits(void)
{
	const struct rlimit none = { 0 };
	struct rlimit files;

	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return result(setrlimit(RLIMIT_NOFILE, &files));
}

static int load_filter(void)
{
	const struct embedded_filter *filter = embedded_find_filter(EMBEDDED_EGRESS_FILTER);

	if (!filter)
		return -ENOENT;
	struct sock_fprog program = { .len = filter->count,
		.filter = (struct sock_filter *)filter->code };
	return result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

int confine(void)
{
	int r = set_limits();

	if (r < 0)
		return r;
	r = result(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	if (r < 0)
		return r;
	r = drop_capabilities();
	if (r < 0)
		return r;
	r = result(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (r < 0)
		return r;
	r = close_files();
	return r < 0 ? r : load_filter();
}
