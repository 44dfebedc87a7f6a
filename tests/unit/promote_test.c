/*
 * promote_test.c - promote(): what arrives, what is refused, and what hostile tools do meanwhile.
 *
 * Runs in: a test program, as root and as an ordinary user. Most tests run twice: with the scratch and
 * the destination on one file system, and on two.
 */
#include <signal.h>
#include <time.h>

#include "promote_fixture.h"

#include <limits.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define ODD "new\nline \xff\xfe \"quoted\" $x"

/* --- what arrives ------------------------------------------------------------------------------ */

static void test_file(void **state)
{
	struct fixture *f = *state;
	const struct timespec times[2] = { { .tv_sec = 1000000000, .tv_nsec = 5 },
		{ .tv_sec = 1100000000, .tv_nsec = 123456789 } };

	make_file(f->scratch.fd, "a", "hello", 0640);
	assert_int_equal(utimensat(f->scratch.fd, "a", times, 0), 0);
	moves(f, "a", "b");
	assert_moved_cheaply(f);
	assert_text(f->dest.fd, "b", "hello");
	struct stat st = stat_of(f->dest.fd, "b");
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mtim.tv_sec, times[1].tv_sec);
	assert_int_equal(st.st_mtim.tv_nsec, times[1].tv_nsec);
	assert_int_equal(f->result.files, 1);
	assert_int_equal(f->result.bytes, 5);
	assert_false(f->result.source_left);
	assert_false(exists(f->scratch.fd, "a"));
	assert_int_equal(count_entries(f->dest.fd, "."), 1);
}

static void test_deep_source_and_slashes(void **state)
{
	struct fixture *f = *state;

	make_dir(f->scratch.fd, "x");
	make_dir(f->scratch.fd, "x/y");
	make_file(f->scratch.fd, "x/y/a", "1", 0600);
	moves(f, "x//./y/a", "a");
	assert_text(f->dest.fd, "a", "1");
	moves(f, "x/", "x");
	assert_true(exists(f->dest.fd, "x/y"));
}

static void test_odd_names(void **state)
{
	struct fixture *f = *state;
	char longest[NAME_MAX + 1];

	memset(longest, 0xe9, NAME_MAX);
	longest[NAME_MAX] = '\0';
	make_file(f->scratch.fd, ODD, "odd", 0600);
	make_file(f->scratch.fd, longest, "long", 0600);
	moves(f, ODD, ODD);
	moves(f, longest, longest);
	assert_text(f->dest.fd, ODD, "odd");
	assert_text(f->dest.fd, longest, "long");
}

static void test_tree(void **state)
{
	struct fixture *f = *state;
	int s = f->scratch.fd;

	make_dir(s, "d");
	make_dir(s, "d/e");
	make_dir(s, "d/locked");
	make_file(s, "d/one", "1", 0755);
	make_file(s, "d/e/two", "22", 0400);
	make_file(s, "d/locked/three", "333", 0);
	assert_int_equal(symlinkat("../one", s, "d/e/link"), 0);
	assert_int_equal(symlinkat("e/./two", s, "d/there"), 0);
	assert_int_equal(fchmodat(s, "d/e", 0555, 0), 0);
	assert_int_equal(fchmodat(s, "d/locked", 0, 0), 0);
	moves(f, "d", "new");
	if (geteuid() == 0)
		assert_moved_cheaply(f);
	assert_false(exists(s, "d"));
	assert_int_equal(f->result.files, 3);
	assert_int_equal(f->result.bytes, 6);
	assert_text(f->dest.fd, "new/one", "1");
	assert_text(f->dest.fd, "new/e/two", "22");
	assert_int_equal(stat_of(f->dest.fd, "new/one").st_mode & 07777, 0755);
	assert_int_equal(stat_of(f->dest.fd, "new/e").st_mode & 07777, 0555);
	assert_int_equal(stat_of(f->dest.fd, "new/locked").st_mode & 07777, 0);
	assert_int_equal(fchmodat(f->dest.fd, "new/locked", 0700, 0), 0);
	assert_int_equal(stat_of(f->dest.fd, "new/locked/three").st_mode & 07777, 0);
	char target[32] = "";
	assert_int_equal(readlinkat(f->dest.fd, "new/e/link", target, sizeof(target)), 6);
	assert_string_equal(target, "../one");
	assert_int_equal(count_entries(f->dest.fd, "."), 1);
}

