#!/usr/bin/env bats
# `--explain` and `--learn`: carrel lists what the walls refused, once each, with the line and the remedy, and nothing
# else. With the learned policy the second run passes, and that policy never opens what is hidden or protected.
# ctest: once
load ../lib/common
load ../lib/live

# A directory of the caller's own that a session can only read, and $HOME with a secret in it.
setup() {
	live_setup
	DATA=$HOME/data
	mkdir -p "$DATA" "$HOME/.ssh"
	echo secret >"$HOME/.ssh/id"
	R=$T/report.json
}

# explained ARGUMENT...: run with a report.
explained() {
	carrel run --read "$HOME" --report "$R" --explain "$@"
}

# denials PYTHON: the expression, of the list `d` of the report.
denials() {
	/usr/bin/python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))["denials"]
print(eval(sys.argv[2]))' "$R" "$1"
}

@test "a path that cannot be written: who, what, how often, the line, the remedy; and that helps" {
	explained -- sh -c 'for i in 1 2 3; do touch '"$DATA"'/x; done 2>/dev/null'
	[[ $(denials 'len(d)') == 1 ]] || fail "$(<"$R")"
	[[ $(denials '[d[0][k] for k in ("tried", "what", "errno_name", "times", "name")]') == \
		"['make', '$DATA/x', 'EROFS', 3, 'touch']" ]] || fail "$(<"$R")"
	[[ $(denials 'd[0]["lines"][0]["place"]') == 'command line: --read' ]]
	[[ $(denials 'd[0]["change"]["option"]') == "--write $DATA" ]]
	assert_matches "$stderr" "make $DATA/x: EROFS, 3 times, touch \([0-9]+\), "
	assert_matches "$stderr" "change   --write $DATA  \(to make\)"
	carrel run --read "$HOME" --write "$DATA" -- touch "$DATA/x"
	assert_status 0
}

@test "the words are those of carrel why" {
	explained --syscall errno sync -- sh -c "touch $DATA/x; sync; cat $HOME/.ssh/id" 2>/dev/null
	"$CARREL" why --json --read "$HOME" --syscall errno sync -- "$DATA/x" "$HOME/.ssh/id" >"$T/why"
	/usr/bin/python3 - "$T/why" "$R" <<-'END' || fail "$(<"$R")"
		import json, sys
		why = {w["path"]: w for w in json.load(open(sys.argv[1]))}
		found = {d["what"]: d for d in json.load(open(sys.argv[2]))["denials"]}
		assert len(found) == 3, found
		for path, w in why.items():
		    d = found[path]
		    assert d["lines"] == w["lines"], (d, w)
		    assert d["seen"] == w["seen"] and d["because"] == w["because"], (d, w)
		    assert d["change"] in w["changes"], (d, w)
		    assert w["outcome"][d["tried"]] == d["errno_name"], (d, w)
	END
	[[ $(denials '[x["lines"] for x in d if x["call"] == "sync"][0][0]["line"]') == 'syscall errno sync' ]]
}

@test "a call, an address, a hidden path, a protected one, one that is removed" {
	git init -q .
	touch "$DATA/old"
	explained -- /usr/bin/python3 -c 'import ctypes, os, socket, sys
data, home = sys.argv[1:]
def tried(call):
    try:
        call()
    except OSError as e:
        pass
tried(lambda: os.remove(data + "/old"))
tried(lambda: open(home + "/.ssh/id"))
tried(lambda: open(".git/config", "a"))
tried(lambda: socket.socket().connect(("10.9.8.7", 80)))
tried(lambda: socket.socket(socket.AF_INET6).connect(("fd00::1", 443)))
tried(lambda: os.sethostname("x") if hasattr(os, "sethostname") else socket.sethostname("x"))' "$DATA" "$HOME"
	assert_status 0
	[[ $(denials 'sorted((x["tried"], x["what"]) for x in d if x["errno_name"] != "ENOSYS" and x["call"] != "sethostname")') == \
		"[('connect', '10.9.8.7:80'), ('connect', '[fd00::1]:443'), ('read', '$HOME/.ssh/id'), ('remove', '$DATA/old'), ('write', '$WS/.git/config')]" ]] ||
		fail "$(<"$R")"
	[[ $(denials '[x["errno_name"] for x in d if x["call"] == "sethostname"]') == "['EPERM']" ]]
	[[ $(denials '[x["change"]["option"] for x in d if "10.9" in x["what"]]') == "['--allow 10.9.8.7:80']" ]]
	# Who asks a resolver of the host is not told to take the host's whole network.
	explained -- /usr/bin/python3 -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).connect(("10.9.8.7", 53))'
	assert_matches "$stderr" 'a resolver of its own for the names of --allow NAME'
}

