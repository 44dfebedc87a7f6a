#!/usr/bin/env bats
# Network by name, as a user meets it (docs/network.md): real programs without any proxy setting, sets, logs, the report.
load ../lib/common
load ../lib/names

setup() {
	common_setup
	need python3 curl
	world example.org=127.0.0.1 a.example.org=127.0.0.1 other.org=127.0.0.1 inner.example.org=10.9.8.7 \
		meta.example.org=169.254.169.254
	SITE=http://example.org:$WEB
	ALLOWED=("${OPEN[@]}" --allow "example.org:$WEB")
}

teardown() {
	end_world
	common_teardown
}

# reach COMMAND...: it is told who was asked for.
reach() {
	carrel run "${ALLOWED[@]}" -- "$@"
	assert_status 0
	assert_matches "$output" 'hello example.org'
}

@test "curl, wget and python reach an allowed name, without any proxy setting" {
	reach curl -sS "$SITE"
	reach python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$SITE"
	need wget
	reach wget -qO- "$SITE"
}

@test "under the profile for CI it is the same" {
	ALLOWED+=(--profile ci)
	reach curl -sS "$SITE"
	carrel run "${ALLOWED[@]}" -- curl -sS http://other.org/
	assert_status 6
}

@test "node's fetch reaches it, and npm its registry" {
	need node npm
	reach node -e 'fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t))' "$SITE"
	mkdir -p "$T/package"
	echo '{"name":"desk","version":"1.2.3"}' >"$T/package/package.json"
	tar -C "$T" -czf "$WORLD/www/desk.tgz" package
	printf '{"name":"desk","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"desk","version":"1.2.3","dist":{"tarball":"%s/file/desk.tgz"}}}}' \
		"$SITE" >"$WORLD/www/desk"
	carrel run "${ALLOWED[@]}" -- npm install --no-audit --no-fund --registry "$SITE/file/" desk
	assert_status 0
	grep -q '"version":"1.2.3"' node_modules/desk/package.json || fail 'not installed'
}

@test "npm and pip end soon where nothing can be found" {
	need npm
	carrel run --timeout 40s -- npm view desk --registry http://desk.example.org/
	assert_status 1
	assert_matches "$stderr" 'EAI_AGAIN|ENOTFOUND'
	carrel run --timeout 40s "${ALLOWED[@]}" -- npm view desk --registry http://desk.example.org/
	assert_status 1
	assert_matches "$stderr" 'hint: if the command needs it: --allow desk.example.org'
	carrel run -- sh -c 'echo "$PIP_RETRIES $CARGO_NET_RETRY"'
	assert_output '0 0'
	carrel run --env PIP_RETRIES=3 --net host -- sh -c 'echo "$PIP_RETRIES $CARGO_NET_RETRY"'
	assert_output '3 '
}

@test "the session's own proxy: by a preset, and in the place of the caller's" {
	reach curl -sS --proxy socks5h://127.0.0.1:3128 "$SITE"
	carrel run --with session-proxy "${ALLOWED[@]}" -- sh -c 'echo "$https_proxy $NO_PROXY"; curl -sSv "$0" 2>&1' "$SITE"
	assert_status 0
	assert_matches "$output" 'http://127.0.0.1:3128 localhost,127.0.0.1,::1'
	assert_matches "$output" 'hello example.org'
	assert_matches "$output" ' (127.0.0.1)? ?.*port 3128'
	carrel run --with session-proxy "${ALLOWED[@]}" -- curl -sS "http://other.org:$WEB/"
	assert_output "carrel: the policy does not allow other.org port $WEB; this option would: --allow other.org:$WEB"
	export http_proxy=http://me:secret@proxy.example:8080 NO_PROXY=intern.example
	carrel run "${ALLOWED[@]}" --env '*_proxy' --env NO_PROXY -- sh -c 'echo "$http_proxy $NO_PROXY"; curl -sS "$0"' "$SITE"
	assert_output "http://127.0.0.1:3128 localhost,127.0.0.1,::1"$'\n'"hello example.org"
	carrel run --net host --env http_proxy -- sh -c 'echo "$http_proxy"' # the control arm
	assert_output "$http_proxy"
	unset http_proxy NO_PROXY
}

