/*
 * image_fuzz.c - any bytes as a picture: its type, its size, base64 there and back.
 *
 * Runs in: the tests, as a fuzzer: tests/fuzz/fuzz.bats.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why)
{
	(void)fprintf(stderr, "image_fuzz: %s\n", why);
	abort();
}

static void try_base64(const char *data, size_t size)
{
	autobuffer struct buffer text = { 0 }, back = { 0 };

	image_base64(&text, data, size);
	if (!image_from_base64(&back, text.data ? text.data : "", text.used))
		fail("base64 of ours is none");
	if (back.used != size || (size && memcmp(back.data, data, size) != 0))
		fail("base64 came back as something else");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *type = image_type(text, size);
	struct image_size is;

	if (type && image_measure(type, text, size, &is) && (!is.width || !is.height))
		fail("a picture without a size");
	try_base64(text, size);
	return 0;
}
