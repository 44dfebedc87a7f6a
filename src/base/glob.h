/*
 * glob.h - whether a name fits a pattern: the one engine, for the paths and the variables of policies, for what
 * they promote, and for what they lock.
 *
 * Runs in: every process outside. Bytes are compared, whatever the locale.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * glob_name_fits - whether the name @name, @size bytes, one component of a path, fits @pattern,
 * @length bytes. '*' and '?' stand for any bytes, "[...]" for one of a set with ranges,
 * "[:classes:]" and '!' or '^' in front; a backslash takes the meaning from the next byte. Only a
 * period fits a period at the beginning. A bracket that is not closed stands for itself; a
 * backslash at the end fits nothing.
 * See: glob(7), fnmatch(3) with FNM_PERIOD.
 */
bool glob_name_fits(const char *pattern, size_t length, const char *name, size_t size);

/*
 * glob_path_fits - whether the path @path, or a directory that it lies in, fits @pattern, component by component.
 * Both are absolute and have neither empty components nor "." and "..".
 */
bool glob_path_fits(const char *pattern, const char *path);

/* glob_star_fits - whether @name, @size bytes, fits @pattern, in which '*' alone means something: any bytes. */
bool glob_star_fits(const char *pattern, const char *name, size_t size);
