/*
 * filter_cache.c - see filter_cache.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/load/filter_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/process/libexec.h"
#include "host/tree/plainfile.h"

#define FILE_SIZE_MAX \
	(sizeof(struct filter_file_header) + FILTER_FILE_COUNT_MAX * sizeof(struct sock_filter))
#define NAME_SIZE (SHA256_HEX_SIZE + 4) /* <digest>.bpf */

struct request {
	struct arena *arena;
	const struct policy *policy;
	const char *base;
	uint8_t inputs[SHA256_SIZE];
	char name[NAME_SIZE];
	char *data; /* FILE_SIZE_MAX + 1 bytes */
	struct error *e;
};

/* --- the directory ---------------------------------------------------------------------------- */

static const char *find_env(const char *const *env, const char *name)
{
	size_t length = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

/* It must be the caller's alone: another user could put a filter there, or take the name of one. */
static bool is_private(int fd, mode_t type, mode_t forbidden)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
		!(st.st_mode & forbidden);
}

/* A directory below @dirfd, made where it is missing. Returns a descriptor or -errno. */
static int open_private(int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	autofd int fd = fd_open_at(dirfd, name, flags, 0);

	if (fd == -ENOENT && (mkdirat(dirfd, name, 0700) == 0 || errno == EEXIST))
		fd = fd_open_at(dirfd, name, flags, 0);
	if (fd >= 0 && !is_private(fd, S_IFDIR, 022))
		return -EPERM;
	return fd < 0 ? fd : take_fd(&fd);
}

/*
 * $XDG_CACHE_HOME/carrel/filters. There is none where the cache is another user's (sudo keeps
 * HOME): it is not to be believed, and root's files must not lie about in it.
 */
static int open_directory(const char *const *env)
{
	const char *xdg = find_env(env, "XDG_CACHE_HOME");
	const char *home = find_env(env, "HOME");
	char path[PATH_MAX / 2];

	if (!(xdg && xdg[0] == '/') && !(home && home[0] == '/'))
		return -ENOENT;
	int length = xdg && xdg[0] == '/' ? snprintf(path, sizeof(path), "%s", xdg)
					  : snprintf(path, sizeof(path), "%s/.cache", home);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	autofd int top = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (top < 0)
		return top;
	if (!is_private(top, S_IFDIR, 022))
		return -EPERM;
	autofd int own = open_private(top, "carrel");
	return own < 0 ? own : open_private(own, "filters");
}

/* --- reading and keeping ---------------------------------------------------------------------- */

/* All of @fd, if it is the filter that is asked for. Returns the number of instructions. */
static int read_filter(struct request *r, int fd)
{
	ssize_t size = fd_read_file(fd, r->data, FILE_SIZE_MAX);

	return size < 0 ? (int)size : filter_cache_accept(r->data, (size_t)size, r->inputs);
}

static int read_cached(struct request *r, int directory)
{
	autofd int fd = plainfile_open(directory, r->name, 0, false);

	if (fd < 0)
		return fd;
	return is_private(fd, S_IFREG, 077) ? read_filter(r, fd) : -EPERM;
}

/*
 * Keep the filter whole or not at all: it has a name that nobody guesses until it is complete. Best
 * effort: without it the next launch compiles again.
 */
static int keep_filter(const struct request *r, int directory, size_t size)
{
	uint64_t random = 0;
	char part[32];

	int result = fd_random(&random, sizeof(random));
	if (result < 0)
		return result;
	(void)snprintf(part, sizeof(part), ".%016llx", (unsigned long long)random);
	autofd int fd =
		fd_open_at(directory, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	result = fd_write_all(fd, r->data, size);
	if (result == 0 && renameat(directory, part, directory, r->name) != 0)
		result = -errno;
	if (result < 0)
		(void)unlinkat(directory, part, 0); /* the failure is known already */
	return result;
}

/* --- compiling -------------------------------------------------------------------------------- */

/* carrel-policy compile BASE [FILE LINE TEXT]... */
static char *const *build_arguments(const struct request *r, char *program)
{
	const struct policy *p = r->policy;
	const char **argv = arena_array(r->arena, 4 + 3 * p->syscall_rule_count, sizeof(*argv));
	size_t n = 0;

	if (!argv)
		return NULL;
	argv[n++] = program;
	argv[n++] = "compile";
	argv[n++] = r->base;
	for (size_t i = 0; i < p->syscall_rule_count; i++) {
		const struct syscall_rule *rule = &p->syscall_rules[i];

		argv[n++] = rule->source.file ? rule->source.file : "policy";
		argv[n] = arena_format(r->arena, "%u", rule->source.line);
		if (!argv[n])
			return NULL;
		n++;
		argv[n++] = rule->text;
	}
	argv[n] = NULL;
	return (char *const *)argv;
}

static int spawn(const struct request *r, int output, pid_t *ret_pid)
{
	char program[PATH_MAX / 2];
	char *const no_environment[] = { NULL };
	posix_spawn_file_actions_t actions;

	int result = libexec_path("carrel-policy", program, sizeof(program));
	if (result < 0)
		return error_set(r->e, ERROR_INTERNAL, "policy", -result, "carrel-policy",
			"cannot find the program that compiles `syscall` lines");
	char *const *argv = build_arguments(r, program);
	if (!argv || posix_spawn_file_actions_init(&actions) != 0)
		return error_set(r->e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), NULL,
			"out of memory: `syscall` lines cannot be compiled");
	result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (result == 0)
		result = posix_spawn_file_actions_adddup2(&actions, output, 1);
	if (result == 0)
		result =
			posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (result == 0)
		result = posix_spawn(ret_pid, program, &actions, NULL, argv, no_environment);
	(void)posix_spawn_file_actions_destroy(&actions); /* cannot fail */
	if (result != 0)
		return error_set(r->e, ERROR_INTERNAL, "policy", result, program,
			"cannot start the program that compiles `syscall` lines");
	return 0;
}

