#!/usr/bin/env bats
# A command has descriptors 0, 1 and 2 and no others, and none of them is a way out.
load ../lib/common
load escape

@test "descriptors 3 and up do not get in" {
	exec 7<"$T" 20<>"$T/held" 21</dev/null
	broke attack_files descriptors
	held_by absent attack_files descriptors
	exec 7<&- 20<&- 21<&-
}

@test "nor when they are inherited by a shell inside" {
	exec 9<>"$T/held"
	session sh -c 'echo evil >&9'
	((status != 0)) || fail 'descriptor 9 was there'
	[[ ! -s $T/held ]]
	exec 9<&-
}

@test "a file given as stdin is not written by opening it again" {
	echo text >"$T/input"
	reopen() { "$@" attack_files reopen-write 0 <"$T/input"; }
	broke reopen
	echo text >"$T/input"
	run --separate-stderr reopen "$CARREL" run --
	[[ $(verdict) != escaped ]] || [[ $(<"$T/input") == text ]] || fail 'the file was written'
	[[ $(<"$T/input") == text ]]
}

@test "a file given as stdout is not read by opening it again" {
	echo 'older secret' >"$T/out"
	reopen() { "$@" attack_files reopen-read 1 >>"$T/out" 2>/dev/null; }
	reopen
	grep -q escaped "$T/out" || fail 'control'
	echo 'older secret' >"$T/out"
	reopen "$CARREL" run --
	! grep -q escaped "$T/out" || fail 'what was in the file before can be read'
}

@test "a log that may only grow is not overwritten" {
	append() { "$@" attack_files clear-append >>"$T/log"; }
	echo 'first line' >"$T/log"
	append
	[[ $(head -n 1 "$T/log") != 'first line' ]] || fail 'control'
	echo 'first line' >"$T/log"
	append "$CARREL" run --
	[[ $(head -n 1 "$T/log") == 'first line' ]] || fail 'the log was overwritten'
}

@test "a log is not cut" {
	cut() { "$@" attack_files truncate-stdout >>"$T/log"; }
	echo 'first line' >"$T/log"
	cut
	! grep -q first "$T/log" || fail 'control'
	echo 'first line' >"$T/log"
	cut "$CARREL" run --
	[[ $(head -n 1 "$T/log") == 'first line' ]] || fail 'the log was cut'
}

@test "a file given as stdin is not locked" {
	echo text >"$T/input"
	run attack_files lock-stdin <"$T/input"
	assert_output escaped
	in_background_lock() {
		"$CARREL" run -- sh -c 'attack_files lock-stdin; touch locked; sleep 1000' <"$T/input" \
			>/dev/null 2>&1 3>&- 4>&- &
		BACKGROUND=$!
	}
	in_background_lock
	wait_for test -e "$WS/locked"
	flock --nonblock "$T/input" true || fail 'the session holds a lock on the file'
	kill -TERM "$BACKGROUND"
	wait "$BACKGROUND" || true
}

@test "a directory given as stdin is refused" {
	step_out() { attack_files step-out ../ <"$T"; }
	broke step_out
	directory() { "$CARREL" run -- attack_files step-out ../ <"$T"; }
	run --separate-stderr directory
	assert_refused 'a directory'
}

@test "a descriptor without rights, or of the kernel's, is refused as stdin" {
	local kind

	for kind in 'os.open("/", os.O_PATH)' 'os.pidfd_open(os.getpid())' \
		'select.epoll()' 'os.eventfd(0)'; do
		run --separate-stderr python3 -c "
import os, select
thing = $kind
os.dup2(thing if isinstance(thing, int) else thing.fileno(), 0)
os.execv('$CARREL', ['carrel', 'run', '--', 'true'])"
		assert_refused 'standard input'
	done
}

@test "a listening socket is refused, and one of another family" {
	local kind

	for kind in 'AF_UNIX, socket.SOCK_STREAM' 'AF_INET, socket.SOCK_STREAM'; do
		run --separate-stderr python3 -c "
import os, socket
s = socket.socket(socket.$kind)
if s.family == socket.AF_INET: s.bind(('127.0.0.1', 0))
else: s.bind('$T/socket')
s.listen()
os.dup2(s.fileno(), 0)
os.execv('$CARREL', ['carrel', 'run', '--', 'true'])"
		assert_refused 'listening socket'
	done
	run --separate-stderr python3 -c "
import os, socket
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
os.dup2(s.fileno(), 0)
os.execv('$CARREL', ['carrel', 'run', '--', 'true'])"
	assert_refused 'a socket of a family that is not passed on'
}

@test "a socket of the host's network given as stdin is not one inside" {
	local program='
import os, socket, sys
def has_socket():
    try:
        return socket.socket(fileno=os.dup(0)).family == socket.AF_INET
    except OSError:
        return False
print("escaped" if has_socket() else "held")'
	given() {
		python3 -c '
import os, socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname())
os.dup2(c.fileno(), 0)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
	}
	broke given python3 -c "$program"
	run --separate-stderr given "$CARREL" run -- python3 -c "$program"
	assert_output held
}

