/*
 * tty.h - between the caller's terminal and the session's pty.
 *
 * Runs in: S (or the client of an exec); the pty itself was made inside, by init, which sent the
 * master. All signals are blocked (signalfd): that is why nothing here can be stopped by SIGTTIN
 * or SIGTTOU, and why every change of the terminal asks first who is in the foreground.
 * May not: change the modes of a terminal whose foreground process group is not ours; leave them
 * changed on any way out. (SIGKILL leaves none: the caller's shell then sets its own again.)
 *
 * Two states of the keyboard. *Taken*: the caller's terminal is raw, every key (^C, ^Z, ^D too)
 * goes to the pty, whose line discipline makes signals of them inside. *Not taken*: the terminal
 * is as the caller left it, nothing is read from it, ^C reaches the supervisor as SIGINT.
 *
 *   stdin and stdout terminals, we in the foreground   taken from the start (tty_start() = 1)
 *   in a pipeline (`carrel run x | less`), or in the   not taken: the payload's group starts in
 *   background (`carrel run x &`)                      the *background of the pty*; when it reads
 *                                                      the keyboard it stops by SIGTTIN, init says
 *                                                      so, and tty_take_keyboard() decides
 *   tty yes, stdin no terminal                         no keyboard: stdin's bytes go to the pty,
 *                                                      its end as VEOF (twice after half a line)
 *
 * Which stream goes through the pty was decided in stdio_prepare(): with `auto` those that are the
 * caller's terminal and no others, so `carrel run x >file` writes the file, not the pty.
 *
 * In a pipeline others draw on the same terminal: there the raw terminal goes on making \r\n of \n
 * for as long as the pty does (a full-screen program switches both off).
 *
 * What the payload draws reaches the caller's terminal unfiltered, escape sequences included.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "base/error.h"
#include "host/stdio/pump.h"
#include "host/stdio/stdio.h"

struct tty {
	int master;          /* owned; -1 = closed */
	struct pump_end in;  /* keys, or the bytes that stand for them; fd -1 = none */
	struct pump_end out; /* screen */
	int terminal;        /* in.fd or out.fd where it is a terminal: modes, size; else -1 */
	bool in_is_terminal;
	bool eager;    /* keyboard from the start */
	bool keyboard; /* taken: `input` runs */
	bool wanted;   /* to be taken on SIGCONT, if we are in the foreground then */
	bool copied;   /* the pty has the terminal's modes */
	bool raw;      /* `saved` must be put back */
	struct termios saved, raw_modes;
	struct pump input, output;
	int epoll_fd; /* borrowed */
	uint64_t id;
};

enum tty_event {
	TTY_OK,
	TTY_HANGUP, /* the caller's terminal is gone and the pty hung up: treat as SIGHUP */
};

/*
 * tty_open - the master has arrived: take it, reopen the caller's terminal where that is allowed
 * (a description of our own can be O_NONBLOCK), copy window size and modes. The modes only while
 * the terminal is ours and nobody holds it raw; else when the keyboard is taken.
 * @s: after stdio_prepare(), with want_pty; not needed afterwards.
 * @master_fd: owned by @t from here on, on failure too.
 * Returns 0, or a negative errno with @e set and everything closed.
 */
MUST_CHECK int tty_open(struct tty *t, const struct stdio *s, int master_fd, struct error *e);

/*
 * tty_start - call it before init is told to start the payload.
 * @id: events carry @id (input) and @id + 1 (output).
 * Returns 1: the payload's process group is to be the pty's foreground group; 0: it is not (init
 * keeps the foreground for its own group); or -errno, with the terminal restored.
 */
MUST_CHECK int tty_start(struct tty *t, int epoll_fd, uint64_t id);

/*
 * tty_take_keyboard - init says that the payload stopped by SIGTTIN or SIGTTOU.
 * Returns 1: taken, tell init to make the payload's group the foreground one and to continue it;
 * 0: we are in the background ourselves; stop the supervisor's own process group with the same
 * signal, and call tty_resume() on SIGCONT; or -errno.
 */
MUST_CHECK int tty_take_keyboard(struct tty *t);

/* tty_resize - SIGWINCH, SIGCONT: hand the window size on; the kernel then signals the payload. */
void tty_resize(struct tty *t);

/*
 * tty_suspend - before the supervisor stops itself (SIGTSTP from outside, or init says that the
 * payload stopped): the keyboard and the modes go back to the caller.
 */
void tty_suspend(struct tty *t);

/*
 * tty_resume - on every SIGCONT, suspended before or not. Takes the window size, and the keyboard
 * where it was ours or is wanted and we are in the foreground.
 * Returns 1: continue the payload as the pty's foreground group; 0: as a background group; or
 * -errno (the keyboard could not be taken; continue it in the background).
 */
MUST_CHECK int tty_resume(struct tty *t);

/* tty_step - an event with @id arrived. */
enum tty_event tty_step(struct tty *t, uint64_t id);

/*
 * tty_drain - every process of the session but init is dead: bring the rest to the screen. Call it
 * before init ends, if possible: init is the pty's session leader, so its end hangs the pty up, and
 * then the terminal driver decides what becomes of unread output.
 * @deadline_ms, @wake_fd, result: as for pump_drain(); a terminal that is gone is no error.
 */
MUST_CHECK int tty_drain(struct tty *t, int64_t deadline_ms, int wake_fd);

/*
 * tty_restore - the caller's modes again, if we changed them and are in the foreground. Only
 * system calls: for the fatal paths. Any number of times.
 */
void tty_restore(struct tty *t);

/* tty_stop - restore and close everything; on every way out. Twice is allowed. */
void tty_stop(struct tty *t);
