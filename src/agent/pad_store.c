/*
 * pad_store.c - see pad_store.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/pad_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

/* The text that a writer is at work on. The next writer overwrites what a killed one left. */
#define DRAFT ".draft"

enum { LOCK_STEP_MS = 5 };

static const char *const names[PAD_SECTIONS] = {
	[PAD_GOAL] = "goal",
	[PAD_FINDINGS] = "findings",
	[PAD_ARTIFACTS] = "artifacts",
	[PAD_ERRORS] = "errors",
	[PAD_MAIN] = "main",
};

const char *pad_section_name(enum pad_section section)
{
	return names[section];
}

enum pad_section pad_section_find(const char *name)
{
	for (unsigned i = 0; i < PAD_SECTIONS; i++)
		if (!strcmp(names[i], name))
			return (enum pad_section)i;
	return PAD_SECTIONS;
}

int pad_open(int session)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

	if (mkdirat(session, "pad", 0700) < 0 && errno != EEXIST)
		return -errno;
	return fd_open_at(session, "pad", flags, 0);
}

/*
 * The lock is taken on an open file description of its own, so that two users of one descriptor exclude each
 * other too. This asks for it again and again instead of waiting in flock(2): a process that was stopped while it
 * held the lock would block the caller for good. Returns the descriptor that holds it, or -errno.
 */
static int lock(int pad, int how)
{
	autofd int held = fd_open_at(pad, ".", O_RDONLY | O_DIRECTORY, 0);

	if (held < 0)
		return held;
	for (int waited_ms = 0; flock(held, how | LOCK_NB) < 0; waited_ms += LOCK_STEP_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited_ms >= PAD_PATIENCE_MS)
			return -EWOULDBLOCK;
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	return take_fd(&held);
}

/* A section that was never written is no failure: 0 bytes and no data. */
static int load_section(int pad, enum pad_section section, struct buffer *ret)
{
	autofd int fd = plainfile_open(pad, names[section], 0, false);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (!buffer_reserve(ret, PAD_SECTION_MAX))
		return -ENOMEM;
	ssize_t n = fd_read_file(fd, ret->data, PAD_SECTION_MAX);
	if (n < 0)
		return (int)n;
	ret->used = (size_t)n;
	return 0;
}

static int store(int pad, enum pad_section section, const struct buffer *text)
{
	autofd int fd = fd_open_at(
		pad, DRAFT, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return fd;
	int r = fd_write_all(fd, text->data, text->used);
	if (r == 0 && renameat(pad, DRAFT, pad, names[section]) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(
			pad, DRAFT, 0); /* if that fails, the next writer overwrites it */
	return r;
}

/* The caller holds the lock. Writes what is there (@append) and the new text, within a bound on both. */
static int change(int pad, enum pad_section section, bool append, const char *text, size_t size,
	size_t *ret_bytes)
{
	autobuffer struct buffer whole = { 0 };
	int r = append ? load_section(pad, section, &whole) : 0;

	if (r < 0)
		return r;
	if (whole.used > 0 && whole.data[whole.used - 1] != '\n')
		buffer_add(&whole, "\n", 1);
	if (size > PAD_SECTION_MAX || whole.used + size > PAD_SECTION_MAX) {
		*ret_bytes = whole.used + size;
		return -EFBIG;
	}
	buffer_add(&whole, text, size);
	if (whole.failed)
		return -ENOMEM;
	r = store(pad, section, &whole);
	if (r == 0)
		*ret_bytes = whole.used;
	return r;
}

int pad_write(
	int pad, enum pad_section section, const char *text, size_t size, size_t *ret_bytes)
{
	autofd int held = lock(pad, LOCK_EX);

	return held < 0 ? held : change(pad, section, false, text, size, ret_bytes);
}

int pad_append(
	int pad, enum pad_section section, const char *text, size_t size, size_t *ret_bytes)
{
	autofd int held = lock(pad, LOCK_EX);

	return held < 0 ? held : change(pad, section, true, text, size, ret_bytes);
}

int pad_read(int pad, enum pad_section section, struct buffer ret[PAD_SECTIONS])
{
	autofd int held = lock(pad, LOCK_SH);
	int r = held < 0 ? held : 0;

	for (unsigned i = 0; i < PAD_SECTIONS && r == 0; i++)
		if (section == PAD_SECTIONS || section == (enum pad_section)i)
			r = load_section(pad, (enum pad_section)i, &ret[i]);
	return r;
}

int pad_clear(int pad, enum pad_section section)
{
	autofd int held = lock(pad, LOCK_EX);
	int r = held < 0 ? held : 0;

	for (unsigned i = 0; i < PAD_SECTIONS && r == 0; i++)
		if (section == PAD_SECTIONS || section == (enum pad_section)i)
			if (unlinkat(pad, names[i], 0) < 0 && errno != ENOENT)
				r = -errno;
	return r;
}
