#!/usr/bin/env bats
# Every process of a launch is killed at each of its system calls: the launcher, its init, the payload
# up to execve. The driver is that of tests/torture.
# ctest: serial

load ../lib/common

# crash OPTION... -- SETTING...
crash() {
	local -a options=()

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	mkdir "$T/points"
	run "$CARREL_HELPERS/inject" -k "${options[@]}" "$T/points" "$CARREL" \
		"$CARREL_HELPERS/marker" "$@"
	printf '%s\n' "$output" | sed 's/^/# /' >&3
	((status != 77)) || skip 'ptrace is refused on this machine'
	assert_status 0
	assert_matches "$output" 'violations: 0'
	[[ $output =~ points:\ ([0-9]+) ]] || fail 'no points'
}

no_process_left() {
	[[ $(left) != *process* ]]
}

@test "each process is killed at each of its calls" {
	crash --
	((BASH_REMATCH[1] > 500)) || fail 'too few points'
}

@test "the launcher is killed at each call where something must be quarantined" {
	crash -o launcher -a .envrc --
	((BASH_REMATCH[1] > 200)) || fail 'too few points'
}

@test "the launcher is killed while a tree of processes runs: all die, gc removes the directory" {
	local pid

	"$CARREL" run -- sh -c 'for i in 1 2 3; do (setsid sleep 1000 &) ; done; : >started; sleep 1000' &
	pid=$!
	wait_for test -e "$WS/started"
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for no_process_left
	[[ $(left) == *entry* ]] || fail 'the directory went by itself?'
	carrel gc
	assert_status 0
	assert_nothing_left
}

@test "init is killed while the command runs: the status says that the end is not known" {
	local pid init status=0

	"$CARREL" run --report "$T/r.json" -- sh -c ': >started; sleep 1000' 2>"$T/err" &
	pid=$!
	wait_for test -e "$WS/started"
	init=$(pgrep -P "$pid" | head -n 1)
	kill -KILL "$init"
	wait "$pid" || status=$?
	((status == 125)) || fail "status $status"
	assert_field "$T/r.json" .started unknown
	assert_field "$T/r.json" .exit_status 125
	assert_field "$T/r.json" .error.code protocol
	assert_nothing_left
}
