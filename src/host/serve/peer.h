/*
 * peer.h - who connected to the control socket.
 *
 * Runs in: S.
 *
 * The state directory lets no other user in, and no session shows it. A tool that gets to a socket
 * nevertheless (a state directory in some odd place, and a session that shows that place) connects
 * as the same user, but from a pid namespace below that of S.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * peer_is_own - whether the process that connected is one of the caller's own, and no tool in a
 * session.
 * @fd: the connection. A process that cannot be looked at counts as none of the caller's.
 * See: unix(7) SO_PEERCRED, proc(5) NSpid.
 */
bool peer_is_own(int fd);

/* peer_who - the process that connected, as seen from here, and its user; 0 and the caller's where that is not known. */
void peer_who(int fd, pid_t *ret_pid, uid_t *ret_uid);