/* Out of a directory that its owner made read-only, and of one that cannot be read. */
static void test_locked_source(void **state)
{
	struct fixture *f = *state;

	make_dir(f->scratch.fd, "d");
	make_file(f->scratch.fd, "d/a", "1", 0);
	assert_int_equal(fchmodat(f->scratch.fd, "d", 0500, 0), 0);
	moves(f, "d/a", "a");
	assert_false(f->result.source_left);
	assert_int_equal(stat_of(f->dest.fd, "a").st_mode & 07777, 0);
	assert_int_equal(stat_of(f->scratch.fd, "d").st_mode & 07777, 0500);
	assert_false(exists(f->scratch.fd, "d/a"));
}

static void test_sparse(void **state)
{
	struct fixture *f = *state;
	int fd = openat(f->scratch.fd, "s", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "end", 3, (off_t)1 << 30), 3);
	assert_int_equal(close(fd), 0);
	moves(f, "s", "s");
	struct stat st = stat_of(f->dest.fd, "s");
	assert_int_equal(st.st_size, ((off_t)1 << 30) + 3);
	assert_true(st.st_blocks < 1000);
}

/* --- options ----------------------------------------------------------------------------------- */

static void test_exists_and_force(void **state)
{
	struct fixture *f = *state;
	const struct promote_options force = { .force = true };

	make_file(f->scratch.fd, "a", "new", 0600);
	make_file(f->dest.fd, "b", "old", 0600);
	assert_int_equal(move(f, "a", "b"), -EEXIST);
	assert_int_equal(f->error.code, ERROR_PROMOTE);
	assert_text(f->dest.fd, "b", "old");
	assert_text(f->scratch.fd, "a", "new");
	assert_int_equal(move_with(f, "a", "b", &force), 0);
	assert_text(f->dest.fd, "b", "new");
	assert_false(exists(f->scratch.fd, "a"));
	/* A link at the destination is replaced, and nothing is written through it. */
	make_file(f->scratch.fd, "a", "newer", 0600);
	assert_int_equal(symlinkat("b", f->dest.fd, "link"), 0);
	assert_int_equal(move(f, "a", "link"), -EEXIST);
	assert_int_equal(move_with(f, "a", "link", &force), 0);
	assert_text(f->dest.fd, "link", "newer");
	assert_text(f->dest.fd, "b", "new");
	/* A directory never is, nor does one replace a file. */
	make_file(f->scratch.fd, "a", "newest", 0600);
	make_dir(f->dest.fd, "dir");
	assert_int_equal(move_with(f, "a", "dir", &force), -EISDIR);
	make_dir(f->scratch.fd, "d");
	assert_int_equal(move_with(f, "d", "b", &force), -ENOTDIR);
	assert_int_equal(move_with(f, "d", "dir", &force), -EISDIR);
}

static void test_copy_and_dry_run(void **state)
{
	struct fixture *f = *state;

	make_dir(f->scratch.fd, "d");
	make_file(f->scratch.fd, "d/a", "1", 0600);
	assert_int_equal(
		move_with(f, "d", "d", &(struct promote_options){ .dry_run = true }), 0);
	assert_int_equal(f->result.how, f->crosses ? PROMOTE_COPIED : PROMOTE_RENAMED);
	assert_int_equal(f->result.bytes, 1);
	assert_int_equal(count_entries(f->dest.fd, "."), 0);
	assert_int_equal(move_with(f, "d", "d", &(struct promote_options){ .copy = true }), 0);
	assert_copied(f);
	assert_text(f->dest.fd, "d/a", "1");
	assert_text(f->scratch.fd, "d/a", "1");
}

