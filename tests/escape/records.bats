#!/usr/bin/env bats
# The host side obeys the records that it wrote itself, and nothing that a tool writes where a scratch base may be
# later, whoever owns it. The control arm: it obeys what lies in the state directory.
# ctest: cost=35
load ../lib/common
load ../lib/session
load escape

ID=aaaaaaaaaaaaaaaaaaaa

# forge DIR: a note in DIR that a session was killed in whose home ~/.ssh/id was absent.
forge() {
	printf 'absent\0%s\0%s\0%s\0' "$HOME/.ssh" "$HOME/.ssh/id" 0 >"$1/protected"
}

make_key() {
	(umask 077 && mkdir -p "$HOME/.ssh")
	(umask 077 && echo key >"$HOME/.ssh/id")
}

# key_stays: where it was, and nowhere else.
key_stays() {
	[[ $(<"$HOME/.ssh/id") == key ]] || fail 'the key was moved'
}

@test "a forged session directory in what becomes a scratch base moves nothing" {
	make_key
	session sh -c "mkdir -p tmp/carrel-$ID; chmod -R 0700 tmp"
	assert_status 0
	forge "$WS/tmp/carrel-$ID" # as a tool could
	cp -a "$WS/tmp/carrel-$ID" "$WS/tmp/carrel-bbbbbbbbbbbbbbbbbbbb"
	TMPDIR=$WS/tmp session true
	assert_status 0
	carrel gc --scratch-base "$WS/tmp"
	assert_status 0
	[[ -z $output ]] || fail 'gc took it for a session'
	carrel gc
	assert_status 0
	key_stays
	[[ -e $WS/tmp/carrel-$ID/protected ]] || fail 'what is nobody'\''s was removed'
	# The control arm: the same note in a record.
	local record=$HOME/.local/state/carrel/sessions/$ID
	mkdir -m 0700 "$record"
	ln -s "$WS/tmp/carrel-$ID" "$record/where"
	ln -s "$(stat -c %d:%i "$WS/tmp/carrel-$ID")" "$record/inode"
	forge "$record"
	carrel gc
	assert_matches "$output" "removed carrel-$ID"
	[[ ! -e $HOME/.ssh/id ]] || fail 'a record is not obeyed: this test shows nothing'
}

@test "what a tool puts at the place of a session directory is not removed for it" {
	local dir

	start_and_wait run --scratch-base "$WS/../base" -- sh -c 'touch ready; sleep 1000'
	dir=$(session_dir)
	signal KILL
	finish
	mv "$dir" "$T/real"
	mkdir -m 0700 "$dir"
	touch "$dir/file"
	carrel gc
	assert_status 0
	[[ -e $dir/file ]] || fail 'another directory was removed'
	rm -r "$dir" "$T/real"
}

