#!/usr/bin/env bats
# Services: the session keeps a service's output in a log of bounded size, and remembers how it ended.
# ctest: as=user
load ../lib/common
load ../lib/session
load ../lib/live

# service NAME COMMAND...: its number is in NUMBER.
service() {
	inside --detach --name "$1" -- "${@:2}"
	assert_status 0
	NUMBER=$output
}

# ended NAME: the session has noted it.
ended() {
	"$CARREL" session show --json | jq -e --arg name "$1" '.ended_services[] | select(.name == $name)' >/dev/null
}

ended_field() {
	"$CARREL" session show --json | jq -r --arg name "$1" "[.ended_services[] | select(.name == \$name)][-1] | $2"
}

@test "a log has what a service writes, both streams in order, while it runs and afterwards" {
	begin
	mkfifo "$WS/go"
	service web sh -c 'echo out; echo err >&2; read x <go; echo last'
	has_both() { [[ $("$CARREL" session logs web) == $'out\nerr' ]]; }
	wait_for has_both
	carrel session logs "$NUMBER"
	assert_output $'out\nerr'
	# Inside, it can be read and not written.
	# shellcheck disable=SC2016
	inside -- sh -c 'cat $CARREL_TOOL_RESULTS/service-1.log; : >>$CARREL_TOOL_RESULTS/service-1.log'
	assert_output $'out\nerr'
	((status != 0))
	echo >"$WS/go"
	wait_for ended web
	carrel session logs web
	assert_output $'out\nerr\nlast'
	end_session
	assert_nothing_left
}

@test "how a service ended is remembered: a status, a signal, a limit, a stop" {
	begin
	service three sh -c 'exit 3'
	service killed sh -c 'kill -9 $$'
	inside --detach --name late --timeout 0.1s -- sleep 1000
	service stopped sleep 1000
	inside --stop stopped
	for each in three killed late stopped; do
		wait_for ended "$each"
	done
	[[ $(ended_field three .exit) == 3 && $(ended_field three .signal) == null ]]
	[[ $(ended_field killed .signal) == 9 && $(ended_field killed .exit) == null ]]
	[[ $(ended_field late .limit) == timeout ]]
	[[ $(ended_field stopped .signal) == 15 && $(ended_field stopped .limit) == null ]]
	carrel session show
	assert_matches "$output" 'exit 3 .*three \(service, ended\) sh -c exit 3'
	assert_matches "$output" 'signal 9 .*killed \(service, ended\)'
	assert_matches "$output" 'timeout .*late \(service, ended\)'
	end_session
}

@test "--follow goes on until the service has ended" {
	begin
	service web sh -c "echo one; $(waits first); echo two; $(waits second); echo three"
	: >"$T/out" # it may be looked at before it is opened
	"$CARREL" session logs web --follow >"$T/out" 2>"$T/err" </dev/null 3>&- 4>&- &
	local follower=$!
	says() { [[ $(<"$T/out") == "$1" ]]; }
	wait_for says one
	wait_for test -e "$WS/first"
	tell first
	wait_for says $'one\ntwo'
	wait_for test -e "$WS/second"
	tell second
	wait "$follower" || fail "it failed: $(<"$T/err")"
	says $'one\ntwo\nthree' || fail "$(<"$T/out")"
	# Of one that has ended all is said at once.
	carrel session logs --follow web
	assert_output $'one\ntwo\nthree'
	end_session
}

@test "--follow ends with the session" {
	begin
	service web sh -c 'echo one; exec sleep 1000'
	: >"$T/out" # it may be looked at before it is opened
	"$CARREL" session logs web --follow >"$T/out" 2>"$T/err" </dev/null 3>&- 4>&- &
	local follower=$!
	wait_for grep -q one "$T/out"
	end_session
	wait "$follower" || fail "it failed: $(<"$T/err")"
	assert_nothing_left
}

