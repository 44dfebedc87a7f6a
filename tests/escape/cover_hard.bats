#!/usr/bin/env bats
# Files that the host replaces again and again, at the end of a session and during a promotion; processes that hold an
# uncovered file without an open descriptor; a coverer that does not answer. In the control arms nothing is covered, and
# the tool uses what it gets.
# ctest: cost=40
load ../lib/common
load ../lib/session
load ../lib/live
load escape
load cover

# uses_it PROGRAM-ARGUMENTS...: outside, where nothing is covered, the holder does use what it holds.
uses_it() {
	timeout -s KILL 60 python3 "$T/bin/holder.py" "$@" "$T/control" "$T/never" control || true &
	wait_for test -s "$T/control"
	kill_left
}

@test "who has mapped what was bare is ended" {
	need python3
	echo outside >"$T/file"
	uses_it map "$T/file"
	[[ $(<"$T/file") == evil* ]] || fail "$(<"$T/file")"
	hammered "$WS/.git/config" replace "$T/bin/holder.py" map "$WS/.git/config" "$WS/hits" "$WS/stop"
	refute_matches "$(<"$WS/.git/config")" evil
}

@test "who has sent away a descriptor of what was bare, and not received it, is ended" {
	need python3
	echo outside >"$T/file"
	uses_it flight "$T/file"
	[[ $(<"$T/file") == evil* ]] || fail "$(<"$T/file")"
	hammered "$WS/.git/config" replace "$T/bin/holder.py" flight "$WS/.git/config" "$WS/hits" "$WS/stop"
	refute_matches "$(<"$WS/.git/config")" evil
}

# A directory is renamed over an empty one: rename(2).
replace_directory() {
	mkdir "$1.other"
	rm -rf "${1:?}"/*
	mv -T "$1.other" "$1"
}

@test "who stands in a directory that was bare is ended" {
	need python3
	mkdir "$T/dir"
	uses_it cwd "$T/dir"
	[[ -e $T/dir/evil ]]
	hammered "$WS/.git/hooks" replace_directory "$T/bin/holder.py" cwd "$WS/.git/hooks" "$WS/hits" "$WS/stop"
	[[ ! -e $WS/.git/hooks/evil ]]
}

hammer_all() {
	rm -f "$REPORT" "$WS"/{ready,stop}
	# shellcheck disable=SC2016
	beside sh -c 'here=$PWD; again() { while [ ! -e stop ]; do python3 "$@" "$here/hits" "$here/stop"; done; }
		again "$1/hammer.py" write "$PWD/.git/config" & again "$1/hammer.py" read "$2/secret" &
		again "$1/hammer.py" read "$2/keys/id" & again "$1/holder.py" cwd "$PWD/.git/hooks" & : >ready; wait; exit 0' \
		sh "$T/bin" "$T"
}

replace_all() {
	replace "$WS/.git/config" "# $1"
	replace "$T/secret" "secret $1"
	replace_directory "$WS/.git/hooks"
	mkdir "$T/keys.other"
	echo "key $1" >"$T/keys.other/id"
	rm "$T/keys/id"
	mv -T "$T/keys.other" "$T/keys"
}

# A machine may be so busy that covering takes longer than its bound: then the session ends, and another one begins.
@test "each kind of covered path is replaced 200 times while tools hammer it" {
	need python3
	local i begun=1

	echo secret >"$T/secret"
	mkdir "$T/keys"
	echo key >"$T/keys/id"
	SETTINGS=(--hide "$T/secret" --hide "$T/keys")
	hammer_all
	for i in {1..200}; do
		if [[ -s $REPORT ]]; then
			stops 125
			assert_matches "$(<"$T/err")" 'removed from outside'
			((begun++ < 100)) || fail "$(<"$T/err")"
			hammer_all
		fi
		replace_all "$i"
	done
	: >"$WS/stop"
	wait "$BESIDE" || assert_matches "$(<"$T/err")" 'removed from outside'
	[[ ! -e $WS/hits ]] || fail "what was bare was used: $(sort "$WS/hits" | uniq -c)"
	grep -rqxF '# 200' "$WS/.git/config" "$WS"/.git/.carrel-quarantine-*/ || fail "$(<"$WS/.git/config")"
	[[ ! -e $WS/.git/hooks/evil ]]
	((begun > 1)) && return
	for i in "$WS/.git/config" "$T/secret" "$WS/.git/hooks" "$T/keys"; do
		covered "$i"
	done
}

# As useradd(8) does with /etc/shadow and its kin, and with their copies.
add_account() {
	local file

	for file in shadow gshadow; do
		(umask 077 && cp "$T/etc/$file" "$T/etc/$file-.new")
		mv "$T/etc/$file-.new" "$T/etc/$file-"
		(umask 077 && sed "\$a $1:!:20000::::::" "$T/etc/$file" >"$T/etc/$file+")
		mv "$T/etc/$file+" "$T/etc/$file"
	done
}

