/*
 * view.c - see view.h.
 *
 * Runs in: the torture driver.
 */
#include "view.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 * 1024, SESSION_ID = 20, MOUNTS_MAX = 512 };

struct text {
	char *to;
	size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	int n = vsnprintf(t->to + t->used, t->size - t->used, format, list);
	va_end(list);
	if (n > 0)
		t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

/* Whole file of /proc/PID into @room, NUL-terminated; its length or -errno. */
static ssize_t slurp(pid_t pid, const char *name, char *room, size_t size)
{
	char path[64];
	size_t used = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : 0;
	while (fd >= 0 && used < size - 1) {
		n = read(fd, room + used, size - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	if (n < 0 && fd >= 0)
		n = -errno;
	if (fd >= 0)
		(void)close(fd);
	room[used] = '\0';
	return n < 0 ? n : (ssize_t)used;
}

/* Where a session's id follows @key, it becomes ID. */
static void hide_ids(char *text, const char *key)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	char *at = text;

	while ((at = strstr(at, key))) {
		at += strlen(key);
		if (strspn(at, alphabet) < SESSION_ID)
			continue;
		memcpy(at, "ID", 2);
		memmove(at + 2, at + SESSION_ID, strlen(at + SESSION_ID) + 1);
	}
}

/* The number behind every @key ("uid=") becomes N. */
static void hide_numbers(char *text, const char *key)
{
	char *at = text;

	while ((at = strstr(at, key))) {
		char *end;

		at += strlen(key);
		(void)strtoul(at, &end, 10);
		if (end == at)
			continue;
		*at = 'N';
		memmove(at + 1, end, strlen(end) + 1);
	}
}

/* --- the parts ------------------------------------------------------------------------------ */

/* All four ids of a Uid or Gid line: the driver's own, or somebody else's. */
static void put_ids(struct text *t, const char *name, const char *numbers, unsigned own)
{
	put(t, "%s", name);
	for (int i = 0; i < 4; i++) {
		char *end;
		unsigned long id = strtoul(numbers, &end, 10);

		put(t, " %s", end == numbers ? "?" : id == own ? "ours" : "other");
		numbers = end;
	}
	put(t, "\n");
}

static void put_status(struct text *t, char *status)
{
	static const char *const whole[] = { "Groups:", "CapInh:", "CapPrm:", "CapEff:",
		"CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "SigBlk:",
		"SigIgn:", "Umask:" };
	char *save = NULL;

	for (char *line = strtok_r(status, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "Uid:", 4))
			put_ids(t, "Uid:", line + 4, (unsigned)getuid());
		else if (!strncmp(line, "Gid:", 4))
			put_ids(t, "Gid:", line + 4, (unsigned)getgid());
		else if (!strncmp(line, "NSpid:", 6))
			put(t, "NSpid: %s\n",
				strrchr(line, '\t') ? strrchr(line, '\t') + 1 : "?");
		for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
			if (!strncmp(line, whole[i], strlen(whole[i])))
				put(t, "%s\n", line);
	}
}

static void put_namespaces(struct text *t, pid_t pid)
{
	static const char *const names[] = { "user", "mnt", "pid", "ipc", "uts", "net",
		"cgroup" };
	char path[64];
	struct stat ours, theirs;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		int r = stat(path, &ours);
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, names[i]);
		if (r < 0 || stat(path, &theirs) < 0)
			put(t, "namespace %s: cannot be read: %d\n", names[i], errno);
		else
			put(t, "namespace %s: %s\n", names[i],
				ours.st_ino == theirs.st_ino ? "OURS" : "own");
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether @line ("/root /path options...") hides a socket of the host, or what has gone since: others make these meanwhile. */
static bool hides_socket(const char *line)
{
	static const char nothing[] = "/nothing ";
	char path[4096];
	struct stat st;

	if (strncmp(line, nothing, sizeof(nothing) - 1) != 0)
		return false;
	line += sizeof(nothing) - 1;
	size_t length = strcspn(line, " ");
	if (length >= sizeof(path))
		return false;
	memcpy(path, line, length);
	path[length] = '\0';
	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISSOCK(st.st_mode);
}

/*
 * Without the numbers of mounts and devices: "/path options optional - type source options".
 * Sorted: the table is in the order of attaching, which says nothing about what lies where.
 */
static void put_mounts(struct text *t, char *mounts)
{
	const char *sorted[MOUNTS_MAX];
	size_t count = 0;
	char *save = NULL;

	hide_numbers(mounts, "uid=");
	hide_numbers(mounts, "gid=");
	hide_numbers(mounts, "size=");
	for (char *line = strtok_r(mounts, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		for (int field = 0; field < 3 && line; field++) {
			line = strchr(line, ' ');
			line = line ? line + 1 : NULL;
		}
		if (line && count < MOUNTS_MAX && !hides_socket(line))
			sorted[count++] = line;
	}
	qsort(sorted, count, sizeof(sorted[0]), by_text);
	for (size_t i = 0; i < count; i++)
		put(t, "mount %s\n", sorted[i]);
}

static void put_descriptors(struct text *t, pid_t pid)
{
	char path[64];
	struct dirent **entries = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	int n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			put(t, "descriptor %s\n", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (n < 0)
		put(t, "descriptors: cannot be read: %d\n", errno);
}

static void put_environment(struct text *t, const char *environment, size_t size)
{
	for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
		put(t, "environment %s\n", at);
}

static void put_link(struct text *t, pid_t pid, const char *name)
{
	char path[64], target[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	put(t, "%s %s\n", name, n < 0 ? "cannot be read" : target);
}

bool view_is_pid1(pid_t pid)
{
	char status[8192];
	ssize_t n = slurp(pid, "status", status, sizeof(status));
	const char *line = n > 0 ? strstr(status, "\nNSpid:") : NULL;

	if (!line)
		return false;
	line += strlen("\nNSpid:");
	size_t length = strcspn(line, "\n"), columns = 0;
	for (size_t i = 0; i < length; i++)
		columns += line[i] == '\t';
	return columns > 1 && line[length - 1] == '1' && line[length - 2] == '\t';
}

bool view_is_stopped(pid_t pid)
{
	char status[8192];
	ssize_t n = slurp(pid, "status", status, sizeof(status));

	return n > 0 && strstr(status, "\nState:\tt");
}

void view_take(pid_t pid, char *ret_text, size_t size)
{
	struct text t = { .to = ret_text, .size = size };
	char *room = malloc(FILE_MAX);
	ssize_t n;

	if (!room) {
		(void)snprintf(ret_text, size, "no memory to look\n");
		return;
	}
	n = slurp(pid, "status", room, FILE_MAX);
	if (n >= 0)
		put_status(&t, room);
	put_namespaces(&t, pid);
	put_descriptors(&t, pid);
	put_link(&t, pid, "cwd");
	put_link(&t, pid, "root");
	n = slurp(pid, "limits", room, FILE_MAX);
	put(&t, "%s", n > 0 ? room : "limits: cannot be read\n");
	n = slurp(pid, "mountinfo", room, FILE_MAX);
	put(&t, "mounts %s\n", n > 0 ? "read" : "cannot be read");
	put_mounts(&t, room);
	n = slurp(pid, "environ", room, FILE_MAX);
	put(&t, "environment %s\n", n > 0 ? "read" : "cannot be read");
	put_environment(&t, room, n > 0 ? (size_t)n : 0);
	free(room);
	hide_ids(ret_text, "carrel-");
	hide_ids(ret_text, "CARREL_SESSION=");
}

void view_first_difference(const char *a, const char *b, char *ret_text, size_t size)
{
	const char *start_a = a, *start_b = b;

	for (; *a && *a == *b; a++, b++)
		if (*a == '\n') {
			start_a = a + 1;
			start_b = b + 1;
		}
	(void)snprintf(ret_text, size, "expected \"%.*s\", found \"%.*s\"",
		(int)strcspn(start_a, "\n"), start_a, (int)strcspn(start_b, "\n"), start_b);
}
