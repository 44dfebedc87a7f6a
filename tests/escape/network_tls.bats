#!/usr/bin/env bats
# ctest: as=root
# TLS with `net allow`: on port 443 carrel-egress connects only if the ClientHello names the host that the connection
# was made for. The test runs as root, since nobody else can serve port 443.
load ../lib/common
load ../lib/names
load escape

setup() {
	escape_setup
	need python3 curl openssl
	ADDRESS=127.$((RANDOM % 250 + 2)).$((RANDOM % 250 + 2)).$((RANDOM % 250 + 2))
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=example.org -addext \
		subjectAltName=DNS:example.org,DNS:other.org -keyout "$T/key" -out "$T/cert" 2>/dev/null
	world --tls "$T/cert" "$T/key" "$ADDRESS" "example.org=$ADDRESS" "other.org=$ADDRESS"
	cp "$T/cert" "$WS/cert"
	SETTINGS=("${RESOLVER[@]}" --allow "$ADDRESS:443" --allow example.org --report "$T/r.json")
}

teardown() {
	end_world
	common_teardown
}

denied() {
	assert_field "$T/r.json" 'any(.network.names[]; .decision == "denied-tls")' true
}

@test "curl and openssl reach the allowed name by TLS 1.2 and 1.3" {
	for version in 1.2 1.3; do
		session curl -sS --cacert cert --tlsv"$version" --tls-max "$version" https://example.org/
		assert_status 0
		assert_output 'hello example.org'
	done
	session sh -c 'openssl s_client -brief -CAfile cert -verify_return_error -servername example.org -connect example.org:443 </dev/null'
	assert_status 0
}

@test "another server name, none, and no TLS at all are refused; with tls-name no they pass" {
	local attempts=(
		'curl -sSk --max-time 30 --connect-to other.org:443:example.org:443 https://other.org/'
		'openssl s_client -brief -noservername -connect example.org:443 </dev/null'
		'curl -sS --max-time 30 http://example.org:443/'
	)

	for attempt in "${attempts[@]:0:2}"; do
		session sh -c "$attempt"
		[[ $status != 0 ]] || fail "not refused: $attempt"
		denied
	done
	session sh -c "${attempts[2]}"
	denied
	SETTINGS+=(--no-tls-name)
	for attempt in "${attempts[@]:0:2}"; do
		session sh -c "$attempt"
		assert_status 0
	done
}
