/*
 * confine_self.c - see confine_self.h.
 *
 * Runs in: S, and its children that confine themselves.
 */
#include "host/process/confine_self.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plan/embedded.h"

/* For removing and quarantining what the tools made, and for signalling init, which has another uid. */
enum {
	TEARDOWN = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER |
		1u << CAP_CHOWN | 1u << CAP_KILL
};

/* Keep the capabilities of @permitted that this process has. Of these, only those that the teardown needs are effective. */
static int keep_capabilities(unsigned permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (geteuid() != 0)
		return 0;
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].permitted &= permitted;
	data[0].effective &= data[0].permitted & TEARDOWN;
	data[0].inheritable = 0;
	for (size_t i = 1; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int confine_self_capabilities(unsigned kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].permitted &= kept;
	data[0].effective = data[0].permitted;
	data[0].inheritable = 0;
	for (size_t i = 1; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int confine_self_filter(const char *name)
{
	const struct embedded_filter *filter = embedded_find_filter(name);

	if (!filter)
		return -ENOENT;
	struct sock_fprog program = { .len = filter->count,
		.filter = (struct sock_filter *)filter->code };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int lose_privileges(const char *filter)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno
							  : confine_self_filter(filter);
}

int confine_self(void)
{
	int r = keep_capabilities(TEARDOWN | CONFINE_COVERER);

	return r < 0 ? r : lose_privileges(EMBEDDED_OWN_FILTER);
}

int confine_settle(void)
{
	int r = keep_capabilities(TEARDOWN);

	return r < 0 ? r : lose_privileges(EMBEDDED_SETTLED_FILTER);
}
