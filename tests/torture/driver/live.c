/*
 * live.c - the scenario of live.h.
 *
 * Runs in: the process that the torture driver traces as "0".
 */
#include "live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETTINGS_MAX = 16 };

struct scenario {
	const char *carrel, *root, *base, *host, *hidden, *report, *marker, *protected_name;
	char *const *settings;
	char id[64];
	FILE *notes;
};

/* One client. @in, @out: -1 for what the scenario has itself. */
static pid_t start(const struct scenario *s, const char *const *argv, int in, int out)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if ((in >= 0 && dup2(in, 0) < 0) || (out >= 0 && dup2(out, 1) < 0))
		_exit(120);
	(void)execv(s->carrel, (char *const *)argv);
	_exit(122);
}

/* Its exit status, 256 and the signal where one ended it. */
static int finish(pid_t pid)
{
	int status = 0;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (pid < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void note(struct scenario *s, const char *what, int status, const char *more)
{
	(void)fprintf(s->notes, "%s %d %s\n", what, status, more);
	(void)fflush(s->notes);
}

/* All that a pipe gives until its end, or its first line. */
static void read_pipe(int fd, bool line, char *ret_text, size_t size)
{
	size_t used = 0;
	ssize_t n;

	while (used < size - 1 && (n = read(fd, ret_text + used, 1)) > 0) {
		used++;
		if (line && ret_text[used - 1] == '\n')
			break;
	}
	ret_text[used] = '\0';
}

static void find_session(struct scenario *s)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%.400s/run/carrel", s->root);
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strchr(entry->d_name, '.'))
			(void)snprintf(s->id, sizeof(s->id), "%.60s", entry->d_name);
	if (dir)
		(void)closedir(dir);
}

static int start_session(struct scenario *s)
{
	char text[4096];
	int out[2];
	const char *argv[16 + SETTINGS_MAX] = { s->carrel, "session", "start", "--json",
		"--report", s->report, "--scratch-base", s->base, "--read", s->host, "--hide",
		s->hidden };

	for (size_t i = 0; s->settings[i] && i < SETTINGS_MAX; i++)
		argv[12 + i] = s->settings[i];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = start(s, argv, -1, out[1]);
	(void)close(out[1]);
	read_pipe(out[0], true, text, sizeof(text));
	(void)close(out[0]);
	int status = finish(pid);
	const char *id = strstr(text, "\"session\":\"");
	if (id)
		(void)snprintf(
			s->id, sizeof(s->id), "%.*s", (int)strcspn(id + 11, "\""), id + 11);
	/* Where its words were lost the list of sessions has it. */
	if (!id && status == 0)
		find_session(s);
	note(s, "start", status, id ? "named" : "unnamed");
	return s->id[0] ? status : -1;
}

static void execute(struct scenario *s)
{
	const char *const witness[] = { s->carrel, "exec", "-s", s->id, "--", s->marker,
		"--witness", NULL };
	const char *const marker[] = { s->carrel, "exec", "-s", s->id, "--", s->marker, s->host,
		s->protected_name, NULL };
	char text[64];
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return;
	pid_t pid = start(s, witness, in[0], out[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	read_pipe(out[0], true, text, sizeof(text));
	if (!strcmp(text, "ready\n"))
		note(s, "exec", finish(start(s, marker, -1, -1)), "");
	(void)close(in[1]);
	read_pipe(out[0], false, text, sizeof(text));
	(void)close(out[0]);
	note(s, "witness", finish(pid),
		strcmp(text, "unharmed\n") != 0 ? "harmed" : "unharmed");
}

static int end_session(struct scenario *s, const char *id)
{
	const char *const argv[] = { s->carrel, "session", "end", "-s", id, NULL };

	return finish(start(s, argv, -1, -1));
}

/* Sessions that have an entry in the state directory; what is dead there gc removes. */
static void end_others(struct scenario *s, const char *word)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%.400s/run/carrel", s->root);
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strchr(entry->d_name, '.') && end_session(s, entry->d_name) == 0)
			note(s, word, 0, "");
	if (dir)
		(void)closedir(dir);
}

int live_scenario(int argc, char **argv)
{
	char path[512];

	if (argc < 8)
		return 2;
	struct scenario s = { .carrel = argv[0],
		.root = argv[1],
		.base = argv[2],
		.host = argv[3],
		.hidden = argv[4],
		.report = argv[5],
		.marker = argv[6],
		.protected_name = argv[7],
		.settings = argv + 8 };
	(void)snprintf(path, sizeof(path), "%.400s/notes", s.root);
	s.notes = fopen(path, "we");
	if (!s.notes)
		return 2;
	if (start_session(&s) == 0) {
		execute(&s);
		note(&s, "end", end_session(&s, s.id), "");
		end_others(&s, "left");
	} else {
		end_others(&s, "stray");
	}
	return fclose(s.notes) == 0 ? 0 : 2;
}
