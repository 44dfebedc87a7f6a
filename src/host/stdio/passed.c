/*
 * passed.c - see passed.h.
 *
 * Runs in: S, and the client of an exec.
 */
#include "host/stdio/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/stdio/stdio_kind.h"

#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446 /* Linux 6.9: linux/magic.h */
#endif

const char *passed_kind_name(enum passed_kind kind)
{
	static const char *const names[] = {
		[PASSED_PIPE] = "pipe",
		[PASSED_FIFO] = "fifo",
		[PASSED_SOCKET] = "unix-socket",
		[PASSED_DEVICE] = "device",
		[PASSED_MEMFD] = "memfd",
	};

	return names[kind];
}

/*
 * Whether it is a memfd that nobody can write any more, even opened again. No file of a directory
 * has such seals.
 */
static bool is_sealed(int fd)
{
	const int wanted = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & wanted) == wanted;
}

/* Since Linux 6.9 fstat(2) says "regular file" of pidfds and namespaces as well: the file system tells them apart. */
static const char *explain_file(int fd, const char **ret_hint)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return "a file that cannot be examined";
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
		return "a file of /proc";
	case NSFS_MAGIC:
		return "a namespace";
	case PIDFS_MAGIC:
		return "a pidfd";
	default:
		*ret_hint =
			"name its path with --read or --write, or pass a pipe: N< <(cat FILE)";
		return "a regular file, which could be opened again for writing";
	}
}

const char *passed_classify(int fd, enum passed_kind *ret_kind, const char **ret_hint)
{
	enum stdio_kind kind = STDIO_KIND_FILE;
	int access;
	const char *why = stdio_classify(fd, &kind, &access);

	*ret_hint = NULL;
	if (why)
		return why;
	switch (kind) {
	case STDIO_KIND_PIPE:
		*ret_kind = PASSED_PIPE;
		return NULL;
	case STDIO_KIND_FIFO:
		*ret_kind = PASSED_FIFO;
		return NULL;
	case STDIO_KIND_UNIX:
		*ret_kind = PASSED_SOCKET;
		return NULL;
	case STDIO_KIND_HARMLESS:
		*ret_kind = PASSED_DEVICE;
		return NULL;
	case STDIO_KIND_FILE:
		*ret_kind = PASSED_MEMFD;
		return is_sealed(fd) ? NULL : explain_file(fd, ret_hint);
	case STDIO_KIND_BLOCK:
		return "a block device";
	case STDIO_KIND_TERMINAL:
		return "a terminal";
	case STDIO_KIND_DEVICE:
		return "a device";
	case STDIO_KIND_SOCKET:
	case STDIO_KIND_DATAGRAM:
		return "a socket that could be connected to something else";
	}
	return "of an unknown kind";
}

static int refuse(
	const struct pass_pair *pair, const char *what, const char *hint, struct error *e)
{
	char on[48];

	(void)snprintf(on, sizeof(on), "pass-fd %d:%d", pair->from, pair->to);
	int r = error_set(e, ERROR_DESCRIPTOR, "launch", 0, on, "%s", what);

	if (hint)
		error_hint(e, "%s", hint);
	return r;
}

static int refuse_kind(
	const struct pass_pair *pair, const char *why, const char *hint, struct error *e)
{
	char what[160];

	(void)snprintf(what, sizeof(what), "the descriptor is %s", why);
	return refuse(pair, what, hint, e);
}

static bool is_reserved(int fd, const char *target)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "fd:%d", fd);
	return target && !strcmp(target, text);
}

/*
 * How many files a command of the session may open: what `open-files` says, else the limit of this
 * process.
 */
static uint64_t most_files(const struct policy *policy)
{
	struct rlimit limit;

	if (policy->open_files.set)
		return policy->open_files.value;
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? UINT64_MAX : limit.rlim_cur;
}

