#!/usr/bin/env bats
# Wrong input to live sessions: each gets a clear error, and the session loses nothing.
# ctest: once
load ../lib/common
load ../lib/live

refused() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	assert_matches "$stderr" "^carrel: .*$1"
}

# each_kind DIR WHAT COMMAND...: DIR lets others in, is a link, a file, or somebody else's: WHAT is said.
each_kind() {
	local dir=$1 what=$2

	shift 2
	mkdir -p "${dir%/*}"
	rm -rf "$dir"
	mkdir -m 0755 "$dir"
	carrel "$@"
	refused "$what lets others in"
	rmdir "$dir"
	mkdir -m 0700 "$T/elsewhere"
	ln -s "$T/elsewhere" "$dir"
	carrel "$@"
	refused "$what"
	rm "$dir"
	: >"$dir"
	carrel "$@"
	refused "$what"
	rm "$dir"
	if is_root; then
		mkdir -m 0700 "$dir"
		chown 12345 "$dir"
		carrel "$@"
		refused "$what belongs to somebody else"
		rmdir "$dir"
	fi
	rmdir "$T/elsewhere"
}

@test "a directory of sockets of another owner, of a mode that lets others in, that is no directory" {
	each_kind "$T/run/carrel" 'directory of sockets' session start
	each_kind "$T/run/carrel" 'directory of sockets' session list
	each_kind "$T/run/carrel" 'directory of sockets' gc
	XDG_RUNTIME_DIR=$T/nowhere carrel session start
	refused 'cannot make the directory of sockets'
	assert_nothing_left
}

@test "a state directory of another owner, of a mode that lets others in, that is no directory" {
	export XDG_STATE_HOME=$T/state
	each_kind "$T/state/carrel" 'state directory' run -- true
	each_kind "$T/state/carrel" 'state directory' session start
	if ! is_root; then
		chmod 0500 "$T/state"
		carrel run -- true
		refused 'cannot make or write the state directory'
		chmod 0700 "$T/state"
	fi
	rm -rf "$T/state" # only its last two parts are made
	carrel run -- true
	assert_status 0
	[[ -d $T/state/carrel/sessions ]]
	assert_nothing_left
	rm -rf "$T/state"
}

@test "gc goes on where one place is somebody else's" {
	need_root
	carrel run --keep -- true
	assert_status 0
	local kept=("$BASE"/carrel-*)
	rm -r "${kept[0]}"
	mkdir -m 0700 "$T/run/carrel"
	chown 12345 "$T/run/carrel"
	carrel gc
	assert_status 125
	assert_output "removed ${kept[0]##*/}"
	chown 0 "$T/run/carrel"
	carrel gc
	assert_status 0
	[[ -z $output ]] || fail 'it was removed twice'
}

@test "without a runtime directory the sockets are where nobody else can be first" {
	need_root
	unset XDG_RUNTIME_DIR
	[[ ! -e /run/user/0 ]] || skip 'needs a machine without /run/user'
	begin
	[[ -S $HOME/.local/state/carrel/run/$ID ]] || fail 'it listens elsewhere'
	inside -- sh -c "! test -e $HOME/.local/state/carrel/run/$ID"
	assert_status 0
	inside -- echo here
	assert_output here
	end_session
}

@test "a forged, symlinked or foreign record is not trusted" {
	begin
	local link=$T/run/carrel/$ID.record record
	record=$(readlink "$link")
	replace() { rm "$link" && ln -s "$1" "$link"; }
	replace "$T/elsewhere/$ID"
	inside -- true
	refused 'no such live session'
	mkdir -p "$T/elsewhere"
	ln -s "$record" "$T/elsewhere/$ID"
	inside -- true
	refused 'record'
	rm "$T/elsewhere/$ID"
	mkdir -m 0755 "$T/elsewhere/$ID"
	inside -- true
	refused "not the caller's alone"
	chmod 0700 "$T/elsewhere/$ID"
	inside -- true
	refused 'does not say where the session is'
	replace "$WS"
	inside -- true
	refused 'has no record'
	replace ../relative
	inside -- true
	refused 'has no record'
	carrel gc
	assert_status 0
	[[ -S $T/run/carrel/$ID ]] || fail 'gc took a socket that answers'
	rm "$link"
	inside -- true
	refused 'no such live session'
	ln -s "$record" "$link"
	inside -- echo back
	assert_output back
	end_session
	rm -r "$T/elsewhere"
}

# dead_session ID: a record without a lock, and its directory.
dead_session() {
	mkdir -m 0700 "$BASE/carrel-$1" "$HOME/.local/state/carrel/sessions/$1"
	ln -s "$BASE/carrel-$1" "$HOME/.local/state/carrel/sessions/$1/where"
	ln -s "$(stat -c %d:%i "$BASE/carrel-$1")" "$HOME/.local/state/carrel/sessions/$1/inode"
}

