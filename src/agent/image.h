/*
 * image.h - pictures, known by their first bytes and never by their name, and whether hosts will take them. A picture
 * that a model's service refuses stays in the conversation, and the service then refuses every later request, too.
 *
 * See: PNG (RFC 2083, 3), JPEG (ITU T.81, B.1), GIF89a, WebP (RFC 9649).
 * Runs in: carrel-agent, outside. PURE. May not: decode a picture; it was written by the tools.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/buffer.h"

#define IMAGE_HEAD 16 /* bytes that are enough to know the type */

/* image_type - "image/png", "image/jpeg", "image/gif", "image/webp", or NULL. Static. */
const char *image_type(const char *head, size_t size);

#define IMAGE_SIDE_MAX 8000U /* pixels; services for models take no more */

struct image_size {
	unsigned width, height; /* pixels */
};

/*
 * image_measure - the size that the picture @data of @type claims to have. False: it claims none, or is not
 * whole. The function follows its parts to the end, but decodes nothing in them.
 */
bool image_measure(const char *type, const char *data, size_t size, struct image_size *ret);

/* image_base64 - append @size bytes in base64 (RFC 4648, with padding, without line breaks). */
void image_base64(struct buffer *b, const void *data, size_t size);

/*
 * image_from_base64 - append the bytes that @text stands for. White space is passed over; anything
 * else that is not the canonical form is refused. Returns false then.
 */
bool image_from_base64(struct buffer *b, const char *text, size_t size);
