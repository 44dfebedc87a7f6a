/*
 * dial.c - see dial.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/egress.h"

static socklen_t address_of(
	const struct target *target, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	*ret = (struct sockaddr_storage){ 0 };
	if (target->family == 4) {
		memcpy(&four.sin_addr, target->address, 4);
		memcpy(ret, &four, sizeof(four));
		return sizeof(four);
	}
	memcpy(&six.sin6_addr, target->address, 16);
	memcpy(ret, &six, sizeof(six));
	return sizeof(six);
}

void target_text(const struct target *target, char ret[TARGET_TEXT_MAX])
{
	if (!inet_ntop(target->family == 4 ? AF_INET : AF_INET6, target->address, ret,
		    TARGET_TEXT_MAX))
		ret[0] = '\0';
}

static void end(struct dial *d)
{
	timer_clear(&d->timer);
	for (size_t i = 0; i < d->begun; i++)
		loop_close(d->loop, &d->attempts[i].watch);
	loop_free(d->loop, &d->doomed);
}

void dial_cancel(struct dial *dial)
{
	end(dial);
}

static void connected(struct dial *d, struct attempt *a)
{
	const struct target target = d->targets[a - d->attempts];
	int fd = a->watch.fd;

	if (loop_watch(d->loop, &a->watch, 0) < 0) {
		fd = -1; /* end() may not give it away, and closes it */
	} else {
		a->watch.fd = -1;
	}
	end(d);
	d->done(d->context, fd, fd < 0 ? NULL : &target, fd < 0 ? -EIO : 0);
}

static void begin_next(struct dial *d);

static void failed(struct dial *d, struct attempt *a, int error)
{
	loop_close(d->loop, &a->watch);
	d->ended++;
	if (d->error == 0)
		d->error = error;
	if (d->begun < d->count) {
		begin_next(d);
	} else if (d->ended == d->count) {
		end(d);
		d->done(d->context, -1, NULL, d->error);
	}
}

static void attempt_ready(struct watch *watch, uint32_t events)
{
	struct attempt *a = (struct attempt *)watch;
	int error = 0;
	socklen_t size = sizeof(error);

	(void)events;
	if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error)
		failed(a->dial, a, -error);
	else
		connected(a->dial, a);
}

/* 0: it is connecting; 1: it is connected; -errno. */
static int begin(struct dial *d, struct attempt *a)
{
	const struct target *target = &d->targets[a - d->attempts];
	struct sockaddr_storage address;
	socklen_t size = address_of(target, d->port, &address);
	int fd = socket(
		address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_IP);

	*a = (struct attempt){ .watch = { .fd = fd, .ready = attempt_ready }, .dial = d };
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, size) == 0)
		return 1;
	if (errno != EINPROGRESS)
		return -errno;
	return loop_watch(d->loop, &a->watch, EPOLLOUT);
}

/* Begin the next one that does not fail at once. */
static void begin_next(struct dial *d)
{
	while (d->begun < d->count) {
		struct attempt *a = &d->attempts[d->begun++];
		int r = begin(d, a);

		if (r > 0) {
			connected(d, a);
			return;
		}
		if (r == 0) {
			if (d->begun < d->count)
				timer_set(d->loop, &d->timer, TIMER_EYEBALL);
			return;
		}
		loop_close(d->loop, &a->watch);
		d->ended++;
		if (d->error == 0)
			d->error = r;
	}
	if (d->ended == d->count) {
		end(d);
		d->done(d->context, -1, NULL, d->error);
	}
}

static void quarter_over(struct timer *timer)
{
	begin_next(CONTAINER(timer, struct dial, timer));
}

void dial_start(struct loop *loop, struct dial *dial)
{
	dial->loop = loop;
	dial->timer.fire = quarter_over;
	begin_next(dial);
}
