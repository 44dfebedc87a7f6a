/*
 * serve_begin.c - a request for an execution is judged against the session's policy, and started.
 *
 * Runs in: S. May not: look at a request that its sender can still change; hand a descriptor to a tool
 * that could be a way out of the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "box/request.h"
#include "host/serve/server.h"
#include "host/stdio/passed.h"
#include "host/stdio/stdio_kind.h"
#include "plan/settings.h"

/* Checks the streams as `run` does: a client must relay what could be a way out of the session. */
static int check_streams(const struct facts *facts, const struct control_message *m,
	unsigned count, struct error *e)
{
	for (unsigned i = 0; i < count; i++) {
		enum stdio_kind kind;
		int access;
		const char *why = stdio_classify(m->fds[i], &kind, &access);

		if (!why && kind != STDIO_KIND_PIPE && kind != STDIO_KIND_HARMLESS &&
			kind != STDIO_KIND_UNIX && kind != STDIO_KIND_TERMINAL)
			why = "neither a pipe, nor a connected unix socket, nor a terminal";
		/* As in stdio_set_owner(), the owner only matters for reopening the pipe by name
		 * (/dev/stdout). */
		if (!why && kind == STDIO_KIND_PIPE && facts->privileged)
			(void)!fchown(m->fds[i], facts->kernel_uid, facts->kernel_gid);
		if (!why)
			continue;
		char on[] = "descriptor 0";
		on[strlen(on) - 1] = (char)('0' + i);
		int r = error_set(
			e, ERROR_DESCRIPTOR, "session", 0, on, "the descriptor is %s", why);
		error_hint(e, "send a pipe, and relay what comes out of it");
		return r;
	}
	return 0;
}

/* Check what is passed beside the streams, by the same rules for every client. */
static int check_passed(
	const struct plan *plan, const int *fds, const struct pass_numbers *to, struct error *e)
{
	const struct facts *facts = plan->facts;
	int r = passed_check(fds, to, plan->policy, e);

	for (unsigned i = 0; i < to->count && r >= 0 && facts->privileged; i++)
		passed_set_owner(fds[i], facts->kernel_uid, facts->kernel_gid);
	return r;
}

/* Maps a body that is sealed: the client cannot change it any more, whatever it does with its own
 * descriptor. */
static int map_sealed(int fd, const char **ret_data, size_t *ret_size)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) < 0 || st.st_size <= 0 ||
		st.st_size > (off_t)REQUEST_SIZE_MAX)
		return -EPROTO;
	void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret_data = data;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* What must be remembered of a request when its bytes are gone. */
struct accepted_request {
	struct request head;
	struct pass_numbers pass;
};

static int looser(struct error *e, const char *what)
{
	return error_set(e, ERROR_LOOSENS, "session", ERROR_OWN(EPERM), what,
		"an execution may tighten the session's policy and not loosen it");
}

/* Compare each limit that is asked for with the session's own. */
static int check_limits(const struct policy *policy, const uint64_t *requested, struct error *e)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *s = &settings_table[i];
		uint64_t value = s->limit ? requested[s->limit - 1] : 0;

		if (!value)
			continue;
		const struct number_value *have = policy_number(policy, s);
		if (have->set && value > have->value)
			return looser(e, s->name);
		if (s->kind == KIND_DURATION && value > TEXT_DURATION_MAX_MS)
			return error_set(e, ERROR_REQUEST, "session", ERROR_OWN(ERANGE),
				s->name, "a time limit is longer than the clock can count");
	}
	return 0;
}

static bool is_locked(const struct policy *policy, const char *setting)
{
	for (size_t i = 0; i < policy->lock_count; i++)
		if (!strcmp(policy->locks[i].word, setting))
			return true;
	return false;
}

static int check_variables(
	const struct policy *policy, const struct request_view *v, struct error *e)
{
	const char *at = v->envp;

	if (v->head.envc && is_locked(policy, "env"))
		return looser(e, "env");
	for (uint32_t i = 0; i < v->head.envc; i++, at = request_next(at))
		if (!strncmp(at, "CARREL_", 7) || !strncmp(at, "PWD=", 4))
			return error_set(e, ERROR_REQUEST, "session", 0, at,
				"carrel itself sets this variable");
	return v->cwd[0] && is_locked(policy, "cwd") ? looser(e, "cwd") : 0;
}

