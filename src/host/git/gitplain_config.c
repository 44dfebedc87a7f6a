/*
 * gitplain_config.c - see gitplain_config.h.
 *
 * Runs in: the child that gitplain.c starts.
 * May not: allow a key because nothing is known against it. Those here are what `git init`, `git clone` and
 * `git config user.name` write, and each has values of one form.
 */
#include "host/git/gitplain_config.h"

#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "host/tree/plainfile.h"

static const char alphanumeric[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static bool is_alphanumeric(char ch)
{
	return ch && strchr(alphanumeric, ch);
}

/* A number, a truth value, a word; empty: a key without "=". */
static bool is_word(const char *value)
{
	while (is_alphanumeric(*value) || *value == '-')
		value++;
	return !*value;
}

/* One line of any text. */
static bool is_line(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < ' ' || *value == 0x7f)
			return false;
	return true;
}

static bool is_printable(const char *value)
{
	for (; *value; value++)
		if (*value <= ' ' || *value > '~' || *value == '\\')
			return false;
	return true;
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* A ref lies below refs/ and has no ".." in it. */
static bool is_ref(const char *value)
{
	return starts_with(value, "refs/") && is_printable(value) && !strstr(value, "..");
}

/* A fetch writes to the refs of a remote and to tags. */
static bool is_refspec(const char *value)
{
	const char *to = strchr(value, ':');

	return is_ref(*value == '+' ? value + 1 : value) && to &&
		(starts_with(to + 1, "refs/remotes/") || starts_with(to + 1, "refs/tags/"));
}

/*
 * A URL of another machine: https, http, ssh, git, or user@host:path. Not "helper::address", which
 * runs a program, nor a path, whose repository has hooks.
 */
static bool is_url(const char *value)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://" };
	const char *colon = strchr(value, ':');

	if (!is_printable(value) || !colon)
		return false;
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
		if (starts_with(value, schemes[i]))
			return is_alphanumeric(value[strlen(schemes[i])]);
	for (const char *at = value; at < colon; at++)
		if (!is_alphanumeric(*at) && (at == value || !strchr("._-@", *at)))
			return false;
	return colon - value > 1 && colon[1] != ':' && colon[1] != '/' && colon[1] != '\0';
}

/* A branch's or a remote's own name in a key. */
static bool is_name(const char *start, size_t length)
{
	if (length == 0 || length >= GITPLAIN_REMOTE_SIZE || !is_alphanumeric(*start))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_alphanumeric(start[i]) && !strchr("._-/", start[i]))
			return false;
	return true;
}

static bool add_name(
	char names[][GITPLAIN_REMOTE_SIZE], size_t *count, const char *start, size_t length)
{
	for (size_t i = 0; i < *count; i++)
		if (strlen(names[i]) == length && memcmp(names[i], start, length) == 0)
			return true;
	if (*count == GITPLAIN_REMOTES_MAX || !is_name(start, length) ||
		memchr(start, '/', length))
		return false;
	memcpy(names[*count], start, length);
	names[(*count)++][length] = '\0';
	return true;
}

/* Keys with a name in the middle. */
static bool is_plain_named(struct gitplain_config *c, const char *name, const char *value)
{
	const char *first = strchr(name, '.'), *last = strrchr(name, '.');
	const char *middle = first + 1;
	size_t length = last > first ? (size_t)(last - middle) : 0;

	if (!is_name(middle, length))
		return false;
	if (starts_with(name, "remote.")) {
		if (strcmp(last, ".fetch") == 0)
			return is_refspec(value);
		return strcmp(last, ".url") == 0 && is_url(value) &&
			add_name(c->with_url, &c->with_url_count, middle, length);
	}
	if (!starts_with(name, "branch."))
		return false;
	if (strcmp(last, ".merge") == 0)
		return is_ref(value);
	if (strcmp(last, ".rebase") == 0)
		return is_word(value);
	return strcmp(last, ".remote") == 0 &&
		add_name(c->tracked, &c->tracked_count, value, strlen(value));
}

static bool is_plain_entry(struct gitplain_config *c)
{
	static const struct {
		const char *name;
		bool (*is_plain)(const char *value);
	} keys[] = {
		{ "core.repositoryformatversion", is_word },
		{ "core.filemode", is_word },
		{ "core.bare", is_word },
		{ "core.logallrefupdates", is_word },
		{ "core.symlinks", is_word },
		{ "core.ignorecase", is_word },
		{ "core.precomposeunicode", is_word },
		{ "extensions.objectformat", is_word },
		{ "extensions.refstorage", is_word },
		{ "init.defaultbranch", is_line },
		{ "user.name", is_line },
		{ "user.email", is_line },
	};
	const char *name = c->reader.name, *value = c->reader.value;

	if (c->reader.cut || strlen(value) != c->reader.value_length || !*name)
		return false;
	if (strcmp(name, "extensions.objectformat") == 0)
		c->sha256 = strcmp(value, "sha256") == 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strcmp(name, keys[i].name) == 0)
			return keys[i].is_plain(value);
	return is_plain_named(c, name, value);
}

/* Git takes a remote without a URL for a path: its own name, relative to the work tree. */
static bool have_urls(const struct gitplain_config *c)
{
	for (size_t i = 0; i < c->tracked_count; i++) {
		size_t j = 0;

		while (j < c->with_url_count && strcmp(c->tracked[i], c->with_url[j]) != 0)
			j++;
		if (j == c->with_url_count)
			return false;
	}
	return true;
}

bool gitplain_config(struct gitplain_config *c, int dirfd, const char *path)
{
	struct stat st;
	int result = -1;
	autofd int fd =
		plainfile_open(dirfd, path, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, false);

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_nlink != 1)
		return false;
	gitconfig_start(&c->reader, fd);
	while ((result = gitconfig_next(&c->reader)) > 0)
		if (!is_plain_entry(c))
			return false;
	return result == 0 && have_urls(c);
}
