/*
 * gitindex.c - see gitindex.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/git/gitindex.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define HEADER_SIZE 12
#define MODE_OFFSET 24 /* after ctime, mtime, dev and ino */
#define FIXED_SIZE 40  /* up to the object's name */
#define MODE_TYPE 0170000u
#define MODE_GITLINK 0160000u
#define FLAG_EXTENDED 0x40 /* of the first byte of the flags */

/* need - have @count bytes at once in the buffer, behind @x->at. */
static int need(struct gitindex *x, size_t count)
{
	if (x->length - x->at >= count)
		return 0;
	memmove(x->buffer, x->buffer + x->at, x->length - x->at);
	x->length -= x->at;
	x->at = 0;
	while (x->length < count) {
		ssize_t n = read(x->fd, x->buffer + x->length, sizeof(x->buffer) - x->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG; /* it ends too early */
		x->length += (size_t)n;
	}
	return 0;
}

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int gitindex_start(struct gitindex *x, int fd, size_t hash_size)
{
	x->fd = fd;
	x->hash_size = hash_size;
	x->at = x->length = x->name_length = 0;
	int result = need(x, HEADER_SIZE);

	if (result < 0)
		return result;
	x->version = big_endian(x->buffer + 4);
	x->left = big_endian(x->buffer + 8);
	if (memcmp(x->buffer, "DIRC", 4) != 0 || x->version < 2 || x->version > 4)
		return -EBADMSG;
	x->at = HEADER_SIZE;
	return 0;
}

/* keep_prefix - version 4: how much of the last name is the start of this one. */
static int keep_prefix(struct gitindex *x, size_t *ret_start)
{
	size_t strip = 0;
	bool more = true;

	for (bool first = true; more; first = false) {
		int result = need(x, 1);

		if (result < 0)
			return result;
		unsigned char byte = x->buffer[x->at++];

		strip = first ? byte & 0x7fu : ((strip + 1) << 7) | (byte & 0x7fu);
		more = byte & 0x80;
		if (strip > x->name_length)
			return -EBADMSG;
	}
	*ret_start = x->name_length - strip;
	return 0;
}

/* text_length - how long is the text at @x->at, all of which is then in the buffer? */
static ssize_t text_length(struct gitindex *x)
{
	for (size_t have = x->length - x->at; have < PATH_MAX; have = x->length - x->at) {
		const unsigned char *end = memchr(x->buffer + x->at, '\0', have);

		if (end)
			return end - (x->buffer + x->at);
		int result = need(x, have + 1);

		if (result < 0)
			return result;
	}
	const unsigned char *end = memchr(x->buffer + x->at, '\0', PATH_MAX);

	return end ? end - (x->buffer + x->at) : -EBADMSG;
}

/* next_name - the name of an entry whose parts so far are @size bytes, and its padding. */
static int next_name(struct gitindex *x, size_t size)
{
	size_t start = 0;
	int result = x->version == 4 ? keep_prefix(x, &start) : 0;

	if (result < 0)
		return result;
	ssize_t length = text_length(x);

	if (length < 0)
		return (int)length;
	x->name_length = start + (size_t)length;
	if (x->name_length >= sizeof(x->name))
		return -EBADMSG;
	memcpy(x->name + start, x->buffer + x->at, (size_t)length + 1);
	/* One to eight NUL bytes, up to a multiple of eight; in version 4 just one. */
	size_t rest = x->version == 4 ? (size_t)length + 1
				      : ((size + (size_t)length + 8) & ~(size_t)7) - size;

	result = need(x, rest);
	if (result == 0)
		x->at += rest;
	return result;
}

/* next_entry - one entry, into the name. Its mode in @ret_mode. */
static int next_entry(struct gitindex *x, uint32_t *ret_mode)
{
	size_t size = FIXED_SIZE + x->hash_size + 2;
	int result = need(x, size + 2);

	if (result < 0)
		return result;
	const unsigned char *entry = x->buffer + x->at;

	if (entry[size - 2] & FLAG_EXTENDED) {
		if (x->version < 3)
			return -EBADMSG;
		size += 2;
	}
	*ret_mode = big_endian(entry + MODE_OFFSET);
	x->at += size;
	return next_name(x, size);
}

int gitindex_next(struct gitindex *x)
{
	while (x->left > 0) {
		uint32_t mode = 0;
		int result = next_entry(x, &mode);

		if (result < 0)
			return result;
		x->left--;
		if ((mode & MODE_TYPE) == MODE_GITLINK)
			return 1;
	}
	return 0;
}
