/*
 * attest_test.c - attest's judgement: a session that is as planned, and each way not to be.
 *
 * The first test is the control of all others: what they change one thing of passes unchanged.
 * Pure: tables and statuses are texts.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "inspect/attest_mounts.h"
#include "inspect/attest_process.h"
#include "inspect/attest_session.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PLANNED_NAME "carrel-aaaaaaaaaaaaaaaaaaaa"
#define SESSION_NAME "carrel-bbbbbbbbbbbbbbbbbbbb"

static const char host_text[] = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n"
				"2 1 0:5 / /proc rw shared:2 - proc proc rw\n"
				"3 1 0:6 / /dev rw shared:3 - devtmpfs dev rw\n"
				"4 3 0:7 / /dev/pts rw shared:4 - devpts devpts rw\n"
				"5 1 8:2 / /srv rw shared:5 - xfs /dev/sdb rw\n"
				"6 5 8:3 / /srv/ws/data rw shared:6 - ext4 /dev/sdc rw\n"
				"7 1 8:4 / /mnt/my\\040disk ro - ext4 /dev/sdd ro\n";

/* What the session sees: its root is the host's, then what the plan attaches. */
static const char *const session_lines[] = {
	"11 10 8:1 / / ro,nosuid,nodev,relatime - ext4 /dev/sda rw",
	"12 11 0:5 / /proc ro,nosuid,nodev - proc proc rw",
	"13 11 0:6 / /dev ro,nosuid,nodev - devtmpfs dev rw",
	"14 13 0:7 / /dev/pts ro,nosuid,nodev - devpts devpts rw",
	"15 11 8:2 / /srv ro,nosuid,nodev - xfs /dev/sdb rw",
	"16 15 8:3 / /srv/ws/data ro,nosuid,nodev - ext4 /dev/sdc rw",
	"17 11 8:4 / /mnt/my\\040disk ro,nosuid,nodev - ext4 /dev/sdd ro",
	"21 13 0:50 /0 /dev ro,nosuid,nodev,noexec - tmpfs none rw",
	"22 21 0:6 /null /dev/null ro,nosuid,noexec - devtmpfs dev rw",
	"23 21 0:51 / /dev/pts rw,nosuid,noexec - devpts none rw",
	"24 21 0:50 /shm /dev/shm rw,nosuid,nodev - tmpfs none rw",
	"25 12 0:52 / /proc rw,nosuid,nodev,noexec - proc none rw",
	"26 15 8:2 /ws /srv/ws rw,nosuid,nodev,idmapped - xfs /dev/sdb rw",
	"27 26 8:3 / /srv/ws/data rw,nosuid,nodev,idmapped - ext4 /dev/sdc rw",
	"28 26 8:2 /ws/.git/config /srv/ws/.git/config ro,nosuid,nodev,idmapped - xfs /dev/sdb rw",
	"29 11 8:1 /tmp/" SESSION_NAME "/scratch /tmp/" SESSION_NAME
	"/scratch rw,nosuid,nodev,idmapped - ext4 /dev/sda rw",
};

static struct op planned_ops[] = {
	{ .kind = OP_TMPFS, .slot = 0, .why = "skeleton" },
	{ .kind = OP_PICK,
		.slot = 1,
		.from = 0,
		.path = "0",
		.flags = OPF_RDONLY | OPF_NOEXEC },
	{ .kind = OP_CLONE,
		.slot = 2,
		.path = "/dev/null",
		.flags = OPF_RDONLY | OPF_DEV | OPF_NOEXEC },
	{ .kind = OP_DEVPTS, .slot = 3 },
	{ .kind = OP_PICK, .slot = 4, .from = 0, .path = "shm" },
	{ .kind = OP_PROC, .slot = 5 },
	{ .kind = OP_CLONE,
		.slot = 6,
		.path = "/srv/ws",
		.flags = OPF_RECURSIVE | OPF_IDMAP,
		.why = "workspace" },
	{ .kind = OP_CLONE,
		.slot = 7,
		.path = "/srv/ws/.git/config",
		.flags = OPF_RDONLY | OPF_IDMAP },
	{ .kind = OP_CLONE,
		.slot = 8,
		.path = "/tmp/" PLANNED_NAME "/scratch",
		.flags = OPF_RECURSIVE | OPF_IDMAP },
	{ .kind = OP_ROOT_SEAL, .path = "/" },
	{ .kind = OP_ATTACH, .slot = 1, .path = "/dev" },
	{ .kind = OP_ATTACH, .slot = 2, .path = "/dev/null" },
	{ .kind = OP_ATTACH, .slot = 3, .path = "/dev/pts" },
	{ .kind = OP_ATTACH, .slot = 4, .path = "/dev/shm" },
	{ .kind = OP_ATTACH, .slot = 5, .path = "/proc" },
	{ .kind = OP_ATTACH, .slot = 6, .path = "/srv/ws" },
	{ .kind = OP_ATTACH, .slot = 7, .path = "/srv/ws/.git/config" },
	{ .kind = OP_ATTACH, .slot = 8, .path = "/tmp/" PLANNED_NAME "/scratch" },
};

