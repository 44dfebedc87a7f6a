/*
 * netrule_set.c - rules made for asking: one hash table for names and blocks.
 *
 * Runs in: carrel-egress; the launcher and carrel-policy where they ask. PURE.
 *
 * The key of a rule is its name and kind, or its family, bits and address. A name is asked for as itself and below each of
 * its parents, an address with each number of bits that a rule has: how many rules there are does not matter.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "plan/netrule_private.h"

enum { SLOTS_MIN = 16, NONE = -1 };

struct entry {
	const struct netrule *rule; /* NULL: taken back */
	uint32_t hash;
	int next; /* of the same slot, in policy order; NONE at the end */
};

struct slot {
	int first, last;
};

struct netrules {
	struct arena *arena;
	struct entry *entries;
	struct slot *slots; /* a power of two */
	size_t count, room, slot_count;
	uint64_t bits_four, bits_six[3]; /* which numbers of bits some rule has */
};

/* What is asked for, or what a rule is for. */
struct key {
	enum netrule_kind kind;
	uint8_t family, bits;
	uint8_t address[16];
	const char *name;
};

/* --- keys ------------------------------------------------------------------------------------- */

/*
 * What runs inside chooses the names to look up, but only the policy chooses those that are stored.
 */
static uint32_t hash_key(const struct key *k)
{
	uint32_t sort = (uint32_t)k->kind << 16 | (uint32_t)k->family << 8 | k->bits;
	uint32_t hash = k->name ? hash_bytes(k->name, strlen(k->name))
				: hash_bytes(k->address, sizeof(k->address));

	return hash ^ sort * 2654435761u;
}

static bool is_for(const struct netrule *rule, const struct key *k)
{
	if (!rule || rule->kind != k->kind || rule->family != k->family ||
		rule->bits != k->bits)
		return false;
	return k->name ? !strcmp(rule->name, k->name)
		       : memcmp(rule->address, k->address, sizeof(k->address)) == 0;
}

static struct key key_of(const struct netrule *rule)
{
	struct key k = { .kind = rule->kind,
		.family = rule->family,
		.bits = rule->bits,
		.name = rule->name };

	memcpy(k.address, rule->address, sizeof(k.address));
	return k;
}

/* @address with only the first @bits bits. */
static struct key key_block(unsigned family, const uint8_t *address, unsigned bits)
{
	struct key k = {
		.kind = NETRULE_BLOCK, .family = (uint8_t)family, .bits = (uint8_t)bits
	};
	unsigned whole = bits / 8, rest = bits % 8;

	memcpy(k.address, address, whole);
	if (rest)
		k.address[whole] = (uint8_t)(address[whole] & 0xff << (8 - rest));
	return k;
}

/* --- the table -------------------------------------------------------------------------------- */

static void link_entry(struct netrules *set, size_t n)
{
	struct slot *slot = &set->slots[set->entries[n].hash & (set->slot_count - 1)];

	set->entries[n].next = NONE;
	if (slot->first == NONE)
		slot->first = (int)n;
	else
		set->entries[slot->last].next = (int)n;
	slot->last = (int)n;
}

/*
 * Make room for @room rules. Old tables stay in the arena: all of them are no larger than the new
 * one.
 */
static int grow(struct netrules *set, size_t room)
{
	size_t slots = SLOTS_MIN;

	while (slots < room)
		slots *= 2;
	struct entry *entries = arena_array(set->arena, slots, sizeof(*entries));
	struct slot *table = arena_array(set->arena, slots, sizeof(*table));
	if (!entries || !table)
		return -ENOMEM;
	if (set->count > 0)
		memcpy(entries, set->entries, set->count * sizeof(*entries));
	for (size_t i = 0; i < slots; i++)
		table[i] = (struct slot){ NONE, NONE };
	set->entries = entries;
	set->slots = table;
	set->room = set->slot_count = slots;
	for (size_t i = 0; i < set->count; i++)
		link_entry(set, i);
	return 0;
}

int netrules_add(struct netrules *set, const struct netrule *rule)
{
	if (set->count == set->room) {
		int r = set->count < INT32_MAX / 4 ? grow(set, set->count * 2) : -ENOMEM;

		if (r < 0)
			return r;
	}
	struct key k = key_of(rule);
	set->entries[set->count] = (struct entry){ .rule = rule, .hash = hash_key(&k) };
	link_entry(set, set->count++);
	if (rule->kind == NETRULE_BLOCK && rule->family == 4)
		set->bits_four |= UINT64_C(1) << rule->bits;
	else if (rule->kind == NETRULE_BLOCK)
		set->bits_six[rule->bits / 64] |= UINT64_C(1) << rule->bits % 64;
	return 0;
}

int netrules_remove(struct netrules *set, size_t number)
{
	if (number >= set->count || !set->entries[number].rule)
		return -ENOENT;
	set->entries[number].rule = NULL;
	return 0;
}

int netrules_make(
	struct netrules **ret, struct arena *arena, const struct netrule *rules, size_t count)
{
	struct netrules *set = arena_alloc(arena, sizeof(*set));

