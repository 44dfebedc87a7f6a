# live.bash - live sessions beside the test. After `load ../lib/common`:  load ../lib/live
#
# shellcheck disable=SC2034 # what is set here the tests read
#
# A state directory of the test's own ($XDG_RUNTIME_DIR), so that no test meets another's sessions. A
# supervisor must not hold what bats reads to its end: descriptors above 2 are closed.

setup() {
	live_setup
}

teardown() {
	live_teardown
}

live_setup() {
	common_setup
	make_runtime_dir "$T/run"
}

# What a failed test left is ended by kill_left.
live_teardown() {
	common_teardown
}

# make_runtime_dir DIR
make_runtime_dir() {
	mkdir -p "$1"
	chmod 0700 "$1"
	export XDG_RUNTIME_DIR=$1
}

# begin [SETTING...]: a live session; its id is in ID, its directory in DIR.
begin() {
	"$CARREL" session start --json "$@" >"$T/begun" 2>"$T/begin.err" </dev/null 3>&- 4>&- ||
		fail "no session: $(<"$T/begin.err")"
	ID=$(jq -er .session "$T/begun")
	DIR=$(jq -er .session_dir "$T/begun")
	SUPERVISOR=$(jq -er .pid "$T/begun")
	export CARREL_SESSION=$ID
}

# inside [OPTION...] COMMAND...: as `carrel exec`, with status, output and stderr.
inside() {
	apart "$CARREL" exec "$@" </dev/null
}

# finish_session: it must end well, and leave nothing.
end_session() {
	carrel session end -s "${1-$ID}"
	assert_status 0
}

# control VERB...: the client that was written from the document.
control() {
	apart /usr/bin/python3 "$CARREL_SOURCE/tests/lib/control_client.py" "$ID" "$@" \
		</dev/null
	[[ ${stderr-} != *Traceback* ]] || fail 'the client failed'
}

# exec_in_background OPTION... -- COMMAND...: its pid is in EXEC, what it writes in $T/out and $T/err.
exec_in_background() {
	: >"$T/out"
	"$CARREL" exec "$@" >"$T/out" 2>"$T/err" </dev/null 3>&- 4>&- &
	EXEC=$!
}

# supervisor_descriptors: how many it has open.
supervisor_descriptors() {
	local open count=0

	# The watch for protected paths is opened when the session is two seconds old.
	for open in "/proc/$SUPERVISOR/fd"/*; do
		[[ $(readlink "$open") == anon_inode:inotify ]] || ((count += 1))
	done
	printf '%s\n' "$count"
}

# gone PID
gone() {
	! kill -0 "$1" 2>/dev/null
}
