/*
 * world.c - see world.h.
 *
 * Runs in: the torture driver.
 */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_file(const char *directory, const char *name, mode_t mode)
{
	char path[WORLD_PATH + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = write(fd, "text\n", 5) != 5 || fchmod(fd, mode) < 0 ? -EIO : 0;
	(void)close(fd);
	return r;
}

static int copy_file(const char *from, const char *to)
{
	char block[65536];
	ssize_t n = -1;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	while (in >= 0 && out >= 0 && (n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n)
			n = -1;
	int r = n == 0 && fchmod(out, 0755) == 0 ? 0 : -EIO;
	if (in >= 0)
		(void)close(in);
	if (out >= 0)
		(void)close(out);
	return r;
}

static int make_directories(struct world *w)
{
	char report_dir[WORLD_PATH];

	(void)snprintf(report_dir, sizeof(report_dir), "%.400s/report", w->root);
	const char *const names[] = { w->root, w->workspace, w->base, w->host, w->home,
		report_dir };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (mkdir(names[i], 0755) < 0)
			return -errno;
	int r = make_file(w->host, "secret", 0644);
	if (r >= 0)
		r = make_file(w->host, "file", 0666);
	if (r >= 0)
		r = make_file(w->workspace, "project", 0644);
	(void)snprintf(report_dir, sizeof(report_dir), "%.400s/fifo", w->host);
	if (r >= 0 && (mkfifo(report_dir, 0600) < 0 || chmod(report_dir, 0666) < 0))
		r = -errno;
	return r;
}

/* With all that git wants to find, and no hooks: the command makes those. */
static int make_repository(const struct world *w)
{
	static const char index[32] = "DIRC\0\0\0\2"; /* no entry, and no checksum */
	static const struct {
		const char *name, *text;
		size_t size;
	} files[] = { { "HEAD", "ref: refs/heads/main\n", 21 },
		{ "config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", 50 },
		{ "index", index, sizeof(index) } };
	static const char *const directories[] = { "", "/objects", "/refs", "/info", "/logs",
		"/rebase-merge" };
	char path[WORLD_PATH + 64];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/.git%s", w->workspace, directories[i]);
		if (mkdir(path, 0755) < 0)
			return -errno;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/.git/%s", w->workspace, files[i].name);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0)
			return -errno;
		ssize_t n = write(fd, files[i].text, files[i].size);
		(void)close(fd);
		if (n != (ssize_t)files[i].size)
			return -EIO;
	}
	return 0;
}

static void make_command_line(struct world *w, const char *const *settings)
{
	static const char *const run_words[] = { "run", "--report", NULL, "--scratch-base",
		NULL, "--read", NULL, "--hide", NULL };
	static const char *const live_words[] = { "--scenario", NULL, NULL, NULL, NULL, NULL,
		NULL, NULL, NULL };
	const char *const run_values[] = { w->report, w->base, w->host, w->hidden };
	const char *const live_values[] = { w->carrel, w->root, w->base, w->host, w->hidden,
		w->report, w->marker, w->protected_name };
	const char *const *words = w->live ? live_words : run_words;
	const char *const *values = w->live ? live_values : run_values;
	const size_t count = 9;
	size_t n = 0, value = 0;

	(void)snprintf(w->hidden, sizeof(w->hidden), "%.400s/secret", w->host);
	w->argv[n++] = w->live ? "/proc/self/exe" : w->carrel;
	for (size_t i = 0; i < count; i++)
		w->argv[n++] = words[i] ? words[i] : values[value++];
	while (*settings && n < WORLD_ARGS - 6)
		w->argv[n++] = *settings++;
	if (!w->live) {
		w->argv[n++] = "--";
		w->argv[n++] = w->marker;
		w->argv[n++] = w->host;
		w->argv[n++] = w->protected_name;
	}
	w->argv[n] = NULL;
	(void)snprintf(w->env_home, sizeof(w->env_home), "HOME=%s", w->home);
	w->envp[0] = "PATH=/usr/bin:/bin";
	w->envp[1] = w->env_home;
	w->envp[2] = "TORTURE_SECRET=yes";
	w->envp[3] = "LANG=C.UTF-8";
	(void)snprintf(
		w->env_runtime, sizeof(w->env_runtime), "XDG_RUNTIME_DIR=%.400s/run", w->root);
	/* Where the state directory in $HOME cannot be made, none in the account's home is to take its place. */
	(void)snprintf(
		w->env_state, sizeof(w->env_state), "XDG_STATE_HOME=%.400s/state", w->root);
	w->envp[4] = w->env_state;
	w->envp[5] = w->live ? w->env_runtime : NULL;
	w->envp[6] = NULL;
}

int world_make(struct world *w, const char *root, const char *name, const char *carrel,
	const char *marker, const char *protected_name, bool git, bool live,
	const char *const *settings)
{
	*w = (struct world){
		.carrel = carrel, .protected_name = protected_name, .git = git, .live = live
	};
	(void)snprintf(w->root, sizeof(w->root), "%.300s/%s", root, name);
	(void)snprintf(w->workspace, sizeof(w->workspace), "%.400s/workspace", w->root);
	(void)snprintf(w->base, sizeof(w->base), "%.400s/base", w->root);
	(void)snprintf(w->host, sizeof(w->host), "%.400s/host", w->root);
	(void)snprintf(w->home, sizeof(w->home), "%.400s/home", w->root);
	(void)snprintf(w->report, sizeof(w->report), "%.400s/report/report.json", w->root);
	(void)snprintf(w->marker, sizeof(w->marker), "%.400s/host/marker", w->root);
	int r = make_directories(w);
	if (r >= 0 && git)
		r = make_repository(w);
	char runtime[WORLD_PATH];

	(void)snprintf(runtime, sizeof(runtime), "%.400s/run", w->root);
	if (r >= 0 && mkdir(runtime, 0700) < 0)
		r = -errno;
	if (r >= 0)
		r = copy_file(marker, w->marker);
	make_command_line(w, settings);
	return r;
}

/* Run @argv with the worker's environment and without output; its wait status or -errno. */
static int run_plain(const struct world *w, const char *const *argv)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int i = 0; i < 3; i++)
			(void)dup2(null, i);
		(void)execve(argv[0], (char *const *)argv, (char *const *)w->envp);
		_exit(122);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

