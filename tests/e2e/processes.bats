#!/usr/bin/env bats
# The processes of a session: what they are, and that all of them are gone when it ends.
load ../lib/common
load ../lib/session

@test "when the command ends the session ends: background children are killed at once" {
	ends_soon carrel run -- sh -c 'sleep 1000 & exit 5'
	assert_status 5
	assert_nothing_left
}

@test "a double fork into a session of its own is found and killed" {
	ends_soon carrel run -- sh -c \
		'setsid sh -c "(setsid sleep 1000 &) ; touch $1/forked; sleep 1000" >/dev/null 2>&1 & while [ ! -e $1/forked ]; do sleep 0.02; done' sh "$WS"
	assert_status 0
	assert_nothing_left
}

@test "orphans are reaped: no zombies gather below init" {
	sh_in 'for i in 1 2 3 4 5 6 7 8 9; do (sleep 0 & exit 0); done
		for i in $(seq '"$((PATIENCE * 20))"'); do
			grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null || exit 0
			sleep 0.05
		done; exit 1'
	assert_status 0
}

@test "children that ignore every signal are killed" {
	ends_soon carrel run -- sh -c \
		'(trap "" TERM INT HUP QUIT USR1; touch ready; sleep 1000 & wait) & while [ ! -e ready ]; do sleep 0.02; done; exit 7'
	assert_status 7
	assert_nothing_left
}

@test "a stopped child does not hold up the end" {
	ends_soon carrel run -- sh -c 'sleep 1000 & kill -STOP $!; exit 3'
	assert_status 3
	assert_nothing_left
}

@test "a fork bomb's remains are gone" {
	ends_soon carrel run -- sh -c 'i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; exit 4'
	assert_status 4
	assert_nothing_left
}

@test "no held pipe makes the caller wait" {
	pipe() {
		output=$("$CARREL" run -- sh -c 'sleep 1000 & setsid sleep 1000 & echo done')
	}
	ends_soon pipe
	assert_output 'done'
	pipe() {
		"$CARREL" run -- sh -c 'sleep 1000 >&2 & echo x' 2>&1 | cat >"$T/piped"
	}
	ends_soon pipe
	[[ $(<"$T/piped") == x ]]
}

@test "the command is process 2, its parent is 1, and it leads a group of its own" {
	sh_in 'echo $$ $PPID; cut -d" " -f 5-7 /proc/$$/stat'
	assert_output $'2 1\n2 1 0' # init's session, without a terminal
}

@test "/proc shows the session's processes and no others" {
	sh_in 'sleep 5 & echo /proc/[0-9]*'
	assert_output '/proc/1 /proc/2 /proc/3'
}

@test "pid 1 shows no environment, no descriptors, no memory, and no arguments of the caller" {
	SECRET_OF_THE_CALLER=hunter2 apart "$CARREL" run -- sh -c '
		cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps; tr "\0" " " </proc/1/cmdline; echo
		head -c 1 /proc/1/mem; ls -l /proc/1/exe /proc/1/root /proc/1/cwd' 2>/dev/null
	refute_matches "$output$stderr" 'hunter2'
	refute_matches "$output" '[0-9a-f]+-[0-9a-f]+ r'
	[[ $output == carrel-init* || $output == *$'\n'carrel-init* ]]
	refute_matches "$output" '->'
}

@test "descriptors 0, 1, 2 and no others" {
	exec 7</etc/hostname 8>"$T/leak" 9<"$T"
	sh_in 'ls /proc/self/fd | tr "\n" " "; ls -l /proc/self/fd/7 /proc/self/fd/8 /proc/self/fd/9 2>/dev/null'
	exec 7<&- 8>&- 9<&-
	assert_output '0 1 2 3 ' # 3 is ls's own directory
}

@test "signal mask and dispositions are put back to the default" {
	run --separate-stderr env --ignore-signal=PIPE,INT,USR1,CHLD --block-signal=TERM,USR2,HUP "$CARREL" run -- \
		grep -E '^Sig(Blk|Ign|Pnd)|^ShdPnd' /proc/self/status
	assert_status 0
	[[ $(grep -c ':.0000000000000000$' <<<"$output") == 4 ]] || fail 'a signal is blocked or ignored'
}

