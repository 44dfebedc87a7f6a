#!/usr/bin/env bats
# The helpers themselves: they find what they look for.
load common

@test "a process that outlives its parent is found, whatever it becomes" {
	EXPECT_LEFT=1
	(setsid sleep 60 >/dev/null 2>&1 3>&- &)
	is_found() {
		[[ $(left) == *"sleep 60"* ]]
	}
	wait_for is_found
	run assert_nothing_left
	((status == 1))
	[[ $output == *"sleep 60"* ]]
	kill_left
	await_nothing_left
}

@test "a process in namespaces of its own is found from outside" {
	need bwrap
	EXPECT_LEFT=1
	(setsid bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc sleep 61 >/dev/null 2>&1 3>&- &)
	inside_is_left() {
		left | grep -q '^process [0-9]*: sleep 61'
	}
	wait_for inside_is_left
	kill_left
	await_nothing_left
}

@test "a directory of a session is found" {
	EXPECT_LEFT=1
	mkdir "$BASE/carrel-0"
	run assert_nothing_left
	((status == 1))
	[[ $output == *"$BASE/carrel-0"* ]]
}

@test "an ended test leaves nothing to find" {
	assert_nothing_left
	[[ -z $(left) ]]
}

@test "a missing value is not taken for an empty one" {
	printf '{"a": {"b": false, "c": 0}, "n": null}' >report.json
	assert_field report.json .a.b false
	assert_field report.json .a.c 0
	run field report.json .n
	((status == 1))
	run field report.json .missing
	((status == 1))
}

@test "what a failed test left is ended: its processes, and its sessions' directories" {
	"$CARREL" run -- sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
	is_there() {
		[[ $(left) == *"sleep 1000"* && -n $(find "$BASE" -path '*/carrel-*/scratch') ]]
	}
	wait_for is_there
	end_left
	assert_nothing_left
}
