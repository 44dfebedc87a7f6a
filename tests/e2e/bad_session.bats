#!/usr/bin/env bats
# Bad input around live sessions: each a clear error, and nothing lost.
load ../lib/common
load ../lib/live

refused() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	assert_matches "$stderr" "^carrel: .*$1"
}

@test "a state directory of another owner, of a mode that lets others in, that is no directory" {
	mkdir -m 0755 "$T/run/carrel"
	carrel session start
	refused 'state directory lets others in'
	carrel session list
	refused 'state directory lets others in'
	carrel gc
	refused 'state directory lets others in'
	rmdir "$T/run/carrel"
	mkdir -m 0700 "$T/elsewhere"
	ln -s "$T/elsewhere" "$T/run/carrel"
	carrel session start
	refused 'state directory'
	rm "$T/run/carrel"
	: >"$T/run/carrel"
	carrel session start
	refused 'state directory'
	rm "$T/run/carrel"
	if is_root; then
		mkdir -m 0700 "$T/run/carrel"
		chown 12345 "$T/run/carrel"
		carrel session start
		refused 'belongs to somebody else'
		rmdir "$T/run/carrel"
	else
		ln -s /root "$T/run/carrel" # whatever it leads to
		carrel session list
		refused 'state directory'
		rm "$T/run/carrel"
	fi
	XDG_RUNTIME_DIR=$T/nowhere carrel session start
	refused 'cannot make the state directory'
	assert_nothing_left
}

@test "a forged, symlinked or foreign session directory is not trusted" {
	begin
	local link=$T/run/carrel/$ID.dir
	replace() { rm "$link" && ln -s "$1" "$link"; }
	replace "$T/elsewhere/carrel-$ID"
	inside -- true
	refused 'session directory'
	mkdir -p "$T/elsewhere"
	ln -s "$DIR" "$T/elsewhere/carrel-$ID"
	inside -- true
	refused 'session directory'
	rm "$T/elsewhere/carrel-$ID"
	mkdir -m 0755 "$T/elsewhere/carrel-$ID"
	inside -- true
	refused "not the caller's alone"
	replace "$WS"
	inside -- true
	refused 'names no session directory'
	replace ../relative
	inside -- true
	refused 'names no session directory'
	carrel gc
	assert_status 0
	[[ -S $T/run/carrel/$ID ]] || fail 'gc took a socket that answers'
	rm "$link"
	inside -- true
	refused 'no such live session'
	ln -s "$DIR" "$link"
	inside -- echo back
	assert_output back
	end_session
	rm -r "$T/elsewhere"
}

@test "a stale socket: said, listed by nobody, removed by gc, and never the living" {
	begin
	local living=$ID
	local stale=aaaaaaaaaaaaaaaaaaaa
	/usr/bin/python3 -c 'import os, socket, sys
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(sys.argv[2])' "$T/run/carrel" "$stale"
	mkdir -m 0700 "$BASE/carrel-$stale"
	ln -s "$BASE/carrel-$stale" "$T/run/carrel/$stale.dir"
	inside -s "$stale" -- true
	refused 'does not answer'
	carrel session list
	(($(wc -l <<<"$output") == 1))
	carrel gc --dry-run
	assert_output "would remove carrel-$stale"$'\n'"would remove entry $stale"
	[[ -d $BASE/carrel-$stale && -S $T/run/carrel/$stale ]]
	carrel gc
	assert_status 0
	[[ ! -e $BASE/carrel-$stale && ! -e $T/run/carrel/$stale && ! -L $T/run/carrel/$stale.dir ]]
	inside -s "$living" -- echo living
	assert_output living
	end_session "$living"
}

@test "gc follows no forged link out of the scratch bases" {
	mkdir -m 0700 "$T/run/carrel" "$T/precious" "$T/precious/carrel-bbbbbbbbbbbbbbbbbbbb"
	touch "$T/precious/carrel-bbbbbbbbbbbbbbbbbbbb/file"
	ln -s "$T/precious" "$T/run/carrel/aaaaaaaaaaaaaaaaaaaa.dir"
	ln -s "$T/precious/carrel-bbbbbbbbbbbbbbbbbbbb" "$T/run/carrel/cccccccccccccccccccc.dir"
	carrel gc
	assert_status 0
	[[ -e $T/precious/carrel-bbbbbbbbbbbbbbbbbbbb/file ]] || fail 'it was removed'
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
