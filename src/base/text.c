/*
 * text.c - see text.h.
 *
 * Runs in: every process outside the box. May not: allocate, depend on the locale.
 */
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 63

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "K", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "GiB", UINT64_C(1) << 30 },
	{ "TiB", UINT64_C(1) << 40 },
};

static const struct unit duration_units[] = {
	{ "", 1000 },
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "h", 3600 * 1000 },
	{ "d", 24 * 3600 * 1000 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads decimal digits at *at and moves behind them. 0, -EINVAL (none) or -ERANGE. */
static int read_digits(const char **at, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *at;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	*at = p;
	*ret = value;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(units[i].name, name))
			return &units[i];
	return NULL;
}

int text_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t value;
	int r = read_digits(&text, &value);

	if (r < 0)
		return r;
	const struct unit *unit = find_unit(size_units, COUNT(size_units), text);
	if (!unit || value == 0)
		return -EINVAL;
	if (__builtin_mul_overflow(value, unit->factor, &value))
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

/* The digits after a point as a fraction of @factor, rounded down. Moves *at behind them. */
static int read_fraction(const char **at, uint64_t factor, uint64_t *ret)
{
	uint64_t numerator = 0, denominator = 1;
	const char *p = *at;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		if (denominator == UINT64_C(1000000000))
			return -EINVAL;
		numerator = numerator * 10 + (uint64_t)(*p - '0');
		denominator *= 10;
	}
	*at = p;
	*ret = numerator * factor / denominator;
	return 0;
}

int text_parse_duration(const char *text, uint64_t *ret_ms)
{
	uint64_t whole, part = 0;
	int r = read_digits(&text, &whole);

	if (r < 0)
		return r;
	const char *fraction = *text == '.' ? text + 1 : NULL;
	if (fraction)
		text = fraction + strspn(fraction, "0123456789");
	const struct unit *unit = find_unit(duration_units, COUNT(duration_units), text);
	if (!unit)
		return -EINVAL;
	if (fraction) {
		r = read_fraction(&fraction, unit->factor, &part);
		if (r < 0)
			return r;
	}
	if (whole > TEXT_DURATION_MAX_MS / unit->factor)
		return -ERANGE;
	whole = whole * unit->factor + part;
	if (whole == 0)
		return -EINVAL;
	*ret_ms = whole;
	return 0;
}

int text_parse_thousandths(const char *text, uint64_t *ret_thousandths)
{
	uint64_t whole, part = 0;
	int r = read_digits(&text, &whole);

	if (r < 0)
		return r;
	if (*text == '.') {
		text++;
		if (strspn(text, "0123456789") > 3)
			return -EINVAL;
		r = read_fraction(&text, 1000, &part);
		if (r < 0)
			return r;
	}
	if (*text || (whole == 0 && part == 0))
		return -EINVAL;
	if (__builtin_mul_overflow(whole, 1000, &whole) ||
		__builtin_add_overflow(whole, part, &whole))
		return -ERANGE;
	*ret_thousandths = whole;
	return 0;
}

int text_parse_count(const char *text, uint64_t *ret_count)
{
	uint64_t value;
	int r = read_digits(&text, &value);

	if (r < 0)
		return r;
	if (*text || value == 0)
		return -EINVAL;
	*ret_count = value;
	return 0;
}

/* The largest of the first @count units that divides @value; units[0] where none does. */
static const struct unit *best_unit(const struct unit *units, size_t count, uint64_t value)
{
	const struct unit *best = &units[0];

	for (size_t i = 1; i < count; i++)
		if (value % units[i].factor == 0 && units[i].factor > best->factor)
			best = &units[i];
	return best;
}

void text_format_size(uint64_t bytes, char *ret_text, size_t size)
{
	const struct unit *unit = best_unit(size_units, 5, bytes);

	(void)snprintf(ret_text, size, "%" PRIu64 "%s", bytes / unit->factor, unit->name);
}

void text_format_duration(uint64_t ms, char *ret_text, size_t size)
{
	const struct unit *unit = best_unit(duration_units + 1, COUNT(duration_units) - 1, ms);

	(void)snprintf(ret_text, size, "%" PRIu64 "%s", ms / unit->factor, unit->name);
}

