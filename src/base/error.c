/*
 * error.c - filling and formatting struct error.
 *
 * Runs in: every process outside the box. May not: print, exit, allocate.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/text.h"

static const char *const code_names[] = {
	[ERROR_NONE] = "none",
	[ERROR_USAGE] = "usage",
	[ERROR_POLICY] = "policy",
	[ERROR_LOCKED] = "locked",
	[ERROR_WORKSPACE] = "workspace",
	[ERROR_PATH] = "path",
	[ERROR_SCRATCH] = "scratch",
	[ERROR_REPORT] = "report",
	[ERROR_DESCRIPTOR] = "descriptor",
	[ERROR_NAMESPACES] = "namespaces",
	[ERROR_UNAVAILABLE] = "unavailable",
	[ERROR_APPLY] = "apply",
	[ERROR_EXEC] = "exec",
	[ERROR_PROTOCOL] = "protocol",
	[ERROR_LIMIT] = "limit",
	[ERROR_TEARDOWN] = "teardown",
	[ERROR_STATE] = "state",
	[ERROR_SESSION] = "session",
	[ERROR_ENDING] = "ending",
	[ERROR_VERSION] = "version",
	[ERROR_REQUEST] = "request",
	[ERROR_PEER] = "peer",
	[ERROR_LOOSENS] = "loosens",
	[ERROR_EXECUTION] = "execution",
	[ERROR_PROMOTE] = "promote",
	[ERROR_INTERNAL] = "internal",
};

void error_below(struct error *e, const char *dir)
{
	size_t front = strlen(dir) + 1;

	if (!e || !e->on[0] || front >= sizeof(e->on))
		return;
	memmove(e->on + front, e->on, sizeof(e->on) - front);
	memcpy(e->on, dir, front - 1);
	e->on[front - 1] = '/';
	e->on[sizeof(e->on) - 1] = '\0';
}

const char *error_code_name(enum error_code code)
{
	if ((size_t)code >= sizeof(code_names) / sizeof(code_names[0]))
		return "internal";
	return code_names[code];
}

enum error_code error_code_find(const char *name)
{
	for (size_t i = 1; i < sizeof(code_names) / sizeof(code_names[0]); i++)
		if (!strcmp(code_names[i], name))
			return (enum error_code)i;
	return ERROR_INTERNAL;
}

bool error_is_own(int errnum)
{
	static const int own[] = { EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EPERM, ENOSYS };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (errnum == own[i])
			return true;
	return false;
}

int error_set(struct error *e, enum error_code code, const char *stage, int errnum,
	const char *on, const char *format, ...)
{
	bool own = errnum < 0; /* ERROR_OWN() */

	if (own)
		errnum = -errnum;
	int result = errnum > 0 ? -errnum : -EINVAL;

	if (!e || e->code != ERROR_NONE)
		return result;
	e->code = code;
	e->errnum = errnum;
	e->own = own;
	e->op = -1;
	(void)snprintf(e->stage, sizeof(e->stage), "%s", stage);
	(void)snprintf(e->on, sizeof(e->on), "%s", on ? on : "");
	va_list args;
	va_start(args, format);
	(void)vsnprintf(e->what, sizeof(e->what), format, args);
	va_end(args);
	if (errnum == EMFILE) /* whatever needed one more: there is one remedy */
		error_hint(e, "raise `ulimit -n`");
	return result;
}

/*
 * carrel never touches most of the memory that it maps, but RLIMIT_AS counts that as well:
 * setrlimit(2).
 */
int error_no_memory(struct error *e, const char *stage)
{
	struct rlimit space = { .rlim_cur = RLIM_INFINITY };
	int r = error_set(e, ERROR_LIMIT, stage, ERROR_OWN(ENOMEM), NULL, "out of memory");

	(void)getrlimit(RLIMIT_AS, &space);
	if (space.rlim_cur != RLIM_INFINITY)
		error_hint(e,
			"the caller's address space is limited (`ulimit -v`): carrel sets aside 200 MB of it and uses little");
	return r;
}

void error_hint(struct error *e, const char *format, ...)
{
	if (!e || e->hint[0])
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(e->hint, sizeof(e->hint), format, args);
	va_end(args);
}

int error_cause(const struct error *e)
{
	return e->own ? ERROR_OWN(e->errnum) : e->errnum;
}

const char *error_why(const struct error *e)
{
	return e->errnum && !e->own ? strerror(e->errnum) : NULL;
}

/* Appends text as far as it fits. Returns the new length. */
static size_t append(char *out, size_t size, size_t at, const char *text)
{
	return at + 5 <= size ? at + text_visible(&text, "", out + at, size - at) : at;
}

size_t error_format(const struct error *e, char *ret_text, size_t size)
{
	const char *why = error_why(e);
	size_t at = append(ret_text, size, 0, "carrel: ");

	at = append(ret_text, size, at, e->what);
	if (e->on[0]) {
		at = append(ret_text, size, at, ": ");
		at = append(ret_text, size, at, e->on);
	}
	if (why) {
		at = append(ret_text, size, at, ": ");
		at = append(ret_text, size, at, why);
	}
	if (e->hint[0] && at + 24 < size) {
		ret_text[at++] = '\n';
		at = append(ret_text, size, at, "carrel: hint: ");
		at = append(ret_text, size, at, e->hint);
	}
	if (at + 1 < size)
		ret_text[at++] = '\n';
	ret_text[at] = '\0';
	return at;
}
