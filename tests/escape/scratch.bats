#!/usr/bin/env bats
# A tool tries the scratch of other sessions and carrel's own records; carrel removes what a tool has prepared.
load ../lib/common
load ../lib/session
load escape

@test "another session's scratch is not there" {
	start_and_wait run -- sh -c 'echo secret >"$CARREL_SCRATCH/file"; chmod -R a+rX "$CARREL_SCRATCH"
		touch ready; sleep 1000'
	local other

	other=$(session_dir)
	run cat "$other/scratch/file"
	assert_output secret
	mkdir "$T/ws2"
	cd "$T/ws2"
	held attack_files read "$other/scratch/file"
	held attack_files list "$other"
	held attack_files create "$other/keep"
	held attack_files lock "$other"
	session sh -c 'ls -d "$1"/carrel-* | wc -l' sh "$BASE"
	assert_output 1
	signal TERM
	finish
}

@test "one's own session directory is not written, listed through or renamed" {
	session sh -c 'cd "$CARREL_SCRATCH/.." && for n in keep lock evil; do
			if echo >$n; then echo "wrote $n"; fi
		done 2>/dev/null
		mv scratch other 2>/dev/null && echo moved
		rmdir tool-results 2>/dev/null && echo removed
		mv "$CARREL_SCRATCH/.." /tmp/x 2>/dev/null && echo "moved all"
		ls'
	assert_output $'scratch\ntool-results'
}

@test "a forged mark does not keep a session" {
	session sh -c 'for d in "$CARREL_SCRATCH" "$TMPDIR" /tmp; do echo 99999999999 >"$d/keep"; done
		touch "$CARREL_SCRATCH"/carrel-aaaaaaaaaaaaaaaaaaaa; ls "$CARREL_SCRATCH"'
	assert_status 0
	assert_matches "$output" keep
	assert_nothing_left
	carrel run --keep -- true
	[[ -d $(session_dir)/scratch ]] || fail 'control: the launcher itself can keep one'
	rm -rf "$BASE"/carrel-*
}

@test "tool-results are not written" {
	held 'attack_files' create "/proc/self/cwd/x/../../nothing"
	session sh -c 'attack_files create "$CARREL_TOOL_RESULTS/x"'
	[[ $(verdict) == refused:EROFS ]] || fail 'written'
	session sh -c 'attack_files create "$CARREL_SCRATCH/x"'
	[[ $(verdict) == escaped ]] || fail 'control: the scratch cannot be written'
}

