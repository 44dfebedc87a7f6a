#!/usr/bin/env bats
# carrel quarantine finds, shows, puts back and removes what tools made at protected paths, by carrel's own records.
load ../lib/common
load ../lib/session

# quarantined PATH [TEXT]: a session makes PATH in the workspace. Its id is in ID.
quarantined() {
	carrel run -- sh -c 'mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"' sh "$1" "${2-text}"
	assert_status 0
	[[ $stderr =~ carrel\ quarantine\ restore\ ([0-9a-f]{12}) ]] || fail 'no line that restores'
	ID=${BASH_REMATCH[1]}
	[[ ! -e $1 ]] || fail "$1 stands"
}

# list: what this test's sessions moved. The caller's account may have records of its own in its home, which
# carrel lists as well.
list() {
	carrel quarantine list
	assert_status 0
	output=$(grep -F "  $T/" <<<"$output") || true
}

# listed FILTER: the same as JSON, sorted by path, through jq.
listed() {
	"$CARREL" quarantine --json |
		jq -r --arg t "$T/" "[.quarantined[] | select(.path | startswith(\$t))] | sort_by(.path) | $1"
}

# nothing_left: neither a thing, nor its directory, nor a record.
nothing_left() {
	list
	assert_output ''
	[[ -z $(find "$WS" -name '.carrel-quarantine-*') ]] || fail 'a quarantine directory is left'
}

@test "a file: told with --quiet too, listed, shown, compared, restored" {
	carrel run --quiet -- sh -c 'printf "one\ntwo\n" >.envrc'
	assert_status 0
	assert_matches "$stderr" "quarantined, since the host would obey it: $WS/.envrc"
	[[ $stderr =~ restore\ ([0-9a-f]{12}) ]]
	ID=${BASH_REMATCH[1]}
	carrel quarantine
	assert_status 0
	assert_matches "$output" "^$ID +[0-9]+s  $WS/.envrc(\$|"$'\n)'
	carrel quarantine show "$ID"
	assert_status 0
	assert_matches "$output" "appeared +$WS/.envrc"$'\n'"is now +$WS/.carrel-quarantine-[a-z2-7]{20}/.envrc.quarantined"
	assert_matches "$output" 'gc removes it in (29|30)d'
	assert_matches "$output" $'\n\none\ntwo$'
	carrel quarantine diff "$ID"
	assert_status 0
	assert_matches "$output" $'--- nothing is at .*\n@@ line 1 @@\n\+one\n\+two$'
	printf 'one\n2\n' >.envrc
	carrel quarantine diff "${ID:0:6}"
	assert_matches "$output" $'@@ line 2 @@\n-2\n\+two$'
	carrel quarantine restore "$ID"
	assert_status 125
	assert_matches "$stderr" "cannot be put back: $WS/.envrc: File exists"
	[[ $(<.envrc) == $'one\n2' ]]
	rm .envrc
	carrel quarantine restore "$ID"
	assert_status 0
	assert_output "restored $WS/.envrc"
	[[ $(<.envrc) == $'one\ntwo' ]]
	nothing_left
}

