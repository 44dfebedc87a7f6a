/*
 * pad_test.c - the pad: its requests as the manual has them, its mistakes, its store under
 * many writers and under SIGKILL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/pad_request.h"
#include "base/fd.h"

static int setup(void **state)
{
	char path[] = "/tmp/pad-test-XXXXXX";

	if (!mkdtemp(path))
		return -1;
	int session = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int pad = pad_open(session);

	if (pad < 0)
		return -1;
	close(session);
	int *kept = malloc(sizeof(*kept) + sizeof(path));
	*kept = pad;
	memcpy(kept + 1, path, sizeof(path));
	*state = kept;
	return 0;
}

static int teardown(void **state)
{
	int *kept = *state;
	char path[64];

	for (int i = 0; i < PAD_SECTIONS; i++)
		(void)unlinkat(*kept, pad_section_name((enum pad_section)i), 0);
	(void)unlinkat(*kept, ".draft", 0);
	close(*kept);
	(void)snprintf(path, sizeof(path), "%s/pad", (char *)(kept + 1));
	int r = rmdir(path) | rmdir((char *)(kept + 1)); /* and nothing else was in it */
	free(kept);
	return r;
}

/* Ask; the answer as compact JSON, or "error: WHY". To be freed. */
static char *ask(int pad, const char *text)
{
	autobuffer struct buffer why = { 0 };
	struct pad_request q;
	json_t *request = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *answer = NULL;
	char *said = NULL;

	assert_non_null(request);
	int r = pad_request_read(request, &q, &why);
	if (r == 0)
		r = pad_request_run(pad, &q, &answer, &why);
	if (r == 0)
		said = json_dumps(answer, JSON_COMPACT);
	else if (asprintf(&said, "error: %s", why.data ? why.data : strerror(-r)) < 0)
		said = NULL;
	json_decref(answer);
	json_decref(request);
	assert_non_null(said);
	return said;
}

static void answers(int pad, const char *request, const char *expected)
{
	char *said = ask(pad, request);

	assert_string_equal(said, expected);
	free(said);
}

static void refuses(int pad, const char *request, const char *part)
{
	char *said = ask(pad, request);

	if (strncmp(said, "error: ", 7) != 0 || !strstr(said, part))
		fail_msg("%s: %s (expected: %s)", request, said, part);
	free(said);
}

static void the_manual_s_example(void **state)
{
	int pad = *(int *)*state;

	answers(pad, "{\"action\":\"read\"}",
		"{\"action\":\"read\",\"section\":\"all\",\"sections\":{}}");
	answers(pad,
		"{\"action\":\"write\",\"section\":\"goal\",\"content\":\"Fix the database connection error\"}",
		"{\"action\":\"write\",\"section\":\"goal\",\"bytes\":33}");
	answers(pad, "{\"action\":\"write\",\"section\":\"findings\",\"content\":\"Error\"}",
		"{\"action\":\"write\",\"section\":\"findings\",\"bytes\":5}");
	answers(pad, "{\"action\":\"append\",\"section\":\"findings\",\"content\":\"stopped\"}",
		"{\"action\":\"append\",\"section\":\"findings\",\"bytes\":13}");
	answers(pad, "{\"action\":\"write\",\"content\":\"a\\nb\\n\"}",
		"{\"action\":\"write\",\"section\":\"main\",\"bytes\":4}");
	answers(pad, "{\"action\":\"append\",\"content\":\"c\"}",
		"{\"action\":\"append\",\"section\":\"main\",\"bytes\":5}");
	answers(pad, "{\"action\":\"append\",\"section\":\"errors\",\"content\":\"first\"}",
		"{\"action\":\"append\",\"section\":\"errors\",\"bytes\":5}");
	answers(pad, "{\"action\":\"read\"}",
		"{\"action\":\"read\",\"section\":\"all\",\"sections\":{\"goal\":\"Fix the database connection "
		"error\",\"findings\":\"Error\\nstopped\",\"errors\":\"first\",\"main\":\"a\\nb\\nc\"}}");
	answers(pad, "{\"action\":\"clear\",\"section\":\"errors\"}",
		"{\"action\":\"clear\",\"section\":\"errors\",\"bytes\":0}");
	answers(pad, "{\"action\":\"read\",\"section\":\"errors\"}",
		"{\"action\":\"read\",\"section\":\"errors\",\"sections\":{\"errors\":\"\"}}");
	answers(pad, "{\"action\":\"write\",\"section\":\"findings\",\"content\":\"new\"}",
		"{\"action\":\"write\",\"section\":\"findings\",\"bytes\":3}");
	answers(pad, "{\"action\":\"read\",\"section\":\"findings\"}",
		"{\"action\":\"read\",\"section\":\"findings\",\"sections\":{\"findings\":\"new\"}}");
	answers(pad, "{\"action\":\"clear\"}",
		"{\"action\":\"clear\",\"section\":\"all\",\"bytes\":0}");
	answers(pad, "{\"action\":\"read\",\"section\":null}",
		"{\"action\":\"read\",\"section\":\"all\",\"sections\":{}}");
}

