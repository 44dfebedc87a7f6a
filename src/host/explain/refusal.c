/*
 * refusal.c - see refusal.h.
 *
 * Runs in: the observer. No heap, no stdio streams.
 */
#include "host/explain/refusal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "plan/surface.h"
#include "plan/tree_node.h"

/* List so many refusals of one call and errno with their arguments; count the others with the first. */
enum { ARGUMENTS_MAX = 16, NONE = -1, PAGE = 4096 };

/* A larger argument is an address, which is different each time. */
#define POINTERS_FROM (1ull << 32)

/* A path among the arguments of a call, and what it is for. */
struct path_call {
	int number;
	signed char dir;  /* index of the directory's descriptor, or NONE */
	signed char path; /* index */
	signed char mode; /* index of flags of open(2), or NONE */
	unsigned char attempt;
};

static const struct path_call path_calls[] = {
#ifdef SYS_open
	{ SYS_open, NONE, 0, 1, EXPLAIN_READ },
	{ SYS_creat, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_mkdir, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_mknod, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_rmdir, NONE, 0, NONE, EXPLAIN_REMOVE },
	{ SYS_unlink, NONE, 0, NONE, EXPLAIN_REMOVE },
	{ SYS_rename, NONE, 0, NONE, EXPLAIN_REMOVE },
	{ SYS_rename, NONE, 1, NONE, EXPLAIN_WRITE },
	{ SYS_link, NONE, 1, NONE, EXPLAIN_WRITE },
	{ SYS_symlink, NONE, 1, NONE, EXPLAIN_WRITE },
	{ SYS_chmod, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_chown, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_lchown, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_utime, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_utimes, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_futimesat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_stat, NONE, 0, NONE, EXPLAIN_READ },
	{ SYS_lstat, NONE, 0, NONE, EXPLAIN_READ },
	{ SYS_readlink, NONE, 0, NONE, EXPLAIN_READ },
	{ SYS_renameat, 0, 1, NONE, EXPLAIN_REMOVE },
	{ SYS_renameat, 2, 3, NONE, EXPLAIN_WRITE },
#endif
	{ SYS_openat, 0, 1, 2, EXPLAIN_READ },
	{ SYS_mkdirat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_mknodat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_unlinkat, 0, 1, NONE, EXPLAIN_REMOVE },
	{ SYS_renameat2, 0, 1, NONE, EXPLAIN_REMOVE },
	{ SYS_renameat2, 2, 3, NONE, EXPLAIN_WRITE },
	{ SYS_linkat, 2, 3, NONE, EXPLAIN_WRITE },
	{ SYS_symlinkat, 1, 2, NONE, EXPLAIN_WRITE },
	{ SYS_fchmodat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_fchownat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_utimensat, 0, 1, NONE, EXPLAIN_WRITE },
	{ SYS_truncate, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_setxattr, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_lsetxattr, NONE, 0, NONE, EXPLAIN_WRITE },
	{ SYS_newfstatat, 0, 1, NONE, EXPLAIN_READ },
	{ SYS_statx, 0, 1, NONE, EXPLAIN_READ },
	{ SYS_readlinkat, 0, 1, NONE, EXPLAIN_READ },
	{ SYS_chdir, NONE, 0, NONE, EXPLAIN_READ },
	{ SYS_execve, NONE, 0, NONE, EXPLAIN_READ },
	{ SYS_execveat, 0, 1, NONE, EXPLAIN_READ },
};

/* --- the arguments of the call -------------------------------------------------------------------- */

static ssize_t read_memory(const struct tracee *t, uint64_t address, void *ret, size_t size)
{
	struct iovec here = { .iov_base = ret, .iov_len = size };
	struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };
	ssize_t n = process_vm_readv(t->thread, &here, 1, &there, 1, 0);

	return n < 0 ? -errno : n;
}

