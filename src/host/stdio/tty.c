/*
 * tty.c - see tty.h.
 *
 * Runs in: S (or the client of an exec). May not: wait for the terminal. Modes are therefore set
 * with TCSANOW: TCSADRAIN waits for ever on a terminal that ^S has stopped, and no signal could
 * end that wait.
 */
#include "host/stdio/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * A terminal that is not our controlling one (ENOTTY: started by a service, or through setsid)
 * has no foreground for us: nobody's job control is in the way.
 */
static bool in_foreground(const struct tty *t)
{
	pid_t group = tcgetpgrp(t->terminal);

	return group < 0 || group == getpgrp();
}

/*
 * The payload finds its terminal as the caller's is: erase key, UTF-8, speed. Not while another has
 * it, or holds it raw: a shell at its prompt, a pager behind us in the pipeline. Those modes are
 * theirs; the pty then keeps the kernel's own until the keyboard is taken. (In the background of
 * the pty the payload cannot change modes, SIGTTOU: nothing of its own is lost by copying late.)
 */
static int copy_modes(struct tty *t)
{
	struct termios modes;

	if (t->copied || t->terminal < 0 || !in_foreground(t))
		return 0;
	if (tcgetattr(t->terminal, &modes) < 0)
		return -errno;
	if (!(modes.c_lflag & ICANON))
		return 0;
	if (!t->eager)
		modes.c_oflag &= ~(tcflag_t)ONLCR; /* leave_lines() */
	/* On a pty master this reaches the slave. */
	if (tcsetattr(t->master, TCSANOW, &modes) < 0)
		return -errno;
	t->copied = true;
	return 0;
}

/* The caller's terminal keeps its output modes for the rest of a pipeline, and makes \r\n of a \n itself: not twice. */
static int leave_lines(struct tty *t)
{
	struct termios modes;

	if (t->eager || t->terminal < 0)
		return 0;
	if (tcgetattr(t->master, &modes) < 0)
		return -errno;
	modes.c_oflag &= ~(tcflag_t)ONLCR;
	return tcsetattr(t->master, TCSANOW, &modes) < 0 ? -errno : 0;
}

/* --- opening --------------------------------------------------------------------------------- */

/*
 * The same terminal through a description of our own, or the caller's where that is refused: under
 * a number of our own, since epoll knows a description by its number, and keys and screen may be
 * one. A negative fd is the errno of what failed.
 */
static struct pump_end share_terminal(int caller_fd)
{
	int fd = fcntl(caller_fd, F_DUPFD_CLOEXEC, 0);

	return (struct pump_end){
		.fd = fd < 0 ? -errno : fd, .kind = PUMP_SHARED, .owned = true
	};
}

static struct pump_end open_terminal(int caller_fd, int access)
{
	struct stat requested, got;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", caller_fd);
	autofd int fd = fd_open_at(AT_FDCWD, path, access | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0 || fstat(caller_fd, &requested) < 0 || fstat(fd, &got) < 0)
		return share_terminal(caller_fd);
	/* /dev/tty names whatever controls us, which need not be what the descriptor stands for. */
	if (requested.st_rdev != got.st_rdev || requested.st_rdev == makedev(5, 0))
		return share_terminal(caller_fd);
	return (struct pump_end){ .fd = take_fd(&fd), .kind = PUMP_OURS, .owned = true };
}

static struct pump_end open_side(const struct stdio *s, int caller_fd, int access)
{
	if (isatty(caller_fd))
		return open_terminal(caller_fd, access);
	for (unsigned i = 0; i < STDIO_STREAMS; i++)
		if (s->stream[i].caller_fd == caller_fd)
			return stdio_pump_end(&s->stream[i]);
	return (struct pump_end){ .fd = -EBADF };
}

/* If only stdin is the terminal, and perhaps opened for reading only, the echo still needs a screen. */
static struct pump_end open_screen(const struct stdio *s)
{
	if (s->tty_out >= 0)
		return open_side(s, s->tty_out, O_WRONLY);
	struct pump_end end = open_terminal(s->tty_in, O_WRONLY);
	if (end.kind == PUMP_OURS)
		return end;
	fd_close(&end.fd);
	int fd = fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	return (struct pump_end){ .fd = fd, .kind = PUMP_FILE, .owned = true };
}

