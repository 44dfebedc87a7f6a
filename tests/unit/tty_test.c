/*
 * tty_test.c - two ptys: the outer one is the caller's terminal (its master the user's hands and
 * eyes), the inner one the session's. What needs job control runs in a child that is the leader of
 * a session on the outer terminal, as a shell's job is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/stdio/tty.h"

#define TEST_ID 40

struct fixture {
	int user;     /* outer master */
	int terminal; /* outer slave: what the caller passes */
	int slave;    /* inner slave: what the payload has */
	int pipe[2];
	int epoll_fd;
	struct stdio s;
	struct tty t;
};

static int64_t now_ms(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set_cloexec(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
}

/* Which of 0, 1, 2 are the terminal; the others are ends of a pipe. */
static void fixture_open(struct fixture *d, bool in, bool out, bool err, enum tty_mode mode)
{
	struct winsize size = { .ws_row = 33, .ws_col = 77 };
	struct termios modes;
	int master;

	assert_int_equal(openpty(&d->user, &d->terminal, NULL, NULL, &size), 0);
	assert_int_equal(tcgetattr(d->terminal, &modes), 0);
	modes.c_cc[VERASE] = 'E';
	assert_int_equal(tcsetattr(d->terminal, TCSANOW, &modes), 0);
	assert_int_equal(openpty(&master, &d->slave, NULL, NULL, NULL), 0);
	set_cloexec(d->user);
	set_cloexec(master);
	assert_int_equal(pipe2(d->pipe, O_CLOEXEC), 0);
	assert_int_equal(
		stdio_prepare(&d->s,
			(int[]){ in ? d->terminal : d->pipe[0], out ? d->terminal : d->pipe[1],
				err ? d->terminal : d->pipe[1] },
			mode, NULL),
		0);
	assert_true(d->s.want_pty);
	assert_int_equal(tty_open(&d->t, &d->s, master, NULL), 0);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(d->epoll_fd >= 0);
}

static void fixture_close(struct fixture *d)
{
	tty_stop(&d->t);
	tty_stop(&d->t);
	assert_int_equal(stdio_close(&d->s, NULL), 0);
	fd_close(&d->user);
	fd_close(&d->terminal);
	fd_close(&d->slave);
	fd_close(&d->pipe[0]);
	fd_close(&d->pipe[1]);
	fd_close(&d->epoll_fd);
}

/*
 * A worker of the kernel carries what is written to one side of a terminal to the other, in its own time;
 * poll(2) of that side waits for the worker, epoll_wait(2) does not.
 */
static void await_carried(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct pollfd side = { .fd = fds[i], .events = POLLIN };

		(void)poll(&side, 1, 0); /* a side that is closed (-1) is passed over */
	}
}

static int fixture_wait(struct fixture *d, struct epoll_event *ret)
{
	const int sides[] = { d->user, d->terminal, d->t.master, d->slave };

	await_carried(sides, sizeof(sides) / sizeof(sides[0]));
	return epoll_wait(d->epoll_fd, ret, 1, 30);
}

/* The supervisor's loop until nothing happens for 30 ms. The last event that was not TTY_OK. */
static enum tty_event fixture_run(struct fixture *d)
{
	enum tty_event seen = TTY_OK;
	struct epoll_event event;

	while (fixture_wait(d, &event) == 1) {
		assert_true(event.data.u64 == TEST_ID || event.data.u64 == TEST_ID + 1);
		if (tty_step(&d->t, event.data.u64) == TTY_HANGUP)
			seen = TTY_HANGUP;
	}
	return seen;
}

static int fixture_start(struct fixture *d)
{
	return tty_start(&d->t, d->epoll_fd, TEST_ID);
}

static void type(struct fixture *d, const char *keys)
{
	assert_int_equal(fd_write_all(d->user, keys, strlen(keys)), 0);
	(void)fixture_run(d);
}

/* What is there now, as text; "" where a read would wait; "<end>" at the end. */
static const char *look(int fd, char *ret_text, size_t size)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	ret_text[0] = '\0';
	if (poll(&pfd, 1, 20) != 1)
		return ret_text;
	ssize_t n = read(fd, ret_text, size - 1);
	if (n <= 0)
		return "<end>";
	ret_text[n] = '\0';
	return ret_text;
}

