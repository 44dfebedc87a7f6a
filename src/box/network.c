/*
 * network.c - see network.h.
 *
 * Runs in: init, and monitors (network_count()). No heap, no stdio.
 */
#include "box/network.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box/channel.h"

enum {
	LOOPBACK_INDEX = 1, /* of every network namespace: loopback_net_init() of the kernel */
	OWN_BITS = 15,
	PORT_DNS = 53,
	BACKLOG = 4096, /* the kernel makes it less: net.core.somaxconn */
};

#define OWN_ADDRESS 0xc6120001u /* 198.18.0.1 */

/* fd63:6172:7265:6c00::/64: local to us, RFC 4193 3.1; the rest of the prefix is "carrel" */
static const struct net_local own_six = {
	.family = 6, .bits = 64, .address = { 0xfd, 'c', 'a', 'r', 'r', 'e', 'l', 0 }
};

struct request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg address;
		struct rtmsg route;
	};
	unsigned char attributes[64];
};

static void put_attribute(
	struct request *q, unsigned short type, const void *data, unsigned short size)
{
	struct rtattr *a =
		(struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(a), data, size);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + (unsigned)RTA_SPACE(size);
}

/* One request, and the kernel's answer to it. 0 or -errno. */
static int ask(struct request *q)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		unsigned char rest[128];
	} answer;
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	q->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	ssize_t n = sendto(
		fd, q, q->head.nlmsg_len, 0, (const struct sockaddr *)&kernel, sizeof(kernel));
	if (n >= 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	int r = n < 0 ? -errno
		: (size_t)n < sizeof(answer.head) + sizeof(answer.error) ||
			answer.head.nlmsg_type != NLMSG_ERROR
		? -EPROTO
		: answer.error.error;

	(void)close(fd);
	return r;
}

static int add_address(
	unsigned char family, const void *address, unsigned short size, unsigned char bits)
{
	struct request q = {
		.head = { .nlmsg_type = RTM_NEWADDR,
			.nlmsg_len = NLMSG_LENGTH(sizeof(q.address)) },
		.address = { .ifa_family = family,
			.ifa_prefixlen = bits,
			.ifa_scope = RT_SCOPE_HOST,
			.ifa_index = LOOPBACK_INDEX },
	};

	put_attribute(&q, IFA_LOCAL, address, size);
	put_attribute(&q, IFA_ADDRESS, address, size);
	return ask(&q);
}

static int add_route(const struct net_local *block)
{
	const uint32_t device = LOOPBACK_INDEX;
	bool four = block->family == 4;
	struct request q = {
		.head = { .nlmsg_type = RTM_NEWROUTE,
			.nlmsg_len = NLMSG_LENGTH(sizeof(q.route)) },
		.route = { .rtm_family = four ? AF_INET : AF_INET6,
			.rtm_dst_len = block->bits,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_scope = four ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			.rtm_type = RTN_LOCAL },
	};

	if (block->bits)
		put_attribute(&q, RTA_DST, block->address, four ? 4 : 16);
	put_attribute(&q, RTA_OIF, &device, sizeof(device));
	return ask(&q);
}

/* No IPv6 in this kernel, or none on the loopback (disable_ipv6). */
static bool is_lacking(int r)
{
	return r == -EAFNOSUPPORT || r == -EOPNOTSUPP || r == -EACCES || r == -ENODEV;
}

int network_address(void)
{
	const uint32_t four = htobe32(OWN_ADDRESS);
	unsigned char six[16];
	int r = add_address(AF_INET, &four, sizeof(four), OWN_BITS);

	if (r < 0)
		return r;
	memcpy(six, own_six.address, sizeof(six));
	six[15] = 1;
	/* A prefix of IPv6 does not make its addresses local: the route does. */
	r = add_address(AF_INET6, six, sizeof(six), 128);
	if (r >= 0)
		r = add_route(&own_six);
	return is_lacking(r) ? 0 : r < 0 ? r : 1;
}

int network_local(const struct net_local *block)
{
	int r = add_route(block);

	/* EEXIST: two lines about one block */
	return r == -EEXIST || (block->family == 6 && is_lacking(r)) ? 0 : r;
}

static int finish_listener(int fd, const void *address, socklen_t size, bool listens)
{
	if (bind(fd, address, size) < 0 || (listens && listen(fd, BACKLOG) < 0)) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	return fd;
}

static int open_resolver(int type)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htobe16(PORT_DNS),
		.sin_addr.s_addr = htobe32(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : finish_listener(fd, &at, sizeof(at), type == SOCK_STREAM);
}

/*
 * Open a listener for both families, if the kernel has IPv6. No option lets another socket have the
 * same port, so nothing inside can bind it beside this one.
 */
static int open_listener(uint16_t port)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htobe16(port) };
	const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htobe16(port) };
	const int off = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && errno == EAFNOSUPPORT) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		return fd < 0 ? -errno : finish_listener(fd, &four, sizeof(four), true);
	}
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	return finish_listener(fd, &six, sizeof(six), true);
}

/* The resolver's two sockets come first. */
static int open_socket(const struct plan *plan, size_t index)
{
	return index < 2 ? open_resolver(index ? SOCK_STREAM : SOCK_DGRAM)
			 : open_listener(plan->net_ports[index - 2]);
}

