/*
 * doctor_walls.c - the walls that a process puts on itself, tried with the box's own code; see
 * doctor.h.
 *
 * Runs in: carrel-inspect; the tries in forked children.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/confine.h"
#include "box/sys.h"
#include "host/facts/facts.h"
#include "host/machine/container.h"
#include "inspect/doctor.h"
#include "plan/embedded.h"
#include "plan/uapi.h"

/* Load it as init does; then make a call that it allows, and one that it refuses. */
static int try_filter(const struct probe *p)
{
	const struct embedded_filter *filter = embedded_find_filter("default");
	int r = filter ? confine_no_new_privs() : -ENOENT;

	(void)p;
	if (r >= 0)
		r = confine_filter(filter->code, filter->count);
	if (r < 0)
		return r;
	if (getppid() < 0)
		return -errno;
	if (syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, 0, 0) >= 0 || errno != EPERM)
		return -ECANCELED;
	return 0;
}

static const char *arch_name(uint32_t arch)
{
	return arch == SCMP_ARCH_X86_64     ? "x86_64"
		: arch == SCMP_ARCH_AARCH64 ? "aarch64"
					    : "an architecture without shipped filters";
}

static void check_filter(struct doctor *d)
{
	const struct scmp_version *version = seccomp_version();
	const struct embedded_filter *filter = embedded_find_filter("default");
	int r = probe_run(&d->probe, PROBE_HERE, try_filter);

	if (r >= 0) {
		findings_add(&d->findings, VERDICT_OK, "syscalls", NULL,
			"the default filter (%u instructions, %s) can be loaded and holds; "
			"libseccomp %u.%u.%u, API level %u",
			filter->count, arch_name(seccomp_arch_native()), version->major,
			version->minor, version->micro, seccomp_api_get());
		return;
	}
	findings_add(&d->findings, VERDICT_FAIL, "syscalls", NULL,
		"the default filter cannot be loaded (%s, %s)",
		arch_name(seccomp_arch_native()), strerror(-r));
	findings_remedy(&d->findings,
		"the kernel needs CONFIG_SECCOMP_FILTER; where a filter "
		"around carrel refuses seccomp(2), allow it");
}

/* Apply a rule set that allows nothing: then no directory can be read any more. */
static int try_landlock(const struct probe *p)
{
	const struct op make = { .kind = OP_LANDLOCK_NEW,
		.value = LANDLOCK_ACCESS_FS_READ_DIR };
	const struct op on = { .kind = OP_LANDLOCK_ON };
	int ruleset = -1;
	int r = confine_no_new_privs();

	(void)p;
	if (r >= 0)
		r = confine_landlock(&make, -1, &ruleset);
	if (r >= 0)
		r = confine_landlock(&on, -1, &ruleset);
	autofd int fd = r < 0 ? -1 : fd_open_at(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	return r < 0 ? r : fd == -EACCES ? 0 : -ECANCELED;
}

/* What is lost without the newer versions of Landlock. */
static void list_missing(int abi, char *ret_text, size_t size)
{
	static const struct {
		int abi;
		const char *without;
	} steps[] = {
		{ 2, "files cannot be moved between directories (2)" },
		{ 3, "truncating is refused by the mounts only (3)" },
		{ 5, "ioctls of devices are not restricted twice (5)" },
		{ 6, "signals and abstract sockets are refused by the namespaces only (6)" },
		{ 9,
			"unix sockets of the host that come into being during a session, outside the hidden places, "
			"can be reached by path (9)" },
	};
	size_t at = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (abi >= steps[i].abi || at >= size)
			continue;
		int n = snprintf(
			ret_text + at, size - at, "%s%s", at ? "; " : "", steps[i].without);
		at += n > 0 ? (size_t)n : 0;
	}
}

static void check_landlock(struct doctor *d)
{
	char missing[512];
	int abi = facts_landlock();
	int r = abi > 0 ? probe_run(&d->probe, PROBE_HERE, try_landlock) : abi;

	if (r < 0) {
		d->lacks = r ==
			-EOPNOTSUPP; /* it is in the kernel, but was not enabled at its start */
		findings_add(&d->findings, VERDICT_WARN, "landlock", NULL,
			"not available (%s): the mounts alone hold the file rules, and unix "
			"sockets outside the hidden places can be reached by path",
			strerror(-r));
		findings_remedy(&d->findings,
			"a kernel of 5.13 or later with "
			"CONFIG_SECURITY_LANDLOCK and `landlock` in the lsm= list");
		return;
	}
	list_missing(abi, missing, sizeof(missing));
	findings_add(&d->findings, missing[0] ? VERDICT_WARN : VERDICT_OK, "landlock", NULL,
		"ABI %d%s%s", abi, missing[0] ? ": " : ", holds", missing);
	if (missing[0])
		findings_remedy(&d->findings, "a newer kernel has the steps in parentheses");
}

static int try_capabilities(const struct probe *p)
{
	(void)p;
	return confine_capabilities(true);
}

static int try_keyring(const struct probe *p)
{
	(void)p;
	return confine_keyring();
}

void doctor_walls(struct doctor *d)
{
	check_filter(d);
	check_landlock(d);
	int r = probe_run(&d->probe, PROBE_USER, try_capabilities);
	if (!doctor_follows(d, "capabilities", r))
		findings_add(&d->findings, r < 0 ? VERDICT_FAIL : VERDICT_OK, "capabilities",
			NULL, "%s%s",
			r < 0 ? "cannot be dropped in a new user namespace: "
			      : "can be dropped in a new user namespace",
			r < 0 ? strerror(-r) : "");
	r = probe_run(&d->probe, PROBE_HERE, try_keyring);
	findings_add(&d->findings, r < 0 ? VERDICT_FAIL : VERDICT_OK, "keyring", NULL, "%s%s",
		r < 0 ? "no new session keyring: " : "the caller's keys stay out",
		r < 0 ? strerror(-r) : "");
	if (r < 0)
		findings_remedy(&d->findings, "%s",
			container_is_one()
				? "allow keyctl(2): docker's default filter refuses it"
				: "a system-call filter over this shell refuses keyctl(2)");
}
