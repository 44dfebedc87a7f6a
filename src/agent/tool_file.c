/*
 * tool_file.c - see tool_file.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/tool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void tool_file_free(struct tool_file *f)
{
	agent_session_forget(f->session, &f->request);
	buffer_free(&f->path);
	buffer_free(&f->hidden);
	buffer_free(&f->held);
	free(f);
}

/* What the model can do about it. */
static const char *advice(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return "There is no such file or directory. A relative path is in the scratch; the "
		       "tool `list` shows what is there, `exec` with `mkdir -p` makes directories";
	case EACCES:
	case EPERM:
	case EROFS:
		return "The session may not do that. It writes in the workspace and in the scratch, but "
		       "not to protected files, and does not read what is hidden; the tool `status` "
		       "shows the places";
	case ENOTDIR:
		return "It is a file, not a directory: use the tool `read`";
	case EISDIR:
		return "It is a directory: use the tool `list`";
	case ENXIO:
	case ENODEV:
		return "It is not a regular file";
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return "There is no space left: remove files that are no longer needed";
	case ELOOP:
		return "It has too many symbolic links, or they form a loop";
	default:
		return "The tool `status` shows the places of the session";
	}
}

void tool_file_refuse(struct tool_file *f, int errnum)
{
	struct call *c = f->call;
	autobuffer struct buffer path = f->path, hidden = f->hidden;

	f->path = f->hidden = (struct buffer){ 0 };
	tool_file_free(f);
	if (hidden.used > 0)
		call_refuse(c,
			"%s: the policy hides it: %s. The user can change that, no tool can",
			path.data, hidden.data);
	else
		call_refuse(c, "%s: %s. %s", path.data ? path.data : "", strerror(errnum),
			advice(errnum));
}

static int ask(struct tool_file *f, enum control_kind kind)
{
	struct control_record record = { .kind = (uint16_t)kind };

	if (kind == CONTROL_OPEN) {
		record.number = f->flags;
		record.streams = f->mode;
	}
	return agent_session_send(
		f->session, &f->request, &record, f->path.data, f->path.used + 1, NULL, 0);
}

/* The session has classified the path: go on, or say why not. A hidden file can be opened, and is empty. */
static void judged(struct tool_file *f, const struct control_message *m)
{
	struct call *c = f->call;
	json_t *said = agent_session_json(m->body, m->size);
	const char *surface = json_string_value(json_object_get(said, "surface"));
	const char *why = json_string_value(json_object_get(said, "why"));
	const char *rule = json_string_value(json_object_get(said, "rule"));
	bool reads = (f->flags & O_ACCMODE) == O_RDONLY;

	agent_session_forget(f->session, &f->request);
	if (reads && surface && !strcmp(surface, "hidden"))
		buffer_text(&f->hidden, rule ? rule : "by default");
	if (reads || json_is_true(json_object_get(said, "write"))) {
		int r = ask(f, CONTROL_OPEN);

		json_decref(said);
		if (r < 0)
			tool_file_refuse(f, -r);
		return;
	}
	struct buffer path = f->path;
	f->path = (struct buffer){ 0 };
	tool_file_free(f);
	/* The line often says why, and more than the surface does. If it does not, the surface says what kind of place this is. */
	bool said_twice = surface && why && !strncmp(why, surface, strlen(surface));
	call_refuse(c, "%s cannot be written: %s%s%s. %s", path.data,
		said_twice || !surface ? "" : surface, said_twice || !surface ? "" : ", ",
		why ? why : "no reason was given", advice(EROFS));
	buffer_free(&path);
	json_decref(said);
}

static void file_answered(struct session_request *a, struct control_message *m)
{
	struct tool_file *f = (struct tool_file *)a;
	struct call *c = f->call;
	autobuffer struct buffer why = { 0 };

	if (m && m->head.kind == CONTROL_TEXT)
		return judged(f, m);
	if (m && m->head.kind == CONTROL_OPENED && m->fd_count == 1)
		return f->opened(f, &m->fds[0], m->size ? m->body : f->path.data);
	if (m && m->head.kind == CONTROL_OPENED)
		return tool_file_refuse(f, m->head.number ? m->head.number : EIO);
	if (m)
		agent_session_explain(m, &why);
	tool_file_free(f);
	call_refuse(c, "%s", why.data ? why.data : "the session has ended");
}

void tool_file_open(
	struct tool_file *f, struct call *c, const char *path, int flags, unsigned mode)
{
	f->request.answer = file_answered;
	f->call = c;
	f->session = call_context(c);
	f->flags = flags;
	f->mode = mode;
	agent_session_path(f->session, path, &f->path);
	if (f->path.failed)
		return tool_file_refuse(f, ENOMEM);
	if (!path[0])
		return tool_file_refuse(f, ENOENT);
	if (f->path.used >= PATH_MAX)
		return tool_file_refuse(f, ENAMETOOLONG);
	int r = ask(f, CONTROL_CLASSIFY);
	if (r < 0)
		tool_file_refuse(f, -r);
}