@test "the records are not there, and what leads to them cannot be moved away" {
	local state=$HOME/.local/state/carrel

	carrel run --write "$HOME" -- true
	assert_status 0
	mkdir -p "$state/marker" # with a name that could be listed
	for args in "" "--write $HOME" "--write $HOME/.local" "--bind $HOME:$HOME/bound:rw"; do
		mkdir -p "$HOME/bound"
		# shellcheck disable=SC2086 # options, word by word
		carrel run $args -- sh -c '
			for state; do
				ls -A "$state" 2>/dev/null
				mkdir "$state/sessions" 2>/dev/null && echo "made"
				mv "$state" "$state.x" 2>/dev/null && echo "moved $state"
				up=${state%/*}
				mv "$up" "$up.x" 2>/dev/null && echo "moved $up"
				up=${up%/*}
				mv "$up" "$up.x" 2>/dev/null && echo "moved $up"
			done; true' sh "$state" "$HOME/bound/.local/state/carrel"
		assert_status 0
		[[ -z $output ]] || fail "with '$args'"
		[[ -d $state/marker ]] || fail "gone with '$args'"
	done
	# The control arm: in a directory that is none of carrel's the same works.
	mkdir -p "$HOME/.local/state2/carrel"
	carrel run --write "$HOME" -- mv "$HOME/.local/state2" "$HOME/.local/state3"
	assert_status 0
	rmdir "$state/marker"
}

@test "no policy makes the records or the scratch base writable" {
	local state=$HOME/.local/state/carrel setting

	carrel run -- true
	mkdir -p "$WS/d"
	for setting in "--write $state" "--write $state/sessions" "--bind $state:$WS/d:rw" \
		"--bind $state/sessions:$WS/d:rw"; do
		# shellcheck disable=SC2086
		carrel run $setting -- true
		assert_refused 'the records of sessions lie here'
	done
	mkdir -p "$BASE/carrel-$ID"
	for setting in "--write $BASE" "--bind $BASE:$WS/d:rw" "--write $BASE/carrel-$ID"; do
		# shellcheck disable=SC2086
		carrel run $setting -- true
		assert_status 125
		assert_matches "$stderr" 'this is the scratch base, where other sessions have their scratch'
	done
	rmdir "$BASE/carrel-$ID"
	mkdir "$BASE/mine"
	carrel run --write "$BASE/mine" -- touch "$BASE/mine/x"
	assert_status 0
	rm -r "$BASE/mine"
}

@test "100,000 foreign directories in the base cost a run nothing, and are left alone" {
	/usr/bin/python3 -c 'import os, sys
os.chdir(sys.argv[1])
for i in range(20000):
    os.mkdir("carrel-" + "".join("abcdefghijklmnop"[(i >> s) & 15] for s in range(0, 80, 4)), 0o700)' "$BASE"
	strace -f -o "$T/trace" "$CARREL" run -- true || skip 'no strace that may trace'
	(($(grep -c carrel-aaaa "$T/trace") == 0)) || fail 'it looked at them'
	carrel gc
	assert_status 0
	(($(find "$BASE" -mindepth 1 -maxdepth 1 | wc -l) == 20000)) || fail 'some were removed'
	find "$BASE" -mindepth 1 -delete
}

@test "what a killed session left is settled in the background, by one process, and said" {
	local state=$HOME/.local/state/carrel

	# Stopped first: it would take away what appears while it lives.
	start_and_wait run -- sh -c 'touch ready; until [ -e go ]; do sleep 0.02; done; echo evil >.envrc; sleep 1000'
	signal STOP
	touch "$WS/go"
	wait_for test -s "$WS/.envrc"
	signal KILL
	finish
	session true
	assert_status 0
	is_settled() { [[ ! -e $WS/.envrc && -z $(ls "$state/sessions") ]]; }
	wait_for is_settled
	wait_for test -s "$state/notices"
	session true
	assert_matches "$stderr" 'quarantined, since the host would obey it: .*\.envrc'
	session true
	refute_matches "$stderr" 'quarantined'
	rm -rf "$BASE"/*.quarantine
}

# forge_place DIR: what a tool does to be obeyed in a place of records: DIR/sessions and a record in it.
forge_place() {
	cat >"$WS/forge" <<-'EOF'
		umask 077
		mkdir -p "$1/sessions/$3" || exit 0
		ln -s "$PWD/carrel-$3" "$1/sessions/$3/where"
		printf 'absent\0%s\0%s\0%s\0' "$2" "$2/.ssh/id" 0 >"$1/sessions/$3/protected"
	EOF
	sh "$WS/forge" "$1" "$HOME" "$ID"
}

@test "records that a session with another state directory makes where others look are not obeyed" {
	local name place other=$T/other

	(umask 077 && mkdir "$HOME/.local" "$HOME/.local/state" "$HOME/run" "$HOME/base")
	for name in home runtime tmp; do
		make_key
		local -a settings=()
		case $name in
		home) place=$HOME/.local/state/carrel settings=(--write "$HOME/.local/state") ;;
		runtime)
			place=$HOME/run/carrel settings=(--write "$HOME/run")
			export XDG_RUNTIME_DIR=$HOME/run
			;;
		tmp)
			is_root && continue # tools have another uid
			place=/tmp/carrel-$EUID settings=(--scratch-base "$HOME/base" --write /tmp)
			[[ ! -e $place ]] || continue
			;;
		esac
		# The control arm: made on the host it is obeyed, in this environment.
		forge_place "$place"
		carrel gc
		assert_matches "$output" "removed carrel-$ID"
		[[ ! -e $HOME/.ssh/id ]] || fail "$name: a record is not obeyed there: this test shows nothing"
		rm -r "$place"
		make_key
		XDG_STATE_HOME=$other carrel run "${settings[@]}" -- sh forge "$place" "$HOME" "$ID"
		[[ ! -e $place/sessions/$ID ]] || fail "$name: the record is there"
		carrel gc
		refute_matches "$output" "removed carrel-$ID"
		key_stays
		# Nor where it is there already, nor when it is named.
		(umask 077 && mkdir -p "$place")
		XDG_STATE_HOME=$other carrel run "${settings[@]}" -- sh forge "$place" "$HOME" "$ID"
		[[ ! -e $place/sessions ]] || fail "$name: made in what existed"
		[[ $name != home ]] || {
			XDG_STATE_HOME=$other carrel run --write "$place" -- true
			assert_refused 'the records of sessions lie here'
		}
		rm -r "$place"
	done
	for place in /tmp/.carrel-quarantine-*/"carrel-$EUID.quarantined"; do
		[[ ! -O $place ]] || rm -r "${place%/*}"
	done
	find "$HOME" -name '.carrel-quarantine-*' -prune -exec rm -r {} +
}

@test "a state directory in the workspace is refused: a session with another one could have made it" {
	make_key
	session true # the usual one
	forge_place "$WS/.state/carrel"
	XDG_STATE_HOME=$WS/.state session true
	assert_refused 'the state directory lies in the workspace'
	ln -s "$WS/.state" "$T/link"
	XDG_STATE_HOME=$T/link session true
	assert_refused 'the state directory lies in the workspace'
	key_stays
	# The control arm: beside the workspace the same is obeyed.
	mv "$WS/.state" "$T/state"
	XDG_STATE_HOME=$T/state session true
	assert_status 0
	wait_for test ! -e "$HOME/.ssh/id"
	wait_for test ! -e "$T/state/carrel/sessions/$ID"
}

# all_stays: nothing of what forged records name was moved, removed or read.
all_stays() {
	key_stays
	[[ $(ls -A "$HOME/.ssh") == id ]] || fail 'something else is beside the key'
	(($(find "$T/root" -name file | wc -l) == $1)) || fail 'a directory was removed that no record had made'
	[[ -z $(find "$HOME" "$T/root" -name '.carrel-quarantine-*') ]] || fail 'something was moved'
}

# peak COMMAND...: its status, and in $T/peak how much memory it had at most, with its children, in KiB.
peak() {
	run --separate-stderr timeout -k 1 120 /usr/bin/python3 -c 'import resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open(sys.argv[1], "w"))
sys.exit(status)' "$T/peak" "$@"
}

@test "200 forged, damaged and enormous notes of every kind move nothing, and hold up neither gc nor a run" {
	local state=$HOME/.local/state/carrel place count left

	make_key
	session true
	mkdir "$T/root"
	count=$(/usr/bin/python3 "$CARREL_SOURCE/tests/escape/forge.py" "$state/sessions" "$HOME" "$T/root")
	((count >= 200)) || fail "only $count were made"
	for place in notices sweep.lock; do
		rm -f "${state:?}/$place"
		mkfifo "$state/$place"
	done
	peak "$CARREL" gc
	[[ $status == 0 || $status == 125 ]] || fail "status $status: $stderr"
	(($(<"$T/peak") < 131072)) || fail "$(<"$T/peak") KiB"
	all_stays "$count"
	# What could be understood is settled and gone; the rest stays, is said, and is in nobody's way.
	left=$(find "$state/sessions" -mindepth 1 -maxdepth 1 | wc -l)
	((left < count)) || fail 'nothing was settled'
	refute_matches "$stderr" $'[^\n\t -~]'
	peak "$CARREL" run -- touch ran
	assert_status 0
	[[ -e ran ]]
	rm -f "$state/notices" "$state/sweep.lock"
	session true
	assert_status 0
	carrel gc --dry-run
	all_stays "$count"
	chmod -R u+rwx "$state" && rm -r "$state"
	# The same where tools can write, and where a base is later: it is nobody's.
	mkdir -m 0700 "$WS/tmp"
	/usr/bin/python3 "$CARREL_SOURCE/tests/escape/forge.py" "$WS/tmp" "$HOME" "$WS/tmp" >/dev/null
	count=$(find "$WS/tmp" | wc -l)
	TMPDIR=$WS/tmp session true
	assert_status 0
	carrel gc --scratch-base "$WS/tmp"
	assert_status 0
	[[ -z $output ]] || fail "gc took something for a session: $output"
	(($(find "$WS/tmp" | wc -l) == count)) || fail 'something of it is gone'
	key_stays
}
