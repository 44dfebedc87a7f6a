/*
 * spawn.c - see spawn.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

extern char **environ;

/* --- the program ------------------------------------------------------------------------------ */

/* Find the launcher beside this program (in a build), in ../../bin of libexec/carrel, else where it was installed. */
static int launcher_path(char *ret, size_t size)
{
	static const char *const places[] = { "carrel", "../../bin/carrel" };
	char self[PATH_MAX / 4];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
	}
	for (int i = 0; n > 0 && i < 2; i++) {
		int length = snprintf(ret, size, "%s/%s", self, places[i]);

		if (length > 0 && (size_t)length < size && access(ret, X_OK) == 0)
			return 0;
	}
	int length = snprintf(ret, size, "%s/carrel", CARREL_BINDIR);
	if (length <= 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	return access(ret, X_OK) == 0 ? 0 : -errno;
}

/* Set signals as an ordinary caller has them: this program blocks some, and ignores SIGPIPE. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, usual;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	int r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &usual);
	if (r == 0)
		r = posix_spawnattr_setflags(
			attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int run_argv(char *const *argv, int in, int out, int err, pid_t *ret)
{
	char path[PATH_MAX / 4];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r = launcher_path(path, sizeof(path));

	if (r < 0)
		return r;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	r = set_signals(&attr);
	if (r == 0)
		r = -posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (r == 0)
		r = -posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r == 0)
		r = -posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	if (r == 0)
		r = -posix_spawn(ret, path, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int start_carrel(const char *const *words, int in, int out, int err, pid_t *ret)
{
	size_t count = 0;

	while (words[count])
		count++;
	const char **argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	argv[0] = "carrel";
	memcpy(argv + 1, words, count * sizeof(*argv));
	int r = run_argv((char *const *)argv, in, out, err, ret);
	free(argv);
	return r;
}

/* --- in the loop ------------------------------------------------------------------------------ */

/* Read what is there now. False at the end of the stream. */
static bool read_some(int fd, struct buffer *text)
{
	char block[2048];

	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		if (n == 0)
			return false;
		if (text->used < SPAWN_MAX)
			buffer_add(text, block, (size_t)n);
	}
}

static void readable(struct watch *w, uint32_t events)
{
	struct spawn *s = w->context;

	(void)events;
	if (!read_some(w->fd, &s->text[w - s->stream]))
		loop_forget(s->loop, w);
}

static void ended(struct watch *w, uint32_t events)
{
	struct spawn *s = w->context;

	(void)events;
	if (waitpid(s->pid, &s->status, WNOHANG) != s->pid)
		return;
	s->pid = 0;
	loop_forget(s->loop, w);
	for (int i = 0; i < 2;
		i++) /* do not wait for its pipes: a process that it left behind may hold them */
		if (s->stream[i].fd >= 0)
			(void)read_some(s->stream[i].fd, &s->text[i]);
	s->done(s);
}

static int open_stream(struct spawn *s, int i, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	s->stream[i] = (struct watch){ .fd = ends[0], .ready = readable, .context = s };
	*ret_write = ends[1];
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return loop_watch(s->loop, &s->stream[i], EPOLLIN);
}

int spawn_start(struct spawn *s, struct loop *loop, const char *const *words, bool own_stderr,
	void (*done)(struct spawn *s), void *context)
{
	autofd int in = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0), out = -1, err = -1;

	*s = (struct spawn){ .loop = loop, .done = done, .context = context };
	s->ended.fd = s->stream[0].fd = s->stream[1].fd = -1;
	int r = in < 0 ? in : open_stream(s, 0, &out);
	if (r == 0 && !own_stderr)
		r = open_stream(s, 1, &err);
	if (r == 0)
		r = start_carrel(words, in, out, own_stderr ? STDERR_FILENO : err, &s->pid);
	if (r < 0)
		s->pid = 0;
	if (r == 0) {
		s->ended = (struct watch){
			.fd = pidfd_open(s->pid, 0), .ready = ended, .context = s
		};
		r = s->ended.fd < 0 ? -errno : loop_watch(loop, &s->ended, EPOLLIN);
	}
	if (r < 0)
		spawn_free(s);
	return r;
}

void spawn_free(struct spawn *s)
{
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
		s->pid = 0;
	}
	if (s->ended.added)
		loop_forget(s->loop, &s->ended);
	fd_close(&s->ended.fd);
	for (int i = 0; i < 2; i++) {
		if (s->stream[i].added)
			loop_forget(s->loop, &s->stream[i]);
		fd_close(&s->stream[i].fd);
		buffer_free(&s->text[i]);
	}
}

static void note_end(struct spawn *s)
{
	*(bool *)s->context = true;
}

int spawn_wait(const char *const *words, struct buffer *ret_text)
{
	struct loop loop;
	struct spawn s;
	bool over = false;
	int r = loop_open(&loop);

	if (r < 0)
		return r;
	r = spawn_start(&s, &loop, words, true, note_end, &over);
	while (r == 0 && !over)
		r = loop_turn(&loop, -1);
	if (r == 0) {
		buffer_add(ret_text, s.text[0].data ? s.text[0].data : "", s.text[0].used);
		r = WIFEXITED(s.status) ? WEXITSTATUS(s.status) : 128 + WTERMSIG(s.status);
		if (s.text[0].failed || ret_text->failed)
			r = -ENOMEM;
		spawn_free(&s);
	}
	loop_close(&loop);
	return r;
}
