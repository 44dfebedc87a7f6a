#!/usr/bin/env bats
# The output budget of executions in a live session: each has its own files, and later executions can read them.
# ctest: as=user
load ../lib/common
load ../lib/session

setup() {
	common_setup
	export XDG_RUNTIME_DIR=$T/run
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	R=$T/report.json
	ID=$("$CARREL" session start --json 3>&- 4>&- | jq -er .session)
}

teardown() {
	"$CARREL" session end "$ID" >/dev/null 2>&1 || true
	common_teardown
}

expected() {
	/usr/bin/python3 "$CARREL_SOURCE/tests/lib/budget.py" "$@"
}

results() {
	printf '%s/carrel-%s/tool-results' "$BASE" "$ID"
}

@test "each execution's outputs are saved under its number, and the next one reads them" {
	"$CARREL" exec -s "$ID" --output-budget 20 -- seq 1000 >"$T/out"
	seq 1000 | expected 20 "$(results)/1.stdout.txt" >"$T/want"
	cmp "$T/out" "$T/want"
	"$CARREL" exec -s "$ID" --output-budget 20 -- sh -c 'seq 3; seq 2000 >&2' >"$T/out" 2>"$T/err"
	[[ $(<"$T/out") == $'1\n2\n3' ]]
	seq 2000 | expected 20 "$(results)/2.stderr.txt" >"$T/want"
	cmp "$T/err" "$T/want"
	"$CARREL" exec -s "$ID" --output-budget 20 --merge-output --report "$R" -- \
		sh -c 'seq 500; seq 500 >&2' >"$T/out"
	{ seq 500; seq 500; } | expected 20 "$(results)/3.output.txt" >"$T/want"
	cmp "$T/out" "$T/want"
	keep_report "$R"
	assert_field "$R" .output.merged true
	assert_field "$R" .output.stdout.path "$(results)/3.output.txt"
	# shellcheck disable=SC2016
	carrel exec -s "$ID" -- sh -c 'cd "$CARREL_TOOL_RESULTS" && ls && sed -n 700p 2.stderr.txt &&
		! { echo x >>2.stderr.txt; } 2>/dev/null && ! rm -f 2.stderr.txt 2>/dev/null'
	assert_status 0
	assert_output $'1.stdout.txt\n2.stderr.txt\n3.output.txt\n700'
}

@test "a flood ends its own execution, with the session unharmed" {
	status=0
	"$CARREL" exec -s "$ID" --output-budget 100 --output-max 1M --report "$R" -- yes >"$T/out" 2>"$T/err" || status=$?
	assert_status 143
	assert_field "$R" .limit output
	keep_report "$R"
	[[ $(stat -c %s "$(results)/1.stdout.txt") == 1048576 ]]
	grep -q 'first 1,048,576 of .* output-max\]' "$T/out"
	carrel exec -s "$ID" -- echo still there
	assert_status 0
	assert_output 'still there'
}
