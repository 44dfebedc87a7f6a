# common.bash - what the black-box tests share. In a .bats file:  load ../lib/common
#
# Each test gets a directory of its own, $T, with a workspace $WS (the current directory), a scratch
# base $BASE ($TMPDIR, so carrel's default) and a home $HOME. After each test nothing may be left:
# no session directory in $BASE, no process that the test started. A test that overrides setup or
# teardown calls common_setup and common_teardown.
#
# Given by tests/lib/run-test: CARREL (the launcher), CARREL_SOURCE (a readable copy of the source),
# CARREL_HELPERS (the programs of tests/*/*.c).
bats_require_minimum_version 1.5.0

: "${CARREL:?the launcher to test}"
: "${CARREL_SOURCE:=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd -P)}"
: "${CARREL_HELPERS:=$CARREL_SOURCE/build/tests/helpers}"

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# A file with a teardown_file of its own calls this there.
teardown_file() {
	assert_kept_reports
}

common_setup() {
	unset "${!CARREL_@}" 2>/dev/null || true
	CARREL=$COMMON_CARREL CARREL_SOURCE=$COMMON_SOURCE CARREL_HELPERS=$COMMON_HELPERS
	export CARREL
	# bats notes the stack before each command, in these files too, where it says less than the line that called.
	bats_add_debug_exclude_path "${BASH_SOURCE[0]%/*}"
	unset XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
	export GIT_CONFIG_NOSYSTEM=1 # git as it is where nobody has told it anything: $HOME is empty
	make_test_directory
	WS=$T/ws BASE=$T/base
	export T WS BASE HOME=$T/home TMPDIR=$T/base
	cd "$WS" || return
	mark_processes
}

common_teardown() {
	local status=0

	cd /
	if [[ -z ${BATS_TEST_COMPLETED-} || -n ${EXPECT_LEFT-} ]]; then
		kill_left
	elif ! await_nothing_left; then
		status=1
		kill_left
	fi
	remove_test_directory
	return "$status"
}

# make_test_directory: nobody but the tests looks into it. A name that somebody else has is passed over.
make_test_directory() {
	for _ in 1 2 3 4 5 6 7 8; do
		printf -v T '%s/t.%06x' "${COMMON_DIR:-/var/tmp}" "$((SRANDOM & 0xffffff))"
		mkdir -m 0700 "$T" && mkdir "$T/ws" "$T/base" "$T/home" && return
	done
}

# remove_test_directory: also where a test made directories that not even their owner may enter.
remove_test_directory() {
	[[ -n ${T-} && -d $T ]] || return 0
	rm -rf "$T" 2>/dev/null && return 0
	if is_root; then
		chattr -R -i "$T" 2>/dev/null || true
	fi
	chmod -R u+rwx "$T" 2>/dev/null || true
	rm -rf "$T"
}

COMMON_CARREL=$CARREL COMMON_SOURCE=$CARREL_SOURCE COMMON_HELPERS=$CARREL_HELPERS

# --- what the machine and the caller are ------------------------------------------------------

is_root() {
	((EUID == 0))
}

# need CMD...: skip, naming what is missing.
need() {
	local command

	for command; do
		command -v "$command" >/dev/null || skip "no $command on this machine"
	done
}

need_root() {
	is_root || skip 'needs root'
}

# --- running ----------------------------------------------------------------------------------

# apart PROGRAM ARGUMENT...: status, $output (stdout), its $lines and $stderr as `run --separate-stderr` leaves them. It
# forks once, where that forks four times and runs mktemp(1).
apart() {
	local file=$BATS_TEST_TMPDIR/apart.$BASHPID

	output=$(exec "$@" 2>"$file") && status=0 || status=$?
	# shellcheck disable=SC2034 # for the tests
	IFS=$'\n' read -d '' -r -a lines <<<"$output" || true
	read -d '' -r stderr <"$file" || true
}

# carrel ARGUMENT...
carrel() {
	apart "$CARREL" "$@"
}

# sh_in SCRIPT [ARGUMENT...]: a shell script in a session with default policy.
sh_in() {
	carrel run -- sh -c "$@"
}

# --- asserting --------------------------------------------------------------------------------