static int check_number(const struct pass_pair *pair, uint64_t most, struct error *e)
{
	char what[96];

	if ((uint64_t)pair->to < most)
		return 0;
	(void)snprintf(what, sizeof(what), "the command can have no descriptor above %llu",
		(unsigned long long)(most - 1));
	return refuse(
		pair, what, "give it another number inside, N:M, or raise --open-files", e);
}

static int prepare_one(struct passed_fd *ret, const struct pass_pair *pair,
	const char *const reserved[2], struct error *e)
{
	const char *hint;
	int flags = fcntl(pair->from, F_GETFD);

	ret->pair = *pair;
	if (is_reserved(pair->from, reserved[0]) || is_reserved(pair->from, reserved[1]))
		return refuse(
			pair, "carrel itself writes to this descriptor", "open another one", e);
	/*
	 * What the caller passed on has survived an execve: a descriptor with close-on-exec is
	 * carrel's own.
	 */
	if (flags < 0 || (flags & FD_CLOEXEC))
		return refuse(pair, "the descriptor is not open",
			"open it where carrel is started, and without close-on-exec", e);
	const char *why = passed_classify(pair->from, &ret->kind, &hint);
	return why ? refuse_kind(pair, why, hint, e) : 0;
}

int passed_prepare(struct passed *ret, const struct pass_pair *pairs, size_t count,
	uint64_t most, const char *const reserved[2], struct error *e)
{
	int r = pass_check_count(count, "pass-fd", e);

	ret->count = 0;
	for (size_t i = 0; i < count && r >= 0; i++) {
		r = check_number(&pairs[i], most, e);
		if (r >= 0)
			r = prepare_one(&ret->fd[i], &pairs[i], reserved, e);
		ret->count += r >= 0;
	}
	return r;
}

int passed_of_policy(struct passed *ret, const struct policy *policy, struct error *e)
{
	const char *const reserved[] = { policy->report.value, policy->net_log.value };
	struct pass_pair pairs[PASS_MAX];

	for (size_t i = 0; i < policy->pass_count && i < PASS_MAX; i++)
		pairs[i] = policy->passes[i].pair;
	return passed_prepare(ret, pairs, policy->pass_count,
		policy->pass_count ? most_files(policy) : 0, reserved, e);
}

int passed_of_words(struct passed *ret, const char *const *words, unsigned count,
	const char *reserved, struct error *e)
{
	const char *const both[] = { reserved, NULL };
	struct pass_pair pairs[PASS_MAX + 1];
	size_t kept = 0;

	for (unsigned i = 0; i < count && kept <= PASS_MAX; i++) {
		struct pass_pair pair;
		int r = pass_read_option("pass-fd", words[i], &pair, e);

		if (r < 0)
			return r;
		kept = pass_put(pairs, kept, &pair);
	}
	return passed_prepare(ret, pairs, kept, UINT64_MAX, both, e);
}

int passed_check(const int *fds, const struct pass_numbers *to, const struct policy *policy,
	struct error *e)
{
	for (unsigned i = 0; i < to->count; i++) {
		const struct pass_pair pair = { .from = to->number[i], .to = to->number[i] };
		enum passed_kind kind;
		const char *hint, *why = passed_classify(fds[i], &kind, &hint);
		int r = why ? refuse_kind(&pair, why, hint, e)
			    : check_number(&pair, most_files(policy), e);

		if (r < 0)
			return r;
	}
	return 0;
}

void passed_set_owner(int fd, uid_t uid, gid_t gid)
{
	enum passed_kind kind;
	const char *hint;

	/* Anything else has an inode that others use. A refusal changes nothing else. */
	if (!passed_classify(fd, &kind, &hint) && kind == PASSED_PIPE)
		(void)!fchown(fd, uid, gid);
}

unsigned passed_fill(const struct passed *p, int *fds)
{
	for (unsigned i = 0; i < p->count; i++)
		fds[i] = p->fd[i].pair.from;
	return p->count;
}

void passed_close(const struct passed *p)
{
	/* One that is passed as two is closed once; the second time it is no longer open. */
	for (unsigned i = 0; i < p->count; i++)
		(void)close(p->fd[i].pair.from);
}