int network_listen(const struct plan *plan, int channel, bool six)
{
	size_t total = 2 + plan->net_port_count;
	int r = 0;

	for (size_t next = 0; next < total && r >= 0;) {
		const struct channel_record record = { .kind = CHANNEL_SOCKETS,
			.number = (next == 0 ? CHANNEL_SOCKETS_DNS : 0) |
				(six ? CHANNEL_SOCKETS_SIX : 0) };
		int fds[CHANNEL_FDS_MAX];
		unsigned count = 0;

		while (count < CHANNEL_FDS_MAX && next < total && r >= 0) {
			r = open_socket(plan, next++);
			if (r >= 0)
				fds[count++] = r;
		}
		if (r >= 0)
			r = channel_send(channel, &record, fds, count);
		for (unsigned i = 0; i < count; i++)
			(void)close(fds[i]);
	}
	return r < 0 ? r : 0;
}

/* Segments by which a port without a listener answers a SYN (RFC 9293 3.5.2): RST and ACK, sequence number 0. Not those of 127.0.0.0/8. */
static const struct sock_filter refusals_four[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 7, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x17),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 64),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

/* A raw socket of IPv6 begins behind the packet's header: raw(7). */
static const struct sock_filter refusals_six[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x17),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 20),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

/* Nothing is sent yet in here, and its filter stays for good: whoever has the socket reads no bytes of tools with it. */
static int open_refusals(int family, const struct sock_filter *code, size_t count)
{
	const struct sock_fprog program = { .len = (unsigned short)count,
		.filter = (struct sock_filter *)(uintptr_t)code };
	const int yes = 1;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)) == 0)
		return fd;
	int r = -errno;

	(void)close(fd);
	return r;
}

int network_refusals(int channel)
{
	const struct channel_record record = { .kind = CHANNEL_SOCKETS,
		.number = CHANNEL_SOCKETS_REFUSED };
	const size_t each = sizeof(struct sock_filter);
	int fds[] = { open_refusals(AF_INET, refusals_four, sizeof(refusals_four) / each),
		open_refusals(AF_INET6, refusals_six, sizeof(refusals_six) / each) };
	int found[2], r = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			found[count++] = fds[i];
	if (count > 0)
		r = channel_send(channel, &record, found, count);
	for (unsigned i = 0; i < count; i++)
		(void)close(found[i]);
	return r < 0 ? r : 0;
}

int network_pool(int channel)
{
	const struct channel_record record = { .kind = CHANNEL_SOCKETS,
		.number = CHANNEL_SOCKETS_POOL };
	static const int families[] = { AF_INET, AF_INET6 };
	int r = 0;

	for (size_t f = 0; f < 2 && r >= 0; f++)
		for (unsigned next = 0; next < CHANNEL_POOL && r >= 0;) {
			int fds[CHANNEL_FDS_MAX];
			unsigned count = 0;

			while (count < CHANNEL_FDS_MAX && next++ < CHANNEL_POOL && r >= 0) {
				r = socket(families[f],
					SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
				if (r >= 0)
					fds[count++] = r;
				else
					r = -errno;
			}
			if (r == -EAFNOSUPPORT && families[f] == AF_INET6)
				return 0;
			if (r >= 0)
				r = channel_send(channel, &record, fds, count);
			for (unsigned i = 0; i < count; i++)
				(void)close(fds[i]);
		}
	return r < 0 ? r : 0;
}

/* Bytes that are read of each file: what is looked for stands in its first half. */
enum { COUNTERS_MAX = 3968 };

/* --- counters --------------------------------------------------------------------------------- */

/* The number at @text; one that does not fit becomes the largest that does. */
static uint32_t read_number(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9' && value < UINT32_MAX; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static const char *next_word(const char *at)
{
	at += strcspn(at, " \n");
	return *at == ' ' ? at + 1 : NULL;
}

/* snmp has two lines for each protocol, "\nIp: NAME ..." and "\nIp: VALUE ...". */
static uint32_t read_column(const char *text, const char *line, const char *name)
{
	const char *names = strstr(text, line);
	const char *values = names ? strstr(names + 1, line) : NULL;
	const size_t length = strlen(name);

	for (names = names ? next_word(names + 1) : NULL,
	    values = values ? next_word(values + 1) : NULL;
		names && values; names = next_word(names), values = next_word(values))
		if (!strncmp(names, name, length) &&
			(names[length] == ' ' || names[length] == '\n'))
			return read_number(values);
	return 0;
}

/* snmp6 has "\nNAME  VALUE". */
static uint32_t read_row(const char *text, const char *name)
{
	const char *row = strstr(text, name);

	row = row ? row + strlen(name) : NULL;
	return row && (*row == ' ' || *row == '\t') ? read_number(row + strspn(row, " \t")) : 0;
}

/* Read the file behind a newline, so that each line has one in front of it. */
static bool read_counters(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t used = 1;
	ssize_t n = fd < 0 ? -1 : 1;

	ret[0] = '\n';
	while (n > 0 && used < size - 1) {
		n = read(fd, ret + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	ret[used] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return n >= 0;
}

static uint32_t sum(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

void network_count(uint32_t *ret_no_route, uint32_t *ret_no_listener)
{
	char text[COUNTERS_MAX];
	uint32_t route = 0, listener = 0;

	if (read_counters("/proc/net/snmp", text, sizeof(text))) {
		route = read_column(text, "\nIp:", "OutNoRoutes");
		listener = read_column(text, "\nUdp:", "NoPorts");
	}
	if (read_counters("/proc/net/snmp6", text, sizeof(text))) {
		route = sum(route, read_row(text, "\nIp6OutNoRoutes"));
		listener = sum(listener, read_row(text, "\nUdp6NoPorts"));
	}
	*ret_no_route = route;
	*ret_no_listener = listener;
}
