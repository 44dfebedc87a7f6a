#!/usr/bin/env bats
# carrel pad: the pad of a session, from outside.
# ctest: as=user
load ../lib/common
load ../lib/live

setup() {
	live_setup
	"$CARREL" session start --json >"$T/session" 3>&- 4>&-
	ID=$(field "$T/session" .session)
	export CARREL_SESSION=$ID
}

teardown() {
	"$CARREL" session end -s "$ID" >/dev/null 2>&1 || true
	common_teardown
}

# assert_mistake ERE: the request was refused, in one line that teaches.
assert_mistake() {
	assert_status 1
	[[ -z $output ]] || fail 'something was written to stdout'
	[[ $(wc -l <<<"$stderr") == 1 ]] || fail 'not one line'
	assert_matches "$stderr" "$1"
}

@test "the manual's workflow, as JSON and as plain words" {
	carrel pad '{"action": "write", "section": "goal", "content": "Fix the database connection error"}'
	assert_status 0
	carrel pad write findings "Error says 'connection refused on port 5432'"
	assert_status 0
	apart "$CARREL" pad --json \
		<<<'{"action": "append", "section": "findings", "content": "PostgreSQL service is stopped"}'
	assert_status 0
	[[ $(jq -r '.action, .section' <<<"$output") == $'append\nfindings' ]] || fail 'not that'
	carrel pad append errors tried restarting it
	carrel pad append remember the milk
	carrel pad read
	assert_output '## goal
Fix the database connection error

## findings
Error says '\''connection refused on port 5432'\''
PostgreSQL service is stopped

## errors
tried restarting it

## main
remember the milk'
	carrel pad read findings
	assert_output "Error says 'connection refused on port 5432'
PostgreSQL service is stopped"
	carrel pad clear errors
	carrel pad --json read
	[[ $(jq -c '.sections | keys' <<<"$output") == '["findings","goal","main"]' ]] || fail 'not these'
	carrel pad clear
	carrel pad read
	assert_status 0
	assert_output ''
}

@test "each common mistake has its own answer" {
	carrel pad '{"action": "write", "section": "goal"}'
	assert_mistake '`content` is missing'
	carrel pad append goal # a section, and no text
	assert_mistake '`content` is missing'
	carrel pad append main goal
	assert_status 0
	carrel pad append
	assert_mistake '`content` is missing'
	carrel pad '{"action": "write", "section": "The config file is at /etc/app"}'
	assert_mistake 'the text itself belongs in `content`'
	carrel pad '{"op": "write", "content": "x"}'
	assert_mistake 'called `action`, not `op`'
	carrel pad 'The config file is at /etc/app/config.yml'
	assert_mistake 'To save it: \{"action": "write", "content": "your text"\}'
	carrel pad '{"action": "write", "content": ""}'
	assert_mistake '`content` is empty'
	carrel pad '{"action": "read", "contnet": "x"}'
	assert_mistake 'did you mean `content`'
	carrel pad '{"action": "read", "section": 5}'
	assert_mistake 'must be a string'
}

@test "bad input" {
	carrel pad '{"action": "read"'
	assert_status 125
	assert_matches "$stderr" 'not a JSON object'
	carrel pad '{"action": "read", "action": "clear"}'
	assert_status 125
	apart "$CARREL" pad <<<'[1]'
	assert_mistake 'JSON object'
	carrel pad write $'\xff'
	assert_status 125
	assert_matches "$stderr" 'not UTF-8'
	carrel pad -s ffffffffffffffffffff read
	assert_status 125
	carrel pad --nosuch read
	assert_status 125
	CARREL_SESSION='' carrel pad read
	assert_status 125
	assert_matches "$stderr" 'no session is named'
	head -c 1048577 /dev/zero | tr '\0' x | jq -Rsc '{action: "write", content: .}' >"$T/large"
	apart "$CARREL" pad <"$T/large"
	assert_mistake '1048577 bytes; it may have 1048576'
	head -c 20000000 /dev/zero >"$T/larger"
	apart "$CARREL" pad <"$T/larger"
	assert_status 125
	carrel pad read
	assert_status 0
	assert_output ''
}

@test "writers at once lose nothing" {
	local -a writers=()
	local i

	for i in 1 2 3 4; do
		(for ((n = 0; n < 25; n++)); do
			"$CARREL" pad append findings "$i $n" || exit 1
		done) >/dev/null 3>&- 4>&- &
		writers+=($!)
	done
	for i in "${writers[@]}"; do
		wait "$i"
	done
	carrel pad read findings
	[[ $(sort -u <<<"$output" | wc -l) == 100 ]] || fail 'not a hundred lines'
}

# write_and_die MICROSECONDS REQUEST: a writer that is killed after so long.
write_and_die() {
	/usr/bin/python3 -c 'import subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "pad"], stdin=open(sys.argv[3]), stdout=subprocess.DEVNULL)
time.sleep(int(sys.argv[2]) / 1e6)
p.kill()
p.wait()' "$CARREL" "$@"
}

@test "killed at any moment: the old text or the new" {
	local i length

	head -c 200000 /dev/zero | tr '\0' a | jq -Rsc '{action: "write", content: .}' >"$T/a"
	head -c 300000 /dev/zero | tr '\0' b | jq -Rsc '{action: "write", content: .}' >"$T/b"
	"$CARREL" pad <"$T/a" >/dev/null
	for i in {1..30}; do
		write_and_die "$((i * 500))" "$T/$([[ $((i % 2)) == 1 ]] && echo b || echo a)"
		"$CARREL" pad read main >"$T/got"
		length=$(tr -d '\n' <"$T/got" | wc -c)
		case $(head -c 1 "$T/got")$length in
		a200000 | b300000) ;;
		*) fail "half of it: $length bytes" ;;
		esac
		[[ $(tr -d '\n' <"$T/got" | fold -w 1 | sort -u | wc -l) == 1 ]] || fail 'mixed'
	done
}

@test "tools inside cannot reach it, and it goes with the session" {
	"$CARREL" pad write goal 'not for tools' >/dev/null
	local dir record

	dir=$(field "$T/session" .session_dir)
	record=$HOME/.local/state/carrel/sessions/$ID
	[[ -d $record/pad ]] || fail 'the control: there is no pad outside'
	# shellcheck disable=SC2016
	carrel exec -s "$ID" -- sh -c 'cat "$1"/pad/* "$CARREL_SCRATCH"/../pad/* /proc/1/root"$1"/pad/* "$2"/pad/*' - "$dir" "$record"
	[[ $output != *'not for tools'* ]] || fail 'it was read from inside'
	# shellcheck disable=SC2016
	carrel exec -s "$ID" -- sh -c 'echo evil >"$CARREL_SCRATCH"/../pad/goal; "$1" pad write goal evil' - "$CARREL"
	carrel pad read goal
	assert_output 'not for tools'
	"$CARREL" session end -s "$ID"
	[[ ! -e $dir && ! -e $record ]] || fail 'it is left'
	carrel pad read
	assert_status 125
}