@test "both families: a program that wants IPv6 has it, and what prefers one of them reaches the name at once" {
	[[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 in this kernel'
	reach curl -6 -sS "$SITE"
	reach curl -4 -sS "$SITE"
	carrel run --net-log "$T/log" "${ALLOWED[@]}" -- python3 -c '
import socket, sys
four, six = (socket.getaddrinfo("example.org", 80, f, socket.SOCK_STREAM)[0][4][0] for f in (socket.AF_INET, socket.AF_INET6))
print(four.removeprefix("198.18."), six)
print(socket.create_connection((six, sys.argv[1])).getpeername()[0] == six)
print(socket.getaddrinfo("localhost", 80, socket.AF_INET6)[0][4][0])' "$WEB"
	assert_output "0.1 fd63:6172:7265:6c00::1"$'\n'"True"$'\n'"::1"
	need node
	reach node -e 'require("http").get(process.argv[1], {family: 6}, r => r.pipe(process.stdout))' "$SITE"
	carrel run "${ALLOWED[@]}" -- curl -6 -sS -x 'http://[::1]:3128' "http://[fd63:6172:7265:6c00::1]:$WEB/"
	assert_matches "$output" 'does not allow fd63:6172:7265:6c00::1' # no name has it yet
}

@test "git clones over http" {
	need git
	git init -q "$T/origin"
	git -C "$T/origin" -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m first
	git clone -q --bare "$T/origin" "$WORLD/www/origin.git"
	git -C "$WORLD/www/origin.git" update-server-info
	carrel run "${ALLOWED[@]}" -- git clone -q "$SITE/file/origin.git" copy
	assert_status 0
	[[ $(git -C copy log --format=%s) == first ]] || fail 'not cloned'
}

@test "a name that is not allowed ends at once, and the line to add is said" {
	carrel run "${ALLOWED[@]}" -- curl -sS "http://other.org:$WEB"
	assert_status 6
	assert_matches "$stderr" "hint: if the command needs it: --allow other.org"
	[[ $(asked other.org) == 0 ]] || fail 'the name was sent upstream'
	carrel run "${ALLOWED[@]}" --allow "other.org:$WEB" -- curl -sS "http://other.org:$WEB"
	assert_status 0
	assert_output 'hello other.org'
	[[ $(asked other.org) == 1 ]] || fail 'the name was not sent upstream'
	carrel run --quiet "${ALLOWED[@]}" -- curl -s "http://other.org:$WEB"
	[[ -z $stderr ]] || fail 'something was said'
}

@test "a name keeps its address, and is asked for once" {
	# shellcheck disable=SC2016
	carrel run "${ALLOWED[@]}" -- sh -c 'for i in 1 2 3; do getent ahostsv4 example.org; curl -sS "$0"; done' "$SITE"
	assert_status 0
	[[ $(grep -c STREAM <<<"$output") == 3 ]] || fail 'not resolved three times'
	[[ $(grep STREAM <<<"$output" | sort -u | wc -l) == 1 ]] || fail 'not one address'
	[[ $(asked example.org) == 1 ]] || fail 'asked for more than once'
}

@test "inside, names are the session's own: resolv.conf, hosts, and the loopback" {
	carrel run "${ALLOWED[@]}" -- sh -c 'grep -v "^#" /etc/resolv.conf; getent hosts localhost; cat /etc/hosts'
	assert_status 0
	[[ ! -e /etc/resolv.conf || $output == *'nameserver 127.0.0.1'* ]] || fail 'another resolver'
	[[ $(grep -c . <<<"$output") -le 6 ]] || fail 'more than localhost'
}

@test "the report and the log say what was reached and what was refused" {
	carrel run --report "$T/r.json" --net-log "$T/log" "${ALLOWED[@]}" -- \
		sh -c "curl -sS $SITE; curl -sS http://other.org:$WEB; true"
	assert_status 0
	keep_report "$T/r.json"
	assert_field "$T/r.json" .network.lost false
	assert_field "$T/r.json" '.network.names[] | select(.decision == "allowed") | .name' example.org
	assert_field "$T/r.json" '.network.names[] | select(.decision == "allowed") | .rule' "allow example.org:$WEB"
	assert_field "$T/r.json" '.network.names[] | select(.decision == "denied-name") | .name' other.org
	[[ $(field "$T/r.json" '.network.names[] | select(.decision == "allowed") | .bytes_in') -gt 12 ]]
	jq -es 'any(.decision == "allowed") and any(.decision == "denied-name")' "$T/log" >/dev/null || fail 'the log'
	[[ $(stat -c %a "$T/log") == 600 ]] || fail 'anybody can read the log'
	carrel run --report "$T/n.json" -- true
	assert_field "$T/n.json" '.network == null' true
}

@test "a log that does not take everything: the command goes on, and it is said" {
	carrel run --report "$T/r.json" --net-log /dev/full "${ALLOWED[@]}" -- sh -c "curl -sS $SITE; curl -sS $SITE"
	assert_status 0
	assert_output $'hello example.org\nhello example.org'
	[[ $stderr == 'carrel: the log of the network did not take all lines (2 missing): /dev/full' ]] || fail "it says: $stderr"
	keep_report "$T/r.json"
	assert_field "$T/r.json" .network.log_lost 2
	carrel run --report "$T/r.json" --net-log "$T/log" "${ALLOWED[@]}" -- curl -sS "$SITE" # the control arm
	[[ -z $stderr ]] || fail "it says: $stderr"
	assert_field "$T/r.json" .network.log_lost 0
	# A terminal that nobody reads: names go on being answered.
	apart timeout 60 python3 - "$CARREL" "${RESOLVER[@]}" <<'END'
import os, pty, subprocess, sys
ours, log = pty.openpty()
sys.exit(subprocess.run([sys.argv[1], "run", "--quiet", "--net-log", f"fd:{log}", *sys.argv[2:], "--net", "allow", "--", "python3", "-c", """
import socket
for i in range(400):
    try:
        socket.getaddrinfo(f"n{i}.example.net", 80, socket.AF_INET)
    except socket.gaierror:
        pass
"""], pass_fds=[log], stdin=subprocess.DEVNULL).returncode)
END
	assert_status 0
	mkfifo "$T/fifo"
	carrel run --net-log "$T/fifo" "${ALLOWED[@]}" -- true
	assert_status 125
	assert_matches "$stderr" 'hint: it is a FIFO that nobody reads: start its reader first'
}

@test "in a live session every execution reaches the name, but for one without a network" {
	XDG_RUNTIME_DIR=$T/run
	export XDG_RUNTIME_DIR
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	local id

	id=$("$CARREL" session start --report "$T/r.json" "${ALLOWED[@]}" | sed -n 's/^session //p')
	carrel exec -s "$id" -- curl -sS "$SITE"
	assert_output 'hello example.org'
	carrel exec -s "$id" --workspace-mode ro -- curl -sS "$SITE"
	assert_output 'hello example.org'
	carrel exec -s "$id" --net none -- curl -sS "$SITE"
	assert_status 6
	carrel exec -s "$id" -- curl -sS "http://other.org:$WEB"
	assert_status 6
	carrel session end -s "$id"
	assert_status 0
	keep_report "$T/r.json"
	assert_field "$T/r.json" '.network.names[] | select(.name == "example.org") | .times' 2
}

@test "session net: what a live session reached and was refused, while it lives" {
	XDG_RUNTIME_DIR=$T/run
	export XDG_RUNTIME_DIR
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	carrel session start "${ALLOWED[@]}"
	assert_status 0
	id=$(sed -n 's/^session //p' <<<"$output")
	carrel session net "$id"
	assert_status 0
	assert_output 'net            allow, 2 lines'
	carrel exec -s "$id" -- curl -sS "$SITE"
	carrel exec -s "$id" -- curl -sS "http://other.org:$WEB"
	assert_status 6
	carrel session net -s "$id"
	assert_matches "$output" $'\nallowed        example.org:'"$WEB  1x  [0-9]+ bytes in, [0-9]+ out  \\(allow example.org:$WEB\\)"
	assert_matches "$output" $'\ndenied-name    other.org  [0-9]+x'
	carrel session net -s "$id" --json
	[[ $(jq -r '.net, (.network.names[] | select(.name == "other.org") | .decision)' <<<"$output") == \
		$'allow\ndenied-name' ]] || fail 'not in the JSON'
	carrel session end "$id"
	carrel session start # the control arm
	id=$(sed -n 's/^session //p' <<<"$output")
	carrel session net "$id" --json
	assert_output '{"net":"none","network":null}'
	carrel session end "$id"
}

@test "when carrel-egress is killed the session goes on without a network, and says so" {
	"$CARREL" run --report "$T/r.json" "${ALLOWED[@]}" -- sh -c "curl -sS $SITE && echo up >reached
		until [ -e killed ]; do sleep 0.02; done
		until ! curl -sS --max-time 20 $SITE; do sleep 0.02; done; echo on >alive" >"$T/out" 2>&1 3>&- &
	local launcher=$!

	wait_for test -s reached
	pkill -KILL -P "$launcher" carrel-egress
	echo >killed
	wait "$launcher"
	[[ -s alive ]] || fail 'the session ended with it'
	grep -q 'carrel: carrel-egress has ended: the session goes on without a network' "$T/out" || fail 'not said'
	keep_report "$T/r.json"
	assert_field "$T/r.json" .network.lost true
}

@test "where carrel-egress is missing the session does not start; one without names does" {
	end_world # nothing is left behind
	mkdir "$T/bin"
	cp "$CARREL" "$T/bin/carrel"
	apart "$T/bin/carrel" run "${ALLOWED[@]}" -- true
	assert_refused 'cannot find the program that `net allow` needs: carrel-egress'
	apart "$T/bin/carrel" run -- true
	assert_status 0
}

@test "sets: those that ship, and one's own beside one's profiles" {
	export XDG_CONFIG_HOME=$T/config
	mkdir -p "$XDG_CONFIG_HOME/carrel/sets"
	printf '# mine\nexample.org:%s\n@npm\n' "$WEB" >"$XDG_CONFIG_HOME/carrel/sets/mine"
	ALLOWED=("${OPEN[@]}" --allow @mine)
	reach curl -sS "$SITE"
	carrel policy show --allow @mine
	assert_matches "$output" 'allow registry.npmjs.org:80,443 +# set:npm:[0-9]+'
	assert_matches "$output" "allow example.org:$WEB +# $XDG_CONFIG_HOME/carrel/sets/mine:2"
	carrel policy show --sets
	assert_matches "$output" '@npm'
	assert_matches "$output" '@mine'
	local set
	for set in npm pypi crates go debian github maven; do
		carrel policy show --allow "@$set"
		assert_matches "$output" 'net allow'
	done
}

@test "what the plan and the policy say of it" {
	carrel plan --allow 'example.org:8443' --allow 192.0.2.0/24:9000 --deny a.example.org -- true
	assert_matches "$output" 'net-local +192\.0\.2\.0/24'
	assert_matches "$output" 'net-listen +127\.0\.0\.1:53 \*:3128 \*:8443 \*:9000'
	carrel why --allow example.org example.org
	assert_matches "$output" 'allow example.org:80,443'
	carrel why --allow example.org other.org
	assert_matches "$output" 'no line allows'
}

@test "a command that fails and looked for a network is told that there is none" {
	local note='carrel: the command looked for a network, and the session has none'

	carrel run -- python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80))'
	assert_status 1
	assert_matches "$stderr" "$note"
	assert_matches "$stderr" 'carrel: hint: `--allow HOST` for what it needs, or `--net host` for all that this machine reaches'
	carrel run -- python3 -c 'import socket; socket.create_connection(("2001:db8::1", 80))'
	assert_matches "$stderr" "$note"
	# As a host's resolver may be: nobody is there.
	carrel run -- python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.53", 53)); s.send(b"x"); s.recv(1)'
	assert_matches "$stderr" "$note"
	# Not where it did not fail, did not look for one, or has one.
	carrel run -- python3 -c 'import socket; socket.socket().connect_ex(("192.0.2.1", 80))'
	assert_status 0
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel run -- python3 -c 'import socket; socket.create_connection(("127.0.0.1", 1))'
	assert_status 1
	assert_matches "$stderr" 'ConnectionRefusedError'
	[[ $stderr != *'looked for a network'* ]] || fail "it says: $stderr"
	carrel run --net host -- python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 1)); exit(1)'
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel run "${ALLOWED[@]}" -- python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80))'
	assert_matches "$stderr" 'carrel: the command tried an address that no `allow` line opens