/* --- looking -------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The directory, or what was renamed where it was since none could be made. */
static bool is_quarantine(const char *name)
{
	static const char prefix[] = ".carrel-quarantine-";

	return !strncmp(name, prefix, sizeof(prefix) - 1);
}

/* Names of a directory, one per line, "/" behind a directory; sorted. */
static void list(const char *path, bool without_quarantine, char *ret_text, size_t size)
{
	struct dirent **entries = NULL;
	size_t used = 0;
	int n = scandir(path, &entries, NULL, by_name);

	ret_text[0] = '\0';
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
			!(without_quarantine && is_quarantine(name)) && used < size - 1) {
			int length = snprintf(ret_text + used, size - used, "%s%s\n", name,
				entries[i]->d_type == DT_DIR ? "/" : "");
			used += (size_t)length;
		}
		free(entries[i]);
	}
	free(entries);
	if (n < 0)
		(void)snprintf(ret_text, size, "cannot be read: errno %d\n", errno);
}

/* Its .git, and what is in the directories where the command leaves something. */
static void list_repository(const struct world *w, char *ret_text, size_t size)
{
	static const char *const names[] = { "", "logs/", "info/", "rebase-merge/" };
	char path[WORLD_PATH + 32], text[1024];

	ret_text[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/.git/%s", w->workspace, names[i]);
		if (access(path, F_OK) < 0)
			continue;
		list(path, true, text, sizeof(text));
		for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
			size_t used = strlen(ret_text);

			(void)snprintf(ret_text + used, size - used, "%s%.*s\n", names[i],
				(int)strcspn(at, "\n"), at);
		}
	}
}

static void read_text(const char *path, char *ret_text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret_text, size - 1);

	ret_text[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		(void)close(fd);
}

/* Whether something of that name is in the quarantine directory @path. */
static bool holds(const char *path, const char *name)
{
	struct dirent **entries = NULL;
	bool found = false;
	int n = scandir(path, &entries, NULL, by_name);

	for (int i = 0; i < n; i++) {
		found = found || strstr(entries[i]->d_name, name);
		free(entries[i]);
	}
	free(entries);
	return found;
}

