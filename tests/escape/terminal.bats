#!/usr/bin/env bats
# A tool can neither type into the caller's terminal nor find it.
load ../lib/common
load escape

# on_terminal COMMAND...: with a terminal of its own as stdin, stdout and stderr; what it wrote is
# in $output. Nothing is typed.
on_terminal() {
	run python3 -c '
import os, pty, select, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b""
end = time.monotonic() + 120
while time.monotonic() < end:
    if not select.select([master], [], [], 0.2)[0]:
        continue
    try:
        piece = os.read(master, 4096)
    except OSError:
        break
    if not piece:
        break
    text += piece
else:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
sys.stdout.write(text.decode(errors="replace").replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(status))' "$@"
}

@test "nothing is typed into the terminal, with high bits set or not" {
	for request in 0x5412 0x100005412 0xffffffff00005412; do
		on_terminal attack_calls ioctl 0 "$request"
		[[ $output != *EPERM* ]] || fail 'control: refused outside'
		on_terminal "$CARREL" run -- attack_calls ioctl 0 "$request"
		assert_matches "$output" refused:EPERM
		on_terminal "$CARREL" run --tty no -- attack_calls ioctl 0 "$request"
		assert_matches "$output" refused:EPERM
	done
}

@test "no console is taken, no line discipline set, no hangup made" {
	for request in 0x541c 0x541d 0x5423 0x5437; do
		on_terminal "$CARREL" run -- attack_calls ioctl 0 "$request"
		assert_matches "$output" refused:EPERM
	done
	on_terminal attack_calls ioctl 0 0x5413
	assert_matches "$output" escaped
}

@test "the caller's terminal is not in the session's /dev/pts" {
	on_terminal "$CARREL" run -- sh -c 'tty; ls /dev/pts | sort | tr "\n" " "'
	assert_matches "$output" '/dev/pts/0'
	assert_matches "$output" '0 ptmx'
	refute_matches "$output" '[1-9]'
}

@test "the session's terminal is another one than the caller's" {
	on_terminal sh -c 'stat -Lc "outside %t:%T %i %d" /proc/self/fd/0; exec "$CARREL" run -- stat -Lc "inside %t:%T %i %d" /proc/self/fd/0'
	local out in

	out=$(sed -n 's/^outside //p' <<<"$output")
	in=$(sed -n 's/^inside //p' <<<"$output")
	[[ -n $out && -n $in && $out != "$in" ]] || fail 'the same terminal'
}

@test "a master that lies about cannot be opened" {
	session sh -c 'ls -l /dev/ptmx; exec attack_files open-device /dev/ptmx'
	assert_matches "$output" 'pts/ptmx'
	session sh -c 'for t in /dev/tty[0-9]* /dev/console /dev/vcs*; do [ ! -e $t ] || echo $t; done'
	assert_output ''
}

@test "without a terminal there is none to be had" {
	run --separate-stderr setsid --wait "$CARREL" run -- attack_files open-device /dev/tty
	assert_output refused:ENXIO
	on_terminal attack_files open-device /dev/tty
	assert_matches "$output" escaped
}

@test "names that a tool chose do not drive the terminal that they are shown on" {
	load ../lib/live
	make_runtime_dir "$T/run"
	begin
	# CSI in seven and in eight bits, OSC, and an override of the direction of writing.
	# shellcheck disable=SC2016
	inside -- sh -c 'cd "$CARREL_SCRATCH"; for name in "\033[31m" "\302\2331m" "\033]0;x\007" "\342\200\256"; do
		touch "$(printf "n$name")"; done; ls'
	# The control arm: they are called so.
	[[ $output == *$'n\033[31m'* && $output == *$'n\302\2331m'* && $output == *$'n\342\200\256'* ]]
	carrel scratch list
	assert_matches "$output" 'n\\x1b\[31m'
	assert_matches "$output" 'n\\xc2\\x9b1m'
	assert_matches "$output" 'n\\xe2\\x80\\xae'
	carrel promote $'n\302\2331m' none/there
	assert_status 125
	output+=$stderr
	carrel read -s "$ID" $'none\302\2331m'
	assert_status 125
	output+=$stderr
	refute_matches "$output" $'[\033\007]|\302\233|\342\200\256'
	end_session
}