@test "a log is bounded: the end of it is there, and a service that writes all the time holds up nobody" {
	begin
	service loud sh -c 'yes 0123456789abcde'
	large() { (($(du -cb "$DIR"/tool-results/service-* | tail -n 1 | cut -f1) > 512 * 1024)); }
	wait_for large
	wait_for test -e "$DIR/tool-results/service-$NUMBER.log.1"
	for _ in 1 2 3 4 5; do
		inside -- true
		assert_status 0
	done
	inside --stop loud
	assert_status 0
	local size
	size=$(du -cb "$DIR"/tool-results/service-"$NUMBER".log* | tail -n 1 | cut -f1)
	((size <= 1024 * 1024)) || fail "$size bytes"
	((size >= 512 * 1024)) || fail "only $size bytes"
	service counter sh -c 'seq 300000'
	wait_for ended counter
	[[ $("$CARREL" session logs counter | tail -n 1) == 300000 ]]
	# Without a gap between the two files.
	"$CARREL" session logs counter | tail -n +2 | awk 'NR > 1 && $1 != last + 1 { exit 1 } { last = $1 }'
	end_session
}

@test "of services that ended the last 32 are remembered, and no other log stays" {
	begin
	local i
	for ((i = 0; i < 40; i++)); do
		service "s$i" true
		wait_for ended "s$i"
	done
	[[ $("$CARREL" session show --json | jq '.ended_services | length') == 32 ]]
	[[ $(ended_field s39 .exit) == 0 ]]
	(($(find "$DIR/tool-results" -name 'service-*' | wc -l) == 32))
	carrel session logs s7
	assert_status 125
	assert_matches "$stderr" 'no such service in the session: s7'
	carrel session logs s8
	assert_status 0
	end_session
}

@test "for a terminal a log has nothing that it would obey" {
	begin
	service odd printf 'a\033]0;title\007\tb\303\244\302\233\377\n'
	wait_for ended odd
	[[ $("$CARREL" session logs odd | od -An -c | tr -d ' \n') == 'a033]0;title\a\tb303244302233377\n' ]]
	run --separate-stderr /usr/bin/python3 -c 'import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
data = b""
while True:
    try:
        more = os.read(fd, 4096)
    except OSError:
        break
    if not more:
        break
    data += more
sys.stdout.buffer.write(data)' "$CARREL" session logs odd
	assert_status 0
	[[ ${output%$'\r'} == $'a\\x1b]0;title\\x07\tbä\\xc2\\x9b\\xff' ]] || fail "$output"
	end_session
}

@test "a full disk costs a part of a log, and not the service" {
	begin
	service web sh -c 'echo before; while [ ! -e on ]; do sleep 0.05; done; seq 3000; : >done; while [ ! -e over ]; do sleep 0.05; done; echo after'
	has_begun() { [[ $("$CARREL" session logs web) == before ]]; }
	wait_for has_begun
	# As on a full disk: S may write no file any more (EFBIG), whatever its rights.
	prlimit --fsize=0:unlimited --pid "$SUPERVISOR"
	: >"$WS/on"
	wait_for test -e "$WS/done"
	prlimit --fsize=unlimited --pid "$SUPERVISOR"
	: >"$WS/over"
	wait_for ended web
	carrel session logs web
	assert_matches "$output" '^before'
	assert_matches "$output" 'carrel: [0-9]+ bytes are missing here: they could not be written'
	assert_matches "$output" 'after$'
	[[ $(ended_field web .exit) == 0 ]]
	end_session
}

@test "a tool that opens its output once more, hands it on, or closes it, gains nothing" {
	begin
	# shellcheck disable=SC2016
	service web sh -c 'echo one >/dev/stdout; (setsid sh -c "echo two; sleep 1000" &); exec >&- 2>&-; touch closed; read x <never'
	wait_for test -e "$WS/closed"
	service next sh -c 'echo other'
	wait_for ended next
	inside --stop web
	assert_status 0
	carrel session logs web
	assert_matches "$output" '^one'
	carrel session logs next
	assert_output other
	end_session
	assert_nothing_left
}

@test "wrong words" {
	begin
	local words
	while IFS='|' read -r words cause; do
		# shellcheck disable=SC2086 # words
		carrel session $words
		assert_status 125
		assert_matches "$stderr" "^carrel: $cause"
	done <<'END'
logs|.carrel session logs. needs the name or the number of a service
logs a b|too many arguments: b
logs nothing|there is no such service in the session: nothing
logs 77|there is no such service in the session: 77
logs web --json|a log is what the service wrote
show --follow|only a log can be followed: --follow
logs -s none web|
log|.carrel session. has no such verb: log
END
	carrel session logs ''
	assert_status 125
	carrel session logs $'a\nb'
	assert_status 125
	assert_matches "$stderr" 'a\\x0ab'
	(($(wc -l <<<"$stderr") == 1))
	service web sh -c true
	end_session
	carrel session logs web
	assert_status 125
}
