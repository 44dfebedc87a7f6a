#!/usr/bin/env bats
# The report is valid for every outcome, written whole or not at all, and true.
# ctest: once
load ../lib/common
load ../lib/session

setup() {
	common_setup
	R=$T/report.json
}

reported() {
	carrel run --report "$R" "$@"
	keep_report "$R"
}

@test "a good run: everything is known" {
	reported --timeout 60s -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.1'
	assert_status 0
	assert_field "$R" .started yes
	assert_field "$R" .policy.profile agent
	assert_field "$R" .workspace.path "$WS"
	assert_field "$R" .workspace.mode direct
	assert_field "$R" .teardown.result removed
	(($(field "$R" .wall_us) >= 100000))
	(($(field "$R" .user_us) > 0))
	(($(field "$R" .max_rss_bytes) > 100000))
	jq -e '.error == null and .signal == null and .limit == null and .quarantined == []' "$R"
	[[ $(field "$R" .scratch.path) == "$BASE/carrel-$(field "$R" .session)/scratch" ]]
}

@test "the walls that must stand everywhere are on" {
	reported -- true
	for wall in user-namespace mount-namespace pid-namespace ipc-namespace uts-namespace net-namespace \
		mounts syscalls capabilities no-new-privs nested-namespaces supervisor; do
		assert_field "$R" ".walls[\"$wall\"].state" on
	done
	if is_root; then
		assert_field "$R" .identity.mode privileged
		(($(field "$R" .identity.kernel_uid) != 0))
	else
		assert_field "$R" .identity.mode user
		assert_field "$R" .identity.kernel_uid "$EUID"
	fi
}

@test "walls that the policy takes away are off, and the report says so" {
	reported --net host --nested -- true
	assert_field "$R" '.walls["net-namespace"].state' off
	assert_field "$R" '.walls["nested-namespaces"].state' off
	[[ -n $(field "$R" '.walls["net-namespace"].why') ]]
}

@test "every kind of failure before the start is a valid report with its code" {
	check() {
		local code=$1 want=$2

		shift 2
		rm -f "$R"
		run "-$want" --separate-stderr "$CARREL" run --report "$R" "$@"
		assert_valid_report --strict "$R"
		assert_field "$R" .started no
		assert_field "$R" .error.code "$code"
		assert_field "$R" .exit_status "$want"
		jq -e '.status == null and .wall_us == null and .max_rss_bytes == null' "$R"
	}
	check workspace 125 --workspace /no/such -- true
	check path 125 --read /no/such -- true
	check scratch 125 --scratch-base /no/such -- true
	check exec 127 -- /no/such
	check exec 126 -- /etc
	check usage 125 --
	apart "$CARREL" run --report "$R" -- true <"$T"
	assert_status 125
	keep_report "$R"
	assert_field "$R" .error.code descriptor
}