/* That of a repository lies in its .git what was taken at once, in the workspace what was at the end. */
static bool find_both_quarantined(const struct world *w)
{
	bool hooks = false, link = false;

	for (int in_git = 0; in_git < 2; in_git++) {
		char directory[WORLD_PATH + 8], path[WORLD_PATH + 512];
		struct dirent **entries = NULL;

		(void)snprintf(directory, sizeof(directory), "%s%s", w->workspace,
			in_git ? "/.git" : "");
		int n = scandir(directory, &entries, NULL, by_name);
		for (int i = 0; i < n; i++) {
			(void)snprintf(
				path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
			if (is_quarantine(entries[i]->d_name)) {
				/* Or renamed where it was, since no directory could be made. */
				hooks = hooks || holds(path, "hooks") ||
					holds(path, "pre-commit");
				link = link || holds(path, "COMMIT_EDITMSG") ||
					entries[i]->d_type == DT_LNK;
			}
			free(entries[i]);
		}
		free(entries);
	}
	return hooks && link;
}

/* Whether the protected name lies in a quarantine directory, or was renamed; with @remove it does not any more. */
static bool find_quarantined(const struct world *w, bool remove)
{
	struct dirent **entries = NULL;
	bool found = false;
	int n = scandir(w->workspace, &entries, NULL, by_name);

	for (int i = 0; i < n; i++) {
		char path[WORLD_PATH + 512], inside[WORLD_PATH + 1024];

		if (is_quarantine(entries[i]->d_name)) {
			(void)snprintf(
				path, sizeof(path), "%s/%s", w->workspace, entries[i]->d_name);
			(void)snprintf(inside, sizeof(inside), "%s/%s.quarantined", path,
				w->protected_name);
			found = found || entries[i]->d_type != DT_DIR ||
				access(inside, F_OK) == 0;
			const char *const argv[] = { "/bin/rm", "-rf", "--", path, NULL };
			if (remove)
				(void)run_plain(w, argv);
		}
		free(entries[i]);
	}
	free(entries);
	return found;
}

static bool find_mount(const struct world *w)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && getline(&line, &size, file) >= 0)
		found = found || strstr(line, w->root);
	free(line);
	if (file)
		(void)fclose(file);
	return found || !file;
}

static void look_at_live(const struct world *w, struct world_left *left)
{
	char path[WORLD_PATH];

	(void)snprintf(path, sizeof(path), "%.400s/notes", w->root);
	read_text(path, left->notes, sizeof(left->notes));
	(void)snprintf(path, sizeof(path), "%.400s/run/carrel", w->root);
	list(path, false, left->state, sizeof(left->state));
}

void world_look(const struct world *w, struct world_left *left)
{
	char report_dir[WORLD_PATH];

	(void)snprintf(report_dir, sizeof(report_dir), "%.400s/report", w->root);
	list(report_dir, false, left->reports, sizeof(left->reports));
	list(w->workspace, true, left->workspace, sizeof(left->workspace));
	if (w->git)
		list_repository(w, left->git, sizeof(left->git));
	list(w->base, true, left->base, sizeof(left->base));
	read_text(w->report, left->report, sizeof(left->report));
	look_at_live(w, left);
	left->quarantined = w->git ? find_both_quarantined(w)
				   : w->protected_name[0] && find_quarantined(w, false);
	left->mounted = find_mount(w);
}

/* --- acting --------------------------------------------------------------------------------- */

int world_gc(const struct world *w, struct world_left *left)
{
	const char *const argv[] = { w->carrel, "gc", "--scratch-base", w->base, NULL };
	int status = run_plain(w, argv);

	list(w->base, true, left->base, sizeof(left->base));
	look_at_live(w, left);
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int world_clean(const struct world *w)
{
	char protected_path[WORLD_PATH + 64];
	char state[WORLD_PATH], made[WORLD_PATH + 64];
	const char *const remove[] = { "/bin/rm", "-rf", "--", w->base, protected_path, state,
		NULL };
	const char *name = w->protected_name[0] ? w->protected_name : "nothing-of-this-name";

	(void)snprintf(protected_path, sizeof(protected_path), "%s/%s", w->workspace,
		w->git ? ".git" : name);
	(void)snprintf(state, sizeof(state), "%.400s/run/carrel", w->root);
	/* Of a command that was killed before it could: the next may be killed before it begins. */
	(void)snprintf(made, sizeof(made), "%s/" WORLD_MADE, w->workspace);
	(void)unlink(w->report);
	(void)unlink(made);
	(void)find_quarantined(w, true);
	if (rmdir(w->base) < 0 || access(protected_path, F_OK) == 0 ||
		(rmdir(state) < 0 && errno != ENOENT))
		if (run_plain(w, remove) != 0)
			return -EIO;
	if (mkdir(w->base, 0755) < 0 && errno != EEXIST)
		return -errno;
	return w->git ? make_repository(w) : 0;
}
