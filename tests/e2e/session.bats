#!/usr/bin/env bats
# Live sessions: start, list, show, end; exec and shell in them; and what is left when one of the processes dies.
# ctest: cost=45 once
load ../lib/common
load ../lib/session
load ../lib/live

at_terminal() {
	local steps=$1

	shift
	run --separate-stderr /usr/bin/python3 "$CARREL_SOURCE/tests/lib/terminal.py" "$@" <<<"$steps"
	[[ $status != 99 && $stderr != *Traceback* ]] || fail 'a step failed'
}

# sleepers N: so many of the test's processes are `sleep 1000`.
sleepers() {
	local pid count=0

	for pid in $(marked); do
		[[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == 'sleep 1000 ' ]] && ((count += 1))
	done
	((count == $1))
}

# --- start, list, show, end -------------------------------------------------------------------

@test "start says where the session is, and stays behind" {
	carrel session start
	assert_status 0
	[[ -z $stderr ]]
	assert_matches "$output" '^session [a-z2-7]{20}'$'\n''scratch .*/scratch'$'\n''tool-results .*/tool-results'$'\n''workspace .*/ws$'
	ID=$(sed -n 's/^session //p' <<<"$output")
	[[ -d $(sed -n 's/^scratch //p' <<<"$output") ]]
	end_session
	[[ -z $stderr ]]
	assert_nothing_left
	[[ -z $(ls -A "$T/run/carrel") ]] || fail 'an entry of the state directory is left'
}

