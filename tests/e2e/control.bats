#!/usr/bin/env bats
# The control protocol, with a client that was written from docs/control-protocol.md alone.
# ctest: as=user cost=40
load ../lib/common
load ../lib/live

# refused_with CODE WHAT...: each is answered by an ERROR with this code.
refused_with() {
	local code=$1 what

	shift
	for what; do
		control bad "$what"
		[[ $status == 3 && $output == "ERROR $code|"* ]] || fail "$what: not refused as $code"
	done
}

# alive: the session serves as before.
alive() {
	control exec echo still
	assert_status 0
	[[ $output == still$'\n''ENDED exit 0 started 1 limit 0 errno 0' ]] || fail 'the session does not serve'
}

@test "the document's numbers are those of the source" {
	local header=$CARREL_SOURCE/src/host/serve/control.h doc=$CARREL_SOURCE/docs/control-protocol.md name number

	run --separate-stderr /usr/bin/python3 "$CARREL_SOURCE/tests/lib/control_client.py" layout
	assert_status 0
	(($(wc -l <<<"$output") == 24))
	while read -r name number; do
		case $name in
		CONTROL_VERSION | CONTROL_BODY_MAX | CONTROL_FDS_MAX)
			grep -qE "^#define $name $number( |\$)" "$header" || fail "$name is not $number"
			;;
		*) grep -qE "^\| $number \| \`${name#CONTROL_}\` \|" "$doc" || fail "$name is not $number in the document" ;;
		esac
	done <<<"$output"
	# The enum, counted as a compiler counts.
	counted=$(awk '/^enum control_kind/ { on = 1; next } on && /^};/ { exit }
		on && match($1, /^CONTROL_[A-Z]+/) {
			name = substr($1, 1, RLENGTH)
			if (match($0, /= *[0-9]+/)) { split(substr($0, RSTART), v, /[ ,]+/); n = v[2] - 1 }
			else if ($0 ~ /=[ \t]*$/) { getline; split($1, v, ","); n = v[1] - 1 }
			print name, ++n }' "$header")
	[[ $counted == "$(grep -vE 'VERSION|_MAX' <<<"$output")" ]] || fail "not the numbers of control.h: $counted"
}

@test "an execution: output, status, signal, what cannot be found" {
	begin
	control exec sh -c 'echo hello; exit 42'
	assert_status 0
	assert_output $'hello\nENDED exit 42 started 1 limit 0 errno 0'
	# shellcheck disable=SC2016
	control exec sh -c 'kill -TERM $$'
	assert_output 'ENDED signal 15 started 1 limit 0 errno 0'
	control exec /no/such/thing
	assert_matches "$output" '^ENDED exit [0-9]+ started 0 limit 0 errno 2$'
	control passed sh -c 'cat <&9'
	assert_output $'passed\nENDED exit 0 started 1 limit 0 errno 0'
	end_session
}