struct fixture {
	struct arena arena;
	struct findings findings;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	assert_int_equal(arena_init(&f.arena, 64 << 20), 0);
	f.findings.arena = &f.arena;
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	arena_free(&f->arena);
	return 0;
}

static void read_table(struct fixture *f, struct mount_table *t, const char *text, size_t size)
{
	char path[64];
	struct error e = { 0 };
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, size), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*t = (struct mount_table){ .arena = &f->arena };
	assert_int_equal(mount_table_read(t, path, &e), 0);
	(void)close(fd);
}

static bool all_gone;

static bool is_gone(const char *path)
{
	(void)path;
	return all_gone;
}

/* Judge a session of these lines, of which line @skip is left out; @more is added. */
static void judge(struct fixture *f, const char *const *lines, size_t count, size_t skip,
	const char *more, size_t op_count)
{
	static char text[16384];
	struct facts facts = { .session_name = PLANNED_NAME };
	struct plan plan = { .facts = &facts, .ops = planned_ops, .op_count = op_count };
	struct mount_table host, seen;
	size_t at = 0;

	for (size_t i = 0; i < count; i++)
		if (i != skip)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\n", lines[i]);
	at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", more);
	read_table(f, &host, host_text, sizeof(host_text) - 1);
	read_table(f, &seen, text, at);
	attest_mounts(&f->findings, &plan, SESSION_NAME, &host, &seen, is_gone);
	assert_false(f->findings.overflow);
}

/* The one failure there is; its text must hold @what. */
static void assert_failure(struct fixture *f, const char *on, const char *what)
{
	bool found = false;

	for (size_t i = 0; i < f->findings.count; i++) {
		const struct finding *item = &f->findings.items[i];

		if (item->verdict == VERDICT_FAIL && (!on || !strcmp(item->on, on)) &&
			strstr(item->text, what))
			found = true;
	}
	if (!found) {
		(void)!findings_print(&f->findings, STDERR_FILENO);
		fail_msg("no failure at %s: %s", on ? on : "any place", what);
	}
}

static void test_as_planned(void **state)
{
	struct fixture *f = *state;

	judge(f, session_lines, COUNT(session_lines), SIZE_MAX, "", COUNT(planned_ops));
	if (findings_worst(&f->findings) != VERDICT_OK)
		(void)!findings_print(&f->findings, STDERR_FILENO);
	assert_int_equal(findings_worst(&f->findings), VERDICT_OK);
	/* Eight planned ones, one line for the host's seven and one for what lies below. */
	assert_int_equal(f->findings.count, 10);
	assert_string_equal(f->findings.items[8].text,
		"7 mounts of the host: all read-only, nosuid, nodev, private");
}