static void test_apart(void **state)
{
	struct fixture *f = *state;

	make_file(f->scratch.fd, "a", "1", 0600);
	int fd = openat(f->scratch.fd, "a", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(move_with(f, "a", "a", &(struct promote_options){ .apart = true }), 0);
	assert_copied(f);
	assert_false(exists(f->scratch.fd, "a"));
	/* Who had it open writes into nothing. */
	assert_int_equal(pwrite(fd, "X", 1, 0), 1);
	assert_int_equal(close(fd), 0);
	assert_text(f->dest.fd, "a", "1");
}

static void test_hard_links(void **state)
{
	struct fixture *f = *state;

	make_dir(f->scratch.fd, "d");
	make_file(f->scratch.fd, "d/a", "1", 0600);
	assert_int_equal(linkat(f->scratch.fd, "d/a", f->scratch.fd, "other", 0), 0);
	moves(f, "d", "d");
	assert_copied(f);
	assert_int_equal(stat_of(f->dest.fd, "d/a").st_nlink, 1);
	assert_int_equal(linkat(f->scratch.fd, "other", f->scratch.fd, "b", 0), 0);
	moves(f, "b", "b");
	assert_copied(f);
	/* Who has the other name has no part in what was promoted. */
	int fd = openat(f->scratch.fd, "other", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "X", 1, 0), 1);
	assert_int_equal(close(fd), 0);
	assert_text(f->dest.fd, "d/a", "1");
	assert_text(f->dest.fd, "b", "1");
}

/* --- what is refused --------------------------------------------------------------------------- */

