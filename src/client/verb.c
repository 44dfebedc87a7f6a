/*
 * verb.c - see verb.h.
 *
 * Runs in: the client.
 */
#include "client/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

static int print_help(const struct verb_help *h)
{
	char line[512];
	int length = snprintf(line, sizeof(line), "usage: %s\n\n", h->usage);
	int r = fd_write_all(STDOUT_FILENO, line, (size_t)length);

	if (r >= 0)
		r = fd_write_all(STDOUT_FILENO, h->about, strlen(h->about));
	return r < 0 ? r : 1;
}

int verb_read(const struct verb_help *h, int argc, const char *const *argv, int first,
	struct client_option *options, size_t count, const char **ret_words, size_t *ret_count,
	size_t least, size_t most, struct error *e)
{
	size_t words = 0;
	bool over = false;
	int next = first;

	while (next < argc) {
		int from = next;
		int r = over
			? 0
			: options_read(argc, argv, from, options, count, h->usage, &next, e);

		if (r > 0)
			return print_help(h);
		if (r < 0)
			return r;
		over = over || (next > from && !strcmp(argv[next - 1], "--"));
		if (next < argc)
			ret_words[words++] = argv[next++];
	}
	*ret_count = words;
	if (words >= least && words <= most)
		return 0;
	int r = error_set(e, ERROR_USAGE, "options", 0, words > most ? ret_words[most] : NULL,
		words > most ? "there is one argument too many" : "an argument is missing");
	error_hint(e, "%s", h->usage);
	return r;
}
