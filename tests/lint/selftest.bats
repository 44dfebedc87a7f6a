#!/usr/bin/env bats
# Each lint finds what it is for: in a small tree that is clean, with one seeded fault at a time.
# ctest: cost=25

LINT=${BATS_TEST_DIRNAME}

setup() {
	tree=$(mktemp -d /var/tmp/lint.XXXXXX)
	mkdir -p "$tree"/src/{base,plan,box,host/{high,low},cli} "$tree"/docs/man "$tree"/tests "$tree"/build/man
	cat >"$tree/src/README.md" <<'TABLE'
| room | what is in it | may include | headers for others |
| --- | --- | --- | --- |
| `cli` | the verbs | host base | |
| `host/high` | a room | host base | |
| `host/low` | another | base | shown |
| `box` | inside | plan | all |
| `plan` | no effects | base | all |
| `base` | all | | all |
TABLE
	for file in high/{a,b,c} low/{shown,hidden,c}; do
		printf '/*\n * %s.h - nothing.\n *\n * Runs in: nothing.\n */\n#pragma once\n' "${file#*/}" \
			>"$tree/src/host/$file.h"
	done
	cat >"$tree/src/base/good.h" <<'SOURCE'
/*
 * good.h - nothing to complain of.
 *
 * Runs in: every program.
 */
#pragma once

/* good_count - how many. */
int good_count(void);
SOURCE
	cat >"$tree/src/base/good.c" <<'SOURCE'
/*
 * good.c - see good.h.
 *
 * Runs in: every program.
 */
#include "base/good.h"

/* A comment may say system() and assert(). */
static const int count = 1;

int good_count(void)
{
	return count;
}
SOURCE
	printf '#!/bin/sh\necho "$1"\n' >"$tree/script"
	cp "$BATS_TEST_DIRNAME/../../.clang-format" "$tree"
}

teardown() {
	rm -rf "$tree"
}

passes() {
	run "$LINT/$1" "$tree" "$tree/build"
	printf '%s\n' "$output"
	((status == 0))
}

# fails LINT TEXT: it does, and names the place.
fails() {
	run "$LINT/$1" "$tree" "$tree/build"
	printf '%s\n' "$output"
	((status == 1))
	[[ $output == *"$2"* ]]
}

# seed FILE LINE...: a file with a proper opening comment, and these lines.
seed() {
	local file=$1

	shift
	printf '/*\n * %s - a fault.\n *\n * Runs in: nothing.\n */\n' "${file##*/}" >"$tree/$file"
	printf '%s\n' "$@" >>"$tree/$file"
}

@test "a clean tree passes" {
	for lint in rooms banned words headers sizes format scripts; do
		passes "$lint"
	done
}

@test "rooms: the base may not look up" {
	seed src/base/bad.c '#include "host/low/shown.h"'
	fails rooms 'src/base/bad.c:6: base may not include host'
}

@test "rooms: the box may include neither base nor stdio" {
	seed src/box/bad.c '#include <stdio.h>' '#include "base/good.h"'
	fails rooms 'src/box/bad.c:7: box may not include base'
	fails rooms 'src/box/bad.c:6:'
}

@test "rooms: nobody includes the verbs" {
	seed src/host/high/bad.c '#include "cli/verbs.h"'
	fails rooms 'host/high may not include cli'
}

@test "rooms: of the host's, none looks up, and none into what another keeps to itself" {
	seed src/host/low/bad.c '#include "host/high/a.h"'
	fails rooms 'host/low may not include host/high'
	seed src/host/low/bad.c '#include "plan/plan.h"'
	fails rooms 'host/low may not include plan'
	rm "$tree/src/host/low/bad.c"
	seed src/host/high/bad.c '#include "host/low/hidden.h"'
	fails rooms 'src/host/high/bad.c:6: host/low/hidden.h is private to host/low'
	seed src/host/high/bad.c '#include "host/low/shown.h"'
	passes rooms
}

@test "rooms: what is in none, or in one too many, or too few" {
	seed src/host/bad.c
	fails rooms 'src/host/bad.c: no such room: host'
	rm "$tree/src/host/bad.c" "$tree/src/host/low/c.h"
	fails rooms 'src/host/low: 2 files, not 3 to 25'
}

@test "rooms: the plan has no effects" {
	seed src/plan/bad.c '#include <unistd.h>'
	fails rooms 'src/plan/bad.c:6:'
}

