/*
 * prompt.c - see prompt.h.
 *
 * Runs in: the client. The text is policy/prompt.txt, or a file of the caller's, with $NAMES in it.
 */
#include "client/prompt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/autofree.h"
#include "base/error_report.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/find.h"
#include "client/place.h"
#include "client/talk.h"
#include "client/verb.h"
#include "host/facts/facts.h"
#include "host/report/toolplace.h"
#include "plan/embedded.h"

enum { TEMPLATE_MAX = 64 << 10, NAME_COUNT = 7 };
enum { OPTION_SESSION, OPTION_TEMPLATE, OPTION_COUNT };

static const struct verb_help help = { "carrel prompt [-s ID] [--template FILE]",
	"Prints what a model has to know about its session, for its system prompt: where the\n"
	"scratch and the workspace are, what may be written, what is kept, whether there is a\n"
	"network, and how a long output is read. `carrel session start` makes a session.\n"
	"\n"
	"  -s, --session ID     which session; default: CARREL_SESSION\n"
	"      --template FILE  another text than the shipped one; in it $SESSION, $SCRATCH,\n"
	"                       $TOOL_RESULTS, $WORKSPACE, $ACCESS, $KEEP and $NETWORK stand\n"
	"                       for what is said here, and $$ for a dollar sign\n" };

struct name {
	const char *name, *value;
};

static const char *access_text(const struct place *p)
{
	switch (p->guard.mode) {
	case WORKSPACE_RO:
		return "You may read it, but not write to it.";
	case WORKSPACE_OVERLAY:
		return "You may edit it; your edits are kept apart, and the user's files stay as they are.";
	case WORKSPACE_DIRECT:
		break;
	}
	return "You may read and edit it, but for git hooks and configuration, shell start-up files, and settings "
	       "of editors and agents: these cannot be changed, and one that you create is moved to quarantine. "
	       "Do not try again: say what you need.";
}

/* Where files can be kept: the workspace if tools can write it, and what promote-to names. */
static const char *keep_text(struct place *p)
{
	const char *text = p->guard.mode == WORKSPACE_DIRECT
		? "the workspace"
		: "the workspace, by the promote tool or by asking for it";

	for (size_t i = 1; text && i < p->guard.root_count; i++)
		text = arena_format(&p->arena, "%s, or with the promote tool to %s", text,
			p->guard.roots[i].path);
	return text;
}

/* What the session allows now, for a sentence. NULL: it does not say. */
static __attribute__((noinline)) const char *allowed_text(
	struct place *p, const char *const *environment)
{
	const struct control_record request = { .kind = CONTROL_SHOW,
		.flag = CONTROL_SHOW_ALLOWED };
	autofree struct control_message *answer = malloc(sizeof(*answer));
	autosession struct client_session s = CLIENT_NO_SESSION;
	autofree char *text = NULL;
	struct error ignored = { 0 };

	if (!answer || client_reach(&s, p->id, environment, &ignored) < 0 ||
		client_ask(&s, &request, NULL, 0, answer, &ignored) < 0)
		return NULL;
	ssize_t size = control_read_text(answer, &text);
	control_close_fds(answer);
	return size < 0 ? NULL : arena_copy(&p->arena, text, (size_t)size);
}

static const char *some_text(struct place *p, const char *const *environment)
{
	const char *allowed = allowed_text(p, environment);

	if (!allowed)
		return "Commands reach only the hosts that the user has allowed. Do not retry others: say what you "
		       "need.";
	if (!*allowed)
		return "Commands reach no host: the user has allowed none. Do not retry what wants one: say what you "
		       "need.";
	return arena_format(&p->arena,
		"Commands reach only the hosts that the user has allowed: %s. Do not retry others: say what "
		"you need.",
		allowed);
}

/* Tell the model about the network: otherwise it tries a refused download again. */
static const char *network_text(struct place *p, const char *const *environment)
{
	switch (p->net) {
	case PLACE_NET_NONE:
		return "There is no network but this session's own loopback. Do not retry what wants another one, "
		       "such as a download or an installation: say what you need.";
	case PLACE_NET_HOST:
		return "Commands have this machine's network.";
	case PLACE_NET_SOME:
		break;
	}
	return some_text(p, environment);
}

/* The name after a '$': as many letters as follow. */
static const struct name *find_placeholder(
	const struct name *names, const char *at, size_t length)
{
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (!strncmp(names[i].name, at, length) && !names[i].name[length])
			return &names[i];
	return NULL;
}