fail() {
	printf '%s\n' "$*" >&2
	printf 'status: %s\nstdout: %s\nstderr: %s\n' "${status-}" "${output-}" "${stderr-}" >&2
	return 1
}

assert_status() {
	[[ $status == "$1" ]] || fail "status is $status, not $1"
}

assert_output() {
	[[ $output == "$1" ]] || fail "stdout is not: $1"
}

# assert_matches TEXT ERE
assert_matches() {
	[[ $1 =~ $2 ]] || fail "does not match $2: $1"
}

# refute_matches TEXT ERE
refute_matches() {
	[[ ! $1 =~ $2 ]] || fail "matches $2: $1"
}

# assert_refused [ERE]: carrel itself failed, before anything ran, and said so in one clear line
# (and perhaps a hint) that matches.
assert_refused() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	assert_matches "$stderr" '^carrel: [^:]+'
	(($(grep -vc '^carrel: hint: ' <<<"$stderr") == 1)) || fail 'not one line'
	[[ -z ${1-} ]] || assert_matches "$stderr" "$1"
	assert_nothing_left
}

# field FILE FILTER: a value of a JSON document, raw; fails where it is absent or null.
field() {
	jq -er "$2 | if . == null then error(\"null\") elif . == false then \"false\" else . end" "$1" ||
		fail "$2 is not in $1: $(head -c 2000 "$1")"
}

# assert_field FILE FILTER VALUE
assert_field() {
	local value

	value=$(field "$1" "$2") || return 1
	[[ $value == "$3" ]] || fail "$2 is $value, not $3"
}

