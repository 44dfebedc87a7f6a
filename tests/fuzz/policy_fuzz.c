/*
 * policy_fuzz.c - any bytes as a policy: no crash, an error always has its place, and what is
 * accepted prints as a policy that prints the same.
 *
 * Runs in: the tests. As a fuzzer (no main of its own with CARREL_LIBFUZZER): tests/fuzz/fuzz.bats.
 * Without the define it is a plain program that runs over the files it is given, once each.
 *
 * The first byte chooses: bits 0-1 the layer, bit 2 whether the text is split at NUL bytes into the
 * arguments of a command line, bit 3 whether a system policy with locks stands below.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "plan/embedded.h"
#include "plan/policy.h"

#define OUTPUT_MAX ((size_t)8 << 20)
#define ARGUMENT_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char agent[] = "read /\nsyscalls default\ninclude hide\nenv PATH\n";
static const char closed[] = "read /usr\nsyscalls strict\n";
static const char hide[] =
	"hide ~/.ssh\nhide ~/.config/*/token\nprotect $WORKSPACE/.git/config\n";
static const char locks[] =
	"lock hide protect read write bind tmpfs dev env unsetenv net timeout\n"
	"lock keep nested degraded syscall scratch-env workspace-mode\n";

static const struct embedded_text texts[] = {
	{ .name = "agent", .text = agent, .size = sizeof(agent) - 1 },
	{ .name = "closed", .text = closed, .size = sizeof(closed) - 1 },
	{ .name = "hide", .text = hide, .size = sizeof(hide) - 1 },
};

static const struct policy_names names = {
	.home = "/home/a*b",
	.workspace = "/home/a*b/ws",
	.scratch = "/tmp/s",
	.xdg_runtime_dir = "/run/user/1",
};

struct output {
	char *text;
	size_t used;
};

static int collect(void *context, const void *data, size_t size)
{
	struct output *o = context;

	if (size > OUTPUT_MAX - o->used)
		return -1;
	memcpy(o->text + o->used, data, size);
	o->used += size;
	return 0;
}

static int discard(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* Every file there is says this; it includes itself by another name at most once. */
static int load(void *context, const char *path, struct policy_file *ret, struct error *e)
{
	static const char text[] = "read relative\npolicy once\n";

	(void)context;
	(void)e;
	if (strstr(path, "missing"))
		return -2;
	*ret = (struct policy_file){
		.text = text, .size = strstr(path, "once") ? 14 : sizeof(text) - 1, .path = path
	};
	return 0;
}

static void fail(const char *why)
{
	(void)fprintf(stderr, "policy_fuzz: %s\n", why);
	abort();
}

static int add_arguments(struct policy *p, const struct policy_resolver *r, char *text,
	size_t size, struct error *e)
{
	const char *argv[ARGUMENT_MAX];
	int count = 0, next;

	for (size_t at = 0; at < size && count < ARGUMENT_MAX; at += strlen(text + at) + 1)
		argv[count++] = text + at;
	return policy_add_arguments(p, count, argv, 0, r, NULL, 0, &next, e);
}

/* Reads @text as the first byte says; then merges. */
static int read_policy(struct policy *p, struct arena *arena, uint8_t how, char *text,
	size_t size, struct error *e)
{
	const struct policy_resolver r = {
		.cwd = "/cwd",
		.names = &names,
		.texts = texts,
		.text_count = 3,
		.load = load,
	};
	static const enum layer layers[] = { LAYER_USER, LAYER_SYSTEM, LAYER_FILE,
		LAYER_PROFILE };
	int result = 0;

	if (arena_init(arena, (size_t)256 << 20) < 0)
		fail("no memory");
	policy_init(p, arena);
	if (how & 8)
		result = policy_add_text(
			p, LAYER_SYSTEM, "/etc/carrel/policy", locks, sizeof(locks) - 1, &r, e);
	if (result == 0 && (how & 4))
		result = add_arguments(p, &r, text, size, e);
	else if (result == 0)
		result = policy_add_text(p, layers[how & 3],
			(how & 3) == 3 ? "profile:mine" : "/p/policy", text, size, &r, e);
	return result != 0 ? result : policy_finish(p, "agent", &r, e);
}

static void print(const struct policy *p, bool sources, struct output *o)
{
	o->used = 0;
	if (policy_print(p, sources, collect, o) < 0)
		fail("cannot be printed");
}

/* @text: what a policy printed; reading it gives a policy that prints @bare. */
static void check_again(struct output *text, const struct output *bare, struct output *again)
{
	struct error e = { 0 };
	struct arena arena;
	struct policy p;

	if (text->used > POLICY_SIZE_MAX)
		return; /* what was legal in two texts can be too long for one */
	if (read_policy(&p, &arena, 0, text->text, text->used, &e) != 0) {
		(void)fprintf(stderr, "%s: %s\n", e.on, e.what);
		if (!strstr(e.what, "a line of more than") && !strstr(e.what, "more than 4096"))
			fail("what was printed is not accepted");
		arena_free(&arena);
		return;
	}
	print(&p, false, again);
	/* The default profile was merged in below; every line of before must still be there. */
	for (const char *line = bare->text; line < bare->text + bare->used;) {
		const char *end = memchr(line, '\n', (size_t)(bare->text + bare->used - line));

		if (!end || !memmem(again->text, again->used, line, (size_t)(end + 1 - line)))
			fail("a line is lost when what was printed is read again");
		line = end + 1;
	}
	arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	/* Made once: getting so much memory takes longer than what is done with it. */
	static char room[3][OUTPUT_MAX];
	struct output full = { .text = room[0] }, bare = { .text = room[1] },
		      again = { .text = room[2] };
	char *text = malloc(size);
	if (!text)
		fail("no memory");
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';

	struct error e = { 0 };
	struct arena arena;
	struct policy p;
	int r = read_policy(&p, &arena, data[0], text, size - 1, &e);
	if (r == 0) {
		print(&p, true, &full);
		print(&p, false, &bare);
		check_again(&full, &bare, &again);
		r = policy_expand(&p, &names, &e);
	}
	if (r == 0) {
		print(&p, true, &full);
		if (policy_print_json(&p, discard, NULL) < 0)
			fail("no JSON");
	} else if (r < 0 &&
		(e.code == ERROR_NONE || !e.what[0] || !memchr(e.on, 0, sizeof(e.on)))) {
		fail("an error without a description");
	}
	arena_free(&arena);
	free(text);
	return 0;
}

#ifndef CARREL_LIBFUZZER
int main(int argc, char **argv)
{
	static char text[POLICY_SIZE_MAX + 2];

	for (int i = 1; i < argc; i++) {
		autofd int fd = fd_open_at(AT_FDCWD, argv[i], O_RDONLY, 0);
		ssize_t n = fd < 0 ? fd : fd_read_file(fd, text, sizeof(text) - 1);

		if (n < 0) {
			(void)fprintf(
				stderr, "policy_fuzz: %s: %s\n", argv[i], strerror((int)-n));
			return 1;
		}
		(void)LLVMFuzzerTestOneInput((const uint8_t *)text, (size_t)n);
	}
	return 0;
}
#endif
