/*
 * records_fuzz.c - any bytes as what the launcher reads that tools or clients wrote: a git
 * configuration, a git index, a request for an execution. No crash, an end, and nothing that lies
 * outside of what was read.
 *
 * Runs in: the tests. As a fuzzer (no main of its own with CARREL_LIBFUZZER): tests/fuzz/fuzz.bats.
 * Without the define it is a plain program that runs over the files it is given, once each.
 *
 * The first byte chooses: bits 0-1 which reader (configuration, index with names of 20 bytes, with
 * names of 32, request).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "box/request.h"
#include "host/git/gitconfig.h"
#include "host/git/gitindex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why)
{
	(void)fprintf(stderr, "records_fuzz: %s\n", why);
	abort();
}

/* One file for all of them: making one for each would be most of the time. */
static int file_of(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("records", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
		lseek(fd, 0, SEEK_SET) != 0)
		fail("no file");
	return fd;
}

static void try_config(const uint8_t *data, size_t size)
{
	struct gitconfig *c = malloc(sizeof(*c));
	size_t last = 0;
	int r;

	if (!c)
		fail("no memory");
	gitconfig_start(c, file_of(data, size));
	while ((r = gitconfig_next(c)) > 0) {
		if (!memchr(c->name, 0, sizeof(c->name)) ||
			c->value_length >= sizeof(c->value) || c->value[c->value_length])
			fail("a text without an end");
		if (c->start < last || c->end <= c->start || c->end > size)
			fail("an entry outside of the file, or twice");
		last = c->end;
	}
	if (r == 0 && memchr(data, 0, size))
		fail("NUL bytes were taken");
	free(c);
}

static void try_index(const uint8_t *data, size_t size, size_t hash_size)
{
	struct gitindex *x = malloc(sizeof(*x));
	size_t entries = 0;

	if (!x)
		fail("no memory");
	int r = gitindex_start(x, file_of(data, size), hash_size);
	for (; r == 0 && (r = gitindex_next(x)) > 0; r = 0, entries++)
		if (!memchr(x->name, 0, sizeof(x->name)))
			fail("a name without an end");
	/* Each takes its fixed part at least. */
	if (entries > size / (40 + hash_size))
		fail("more entries than there is room for");
	free(x);
}

static void try_request(const uint8_t *data, size_t size)
{
	const char *end = (const char *)data + size;
	struct request_view v;

	if (request_read(data, size, &v) != 0)
		return;
	const char *at = v.argv;
	for (uint32_t i = 0; i < v.head.argc + v.head.envc; i++, at = request_next(at))
		if (i == v.head.argc && at != v.envp)
			fail("the variables are elsewhere");
	if (at != v.cwd || request_next(v.cwd) != v.name || request_next(v.name) != end)
		fail("the texts are not all there is");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	/* A copy of its own: a byte read behind it is found. */
	uint8_t *copy = malloc(size > 1 ? size - 1 : 1);

	if (!copy)
		fail("no memory");
	memcpy(copy, data + 1, size - 1);
	switch (data[0] & 3) {
	case 0:
		try_config(copy, size - 1);
		break;
	case 1:
	case 2:
		try_index(copy, size - 1, data[0] & 1 ? 20 : 32);
		break;
	default:
		try_request(copy, size - 1);
	}
	free(copy);
	return 0;
}

#ifndef CARREL_LIBFUZZER
int main(int argc, char **argv)
{
	static uint8_t text[REQUEST_SIZE_MAX];

	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

		if (n < 0) {
			(void)fprintf(
				stderr, "records_fuzz: %s: %s\n", argv[i], strerror(errno));
			return 1;
		}
		(void)close(fd);
		(void)LLVMFuzzerTestOneInput(text, (size_t)n);
	}
	return 0;
}
#endif
