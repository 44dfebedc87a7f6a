#!/usr/bin/env bats
# memory, pids and cpus where cgroup v2 has controllers and some of it is delegated to the caller. Each test leaves no
# group behind.
load ../lib/common
load ../lib/session

ROOT=/sys/fs/cgroup

setup() {
	common_setup
	R=$T/report.json
	cp "$CARREL_HELPERS/bomb" "$WS/bomb"
	OWN=$(sed -n 's/^0:://p' /proc/self/cgroup)
	# shellcheck disable=SC2034 # the place that is ours: what is above our shell, or its own group
	PLACE=$ROOT${OWN%/*}
	[[ -w $PLACE/cgroup.subtree_control && $(<"$PLACE/cgroup.controllers") == *memory* ]] ||
		skip 'no cgroup v2 delegated'
	BEFORE=$(groups_of_sessions)
}

teardown() {
	local status=0 after

	[[ -n ${BATS_TEST_COMPLETED-} ]] || end_left || status=1
	common_teardown || status=1
	after=$(groups_of_sessions)
	if [[ -n ${BATS_TEST_COMPLETED-} && ${BEFORE-} != "$after" ]]; then
		printf 'groups left behind: %s\n' "$after" >&2
		status=1
	fi
	return "$status"
}

groups_of_sessions() {
	find "$ROOT" -type d -name 'carrel-????????????????????' | sort
}

# groups_are_gone: those of this test's sessions.
groups_are_gone() {
	[[ $(groups_of_sessions) == "$BEFORE" ]]
}

reported() {
	carrel run --report "$R" "$@"
}

# report_says FILTER: it is true of the report, which is kept to be validated.
report_says() {
	keep_report "$R"
	jq -e "$1" "$R" >/dev/null || fail "not $1: $(jq -c . "$R")"
}

# in_group GROUP COMMAND...: from a shell that is in the group.
in_group() {
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$@"
}

# leave GROUP: the group and what carrel made in it; nobody is in it any more.
leave() {
	local group

	while IFS= read -r group; do
		wait_for rmdir "$group"
	done < <(find "$1" -depth -type d)
}

# --- each bomb ends with its word -------------------------------------------------------------

@test "a memory bomb is killed as a whole, and the report says why" {
	reported --memory 64M -- ./bomb memory 512
	assert_status 137
	assert_output ''
	report_says '.limit == "memory" and .started == "yes" and .signal.name == "SIGKILL" and
		.error == null and .limits.oom_kills >= 1 and .wall_us > 0 and
		.limits.memory_peak_bytes >= 60000000 and .limits.memory_peak_bytes <= 67108864'
	[[ -z $stderr ]] || fail 'a message'
	reported -- ./bomb memory 200 # what it does without the limit
	assert_status 0
	assert_output survived
}

@test "a memory bomb in the background takes the command with it" {
	reported --memory 64M -- sh -c './bomb memory 512 & sleep 1000'
	assert_status 137
	report_says '.limit == "memory"'
}

@test "memory of a file in /dev/shm is memory" {
	reported --memory 64M -- ./bomb shm 512
	assert_status 137
	report_says '.limit == "memory"'
}

@test "a file on disk is not: its cache is given back" {
	reported --memory 64M -- ./bomb file 200
	assert_status 0
	report_says '.limit == null and .limits.oom_kills == 0'
}

@test "below the limit nothing happens, and the peak is told" {
	reported --memory 64M -- ./bomb memory 20
	assert_status 0
	assert_output survived
	report_says '.limit == null and
		.limits.memory_peak_bytes >= 20971520 and .limits.memory_peak_bytes <= 41943040'
}

@test "a limit that is too small for the session itself: nothing is said to have run that did not" {
	reported --memory 4K -- sh -c ': >ran'
	assert_status 125
	report_says '.error.code == "limit" and .limit == "memory" and .started != "yes"'
	[[ ! -e ran ]]
}

@test "a task bomb gets what it may have, and the report says why it failed" {
	reported --pids 20 -- ./bomb tasks 300
	assert_status 1
	assert_output 19
	report_says '.limit == "pids" and .limits.pids_by == "cgroup" and .limits.tasks_peak == 20 and
		.limits.tasks_refused == 1'
	reported --pids 20 -- ./bomb threads 300
	assert_status 1
	assert_output 19
	report_says '.limit == "pids"'
	reported --pids 20 -- ./bomb count 300
	assert_status 0
	report_says '.limit == null and .limits.tasks_refused == 1'
}

@test "a task bomb that never ends is ended by its time" {
	reported --pids 20 --timeout 2s --grace 1s -- bash -c 'b() { b | b & b; }; b 2>/dev/null'
	[[ $status == 124 ]] || report_says '.limit == "pids"'
	report_says '.limits.tasks_peak >= 10 and .limits.tasks_peak <= 20'
}

@test "cpus holds back, and the figures say how much" {
	reported --cpus 0.2 -- ./bomb spin 3000
	assert_status 0
	report_says '.limit == null and .limits.cpu_us > 0 and .limits.cpu_us < .wall_us / 2 and
		.limits.throttled_periods >= 5 and .limits.throttled_periods <= 1000 and
		.limits.throttled_us >= 100000 and .limits.throttled_us <= 60000000'
}

@test "a file bomb and an output flood end with their words" {
	reported --memory 200M --pids 20 --file-size 1M -- ./bomb file 50
	assert_status 153
	report_says '.limit == "file-size"'
	reported --memory 200M --pids 20 --output-max 4096 -- yes
	report_says '.limit == "output"'
}

@test "all limits at once, and what is asked for only is what is set" {
	local group

	start_and_wait run --memory 100M --pids 30 --cpus 1.5 -- sh -c ': >ready; sleep 1000'
	group=$(comm -13 <(echo "$BEFORE") <(groups_of_sessions))
	for level in "$group" "$group/exec-1"; do
		[[ $(<"$level/memory.max") == $((100 << 20)) ]]
		[[ $(<"$level/pids.max") == 31 ]]
		[[ $(<"$level/cpu.max") == '150000 100000' ]]
		[[ ! -e $level/memory.swap.max || $(<"$level/memory.swap.max") == 0 ]]
	done
	[[ $(<"$group/exec-1/memory.oom.group") == 1 ]]
	grep -q . "$group/exec-1/cgroup.procs"
	[[ -z $(grep "^$LAUNCHER$" "$group/exec-1/cgroup.procs" || true) ]]
	kill "$LAUNCHER"
	finish
	start_and_wait run --cpus 2 -- sh -c ': >ready; sleep 1000'
	group=$(comm -13 <(echo "$BEFORE") <(groups_of_sessions))
	[[ $(<"$group/exec-1/cpu.max") == '200000 100000' ]]
	[[ ! -e $group/exec-1/memory.max || $(<"$group/exec-1/memory.max") == max ]]
	kill "$LAUNCHER"
	finish
}

# --- others -----------------------------------------------------------------------------------

@test "another session is not harmed by a bomb" {
	start_and_wait run --memory 64M --pids 20 -- sh -c "$(waits ready); ./bomb memory 20"
	reported --memory 64M -- ./bomb memory 512
	assert_status 137
	reported --pids 20 -- ./bomb tasks 300
	assert_status 1
	tell ready
	finish
	assert_status 0
	assert_output survived
}

@test "a limit that somebody else set is not called ours" {
	local outer=$PLACE/limits-outer.$$

	mkdir "$outer"
	echo '+memory +pids' >"$outer/cgroup.subtree_control"
	echo $((48 << 20)) >"$outer/memory.max"
	mkdir "$outer/shell"
	run --separate-stderr in_group "$outer/shell" "$CARREL" run --memory 1G --report "$R" -- \
		./bomb memory 512
	leave "$outer"
	assert_status 137
	report_says '.limit == null and .started == "yes" and .limits.oom_kills >= 1'
}

# --- who may do what --------------------------------------------------------------------------

@test "what is inside cannot change its limits, nor leave its group" {
	local path

	cat >attack <<-'ATTACK'
		for file in $(find /sys/fs/cgroup -path '*carrel-*' \( -name memory.max -o -name pids.max \)); do
			echo max >"$file" && echo "wrote $file"
		done
		for file in $(find /sys/fs/cgroup -name cgroup.procs); do
			echo $$ >"$file" && echo "entered $file"
		done
		mkdir "$(dirname "$(find /sys/fs/cgroup -path '*carrel-*/exec-1/cgroup.procs')")/new" && echo made
		echo over
	ATTACK
	reported --memory 100M --pids 30 -- sh -c '. ./attack 2>/dev/null'
	assert_output over
	# The same, from outside: the files are the caller's.
	start_and_wait run --memory 100M -- sh -c ': >ready; sleep 1000'
	path=$(comm -13 <(echo "$BEFORE") <(groups_of_sessions))
	echo max >"$path/exec-1/memory.max"
	kill "$LAUNCHER"
	finish
}

@test "where nothing is delegated it is an error, with the command that would help" {
	need_root
	local foreign=$ROOT/limits-foreign.$$ base

	mkdir "$foreign"
	base=$(mktemp -d /var/tmp/limits.XXXXXX)
	chmod 0755 "$base"
	mkdir -m 1777 "$base/tmp" "$base/ws"
	cd "$base/ws"
	for option in '--memory 100M' '--cpus 1' '--memory 100M --pids 20' '--degraded --memory 100M'; do
		# shellcheck disable=SC2086 # several words
		run --separate-stderr in_group "$foreign" setpriv --reuid=65534 --regid=65534 \
			--clear-groups env TMPDIR="$base/tmp" HOME=/nonexistent "$CARREL" run $option -- true
		assert_status 125
		assert_matches "$stderr" 'cannot be limited: no cgroup is delegated to this user'
		assert_matches "$stderr" 'carrel: hint: .*`'
	done
	cp "$CARREL_HELPERS/bomb" .
	run --separate-stderr in_group "$foreign" setpriv --reuid=65534 --regid=65534 \
		--clear-groups env TMPDIR="$base/tmp" HOME=/nonexistent "$CARREL" run --pids 20 -- ./bomb tasks 100
	assert_status 1
	assert_output 19
	cd /
	rm -rf "$base"
	leave "$foreign"
}

@test "a group that was delegated with its processes: they make room" {
	local own=$PLACE/limits-own.$$

	mkdir "$own"
	/usr/bin/python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.delegate", b"1")' "$own" ||
		skip 'no user xattrs on cgroups'
	cat >script <<-'SCRIPT'
		sleep 1000 &
		"$CARREL" run --memory 64M --report "$1" -- ./bomb memory 512
		echo $?
		sed -n 's/^0:://p' /proc/self/cgroup
		"$CARREL" run --memory 64M -- ./bomb memory 20
		echo $?
		"$CARREL" run --cpus 1 --pids 9 -- ./bomb tasks 100
		echo $?
		kill %1
	SCRIPT
	run in_group "$own" bash ./script "$R"
	leave "$own"
	assert_status 0
	assert_matches "$output" $'137\n[^\n]*/carrel.callers\nsurvived\n0\n8\n1'
	report_says '.limit == "memory"'
}

# --- live sessions ----------------------------------------------------------------------------

@test "a live session: its executions share the limits, and one that dies of them dies alone" {
	export XDG_RUNTIME_DIR=$T/run
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	apart "$CARREL" session start --memory 64M --pids 20 --json
	assert_status 0
	local id
	id=$(jq -r .session <<<"$output")
	"$CARREL" exec -s "$id" -- sh -c "$(waits ready)" 3>&- &
	wait_for test -e ready
	carrel exec -s "$id" -- ./bomb memory 512
	assert_status 137
	carrel exec -s "$id" -- ./bomb tasks 100
	assert_status 1
	((output >= 8 && output < 20)) || fail "it got $output"
	carrel exec -s "$id" -- ./bomb memory 10
	assert_status 0
	assert_output survived
	tell ready
	wait "$!"
	[[ $(groups_of_sessions) != "$BEFORE" ]]
	carrel session end "$id"
	assert_status 0
	[[ $(groups_of_sessions) == "$BEFORE" ]]
}

# Neither is over a limit of its own: both have the session's. The kernel chooses one of them, and now and then the
# other as well, before it has counted what the first gave back.
@test "two executions that fill a live session's memory together: they die of it, and nobody else" {
	export XDG_RUNTIME_DIR=$T/run
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	start_and_wait run --memory 64M -- sh -c "$(waits ready); ./bomb memory 20"
	apart "$CARREL" session start --memory 64M --pids 20 --json
	assert_status 0
	local id status_of_first=0 status_of_third=0 died=0 which
	id=$(jq -r .session <<<"$output")
	"$CARREL" exec -s "$id" --report "$T/first" -- ./bomb hold 40 >/dev/null 3>&- &
	local first=$!
	wait_for test -e held
	"$CARREL" exec -s "$id" --report "$T/third" -- sh -c "$(waits third)" 3>&- &
	local third=$!
	wait_for test -e third
	carrel exec -s "$id" --report "$T/second" -- ./bomb memory 40
	local status_of_second=$status
	tell ready
	tell third
	wait "$first" || status_of_first=$?
	wait "$third" || status_of_third=$?
	for which in first second; do
		local -n ended=status_of_$which
		keep_report "$T/$which"
		if ((ended == 137)); then
			died=$((died + 1))
			jq -e '.limit == "memory" and .started == "yes" and .limits.oom_kills >= 1' "$T/$which"
		else
			((ended == 0)) || fail "$which: $ended"
			jq -e '.limit == null and .limits.oom_kills == 0' "$T/$which"
		fi
	done
	((died > 0)) || fail 'none of the two died'
	((status_of_third == 0)) || fail 'one that had no part in it died'
	jq -e '.limit == null' "$T/third"
	carrel exec -s "$id" -- ./bomb memory 10
	assert_output survived
	carrel session end "$id"
	assert_status 0
	finish
	assert_status 0
	assert_output survived
}

# --- the end ----------------------------------------------------------------------------------

@test "a killed launcher's groups go with the next run's sweep, or with gc" {
	for how in run gc; do
		start_and_wait run --memory 100M --pids 30 -- sh -c 'sleep 1000 & : >ready; sleep 1000'
		[[ $(groups_of_sessions) != "$BEFORE" ]]
		kill -KILL "$LAUNCHER"
		wait "$LAUNCHER" || true
		if [[ $how == run ]]; then
			carrel run -- true
		else
			carrel gc
		fi
		assert_status 0
		# No run waits for the sweep that it starts; gc is one.
		[[ $how == gc ]] || wait_for groups_are_gone
		groups_are_gone || fail "left: $(groups_of_sessions)"
		await_nothing_left
	done
}

@test "gc leaves the groups of the living alone" {
	start_and_wait run --memory 100M -- sh -c "$(waits ready); echo well"
	carrel gc
	assert_status 0
	[[ $(groups_of_sessions) != "$BEFORE" ]]
	tell ready
	finish
	assert_status 0
	assert_output well
}

@test "twenty limited sessions at once" {
	local i
	local -a pids=()

	for ((i = 0; i < 20; i++)); do
		"$CARREL" run --memory 100M --pids 20 --cpus 1 -- ./bomb tasks 100 >"out.$i" 2>"err.$i" 3>&- &
		pids+=("$!")
	done
	for ((i = 0; i < 20; i++)); do
		status=0
		wait "${pids[i]}" || status=$?
		[[ $status == 1 && $(<"out.$i") == 19 ]] || fail "$i: $status: $(<"err.$i")"
	done
}
