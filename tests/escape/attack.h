/*
 * attack.h - what the attack programs of the escape tests share.
 *
 * Runs in: the attack programs, inside a session and, for the control arm, outside of any.
 * An attack returns 0 when it got what it was after, -errno when it was refused, or one of the
 * words below. The last line on stdout is the verdict: `escaped`, `refused:EPERM`, `absent`,
 * `held`, or `killed:SIGSYS`. The status is 0 whatever the verdict, 2 for a wrong call.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ATTACK_ABSENT = -10000, /* what was to be attacked is not there */
	ATTACK_HELD = -10001,   /* nothing was refused, and nothing was gained */
};

struct attack {
	const char *name;
	int args; /* how many it takes at least */
	int (*run)(char *const *arg);
};

/* -errno of a call that returns -1, else 0. */
static inline int attack_result(long result)
{
	return result < 0 ? -errno : 0;
}

static inline const char *attack_errno_name(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ EPERM, "EPERM" },
		{ ENOENT, "ENOENT" },
		{ ESRCH, "ESRCH" },
		{ EIO, "EIO" },
		{ ENXIO, "ENXIO" },
		{ EBADF, "EBADF" },
		{ EACCES, "EACCES" },
		{ EFAULT, "EFAULT" },
		{ EBUSY, "EBUSY" },
		{ EEXIST, "EEXIST" },
		{ EXDEV, "EXDEV" },
		{ ENODEV, "ENODEV" },
		{ ENOTDIR, "ENOTDIR" },
		{ EISDIR, "EISDIR" },
		{ EINVAL, "EINVAL" },
		{ ENOTTY, "ENOTTY" },
		{ EROFS, "EROFS" },
		{ ENOSYS, "ENOSYS" },
		{ ENOSPC, "ENOSPC" },
		{ EUSERS, "EUSERS" },
		{ ENOTEMPTY, "ENOTEMPTY" },
		{ ELOOP, "ELOOP" },
		{ ENOKEY, "ENOKEY" },
		{ EAFNOSUPPORT, "EAFNOSUPPORT" },
		{ EPROTONOSUPPORT, "EPROTONOSUPPORT" },
		{ ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT" },
		{ ENETUNREACH, "ENETUNREACH" },
		{ ECONNREFUSED, "ECONNREFUSED" },
		{ EOPNOTSUPP, "EOPNOTSUPP" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].error == error)
			return names[i].name;
	return NULL;
}

static inline void attack_say(int verdict)
{
	const char *name = attack_errno_name(-verdict);

	if (verdict >= 0)
		(void)printf("escaped\n");
	else if (verdict == ATTACK_ABSENT)
		(void)printf("absent\n");
	else if (verdict == ATTACK_HELD)
		(void)printf("held\n");
	else if (name)
		(void)printf("refused:%s\n", name);
	else
		(void)printf("refused:%d\n", -verdict);
	(void)fflush(stdout);
}

/* In a child: a filter may end it. */
static inline int attack_in_child(const struct attack *attack, char *const *arg)
{
	int status;

	(void)fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		attack_say(attack->run(arg));
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	if (WIFSIGNALED(status))
		(void)printf("killed:%s\n", WTERMSIG(status) == SIGSYS ? "SIGSYS" : "other");
	return WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
}

static inline int attack_main(
	int argc, char *const *argv, const struct attack *list, size_t count)
{
	for (size_t i = 0; argc > 1 && i < count; i++)
		if (!strcmp(list[i].name, argv[1]) && argc - 2 >= list[i].args)
			return attack_in_child(&list[i], argv + 2);
	(void)fprintf(stderr, "%s: no such attack, or too few arguments\n", argv[0]);
	return 2;
}
