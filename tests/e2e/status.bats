#!/usr/bin/env bats
# The exit status is the command's own; 124, 125, 126, 127 and 128+N mean what carrel(1) says, and the report agrees.
# ctest: as=user cost=25
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

# missing ARGUMENT...: status 127, which `run` takes for a mistake of ours where it is not told.
missing() {
	run -127 --separate-stderr "$CARREL" run "$@"
}

@test "statuses of the command are carrel's: 0 1 2 42 124 125 126 127 128 255" {
	for n in 0 1 2 42 124 125 126 128 255; do
		reported -- sh -c "exit $n"
		assert_status "$n"
		assert_field "$R" .status "$n"
		assert_field "$R" .exit_status "$n"
		assert_field "$R" .started yes
		assert_field "$R" .timed_out false
		[[ -z $stderr ]] || fail "a message for status $n"
	done
	missing --report "$R" -- sh -c 'exit 127'
	assert_field "$R" .status 127
	assert_field "$R" .started yes
	[[ -z $stderr ]]
}

@test "a command that a signal ends is 128+N, and the report names the signal" {
	for pair in 1:HUP 2:INT 3:QUIT 6:ABRT 9:KILL 11:SEGV 13:PIPE 15:TERM; do
		reported -- sh -c "kill -${pair%:*} \$\$"
		assert_status $((128 + ${pair%:*}))
		assert_field "$R" .signal.number "${pair%:*}"
		assert_field "$R" .signal.name "SIG${pair#*:}"
		assert_field "$R" .started yes
		jq -e '.status == null' "$R" >/dev/null
	done
}

@test "a real-time signal is 128+N too" {
	reported -- bash -c 'kill -40 $$'
	assert_status 168
	assert_field "$R" .signal.number 40
}

@test "a command that is not there: 127, not started, one line that names it" {
	for name in no-such-command-anywhere /no/such/file ./nothing ''; do
		missing --report "$R" -- "$name"
		keep_report "$R"
		assert_output ''
		assert_field "$R" .started no
		assert_field "$R" .error.code exec
		assert_field "$R" .error.errno_name ENOENT
		(($(grep -vc '^carrel: hint: ' <<<"$stderr") == 1))
		[[ $stderr == carrel:*"$name"* ]] || fail "not named: $name"
	done
}

@test "a name that PATH does not lead to: the hint says what PATH is inside" {
	PATH=/usr/bin:/bin missing -- no-such-command-anywhere
	assert_matches "$stderr" 'hint: PATH inside is /usr/bin:/bin'
	cp /bin/true "$WS/mine"
	PATH=/usr/bin:/bin carrel run -- mine
	assert_status 127
	assert_matches "$stderr" 'hint: the file in the current directory is ./mine'
}

@test "a command that is only outside: the hint says where, and is right" {
	mkdir "$T/bin"
	printf '#!/bin/sh\necho ran\n' >"$T/bin/no-such-command-inside"
	chmod +x "$T/bin/no-such-command-inside"
	PATH=/usr/bin:$T/bin:/bin missing -- no-such-command-inside
	assert_matches "$stderr" "hint: it is in $T/bin, which is not shown: .--read $T/bin"
	PATH=/usr/bin:$T/bin:/bin carrel run --read "$T/bin" -- no-such-command-inside
	assert_output ran
}

@test "a path that is only outside: the hint is right for it, too" {
	local name

	mkdir "$T/elsewhere"
	printf '#!/bin/sh\necho found\n' >"$T/elsewhere/prog"
	chmod 755 "$T/elsewhere" "$T/elsewhere/prog"
	for name in "$T/elsewhere/prog" ../elsewhere/prog; do
		carrel run -- "$name"
		assert_status 127
		assert_matches "$stderr" "hint: /tmp and /var/tmp inside are the session's own: .--read $T/elsewhere/prog."
		carrel run --read "$T/elsewhere/prog" -- "$name"
		assert_output found
	done
	carrel run -- /nowhere/at/all
	assert_status 127
	refute_matches "$stderr" 'hint'
}

@test "a file that cannot be executed: 126, not started" {
	echo 'echo ran' >"$WS/plain"
	mkdir "$WS/dir"
	printf '#!/no/such/interpreter\n' >"$WS/orphan"
	chmod +x "$WS/orphan"
	printf '\177ELF garbage' >"$WS/broken"
	chmod +x "$WS/broken"
	for file in ./plain ./dir "$WS/plain"; do
		reported -- "$file"
		assert_status 126
		assert_output ''
		assert_field "$R" .started no
		assert_field "$R" .error.errno_name EACCES
	done
	missing -- ./orphan # as in a shell: the interpreter is what is missing
	assert_matches "$stderr" "cannot find the command's interpreter inside: \./orphan"
	assert_matches "$stderr" 'hint: it is there'
	mkdir "$WS/bin"
	mv orphan "$WS/bin"
	PATH=$WS/bin:$PATH missing -- orphan
	assert_matches "$stderr" "cannot find the command's interpreter inside: orphan"
}