static void refuses(struct fixture *f, const char *source, int errnum)
{
	struct stat before = stat_of(f->scratch.fd, source), after;

	assert_int_equal(move(f, source, "x"), -errnum);
	assert_int_equal(f->error.code, ERROR_PROMOTE);
	assert_int_equal(count_entries(f->dest.fd, "."), 0);
	after = stat_of(f->scratch.fd, source);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void make_socket(const char *dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(close(fd), 0);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	int s = f->scratch.fd;

	make_file(s, "file", "1", 0600);
	make_dir(s, "real");
	make_file(s, "real/a", "1", 0600);
	assert_int_equal(symlinkat("file", s, "link"), 0);
	assert_int_equal(symlinkat("real", s, "dirlink"), 0);
	assert_int_equal(mkfifoat(s, "fifo", 0600), 0);
	make_socket(f->scratch.path, "socket");
	make_file(s, "setuid", "1", 04700);
	make_file(s, "setgid", "1", 02770);
	refuses(f, "link", ELOOP);
	refuses(f, "dirlink", ELOOP);
	refuses(f, "dirlink/a", ELOOP);
	refuses(f, "fifo", EINVAL);
	refuses(f, "socket", EINVAL);
	refuses(f, "setuid", EINVAL);
	refuses(f, "setgid", EINVAL);
	assert_int_equal(move(f, "missing", "x"), -ENOENT);
	assert_int_equal(move(f, "missing/x", "x"), -ENOENT);
	assert_int_equal(move(f, "", "x"), -EINVAL);
	assert_int_equal(move(f, ".", "x"), -EINVAL);
	assert_int_equal(move(f, "real/..", "x"), -EINVAL);
	assert_int_equal(move(f, "../x/a", "x"), -EXDEV);
	assert_int_equal(move(f, "/etc/passwd", "x"), -EXDEV);
	assert_int_equal(move(f, "file", ".."), -EINVAL);
	assert_int_equal(move(f, "file", "a/b"), -EINVAL);
	assert_int_equal(move(f, "file", ""), -EINVAL);
}

static void test_refused_inside(void **state)
{
	static const char *const out[] = { "/etc/passwd", "..", "../x", "e/..", "e/../../x",
		"./../x", "e/link/../..", "" };
	struct fixture *f = *state;
	int s = f->scratch.fd;

	make_dir(s, "d");
	make_dir(s, "d/e");
	make_file(s, "d/e/file", "1", 0600);
	for (size_t i = 0; out[i][0]; i++) {
		assert_int_equal(symlinkat(out[i], s, "d/l"), 0);
		refuses(f, "d", ELOOP);
		assert_int_equal(unlinkat(s, "d/l", 0), 0);
	}
	assert_int_equal(symlinkat("../../x", s, "d/e/l"), 0);
	refuses(f, "d", ELOOP);
	assert_non_null(strstr(f->error.on, "d/e/l"));
	assert_int_equal(unlinkat(s, "d/e/l", 0), 0);
	assert_int_equal(mkfifoat(s, "d/e/fifo", 0600), 0);
	refuses(f, "d", EINVAL);
	assert_int_equal(unlinkat(s, "d/e/fifo", 0), 0);
	assert_int_equal(fchmodat(s, "d/e/file", 04700, 0), 0);
	refuses(f, "d", EINVAL);
	assert_int_equal(fchmodat(s, "d/e/file", 0700, 0), 0);
	moves(f, "d", "x");
}

static void test_too_deep(void **state)
{
	struct fixture *f = *state;

	make_chain(f->scratch.fd, "d", PROMOTE_DEPTH_MAX + 1, 0700);
	refuses(f, "d", E2BIG);
	make_chain(f->scratch.fd, "e", PROMOTE_DEPTH_MAX, 0700);
	moves(f, "e", "e");
}

/* --- strays ------------------------------------------------------------------------------------ */

static void test_sweep(void **state)
{
	struct fixture *f = *state;
	struct promote_temp live;

	make_file(f->dest.fd, ".carrel-promote-0123456789abcdef", "half", 0600);
	make_dir(f->dest.fd, ".carrel-promote-00000000000000ff");
	make_file(f->dest.fd, ".carrel-promote-00000000000000ff/a", "half", 0600);
	make_file(f->dest.fd, ".carrel-promote-mine", "mine", 0600);
	make_file(f->dest.fd, ".carrel-promote-0123456789abcdeF", "mine", 0600);
	assert_int_equal(symlinkat("x", f->dest.fd, ".carrel-promote-00000000000000aa"), 0);
	assert_int_equal(promote_temp_make(f->dest.fd, false, &live), 0);
	promote_temp_sweep(f->dest.fd);
	assert_false(exists(f->dest.fd, ".carrel-promote-0123456789abcdef"));
	assert_false(exists(f->dest.fd, ".carrel-promote-00000000000000ff"));
	assert_true(exists(f->dest.fd, ".carrel-promote-mine"));
	assert_true(exists(f->dest.fd, ".carrel-promote-0123456789abcdeF"));
	assert_true(exists(f->dest.fd, ".carrel-promote-00000000000000aa"));
	assert_true(exists(f->dest.fd, live.name));
	promote_temp_drop(&live, 0);
	assert_int_equal(count_entries(f->dest.fd, "."), 3);
}

/* --- attacks ----------------------------------------------------------------------------------- */

/* A busy machine may need more time for both outcomes to be seen; it does not need all rounds. */
enum { ROUNDS = 200, ENOUGH = 10, SECONDS = 120 };

/* A tool that makes "d" by turns a directory of its own, and a link to where it has no right. */
static pid_t start_swapping(int scratch, const char *victim)
{
	assert_int_equal(symlinkat(victim, scratch, "link"), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)syscall(SYS_renameat2, scratch, "d", scratch, "link", 2); /* EXCHANGE */
}

struct race {
	struct tree victim;
	int real; /* the tool's own directory, wherever its name is now */
	pid_t pid;
	time_t enough, end;
	char name[16], source[24];
	unsigned round;
};

static void race_begin(struct race *r, struct fixture *f)
{
	make_dir(f->scratch.fd, "d");
	r->real = open_dir(f->scratch.fd, "d");
	tree_make(&r->victim, f->crosses ? "/dev/shm" : "/tmp");
	r->pid = start_swapping(f->scratch.fd, r->victim.path);
	r->enough = time(NULL) + ENOUGH;
	r->end = time(NULL) + SECONDS;
	r->round = 0;
}

/* A fresh file of the same name in both places. */
static void race_round(struct race *r)
{
	(void)snprintf(r->name, sizeof(r->name), "a%u", r->round++);
	(void)snprintf(r->source, sizeof(r->source), "d/%s", r->name);
	make_file(r->real, r->name, "tool", 0600);
	make_file(r->victim.fd, r->name, "secret", 0600);
}

static void race_tidy(struct race *r, struct fixture *f)
{
	(void)unlinkat(r->real, r->name, 0);
	(void)unlinkat(r->victim.fd, r->name, 0);
	(void)unlinkat(f->dest.fd, r->name, 0);
}

static void race_end(struct race *r)
{
	kill_child(r->pid);
	assert_int_equal(close(r->real), 0);
	tree_drop(&r->victim);
}

static void test_swapped_source(void **state)
{
	struct fixture *f = *state;
	struct race r;
	unsigned moved = 0, refused = 0;

	race_begin(&r, f);
	while ((r.round < ROUNDS && time(NULL) < r.enough) || !moved || !refused) {
		race_round(&r);
		if (move(f, r.source, r.name) == 0) {
			assert_text(f->dest.fd, r.name, "tool");
			moved++;
		} else {
			assert_false(exists(f->dest.fd, r.name));
			refused++;
		}
		assert_true(exists(r.victim.fd, r.name));
		race_tidy(&r, f);
		assert_true(time(NULL) < r.end);
	}
	race_end(&r);
	assert_int_equal(count_entries(f->dest.fd, "."), 0);
}

/* The control arm: by name, the same tool gets what it has no right to. */
static void test_swapped_source_by_name(void **state)
{
	struct fixture *f = *state;
	struct race r;
	bool taken = false;

	race_begin(&r, f);
	while (!taken) {
		race_round(&r);
		int fd = openat(f->scratch.fd, r.source, O_RDONLY | O_CLOEXEC);
		char got[8] = "";

		taken = fd >= 0 && read(fd, got, sizeof(got) - 1) == 6 &&
			!strcmp(got, "secret");
		if (fd >= 0)
			assert_int_equal(close(fd), 0);
		race_tidy(&r, f);
		assert_true(time(NULL) < r.end);
	}
	race_end(&r);
}

/* Whatever becomes of a name between the look and the rename: a link or a FIFO does not arrive. */
static void test_swapped_leaf(void **state)
{
	struct fixture *f = *state;
	time_t end = time(NULL) + SECONDS;
	bool moved = false;

	assert_int_equal(mkfifoat(f->scratch.fd, "link", 0600), 0);
	make_file(f->scratch.fd, "d", "tool", 0600);
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)syscall(
				SYS_renameat2, f->scratch.fd, "d", f->scratch.fd, "link", 2);
	}
	while (!moved) {
		moved = move(f, "d", "got") == 0;
		assert_int_equal(exists(f->dest.fd, "got"), moved);
		assert_true(time(NULL) < end);
	}
	kill_child(pid);
	assert_text(f->dest.fd, "got", "tool");
}