@test "an execution at a terminal: begins with START, stops and is continued" {
	begin
	# shellcheck disable=SC2016
	control pty sh -c 'tty; test -t 0 && test -t 2 && echo all; kill -STOP $$; echo again; exit 5'
	assert_status 0
	output=${output//$'\r'/}
	assert_matches "$output" '/dev/pts/[0-9]+'
	assert_matches "$output" 'STOPPED 19'
	assert_matches "$output" 'again'
	assert_matches "$output" 'ENDED exit 5 started 1'
	control pty seq 1 5000
	[[ $(tr -d '\r' <<<"$output" | grep -cE '^[0-9]+$') == 5000 ]] || fail 'the end of the output is missing'
	end_session
}

@test "an execution at a terminal that is killed before START ends, too" {
	begin
	control given-up
	assert_output 'ENDED signal 9 started 0 limit 0 errno 0'
	alive
	end_session
}

@test "a body beyond the record goes by a sealed memfd" {
	begin
	control long 100000
	assert_output $'100000\nENDED exit 0 started 1 limit 0 errno 0'
	refused_with request unsealed over-4m
	alive
	end_session
}

@test "a session is shown whole, however much runs in it" {
	# More than a record holds of each form: quotes take twice their room in JSON.
	local many=440 quotes

	quotes=$(printf '%040d' 0 | tr 0 '"')
	begin
	control many "$many" sh -c "sleep 1000 # $quotes" "$quotes"
	assert_status 0
	control show 0
	((${#output} > 65536)) || fail 'it fits into a record'
	[[ $(jq -c '[.executions_total, (.executions | length), (.executions | map(.execution) | unique | length),
		(.executions | map(.command) | unique | length)]' <<<"$output") == "[$many,$many,$many,1]" ]] ||
		fail 'not all of them, or not each once'
	carrel session show --json
	[[ $(jq '.executions | map(.execution) | unique | length' <<<"$output") == "$many" ]]
	carrel session show
	[[ $(grep -c ' (service) sh -c ' <<<"$output") == "$many" ]]
	carrel session list --json
	[[ $(jq -c 'map(.executions | length)' <<<"$output") == "[$many]" ]]
	# One may have been ending then.
	local before
	before=$(supervisor_descriptors)
	control show 0
	same_as_before() { (($(supervisor_descriptors) <= before)); }
	wait_for same_as_before
	end_session
	assert_nothing_left
}

@test "signals: to the group, and to everything" {
	begin
	control signal 10 0 sh -c 'trap "echo caught; exit 3" USR1; echo ready; while :; do sleep 0.05; done'
	assert_matches "$output" 'caught'
	assert_matches "$output" 'ENDED exit 3'
	control signal 9 1 sh -c 'setsid sleep 1000 & echo ready; exec sleep 1000'
	assert_matches "$output" 'ENDED signal 9 started 1'
	end_session
}

@test "show, services, files, the end" {
	begin
	control show 0
	[[ $(jq -r .session <<<"$output") == "$ID" && $(jq -r .state <<<"$output") == live ]]
	control detach none no-such-command-inside
	assert_output $'ACCEPTED 0\nENDED exit 127 started 0 limit 0 errno 2'
	control detach one sleep 1000
	assert_output $'ACCEPTED 0\nDONE 0'
	control show 0
	[[ $(jq -r '.executions[0].name' <<<"$output") == one ]]
	control detach one sleep 1000
	assert_matches "$output" '^ERROR execution\|'
	control stop one
	assert_output 'DONE 0'
	echo text >"$WS/file"
	control open 0 "$WS/file"
	assert_output "OPENED 0 $WS/file"$'\n''text'
	control open 1 /etc/passwd
	assert_matches "$output" '^OPENED (13|30)$'
	control open 0 "$WS/none"
	assert_output 'OPENED 2'
	control end
	assert_matches "$output" '^DONE 0'
	assert_nothing_left
}

@test "what is no request is refused, and the session goes on" {
	begin
	local before
	alive
	before=$(supervisor_descriptors)
	refused_with request magic short kind answer-kind body-missing body-over body-unwanted descriptors \
		descriptors-unwanted streams-lied streams-missing streams-many no-argument text-missing \
		text-over clock relative-cwd variable own-variable own-directory flags name name-number terminal-service no-nul no-word log-no-word log-no-service \
		open-relative open-flags passed-none passed-missing passed-over passed-order passed-twice passed-stream passed-number passed-many passed-word
	refused_with version version
	refused_with execution execution start-nothing signal-number service log
	refused_with descriptor directory regular listening pidfd path \
		passed-directory passed-regular passed-pidfd passed-listening
	alive
	same_as_before() { (($(supervisor_descriptors) <= before)); } # one may have been ending then
	wait_for same_as_before
	end_session
}

@test "an execution may not ask for more than the session allows" {
	begin --timeout 60s
	refused_with loosens looser
	alive
	end_session
}

@test "a client that does not read is dropped, others are served meanwhile" {
	begin
	/usr/bin/python3 "$CARREL_SOURCE/tests/lib/control_client.py" "$ID" stall >"$T/stalled" 2>&1 3>&- 4>&- &
	local stalled=$!
	alive
	wait "$stalled"
	[[ $(<"$T/stalled") == dropped ]] || fail "it was not dropped: $(<"$T/stalled")"
	alive
	end_session
}