@test "time-out, signal, limit, keep and quarantine are valid reports" {
	reported --timeout 200ms -- sleep 1000
	assert_field "$R" .timed_out true
	reported -- sh -c 'kill -9 $$'
	assert_field "$R" .signal.name SIGKILL
	reported --keep -- sh -c 'echo x >$CARREL_SCRATCH/x'
	assert_field "$R" .scratch.kept true
	assert_field "$R" .teardown.result kept
	rm -rf "$BASE"/carrel-*
	reported -- sh -c 'mkdir code && echo x >code/tasks.json && mv code .vscode'
	assert_status 0
	assert_field "$R" '.quarantined | length' 1
	assert_field "$R" '.quarantined[0].path' "$WS/.vscode"
	[[ ! -e $WS/.vscode && -e $(field "$R" '.quarantined[0].to')/tasks.json ]]
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "fd:N, /dev/fd/N and a pipe" {
	"$CARREL" run --report fd:5 -- sh -c 'ls /proc/self/fd | tr "\n" " "' 5>"$R" >"$T/out"
	keep_report "$R"
	[[ $(<"$T/out") == '0 1 2 3 ' ]] || fail 'the command got the descriptor'
	"$CARREL" run --report /dev/fd/6 -- true 6>"$R"
	keep_report "$R"
	"$CARREL" run --report fd:7 -- true 7>&1 >/dev/null | cat >"$R"
	keep_report "$R"
	mkfifo "$T/fifo"
	# Nobody reads it: refused at once, and with the hint's words it waits in the shell.
	carrel run --report "$T/fifo" -- touch "$WS/ran"
	assert_refused 'no process reads the FIFO that `report` names'
	[[ ! -e $WS/ran ]]
	cat "$T/fifo" >"$R" 3>&- &
	carrel run --report fd:8 -- true 8>"$T/fifo"
	wait $!
	keep_report "$R"
	exec 8<>"$T/fifo" # a reader, before there is another
	cat "$T/fifo" >"$R" 3>&- 8>&- &
	carrel run --report "$T/fifo" -- true 8>&-
	exec 8>&-
	wait $!
	keep_report "$R"
}

@test "descriptors that cannot be a report: nothing runs" {
	for target in fd:0 fd:1 fd:77 fd: fd:x fd:-1 fd:99999999999 /dev/stdout; do
		carrel run --report "$target" -- touch "$WS/ran"
		assert_refused
		[[ ! -e $WS/ran ]]
	done
	run --separate-stderr bash -c '"$CARREL" run --report fd:5 -- touch ran 5</etc/hostname'
	assert_refused
	[[ ! -e $WS/ran ]]
}

@test "a report that cannot be opened: nothing runs" {
	ln -s "$T/elsewhere" "$T/link"
	for target in "$T/no/such/dir/r.json" "$T" "$T/link" '' /proc/nothing/r.json; do
		carrel run --report "$target" -- touch "$WS/ran"
		assert_refused
		[[ ! -e $WS/ran && ! -e $T/elsewhere ]]
	done
	if ! is_root; then
		carrel run --report /etc/carrel-report.json -- touch "$WS/ran"
		assert_refused
	fi
}

@test "a report that cannot be written is 125, the command's own status notwithstanding" {
	run --separate-stderr bash -c '"$CARREL" run --report /dev/full -- true'
	assert_status 125
	assert_matches "$stderr" '^carrel: '
	run --separate-stderr bash -c '"$CARREL" run --report /dev/full -- sh -c "exit 3"'
	assert_status 125
	run --separate-stderr bash -c 'exec 9> >(:); wait $!; "$CARREL" run --report fd:9 -- true'
	assert_status 125 # nobody reads it: EPIPE, and no SIGPIPE
}

@test "an existing report is replaced whole, and only at the end" {
	echo old >"$R"
	start_and_wait run --report "$R" -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'
	[[ $(<"$R") == old ]]
	touch "$WS/go"
	finish
	keep_report "$R"
	(($(find "$T" -maxdepth 1 -name '.carrel*' | wc -l) == 0))
	echo old >"$R"
	start_and_wait run --report "$R" -- sh -c 'touch ready; sleep 1000'
	signal KILL
	finish
	[[ $(<"$R") == old ]]
	await_processes() { [[ -z $(marked) ]]; }
	wait_for await_processes
	"$CARREL" gc
}

@test "bytes that are no UTF-8 survive the round trip" {
	mkdir "$WS"/$'odd\xff\xfe dir'
	args=($'\xff\x80' $'a\xc3(' $'\xed\xa0\x80' 'plain ä "quoted" \back' $'new\nline\ttab\x01' $'\xf4\x90\x80\x80' '')
	(cd "$WS"/$'odd\xff\xfe dir' && "$CARREL" run --report "$R" -- printf '%s' "${args[@]}" >"$T/out")
	printf '%s\0' printf %s "${args[@]}" >"$T/argv"
	assert_valid_report --command "$T/argv" "$R"
	printf '%s' "${args[@]}" | cmp - "$T/out"
	python3 - "$R" "$WS" <<-'END'
		import json, os, sys
		r = json.load(open(sys.argv[1]))
		assert r["workspace"]["path"].encode("utf-8", "surrogateescape") == os.fsencode(sys.argv[2]) + b"/odd\xff\xfe dir"
	END
}

@test "the policy digest is the same for the same policy, and another for another" {
	reported -- true
	one=$(field "$R" .policy.digest)
	reported -- sh -c 'exit 3'
	two=$(field "$R" .policy.digest)
	reported --net host -- true
	three=$(field "$R" .policy.digest)
	assert_matches "$one" '^sha256:[0-9a-f]{64}$'
	[[ $one == "$two" ]] || fail "it differs: $one $two"
	[[ $one != "$three" ]]
}

@test "how the standard streams were passed is told" {
	echo in >"$T/in"
	"$CARREL" run --report "$R" -- cat <"$T/in" >"$T/out" 2>/dev/null
	assert_field "$R" .stdio.stdin relay
	assert_field "$R" .stdio.stdout relay
	assert_field "$R" .stdio.stderr direct
	[[ $(<"$T/out") == in ]]
	echo in | "$CARREL" run --report "$R" -- cat 2>&1 | cat >"$T/out"
	assert_field "$R" .stdio.stdin direct
	"$CARREL" run --report "$R" -- true <&-
	assert_field "$R" .stdio.stdin closed
}
