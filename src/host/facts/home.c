/*
 * home.c - see home.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/fd.h"
#include "host/facts/facts.h"

#define ACCOUNTS "/etc/passwd"
enum { ACCOUNTS_MAX = 8 << 20, FIELD_UID = 2, FIELD_HOME = 5 };

/* Field @n of the line at @line, of *@ret_size bytes; NULL where there are not so many. */
static const char *account_field(const char *line, unsigned n, size_t *ret_size)
{
	for (; n > 0; n--) {
		line += strcspn(line, ":\n");
		if (*line++ != ':')
			return NULL;
	}
	*ret_size = strcspn(line, ":\n");
	return line;
}

/* The caller's home in the lines of @accounts, *@ret_size bytes long; NULL: the caller has no line. */
static const char *find_account(const char *accounts, size_t *ret_size)
{
	char uid[16];
	size_t size;
	size_t length = (size_t)snprintf(uid, sizeof(uid), "%u", (unsigned)getauxval(AT_UID));

	for (const char *line = accounts; *line;) {
		const char *found = account_field(line, FIELD_UID, &size);

		if (found && size == length && !memcmp(found, uid, length)) {
			const char *home = account_field(line, FIELD_HOME, ret_size);

			return home && home[0] == '/' ? home : NULL;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return NULL;
}

/* Read here: getpwuid(3) would bring stdio and a client of nscd into the launcher. */
static int look_up(struct arena *a, const char **ret_home)
{
	autofd int fd = fd_open_at(AT_FDCWD, ACCOUNTS, O_RDONLY, 0);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	size_t room, size = 0;
	char *accounts = arena_rest(a, &room);
	if (room <= ACCOUNTS_MAX)
		return -ENOMEM;
	ssize_t n = fd_read_file(fd, accounts, ACCOUNTS_MAX);
	if (n < 0) {
		(void)arena_keep(a, 0, ACCOUNTS_MAX + 1);
		return (int)n;
	}
	const char *home = find_account(accounts, &size);
	if (home) {
		memmove(accounts, home, size);
		accounts[size] = '\0';
		*ret_home = accounts;
	}
	(void)arena_keep(a, home ? size + 1 : 0, (size_t)n + 1);
	return 0;
}

static int home_error(int r, struct error *e)
{
	r = error_set(e, ERROR_INTERNAL, "facts", -r, ACCOUNTS,
		"the account's home cannot be looked up");
	error_hint(e, "carrel hides keys and credentials in it, wherever HOME is");
	return r;
}

int home_find(
	const char **ret, struct arena *a, const char *const *environment, struct error *e)
{
	const char *home = facts_env(environment, "HOME");

	if (!home || home[0] != '/') {
		home = NULL;
		int r = look_up(a, &home);
		if (r < 0)
			return home_error(r, e);
	}
	*ret = home;
	return 0;
}

int home_of_account(const char **ret, struct arena *a, const char *home, struct error *e)
{
	const char *account = NULL;
	int r = look_up(a, &account);

	if (r < 0)
		return home_error(r, e);
	bool other = account && account[strspn(account, "/")] &&
		(!home || strcmp(home, account) != 0);
	*ret = other ? account : NULL;
	return 0;
}
