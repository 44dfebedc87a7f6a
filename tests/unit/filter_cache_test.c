/*
 * filter_cache_test.c - filters with a policy's own lines: compiled, kept, loaded, and refused where
 * what is in the cache is not what it should be.
 *
 * Runs in: the unit tests, as root and as a user. The cache is filled by compile_filter() itself,
 * so carrel-policy need not lie where this program would look for it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/load/filter_cache.h"
#include "policy/compile.h"
#include "policy/filter.h"

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define LINE "allow io_uring_setup"

struct fixture {
	struct arena arena;
	char home[64], file[512];
	char env_home[80];
	const char *environment[2];
	struct syscall_rule rule;
	struct policy policy;
	char *data; /* the genuine file */
	size_t size;
};

static int make_private_directory(const char *home, const char *rest, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s%s", home, rest);
	return mkdir(ret, 0700);
}

static void write_file(const struct fixture *f, const void *data, size_t size, mode_t mode)
{
	(void)unlink(f->file);
	autofd int fd = fd_open_at(AT_FDCWD, f->file, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int set_up(void **state)
{
	static const struct compile_line lines[] = { { "mine", 1, LINE } };
	struct fixture *f = calloc(1, sizeof(*f));
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE], path[256];
	const char *texts[] = { LINE };
	const void *data = NULL;
	struct error e = { 0 };

	assert_non_null(f);
	assert_int_equal(arena_init(&f->arena, 2 * FILTER_ARENA_SIZE), 0);
	(void)snprintf(f->home, sizeof(f->home), "/tmp/filter-cache.XXXXXX");
	assert_non_null(mkdtemp(f->home));
	assert_int_equal(make_private_directory(f->home, "/.cache", path, sizeof(path)), 0);
	assert_int_equal(
		make_private_directory(f->home, "/.cache/carrel", path, sizeof(path)), 0);
	assert_int_equal(
		make_private_directory(f->home, "/.cache/carrel/filters", path, sizeof(path)),
		0);
	(void)snprintf(f->env_home, sizeof(f->env_home), "HOME=%s", f->home);
	f->environment[0] = f->env_home;
	f->rule = (struct syscall_rule){ LINE, { LAYER_FILE, 1, "mine" } };
	f->policy.syscall_rules = &f->rule;
	f->policy.syscall_rule_count = 1;
	filter_cache_inputs("default", texts, 1, digest);
	sha256_hex(digest, hex);
	(void)snprintf(f->file, sizeof(f->file), "%s/%s.bpf", path, hex);
	assert_int_equal(
		compile_filter(&f->arena, "default", lines, 1, &data, &f->size, &e), 0);
	f->data = malloc(f->size);
	assert_non_null(f->data);
	memcpy(f->data, data, f->size);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const rest[] = { "/.cache/carrel/filters", "/.cache/carrel",
		"/.cache", "" };
	struct fixture *f = *state;
	char path[256];

	(void)unlink(f->file);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", f->home, rest[i]);
		(void)rmdir(path);
	}
	arena_free(&f->arena);
	free(f->data);
	free(f);
	return 0;
}

static int load(struct fixture *f, const struct embedded_filter **ret, struct error *e)
{
	*e = (struct error){ 0 };
	return filter_cache_load(&f->arena, &f->policy, "default", f->environment, ret, e);
}

static uint32_t run_call(const struct embedded_filter *filter, const char *call)
{
	struct seccomp_data d = { .nr = filter_number(call, NATIVE), .arch = NATIVE };
	struct filter_outcome out = { 0 };

	assert_int_equal(filter_run(filter->code, filter->count, &d, &out), 0);
	return out.action;
}

