/*
 * capture.c - see capture.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { BLOCK = CAPTURE_BLOCK - CAPTURE_EARLY, TURNS = 16 };

/* Pass one block through the budget; @last: nothing follows. */
static void filter(struct capture *c, const char *data, size_t size, bool last)
{
	struct pump_filter f = budget_filter(&c->budget);
	struct pump_range pass = { 0 };
	size_t taken = f.take(f.context, data, size, last, &pass);

	buffer_add(&c->kept, data + pass.start, pass.end - pass.start);
	c->early_size = size - taken < sizeof(c->early) ? size - taken : 0;
	memcpy(c->early, data + taken, c->early_size);
}

/* Most commands write nothing to one stream or to both, so the budget is made when the first byte comes. */
static bool begin_budget(struct capture *c)
{
	if (c->begun)
		return true;
	if (budget_init(&c->budget, c->limit, c->max_bytes) < 0) {
		c->kept.failed = true;
		return false;
	}
	budget_save_in(&c->budget, c->dir, c->dir_path, c->name, false);
	c->begun = true;
	return true;
}

/* Let out what the budget held back until now: the marker and the tail. */
static void end_capture(struct capture *c)
{
	struct pump_filter f = budget_filter(&c->budget);
	size_t n;

	c->over = true;
	if (!c->begun)
		return;
	memcpy(c->block, c->early, c->early_size);
	filter(c, c->block, c->early_size, true);
	while ((n = f.rest(f.context, c->block, BLOCK)) > 0)
		buffer_add(&c->kept, c->block, n);
}

/* Read once; false: there is nothing more now. */
static bool read_once(struct capture *c)
{
	memcpy(c->block, c->early, c->early_size);
	ssize_t n = read(c->watch.fd, c->block + c->early_size, BLOCK);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0 || !begin_budget(c)) {
		end_capture(c);
		return false;
	}
	filter(c, c->block, c->early_size + (size_t)n, false);
	return n == BLOCK;
}

static void ready(struct watch *w, uint32_t events)
{
	struct capture *c = w->context;

	(void)events;
	for (int i = 0; i < TURNS && read_once(c); i++)
		;
	if (c->over)
		loop_forget(c->loop, w);
	if (c->passed)
		c->passed(c->context);
}

int capture_open(struct capture *c, struct loop *loop, char *block, uint64_t limit,
	uint64_t max_bytes, bool own_user, int *ret_write)
{
	int ends[2];

	*c = (struct capture){
		.loop = loop, .block = block, .limit = limit, .max_bytes = max_bytes, .dir = -1
	};
	c->budget.file = -1;
	c->watch = (struct watch){ .fd = -1, .ready = ready, .context = c };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	c->watch.fd = ends[0];
	/*
	 * A command that runs as another user must be able to open /dev/stdout, too. Nobody else has a name
	 * for this pipe.
	 */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
		(!own_user && fchmod(ends[1], 0666) < 0)) {
		int r = -errno;

		fd_close(&ends[1]);
		capture_free(c);
		return r;
	}
	*ret_write = ends[1];
	return 0;
}

int capture_start(struct capture *c, int dir, const char *dir_path, const char *name)
{
	c->dir = dir;
	c->dir_path = dir_path;
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	return loop_watch(c->loop, &c->watch, EPOLLIN);
}

/* Read as much as the pipe can hold, and no more: another execution that was given its end could write for ever. */
void capture_cut(struct capture *c)
{
	for (int i = 0; i < TURNS * 4 && !c->over && read_once(c); i++)
		;
	if (!c->over)
		end_capture(c);
}

void capture_close(struct capture *c)
{
	loop_close_watched(c->loop, &c->watch);
	if (c->begun)
		budget_free(&c->budget);
}

void capture_free(struct capture *c)
{
	capture_close(c);
	buffer_free(&c->kept);
}
