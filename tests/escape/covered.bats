#!/usr/bin/env bats
# When the host replaces a file under a mount of a session, carrel covers the new file and the session goes on. The
# hammer opens it in the moment when it is bare: inside, carrel kills the hammer for that; in the control arm, outside,
# the hammer uses what it opened.
load ../lib/common
load ../lib/session
load ../lib/live
load escape
load cover

@test "git on the host beside a command in the session" {
	git init -q --bare "$T/remote.git"
	beside sh -c "$COVERED$WAIT"'covered "$PWD/.git/config"; cat .git/config; echo evil >>.git/config && echo written; git commit -q --allow-empty -m inside && echo committed'
	git -C "$WS" config user.name other
	git -C "$WS" remote add origin "$T/remote.git"
	git -C "$WS" push -q -u origin main
	git -C "$WS" checkout -q -b topic --track origin/main
	git -C "$WS" commit -q --allow-empty -m outside
	git -C "$WS" rebase -q --onto main HEAD~1
	git -C "$WS" gc -q
	stops 0
	[[ $(<"$T/out") == *'name = other'*'remote = origin'*committed* && $(<"$T/out") != *written* ]] || fail "$(<"$T/out")"
	[[ $(git -C "$WS" config user.name) == other && $(<"$WS/.git/config") != *evil* ]]
	covered "$WS/.git/config"
	[[ $(jq -c '[.quarantined, .breaches, .error]' "$REPORT") == '[[],[],null]' ]] || fail "$(<"$REPORT")"
}

@test "git on the host beside a live session, in every view" {
	begin
	local turn # run has an i of its own

	for turn in 1 2 3; do
		git -C "$WS" config user.name "n$turn"
		carrel exec -- sh -c "$COVERED"'covered "$PWD/.git/config"; cat .git/config; echo evil >>.git/config'
		assert_status 2
		assert_matches "$output" "name = n$turn"
		carrel exec --workspace-mode ro -- sh -c "$COVERED"'covered "$PWD/.git/config"; cat .git/config; echo evil >>.git/config || : >made'
		assert_status 2
		assert_matches "$output" "name = n$turn"
	done
	carrel session end
	assert_status 0
	[[ $(<"$WS/.git/config") != *evil* && ! -e $WS/made ]]
}

@test "a hidden file that is replaced is hidden again" {
	echo secret >"$T/secret"
	SETTINGS=(--hide "$T/secret")
	beside sh -c "$COVERED$WAIT"'covered "$1"; cat "$1"; echo "status $?"' sh "$T/secret"
	replace "$T/secret" 'new secret'
	replace "$T/secret" 'newer secret'
	stops 0
	[[ $(<"$T/out") == 'status 0' ]] || fail "$(<"$T/out")"
	covered "$T/secret"
}

@test "a hidden file that is removed is hidden when it comes back" {
	echo secret >"$T/secret"
	SETTINGS=(--hide "$T/secret" --verbose)
	beside sh -c "$COVERED$WAIT"'covered "$1"; cat "$1"' sh "$T/secret"
	rm "$T/secret"
	wait_for grep -qF "removed on the host: $T/secret" "$T/err"
	echo 'new secret' >"$T/secret"
	stops 0
	[[ $(<"$T/out") == '' ]] || fail "$(<"$T/out")"
	covered "$T/secret"
}

@test "a hidden file that goes with its directories is hidden when they come back" {
	mkdir -p "$T/a/b"
	echo secret >"$T/a/b/secret"
	SETTINGS=(--hide "$T/a/b/secret" --verbose)
	beside sh -c "$COVERED$WAIT"'covered "$1"; cat "$1"' sh "$T/a/b/secret"
	rm -r "$T/a"
	wait_for grep -qF "removed on the host: $T/a/b/secret" "$T/err"
	mkdir "$T/a"
	mkdir "$T/a/b"
	echo 'new secret' >"$T/a/b/secret"
	stops 0
	[[ $(<"$T/out") == '' ]] || fail "$(<"$T/out")"
	covered "$T/a/b/secret"
}

@test "a socket that goes with its directory ends no session" {
	mkdir "$T/server"
	python3 -c 'import signal, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("here", flush=True)
signal.pause()' "$T/server/socket" </dev/null >"$T/listens" 2>&1 3>&- 4>&- &
	local server=$!
	wait_for test -s "$T/listens"
	SETTINGS=(--verbose)
	beside sh -c "$WAIT"'echo on'
	rm -r "$T/server"
	kill "$server"
	wait_for grep -qF "removed on the host: $T/server/socket" "$T/err"
	stops 0
	[[ $(<"$T/out") == on ]] || fail "$(<"$T/out")"
}

