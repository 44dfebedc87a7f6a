/*
 * policy_merge.c - lines of all layers into one policy, each layer over the last.
 *
 * Runs in: the launcher and carrel-policy. PURE.
 */
#include <errno.h>
#include <string.h>

#include "plan/policy_line.h"

enum { PATHS_MORE = 8 };

static int apply_enum(struct policy *p, const struct policy_line *l)
{
	static const enum workspace_mode modes[] = { WORKSPACE_DIRECT, WORKSPACE_OVERLAY,
		WORKSPACE_RO };

	switch (l->id) {
	case SETTING_WORKSPACE_MODE:
		p->workspace_mode = modes[l->number];
		p->workspace_mode_source = l->source;
		return 0;
	case SETTING_TTY:
		p->tty = (enum tty_mode)l->number;
		p->tty_source = l->source;
		return 0;
	default:
		p->net = (enum net_mode)l->number;
		p->net_source = l->source;
		return 0;
	}
}

static int apply_path(struct policy *p, const struct policy_line *l)
{
	p->paths[p->path_count++] = (struct path_rule){
		.kind = (enum path_kind)l->kind,
		.optional = l->optional,
		.glob = l->glob,
		.socket = l->id == SETTING_UNIX_SOCKET,
		.path = l->text,
		.dest = l->dest,
		.size = l->number,
		.source = l->source,
	};
	return 0;
}

static int apply_env(struct policy *p, const struct policy_line *l)
{
	p->envs[p->env_count++] = (struct env_rule){
		.unset = l->id == SETTING_UNSETENV,
		.name = l->text,
		.value = l->dest,
		.source = l->source,
	};
	return 0;
}