static void each_mistake_has_its_answer(void **state)
{
	int pad = *(int *)*state;

	refuses(pad, "{\"action\":\"write\",\"section\":\"goal\"}", "`content` is missing");
	refuses(pad, "{\"action\":\"append\"}", "`content` is missing");
	refuses(pad, "{\"action\":\"write\",\"section\":\"The port is 8080\"}",
		"the text itself belongs in `content`");
	refuses(pad, "{\"op\":\"write\",\"content\":\"x\"}", "is called `action`, not `op`");
	refuses(pad, "{\"action\":\"The port is 8080\"}",
		"To save it: {\"action\": \"write\", \"content\": \"your text\"}");
	/* and the others */
	refuses(pad, "{}", "`action` is missing");
	refuses(pad, "[]", "is a JSON object");
	refuses(pad, "{\"action\":1}", "`action` must be a string");
	refuses(pad, "{\"action\":\"reed\"}", "did you mean \"read\"?");
	refuses(pad, "{\"action\":\"read\",\"section\":\"finding\"}",
		"did you mean \"findings\"?");
	refuses(pad, "{\"action\":\"read\",\"section\":7}", "`section` must be a string");
	refuses(pad, "{\"action\":\"write\",\"content\":[1]}", "`content` must be a string");
	refuses(pad, "{\"action\":\"write\",\"content\":\"\"}", "`content` is empty");
	refuses(pad, "{\"action\":\"read\",\"content\":\"x\"}", "takes no `content`");
	refuses(pad, "{\"action\":\"clear\",\"content\":\"x\"}", "takes no `content`");
	refuses(pad, "{\"action\":\"write\",\"text\":\"x\"}", "belongs in `content`");
	refuses(pad, "{\"action\":\"write\",\"contents\":\"x\"}", "did you mean `content`?");
	refuses(pad, "{\"action\":\"read\",\"\\u001b[2J\":1}", "␛[2J");
	answers(pad, "{\"action\":\"read\"}",
		"{\"action\":\"read\",\"section\":\"all\",\"sections\":{}}");
}

static void a_section_is_bounded(void **state)
{
	int pad = *(int *)*state;
	char *big = malloc(PAD_SECTION_MAX + 1);
	size_t bytes = 0;
	struct buffer text[PAD_SECTIONS] = { 0 };

	memset(big, 'x', PAD_SECTION_MAX + 1);
	assert_int_equal(pad_write(pad, PAD_MAIN, big, PAD_SECTION_MAX + 1, &bytes), -EFBIG);
	assert_int_equal(bytes, PAD_SECTION_MAX + 1);
	assert_int_equal(pad_write(pad, PAD_MAIN, big, PAD_SECTION_MAX, &bytes), 0);
	assert_int_equal(bytes, PAD_SECTION_MAX);
	assert_int_equal(pad_append(pad, PAD_MAIN, "y", 1, &bytes), -EFBIG);
	assert_int_equal(pad_read(pad, PAD_MAIN, text), 0);
	assert_int_equal(text[PAD_MAIN].used, PAD_SECTION_MAX);
	assert_memory_equal(text[PAD_MAIN].data, big, PAD_SECTION_MAX);
	refuses(pad, "{\"action\":\"append\",\"content\":\"more\"}", "it may have 1048576");
	buffer_free(&text[PAD_MAIN]);
	free(big);
}

