#!/usr/bin/env bats
# carrel mcp and real clients, from npm: the official SDK of both eras, and the inspector.
# ctest: as=user cost=25
load ../lib/common
load ../lib/live

setup() {
	live_setup
	NPM=${CARREL_SOURCE%/source}/npm
	[[ ! -r $NPM/missing ]] || skip "no npm packages here: $(<"$NPM/missing")"
	need node
	[[ -d $NPM/node_modules ]] || fail "there is no $NPM"
}

# at_least MAJOR: of node.
at_least() {
	(($(node -p 'process.versions.node.split(".")[0]') >= $1)) ||
		skip "no node $1 or newer on this machine"
}

drive() {
	export WS
	run --separate-stderr node "$CARREL_SOURCE/tests/mcp/drive.mjs" "$NPM" "$1"
	assert_status 0
	assert_matches "$output" "every tool works: $1"
	await_nothing_left
}

inspect() {
	run --separate-stderr node "$NPM/node_modules/@modelcontextprotocol/inspector-cli/build/cli.js" --cli \
		"$CARREL" mcp --workspace "$WS" "$@"
	assert_status 0
}

@test "the SDK, with initialize" {
	drive sdk
}

@test "the SDK of revision 2026-07-28, with initialize" {
	at_least 20
	drive legacy
}

@test "the SDK of revision 2026-07-28, without" {
	at_least 20
	drive modern
}

@test "the inspector's command line: every tool" {
	inspect --method tools/list
	[[ $(jq -r '.tools | map(.name) | join(" ")' <<<"$output") == \
		'exec read write list promote pad status' ]] || fail 'not these tools'
	inspect --method tools/call --tool-name exec --tool-arg command='echo hello; pwd'
	[[ $(jq -r .structuredContent.stdout <<<"$output") == "hello"$'\n'"$WS" ]] || fail 'not that'
	inspect --method tools/call --tool-name write --tool-arg path="$WS/w" --tool-arg content=text
	[[ $(<"$WS/w") == text ]] || fail 'not written'
	inspect --method tools/call --tool-name read --tool-arg path="$WS/w"
	[[ $(jq -r .structuredContent.text <<<"$output") == text ]] || fail 'not read'
	inspect --method tools/call --tool-name list --tool-arg path="$WS"
	[[ $(jq -r '.structuredContent.entries[0].name' <<<"$output") == w ]] || fail 'not listed'
	inspect --method tools/call --tool-name pad --tool-arg action=write --tool-arg content=x
	[[ $(jq -r .structuredContent.section <<<"$output") == main ]] || fail 'not main'
	inspect --method tools/call --tool-name status
	[[ $(jq -r .structuredContent.workspace <<<"$output") == "$WS" ]] || fail 'not the workspace'
	inspect --method tools/call --tool-name promote --tool-arg 'sources=["missing"]' \
		--tool-arg destination="$WS"
	jq -e '.isError == true' <<<"$output"
	await_nothing_left
}
