/*
 * site.c - see site.h.
 *
 * Runs in: the torture driver.
 */
#include "site.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum {
	SYSCALL_LENGTH = 2, /* 0f 05 */
	DR7_EXECUTE_0 = 1 /* register 0 is enabled, for execution of the byte at its address */
};

uint64_t site_of(uint64_t instruction_pointer)
{
	return instruction_pointer - SYSCALL_LENGTH;
}

static int set_register(pid_t pid, unsigned number, uint64_t value)
{
	size_t at = offsetof(struct user, u_debugreg) + number * sizeof(long);

	return ptrace(PTRACE_POKEUSER, pid, at, value) < 0 ? -errno : 0;
}

int site_arm(pid_t pid, uint64_t site)
{
	int r = set_register(pid, 0, site);

	return r < 0 ? r : set_register(pid, 7, DR7_EXECUTE_0);
}

void site_disarm(pid_t pid)
{
	(void)set_register(pid, 7, 0); /* at worst it goes on stopping there */
}

bool site_is_at(pid_t pid, uint64_t site)
{
	errno = 0;
	long at = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), NULL);

	return !errno && (uint64_t)at == site;
}
#else
uint64_t site_of(uint64_t instruction_pointer)
{
	return instruction_pointer;
}

int site_arm(pid_t pid, uint64_t site)
{
	(void)pid;
	(void)site;
	return -ENOSYS;
}

void site_disarm(pid_t pid)
{
	(void)pid;
}

bool site_is_at(pid_t pid, uint64_t site)
{
	(void)pid;
	(void)site;
	return false;
}
#endif

/* Not inlined: it has one address, at which it begins. */
__attribute__((noinline)) static void stand(void)
{
	__asm__ volatile("nop");
}

static bool stops_at(pid_t child, uint64_t site)
{
	int status;

	if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status) ||
		ptrace(PTRACE_SEIZE, child, NULL, (long)PTRACE_O_EXITKILL) < 0 ||
		waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
		site_arm(child, site) < 0 || kill(child, SIGCONT) < 0)
		return false;
	/* The end of the group's stop and SIGCONT itself come first. */
	for (int i = 0; i < 8 && WIFSTOPPED(status); i++) {
		if (WSTOPSIG(status) == SIGTRAP && site_is_at(child, site))
			return true;
		if (ptrace(PTRACE_CONT, child, NULL, NULL) < 0 ||
			waitpid(child, &status, 0) != child)
			return false;
	}
	return false;
}

bool site_works(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (raise(SIGSTOP) == 0)
			stand();
		_exit(0);
	}
	if (child < 0)
		return false;
	bool stops = stops_at(child, (uint64_t)(uintptr_t)stand);
	(void)kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) == child && !WIFEXITED(status) &&
		!WIFSIGNALED(status))
		;
	return stops;
}
