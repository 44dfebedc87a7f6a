# escape.bash - what the escape tests share. After `load ../lib/common`:  load escape
#
# Each attempt has two arms. In the control arm (broke) it succeeds: outside, or with just the wall
# in question away. In the session (held) it must not. The attack programs print a verdict as
# their last line: escaped, refused:ERRNO, absent, held or killed:SIGNAL (attack.h).
#
# The test's directory is where a session sees the host: neither below /tmp nor below /var/tmp.

ESCAPE_HOME=$HOME

setup() {
	escape_setup
}

escape_setup() {
	COMMON_DIR=$(visible_place) common_setup
	chmod 0755 "$T" "$WS" "$HOME"
	mkdir "$T/bin"
	cp "$CARREL_HELPERS"/attack_* "$T/bin"
	chmod 0755 "$T/bin" "$T/bin"/*
	PATH=$T/bin:$PATH
	SETTINGS=()
}

# visible_place: a directory of the host that a session can read and the test can write in.
visible_place() {
	local place

	if ! is_root; then
		printf '%s\n' "$ESCAPE_HOME"
		return
	fi
	for place in /srv /opt /usr/local; do
		[[ -d $place && -w $place ]] && break
	done
	printf '%s\n' "$place"
}

# verdict: the last line of what was said.
verdict() {
	local said=${output-}

	printf '%s\n' "${said##*$'\n'}"
}

# broke COMMAND...: the control arm.
broke() {
	run --separate-stderr "$@"
	[[ ${status-} == 0 && $(verdict) == escaped ]] ||
		fail "the attempt fails even without the wall: $*"
}

# session COMMAND...: in a session with $SETTINGS.
session() {
	apart "$CARREL" run "${SETTINGS[@]}" -- "$@"
}

# held COMMAND...: the same in a session.
held() {
	session "$@"
	[[ ${status-} == 0 && $(verdict) =~ ^(refused:[A-Z0-9]+|absent|held|killed:SIGSYS)$ ]] ||
		fail "the attempt was not held off: $*"
}

# held_by VERDICT COMMAND...: and this is why.
held_by() {
	local expected=$1

	shift
	session "$@"
	[[ ${status-} == 0 && $(verdict) =~ ^($expected)$ ]] || fail "not $expected: $*"
}

# as_admin COMMAND...: with the rights that whoever makes a user namespace has in it.
as_admin() {
	unshare --user --map-root-user --mount --pid --fork --net --ipc --uts "$@"
}

# secret FILE: a file that everybody may read, so that only the session can keep it from anybody.
secret() {
	mkdir -p "${1%/*}"
	printf 'the secret\n' >"$1"
	chmod 0644 "$1"
}

# in_background COMMAND...: its pid is in BACKGROUND; kill_left ends it at the latest.
in_background() {
	"$@" </dev/null >"$T/background" 2>&1 3>&- 4>&- &
	BACKGROUND=$!
}

end_background() {
	kill -KILL "$BACKGROUND" 2>/dev/null || true
	wait "$BACKGROUND" 2>/dev/null || true
}