@test "a stale socket: said, listed by nobody, removed by gc, and never the living" {
	begin
	local living=$ID
	local stale=aaaaaaaaaaaaaaaaaaaa
	/usr/bin/python3 -c 'import os, socket, sys
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(sys.argv[2])' "$T/run/carrel" "$stale"
	dead_session "$stale"
	ln -s "$HOME/.local/state/carrel/sessions/$stale" "$T/run/carrel/$stale.record"
	inside -s "$stale" -- true
	refused 'does not answer'
	carrel session list
	(($(wc -l <<<"$output") == 1))
	carrel gc --dry-run
	assert_output "would remove carrel-$stale"$'\n'"would remove entry $stale"
	[[ -d $BASE/carrel-$stale && -S $T/run/carrel/$stale ]]
	carrel gc
	assert_status 0
	[[ ! -e $BASE/carrel-$stale && ! -e $T/run/carrel/$stale && ! -L $T/run/carrel/$stale.record ]]
	inside -s "$living" -- echo living
	assert_output living
	end_session "$living"
}

@test "gc follows no forged link" {
	mkdir -m 0700 "$T/run/carrel" "$T/precious" "$T/precious/bbbbbbbbbbbbbbbbbbbb"
	touch "$T/precious/bbbbbbbbbbbbbbbbbbbb/file"
	ln -s "$T/precious" "$T/run/carrel/aaaaaaaaaaaaaaaaaaaa.record"
	ln -s "$T/precious/bbbbbbbbbbbbbbbbbbbb" "$T/run/carrel/bbbbbbbbbbbbbbbbbbbb.record"
	carrel gc
	assert_status 0
	[[ -e $T/precious/bbbbbbbbbbbbbbbbbbbb/file ]] || fail 'it was removed'
	[[ -z $(ls -A "$T/run/carrel") ]]
}

@test "root is no exception: another user's session is not root's" {
	need_root
	begin
	# As another user: the state directory is not theirs. With the descriptor of it: the peer is not.
	chmod 0755 "$T" "$T/run"
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups \
		env XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" "$CARREL" exec -s "$ID" -- true
	assert_status 125
	run --separate-stderr /usr/bin/python3 -c 'import os, socket, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.chmod(sys.argv[1], 0o755); os.chmod(sys.argv[1] + "/" + sys.argv[2], 0o666)
os.setresuid(65534, 65534, 65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(120)
s.connect(f"/proc/self/fd/{fd}/{sys.argv[2]}")
print(s.recv(4096)[80:].split(b"\0")[0].decode())' "$T/run/carrel" "$ID"
	chmod 0700 "$T/run/carrel"
	assert_output peer
	end_session
}

@test "a session that is ending takes nothing new, and says so" {
	begin --grace 1000s
	inside --detach --name slow -- sh -c 'trap "" TERM; touch ready; until [ -e go ]; do sleep 0.1; done'
	wait_for test -e "$WS/ready"
	"$CARREL" session end </dev/null >/dev/null 2>&1 3>&- 4>&- &
	local ending=$!
	is_ending() { [[ $("$CARREL" session show --json | jq -r .state) == ending ]]; }
	wait_for is_ending
	inside -- true
	refused 'ending|ended'
	control bad streams-lied
	[[ $output == 'ERROR ending|'* || $output == gone ]] || fail 'not refused as ending'
	touch "$WS/go"
	wait "$ending"
	assert_nothing_left
}

@test "a verb for sessions, called in one: where it works, and what to do in there" {
	local verb

	carrel session start
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	for verb in 'promote a b' 'scratch list' 'session show' 'exec -- true' 'prompt'; do
		# shellcheck disable=SC2086 # words
		carrel run --read "$CARREL" -- "$CARREL" $verb
		assert_status 125
		assert_matches "$stderr" 'this is inside of the session, which cannot be reached from here'
		assert_matches "$stderr" 'hint: whoever started it calls this verb outside, .*CARREL_WORKSPACE'
	done
	# Outside the variable alone says nothing of the kind.
	CARREL_SESSION=aaaaaaaaaaaaaaaaaaaa carrel promote a b
	assert_status 125
	assert_matches "$stderr" 'no such live session'
	CARREL_SESSION=$id carrel scratch list
	assert_status 0
	carrel session end "$id"
}

@test "a session whose directory was removed can be listed, shown and ended, and executes nothing" {
	begin
	mv "$BASE/carrel-$CARREL_SESSION" "$BASE/elsewhere"
	carrel session list
	assert_matches "$output" "$CARREL_SESSION  live"
	carrel session show
	assert_status 0
	carrel exec -- touch "$WS/ran"
	refused "the session's directory was removed: .*carrel-$CARREL_SESSION"
	assert_matches "$stderr" "hint: carrel session end ${CARREL_SESSION:0:8}"
	[[ ! -e $WS/ran ]]
	carrel session end
	assert_status 0
	unset CARREL_SESSION
	rm -rf "$BASE/elsewhere"
}
