# session.bash - running sessions beside the test. After `load ../lib/common`:  load ../lib/session
#
# A shell without job control starts background commands with SIGINT and SIGQUIT ignored; here they
# are put back to what an ordinary caller has. The launcher leads a process group of its own, as under
# a shell with job control: it can be stopped, and nothing that it does to its group reaches the test.

# start ARGUMENT...: the launcher in the background. Its pid is in LAUNCHER, what it writes in
# $T/out and $T/err.
start() {
	: >"$T/out"
	: >"$T/err" # what is killed at once has not opened them
	/usr/bin/python3 -c 'import os, signal, sys
os.setpgid(0, 0)
for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$CARREL" "$@" >"$T/out" 2>"$T/err" </dev/null 3>&- 4>&- &
	LAUNCHER=$!
}

# start_and_wait ARGUMENT...: as start, until the command has made the file `ready` in the workspace.
start_and_wait() {
	rm -f "$WS/ready"
	start "$@"
	wait_for test -e "$WS/ready"
}

# waits NAME: what a shell inside is to do: make the file NAME in the workspace, and wait for `tell NAME`
# without asking again and again. It holds its end open before it says so: nothing can be told too early.
waits() {
	printf 'mkfifo %s.told && exec 3<>%s.told && : >%s && read -r _ <&3' "$1" "$1" "$1"
}

# tell NAME: whoever waits. Where nobody does any more, this does not wait either.
tell() {
	echo 1<>"$WS/$1.told"
}

# finish: wait for what was started. Sets status, output and stderr.
# shellcheck disable=SC2034
finish() {
	status=0
	wait "$LAUNCHER" || status=$?
	output=$(<"$T/out")
	stderr=$(<"$T/err")
}

# signal NAME: to the launcher alone.
signal() {
	kill -s "$1" "$LAUNCHER"
}

# session_dir: the directory of the only session below the scratch base.
session_dir() {
	local -a found=("$BASE"/carrel-????????????????????)

	((${#found[@]} == 1)) && [[ -d ${found[0]} ]] && printf '%s\n' "${found[0]}"
}

# ends_soon COMMAND...: it ends, whatever its status, and not only when what it was told to sleep (1,000 s)
# is over.
ends_soon() {
	local from=$SECONDS

	"$@"
	((SECONDS - from < PATIENCE)) || fail "took $((SECONDS - from)) s: $*"
}
