#!/usr/bin/env bats
# Where the machine refuses namespaces and mounts (here a filter does, as docker's does) and the policy says `degraded`,
# carrel uses Landlock instead of mounts, ends every process that the command started, and reports what it does without.
# ctest: cost=25
load ../lib/common
load ../lib/session

setup() {
	common_setup
	INTRUDER=$CARREL_HELPERS/intruder
	cp "$INTRUDER" "$WS/intruder" # the rest of /var/tmp is not there to be read
	R=$T/report.json
	mkdir -p "$HOME/.ssh" "$HOME/open"
	printf 'key\n' >"$HOME/.ssh/id"
	printf 'note\n' >"$HOME/note"
	need_landlock
}

# A session without any wall for the files is refused: nothing here would run.
need_landlock() {
	"$INTRUDER" refuse "$CARREL" run --degraded -- true 2>"$T/try" ||
		! grep -q 'no Landlock' "$T/try" || skip 'no Landlock in this kernel'
}

# bare ARGUMENT...: `carrel run --degraded` where namespaces are refused.
bare() {
	run --separate-stderr "$INTRUDER" refuse "$CARREL" run --degraded --report "$R" \
		--read "$HOME" "$@"
}

@test "without degraded it is refused, and says why" {
	run --separate-stderr "$INTRUDER" refuse "$CARREL" run -- true
	assert_refused 'user namespace'
}

@test "control: what the attempts need is there" {
	run --separate-stderr "$INTRUDER" refuse cat "$HOME/.ssh/id" "$HOME/note" /etc/passwd
	assert_status 0
	"$INTRUDER" refuse touch "$HOME/open/x" "$TMPDIR/x"
	rm "$TMPDIR/x"
	run "$INTRUDER" refuse /usr/bin/python3 -c 'import socket; socket.socket()'
	assert_status 0
}

@test "one line says what is missing, and the report says the same" {
	bare -- true
	assert_status 0
	assert_matches "$stderr" '^carrel: degraded, without: user-namespace mount-namespace pid-namespace [^
]*$'
	keep_report "$R"
	for wall in user-namespace mount-namespace pid-namespace ipc-namespace net-namespace mounts; do
		assert_field "$R" ".walls[\"$wall\"].state" unavailable
	done
	for wall in syscalls capabilities no-new-privs landlock supervisor; do
		assert_field "$R" ".walls[\"$wall\"].state" on
	done
}

@test "what is hidden cannot be read, what is not writable cannot be written" {
	bare -- sh -c 'cat ~/note; cat ~/.ssh/id; touch ~/open/y; echo more >>~/note; ls ~
		touch kept; echo x >"$TMPDIR/x" && cat "$TMPDIR/x"'
	assert_status 0
	assert_output $'note\nx'
	[[ -e $WS/kept && ! -e $HOME/open/y ]] || fail 'not what was allowed'
	[[ $(<"$HOME/note") == note ]] || fail 'the note was written'
	assert_matches "$stderr" '\.ssh/id: Permission denied'
	assert_nothing_left
}

@test "a hidden file among others: those can still be read" {
	mkdir "$HOME/.config" "$HOME/.config/gh"
	echo token >"$HOME/.config/gh/hosts"
	echo fine >"$HOME/.config/other"
	bare -- sh -c 'cat ~/.config/other; cat ~/.config/gh/hosts; ln ~/.config/gh/hosts x; cat x'
	assert_output fine
	[[ ! -e $WS/x ]] || fail 'a hidden file was linked'
}

@test "no socket but unix ones can be made; with net host they can" {
	local script='import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
    try:
        socket.socket(family)
        print("made")
    except OSError as e:
        print(e.errno)'

	bare -- /usr/bin/python3 -c "$script"
	assert_output $'made\n13\n13'
	bare --net host -- /usr/bin/python3 -c "$script"
	assert_output "$(/usr/bin/python3 -c "$script")" # a machine may be without IPv6
}

@test "no capability, no new privileges, and none of the caller's secrets" {
	SECRET=hunter2 bare -- sh -c 'grep -E "^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):" /proc/self/status
		tr "\0" "\n" </proc/$PPID/environ; echo "$SECRET"'
	assert_matches "$output" 'NoNewPrivs:[[:space:]]*1'
	refute_matches "$output" 'Cap[A-Za-z]*:[[:space:]]*0*[1-9a-f]'
	refute_matches "$output" hunter2
}

@test "neither the supervisor nor the test can be signalled or looked into" {
	local abi

	bare -- sh -c 'for p in '$$' $(ps -o ppid= -p $PPID); do kill -0 $p && echo signalled
		cat /proc/$p/environ >/dev/null && echo read; done; true'
	assert_status 0
	abi=$(field "$R" .walls.landlock.abi)
	refute_matches "$output" read
	((abi < 6)) || refute_matches "$output" signalled
}