static int check_request(const struct server *s, const struct request_view *v, struct error *e)
{
	const struct policy *policy = s->plan->policy;
	uint32_t flags = v->head.flags;
	int r = check_limits(policy, v->head.limits, e);

	if (r < 0)
		return r;
	if ((flags & REQUEST_TTY) && (flags & REQUEST_DETACH))
		return error_set(
			e, ERROR_REQUEST, "session", 0, NULL, "a service has no terminal");
	if ((flags & REQUEST_TTY) && policy->tty == TTY_NO && is_locked(policy, "tty"))
		return looser(e, "tty");
	if (v->pass.count && is_locked(policy, "pass-fd"))
		return looser(e, "pass-fd");
	if ((flags & REQUEST_LOG) && !(flags & REQUEST_DETACH))
		return error_set(
			e, ERROR_REQUEST, "session", 0, NULL, "only a service has a log");
	return check_variables(policy, v, e);
}

/* Keeps the first words for `session show`, cut between characters, with unprintable bytes as
 * \xNN. */
static void note_command(struct slot *slot, const struct request_view *v)
{
	size_t used = 0;
	const char *at = v->argv;

	for (uint32_t i = 0; i < v->head.argc && used + 1 < sizeof(slot->command); i++) {
		const char *word = at;

		if (i)
			slot->command[used++] = ' ';
		used += text_visible(
			&word, "", slot->command + used, sizeof(slot->command) - used);
		at = request_next(at);
	}
}

static int check_name(const struct server *s, const struct request_view *v, struct error *e)
{
	size_t length = strlen(v->name);

	if (!length)
		return 0;
	/* `--stop` takes a name or a number, so a name that is a number could mean another
	 * service. */
	if (length >= sizeof(s->slots[0].name) || v->name[0] == '-' ||
		strspn(v->name, "0123456789") == length ||
		strspn(v->name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"0123456789._-") != length)
		return error_set(e, ERROR_REQUEST, "session", 0, v->name,
			"a service's name is made of letters, digits, '.', '_' and '-', and is not "
			"a number");
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].state != SLOT_FREE && !strcmp(s->slots[i].name, v->name))
			return error_set(e, ERROR_EXECUTION, "session", ERROR_OWN(EEXIST),
				v->name, "there is a service of that name already");
	return 0;
}

static int malformed_execution(int r, struct error *e)
{
	return error_set(e, ERROR_REQUEST, "session", r == -EPROTO ? 0 : -r, NULL,
		"the request for an execution is malformed");
}

/* Judge the body of a request, whether it came in its record or beside it. */
static int judge_body(const struct server *s, const struct control_message *m, const char *data,
	size_t size, struct accepted_request *ret, struct slot *note, struct error *e)
{
	struct request_view view;
	int r = request_read(data, size, &view);

	if (r < 0)
		return malformed_execution(r, e);
	if (m->head.streams != 7 && !(view.head.flags & REQUEST_TTY))
		return malformed_execution(-EPROTO, e);
	r = check_request(s, &view, e);
	if (r < 0)
		return r;
	r = check_name(s, &view, e);
	if (r < 0)
		return r;
	ret->head = view.head;
	ret->pass = view.pass;
	note_command(note, &view);
	(void)snprintf(note->name, sizeof(note->name), "%s", view.name);
	return 0;
}

static int judge_request(const struct server *s, const struct control_message *m,
	struct accepted_request *ret, struct slot *note, struct error *e)
{
	const char *data;
	size_t size;
	bool apart = m->head.body == CONTROL_BODY_FD;
	int r;

