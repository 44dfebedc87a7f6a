#!/usr/bin/env bats
# What `why -s` says of paths in a live session, and what `read` shows of files there.
load ../lib/common
load ../lib/session
load ../lib/live

# surface PATH SURFACE SEEN
surface() {
	local got

	got=$(timeout 120 "$CARREL" why -s "$ID" --json "$1" </dev/null | jq -er '.[0] | .surface + " " + .seen') ||
		fail "nothing is said of $1"
	[[ $got == "$2 $3" ]] || fail "$1 is $got, not $2 $3"
}

# refused: carrel failed and said why, in one line; the session goes on.
refused() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	(($(grep -c '^carrel: ' <<<"$stderr") >= 1)) || fail 'nothing was said'
}

@test "each surface has its word, and says whether it is read and written" {
	mkdir -p "$WS/.git/hooks" "$T/hidden"
	echo cfg >"$WS/.git/config"
	echo secret >"$T/hidden/key"
	begin --read "$T" --hide "$T/hidden"
	cd "$WS"
	surface . workspace writable
	surface "$WS/.git/config" protected read-only
	surface .git/hooks/pre-commit protected absent
	surface "$DIR/scratch" scratch writable
	surface /tmp/x scratch absent
	surface /var/tmp scratch writable
	surface "$DIR/tool-results" tool-results read-only
	surface /etc/passwd readable read-only
	surface "$T/hidden" hidden empty
	surface "$T/hidden/key" hidden absent
	surface "$DIR/promotion" outside absent
	surface /run/nothing outside absent
	end_session
}

@test "a scratch base in the workspace is not the workspace" {
	mkdir "$WS/base"
	begin --scratch-base "$WS/base"
	[[ $DIR == "$WS/base/"* ]] || fail "the session is elsewhere: $DIR"
	surface "$DIR/scratch" scratch writable
	surface "$DIR/scratch/made/up" scratch absent
	surface "$WS/base" outside empty
	surface "$WS/other" workspace absent
	end_session
}

@test "what does not exist is what its directory is; what is protected while absent is said to be" {
	begin
	cd "$WS"
	surface new/deeper/file workspace absent
	surface "$DIR/scratch/new" scratch absent
	surface .vscode/tasks.json protected quarantined
	surface missing/../../x outside absent
	surface /etc/no/such/thing readable absent
	end_session
}

@test "names mean what they mean inside: links, dots, /proc/self" {
	begin
	cd "$WS"
	inside -- sh -c 'ln -s /etc/passwd out; ln -s "$CARREL_SCRATCH" desk; ln -s /proc/self/cwd me; mkdir d'
	assert_status 0
	surface ./out readable read-only
	surface ./desk scratch writable
	surface desk/new scratch absent
	surface d/../desk/../scratch scratch writable
	surface /proc/self/root/etc/passwd readable read-only
	surface "desk/../../../../../../../../etc/hostname" readable read-only
	end_session
}

@test "why of a live session names the line of the policy, takes many paths, and odd names" {
	local odd

	odd=$'a\nb\xff'
	begin --read /etc/hostname
	cd "$WS"
	carrel why -s "$ID" --json "./$odd" /etc/passwd
	assert_status 0
	[[ $(jq -r 'length' <<<"$output") == 2 && $(jq -r '.[0].surface' <<<"$output") == workspace ]]
	[[ $(jq -r '.[1].lines[0].place' <<<"$output") == profile:* ]]
	[[ $(jq -r '.[1].path' <<<"$output") == /etc/passwd && $(jq -r '.[1].exists' <<<"$output") == true ]]
	carrel why -s "$ID" "./$odd"
	assert_matches "$output" 'a\\x0ab'
	carrel why -s "$ID"
	assert_status 2
	carrel why -s "$ID" --jason x
	assert_status 2
	assert_matches "$stderr" 'did you mean --json'
	end_session
}

