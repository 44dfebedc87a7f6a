/*
 * mountinfo.c - see mountinfo.h.
 *
 * Runs in: the launcher and carrel-policy, outside. A machine may have thousands of mounts: one pass over
 * the text, in place.
 */
#include "host/facts/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "plan/path.h"

enum { TEXT_MAX = 16 << 20 };

/* The next field of a line, NUL-terminated; NULL at its end. */
static char *take_field(char **at)
{
	char *field = *at;

	if (!field || !*field)
		return NULL;
	char *space = strchr(field, ' ');
	if (space)
		*space = '\0';
	*at = space ? space + 1 : field + strlen(field);
	return field;
}

/* Decimal digits up to @end; -EBADMSG where there are none, or too many. */
static int take_number(const char **at, char end, unsigned *ret)
{
	const char *p = *at;
	unsigned value = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10U, &value) ||
			__builtin_add_overflow(value, (unsigned)(*p - '0'), &value))
			return -EBADMSG;
	if (p == *at || *p != end)
		return -EBADMSG;
	*at = p + 1;
	*ret = value;
	return 0;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Decode, in place, what the kernel writes as \ooo. It writes \134 for '\', so no backslash stands for itself. */
static int unescape(char *field)
{
	char *from = strchr(field, '\\'), *to = from;

	while (from && *from) {
		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		if (!is_octal(from[1]) || from[1] > '3' || !is_octal(from[2]) ||
			!is_octal(from[3]))
			return -EBADMSG;
		int c = (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0');
		if (!c)
			return -EBADMSG;
		*to++ = (char)c;
		from += 4;
	}
	if (to)
		*to = '\0';
	return 0;
}

/* --- the layers of an overlay ----------------------------------------------------------------- */

static int add_layer(struct mountinfo *t, struct arena *a, const char *path)
{
	/* A relative path started at a directory that the table does not name. */
	if (path[0] != '/')
		return 0;
	struct mount_layer *grown = arena_push(a, t->layers, t->layer_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->layers = grown;
	t->layers[t->layer_count++] = (struct mount_layer){ t->count, path };
	return 0;
}

/* PATH[:PATH]..., with a '\' in front of what belongs to a path. */
static int add_layers(struct mountinfo *t, struct arena *a, char *list)
{
	int r = 0;

	while (r >= 0 && list) {
		char *from = list, *to = list;

		while (*from && *from != ':') {
			if (*from == '\\' && from[1])
				from++;
			*to++ = *from++;
		}
		char *next = *from ? from + 1 : NULL;
		*to = '\0';
		r = add_layer(t, a, list);
		list = next;
	}
	return r;
}

/* See: Documentation/filesystems/overlayfs.rst, "Mount options". */
static int take_layers(struct mountinfo *t, struct arena *a, char *options)
{
	int r = 0;

	while (r >= 0 && options) {
		char *option = options, *comma = strchr(options, ',');
		char *value = strchr(option, '=');

		if (comma)
			*comma = '\0';
		options = comma ? comma + 1 : NULL;
		if (!value || (comma && value > comma))
			continue;
		*value++ = '\0';
		bool list = !strcmp(option, "lowerdir");
		if (!list && strcmp(option, "upperdir") != 0 &&
			strcmp(option, "lowerdir+") != 0 && strcmp(option, "datadir+") != 0)
			continue;
		r = unescape(value);
		if (r >= 0)
			r = list ? add_layers(t, a, value) : add_layer(t, a, value);
	}
	return r;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int take_ids(struct mount_entry *m, char **at)
{
	const char *id = take_field(at), *parent = take_field(at), *device = take_field(at);
	unsigned major = 0, minor = 0;

	if (!device)
		return -EBADMSG;
	int r = take_number(&id, '\0', &m->id);
	if (r < 0)
		return r;
	r = take_number(&parent, '\0', &m->parent);
	if (r < 0)
		return r;
	r = take_number(&device, ':', &major);
	if (r < 0)
		return r;
	r = take_number(&device, '\0', &minor);
	m->device = (uint64_t)major << 32 | minor;
	return r;
}

static int take_line(struct mountinfo *t, struct arena *a, char *line)
{
	struct mount_entry m = { 0 };
	char *field;
	int r = take_ids(&m, &line);
	char *root = r < 0 ? NULL : take_field(&line);
	char *point = take_field(&line);
	char *flags = take_field(&line);

	if (r < 0 || !root || !flags || point[0] != '/')
		return -EBADMSG;
	do
		field = take_field(&line);
	while (field && strcmp(field, "-") != 0);
	const char *type = take_field(&line), *source = take_field(&line);
	if (!type || !source)
		return -EBADMSG;
	r = unescape(root);
	if (r >= 0)
		r = unescape(point);
	if (r >= 0 && !strcmp(type, "overlay"))
		r = take_layers(t, a, line);
	m.root = root;
	m.point = point;
	m.root_head = mountinfo_head(root);
	m.is_proc = !strcmp(type, "proc");
	struct mount_entry *grown =
		r < 0 ? NULL : arena_push(a, t->mounts, t->count, sizeof(*grown));
	if (!grown)
		return r < 0 ? r : -ENOMEM;
	t->mounts = grown;
	t->mounts[t->count++] = m;
	return 0;
}

/* --- where a path lies ------------------------------------------------------------------------ */

struct mount_head mountinfo_head(const char *path)
{
	struct mount_head h = { 0 };
	unsigned char bytes[sizeof(h.bytes)] = { 0 }, mask[sizeof(h.mask)] = { 0 };

	for (size_t i = 0; i < sizeof(bytes) && path[i]; i++) {
		bytes[i] = (unsigned char)path[i];
		mask[i] = 0xff;
	}
	memcpy(&h.bytes, bytes, sizeof(bytes));
	memcpy(&h.mask, mask, sizeof(mask));
	return h;
}

static int hash_points(struct mountinfo *t, struct arena *a)
{
	size_t size = 16;

	while (size < t->count * 2)
		size *= 2;
	t->slots = arena_array(a, size, sizeof(*t->slots));
	t->slot_mask = size - 1;
	for (size_t i = 0; t->slots && i < t->count; i++) {
		const char *point = t->mounts[i].point;
		size_t slot = hash_bytes(point, strlen(point)) & t->slot_mask;

		while (t->slots[slot])
			slot = (slot + 1) & t->slot_mask;
		t->slots[slot] = (uint32_t)i + 1;
	}
	return t->slots ? 0 : -ENOMEM;
}

/* Find the mount on @at, where @path leads after @length bytes; of two mounts the later one. */
static const struct mount_entry *next_mount(const struct mountinfo *t,
	const struct mount_entry *at, const char *path, size_t length)
{
	size_t slot = hash_bytes(path, length) & t->slot_mask;
	const struct mount_entry *next = NULL;

	for (; t->slots[slot]; slot = (slot + 1) & t->slot_mask) {
		const struct mount_entry *m = &t->mounts[t->slots[slot] - 1];

		if (m != at && m->parent == at->id && !strncmp(m->point, path, length) &&
			!m->point[length])
			next = m;
	}
	return next;
}

const struct mount_entry *mountinfo_find(const struct mountinfo *t, const char *path)
{
	const struct mount_entry *at = t->root;
	size_t steps = 0, length = 1;

	while (at) {
		const struct mount_entry *next = next_mount(t, at, path, length);

		/* A table that goes round in circles is none. */
		if (next && steps++ > t->count)
			return NULL;
		if (next)
			at = next;
		else if (!path[length])
			break;
		else
			length += strcspn(path + length + 1, "/") + 1;
	}
	return at;
}

static bool has_id(const struct mountinfo *t, unsigned id)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->mounts[i].id == id)
			return true;
	return false;
}

/* Find the mount that other mounts of "/" stand on: its own parent is out of sight. */
static const struct mount_entry *find_root(const struct mountinfo *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct mount_entry *m = &t->mounts[i];

		if (!strcmp(m->point, "/") && (m->parent == m->id || !has_id(t, m->parent)))
			return m;
	}
	return NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

int mountinfo_parse(struct mountinfo *ret, struct arena *a, char *text, size_t size)
{
	struct mountinfo t = { 0 };

	if (memchr(text, '\0', size) || (size && text[size - 1] != '\n'))
		return -EBADMSG;
	for (char *line = text; line < text + size;) {
		char *end = strchr(line, '\n');

		*end = '\0';
		int r = take_line(&t, a, line);
		if (r < 0)
			return r;
		line = end + 1;
	}
	t.root = find_root(&t);
	int r = hash_points(&t, a);
	if (r >= 0)
		*ret = t;
	return r;
}

int mountinfo_read(struct mountinfo *ret, struct arena *a)
{
	size_t room;
	char *text = arena_rest(a, &room);
	autofd int fd = fd_open_at(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY, 0);

	if (fd < 0)
		return fd;
	if (!room)
		return -ENOMEM;
	size_t most = room > TEXT_MAX ? TEXT_MAX : room - 1;
	ssize_t n = fd_read_file(fd, text, most);
	if (n < 0) {
		(void)arena_keep(a, 0, most);
		return (int)n;
	}
	(void)arena_keep(a, (size_t)n + 1, (size_t)n + 1);
	return mountinfo_parse(ret, a, text, (size_t)n);
}
