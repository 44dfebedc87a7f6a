#!/usr/bin/env bats
# A tool reaches nothing of carrel's in a live session: not the control socket, the state directory, the lock or the
# session directory's own files, and no descriptor is a way out.
load ../lib/common
load ../lib/live
load escape

setup() {
	escape_setup
	make_runtime_dir "$T/run"
	PYTHON=/usr/bin/python3
	# What a tool does with a socket: ask it to run something. Where that is done it has escaped.
	cat >"$T/bin/attack_socket" <<-'ATTACK'
		#!/usr/bin/python3
		import errno, os, socket, struct, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.settimeout(120)
		try:
		    s.connect(sys.argv[1])
		    s.send(struct.pack("=IHHQIiIIiIIIQQQQ", 0x6C727263, 1, 6, 7, *[0] * 12))
		    data = s.recv(65536)
		    kind = struct.unpack_from("=H", data, 6)[0] if data else 0
		    print("escaped" if kind == 68 else "refused:EPERM")
		except FileNotFoundError:
		    print("absent")
		except OSError as e:
		    print("refused:" + errno.errorcode[e.errno])
	ATTACK
	chmod 0755 "$T/bin/attack_socket"
}

# session COMMAND...: in the live session.
session() {
	apart "$CARREL" exec -s "$ID" --env PATH -- "$@" </dev/null
}

# hidden PATH: there outside, and nothing of it inside.
hidden() {
	[[ -e $1 || -L $1 ]] || fail "it is not even outside: $1"
	session sh -c 'if [ -e "$1" ] || [ -L "$1" ]; then echo escaped; else echo absent; fi' sh "$1"
	[[ $status == 0 && $output == absent ]] || fail "it is seen inside: $1"
}

attack_everything() {
	broke "$T/bin/attack_socket" "$XDG_RUNTIME_DIR/carrel/$ID"
	held "$T/bin/attack_socket" "$XDG_RUNTIME_DIR/carrel/$ID"
	hidden "$XDG_RUNTIME_DIR/carrel/$ID"
	hidden "$XDG_RUNTIME_DIR/carrel/$ID.record"
	hidden "$HOME/.local/state/carrel/sessions/$ID"
}

@test "the control socket and the session's record" {
	begin --read "$T/bin"
	attack_everything
	session sh -c 'ls -A "$1"' sh "$DIR"
	[[ $output == $'scratch\ntool-results' ]] || fail 'more of the session directory is seen'
	end_session
}

@test "the same with the runtime directory in the home, readable and bound elsewhere" {
	make_runtime_dir "$HOME/run time"
	mkdir "$HOME/scratch" "$T/copy"
	begin --read "$T/bin" --read "$HOME" --scratch-base "$HOME/scratch" --bind "$HOME:$T/copy:ro"
	attack_everything
	hidden_at() { session sh -c 'test -e "$1" && echo escaped || echo absent' sh "$1"; assert_output absent; }
	hidden_at "$T/copy/run time/carrel/$ID"
	hidden_at "$T/copy/run time/carrel"
	held "$T/bin/attack_socket" "$T/copy/run time/carrel/$ID"
	end_session
}

@test "the same with the runtime directory in the workspace, or the workspace in it" {
	make_runtime_dir "$WS/.run"
	begin --read "$T/bin"
	attack_everything
	# It cannot be moved away from under the wall either.
	session sh -c 'mv .run .gone 2>/dev/null; ls -A .run .gone 2>/dev/null'
	refute_matches "$output" 'carrel'
	end_session
	make_runtime_dir "$T"
	begin --read "$T/bin"
	attack_everything
	end_session
}

@test "a session that shows another one's runtime directory: the supervisor refuses the tool" {
	make_runtime_dir "$HOME/other"
	begin
	local victim=$ID there=$HOME/other/carrel/$ID other=$XDG_RUNTIME_DIR
	make_runtime_dir "$T/run"
	begin --read "$T/bin" --read "$other"
	broke "$T/bin/attack_socket" "$there"
	held "$T/bin/attack_socket" "$there"
	end_session
	make_runtime_dir "$other"
	end_session "$victim"
}

@test "the lock on the record cannot be taken or dropped from inside" {
	begin
	local record=$HOME/.local/state/carrel/sessions/$ID

	session sh -c 'flock -n "$1" true && echo taken' sh "$record"
	[[ -z $output ]] || fail 'it was'
	flock -n "$record" true && fail 'the record is not locked'
	carrel gc
	[[ -d $DIR ]]
	end_session
}

@test "descriptors that would be a way out are refused by the supervisor itself" {
	begin
	local what
	control exec echo control-arm
	assert_matches "$output" 'control-arm'
	for what in directory regular listening pidfd path; do
		control bad "$what"
		[[ $status == 3 && $output == 'ERROR descriptor|'* ]] || fail "$what got in"
	done
	end_session
}

# A monitor opens what a client names: /proc/self is the monitor there.
@test "the directory that the session was started in is no way below its walls" {
	local place

	mkdir -p "$WS/keys" "$HOME/.ssh"
	echo 'the secret' >"$WS/keys/key"
	echo 'the secret' >"$HOME/.ssh/key"
	echo harmless >"$WS/file"
	for place in "$WS" "$WS/keys" "$HOME" "$HOME/.ssh"; do
		cd "$place"
		begin --workspace "$WS" --hide "$WS/keys"
		# The control arm: what is not hidden is opened.
		control open 0 "$WS/file"
		assert_matches "$output" harmless
		local name
		for name in keys/key key .ssh/key; do
			control open 0 "/proc/self/cwd/$name"
			refute_matches "$output" 'the secret'
			control open 0 "/proc/thread-self/cwd/$name"
			refute_matches "$output" 'the secret'
		done
		end_session
		cd "$WS"
	done
}

