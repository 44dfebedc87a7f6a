#!/usr/bin/env bats
# The output budget: what carrel passes on, what it holds back, where it saves all of it, and what it prints about that.
# ctest: cost=30 once
load ../lib/common
load ../lib/session

setup() {
	common_setup
	R=$T/report.json
	unset PYTHONPATH PYTHONHOME
	# What the marker adds where nothing is kept.
	GONE='; gone with the session, --keep-for 1h leaves it'
}

expected() {
	/usr/bin/python3 "$CARREL_SOURCE/tests/lib/budget.py" "$@"
}

# run_to ARGUMENT...: the launcher with stdout and stderr in files, byte by byte; sets status.
# shellcheck disable=SC2034
run_to() {
	status=0
	"$CARREL" run --report "$R" "$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
	stderr=$(<"$T/err") output=
}

# saved STREAM: where the full output was, as the report has it.
saved() {
	field "$R" ".output.$1.path"
}

# assert_same FILE WANTED
assert_same() {
	cmp "$1" "$2" || fail "$(head -c 1000 "$1") is not $(head -c 1000 "$2")"
}

# check_text CHARACTERS: the file `text` through a budget, through a pipe and into a file.
check_text() {
	run_to --output-budget "$1" -- cat text
	assert_status 0
	expected "$1" "$(jq -r '.output.stdout.path' "$R")$GONE" <text >"$T/want"
	assert_same "$T/out" "$T/want"
	[[ $(field "$R" .output.stdout.characters) == "$(expected --count <text)" ]]
	[[ $(field "$R" .output.stdout.bytes) == "$(stat -c %s text)" ]]
	"$CARREL" run --quiet --output-budget "$1" --report "$R" -- cat text | cat >"$T/out"
	expected "$1" "$(jq -r '.output.stdout.path' "$R")$GONE" <text >"$T/want"
	assert_same "$T/out" "$T/want"
}

@test "within the budget nothing is changed: text, no newline, bytes, nothing at all" {
	seq 100 >text
	check_text 292
	printf 'no newline' >text
	check_text 10
	head -c 5000 /dev/urandom >text
	check_text 5000
	: >text
	check_text 5
	check_text 0
	keep_report "$R"
	jq -e '.output.stdout.path == null and .output.stdout.omitted == 0' "$R"
	[[ -z $stderr ]]
}

@test "exactly the budget is all; one character more has a marker" {
	printf '%s' 0123456789abcdefghij >text
	check_text 20
	[[ $(<"$T/out") == 0123456789abcdefghij ]]
	printf '%s' 0123456789abcdefghijk >text
	check_text 20
	[[ $(<"$T/out") == $'0123456789\n... [1 chars omitted — full output saved to '"$(saved stdout)$GONE"$']\nbcdefghijk' ]]
	check_text 1
	check_text 0
	[[ $(<"$T/out") == $'... [21 chars omitted — full output saved to '"$(saved stdout)$GONE"']' ]]
}

@test "the marker has commas and stands on a line of its own" {
	seq 20000 >text
	check_text 25000
	assert_matches "$(<"$T/out")" $'\n\\.\\.\\. \\[83,894 chars omitted — full output saved to /[^]]+/tool-results/1\\.stdout\\.txt'"$GONE"$'\\]\n'
	printf 'x%.0s' {1..100} >text
	check_text 11
	assert_matches "$(<"$T/out")" $'^x{6}\n\\.\\.\\. \\[89 chars .*\\]\nx{5}$'
	printf 'ab\n%.0s' {1..100} >text
	check_text 12
	assert_matches "$(<"$T/out")" $'^ab\nab\n\\.\\.\\.'
}

@test "characters, not bytes: no sequence is cut, what is no UTF-8 counts by the byte" {
	local i

	for i in {1..300}; do printf 'é€😀a\n'; done >text
	for i in 0 1 2 3 4 5 6 7 100 101 102 103; do
		check_text "$i"
		iconv -f UTF-8 -t UTF-8 "$T/out" >/dev/null || fail "cut at $i"
	done
	printf '\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82x\xff\xf0\x9f\x98' >text
	for i in {0..18}; do check_text "$i"; done
	head -c 300000 /dev/urandom >text
	check_text 1001
	check_text 100000
}

@test "a sequence that is written byte by byte is one character" {
	run_to --output-budget 4 -- /usr/bin/python3 -c 'import os
for byte in "é€😀abé€".encode():
    os.write(1, bytes([byte]))'
	expected 4 "$(saved stdout)" <<<'' >/dev/null
	printf 'é€😀abé€' | expected 4 "$(saved stdout)$GONE" >"$T/want"
	assert_same "$T/out" "$T/want"
}