	unsigned streams = (unsigned)__builtin_popcount(m->head.streams);
	if (m->head.streams > 7 || streams + apart > m->fd_count)
		return malformed_execution(-EPROTO, e);
	if (apart) {
		r = map_sealed(m->fds[m->fd_count - 1], &data, &size);
		if (r < 0)
			return malformed_execution(r, e);
		r = judge_body(s, m, data, size, ret, note, e);
		(void)munmap((void *)data, size);
	} else {
		r = judge_body(s, m, m->body, m->size, ret, note, e);
	}
	if (r >= 0 && streams + ret->pass.count + apart != m->fd_count)
		r = malformed_execution(-EPROTO, e);
	if (r >= 0)
		r = check_streams(s->plan->facts, m, streams, e);
	return r < 0 ? r : check_passed(s->plan, m->fds + streams, &ret->pass, e);
}

static void set_timeout(const struct server *s, struct slot *slot, uint64_t requested_ms)
{
	const struct number_value *own = &s->plan->policy->timeout_ms;
	uint64_t ms = requested_ms ? requested_ms : own->set ? own->value : 0;

	slot->begun_ns = clock_now_ns();
	slot->moved = newpath_watch_count(&s->out->watch);
	slot->deadline_ns = ms ? slot->begun_ns + (int64_t)ms * 1000000 : 0;
}

static struct cgroup_limits limits_of(const struct request *head)
{
	return (struct cgroup_limits){
		.memory_bytes = head->limits[EXECUTION_MEMORY],
		.tasks = head->limits[EXECUTION_PIDS],
		.cpu_milli = head->limits[EXECUTION_CPUS],
	};
}

/* The monitor goes into the group, where there is one, before the command can start. */
static int enter_group(
	struct server *s, struct slot *slot, const struct request *head, struct error *e)
{
	const struct cgroup_limits requested = limits_of(head);
	char name[32];

	(void)snprintf(name, sizeof(name), "exec-%u", (unsigned)slot->number);
	int r = limits_execution(s->settings->limits, name, &requested, &slot->group, e);
	if (r < 0 || slot->group.dir < 0)
		return r;
	cgroup_read(&s->settings->limits->session.group, &slot->before);
	/* "0" would be the supervisor itself. */
	r = slot->host_pid > 0 ? cgroup_enter(&slot->group, slot->host_pid) : -ESRCH;
	return r < 0 ? error_set(e, ERROR_UNAVAILABLE, "session", -r, NULL,
			       "the execution cannot be moved into its cgroup")
		     : 0;
}

/* Hands the request and its descriptors to the monitor, which starts the command. */
static int send_exec(struct server *s, struct slot *slot, const struct control_message *m,
	const struct request *head, bool in_front, struct error *e)
{
	struct channel_record record = { .kind = CHANNEL_EXEC,
		.flag = in_front,
		.streams = m->head.streams,
		.body = m->head.body };
	int r = enter_group(s, slot, head, e);

	if (r < 0)
		return r;
	record.number = slot->group.dir >= 0;
	set_timeout(s, slot, head->limits[EXECUTION_TIMEOUT]);
	server_make_busy(s, slot, SLOT_RUNNING);
	r = channel_send_body(slot->channel, &record, m->fds, m->fd_count, m->body, m->size);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the execution cannot be started")
		     : 0;
}

static void accept_execution(struct server *s, struct slot *slot, unsigned client)
{
	const struct control_record record = {
		.kind = CONTROL_ACCEPTED, .tag = slot->tag, .execution = slot->number
	};

	server_answer(s, (int)client, &record, NULL, 0, NULL, 0);
}

/* The request waits with its descriptors: for the client's terminal, or for the monitor's pid. */
static int keep_request(
	struct server *s, struct slot *slot, struct control_message *m, struct error *e)
{
	struct control_message *kept = malloc(sizeof(*kept));

	if (!kept)
		return error_no_memory(e, "session");
	memcpy(kept, m, offsetof(struct control_message, body) + m->size + 1);
	m->fd_count = 0;
	slot->request = kept;
	server_make_busy(s, slot, SLOT_PTY);
	return 0;
}

static int begin_pty(
	struct server *s, struct slot *slot, struct control_message *m, struct error *e)
{
	const struct channel_record record = { .kind = CHANNEL_PTY };
	int r = keep_request(s, slot, m, e);

