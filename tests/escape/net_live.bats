#!/usr/bin/env bats
# No tool of a live session can widen what the session reaches, whatever socket it gets hold of.
load ../lib/common
load ../lib/live
load ../lib/names
load escape

setup() {
	escape_setup
	make_runtime_dir "$T/run"
	need python3 curl
	world other.org=127.0.0.1 example.org=127.0.0.1
	# What `session allow` sends, by whoever runs it: to the control socket, or to a socket that it has inherited.
	cat >"$T/bin/attack_allow" <<-'ATTACK'
		#!/usr/bin/python3
		import errno, os, socket, struct, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.settimeout(120)
		rule = sys.argv[2].encode() + b"\0"
		try:
		    s.connect(sys.argv[1])
		    s.send(struct.pack("=IHHQIiIIiIIIQQQQ", 0x6C727263, 1, 13, 7, *[0] * 7, len(rule), *[0] * 4) + rule)
		    data = s.recv(65536)
		    kind = struct.unpack_from("=H", data, 6)[0] if data else 0
		    print("escaped" if kind == 70 else "refused:EPERM")
		except FileNotFoundError:
		    print("absent")
		except OSError as e:
		    print("refused:" + errno.errorcode[e.errno])
	ATTACK
	chmod 0755 "$T/bin/attack_allow"
}

teardown() {
	end_world
	live_teardown
}

# session COMMAND...: in the live session.
session() {
	apart "$CARREL" exec -s "$ID" --env PATH -- "$@" </dev/null
}

# reaches_nothing: nothing was added, and other.org is not reached.
reaches_nothing() {
	carrel session show -s "$ID" --json
	[[ $(jq -c .allow <<<"$output") == "[\"127.0.0.1:$WEB\"]" ]] || fail "it was widened: $(jq -c .allow <<<"$output")"
	session curl -sS --max-time 60 "http://other.org:$WEB"
	refute_matches "$output" hello
}

@test "the request that widens it, sent from inside: to its own session, and to one that another session shows" {
	make_runtime_dir "$HOME/other"
	begin "${OPEN[@]}" --net-live --read "$T/bin"
	local victim=$ID there=$HOME/other/carrel/$ID
	held "$T/bin/attack_allow" "$there" "other.org:$WEB"
	session carrel session allow "other.org:$WEB"
	refute_matches "${status-}" '^0$'
	reaches_nothing
	make_runtime_dir "$T/run"
	begin --read "$T/bin" --read "$HOME/other"
	held "$T/bin/attack_allow" "$there" "other.org:$WEB"
	end_session
	make_runtime_dir "$HOME/other"
	ID=$victim
	reaches_nothing
	broke "$T/bin/attack_allow" "$there" "other.org:$WEB" # the control arm: the same request from outside
	session curl -sS --max-time 60 "http://other.org:$WEB"
	assert_output 'hello other.org'
	end_session "$victim"
}

# What a process does to carrel-egress by its real pid: PTRACE_SEIZE is 0x4206.
REAL='import ctypes, os, signal, sys
pid, held = int(sys.argv[1]), []
for name in ("SIGSTOP", "SIGCONT", "SIGTERM", "SIGUSR1"):
    try: os.kill(pid, getattr(signal, name) if len(sys.argv) < 3 else 0)
    except OSError as e: held.append(e.errno)
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, pid, 0, 0) < 0: held.append(ctypes.get_errno())
try: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)); print("escaped")
except OSError as e: held.append(e.errno)
print("refused:EPERM" if len(held) == 6 else "escaped")'

@test "carrel-egress is not signalled, stopped or traced at its real pid" {
	begin "${OPEN[@]}" --net-live
	local egress

	egress=$(pgrep -P "$SUPERVISOR" carrel-egress)
	# The control arm: the same user outside may signal it (0 changes nothing), and its real pid is the one that is tried.
	broke python3 -c "$REAL" "$egress" check
	held python3 -c "$REAL" "$egress"
	session curl -sS --max-time 60 "http://127.0.0.1:$WEB"
	assert_output 'hello 127.0.0.1'
	kill -0 "$egress" || fail 'it was killed'
	kill -KILL "$egress" # from the host: the network ends, the session does not
	lost() { "$CARREL" session net -s "$ID" | grep -q 'has ended'; }
	wait_for lost
	session curl -sS --max-time 60 "http://127.0.0.1:$WEB"
	assert_matches "${status-}" "$CUT"
	session echo on
	assert_output on
	end_session
}
