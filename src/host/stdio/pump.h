/*
 * pump.h - moves bytes from one descriptor to another without ever making the supervisor wait.
 *
 * Runs in: S, the supervisor (one thread, epoll; SIGPIPE and the SIGTT* blocked or ignored).
 * May not: look at the bytes (that is a filter's work), set O_NONBLOCK on a description it does not own (the caller's shell
 * shares it), hold more than PUMP_BUFFER_BYTES (PUMP_FAST_BYTES).
 *
 * Every end is edge-triggered in epoll, both ends under one id: when an event with that id
 * arrives, call pump_step(); what fired does not matter. A step runs until an end would block or
 * its share is used up; in the second case it arms itself again, so the loop needs no list of
 * pumps that still have work.
 *
 * Copies with read(2) and write(2), no splice(2), for three reasons: from a pipe to a file splice is
 * not faster (1 GiB, tmpfs: 1.4-1.7 GB/s against 1.8-1.9; ext4: within the noise); it holds the
 * pipe's lock while the disk writes, so that a killed payload waits in write(2) for it; and from a
 * file to a pipe, where it is (4.8 against 2.7), it puts pages of the page cache into a pipe that
 * an untrusted process holds, the ground of CVE-2022-0847.
 *
 * What can still wait: a transfer to or from a regular file, a block device or a device without
 * poll(2) takes as long as the disk takes; these have no readiness. It is one PUMP_BUFFER_BYTES
 * transfer, after which signals and timers have their turn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PUMP_BUFFER_BYTES 65536
#define PUMP_FAST_BYTES (256 * 1024) /* the buffer of a filter whose source is fast */

/* How an end is used without waiting on it. */
enum pump_kind {
	PUMP_OURS,     /* our own open file description with O_NONBLOCK: pipe, pty master */
	PUMP_FILE,     /* no readiness: regular file, block device */
	PUMP_SOCKET,   /* MSG_DONTWAIT on each call */
	PUMP_DATAGRAM, /* the same, and an empty message is not the end */
	PUMP_SHARED, /* the caller's pipe, terminal or device: RWF_NOWAIT, else poll(2) first */
};

struct pump_end {
	int fd;
	enum pump_kind kind;
	bool owned;   /* closed by the pump when it ends */
	bool watched; /* in the epoll set */
};

enum pump_state {
	PUMP_IDLE,   /* an end would block; an event will come */
	PUMP_MOVING, /* share used up; an event will come at once */
	PUMP_DONE,   /* over: ended by the source, or by `error`. The owned ends are closed */
};

struct pump_range { /* of the bytes that a filter was given */
	size_t start, end;
};

/* What stands between the ends, where anything does: it sees all bytes and passes some on. */
struct pump_filter {
	/*
	 * take - @size bytes from the source, after those that were not taken before. Returns how many
	 * of them are taken; the others, fewer than 16, come again in front of the next. @ret_pass:
	 * which of all @size bytes go to the sink now. @last: no more will come, take all.
	 */
	size_t (*take)(void *context, const char *data, size_t size, bool last,
		struct pump_range *ret_pass);
	/*
	 * rest - after the source's end: the next up to @size bytes for the sink, @size at least
	 * PUMP_BUFFER_BYTES. Returns their number, 0 at the end.
	 */
	size_t (*rest)(void *context, char *ret_data, size_t size);
	void *context;
};

struct pump {
	struct pump_end source, sink;
	int epoll_fd;     /* borrowed; -1 while not registered */
	uint64_t id;      /* epoll data of both ends */
	bool source_over; /* end of file seen; what is held still goes out */
	bool done;
	int error; /* errno that ended it, 0 = the source's end of file. The first is kept */
	uint64_t moved;     /* bytes that reached the sink */
	unsigned char last; /* last byte taken from the source */
	char *buffer;       /* mapped when first needed */
	size_t size;        /* bytes of it */
	size_t start, end;  /* held bytes: buffer[start..end) */
	/*
	 * at_end - last bytes to send after the source's end of file, or NULL. Writes up to 8
	 * bytes to @ret_bytes and returns how many. Called once, before the pump ends.
	 */
	size_t (*at_end)(const struct pump *p, char *ret_bytes);
	struct pump_filter filter; /* or none of its members set */
	size_t kept, kept_at; /* bytes of the buffer that the filter has not taken, and where */
};

/*
 * pump_init - describe a pump; nothing is touched.
 * @source, @sink: descriptors; an end with `owned` belongs to the pump from here on.
 */
void pump_init(struct pump *p, struct pump_end source, struct pump_end sink);

/* pump_set_filter - put @filter between the ends; right after pump_init(). */
void pump_set_filter(struct pump *p, struct pump_filter filter);

/*
 * pump_register - watch both ends.
 * @epoll_fd: borrowed until the pump ends; @id: becomes epoll_event.data.u64 for both ends.
 * An end that epoll refuses (EPERM: regular files and their like) becomes PUMP_FILE.
 * Returns 0 or -errno (ENOSPC, ENOMEM); nothing is registered then. See: epoll_ctl(2).
 */
MUST_CHECK int pump_register(struct pump *p, int epoll_fd, uint64_t id);

/* pump_unregister - stop watching; the pump stays usable (pump_register() again goes on). */
void pump_unregister(struct pump *p);

/*
 * pump_step - move what can be moved now.
 * When the sink is closed (EPIPE), or fails (ENOSPC, EFBIG, EIO, ...), `error` keeps the errno and
 * the source is closed, so that the writer gets EPIPE as it would have got without a pump. A
 * source that fails ends the sink as end of file does. On a terminal, EIO is the end of file.
 */
enum pump_state pump_step(struct pump *p);

/*
 * pump_drain - the source has no writer any more: bring the rest to the sink, a filter's included,
 * and end.
 * @deadline_ms: CLOCK_MONOTONIC, absolute; @wake_fd: a descriptor (the signalfd) whose readiness
 * interrupts the wait, or -1.
 * Returns 0; the errno that ended the pump, negative; -ETIMEDOUT or -EINTR, with the pump alive,
 * so that the caller may drain again or pump_stop().
 */
MUST_CHECK int pump_drain(struct pump *p, int64_t deadline_ms, int wake_fd);

/* pump_stop - end it now, whatever it holds; pump_held() goes on telling. Twice is allowed. */
void pump_stop(struct pump *p);

/* pump_held - bytes taken from the source that have not reached the sink. */
static inline size_t pump_held(const struct pump *p)
{
	return p->end - p->start;
}
