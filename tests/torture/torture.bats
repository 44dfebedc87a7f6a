#!/usr/bin/env bats
# The driver fails every system call of a launch in turn: of the launcher, its init, and the payload up to execve. It
# prints how many points there were and what came of them.
# ctest: cost=100 mounts

load ../lib/common

setup() {
	common_setup
	# What the sessions' processes do is the driver's to say, for each point; it ends them all.
	mkdir "$T/points"
	AROUND=() # what runs the driver
	# Of the readers' calls, which are much the same for each.
	MOST=(-n 110)
	FEWER=(-n 40)
	# As root each call fails with each of the errors. What follows on one errno is the same code as the user: where root has
	# it run as well, each call fails with one of them, in turn.
	EACH=()
	[[ ! ${ALSO_AS_ROOT-} ]] || EACH=(-r)
	[[ ! ${FULL_TESTS-} ]] || MOST=() FEWER=() EACH=()
}

# torture OPTION... -- SETTING...: one series of points; its tables go to the log.
torture() {
	local -a options=()

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	run "${AROUND[@]}" "$CARREL_HELPERS/inject" "${options[@]}" "$T/points" "$CARREL" "$CARREL_HELPERS/marker" "$@"
	printf '%s\n' "$output" | sed 's/^/# /' >&3
	((status != 77)) || skip 'ptrace is refused on this machine'
	assert_status 0
	assert_matches "$output" 'violations: 0'
	# A series that counted next to nothing would prove nothing.
	[[ $output =~ points:\ ([0-9]+) ]] || fail 'no points'
}

@test "without the walls every probe of the marker is open" {
	mkdir "$T/host"
	printf 'text\n' >"$T/host/secret"
	printf 'text\n' >"$T/host/file"
	mkfifo "$T/host/fifo"
	TORTURE_SECRET=yes run "$CARREL_HELPERS/marker" "$T/host" ''
	assert_status 0
	for open in 'secret-in-environment yes' 'hidden READ' 'read-only 0' 'fifo 0' \
		'user-namespace 0' 'vsock 0' 'workspace 0' 'end'; do
		grep -qxF "$open" <<<"$output" || fail "closed without a session: $open"
	done
	if is_root; then
		for open in 'shadow READ' 'root-write 0'; do
			grep -qxF "$open" <<<"$output" || fail "closed without a session: $open"
		done
	fi
}

@test "the driver finds a launcher that goes on after a failure" {
	# One that has no walls at all: not even the run without injection may pass.
	printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n' >"$T/open"
	chmod +x "$T/open"
	run "$CARREL_HELPERS/inject" -e EPERM "$T/points" "$T/open" "$CARREL_HELPERS/marker"
	((status != 77)) || skip 'ptrace is refused on this machine'
	assert_status 2
	assert_matches "$output" 'a run without injection lacks'
}

@test "each system call fails with EPERM, ENOMEM, EINTR" {
	torture -e EPERM,ENOMEM,EINTR "${EACH[@]}" --
	((BASH_REMATCH[1] > (${#EACH[@]} ? 500 : 1500))) || fail 'too few points'
}

@test "each call of init fails with EPERM where a new root is built and the scratch is bounded" {
	torture -e EPERM -o init -- --profile strict --scratch-size 16M
	((BASH_REMATCH[1] > 150)) || fail 'too few points'
}

@test "each call of the launcher fails with EPERM where something must be quarantined" {
	torture -e EPERM -o launcher -a .envrc --
	((BASH_REMATCH[1] > 200)) || fail 'too few points'
}

# Each error for some of the calls: that a lookup fails must not mean that there is nothing to hide or to protect.
@test "each call of the launcher fails where what is hidden is seen twice, and the workspace is a repository" {
	need_root
	mkdir "$T/second"
	# shellcheck disable=SC2016
	AROUND=(unshare --mount sh -c 'mount --bind /etc "$1" && shift && exec "$@"' sh "$T/second")
	torture -r -g -e EPERM,ENOMEM,EINTR -o launcher -- --hide '/etc/*.conf'
	((BASH_REMATCH[1] > 200)) || fail 'too few points'
}

@test "each call of init fails with EPERM where an rlimit may have to count the tasks" {
	torture -e EPERM -o init -- --pids 100
	((BASH_REMATCH[1] > 150)) || fail 'too few points'
}

# A reader is a child that looks at what tools left in a repository. What it cannot look at must not be obeyed.
@test "each call of the readers of a repository fails with EPERM, ENOMEM, EINTR, EMFILE, EIO" {
	torture -g -e EPERM,ENOMEM,EINTR,EMFILE,EIO -o reader "${MOST[@]}" --
	((BASH_REMATCH[1] >= 100)) || fail 'too few points'
}

@test "the readers of a repository are killed" {
	torture -g -k -o reader "${FEWER[@]}" --
	((BASH_REMATCH[1] >= 40)) || fail 'too few points'
}