@test "a hidden directory that is replaced, by what is in it or as a whole" {
	mkdir "$T/keys" "$T/keys.new"
	echo key >"$T/keys.new/id"
	SETTINGS=(--hide "$T/keys")
	beside sh -c "$COVERED$WAIT"'covered "$1"; ls -A "$1"; cat "$1/id"; :' sh "$T/keys"
	mv "$T/keys" "$T/keys.old"
	rmdir "$T/keys.old"
	mv "$T/keys.new" "$T/keys"
	stops 0
	[[ $(<"$T/out") == '' ]] || fail "$(<"$T/out")"
}

@test "a protected directory that is replaced at once is protected again" {
	mkdir "$WS/.git/hooks.new"
	beside sh -c "$COVERED$WAIT"'covered "$PWD/.git/hooks"; echo evil >.git/hooks/pre-commit || echo held'
	rm -rf "$WS/.git/hooks"/* # a directory is renamed over an empty one alone: rename(2)
	mv -T "$WS/.git/hooks.new" "$WS/.git/hooks"
	stops 0
	[[ $(<"$T/out") == held && ! -e $WS/.git/hooks/pre-commit ]] || fail "$(<"$T/out")"
	covered "$WS/.git/hooks"
}

@test "what is protected and removed is not made anew by a tool" {
	SETTINGS=(--verbose)
	beside sh -c "$WAIT"'mkdir .git/hooks; echo evil >.git/hooks/pre-commit; until [ ! -e .git/hooks ]; do sleep 0.02; done; echo taken'
	rm -rf "$WS/.git/hooks"
	wait_for grep -qF "removed on the host: $WS/.git/hooks" "$T/err"
	stops 0
	[[ $(<"$T/out") == taken ]] || fail "$(<"$T/out")"
	jq -e --arg path "$WS/.git/hooks" '.quarantined[] | select(.path == $path)' "$REPORT" || fail "$(<"$REPORT")"
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "a protected file becomes a FIFO; a link ends the session" {
	echo old >"$WS/x"
	SETTINGS=(--protect x)
	beside sh -c "$COVERED$WAIT"'covered "$PWD/x"; mv x y; rm -f x; [ -p x ] && echo held'
	mkfifo "$WS/other"
	mv -T "$WS/other" "$WS/x"
	stops 0
	[[ $(<"$T/out") == held ]] || fail "$(<"$T/out") $(<"$T/err")"
	rm -f "$WS"/{ready,stop,x}
	echo old >"$WS/x"
	beside sh -c "$WAIT"
	ln -s /etc/passwd "$WS/other"
	mv -T "$WS/other" "$WS/x"
	stops 125
	assert_matches "$(<"$T/err")" 'removed from outside, and what is there now cannot be covered.*/x'
}

@test "a protected file that gets a second name ends the session" {
	echo old >"$WS/x"
	SETTINGS=(--protect x)
	beside sh -c "$WAIT"
	echo new >"$WS/other"
	ln "$WS/other" "$WS/name"
	mv -T "$WS/other" "$WS/x"
	stops 125
	assert_matches "$(<"$T/err")" 'second name'
}

@test "what was opened for writing while it was bare is of no use" {
	need python3
	timeout -s KILL 60 python3 "$T/bin/hammer.py" write "$WS/.git/config" "$T/control" "$T/never" control || true &
	wait_for test -s "$T/control"
	kill_left
	git -C "$WS" config --file "$WS/.git/config" user.name u
	hammered "$WS/.git/config" replace "$T/bin/hammer.py" write "$WS/.git/config" "$WS/hits" "$WS/stop"
	refute_matches "$(<"$WS/.git/config")" evil
}

@test "what was opened for reading while it was bare is of no use" {
	need python3
	echo secret >"$T/secret"
	SETTINGS=(--hide "$T/secret")
	hammered "$T/secret" replace "$T/bin/hammer.py" read "$T/secret" "$WS/hits" "$WS/stop"
}