/* One line is another one, and that is what the judgement says. */
static void test_each_difference(void **state)
{
	static const struct {
		size_t line;
		const char *instead, *on, *what;
	} cases[] = {
		{ 0, "11 10 8:1 / / rw,nosuid,nodev - ext4 /dev/sda rw", "/", "lacks ro" },
		{ 0, "11 10 8:1 / / ro,nodev - ext4 /dev/sda rw", "/", "lacks nosuid" },
		{ 0, "11 10 8:1 / / ro,nosuid - ext4 /dev/sda rw", "/", "lacks nodev" },
		{ 0, "11 10 8:1 / / ro,nosuid,nodev shared:9 - ext4 /dev/sda rw", "/",
			"private" },
		{ 0, "11 10 8:1 / / ro,nosuid,nodev master:1 - ext4 /dev/sda rw", "/",
			"private" },
		/* read-only by the file system alone is no seal of ours */
		{ 0, "11 10 8:1 / / rw,nosuid,nodev - ext4 /dev/sda ro", "/", "lacks ro" },
		{ 4, "15 11 8:2 / /srv rw,nosuid,nodev - xfs /dev/sdb rw", "/srv", "lacks ro" },
		{ 6, "17 11 8:4 / /mnt/my\\040disk ro - ext4 /dev/sdd ro", "/mnt/my disk",
			"lacks nosuid nodev" },
		{ 6, "17 11 8:9 / /mnt/my\\040disk ro,nosuid,nodev - ext4 /dev/sdd ro",
			"/mnt/my disk", "neither the plan nor the host" },
		{ 7, "21 13 0:50 /0 /dev rw,nosuid,nodev,noexec - tmpfs none rw", "/dev",
			"lacks ro" },
		{ 7, "21 13 0:6 / /dev ro,nosuid,nodev,noexec - devtmpfs none rw", "/dev",
			"another type" },
		{ 7, "21 13 0:50 /1 /dev ro,nosuid,nodev,noexec - tmpfs none rw", "/dev",
			"another part" },
		{ 8, "22 21 0:6 /zero /dev/null ro,nosuid,noexec - devtmpfs dev rw",
			"/dev/null", "something else than its source" },
		{ 9, "23 21 0:7 / /dev/pts rw,nosuid,noexec - devpts none rw", "/dev/pts",
			"one of the host's" },
		{ 10, "24 21 0:53 /shm /dev/shm rw,nosuid,nodev - tmpfs none rw", "/dev/shm",
			"not of the session's skeleton" },
		{ 11, "25 12 0:5 / /proc rw,nosuid,nodev,noexec - proc none rw", "/proc",
			"one of the host's" },
		{ 11, "25 12 0:52 / /proc rw,nosuid,nodev - proc none rw", "/proc",
			"lacks noexec" },
		{ 12, "26 15 8:2 /ws /srv/ws rw,nosuid,nodev - xfs /dev/sdb rw", "/srv/ws",
			"lacks idmapped" },
		{ 12, "26 15 8:2 /other /srv/ws rw,nosuid,nodev,idmapped - xfs /dev/sdb rw",
			"/srv/ws", "something else than its source" },
		{ 12, "26 15 8:2 /ws /srv/ws ro,nosuid,nodev,idmapped - xfs /dev/sdb rw",
			"/srv/ws", "planned writable" },
		{ 13, "27 26 8:3 / /srv/ws/data rw,nodev,idmapped - ext4 /dev/sdc rw",
			"/srv/ws/data", "lacks nosuid" },
		{ 13, "27 26 8:9 / /srv/ws/data rw,nosuid,nodev,idmapped - ext4 /dev/sdc rw",
			"/srv/ws/data", "no such mount below the source" },
		{ 14,
			"28 26 8:2 /ws/.git/config /srv/ws/.git/config rw,nosuid,nodev,idmapped - "
			"xfs /dev/sdb rw",
			"/srv/ws/.git/config", "lacks ro" },
		{ 15,
			"29 11 8:1 /tmp/" PLANNED_NAME "/scratch /tmp/" SESSION_NAME "/scratch "
			"rw,nosuid,nodev,idmapped - ext4 /dev/sda rw",
			"/tmp/" SESSION_NAME "/scratch", "something else than its source" },
	};
	const char *lines[COUNT(session_lines)];

	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)set_up(state);
		memcpy(lines, session_lines, sizeof(lines));
		lines[cases[i].line] = cases[i].instead;
		judge(*state, lines, COUNT(lines), SIZE_MAX, "", COUNT(planned_ops));
		assert_failure(*state, cases[i].on, cases[i].what);
		(void)tear_down(state);
	}
	(void)set_up(state);
}

/* Each planned mount is missed, alone and where another one of the host is seen there instead. */
static void test_each_missing(void **state)
{
	for (size_t i = 7; i < COUNT(session_lines); i++) {
		if (i == 13) /* came along with the workspace: nothing demands it */
			continue;
		(void)set_up(state);
		judge(*state, session_lines, COUNT(session_lines), i, "", COUNT(planned_ops));
		assert_failure(*state, NULL, "");
		(void)tear_down(state);
	}
	(void)set_up(state);
}