@test "the head comes at once, the rest at the end" {
	local line

	mkfifo "$T/pipe"
	"$CARREL" run --output-budget 20 -- sh -c 'printf "the head\n"; while [ ! -e go ]; do sleep 0.02; done
		printf "and the rest"' >"$T/pipe" 2>"$T/err" </dev/null 3>&- 4>&- &
	LAUNCHER=$!
	exec {fd}<"$T/pipe"
	IFS= read -r -t "$PATIENCE" line <&"$fd" || fail 'nothing came while the command ran'
	[[ $line == 'the head' ]]
	touch go
	# 21 characters: one too many
	[[ $(cat <&"$fd") == *'d the rest' ]]
	exec {fd}<&-
	wait "$LAUNCHER"
}

@test "all of it is in tool-results, to be read from inside by the name that the marker has" {
	# shellcheck disable=SC2016
	run_to --output-budget 100 --merge-output -- sh -c 'seq 5000
		until [ "$(wc -l <"$CARREL_TOOL_RESULTS/1.output.txt")" -ge 5000 ]; do sleep 0.02; done 2>/dev/null
		seq 5000 | cmp - "$CARREL_TOOL_RESULTS/1.output.txt" && exit 42'
	assert_status 42
	[[ $(saved stdout) == "$BASE/carrel-$(field "$R" .session)/tool-results/1.output.txt" ]]
	jq -e '.output.merged and .output.stderr == null' "$R"
	assert_field "$R" .stdio.stderr relay
}

@test "--keep-for leaves it where the marker says; without, that is said" {
	local path

	run_to --keep-for 10m --output-budget 100 -- seq 1000
	path=$(saved stdout)
	grep -qF "full output saved to $path]" "$T/out"
	seq 1000 | cmp - "$path"
	[[ $(stat -c %a "$path") == 600 ]]
	refute_matches "$stderr" 'is deleted when the session ends'
	rm -rf "$BASE"/carrel-*
	run_to --output-budget 100 -- seq 1000
	[[ ! -e $(saved stdout) ]]
	grep -qF "full output saved to $(saved stdout)$GONE]" "$T/out"
	assert_matches "$stderr" "is deleted when the session ends: $(saved stdout)"
	assert_matches "$stderr" 'hint: --keep-for'
	assert_field "$R" .scratch.files 0
	assert_field "$R" .scratch.bytes 0
	run_to --quiet --output-budget 100 -- seq 1000
	[[ -z $stderr ]]
}

@test "stdout and stderr have a budget each" {
	run_to --quiet --output-budget 10 -- sh -c 'seq 100; seq 200 >&2; echo end >&2'
	seq 100 | expected 10 "$(saved stdout)$GONE" >"$T/want"
	assert_same "$T/out" "$T/want"
	{ seq 200; echo end; } | expected 10 "$(saved stderr)$GONE" >"$T/want"
	assert_same "$T/err" "$T/want"
	assert_matches "$(saved stderr)" '/1\.stderr\.txt$'
	run_to --output-budget 1000 -- sh -c 'seq 1000; echo little >&2'
	assert_matches "$stderr" '^little'
	[[ $(field "$R" .output.stderr.omitted) == 0 ]]
	jq -e '.output.stderr.path == null' "$R"
	keep_report "$R"
}

@test "stdout and stderr in one pipe of the caller's: each has its marker" {
	"$CARREL" run --quiet --output-budget 10 -- sh -c 'seq 100; seq 200 >&2' 2>&1 | cat >"$T/out"
	[[ $(grep -c 'chars omitted' "$T/out") == 2 ]]
	grep -q '282 chars.*1\.stdout\.txt' "$T/out"
	grep -q '682 chars.*1\.stderr\.txt' "$T/out"
}

@test "merge-output: one stream in the order written, one budget, on stdout" {
	local script='for i in 1 2 3 4 5 6 7 8 9; do echo "out $i"; echo "err $i" >&2; done'

	carrel run --merge-output -- sh -c "$script"
	[[ $output == "$(sh -c "$script" 2>&1)" && -z $stderr ]] || fail 'not in order'
	carrel run --merge-output --output-budget 1000 -- sh -c "$script"
	[[ $output == "$(sh -c "$script" 2>&1)" && -z $stderr ]] || fail 'not in order'
	run_to --quiet --merge-output --output-budget 20 -- sh -c "$script"
	sh -c "$script" 2>&1 | expected 20 "$(saved stdout)$GONE" >"$T/want"
	assert_same "$T/out" "$T/want"
	[[ -z $stderr ]]
	# without a budget it costs nothing: the caller's pipe itself
	"$CARREL" run --merge-output --report "$R" -- readlink /proc/self/fd/1 /proc/self/fd/2 | cat >"$T/out"
	[[ $(sort -u "$T/out" | wc -l) == 1 ]]
	assert_field "$R" .stdio.stdout direct
	assert_field "$R" .stdio.stderr direct
	jq -e '.output == null' "$R"
}