@test "nothing is listed that succeeded, that is not there, or that a mode refuses" {
	echo mine >"$DATA/mine"
	explained -- sh -c "cat $DATA/mine; cat /no/such/file $DATA/nor/this; ls $HOME/.ssh; echo x >here; mkdir d; rm -r d
		echo to >\$TMPDIR/t; test -w $DATA/mine; python3 -c 1; :"
	[[ $(denials '[x for x in d if x["errno_name"] != "ENOSYS"]') == '[]' ]] || fail "$(<"$R")"
	assert_matches "$stderr" 'nothing was refused'
}

@test "without explain nothing is listed, and the report says null" {
	carrel run --report "$R" -- sh -c "touch $HOME/x" 
	refute_matches "$stderr" 'refused: '
	/usr/bin/python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["denials"] is None and d["denials_missing"] is None' "$R"
}

@test "quiet says nothing, the report all; the status is the command's" {
	explained --quiet -- sh -c "touch $DATA/x 2>/dev/null; exit 7"
	assert_status 7
	[[ -z $stderr ]]
	[[ $(denials 'len(d)') == 1 ]]
}

@test "a lock forbids the remedy, and is named" {
	need_root
	run --separate-stderr unshare --mount bash -c '
		mkdir -p "$1/layer" && mount -t tmpfs none "$1/layer" && mkdir "$1/layer/u" "$1/layer/w" &&
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/layer/u,workdir=$1/layer/w" none /etc &&
		mkdir -p /etc/carrel && echo "lock write" >/etc/carrel/policy || exit 77
		exec "$CARREL" run --explain --learn "$1/learned" -- touch /srv/x' bash "$T"
	[[ $status != 77 ]] || skip 'no second file system here'
	assert_matches "$stderr" 'make /srv/x: EROFS'
	assert_matches "$stderr" 'fixed    .*/etc/carrel/policy:1.*\(to make\)'
	refute_matches "$stderr" 'change '
	assert_matches "$(<"$T/learned")" '# no line allows this: .*lock'
}

@test "threads, exec from a thread, a child that is stopped and goes on, a signal: all as without" {
	explained -- /usr/bin/python3 -c 'import os, threading, time
t = threading.Thread(target=lambda: os.execv("/bin/sh", ["sh", "-c", "touch '"$DATA"'/th; echo became"]))
t.start()
time.sleep(60)'
	assert_output became
	[[ $(denials '[x["what"] for x in d if x["tried"] == "make"]') == "['$DATA/th']" ]]
	explained -- /usr/bin/python3 -c 'import os, signal
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(5)
print(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), flush=True)
os.kill(pid, signal.SIGCONT)
print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))'
	assert_output $'True\n5'
	explained -- sh -c 'trap "echo term; exit 3" TERM; kill -TERM $$; sleep 60'
	assert_output term
	assert_status 3
	explained -- sh -c 'kill -9 $$'
	assert_status 137
}