@test "a file given as stderr is not reached by its descriptor" {
	echo 'older secret' >"$T/errors"
	"$CARREL" run -- sh -c 'readlink /proc/self/fd/2; attack_files reopen-read 2' \
		>"$T/out" 2>>"$T/errors"
	refute_matches "$(<"$T/out")" escaped
	refute_matches "$(<"$T/out")" 'older secret'
	refute_matches "$(<"$T/out")" "$T"
	sh -c 'readlink /proc/self/fd/2' >"$T/out" 2>>"$T/errors"
	assert_matches "$(<"$T/out")" "$T"
}

# outside DESCRIPTOR-OPENING SCRIPT: with descriptor 5 so opened the script gets through to the host; inside it is not even started.
no_way_by() {
	local with=$1 script=$2

	run bash -c "exec 5$with; $script"
	[[ $output == *escaped* ]] || fail "control: $with"
	rm -f "$T/made"
	echo text >"$T/held"
	apart bash -c "exec 5$with; \"\$CARREL\" run --pass-fd 5 -- sh -c '$script'"
	assert_status 125
	[[ -z $output && ! -e $T/made && $(<"$T/held") == text ]] || fail "a way out: $with"
	assert_matches "$stderr" "^carrel: the descriptor is $3"
	if [[ ${BEGUN-} ]]; then
		apart bash -c "exec 5$with; \"\$CARREL\" exec --pass-fd 5 -- sh -c '$script'"
		assert_status 125
		[[ -z $output && ! -e $T/made ]] || fail "a way out of a live session: $with"
	fi
}

@test "--pass-fd gives no directory, no file and no namespace of the host's" {
	echo text >"$T/held"
	mkdir "$T/host"
	echo secret >"$T/host/secret"
	BEGUN=$("$CARREL" session start | sed -n 's/^session //p')
	export CARREL_SESSION=$BEGUN
	no_way_by "<$T/host" 'grep -q secret /proc/self/fd/5/secret && echo escaped' 'a directory'
	no_way_by "<$T/host" 'touch /proc/self/fd/5/../made && echo escaped' 'a directory'
	no_way_by "<$T/held" 'echo evil >/proc/self/fd/5 && echo escaped' 'a regular file'
	no_way_by ">>$T/held" 'echo evil >/proc/self/fd/5 && echo escaped' 'a regular file'
	no_way_by '</proc/self/environ' 'head -c 1 <&5 >/dev/null && echo escaped' 'a file of /proc'
	no_way_by '</proc/self/ns/net' 'test -e /proc/self/fd/5 && echo escaped' 'a namespace'
	# What is passed is what was named: the directory is there in no other way.
	apart bash -c "exec 5<$T/host 6</dev/null; \"\$CARREL\" run --pass-fd 6 -- ls /proc/self/fd"
	assert_output $'0\n1\n2\n3\n6'
	"$CARREL" session end >/dev/null
	unset CARREL_SESSION BEGUN
}

@test "--pass-fd gives no socket that can be connected anew, no listener, no pidfd, no event queue" {
	cat >"$T/pass.py" <<-'PYTHON'
		import os, select, socket, subprocess, sys, tempfile
		def bound(kind):
		    s = socket.socket(socket.AF_UNIX, kind)
		    s.bind(os.path.join(tempfile.mkdtemp(dir=sys.argv[2]), "s"))
		    s.listen()
		    return s
		server = socket.create_server(("127.0.0.1", 0))
		tcp = socket.create_connection(server.getsockname())
		memfd = os.memfd_create("open", os.MFD_ALLOW_SEALING)
		things = {"inet": tcp, "inet listener": server, "unix listener": bound(socket.SOCK_STREAM),
		          "unconnected": socket.socket(socket.AF_UNIX), "datagram": socket.socketpair(type=socket.SOCK_DGRAM)[0],
		          "netlink": socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), "pidfd": os.pidfd_open(os.getpid()),
		          "epoll": select.epoll(), "eventfd": os.eventfd(0), "path": os.open("/etc/passwd", os.O_PATH),
		          "memfd": memfd, "kmsg": os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)}
		for name, thing in things.items():
		    fd = thing if isinstance(thing, int) else thing.fileno()
		    r = subprocess.run([sys.argv[1], "run", "--pass-fd", f"{fd}:9", "--", "echo", "ran"], pass_fds=[fd],
		                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
		    if r.returncode != 125 or r.stdout or "carrel: the descriptor is " not in r.stderr:
		        print(name, r)
		    ok = subprocess.run(["ls", f"/proc/self/fd/{fd}"], pass_fds=[fd], stdout=subprocess.DEVNULL)
		    if ok.returncode:
		        print("control:", name)
		print("all refused")
	PYTHON
	run --separate-stderr python3 "$T/pass.py" "$CARREL" "$T"
	assert_output 'all refused'
}
