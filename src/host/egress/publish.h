/*
 * publish.h - the ports of the host's loopback that lead to servers inside (`publish`): made by the supervisor, served by
 * carrel-egress.
 *
 * Runs in: S, before it confines itself.
 */
#pragma once

#include "host/egress/egress.h"

/*
 * publish_begin - listen on 127.0.0.1 and ::1 (where there is one) for each port that @policy publishes, and give the
 * sockets to carrel-egress, which runs already. @g: fills in its list `published`; none of the sockets stays open here.
 * 0, or -errno with @e: ERROR_UNAVAILABLE (a port is in use), ERROR_LIMIT.
 */
MUST_CHECK int publish_begin(struct egress *g, const struct policy *policy, struct error *e);

/* publish_event - add up what carrel-egress said of a connection that ended. */
void publish_event(struct egress *g, const struct egress_record *record);

/* publish_tell - say on stderr which port of the host the kernel chose, if it chose one. Not with `quiet`. */
void publish_tell(const struct egress *g, const struct policy *policy);
