#!/usr/bin/env bats
# The driver of tests/torture kills every process of a launch at each of its system calls: the launcher, its init, and
# the payload up to execve.
# ctest: cost=100 mounts

load ../lib/common

# crash OPTION... -- SETTING...
crash() {
	local -a options=()

	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	mkdir "$T/points"
	run "$CARREL_HELPERS/inject" -k "${options[@]}" "$T/points" "$CARREL" \
		"$CARREL_HELPERS/marker" "$@"
	printf '%s\n' "$output" | sed 's/^/# /' >&3
	((status != 77)) || skip 'ptrace is refused on this machine'
	assert_status 0
	assert_matches "$output" 'violations: 0'
	[[ $output =~ points:\ ([0-9]+) ]] || fail 'no points'
}

no_process_left() {
	[[ $(left) != *process* ]]
}

@test "each process is killed at each of its calls" {
	crash --
	((BASH_REMATCH[1] > 500)) || fail 'too few points'
}

@test "the launcher is killed at each call where something must be quarantined" {
	crash -o launcher -a .envrc --
	((BASH_REMATCH[1] > 200)) || fail 'too few points'
}

@test "the launcher is killed while a tree of processes runs: all die, gc removes the directory" {
	local pid

	"$CARREL" run -- sh -c 'for i in 1 2 3; do (setsid sleep 1000 &) ; done; : >started; sleep 1000' &
	pid=$!
	wait_for test -e "$WS/started"
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for no_process_left
	[[ $(left) == *entry* ]] || fail 'the directory went by itself?'
	carrel gc
	assert_status 0
	assert_nothing_left
}

# killed SCRIPT [SETTING...]: a session runs it in the workspace; then its launcher is killed.
killed() {
	local pid script=$1

	shift
	rm -f "$WS/started" "$WS/go" "$WS/done"
	"$CARREL" run "$@" -- sh -c ': >started; until [ -e go ]; do sleep 0.02; done
		'"$script"'; : >done; sleep 1000' 3>&- &
	pid=$!
	wait_for test -e "$WS/started"
	kill -STOP "$pid"
	: >"$WS/go"
	wait_for test -e "$WS/done"
	kill -KILL "$pid"
	wait "$pid" || true
	wait_for no_process_left
}

g() { git -c user.name=u -c user.email=u@h -C "$WS" "$@"; }

new_repository() {
	rm -rf "$WS/.git" "$WS.pwned" "$WS/deep" "$WS/other"
	git -c init.defaultBranch=main init -q "$WS"
	mkdir -p "$WS/.git/hooks" "$WS/deep"
	g commit -q --allow-empty -m first
}

LINK='ln -sf "$PWD.pwned" .git/COMMIT_EDITMSG; echo evil >.git/SQUASH_MSG'

# commits: what the user would do then; whether something was written where the session wanted it.
commits() {
	GIT_EDITOR=true g commit -q --allow-empty || true
	[[ -e $WS.pwned ]]
}

@test "the launcher is killed: gc reviews what is in git's directories, and says so" {
	new_repository
	killed "$LINK"
	commits || fail 'it would not work anyway'
	carrel gc
	rm -f "$WS.pwned"
	new_repository
	git init -q "$WS/deep/own"
	g -C deep/own commit -q --allow-empty -m own
	g -c advice.addEmbeddedRepo=false add deep/own
	g commit -q -m embedded
	killed "$LINK; git status; git init -q other; echo 'gitdir: other/.git' >deep/.git"
	carrel gc --dry-run
	[[ -L $WS/.git/COMMIT_EDITMSG ]] || fail 'moved by a dry run'
	carrel gc
	assert_status 0
	assert_matches "$stderr" "quarantined, since the host would obey it: $WS/.git/COMMIT_EDITMSG"
	assert_matches "$stderr" 'hint: it is now .*/\.carrel-quarantine-[a-z2-7]{20}/\.git%2FCOMMIT_EDITMSG\.quarantined'
	[[ -f $WS/deep/own/.git/config ]] || fail 'what was there is gone'
	! commits || fail 'got through'
	rm -rf "$WS"/.carrel-quarantine-*
	assert_nothing_left
}

@test "the launcher is killed where no repository was: a sweep that a run starts settles it, and the next run says so" {
	rm -rf "$WS/.git"
	killed 'git init -q other; echo "gitdir: other/.git" >.git'
	[[ -f $WS/.git ]]
	is_gone() { [[ ! -e $WS/.git && ! -L $WS/.git && -z $(ls "$HOME/.local/state/carrel/sessions") ]]; }
	carrel run -- true
	assert_status 0
	wait_for is_gone
	carrel run -- true
	assert_matches "$stderr" "quarantined, since the host would obey it: $WS/.git"
	killed 'ln -s other/.git .git'
	carrel run -- true
	assert_status 0
	wait_for is_gone
	carrel run --quiet -- true
	assert_matches "$stderr" "quarantined, since the host would obey it: $WS/.git"
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "the launcher is killed: the session that starts next is not ended by what the sweep takes away" {
	rm -rf "$WS/.git"
	killed 'echo evil >.envrc'
	[[ -f $WS/.envrc ]]
	carrel run -- sh -c 'for i in 1 2 3 4 5 6 7 8; do [ ! -e .envrc ] || sleep 0.25; done; echo went on'
	assert_status 0
	assert_output 'went on'
	is_gone() { [[ ! -e $WS/.envrc ]]; }
	carrel gc
	wait_for is_gone
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "the launcher is killed: nothing is taken from a workspace that is another by then, or gone" {
	new_repository
	killed "$LINK; : >.envrc"
	mv "$WS" "$T/away"
	mkdir "$WS"
	cd "$WS"
	: >"$WS/.envrc"
	git init -q "$WS"
	ln -s x "$WS/.git/COMMIT_EDITMSG"
	carrel gc
	assert_status 0
	assert_nothing_left
	[[ -e $WS/.envrc && -L $WS/.git/COMMIT_EDITMSG ]] || fail 'the other was touched'
	new_repository
	killed "$LINK"
	cd "$T"
	rm -rf "$WS"
	carrel gc
	assert_status 0
	assert_nothing_left
	mkdir "$WS"
}

@test "the launcher is killed: many sweeps at once, and a base on another file system" {
	local base i pids=()

	base=$(mktemp -d /dev/shm/carrel-crash.XXXXXX)
	new_repository
	killed "$LINK" --scratch-base "$base"
	for i in 1 2 3 4 5 6; do
		"$CARREL" gc --scratch-base "$base" 2>"$T/err.$i" >&2 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || fail 'a sweep failed'
	done
	[[ ! -L $WS/.git/COMMIT_EDITMSG ]] || fail 'it stands'
	[[ $(cat "$T"/err.* | grep -c 'quarantined, since') == 1 ]] || fail 'not once'
	[[ -L $(echo "$WS"/.carrel-quarantine-*/.git%2FCOMMIT_EDITMSG.quarantined) ]] || fail 'not kept'
	rm -rf "$base"
}

@test "init is killed while the command runs: the status says that the end is not known" {
	local pid init status=0

	"$CARREL" run --report "$T/r.json" -- sh -c ': >started; sleep 1000' 2>"$T/err" &
	pid=$!
	wait_for test -e "$WS/started"
	init=$(pgrep -P "$pid" -x carrel-init | head -n 1)
	kill -KILL "$init"
	wait "$pid" || status=$?
	((status == 125)) || fail "status $status"
	assert_field "$T/r.json" .started unknown
	assert_field "$T/r.json" .exit_status 125
	assert_field "$T/r.json" .error.code protocol
	assert_nothing_left
}