static int open_ends(struct tty *t, const struct stdio *s)
{
	if (s->tty_in >= 0)
		t->in = open_side(s, s->tty_in, O_RDONLY);
	if (s->tty_in >= 0 && t->in.fd < 0)
		return t->in.fd;
	t->out = open_screen(s);
	if (t->out.fd < 0)
		return t->out.fd;
	t->in_is_terminal = t->in.fd >= 0 && isatty(t->in.fd);
	if (t->in_is_terminal)
		t->terminal = t->in.fd;
	else if (isatty(t->out.fd))
		t->terminal = t->out.fd;
	/* The master came over the channel with init's copy closed: the description is ours. */
	int flags = fcntl(t->master, F_GETFL);
	if (flags < 0 || fcntl(t->master, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	if (t->terminal >= 0 && ioctl(t->terminal, TIOCGWINSZ, &size) < 0)
		return -errno;
	if (ioctl(t->master, TIOCSWINSZ, &size) < 0)
		return -errno;
	int r = copy_modes(t);
	return r < 0 ? r : leave_lines(t);
}

int tty_open(struct tty *t, const struct stdio *s, int master_fd, struct error *e)
{
	*t = (struct tty){ .master = master_fd,
		.in.fd = -1,
		.out.fd = -1,
		.terminal = -1,
		.eager = s->tty_eager,
		.epoll_fd = -1 };
	t->input.done = t->output.done = true;
	int r = open_ends(t, s);
	if (r == 0)
		return 0;
	tty_stop(t);
	return error_set(e, ERROR_INTERNAL, "launch", -r, NULL, "cannot set up the terminal");
}

/* --- the pumps ------------------------------------------------------------------------------- */

/*
 * The input is over, and a terminal has no end of file but VEOF, as script(1) sends it. After half
 * a line the first one only delivers that half. A raw pty has none at all.
 */
static size_t send_eof(const struct pump *p, char *ret_bytes)
{
	struct termios modes;
	size_t n = 0;

	if (tcgetattr(p->sink.fd, &modes) < 0 || !(modes.c_lflag & ICANON) ||
		modes.c_cc[VEOF] == _POSIX_VDISABLE)
		return 0;
	ret_bytes[n++] = (char)modes.c_cc[VEOF];
	if (p->moved > 0 && p->last != '\n')
		ret_bytes[n++] = (char)modes.c_cc[VEOF];
	return n;
}

/* Each pump has its own number for the master: epoll knows a description by its number. */
static struct pump_end master_end(const struct tty *t)
{
	return (struct pump_end){
		.fd = fcntl(t->master, F_DUPFD_CLOEXEC, 0), .kind = PUMP_OURS, .owned = true
	};
}

static int start_input(struct tty *t)
{
	struct pump_end master = master_end(t);
	struct pump_end in = t->in;

	if (master.fd < 0)
		return -errno;
	in.owned = false; /* outlives the pump: the keyboard is given back and taken again */
	pump_init(&t->input, in, master);
	if (!t->in_is_terminal)
		t->input.at_end = send_eof;
	int r = pump_register(&t->input, t->epoll_fd, t->id);
	if (r < 0)
		pump_stop(&t->input);
	return r;
}

static int start_output(struct tty *t)
{
	struct pump_end master = master_end(t);
	struct pump_end out = t->out;

	if (master.fd < 0)
		return -errno;
	out.owned = false;
	pump_init(&t->output, master, out);
	int r = pump_register(&t->output, t->epoll_fd, t->id + 1);
	if (r < 0)
		pump_stop(&t->output);
	return r;
}

/* --- the keyboard ---------------------------------------------------------------------------- */

static int make_raw(struct tty *t)
{
	struct termios raw;

	if (!t->raw && tcgetattr(t->terminal, &t->saved) < 0)
		return -errno;
	raw = t->saved;
	/* As cfmakeraw(3), but parity and character size are the line's business. */
	raw.c_iflag &=
		~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
	if (t->eager)
		raw.c_oflag &= ~(tcflag_t)OPOST;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* First the note, then the deed: a fatal path in between restores once too often. */
	t->raw = true;
	t->raw_modes = raw;
	return tcsetattr(t->terminal, TCSANOW, &raw) < 0 ? -errno : 0;
}

/* The rest of a pipeline writes plain \n; a full-screen payload means \n as cursor down. */
static void mirror_output_mode(struct tty *t)
{
	struct termios pty;

	if (!t->raw || t->eager || tcgetattr(t->master, &pty) < 0)
		return;
	tcflag_t wanted = t->saved.c_oflag & (pty.c_oflag | ~(tcflag_t)OPOST);
	if (wanted == t->raw_modes.c_oflag || !in_foreground(t))
		return;
	t->raw_modes.c_oflag = wanted;
	(void)tcsetattr(t->terminal, TCSANOW, &t->raw_modes); /* looks, not safety */
}

void tty_restore(struct tty *t)
{
	/* In the background the terminal belongs to another job, which has set its own modes. */
	if (!t->raw || !in_foreground(t))
		return;
	if (tcsetattr(t->terminal, TCSANOW, &t->saved) == 0)
		t->raw = false;
}

static void release_keyboard(struct tty *t)
{
	if (t->keyboard && t->in_is_terminal)
		pump_stop(&t->input);
	if (t->in_is_terminal)
		t->keyboard = false;
	tty_restore(t);
}

/*
 * The pty has been closed, but output may still be on its way, made for a terminal that adds
 * nothing to it. So the keys go back to the caller's terminal at once (^C must reach this process
 * while something runs on without its terminal), and the output modes follow behind the last of the
 * output.
 */
static void give_back_keys(struct tty *t)
{
	struct termios modes = t->saved;

	pump_stop(&t->input);
	t->keyboard = false;
	if (!t->raw || !in_foreground(t))
		return;
	modes.c_oflag = t->raw_modes.c_oflag;
	if (tcsetattr(t->terminal, TCSANOW, &modes) == 0)
		t->raw_modes = modes;
}

int tty_take_keyboard(struct tty *t)
{
	/* There is no keyboard to take: the payload may as well wait in the foreground. */
	if (!t->in_is_terminal)
		return 1;
	t->wanted = true;
	if (!in_foreground(t)) {
		release_keyboard(t);
		return 0;
	}
	int r = copy_modes(t);
	if (r == 0)
		r = make_raw(t);
	if (r == 0 && !t->keyboard)
		r = start_input(t);
	if (r < 0) {
		release_keyboard(t);
		return r;
	}
	t->keyboard = true;
	return 1;
}

int tty_start(struct tty *t, int epoll_fd, uint64_t id)
{
	int r;

	t->epoll_fd = epoll_fd;
	t->id = id;
	t->wanted = t->eager;
	r = start_output(t);
	if (r < 0)
		return r;
	if (t->in_is_terminal)
		return t->eager && in_foreground(t) ? tty_take_keyboard(t) : 0;
	if (t->in.fd >= 0)
		r = start_input(t);
	return r < 0 ? r : 1;
}

/* --- events ---------------------------------------------------------------------------------- */

void tty_resize(struct tty *t)
{
	struct winsize size;

	if (t->terminal < 0 || t->master < 0)
		return;
	if (ioctl(t->terminal, TIOCGWINSZ, &size) == 0)
		(void)ioctl(t->master, TIOCSWINSZ, &size); /* a pty takes any size */
}

void tty_suspend(struct tty *t)
{
	release_keyboard(t);
}

int tty_resume(struct tty *t)
{
	tty_resize(t);
	if (!t->in_is_terminal)
		return 1;
	if (t->wanted || t->keyboard)
		return tty_take_keyboard(t);
	return 0;
}

/* Closing every copy of the master hangs the slave up; init, its session leader, gets SIGHUP. */
static enum tty_event hang_up(struct tty *t)
{
	pump_stop(&t->input);
	pump_stop(&t->output);
	fd_close(&t->master);
	return TTY_HANGUP;
}

static enum tty_event step_input(struct tty *t)
{
	/* The shell took the terminal from us, with no word (SIGSTOP): its keys are not ours. */
	if (t->in_is_terminal && !in_foreground(t)) {
		release_keyboard(t);
		return TTY_OK;
	}
	if (pump_step(&t->input) != PUMP_DONE || !t->in_is_terminal)
		return TTY_OK;
	struct pollfd pfd = { .fd = t->in.fd };
	if (poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLHUP | POLLERR)))
		return hang_up(t);
	/* Sent to the background between the look and the read (EIO), or the pty is closed. */
	if (t->output.done)
		release_keyboard(t);
	else
		give_back_keys(t);
	return TTY_OK;
}

enum tty_event tty_step(struct tty *t, uint64_t id)
{
	if (id == t->id)
		return t->input.done ? TTY_OK : step_input(t);
	mirror_output_mode(t);
	if (t->output.done || pump_step(&t->output) != PUMP_DONE)
		return TTY_OK;
	if (t->output.error)
		return hang_up(t);
	if (t->in_is_terminal && !t->keyboard)
		tty_restore(t);
	return TTY_OK;
}

int tty_drain(struct tty *t, int64_t deadline_ms, int wake_fd)
{
	if (t->output.done)
		return 0;
	int r = pump_drain(&t->output, deadline_ms, wake_fd);
	return r == -EPIPE || r == -EIO ? 0 : r;
}

void tty_stop(struct tty *t)
{
	pump_stop(&t->input);
	pump_stop(&t->output);
	t->keyboard = t->wanted = false;
	if (t->terminal >= 0)
		tty_restore(t);
	t->terminal = -1;
	t->raw = false;
	t->in_is_terminal = false;
	if (t->in.owned)
		fd_close(&t->in.fd);
	if (t->out.owned)
		fd_close(&t->out.fd);
	t->in.fd = t->out.fd = -1;
	fd_close(&t->master);
}