carrel: hint: `--explain` names it$'
	carrel run "${ALLOWED[@]}" -- sh -c 'curl -sS "$0"; exit 3' "$SITE"
	assert_status 3
	assert_output 'hello example.org'
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel run --quiet -- python3 -c 'import socket; exit(socket.socket().connect_ex(("192.0.2.1", 80)))'
	[[ -z $stderr ]] || fail "it says: $stderr"
}

# told OPTION... -- COMMAND...: what stderr has after the command's own lines.
told() {
	carrel run "$@"
	((status != 0)) || fail 'it did not fail'
	stderr=$(grep '^carrel: ' <<<"$stderr") || true
}

@test "a command that fails is told what else stood in its way, and the line that changes it" {
	told "${RESOLVER[@]}" --allow inner.example.org -- curl -sS http://inner.example.org/
	[[ $stderr == 'carrel: an allowed name leads to 10.9.8.7, which only a line with that address opens: inner.example.org:80
carrel: hint: if the command needs it: --allow 10.9.8.7:80' ]] || fail "it says: $stderr"
	told "${RESOLVER[@]}" --allow "example.org:$WEB" -- curl -sS "$SITE"
	assert_matches "$stderr" "leads to 127.0.0.1, .*: example.org:$WEB"$'\n'"carrel: hint: if the command needs it: --allow localhost:$WEB\$"
	carrel run "${RESOLVER[@]}" --allow "example.org:$WEB" --allow "localhost:$WEB" -- curl -sS "$SITE"
	assert_output 'hello example.org' # as it was told
	told "${RESOLVER[@]}" --allow meta.example.org -- curl -sS http://meta.example.org/
	assert_matches "$stderr" 'leads to 169.254.169.254, .*: meta.example.org:80$' # and no remedy
	told "${RESOLVER[@]}" --allow '*.example.org' --deny a.example.org -- curl -sS http://a.example.org/
	[[ $stderr == 'carrel: a line of the policy denies what the command tried: a.example.org
carrel: hint: deny a.example.org at command line: --deny' ]] || fail "it says: $stderr"
	told "${OPEN[@]}" --allow example.org:443 -- curl -sS http://example.org:443/
	assert_matches "$stderr" '^carrel: what was sent is not TLS for that very name: example.org:443'
	told --net-bytes 100 "${ALLOWED[@]}" -- curl -sS "$SITE"
	assert_matches "$stderr" "^carrel: a limit of the network was reached: example.org:$WEB"
	told "${RESOLVER[@]}" --allow example.org:1 --allow 127.0.0.1:1 -- curl -sS http://example.org:1/
	[[ $stderr == 'carrel: an allowed host could not be reached: example.org:1: Connection refused' ]] || fail "it says: $stderr"
	told --net-resolver 127.0.0.1:9 --allow example.org -- curl -sS http://example.org/
	assert_matches "$stderr" '^carrel: an allowed name could not be resolved: example.org: Connection refused'
	# A name that no line allows says more than the others, and nothing is said where nothing was refused.
	told "${RESOLVER[@]}" --allow inner.example.org -- sh -c 'curl -sS http://inner.example.org/; curl -sS http://other.org/'
	[[ $stderr != *10.9.8.7* && $stderr == *'--allow other.org' ]] || fail "it says: $stderr"
	told "${RESOLVER[@]}" --allow gone.example.org -- curl -sS http://gone.example.org/
	[[ -z $stderr ]] || fail "it says: $stderr"
	told --quiet "${RESOLVER[@]}" --allow inner.example.org -- curl -sS http://inner.example.org/
	[[ -z $stderr ]] || fail "it says: $stderr"
}

@test "an allowed name at a port that no line names: refused at once, and the line to add is said" {
	local family

	for family in -4 -6; do
		[[ $family == -4 || -e /proc/net/if_inet6 ]] || continue
		told --report "$T/r.json" "${ALLOWED[@]}" -- curl "$family" -sS http://example.org:22/
		[[ $stderr == 'carrel: the network refused what the policy does not allow
carrel: hint: if the command needs it: --allow example.org:22' ]] || fail "$family: it says: $stderr"
		assert_field "$T/r.json" '.network.names[] | [.name, .port, .decision, .times] | tostring' '["example.org",22,"denied-port",1]'
	done
	carrel run "${ALLOWED[@]}" --allow example.org:22 --allow 127.0.0.1:22 -- curl -sS http://example.org:22/
	[[ $stderr != *denied* && $stderr != *'does not allow'* ]] || fail "it is refused with that line: $stderr" # the control arm
	# What is no name's: the loopback, the session's own host name, an address of its block.
	for family in 127.0.0.1 localhost "$(uname -n)" 198.18.9.9 '[::1]' '[fd63:6172:7265:6c00::99]'; do
		told --report "$T/r.json" "${ALLOWED[@]}" -- curl -gsS "http://$family:22/"
		assert_field "$T/r.json" '.network.names | length' 0
		[[ -z $stderr ]] || fail "$family: it says: $stderr"
	done
	told --report "$T/r.json" "${ALLOWED[@]}" --deny example.org:22 -- curl -4 -sS http://example.org:22/
	assert_matches "$stderr" '^carrel: a line of the policy denies what the command tried: example.org:22'
	# A tool has such a socket neither from init nor by itself.
	carrel run "${ALLOWED[@]}" -- python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)'
	assert_status 1
}

@test "where the machine names no resolver that is said before the command, if a name is allowed" {
	need_root
	in_a_world_without() {
		apart unshare -m sh -c 'mount --bind /dev/null /etc/resolv.conf; exec "$@"' - "$CARREL" run "$@"
	}
	in_a_world_without --allow example.org -- curl -sS http://example.org
	assert_status 6
	assert_matches "$stderr" '^carrel: this machine names no resolver: allowed names are not found: /etc/resolv.conf'
	assert_matches "$stderr" 'carrel: an allowed name could not be resolved: example.org
carrel: hint: this machine names no resolver: net-resolver ADDRESS does$'
	in_a_world_without --allow "127.0.0.1:$WEB" -- curl -sS "http://127.0.0.1:$WEB"
	assert_status 0
	[[ -z $stderr ]] || fail "it says: $stderr"
	in_a_world_without "${ALLOWED[@]}" -- curl -sS "$SITE"
	assert_output 'hello example.org'
	[[ -z $stderr ]] || fail "it says: $stderr"
}

@test "exec tells of names that were refused, and of a network that is not there" {
	local none='looked for a network, and the session has none' refused='the network refused what the policy does not allow'
	local look=(python3 -c 'import socket, sys; exit(socket.socket().connect_ex((sys.argv[1], 80)))')

	export XDG_RUNTIME_DIR=$T/run
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	SESSION=$("$CARREL" session start "${ALLOWED[@]}" --allow example.org | sed -n 's/^session //p')
	carrel exec -s "$SESSION" -- curl -sS "$SITE"
	assert_status 0
	carrel exec -s "$SESSION" -- python3 -c 'import socket; socket.getaddrinfo("never.example.net", 80)'
	assert_status 1
	assert_matches "$stderr" "$refused"
	assert_matches "$stderr" 'carrel: hint: if the command needs it, and the session has net-live: carrel session allow never.example.net'
	carrel exec -s "$SESSION" -- "${look[@]}" 192.0.2.1
	assert_matches "$stderr" '^carrel: the command tried an address that no `allow` line opens'
	# What was refused twice within a second is told a second later, and not of the next command.
	carrel exec -s "$SESSION" -- sh -c 'getent hosts twice.example.net; getent hosts twice.example.net; sleep 0.1'
	assert_status 0
	carrel exec -s "$SESSION" -- sh -c 'sleep 1.5; exit 3'
	assert_status 3
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel exec -s "$SESSION" -- curl -sS "http://example.org:443"
	assert_matches "$stderr" $'carrel: what was sent is not TLS for that very name: example.org:443\ncarrel: hint: '
	# However many other names were asked for before: a long session asks for many, and the list of them is bounded.
	carrel exec -s "$SESSION" -- python3 -c '
import socket
for i in range(400):
    try:
        socket.getaddrinfo(f"n{i}.example.net", 80, socket.AF_INET)
    except socket.gaierror:
        pass'
	assert_status 0
	carrel exec -s "$SESSION" -- python3 -c 'import socket; socket.getaddrinfo("late.example.net", 80)'
	assert_matches "$stderr" "$refused"
	assert_matches "$stderr" 'carrel session allow late.example.net$'
	carrel session net -s "$SESSION" --json
	[[ $(jq '[.network.names[] | select(.decision == "allowed")] | length' <<<"$output") == 1 ]] || fail 'what was reached is no longer told'
	local port
	for port in {22..61}; do # each is told, at the command's own end
		carrel exec -s "$SESSION" -- python3 -c 'import socket, sys; socket.create_connection(("example.org", int(sys.argv[1])))' "$port"
		assert_status 1
		assert_matches "$stderr" "carrel session allow example.org:$port\$"
	done
	# Many at once: nothing is lost but those words.
	carrel exec -s "$SESSION" -- python3 -c '
import socket
address = socket.getaddrinfo("example.org", 1, socket.AF_INET)[0][4][0]
for port in range(3000, 6000):
    with socket.socket() as s:
        s.connect_ex((address, port))'
	assert_status 0
	carrel exec -s "$SESSION" -- curl -sS "$SITE"
	assert_output 'hello example.org'
	carrel exec -s "$SESSION" --net none -- "${look[@]}" 192.0.2.1
	assert_matches "$stderr" "$none"
	carrel exec -s "$SESSION" --net none -- sh -c 'exit 3'
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel session end -s "$SESSION"
	assert_status 0
}
