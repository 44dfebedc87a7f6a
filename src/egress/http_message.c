/*
 * http_message.c - see http_message.h: heads.
 *
 * Runs in: carrel-egress. PURE.
 */
#include "egress/http_message.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { PORT_HTTP = 80, LENGTH_DIGITS_MAX = 18, VERSION_SIZE = 8 /* HTTP/1.1 */ };

/* Bytes of the head. */
struct piece {
	const uint8_t *at;
	size_t size;
};

struct field {
	struct piece name, value, line;
};

static bool is(struct piece p, const char *word)
{
	return strlen(word) == p.size && !strncasecmp((const char *)p.at, word, p.size);
}

static bool is_token(struct piece p)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < p.size; i++) {
		uint8_t c = p.at[i], letter = c | 0x20;

		if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') &&
			(!c || !strchr(others, c)))
			return false;
	}
	return p.size > 0;
}

static struct piece trim(struct piece p)
{
	while (p.size > 0 && (p.at[0] == ' ' || p.at[0] == '\t'))
		p = (struct piece){ p.at + 1, p.size - 1 };
	while (p.size > 0 && (p.at[p.size - 1] == ' ' || p.at[p.size - 1] == '\t'))
		p.size--;
	return p;
}

/* The size of the head, with its empty line. Its only control characters may be CR LF at the end of a line. */
static int find_end(const uint8_t *data, size_t size, size_t *ret_size)
{
	size_t line = 0, most = size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX;

	for (size_t i = 0; i < most; i++) {
		uint8_t c = data[i];
		bool ends = c == '\n' && i > 0 && data[i - 1] == '\r';

		if (i > 0 && data[i - 1] == '\r' && !ends)
			return -EBADMSG;
		if ((c < 0x20 && c != '\t' && c != '\r' && !ends) || c == 0x7f)
			return -EBADMSG;
		if (!ends)
			continue;
		if (i == line + 1) {
			*ret_size = i + 1;
			return line == 0 ? -EBADMSG : 0;
		}
		line = i + 1;
	}
	return most == HTTP_HEAD_MAX ? -E2BIG : -EAGAIN;
}

/* The next line of the head; moves @at behind it. A size of 0: it is the last. */
static struct piece next_line(const uint8_t *data, size_t *at)
{
	const uint8_t *start = data + *at, *end = start;

	while (*end != '\r') /* find_end() has seen it */
		end++;
	*at += (size_t)(end - start) + 2;
	return (struct piece){ start, (size_t)(end - start) };
}

/* 1: a field; 0: it was the last; -EBADMSG. */
static int next_field(const uint8_t *data, size_t *at, struct field *ret)
{
	struct piece line = next_line(data, at);
	const uint8_t *colon = line.size ? memchr(line.at, ':', line.size) : NULL;

	if (line.size == 0)
		return 0;
	if (!colon)
		return -EBADMSG;
	size_t name = (size_t)(colon - line.at);
	*ret = (struct field){ .name = { line.at, name },
		.value = trim((struct piece){ colon + 1, line.size - name - 1 }),
		.line = line };
	return is_token(ret->name) ? 1 : -EBADMSG;
}

/* The words of a list with commas between; false: there are no more. */
static bool next_word(struct piece *list, struct piece *ret)
{
	while (list->size > 0) {
		const uint8_t *comma = memchr(list->at, ',', list->size);
		size_t size = comma ? (size_t)(comma - list->at) : list->size;

		*ret = trim((struct piece){ list->at, size });
		list->at += size + (comma != NULL);
		list->size -= size + (comma != NULL);
		if (ret->size > 0)
			return true;
	}
	return false;
}

static bool parse_length(struct piece value, uint64_t *ret)
{
	uint64_t n = 0;

	if (value.size == 0 || value.size > LENGTH_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < value.size; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
		n = n * 10 + (value.at[i] - '0');
	}
	*ret = n;
	return true;
}

/* `Connection`. False: it names a field that says how long the message is, or for which host. */
static bool read_connection(struct http_head *h, struct piece list)
{
	struct piece word;

	while (next_word(&list, &word)) {
		if (is(word, "content-length") || is(word, "transfer-encoding") ||
			is(word, "host"))
			return false;
		if (is(word, "close"))
			h->keep = false;
	}
	return true;
}

