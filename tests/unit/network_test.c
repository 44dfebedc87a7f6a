/*
 * network_test.c - box/network: which addresses a network namespace has for its own, with IPv6 and without.
 *
 * Runs in: the tests; each case in a child with namespaces of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "box/network.h"

enum { STATUS_SKIP = 77, ADDRESSES = 1, NO_SIX = 2 };

static bool loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

static bool disable_six(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "1", 1) == 1;
}

/* Whether what connects there finds a listener of this namespace: the address is one of its own. */
static bool is_local(const char *text)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return listener >= 0 && fd >= 0 && listen(listener, 1) == 0 &&
		getsockname(listener, (struct sockaddr *)&at, &size) == 0 &&
		inet_pton(AF_INET6, text, &at.sin6_addr) == 1 &&
		connect(fd, (const struct sockaddr *)&at, size) == 0;
}

/* The child: 0, or the line of what is not so. */
static int look(unsigned how)
{
	const bool six = (how & ADDRESSES) && !(how & NO_SIX);

	if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)) < 0 || !loopback_up() ||
		((how & NO_SIX) && !disable_six()))
		return STATUS_SKIP;
	if ((how & ADDRESSES) && network_address() != six)
		return __LINE__;
	if (is_local("::ffff:198.18.0.7") != !!(how & ADDRESSES))
		return __LINE__;
	if (is_local("fd63:6172:7265:6c00::7") != six || is_local("fd63:6172:7265:6c01::7"))
		return __LINE__;
	const struct net_local block = {
		.family = 6, .bits = 32, .address = { 0x26, 0, 0x12, 0x34 }
	};
	if (!(how & ADDRESSES))
		return 0;
	if (network_local(&block) != 0 || network_local(&block) != 0) /* twice: two lines */
		return __LINE__;
	return is_local("2600:1234::1") == six ? 0 : __LINE__;
}

static void look_apart(unsigned how)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(look(how));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == STATUS_SKIP)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void nothing_is_local_before(void **state)
{
	(void)state;
	look_apart(0);
}

static void both_blocks_are_local(void **state)
{
	(void)state;
	if (access("/proc/net/if_inet6", F_OK) < 0)
		skip();
	look_apart(ADDRESSES);
}

static void without_six_there_is_four(void **state)
{
	(void)state;
	if (access("/proc/net/if_inet6", F_OK) < 0)
		skip();
	look_apart(ADDRESSES | NO_SIX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_local_before),
		cmocka_unit_test(both_blocks_are_local),
		cmocka_unit_test(without_six_there_is_four),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