@test "read prints parts of files, counted as it says" {
	begin
	cd "$WS"
	inside -- sh -c 'seq 1000 >"$CARREL_SCRATCH/n"; printf "h\303\251llo" >"$CARREL_SCRATCH/u"'
	carrel read "$DIR/scratch/n" --lines 10:12
	assert_output $'10\n11\n12'
	carrel read --lines -2: "$DIR/scratch/n"
	assert_output $'999\n1000'
	carrel read "$DIR/scratch/u" --chars 2:3
	assert_output $'\303\251l'
	carrel read "$DIR/scratch/u" --bytes 4:
	assert_output 'llo'
	carrel read "$DIR/scratch/n" --lines 5:x
	refused
	carrel read "$DIR/scratch/n" --lines 1:2 --bytes 1:2
	refused
	carrel read "$DIR/scratch/missing"
	refused
	carrel read "$DIR/scratch"
	refused
	end_session
}

@test "an empty path is none" {
	begin
	carrel why -s "$ID" --json /etc ''
	assert_status 2
	[[ -z $output ]] || fail 'half a document'
	assert_matches "$stderr" 'an empty word'
	carrel read ''
	assert_status 125
	assert_matches "$stderr" 'an empty path'
	end_session
}

@test "read opens what the session may read, and nothing else; nothing makes it wait" {
	mkdir "$T/hidden"
	echo secret >"$T/hidden/key"
	chmod 0755 "$T/hidden"
	begin --read "$T" --hide "$T/hidden"
	cd "$WS"
	cat "$T/hidden/key" >/dev/null # the control: from outside it can be read
	carrel read "$T/hidden/key"
	refused
	inside -- sh -c 'ln -s "$1" l; mkfifo f' sh "$T/hidden/key"
	carrel read l
	refused
	run --separate-stderr timeout 120 "$CARREL" read f </dev/null
	refused
	end_session
}

@test "read says what the policy hides, and by which line; what is empty is no error" {
	local path

	mkdir "$WS/dir"
	echo secret | tee "$WS/dir/key" "$WS/dir/shown" >"$WS/alone"
	: >"$WS/empty"
	ln -s alone "$WS/link"
	printf 'hide %s\nhide %s\nread %s\n' "$WS/alone" "$WS/dir" "$WS/dir/shown" >"$T/policy"
	begin --policy "$T/policy"
	for path in alone:1 link:1 dir/key:2 dir/nothing:2; do
		carrel read "${path%:*}"
		refused
		assert_matches "$stderr" "cannot read this: ${path%:*}: hidden \($T/policy:${path#*:}\)\$"
		(($(wc -l <<<"$stderr") == 1))
	done
	carrel read alone --lines 5:
	refused
	carrel read dir/shown
	assert_output secret
	carrel read empty
	assert_status 0
	assert_output ''
	carrel read nothing
	refused
	refute_matches "$stderr" hidden
	end_session
}

@test "an overlay: what was changed is told, with its number, where it is not kept and where it is" {
	echo old >a
	echo gone >b
	carrel run --workspace-mode overlay -- sh -c 'echo new >a; rm b; mkdir d; echo c >d/c'
	assert_status 0
	assert_matches "$stderr" "3 changed files stay out of the workspace, and are dropped: $WS"
	assert_matches "$stderr" 'hint: --keep leaves them'
	[[ $(<a) == old && $(<b) == gone && ! -e d ]]
	carrel run --workspace-mode overlay -- cat a
	[[ -z $stderr ]] || fail 'nothing was changed'
	carrel run --quiet --workspace-mode overlay -- sh -c 'echo new >a'
	[[ -z $stderr ]] || fail 'not quiet'
	carrel run --keep --workspace-mode overlay -- sh -c 'echo new >a'
	assert_matches "$stderr" "1 changed file stays out of the workspace: $WS"
	[[ $stderr =~ they\ are\ in\ ([^[:space:]]+) ]]
	[[ $(cat "${BASH_REMATCH[1]}/a") == new ]]
	rm -rf "$BASE"/carrel-*
	"$CARREL" gc >/dev/null
	carrel session start --workspace-mode overlay
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	carrel exec -s "$id" -- sh -c 'echo new >a'
	carrel session end "$id"
	assert_matches "$stderr" '1 changed file stays out of the workspace, and is dropped'
}
