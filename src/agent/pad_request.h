/*
 * pad_request.h - checks a request to the pad, carries it out, and says what was wrong with it in a way that makes
 * the next request right.
 *
 * Runs in: carrel-agent, outside. PURE. Used by `carrel pad` and by the tool `pad`.
 */
#pragma once

#include <jansson.h>

#include "agent/buffer.h"
#include "agent/pad_store.h"

enum pad_action { PAD_WRITE, PAD_APPEND, PAD_READ, PAD_CLEAR };

struct pad_request {
	enum pad_action action;
	enum pad_section section; /* PAD_SECTIONS: all (read and clear) */
	const char *content;      /* write and append; borrowed from the JSON */
	size_t size;
};

/* pad_action_name - "write", "append", "read" or "clear". */
const char *pad_action_name(enum pad_action action);

/*
 * pad_request_read - a request as the manual has it: an object with `action`, `section`, `content`.
 * @ret_why: with -EINVAL, what to do instead is appended there, in one or two sentences.
 * Returns 0, @ret borrowing from @value, or -EINVAL.
 */
MUST_CHECK int pad_request_read(
	const json_t *value, struct pad_request *ret, struct buffer *ret_why);

/*
 * pad_request_words - the same from plain words: ACTION [SECTION] [TEXT ...]. A first word after
 * `write` or `append` that names a section is the section where text follows; the rest is the text,
 * joined by spaces. @ret: a new reference to an object for pad_request_read(), NULL without memory.
 */
json_t *pad_request_words(int count, const char *const *words);

/*
 * pad_request_run - do it.
 * @ret: a new reference: {"action": ..., "section": ..., "bytes": ...}, for `read` with "sections":
 * {NAME: TEXT, ...} instead; "section" is "all" where none was named. @ret_why: as above.
 * Returns 0, -EFBIG or -EWOULDBLOCK with a sentence in @ret_why, or another -errno without one.
 */
MUST_CHECK int pad_request_run(
	int pad, const struct pad_request *q, json_t **ret, struct buffer *ret_why);

/* pad_request_text - the answer of pad_request_run() as text for a reader. */
void pad_request_text(const json_t *answer, struct buffer *b);