/* Take the error that carrel-policy sent. */
static int read_error(const struct request *r, size_t size)
{
	struct error said;

	if (size == sizeof(said)) {
		memcpy(&said, r->data, sizeof(said));
		bool is_text = !said.stage[sizeof(said.stage) - 1] &&
			!said.what[sizeof(said.what) - 1] && !said.on[sizeof(said.on) - 1] &&
			!said.hint[sizeof(said.hint) - 1];
		if (is_text && said.code != ERROR_NONE) {
			int result = error_set(r->e, said.code, said.stage, error_cause(&said),
				said.on, "%s", said.what);
			if (said.hint[0])
				error_hint(r->e, "%s", said.hint);
			return result;
		}
	}
	return error_set(r->e, ERROR_INTERNAL, "policy", EIO, "carrel-policy",
		"the program that compiles `syscall` lines gave no answer");
}

/*
 * Have the filter compiled, into r->data. What was written counts, not the exit status: there is
 * none if the caller ignores SIGCHLD.
 */
static int compile(struct request *r)
{
	autofd int output = memfd_create("carrel-filter", MFD_CLOEXEC);
	pid_t pid = -1, waited;

	if (output < 0)
		return error_set(r->e, ERROR_INTERNAL, "policy", errno, NULL,
			"cannot make room for the compiled filter");
	int result = spawn(r, output, &pid);
	if (result < 0)
		return result;
	do
		waited = waitpid(pid, NULL, 0);
	while (waited < 0 && errno == EINTR);
	if (lseek(output, 0, SEEK_SET) < 0)
		return error_set(r->e, ERROR_INTERNAL, "policy", errno, NULL,
			"cannot read the compiled filter");
	ssize_t size = fd_read_file(output, r->data, FILE_SIZE_MAX);
	if (size < 0)
		return read_error(r, 0);
	result = filter_cache_accept(r->data, (size_t)size, r->inputs);
	return result < 0 ? read_error(r, (size_t)size) : result;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int find_inputs(struct request *r)
{
	const struct policy *p = r->policy;
	const char **lines = arena_array(r->arena, p->syscall_rule_count + 1, sizeof(*lines));
	char hex[SHA256_HEX_SIZE];

	r->data = arena_alloc(r->arena, FILE_SIZE_MAX + 1);
	if (!lines || !r->data)
		return error_set(r->e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), NULL,
			"out of memory: the system-call filter cannot be loaded");
	for (size_t i = 0; i < p->syscall_rule_count; i++)
		lines[i] = p->syscall_rules[i].text;
	filter_cache_inputs(r->base, lines, p->syscall_rule_count, r->inputs);
	sha256_hex(r->inputs, hex);
	(void)snprintf(r->name, sizeof(r->name), "%s.bpf", hex);
	return 0;
}

int filter_cache_load(struct arena *arena, const struct policy *policy, const char *base,
	const char *const *env, const struct embedded_filter **ret, struct error *e)
{
	struct request r = { .arena = arena, .policy = policy, .base = base, .e = e };

	int result = find_inputs(&r);
	if (result < 0)
		return result;
	struct embedded_filter *filter = arena_alloc(arena, sizeof(*filter));
	if (!filter)
		return error_set(e, ERROR_LIMIT, "policy", ERROR_OWN(ENOMEM), NULL,
			"out of memory: the system-call filter cannot be loaded");
	autofd int directory = open_directory(env);
	int count = directory < 0 ? directory : read_cached(&r, directory);
	if (count < 0) {
		count = compile(&r);
		if (count < 0)
			return count;
		if (directory >= 0)
			(void)keep_filter(&r, directory,
				sizeof(struct filter_file_header) +
					(size_t)count * sizeof(struct sock_filter));
	}
	const struct filter_file_header *header = (const void *)r.data;
	filter->name = base;
	filter->arch = header->arch;
	filter->code = (const void *)(header + 1);
	filter->count = (unsigned short)count;
	*ret = filter;
	return 0;
}