# assert_valid_report [OPTION...] FILE: it is what docs/report.schema.json says. The
# system's python3 is meant: that is where the package manager puts jsonschema.
assert_valid_report() {
	/usr/bin/python3 "$CARREL_SOURCE/tests/lib/validate_report.py" "$@" ||
		fail "not a valid report: $(head -c 2000 "${!#}")"
}

# keep_report FILE: it is to be valid, which assert_kept_reports looks at when the file of tests is over: python3 and
# jsonschema take a quarter of a second to start, and seconds under emulation.
keep_report() {
	KEPT=$((${KEPT-0} + 1))
	cp "$1" "$BATS_FILE_TMPDIR/report-$BATS_TEST_NUMBER-$KEPT"
}

# assert_kept_reports: each is valid; the fault names the number of its test. The guest of tests/lib/vm looks at those of
# all its files at once.
assert_kept_reports() {
	local -a kept=("$BATS_FILE_TMPDIR"/report-*)

	[[ -e ${kept[0]} ]] || return 0
	if [[ ${KEEP_REPORTS-} ]]; then
		cp "${kept[@]}" "$KEEP_REPORTS"
	else
		assert_valid_report "${kept[@]}"
	fi
}

# --- nothing left -----------------------------------------------------------------------------
#
# Whose process is it? Parents die and uids change, and as an ordinary user the environment of
# init cannot be read (it is not dumpable). But limits are inherited through everything and
# /proc/PID/limits is readable by all: each test lowers its hard limit for POSIX message queues
# to a number of its own, and what has that number is the test's. No other that runs at the same time has
# the pid of the test's shell.

mark_processes() {
	((COMMON_MOST > 2000)) || fail "the limit for message queues is $COMMON_MOST: too low to tell tests apart"
	COMMON_SHELL=$BASHPID
	MARK=$((COMMON_MOST / 8 * 7 - BASHPID % (COMMON_MOST / 4 * 3)))
	ulimit -q "$MARK"
}

# Asked once for a file of tests, whose tests inherit it: each of them lowers its own.
if [[ -z ${COMMON_MOST-} ]]; then
	COMMON_MOST=$(ulimit -Hq)
	[[ $COMMON_MOST != unlimited ]] || COMMON_MOST=819200
	export COMMON_MOST
fi

# find_marked: in MARKED, the pids of the test's processes, but for its own shell, its subshells, and the grep that
# looks for them; zombies are dead. It forks once: this is done for each test.
find_marked() {
	local file pid name state
	local -a files
	local -A own=(["$COMMON_SHELL"]=1 ["$BASHPID"]=1)

	MARKED=()
	mapfile -t files < <(exec grep -lE "^Max msgqueue size +[0-9]+ +$MARK " \
		/proc/[0-9]*/limits 2>/dev/null)
	own[$!]=1
	wait "$!" || true # or the next look could find it, where it is slow to end
	for file in "${files[@]}"; do
		pid=${file#/proc/}
		pid=${pid%/limits}
		[[ -z ${own[$pid]-} ]] || continue
		state=
		{ while IFS=$':\t ' read -r name state _; do
			[[ $name != State ]] || break
		done <"/proc/$pid/status"; } 2>/dev/null || continue
		[[ -z $state || $state == [ZX] ]] || MARKED+=("$pid")
	done
}

# marked: the same, one per line.
marked() {
	find_marked
	((!${#MARKED[@]})) || printf '%s\n' "${MARKED[@]}"
}

# find_left: in LEFT, what is left of the test's sessions: processes, carrel's entries in the scratch base, and
# records.
find_left() {
	local pid entry

	find_marked
	LEFT=()
	for pid in "${MARKED[@]}"; do
		is_bats "$pid" || is_ending "$pid" || LEFT+=("process $pid: $(tr '\0' ' ' 2>/dev/null \
			<"/proc/$pid/cmdline")") || true # it may have no command line any more
	done
	for entry in "$BASE"/carrel-* "$BASE"/.carrel*; do
		[[ ! -e $entry && ! -L $entry ]] || LEFT+=("entry $entry")
	done
	for entry in "$HOME"/.local/state/carrel/sessions/*; do
		[[ ! -d $entry || -e $entry/keep ]] || LEFT+=("record $entry")
	done
}

# left: the same, one per line.
left() {
	find_left
	((!${#LEFT[@]})) || printf '%s\n' "${LEFT[@]}"
}

# is_ending PID: it has given its memory back, and its command line with it, and is gone in a moment.
is_ending() {
	local end=$((SECONDS + PATIENCE))

	while [[ -e /proc/$1 && -z $(tr -d '\0' 2>/dev/null <"/proc/$1/cmdline") ]]; do
		grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null && return 0
		((SECONDS < end)) || return 1
		sleep 0.01
	done
	[[ ! -e /proc/$1 ]]
}

# is_bats PID: a shell of the test runner itself, forked for a substitution.
is_bats() {
	local command

	command=$(tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline") || return 0
	[[ $command == *bats-exec-test* || $command == *tests/lib/tap\ * || ! -e /proc/$1 ]]
}

assert_nothing_left() {
	find_left
	((!${#LEFT[@]})) || fail "left behind: ${LEFT[*]}"
}

# How long a test waits for what must come, in seconds: a machine with other work is no failure.
PATIENCE=120

# await_nothing_left: where the launcher was killed, the kernel needs a moment.
await_nothing_left() {
	local end=$((SECONDS + PATIENCE))

	while find_left && ((${#LEFT[@]})); do
		((SECONDS < end)) || {
			fail "left behind after $PATIENCE s: ${LEFT[*]}"
			return 1
		}
		sleep 0.05
	done
}

# wait_for COMMAND...: until the command succeeds.
wait_for() {
	local end=$((SECONDS + PATIENCE))

	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || {
			fail "waited in vain for: $*"
			return 1
		}
		sleep 0.02
	done
}

# given_time COMMAND...: until it succeeds, with TIME (in seconds) 1, then twice as long, and so on: for what
# has to be done before a time-out that the test itself sets.
given_time() {
	local end=$((SECONDS + PATIENCE)) TIME

	for ((TIME = 1; ; TIME *= 2)); do
		"$@" && return
		((SECONDS < end)) || {
			fail "not even in $TIME s: $*"
			return 1
		}
	done
}

# kill_left: a failed test must not disturb the next one.
kill_left() {
	local pid

	find_marked
	for pid in "${MARKED[@]}"; do
		is_bats "$pid" || kill -KILL "$pid" 2>/dev/null || true
	done
}

# end_left: nor must the groups of its sessions. It comes before the test's directory goes: by what is noted in it gc
# finds them, when those who held them are dead.
end_left() {
	wait_for is_killed
	timeout "$PATIENCE" "$CARREL" gc >/dev/null
}

is_killed() {
	kill_left
	[[ $(left) != *process* ]]
}
