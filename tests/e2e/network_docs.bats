#!/usr/bin/env bats
# docs/network.md: the test runs each of its examples as it stands there and compares the output. No packet leaves the
# machine: in a network namespace of its own nothing answers.
# ctest: as=user
load ../lib/common
load ../lib/live

setup() {
	live_setup
	need curl
	need npm
	need python3
	PATH=${CARREL%/*}:$PATH
	export XDG_RUNTIME_DIR=$T/run
}

# example NUMBER: the lines of one indented block of the document that is no picture, without the indentation.
example() {
	awk -v want="$1" '/^    (\$ |carrel |export |egress-)/ && !inside { n++; inside = 1 } !/^    / { inside = 0 }
		inside && n == want { print substr($0, 5) }' "$CARREL_SOURCE/docs/network.md"
}

# alone [--mount] COMMAND: a line of shell, where the machine has no network but the host's loopback. --mount: and mounts of its own.
alone() {
	local -a new=(unshare --net)

	need unshare ip
	is_root || new=(unshare --user --map-current-user --keep-caps --net)
	if [[ $1 == --mount ]]; then
		new+=("$1")
		shift
	fi
	run --separate-stderr "${new[@]}" bash -c "ip link set lo up && cd '$WS' || exit 77
		$1"
	[[ $status != 77 ]] || skip 'no network namespace for this caller'
}

@test "an allowed name" {
	[[ $(example 1) == 'carrel run --allow registry.npmjs.org -- npm install' ]] || fail 'the document has another example'
	echo '{"name": "x", "version": "1.0.0"}' >"$WS/package.json"
	alone "$(example 1)"
	assert_status 0
	assert_matches "$output" 'up to date'
}

@test "a name that is not allowed, and what is said of it" {
	example 2 | grep -q '^\$ ' || fail 'the document has another example'
	alone "$(example 2 | sed -n 's/^\$ //p') 2>&1"
	assert_status 6
	assert_output "$(example 2 | grep -v '^\$ ')"
}

@test "no network, and what is said of it" {
	example 3 | grep -q '^\$ ' || fail 'the document has another example'
	alone "$(example 3 | sed -n 's/^\$ //p') 2>&1"
	assert_status 6
	assert_output "$(example 3 | grep -v '^\$ ')"
}

@test "an allowed name that leads to a private address, and what is said of it" {
	example 4 | grep -q '^\$ ' || fail 'the document has another example'
	printf '127.0.0.1 localhost\n10.9.8.7 wiki.example.org\n' >"$T/hosts"
	alone --mount "/usr/bin/python3 -c 'import ctypes, sys
if ctypes.CDLL(None).mount(sys.argv[1].encode(), b\"/etc/hosts\", None, 0x1000, None): sys.exit(77)' '$T/hosts' || exit 77
		$(example 4 | sed -n 's/^\$ //p') 2>&1"
	# The reset comes to whatever curl asks of the socket first: connect(2), send(2) or recv(2).
	assert_matches "$status" '^(7|55|56)$'
	assert_output "$(example 4 | grep -v '^\$ ' | sed "1c\\${output%%$'\n'*}")"
	assert_matches "$output" '^curl: '
}

@test "a live session is given names, and one is taken back" {
	need jq
	run --separate-stderr bash -c "cd '$WS' && $(example 5)
		echo \$CARREL_SESSION" 3>&- 4>&-
	assert_status 0
	[[ -z $stderr ]] || fail "it says: $stderr"
	export CARREL_SESSION=$output
	carrel session show --json
	[[ $(jq -c '.allow | sort' <<<"$output") == '["*.example.net:80,443","registry.npmjs.org:80,443"]' ]] || fail "$output"
	carrel session end
}

@test "a server inside is reached on the host's loopback" {
	local line

	echo hello >"$WS/file"
	line=$(example 6 | sed -n 1p)
	alone "$line >$T/served 2>&1 & for ((i = 0; i < 600; i++)); do curl -s http://127.0.0.1:8080/file && break; sleep 0.1; done; kill \$!; wait"
	assert_output hello
	line=$(example 6 | sed -n 2p)
	run --separate-stderr bash -c "cd '$WS' && $line" 3>&- 4>&-
	assert_status 0
	CARREL_SESSION=$(sed -n 's/^session //p' <<<"$output")
	export CARREL_SESSION
	carrel session show
	assert_matches "$output" 'published +.*8080'
	carrel session end
}

@test "the lines about the proxy of a company are a policy" {
	mkdir -p "$HOME/.config/carrel"
	(umask 077 && echo 'user:password' >"$HOME/.config/carrel/proxy-login")
	example 7 >"$T/policy"
	grep -q '^egress-proxy ' "$T/policy" || fail 'the document has another example'
	carrel policy show --policy "$T/policy" --allow example.org
	assert_status 0
	assert_matches "$output" 'egress-proxy http://proxy.example.com:3128'
	cd "$WS"
	carrel run --policy "$T/policy" --allow example.org -- true
	assert_status 0
	[[ -z $(example 8) ]] || fail 'an example that is not run'
}