static int unknown_name(const struct name *names, const char *at, size_t length,
	const char *file, struct error *e)
{
	const char *known[NAME_COUNT];
	char list[128];
	int r = error_set(e, ERROR_USAGE, "options", 0, file,
		"the template has an unknown name: $%.*s", (int)length, at);

	for (size_t i = 0; i < NAME_COUNT; i++)
		known[i] = names[i].name;
	text_words(known, NAME_COUNT, list, sizeof(list));
	error_hint(e, "known: %s; a dollar sign is written $$", list);
	return r;
}

/* A path may hold anything, a newline and sentences too: to a model the prompt is the user's word. */
static int put_value(const char *value, struct error *e)
{
	char shown[512];
	int r = 0;

	while (*value && r >= 0) {
		size_t length = text_visible(&value, "", shown, sizeof(shown));

		r = talk_result(shown, length, e);
	}
	return r;
}

/* Without @write it only checks the text: a text with a mistake is of no use to a model. */
static int fill_template(const char *text, const struct name *names, const char *file,
	bool write, struct error *e)
{
	while (*text) {
		size_t plain = strcspn(text, "$"), length = 0;
		const char *value = "$";
		int r = write ? talk_result(text, plain, e) : 0;

		text += plain;
		if (r < 0 || !*text)
			return r;
		if (*++text == '$') {
			length = 1;
		} else {
			length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
			const struct name *n = find_placeholder(names, text, length);

			if (!n)
				return unknown_name(names, text, length, file, e);
			value = n->value;
		}
		text += length;
		r = write ? put_value(value, e) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_template(struct place *p, const char *file, const char **ret, struct error *e)
{
	if (!file) {
		for (size_t i = 0; i < embedded_text_count; i++)
			if (!strcmp(embedded_texts[i].name, "prompt.txt")) {
				*ret = arena_copy(&p->arena, embedded_texts[i].text,
					embedded_texts[i].size);
				return *ret ? 0 : -ENOMEM;
			}
		return error_set(e, ERROR_INTERNAL, "options", ERROR_OWN(ENOENT), NULL,
			"the template is missing");
	}
	char *text = arena_alloc(&p->arena, TEMPLATE_MAX + 1);
	const struct toolplace tools = { &p->guard.roots[0].path, 1 };
	autofd int fd = toolplace_open(&tools, &p->arena, file, e);
	if (fd < 0)
		return fd;
	ssize_t n = text ? fd_read_file(fd, text, TEMPLATE_MAX) : -ENOMEM;
	if (n < 0)
		return error_set(
			e, ERROR_USAGE, "options", (int)-n, file, "cannot read the template");
	*ret = text;
	return 0;
}

static int print_prompt(
	struct place *p, const char *file, const char *const *environment, struct error *e)
{
	const char *keep = keep_text(p), *text = "", *network = network_text(p, environment);
	const struct name names[NAME_COUNT] = {
		{ "SESSION", p->id },
		{ "SCRATCH", p->scratch_path },
		{ "TOOL_RESULTS", p->results_path },
		{ "WORKSPACE", p->guard.roots[0].path },
		{ "ACCESS", access_text(p) },
		{ "KEEP", keep },
		{ "NETWORK", network },
	};
	int r = keep && network ? read_template(p, file, &text, e) : -ENOMEM;

	if (r < 0)
		return error_no_memory(e, "options");
	r = fill_template(text, names, file, false, e);
	return r < 0 ? r : fill_template(text, names, file, true, e);
}

static int run_prompt(int argc, const char *const *argv, int first,
	const char *const *environment, const char **words, struct error *e)
{
	struct client_option options[OPTION_COUNT] = {
		[OPTION_SESSION] = { .name = "session", .letter = 's', .placeholder = "ID" },
		[OPTION_TEMPLATE] = { .name = "template", .placeholder = "FILE" },
	};
	struct place place;
	size_t count;
	int r = verb_read(
		&help, argc, argv, first, options, OPTION_COUNT, words, &count, 0, 0, e);

	if (r != 0)
		return r;
	r = place_open(&place, options[OPTION_SESSION].value, environment, e);
	if (r < 0) {
		/* Outside a session this hint replaces the one about naming a session: there may be none yet. */
		if (!facts_env(environment, "CARREL_SCRATCH"))
			e->hint[0] = '\0';
		error_hint(
			e, "`carrel session start` makes a session; then: carrel prompt -s ID");
		return r;
	}
	r = print_prompt(&place, options[OPTION_TEMPLATE].value, environment, e);
	place_close(&place);
	return r;
}

int prompt_command(int argc, const char *const *argv, int first, const char *const *environment,
	unsigned closed)
{
	struct error e = { 0 };
	const char **words = calloc((size_t)argc + 1, sizeof(*words));
	int r = words ? run_prompt(argc, argv, first, environment, words, &e)
		      : error_no_memory(&e, "options");

	(void)closed;
	free(words);
	(void)error_report(&e);
	return r < 0 ? STATUS_CARREL : 0;
}