	if (!set || count > INT32_MAX / 4)
		return -ENOMEM;
	set->arena = arena;
	int r = grow(set, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = netrules_add(set, &rules[i]);
	if (r == 0)
		*ret = set;
	return r;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* What was found so far, over all keys: the first rule of each sort in policy order. */
struct verdict {
	int allow, deny;
};

static bool has_port(const struct netrule *rule, uint16_t port)
{
	for (unsigned i = 0; i < rule->port_count; i++)
		if (rule->ports[i] == port)
			return true;
	return rule->port_count == 0; /* a deny of every port */
}

static void earlier(int *first, int n)
{
	if (*first == NONE || n < *first)
		*first = n;
}

/* The rules with this key. @allowing: its `allow` lines count, not only its `deny` lines. */
static void ask(const struct netrules *set, const struct key *k, uint16_t port, bool allowing,
	struct verdict *v)
{
	uint32_t hash = hash_key(k);

	for (int n = set->slots[hash & (set->slot_count - 1)].first; n != NONE;
		n = set->entries[n].next) {
		const struct netrule *rule = set->entries[n].rule;

		if (set->entries[n].hash != hash || !is_for(rule, k) || !has_port(rule, port))
			continue;
		if (rule->deny)
			earlier(&v->deny, n);
		else if (allowing)
			earlier(&v->allow, n);
	}
}

static void ask_name(
	const struct netrules *set, const char *name, uint16_t port, struct verdict *v)
{
	struct key k = { .kind = NETRULE_NAME, .name = name };

	ask(set, &k, port, true, v);
	k.kind = NETRULE_BELOW;
	while ((k.name = strchr(k.name, '.')) != NULL) {
		k.name++;
		ask(set, &k, port, true, v);
	}
}

static bool decide(const struct verdict *v, int *ret_rule)
{
	*ret_rule = v->deny != NONE ? v->deny : v->allow;
	return v->deny == NONE && v->allow != NONE;
}

/*
 * Whether some `allow` has a port that no `deny` takes away. The first rules that decide are put
 * into @first.
 */
static bool any_port(const struct netrules *set, const char *name, const struct key *k,
	struct verdict *first)
{
	uint32_t hash = hash_key(k);

	for (int n = set->slots[hash & (set->slot_count - 1)].first; n != NONE;
		n = set->entries[n].next) {
		const struct netrule *rule = set->entries[n].rule;

		if (set->entries[n].hash != hash || !is_for(rule, k) || rule->deny)
			continue;
		for (unsigned i = 0; i < rule->port_count; i++) {
			struct verdict v = { NONE, NONE };

			ask_name(set, name, rule->ports[i], &v);
			if (v.deny != NONE) {
				earlier(&first->deny, v.deny);
			} else {
				earlier(&first->allow, n);
				break;
			}
		}
	}
	return first->allow != NONE;
}

bool netrules_name(const struct netrules *set, const char *name, uint16_t port, int *ret_rule)
{
	struct verdict v = { NONE, NONE };
	struct key k = { .kind = NETRULE_NAME, .name = name };

	if (port != 0) {
		ask_name(set, name, port, &v);
		return decide(&v, ret_rule);
	}
	bool found = any_port(set, name, &k, &v);
	k.kind = NETRULE_BELOW;
	while ((k.name = strchr(k.name, '.')) != NULL) {
		k.name++;
		found |= any_port(set, name, &k, &v);
	}
	if (!found && v.deny == NONE) /* a deny of every port, and no `allow` beside it */
		ask_name(set, name, 0, &v);
	*ret_rule = found ? v.allow : v.deny;
	return found;
}

static bool has_bits(const struct netrules *set, unsigned family, unsigned bits)
{
	if (family == 4)
		return set->bits_four >> bits & 1;
	return set->bits_six[bits / 64] >> bits % 64 & 1;
}

/* @allow_from: an `allow` counts if its block has at least that many bits; 129: none counts. */
static void ask_address(const struct netrules *set, unsigned family, const uint8_t *address,
	uint16_t port, int allow_from, struct verdict *v)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	int most = family == 4 ? 32 : 128;

	for (int bits = 0; bits <= most; bits++)
		if (has_bits(set, family, (unsigned)bits)) {
			struct key k = key_block(family, address, (unsigned)bits);

			ask(set, &k, port, bits >= allow_from, v);
		}
	if (family == 4 ? address[0] == 127 : memcmp(address, loopback, 16) == 0) {
		struct key k = { .kind = NETRULE_LOCALHOST };

		ask(set, &k, port, allow_from <= most, v);
	}
}

bool netrules_address(const struct netrules *set, unsigned family, const uint8_t *address,
	uint16_t port, int *ret_rule)
{
	struct verdict v = { NONE, NONE };
	unsigned before;

	if (family == 6 && netrule_is_mapped(address)) {
		family = 4;
		address += 12;
	}
	ask_address(set, family, address, port, netrule_special(family, address), &v);
	const uint8_t *inner = family == 6 ? netrule_inner(address, &before) : NULL;
	if (inner)
		ask_address(set, 4, inner, port, 129, &v);
	return decide(&v, ret_rule);
}
