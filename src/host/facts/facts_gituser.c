/*
 * facts_gituser.c - see facts_gituser.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts_gituser.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/facts/facts.h"
#include "host/facts/facts_cover.h"
#include "host/git/gitidentity.h"
#include "plan/path.h"

enum { HOST_NAME_ROOM = 65 }; /* gethostname(2): 64 bytes and the zero */

bool facts_is_own(const struct facts *facts, const char *path)
{
	const char *const own[] = { facts->workspace, facts->scratch_base, facts->runtime_dir,
		facts->state_dir };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] && path_below(own[i], path))
			return true;
	for (int i = SYSTEM_PROC; i <= SYSTEM_VAR_TMP; i++)
		if (facts->system[i].exists && path_below(facts->system[i].path, path))
			return true;
	return false;
}

/* The machine is shown as it is, and no line is about this place or one around it. */
static bool is_shown_as_is(const struct facts *facts, const char *path)
{
	bool root = false;

	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];

		if (!strcmp(f->path, "/") && f->rule->kind == PATH_READ)
			root = true;
		else if (f->rule->kind != PATH_PROTECT && path_below(f->path, path))
			return false;
	}
	return root && !facts_is_own(facts, path);
}

/* Can a uid without any other right read it? By the mode of the file and of each directory above. */
static bool is_open(struct arena *a, const char *path, mode_t mode)
{
	char *part = arena_copy(a, path, strlen(path));
	struct stat st;

	if (!part || !(mode & S_IROTH))
		return false;
	for (char *slash = strrchr(part, '/'); slash && slash != part;
		slash = strrchr(part, '/')) {
		*slash = '\0';
		if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

static int add(struct facts *facts, struct arena *a, const char *path, const char *text,
	const char *whose)
{
	struct path_rule *rule = arena_alloc(a, sizeof(*rule));

	if (!rule)
		return -ENOMEM;
	*rule = (struct path_rule){ .kind = PATH_READ,
		.optional = true,
		.path = path,
		.source = { .layer = LAYER_DEFAULT, .file = whose } };
	const struct path_fact fact = { .rule = rule,
		.path = path,
		.source = path,
		.exists = true,
		.dest_exists = true,
		.mode = S_IFREG | 0444,
		.shown = text,
		.parent_exists = strlen(path) };

	return facts_add(facts, a, &fact);
}

/* A place where nothing can be written needs no protection, and a mount for it would cover what is shown there. */
static void uncover(struct facts *facts, const char *path)
{
	for (size_t i = 0; i < facts->path_count; i++)
		if (facts->paths[i].rule->kind == PATH_PROTECT &&
			!strcmp(facts->paths[i].path, path))
			facts->paths[i].covered = true;
}

static int look_at(struct facts *facts, struct resolver *res, const char *dir, const char *name)
{
	const char *asked = dir ? arena_join(res->arena, dir, '/', name) : NULL;
	const char *text = NULL;
	struct resolved found, link;

	if (!asked)
		return dir ? -ENOMEM : 0;
	/* A link is followed, as git does; what it leads to is shown in its place. */
	if (resolve_is_absent(res, asked) || resolve_path(res, asked, 0, &found) < 0 ||
		!found.exists || !S_ISREG(found.st.st_mode) ||
		is_open(res->arena, found.path, found.st.st_mode))
		return 0;
	if (!is_shown_as_is(facts, found.path))
		return 0;
	int r = gitidentity_read(res->arena, found.path, facts->uid, &text);
	if (r < 0 || !text)
		return r;
	uncover(facts, found.path);
	/* A rule that protects the link which leads to it would cover it as well. */
	if (resolve_path(res, asked, RESOLVE_KEEP_LAST, &link) == 0)
		uncover(facts, link.path);
	return add(facts, res->arena, found.path, text, "git");
}

int facts_gituser(struct facts *facts, struct resolver *resolver)
{
	const char *config = facts_env(facts->environ, "XDG_CONFIG_HOME");

	if (!config || config[0] != '/')
		config = facts->home ? arena_join(resolver->arena, facts->home, '/', ".config")
				     : NULL;
	int r = look_at(facts, resolver, config, "git/config");
	return r < 0 ? r : look_at(facts, resolver, facts->home, ".gitconfig");
}

/* --- a session's own resolver --------------------------------------------------------------------- */

/* The rule that decides what is seen at @path: the most specific one, of one path the latest; NULL: none. */
static struct path_fact *decider(struct facts *facts, const char *path)
{
	struct path_fact *best = NULL;

	for (size_t i = 0; i < facts->path_count; i++) {
		struct path_fact *f = &facts->paths[i];

		if (f->rule->kind == PATH_PROTECT || !f->exists || !path_below(f->path, path))
			continue;
		if (!best || strlen(f->path) > strlen(best->path) ||
			(strlen(f->path) == strlen(best->path) &&
				f->rule->source.layer >= best->rule->source.layer))
			best = f;
	}
	return best;
}

/* A link is followed, as a resolver does; what it leads to is shown in its place, or is not there inside (/run). */
static int show(struct facts *facts, struct resolver *res, const char *file, const char *text)
{
	struct resolved found;

	if (resolve_path(res, file, 0, &found) < 0 || !found.exists ||
		!S_ISREG(found.st.st_mode) || facts_is_own(facts, found.path))
		return 0;
	struct path_fact *fact = decider(facts, found.path);
	if (!fact || (fact->rule->kind != PATH_READ && fact->rule->kind != PATH_WRITE))
		return 0;
	if (strcmp(fact->path, found.path) != 0)
		return add(facts, res->arena, found.path, text, "net");
	/* A line names this very file; one with `write` shows the host's. */
	if (fact->rule->kind == PATH_READ)
		fact->shown = text;
	return 0;
}

static bool is_host_name(const char *name)
{
	size_t length = strspn(
		name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

	return length > 0 && !name[length];
}

int facts_hosts(struct facts *facts, struct resolver *resolver)
{
	char name[HOST_NAME_ROOM] = "";
	bool known = gethostname(name, sizeof(name) - 1) == 0 && is_host_name(name);
	const char *hosts = arena_format(resolver->arena,
		"127.0.0.1 localhost%s%s\n::1 localhost ip6-localhost ip6-loopback\n",
		known ? " " : "", known ? name : "");
	int r = hosts ? show(facts, resolver, "/etc/hosts", hosts) : -ENOMEM;

	return r < 0
		? r
		: show(facts, resolver, "/etc/resolv.conf",
			  "# the resolver of this session: docs/network.md\nnameserver 127.0.0.1\n");
}