/* Mounts that nobody planned. */
static void test_each_more(void **state)
{
	static const struct {
		const char *line, *on, *what;
	} cases[] = {
		{ "40 11 0:60 / /opt rw,nosuid,nodev - tmpfs none rw\n", "/opt", "lacks ro" },
		{ "40 11 0:60 / /opt ro,nosuid,nodev - tmpfs none rw\n", "/opt", "neither" },
		{ "40 26 0:60 / /srv/ws/opt rw,nosuid,nodev,idmapped - tmpfs none rw\n",
			"/srv/ws/opt", "no such mount below" },
		{ "40 21 8:1 / /dev/root ro,nosuid,nodev,noexec - ext4 none rw\n", "/dev/root",
			"no operation put this here" },
		/* on top of a planned one: then that is not what is seen */
		{ "40 28 8:2 / /srv/ws/.git/config rw,nosuid,nodev - xfs none rw\n",
			"/srv/ws/.git/config", "lacks ro" },
		{ "40 25 0:5 / /proc rw,nosuid,nodev,noexec - proc none rw\n", "/proc",
			"one of the host's" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)set_up(state);
		judge(*state, session_lines, COUNT(session_lines), SIZE_MAX, cases[i].line,
			COUNT(planned_ops));
		assert_failure(*state, cases[i].on, cases[i].what);
		(void)tear_down(state);
	}
	(void)set_up(state);
}

/* Where the plan has a root of its own, nothing of the host's may be there at all. */
static void test_host_under_own_root(void **state)
{
	struct fixture *f = *state;
	enum op_kind seal = planned_ops[9].kind;

	planned_ops[9].kind = OP_KEYRING;
	judge(f, session_lines, COUNT(session_lines), SIZE_MAX, "", COUNT(planned_ops));
	planned_ops[9].kind = seal;
	assert_failure(f, "/", "no operation put this here");
	assert_failure(f, "/srv", "no operation put this here");
}

static void test_empty_table(void **state)
{
	struct fixture *f = *state;

	judge(f, NULL, 0, SIZE_MAX, "", COUNT(planned_ops));
	assert_failure(f, "/", "no mounts");
	assert_failure(f, "/srv/ws", "nothing is mounted here");
}

/* A cover of a socket: only where the socket is gone may it be missing. */
static void test_socket_gone(void **state)
{
	struct fixture *f = *state;
	size_t config = 16;

	assert_string_equal(planned_ops[config].path, "/srv/ws/.git/config");
	planned_ops[config].flags = OPF_OPTIONAL;
	for (int gone = 0; gone < 2; gone++) {
		all_gone = gone;
		judge(f, NULL, 0, SIZE_MAX, "", COUNT(planned_ops));
		if (!gone)
			assert_failure(f, "/srv/ws/.git/config", "nothing is mounted here");
		for (size_t i = 0; gone && i < f->findings.count; i++)
			if (!strcmp(f->findings.items[i].on, "/srv/ws/.git/config"))
				assert_int_equal(f->findings.items[i].verdict, VERDICT_NOTE);
		tear_down(state);
		(void)set_up(state);
	}
	planned_ops[config].flags = 0;
	all_gone = false;
}

static void test_garbled_table(void **state)
{
	static const char text[] = "11 10 8:1 / / ro - ext4 /dev/sda rw\nthis is no mount\n";
	struct fixture *f = *state;
	struct mount_table t = { .arena = &f->arena };
	struct error e = { 0 };

	assert_true(mount_table_read(&t, "/proc/self/nonesuch", &e) < 0);
	char path[64];
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);
	assert_int_equal(fd_write_all(fd, text, sizeof(text) - 1), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	e = (struct error){ 0 };
	assert_true(mount_table_read(&t, path, &e) < 0);
	(void)close(fd);
}

/* --- what is seen where ----------------------------------------------------------------------- */

static void test_lookup(void **state)
{
	static const struct {
		const char *path;
		int id;
	} cases[] = {
		{ "/", 1 },
		{ "/etc", 1 },
		{ "/proc", 2 },
		{ "/proc/1", 2 },
		{ "/dev/pts/0", 4 },
		{ "/srv/ws", 5 },
		{ "/srv/ws/data/x", 6 },
		{ "/srv2", 1 },
		{ "/mnt/my disk", 7 },
	};
	struct mount_table t;

	read_table(*state, &t, host_text, sizeof(host_text) - 1);
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(mount_table_at(&t, cases[i].path)->id, cases[i].id);
}

