/*
 * rules.h - the rules of a policy as carrel-egress reads them: the text that wire.h describes.
 *
 * Runs in: S.
 */
#pragma once

#include "base/error.h"
#include "plan/policy.h"

/*
 * egress_rules - a sealed memfd (memfd_create(2), F_ADD_SEALS). @login: for the proxy, from login_read(); NULL: none. The
 * descriptor or -errno.
 */
MUST_CHECK int egress_rules(const struct policy *policy, const char *login);