/* A tool that goes on writing: what is copied is what it was at one moment, or nothing is. */
static void test_written_meanwhile(void **state)
{
	struct fixture *f = *state;
	time_t end = time(NULL) + SECONDS;
	const struct promote_options apart = { .apart = true, .copy = true };
	int r;

	make_file(f->scratch.fd, "a", "1", 0600);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = openat(f->scratch.fd, "a", O_WRONLY | O_APPEND | O_CLOEXEC);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (write(fd, "more", 4) == 4)
			if (lseek(fd, 0, SEEK_END) > 1 << 22 && ftruncate(fd, 1) < 0)
				break;
		_exit(1);
	}
	do {
		r = move_with(f, "a", "a", &apart);
		if (r == 0)
			assert_int_equal(unlinkat(f->dest.fd, "a", 0), 0);
		assert_true(r == 0 || r == -EBUSY);
		assert_int_equal(count_entries(f->dest.fd, "."), 0);
		assert_true(time(NULL) < end);
	} while (r == 0);
	kill_child(pid);
}

#define BOTH(test) \
	{ #test " (one file system)", test, setup_same, teardown, NULL }, \
	{ \
#test " (two file systems)", test, setup_cross, teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_file),
		BOTH(test_deep_source_and_slashes),
		BOTH(test_odd_names),
		BOTH(test_tree),
		BOTH(test_locked_source),
		BOTH(test_sparse),
		BOTH(test_exists_and_force),
		BOTH(test_copy_and_dry_run),
		BOTH(test_apart),
		BOTH(test_hard_links),
		BOTH(test_refused),
		BOTH(test_refused_inside),
		BOTH(test_too_deep),
		BOTH(test_sweep),
		BOTH(test_swapped_source),
		BOTH(test_swapped_source_by_name),
		BOTH(test_swapped_leaf),
		BOTH(test_written_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