/* A mount below one that was mounted over is not seen, whatever its path says. */
static void test_lookup_below_another(void **state)
{
	static const char text[] = "1 0 8:1 / / rw - ext4 a rw\n"
				   "2 1 8:2 / /a/b rw - ext4 b rw\n"
				   "3 1 8:3 / /a rw - ext4 c rw\n"
				   "4 3 8:4 / /a rw - ext4 d rw\n";
	struct mount_table t;

	read_table(*state, &t, text, sizeof(text) - 1);
	assert_int_equal(mount_table_at(&t, "/a/b")->id, 4);
	assert_int_equal(mount_table_at(&t, "/a")->id, 4);
}

/* A table that is no tree must not hold us. */
static void test_lookup_in_a_ring(void **state)
{
	static const char text[] = "1 0 8:1 / / rw - ext4 a rw\n"
				   "2 3 8:2 / /a rw - ext4 b rw\n"
				   "3 2 8:3 / /a rw - ext4 c rw\n"
				   "4 1 8:4 / /a rw - ext4 c rw\n"
				   "4 4 8:4 / /a rw - ext4 c rw\n";
	struct mount_table t;

	read_table(*state, &t, text, sizeof(text) - 1);
	assert_non_null(mount_table_at(&t, "/a/b"));
}

static void test_rename(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(
		attest_rename(&f->arena, "/tmp/carrel-a/x/carrel-a", "carrel-a", "carrel-b"),
		"/tmp/carrel-b/x/carrel-b");
	assert_string_equal(attest_rename(&f->arena, "/tmp", "carrel-a", "carrel-b"), "/tmp");
	assert_string_equal(
		attest_rename(&f->arena, "/carrel-a", "carrel-a", "longer-b-b"), "/carrel-a");
}

/* --- statuses --------------------------------------------------------------------------------- */

static const char own_status[] = "Name:\tattest\nUid:\t1001\t1001\t1001\t1001\n"
				 "Groups:\t27 1001 \nNSpid:\t500\nSeccomp_filters:\t0\n";

static const char user_status[] =
	"Name:\tcat\nUid:\t1001\t1001\t1001\t1001\nGid:\t1001\t1001\t1001\t1001\n"
	"Groups:\t27 1001 \nNSpid:\t512\t2\nCapInh:\t0000000000000000\n"
	"CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
	"CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";

static const struct status_expected user_expected = {
	.who = "payload",
	.uid = 1001,
	.gid = 1001,
	.own_status = own_status,
};
static const struct status_expected root_expected = {
	.who = "payload",
	.privileged = true,
	.own_status = own_status,
};

/* The status with @old replaced by @new. */
static const char *changed(const char *status, const char *old, const char *new)
{
	static char text[4096];
	const char *at = strstr(status, old);

	assert_non_null(at);
	(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - status), status, new,
		at + strlen(old));
	return text;
}

static void test_status_as_planned(void **state)
{
	struct fixture *f = *state;

	attest_status(&f->findings, user_status, &user_expected);
	assert_int_equal(findings_worst(&f->findings), VERDICT_OK);
}

static void test_status_each_difference(void **state)
{
	static const struct {
		const char *old, *new, *what;
	} cases[] = {
		{ "Uid:\t1001\t1001\t1001\t1001", "Uid:\t1001\t0\t1001\t1001",
			"Uid is 1001 0" },
		{ "Gid:\t1001\t1001\t1001\t1001", "Gid:\t0\t0\t0\t0", "Gid is 0" },
		{ "Groups:\t27 1001 ", "Groups:\t0 27 1001 ", "Groups is 0 27 1001" },
		{ "CapInh:\t0000000000000000", "CapInh:\t0000000000000001",
			"CapInh holds cap_chown" },
		{ "CapPrm:\t0000000000000000", "CapPrm:\t0000000000200000",
			"CapPrm holds cap_sys_admin" },
		{ "CapEff:\t0000000000000000", "CapEff:\t0000000000000003",
			"CapEff holds cap_chown cap_dac_override" },
		{ "CapBnd:\t0000000000000000", "CapBnd:\t000001ffffffffff", "CapBnd holds" },
		{ "CapAmb:\t0000000000000000", "CapAmb:\t8000000000000000", "CapAmb holds" },
		{ "CapAmb:\t0000000000000000\n", "", "does not show CapAmb" },
		{ "CapAmb:\t0000000000000000", "CapAmb:\t", "CapAmb holds" },
		{ "NoNewPrivs:\t1", "NoNewPrivs:\t0", "NoNewPrivs is 0" },
		{ "NoNewPrivs:\t1\n", "", "does not show NoNewPrivs" },
		{ "Seccomp:\t2", "Seccomp:\t0", "Seccomp is 0" },
		{ "Seccomp_filters:\t1", "Seccomp_filters:\t2", "Seccomp_filters is 2, not 1" },
		{ "NSpid:\t512\t2", "NSpid:\t512", "not pid 2" },
		{ "NSpid:\t512\t2", "NSpid:\t512\t7\t2", "not pid 2" },
		{ "NSpid:\t512\t2", "NSpid:\t512\t1", "not pid 2" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)set_up(state);
		struct fixture *f = *state;
		attest_status(&f->findings, changed(user_status, cases[i].old, cases[i].new),
			&user_expected);
		assert_failure(f, "payload", cases[i].what);
		(void)tear_down(state);
	}
	(void)set_up(state);
}

