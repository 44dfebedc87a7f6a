/*
 * stdio.h - descriptors 0, 1 and 2 of a payload, none of them a way out of the session.
 *
 * Runs in: S (or the client of an exec): before the launch, in the event loop, and at the end.
 * May not: change the caller's open file descriptions in any way (O_NONBLOCK, offsets), except
 * that the offset of a regular file on stdin is put back to what the payload really read.
 *
 * A descriptor carries the mount, the network namespace and the open mode it was made with, past
 * every wall that is built later. What each kind becomes (fchmod(2), connect(2) with AF_UNSPEC,
 * reopening through /proc/self/fd, clearing O_APPEND are what is kept out):
 *
 *   passed as it is   anonymous pipes; connected AF_UNIX stream and seqpacket sockets;
 *                     null zero full random urandom; terminals with `tty no`
 *   relayed           regular files, memfds, block devices, other character devices, FIFOs with
 *                     a name, AF_INET, AF_INET6, AF_UNIX datagram or unconnected sockets
 *                     and standard output and error where they have a budget or a bound
 *   the session's pty terminals with `tty auto`; everything with `tty yes`
 *   refused           directories, O_PATH, anonymous inodes (pidfd, epoll, io_uring, ...),
 *                     listening sockets, other socket families
 *
 * What passing leaves open, on purpose: who holds one end of an anonymous pipe can open the other
 * direction of that same pipe, and reads or writes there what the pipe's other users do.
 *
 * Read-ahead: a relayed stdin is read before the payload asks, as ssh does. What was not used is
 * given back where the kind can seek (stdio_close()); from a FIFO, a socket or a device it is lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/stdio/budget.h"
#include "host/stdio/pump.h"
#include "plan/policy.h"

#define STDIO_STREAMS 3

struct passed;

enum stdio_kind {
	STDIO_KIND_PIPE, /* without a name */
	STDIO_KIND_FIFO, /* with a name: an inode of the host that fchmod(2) reaches */
	STDIO_KIND_FILE, /* regular file or memfd */
	STDIO_KIND_BLOCK,
	STDIO_KIND_HARMLESS, /* null zero full random urandom */
	STDIO_KIND_TERMINAL,
	STDIO_KIND_DEVICE,   /* any other character device, a pty master included */
	STDIO_KIND_UNIX,     /* connected stream or seqpacket */
	STDIO_KIND_SOCKET,   /* stream socket to be relayed */
	STDIO_KIND_DATAGRAM, /* datagram socket to be relayed */
};

enum stdio_how { STDIO_PASS, STDIO_RELAY, STDIO_PTY };

struct stdio_stream {
	enum stdio_kind kind;
	enum stdio_how how;
	int caller_fd;    /* borrowed, never closed here */
	int access;       /* O_RDONLY, O_WRONLY or O_RDWR */
	int our_end;      /* relay: our end of the pipe until the pump takes it; else -1 */
	int child_end;    /* relay: the payload's end until stdio_child_started(); else -1 */
	bool with_stdout; /* stderr only: same description as stdout, and in the same pipe */
	bool active;      /* the pump was started */
	bool budgeted;    /* relayed through `budget` */
	struct pump pump;
	struct budget budget;
};

/* What becomes of standard output and error, apart from where they go. */
struct stdio_output {
	uint64_t budget;    /* characters of each; BUDGET_NONE */
	uint64_t max_bytes; /* of each; UINT64_MAX: no bound */
	bool merge;         /* one stream in the order written, on standard output */
};

struct stdio {
	struct stdio_stream stream[STDIO_STREAMS];
	/*
	 * What init makes 0, 1 and 2 of: -1 = the pty's slave; equal to its index = leave it
	 * alone; anything else is dup2'ed (without O_CLOEXEC) and then closed. Never 0..2
	 * otherwise, so the order does not matter. With 0..2 as caller_fd, that is.
	 */
	int child_fd[STDIO_STREAMS];
	bool want_pty;
	int tty_in, tty_out; /* want_pty: caller's descriptors for keys and screen, or -1 */
	bool tty_eager;      /* want_pty: the payload has the keyboard from the start */
	int stdin_read_end; /* kept to count what the payload left unread; -1 where not seekable */
	bool merged;        /* standard error is standard output */
	const struct passed *
		passed; /* what the command is given beside these, or NULL: passed.h; set after stdio_prepare() */
};