/* A text in the thread's memory, read page by page, since the next page may not exist. Its length, or -errno. */
static ssize_t read_text(const struct tracee *t, uint64_t address, char *ret, size_t size)
{
	size_t used = 0;

	while (used < size) {
		size_t part = PAGE - (size_t)((address + used) % PAGE);
		ssize_t n = read_memory(
			t, address + used, ret + used, part < size - used ? part : size - used);

		if (n <= 0)
			return n < 0 ? n : -EFAULT;
		const char *end = memchr(ret + used, '\0', (size_t)n);
		if (end)
			return end - ret;
		used += (size_t)n;
	}
	return -ENAMETOOLONG;
}

/* The directory that a relative path starts from. Its length, or -errno. */
static ssize_t read_directory(
	const struct refusals *r, const struct tracee *t, int dir, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	if (dir == AT_FDCWD)
		(void)snprintf(link, sizeof(link), "%d/cwd", (int)t->thread);
	else
		(void)snprintf(link, sizeof(link), "%d/fd/%d", (int)t->thread, dir);
	n = readlinkat(r->proc, link, ret, size - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return ret[0] == '/' ? n : -EINVAL; /* a pipe, a socket */
}

/* The path of @c, absolute, in the entry. 0 or -errno. */
static int read_path(const struct refusals *r, const struct tracee *t,
	const struct path_call *c, struct explain_entry *e)
{
	char path[EXPLAIN_TEXT_MAX], dir[EXPLAIN_TEXT_MAX];
	int fd = c->dir == NONE ? AT_FDCWD : (int)t->args[(int)c->dir];
	ssize_t n = read_text(t, t->args[(int)c->path], path, sizeof(path));
	int length;

	if (n < 0)
		return (int)n;
	dir[0] = '\0';
	if (path[0] != '/') {
		ssize_t r2 = read_directory(r, t, fd, dir, sizeof(dir));

		if (r2 < 0)
			return (int)r2;
	}
	length = snprintf(e->text, sizeof(e->text), "%s%s%s", dir,
		path[0] && path[0] != '/' && strcmp(dir, "/") != 0 ? "/" : "", path);
	if (length <= 0 || (size_t)length >= sizeof(e->text))
		return -ENAMETOOLONG;
	e->length = (uint16_t)length;
	return 0;
}

static int read_unix(const struct sockaddr_un *at, size_t size, struct explain_entry *e)
{
	size_t most = size - offsetof(struct sockaddr_un, sun_path);
	size_t length = strnlen(at->sun_path, most);

	if (at->sun_path[0] != '/')
		return -EINVAL; /* an abstract name, or a relative path */
	memcpy(e->text, at->sun_path, length);
	e->length = (uint16_t)length;
	e->kind = EXPLAIN_PATH;
	return 0;
}

/* The address at @address, @size bytes long. 0 or -errno. */
static int read_address(
	const struct tracee *t, uint64_t address, uint64_t size, struct explain_entry *e)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
		struct sockaddr_un un;
	} at = { 0 };
	char host[INET6_ADDRSTRLEN];
	int length = 0;

	if (size < sizeof(sa_family_t) || size > sizeof(at))
		return -EINVAL;
	ssize_t n = read_memory(t, address, &at, (size_t)size);
	if (n != (ssize_t)size)
		return n < 0 ? (int)n : -EFAULT;
	e->attempt = EXPLAIN_CONNECT;
	e->kind = EXPLAIN_HOST;
	if (at.any.sa_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path))
		return read_unix(&at.un, (size_t)size, e);
	if (at.any.sa_family == AF_INET && size >= sizeof(at.four) &&
		inet_ntop(AF_INET, &at.four.sin_addr, host, sizeof(host)))
		length = snprintf(e->text, sizeof(e->text), "%s:%u", host,
			(unsigned)ntohs(at.four.sin_port));
	if (at.any.sa_family == AF_INET6 && size >= sizeof(at.six) &&
		inet_ntop(AF_INET6, &at.six.sin6_addr, host, sizeof(host)))
		length = snprintf(e->text, sizeof(e->text), "[%s]:%u", host,
			(unsigned)ntohs(at.six.sin6_port));
	e->length = (uint16_t)length;
	return length > 0 ? 0 : -EINVAL;
}