@test "start: a workspace of any name is one line" {
	local odd=$'odd\n\e[31mname'
	mkdir "$WS/$odd"
	run -0 "$CARREL" session start --workspace "$WS/$odd" 3>&- 4>&-
	assert_matches "${lines[3]}" 'workspace .*/odd\\x0a\\x1b\[31mname'
	local id=${lines[0]#session }
	carrel session show "$id"
	assert_matches "$output" 'workspace +.*/odd\\x0a\\x1b\[31mname'
	carrel session end "$id"
	assert_status 0
}

@test "start --json; list and show, for people and as JSON" {
	begin
	[[ $(jq -r .workspace "$T/begun") == "$WS" && -d $(jq -r .scratch "$T/begun") ]]
	[[ $(stat -c %a "$T/run/carrel") == 700 && $(stat -c %a "$T/run/carrel/$ID") == 600 ]]
	local first=$ID
	begin
	carrel session list
	(($(wc -l <<<"$output") == 2))
	assert_matches "$output" "(^|"$'\n'")$first +live "
	carrel session list --json
	[[ $(jq -r '[.[].session] | sort | join(" ")' <<<"$output") == "$(printf '%s\n' "$first" "$ID" | sort | paste -sd' ')" ]]
	exec_in_background -- sh -c 'touch ready; exec sleep 1000'
	wait_for test -e "$WS/ready"
	carrel session show --json
	[[ $(jq -r '.executions | length' <<<"$output") == 1 ]]
	[[ $(jq -r '.executions[0].state' <<<"$output") == running ]]
	carrel session show "$ID"
	assert_matches "$output" 'running .*sh -c touch ready'
	carrel session show "$first"
	refute_matches "$output" 'running .*sh -c'
	carrel session end "$first"
	assert_status 0
	carrel session end "$ID"
	assert_status 0
	wait "$EXEC" && fail 'an execution survived its session'
	assert_matches "$(<"$T/err")" 'session ended|^$'
}

@test "end --json: one object with what there is to say" {
	begin
	carrel session end --json
	assert_status 0
	[[ -z $stderr && $(jq -c . <<<"$output") == "{\"session\":\"$ID\",\"messages\":[]}" ]]
	begin
	inside -- touch .envrc # protected while it is absent
	carrel session end --json
	assert_status 0
	[[ -z $stderr && $(jq -r .session <<<"$output") == "$ID" ]]
	assert_matches "$(jq -r '.messages | join("\n")' <<<"$output")" '\.envrc'
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "start takes settings, and no command" {
	carrel session start -- true
	assert_refused 'takes no command'
	carrel session start --no-such-thing
	assert_refused 'no-such-thing'
	carrel session start --die-with 0x
	assert_refused 'number of a process'
	carrel session start --workspace "$T/nowhere"
	assert_refused 'nowhere'
	begin --workspace-mode ro --env COLOUR=blue
	# shellcheck disable=SC2016
	inside -- sh -c 'echo $COLOUR; touch x'
	assert_output blue
	assert_matches "$stderr" 'Read-only'
	end_session
}

@test "--foreground stays in front; a signal ends it, and all in it" {
	"$CARREL" session start --foreground --json >"$T/begun" 2>"$T/begin.err" </dev/null 3>&- 4>&- &
	local front=$!
	wait_for jq -e .session "$T/begun"
	ID=$(jq -r .session "$T/begun")
	[[ $(jq -r .pid "$T/begun") == "$front" ]]
	inside -s "$ID" --detach --name one -- sleep 1000
	assert_status 0
	kill -TERM "$front"
	wait "$front" || fail "status $?"
	assert_nothing_left
}

@test "--die-with: ends with that process" {
	sleep 1000 3>&- 4>&- &
	local other=$!
	begin --die-with "$other"
	inside -- true
	assert_status 0
	kill "$other"
	wait_for gone "$SUPERVISOR"
	await_nothing_left
}

@test "idle-timeout and lifetime" {
	begin --idle-timeout 300ms
	wait_for gone "$SUPERVISOR"
	assert_nothing_left
	lives_while_in_use() {
		begin --idle-timeout "$TIME" && inside -- sleep "$((TIME + 1))" && [[ $status == 0 ]]
	}
	given_time lives_while_in_use
	wait_for gone "$SUPERVISOR"
	begin --lifetime 500ms --grace 100ms
	inside -- sleep 1000
	((status != 0))
	wait_for gone "$SUPERVISOR"
	await_nothing_left
}

@test "an id: a prefix is enough, if it is one session's; CARREL_SESSION; unknown and ambiguous ones" {
	begin
	inside -s "${ID:0:8}" -- echo one
	assert_output one
	inside -s "carrel-$ID" -- echo two
	assert_output two
	inside -- echo three
	assert_output three
	CARREL_SESSION='' inside -- true
	assert_status 125
	assert_matches "$stderr" 'no session is named'
	inside -s aaaaaaaaaaaaaaaaaaaa -- true
	assert_status 125
	assert_matches "$stderr" 'no such live session'
	# Without a session of that beginning, and with more than one: 33 have two of the same letter.
	local i letter
	for i in {1..33}; do
		letter=$(printf '%s' abcdefghijklmnopqrstuvwxyz234567a | cut -c "$i")
		ln -s "$BASE" "$T/run/carrel/${letter}$(printf '%019d' 0 | tr 0 "$( ((i == 33)) && echo b || echo a)").dir"
		: >"$T/run/carrel/${letter}$(printf '%019d' 0 | tr 0 "$( ((i == 33)) && echo b || echo a)")"
	done
	inside -s "${ID:0:1}" -- true
	assert_status 125
	assert_matches "$stderr" 'more than one'
	rm "$T/run/carrel/"?aaaaaaaaaaaaaaaaaaa* "$T/run/carrel/"abbbbbbbbbbbbbbbbbbb*
	end_session
	inside -s "$ID" -- true
	assert_status 125
	assert_matches "$stderr" 'no such live session'
}

@test "session and exec refuse what they do not know" {
	local arguments
	for arguments in 'session' 'session begin' 'session list x' 'session show -s a b' 'exec --nothing' \
		'exec -s' 'exec --' 'exec --tty maybe -- x' 'exec --timeout x -- x' 'exec --name x -- true' \
		'session end --json=x' 'session list -s x' 'exec --cwd= -- true' 'exec --detach --tty yes -- true' \
		'exec --detach --output-budget 10 -- true' 'exec --detach --output-max 1M -- true' \
		'exec --detach --merge-output -- true' 'exec --stop x y' 'exec --stop x --timeout 1s' \
		'exec --timeout 1000000d -- true' 'exec --output-budget 16777217 -- true' 'shell true' 'shell -- true' \
		'shell --net none true' 'shell -s x true' 'shell --no-such x'; do
		# shellcheck disable=SC2086
		carrel $arguments
		assert_refused
	done
	# What the whole session has, and what one execution can have.
	for arguments in --hide --hide=x --profile; do
		carrel exec "$arguments" x -- true
		assert_refused "setting of the whole session: $arguments"$'\n''carrel: hint: .*session start`; .*: workspace-mode, cwd, env, .*, quiet$'
	done
	carrel read --net none x
	assert_refused 'hint: .*session start`$'
	# Values and variables: what `run` refuses, in the same words.
	local -a values=(--timeout=0 --timeout=99999999999999999999d --grace=-1 --cpu-time=x --file-size=12x --open-files=0
		--memory=0 --pids=1.5 --cpus=0.001 --output-budget=-1 --output-max=0 --env= --env==x '--env=A B=1' --env=PWD=/x
		--env=CARREL_SESSION=x)
	local value said
	for value in "${values[@]}"; do
		carrel run "$value" -- true
		assert_refused
		said=$stderr
		carrel exec "$value" -- true
		assert_refused
		[[ $stderr == "$said" ]] || fail "run says of $value: $said"
	done
	carrel exec '--env=A*' -- true # a pattern, which only a policy can have
	assert_refused 'not the name of a variable'
	carrel exec --lock net -- true # a word of policy files
	assert_refused 'unknown option: --lock'
	carrel exec --tmeout 1s -- true
	assert_refused 'did you mean --timeout'
	carrel session --help
	assert_status 0
	carrel exec --help
	assert_status 0
	carrel session start --help
	assert_status 0
}

# --- exec -------------------------------------------------------------------------------------

@test "status: the command's, 128+n, 124, 126, 127" {
	begin
	inside -- true
	assert_status 0
	inside -- false
	assert_status 1
	inside -- sh -c 'exit 42'
	assert_status 42
	inside -- no-such-command
	assert_status 127
	assert_matches "$stderr" 'cannot find the command inside'
	inside -- "$WS"
	assert_status 126
	# shellcheck disable=SC2016
	inside -- sh -c 'kill -KILL $$'
	assert_status 137
	# shellcheck disable=SC2016
	inside -- sh -c 'kill -TERM $$'
	assert_status 143
	ends_soon inside --timeout 200ms -- sleep 1000
	assert_status 124
	ends_soon inside --timeout 200ms --grace 200ms -- sh -c 'trap "" TERM; sleep 1000; sleep 1000'
	assert_status 124
	end_session
}

@test "a command that is only outside: the hint says where, and is right" {
	mkdir "$T/bin"
	printf '#!/bin/sh\necho ran\n' >"$T/bin/no-such-command-inside"
	chmod +x "$T/bin/no-such-command-inside"
	PATH=/usr/bin:$T/bin:/bin begin
	inside -- no-such-command-inside
	assert_status 127
	assert_matches "$stderr" "hint: it is in $T/bin, which is not shown: .carrel session start --read $T/bin"
	# PATH is the session's, and not the client's, or the execution's own.
	inside --env PATH=/usr/bin:/bin -- no-such-command-inside
	assert_status 127
	assert_matches "$stderr" 'hint: PATH inside is /usr/bin:/bin$'
	inside -- "$T/bin/no-such-command-inside"
	assert_status 127
	assert_matches "$stderr" "hint: .*--read $T/bin/no-such-command-inside"
	end_session
	PATH=/usr/bin:/bin begin --read "$T/bin"
	inside -- no-such-command-inside
	assert_status 127
	assert_matches "$stderr" 'hint: PATH inside is /usr/bin:/bin$'
	inside --env "PATH=$T/bin:/usr/bin:/bin" -- no-such-command-inside
	assert_output ran
	end_session
}

@test "an execution is scheduled as the session's starter is" {
	cp "$CARREL_SOURCE/tests/lib/scheduling.py" "$WS/"
	begin
	inside -- /usr/bin/python3 scheduling.py
	assert_output "$(/usr/bin/python3 "$WS/scheduling.py")"
	end_session
}

@test "a umask that takes the owner's rights is the command's, not the session's" {
	(umask 0777 && "$CARREL" session start --json </dev/null 3>&- 4>&-) >"$T/session.json"
	ID=$(jq -r .session "$T/session.json")
	(umask 0777 && "$CARREL" exec -s "$ID" -- sh -c 'umask; cd "$CARREL_SCRATCH" && ls -A') >"$T/out"
	[[ $(<"$T/out") == $'0777\ntmp' ]] || fail "$(<"$T/out")"
	end_session
}

@test "--cwd, --env, umask, and the session's own variables" {
	begin
	mkdir "$WS/sub"
	inside --cwd "$WS/sub" -- pwd
	assert_output "$WS/sub"
	inside --cwd sub -- pwd
	assert_output "$WS/sub"
	inside --cwd /no/such/place -- true
	assert_status 125
	assert_matches "$stderr" 'working directory inside: /no/such/place:'
	# shellcheck disable=SC2016
	A=one inside --env A --env B=two --env NONE --env PATH=/nowhere:/usr/bin:/bin -- sh -c 'echo $A $B ${NONE-unset} $PATH'
	assert_output 'one two unset /nowhere:/usr/bin:/bin'
	# shellcheck disable=SC2016
	inside -- sh -c 'echo ${A-unset} $CARREL_SESSION'
	assert_output "unset $ID"
	# The variable follows the directory, as in `run`.
	inside --cwd /usr -- printenv PWD
	assert_output /usr
	inside -- printenv PWD
	assert_output "$WS"
	inside --cwd "/$(printf 'x/%.0s' {1..2500})" -- true
	assert_status 125
	assert_matches "$stderr" 'name too long'
	# Of one that is given twice the later counts; what the session sets anyway is passed over.
	inside --cwd / --cwd /usr --env A=1 --env A=2 -- sh -c 'pwd; env | grep ^A='
	assert_output $'/usr\nA=2'
	inside --env PWD --cwd /usr --env PWD=/usr --env "CARREL_SESSION=$ID" -- pwd
	assert_output /usr
	assert_matches "$stderr" 'is ignored, carrel sets this variable itself: CARREL_SESSION='
	inside --quiet --env CARREL_SCRATCH -- true
	[[ -z $stderr ]] || fail "$stderr"
	inside --env PWD=/elsewhere -- true
	assert_status 125
	assert_matches "$stderr" "'PWD' is carrel's own"
	# shellcheck disable=SC2016
	inside -c 'echo "$0"; exit 4' zero
	assert_status 4
	assert_output zero
	inside -c
	assert_status 125
	assert_matches "$stderr" 'value is missing: -c'
	inside --quiet yes -- true
	assert_status 125
	assert_matches "$stderr" 'would be the command.*: yes'
	umask 027
	inside -- sh -c umask
	assert_matches "$output" '0?027'
	end_session
}

# ended_by LIMIT ARGUMENT...: what the report of an execution says.
ended_by() {
	inside --report "$T/r.json" "${@:2}"
	keep_report "$T/r.json"
	assert_field "$T/r.json" '.limit // "none"' "$1"
}

@test "limits of one execution: cpu-time, file-size, open-files; never more than the session's" {
	local name

	begin --open-files 200 --timeout 100s
	ends_soon inside --cpu-time 1s -- sh -c 'while :; do :; done'
	((status == 152 || status == 137)) || fail 'not ended by its processor time'
	inside --file-size 1M -- sh -c 'head -c 2000000 /dev/zero >big'
	((status == 153)) || fail 'not ended by the size of its file'
	(($(stat -c %s "$WS/big") == 1048576))
	rm "$WS/big"
	ended_by file-size --file-size 1M -- sh -c 'head -c 2000000 /dev/zero >big'
	ended_by file-size --file-size 1M -- sh -c 'exec >big; exec head -c 2000000 /dev/zero'
	ended_by cpu-time --cpu-time 1h -- sh -c 'exit 152' # as a shell tells it
	ended_by none --cpu-time 1h -- sh -c 'exit 153'
	ended_by none -- sh -c 'exit 153'
	# shellcheck disable=SC2016
	ended_by none -- sh -c 'kill -XFSZ $$'
	inside --open-files 50 -- sh -c 'ulimit -n'
	assert_output 50
	inside -- sh -c 'ulimit -n'
	assert_output 200
	inside --open-files 300 -- true
	assert_status 125
	assert_matches "$stderr" 'tighten.*not loosen.*open-files'
	inside --timeout 200s -- true
	assert_status 125
	end_session
	begin --open-files 16 --net host # the least, for as many executions as are wanted
	for name in a b c d e f g h i j; do
		inside --detach --name "$name" -- sleep 1000
		assert_status 0
	done
	inside --workspace-mode ro --net none -- sh -c 'ulimit -n'
	assert_output 16
	inside --open-files 4 --tty yes -- /bin/sh -c 'ulimit -n'
	assert_matches "$output" '^4'
	end_session
	begin --file-size 1M
	ended_by file-size -- sh -c 'head -c 2000000 /dev/zero >big' # the session's own
	end_session
}

@test "--workspace-mode ro and --net none: tighter, and never looser" {
	begin
	inside --workspace-mode ro -- touch x
	((status != 0))
	[[ ! -e $WS/x ]]
	inside -- touch x
	assert_status 0
	inside --net none -- true
	assert_status 0
	inside --workspace-mode direct -- true
	assert_status 125
	inside --net host -- true
	assert_status 125
	end_session
}

@test "standard input: a file, a pipe, closed; output to files and pipes" {
	begin
	echo from-file >"$T/in"
	"$CARREL" exec -- cat <"$T/in" >"$T/got" 3>&- 4>&-
	[[ $(<"$T/got") == from-file ]]
	echo from-pipe | "$CARREL" exec -- cat 3>&- 4>&- | cat >"$T/got"
	[[ $(<"$T/got") == from-pipe ]]
	"$CARREL" exec -- cat <&- >"$T/got" 3>&- 4>&-
	[[ ! -s $T/got ]]
	"$CARREL" exec -- sh -c 'echo kept' >>"$T/got" 2>&- 3>&- 4>&-
	[[ $(<"$T/got") == kept ]]
	"$CARREL" exec -- seq 1 200000 </dev/null 3>&- 4>&- | md5sum >"$T/got"
	[[ $(<"$T/got") == "$(seq 1 200000 | md5sum)" ]]
	end_session
}

@test "executions share the scratch and /tmp, and run beside one another" {
	begin
	inside -- sh -c 'echo here >/tmp/a'
	inside -- cat /tmp/a
	assert_output here
	mkfifo "$WS/a" "$WS/b"
	exec_in_background -- sh -c 'cat a; echo back >b'
	# shellcheck disable=SC2094
	inside -- sh -c 'echo there >a; cat b'
	assert_output back
	wait "$EXEC"
	[[ $(<"$T/out") == there ]]
	end_session
}

# --- what an execution leaves -----------------------------------------------------------------

@test "what an execution leaves is dead at its end, another's is not" {
	begin
	exec_in_background -- sh -c 'sleep 1000 & touch ready; wait'
	wait_for test -e "$WS/ready"
	wait_for sleepers 1
	inside -- sh -c 'sleep 1000 & exit 4'
	assert_status 4
	sleepers 1
	inside -- setsid -f sleep 1000
	sleepers 1
	inside -- sh -c 'setsid sh -c "(setsid sleep 1000 &) ; touch forked; sleep 1000" >/dev/null 2>&1 & while [ ! -e forked ]; do sleep 0.02; done'
	sleepers 1
	# shellcheck disable=SC2016
	inside -- sh -c 'i=0; while [ $i -lt 60 ]; do setsid -f sleep 1000; i=$((i+1)); done'
	sleepers 1
	kill -0 "$EXEC"
	kill -TERM "$EXEC"
	wait "$EXEC" || true
	wait_for sleepers 0
	end_session
}

@test "a service lives on, is listed, and is stopped by name or number" {
	begin
	inside --detach --name web -- sleep 1000
	assert_status 0
	local number=$output
	inside --detach -- sh -c 'sleep 1000 & wait'
	local second=$output
	[[ $number =~ ^[0-9]+$ && $second =~ ^[0-9]+$ ]]
	wait_for sleepers 2
	carrel session show
	assert_matches "$output" 'web \(service\) '
	# shellcheck disable=SC2016
	inside --detach --name word -- sh -c 'sleep 1000; : "$1"' wörd $'a\tb' $'\xff'
	carrel session show
	assert_matches "$output" 'word \(service\) sh -c .* wörd a\\x09b \\xff$'
	[[ $("$CARREL" session show --json | jq -r '.executions[] | select(.name == "word").command') == *' wörd a\x09b \xff' ]]
	inside --stop word
	assert_status 0
	inside --detach --name web -- true
	assert_status 125
	assert_matches "$stderr" 'of that name already'
	inside --detach --name 12 -- true
	assert_status 125
	assert_matches "$stderr" 'is not a number'
	inside --stop web
	assert_status 0
	sleepers 1
	inside --stop "$second"
	assert_status 0
	sleepers 0
	inside --stop web
	assert_status 125
	assert_matches "$stderr" 'no such service'
	inside --detach --name web -- sleep 1000 # the name is free again
	assert_status 0
	end_session
	assert_nothing_left
}

@test "a service that cannot be executed is no service, and is said to be none" {
	begin
	inside --detach --name web -- no-such-command-inside
	assert_status 127
	[[ -z $output ]] || fail 'it has a number'
	assert_matches "$stderr" 'cannot find the command inside: no-such-command-inside'
	echo text >"$WS/text"
	inside --detach --name web --report "$T/r.json" -- "$WS/text"
	assert_status 126
	assert_field "$T/r.json" .started no
	inside --detach --name web --cwd /no/such/place -- true
	assert_status 125
	[[ $("$CARREL" session show --json | jq '.executions | length') == 0 ]]
	# The same, and it can.
	inside --detach --name web --report "$T/r.json" -- sleep 1000
	assert_status 0
	assert_field "$T/r.json" .started yes
	keep_report "$T/r.json"
	end_session
	assert_nothing_left
}

@test "a service in a session with an output budget has a log, and no output that is cut" {
	begin --output-budget 100 --output-max 1M
	inside --detach --name web -- sh -c 'seq 1000; echo done >"$CARREL_SCRATCH/said"; exec sleep 1000'
	assert_status 0
	assert_output 1
	[[ -z $stderr ]]
	wait_for test -s "$DIR/scratch/said"
	[[ $(ls -A "$DIR/tool-results") == service-1.log ]]
	[[ $("$CARREL" session logs web | wc -l) == 1000 ]]
	inside --stop web
	assert_status 0
	end_session
}

@test "a service that ends by itself is gone from the list" {
	begin
	inside --detach --name short -- sh -c 'read x <go'
	mkfifo "$WS/go" 2>/dev/null || true
	inside --detach --name quick -- true
	empty() { [[ $("$CARREL" session show --json | jq '[.executions[] | select(.name == "quick")] | length') == 0 ]]; }
	wait_for empty
	carrel session show
	assert_matches "$output" '2 +exit 0 +[0-9ms]+ +quick \(service, ended\) true'
	end_session
}

@test "relative paths, in a working directory far down, without a name, and gone" {
	local name

	name=$(printf 'x%.0s' {1..200})
	begin
	while ((${#PWD} < 2500)); do
		mkdir "$name"
		cd "$name"
	done
	echo text >file
	carrel read file
	assert_output text
	carrel why -s "$ID" ./file
	assert_matches "$output" 'seen     writable'
	inside --cwd . -- cat file
	assert_output text
	# Longer than the kernel says it: without a name, but not gone.
	while ((${#PWD} < 4200)); do
		mkdir "$name"
		cd "$name"
	done
	carrel read file
	assert_status 125
	assert_matches "$stderr" 'the working directory cannot be named, .*: file: File ?name too long'
	inside --cwd . -- true
	assert_status 125
	assert_matches "$stderr" 'cannot be named'
	mkdir "$WS/gone"
	cd "$WS/gone"
	rmdir "$WS/gone"
	carrel read file
	assert_status 125
	assert_matches "$stderr" 'the working directory no longer exists, .*: file$'
	cd "$WS"
	end_session
}

# --- signals and terminals --------------------------------------------------------------------

@test "signals to the client reach the command; its end is the client's" {
	begin
	local name number
	for name in TERM:143 INT:130 HUP:129 USR1:138; do
		number=${name#*:}
		rm -f "$WS/ready"
		start exec -s "$ID" -- sh -c 'touch ready; exec sleep 1000'
		wait_for test -e "$WS/ready"
		signal "${name%:*}"
		finish
		assert_status "$number"
	done
	end_session
}

@test "exec at a terminal: Ctrl-C, Ctrl-Z, the modes, the size" {
	begin
	at_terminal '
		expect 33 101
		expect ready
		send \x03
		wait
		same' --size 33x101 "$CARREL" exec -s "$ID" -- sh -c 'stty size; tty; echo ready; exec sleep 1000'
	assert_status 130
	wait_for sleepers 0
	PS1='prompt> ' at_terminal 'expect prompt>
		modes
		send "$CARREL" exec -- sh -c '"'"'echo rea""dy; read x; echo "got $x"'"'"'\r
		expect ready
		send \x1a
		expect Stopped
		expect prompt>
		send fg\r
		send hello\r
		expect got hello
		expect prompt>
		send exit\r
		wait' bash --norc --noprofile -i
	at_terminal '' "$CARREL" exec -s "$ID" --tty no -- sh -c '(: </dev/tty) 2>/dev/null || echo none'
	assert_matches "$output" none
	end_session
}

@test "a terminal that goes away ends the execution, not the session" {
	begin
	at_terminal 'expect ready
		hangup
		wait' "$CARREL" exec -s "$ID" -- sh -c 'echo ready; exec sleep 1000'
	wait_for sleepers 0
	inside -- true
	assert_status 0
	end_session
}

@test "carrel shell: in a session of its own, and in a live one" {
	local prompt='$ ' # /etc/profile decides it
	is_root && prompt='# '
	export SHELL=/bin/sh
	at_terminal "expect $prompt
		send echo in-\$((40+2)); exit 6\\r
		expect in-42
		wait" "$CARREL" shell
	assert_status 6
	assert_nothing_left
	begin
	at_terminal "expect $prompt
		send echo \$CARREL_SESSION; exit 7\\r
		wait" "$CARREL" shell -s "$ID"
	assert_status 7
	assert_matches "$output" "$ID"
	end_session
}

# --- death ------------------------------------------------------------------------------------

@test "SIGKILL of a client ends its execution, and no other" {
	begin
	exec_in_background -- sh -c 'setsid -f sleep 1000; touch ready; exec sleep 1000'
	local victim=$EXEC
	wait_for test -e "$WS/ready"
	"$CARREL" exec -- sh -c 'touch other; exec sleep 1000' </dev/null >"$T/o" 2>&1 3>&- 4>&- &
	local other=$!
	wait_for test -e "$WS/other"
	wait_for sleepers 3
	kill -KILL "$victim"
	wait "$victim" || true
	wait_for sleepers 1
	kill -0 "$other"
	inside -- echo still
	assert_output still
	kill "$other"
	wait "$other" || true
	end_session
}

@test "SIGKILL of the supervisor: everything inside dies, and gc removes what is left" {
	begin
	inside --detach -- sh -c 'setsid -f sleep 1000; exec sleep 1000'
	exec_in_background -- sh -c 'touch ready; exec sleep 1000'
	wait_for test -e "$WS/ready"
	kill -KILL "$SUPERVISOR"
	local status=0
	wait "$EXEC" || status=$?
	((status == 125)) || fail "the client ended with $status"
	wait_for sleepers 0
	inside -- true
	assert_status 125
	assert_matches "$stderr" 'does not answer'
	assert_matches "$stderr" 'carrel gc'
	carrel session list
	assert_status 0
	assert_output ''
	carrel gc --dry-run
	assert_matches "$output" "would remove carrel-$ID"
	[[ -S $T/run/carrel/$ID && -d $DIR ]]
	TMPDIR=$WS carrel gc # the base is the state directory's to know
	assert_status 0
	assert_matches "$output" "removed carrel-$ID"
	[[ ! -e $T/run/carrel/$ID && ! -L $T/run/carrel/$ID.dir && ! -e $DIR ]] || fail "gc left something"
	assert_nothing_left
}

@test "a monitor does one execution after the other, and nothing of one is left for the next" {
	begin
	local monitor
	# The parent of the command is its monitor.
	# shellcheck disable=SC2016
	inside -- sh -c 'echo $PPID'
	monitor=$output
	# shellcheck disable=SC2016
	inside --cwd / --env LEFT=over --file-size 1M --open-files 20 --timeout 100s -- \
		sh -c 'umask 0; sleep 1000 & echo $PPID $LEFT $PWD $(ulimit -n)'
	assert_output "$monitor over / 20"
	# shellcheck disable=SC2016
	inside -- sh -c 'ulimit -n 50; echo $PPID ${LEFT-gone} $PWD $(ulimit -f)'
	assert_output "$monitor gone $WS unlimited"
	# shellcheck disable=SC2016
	inside -- sh -c 'test $(ulimit -n) -gt 50; echo $? $(umask); ls /proc/self/fd'
	assert_output "0 $(umask)"$'\n'"$(printf '%s\n' 0 1 2 3)"
	# One that was started beside others is another's.
	exec_in_background -- sleep 1000
	wait_for sleepers 1
	# shellcheck disable=SC2016
	inside -- sh -c 'echo $PPID'
	[[ $output != "$monitor" ]] || fail "two executions have one monitor"
	kill -KILL "$EXEC"
	wait_for sleepers 0
	end_session
	assert_nothing_left
}

@test "a tool that kills or stops its monitor: the execution ends, the session goes on" {
	begin
	# The parent of the command is its monitor.
	# shellcheck disable=SC2016
	ends_soon inside -- sh -c 'setsid -f sleep 1000; kill -KILL $PPID; exec sleep 1000'
	assert_status 125
	assert_matches "$stderr" 'not known|ended'
	wait_for sleepers 0
	inside -- echo next
	assert_output next
	# shellcheck disable=SC2016
	ends_soon inside --timeout 500ms --grace 200ms -- sh -c 'kill -STOP $PPID; exec sleep 1000'
	((status == 124 || status == 125)) || fail 'neither timed out nor unknown'
	wait_for sleepers 0
	inside -- echo next
	assert_output next
	end_session
	assert_nothing_left
}

@test "kill -9 -1 takes the monitors that wait as well, and nothing from the next execution" {
	begin
	for _ in {1..40}; do
		inside -- sh -c 'setsid -f sleep 1000; kill -9 -1'
		assert_status 125 # the monitor first of all
		inside -- echo next
		assert_output next
	done
	end_session
	assert_nothing_left
}

# waits_for_the_session: the client that was started has said what it wants, or is about to.
waits_for_the_session() {
	local blocked

	blocked=$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$LAUNCHER/status")
	[[ $(<"/proc/$LAUNCHER/comm") == carrel ]] && ((0x$blocked & 1 << 14))
}

# took_all: no signal is waiting for it.
took_all() {
	! grep -qE '^(SigPnd|ShdPnd):.*[1-9a-f]' "/proc/$LAUNCHER/status"
}

@test "a signal that comes before the session has answered is passed on when it does" {
	begin
	kill -STOP "$SUPERVISOR"
	start exec -- sleep 1000
	wait_for waits_for_the_session
	signal TERM
	kill -CONT "$SUPERVISOR"
	ends_soon finish
	assert_status 143
	# Whoever asks twice does not wait for a session that is silent.
	kill -STOP "$SUPERVISOR"
	start exec -- sleep 1000
	wait_for waits_for_the_session
	signal TERM
	wait_for took_all
	signal INT
	ends_soon finish
	assert_status 125
	assert_matches "$stderr" 'does not answer'
	kill -CONT "$SUPERVISOR"
	wait_for sleepers 0
	end_session
	assert_nothing_left
}

@test "when init is killed the session is over, and nothing is left" {
	begin
	inside --detach -- sleep 1000
	local child
	child=$(pgrep -P "$SUPERVISOR" -x carrel-init)
	kill -KILL "$child" 2>/dev/null || fail "its owner cannot kill it"
	wait_for gone "$SUPERVISOR"
	wait_for sleepers 0
	await_nothing_left
}

@test "exec says what was moved to quarantine while the command ran" {
	begin
	inside --quiet -- sh -c 'echo x >.envrc; while [ -e .envrc ]; do sleep 0.05; done'
	assert_status 0
	assert_matches "$stderr" '^carrel: 1 path that is protected was made meanwhile, and moved to quarantine'
	assert_matches "$stderr" 'hint: carrel quarantine list'
	inside -- true
	[[ -z $stderr ]] || fail "$stderr"
	end_session
	rm -rf "$WS"/.carrel-quarantine-*
}
