#!/usr/bin/env bats
# memory, pids and cpus on any machine: carrel holds what it can hold, and refuses the rest before the command runs.
# tests/vm/limits.bats has what needs controllers of cgroup v2.
# ctest: cost=30
load ../lib/common
load ../lib/session

setup() {
	common_setup
	R=$T/report.json
	cp "$CARREL_HELPERS/bomb" "$WS/bomb"
}

reported() {
	carrel run --report "$R" "$@"
	keep_report "$R"
}

@test "pids: a bomb gets as many tasks as it may have, and the report says so" {
	for n in 1 2 10 50; do
		reported --pids "$n" -- ./bomb tasks 200
		assert_status 1
		assert_output $((n - 1)) # the bomb is one itself
		assert_field "$R" .limit pids
		assert_field "$R" .status 1
		assert_matches "$(field "$R" .limits.pids_by)" '^(cgroup|rlimit)$'
	done
	reported -- ./bomb tasks 200 # what it does without the limit
	assert_status 0
	assert_output 200
	jq -e '.limit == null and .limits == null' "$R" >/dev/null
}

@test "pids: threads are counted as well" {
	reported --pids 10 -- ./bomb threads 200
	assert_status 1
	assert_output 9
	# Its threads end with it: only a cgroup has noted that one was refused.
	[[ $(field "$R" .limits.pids_by) == rlimit ]] || assert_field "$R" .limit pids
	reported -- ./bomb threads 200
	assert_status 0
}

@test "pids: a command that stays below its limit, or succeeds at it, was not ended by it" {
	reported --pids 10 -- ./bomb tasks 9
	assert_status 0
	jq -e '.limit == null' "$R" >/dev/null
	reported --pids 10 -- ./bomb count 100
	assert_status 0
	assert_output 9
	jq -e '.limit == null' "$R" >/dev/null
	reported --pids 1 -- true
	assert_status 0
	reported --pids 10 -- sh -c 'exit 3'
	assert_status 3
	jq -e '.limit == null' "$R" >/dev/null
}

@test "pids: what else the caller runs is not counted" {
	local i
	local -a others=()

	for ((i = 0; i < 40; i++)); do
		sleep 1000 3>&- &
		others+=("$!")
	done
	reported --pids 10 -- ./bomb tasks 9
	kill "${others[@]}"
	wait "${others[@]}" || true
	assert_status 0
	assert_output 9
}

@test "pids: two sessions at once have their limits each" {
	start_and_wait run --pids 20 -- sh -c './bomb tasks 100 >full; >ready; sleep 1000'
	[[ $(<full) == 18 ]] || fail "the first got $(<full)"
	reported --pids 20 -- ./bomb tasks 100
	assert_output 19
	kill "$LAUNCHER"
	finish
}

@test "pids: no way around by a further user namespace" {
	need unshare
	unshare -U true 2>/dev/null || skip 'no user namespaces for this caller'
	reported --nested --pids 10 -- unshare -U ./bomb tasks 100
	assert_status 1
	((output <= 9)) || fail "it got $output"
}

@test "without any limits: no more tasks than an honest build has, and /dev/shm a tenth of the memory" {
	(($(ulimit -u) > 20001)) || skip "the machine's own limit of tasks is lower: $(ulimit -u)"
	carrel run -- bash -c 'ulimit -Su; ulimit -Hu; ulimit -u 16385 && echo raised'
	assert_output $'16384\n16384'
	carrel run --pids 20000 -- bash -c 'ulimit -u' # one is init's
	assert_output 20001
	(ulimit -u 9999 && "$CARREL" run -- bash -c 'ulimit -u') >"$T/own"
	[[ $(<"$T/own") == 9999 ]] || fail "$(<"$T/own")"
	local memory shm

	memory=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
	carrel run -- df -k --output=size /dev/shm
	shm=${lines[-1]// /}
	((shm > memory / 11 && shm < memory / 9)) || fail "$shm of $memory"
	carrel run -- bash -c 'for i in {1..65536}; do : >/dev/shm/$i || exit; done; echo all'
	refute_matches "$output" all
	# With more, the same works.
	carrel run --tmpfs /dev/shm:1G -- bash -c 'for i in {1..65536}; do : >/dev/shm/$i || exit; done; echo all'
	assert_output all
}

@test "pids: the caller's other limits stay where they are" {
	local before after

	before=$(ulimit -u)
	carrel run --pids 10 -- true
	after=$(ulimit -u)
	[[ $before == "$after" ]]
}

@test "memory and cpus: held, or refused before anything ran with a command that helps" {
	local option

	for option in '--memory 200M' '--cpus 0.5'; do
		# shellcheck disable=SC2086 # two words
		reported $option -- sh -c ': >ran'
		if ((status == 0)); then
			[[ -e ran ]]
			rm ran
			jq -e '.limits.cpu_us != null' "$R" >/dev/null
			continue
		fi
		assert_refused 'cannot be limited'
		assert_matches "$stderr" 'carrel: hint: .*`'
		assert_field "$R" .error.code unavailable
		assert_field "$R" .started no
		[[ ! -e ran ]]
		# shellcheck disable=SC2086
		carrel run --degraded $option -- true
		assert_refused 'cannot be limited'
	done
}

@test "memory: where no cgroup can be seen it is refused, also with degraded" {
	need_root
	need unshare umount
	for mount in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts | tac) /sys/fs/cgroup; do
		printf 'umount %q 2>/dev/null || true\n' "$mount"
	done >hide
	run --separate-stderr unshare -m sh -c ". ./hide; exec \"$CARREL\" run --memory 100M -- touch ran"
	assert_refused 'memory cannot be limited: no cgroup v2 is mounted here'
	run --separate-stderr unshare -m sh -c \
		". ./hide; exec \"$CARREL\" run --degraded --cpus 1 -- touch ran"
	assert_refused 'cpu cannot be limited: no cgroup v2 is mounted here'
	[[ ! -e ran ]]
	# pids has another means
	run --separate-stderr unshare -m sh -c \
		". ./hide; exec \"$CARREL\" run --pids 10 -- ./bomb tasks 100"
	assert_status 1
	assert_output 9
}

@test "a run without limits looks at no cgroup" {
	need strace
	strace -f -o trace "$CARREL" run -- true 2>/dev/null || skip 'ptrace is refused on this machine'
	if grep -E 'cgroup' trace | grep -v 'clone3\|unshare\|exit'; then
		fail 'it did'
	fi
}

@test "bad limits are refused by name" {
	for pair in '--memory 0' '--memory lots' '--memory -1' '--pids 0' '--pids 2.5' '--cpus 0' \
		'--cpus 0.001' '--cpus -1' '--cpus 1.2345'; do
		# shellcheck disable=SC2086 # two words
		carrel run $pair -- true
		assert_refused "${pair%% *}"
	done
}

@test "limits are shown by plan and policy, and read back" {
	apart "$CARREL" policy show --memory 1536M --pids 64 --cpus 1.25
	assert_status 0
	assert_matches "$output" $'(^|\n)memory 1536M '
	assert_matches "$output" $'(^|\n)pids 64 '
	assert_matches "$output" $'(^|\n)cpus 1.25 '
	apart "$CARREL" policy show --json --cpus 1.25
	[[ $(jq '.rules[] | select(.setting == "cpus") | .thousandths' <<<"$output") == 1250 ]]
	apart "$CARREL" plan --pids 64 -- true
	assert_matches "$output" 'pids 65'
}
