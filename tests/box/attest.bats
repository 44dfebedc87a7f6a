# carrel attest: real sessions are as planned; sessions that are not, because a launcher in between
# changes them, are found out. The second kind is the control of the first.
load ../lib/common

inspect() {
	echo "$(dirname "$CARREL")/../libexec/carrel/carrel-inspect"
}

# changed_launcher SETTING...: makes $INSPECT, a carrel-inspect that knows no other launcher
# than one that adds these settings without telling.
changed_launcher() {
	mkdir "$T/bin"
	cp "$(inspect)" "$T/bin/carrel-inspect"
	{
		echo '#!/bin/bash'
		printf 'exec %q "$1"' "$CARREL"
		printf ' %q' "$@"
		# shellcheck disable=SC2016 # the script's own
		echo ' "${@:2}"'
	} >"$T/bin/carrel"
	chmod 755 "$T/bin/carrel"
	INSPECT=$T/bin/carrel-inspect
}

# found CHECK ON [TEXT]: the attested session fails in exactly that.
found() {
	assert_status 1
	jq -e --arg check "$1" --arg on "$2" --arg text "${3-}" \
		'[.checks[] | select(.verdict == "FAIL" and .check == $check and .on == $on
			and (.text | contains($text)))] | length > 0' <<<"$output" >/dev/null ||
		fail "no failure of $1 at $2: ${3-}"
}

@test "a session is as planned" {
	carrel attest
	assert_status 0
	refute_matches "$output" 'FAIL|warn'
	assert_matches "$output" "ok +mount $WS: "
	assert_matches "$output" 'ok +mount /proc: proc, rw nosuid nodev noexec'
	assert_matches "$output" 'ok +capabilities payload: CapBnd is empty'
	assert_matches "$output" 'ok +syscalls payload: Seccomp_filters is '
	assert_matches "$output" 'ok +descriptors payload: 0, 1 and 2 only'
	assert_matches "$output" 'ok +user-namespace: exactly one below ours'
	assert_nothing_left
}

@test "settings change the plan, and the session with it" {
	mkdir "$T/other" "$WS/sub"
	local -a settings
	local line

	while IFS= read -r line; do
		read -ra settings <<<"$line"
		carrel attest "${settings[@]}"
		assert_status 0 || fail "$line"
		assert_nothing_left
	done <<-END
		--workspace-mode ro
		--scratch-size 10M
		--net host
		--nested
		--profile strict
		--profile ci
		--cpu-time 10 --open-files 100 --file-size 1G
		--tty yes
		--write $T/other
		--hide $T/other
		--protect sub
		--bind $T/other:/opt
		--bind $T/other:/opt:rw
		--tmpfs /opt:1M
		--env A=1 --scratch-env SCRATCH
	END
}

@test "what is asked for is in the plan: the same mount, once allowed and once not" {
	mkdir "$T/other"
	carrel attest --write "$T/other"
	assert_status 0
	assert_matches "$output" "ok +mount $T/other: [a-z0-9]+, rw "
	changed_launcher --write "$T/other"
	run --separate-stderr "$INSPECT" attest --json
	found mount "$T/other"
}

@test "control: a launcher in between that changes nothing" {
	changed_launcher --quiet
	run --separate-stderr "$INSPECT" attest --json
	assert_status 0
	[[ $(jq -r .worst <<<"$output") != FAIL ]]
}

@test "found: the network is the host's" {
	changed_launcher --net host
	run --separate-stderr "$INSPECT" attest --json
	found namespaces net "the caller's"
}

@test "found: user namespaces can be made inside" {
	changed_launcher --nested
	run --separate-stderr "$INSPECT" attest --json
	assert_status 1
	jq -e '.checks[] | select(.check == "nested-namespaces" and .verdict == "FAIL")' <<<"$output"
}

