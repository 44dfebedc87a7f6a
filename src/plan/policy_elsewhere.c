/*
 * policy_elsewhere.c - see policy_hide_elsewhere() in policy_line.h.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 *
 * Programs look for their secrets in different places: some ask HOME, some the account, some the XDG
 * variables. A caller that changes one of these for a session has not moved the secrets.
 */
#include <errno.h>
#include <string.h>

#include "plan/path.h"
#include "plan/policy.h"
#include "plan/policy_line.h"

enum { PLACES = 5 };

struct place {
	const char *prefix; /* of a template */
	const char *instead;
};

/* Quote @path, so that as a template and as a pattern it stands for itself. */
static const char *quote(struct arena *a, const char *path)
{
	char *quoted = arena_alloc(a, 2 * strlen(path) + 1);
	char *at = quoted;

	if (!quoted)
		return NULL;
	for (; *path; path++) {
		if (strchr("$\\*?[]", *path))
			*at++ = '\\';
		*at++ = *path;
	}
	*at = '\0';
	return quoted;
}

static bool is_moved(const struct policy_names *names, const char *dir, const char *usual)
{
	const char *below = dir && names->home ? path_below(names->home, dir) : NULL;

	return dir && (!below || strcmp(below, usual) != 0);
}

static int find_places(struct place *ret, size_t *ret_count, const struct policy *p,
	const struct policy_names *names)
{
	size_t n = 0;

	if (names->account_home) {
		ret[n++] = (struct place){ "$HOME", quote(p->arena, names->account_home) };
		if (!ret[0].instead)
			return -ENOMEM;
	}
	if (is_moved(names, names->xdg_config_home, ".config"))
		ret[n++] = (struct place){ "$HOME/.config", "$XDG_CONFIG_HOME" };
	if (is_moved(names, names->xdg_cache_home, ".cache"))
		ret[n++] = (struct place){ "$HOME/.cache", "$XDG_CACHE_HOME" };
	if (is_moved(names, names->xdg_data_home, ".local/share"))
		ret[n++] = (struct place){ "$HOME/.local/share", "$XDG_DATA_HOME" };
	if (is_moved(names, names->xdg_state_home, ".local/state"))
		ret[n++] = (struct place){ "$HOME/.local/state", "$XDG_STATE_HOME" };
	*ret_count = n;
	return 0;
}

/*
 * The part behind the prefix, with its slash. The prefix itself does not count: the place is not
 * hidden as a whole.
 */
static const char *behind(const char *template, const char *prefix)
{
	size_t length = strlen(prefix);

	return !strncmp(template, prefix, length) && template[length] == '/' ? template + length
									     : NULL;
}

/*
 * Rules that hold at the other place too: hide, and protect. The next launch may read carrel's own
 * policies and filters there.
 */
static bool holds_elsewhere(const struct path_rule *rule)
{
	return rule->kind == PATH_HIDE || rule->kind == PATH_PROTECT;
}

int policy_hide_elsewhere(struct policy *p, const struct policy_names *names)
{
	struct place places[PLACES];
	size_t place_count, count = 0;
	int r = find_places(places, &place_count, p, names);

	if (r < 0 || place_count == 0)
		return r;
	struct path_rule *rules =
		arena_array(p->arena, p->path_count * (1 + place_count), sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < p->path_count; i++) {
		rules[count++] = p->paths[i];
		for (size_t k = 0; k < place_count && holds_elsewhere(&p->paths[i]); k++) {
			const char *rest = behind(p->paths[i].path, places[k].prefix);

			if (!rest)
				continue;
			rules[count] = p->paths[i];
			rules[count].path =
				arena_format(p->arena, "%s%s", places[k].instead, rest);
			if (!rules[count++].path)
				return -ENOMEM;
		}
	}
	p->paths = rules;
	p->path_count = p->path_room = count;
	return 0;
}