static int apply_syscall(struct policy *p, const struct policy_line *l)
{
	struct syscall_rule *rules =
		arena_push(p->arena, p->syscall_rules, p->syscall_rule_count, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	p->syscall_rules = rules;
	rules[p->syscall_rule_count++] =
		(struct syscall_rule){ .text = l->text, .source = l->source };
	return 0;
}

/* make_room() has made the room. */
static int apply_host(struct policy *p, const struct policy_line *l)
{
	p->net_rules[p->net_rule_count++] =
		(struct net_rule){ .rule = l->net, .source = l->source };
	return 0;
}

static int apply_publish(struct policy *p, const struct policy_line *l)
{
	struct publish_rule *grown =
		arena_push(p->arena, p->publishes, p->publish_count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->publishes = grown;
	grown[p->publish_count++] = (struct publish_rule){ .text = l->dest,
		.port = (uint16_t)(l->number >> 16),
		.host_port = (uint16_t)l->number,
		.source = l->source };
	return 0;
}

static int apply_word(
	struct policy *p, struct word_rule **rules, size_t *count, const struct policy_line *l)
{
	struct word_rule *grown = arena_push(p->arena, *rules, *count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*rules = grown;
	grown[(*count)++] = (struct word_rule){ .word = l->text, .source = l->source };
	return 0;
}

static int apply_promote(struct policy *p, struct promote_rule **rules, size_t *count,
	const struct policy_line *l)
{
	struct promote_rule *grown = arena_push(p->arena, *rules, *count, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*rules = grown;
	grown[(*count)++] = (struct promote_rule){
		.pattern = l->dest ? l->text : NULL,
		.dir = l->dest ? l->dest : l->text,
		.source = l->source,
	};
	return 0;
}

static int apply_scalar(struct policy *p, const struct setting *s, const struct policy_line *l)
{
	void *member = (char *)p + s->member;

	switch (s->kind) {
	case KIND_FLAG:
		*(struct flag_value *)member =
			(struct flag_value){ .on = l->number != 0, .source = l->source };
		return 0;
	case KIND_SIZE:
	case KIND_DURATION:
	case KIND_COUNT_NUMBER:
	case KIND_CHARACTERS:
	case KIND_CPUS:
		*(struct number_value *)member = (struct number_value){
			.value = l->number, .set = true, .source = l->source
		};
		return 0;
	default:
		*(struct text_value *)member =
			(struct text_value){ .value = l->text, .source = l->source };
		return 0;
	}
}

static int apply_line(struct policy *p, const struct policy_line *l)
{
	const struct setting *s = &settings_table[l->id];

	switch (s->kind) {
	case KIND_ENUM:
		return apply_enum(p, l);
	case KIND_PATH_RULE:
	case KIND_GLOB_RULE:
	case KIND_BIND:
	case KIND_TMPFS:
	case KIND_DEVICE:
		return apply_path(p, l);
	case KIND_ENV:
	case KIND_ENV_NAME:
		return apply_env(p, l);
	case KIND_SYSCALL:
		return apply_syscall(p, l);
	case KIND_HOST:
		return apply_host(p, l);
	case KIND_PUBLISH:
		return apply_publish(p, l);
	case KIND_SCRATCH_ENV:
		return apply_word(p, &p->scratch_envs, &p->scratch_env_count, l);
	case KIND_PASS_FD:
		return pass_apply(p, l);
	case KIND_PROMOTE:
		return apply_promote(p, &p->promotes, &p->promote_count, l);
	case KIND_DIRS:
		return apply_promote(p, &p->promote_tos, &p->promote_to_count, l);
	case KIND_WALL:
		return apply_word(p, &p->requires, &p->require_count, l);
	case KIND_SETTING:
		return apply_word(p, &p->locks, &p->lock_count, l);
	case KIND_PRESET:
		return s->id == SETTING_CACHE ? apply_word(p, &p->caches, &p->cache_count, l)
					      : apply_word(p, &p->withs, &p->with_count, l);
	case KIND_PROFILE:
	case KIND_INCLUDE:
	case KIND_POLICY_FILE:
		return 0; /* read already */
	default:
		return apply_scalar(p, s, l);
	}
}

/* Lines in the order of their layers, and which of them a later one replaces. */
struct order {
	const struct policy_line **lines;
	size_t count;
	uint32_t *table; /* hash table of 1 + index into lines */
	size_t mask;
};

static bool same_subject(const struct policy_line *a, const struct policy_line *b)
{
	if (a->hash != b->hash || policy_line_topic(a) != policy_line_topic(b))
		return false;
	return a->net ? netrule_same(a->net, b->net)
		      : !strcmp(policy_line_subject(a), policy_line_subject(b));
}

/* Puts @l last; an earlier line about the same thing is taken out. */
static void order_put(struct order *o, const struct policy_line *l)
{
	size_t index = o->count++;

	o->lines[index] = l;
	if (policy_line_topic(l) == 0)
		return;
	size_t slot = l->hash & o->mask;
	for (; o->table[slot]; slot = (slot + 1) & o->mask) {
		const struct policy_line **old = &o->lines[o->table[slot] - 1];

		if (same_subject(*old, l)) {
			*old = NULL;
			break;
		}
	}
	o->table[slot] = (uint32_t)(index + 1);
}

static void order_layer(
	struct order *o, const struct policy_line *lines, size_t count, enum layer layer)
{
	for (size_t i = 0; i < count; i++)
		if (lines[i].source.layer == layer)
			order_put(o, &lines[i]);
}

/* The long lists get the room they need; that of the paths a little more, for policy_add_path(). */
static int make_room(struct policy *to, const struct order *o)
{
	size_t paths = 0, envs = 0, hosts = 0;

	for (size_t i = 0; i < o->count; i++) {
		int topic = o->lines[i] ? policy_line_topic(o->lines[i]) : 0;

		paths += topic == TOPIC_PATH;
		envs += topic == TOPIC_ENV;
		hosts += o->lines[i] && settings_table[o->lines[i]->id].kind == KIND_HOST;
	}
	to->path_room = paths + PATHS_MORE;
	to->paths = arena_array(to->arena, to->path_room, sizeof(*to->paths));
	to->envs = arena_array(to->arena, envs, sizeof(*to->envs));
	to->net_rules = arena_array(to->local, hosts, sizeof(*to->net_rules));
	return to->paths && to->envs && to->net_rules ? 0 : -ENOMEM;
}

/*
 * Merges two runs of lines up to and including layer @top into @to.
 * A line that was replaced leaves a NULL in the order, and its slot of the table is taken over by
 * the line that replaced it: no slot ever points at a NULL.
 */
int policy_merge(
	struct policy *to, const struct policy *base, const struct policy *more, enum layer top)
{
	const struct policy *from[] = { base, more };
	size_t total = base->line_count + base->shipped_count, slots = 16;

	if (more)
		total += more->line_count + more->shipped_count;
	while (slots < 2 * total)
		slots *= 2;
	struct order o = {
		.lines = arena_array(to->local, total, sizeof(*o.lines)),
		.table = arena_array(to->local, slots, sizeof(*o.table)),
		.mask = slots - 1,
	};
	if (!o.lines || !o.table)
		return -ENOMEM;
	for (unsigned layer = LAYER_PROFILE; layer <= (unsigned)top; layer++)
		for (size_t f = 0; f < 2 && from[f]; f++) {
			order_layer(&o, from[f]->shipped, from[f]->shipped_count,
				(enum layer)layer);
			order_layer(&o, from[f]->lines, from[f]->line_count, (enum layer)layer);
		}
	if (make_room(to, &o) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < o.count; i++) {
		int r = o.lines[i] ? apply_line(to, o.lines[i]) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int policy_add_path(struct policy *p, const struct path_rule *rule)
{
	if (p->path_count == p->path_room) {
		struct path_rule *paths =
			arena_array(p->arena, p->path_count + PATHS_MORE, sizeof(*paths));

		if (!paths)
			return -ENOMEM;
		if (p->path_count)
			memcpy(paths, p->paths, p->path_count * sizeof(*paths));
		p->paths = paths;
		p->path_room = p->path_count + PATHS_MORE;
	}
	p->paths[p->path_count++] = *rule;
	return 0;
}
