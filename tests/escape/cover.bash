# cover.bash - a host that replaces what a session has covered. After `load escape`:  load cover
#
# shellcheck disable=SC2034,SC2154 # what is set here the tests read, and the other way round

setup() {
	escape_setup
	make_runtime_dir "$T/run"
	git -c init.defaultBranch=main init -q "$WS"
	git -C "$WS" config user.name u
	git -C "$WS" config user.email u@h
	git -C "$WS" commit -q --allow-empty -m first
	cp "$BATS_TEST_DIRNAME/hammer.py" "$BATS_TEST_DIRNAME/holder.py" "$T/bin"
	REPORT=$T/report
}

teardown() {
	live_teardown
}

# beside COMMAND...: a command in a session, in the background, that has begun when this returns; it ends when
# $WS/stop exists.
beside() {
	"$CARREL" run --report "$REPORT" "${SETTINGS[@]}" -- "$@" >"$T/out" 2>"$T/err" 3>&- 4>&- &
	BESIDE=$!
	wait_for test -e "$WS/ready"
}

# stops STATUS: it ends with that.
stops() {
	local ended=0

	: >"$WS/stop"
	wait "$BESIDE" || ended=$?
	[[ $ended == "$1" ]] || fail "ended with $ended: $(<"$T/out") $(<"$T/err")"
}

WAIT=': >ready; until [ -e stop ]; do sleep 0.02; done; '

# covered PATH: the report says that it was covered again.
covered() {
	jq -e --arg path "$1" '.covered_again[] | select(.path == $path and .times > 0)' "$REPORT" >/dev/null ||
		fail "not covered again: $1: $(jq -c .covered_again "$REPORT")"
}

# What the host has replaced is bare until the kernel shows a mount there again.
COVERED='covered() { for path; do until grep -qF " $path " /proc/self/mountinfo; do sleep 0.01; done; done; }; '

# replace FILE [TEXT]: as git, editors and useradd do.
replace() {
	printf '%s\n' "${2-new}" >"$1.other"
	mv "$1.other" "$1"
}

# hammered PATH REPLACE PROGRAM ARGUMENT...: PATH is replaced, by the function REPLACE and a number, until the program
# (python3) was ended for what it had got hold of; what it uses after that is in $WS/hits.
hammered() {
	local i=0 path=$1 how=$2

	shift 2
	beside sh -c ': >ready; while [ ! -e stop ]; do python3 "$@"; done; exit 0' sh "$@"
	while ! grep -q 'a process was ended' "$T/err" && ((i++ < 3000)); do
		"$how" "$path" "secret $i"
	done
	stops 0
	grep -q 'a process was ended' "$T/err" || fail "never bare: $i times"
	[[ ! -e $WS/hits ]] || fail "what was bare was used: $(wc -l <"$WS/hits") of $i"
	[[ $(jq -r --arg path "$path" '.breaches[0] | [.path == $path, .name] | tostring' "$REPORT") == '[true,"python3"]' ]] ||
		fail "$(jq -c .breaches "$REPORT")"
	covered "$path"
}