@test "a directory, a link, several of them; removed" {
	carrel run -- sh -c 'mkdir -p .vscode/a && echo x >.vscode/a/b && ln -s /etc/passwd .envrc'
	assert_status 0
	mapfile -t ids < <(listed '.[].id')
	((${#ids[@]} == 2))
	carrel quarantine show "${ids[0]}"
	assert_matches "$output" 'leads to +/etc/passwd'
	carrel quarantine show "${ids[1]}"
	assert_matches "$output" $'\ndirectory .* a\nfile .* a/b'
	carrel quarantine diff "${ids[1]}"
	assert_matches "$output" $'in quarantine: a/b\n@@ line 1 @@\n\+x'
	carrel quarantine remove "${ids[@]}"
	assert_status 0
	assert_output "removed $WS/.envrc"$'\n'"removed $WS/.vscode"
	nothing_left
}

@test "a live session: what it moved is noted while it lives, and its end says the line" {
	carrel session start
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	carrel exec -s "$id" -- sh -c 'echo x >.envrc; until [ ! -e .envrc ]; do :; done'
	assert_status 0
	list
	assert_matches "$output" "  $WS/.envrc\$"
	carrel session list
	assert_matches "$stderr" '[1-9][0-9]* paths? that (a tool|tools) made (is|are) in quarantine'
	assert_matches "$stderr" 'hint: carrel quarantine list'
	carrel session end "$id"
	assert_matches "$stderr" 'carrel quarantine restore [0-9a-f]{12}'
	carrel session list
	assert_matches "$stderr" 'in quarantine'
	carrel session list --json
	assert_output '[]'
	[[ -z $stderr ]]
	"$CARREL" quarantine remove "$(listed '.[0].id')"
	carrel session list
	[[ -z $stderr || -n $("$CARREL" quarantine list) ]] || fail 'there is nothing to tell'
}

@test "a killed launcher: its sweep notes what it moves" {
	start_and_wait run --quarantine-for 1h -- sh -c ': >.envrc; : >ready; exec sleep 1000'
	signal KILL
	finish
	carrel gc
	assert_status 0
	[[ $(listed '.[0].path') == "$WS/.envrc" ]]
	[[ $(listed '.[0] | .until - .since') == 3600 ]]
}

@test "what git init writes is no matter of quarantine" {
	need git
	carrel run -- sh -c 'git init -q . && sleep 0.2'
	assert_status 0
	[[ -d .git && -z $stderr ]] || fail 'git init is told'
	nothing_left
}

@test "gc removes what has been there for as long as the policy said, and nothing else" {
	carrel run --quarantine-for 1ms -- sh -c 'mkdir .vscode; echo x >.vscode/tasks.json'
	assert_status 0
	quarantined .envrc
	until [[ $("$CARREL" gc --dry-run) == "would remove from quarantine $WS/.vscode" ]]; do :; done
	carrel gc
	assert_status 0
	assert_matches "$output" "removed from quarantine $WS/.vscode"
	refute_matches "$output" 'envrc'
	list
	assert_matches "$output" "^$ID [^"$'\n'"]*/.envrc\$"
	# Removed by hand: the record goes with the next gc.
	rm -r .carrel-quarantine-*
	list
	assert_matches "$output" '/.envrc \(gone\)$'
	carrel quarantine show "$ID"
	assert_status 125
	assert_matches "$stderr" 'it is not there any more'
	carrel gc
	assert_status 0
	nothing_left
}

@test "a forged quarantine directory is neither listed, nor restored, nor removed" {
	mkdir -m 700 ".carrel-quarantine-aaaaaaaaaaaaaaaaaaaa" "$T/out"
	echo x >".carrel-quarantine-aaaaaaaaaaaaaaaaaaaa/..%2F..%2Fout%2Fx.quarantined"
	list
	assert_output ''
	carrel gc
	[[ -e .carrel-quarantine-aaaaaaaaaaaaaaaaaaaa/..%2F..%2Fout%2Fx.quarantined ]]
	carrel quarantine restore aaaaaaaaaaaa
	assert_status 125
	assert_matches "$stderr" 'nothing in quarantine has this id: aaaaaaaaaaaa'
	rm -r .carrel-quarantine-*
}

@test "what a later session does to it is noticed: it is not restored" {
	quarantined .envrc good
	# The control arm: it is restored where nobody touched it.
	carrel quarantine restore "$ID"
	assert_status 0
	rm .envrc

	quarantined .envrc good
	carrel run -- sh -c 'cd .carrel-quarantine-* && echo evil >.envrc.quarantined'
	assert_status 0
	list
	assert_matches "$output" '/.envrc \(changed\)'
	carrel quarantine restore "$ID"
	assert_status 125
	assert_matches "$stderr" 'changed since it was quarantined'
	[[ ! -e .envrc ]]
	# Another file in its place is another thing.
	carrel run -- sh -c 'cd .carrel-quarantine-* && echo evil >n && mv n .envrc.quarantined'
	carrel quarantine restore "$ID"
	assert_status 125
	assert_matches "$stderr" 'another thing is'
	[[ ! -e .envrc ]]
	carrel quarantine remove "$ID"
	assert_status 0
	[[ $(cat .carrel-quarantine-*/.envrc.quarantined) == evil ]] || fail 'what carrel did not move is gone'
	rm -r .carrel-quarantine-*
}

@test "restore follows no link and makes no directory" {
	mkdir -p "$T/out"
	quarantined .config/fish/config.fish
	rm -r .config
	carrel quarantine restore "$ID"
	assert_status 125
	assert_matches "$stderr" 'the directory that it was in is gone'
	ln -s "$T/out" .config
	mkdir -p "$T/out/fish"
	carrel quarantine restore "$ID"
	assert_status 125
	assert_matches "$stderr" 'no link is followed'
	[[ -z $(find "$T/out" -type f -o -type l) ]] || fail 'it was put where a link leads'
	# Nor where its own directory is a link by now.
	rm -r .config "$T/out"
	mkdir -p .config
	mv .carrel-quarantine-* "$T/out"
	ln -s "$T/out" "$(carrel_quarantine_name)"
	carrel quarantine restore "$ID"
	assert_status 125
	carrel quarantine remove "$ID"
	assert_status 0
	[[ -n $(find "$T/out" -name '*.quarantined') ]] || fail 'what a link leads to was removed'
}

# carrel_quarantine_name: of the directory that the only record names.
carrel_quarantine_name() {
	local to
	to=$(listed '.[0].to')
	to=${to#"$WS"/}
	printf '%s\n' "${to%%/*}"
}

@test "names and texts that a terminal would obey are shown, not obeyed" {
	local name=$'a\nb\e[31m'
	mkdir "$WS/$name"
	cd "$WS/$name"
	carrel run -- sh -c 'printf "x\033[2Jy\n\000z" >.envrc'
	assert_status 0
	[[ $stderr =~ restore\ ([0-9a-f]{12}) ]]
	ID=${BASH_REMATCH[1]}
	list
	assert_matches "$output" 'a\\x0ab\\x1b\[31m/.envrc$'
	carrel quarantine show "$ID"
	assert_matches "$output" 'x\\x1b\[2Jy'
	carrel quarantine diff "$ID"
	assert_matches "$output" '\+x\\x1b\[2Jy'
	refute_matches "$output" $'\e'
}

@test "inside a session there is nothing to be had" {
	quarantined .envrc
	carrel run --read "$CARREL" -- "$CARREL" quarantine list
	assert_status 0
	assert_output ''
	carrel run --read "$CARREL" -- "$CARREL" quarantine restore "$ID"
	assert_status 125
	carrel quarantine remove "$ID"
	assert_status 0
}