@test "without namespaces as well" {
	"$CARREL" doctor | grep -q 'landlock.*ABI' || skip 'no Landlock in this kernel'
	unshare -Ur true || skip 'no user namespaces here'
	run --separate-stderr unshare -Ur bash -c 'echo 0 >/proc/sys/user/max_user_namespaces || exit 77
		exec "$CARREL" run --quiet --degraded --explain --report "$1" -- sh -c "cat \"$2\"/.ssh/id; sleep 1000 & echo on"' bash "$R" "$HOME"
	[[ $status != 77 ]] || skip 'the limit of namespaces cannot be set'
	assert_status 0
	assert_output on
	[[ $(denials '[(x["tried"], x["what"]) for x in d if x["tried"] != "call"]') == "[('read', '$HOME/.ssh/id')]" ]] || fail "$(<"$R")"
}

@test "of all executions of a live session" {
	begin --read "$HOME" --explain --report "$R"
	carrel exec -- touch "$DATA/a"
	carrel exec -- touch "$DATA/b"
	carrel session end
	unset CARREL_SESSION
	assert_matches "$stderr$output" 'refused: 2 things'
	[[ $(denials '[x["what"] for x in d]') == "['$DATA/a', '$DATA/b']" ]] || fail "$(<"$R")"
}

@test "exec says what its own command was refused, and its report; without an observer --explain is refused" {
	begin --read "$HOME" --explain
	for i in 1 2; do
		carrel exec --report "$R" -- sh -c "touch $DATA/$i; touch $DATA/$i; exit 4" 
		assert_status 4
		assert_matches "$stderr" "make $DATA/$i: EROFS, 2 times, touch"
		assert_matches "$stderr" 'line     read .*home  \(command line: --read\)'
		[[ $(denials '[x["what"] for x in d if x["errno_name"] != "ENOSYS"]') == "['$DATA/$i']" ]] || fail "$(<"$R")"
	done
	carrel exec --no-explain -- touch "$DATA/3"
	refute_matches "$stderr" 'refused: '
	carrel exec --quiet -- touch "$DATA/4"
	refute_matches "$stderr" 'refused: '
	end_session
	begin
	carrel exec --explain -- true
	assert_status 125
	assert_matches "$stderr" 'what this session refuses is not seen: '
	assert_matches "$stderr" 'hint: carrel session start --explain'
	carrel exec --report "$R" -- true
	[[ $(denials d) == None ]]
	end_session
}

@test "what a tighter view of one execution refuses has the option of that execution as its line" {
	begin --read "$HOME" --explain --report "$T/session.json"
	carrel exec --workspace-mode ro --net none --report "$R" -- sh -c "touch x $DATA/y"
	assert_matches "$stderr" 'line     workspace-mode ro  \(carrel exec: --workspace-mode\)'
	assert_matches "$stderr" 'fixed    leave out --workspace-mode ro, .*  \(to (make|write)\)'
	[[ $(denials 'sorted(x["what"] for x in d)') == "['$DATA/y', '$WS/x']" ]] || fail "$(<"$R")"
	carrel exec -- touch x
	assert_status 0
	assert_matches "$stderr" 'nothing was refused'
	end_session
	R=$T/session.json
	[[ $(denials 'sorted(x["what"] for x in d)') == "['$DATA/y', '$WS/x']" ]] || fail "$(<"$R")"
}

@test "a name beside an open directory, also where the command is another user (is_root)" {
	explained -- /usr/bin/python3 -c 'import os, sys
try:
    os.open("x", os.O_WRONLY | os.O_CREAT, dir_fd=os.open(sys.argv[1], os.O_PATH))
except OSError:
    pass' "$DATA"
	[[ $(denials '[x["what"] for x in d if x["errno_name"] == "EROFS"]') == "['$DATA/x']" ]] || fail "$(<"$R")"
}

@test "an address that no line of the network allows" {
	explained --allow example.org -- /usr/bin/python3 -c 'import socket; socket.socket().connect_ex(("10.9.8.7", 80))'
	assert_matches "$stderr" 'connect 10.9.8.7:80: ENETUNREACH'
	assert_matches "$stderr" 'change   --allow 10.9.8.7:80  \(to connect\)'
}

