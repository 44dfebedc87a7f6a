/*
 * exec_request.c - see exec_request.h.
 *
 * Runs in: carrel-agent, outside.
 */
#include "agent/exec_request.h"

#include <errno.h>
#include <string.h>

#include "agent/field.h"
#include "agent/harmless.h"
#include "base/fd.h"
#include "box/channel.h"
#include "box/request.h"

static void add_word(struct buffer *b, const char *word)
{
	buffer_add(b, word, strlen(word) + 1);
}

static int add_argv(const json_t *arguments, const char *shell, struct buffer *b, uint32_t *ret,
	struct buffer *why)
{
	const char *command = field_text(arguments, "command", NULL);
	const json_t *argv = field_get(arguments, "argv"), *each;
	size_t i;

	if (!command == !argv) {
		buffer_text(why,
			"give either `command`, a line for the shell, or `argv`, a program and "
			"its arguments");
		return -EINVAL;
	}
	if (command) {
		add_word(b, shell);
		add_word(b, "-c");
		add_word(b, command);
		*ret = 3;
		return 0;
	}
	if (json_array_size(argv) == 0 || json_array_size(argv) > REQUEST_WORDS_MAX) {
		buffer_text(why, "`argv` must name a program, and have at most 65,536 words");
		return -EINVAL;
	}
	json_array_foreach(argv, i, each) add_word(b, json_string_value(each));
	*ret = (uint32_t)json_array_size(argv);
	return 0;
}

static int add_env(const json_t *arguments, struct buffer *b, uint32_t *ret, struct buffer *why)
{
	const json_t *env = field_get(arguments, "env");
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
	{
		if (!*name || strchr(name, '=')) {
			buffer_text(why, "a name in `env` must not be empty or contain '='");
			return -EINVAL;
		}
		buffer_text(b, name);
		buffer_text(b, "=");
		add_word(b, json_string_value(value));
	}
	*ret = (uint32_t)json_object_size(env);
	return 0;
}

/* A relative directory starts from the workspace, where commands run by default. */
static void add_cwd(const struct agent_session *d, const json_t *arguments, struct buffer *b)
{
	const char *cwd = field_text(arguments, "cwd", "");

	if (cwd[0] && cwd[0] != '/')
		buffer_format(b, "%s/", d->workspace);
	add_word(b, cwd);
}

int exec_request_build(const struct agent_session *d, const json_t *arguments,
	const char *shell, struct buffer *ret, struct buffer *ret_why)
{
	uint64_t timeout_s = (uint64_t)field_integer(arguments, "timeout_seconds", 0);
	struct request head = { .umask = d->umask,
		.limits = { [EXECUTION_TIMEOUT] = timeout_s * 1000 } };
	size_t at = ret->used;

	buffer_add(ret, &head, sizeof(head));
	int r = add_argv(arguments, shell, ret, &head.argc, ret_why);
	if (r == 0)
		r = add_env(arguments, ret, &head.envc, ret_why);
	if (r < 0)
		return r;
	add_cwd(d, arguments, ret);
	add_word(ret, ""); /* no service */
	if (ret->failed)
		return -ENOMEM;
	if (ret->used - at > REQUEST_SIZE_MAX) {
		buffer_text(ret_why,
			"the command is longer than 4 MiB: put it into a file in the scratch "
			"(tool `write`) and run that");
		return -EINVAL;
	}
	memcpy(ret->data + at, &head, sizeof(head));
	return 0;
}

/* The command in a few words, harmless. */
static void add_name(const json_t *arguments, struct buffer *b)
{
	enum { SHOWN = 60 };
	const char *command = field_text(arguments, "command", NULL);

	if (!command)
		command = json_string_value(json_array_get(field_get(arguments, "argv"), 0));
	size_t length = command ? strlen(command) : 0, cut = length;

	if (length > SHOWN)
		for (cut = SHOWN; cut > 0 && (command[cut] & 0xc0) == 0x80; cut--)
			;
	harmless_add(b, command, cut);
	if (cut < length)
		buffer_text(b, "…");
	for (size_t i = 0; i < b->used; i++) /* one line */
		if (b->data[i] == '\n' || b->data[i] == '\t')
			b->data[i] = ' ';
}

/* What the model can do about it. */
static const char *advice(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return "Is the program installed? `command -v NAME` in a shell line finds programs";
	case E2BIG:
		return "Put it into a file in the scratch (tool `write`) and run that, or give the long "
		       "part as `stdin`";
	default:
		return "Is it executable, and may the session read it? See the tool `status`";
	}
}

void exec_request_explain(const struct agent_session *d, const json_t *arguments,
	const struct control_record *end, struct buffer *ret)
{
	autobuffer struct buffer name = { 0 }, cwd = { 0 };

	if (ret->used > 0)
		return;
	if (!end->number)
		return buffer_text(ret, "the command was ended before it started");
	if ((int32_t)end->flag == STEP_CWD) {
		add_cwd(d, arguments, &cwd);
		if (cwd.used > 0)
			harmless_add(&name, cwd.data, cwd.used - 1); /* but for the NUL */
		return buffer_format(ret,
			"`cwd` cannot be entered: \"%s\": %s. A relative one is in the workspace; the "
			"tool `status` shows the places",
			name.data ? name.data : "", strerror(end->number));
	}
	add_name(arguments, &name);
	buffer_format(ret, "\"%s\" could not be started: %s. %s", name.data ? name.data : "",
		strerror(end->number), advice(end->number));
}

const char *exec_request_limit(const struct control_record *end, bool too_long)
{
	static const char *const words[] = {
		[CONTROL_LIMIT_TIMEOUT] = "timeout",
		[CONTROL_LIMIT_CPU_TIME] = "cpu-time",
		[CONTROL_LIMIT_FILE_SIZE] = "file-size",
		[CONTROL_LIMIT_MEMORY] = "memory",
		[CONTROL_LIMIT_PIDS] = "pids",
	};
	bool known = end->limit < sizeof(words) / sizeof(words[0]);
	const char *word = known ? words[end->limit] : NULL;

	return word || !too_long ? word : "output";
}
