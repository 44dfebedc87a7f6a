/*
 * facts_hosts.c - see facts_hosts.h.
 *
 * Runs in: the launcher and carrel-policy, outside.
 */
#include "host/facts/facts_hosts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/facts/facts_cover.h"
#include "host/facts/facts_gituser.h"
#include "plan/path.h"

enum { HOST_NAME_ROOM = 65 }; /* gethostname(2): 64 bytes and the zero */

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

static int add(struct facts *facts, struct arena *a, const char *path, const char *text)
{
	struct path_rule *rule = arena_alloc(a, sizeof(*rule));

	if (!rule)
		return -ENOMEM;
	*rule = (struct path_rule){ .kind = PATH_READ,
		.optional = true,
		.path = path,
		.source = { .layer = LAYER_DEFAULT, .file = "net" } };
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
		return add(facts, res->arena, found.path, text);
	/* A line for this very file; `write` means what it says. */
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
