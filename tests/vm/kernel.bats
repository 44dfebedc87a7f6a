#!/usr/bin/env bats
# The guest of ./dev vm is the machine that its tests expect, and on Debian's kernel carrel has its walls up: by its own
# report, and against attempts.
load ../lib/common

# Where a session sees what the host has: below /var/tmp it would see its own scratch.
setup() {
	local place=/srv

	is_root || place=$(getent passwd "$EUID" | cut -d : -f 6)
	COMMON_DIR=$place common_setup
	chmod 0755 "$T" "$WS" "$HOME"
}

own_group() {
	printf '/sys/fs/cgroup%s\n' "$(sed -n 's/^0:://p' /proc/self/cgroup)"
}

@test "the guest: Debian's kernel, cgroup v2 alone, and what else tests rely on" {
	assert_matches "$(</proc/version)" 'Debian'
	[[ $(grep -c cgroup /proc/self/mounts) == 1 && $(stat -f -c %T /sys/fs/cgroup) == cgroup2fs ]]
	[[ $(stat -f -c %T /var/tmp) == ext2/ext3 && $(stat -f -c %T /tmp) == tmpfs ]]
	for place in "$HOME" /tmp /var/tmp /dev/shm; do
		: >"$(mktemp -p "$place" kernel.XXXXXX)"
		rm "$place"/kernel.??????
	done
	[[ $(stat -f -c %T /dev/pts) == devpts && $(</proc/sys/kernel/randomize_va_space) == 0 ]]
	python3 -c 'import os, socket
a = socket.create_server(("127.0.0.1", 0))
socket.create_connection(a.getsockname(), timeout=60)
os.openpty()'
	unshare --user --map-root-user true
	is_root || ! mkdir /kernel-test 2>/dev/null || fail 'an ordinary user can write below /'
}

@test "the guest: the shell is in a leaf of a group that is its own, with memory, pids and cpu" {
	leaf=$(own_group)
	group=${leaf%/*}
	for controller in memory pids cpu; do
		assert_matches " $(<"$group/cgroup.controllers") " " $controller "
		assert_matches " $(<"$group/cgroup.subtree_control") " " $controller "
	done
	# Its own to divide, not to widen: that is what delegated means.
	mkdir "$group/kernel-test"
	echo 64M >"$group/kernel-test/memory.max"
	(echo "$BASHPID" >"$group/kernel-test/cgroup.procs")
	rmdir "$group/kernel-test"
	if ! is_root; then
		! (echo 1G >"$group/memory.max") 2>/dev/null || fail 'it can widen its own group'
		! (echo "$BASHPID" >"${group%/*}/cgroup.procs") 2>/dev/null || fail 'it can leave it'
	fi
}

@test "a command runs, and every wall that this kernel has is on" {
	carrel run --report "$T/report" -- sh -c 'echo out >"$CARREL_WORKSPACE/made" && cat made'
	assert_status 0
	assert_output out
	[[ $(<"$WS/made") == out ]]
	# Sockets of the host that have a path need a newer Landlock; the report must say so.
	jq -e '.walls | to_entries | map(select(.value.state != "on")) |
		all(.key == "unix-sockets" and .value.state == "unavailable" and
			(.value.why | test("Landlock")))' "$T/report" ||
		fail "$(jq -c '.walls' "$T/report")"
	((EUID != 0)) || assert_field "$T/report" '.walls["unprivileged-uid"].state' on
}

@test "doctor finds no fault, and at most Landlock wanting" {
	carrel doctor --json
	((status <= 1)) || fail 'sessions do not work here'
	jq -e '[.checks[] | select(.verdict == "warn" or .verdict == "FAIL") | .check] |
		all(. == "landlock")' <<<"$output" || fail 'more is wanting'
	jq -e '[.checks[] | select(.check == "overlay" or .check == "session") | .verdict] ==
		["ok", "ok"]' <<<"$output" || fail 'no session, or no overlay'
}

# What kernels before 6.15 cannot clone is attached meanwhile: nothing of that may stay.
@test "attest: the mounts are the plan's, in each way to build them" {
	for settings in '' '--profile strict' '--workspace-mode overlay --scratch-size 4M'; do
		# shellcheck disable=SC2086 # words
		carrel attest $settings
		assert_status 0
		assert_matches "$output" 'ok +mount /proc: proc'
		refute_matches "$output" '(^|
)(warn|FAIL)'
	done
}

@test "an overlay keeps the workspace as it was" {
	echo old >file
	carrel run --workspace-mode overlay -- sh -c 'echo new >file && cat file'
	assert_status 0
	assert_output new
	[[ $(<file) == old ]]
}

@test "files: nothing outside is written, and what is hidden is not read" {
	mkdir "$HOME/.ssh"
	echo secret >"$HOME/.ssh/id_rsa"
	[[ $(<"$HOME/.ssh/id_rsa") == secret ]] # the control arm
	touch "$HOME/file"
	carrel run -- sh -c 'ls "$1/file" && ! cat "$1/.ssh/id_rsa" && ! touch "$1/file" &&
		! rm -f "$1/file" && ! touch /etc/kernel-test && ! mkdir /var/kernel-test &&
		! grep -q . /etc/shadow' sh "$HOME"
	assert_status 0
	assert_output "$HOME/file"
	[[ -e $HOME/file && ! -e /etc/kernel-test && ! -e /var/kernel-test ]]
}

@test "processes: the host's are neither seen nor signalled" {
	sleep 1000 3>&- &
	outside=$!
	kill -0 "$outside" # the control arm
	carrel run -- sh -c '! kill -9 "$1" && set -- /proc/[0-9]* && echo $#' sh "$outside"
	assert_status 0
	[[ $output =~ ^[23]$ ]] || fail 'more than init and the command are seen'
	kill -0 "$outside"
	kill "$outside"
}

@test "network: the host's loopback is another" {
	connect='import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
    print("connected")
except ConnectionRefusedError:
    print("refused")'
	coproc SERVER { exec /usr/bin/python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0), backlog=16)
print(s.getsockname()[1], flush=True)
input()'; }
	server=$SERVER_PID # unset as soon as it ends
	read -r port <&"${SERVER[0]}"
	run /usr/bin/python3 -c "$connect" "$port"
	assert_output connected # the control arm
	carrel run -- /usr/bin/python3 -c "$connect" "$port"
	assert_status 0
	assert_output refused
	echo >&"${SERVER[1]}"
	wait "$server"
}

@test "system calls: no namespace is made, nothing is mounted" {
	attack=$CARREL_HELPERS/attack_calls
	mkdir "$WS/a"
	"$attack" unshare user | grep -qx escaped # the control arms
	unshare --user --map-root-user --mount "$attack" mount "$WS/a" | grep -qx escaped
	for attempt in 'unshare user' 'clone user' "mount $WS/a" "mount-setattr /"; do
		# shellcheck disable=SC2086 # words
		carrel run --read "$attack" -- "$attack" $attempt
		assert_status 0
		assert_matches "$output" 'refused:EPERM$'
	done
}

@test "root on a file system without idmapped mounts: it works, or says why and what to do" {
	mkdir /tmp/kernel-test
	cd /tmp/kernel-test
	carrel run -- true
	cd /
	rmdir /tmp/kernel-test
	((status == 0)) || {
		is_root || fail 'an ordinary user needs no idmapped mounts'
		assert_status 125
		assert_matches "$stderr" 'hint: .*no idmapped mounts'
	}
}