	if (r < 0)
		return r;
	slot->has_tty = true;
	r = server_send_monitor(slot, &record);
	return r < 0 ? error_set(e, ERROR_LIMIT, "session", -r, NULL,
			       "the execution cannot be started")
		     : 0;
}

/* What the session does not allow anyway needs no tighter view. */
static unsigned choose_view(const struct plan *plan, const struct request *head)
{
	unsigned view = 0;

	if ((head->flags & REQUEST_WORKSPACE_RO) &&
		plan->policy->workspace_mode != WORKSPACE_RO)
		view |= VIEW_WORKSPACE_RO;
	if ((head->flags & REQUEST_NET_NONE) && plan->policy->net != NET_NONE)
		view |= VIEW_NET_NONE;
	return view;
}

static int begin_execution(struct server *s, struct slot *slot, struct control_message *m,
	const struct request *head, struct error *e)
{
	const struct cgroup_limits requested = limits_of(head);

	if (head->flags & REQUEST_TTY)
		return begin_pty(s, slot, m, e);
	/* The monitor has not reported yet which process the group is for. */
	slot->waits =
		!slot->host_pid && limits_execution_needs(s->settings->limits, &requested);
	return slot->waits ? keep_request(s, slot, m, e)
			   : send_exec(s, slot, m, head, false, e);
}

int server_begin_execution(
	struct server *s, unsigned client, struct control_message *m, struct error *e)
{
	struct slot note = { 0 };
	struct accepted_request request = { 0 };
	int r = judge_request(s, m, &request, &note, e);

	if (r < 0)
		return r;
	struct slot *slot = server_take_monitor(
		s, client, m->head.tag, choose_view(s->plan, &request.head), e);
	if (!slot)
		return -EAGAIN;
	memcpy(slot->name, note.name, sizeof(slot->name));
	memcpy(slot->command, note.command, sizeof(slot->command));
	slot->number = ++s->last_number;
	slot->detached = (request.head.flags & REQUEST_DETACH) != 0;
	const uint64_t *limits = request.head.limits;
	slot->grace_ms = (int64_t)(limits[EXECUTION_GRACE] ? limits[EXECUTION_GRACE]
							   : s->plan->policy->grace_ms.value);
	slot->cpu_time = limits[EXECUTION_CPU_TIME] || s->plan->policy->cpu_time_ms.set;
	slot->file_size = limits[EXECUTION_FILE_SIZE] || s->plan->policy->file_size.set;
	s->out->executions++;
	if (request.head.flags & REQUEST_LOG)
		r = server_log_begin(s, slot, m, e);
	if (r >= 0)
		r = begin_execution(s, slot, m, &request.head, e);
	if (r < 0) {
		server_free_slot(s, slot);
		return r;
	}
	accept_execution(s, slot, client);
	server_fill_spare(s);
	return 0;
}

int server_start_prepared(struct server *s, struct slot *slot, bool in_front, struct error *e)
{
	struct control_message *m = slot->request;
	struct request head;
	int r = 0;

	if (slot->state != SLOT_PTY || !m)
		return error_set(e, ERROR_REQUEST, "session", 0, NULL,
			"this execution does not wait for its terminal");
	if (m->head.body != CONTROL_BODY_FD)
		memcpy(&head, m->body, sizeof(head));
	else if (pread(m->fds[m->fd_count - 1], &head, sizeof(head), 0) != sizeof(head))
		r = error_set(e, ERROR_REQUEST, "session", EIO, NULL,
			"the request cannot be read again");
	if (r >= 0)
		r = send_exec(s, slot, m, &head, in_front, e);
	slot->request = NULL;
	control_close_fds(m);
	free(m);
	return r;
}

void server_monitor_known(struct server *s, struct slot *slot)
{
	const struct control_record request = { .tag = slot->tag };
	struct error e = { 0 };

	if (!slot->waits)
		return;
	slot->waits = false;
	if (server_start_prepared(s, slot, false, &e) >= 0)
		return;
	server_refuse(s, slot->client, &request, &e);
	server_free_slot(s, slot);
}