static int read_peer(const struct tracee *t, struct explain_entry *e)
{
	struct msghdr message;

	if (t->number == SYS_connect)
		return read_address(t, t->args[1], t->args[2], e);
	if (t->number == SYS_sendto)
		return t->args[4] ? read_address(t, t->args[4], t->args[5], e) : -EINVAL;
	if (read_memory(t, t->args[1], &message, sizeof(message)) != (ssize_t)sizeof(message))
		return -EFAULT;
	return message.msg_name
		? read_address(t, (uint64_t)(uintptr_t)message.msg_name, message.msg_namelen, e)
		: -EINVAL;
}

/* --- who ---------------------------------------------------------------------------------------- */

static ssize_t read_file(const struct refusals *r, const struct tracee *t, const char *name,
	char *ret, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/%s", (int)t->thread, name);
	autofd int fd = fd_open_at(r->proc, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n;
}

/* The process as the session sees it: the last of the numbers that it has in nested pid namespaces. */
static void name_process(
	const struct refusals *r, const struct tracee *t, struct explain_entry *e)
{
	char text[2048];

	if (read_file(r, t, "comm", e->name, sizeof(e->name)) > 0)
		e->name[strcspn(e->name, "\n")] = '\0';
	if (read_file(r, t, "status", text, sizeof(text)) <= 0)
		return;
	const char *line = strstr(text, "\nNStgid:");
	if (!line)
		return;
	for (const char *at = line + sizeof("\nNStgid:") - 1; *at && *at != '\n';) {
		char *end;
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		e->pid = (int32_t)pid;
		at = end;
	}
}

/* --- the board ---------------------------------------------------------------------------------- */

static bool is_same_call(const struct explain_entry *a, const struct explain_entry *b)
{
	if (a->number == SYS_ioctl)
		return (uint32_t)a->args[1] == (uint32_t)b->args[1];
	for (int i = 0; i < EXPLAIN_ARGUMENTS; i++)
		if (a->args[i] != b->args[i] &&
			(a->args[i] < POINTERS_FROM || b->args[i] < POINTERS_FROM))
			return false;
	return true;
}

static bool is_same(const struct explain_entry *a, const struct explain_entry *b)
{
	return a->length == b->length && !memcmp(a->text, b->text, a->length) &&
		(a->kind != EXPLAIN_CALL || is_same_call(a, b));
}

static struct explain_entry *find(
	struct explain_board *b, const struct explain_entry *wanted, unsigned count)
{
	struct explain_entry *first = NULL;
	unsigned alike = 0;

	for (unsigned i = 0; i < count; i++) {
		struct explain_entry *e = &b->entries[i];

		if (e->number != wanted->number || e->errnum != wanted->errnum ||
			e->kind != wanted->kind || e->attempt != wanted->attempt ||
			e->monitor != wanted->monitor)
			continue;
		if (is_same(e, wanted))
			return e;
		if (!first)
			first = e;
		alike++;
	}
	return wanted->kind == EXPLAIN_CALL && alike >= ARGUMENTS_MAX ? first : NULL;
}

static void add(const struct refusals *r, const struct tracee *t, struct explain_entry *e)
{
	struct explain_board *b = r->board;
	const unsigned count = b->count;
	e->monitor = t->monitor;
	struct explain_entry *known = find(b, e, count);

	if (known) {
		known->times += known->times < UINT32_MAX;
		return;
	}
	if (count == EXPLAIN_ENTRIES_MAX) {
		b->unlisted++;
		return;
	}
	e->times = 1;
	name_process(r, t, e);
	b->entries[count] = *e;
	b->count = count + 1;
}

/* --- can a wall have refused it? ------------------------------------------------------------------ */

/* "/a/./b//../c" becomes "/a/c", without following a link. Used only to look up what the plan shows there. */
static void clean(const char *path, char *ret)
{
	size_t used = 0;

	while (*path) {
		size_t length = strcspn(path += strspn(path, "/"), "/");

		if (length == 2 && path[0] == '.' && path[1] == '.') {
			while (used && ret[--used] != '/')
				;
		} else if (length && !(length == 1 && path[0] == '.')) {
			ret[used++] = '/';
			memcpy(ret + used, path, length);
			used += length;
		}
		path += length;
	}
	if (!used)
		ret[used++] = '/';
	ret[used] = '\0';
}

/* The path is absent because the session hides it or does not show it. A path that the host does not have either is no refusal. */
static bool is_hidden(const struct refusals *r, const struct explain_entry *e)
{
	char path[EXPLAIN_TEXT_MAX + 1], text[EXPLAIN_TEXT_MAX + 1];
	struct surface surface;

	memcpy(text, e->text, e->length);
	text[e->length] = '\0';
	clean(text, path);
	if (plan_shows_host(r->plan, path))
		return false;
	/* The session does not see the host's /tmp at all. */
	const struct node *node = plan_node_at(r->plan, path);
	if (node && node->kind == NODE_TMP)
		return true;
	plan_surface(r->plan, path, &surface);
	return surface.kind != SURFACE_SCRATCH && surface.kind != SURFACE_WORKSPACE &&
		surface.kind != SURFACE_TOOL_RESULTS && strncmp(path, "/proc/", 6) != 0;
}

static void note_path(
	const struct refusals *r, const struct tracee *t, const struct path_call *c, int errnum)
{
	struct explain_entry e = { .number = t->number,
		.errnum = errnum,
		.kind = EXPLAIN_PATH,
		.attempt = c->attempt };

	if (c->mode != NONE &&
		(t->args[(int)c->mode] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)))
		e.attempt = EXPLAIN_WRITE;
	if (errnum == EBUSY && e.attempt == EXPLAIN_READ)
		return;
	memcpy(e.args, t->args, sizeof(e.args));
	int result = read_path(r, t, c, &e);
	if (result < 0) {
		r->board->unlisted += result == -ENAMETOOLONG && errnum != ENOENT;
		return;
	}
	if (errnum != ENOENT || is_hidden(r, &e))
		add(r, t, &e);
}

