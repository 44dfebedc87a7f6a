#!/usr/bin/env bats
# Signals sent to the launcher, time-outs, and the death of the launcher itself.
load ../lib/common
load ../lib/live
load ../lib/session

setup() {
	live_setup # gc tells of every dead session that the state directory names
	R=$T/report.json
}

# heard NAME...: a command that writes each of these signals that it gets to ./heard, and ends with 7 on USR2.
HEARD='for s in TERM INT HUP QUIT USR1 WINCH TSTP CONT; do trap "echo $s >>heard" $s; done
trap "exit 7" USR2
touch ready
while :; do sleep 0.05; done'

@test "TERM INT HUP QUIT reach the command, which may clean up and choose its status" {
	for s in TERM INT HUP QUIT; do
		start_and_wait run -- sh -c 'trap "echo cleaned; exit 9" '$s'; touch ready; while :; do sleep 0.05; done'
		signal "$s"
		finish
		assert_status 9
		assert_output cleaned
		assert_nothing_left
	done
}

@test "TERM INT HUP QUIT end a command that does not catch them: 128+N" {
	for pair in 15:TERM 2:INT 1:HUP 3:QUIT; do
		start_and_wait run -- sh -c 'touch ready; exec sleep 1000'
		signal "${pair#*:}"
		finish
		assert_status $((128 + ${pair%:*}))
		assert_nothing_left
	done
}

@test "USR1 WINCH and CONT are passed on and nothing else happens; USR2 too" {
	start_and_wait run -- sh -c "$HEARD"
	for s in USR1 WINCH CONT; do
		signal "$s"
		wait_for grep -qx "$s" "$WS/heard"
	done
	signal USR2
	finish
	assert_status 7
	[[ $(sort "$WS/heard") == $'CONT\nUSR1\nWINCH' ]] || fail "$(<"$WS/heard")"
}

@test "TSTP stops the command and the launcher, CONT continues both" {
	# Without `exec` the shell would wait for its child, which the signal does not reach.
	start_and_wait run -- python3 -c '
import time
n = 0
while True:
    n += 1
    open("beat", "w").write(str(n))
    if n == 1: open("ready", "w").close()
    time.sleep(0.02)'
	signal TSTP
	stopped() { [[ $(cut -d ' ' -f 3 "/proc/$LAUNCHER/stat") == T ]]; }
	wait_for stopped
	still() {
		local a

		a=$(<"$WS/beat")
		sleep 0.3
		[[ $a == "$(<"$WS/beat")" ]]
	}
	wait_for still
	signal CONT
	moving() { ! still; }
	wait_for moving
	signal TERM
	finish
	assert_status 143
}

@test "a second TERM or INT kills at once what ignores the first" {
	for s in TERM INT; do
		start_and_wait run --grace 1000s -- sh -c 'trap "echo >>heard" TERM INT; touch ready; while :; do sleep 0.05; done'
		rm -f "$WS/heard"
		signal "$s"
		wait_for test -e "$WS/heard"
		signal "$s"
		ends_soon finish
		assert_status 137
		assert_nothing_left
	done
}

@test "the grace after the first TERM is kept, then everything is killed" {
	start_and_wait run --report "$R" --grace 1s -- sh -c 'trap "" TERM; touch ready; sleep 1000 & while :; do sleep 0.05; done'
	signal TERM
	ends_soon finish
	assert_status 137
	keep_report "$R"
	assert_field "$R" .signal.name SIGKILL
	assert_field "$R" .timed_out false
	assert_nothing_left
}

@test "a stopped command is continued so that it can end" {
	start_and_wait run -- sh -c 'touch ready; kill -STOP $$; sleep 1000'
	signal TERM
	ends_soon finish
	assert_status 143
}

@test "a time-out sends TERM to the whole tree, then KILL" {
	both_are_told() {
		: >"$WS/told"
		ends_soon carrel run --report "$R" --timeout "$TIME" --grace "$TIME" -- sh -c '
			(trap "echo child >>told" TERM; while :; do sleep 0.05; done) &
			(trap "" TERM; setsid sleep 1000) &
			trap "echo parent >>told" TERM; while :; do sleep 0.05; done'
		[[ $(sort -u "$WS/told") == $'child\nparent' ]]
	}
	given_time both_are_told
	assert_status 124
	keep_report "$R"
	assert_field "$R" .limit timeout
	assert_field "$R" .signal.name SIGKILL
	assert_nothing_left
}

@test "TERM and INT before the command has started leave nothing" {
	# Wherever it lands: 125 or 128+N, the command run or not, and nothing is left.
	for n in 0 1 2 3 4 5 6 7 8 9; do
		start run -- sleep 1000
		sleep "0.00$n"
		kill -s TERM "$LAUNCHER"
		ends_soon finish
		[[ $status == 143 || $status == 125 ]] || fail "after $n ms"
		await_nothing_left
	done
}