@test "umask, nice value and limits of the caller are passed on" {
	umask 027
	(ulimit -S -n 200; nice -n 5 "$CARREL" run -- sh -c 'umask; ulimit -n; nice') >"$T/out"
	[[ $(<"$T/out") == $'0027\n200\n'"$(nice -n 5 nice)" ]] || fail "$(<"$T/out")"
}

@test "the command is scheduled as the caller is: short turns are the launcher's own" {
	local nice values=(0 5) outside

	is_root && values+=(-5)
	cp "$CARREL_SOURCE/tests/lib/scheduling.py" "$WS/"
	for nice in "${values[@]}"; do
		outside=$(nice -n "$nice" /usr/bin/python3 "$WS/scheduling.py")
		nice -n "$nice" "$CARREL" run -- /usr/bin/python3 scheduling.py >"$T/out"
		[[ $(<"$T/out") == "$outside" ]] || fail "$(<"$T/out"), outside $outside"
	done
}

@test "the command has no capability in any set, no_new_privs, and the filter" {
	sh_in 'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status'
	[[ $(grep -c '^Cap.*0000000000000000$' <<<"$output") == 5 ]] || fail 'a capability'
	assert_matches "$output" 'NoNewPrivs:.1'
	assert_matches "$output" 'Seccomp:.2'
}

@test "the uid inside is the caller's and getpwuid knows it" {
	sh_in 'id -u; id -un; echo ~'
	assert_output "$(id -u)"$'\n'"$(id -un)"$'\n'"$HOME"
}

@test "host name, time and locale are as outside" {
	carrel run -- sh -c 'hostname; LC_ALL=C.UTF-8 locale charmap'
	assert_output "$(hostname)"$'\nUTF-8'
}

@test "started by nohup: a hangup does not end it" {
	nohup "$CARREL" run -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done; echo survived' \
		>"$T/out" 2>"$T/err" </dev/null 3>&- &
	LAUNCHER=$!
	wait_for test -e "$WS/ready"
	kill -HUP "$LAUNCHER"
	sleep 0.2
	touch "$WS/go"
	finish
	assert_status 0
	assert_output survived
}

@test "started with SIGCHLD ignored, as by some daemons" {
	run --separate-stderr env --ignore-signal=CHLD "$CARREL" run -- sh -c 'sleep 0; exit 9'
	assert_status 9
}

@test "started with every signal blocked" {
	run --separate-stderr env --block-signal "$CARREL" run --timeout 20s -- sh -c 'kill -TERM $$'
	assert_status 143
}

@test "a command with a name like an option runs" {
	mkdir "$T/bin"
	printf '#!/bin/sh\necho "ran $*"\n' >"$T/bin/--inadvisable"
	chmod +x "$T/bin/--inadvisable"
	PATH=$T/bin:$PATH carrel run --read "$T/bin" -- --inadvisable --keep
	assert_status 0
	assert_output 'ran --keep'
}

@test "settings end at the first word that is none: the command's options are its own" {
	carrel run echo --timeout 5 --keep -- x
	assert_status 0
	assert_output '--timeout 5 --keep -- x'
}

@test "die-with-parent ends the session when the caller goes" {
	bash -c '"$CARREL" run --die-with-parent -- sh -c "touch ready; sleep 1000" & while [ ! -e ready ]; do sleep 0.02; done; kill -KILL $$' \
		3>&- >/dev/null 2>&1 || true
	await_nothing_left
}

@test "carrel as pid 1 of a pid namespace: reaps, forwards, ends" {
	need unshare
	if is_root; then
		run --separate-stderr unshare --pid --fork --kill-child --mount-proc \
			"$CARREL" run -- sh -c 'sleep 1000 & exit 6'
	else
		run --separate-stderr unshare --user --map-current-user --keep-caps --pid --fork \
			--kill-child --mount-proc "$CARREL" run -- sh -c 'sleep 1000 & exit 6'
	fi
	assert_status 6
	assert_nothing_left
}

@test "started from cron: no environment but a few words, no terminal" {
	run --separate-stderr env -i HOME="$HOME" LOGNAME="$(id -un)" PATH=/usr/bin:/bin SHELL=/bin/sh \
		TMPDIR="$BASE" setsid --wait "$CARREL" run -- sh -c 'echo "$TERM-$HOME"; tty'
	assert_output "-$HOME"$'\nnot a tty'
}
