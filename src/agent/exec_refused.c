/*
 * exec_refused.c - see exec_refused.h.
 *
 * Runs in: carrel-agent.
 */
#include "agent/exec_refused.h"

#include <errno.h>

#include "agent/field.h"
#include "agent/harmless.h"
#include "base/arena.h"
#include "base/fd.h"
#include "host/explain/explain.h"
#include "host/explain/narrator.h"

enum { ARENA_SIZE = 4 * NARRATOR_ANSWER_MAX };

static const char unseen[] =
	"what is refused is not seen: this server has to be started with --explain\n";

/* What was refused and what it means, or why that cannot be looked up. */
static void look_up(const struct agent_session *d, int *board, struct buffer *ret)
{
	const char *const settings[] = { "-s", d->id };
	struct explain x = EXPLAIN_NONE;
	struct arena arena;

	if (arena_init(&arena, ARENA_SIZE) < 0) {
		ret->failed = true;
		return;
	}
	if (explain_board(&x, take_fd(board), settings, 2) < 0)
		x.missing = "what was refused could not be looked up";
	else
		explain_tell(&x, &arena);
	if (x.text_size)
		harmless_add(ret, x.text, x.text_size);
	if (x.nothing && !x.missing)
		buffer_text(ret, "carrel: nothing was refused\n");
	if (x.missing)
		buffer_format(ret, "not all that was refused is listed: %s\n", x.missing);
	explain_end(&x);
	arena_free(&arena);
}

int exec_refused(const struct agent_session *d, const json_t *arguments, int *board,
	json_t *structured, struct buffer *text)
{
	autobuffer struct buffer said = { 0 };
	bool seen = *board >= 0;

	if (!field_flag(arguments, "explain", seen))
		return 0;
	if (seen)
		look_up(d, board, &said);
	else
		buffer_text(&said, unseen);
	buffer_add(text, said.data, said.used);
	if (said.failed || text->failed)
		return -ENOMEM;
	return json_object_set_new(structured, "denials", json_stringn(said.data, said.used)) <
			0
		? -ENOMEM
		: 0;
}