@test "kill -9 of the launcher ends every process of the session" {
	start_and_wait run -- sh -c 'setsid sleep 1000 & sleep 1000 & (trap "" TERM HUP; touch ready; sleep 1000)'
	signal KILL
	finish
	assert_status 137
	gone() { [[ -z $(marked) ]]; }
	wait_for gone
	[[ -d $(session_dir) ]] # nobody was there to remove it
	carrel gc
	assert_status 0
	assert_matches "$output" '^removed carrel-'
	assert_nothing_left
}

@test "after kill -9 the next run removes the directory" {
	start_and_wait run -- sh -c 'mkdir -p $CARREL_SCRATCH/a/b; chmod 0 $CARREL_SCRATCH/a; touch ready; sleep 1000'
	signal KILL
	finish
	gone() { [[ -z $(marked) ]]; }
	wait_for gone
	carrel run -- true
	assert_status 0
	await_nothing_left # the sweep that it began
}

@test "a live session's directory is never touched by gc or by another run" {
	start_and_wait run -- sh -c 'echo here >$CARREL_SCRATCH/file; touch ready; while [ ! -e go ]; do sleep 0.02; done; cat $CARREL_SCRATCH/file'
	carrel gc
	assert_status 0
	assert_output ''
	carrel run -- true
	[[ -d $(session_dir) ]]
	touch "$WS/go"
	finish
	assert_status 0
	assert_output here
}

@test "gc --dry-run says what it would remove and leaves it" {
	start_and_wait run -- sh -c 'touch ready; sleep 1000'
	signal KILL
	finish
	gone() { [[ -z $(marked) ]]; }
	wait_for gone
	carrel gc --dry-run
	assert_output "would remove $(basename "$(session_dir)")"
	[[ -d $(session_dir) ]]
	carrel gc --scratch-base "$BASE"
	assert_nothing_left
}

@test "gc leaves alone what only looks like a session" {
	mkdir "$BASE/carrel-short" "$BASE/carrel-AAAAAAAAAAAAAAAAAAAA" "$BASE/carrel-aaaaaaaaaaaaaaaaaaaa.quarantine"
	ln -s "$WS" "$BASE/carrel-aaaaaaaaaaaaaaaaaaaa"
	touch "$BASE/carrel-bbbbbbbbbbbbbbbbbbbb" "$WS/precious"
	carrel gc
	assert_status 0
	assert_output ''
	(($(find "$BASE" -mindepth 1 | wc -l) == 5))
	[[ -e $WS/precious ]]
	rm -r "$BASE"/carrel-*
}

@test "a record that is still being made: dead where nobody holds it, and then gone at once" {
	local records=$HOME/.local/state/carrel/sessions made

	carrel run -- true
	made=$records/aaaaaaaaaaaaaaaaaaaa
	mkdir -m 0700 "$made"
	exec {held}<"$made"
	flock "$held"
	carrel gc
	assert_status 0
	[[ -d $made ]] || fail 'gc took what is locked'
	exec {held}<&-
	carrel gc --dry-run
	[[ -d $made ]] || fail 'a dry run removed it'
	# With a path, and before there is anything at it; or something that is not carrel's.
	ln -s "$BASE/carrel-aaaaaaaaaaaaaaaaaaaa" "$made/where"
	(umask 077 && mkdir -p "$BASE/carrel-aaaaaaaaaaaaaaaaaaaa/mine")
	carrel gc
	assert_status 0
	[[ -d $BASE/carrel-aaaaaaaaaaaaaaaaaaaa/mine ]] || fail 'gc took what is not carrel'"'"'s'
	[[ ! -e $made ]] || fail 'the record stands'
	rm -r "$BASE"/carrel-*
	assert_nothing_left
}

@test "a launch that a sweep took its record from makes another" {
	need strace
	# After mkdir somebody holds it; then it is the sweep that removes it.
	run --separate-stderr strace -qqq -o "$T/trace" -e trace=mkdirat,flock \
		-e "inject=flock:error=EAGAIN:when=1" "$CARREL" run -- echo made
	assert_status 0
	assert_output made
	grep -q INJECTED "$T/trace" || fail 'nothing was injected'
	(($(grep -cE 'mkdirat\([0-9]+, "[a-z2-7]{20}\.[01]"' "$T/trace") == 2)) || fail "not made twice: $(<"$T/trace")"
	carrel gc
	assert_nothing_left
	run --separate-stderr strace -qqq -o "$T/trace" -e trace=flock -e 'inject=flock:error=EAGAIN' \
		"$CARREL" run -- touch "$WS/ran"
	assert_status 125
	assert_matches "$stderr" 'cannot record the session'
	[[ ! -e $WS/ran ]]
	carrel gc
	assert_nothing_left
}

@test "gc refuses what it does not know" {
	carrel gc --all
	assert_refused '`carrel gc` has no such argument'
	carrel gc --scratch-base "$T/nowhere"
	assert_refused 'scratch base'
}
