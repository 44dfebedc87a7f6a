/*
 * main.c - carrel-egress: the session's way into the host's network, by name.
 *
 * Runs in: its own process, child of the supervisor, with the descriptors of host/egress/wire.h. It reads its rules and
 * the host's resolver configuration, confines itself, and only then says that it is ready and takes sockets.
 *
 * See: docs/network.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/channel.h"
#include "egress/confine.h"
#include "egress/connection.h"
#include "egress/egress.h"

enum {
	DESCRIPTORS_SPARE = 64 + LOOKUPS_MAX + DNS_CONNECTIONS_MAX + LISTENERS_MAX +
		2 * PUBLISH_MAX + 4 * PUBLISH_POOL_MAX,
	DESCRIPTORS_EACH = 3, /* two sockets, and one more for a second address */
};

static int failed(struct error *e, int errnum, const char *what)
{
	return error_set(e, ERROR_INTERNAL, "launch", -errnum, NULL, "carrel-egress: %s", what);
}

/* As many connections as the policy says and as there are descriptors for. */
static size_t connection_limit(uint64_t wanted)
{
	struct rlimit files;
	uint64_t most = 16;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > DESCRIPTORS_SPARE)
		most = (files.rlim_cur - DESCRIPTORS_SPARE) / DESCRIPTORS_EACH;
	if (wanted == 0)
		wanted = CONNECTIONS_DEFAULT;
	return wanted < most ? (size_t)wanted : (size_t)most;
}

/* carrel-egress must not keep the caller's stdin and stdout open; it reports failures on stderr. */
static int leave_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int fd = 0; fd < 2; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return null > 1 && close(null) < 0 ? -errno : 0;
}

static int prepare(struct egress *eg, bool log, struct error *e)
{
	int r = loop_init(&eg->loop);

	if (r == 0)
		r = names_init(eg);
	eg->buffer = malloc(BUFFER_SIZE);
	if (r < 0 || !eg->buffer)
		return failed(e, r < 0 ? r : -ENOMEM, "cannot begin");
	eg->dns.fd = -1;
	tell_init(&eg->tell, &eg->loop, EGRESS_FD_CHANNEL, log ? EGRESS_FD_LOG : -1);
	eg->tell.rules = &eg->rules;
	r = rules_read(&eg->rules, EGRESS_FD_RULES, e);
	if (r < 0)
		return r;
	(void)close(EGRESS_FD_RULES);
	r = leave_streams();
	if (r == 0)
		r = confine();
	if (r < 0)
		return failed(e, r, "cannot confine itself");
	eg->connection_max = connection_limit(eg->rules.connections);
	r = channel_start(eg);
	if (r < 0)
		return failed(e, r, "the supervisor does not answer");
	/* Only a program that asks meanwhile waits for it, and not the whole session for ten thousand rules. */
	return rules_take(&eg->rules, e);
}

/* If stderr cannot be written, the status is enough. */
static int say_error(const struct error *e, int r)
{
	char text[1024];
	size_t size = error_format(e, text, sizeof(text));

	return fd_write_all(2, text, size) < 0 || r < 0 ? STATUS_CARREL : 0;
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	bool log = argc == 2 && !strcmp(argv[1], "--log");
	struct error e = { 0 };

	if (argc != 1 && !log)
		return say_error(&e, failed(&e, -EINVAL, "is started by carrel"));
	/* If the parent has ended before this call, the channel is closed, and that ends the program. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		sigaction(SIGPIPE, &ignore, NULL) < 0 ||
		/* A log at the caller's `ulimit -f` is one that takes no more lines. */
		sigaction(SIGXFSZ, &ignore, NULL) < 0)
		return STATUS_CARREL;
	struct egress *eg = calloc(1, sizeof(*eg));
	int r = eg ? prepare(eg, log, &e) : failed(&e, -ENOMEM, "cannot begin");
	if (r == 0)
		r = loop_run(&eg->loop);
	if (r < 0 && e.code != ERROR_NONE)
		return say_error(&e, r);
	return r < 0 || eg->failed ? STATUS_CARREL : 0;
}
