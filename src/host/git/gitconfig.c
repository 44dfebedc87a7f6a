/*
 * gitconfig.c - see gitconfig.h.
 *
 * Runs in: the launcher, outside.
 * The grammar follows git-config(1), "Syntax", in the order in which git reads it.
 */
#include "host/git/gitconfig.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX (1u << 20)
#define END (-1)

void gitconfig_start(struct gitconfig *c, int fd)
{
	c->fd = fd;
	c->at = c->length = c->total = 0;
	c->section_length = 0;
	c->broken = false;
}

/* fill - make the buffer hold something. 1, 0 at the end, or -errno. */
static int fill_buffer(struct gitconfig *c)
{
	ssize_t n;

	if (c->at < c->length)
		return 1;
	do
		n = read(c->fd, c->buffer, sizeof(c->buffer));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c->at = 0;
	c->length = (size_t)n;
	c->total += (size_t)n;
	if (c->total > CONFIG_MAX)
		return -EFBIG;
	return n > 0;
}

/* next_char - a byte, END at the end, or an error below END. "\r\n" reads as "\n". */
static int next_char(struct gitconfig *c)
{
	int got = fill_buffer(c);

	if (got <= 0)
		return got < 0 ? got + END : END;
	unsigned char byte = (unsigned char)c->buffer[c->at++];

	if (byte == '\0')
		return -EBADMSG + END;
	if (byte != '\r')
		return byte;
	got = fill_buffer(c);
	if (got < 0)
		return got + END;
	if (got > 0 && c->buffer[c->at] == '\n')
		c->at++;
	else
		return '\r';
	return '\n';
}

/* offset - how much of the file is behind us. */
static size_t offset(const struct gitconfig *c)
{
	return c->total - (c->length - c->at);
}

static bool is_blank(int ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\v' || ch == '\f';
}

static bool is_alpha(int ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static bool is_key(int ch)
{
	return is_alpha(ch) || (ch >= '0' && ch <= '9') || ch == '-';
}

static char lower(int ch)
{
	return (char)(ch >= 'A' && ch <= 'Z' ? ch + ('a' - 'A') : ch);
}

/* put_name - append to the name; one that is too long stays too long, and matches nothing. */
static size_t put_name(struct gitconfig *c, size_t length, char ch)
{
	if (length < sizeof(c->name) - 1)
		c->name[length] = ch;
	return length < sizeof(c->name) ? length + 1 : length;
}

/* read_subsection - the quoted part of [section "sub"], after its blank. */
static int read_subsection(struct gitconfig *c, size_t length)
{
	int ch;

	do
		ch = next_char(c);
	while (is_blank(ch));
	if (ch != '"')
		return -EBADMSG;
	length = put_name(c, length, '.');
	for (;;) {
		ch = next_char(c);
		if (ch == '"')
			break;
		if (ch == '\\')
			ch = next_char(c);
		if (ch < 0 || ch == '\n')
			return ch < END ? ch - END : -EBADMSG;
		length = put_name(c, length, (char)ch);
	}
	if (next_char(c) != ']')
		return -EBADMSG;
	c->section_length = put_name(c, length, '.');
	return 0;
}

/* read_section - after the '[', up to and with the ']'. */
static int read_section(struct gitconfig *c)
{
	size_t length = 0;

	for (;;) {
		int ch = next_char(c);

		if (ch == ']') {
			c->section_length = put_name(c, length, '.');
			return 0;
		}
		if (is_blank(ch))
			return read_subsection(c, length);
		if (!is_key(ch) && ch != '.')
			return ch < END ? ch - END : -EBADMSG;
		length = put_name(c, length, lower(ch));
	}
}

/* escaped - what follows a backslash in a value; 0 for a line that goes on. */
static int escaped(int ch)
{
	switch (ch) {
	case '\n':
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return ch;
	default:
		return ch < END ? ch : -EBADMSG + END;
	}
}

static void put_value(struct gitconfig *c, char ch)
{
	if (c->value_length < sizeof(c->value) - 1)
		c->value[c->value_length++] = ch;
	else
		c->cut = true;
}

/* read_value - after the '=', up to and with the end of the line. */
static int read_value(struct gitconfig *c)
{
	bool quoted = false, comment = false;
	size_t keep = 0; /* length without trailing blanks */

	for (;;) {
		int ch = next_char(c);

		if (ch < END)
			return ch - END;
		if (ch == '\n' || ch == END) {
			if (quoted)
				return -EBADMSG;
			c->value_length = keep;
			return 0;
		}
		if (comment)
			continue;
		if (!quoted && is_blank(ch)) {
			if (c->value_length > 0)
				put_value(c, (char)ch);
			continue;
		}
		if (!quoted && (ch == '#' || ch == ';')) {
			comment = true;
			continue;
		}
		if (ch == '"') {
			quoted = !quoted;
			continue;
		}
		if (ch == '\\') {
			ch = escaped(next_char(c));
			if (ch < 0)
				return ch == END ? -EBADMSG : ch - END;
			if (ch == 0)
				continue;
		}
		put_value(c, (char)ch);
		keep = c->value_length;
	}
}

/* read_entry - a key whose first letter is @first, and its value. 1 or -errno. */
static int read_entry(struct gitconfig *c, int first)
{
	size_t length = put_name(c, c->section_length, lower(first));
	int result = 0;

	c->start = offset(c) - 1; /* @first is behind us */
	c->value_length = 0;
	c->cut = false;

	int ch = next_char(c);

	for (; is_key(ch); ch = next_char(c))
		length = put_name(c, length, lower(ch));
	while (is_blank(ch))
		ch = next_char(c);
	if (ch == '=')
		result = read_value(c);
	else if (ch != '\n' && ch != END)
		result = ch < END ? ch - END : -EBADMSG;
	/* Too long: no caller asks for "section.", and the section stays known for the next key. */
	if (length == sizeof(c->name))
		length = c->section_length < sizeof(c->name) ? c->section_length : 0;
	c->name[length] = '\0';
	c->value[c->value_length] = '\0';
	c->end = offset(c);
	return result < 0 ? result : 1;
}

static int skip_line(struct gitconfig *c)
{
	int ch;

	do
		ch = next_char(c);
	while (ch >= 0 && ch != '\n');
	return ch < END ? ch - END : 0;
}

static int read_next(struct gitconfig *c)
{
	for (;;) {
		bool start = c->total == 0;
		int ch = next_char(c);
		int result = 0;

		if (start && ch == 0xef && (next_char(c) != 0xbb || next_char(c) != 0xbf))
			return -EBADMSG;
		if (ch == END)
			return 0;
		if (ch < END)
			return ch - END;
		if (ch == '\n' || is_blank(ch) || (start && ch == 0xef))
			continue;
		if (ch == '#' || ch == ';')
			result = skip_line(c);
		else if (ch == '[')
			result = read_section(c);
		else if (is_alpha(ch) && c->section_length > 0)
			return read_entry(c, ch);
		else
			result = -EBADMSG;
		if (result < 0)
			return result;
	}
}

int gitconfig_next(struct gitconfig *c)
{
	if (c->broken)
		return -EBADMSG;
	int result = read_next(c);

	c->broken = result <= 0;
	return result;
}
