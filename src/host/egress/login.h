/*
 * login.h - the user and password of carrel-egress for the proxy of the host's network.
 *
 * Runs in: the launcher, outside, with the caller's rights.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "host/report/toolplace.h"

enum {
	LOGIN_BYTES_MAX = 512, /* of USER:PASSWORD */
	LOGIN_TEXT_MAX = (LOGIN_BYTES_MAX + 2) / 3 * 4 + 1,
};

/*
 * login_read - the first line of @file, USER:PASSWORD, as RFC 7617 encodes it: base64, NUL-terminated. Other users may not
 * read the file. @place: where tools can write; toolplace_open() opens the file. @a: for the time of the call.
 * 0, or -errno with @e, which never has a byte of the file.
 */
MUST_CHECK int login_read(const char *file, const struct toolplace *place, struct arena *a,
	char ret[LOGIN_TEXT_MAX], struct error *e);