@test "a file of /proc is not opened for a client to write to it" {
	begin
	# shellcheck disable=SC2016
	exec_in_background -- sh -c 'ln -s /proc/$$/oom_score_adj "$CARREL_SCRATCH/link" && echo ready && exec sleep 1000'
	is_ready() { [[ $(<"$T/out") == ready ]]; }
	wait_for is_ready
	# The control arms: it is opened to be read, a file of the scratch to be written, and a tool writes to it.
	control open 0 "$DIR/scratch/link"
	assert_matches "$output" '^0$|/oom_score_adj'
	control open 65 "$DIR/scratch/file"
	assert_matches "$output" '(^|[[:space:]])8$'
	# shellcheck disable=SC2016
	inside -- sh -c 'echo 5 >"$CARREL_SCRATCH/link" && cat "$CARREL_SCRATCH/link"'
	assert_output 5
	control open 1 "$DIR/scratch/link"
	assert_matches "$output" '13'
	refute_matches "$output" '(^|[[:space:]])8$'
	kill "$EXEC"
	wait "$EXEC" || true
	end_session
}

@test "a command has the three descriptors and no others, in a second execution too" {
	begin
	local i
	for i in 1 2; do
		# shellcheck disable=SC2016
		inside -- sh -c 'cd /proc/self/fd && echo *'
		assert_matches "$output" '^0 1 2( 3)?$'
	done
	# Neither those of its monitor, nor of init, nor their memory.
	# shellcheck disable=SC2016
	inside -- sh -c 'for p in 1 $PPID; do ls /proc/$p/fd 2>/dev/null; cat /proc/$p/environ 2>/dev/null; head -c 1 /proc/$p/mem 2>/dev/null; done; echo end'
	assert_output end
	end_session
}

# monitors TRIES COMMAND: a tool's `COMMAND PID` for every child of init but its own monitor: the spare one,
# which is there soon, and the init of another view.
# shellcheck disable=SC2016
monitors() {
	inside -- sh -c 'for try in $(seq '"$1"'); do
		for p in /proc/[0-9]*; do p=${p#/proc/}
			if grep -qx "PPid:	1" /proc/$p/status 2>/dev/null && [ $p != $PPID ] && '"$2"' $p; then
				echo "did $p"
				exit
			fi
		done
		sleep 0.1
	done'
	assert_status 0
}

@test "a tool that stops or kills the monitor that is to take the next execution holds nothing up" {
	begin
	local signal
	for signal in STOP KILL; do
		monitors "$((PATIENCE * 10))" "kill -$signal"
		# The control arm: it was hit.
		assert_matches "$output" '^did [0-9]'
		inside --timeout "${PATIENCE}s" -- echo next
		[[ $status == 0 && $output == next ]] || fail "held up by $signal: $status"
	done
	end_session
}

@test "a tool that stops every monitor all the time: nothing waits until its timeout" {
	begin
	exec_in_background -- "$PYTHON" -c '
import os, signal
while True:
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit() or int(name) == os.getppid():
                continue
            if "\nPPid:\t1\n" in open(f"/proc/{name}/status").read():
                os.kill(int(name), signal.SIGSTOP)
                print("hit", flush=True)
        except OSError:
            continue'
	hit() { [[ -s $T/out ]]; }
	local i
	for i in 1 2 3; do
		inside --timeout "${PATIENCE}s" -- true
		# Lost at worst (125); never 124.
		[[ $status == 0 || $status == 125 || $status == 137 ]] || fail "not ended: $status"
	done
	wait_for hit
	kill "$EXEC"
	wait "$EXEC" || true
	inside --timeout "${PATIENCE}s" -- echo next
	assert_output next
	end_session
}

@test "a tool that sets limits of init or of a monitor: not those of who comes next" {
	need prlimit
	begin
	# The control arm: what is one's own and not walled can be set so.
	sleep 1000 3>&- 4>&- &
	local sleeper=$!
	prlimit --pid "$sleeper" --nofile=5:5
	assert_matches "$(prlimit --pid "$sleeper" --nofile --noheadings --output=HARD)" '^ *5$'
	kill "$sleeper"
	monitors 5 'prlimit --nofile=5:5 --fsize=0:0 --pid'
	refute_matches "$output" 'did'
	inside -- prlimit --pid 1 --nofile=0:0
	assert_status 1
	inside -- sh -c 'ulimit -n; echo text >there && cat there'
	assert_status 0
	assert_matches "$output" 'text'
	refute_matches "$output" '^5$'
	end_session
}

@test "a command of a tighter view that kills its monitor leaves nothing either" {
	begin
	local view
	for view in '' '--workspace-mode=ro'; do
		# shellcheck disable=SC2016,SC2086
		inside $view -- sh -c 'setsid sleep 4321 & kill -KILL $PPID; sleep 1000'
		assert_status 125
		nothing_left() { inside -- sh -c '! pgrep -x sleep' && [[ $status == 0 ]]; }
		wait_for nothing_left
	done
	end_session
}

@test "a command of a tighter view that stops the init of that view: nobody waits for ever" {
	begin
	# shellcheck disable=SC2016
	inside --workspace-mode ro -- sh -c 'kill -STOP "$(sed -n "s/^PPid:.//p" /proc/$PPID/status)"; echo did'
	# Where init may signal it, it goes on; where Landlock refuses that, the session ends.
	inside --workspace-mode ro --timeout "${PATIENCE}s" -- echo next
	[[ $output == next || $status == 125 ]] || fail "held up: $status"
	carrel session end "$ID" || true
	assert_nothing_left
}