@test "the command's status, its signal, and what could not be started" {
	bare -- sh -c 'exit 7'
	assert_status 7
	bare -- sh -c 'kill -9 $$'
	assert_status 137
	run -127 --separate-stderr "$INTRUDER" refuse "$CARREL" run --degraded --report "$R" -- /absent
	assert_status 127
	assert_field "$R" .started no
}

@test "what the command leaves is ended: daemons, what ignores TERM, what is stopped" {
	bare -- sh -c 'setsid sh -c "trap : TERM; touch one; while :; do sleep 1; done" &
		setsid sleep 1000 & sh -c "kill -STOP \$\$" &
		until [ -e one ]; do sleep 0.01; done'
	assert_status 0
	assert_nothing_left
}

@test "a fork bomb is ended with the command that left it" {
	bare --timeout 60s -- bash -c 'ulimit -u 200; exec ./intruder bomb'
	assert_status 0
	assert_nothing_left
}

@test "a command that kills its monitor ends its own session, and nothing stays" {
	bare -- ./intruder kill-parent
	assert_status 125
	assert_matches "$stderr" 'init ended before it reported how the command ended'
	assert_nothing_left
}

@test "hundreds of groups before what is looked for in a process's status: it is ended all the same" {
	need_root
	local -a as=(setpriv --reuid 12345 --regid 12345 --groups "$(seq -s, 100000 100700)"
		env XDG_RUNTIME_DIR="$T/run")

	mkdir "$T/run"
	chmod 0700 "$T/run"
	chown -R 12345 "$T"
	run --separate-stderr "${as[@]}" "$INTRUDER" refuse "$CARREL" run --degraded -- sh -c \
		'setsid sleep 1000 >/dev/null 2>&1 & touch ready; exec ./intruder kill-parent'
	assert_status 125
	assert_matches "$stderr" 'init ended before it reported how the command ended'
	[[ -e $WS/ready ]]
	assert_nothing_left
}

@test "a child that was there before is not the session's" {
	sleep 1000 3>&- 4>&- &
	local other=$!
	# The shell becomes the launcher: what it started stays its child.
	run --separate-stderr "$INTRUDER" refuse sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >"$1"
		shift; exec "$@"' sh "$T/child" "$CARREL" run --degraded -- ./intruder kill-parent
	assert_status 125
	kill -0 "$other"
	kill "$(<"$T/child")" || fail "the launcher's own child was ended"
	kill "$other"
	wait "$other" || true
}

@test "timeout and grace: TERM to everything, then the end" {
	bare --timeout 200ms --grace 200ms -- ./intruder deaf ready
	assert_status 124
	assert_field "$R" .limit timeout
	assert_nothing_left
}

@test "TERM reaches the command; a killed launcher leaves no process" {
	CARREL=$INTRUDER start refuse "$COMMON_CARREL" run --degraded -- ./intruder wait ready
	wait_for test -e "$WS/ready"
	signal TERM
	finish
	assert_status 7
	rm "$WS/ready"
	CARREL=$INTRUDER start refuse "$COMMON_CARREL" run --degraded -- ./intruder deaf ready
	wait_for test -e "$WS/ready"
	kill -KILL "$LAUNCHER"
	wait "$LAUNCHER" || true
	no_process() { [[ $(left) != *process* ]]; }
	wait_for no_process
	"$CARREL" gc >/dev/null 2>&1 || "$CARREL" run -- true
}

@test "a terminal: the command has one, and none of the machine's" {
	run --separate-stderr /usr/bin/python3 - "$INTRUDER" "$CARREL" <<-'PYTHON'
		import os, pty, sys
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[1], [sys.argv[1], "refuse", sys.argv[2], "run", "--degraded", "--",
		        "sh", "-c", "test -t 0 && test -t 1 && echo has-one >&2; ls /dev/pts; echo x >/dev/tty"])
		data = b""
		while True:
		    try:
		        got = os.read(fd, 4096)
		    except OSError:
		        break
		    if not got:
		        break
		    data += got
		os.waitpid(pid, 0)
		sys.stdout.write(data.decode())
	PYTHON
	assert_matches "$output" has-one
	assert_matches "$output" 'Permission denied'
}

@test "protected and absent paths go to quarantine as ever" {
	bare -- sh -c 'mkdir .git && mkdir .git/hooks && echo evil >.git/hooks/pre-commit'
	[[ ! -e $WS/.git/hooks ]] || fail 'a hook stayed'
	assert_field "$R" '.quarantined | length | . > 0' true
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "what only a mount can do is refused, not passed over" {
	local refused

	mkdir secret
	for refused in '--hide secret' '--workspace-mode overlay' '--scratch-size 1M' '--nested' \
		"--bind $HOME/open:/usr/lib" '--require pid-namespace' '--require mounts'; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$INTRUDER" refuse "$CARREL" run --degraded $refused -- true
		assert_refused
	done
}

@test "plan shows it" {
	run --separate-stderr "$INTRUDER" refuse "$CARREL" plan --degraded -- true
	assert_status 0
	assert_matches "$output" 'landlock-path'
	assert_matches "$output" 'no-sockets'
	refute_matches "$output" 'root-seal'
}