static void note_peer(const struct refusals *r, const struct tracee *t, int errnum)
{
	struct explain_entry e = { .number = t->number, .errnum = errnum };

	memcpy(e.args, t->args, sizeof(e.args));
	if (read_peer(t, &e) < 0)
		return;
	if (e.kind != EXPLAIN_PATH || errnum != ENOENT || is_hidden(r, &e))
		add(r, t, &e);
}

static void note_call(const struct refusals *r, const struct tracee *t, int errnum)
{
	struct explain_entry e = {
		.number = t->number, .errnum = errnum, .kind = EXPLAIN_CALL
	};

	memcpy(e.args, t->args, sizeof(e.args));
	add(r, t, &e);
}

static bool is_of_filter(const struct tracee *t, int errnum)
{
	return errnum == EPERM || errnum == EACCES || errnum == ENOSYS ||
		errnum == EAFNOSUPPORT || (errnum == EINVAL && t->number == SYS_prctl);
}

void refusal_note(const struct refusals *r, const struct tracee *t, int errnum)
{
	bool path = errnum == EACCES || errnum == EPERM || errnum == EROFS ||
		errnum == ENOENT || errnum == EBUSY;
	bool peer = errnum == ENETUNREACH || errnum == EACCES || errnum == EPERM ||
		errnum == ENOENT || errnum == EHOSTUNREACH;
	bool has_path = false;

	for (size_t i = 0; path && i < sizeof(path_calls) / sizeof(path_calls[0]); i++)
		if (path_calls[i].number == t->number) {
			note_path(r, t, &path_calls[i], errnum);
			has_path = true;
		}
	if (peer &&
		(t->number == SYS_connect || t->number == SYS_sendto ||
			t->number == SYS_sendmsg))
		note_peer(r, t, errnum);
	/* EACCES for a path is about the path, not about the call. */
	if (is_of_filter(t, errnum) && !(has_path && errnum == EACCES))
		note_call(r, t, errnum);
}
