#!/usr/bin/env bats
# Live sessions under stress, for some seconds; ./dev soak does the same for minutes.
load ../lib/common
load ../lib/live

storm() {
	run --separate-stderr /usr/bin/python3 "$CARREL_SOURCE/tests/lib/storm.py" "$CARREL" "$@" 3>&- 4>&-
	assert_status 0
}

# swept: what was killed is dead at once, and gone after gc.
swept() {
	only_entries() { [[ -z $(marked) ]]; }
	wait_for only_entries
	carrel gc
	assert_status 0
	assert_nothing_left
	[[ -z $(ls -A "$T/run/carrel") ]] || fail "gc left: $(ls -A "$T/run/carrel")"
}

@test "many sessions at once, with ten executions each" {
	storm many 8 10
	assert_nothing_left
}

@test "many executions in one session: nothing of its supervisor grows" {
	storm long 300
	assert_nothing_left
}

@test "SIGKILL at random: nothing survives gc, and no other session is harmed" {
	storm kill 8 "${RANDOM}"
	swept
}

@test "gc against gc, start and end" {
	storm gc 6
	swept
}

@test "sockets of the host that come and go while sessions start" {
	mkdir "$T/sockets"
	/usr/bin/python3 - "$T/sockets" 3>&- 4>&- <<-'PY' &
		import os, socket, sys
		while True:
		    made = []
		    for i in range(40):
		        s = socket.socket(socket.AF_UNIX)
		        s.bind(f"{sys.argv[1]}/socket{i}")
		        s.listen()
		        made.append(s)
		    for i, s in enumerate(made):
		        s.close()
		        os.unlink(f"{sys.argv[1]}/socket{i}")
	PY
	local churn=$! i
	for ((i = 0; i < 30; i++)); do
		carrel run --read "$T/sockets" -- true
		[[ $status == 0 ]] || break
	done
	kill "$churn"
	assert_status 0
}

@test "end against exec" {
	storm end 12
	assert_nothing_left
}