@test "banned: each kind of call" {
	seed src/host/high/bad.c 'int f(void) {' '	return system("x");' '}'
	fails banned 'src/host/high/bad.c:7:'
	seed src/host/high/bad.c 'int f(void) {' '	assert(1);' '}'
	fails banned 'not an assertion'
	seed src/host/high/bad.c 'int f(void) {' '	(void)execvp(a, b);' '}'
	fails banned 'PATH'
	seed src/host/high/bad.c 'int f(void) {' '	exit(1);' '}'
	fails banned 'only main'
	seed src/host/high/bad.c 'int f(void) {' '	struct sigaction a = { .sa_handler = handle };' '}'
	fails banned 'no handlers'
	seed src/host/high/bad.c '#pragma GCC diagnostic ignored "-Wunused"'
	fails banned 'a warning is mended'
	seed src/host/high/bad.c 'static int counter;'
	fails banned 'mutable data'
	seed src/host/high/bad.c 'static struct table rows[2] = { 0 };'
	fails banned 'mutable data'
	rm "$tree/src/host/high/bad.c"
	seed src/plan/bad.c 'const char *f(void) {' '	return getenv("HOME");' '}'
	fails banned 'comes in as a parameter'
}

@test "banned: main may end the program, members and strings are no calls" {
	seed src/cli/main.c 'int main(void) {' '	exit(run_system(1));' '}'
	seed src/host/high/fine.c 'int f(void) {' '	return p->exit(1) + my_assert(2);' '}' \
		'static const char *const names[] = { "a" };'
	passes banned
}

@test "words: a note to oneself, a place, an address" {
	printf 'a T%sDO here\n' O >"$tree/docs/notes.md"
	fails words 'docs/notes.md:1:'
	printf 'cd /wo%s/main\n' rk >"$tree/docs/notes.md"
	fails words 'docs/notes.md:1:'
	printf 'ping 172.16%s.7\n' .3 >"$tree/docs/notes.md"
	fails words 'docs/notes.md:1:'
	printf 'ping 127.0.0.1, version 1.2.3\n' >"$tree/docs/notes.md"
	passes words
}

@test "headers: the opening comment, the guard, the comment of a function" {
	printf 'int x;\n' >"$tree/src/base/bad.c"
	fails headers 'src/base/bad.c:1: does not open with a comment'
	printf '/*\n * other.c - text.\n * Runs in: x\n */\n' >"$tree/src/base/bad.c"
	fails headers "start with the file's name"
	printf '/*\n * bad.c - text.\n */\n' >"$tree/src/base/bad.c"
	fails headers 'Runs in:'
	rm "$tree/src/base/bad.c"
	seed src/base/bad.h 'int bad(void);'
	fails headers 'no #pragma once'
	seed src/base/bad.h '#pragma once' '' 'int bad(void);'
	fails headers 'no comment in front of: int bad(void);'
}

@test "sizes: a long file, a long function" {
	seed src/base/bad.c 'int f(void)' '{' "$(yes '	g();' | head -n 81)" '}'
	fails sizes '81 lines (at most 80): int f(void)'
	seed src/base/bad.c "$(yes 'int x;' | head -n 496)"
	fails sizes 'src/base/bad.c: 501 lines'
}

@test "sizes: a ladder of steps that each ask whether the last one failed" {
	seed src/base/bad.c 'int f(void)' '{' '	int r = a();' "$(yes '	if (r >= 0)
		r = b();' | head -n 4)" '	return r;' '}'
	passes sizes
	seed src/base/bad.c 'int f(void)' '{' '	int r = a();' "$(yes '	if (r >= 0)
		r = b();' | head -n 6)" '	return r;' '}'
	fails sizes '3 steps begin with `if (r >= 0)` (at most 2): return early: int f(void)'
}

@test "format: what clang-format would change" {
	seed src/base/bad.c 'int f( void ){return 1;}'
	fails format 'src/base/bad.c:6: not as clang-format has it'
}

@test "scripts: what shellcheck warns of" {
	printf '#!/bin/sh\ncd $1\nx=1\n' >"$tree/script"
	fails scripts 'script:'
}

@test "symbols: heap and streams in the box, effects in the plan" {
	for room in box plan; do
		seed "src/$room/bad.c" 'void *malloc(unsigned long);' 'int open(const char *, int, ...);' \
			'void *memcpy(void *, const void *, unsigned long);' \
			'void f(char *p) { memcpy(malloc(1), p, 9); (void)open(p, 0); }'
		gcc -O0 -c -o "$tree/build/$room.o" "$tree/src/$room/bad.c"
		ar rc "$tree/build/lib${room}_musl.a" "$tree/build/$room.o"
	done
	fails symbols 'libbox_musl.a: may not call malloc'
	fails symbols 'libplan_musl.a: may not call open'
	[[ $output != *memcpy* && $output != *'libbox_musl.a: may not call open'* ]]
}