@test "a script without an interpreter line runs, as in a shell" {
	printf 'echo "ran $1"\n' >"$WS/bare"
	chmod +x "$WS/bare"
	carrel run -- ./bare now
	assert_status 0
	assert_output 'ran now'
}

@test "a command name is searched in PATH, and never in the workspace by an empty element" {
	printf '#!/bin/sh\necho hijacked\n' >"$WS/only-here"
	chmod +x "$WS/only-here"
	PATH=:/usr/bin::/bin: missing -- only-here
	mkdir "$T/bin"
	printf '#!/bin/sh\necho found\n' >"$T/bin/only-here"
	chmod +x "$T/bin/only-here"
	PATH=/nowhere:$T/bin:/usr/bin:/bin carrel run --read "$T/bin" -- only-here
	assert_status 0
	assert_output found
}

@test "a time-out is 124, whatever the command makes of TERM" {
	reported --timeout 300ms -- sleep 1000
	assert_status 124
	assert_field "$R" .timed_out true
	assert_field "$R" .limit timeout
	assert_field "$R" .signal.name SIGTERM
	its_trap_is_set() {
		carrel run --report "$R" --timeout "$TIME" --grace 1000s -- sh -c 'trap "exit 3" TERM; while :; do sleep 0.05; done'
		jq -e '.signal == null' "$R" >/dev/null
	}
	given_time its_trap_is_set
	assert_status 124
	keep_report "$R"
	assert_field "$R" .status 3
}

@test "a command that ends before its time-out is not timed out" {
	reported --timeout 60s -- true
	assert_status 0
	assert_field "$R" .timed_out false
}

@test "carrel's own failure is 125 and the command did not run" {
	reported --workspace /no/such/place -- touch "$WS/ran"
	assert_status 125
	assert_field "$R" .started no
	assert_field "$R" .error.code workspace
	[[ ! -e $WS/ran ]]
}

@test "the limits end the command and the report says which one it was" {
	reported --file-size 4096 -- sh -c 'head -c 100000 /dev/zero >big; :' # the shell survives
	assert_status 0
	reported --file-size 4096 -- head -c 100000 /dev/zero # through a pipe: no file
	assert_status 0
	reported --file-size 4096 -- sh -c 'exec >big; exec head -c 100000 /dev/zero'
	assert_status 153
	assert_field "$R" .limit file-size
	assert_field "$R" .signal.name SIGXFSZ
	reported --file-size 4096 -- sh -c 'head -c 100000 /dev/zero >big' # the shell tells
	assert_status 153
	assert_field "$R" .limit file-size
	assert_field "$R" .status 153
	# shellcheck disable=SC2016
	reported --cpu-time 1h -- sh -c 'sh -c "kill -XCPU \$\$"; exit $?'
	assert_field "$R" .limit cpu-time
	assert_field "$R" .status 152
	for n in 152 153; do # no limit was given, or the other one
		reported -- sh -c "exit $n"
		assert_status $n
		jq -e '.limit == null' "$R" >/dev/null
	done
	reported --cpu-time 1h -- sh -c 'exit 153'
	jq -e '.limit == null' "$R" >/dev/null
	reported --file-size 1M -- sh -c 'exit 152'
	jq -e '.limit == null' "$R" >/dev/null
	reported --cpu-time 1s -- sh -c 'while :; do :; done'
	assert_field "$R" .limit cpu-time
	[[ $status == 152 || $status == 137 ]] || fail 'no signal of the CPU limit'
	carrel run --open-files 20 -- sh -c 'ulimit -n; ulimit -Hn'
	assert_output $'20\n20'
	carrel run --open-files 16 --tty yes -- sh -c 'ulimit -n' # the least
	assert_matches "$output" '^16'
	carrel run --open-files 16 -- bash -c 'ulimit -n | cat'
	assert_output 16
}

@test "carrel is silent where all goes well, and passes stdout and stderr apart" {
	carrel run -- sh -c 'echo out; echo err >&2'
	assert_status 0
	assert_output out
	[[ $stderr == err ]]
}
