/*
 * policy_preset.c - presets (`with`) and caches (`cache`): short texts that are included by name.
 *
 * Runs in: the launcher and carrel-policy. PURE: the user's own come through the resolver.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "plan/embedded.h"
#include "plan/plan.h"
#include "plan/policy_line.h"

enum { PRESETS_MAX = 64 };

/* The shipped text NAME.with or NAME.cache, or NULL. */
static const struct embedded_text *find_shipped(
	const struct policy_resolver *r, const struct setting *s, const char *name)
{
	for (size_t i = 0; i < r->text_count; i++) {
		const char *dot = strchr(r->texts[i].name, '.');

		if (dot && !strcmp(dot + 1, s->name) &&
			!strncmp(r->texts[i].name, name, (size_t)(dot - r->texts[i].name)) &&
			!name[dot - r->texts[i].name])
			return &r->texts[i];
	}
	return NULL;
}

static int fail_preset(const struct policy_place *at, const struct setting *s, const char *name)
{
	const char *names[PRESETS_MAX];
	char list[320];
	size_t count = 0;

	for (size_t i = 0; i < at->r->text_count && count < PRESETS_MAX; i++) {
		const char *dot = strchr(at->r->texts[i].name, '.');

		if (!dot || strcmp(dot + 1, s->name) != 0)
			continue;
		names[count] = arena_copy(at->p->arena, at->r->texts[i].name,
			(size_t)(dot - at->r->texts[i].name));
		if (!names[count])
			return policy_full(at->e);
		count++;
	}
	const char *nearest = text_nearest(name, names, count);
	int r = policy_fail(
		at, "unknown %s '%.60s'", s->id == SETTING_CACHE ? "cache" : "preset", name);
	text_words(names, count, list, sizeof(list));
	if (nearest)
		error_hint(at->e, "did you mean '%s'?", nearest);
	else
		error_hint(at->e, "%s", list);
	return r;
}

/* A preset that gives away everything else needs a second word, NAME:WORD; its text says which. */
static int check_second(
	const struct policy_place *at, const char *text, const char *name, const char *second)
{
	static const char key[] = "# second word: ";
	const char *word = text;

	while (word && strncmp(word, key, sizeof(key) - 1) != 0) {
		word = strchr(word, '\n');
		word += word != NULL;
	}
	word = word ? word + sizeof(key) - 1 : "";
	size_t length = strcspn(word, "\n");
	if (length ? second && !strncmp(second, word, length) && !second[length] : !second)
		return 0;
	if (!length)
		return policy_fail(at, "'%.60s' takes no second word", name);
	int r = policy_fail(at,
		"'%.60s' gives away more than a session is, and is not given so easily", name);
	error_hint(at->e, "where that is meant: %s%s %s:%.*s",
		at->source.layer == LAYER_COMMAND ? "--" : "", at->setting, name, (int)length,
		word);
	return r;
}

int policy_find_preset(struct policy_place *at, const struct setting *s, const char *word,
	struct policy_preset *ret)
{
	const char *plain = word_plain(at->p, word);
	char *name = plain ? arena_copy(at->p->arena, plain, strlen(plain)) : NULL;
	char *second = name ? strchr(name, ':') : NULL;
	struct policy_file file = { 0 };

	if (!name)
		return policy_full(at->e);
	if (second)
		*second++ = '\0';
	int r = policy_add_value(at, s, name);
	if (r < 0)
		return r;
	const struct embedded_text *text = find_shipped(at->r, s, name);
	/* In the machine's policy a name means the shipped preset: a user must not choose what that policy holds. */
	bool own = !text && s->id == SETTING_WITH && at->r->load_preset &&
		policy_may_be_own(at, name);
	r = own ? at->r->load_preset(at->r->context, name, &file, at->e) : 0;
	if (r < 0)
		return r;
	if (!text && r == 0)
		return fail_preset(at, s, name);
	if (text)
		file = (struct policy_file){ .text = text->text, .size = text->size };
	r = check_second(at, file.text, name, second);
	if (r < 0)
		return r;
	*ret = (struct policy_preset){ .text = file.text,
		.size = file.size,
		.shipped = text != NULL,
		.shown = text ? arena_format(at->p->arena, "%s:%s", s->name, name)
			      : arena_copy(at->p->arena, file.path, strlen(file.path)) };
	return ret->shown ? 0 : policy_full(at->e);
}

static const char second[] = ":gives-root";

/*
 * The socket is recognised by its usual name. That prevents accidents only: whoever writes the
 * policy is trusted.
 */
bool policy_is_daemon(const char *path)
{
	static const char *const daemons[] = { "docker.sock", "podman.sock", "containerd.sock",
		"crio.sock", "buildkitd.sock", "libvirt-sock", "virtqemud-sock",
		"cri-dockerd.sock" };
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(daemons) / sizeof(daemons[0]); i++)
		if (!strcmp(slash ? slash + 1 : path, daemons[i]))
			return true;
	return false;
}

int policy_check_daemons(const struct facts *facts, struct error *e)
{
	for (size_t i = 0; i < facts->path_count; i++) {
		const struct path_fact *f = &facts->paths[i];
		const struct path_rule *rule = f->rule;
		char on[512];

		if (!f->exists || !S_ISSOCK(f->mode) || rule->kind == PATH_HIDE ||
			rule->kind == PATH_PROTECT || !policy_is_daemon(f->source) ||
			(rule->socket && policy_is_daemon(rule->path)))
			continue;
		policy_format_source(&rule->source,
			rule->socket ? "unix-socket" : policy_path_setting(rule->kind), on,
			sizeof(on));
		int r = error_set(e, ERROR_POLICY, "policy", ERROR_OWN(EPERM), on,
			"'%.200s' gives away more than a session is, and is not given so easily",
			f->source);
		error_hint(e, "where that is meant: %sunix-socket %s%s",
			rule->source.layer == LAYER_COMMAND ? "--" : "", f->source, second);
		return r;
	}
	return 0;
}

int policy_check_daemon(const struct policy_place *at, const char **word)
{
	size_t length = strlen(*word), tail = sizeof(second) - 1;
	bool given = length > tail && !strcmp(*word + length - tail, second);
	char *path = arena_copy(at->p->arena, *word, given ? length - tail : length);

	if (!path)
		return policy_full(at->e);
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	*word = path;
	if (policy_is_daemon(path) == given)
		return 0;
	if (given)
		return policy_fail(at, "'%.60s' takes no second word", name);
	int r = policy_fail(at,
		"'%.60s' gives away more than a session is, and is not given so easily", name);
	error_hint(at->e, "where that is meant: %s%s %s%s",
		at->source.layer == LAYER_COMMAND ? "--" : "", at->setting, path, second);
	return r;
}
