#!/usr/bin/env bats
# A session at a terminal: the command has a real one, with job control and window size, and the caller's terminal is
# afterwards as it was before, whatever happened.
load ../lib/common
load ../lib/session

# at_terminal STEPS COMMAND...: the command at a terminal, with somebody who does the steps.
at_terminal() {
	local steps=$1

	shift
	run --separate-stderr /usr/bin/python3 "$CARREL_SOURCE/tests/lib/terminal.py" "$@" <<<"$steps"
	[[ $status != 99 && $stderr != *Traceback* ]] || fail 'a step failed'
}

@test "the command has a terminal of the session's own, and job control" {
	at_terminal '' "$CARREL" run -- sh -c 'tty; test -t 0 && test -t 1 && test -t 2 && echo all; : </dev/tty && echo tty; cut -d" " -f 5-8 /proc/$$/stat'
	assert_status 0
	assert_matches "$output" '/dev/pts/0'
	assert_matches "$output" 'all'
	assert_matches "$output" 'tty'
	assert_matches "$output" '2 1 [0-9]+ 2' # group 2 is in front
}

@test "the host's terminal cannot be reached from inside" {
	at_terminal '' "$CARREL" run -- sh -c 'ls /dev/pts; readlink /proc/self/fd/*'
	refute_matches "$output" '/dev/pts/([1-9]|[0-9]{2,})'
}

@test "Ctrl-C reaches the command and not the launcher" {
	at_terminal 'expect ready
		send \x03
		wait' "$CARREL" run -- sh -c 'trap "echo caught; exit 7" INT; echo ready; while :; do sleep 0.05; done'
	assert_status 7
	assert_matches "$output" caught
	at_terminal '
		expect ready
		send \x03
		wait
		same' "$CARREL" run -- sh -c 'echo ready; exec sleep 1000'
	assert_status 130
	assert_nothing_left
}

@test "Ctrl-\\ and Ctrl-D" {
	at_terminal 'expect ready
		send \x1c
		wait' "$CARREL" run -- sh -c 'echo ready; exec sleep 1000'
	assert_status 131
	at_terminal 'expect ready
		send some text\r
		send \x04
		wait' "$CARREL" run -- sh -c 'echo ready; cat >got'
	assert_status 0
	[[ $(<"$WS/got") == 'some text' ]]
}

@test "what a command writes last comes as it was written, too" {
	at_terminal '' bash -c 'for ((i = 0; i < 40; i++)); do "$CARREL" run -- seq 3 || exit; done'
	assert_status 0
	[[ $output == *$'3\r'* && $output != *$'\r\r'* ]] || fail "$(printf %q "$output")"
}

@test "the window size is passed on, and follows" {
	at_terminal 'expect 33 101
		size 44x99
		expect 44 99
		wait' --size 33x101 "$CARREL" run -- bash -c 'trap "stty size; exit" WINCH; stty size; while :; do sleep 0.05; done'
	assert_status 0
}

@test "Ctrl-Z stops it and the caller's shell takes over; fg resumes" {
	PS1='prompt> ' at_terminal 'expect prompt>
		modes
		send "$CARREL" run -- sh -c '"'"'echo rea""dy; read x; echo "got $x"'"'"'\r
		expect ready
		send \x1a
		expect Stopped
		expect prompt>
		send jobs; echo still-he""re\r
		expect Stopped
		expect still-here
		expect prompt>
		send fg\r
		send hello\r
		expect got hello
		expect prompt>
		send exit\r
		wait' bash --norc --noprofile -i
	assert_nothing_left
}

@test "a stopped job can be ended by the caller's shell" {
	PS1='prompt> ' at_terminal 'expect prompt>
		send "$CARREL" run -- sh -c '"'"'echo rea""dy; exec sleep 1000'"'"'\r
		expect ready
		send \x1a
		expect Stopped
		expect prompt>
		send kill %1; fg\r
		expect prompt>
		send exit\r
		wait' bash --norc --noprofile -i
	await_nothing_left
}

@test "in the background it does not take the keyboard" {
	PS1='prompt> ' at_terminal 'expect prompt>
		send "$CARREL" run -- sh -c '"'"'sleep 0.3; echo d""one >fin'"'"' &\r
		expect prompt>
		send echo ke""yboard\r
		expect keyboard
		expect prompt>
		send wait; cat fin\r
		expect done
		expect prompt>
		send exit\r
		wait' bash --norc --noprofile -i
	assert_status 0
}

