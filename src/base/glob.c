/*
 * glob.c - see glob.h.
 *
 * Runs in: every process outside. May not: recurse; the time is at most the product of both lengths.
 */
#include "base/glob.h"

#include <string.h>

struct text {
	const char *at, *end;
};

/* --- one byte ---------------------------------------------------------------------------------- */

static bool is_between(unsigned char c, unsigned char low, unsigned char high)
{
	return c >= low && c <= high;
}

static bool is_upper(unsigned char c)
{
	return is_between(c, 'A', 'Z');
}

static bool is_lower(unsigned char c)
{
	return is_between(c, 'a', 'z');
}

static bool is_digit(unsigned char c)
{
	return is_between(c, '0', '9');
}

static bool is_alpha(unsigned char c)
{
	return is_upper(c) || is_lower(c);
}

static bool is_alnum(unsigned char c)
{
	return is_alpha(c) || is_digit(c);
}

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static bool is_space(unsigned char c)
{
	return c == ' ' || is_between(c, '\t', '\r');
}

static bool is_cntrl(unsigned char c)
{
	return c < ' ' || c == 0x7f;
}

static bool is_print(unsigned char c)
{
	return is_between(c, ' ', '~');
}

static bool is_graph(unsigned char c)
{
	return is_between(c, '!', '~');
}

static bool is_punct(unsigned char c)
{
	return is_graph(c) && !is_alnum(c);
}

static bool is_xdigit(unsigned char c)
{
	return is_digit(c) || is_between(c, 'A', 'F') || is_between(c, 'a', 'f');
}

/* The classes of the C locale. An unknown class holds nothing. */
static bool is_in_class(const char *name, size_t length, unsigned char c)
{
	static const struct {
		const char *name;
		bool (*holds)(unsigned char c);
	} classes[] = {
		{ "alnum", is_alnum },
		{ "alpha", is_alpha },
		{ "blank", is_blank },
		{ "cntrl", is_cntrl },
		{ "digit", is_digit },
		{ "graph", is_graph },
		{ "lower", is_lower },
		{ "print", is_print },
		{ "punct", is_punct },
		{ "space", is_space },
		{ "upper", is_upper },
		{ "xdigit", is_xdigit },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strlen(classes[i].name) == length && !memcmp(classes[i].name, name, length))
			return classes[i].holds(c);
	return false;
}

/* --- sets --------------------------------------------------------------------------------------- */

/* The "[:name:]" at @p, else NULL. @ret_end: behind it. */
static const char *find_class(struct text p, const char **ret_end)
{
	if (p.end - p.at < 4 || p.at[0] != '[' || p.at[1] != ':')
		return NULL;
	for (const char *end = p.at + 2; end + 1 < p.end && is_lower((unsigned char)*end);
		end++)
		if (end[1] == ':' && end + 2 < p.end && end[2] == ']') {
			*ret_end = end + 3;
			return p.at + 2;
		}
	return NULL;
}

/* One letter of a set, which may be escaped. Where the set ends within it @p is left at its end. */
static unsigned char take_letter(struct text *p)
{
	if (*p->at == '\\' && p->at + 1 < p->end)
		p->at++;
	return (unsigned char)*p->at++;
}

/*
 * Whether @c is in the set that begins with the '[' at @p, which is moved behind it. -1: it is not
 * closed, so it is no set.
 */
static int is_in_set(struct text *p, unsigned char c)
{
	struct text at = { p->at + 1, p->end };
	bool negated = at.at < at.end && (*at.at == '!' || *at.at == '^'), found = false;
	const char *first = at.at += negated, *class_end;

	while (at.at < at.end && (*at.at != ']' || at.at == first)) {
		const char *class = find_class(at, &class_end);

		if (class) {
			found |= is_in_class(class, (size_t)(class_end - 2 - class), c);
			at.at = class_end;
			continue;
		}
		unsigned char low = take_letter(&at), high = low;
		if (at.end - at.at >= 2 && at.at[0] == '-' && at.at[1] != ']') {
			at.at++;
			high = take_letter(&at);
		}
		found |= is_between(c, low, high);
	}
	if (at.at >= at.end)
		return -1;
	p->at = at.at + 1;
	return found != negated;
}

/* Compare the part of the pattern at @p that stands for one byte with @c, and move @p behind it. Not for '*'. */
static bool fits_byte(struct text *p, char c)
{
	if (*p->at == '?') {
		p->at++;
		return true;
	}
	if (*p->at == '[') {
		int r = is_in_set(p, (unsigned char)c);

		if (r >= 0)
			return r;
	}
	if (*p->at == '\\' && ++p->at == p->end)
		return false;
	return *p->at++ == c;
}

/* --- names and paths ---------------------------------------------------------------------------- */

/* Only a period, or an escaped one, matches a leading period. */
static bool matches_period(struct text p)
{
	return p.at < p.end &&
		(*p.at == '.' || (*p.at == '\\' && p.at + 1 < p.end && p.at[1] == '.'));
}

bool glob_name_fits(const char *pattern, size_t length, const char *name, size_t size)
{
	struct text p = { pattern, pattern + length }, star = { NULL, p.end };
	const char *end = name + size, *back = NULL;

	if (size > 0 && name[0] == '.' && !matches_period(p))
		return false;
	while (name < end || p.at < p.end) {
		struct text next = p;

		if (p.at < p.end && *p.at == '*') {
			star.at = ++p.at;
			back = name;
		} else if (name < end && p.at < p.end && fits_byte(&next, *name)) {
			p = next;
			name++;
		} else if (star.at && back < end) {
			p.at = star.at;
			name = ++back;
		} else {
			return false;
		}
	}
	return true;
}

bool glob_path_fits(const char *pattern, const char *path)
{
	for (;;) {
		pattern += strspn(pattern, "/");
		path += strspn(path, "/");
		size_t length = strcspn(pattern, "/"), size = strcspn(path, "/");

		if (length == 0)
			return true;
		if (size == 0 || !glob_name_fits(pattern, length, path, size))
			return false;
		pattern += length;
		path += size;
	}
}

bool glob_star_fits(const char *pattern, const char *name, size_t size)
{
	const char *star = NULL;
	size_t at = 0, back = 0;

	while (at < size) {
		if (*pattern == '*') {
			star = ++pattern;
			back = at;
		} else if (*pattern && *pattern == name[at]) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star;
			at = ++back;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
