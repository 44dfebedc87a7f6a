/*
 * output.c - see output.h.
 *
 * Runs in: S, or the client of an exec. May not: touch what was saved.
 */
#include "host/report/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_report.h"
#include "base/text.h"
#include "host/stdio/stdio_kind.h"

struct stdio_output output_of_policy(const struct policy *policy)
{
	return (struct stdio_output){
		.budget = policy->output_budget.set ? policy->output_budget.value : BUDGET_NONE,
		.max_bytes = policy->output_max.set ? policy->output_max.value : UINT64_MAX,
		.merge = policy->merge_output.on,
	};
}

static int report_stream(const struct budget *b, struct arena *arena, struct report_output *ret)
{
	ret->relayed = true;
	ret->characters = b->chars;
	ret->bytes = b->bytes;
	ret->omitted = budget_omitted(b);
	ret->truncated = budget_is_over(b);
	ret->saved_bytes = b->in_file;
	ret->errnum = b->file_error;
	if (!b->file_made)
		return 0;
	ret->path = arena_format(arena, "%s/%s", b->dir_path, b->name);
	return ret->path ? 0 : -ENOMEM;
}

int output_report(const struct stdio *s, struct arena *arena, struct report *ret)
{
	int r = 0;

	for (unsigned i = 1; i < STDIO_STREAMS && r == 0; i++)
		if (s->stream[i].budgeted)
			r = report_stream(&s->stream[i].budget, arena, &ret->output[i]);
	ret->output_merged = s->merged;
	return r;
}

/* One line. @on: a stream, or NULL for the file of @b. */
static void report_output(
	const struct budget *b, int errnum, const char *on, const char *what, const char *hint)
{
	struct error e = { 0 };
	(void)error_set(&e, ERROR_SCRATCH, "close", errnum, on ? on : b->name, "%s", what);

	if (!on)
		error_below(&e, b->dir_path);
	if (hint)
		error_hint(&e, "%s", hint);
	(void)error_report(&e);
}

static void report_ended(const struct budget *b, const char *stream)
{
	char most[32], what[96];

	text_format_size(b->max_bytes, most, sizeof(most));
	(void)snprintf(what, sizeof(what), "more output than output-max %s allows", most);
	report_output(b, 0, stream, what, NULL);
}

void output_report_faults(const struct stdio *s, bool quiet, bool kept)
{
	for (unsigned i = 1; i < STDIO_STREAMS; i++) {
		const struct budget *b = &s->stream[i].budget;

		if (!s->stream[i].budgeted)
			continue;
		if (b->file_error)
			report_output(b, b->file_error, NULL,
				"the full output could not be saved", NULL);
		if (!quiet && budget_is_over(b))
			report_ended(b, stdio_stream_names[i]);
		if (!quiet && b->file_made && !kept)
			report_output(b, 0, NULL,
				"the full output is deleted when the session ends",
				"--keep-for 1h leaves it for an hour, --keep until it is removed");
	}
}
