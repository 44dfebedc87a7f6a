/*
 * attest_status.c - the text of a /proc/PID/status; see attest_process.h.
 *
 * Runs in: carrel-inspect. PURE, but for the user database.
 */
#include "inspect/attest_process.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>

#include "inspect/attest_session.h"

struct status {
	struct findings *f;
	const struct status_expected *x;
	const char *text;
};

/* The value of a field; a status without it is a difference. */
static bool status_field(const struct status *s, const char *name, char *ret_value, size_t size)
{
	if (attest_field(s->text, name, ret_value, size))
		return true;
	findings_add(
		s->f, VERDICT_FAIL, "status", s->x->who, "the kernel does not show %s", name);
	return false;
}

static void check_set(const struct status *s, const char *name)
{
	char value[32], names[700] = "";
	size_t at = 0;

	if (!status_field(s, name, value, sizeof(value)))
		return;
	uint64_t set = strtoull(value, NULL, 16);
	if (set == 0 && strspn(value, "0") == strlen(value) && value[0]) {
		findings_add(s->f, VERDICT_OK, "capabilities", s->x->who, "%s is empty", name);
		return;
	}
	for (int cap = 0; cap < 64 && at < sizeof(names); cap++) {
		if (!(set & (UINT64_C(1) << cap)))
			continue;
		char *word = cap_to_name(cap);
		int n = snprintf(names + at, sizeof(names) - at, " %s", word ? word : "?");

		at += n > 0 ? (size_t)n : 0;
		(void)cap_free(word);
	}
	findings_add(s->f, VERDICT_FAIL, "capabilities", s->x->who, "%s holds%s (%s)", name,
		names, value);
}

static void check_equal(
	const struct status *s, const char *name, const char *wanted, const char *check)
{
	char value[512];

	if (!status_field(s, name, value, sizeof(value)))
		return;
	if (!strcmp(value, wanted))
		findings_add(s->f, VERDICT_OK, check, s->x->who, "%s is %s", name,
			*wanted ? wanted : "empty");
	else
		findings_add(s->f, VERDICT_FAIL, check, s->x->who, "%s is %s, not %s", name,
			*value ? value : "empty", *wanted ? wanted : "empty");
}

/* Root's sessions get a uid that nobody has: not root's, not a user's, and all four the same. */
static void check_kernel_uid(const struct status *s)
{
	char value[128], same[128];

	if (!status_field(s, "Uid", value, sizeof(value)))
		return;
	unsigned long uid = strtoul(value, NULL, 10);
	(void)snprintf(same, sizeof(same), "%lu %lu %lu %lu", uid, uid, uid, uid);
	struct passwd *user = uid ? getpwuid((uid_t)uid) : NULL;
	if (strcmp(value, same) != 0 || uid == 0)
		findings_add(s->f, VERDICT_FAIL, "uid", s->x->who,
			"the kernel's uids are %s: not one, unprivileged", value);
	else if (user)
		findings_add(s->f, VERDICT_FAIL, "uid", s->x->who,
			"the kernel's uid %lu is %s's", uid, user->pw_name);
	else
		findings_add(s->f, VERDICT_OK, "uid", s->x->who,
			"the kernel's uid is %lu, which is nobody's", uid);
}

static void check_kernel_gid(const struct status *s)
{
	char value[128], same[128];

	if (!status_field(s, "Gid", value, sizeof(value)))
		return;
	unsigned long gid = strtoul(value, NULL, 10);
	(void)snprintf(same, sizeof(same), "%lu %lu %lu %lu", gid, gid, gid, gid);
	bool right = gid != 0 && !strcmp(value, same);
	findings_add(s->f, right ? VERDICT_OK : VERDICT_FAIL, "gid", s->x->who,
		right ? "the kernel's gid is %s"
		      : "the kernel's gids are %s: not one, unprivileged",
		right ? strrchr(value, ' ') + 1 : value);
}

/* The line of the groups, of any length; NULL: there is none. */
static const char *find_groups(const char *text, size_t *ret_length)
{
	static const char key[] = "\nGroups:";
	const char *line =
		strstr(text, key); /* a newline in the process's name reads as "\\n" */

	if (!line)
		return NULL;
	line += sizeof(key) - 1;
	line += *line == '\t';
	*ret_length = strcspn(line, "\n");
	return line;
}

/* Without privilege no process can leave its groups: user_namespaces(7), setgroups. */
static void check_same_groups(const struct status *s)
{
	size_t own_length = 0, length = 0;
	const char *own = find_groups(s->x->own_status, &own_length);
	const char *groups = find_groups(s->text, &length);
	bool same = own && groups && length == own_length && !memcmp(own, groups, length);

	if (same)
		findings_add(s->f, VERDICT_OK, "groups", s->x->who, "Groups is the caller's");
	else
		findings_add(s->f, VERDICT_FAIL, "groups", s->x->who,
			"Groups is %.*s, not the caller's", length > 400 ? 400 : (int)length,
			groups ? groups : "not told");
}

static void check_ids(const struct status *s)
{
	char wanted[64];

	if (s->x->privileged) {
		check_kernel_uid(s);
		check_kernel_gid(s);
		check_equal(s, "Groups", "", "groups");
		return;
	}
	(void)snprintf(wanted, sizeof(wanted), "%u %u %u %u", s->x->uid, s->x->uid, s->x->uid,
		s->x->uid);
	check_equal(s, "Uid", wanted, "uid");
	(void)snprintf(wanted, sizeof(wanted), "%u %u %u %u", s->x->gid, s->x->gid, s->x->gid,
		s->x->gid);
	check_equal(s, "Gid", wanted, "gid");
	check_same_groups(s);
}

static void check_filters(const struct status *s)
{
	char own[32] = "0", wanted[32];

	check_equal(s, "Seccomp", "2", "syscalls");
	/* Since Linux 5.9. Without it nobody can tell one filter more than ours from none. */
	if (!attest_field(s->x->own_status, "Seccomp_filters", own, sizeof(own)))
		return;
	(void)snprintf(wanted, sizeof(wanted), "%lu", strtoul(own, NULL, 10) + 1);
	check_equal(s, "Seccomp_filters", wanted, "syscalls");
}

static size_t count_words(const char *text)
{
	size_t count = 0;

	while (*(text += strspn(text, " \t"))) {
		count++;
		text += strcspn(text, " \t");
	}
	return count;
}

static void check_pid_levels(const struct status *s)
{
	char own[128], value[128];

	if (!status_field(s, "NSpid", value, sizeof(value)) ||
		!attest_field(s->x->own_status, "NSpid", own, sizeof(own)))
		return;
	const char *inner = strrchr(value, ' ');
	const char *wanted = !strcmp(s->x->who, "init") ? "1" : "2";
	bool right = count_words(value) == count_words(own) + 1 && inner &&
		!strcmp(inner + 1, wanted);
	findings_add(s->f, right ? VERDICT_OK : VERDICT_FAIL, "pid-namespace", s->x->who,
		right ? "pid %s of its own namespace"
		      : "not pid %s one pid namespace below ours: %s",
		wanted, value);
}

void attest_status(struct findings *f, const char *status, const struct status_expected *x)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	const struct status s = { f, x, status };

	check_ids(&s);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		check_set(&s, sets[i]);
	check_equal(&s, "NoNewPrivs", "1", "no-new-privs");
	check_filters(&s);
	check_pid_levels(&s);
}
