/*
 * coverer.c - see coverer.h.
 *
 * Runs in: the coverer; work_once() in its child.
 */
#include "host/cover/coverer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parent.h"
#include "box/rest.h"
#include "box/sys.h"
#include "host/process/confine_self.h"
#include "plan/embedded.h"

enum { ALARM_SECONDS = COVER_MOST_MS / 1000 + 3 };

/*
 * Where root itself made the mounts, the child needs these capabilities, and S has kept them as permitted (confine_self.h).
 * For an ordinary user this process needs none: its child gets every capability in the session's user namespace by entering
 * it (user_namespaces(7)).
 */
static int keep_capabilities(bool privileged)
{
	const unsigned kept = privileged ? CONFINE_COVERER : 0;
	return confine_self_capabilities(kept);
}

/* The numbers of the coverer's descriptors. */
enum { FD_SOCKET, FD_PROC, FD_VIEWS, FD_END = FD_VIEWS + VIEW_COUNT };

/* Keep these descriptors of S, and close all others. */
static int keep_descriptors(int socket, int proc, const int view[VIEW_COUNT])
{
	int from[FD_END] = { socket, proc };

	for (unsigned i = 0; i < VIEW_COUNT; i++)
		from[FD_VIEWS + i] = view[i];
	/* Move them out of the way first: one may have the number that another gets. */
	for (int i = 0; i < FD_END; i++)
		if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_END)) < 0)
			return -errno;
	for (int i = 0; i < FD_END; i++) {
		(void)close(i);
		if (from[i] >= 0 && dup3(from[i], i, O_CLOEXEC) < 0)
			return -errno;
	}
	return sys_close_range(FD_END, ~0U);
}

static _Noreturn void work_once(const struct cover_task *t, pid_t coverer)
{
	/* If a file system hangs, the alarm ends this process, and the kernel kills those that it stopped. */
	int r = parent_die_with(coverer, SIGKILL);

	(void)alarm(ALARM_SECONDS);
	t->board->result = r < 0 ? r : cover_again(t);
	_exit(t->board->result < 0 ? 1 : 0);
}

/* Answer each byte of S with one byte, when the child has ended. */
static _Noreturn void coverer_loop(const struct cover_task *t)
{
	const pid_t self = getpid();
	char byte;

	struct pollfd event = { .fd = FD_SOCKET, .events = POLLIN };

	while (rest_poll(t->box, &event, 1) > 0 && read(FD_SOCKET, &byte, 1) == 1) {
		struct cover_board *board = t->board;
		int status = 0;

		board->failed = COVER_FAILED_DIED;
		board->failed_op = -1;
		board->result = -ECHILD;
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		if (child == 0) {
			board->failed = COVER_FAILED_NOT;
			work_once(t, self);
		}
		if (child < 0 || waitpid(child, &status, __WALL) != child ||
			!WIFEXITED(status) ||
			(WEXITSTATUS(status) == 0) != (board->result == 0)) {
			board->failed = COVER_FAILED_DIED;
			board->result = -ECHILD;
		}
		if (write(FD_SOCKET, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

/* Keep /proc and the mount namespaces of the views, by their new numbers. */
static int take_descriptors(struct cover_task *t, int socket, int ret_view[VIEW_COUNT])
{
	int r = keep_descriptors(socket, t->proc, t->view);

	for (unsigned i = 0; i < VIEW_COUNT; i++)
		ret_view[i] = t->view[i] >= 0 ? FD_VIEWS + (int)i : -1;
	t->proc = FD_PROC;
	t->view = ret_view;
	return r;
}

/* @t keeps a pointer to @ret_view. */
static int set_up(struct cover_task *t, pid_t parent, int socket, int ret_view[VIEW_COUNT])
{
	sigset_t alarm_only;
	int r = parent_die_with(parent, SIGKILL);

	if (r < 0)
		return r;
	r = take_descriptors(t, socket, ret_view);
	if (r < 0)
		return r;
	/* The child waits for SIGCHLD, which stays blocked; SIGALRM has to end it. */
	(void)sigemptyset(&alarm_only);
	(void)sigaddset(&alarm_only, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
	(void)prctl(PR_SET_NAME, "carrel-coverer", 0, 0, 0);
	r = keep_capabilities(t->plan->facts->privileged);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return confine_self_filter(EMBEDDED_COVERER_FILTER);
}

_Noreturn void coverer_main(struct cover_task *t, pid_t parent, int socket)
{
	int view[VIEW_COUNT];

	/* The first byte reports to S that the coverer runs. */
	if (set_up(t, parent, socket, view) < 0 || write(FD_SOCKET, "", 1) != 1)
		_exit(1);
	coverer_loop(t);
}
