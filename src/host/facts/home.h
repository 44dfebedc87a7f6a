/*
 * home.h - where the caller's home is.
 *
 * Runs in: the launcher and carrel-policy, outside.
 *
 * Credentials lie in the home whether a variable says so or not: ssh(1), for one, asks the account.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

/*
 * home_find - $HOME where that is an absolute path, else what the account has in /etc/passwd.
 * *@ret: in @environment or in @a; NULL where there is neither, as for a uid without an account.
 * Returns 0, or -errno with @e where the account cannot be looked up: a home that is not known
 * would not be hidden.
 * See: passwd(5).
 */
MUST_CHECK int home_find(
	const char **ret, struct arena *a, const char *const *environment, struct error *e);

/*
 * home_of_account - what the account has in /etc/passwd where that is another directory than @home.
 * *@ret: in @a; NULL where it is the same or "/", or where /etc/passwd does not know the account.
 * Returns 0, or -errno with @e as home_find().
 */
MUST_CHECK int home_of_account(
	const char **ret, struct arena *a, const char *home, struct error *e);
