#!/usr/bin/env bats
# ctest: cost=60
# `explain` observes and decides nothing: tools that lie to it, flood it or hold it up spoil their own list, and no
# wall, limit or signal. The observer can be killed, and the session goes on.
load ../lib/common
load escape

setup() {
	common_setup
	R=$T/report.json
}

denials() {
	/usr/bin/python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
d, missing = r["denials"], r["denials_missing"]
print(eval(sys.argv[2]))' "$R" "$1"
}

# observer_of: the pid of the observer of the carrel that runs in the background ($RUN).
observer_of() {
	local pid

	for pid in $(pgrep -P "$RUN"); do
		[[ $(<"/proc/$pid/comm") != carrel-observer ]] || echo "$pid"
	done 2>/dev/null
}

observer_ended() {
	local pid

	pid=$(observer_of)
	[[ -z $pid || $(cut -d' ' -f3 "/proc/$pid/stat") == Z ]]
}

@test "a flood of refusals is bounded, and the time-out holds" {
	carrel run --explain --quiet --timeout 3s --grace 1s --report "$R" -- /usr/bin/python3 -c 'import os, itertools
for i in itertools.count():
    try: os.mkdir("/etc/%x%s" % (i, "x" * (i % 200)))
    except OSError: pass'
	assert_status 124
	[[ $(denials 'len(d) <= 1024 and missing') == 'there were more refusals than can be listed' ]]
}

@test "ten thousand forks: all are seen, and the limit of processes holds" {
	carrel run --explain --quiet --report "$R" -- /usr/bin/python3 -c 'import os
for i in range(10000):
    pid = os.fork()
    if pid == 0:
        try: os.mkdir("/etc/forked")
        except OSError: os._exit(0)
        os._exit(1)
    if os.waitpid(pid, 0)[1]: raise SystemExit(1)'
	assert_status 0
	[[ $(denials '[x["times"] for x in d if x["what"] == "/etc/forked"]') == '[10000]' ]] || fail "$(<"$R")"
}

@test "a tool that changes the path while it is looked at, or passes none, spoils its own list alone" {
	carrel run --explain --quiet --report "$R" -- /usr/bin/python3 -c 'import ctypes, mmap, os
libc = ctypes.CDLL(None)
shared = mmap.mmap(-1, 4096)
shared[:10] = b"/etc/aaaa\0"
buffer = (ctypes.c_char * 64).from_buffer(shared)
child = os.fork()
while not child:
    shared[:10] = b"/usr/bb\0\0\0"
    shared[:10] = b"/etc/aaaa\0"
for i in range(20000):
    libc.mkdir(buffer, 0o700)
for address in 0, 1, 4095, 2**47 - 4096, 2**63:
    libc.mkdir(ctypes.c_void_p(address), 0o700)
    libc.connect(0, ctypes.c_void_p(address), 2**31)
    libc.sendmsg(0, ctypes.c_void_p(address), 0)
os.kill(child, 9)'
	assert_status 0
	[[ $(denials 'all(x["what"].startswith(("/etc/", "/usr/")) for x in d if x["tried"] == "make")') == True ]]
	[[ ! -e /etc/aaaa && ! -e /usr/bb ]]
}

@test "the walls are those of a run without it" {
	carrel run --explain --quiet -- sh -c 'touch /etc/x; mount -t tmpfs none /mnt; cat /etc/shadow; kill -0 1 && echo can; grep -E "^(Seccomp|NoNewPrivs|CapEff)" /proc/self/status' 2>/dev/null
	with=$output
	carrel run --quiet -- sh -c 'touch /etc/x; mount -t tmpfs none /mnt; cat /etc/shadow; kill -0 1 && echo can; grep -E "^(Seccomp|NoNewPrivs|CapEff)" /proc/self/status' 2>/dev/null
	assert_output "$with"
}

@test "the observer is killed: the session goes on, and the list says so" {
	mkfifo "$T/go"
	"$CARREL" run --explain --quiet --report "$R" --read "$T" -- sh -c 'touch /etc/before; echo ready; read x; touch /etc/after; echo on' \
		<"$T/go" >"$T/out" 2>/dev/null &
	RUN=$!
	exec 9>"$T/go"
	wait_for grep -q ready "$T/out"
	kill -KILL "$(observer_of)"
	wait_for observer_ended
	echo x >&9
	exec 9>&-
	wait "$RUN"
	[[ $(tail -1 "$T/out") == on ]]
	[[ $(denials 'missing') == 'the observer has died' ]] || fail "$(<"$R")"
	[[ $(denials '[x["what"] for x in d if x["tried"] == "make"]') == "['/etc/before']" ]]
}

@test "the observer stands still: a time-out and a signal end the session all the same" {
	for how in timeout signal; do
		rm -f "$T/out"
		"$CARREL" run --explain --quiet --timeout "$([[ $how == timeout ]] && echo 2s || echo 1h)" --grace 1s --report "$R" -- \
			sh -c 'echo ready; while :; do touch /etc/x; done' >"$T/out" 2>/dev/null &
		RUN=$!
		wait_for grep -q ready "$T/out"
		kill -STOP "$(observer_of)"
		if [[ $how == signal ]]; then
			kill -TERM "$RUN"
			kill -TERM "$RUN"
		fi
		wait "$RUN" && status=0 || status=$?
		[[ $status != 0 ]]
		[[ $(denials 'd is not None') == True ]]
	done
}

@test "a covered file is replaced on the host: it is covered again, and the list says why it ends" {
	git init -q .
	mkfifo "$T/go"
	"$CARREL" run --explain --quiet --report "$R" -- sh -c 'echo ready; read x; echo y >>.git/config || echo kept; touch /etc/x || :' \
		<"$T/go" >"$T/out" 2>/dev/null &
	RUN=$!
	exec 9>"$T/go"
	wait_for grep -q ready "$T/out"
	wait_for pgrep -P "$RUN" -x carrel-coverer
	git config user.name replaced
	wait_for observer_ended
	echo x >&9
	exec 9>&-
	wait "$RUN"
	[[ $(tail -1 "$T/out") == kept ]]
	[[ $(denials 'r["covered_again"] != []' ) == True ]]
	assert_matches "$(denials missing)" 'covered again'
}