/* One who was stopped while it held the lock holds up nobody for ever. */
static void a_writer_that_does_not_finish(void **state)
{
	int pad = *(int *)*state, held = openat(pad, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct buffer text[PAD_SECTIONS] = { 0 };

	assert_int_equal(flock(held, LOCK_EX), 0);
	refuses(pad, "{\"action\":\"write\",\"content\":\"lost\"}", "Nothing was changed");
	assert_int_equal(pad_read(pad, PAD_MAIN, text), -EWOULDBLOCK);
	close(held);
	answers(pad, "{\"action\":\"read\"}",
		"{\"action\":\"read\",\"section\":\"all\",\"sections\":{}}");
}

static void writers_at_once_lose_nothing(void **state)
{
	enum { WRITERS = 8, EACH = 50 };
	int pad = *(int *)*state;
	struct buffer text[PAD_SECTIONS] = { 0 };
	int seen[WRITERS] = { 0 };

	for (int w = 0; w < WRITERS; w++)
		if (fork() == 0) {
			for (int i = 0; i < EACH; i++) {
				char line[32];
				size_t bytes;
				int n = snprintf(line, sizeof(line), "%d %d", w, i);

				if (pad_append(pad, PAD_FINDINGS, line, (size_t)n, &bytes) < 0)
					_exit(1);
			}
			_exit(0);
		}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(pad_read(pad, PAD_SECTIONS, text), 0);
	char *at = text[PAD_FINDINGS].data;
	for (int i = 0; i < WRITERS * EACH; i++) {
		long w = strtol(at, &at, 10), n = strtol(at, &at, 10);

		assert_in_range(w, 0, WRITERS - 1);
		assert_int_equal(n, seen[w]++); /* each one's in its order */
		assert_true(*at == '\n' || *at == '\0');
	}
	assert_int_equal(*at, '\0');
	buffer_free(&text[PAD_FINDINGS]);
}

/* A writer is killed at some moment, many times: the text is always one that was written whole. */
static void a_killed_writer_leaves_the_old_or_the_new(void **state)
{
	enum { ROUNDS = 40, SIZE = 300000 };
	int pad = *(int *)*state;
	char *text = malloc(SIZE);
	size_t bytes;

	memset(text, 'a', SIZE);
	assert_int_equal(pad_write(pad, PAD_MAIN, text, SIZE, &bytes), 0);
	for (int round = 0; round < ROUNDS; round++) {
		int ready[2];

		assert_int_equal(pipe(ready), 0);
		pid_t writer = fork();
		if (writer == 0) {
			for (char c = 'a';; c = c == 'z' ? 'a' : (char)(c + 1)) {
				memset(text, c, SIZE);
				if (pad_write(pad, PAD_MAIN, text, SIZE, &bytes) < 0 ||
					write(ready[1], &c, 1) < 0)
					_exit(1);
			}
		}
		close(ready[1]);
		char c;
		for (int i = 0; i <= round % 5; i++) /* it is at work, somewhere */
			assert_int_equal(read(ready[0], &c, 1), 1);
		assert_int_equal(kill(writer, SIGKILL), 0);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		close(ready[0]);
		struct buffer found[PAD_SECTIONS] = { 0 };

		assert_int_equal(pad_read(pad, PAD_MAIN, found), 0);
		assert_int_equal(found[PAD_MAIN].used, SIZE);
		for (size_t i = 1; i < SIZE; i++)
			if (found[PAD_MAIN].data[i] != found[PAD_MAIN].data[0])
				fail_msg("half of one and half of another");
		buffer_free(&found[PAD_MAIN]);
	}
	assert_int_equal(pad_append(pad, PAD_MAIN, "on", 2, &bytes), 0); /* no lock is left */
	free(text);
}

static void nothing_is_followed(void **state)
{
	int pad = *(int *)*state;
	size_t bytes;
	struct buffer text[PAD_SECTIONS] = { 0 };

	assert_int_equal(symlinkat("/etc/passwd", pad, "main"), 0);
	assert_int_equal(pad_read(pad, PAD_MAIN, text), -ELOOP);
	assert_int_equal(pad_append(pad, PAD_MAIN, "x", 1, &bytes), -ELOOP);
	assert_int_equal(
		pad_write(pad, PAD_MAIN, "x", 1, &bytes), 0); /* the link is replaced */
	assert_int_equal(pad_read(pad, PAD_MAIN, text), 0);
	assert_string_equal(text[PAD_MAIN].data, "x");
	buffer_free(&text[PAD_MAIN]);
}

static void plain_words(void **state)
{
	static const char *const lines[][2] = {
		{ "write findings the port is 8080",
			"{\"action\":\"write\",\"section\":\"findings\",\"content\":\"the port is 8080\"}" },
		{ "append goal", "{\"action\":\"append\",\"section\":\"goal\"}" },
		{ "append main goal",
			"{\"action\":\"append\",\"section\":\"main\",\"content\":\"goal\"}" },
		{ "append hello there", "{\"action\":\"append\",\"content\":\"hello there\"}" },
		{ "read", "{\"action\":\"read\"}" },
		{ "clear errors", "{\"action\":\"clear\",\"section\":\"errors\"}" },
		{ "write", "{\"action\":\"write\"}" },
		{ "", "{}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char line[64];
		const char *words[8];
		int count = 0;

		(void)snprintf(line, sizeof(line), "%s", lines[i][0]);
		for (char *at = line, *word; (word = strsep(&at, " "));)
			if (*word)
				words[count++] = word;
		json_t *request = pad_request_words(count, words);
		char *text = json_dumps(request, JSON_COMPACT);

		assert_string_equal(text, lines[i][1]);
		free(text);
		json_decref(request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_manual_s_example, setup, teardown),
		cmocka_unit_test_setup_teardown(each_mistake_has_its_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_section_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(a_writer_that_does_not_finish, setup, teardown),
		cmocka_unit_test_setup_teardown(writers_at_once_lose_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_killed_writer_leaves_the_old_or_the_new, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_followed, setup, teardown),
		cmocka_unit_test(plain_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
