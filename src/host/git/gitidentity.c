/*
 * gitidentity.c - see gitidentity.h.
 *
 * Runs in: the launcher, outside.
 */
#include "host/git/gitidentity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/git/gitconfig.h"
#include "host/tree/plainfile.h"

#define ALIAS "alias."

enum { TEXT_SIZE = 32768, ALIASES_MAX = 256 };

struct writer {
	char *text; /* TEXT_SIZE bytes */
	size_t used;
	bool full;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_line(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 0x7f)
			return false;
	return true;
}

/* One word after "alias.", as git writes it without quotes. */
static bool is_alias(const char *name)
{
	const char *at = name + strlen(ALIAS);

	if (strncmp(name, ALIAS, strlen(ALIAS)) != 0 || !is_letter(*at))
		return false;
	while (is_letter(*at) || *at == '-' || (*at >= '0' && *at <= '9'))
		at++;
	return !*at;
}

static bool is_wanted(const struct gitconfig *c)
{
	static const char *const plain[] = { "user.name", "user.email", "init.defaultbranch" };

	if (c->cut || !*c->value || strlen(c->value) != c->value_length || !is_line(c->value))
		return false;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(c->name, plain[i]))
			return true;
	/* A command of git's: neither a shell's line nor an option in front, which could hold anything. */
	return is_alias(c->name) && is_letter(c->value[0]);
}

static void put(struct writer *w, const char *text, size_t length)
{
	w->full = w->full || length >= TEXT_SIZE - w->used;
	if (w->full)
		return;
	memcpy(w->text + w->used, text, length);
	w->used += length;
}

/* [section] and key = "value": all that is_wanted() lets through has one dot. */
static void put_entry(struct writer *w, const struct gitconfig *c)
{
	const char *dot = strchr(c->name, '.');

	put(w, "[", 1);
	put(w, c->name, (size_t)(dot - c->name));
	put(w, "]\n\t", 3);
	put(w, dot + 1, strlen(dot + 1));
	put(w, " = \"", 4);
	for (const char *at = c->value; *at; at++) {
		if (*at == '"' || *at == '\\')
			put(w, "\\", 1);
		put(w, at, 1);
	}
	put(w, "\"\n", 2);
}

/* A file that git would refuse as a whole counts as empty. */
static void read_entries(struct gitconfig *c, struct writer *w)
{
	unsigned count = 0;
	int r;

	while ((r = gitconfig_next(c)) > 0 && count < ALIASES_MAX)
		if (is_wanted(c)) {
			put_entry(w, c);
			count++;
		}
	if (r < 0 || w->full)
		w->used = 0;
}

int gitidentity_read(struct arena *a, const char *path, uid_t caller, const char **ret_text)
{
	struct stat st;

	*ret_text = NULL;
	autofd int fd = plainfile_open(AT_FDCWD, path, RESOLVE_NO_SYMLINKS, false);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != caller)
		return 0;
	struct gitconfig *c = arena_alloc(a, sizeof(*c));
	struct writer w = { .text = arena_alloc(a, TEXT_SIZE) };

	if (!c || !w.text)
		return -ENOMEM;
	gitconfig_start(c, fd);
	read_entries(c, &w);
	w.text[w.used] = '\0';
	*ret_text = w.used ? w.text : NULL;
	return 0;
}
