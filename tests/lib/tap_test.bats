#!/usr/bin/env bats
# tests/lib/tap, which decides whether all other tests pass: it reports each failure, and where it is.
# ctest: as=any
load common

# result: what it makes of the file on stdin, in $output. There TEST begins a test, so that it is none of this file's.
result() {
	sed 's/^TEST /@test /' >"$T/file.bats"
	run --separate-stderr "$CARREL_SOURCE/tests/lib/tap" "$T/file.bats"
}

# has LINE...: each is one of the output's.
has() {
	local line

	for line; do
		grep -qxF -- "$line" <<<"$output" || fail "not there: $line"
	done
}

@test "a test that passes, one that is skipped, and what they write" {
	result <<-'FILE'
		TEST "first" {
			echo nobody sees this
			[[ $BATS_TEST_NUMBER == 1 && -d $BATS_TEST_TMPDIR && -d $BATS_FILE_TMPDIR ]]
			echo "# this everybody" >&3
		}
		TEST "second: 'x' \$ \"y\"" {
			skip 'no moon'
			false
		}
		TEST "third" {
			skip
		}
	FILE
	assert_status 0
	assert_output $'1..3\n# this everybody\nok 1 first\nok 2 second: \'x\' $ "y" # skip no moon\nok 3 third # skip'
}

@test "each way to fail is a failure, and the test after it runs" {
	local number=0 way

	for way in 'false' '[[ a == b ]]' '((0))' 'grep -q x /dev/null' 'inner' 'x=$(exit 3)' 'true | false' '! true || false' 'exit 1' \
		'exit 0' 'return 1' 'kill -KILL $BASHPID' 'kill -TERM $BASHPID' 'no-such-command' 'run -3 true' 'run ! true' 'run -0 false' \
		'run -0 no-such-command' 'run --wrong true' 'cd /nowhere' '(exit 1)' 'for i in 1 2; do false; done' '/bin/false' \
		'. /nowhere/file'; do
		((number += 1))
		result <<-FILE
			inner() {
				local y
				[[ \${y-} == z ]]
				true
			}
			TEST "fails" {
				true
				$way
				true
			}
			TEST "passes" {
				true
			}
		FILE
		[[ $way != 'exit 0' ]] || way+=' is no end either'
		assert_status 1
		has '1..2' 'not ok 1 fails' 'ok 2 passes'
	done
	((number == 24))
}

@test "it says where, and shows what was written" {
	result <<-'FILE'
		outer() {
			inner
		}
		inner() {
			echo some words
			false
		}
		TEST "fails" {
			true
			outer
		}
	FILE
	assert_status 1
	has 'not ok 1 fails' "# $T/file.bats:6: inner" "# $T/file.bats:2: outer" "# $T/file.bats:10: the test" '# some words' '# status 1'
}

@test "setup and teardown fail a test, and teardown runs in any case" {
	result <<-'FILE'
		setup() {
			[[ $BATS_TEST_NUMBER != 1 ]]
		}
		teardown() {
			echo "# torn down $BATS_TEST_NUMBER ${BATS_TEST_COMPLETED:-early}" >&3
			[[ $BATS_TEST_NUMBER != 2 ]]
		}
		TEST "a" {
			echo '# too far' >&3
		}
		TEST "b" {
			true
		}
		TEST "c" {
			skip 'no moon'
		}
		TEST "d" {
			false
		}
	FILE
	assert_status 1
	has 'not ok 1 a' '# torn down 1 early' 'not ok 2 b' '# torn down 2 1' 'ok 3 c # skip no moon' '# torn down 3 1' 'not ok 4 d' \
		'# torn down 4 early'
	[[ $output != *'too far'* ]]
}

@test "setup_file comes first and its exports stay; that it or teardown_file fails is a failure of the file" {
	result <<-'FILE'
		setup_file() {
			export SHARED=$BATS_FILE_TMPDIR/shared
			: >"$SHARED"
		}
		teardown_file() {
			[[ ! -e $SHARED.left ]]
		}
		TEST "has it" {
			[[ -e $SHARED ]]
			: >"$SHARED.left"
		}
	FILE
	assert_status 1
	has 'ok 1 has it' 'not ok 2 teardown_file failed'
	result <<-'FILE'
		setup_file() {
			false
			true
		}
		TEST "never comes to it" {
			true
		}
	FILE
	assert_status 1
	has 'not ok 2 setup_file failed'
	[[ $output != *ok\ 1* ]]
}

@test "a file that cannot be read as tests is no success" {
	result <<-'FILE'
		TEST "on one line" { true; }
	FILE
	assert_status 2
	result <<-'FILE'
		TEST "never ends" {
			if true
		}
	FILE
	[[ $status != 0 && $output != *'ok 1'* ]]
	result <<-'FILE'
		false
		TEST "never comes to it" {
			true
		}
	FILE
	[[ $status != 0 && $output != *'ok 1'* ]]
	result <<-'FILE'
		load no-such-file
		TEST "never comes to it" {
			true
		}
	FILE
	[[ $status != 0 && $output != *'ok 1'* ]]
	run --separate-stderr "$CARREL_SOURCE/tests/lib/tap" "$T/none.bats"
	[[ $status != 0 ]]
}

@test "run: status, output, lines and stderr" {
	result <<-'FILE'
		both() {
			printf 'a\n\nb\n\n'
			echo error >&2
			return 4
		}
		TEST "merged" {
			run both
			((status == 4))
			[[ $output == $'a\n\nb\n\nerror' && ${#lines[@]} == 3 && ${lines[1]} == b ]]
		}
		TEST "apart" {
			run --separate-stderr both
			[[ $status == 4 && $output == $'a\n\nb' && $stderr == error ]]
			run -127 no-such-command
			run -4 both
			run ! both
		}
		TEST "errors stop the test again behind it" {
			run false
			false
			echo '# too far' >&3
		}
		TEST "and inside it they do not" {
			on() {
				false
				echo on
			}
			run on
			[[ $output == on ]]
		}
	FILE
	assert_status 1
	has 'ok 1 merged' 'ok 2 apart' 'not ok 3 errors stop the test again behind it' 'ok 4 and inside it they do not'
	[[ $output != *'too far'* ]]
}

@test "TAP_ASKS picks tests by their lines, and no line number moves" {
	export TAP_ASKS='who|else'
	result <<-'FILE'
		TEST "no" {
			false
		}
		who() {
			true
		}
		TEST "yes" {
			who
		}
		TEST "nor this" {
			false
		}
		# else
		TEST "yes as well" {
			[[ who == x ]]
		}
		by_way() {
			who
		}
		TEST "by way of a function" {
			by_way
		}
	FILE
	assert_status 1
	assert_output $'1..3\nok 1 yes\nnot ok 2 yes as well\n'"# $T/file.bats:15: the test"$'\n# status 1\nok 3 by way of a function'
}
