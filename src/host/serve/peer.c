/*
 * peer.c - see peer.h.
 *
 * Runs in: S.
 */
#include "host/serve/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { STATUS_BYTES = 3072 };

/* The pids of the process, one for each namespace from that of our /proc down to its own. */
static bool has_one_pid(const char *text)
{
	static const char key[] =
		"\nNSpid:\t"; /* a newline in the process's name reads as "\\n" */
	const char *at = strstr(text, key);

	if (!at)
		return false;
	at += sizeof(key) - 1;
	return at[strspn(at, "0123456789")] == '\n';
}

bool peer_is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char path[64], text[STATUS_BYTES];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		peer.uid != geteuid() || peer.pid <= 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)peer.pid);
	autofd int status = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n = status < 0 ? -1 : read(status, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return has_one_pid(text);
}