@test "accounts that are added on the host are not seen, and end no session" {
	local i hidden=()

	mkdir "$T/etc"
	for i in shadow gshadow shadow- gshadow-; do
		(umask 077 && echo 'root:secret:20000::::::' >"$T/etc/$i")
		hidden+=(--hide "$T/etc/$i")
	done
	SETTINGS=("${hidden[@]}")
	# shellcheck disable=SC2016
	beside sh -c "$COVERED$WAIT"'cd "$1"; covered "$PWD/shadow" "$PWD/gshadow" "$PWD/shadow-" "$PWD/gshadow-"; cat *shadow*' sh "$T/etc"
	for i in {1..20}; do
		add_account "user$i"
	done
	stops 0
	[[ $(<"$T/out") == '' ]] || fail "$(<"$T/out")"
	for i in shadow gshadow shadow- gshadow-; do
		covered "$T/etc/$i"
	done
	[[ $(wc -l <"$T/etc/shadow") == 21 ]]
}

# kept TEXT: what the host has written last stands where it was written, or was moved away with a word: at the end of a session
# nobody can tell any more who made it.
kept() {
	grep -qF "$1" "$WS/.git/config" 2>/dev/null && return
	grep -rqF "$1" "$WS"/.git/.carrel-quarantine-*/ || fail "lost: $1"
	grep -qF "quarantined, since the host would obey it: $WS/.git/config" "$T/err" || fail "$(<"$T/err")"
}

@test "what the host replaces at the end of a session is not lost, and is no failure" {
	local i

	for i in {1..15}; do
		rm -f "$WS"/{ready,stop}
		beside sh -c ': >ready; until [ -e stop ]; do :; done'
		: >"$WS/stop"
		replace "$WS/.git/config" "# at the end $i"
		stops 0
		kept "# at the end $i"
		[[ $(jq -c '[.breaches, .error]' "$REPORT") == '[[],null]' ]] || fail "$(<"$REPORT")"
		rm -rf "$WS"/.git/.carrel-quarantine-*
	done
}

@test "what the host replaces during a promotion is not lost, and the promotion is whole" {
	local i

	mkdir "$T/kept"
	SETTINGS=(--promote-to "$T/kept" --promote "parts/*:$T/kept")
	# shellcheck disable=SC2016
	beside sh -c 'mkdir "$CARREL_SCRATCH/parts"; for i in $(seq 400); do echo "$i" >"$CARREL_SCRATCH/parts/$i"; done; : >ready; until [ -e stop ]; do :; done'
	: >"$WS/stop"
	for i in {1..60}; do
		replace "$WS/.git/config" "# number $i"
	done
	stops 0
	[[ $(find "$T/kept" -type f | wc -l) == 400 ]] || fail "$(find "$T/kept" | head)"
	kept '# number 60'
	[[ $(jq -c '[.breaches, .error]' "$REPORT") == '[[],null]' ]] || fail "$(<"$REPORT")"
	rm -rf "$WS"/.git/.carrel-quarantine-*
}

@test "a coverer that is stopped ends the session" {
	local coverer

	beside sh -c ': >ready; sleep 1000'
	wait_for pgrep -x carrel-coverer -P "$BESIDE"
	coverer=$(pgrep -x carrel-coverer -P "$BESIDE")
	kill -STOP "$coverer"
	replace "$WS/.git/config"
	stops 125
	assert_matches "$(<"$T/err")" 'has died or hangs'
	[[ ! -e /proc/$coverer ]] || fail 'it is left'
}

@test "a coverer that is stopped ends a live session" {
	begin
	carrel exec --detach --name waits -- sleep 1000
	wait_for pgrep -x carrel-coverer -P "$SUPERVISOR"
	kill -STOP "$(pgrep -x carrel-coverer -P "$SUPERVISOR")"
	replace "$WS/.git/config"
	wait_for is_over "$SUPERVISOR"
}

is_over() {
	[[ ! -e /proc/$1 ]]
}

@test "what stands where the host renamed a protected file away is looked at at the end" {
	# shellcheck disable=SC2016
	beside sh -c "$WAIT"'echo evil >>.git/config && echo written'
	mv "$WS/.git/config" "$WS/.git/config.away"
	printf '[core]\n' >"$WS/.git/config"
	stops 0
	# The cover went with it, and the kernel tells nobody: what the tool has written is there, and nobody obeys it.
	[[ $(<"$T/out") == written ]] || fail "$(<"$T/out")"
	[[ ! -e $WS/.git/config ]] || fail "$(<"$WS/.git/config")"
	jq -e --arg path "$WS/.git/config" '.quarantined[] | select(.path == $path)' "$REPORT" >/dev/null || fail "$(<"$REPORT")"
	[[ $(<"$WS/.git/config.away") != *evil* ]]
	rm -rf "$WS"/.carrel-quarantine-*
}
