/*
 * peer.c - see peer.h.
 *
 * Runs in: S.
 */
#include "host/serve/peer.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/process/process_status.h"

bool peer_is_own(int fd)
{
	/* The pids of the process, one for each namespace from that of our /proc down to its own. */
	struct process_status pids = { .key = "NSpid:" };
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		peer.uid != geteuid() || peer.pid <= 0)
		return false;
	if (process_status_read(peer.pid, &pids, 1) < 0)
		return false;
	return pids.value[strspn(pids.value, "0123456789")] == '\0';
}

void peer_who(int fd, pid_t *ret_pid, uid_t *ret_uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;

	*ret_pid = known ? peer.pid : 0;
	*ret_uid = known ? peer.uid : geteuid();
}