@test "all stand still and go on: threads, vfork, a stopped job, a pipeline" {
	need python3 make
	cat >"$WS/threads.py" <<-'END'
		import os, subprocess, threading
		open("ready", "w").close()
		def work():
		    while not os.path.exists("stop"):
		        subprocess.run(["true"], check=True)
		threads = [threading.Thread(target=work) for _ in range(4)]
		[t.start() for t in threads]
		[t.join() for t in threads]
		print("all went on")
	END
	beside sh -c 'sleep 1000 & kill -STOP $!; python3 threads.py && until grep -q "State:.T" /proc/$!/status; do sleep 0.02; done; echo stopped; kill -KILL $!'
	for i in {1..50}; do
		replace "$WS/.git/config" "# $i"
	done
	stops 0
	assert_matches "$(<"$T/out")" 'all went on.*stopped'
	[[ $(jq -c '[.breaches, .error]' "$REPORT") == '[[],null]' ]] || fail "$(<"$REPORT")"
}

@test "without its coverer the session ends" {
	beside sh -c ': >ready; sleep 1000'
	wait_for pgrep -x carrel-coverer -P "$BESIDE"
	pkill -KILL -x carrel-coverer -P "$BESIDE"
	stops 125
	assert_matches "$(<"$T/err")" 'the process that covers it again has died'
}

# filters PID: how many system-call filters a process has.
filters() {
	sed -n 's/^Seccomp_filters:[[:space:]]*//p' "/proc/$1/status"
}

# settled PID: it has both filters, and no capability but DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, CHOWN and KILL.
settled() {
	(($(filters "$1") == $(filters $$) + 2)) &&
		(((0x$(sed -n 's/^CapPrm:[[:space:]]*//p' "/proc/$1/status") & ~0x2f) == 0))
}

@test "when the coverer is there the supervisor has no right of its any more" {
	[[ -n $(filters $$) ]] || skip 'this kernel does not say how many filters a process has'
	beside sh -c "$WAIT"
	wait_for settled "$BESIDE"
	wait_for pgrep -x carrel-coverer -P "$BESIDE"
	stops 0
	begin
	settled "$SUPERVISOR" || fail "$(<"/proc/$SUPERVISOR/status")"
	carrel session end
}

@test "a session that ends before there is a coverer is looked at by a supervisor without its rights" {
	need strace
	# The control: it does remove what the command made.
	run --separate-stderr strace -qqq -o "$T/trace" -e trace=seccomp,unlinkat,getdents64 \
		"$CARREL" run -- sh -c ': >"$TMPDIR/made"'
	assert_status 0
	grep -q 'unlinkat.*made' "$T/trace" || fail "$(<"$T/trace")"
	awk '/^seccomp.*= 0/ { loaded++ } /unlinkat.*made/ { exit loaded != 2 }' "$T/trace" || fail "$(<"$T/trace")"
}

@test "where it cannot give them up the session ends, and does not claim the wall" {
	need strace
	local long

	# Another process could be the one that loads the second filter: the first of the supervisor's own is counted.
	for long in : 'sleep 1000'; do
		run --separate-stderr timeout -s KILL 60 strace -qqq -o "$T/trace" -e trace=seccomp -e inject=seccomp:error=ENOMEM:when=2 \
			"$CARREL" run --report "$REPORT" -- sh -c "$long"
		[[ $status == 125 ]] || fail "$status: $stderr"
		assert_matches "$stderr" 'the supervisor cannot confine itself'
		[[ $(jq -r .walls.supervisor.state "$REPORT") == off ]] || fail "$(jq -c .walls "$REPORT")"
	done
}

@test "the coverer cannot be seen from inside" {
	beside sh -c ': >ready; cat /proc/[0-9]*/comm; until [ -e stop ]; do sleep 0.02; done'
	wait_for pgrep -x carrel-coverer -P "$BESIDE"
	stops 0
	refute_matches "$(<"$T/out")" coverer
}

@test "where root may trace nobody there is no coverer, and no session ends for that" {
	need_root
	need setpriv
	run setpriv --bounding-set -sys_ptrace,-dac_read_search "$CARREL" run -- sh -c 'sleep 0.5; echo on'
	[[ $status == 0 && $output == on ]] || fail "$status: $output"
}

@test "a process that another one traces ends the session: it would go on when its tracer says so" {
	need strace
	beside strace -f -o trace sh -c ': >ready; exec sleep 1000'
	replace "$WS/.git/config"
	stops 125
	assert_matches "$(<"$T/err")" 'a process of the session did not stop'
}
