/*
 * path.h - comparing canonical absolute paths, byte for byte.
 *
 * Runs in: wherever paths are compared. PURE. A canonical path starts with '/', has no empty,
 * "." or ".." component and no trailing '/', except "/" itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * path_compare - order in which a directory comes right before everything below it: '/' sorts
 * before every other byte. Returns <0, 0, >0.
 */
int path_compare(const char *a, const char *b);

/*
 * path_below - if @path is @dir or lies below it: the rest behind @dir without a leading '/' ("" for
 * @dir itself); else NULL.
 */
const char *path_below(const char *dir, const char *path);

/* path_parent_length - length of @path without its last component; 1 for children of "/". */
size_t path_parent_length(const char *path);
