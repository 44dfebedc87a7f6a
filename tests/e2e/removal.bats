#!/usr/bin/env bats
# carrel removes what hostile tools leave in the scratch, and touches nothing outside of it.
# ctest: cost=30
load ../lib/common
load ../lib/session

setup() {
	common_setup
	R=$T/report.json
	mkdir "$T/outside"
	echo precious >"$T/outside/file"
}

# leaves SCRIPT...: python that works in the scratch, then everything must be gone and nothing harmed.
leaves() {
	carrel run --read "$T/outside" -- /usr/bin/python3 -c "
import os, socket, stat, sys
os.chdir(os.environ['CARREL_SCRATCH'])
$1" "$T/outside"
	assert_status 0
	[[ -z $stderr ]] || fail 'said something'
	assert_nothing_left
	[[ $(<"$T/outside/file") == precious && -d $T/outside ]]
}

@test "directories of mode 000, nested" {
	leaves '
for d in ("a", "a/b", "a/b/c"):
    os.mkdir(d)
open("a/b/c/f", "w").close()
os.chmod("a/b/c/f", 0)
for d in ("a/b/c", "a/b", "a"):
    os.chmod(d, 0)'
}

@test "the scratch itself without any right" {
	leaves 'os.mkdir("d"); open("d/f", "w").close(); os.chmod("d", 0); os.chmod(".", 0)'
}

@test "5,000 levels" {
	leaves '
for i in range(5000):
    os.mkdir("d"); os.chdir("d")
open("f", "w").close()'
}

@test "5,000 levels of long names" {
	leaves '
n = "x" * 255
for i in range(5000):
    os.mkdir(n); os.chdir(n)'
}

@test "names of 255 arbitrary bytes" {
	leaves '
for b in list(range(1, 47)) + list(range(48, 256)):
    open(bytes([b]) * 255, "w").close()
    os.mkdir(bytes([b]) * 253 + b"\n" + b"d")
os.mkdir(b"-rf"); os.mkdir(b"..."); os.mkdir(b"a\nb")'
}

@test "links to outside are removed, never followed" {
	leaves '
out = sys.argv[1]
os.symlink(out, "dir"); os.symlink(out + "/file", "file"); os.symlink("/", "root")
os.symlink("..", "up"); os.symlink("loop", "loop"); os.symlink("x" * 4000, "long")
os.symlink("/proc/self/root", "magic"); os.mkdir("d"); os.symlink("../..", "d/up")
try:
    os.link(out + "/file", "hard")
except OSError:
    pass'
}

@test "hard links to files of the workspace do not take them along" {
	echo mine >"$WS/mine"
	leaves '
try:
    os.link(os.environ["CARREL_WORKSPACE"] + "/mine", "hard")
except OSError:
    pass
open("a", "w").close()
for i in range(1000): os.link("a", "l%d" % i)'
	[[ $(<"$WS/mine") == mine ]]
}

@test "FIFOs, sockets and sparse files" {
	leaves '
os.mkfifo("fifo"); s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen()
for n in range(3):
    f = open("sparse%d" % n, "wb"); f.truncate(1 << 42); f.close()'
}

@test "20,000 files in one directory and 4,000 directories" {
	leaves '
os.mkdir("many")
for i in range(20000): os.close(os.open("many/%d" % i, os.O_CREAT | os.O_WRONLY))
for i in range(4000): os.makedirs("deep/%d/x/y" % i)'
}

@test "entries that are being created until the end" {
	ends_soon sh_in '
		for n in 1 2 3 4; do (mkdir "$CARREL_SCRATCH/$n"; cd "$CARREL_SCRATCH/$n"; i=0; while :; do mkdir -p "$i/$i"; i=$((i+1)); done) & done
		while [ ! -d "$CARREL_SCRATCH/4/50" ]; do sleep 0.02; done'
	assert_status 0
	assert_nothing_left
}

@test "a scratch that the command renames or replaces" {
	leaves '
for what in (lambda: os.rename(".", "../gone"), lambda: os.rmdir("../scratch"), lambda: os.rmdir("../tool-results"),
             lambda: os.symlink("/etc", "../extra"), lambda: os.rename("../../" + os.path.basename(os.path.dirname(os.getcwd())), "../../x")):
    try:
        what(); sys.exit(9)
    except OSError:
        pass'
}

@test "what is removed after kill -9 is as hostile" {
	start_and_wait run -- /usr/bin/python3 -c '
import os, time
open("ready.tmp", "w").close()
os.chdir(os.environ["CARREL_SCRATCH"])
top = os.getcwd()
for i in range(3000):
    os.mkdir("d"); os.chdir("d")
os.chdir(top); os.symlink(os.environ["CARREL_WORKSPACE"], "l"); os.chmod("d", 0)
os.rename(os.environ["CARREL_WORKSPACE"] + "/ready.tmp", os.environ["CARREL_WORKSPACE"] + "/ready")
time.sleep(100)'
	signal KILL
	finish
	gone() { [[ -z $(marked) ]]; }
	wait_for gone
	touch "$WS/precious"
	carrel gc
	assert_status 0
	assert_nothing_left
	[[ -e $WS/precious ]]
}

# A file that root makes immutable in a live session's scratch.
immutable_session() {
	start_and_wait run --report "$R" -- sh -c 'mkdir "$CARREL_SCRATCH/d"; touch "$CARREL_SCRATCH/d/stays" "$CARREL_SCRATCH/goes" ready; while [ ! -e go ]; do sleep 0.02; done; exit '"$1"
	FILE=$(session_dir)/scratch/d/stays
	chattr +i "$FILE" 2>/dev/null || {
		touch "$WS/go"
		finish
		skip "no immutable files on $(stat -f -c %T "$T")"
	}
	touch "$WS/go"
	finish
}

@test "an immutable file is reported with its path: 125 where the command succeeded" {
	need_root
	need chattr
	immutable_session 0
	assert_status 125
	assert_matches "$stderr" "$FILE"
	keep_report "$R"
	assert_field "$R" .status 0
	assert_field "$R" .exit_status 125
	assert_field "$R" .teardown.result partial
	assert_field "$R" .teardown.path "$FILE"
	assert_field "$R" .teardown.errno_name EPERM
	assert_field "$R" .error.code teardown
	[[ ! -e $(session_dir)/scratch/goes ]]
	carrel gc
	assert_status 125
	assert_matches "$stderr" "$FILE"
	chattr -i "$FILE"
	carrel gc
	assert_status 0
	assert_nothing_left
}

@test "an immutable file does not hide the command's own failure" {
	need_root
	need chattr
	immutable_session 3
	assert_status 3
	assert_matches "$stderr" "$FILE"
	assert_field "$R" .teardown.result partial
	chattr -i "$FILE"
	carrel gc
}

@test "the report counts what the scratch held" {
	carrel run --report "$R" -- sh -c 'cd "$CARREL_SCRATCH"; mkdir a; head -c 100000 /dev/zero >a/f; touch b'
	assert_field "$R" .teardown.result removed
	assert_field "$R" .scratch.files 2 # what is not a directory
	(($(field "$R" .scratch.bytes) >= 98304))
	assert_field "$R" .scratch.kept false
}
