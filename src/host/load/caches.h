/*
 * caches.h - the directories of caches that sessions share (`cache NAME`).
 *
 * Runs in: the launcher, outside. May not: look at what is in one, since tools write it.
 */
#pragma once

#include "plan/policy.h"

/*
 * caches_make - make @cache_home/carrel/caches/NAME for each `cache` line of @p, where it is
 * missing; each of the three is the caller's alone (0700), and no link.
 * @cache_home: absolute, or NULL: not known. Returns 0, or -errno with @e (ERROR_PATH).
 */
MUST_CHECK int caches_make(const struct policy *p, const char *cache_home, struct error *e);
