/*
 * home.c - see home.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/fd.h"
#include "host/facts.h"

#define ACCOUNTS "/etc/passwd"
enum { ACCOUNTS_MAX = 8 << 20, FIELD_UID = 2, FIELD_HOME = 5 };

/* Field @n of the line at @line, of *@ret_size bytes; NULL where there are not so many. */
static const char *field(const char *line, unsigned n, size_t *ret_size)
{
	for (; n > 0; n--) {
		line += strcspn(line, ":\n");
		if (*line++ != ':')
			return NULL;
	}
	*ret_size = strcspn(line, ":\n");
	return line;
}

/* Read here: getpwuid(3) would bring stdio and a client of nscd into the launcher. */
static int find_account(const char *accounts, struct arena *a, const char **ret_home)
{
	char uid[16];
	size_t size;
	size_t length = (size_t)snprintf(uid, sizeof(uid), "%u", (unsigned)getauxval(AT_UID));

	for (const char *line = accounts; *line;) {
		const char *found = field(line, FIELD_UID, &size);

		if (found && size == length && !memcmp(found, uid, length)) {
			const char *home = field(line, FIELD_HOME, &size);

			if (!home || home[0] != '/')
				return 0;
			*ret_home = arena_copy(a, home, size);
			return *ret_home ? 0 : -ENOMEM;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

static int look_up(struct arena *a, const char **ret_home)
{
	autofd int fd = fd_open_at(AT_FDCWD, ACCOUNTS, O_RDONLY, 0);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	char *accounts = arena_alloc(a, ACCOUNTS_MAX + 1);
	ssize_t n = accounts ? fd_read_file(fd, accounts, ACCOUNTS_MAX) : -ENOMEM;
	return n < 0 ? (int)n : find_account(accounts, a, ret_home);
}

static int fail(int r, struct error *e)
{
	r = error_set(e, ERROR_INTERNAL, "facts", -r, ACCOUNTS,
		"the account's home cannot be looked up");
	error_hint(e, "keys and credentials in it are to be hidden, wherever HOME is");
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
			return fail(r, e);
	}
	*ret = home;
	return 0;
}

int home_of_account(const char **ret, struct arena *a, const char *home, struct error *e)
{
	const char *account = NULL;
	int r = look_up(a, &account);

	if (r < 0)
		return fail(r, e);
	bool other = account && account[strspn(account, "/")] &&
		(!home || strcmp(home, account) != 0);
	*ret = other ? account : NULL;
	return 0;
}