# forgetful_launcher: drops the first setting and its value, which the plan has.
forgetful_launcher() {
	changed_launcher
	# shellcheck disable=SC2016 # the script's own
	printf '#!/bin/bash\nexec %q "$1" "${@:4}"\n' "$CARREL" >"$T/bin/carrel"
}

@test "found: something hidden that was not asked for" {
	mkdir "$WS/sub"
	changed_launcher --hide "$WS/sub"
	run --separate-stderr "$INSPECT" attest --json
	found mount "$WS/sub"
}

@test "found: what was asked for is not there" {
	mkdir "$WS/sub"
	forgetful_launcher
	run --separate-stderr "$INSPECT" attest --hide "$WS/sub" --json
	found mount "$WS/sub" 'nothing is mounted here'
	run --separate-stderr "$INSPECT" attest --workspace-mode ro --json
	found mount "$WS" 'lacks ro'
	run --separate-stderr "$INSPECT" attest --net host --json
	found namespaces net "not the caller's"
	run --separate-stderr "$INSPECT" attest --env A=1 --json
	found environment payload 'were planned'
	run --separate-stderr "$INSPECT" attest --open-files 33 --json
	found limits open-files 'not 33'
}

@test "found: a variable too many, another filter" {
	changed_launcher --env INTRUDER=1
	run --separate-stderr "$INSPECT" attest --json
	found environment INTRUDER=1
	is_root || return 0 # the kernel shows filters to root only
	rm -r "${T:?}/bin"
	changed_launcher --syscalls strict
	run --separate-stderr "$INSPECT" attest --json
	found syscalls payload "not the plan's"
}

@test "found: no session at all" {
	mkdir "$T/bin"
	cp "$(inspect)" "$T/bin/carrel-inspect"
	# shellcheck disable=SC2016 # the script's own
	printf '#!/bin/bash\nexec "${@: -1}"\n' >"$T/bin/carrel"
	chmod 755 "$T/bin/carrel"
	run --separate-stderr "$T/bin/carrel-inspect" attest
	assert_status 125
	assert_matches "$stderr" 'no session is found'
}

@test "a command of one's own, while it runs" {
	carrel attest -- sh -c 'exec 9</etc/passwd; sleep 1000 & wait'
	assert_status 0
	assert_matches "$output" 'ok +descriptors payload: 0, 1, 2 and what the command itself opened'
	assert_nothing_left
}

@test "a command that is over at once, or is none" {
	carrel attest -- true
	until ((status != 0)); do # a machine with other work may leave time to look at it
		carrel attest -- true
	done
	assert_status 125
	assert_matches "$stderr" 'ended \(status [0-9]+\) before it could be examined'
	carrel attest -- nonesuch-command
	assert_status 125
	assert_matches "$stderr" 'nonesuch-command'
	carrel attest --nonesuch
	assert_refused nonesuch
	assert_nothing_left
}

@test "json says what the lines say" {
	carrel attest --json
	assert_status 0
	jq -e '.format == 1 and (.checks | length > 40) and
		([.checks[] | keys == ["check","on","remedy","text","verdict"]] | all)' <<<"$output"
}

@test "kept sessions are attested too" {
	carrel attest --keep
	assert_status 0
	assert_matches "$output" 'ok +end .*kept, as planned'
	rm -rf "$BASE"/carrel-*
}

no_process_left() {
	[[ -z $(marked) ]]
}

@test "killed while it looks, nothing is left" {
	local delay pid
	# From before it has a child on: one that learns too late whose child it is would stay.
	for delay in 0 0 0.001 0.002 0.003 0.004 0.006 0.008 0.01 0.015 0.02 0.03 0.05; do
		"$CARREL" attest -- sleep 1000 >/dev/null 2>&1 &
		pid=$!
		sleep "$delay"
		kill -KILL "$pid" 2>/dev/null || true # what looks for a moment only may have ended
		wait "$pid" || true
	done
	# the directory of a killed launcher is the next run's to remove, its processes are gone
	wait_for no_process_left
	rm -rf "$BASE"/carrel-* "$BASE"/.carrel-*
}
