/*
 * stdio_kind.h - what kind of thing a descriptor of the caller's is.
 *
 * Runs in: S (or the client of an exec). May not: change the caller's descriptions, wait.
 */
#pragma once

#include "host/stdio/stdio.h"

/* What the three are called in messages. */
extern const char *const stdio_stream_names[STDIO_STREAMS];

/*
 * stdio_classify - look at @fd.
 * @ret_kind, @ret_access: its kind, and O_RDONLY, O_WRONLY or O_RDWR.
 * Returns NULL, or why it must not be given to a payload: a clause for people.
 */
const char *stdio_classify(int fd, enum stdio_kind *ret_kind, int *ret_access);

/*
 * stdio_same_description - one open file description behind both? Where kcmp(2) is refused (a container's
 * filter), the same file, flags and offset; two that only look alike then share a pipe, which loses nothing.
 */
bool stdio_same_description(int a, int b);