@test "a reader that goes away: the command gets SIGPIPE, as it does without a budget" {
	without=$("$CARREL" run -- yes 2>"$T/err" | head -c 1 >/dev/null; echo "${PIPESTATUS[0]}")
	with=$("$CARREL" run --output-budget 1000 -- yes 2>"$T/err" | head -c 1 >/dev/null
		echo "${PIPESTATUS[0]}")
	[[ $with == "$without" && $with == 141 ]] || fail "$with $without"
	# in the middle, where nothing is written and nobody would notice by a write
	mkfifo "$T/pipe"
	"$CARREL" run --output-budget 10 -- sh -c 'seq 100; touch held; exec yes' >"$T/pipe" 2>"$T/err" \
		</dev/null 3>&- 4>&- &
	LAUNCHER=$!
	exec {fd}<"$T/pipe"
	wait_for test -e held
	exec {fd}<&-
	status=0
	wait "$LAUNCHER" || status=$?
	assert_status 141
}

@test "closed stdout and stderr, a full device, and /dev/null" {
	status=0
	"$CARREL" run --output-budget 5 --report "$R" -- sh -c 'seq 100; seq 100 >&2' >&- 2>&- || status=$?
	assert_status 0
	assert_field "$R" .stdio.stdout closed
	status=0
	"$CARREL" run --output-budget 5 -- sh -c 'seq 100' >/dev/full 2>"$T/err" || status=$?
	assert_status 125
	assert_matches "$(<"$T/err")" 'standard output.*No space left'
	run -0 "$CARREL" run --output-budget 5 -- seq 1000 >/dev/null
}

@test "a reader that reads nothing until all is over gets all of it" {
	mkfifo "$T/pipe"
	# the tail is larger than a pipe
	"$CARREL" run --quiet --output-budget 400000 --report "$R" -- sh -c 'seq 200000; touch over' >"$T/pipe" \
		2>"$T/err" </dev/null 3>&- 4>&- &
	LAUNCHER=$!
	exec {fd}<"$T/pipe"
	head -c 200000 <&"$fd" >"$T/out"
	wait_for test -e over
	cat <&"$fd" >>"$T/out"
	exec {fd}<&-
	wait "$LAUNCHER"
	seq 200000 | expected 400000 "$(saved stdout)$GONE" >"$T/want"
	assert_same "$T/out" "$T/want"
}

@test "killed, timed out, ended by a signal to carrel: marker and tail come" {
	local script='seq 1000; touch ready; exec sleep 1000'

	run_to --output-budget 20 -- sh -c 'seq 1000; kill -KILL $$'
	assert_status 137
	[[ $(grep -c 'chars omitted' "$T/out") == 1 && $(tail -n 1 "$T/out") == 1000 ]]
	has_said_all() {
		rm -f ready
		run_to --output-budget 20 --timeout "$TIME" -- sh -c "$script"
		[[ -e ready ]]
	}
	given_time has_said_all
	assert_status 124
	[[ $(grep -c 'chars omitted' "$T/out") == 1 && $(tail -n 1 "$T/out") == 1000 ]]
	assert_field "$R" .limit timeout
	for s in TERM INT HUP; do
		start_and_wait run --output-budget 20 -- sh -c "$script"
		signal "$s"
		finish
		[[ $(grep -c 'chars omitted' "$T/out") == 1 && $(tail -n 1 "$T/out") == 1000 ]] ||
			fail "after $s"
	done
	# what is within the budget and was held back comes too
	start_and_wait run --output-budget 5000 -- sh -c "$script"
	signal TERM
	finish
	[[ $output == "$(seq 1000)" ]]
}

@test "a background process that holds the pipe does not delay the end" {
	ends_soon run_to --output-budget 20 -- sh -c 'seq 1000; sleep 1000 & exit 5'
	assert_status 5
	[[ $(tail -n 1 "$T/out") == 1000 ]]
}

