/*
 * exec_explain.c - see exec_explain.h.
 *
 * Runs in: the client.
 */
#include "client/exec_explain.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "host/explain/narrator.h"

enum { ARENA_SIZE = 4 * NARRATOR_ANSWER_MAX };

int exec_explain_check(const struct client_session *s, struct error *e)
{
	if (faccessat(s->record, STATE_EXPLAINED, F_OK, 0) == 0)
		return 0;
	int r = error_set(
		e, ERROR_SESSION, "session", 0, s->id, "what this session refuses is not seen");

	error_hint(e, "carrel session start --explain");
	return r;
}

bool exec_explain(struct explain *ret, const struct client_session *s,
	struct execution_end *end, bool quiet)
{
	const char *const settings[] = { "-s", s->id };
	struct arena arena;

	if (end->refused < 0)
		return false;
	if (arena_init(&arena, ARENA_SIZE) < 0 ||
		explain_board(ret, take_fd(&end->refused), settings, 2) < 0)
		ret->missing = "what was refused could not be looked up";
	else
		explain_tell(ret, &arena);
	if (!quiet)
		explain_print(ret);
	explain_end(ret);
	return true;
}
