/*
 * narrator.c - see narrator.h.
 *
 * Runs in: the narrator.
 */
#include "host/explain/narrator.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parent.h"
#include "box/sys.h"
#include "host/process/libexec.h"

enum { WORDS_MAX = 8192, FD_WORD = 3, FD_FIRST = 4 };

/* Keep the board at 0, the answer at 1, and @word. The caller's stderr must not stay open as long as a session lives. */
static int keep_descriptors(int word, int memory, int answer)
{
	const int null = fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	const int from[] = { memory, answer, null, word }, to[] = { 0, 1, 2, FD_WORD };
	enum { COUNT = sizeof(from) / sizeof(from[0]) };
	int up[COUNT];

	for (int i = 0; i < COUNT; i++)
		if (from[i] < 0 || (up[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_FIRST)) < 0)
			return -1;
	for (int i = 0; i < COUNT; i++)
		if (dup3(up[i], to[i], to[i] == FD_WORD ? O_CLOEXEC : 0) < 0 && up[i] != to[i])
			return -1;
	return sys_close_range(FD_FIRST, ~0U);
}

_Noreturn void narrator_main(const char *const *settings, size_t count, pid_t parent, int word,
	int memory, int answer)
{
	static const char *words[WORDS_MAX + 3]; /* too many for the stack */
	char byte, path[PATH_MAX / 2];
	sigset_t none;

	if (parent_die_with(parent, SIGKILL) < 0 || count > WORDS_MAX ||
		keep_descriptors(word, memory, answer) < 0)
		_exit(1);
	words[0] = "carrel-policy";
	words[1] = "explain";
	for (size_t i = 0; i < count; i++)
		words[2 + i] = settings[i];
	if (read(FD_WORD, &byte, 1) != 1 || sigemptyset(&none) < 0 ||
		sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(1);
	if (libexec_path("carrel-policy", path, sizeof(path)) == 0)
		(void)execv(path, (char *const *)words);
	_exit(1);
}
