/*
 * exec_notes.c - see exec_notes.h.
 *
 * Runs in: the client.
 */
#include "client/exec_notes.h"

#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/fd.h"
#include "host/launch/notes.h"

static void print_moved(unsigned count)
{
	struct error line = { 0 };

	(void)error_set(&line, ERROR_PATH, "session", 0, NULL,
		count == 1
			? "%u path that is protected was made meanwhile, and moved to quarantine"
			: "%u paths that are protected were made meanwhile, and moved to quarantine",
		count);

	error_hint(&line, "carrel quarantine list");
	(void)error_report(&line);
}

void exec_notes_print(const struct execution_end *end, bool quiet)
{
	const struct control_record *how = &end->how;

	if (!end->ended)
		return;
	if (how->streams)
		print_moved(how->streams);
	if (quiet || how->started != STARTED_YES)
		return;
	if (how->number == CONTROL_NETWORK_NONE)
		notes_print_none(true);
	if (how->number == CONTROL_NETWORK_ADDRESS)
		notes_print_address();
	if (how->number == CONTROL_NETWORK_NAMES)
		notes_print_refused(end->network, true);
	if (how->number ==
		CONTROL_NETWORK_TEXT) /* where stderr cannot be written there is no other place */
		(void)!fd_write_all(STDERR_FILENO, end->network, strlen(end->network));
}