/* What the fields say about the message's end. */
static int read_fields(struct http_head *h, const uint8_t *data)
{
	size_t at = h->fields_at;
	unsigned fields = 0, lengths = 0, encodings = 0, hosts = 0;
	struct field f;
	int r;

	while ((r = next_field(data, &at, &f)) > 0) {
		bool good = ++fields <= HTTP_FIELDS_MAX;

		if (is(f.name, "content-length"))
			good = good && ++lengths == 1 && parse_length(f.value, &h->length);
		else if (is(f.name, "transfer-encoding"))
			good = good && ++encodings == 1 && is(f.value, "chunked") && !h->old;
		else if (is(f.name, "host"))
			good = good && ++hosts == 1;
		else if (is(f.name, "connection") || is(f.name, "proxy-connection"))
			good = good && read_connection(h, f.value);
		if (!good)
			return -EBADMSG;
	}
	if (r < 0 || (lengths && encodings))
		return -EBADMSG;
	if (lengths || encodings)
		h->framing = lengths ? HTTP_LENGTH : HTTP_CHUNKED;
	return 0;
}

/* "HTTP/1.0" or "HTTP/1.1". */
static bool read_version(struct http_head *h, struct piece p)
{
	if (p.size != VERSION_SIZE || memcmp(p.at, "HTTP/1.", VERSION_SIZE - 1) != 0 ||
		(p.at[7] != '0' && p.at[7] != '1'))
		return false;
	h->old = p.at[7] == '0';
	h->keep = !h->old;
	return true;
}

static int read_target(struct http_head *h, const uint8_t *data, struct piece target)
{
	static const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;
	size_t end = skip;

	if (h->connect)
		return proxy_authority_parse(&h->target, target.at, target.size, 0);
	if (target.size < skip || strncasecmp((const char *)target.at, scheme, skip) != 0)
		return -EPROTONOSUPPORT;
	if (memchr(target.at, '#', target.size))
		return -EBADMSG;
	while (end < target.size && target.at[end] != '/' && target.at[end] != '?')
		end++;
	h->path_at = (size_t)(target.at - data) + end;
	h->path_size = target.size - end;
	return proxy_authority_parse(&h->target, target.at + skip, end - skip, PORT_HTTP);
}

int http_request_parse(struct http_head *ret, const uint8_t *data, size_t size)
{
	struct http_head h = { .framing = HTTP_NO_BODY };
	int r = find_end(data, size, &h.size);

	if (r < 0)
		return r;
	struct piece line = next_line(data, &h.fields_at);
	const uint8_t *space = memchr(line.at, ' ', line.size);
	if (!space)
		return -EBADMSG;
	h.method_size = (size_t)(space - line.at);
	struct piece method = { line.at, h.method_size }, target = { space + 1, 0 };
	size_t left = line.size - h.method_size - 1;
	const uint8_t *end = memchr(target.at, ' ', left);
	if (!end || !is_token(method))
		return -EBADMSG;
	target.size = (size_t)(end - target.at);
	if (memchr(target.at, '\t', target.size) ||
		!read_version(&h, (struct piece){ end + 1, left - target.size - 1 }))
		return -EBADMSG;
	/* Methods are words in upper case: another spelling is another method. */
	h.connect = method.size == 7 && !memcmp(method.at, "CONNECT", 7);
	h.asks_head = method.size == 4 && !memcmp(method.at, "HEAD", 4);
	r = read_target(&h, data, target);
	if (r == 0)
		r = read_fields(&h, data);
	if (r == 0 && h.connect && h.framing != HTTP_NO_BODY &&
		(h.framing == HTTP_CHUNKED || h.length > 0))
		r = -EBADMSG; /* what would follow belongs to the tunnel */
	if (r == 0)
		*ret = h;
	return r;
}

int http_response_parse(
	struct http_head *ret, const uint8_t *data, size_t size, bool asked_head)
{
	struct http_head h = { .framing = HTTP_TO_END };
	int r = find_end(data, size, &h.size);