@test "binary: a dynamic launcher, an executable stack" {
	printf 'CARREL_LIBC:STRING=musl\n' >"$tree/build/CMakeCache.txt"
	printf 'int main(void) { return 0; }\n' >"$tree/main.c"
	for program in carrel carrel-egress carrel-policy carrel-inspect; do
		gcc -z execstack -Wl,-z,norelro -Wl,-z,lazy -o "$tree/build/$program" "$tree/main.c"
	done
	fails binary 'carrel: has an interpreter'
	for text in 'carrel: needs a library' 'carrel-egress: has an interpreter' 'carrel-policy: the stack is executable' \
		'carrel-inspect: no relro' 'carrel-policy: binds lazily'; do
		fails binary "$text"
	done
}

@test "clang: a warning that gcc does not give" {
	seed src/base/bad.c 'int counter;'
	printf '[{"directory": "/", "command": "gcc -DX=\\\\\\"1\\\\\\" -I%s/src -c bad.c", "file": "%s"}]\n' \
		"$tree" "$tree/src/base/bad.c" >"$tree/build/compile_commands.json"
	fails clang 'src/base/bad.c:6:'
	seed src/base/bad.c 'static const char *const x = X;' 'const char *f(void);' \
		'const char *f(void)' '{' '	return x;' '}'
	passes clang
	# Files that are built alike are read by one process; each is read.
	for file in first second third; do
		printf '{"directory": "/", "command": "gcc -c %s.c", "file": "%s"}\n' "$file" "$tree/src/base/$file.c"
		seed "src/base/$file.c" "int $file;"
	done | jq -s . >"$tree/build/compile_commands.json"
	fails clang 'src/base/first.c:6:'
	fails clang 'src/base/second.c:6:'
	fails clang 'src/base/third.c:6:'
}

@test "man: a page that was not built, a fault in one, a reference that leads nowhere" {
	printf 'x(1)\n' >"$tree/docs/man/x.1.scd"
	fails man 'was not built'
	printf '.TH x 1 2024-01-01\n.SH NAME\nx \\- y\n.SH DESCRIPTION\n.BOGUS\n' >"$tree/build/man/x.1"
	fails man 'BOGUS'
	printf '.TH x 1 2024-01-01\n.SH NAME\nx \\- y\n.SH DESCRIPTION\ntext\n' >"$tree/build/man/x.1"
	passes man
	printf '*carrel-nowhere*(1)\n' >>"$tree/docs/man/x.1.scd"
	fails man 'there is no carrel-nowhere(1)'
}

@test "claims: a file, a directory, a title that there is not; a row that nothing shows" {
	mkdir "$tree/tests/e2e"
	printf '@test "%s" {\n' 'one: two' 'three' >"$tree/tests/e2e/x.bats"
	printf 'static void %s(void **state)\n' test_four_s_five >"$tree/tests/y_test.c"
	row() {
		printf '%s\n' 'See `tests/e2e`.' '' '| what | shown by |' '| --- | --- |' "| it | $1 |" >"$tree/docs/x.md"
	}
	row '`tests/e2e/x.bats` "one: t", "three"; `tests/y_test.c` "four'\''s five"'
	passes claims
	row 'the same'
	passes claims
	row '`tests/e2e/x.bats` "two"'
	fails claims 'docs/x.md:5: tests/e2e/x.bats has no test "two..."'
	row '`tests/y_test.c` "five"'
	fails claims 'has no test "five..."'
	row '`tests/e2e/x.bats`, `tests/y_test.c` "four"'
	fails claims 'docs/x.md:5: which test of tests/e2e/x.bats?'
	row 'carrel(1)'
	fails claims 'docs/x.md:5: nothing shows this'
	printf '%s\n' 'In `tests/nowhere`.' >"$tree/docs/x.md"
	fails claims 'docs/x.md:1: there is no tests/nowhere'
}

@test "messages: a text that is not in the list, one that is gone, no list; and the list is written" {
	mkdir "$tree/tests/lint"
	seed src/host/high/m.c 'f("cannot open " /* what */' '	"the file", NAME, "%s%d", "x");'
	fails messages 'tests/lint/messages.txt: is missing'
	CARREL_GOLDEN_WRITE=1 passes messages
	[[ $(<"$tree/tests/lint/messages.txt") == 'cannot open the file' ]]
	passes messages
	seed src/host/high/m.c 'f("cannot close the \"file\"");' '/* "no text" */'
	fails messages 'not yet in it: cannot close the \"file\"'
	fails messages 'no longer in src: cannot open the file'
}
