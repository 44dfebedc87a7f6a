#!/usr/bin/env bats
# The driver fails one system call, or kills one process, of a live session: of the clients, the supervisor, init, the
# monitors, and the commands up to execve. No command runs with a wall missing, every client tells the truth, the
# supervisor goes on or ends the session with a message, no other execution is harmed, and gc leaves nothing. The driver
# takes points evenly; with FULL_TESTS=1 it takes each of them.
# ctest: cost=100 mounts

load ../lib/common

setup() {
	common_setup
	mkdir "$T/points"
	MOST=(-n 60)
	[[ ! ${FULL_TESTS-} ]] || MOST=()
}

# torture OPTION... -- SETTING...
torture() {
	local -a options=()

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	run "$CARREL_HELPERS/inject" "${options[@]}" "${MOST[@]}" "$T/points" "$CARREL" \
		"$CARREL_HELPERS/marker" "$@"
	printf '%s\n' "$output" | sed 's/^/# /' >&3
	((status != 77)) || skip 'ptrace is refused on this machine'
	assert_status 0
	assert_matches "$output" 'violations: 0'
	[[ $output =~ points:\ ([0-9]+) ]] || fail 'no points'
	((BASH_REMATCH[1] >= 50)) || fail 'too few points'
}

@test "live session: system calls fail with EPERM, ENOMEM, EINTR" {
	torture -l -e EPERM,ENOMEM,EINTR --
}

@test "live session: processes are killed" {
	torture -l -k --
}

@test "a run whose outputs are cut: system calls fail with EPERM, ENOMEM, EINTR" {
	torture -e EPERM,ENOMEM,EINTR -- --output-budget 100000
}

@test "a run whose outputs are cut: processes are killed" {
	torture -k -- --output-budget 100000
}

@test "live session in a repository: the calls of its readers fail with EPERM, ENOMEM, EINTR" {
	torture -l -g -e EPERM,ENOMEM,EINTR -o reader --
}

@test "live session in a repository: its readers are killed" {
	torture -l -g -k -o reader --
}