static bool is_raw(int terminal)
{
	struct termios modes;

	assert_int_equal(tcgetattr(terminal, &modes), 0);
	return !(modes.c_lflag & (ICANON | ECHO | ISIG));
}

/* --- modes and size -------------------------------------------------------------------------- */

static void test_settings_are_copied(void **state)
{
	struct fixture d;
	struct termios modes;
	struct winsize size;

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(tcgetattr(d.slave, &modes), 0);
	assert_int_equal(modes.c_cc[VERASE], 'E');
	assert_true(modes.c_lflag & ICANON);
	assert_int_equal(ioctl(d.slave, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 33);
	assert_int_equal(size.ws_col, 77);

	size.ws_row = 50;
	assert_int_equal(ioctl(d.user, TIOCSWINSZ, &size), 0);
	tty_resize(&d.t);
	size.ws_row = 0;
	assert_int_equal(ioctl(d.slave, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 50);
	fixture_close(&d);
}

static void test_raw_and_restored(void **state)
{
	struct fixture d;
	struct termios before = { 0 }, after = { 0 };

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(tcgetattr(d.terminal, &before), 0);
	int flags = fcntl(d.terminal, F_GETFL);
	assert_int_equal(fixture_start(&d), 1);
	assert_true(is_raw(d.terminal));
	assert_false(is_raw(d.slave));
	struct termios raw;
	assert_int_equal(tcgetattr(d.terminal, &raw), 0);
	assert_int_equal(raw.c_oflag & OPOST, 0);
	assert_int_equal(fcntl(d.terminal, F_GETFL), flags); /* the shell shares these */
	tty_restore(&d.t);                                   /* the fatal path */
	assert_int_equal(tcgetattr(d.terminal, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	tty_stop(&d.t);
	assert_int_equal(tcgetattr(d.terminal, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	fixture_close(&d);
}

/* Failure between raw and payload, too, leaves nothing changed. */
static void test_stop_without_start(void **state)
{
	struct fixture d;
	struct termios before = { 0 }, after = { 0 };

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(tcgetattr(d.terminal, &before), 0);
	tty_stop(&d.t);
	assert_int_equal(tcgetattr(d.terminal, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(fixture_run(&d), TTY_OK);
	fixture_close(&d);
}

static void test_suspend_and_resume(void **state)
{
	struct fixture d;
	struct termios modes;
	char text[64];

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 1);
	tty_suspend(&d.t);
	assert_false(is_raw(d.terminal));
	type(&d, "for the shell\n");
	assert_string_equal(look(d.slave, text, sizeof(text)), "");
	assert_string_equal(look(d.terminal, text, sizeof(text)), "for the shell\n");
	(void)look(d.user, text, sizeof(text)); /* the shell's echo */

	/* stty while we were stopped: it is this that must be put back in the end. */
	assert_int_equal(tcgetattr(d.terminal, &modes), 0);
	modes.c_cc[VERASE] = 'Q';
	assert_int_equal(tcsetattr(d.terminal, TCSANOW, &modes), 0);
	assert_int_equal(tty_resume(&d.t), 1);
	assert_true(is_raw(d.terminal));
	type(&d, "inside\n");
	assert_string_equal(look(d.slave, text, sizeof(text)), "inside\n");

	/* SIGSTOP gives no chance to restore: the next SIGCONT must not save the raw modes. */
	assert_int_equal(tty_resume(&d.t), 1);
	tty_stop(&d.t);
	assert_false(is_raw(d.terminal));
	assert_int_equal(tcgetattr(d.terminal, &modes), 0);
	assert_int_equal(modes.c_cc[VERASE], 'Q');
	fixture_close(&d);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static void test_both_ways(void **state)
{
	struct fixture d;
	char text[64];

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 1);
	type(&d, "abE\003line\n"); /* E erases, ^C flushes: the inner line discipline's doing */
	assert_string_equal(look(d.slave, text, sizeof(text)), "line\n");
	(void)look(d.user, text, sizeof(text)); /* the inner echo */
	assert_int_equal(write(d.slave, "out\n", 4), 4);
	(void)fixture_run(&d);
	assert_string_equal(look(d.user, text, sizeof(text)), "out\r\n");
	fixture_close(&d);
}

/* The terminal as /dev/tty, or one that may not be opened anew: the caller's own description. */
static int shared_terminal_child(const char *path, int user)
{
	struct stdio s;
	struct tty t;
	char text[64];
	int master, slave;

	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	if (tty < 0 || openpty(&master, &slave, NULL, NULL, NULL) < 0)
		return 1;
	if (stdio_prepare(&s, (int[]){ tty, tty, tty }, TTY_AUTO, NULL) < 0 || !s.want_pty)
		return 2;
	if (tty_open(&t, &s, master, NULL) < 0 || t.in.kind != PUMP_SHARED)
		return 3;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tty_start(&t, epoll_fd, TEST_ID) != 1)
		return 4;
	if (write(user, "keys\n", 5) != 5 || write(slave, "screen\n", 7) != 7)
		return 5;
	struct epoll_event event;
	const int sides[] = { user, tty, master, slave };
	for (int n = 1; n == 1;) {
		await_carried(sides, sizeof(sides) / sizeof(sides[0]));
		n = epoll_wait(epoll_fd, &event, 1, 50);
		if (n == 1)
			(void)tty_step(&t, event.data.u64);
	}
	if (strcmp(look(slave, text, sizeof(text)), "keys\n") != 0)
		return 6;
	if (!strstr(look(user, text, sizeof(text)), "screen\r\n"))
		return 7;
	if (fcntl(tty, F_GETFL) & O_NONBLOCK)
		return 8;
	tty_stop(&t);
	int again = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return is_raw(again) ? 9 : stdio_close(&s, NULL);
}

/* Runs @child as the leader of a session on a new terminal. */
static void with_session(int (*child)(const char *path, int user))
{
	int user, terminal, status;
	char path[64];

	assert_int_equal(openpty(&user, &terminal, path, NULL, NULL), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setsid() < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0)
			_exit(98);
		(void)close(terminal);
		(void)alarm(300);
		_exit(child(path, user));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd_close(&user);
	fd_close(&terminal);
}

static void test_shared_terminal(void **state)
{
	(void)state;
	with_session(shared_terminal_child);
}

static void test_hangup(void **state)
{
	struct fixture d;
	char text[8];

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 1);
	assert_int_equal(fixture_run(&d), TTY_OK);
	assert_string_equal(look(d.slave, text, sizeof(text)), ""); /* control arm */
	fd_close(&d.user);
	assert_int_equal(fixture_run(&d), TTY_HANGUP);
	assert_string_equal(look(d.slave, text, sizeof(text)), "<end>");
	tty_resize(&d.t); /* a late SIGWINCH is harmless */
	assert_int_equal(tty_drain(&d.t, now_ms() + 60000, -1), 0);
	fixture_close(&d);
}

/* The screen is elsewhere, so only the keyboard can tell. */
static void test_hangup_of_keyboard(void **state)
{
	struct fixture d;

	(void)state;
	fixture_open(&d, true, false, false, TTY_YES);
	assert_int_equal(fixture_start(&d), 1);
	assert_true(is_raw(d.terminal));
	assert_int_equal(fixture_run(&d), TTY_OK);
	fd_close(&d.user);
	assert_int_equal(fixture_run(&d), TTY_HANGUP);
	fixture_close(&d);
}

/* --- input that is no terminal --------------------------------------------------------------- */

static void eof_after(const char *input, const char *const *reads)
{
	struct fixture d;
	char text[64];

	fixture_open(&d, false, true, true, TTY_YES);
	assert_int_equal(fixture_start(&d), 1);
	assert_false(is_raw(d.terminal));
	assert_int_equal(fd_write_all(d.pipe[1], input, strlen(input)), 0);
	fd_close(&d.pipe[1]);
	assert_int_equal(fixture_run(&d), TTY_OK);
	for (; *reads; reads++)
		assert_string_equal(look(d.slave, text, sizeof(text)), *reads);
	fixture_close(&d);
}

static void test_end_of_input(void **state)
{
	(void)state;
	eof_after("line\n", (const char *const[]){ "line\n", "<end>", "", NULL });
	eof_after("half", (const char *const[]){ "half", "<end>", "", NULL });
	eof_after("", (const char *const[]){ "<end>", "", NULL });
}

/* More than any buffer on the way holds, into a line discipline that takes it bit by bit. */
static void test_long_input(void **state)
{
	struct fixture d;
	const int lines = 20000;
	int status;

	(void)state;
	fixture_open(&d, false, true, true, TTY_YES);
	struct termios modes;
	assert_int_equal(tcgetattr(d.slave, &modes), 0);
	modes.c_lflag &= ~(tcflag_t)ECHO;
	assert_int_equal(tcsetattr(d.slave, TCSANOW, &modes), 0);
	assert_int_equal(fixture_start(&d), 1);
	pid_t writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		char line[32];

		for (int i = 0; i < lines; i++) {
			int n = snprintf(line, sizeof(line), "line number %d\n", i);

			if (fd_write_all(d.pipe[1], line, (size_t)n) < 0)
				_exit(1);
		}
		_exit(0);
	}
	fd_close(&d.pipe[1]);
	pid_t reader = fork();
	assert_true(reader >= 0);
	if (reader == 0) {
		char line[64], want[64];
		ssize_t n;
		int i = 0;

		(void)alarm(300);
		while ((n = read(d.slave, line, sizeof(line))) > 0) {
			int length = snprintf(want, sizeof(want), "line number %d\n", i++);

			if (n != length || memcmp(line, want, (size_t)n) != 0)
				_exit(1);
		}
		_exit(n == 0 && i == lines ? 0 : 2);
	}
	pid_t ended = 0;
	while (ended == 0) {
		(void)fixture_run(&d);
		ended = waitpid(reader, &status, WNOHANG);
	}
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	fixture_close(&d);
}

/* --- pipelines and the background ------------------------------------------------------------ */

static bool does_newlines(int terminal)
{
	struct termios modes;

	assert_int_equal(tcgetattr(terminal, &modes), 0);
	return modes.c_oflag & OPOST;
}

/* `carrel run x | less`: the keys are less's until the payload asks for them. */
static void test_pipeline_leaves_the_keyboard(void **state)
{
	struct fixture d;
	char text[64];

	(void)state;
	fixture_open(&d, true, false, true, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 0);
	assert_false(is_raw(d.terminal));
	type(&d, "for less\n");
	assert_string_equal(look(d.slave, text, sizeof(text)), "");
	assert_string_equal(look(d.terminal, text, sizeof(text)), "for less\n");
	assert_int_equal(tty_resume(&d.t), 0);
	assert_false(is_raw(d.terminal));

	assert_int_equal(tty_take_keyboard(&d.t), 1);
	assert_true(is_raw(d.terminal));
	type(&d, "for x\n");
	assert_string_equal(look(d.slave, text, sizeof(text)), "for x\n");

	/* Others go on writing to the terminal, unless the payload fills the screen. */
	assert_true(does_newlines(d.terminal));
	struct termios modes;
	assert_int_equal(tcgetattr(d.slave, &modes), 0);
	for (int full_screen = 1; full_screen >= 0; full_screen--) {
		modes.c_oflag ^= OPOST;
		assert_int_equal(tcsetattr(d.slave, TCSANOW, &modes), 0);
		assert_int_equal(write(d.slave, "x", 1), 1);
		(void)fixture_run(&d);
		assert_int_equal(does_newlines(d.terminal), !full_screen);
	}
	fixture_close(&d);
}

/* We are a job in the background, then in the foreground, then again in the background. */
static int background_child(const char *path, int user)
{
	struct fixture d = { .user = user, .pipe = { -1, -1 } };
	char text[64];
	int master;

	d.terminal = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (d.terminal < 0 || openpty(&master, &d.slave, NULL, NULL, NULL) < 0)
		return 1;
	/* The shell's group: a child of ours, which the foreground is given to. */
	pid_t shell = fork();
	if (shell == 0) {
		(void)setpgid(0, 0);
		(void)pause();
		_exit(0);
	}
	(void)setpgid(shell, shell);
	if (tcsetpgrp(d.terminal, shell) < 0)
		return 2;
	/* At its prompt, as readline has it. */
	struct termios sane = { 0 }, prompt;
	if (tcgetattr(d.terminal, &sane) < 0)
		return 2;
	sane.c_cc[VERASE] = 'E';
	prompt = sane;
	prompt.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	prompt.c_iflag &= ~(tcflag_t)ICRNL;
	if (tcsetattr(d.terminal, TCSANOW, &prompt) < 0)
		return 2;
	d.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (stdio_prepare(&d.s, (int[]){ d.terminal, d.terminal, d.terminal }, TTY_AUTO, NULL) <
			0 ||
		tty_open(&d.t, &d.s, master, NULL) < 0)
		return 3;
	struct termios now;
	if (fixture_start(&d) != 0 || is_raw(d.terminal))
		return 4; /* eager, but not ours */
	if (tcgetattr(d.slave, &now) < 0 || !(now.c_lflag & ICANON) || !(now.c_iflag & ICRNL))
		return 4; /* not the prompt's modes */
	if (tty_take_keyboard(&d.t) != 0 || is_raw(d.terminal))
		return 5;
	type(&d, "shell's\n");
	if (look(d.slave, text, sizeof(text))[0] != '\0')
		return 6;
	/* Output comes through all the same. */
	(void)look(user, text, sizeof(text));
	if (write(d.slave, "out\n", 4) != 4)
		return 7;
	(void)fixture_run(&d);
	if (!strstr(look(user, text, sizeof(text)), "out"))
		return 8;

	/* fg */
	if (tcsetattr(d.terminal, TCSANOW, &sane) < 0 || tcsetpgrp(d.terminal, getpgrp()) < 0 ||
		tty_resume(&d.t) != 1 || !is_raw(d.terminal))
		return 9;
	if (tcgetattr(d.slave, &now) < 0 || now.c_cc[VERASE] != 'E')
		return 9;
	(void)tcflush(d.terminal, TCIFLUSH);
	type(&d, "payload's\n");
	if (!strstr(look(d.slave, text, sizeof(text)), "payload's\n"))
		return 10;

	/* Taken away without a word; the shell sets its modes. Keys and modes are the shell's. */
	struct termios shells = d.t.saved;
	shells.c_cc[VERASE] = 'S';
	if (tcsetpgrp(d.terminal, shell) < 0 || tcsetattr(d.terminal, TCSANOW, &shells) < 0)
		return 11;
	type(&d, "shell's again\n");
	if (look(d.slave, text, sizeof(text))[0] != '\0')
		return 12;
	tty_suspend(&d.t);
	if (tty_resume(&d.t) != 0)
		return 13;
	tty_stop(&d.t);
	if (tcgetattr(d.terminal, &now) < 0 || now.c_cc[VERASE] != 'S')
		return 14;
	(void)kill(shell, SIGKILL);
	(void)waitpid(shell, NULL, 0);
	return stdio_close(&d.s, NULL);
}

static void test_background(void **state)
{
	(void)state;
	with_session(background_child);
}

/* --- with a payload, and something in init's place ------------------------------------------- */

struct init {
	pid_t pid;
	int said; /* records of 4 bytes: 's' + signal = the payload stopped; 'x' + status = ended */
	int told; /* 'f': make it the foreground group and continue it */
};

/* Leader of a session on the inner terminal, never reads it; the payload is a group of its own. */
static void init_main(int slave, int said, int told, bool foreground, int (*payload)(void))
{
	char record[4] = { 0 };
	sigset_t all;
	int status;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		_exit(90);
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;

		(void)setpgid(0, 0);
		if (foreground)
			(void)tcsetpgrp(slave, getpgrp());
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		for (int i = 0; i < 3; i++)
			(void)dup2(slave, i);
		(void)close_range(3, ~0U, 0);
		(void)alarm(300);
		_exit(payload());
	}
	(void)setpgid(pid, pid);
	while (waitpid(pid, &status, WUNTRACED) == pid) {
		record[0] = WIFSTOPPED(status) ? 's' : 'x';
		record[1] = (char)(WIFSTOPPED(status) ? WSTOPSIG(status)
				: WIFEXITED(status)   ? WEXITSTATUS(status)
						      : 128 + WTERMSIG(status));
		if (write(said, record, 4) != 4)
			_exit(91);
		if (read(told, record, 4) != 4)
			_exit(0);
		(void)tcsetpgrp(slave, pid);
		(void)kill(-pid, SIGCONT);
	}
	_exit(92);
}

static struct init init_start(struct fixture *d, bool foreground, int (*payload)(void))
{
	struct init i;
	int said[2], told[2];

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	i.pid = fork();
	assert_true(i.pid >= 0);
	if (i.pid == 0) {
		(void)close(told[1]);
		(void)close(d->t.master);
		(void)close(d->t.output.source.fd);
		if (d->t.keyboard)
			(void)close(d->t.input.sink.fd);
		init_main(d->slave, said[1], told[0], foreground, payload);
	}
	fd_close(&said[1]);
	fd_close(&told[0]);
	fd_close(&d->slave); /* only the session has it from here on */
	i.said = said[0];
	i.told = told[1];
	return i;
}

/* Runs the loop until init says something; 0 where it says nothing for a minute. */
static char init_said(struct fixture *d, const struct init *i, int *ret_number)
{
	struct pollfd pfd = { .fd = i->said, .events = POLLIN };
	char record[4];

	for (int64_t end = now_ms() + 60000; now_ms() < end;) {
		(void)fixture_run(d);
		if (poll(&pfd, 1, 0) != 1)
			continue;
		if (read(i->said, record, 4) != 4)
			return 0;
		*ret_number = (unsigned char)record[1];
		return record[0];
	}
	return 0;
}

static void init_tell(const struct init *i)
{
	assert_int_equal(write(i->told, "f\0\0", 4), 4);
}

static void init_end(struct init *i)
{
	fd_close(&i->said);
	fd_close(&i->told);
	assert_int_equal(waitpid(i->pid, NULL, 0), i->pid);
}

static int payload_read_word(void)
{
	char word[16];
	ssize_t n = read(0, word, sizeof(word));

	return n == 4 && memcmp(word, "yes\n", 4) == 0 ? 7 : 1;
}

/* It reads in the pty's background, stops by SIGTTIN, is given the keyboard, and reads. */
static void test_keyboard_on_demand(void **state)
{
	struct fixture d;
	int number = 0;

	(void)state;
	fixture_open(&d, true, false, false, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 0);
	struct init i = init_start(&d, false, payload_read_word);
	assert_int_equal(init_said(&d, &i, &number), 's');
	assert_int_equal(number, SIGTTIN);
	assert_false(is_raw(d.terminal));
	assert_int_equal(tty_take_keyboard(&d.t), 1);
	init_tell(&i);
	type(&d, "yes\r"); /* raw: Enter is CR, and the inner ICRNL makes it a newline */
	assert_int_equal(init_said(&d, &i, &number), 'x');
	assert_int_equal(number, 7);
	fixture_close(&d);
	init_end(&i);
}

static int payload_wait(void)
{
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;)
		(void)pause();
}

/* ^Z and ^C are bytes to us, and signals to the payload alone. */
static void test_control_keys(void **state)
{
	struct fixture d;
	char text[64];
	int number = 0;

	(void)state;
	fixture_open(&d, true, true, true, TTY_AUTO);
	assert_int_equal(fixture_start(&d), 1);
	struct init i = init_start(&d, true, payload_wait);
	for (int n = 0; n < 100 && !strstr(look(d.user, text, sizeof(text)), "ready"); n++)
		(void)fixture_run(&d);
	type(&d, "\032");
	assert_int_equal(init_said(&d, &i, &number), 's');
	assert_int_equal(number, SIGTSTP);
	tty_suspend(&d.t);
	assert_false(is_raw(d.terminal));
	assert_int_equal(tty_resume(&d.t), 1);
	assert_true(is_raw(d.terminal));
	init_tell(&i);
	type(&d, "\003");
	assert_int_equal(init_said(&d, &i, &number), 'x');
	assert_int_equal(number, 128 + SIGINT);
	fixture_close(&d);
	init_end(&i);
}

static int flood(int blocks)
{
	char block[1000];

	memset(block, 'x', sizeof(block));
	for (int n = 0; n < blocks; n++)
		if (fd_write_all(1, block, sizeof(block)) < 0)
			return 1;
	return write(1, "END", 3) == 3 ? 0 : 1;
}

static int payload_flood(void)
{
	return flood(60);
}

/* As much as the inner terminal holds when nobody reads. */
static int payload_last_words(void)
{
	return flood(10);
}

static size_t take(int fd, char *ret_data, size_t size)
{
	ssize_t n = read(fd, ret_data, size);

	return n > 0 ? (size_t)n : 0;
}

/* A fixture whose user reads when the test says so, and never waits. */
static void fixture_open_unread(struct fixture *d)
{
	fixture_open(d, true, true, true, TTY_AUTO);
	assert_int_equal(fcntl(d->user, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	assert_int_equal(fixture_start(d), 1);
}

/* The rest arrives, in however many turns; all of it ends with END. */
static void drain(struct fixture *d, char *got, size_t size, size_t want)
{
	for (int r = -1; r != 0;) {
		r = tty_drain(&d->t, now_ms() + 2, -1);
		assert_true(r == 0 || r == -ETIMEDOUT);
		size += take(d->user, got + size, 1000);
	}
	for (size_t n = 1; n > 0; size += n)
		n = take(d->user, got + size, 1000);
	assert_int_equal(size, want);
	assert_memory_equal(got + size - 3, "END", 3);
}

/* The last words arrive: drained while init, the session leader, is alive. */
static void test_drain(void **state)
{
	struct fixture d;
	char *got = malloc(100000);
	size_t size = 0;
	int number = 0;

	(void)state;
	assert_non_null(got);
	fixture_open_unread(&d);
	struct init i = init_start(&d, true, payload_flood);
	/* A user that reads slowly: the screen is full most of the time. */
	struct epoll_event event;
	struct pollfd said = { .fd = i.said, .events = POLLIN };
	while (poll(&said, 1, 0) == 0) {
		if (epoll_wait(d.epoll_fd, &event, 1, 1) == 1)
			(void)tty_step(&d.t, event.data.u64);
		size += take(d.user, got + size, 100);
	}
	assert_int_equal(init_said(&d, &i, &number), 'x');
	assert_int_equal(number, 0);
	drain(&d, got, size, 60003);
	free(got);
	fixture_close(&d);
	init_end(&i);
}

enum {
	CARRIED = 4000
}; /* the kernel's worker carries 4095 bytes to a reader, the rest waits behind them */

/* Until nothing more fits, when the worker has carried all that it can. */
static size_t fill_screen(const struct fixture *d)
{
	char path[64];
	size_t size = 0;
	ssize_t n;

	assert_int_equal(ttyname_r(d->terminal, path, sizeof(path)), 0);
	autofd int own = fd_open_at(AT_FDCWD, path, O_WRONLY | O_NOCTTY | O_NONBLOCK, 0);
	assert_true(own >= 0);
	for (int carried = 0, more = 1; carried < CARRIED || more;) {
		more = 0;
		assert_int_equal(ioctl(d->user, FIONREAD, &carried), 0);
		while ((n = write(own, "................", 16)) > 0) {
			size += (size_t)n;
			more = 1;
		}
		assert_int_equal(errno, EAGAIN);
		(void)poll(NULL, 0, 1);
	}
	return size;
}

/* A screen that is full is waited for until the deadline, and its words are there the next time. */
static void test_drain_waits(void **state)
{
	struct fixture d;
	char *got = malloc(100000);
	int number = 0;

	(void)state;
	assert_non_null(got);
	fixture_open_unread(&d);
	size_t filled = fill_screen(&d);
	assert_true(filled > 0 && filled < 90000);
	struct init i = init_start(&d, true, payload_last_words);
	assert_int_equal(init_said(&d, &i, &number), 'x');
	assert_int_equal(number, 0);
	assert_int_equal(tty_drain(&d.t, now_ms() + 2, -1), -ETIMEDOUT);
	drain(&d, got, 0, filled + 10003);
	free(got);
	fixture_close(&d);
	init_end(&i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings_are_copied),
		cmocka_unit_test(test_raw_and_restored),
		cmocka_unit_test(test_stop_without_start),
		cmocka_unit_test(test_suspend_and_resume),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_shared_terminal),
		cmocka_unit_test(test_hangup),
		cmocka_unit_test(test_hangup_of_keyboard),
		cmocka_unit_test(test_end_of_input),
		cmocka_unit_test(test_long_input),
		cmocka_unit_test(test_pipeline_leaves_the_keyboard),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_keyboard_on_demand),
		cmocka_unit_test(test_control_keys),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_waits),
	};
	sigset_t blocked;

	/* As in the supervisor, but for alarm(2), which ends a test that hangs. */
	if (sigfillset(&blocked) < 0 || sigdelset(&blocked, SIGALRM) < 0 ||
		sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return 1;
	(void)alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
