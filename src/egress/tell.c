/*
 * tell.c - see tell.h.
 *
 * Runs in: carrel-egress.
 */
#include "egress/tell.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/name.h"
#include "egress/egress.h"

enum { LINE_MAX_BYTES = 3000 }; /* below PIPE_BUF: a pipe that is ready takes it whole */

/* A line of the log. What stands before it is written where the last one broke off. */
struct line {
	char newline, text[LINE_MAX_BYTES];
};

static void count_lost(uint32_t *count)
{
	*count += *count < UINT32_MAX;
}

/* --- to the supervisor -------------------------------------------------------------------------- */

static int send_record(struct tell *t, const struct egress_record *record, int wait_ms)
{
	struct pollfd ready = { .fd = t->channel, .events = POLLOUT };

	for (;;) {
		ssize_t n =
			send(t->channel, record, sizeof(*record), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n == (ssize_t)sizeof(*record))
			return 0;
		if (n >= 0)
			return -EIO;
		if (errno != EAGAIN || wait_ms == 0)
			return -errno;
		if (poll(&ready, 1, wait_ms) < 0)
			return -errno;
		wait_ms = 0;
	}
}

int tell_record(
	struct tell *t, enum egress_kind kind, int32_t number, const char *text, int wait_ms)
{
	struct egress_record record = { .magic = EGRESS_MAGIC,
		.kind = (uint32_t)kind,
		.number = number,
		.rule = -1,
		.lost = kind == EGRESS_DONE ? t->lost : 0 };

	(void)snprintf(record.text, sizeof(record.text), "%s", text);
	return send_record(t, &record, wait_ms);
}

static void send_event(struct tell *t, const struct event *event, unsigned count)
{
	struct egress_record record = { .magic = EGRESS_MAGIC,
		.kind = EGRESS_EVENT,
		.decision = (uint32_t)event->decision,
		.number = event->errnum,
		.rule = event->rule,
		.port = event->port,
		.lost = t->lost,
		.count = count,
		.bytes_in = event->bytes_in,
		.bytes_out = event->bytes_out,
		.duration_us = event->duration_us };

	size_t length = strlen(event->name);
	(void)snprintf(record.text, sizeof(record.text), "%s", event->name);
	if (event->address && length + 1 < sizeof(record.text))
		(void)snprintf(record.text + length + 1, sizeof(record.text) - length - 1, "%s",
			event->address);
	if (send_record(t, &record, 0) == 0)
		t->lost = 0;
	else
		count_lost(&t->lost);
}

/* --- to the log --------------------------------------------------------------------------------- */

static void put_time(struct json *j)
{
	struct timespec now;
	struct tm tm;
	char text[64];

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with a valid clock */
	if (!gmtime_r(&now.tv_sec, &tm))
		return;
	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
		tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(int)(now.tv_nsec / 1000000));
	json_key(j, "time");
	json_string(j, text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	json_key(j, key);
	json_string(j, text);
}

static void put_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_unsigned(j, value);
}

static void put_event(
	struct json *j, const struct tell *t, const struct event *event, unsigned count)
{
	json_object_begin(j);
	put_time(j);
	put_text(j, "decision", egress_decision_name((uint32_t)event->decision));
	put_text(j, "name", event->name);
	if (event->port)
		put_number(j, "port", event->port);
	put_text(j, "address", event->address);
	put_text(j, "server_name", event->server_name);
	put_text(j, "why", event->why);
	if (event->errnum)
		put_text(j, "error", name_errno(event->errnum));
	char source[RULES_SOURCE_MAX];
	if (rules_source(t->rules, event->rule, source, sizeof(source))) {
		put_number(j, "rule", (uint64_t)event->rule);
		put_text(j, "source", source);
	}
	if (count > 1)
		put_number(j, "count", count);
	if (event->decision == EGRESS_ALLOWED || event->decision == EGRESS_PUBLISHED) {
		put_number(j, "bytes_in", event->bytes_in);
		put_number(j, "bytes_out", event->bytes_out);
		put_number(j, "duration_us", event->duration_us);
	}
	if (t->lost_log)
		put_number(j, "lost", t->lost_log);
	json_object_end(j);
}