static void test_kept_filter_is_loaded(void **state)
{
	struct fixture *f = *state;
	const struct embedded_filter *filter = NULL;
	struct error e;

	write_file(f, f->data, f->size, 0600);
	assert_int_equal(load(f, &filter, &e), 0);
	assert_int_equal(run_call(filter, "io_uring_setup"), SECCOMP_RET_ALLOW);
	assert_int_equal(run_call(filter, "io_uring_enter"), SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(run_call(embedded_find_filter("default"), "io_uring_setup"),
		SECCOMP_RET_ERRNO | EPERM);
}

/*
 * What is in the cache is not used: either it is compiled again, or that cannot be done here, and
 * that is an error.
 */
static void assert_not_used(struct fixture *f)
{
	const struct embedded_filter *filter = NULL;
	struct error e;

	if (load(f, &filter, &e) < 0) {
		assert_int_equal(e.code, ERROR_INTERNAL);
		assert_null(filter);
		return;
	}
	assert_memory_equal(filter->code, f->data + sizeof(struct filter_file_header),
		f->size - sizeof(struct filter_file_header));
}

static void test_wrong_files_are_not_used(void **state)
{
	struct fixture *f = *state;
	struct filter_file_header *h;
	struct sock_filter *code;
	char *copy = malloc(f->size + 8);

	assert_non_null(copy);
	memset(copy + f->size, 0, 8);
	h = (struct filter_file_header *)copy;
	code = (struct sock_filter *)(h + 1);
	for (unsigned wrong = 0; wrong < 9; wrong++) {
		size_t size = f->size;

		memcpy(copy, f->data, f->size);
		/* Everything allowed, and a file that says it is all right. */
		code[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		sha256(code, h->count * sizeof(*code), h->content);
		if (wrong == 0)
			h->magic[0] ^= 1;
		else if (wrong == 1)
			h->version++;
		else if (wrong == 2)
			h->arch ^= 1;
		else if (wrong == 3)
			h->inputs[31] ^= 1;
		else if (wrong == 4)
			h->content[0] ^= 1;
		else if (wrong == 5)
			size -= 8;
		else if (wrong == 6)
			size += 8;
		else if (wrong == 7)
			h->reserved = 1;
		else
			h->count = 0;
		write_file(f, copy, size, 0600);
		assert_not_used(f);
	}
	free(copy);
}

static void test_unsafe_places_are_not_used(void **state)
{
	struct fixture *f = *state;
	struct filter_file_header *h = (struct filter_file_header *)f->data;
	struct sock_filter *code = (struct sock_filter *)(h + 1), first = code[0];
	char directory[256];
	uint8_t content[SHA256_SIZE];

	/* A file with another program that is right in every other way... */
	memcpy(content, h->content, sizeof(content));
	code[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	sha256(code, h->count * sizeof(*code), h->content);
	char *planted = malloc(f->size);
	assert_non_null(planted);
	memcpy(planted, f->data, f->size);
	code[0] = first;
	memcpy(h->content, content, sizeof(content));

	/* ...is believed only where nobody else could have put it (the control arm)... */
	const struct embedded_filter *filter = NULL;
	struct error e;
	write_file(f, planted, f->size, 0600);
	assert_int_equal(load(f, &filter, &e), 0);
	assert_int_equal(filter->code[0].code, BPF_RET | BPF_K);
	/* ...and not where others may write. */
	write_file(f, planted, f->size, 0640);
	assert_not_used(f);
	(void)snprintf(directory, sizeof(directory), "%s/.cache/carrel/filters", f->home);
	write_file(f, planted, f->size, 0600);
	assert_int_equal(chmod(directory, 0770), 0);
	assert_not_used(f);
	assert_int_equal(chmod(directory, 0700), 0);
	(void)snprintf(directory, sizeof(directory), "%s/.cache", f->home);
	write_file(f, planted, f->size, 0600);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_not_used(f);
	assert_int_equal(chmod(directory, 0700), 0);
	/* A symbolic link in the place of the file. */
	char elsewhere[256];
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/planted", f->home);
	write_file(f, planted, f->size, 0600);
	assert_int_equal(rename(f->file, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, f->file), 0);
	assert_not_used(f);
	assert_int_equal(unlink(elsewhere), 0);
	free(planted);
}

/* Jumps and instructions that the kernel would refuse, or that nobody here writes. */
static void test_unsound_programs_are_refused(void **state)
{
	static const struct sock_filter wrongs[][2] = {
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_JMP | BPF_JA, 1), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 255),
			BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_RET | BPF_A, 0), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) },
	};
	struct {
		struct filter_file_header header;
		struct sock_filter code[2];
	} file;
	struct fixture *f = *state;
	uint8_t inputs[SHA256_SIZE];

	memcpy(&file.header, f->data, sizeof(file.header));
	memcpy(inputs, file.header.inputs, sizeof(inputs));
	file.header.count = 2;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		memcpy(file.code, wrongs[i], sizeof(file.code));
		sha256(file.code, sizeof(file.code), file.header.content);
		assert_int_equal(filter_cache_accept(&file, sizeof(file), inputs), -EINVAL);
	}
	file.code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
	file.code[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	sha256(file.code, sizeof(file.code), file.header.content);
	assert_int_equal(filter_cache_accept(&file, sizeof(file), inputs), 2);
}

static void test_inputs_tell_filters_apart(void **state)
{
	static const char *const one[] = { "allow a", "allow b" },
				 *const two[] = { "allow b", "allow a" };
	uint8_t digests[4][SHA256_SIZE];

	(void)state;
	filter_cache_inputs("default", one, 2, digests[0]);
	filter_cache_inputs("default", two, 2, digests[1]);
	filter_cache_inputs("strict", one, 2, digests[2]);
	filter_cache_inputs("default", one, 1, digests[3]);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(digests[i], digests[j], SHA256_SIZE);
}

static void test_compile_errors(void **state)
{
	static const struct {
		const char *base, *line, *on, *hint;
	} wrongs[] = {
		{ "defalt", "allow read", "defalt", "default" },
		{ "default", "allow redd", "mine:7", "read" },
		{ "default", "kill read", "mine:7", "" },
		{ "default", "allow ioctl if arg1 == TIOCSTY", "mine:7", "TIOCSTI" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct compile_line line = { "mine", 7, wrongs[i].line };
		struct arena arena = { 0 };
		struct error e = { 0 };
		const void *data = NULL;
		size_t size = 0;

		assert_int_equal(arena_init(&arena, FILTER_ARENA_SIZE), 0);
		assert_true(
			compile_filter(&arena, wrongs[i].base, &line, 1, &data, &size, &e) < 0);
		assert_int_equal(e.code, ERROR_POLICY);
		assert_string_equal(e.on, wrongs[i].on);
		assert_non_null(strstr(e.hint, wrongs[i].hint));
		assert_null(data);
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kept_filter_is_loaded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_wrong_files_are_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_unsafe_places_are_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_unsound_programs_are_refused, set_up, tear_down),
		cmocka_unit_test(test_inputs_tell_filters_apart),
		cmocka_unit_test(test_compile_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