void text_format_thousandths(uint64_t thousandths, char *ret_text, size_t size)
{
	unsigned part = (unsigned)(thousandths % 1000), digits = 3;

	for (; digits > 0 && part % 10 == 0; digits--)
		part /= 10;
	if (digits)
		(void)snprintf(ret_text, size, "%" PRIu64 ".%0*u", thousandths / 1000,
			(int)digits, part);
	else
		(void)snprintf(ret_text, size, "%" PRIu64, thousandths / 1000);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned text_distance(const char *a, const char *b, unsigned limit)
{
	size_t la = strlen(a), lb = strlen(b);
	unsigned char rows[3][WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return limit + 1;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned char *row = rows[i % 3], *last = rows[(i + 2) % 3];
		const unsigned char *before = rows[(i + 1) % 3];

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned d = last[j - 1] + (a[i - 1] != b[j - 1] ? 1U : 0U);

			d = least(d, least(last[j], row[j - 1]) + 1U);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, before[j - 2] + 1U);
			row[j] = (unsigned char)d;
		}
	}
	return least(rows[la % 3][lb], limit + 1);
}

const char *text_nearest(const char *word, const char *const *list, size_t count)
{
	size_t length = strlen(word);
	const char *nearest = NULL;

	if (length >= 2)
		for (size_t i = 0; i < count; i++)
			if (!strncmp(list[i], word, length))
				return list[i];
	unsigned limit = length < 3 ? 1 : least((unsigned)(length + 2) / 3, 4);
	for (size_t i = 0; i < count; i++) {
		unsigned d = text_distance(word, list[i], limit);

		if (d <= limit) {
			nearest = list[i];
			limit = d ? d - 1 : 0;
		}
		if (d == 0)
			break;
	}
	return nearest;
}

void text_words(const char *const *words, size_t count, char *ret_text, size_t size)
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < count && used < size; i++) {
		const char *between = i == 0 ? "" : i + 1 < count ? ", " : " or ";
		int n = snprintf(ret_text + used, size - used, "%s%s", between, words[i]);

		used += n < 0 ? size : (size_t)n;
	}
	if (used >= size)
		ret_text[0] = '\0';
}

size_t text_utf8_length(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;

	if (size == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || length > size)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

bool text_is_utf8(const char *text, size_t size)
{
	while (size > 0) {
		size_t length = text_utf8_length(text, size);

		if (length == 0)
			return false;
		text += length;
		size -= length;
	}
	return true;
}

/* Marks, embeddings, overrides and isolates of writing from right to left. */
static bool reorders(const unsigned char *p)
{
	if (p[0] == 0xd8)
		return p[1] == 0x9c; /* U+061C */
	if (p[0] != 0xe2)
		return false;
	if (p[1] == 0x80) /* U+200E, U+200F, U+202A to U+202E */
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae);
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9; /* U+2066 to U+2069 */
}

/*
 * Blanks that are not the blank, and characters that are shown as nothing, the byte order mark
 * included: nobody sees them where they are wrong. Joiners are not among them: words are written
 * with them.
 */
static bool looks_blank(const unsigned char *p)
{
	if (p[0] == 0xc2)
		return p[1] == 0xa0 || p[1] == 0xad; /* U+00A0, U+00AD */
	if (p[0] == 0xe1)
		return (p[1] == 0x9a && p[2] == 0x80) || (p[1] == 0xa0 && p[2] == 0x8e);
	if (p[0] == 0xe2 && p[1] == 0x80) /* U+2000 to U+200B, U+2028, U+2029, U+202F */
		return p[2] <= 0x8b || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf;
	if (p[0] == 0xe2 && p[1] == 0x81) /* U+205F to U+2064 */
		return p[2] >= 0x9f && p[2] <= 0xa4;
	return (p[0] == 0xe3 && p[1] == 0x80 && p[2] == 0x80) || /* U+3000 */
		(p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);  /* U+FEFF */
}

size_t text_printable_length(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = text_utf8_length(text, size);

	if (n == 1 && (p[0] < 0x20 || p[0] == 0x7f))
		return 0;
	if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
		return 0;
	return n > 1 && (reorders(p) || looks_blank(p)) ? 0 : n;
}

size_t text_visible(const char **text, const char *special, char *ret_text, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	const char *at = *text;
	size_t left = strlen(at), used = 0;

	while (left > 0 && used + 5 <= size) {
		size_t n = text_printable_length(at, left);

		if (n == 0 || (n == 1 && strchr(special, *at))) {
			n = 1;
			memcpy(ret_text + used, "\\x", 2);
			ret_text[used + 2] = hex[(unsigned char)*at >> 4];
			ret_text[used + 3] = hex[*at & 15];
			used += 4;
		} else {
			memcpy(ret_text + used, at, n);
			used += n;
		}
		at += n;
		left -= n;
	}
	ret_text[used] = '\0';
	*text = at;
	return used;
}
