#!/usr/bin/env bats
# carrel writes reports, and reads what it puts into a scratch, outside and with the caller's rights. What tools left at
# the path, or on the way to it, neither holds carrel up nor chooses what it writes or reads.
load ../lib/common
load ../lib/live
load escape

setup() {
	escape_setup
	live_setup
}

teardown() {
	live_teardown
}

# refused WHAT: a live session is beside it.
refused() {
	assert_status 125
	assert_matches "$stderr" "$1"
}

# each_verb TARGET WHAT: run, session start and exec refuse to write their report there, and begin nothing.
each_verb() {
	run --separate-stderr timeout -k 1 120 "$CARREL" run --timeout 1s --report "$1" -- touch "$WS/ran"
	refused "$2"
	run --separate-stderr timeout -k 1 120 "$CARREL" session start --report "$1"
	refused "$2"
	run --separate-stderr timeout -k 1 120 "$CARREL" exec --report "$1" -- touch "$WS/ran"
	refused "$2"
	[[ ! -e $WS/ran ]] || fail 'the command was started'
}

@test "a FIFO that an earlier session left where the report goes is not waited for" {
	local fifo

	carrel run -- sh -c 'mkdir out && mkfifo report out/report'
	assert_status 0
	begin
	each_verb "$WS/report" 'a FIFO in a directory that tools can write'
	each_verb report 'a FIFO in a directory that tools can write'
	each_verb out/report 'a FIFO in a directory that tools can write'
	ln -s "$WS" "$T/link"
	each_verb "$T/link/out/report" 'a FIFO in a directory that tools can write'
	mkdir "$T/shared"
	mkfifo "$T/shared/report"
	carrel run --write "$T/shared" --report "$T/shared/report" -- touch ran
	refused 'a FIFO in a directory that tools can write'
	# The control arm: one that is the caller's is written, where somebody reads it.
	exec {fifo}<>"$T/shared/report"
	carrel run --report "$T/shared/report" -- touch ran
	assert_status 0
	assert_matches "$(head -c 200 <&"$fifo")" '"carrel"|"session"'
	exec {fifo}>&-
	[[ -e ran ]]
	end_session
}

@test "a link that a tool made does not choose where the report is written" {
	local directory

	mkdir -m 0700 "$T/private"
	echo mine >"$T/private/report"
	begin
	for directory in out sub/out; do
		carrel run -- sh -c 'mkdir -p "$(dirname "$1")" && rm -rf "$1" && ln -s "$2" "$1"' sh \
			"$directory" "$T/private"
		assert_status 0
		each_verb "$directory/report" 'a link that tools may have made'
		each_verb "$WS/$directory/report" 'a link that tools may have made'
		each_verb "$WS/$directory/../private/report" 'a link that tools may have made'
	done
	[[ $(<"$T/private/report") == mine ]] || fail 'it was replaced'
	# The control arm: by a link of the caller's own, outside of the workspace, it is written.
	ln -s "$T/private" "$T/link"
	carrel run --report "$T/link/report" -- true
	assert_status 0
	[[ $(<"$T/private/report") != mine ]] || fail 'a report does not follow any link: this test shows nothing'
	# And by one of the tools' that stays with what is theirs.
	mkdir real
	ln -s real near
	carrel run --report near/report -- true
	assert_status 0
	[[ -s real/report ]]
	end_session
}

@test "a link that a tool made does not choose what is put into the scratch" {
	local file

	mkdir -m 0700 "$T/private"
	echo key >"$T/private/key"
	begin --hide "$T/private"
	inside -- cat "$T/private/key"
	[[ $status != 0 ]] || fail 'it is not hidden'
	inside -- sh -c 'ln -s "$1/key" data; ln -s "$1" dir; ln -s data again; mkfifo fifo; echo own >own; ln -s own near;
		mkdir "$CARREL_SCRATCH/s"; ln -s "$1/key" "$CARREL_SCRATCH/s/data"' sh "$T/private"
	assert_status 0
	ln -s "$WS/data" "$T/link"
	for file in data ./data "$WS/data" dir/key again "$T/link" "$DIR/scratch/s/data"; do
		carrel scratch put --force taken "$file"
		refused 'a link that tools may have made'
		carrel prompt --template "$file"
		[[ $file == "$DIR"/* ]] || refused 'a link that tools may have made'
	done
	run --separate-stderr timeout -k 1 120 "$CARREL" scratch put --force taken fifo
	refused 'this is not a file'
	inside -- sh -c 'cat "$CARREL_SCRATCH/taken"'
	[[ $status != 0 ]] || fail "it was taken: $output"
	# The control arms: what leads from one file of the tools' to another, a link of the caller's, and a pipe.
	carrel scratch put --force taken near
	assert_status 0
	ln -s "$T/private/key" "$T/own"
	carrel scratch put --force taken "$T/own"
	assert_status 0
	inside -- sh -c 'cat "$CARREL_SCRATCH/taken"'
	assert_output key
	carrel scratch put --force taken <(echo piped)
	assert_status 0
	inside -- sh -c 'cat "$CARREL_SCRATCH/taken"'
	assert_output piped
	end_session
}