# Each way to change a file or what its directory says of it, on an output that was saved: outside it
# is the caller's own file; inside it is there to be read.
@test "an output that was saved is read, and changed in no way" {
	local attempts=(write open-write rewrite truncate ftruncate unlink write-o-path chmod touch setxattr)
	local attempt path

	path=$T/saved
	for attempt in "${attempts[@]}"; do
		printf 'the output\n' >"$path"
		if [[ $attempt != setxattr ]]; then
			broke attack_files "$attempt" "$path"
		fi
	done
	SETTINGS=(--output-budget 4000)
	# shellcheck disable=SC2016
	session sh -c 'seq 5000
		until [ "$(wc -l <"$CARREL_TOOL_RESULTS/1.stdout.txt")" = 5000 ]; do sleep 0.02; done
		for attempt; do attack_files "$attempt" "$CARREL_TOOL_RESULTS/1.stdout.txt"; done >"$CARREL_SCRATCH/said"
		attack_files rename "$CARREL_TOOL_RESULTS/1.stdout.txt" "$CARREL_SCRATCH/x" >>"$CARREL_SCRATCH/said"
		attack_files create "$CARREL_TOOL_RESULTS/1.stderr.txt" >>"$CARREL_SCRATCH/said"
		attack_files link-write "$CARREL_TOOL_RESULTS/1.stdout.txt" "$CARREL_SCRATCH/y" >>"$CARREL_SCRATCH/said"
		seq 5000 | cmp - "$CARREL_TOOL_RESULTS/1.stdout.txt" && cat "$CARREL_SCRATCH/said"' sh "${attempts[@]}"
	assert_status 0
	output=$(grep -E '^(escaped|refused|absent|held|killed)' <<<"$output")
	(($(wc -l <<<"$output") == ${#attempts[@]} + 3)) || fail 'not all of them were tried'
	refute_matches "$output" 'escaped|absent'
}

@test "the host's temporary files are not there, and nothing is left in them" {
	local name=carrel-escape-$$

	for place in /tmp /var/tmp; do
		secret "$place/$name"
		broke attack_files read "$place/$name"
		held_by absent attack_files read "$place/$name"
		rm -f "$place/$name"
		session sh -c 'echo evil >"$1"' sh "$place/$name"
		assert_status 0
		[[ ! -e $place/$name ]] || fail 'the host has it'
	done
}

@test "TMPDIR and HOME of the caller name no place to write" {
	session sh -c 'echo "$TMPDIR"; attack_files create "$TMPDIR/x"; attack_files create "$1/x"' \
		sh "$BASE"
	refute_matches "${lines[0]}" "^$BASE\$"
	[[ ${lines[1]} == escaped && ${lines[2]} == refused:EROFS ]] || fail 'TMPDIR'
}

@test "removal follows no link out of the scratch" {
	mkdir -p "$T/outside/dir"
	echo text >"$T/outside/dir/file"
	chmod -R a+rX "$T/outside"
	session sh -c 'cd "$CARREL_SCRATCH" && ln -s "$1" link && ln -s "$1/dir" tmp/link &&
		mkdir -p a/b && ln -s ../../../../../outside a/b/up && ln -s / root' sh "$T/outside"
	assert_status 0
	[[ $(<"$T/outside/dir/file") == text ]]
	assert_nothing_left
}

@test "no directory without rights, no strange name, no socket is left" {
	session python3 -c '
import os, socket
os.chdir(os.environ["CARREL_SCRATCH"])
os.makedirs("closed/inner"); open("closed/inner/file", "w").close()
os.chmod("closed/inner", 0); os.chmod("closed", 0)
for name in (b"\xff\xfe", b"-rf", b"new\nline", b"*", b" ", b"x" * 255): open(name, "w").close()
socket.socket(socket.AF_UNIX).bind("socket"); os.mkfifo("fifo")'
	assert_status 0
	assert_nothing_left
}

@test "mount points under /tmp and in the scratch are not renamed or removed" {
	TMPDIR=/tmp apart "$CARREL" run -- sh -c '
		for p in "$CARREL_SCRATCH" "$CARREL_TOOL_RESULTS" "${CARREL_SCRATCH%/*}" /tmp; do
			attack_files rename "$p" "$p.moved"
			attack_files rmdir "$p"
		done'
	assert_status 0
	refute_matches "$output" escaped
	((${#lines[@]} == 8))
}

@test "a sweep does not take what somebody put there for a session" {
	mkdir -p "$T/outside"
	echo text >"$T/outside/file"
	ln -s "$T/outside" "$BASE/carrel-aaaaaaaaaaaaaaaaaaaa"
	mkdir "$BASE/carrel-notasession"
	echo text >"$BASE/carrel-bbbbbbbbbbbbbbbbbbbb"
	mkdir "$BASE/carrel-cccccccccccccccccccc"
	session true
	assert_status 0
	carrel gc
	assert_status 0
	[[ -z $output ]] || fail 'it took something for a session'
	[[ -d $BASE/carrel-cccccccccccccccccccc && -e $T/outside/file && -L $BASE/carrel-aaaaaaaaaaaaaaaaaaaa &&
		-f $BASE/carrel-bbbbbbbbbbbbbbbbbbbb && -d $BASE/carrel-notasession ]]
	rm -r "$BASE"/carrel-*
}