@test "output-max ends the command, and everything says so" {
	run_to --output-budget 100 --output-max 100K -- yes
	assert_status 143
	assert_field "$R" .limit output
	assert_field "$R" .timed_out false
	assert_field "$R" .signal.name SIGTERM
	assert_field "$R" .output.stdout.truncated true
	assert_field "$R" .output.stdout.saved_bytes 102400
	keep_report "$R"
	assert_matches "$stderr" 'more output than output-max 100K.*standard output'
	assert_matches "$(<"$T/out")" 'chars omitted — first 102,400 of [0-9,]+ bytes saved to /[^]]*: output-max'"$GONE"'\]'
	# one that does not end when it is asked to
	run_to --output-max 100K --grace 200ms -- sh -c 'trap "" TERM; exec yes'
	assert_status 137
	assert_field "$R" .limit output
	[[ $(stat -c %s "$T/out") == 102400 ]]
	# within the bound nothing happens
	run_to --output-max 292 -- seq 100
	assert_status 0
	jq -e '.limit == null and .output.stdout.truncated == false' "$R"
	[[ -z $stderr && $(<"$T/out") == "$(seq 100)" ]]
}

@test "output-max ends a flood on stderr, the other stream whole" {
	run_to --output-max 1M -- sh -c 'echo good; exec yes >&2'
	assert_status 143
	assert_field "$R" .limit output
	[[ $(<"$T/out") == good ]]
	assert_field "$R" .output.stderr.truncated true
	assert_field "$R" .output.stdout.truncated false
}

@test "a full disk is said, and stops nothing" {
	need_root
	mkdir "$T/small"
	unshare --mount bash -c '
		mount -t tmpfs -o size=1m,mode=1777 none "$1" || exit 77
		TMPDIR=$1 "$CARREL" run --output-budget 100 --report "$2" -- sh -c "head -c 3000000 /dev/zero | tr \"\\0\" x; echo; echo the end; exit 5"
		echo "$?"' bash "$T/small" "$R" >"$T/out" 2>"$T/err" || skip 'no second file system here'
	[[ $(tail -n 1 "$T/out") == 5 && $(<"$T/out") == *'the end'* ]] || fail "$(<"$T/out")"
	assert_matches "$(<"$T/out")" 'chars omitted — first [0-9,]+ of 3,000,009 bytes saved to .*: No space left on device'"$GONE"'\]'
	(($(grep -c 'full output could not be saved.*No space left' "$T/err") == 1))
	keep_report "$R"
	assert_field "$R" .output.stdout.errno_name ENOSPC
	(($(field "$R" .output.stdout.saved_bytes) > 100000))
	(($(field "$R" .output.stdout.bytes) == 3000009))
}

@test "a file that may not grow further is said as well" {
	status=0
	(
		ulimit -f 64
		exec "$CARREL" run --output-budget 100 --report "$R" -- sh -c 'seq 100000; exit 5'
	) >"$T/out" 2>"$T/err" || status=$?
	assert_status 5
	[[ $(tail -n 1 "$T/out") == 100000 ]]
	assert_matches "$(<"$T/out")" 'first 65,536 of 588,895 bytes saved to .*: File too large'"$GONE"'\]'
	assert_matches "$(<"$T/err")" 'could not be saved.*File too large'
	assert_field "$R" .output.stdout.errno_name EFBIG
	assert_field "$R" .output.stdout.saved_bytes 65536
}

@test "at a terminal: stdout and stderr are pipes, the keyboard stays a terminal" {
	run --separate-stderr /usr/bin/python3 "$CARREL_SOURCE/tests/lib/terminal.py" "$CARREL" run \
		--output-budget 1000 -- sh -c 'test -t 1 || echo out; test -t 2 || echo err; test -t 0 && echo in' <<<''
	assert_status 0
	assert_matches "$output" $'out\r?\nerr\r?\nin'
	carrel run --tty yes --output-budget 1000 -- true
	assert_refused "contradicts 'tty'"
	carrel run --tty yes --output-max 1M -- true
	assert_refused "contradicts 'tty'"
	carrel run --output-budget 16777217 -- true
	assert_refused "'16777217' is too large"
	carrel run --output-budget=-1 -- true
	assert_refused 'is not a number of characters'
	carrel run --output-max 0 -- true
	assert_refused 'is not a size'
}

@test "1 GB through a budget of 20,000 in a few MiB" {
	local peak

	start run --quiet --output-budget 20000 --report "$R" -- sh -c \
		'head -c 1000000000 /dev/zero; touch ready; while [ ! -e go ]; do sleep 0.02; done'
	wait_for test -e ready
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$LAUNCHER/status")
	touch go
	finish 2>/dev/null
	assert_status 0
	((peak > 0 && peak < 8192)) || fail "$peak KiB"
	assert_field "$R" .output.stdout.bytes 1000000000
	assert_field "$R" .output.stdout.saved_bytes 1000000000
	assert_field "$R" .output.stdout.omitted 999980000
}
