/*
 * harmless.h - what tools wrote, as text that neither a terminal nor a reader obeys.
 *
 * Runs in: carrel-agent, outside. PURE. Output of tools is untrusted: escape sequences drive the terminal
 * of whoever looks at a transcript, and characters that are not shown can hide instructions.
 *
 *   C0 controls but tab and newline, DEL   their pictures, U+2400 to U+2421: ESC is shown as one
 *                                          character; a carriage return in front of a newline stays
 *   C1 controls, bidirectional controls,   <U+XXXX>
 *   line and paragraph separators, tags,
 *   and other characters never shown
 *   bytes that are no UTF-8                U+FFFD, one for each
 */
#pragma once

#include <stddef.h>

#include "agent/buffer.h"

/* harmless_add - append @size bytes of @data to @b, made harmless. */
void harmless_add(struct buffer *b, const char *data, size_t size);