@test "modes are restored after each kind of end" {
	for end in 'exit 0' 'exit 5' 'kill -9 $$' 'stty raw -echo; exit 1' 'kill -SEGV $$' 'stty -icanon; kill -TERM $$'; do
		at_terminal '
			expect ready
			wait
			same' "$CARREL" run -- sh -c "echo ready; $end"
	done
	at_terminal '
		wait
		same' "$CARREL" run --timeout 300ms -- sh -c 'stty raw; sleep 1000'
	assert_status 124
	at_terminal '
		wait
		same' sh -c '"$CARREL" run -- /no/such/command; exit $(($? - 100))'
	assert_status 27
	for s in TERM HUP; do
		at_terminal "
			expect ready
			signal $s
			wait
			same" "$CARREL" run -- sh -c 'echo ready; exec sleep 1000'
		assert_nothing_left
	done
}

@test "a terminal that goes away ends the session" {
	at_terminal 'expect ready
		hangup
		wait' "$CARREL" run -- sh -c 'echo ready; exec sleep 1000'
	await_nothing_left
}

@test "tty no: no controlling terminal, streams are the caller's" {
	at_terminal '' "$CARREL" run --tty no -- sh -c 'test -t 1 && echo is-tty; (: </dev/tty) 2>/dev/null || echo none'
	assert_status 0
	assert_matches "$output" none
	at_terminal '
		expect ready
		send \x03
		wait
		same' "$CARREL" run --tty no -- sh -c 'echo ready; exec sleep 1000'
	assert_status 130
	assert_nothing_left
}

@test "tty no: Ctrl-Z stops it, fg resumes" {
	mkfifo "$WS/go" # no child of the shell: stopped between vfork and exec, it would keep its parent from stopping
	PS1='prompt> ' at_terminal 'expect prompt>
		send "$CARREL" run --tty no -- sh -c '"'"'echo rea""dy; read x <go; echo res""umed'"'"'\r
		expect ready
		send \x1a
		expect Stopped
		expect prompt>
		send (echo x >go &); fg\r
		expect resumed
		expect prompt>
		send exit\r
		wait' bash --norc --noprofile -i
	assert_nothing_left
}

@test "tty yes: a terminal although nothing is one" {
	apart "$CARREL" run --tty yes -- sh -c 'tty; test -t 1 && echo is-tty' </dev/null
	assert_status 0
	assert_matches "$output" 'is-tty'
}

@test "in a pipeline only what is a terminal is one" {
	at_terminal '' bash -c '"$CARREL" run -- sh -c "test -t 0 && test ! -t 1 && echo right" | cat'
	assert_matches "$output" right
	at_terminal '' bash -c 'echo x | "$CARREL" run -- sh -c "test ! -t 0 && test -t 1 && cat"'
	assert_matches "$output" x
}

@test "in a pipeline a line ends as the caller's terminal ends it" {
	at_terminal '' bash -c 'echo one | "$CARREL" run -- cat; "$CARREL" run -- echo two </dev/null'
	assert_status 0
	assert_matches "$output" one
	refute_matches "$output" $'\r\r'
}

@test "all output arrives, in order, before the end" {
	at_terminal 'expect 50000
		wait' "$CARREL" run -- seq 1 50000
	assert_status 0
	[[ $(tr -d '\r' <<<"$output" | md5sum) == "$(seq 1 50000 | md5sum)" ]]
}

@test "a shell inside has job control of its own" {
	PS1='inner> ' at_terminal 'expect inner>
		send sh -c "echo sle""eping; exec sleep 1000"\r
		expect sleeping
		send \x1a
		expect Stopped
		expect inner>
		send kill -9 %1; fg; exit 4\r
		wait' "$CARREL" run --env PS1 -- bash --norc --noprofile -i
	assert_status 4
}

@test "inside tmux" {
	need tmux
	tmux -S "$T/tmux" -f /dev/null new-session -d -x 70 -y 20 "$CARREL run -- sh -c 'stty size >size; tty >>size'"
	wait_for grep -q pts "$WS/size"
	[[ $(<"$WS/size") == $'20 70\n/dev/pts/0' || $(<"$WS/size") == $'19 70\n/dev/pts/0' ]]
	tmux -S "$T/tmux" kill-server 2>/dev/null || true
	await_nothing_left
}
