/*
 * login.c - see login.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/egress/login.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/fd.h"

static int refuse(struct error *e, const char *file, int errnum, const char *what)
{
	return error_set(e, ERROR_PATH, "options", errnum, file, "%s", what);
}

/* The length of the first line, which carrel-egress will send in a header field; 0: it is no login. */
static size_t line_length(const char *text, size_t size)
{
	size_t length = 0;

	while (length < size && text[length] != '\n')
		length++;
	if (length > 0 && length < size && text[length - 1] == '\r')
		length--;
	/* RFC 7617 2: neither of the two has control characters. */
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return 0;
	return memchr(text, ':', length) ? length : 0;
}

static void encode(const char *text, size_t size, char ret[LOGIN_TEXT_MAX])
{
	const uint8_t *at = (const uint8_t *)text;

	for (; size > 0; at += 3, size -= size < 3 ? size : 3, ret += 4)
		base64_group(at, size, ret);
	*ret = '\0';
}

static int check_mode(int fd, const char *file, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(e, file, errno, "cannot read the login of the proxy");
	if (!S_ISREG(st.st_mode) || !(st.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	int r = refuse(
		e, file, ERROR_OWN(EPERM), "other users may read the login of the proxy");
	error_hint(e, "make it yours alone: chmod 600 FILE");
	return r;
}

int login_read(const char *file, const struct toolplace *place, struct arena *a,
	char ret[LOGIN_TEXT_MAX], struct error *e)
{
	char text[LOGIN_BYTES_MAX + 2];
	autofd int fd = toolplace_open(place, a, file, e);

	if (fd < 0)
		return fd;
	int r = check_mode(fd, file, e);
	if (r < 0)
		return r;
	ssize_t n = fd_read_up_to(fd, text, sizeof(text));
	if (n < 0)
		return refuse(e, file, (int)-n, "cannot read the login of the proxy");
	size_t length = line_length(text, (size_t)n);
	if (length > 0 && length <= LOGIN_BYTES_MAX)
		encode(text, length, ret);
	explicit_bzero(text, sizeof(text));
	if (length > 0 && length <= LOGIN_BYTES_MAX)
		return 0;
	r = refuse(e, file, ERROR_OWN(EINVAL), "this is not the login of a proxy");
	error_hint(e, "its first line is USER:PASSWORD, of %d bytes at most", LOGIN_BYTES_MAX);
	return r;
}
