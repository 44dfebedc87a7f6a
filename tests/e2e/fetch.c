/*
 * fetch.c - fetch NAME PORT: asks the C library's own resolver, which in a static program is musl's, and prints what a web server
 * answers. It runs inside of a session.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *name, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int r = getaddrinfo(name, port, &hints, &found);
	int fd = -1;

	if (r != 0) {
		fprintf(stderr, "fetch: %s: %s\n", name, gai_strerror(r));
		return -1;
	}
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

int main(int argc, char **argv)
{
	char buffer[512];
	int fd;
	ssize_t n;

	if (argc != 3)
		return 2;
	fd = connect_to(argv[1], argv[2]);
	if (fd < 0)
		return 1;
	if (dprintf(fd, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]) < 0)
		return 1;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		if (fwrite(buffer, 1, (size_t)n, stdout) != (size_t)n)
			return 1;
	return n < 0 || fflush(stdout) != 0;
}