#define ROOT_UIDS "Uid:\t1900000001\t1900000001\t1900000001\t1900000001"

static void test_status_of_roots_session(void **state)
{
	static const struct {
		const char *uids, *groups, *what;
	} cases[] = {
		{ ROOT_UIDS, "Groups:\t ", NULL },
		{ "Uid:\t0\t0\t0\t0", "Groups:\t ", "not one, unprivileged" },
		{ "Uid:\t1900000001\t1900000001\t0\t1900000001", "Groups:\t ", "not one" },
		{ ROOT_UIDS, "Groups:\t0 ", "Groups is 0" },
	};
	static char text[4096];

	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)set_up(state);
		struct fixture *f = *state;
		(void)snprintf(text, sizeof(text), "%s",
			changed(user_status, "Uid:\t1001\t1001\t1001\t1001", cases[i].uids));
		attest_status(&f->findings, changed(text, "Groups:\t27 1001 ", cases[i].groups),
			&root_expected);
		if (cases[i].what)
			assert_failure(f, "payload", cases[i].what);
		else
			assert_int_equal(findings_worst(&f->findings), VERDICT_OK);
		(void)tear_down(state);
	}
	(void)set_up(state);
}

static void test_field(void **state)
{
	char value[16];

	(void)state;
	assert_true(attest_field("A:\t1\nAB:\t 2 3 \n", "AB", value, sizeof(value)));
	assert_string_equal(value, "2 3");
	assert_true(attest_field("A:\t1\nB:", "B", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(attest_field("A:\t1\n", "B", value, sizeof(value)));
	assert_false(attest_field("XB:\t1\n", "B", value, sizeof(value)));
	assert_false(attest_field("B:\t0123456789abcdef\n", "B", value, sizeof(value)));
}

/* --- printing --------------------------------------------------------------------------------- */

static void test_printed(void **state)
{
	static const char text[] = "FAIL mount /a\\x0ab: it is \\x1b[2J\n       remedy: none\n";
	static const char json[] = "{\"format\":1,\"worst\":\"FAIL\",\"checks\":[{\"verdict\":"
				   "\"FAIL\",\"check\":\"mount\",\"on\":\"/a\\nb\",\"text\":"
				   "\"it is \\u001b[2J\",\"remedy\":\"none\"}]}\n";
	struct fixture *f = *state;
	char buffer[512];
	int fd = memfd_create("out", MFD_CLOEXEC);

	findings_add(&f->findings, VERDICT_FAIL, "mount", "/a\nb", "it is %s", "\x1b[2J");
	findings_remedy(&f->findings, "none");
	assert_int_equal(findings_print(&f->findings, fd), 0);
	assert_int_equal(pread(fd, buffer, sizeof(buffer), 0), sizeof(text) - 1);
	assert_memory_equal(buffer, text, sizeof(text) - 1);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(findings_print_json(&f->findings, fd), 0);
	ssize_t n = pread(fd, buffer, sizeof(buffer) - 1, 0);
	assert_true(n > 0);
	buffer[n] = '\0';
	assert_string_equal(buffer, json);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_as_planned, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_difference, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_host_under_own_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_empty_table, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_socket_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_garbled_table, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lookup, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lookup_below_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lookup_in_a_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rename, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_as_planned, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_each_difference, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_status_of_roots_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_field, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_printed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
