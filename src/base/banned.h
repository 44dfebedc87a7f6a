/*
 * banned.h - functions that nobody here may call; included before everything else (-include).
 *
 * Runs in: every program, at compile time only. May not: define anything.
 * Each one has no bound, splits its input behind one's back, hides its errors, or starts a shell.
 * The headers that declare them come first: after the pragma their names alone are errors.
 */
#pragma once

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#undef alloca
#pragma GCC poison popen strcpy strcat stpcpy sprintf vsprintf gets
#pragma GCC poison strtok atoi atol atoll alloca

/* A word too common to be poisoned: only the call is an error, as of an unknown function. */
#define system(command) system_is_banned(command)
