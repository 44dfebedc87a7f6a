/*
 * control_test.c - the text of a TEXT record, and what is none; what an ERROR record says.
 */
/* ctest: as=any */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/serve/control.h"

static struct control_message m;

/* A TEXT whose body is said to be in the descriptors @fds, which are closed here, as it arrives. */
static void receive(uint16_t kind, int *fds, unsigned count)
{
	const struct control_record record = { .kind = kind, .body = CONTROL_BODY_FD };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(control_send(ends[0], &record, NULL, 0, fds, count), 0);
	assert_int_equal(control_receive(ends[1], &m), 1);
	for (unsigned i = 0; i < count; i++)
		fd_close(&fds[i]);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static ssize_t read_apart(int fd)
{
	char *text = NULL;

	receive(CONTROL_TEXT, &fd, 1);
	ssize_t n = control_read_text(&m, &text);
	control_close_fds(&m);
	free(text);
	return n;
}

static int memory(off_t size)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

static void text_in_its_record(void **state)
{
	char *text = NULL;

	(void)state;
	m = (struct control_message){ .head.kind = CONTROL_TEXT, .size = 5, .body = "a\0bcd" };
	assert_int_equal(control_read_text(&m, &text), 5);
	assert_memory_equal(text, "a\0bcd", 6);
	free(text);
	m.head.kind = CONTROL_DONE;
	assert_int_equal(control_read_text(&m, &text), -EPROTO);
}

static void text_beside_its_record(void **state)
{
	char *text = NULL;
	char *said = malloc(CONTROL_TEXT_MAX);

	(void)state;
	assert_non_null(said);
	memset(said, 'x', CONTROL_TEXT_MAX);
	int fd = control_seal(said, CONTROL_TEXT_MAX);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(write(fd, "", 1), -1);
	receive(CONTROL_TEXT, &fd, 1);
	assert_int_equal(control_read_text(&m, &text), CONTROL_TEXT_MAX);
	assert_memory_equal(text, said, CONTROL_TEXT_MAX);
	assert_int_equal(text[CONTROL_TEXT_MAX], '\0');
	free(text);
	m.head.kind = CONTROL_DONE;
	assert_int_equal(control_read_text(&m, &text), -EPROTO);
	control_close_fds(&m);
	free(said);
}

/* Nothing that could make a client wait, or take its memory. */
static void what_is_no_text(void **state)
{
	int ends[2];
	char *text = NULL;

	(void)state;
	assert_int_equal(read_apart(memory(CONTROL_TEXT_MAX)), CONTROL_TEXT_MAX);
	assert_int_equal(read_apart(memory(CONTROL_TEXT_MAX + 1)), -EPROTO);
	assert_int_equal(read_apart(memory((off_t)1 << 40)), -EPROTO);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(read_apart(ends[0]), -EPROTO);
	fd_close(&ends[1]);
	assert_int_equal(read_apart(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), -EPROTO);
	assert_int_equal(read_apart(open("/dev/zero", O_RDONLY | O_CLOEXEC)), -EPROTO);
	receive(CONTROL_TEXT, NULL, 0);
	assert_int_equal(control_read_text(&m, &text), -EPROTO);
	int two[] = { control_seal("a", 1), control_seal("b", 1) };
	receive(CONTROL_TEXT, two, 2);
	assert_int_equal(control_read_text(&m, &text), -EPROTO);
	control_close_fds(&m);
	assert_null(text);
}

/* An error as a client prints it. */
static void assert_told(int errnum, const char *expected)
{
	const struct control_record request = { .kind = CONTROL_SHOW };
	struct error e = { 0 }, got = { 0 };
	char text[256];
	int ends[2];

	assert_int_equal(
		error_set(&e, ERROR_REPORT, "session", errnum, "/x", "it is there"), -EISDIR);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(control_send_error(ends[0], &request, &e), 0);
	assert_int_equal(control_receive(ends[1], &m), 1);
	control_read_error(&m, &got);
	assert_int_equal(got.errnum, EISDIR);
	assert_true(error_format(&got, text, sizeof(text)) > 0);
	assert_string_equal(text, expected);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

/* What carrel found out itself is not said once more in the words of an errno. */
static void an_error_tells_its_cause_once(void **state)
{
	(void)state;
	assert_told(EISDIR, "carrel: it is there: /x: Is a directory\n");
	assert_told(ERROR_OWN(EISDIR), "carrel: it is there: /x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_in_its_record),
		cmocka_unit_test(text_beside_its_record),
		cmocka_unit_test(what_is_no_text),
		cmocka_unit_test(an_error_tells_its_cause_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