	if (r < 0)
		return r;
	struct piece line = next_line(data, &h.fields_at);
	if (line.size < VERSION_SIZE + 4 ||
		!read_version(&h, (struct piece){ line.at, VERSION_SIZE }) ||
		line.at[VERSION_SIZE] != ' ' ||
		(line.size > VERSION_SIZE + 4 && line.at[VERSION_SIZE + 4] != ' '))
		return -EBADMSG;
	for (size_t i = VERSION_SIZE + 1; i < VERSION_SIZE + 4; i++) {
		if (line.at[i] < '0' || line.at[i] > '9')
			return -EBADMSG;
		h.status = h.status * 10 + (line.at[i] - '0');
	}
	if (h.status < 100 || h.status > 599)
		return -EBADMSG;
	if (h.status == 101)
		return -EPROTONOSUPPORT;
	r = read_fields(&h, data);
	if (r < 0)
		return r;
	if (asked_head || h.status < 200 || h.status == 204 || h.status == 304)
		h.framing = HTTP_NO_BODY;
	if (h.framing == HTTP_TO_END)
		h.keep = false;
	*ret = h;
	return 0;
}

/* --- what is passed on -------------------------------------------------------------------------- */

struct put {
	uint8_t *data;
	size_t size;
	bool full;
};

static void put(struct put *p, const void *data, size_t size)
{
	if (p->full || size > HTTP_BUILT_MAX - p->size) {
		p->full = true;
		return;
	}
	memcpy(p->data + p->size, data, size);
	p->size += size;
}

static void put_text(struct put *p, const char *text)
{
	put(p, text, strlen(text));
}

/* Whether a `Connection` of the head names the field. */
static bool is_named(const struct http_head *h, const uint8_t *data, struct piece name)
{
	size_t at = h->fields_at;
	struct piece word;
	struct field f;

	while (next_field(data, &at, &f) > 0) {
		if (!is(f.name, "connection") && !is(f.name, "proxy-connection"))
			continue;
		while (next_word(&f.value, &word))
			if (word.size == name.size &&
				!strncasecmp((const char *)word.at, (const char *)name.at,
					name.size))
				return true;
	}
	return false;
}

static bool is_of_connection(struct piece name)
{
	static const char *const fields[] = { "connection", "proxy-connection", "keep-alive",
		"proxy-authorization", "proxy-authenticate", "te", "upgrade" };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (is(name, fields[i]))
			return true;
	return false;
}

static void put_fields(
	struct put *p, const struct http_head *h, const uint8_t *data, bool request)
{
	size_t at = h->fields_at;
	struct field f;

	while (next_field(data, &at, &f) > 0) {
		if (is_of_connection(f.name) || (request && is(f.name, "host")) ||
			is_named(h, data, f.name))
			continue;
		put(p, f.line.at, f.line.size);
		put_text(p, "\r\n");
	}
}

size_t http_request_build(const struct http_head *h, const uint8_t *data, uint8_t *ret)
{
	struct put p = { .data = ret };
	char host[300];

	put(&p, data, h->method_size);
	put_text(&p, " ");
	if (h->path_size == 0 || data[h->path_at] != '/')
		put_text(&p, "/");
	put(&p, data + h->path_at, h->path_size);
	put_text(&p, h->old ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ");
	put(&p, host, proxy_authority_format(&h->target, PORT_HTTP, host));
	put_text(&p, "\r\n");
	put_fields(&p, h, data, true);
	put_text(&p, h->keep ? "\r\n" : "Connection: close\r\n\r\n");
	return p.full ? 0 : p.size;
}

size_t http_response_build(
	const struct http_head *h, const uint8_t *data, bool keep, uint8_t *ret)
{
	struct put p = { .data = ret };
	size_t line = h->fields_at - VERSION_SIZE;

	put_text(&p, "HTTP/1.1");
	put(&p, data + VERSION_SIZE, line);
	put_fields(&p, h, data, false);
	if (h->status >= 200)
		put_text(&p, keep ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
	put_text(&p, "\r\n");
	return p.full ? 0 : p.size;
}
