/*
 * image.h - pictures, known by their first bytes and never by their name.
 *
 * Runs in: carrel-agent, outside. PURE. May not: decode a picture; it was written by the tools.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/buffer.h"

#define IMAGE_HEAD 16 /* bytes that are enough to know the type */

/* image_type - "image/png", "image/jpeg", "image/gif", "image/webp", or NULL. Static. */
const char *image_type(const char *head, size_t size);

/* image_base64 - append @size bytes in base64 (RFC 4648, with padding, without line breaks). */
void image_base64(struct buffer *b, const void *data, size_t size);

/*
 * image_from_base64 - append the bytes that @text stands for. White space is passed over; anything
 * else that is not the canonical form is refused. Returns false then.
 */
bool image_from_base64(struct buffer *b, const char *text, size_t size);