/*
 * stdio_sanitize - the first call of main(): opens /dev/null on those of 0, 1, 2 that are closed
 * (0 for reading, 1 and 2 for writing), so that no descriptor of ours or of the payload's becomes
 * its stdout by accident. One system call where nothing is closed.
 * @ret_closed: bit N set = N was closed.
 * Returns 0 or -errno (ENOENT: no /dev/null).
 */
MUST_CHECK int stdio_sanitize(unsigned *ret_closed);

/*
 * stdio_prepare - classify the three, make the pipes; before clone3, or before an exec is sent.
 * @caller_fd: three open descriptors; {0, 1, 2} in the launcher. Borrowed until stdio_close().
 * @mode: the setting `tty`.
 * Returns 0, or a negative errno with @e set (ERROR_DESCRIPTOR: refused; ERROR_LIMIT: no pipe);
 * nothing is left open then.
 */
MUST_CHECK int stdio_prepare(struct stdio *s, const int caller_fd[STDIO_STREAMS],
	enum tty_mode mode, struct error *e);

/*
 * stdio_prepare_output - the same with @output. A stream that has a budget or a bound is relayed,
 * also where it is a terminal. `tty yes` leaves no streams to tell apart and is refused
 * (ERROR_USAGE) together with a budget or a bound.
 */
MUST_CHECK int stdio_prepare_output(struct stdio *s, const int caller_fd[STDIO_STREAMS],
	enum tty_mode mode, const struct stdio_output *output, struct error *e);

/*
 * stdio_save_in - where outputs that exceed their budget are saved whole: in the directory @dir as
 * EXECUTION.stdout.txt, EXECUTION.stderr.txt, or EXECUTION.output.txt where they are merged. Before
 * stdio_start(). @dir, @dir_path: borrowed until stdio_close(); see budget_save_in().
 * @goes: the same.
 */
void stdio_save_in(
	struct stdio *s, int dir, const char *dir_path, uint64_t execution, bool goes);

/*
 * stdio_set_owner - privileged mode: give the pipes to the payload's uid, so that opening
 * /dev/stdout or /dev/stderr works inside as it does outside. Before clone3.
 * Pipes only: anything else has an inode that others use. A refusal changes nothing else and is
 * passed over.
 */
void stdio_set_owner(const struct stdio *s, uid_t uid, gid_t gid);

/* stdio_child_started - close our copies of the payload's ends; once init has them. */
void stdio_child_started(struct stdio *s);

/*
 * stdio_start - start the relays; after stdio_child_started().
 * @id: events of stream N carry @id + N. Returns 0 or -errno.
 */
MUST_CHECK int stdio_start(struct stdio *s, int epoll_fd, uint64_t id);

/*
 * stdio_step - an event with id + @stream arrived. Returns whether more than `max_bytes` came on that
 * stream: then the command is to be ended.
 */
bool stdio_step(struct stdio *s, unsigned stream);

/* stdio_is_over - whether more than `max_bytes` came on any stream. Also after stdio_close(). */
bool stdio_is_over(const struct stdio *s);

/* stdio_is_held - a stream has a budget: its tail is still to be brought to the caller. */
bool stdio_is_held(const struct stdio *s);

/*
 * stdio_drain - all processes of the session are dead: bring what is in the pipes to the caller.
 * @deadline_ms, @wake_fd: as for pump_drain().
 * Returns 0, -ETIMEDOUT or -EINTR (call again, or go on to stdio_close()). Errors of the sink are
 * told by stdio_close().
 */
MUST_CHECK int stdio_drain(struct stdio *s, int64_t deadline_ms, int wake_fd);

/*
 * stdio_close - end of all relays; on every way out, whatever stage was reached.
 * Seeks the caller's stdin back by what the payload did not read. Returns 0, or the first error of
 * a relay with @e set (ENOSPC and its like). A reader that went away (EPIPE, ECONNRESET) is none.
 */
MUST_CHECK int stdio_close(struct stdio *s, struct error *e);

/* stdio_pump_end - the caller's end of @stream for a pump. */
struct pump_end stdio_pump_end(const struct stdio_stream *stream);
