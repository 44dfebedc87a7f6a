/*
 * gitreview_states.c - unfinished operations, whose files git obeys when they are continued: see
 * gitreview.h.
 *
 * Runs in: the child that gitreview_child.c starts when all processes of the session are dead. May
 * not: change anything. A file that it does not know counts as one that runs something.
 */
#include "host/gitreview/gitreview_shared.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

/* is_one_of - is the text from @start to @end in @list, which ends with NULL? */
static bool is_one_of(const char *start, const char *end, const char *const *list)
{
	size_t length = (size_t)(end - start);

	for (; *list; list++)
		if (strlen(*list) == length && memcmp(*list, start, length) == 0)
			return true;
	return false;
}

/* is_tame_line - a line of a todo list that makes git run nothing. Unknown words are not tame. */
static bool is_tame_line(const char *line, const char *stop)
{
	static const char *const tame[] = { "pick", "p", "reword", "r", "edit", "e", "squash",
		"s", "fixup", "f", "break", "b", "drop", "d", "label", "l", "reset", "t",
		"merge", "m", "update-ref", "u", "noop", NULL };
	const char *end;

	while (line < stop && strchr(" \t\r\v\f", *line))
		line++;
	if (line == stop || *line == '#')
		return true;
	for (end = line; end < stop && !strchr(" \t\r\v\f", *end);)
		end++;
	return is_one_of(line, end, tame);
}

static bool is_tame_todo(const char *text, const char *end)
{
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!is_tame_line(text, stop ? stop : end))
			return false;
		text = stop ? stop + 1 : end;
	}
	return true;
}

/* is_tame_strategy - git runs git-merge-NAME, and NAME may lead into the work tree. */
static bool is_tame_strategy(const char *text, const char *end)
{
	static const char *const tame[] = { "ort", "recursive", "resolve", "octopus", "ours",
		"subtree", "", NULL };

	if (end > text && end[-1] == '\n')
		end--;
	return is_one_of(text, end, tame);
}

/* is_tame_apply - options for `git apply`, each in quotes. Others write where they say. */
static bool is_tame_apply(const char *text, const char *end)
{
	static const char *const tame[] = { "--whitespace=", "-C", "-p",
		"--directory=", "--exclude=", "--include=", "--ignore-space-change",
		"--ignore-whitespace", "--reject", NULL };

	for (; text < end; text++) {
		const char *const *option = tame;

		if (*text == ' ' || *text == '\n')
			continue;
		const char *close =
			*text++ == '\'' ? memchr(text, '\'', (size_t)(end - text)) : NULL;

		if (!close)
			return false;
		while (*option && strncmp(text, *option, strlen(*option)) != 0)
			option++;
		/* A quote within the text would be \' here. */
		if (!*option || (close + 1 < end && close[1] != ' ' && close[1] != '\n'))
			return false;
		text = close;
	}
	return true;
}

static const struct state {
	const char *directory, *name;
	bool (*is_tame)(const char *text, const char *end);
	const char *why;
} states[] = {
	{ "rebase-merge", "git-rebase-todo", is_tame_todo,
		"git rebase --continue would run what it says" },
	{ "rebase-merge", "strategy", is_tame_strategy,
		"git rebase --continue would run what it names" },
	{ "rebase-apply", "apply-opt", is_tame_apply,
		"git am --continue would write where it says" },
};

/* is_tame_opts - sequencer/opts, in the grammar of a configuration. */
static bool is_tame_opts(struct review *r, int dirfd)
{
	struct gitconfig *c = &r->f->config;
	int result;
	autofd int fd = plainfile_open(dirfd, "opts", 0, false);

	if (fd < 0)
		return false;
	gitconfig_start(c, fd);
	while ((result = gitconfig_next(c)) > 0)
		if (strcmp(c->name, "options.strategy") == 0 &&
			(c->cut || !is_tame_strategy(c->value, c->value + c->value_length)))
			return false;
	return result == 0;
}

/* is_tame_file - what cannot be read is not. */
static bool is_tame_file(struct review *r, int dirfd, const struct state *s)
{
	if (!r->text)
		r->text = arena_alloc(r->f->arena, REVIEW_TEXT_MAX + 1);
	ssize_t length = r->text ? gitpath_read(dirfd, s->name, r->text, REVIEW_TEXT_MAX) : -1;

	return length >= 0 && s->is_tame(r->text, r->text + length);
}

static void review_state(struct review *r, int dirfd, const char *path, const char *directory,
	const char *name, const struct state *s)
{
	struct finder *f = r->f;
	struct stat st;
	autofd int fd = gitpath_open(dirfd, directory, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	gitfind_missed(f, fd);
	if (fd < 0 || gitpath_type(fd, name) == 0 ||
		(fstat(fd, &st) == 0 && !review_is_new(r, &st) &&
			!review_is_new_at(r, fd, name)))
		return;
	if (s ? is_tame_file(r, fd, s) : is_tame_opts(r, fd))
		return;
	const char *in = gitfind_join(f, path, directory);

	if (in)
		review_quarantine(r, gitfind_join(f, in, name),
			s ? s->why : "git cherry-pick --continue would run what it names");
}

void review_states(struct review *r, int fd, const char *path)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		review_state(r, fd, path, states[i].directory, states[i].name, &states[i]);
	review_state(r, fd, path, "sequencer", "opts", NULL);
}