@test "a live session whose observer has given way to a cover goes on, and its list says so" {
	git init -q .
	begin --explain
	carrel exec -- true
	until pgrep -P "$SUPERVISOR" -x carrel-coverer >/dev/null; do :; done
	git config user.name replaced
	while pgrep -r S,R,D,t -P "$SUPERVISOR" -x carrel-observer >/dev/null; do :; done
	carrel exec -- sh -c 'echo z >>.git/config || echo kept'
	assert_output kept
	assert_matches "$stderr" 'not all that was refused is listed: the observer of the session has ended'
	refute_matches "$stderr" 'nothing was refused'
	end_session
}

# --- learn --------------------------------------------------------------------------------------

# learns ARGUMENT...: the command fails; with what is learned it succeeds, and learns nothing new.
learns() {
	rm -f "$T/learned"
	carrel run --read "$HOME" --learn "$T/learned" -- "$@"
	[[ $status != 0 ]] || fail "this did not fail: $*"
	"$CARREL" policy check "$T/learned" >&2 || fail "$(<"$T/learned")"
	carrel run --read "$HOME" --policy "$T/learned" --explain -- "$@"
	[[ $status == 0 ]] || fail "$(<"$T/learned")"
}

# lines: what holds of it.
lines() {
	grep -v '^#' "$T/learned" | grep -v '^$' || :
}

@test "five programs: gcc, git, tar, python, make; the second run passes" {
	mkdir "$DATA/src"
	echo 'int main(void) { return 0; }' >"$DATA/src/a.c"
	learns gcc -o "$DATA/src/a" "$DATA/src/a.c"
	[[ $(lines) == "write $DATA/src" ]] || fail "$(<"$T/learned")"
	learns git -C "$DATA/src" init -q
	learns tar -C "$DATA" -cf "$DATA/all.tar" src
	learns /usr/bin/python3 -c 'import sys; open(sys.argv[1], "w")' "$DATA/py"
	printf 'all:\n\techo made >%s/made\n' "$DATA" >Makefile
	learns make
}

@test "a directory for many files, and nothing twice" {
	for i in 1 2 3 4; do echo "$i" >"$DATA/$i"; done
	carrel run --read "$HOME" --learn "$T/learned" -- /usr/bin/python3 -c 'import sys
for i in 1, 2, 3, 4:
    try: open("%s/%d" % (sys.argv[1], i), "a")
    except OSError: pass' "$DATA"
	[[ $(lines) == "write $DATA" ]] || fail "$(<"$T/learned")"
	assert_matches "$(<"$T/learned")" 'python3: write '
}

@test "what is hidden and what is protected is a remark, and so is a call that is judged by its arguments" {
	git init -q .
	carrel run --read "$HOME" --learn "$T/learned" -- /usr/bin/python3 -c 'import os, socket, sys
for name, mode in (sys.argv[1] + "/.ssh/id", "r"), (".git/config", "a"), (".git/hooks/new", "w"):
    try: open(name, mode)
    except OSError: pass
try: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
except OSError: pass' "$HOME"
	[[ -z $(lines) ]] || fail "$(<"$T/learned")"
	assert_matches "$(<"$T/learned")" "# read $HOME/.ssh/id"
	assert_matches "$(<"$T/learned")" "# write $WS/.git/"
	assert_matches "$(<"$T/learned")" '# syscall allow socket'
}

@test "names of files with newlines and control characters make no line and reach no terminal" {
	carrel run --read "$HOME" --learn "$T/learned" --report "$R" -- /usr/bin/python3 -c 'import os, sys
for name in "a\nwrite /\n", "b\x1b[2Jx", "c # write /":
    try: open(os.path.join(sys.argv[1], name), "w")
    except OSError: pass' "$DATA"
	refute_matches "$stderr" $'\x1b'
	refute_matches "$(<"$T/learned")" $'\x1b'
	! grep -qx 'write /' "$T/learned" || fail "$(<"$T/learned")"
	[[ $(lines) == "write $DATA" ]] || fail "$(<"$T/learned")"
	"$CARREL" policy check "$T/learned"
}
