#!/usr/bin/env bats
# `carrel session allow`: the owner changes what a live session may reach while it lives (docs/network.md).
# ctest: as=user
load ../lib/common
load ../lib/live
load ../lib/names

setup() {
	live_setup
	need python3 curl
	world example.org=127.0.0.1 a.example.org=127.0.0.1 other.org=127.0.0.1
}

teardown() {
	end_world
	live_teardown
}

# reaches NAME: and says what the world says.
reaches() {
	inside -- curl -sS --max-time 60 "http://$1:$WEB"
	assert_status 0
	assert_output "hello $1"
}

# not_added ERE: `session allow` failed, with one line that matches.
not_added() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	(($(grep -vc '^carrel: hint: ' <<<"$stderr") == 1)) || fail 'not one line'
	assert_matches "$stderr" "^carrel: .*$1"
}

# refused NAME
refused() {
	inside -- curl -sS --max-time 60 "http://$1:$WEB"
	assert_matches "$status" '^(6|7|35|52|55|56)$'
}

@test "a name is added and taken back; commands, services and everybody who asks see it" {
	begin "${OPEN[@]}" --net-live --net-log "$T/log" --report "$T/r.json" --deny "bad.other.org"
	refused other.org
	carrel why -s "$ID" "other.org:$WEB"
	assert_matches "$output" 'denied'
	# A service that is there before: it has the name as soon as the session has it, and loses it with it.
	cat >"$WS/holds.py" <<-'EOF2'
		import socket, sys, time
		def connect():
		    while True:
		        try:
		            return socket.create_connection((sys.argv[1], int(sys.argv[2])))
		        except OSError:
		            time.sleep(0.02)
		s = connect()
		open("connected", "w").write("1\n")
		try:
		    print("end", s.recv(1), flush=True)
		except ConnectionResetError:
		    print("reset", flush=True)
		s = connect()
		print("again", flush=True)
	EOF2
	inside --detach --name holds -- python3 holds.py other.org "$WEB"
	carrel session allow -s "$ID" "other.org:$WEB" "*.other.org:$WEB"
	assert_status 0
	[[ -z $output$stderr ]] || fail 'it says something'
	reaches other.org
	refused bad.other.org
	wait_for test -s "$WS/connected"
	carrel session allow "other.org:$WEB" # what is there already is no second line
	assert_status 0
	carrel session net
	assert_matches "$output" $'\nadded          allow other.org:'"$WEB  \\([0-9TZ:-]+, process [0-9]+ of user $(id -u)\\)"
	carrel session show
	assert_matches "$output" "allowed      other.org:$WEB \\(session allow, process [0-9]+, "
	carrel session show --json
	[[ $(jq -r '.allow[]' <<<"$output") == "*.other.org:$WEB"$'\n'"other.org:$WEB"$'\n'"127.0.0.1:$WEB" ]] || fail 'not all of it'
	carrel why -s "$ID" "other.org:$WEB"
	assert_matches "$output" 'allowed'
	assert_matches "$output" "allow other.org:$WEB"
	assert_matches "$output" 'session allow, process [0-9]+'
	carrel session allow --remove "other.org:$WEB"
	assert_status 0
	reset_is_logged() { "$CARREL" session logs holds | grep -q '^reset'; }
	wait_for reset_is_logged
	refused other.org
	carrel session allow --remove "127.0.0.1:$WEB" # a line of the policy
	not_added 'no such line was added to the session: 127.0.0.1:'
	carrel session allow "other.org:$WEB"
	again_is_logged() { "$CARREL" session logs holds | grep -q '^again'; }
	wait_for again_is_logged
	end_session
	keep_report "$T/r.json"
	[[ $(jq -c '[.network.live[] | [.rule, .removed != null]]' "$T/r.json") == \
		"[[\"other.org:$WEB\",true],[\"*.other.org:$WEB\",false],[\"other.org:$WEB\",false]]" ]] || fail "$(jq .network.live "$T/r.json")"
	assert_field "$T/r.json" '.network.live[0].uid' "$(id -u)"
	assert_field "$T/r.json" '[.network.names[] | select(.name == "other.org" and .decision == "allowed")][0].rule' "allow other.org:$WEB"
	[[ $(jq -r 'select(.decision | startswith("rule-")) | .decision + " " + .name' "$T/log") == \
		"rule-added allow other.org:$WEB"$'\n'"rule-added allow *.other.org:$WEB"$'\n'"rule-removed allow other.org:$WEB"$'\n'"rule-added allow other.org:$WEB" ]] ||
		fail "$(<"$T/log")"
	jq -es 'any(.decision == "allowed" and .name == "other.org" and (.source | test("^session allow, process ")))' "$T/log" >/dev/null ||
		fail "$(<"$T/log")"
}

@test "what cannot be added is one line, and nothing of the request is" {
	begin "${RESOLVER[@]}" --net allow --net-live --deny other.org --deny '*.example.org:443'
	carrel session allow example.org "example.org:$WEB"
	not_added "nothing listens on port $WEB in the session: example.org:$WEB"
	assert_matches "$stderr" "hint: the session has to be started with a line that names the port, such as --allow example.org:$WEB"
	carrel session allow other.org
	not_added 'a line of the policy denies it: other.org:80,443'
	assert_matches "$stderr" 'hint: deny other.org at command line: --deny'
	carrel session allow '*.example.org'
	not_added 'a line of the policy denies it: \*.example.org:80,443'
	carrel session allow example.org 192.0.2.1
	not_added 'an address can be allowed when a session is started, and not later: 192.0.2.1:80,443'
	carrel session allow example..org
	not_added "session allow"
	carrel session allow @nosuch
	not_added "unknown set of hosts '@nosuch'"
	carrel session allow
	not_added 'an argument is missing'
	carrel session show --json
	[[ $(jq '.allow | length' <<<"$output") == 0 ]] || fail 'something was added'
	carrel session allow @npm
	assert_status 0
	carrel session show --json
	[[ $(jq -r '.allow | index("registry.npmjs.org:80,443") != null' <<<"$output") == true ]] || fail 'no set'
	pkill -STOP -P "$SUPERVISOR" carrel-egress
	carrel session allow late.example.net other.example.net
	not_added 'carrel-egress does not answer: late.example.net:80,443: Operation timed out'
	carrel session allow a.example.net
	not_added 'carrel-egress has not answered the last change yet'
	pkill -CONT -P "$SUPERVISOR" carrel-egress
	added() { "$CARREL" session show --json | jq -e --arg name "$1:80,443" '.allow | index($name) != null' >/dev/null; }
	wait_for added late.example.net
	! added other.example.net || fail 'the rest of the change was made, too'
	carrel session allow a.example.net b.example.net
	assert_status 0
	added a.example.net && added b.example.net || fail 'an answer that came late was taken for one of these'
	pkill -KILL -P "$SUPERVISOR" carrel-egress
	lost() { "$CARREL" session net | grep -q 'has ended'; }
	wait_for lost
	carrel session allow example.org
	not_added 'carrel-egress has ended: example.org:80,443'
	end_session
	begin "${RESOLVER[@]}" --net allow
	carrel session allow example.org
	not_added 'the session was started without `net-live`: example.org:80,443'
	assert_matches "$stderr" 'hint: carrel session start --net allow --net-live'
	end_session
	begin --net-live
	carrel session allow example.org
	not_added 'the session was started without `net allow`: example.org:80,443'
	end_session
}
