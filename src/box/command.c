/*
 * command.c - see command.h.
 *
 * Runs in: the monitor. No heap, no stdio.
 */
#include "box/command.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PWD_SIZE = 4096 + 8 }; /* PATH_MAX, "PWD=", and still aligned for pointers */

void command_of_plan(struct command *ret, const struct plan *plan)
{
	*ret = (struct command){
		.argv = plan->argv,
		.shell_argv = plan->shell_argv,
		.envp = plan->envp,
		.path_env = plan->path_env,
		.cwd = plan->cwd,
		.pass = &plan->pass,
	};
}

static bool same_name(const char *a, const char *b)
{
	const char *end = strchr(a, '=');
	size_t length = end ? (size_t)(end - a) : strlen(a);

	return !strncmp(a, b, length) && b[length] == '=';
}

static bool is_replaced(const char *variable, const struct request_view *view)
{
	const char *at = view->envp;

	for (uint32_t i = 0; i < view->head.envc; i++, at = request_next(at))
		if (same_name(variable, at))
			return true;
	return false;
}

static const char **fill_texts(const char **to, const char *text, uint32_t count)
{
	for (; count; count--, text = request_next(text))
		*to++ = text;
	return to;
}

size_t command_room(const struct plan *plan)
{
	/* "/bin/sh" in front, a NULL behind each of the two, PWD. */
	return (2 * (size_t)REQUEST_WORDS_MAX + plan->env_count + 4) * sizeof(const char *) +
		PWD_SIZE;
}

/*
 * Make PWD, which says where the command starts, as the plan's does. NULL: a path that chdir(2)
 * refuses.
 */
static const char *make_pwd(char *room, const char *cwd)
{
	size_t size = strlen(cwd) + 1;

	if (size > PWD_SIZE - strlen("PWD="))
		return NULL;
	memcpy(room, "PWD=", strlen("PWD="));
	memcpy(room + strlen("PWD="), cwd, size);
	return room;
}

int command_map(int fd, const char **ret_data, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > (off_t)REQUEST_SIZE_MAX)
		return -EPROTO;
	void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret_data = data;
	*ret_size = (size_t)st.st_size;
	return 0;
}

void command_of_request(struct command *ret, void *room, const struct plan *plan,
	const struct request_view *view)
{
	const char *pwd = view->cwd[0] ? make_pwd(room, view->cwd) : NULL;
	const char **words = (const char **)(void *)((char *)room + PWD_SIZE);

	words[0] = "/bin/sh";
	const char **env = fill_texts(words + 1, view->argv, view->head.argc);
	*env++ = NULL;
	const char **end = env;
	for (size_t i = 0; i < plan->env_count; i++)
		if (!is_replaced(plan->envp[i], view) &&
			!(pwd && same_name("PWD", plan->envp[i])))
			*end++ = plan->envp[i];
	if (pwd)
		*end++ = pwd;
	end = fill_texts(end, view->envp, view->head.envc);
	*end = NULL;
	*ret = (struct command){
		.argv = words + 1,
		.shell_argv = words,
		.envp = env,
		.path_env = plan->path_env,
		.cwd = view->cwd[0] ? view->cwd : plan->cwd,
		.limits = view->head.limits,
		.pass = &view->pass,
	};
	for (; *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			ret->path_env = *env + 5;
}