/* @size: of the line's text. 0, or -errno; -EIO: it broke off, as on a disk that is full. */
static int write_whole(struct tell *t, const struct line *line, size_t size)
{
	const char *from = t->torn ? &line->newline : line->text;
	size_t all = size + t->torn;
	ssize_t n = write(t->log, from, all);

	if (n < 0)
		return -errno;
	t->torn = (size_t)n < all;
	return t->torn ? -EIO : 0;
}

/* Never wait for a reader of the log: count the lines that it misses. */
static void write_out(struct tell *t, struct json *j, const struct line *line)
{
	struct pollfd ready = { .fd = t->log, .events = POLLOUT };

	if (json_finish(j) == 0 && poll(&ready, 1, 0) == 1 && ready.revents & POLLOUT &&
		write_whole(t, line, j->out.used) == 0) {
		t->lost_log = 0;
		return;
	}
	count_lost(&t->lost_log);
	count_lost(&t->lost_log_all);
}

static void begin_line(struct line *line, struct json *j)
{
	line->newline = '\n';
	json_init(j, line->text, sizeof(line->text), NULL, NULL);
}

static void write_line(struct tell *t, const struct event *event, unsigned count)
{
	struct line line;
	struct json j;

	begin_line(&line, &j);
	put_event(&j, t, event, count);
	write_out(t, &j, &line);
}

void tell_rule(struct tell *t, size_t number, bool added, const char *line)
{
	char text[NETRULE_TEXT_MAX];
	struct line out;
	struct json j;

	if (t->log < 0)
		return;
	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\t"), line);
	begin_line(&out, &j);
	json_object_begin(&j);
	put_time(&j);
	put_text(&j, "decision", added ? "rule-added" : "rule-removed");
	put_text(&j, "name", text);
	put_number(&j, "rule", number);
	put_text(&j, "source", strchr(line, '\t') ? strchr(line, '\t') + 1 : NULL);
	json_object_end(&j);
	write_out(t, &j, &out);
}

/* --- putting together --------------------------------------------------------------------------- */

static void tell_now(struct tell *t, const struct event *event, unsigned count)
{
	send_event(t, event, count);
	if (t->log >= 0)
		write_line(t, event, count);
}

void tell_rest(struct tell *t)
{
	for (size_t i = 0; i < t->told_count; i++) {
		const struct told *told = &t->told[i];
		const struct event event = { .decision = told->decision,
			.name = told->name,
			.port = told->port,
			.rule = told->rule,
			.errnum = told->errnum,
			.duration_us = told->last_us };

		if (told->again > 0)
			tell_now(t, &event, told->again);
	}
	t->told_count = 0;
}

static void second_over(struct timer *timer)
{
	tell_rest(CONTAINER(timer, struct tell, timer));
}

/* If the same refusal was sent within this second, count it instead. */
static bool is_told(struct tell *t, const struct event *event)
{
	for (size_t i = 0; i < t->told_count; i++) {
		struct told *told = &t->told[i];

		if (told->decision != event->decision || told->port != event->port ||
			told->rule != event->rule || told->errnum != event->errnum ||
			strcmp(told->name, event->name) != 0)
			continue;
		told->again++;
		told->last_us = event->duration_us;
		return true;
	}
	return false;
}

static void tell_trouble(struct tell *t, const struct event *event)
{
	size_t length = strlen(event->name);

	if (length < TOLD_TEXT_MAX) {
		if (is_told(t, event))
			return;
		if (t->told_count < TOLD_MAX) {
			struct told *told = &t->told[t->told_count++];

			*told = (struct told){ .decision = event->decision,
				.port = event->port,
				.rule = event->rule,
				.errnum = event->errnum };
			memcpy(told->name, event->name, length);
			if (!t->timer.next)
				timer_set(t->loop, &t->timer, TIMER_TELL);
		}
	}
	tell_now(t, event, 1);
}

void tell_event(struct tell *t, const struct event *event)
{
	struct event trouble = *event;

	if (event->decision == EGRESS_ALLOWED || event->decision == EGRESS_PUBLISHED) {
		tell_now(t, event, 1);
		return;
	}
	trouble.duration_us = (uint64_t)clock_now_ns() / 1000;
	tell_trouble(t, &trouble);
}

void tell_init(struct tell *t, struct loop *loop, int channel, int log)
{
	t->loop = loop;
	t->channel = channel;
	t->log = log;
	t->timer.fire = second_over;
}
