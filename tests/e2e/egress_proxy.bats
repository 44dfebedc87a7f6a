#!/usr/bin/env bats
# `egress-proxy`: a command reaches allowed names through the proxy of the host's network (docs/network.md).
# tests/escape/egress_proxy.bats attacks it.
# ctest: as=user
load ../lib/common
load ../lib/names

setup() {
	common_setup
	need python3 curl
	world other.org=127.0.0.1
}

teardown() {
	end_proxy
	end_world
	common_teardown
}

# through NAME...: each is reached, at port 80.
through() {
	local name

	for name; do
		carrel run "${PROXY[@]}" --allow '*.example.org' -- curl -sS "http://$name/"
		assert_status 0
		assert_matches "$output" "hello $name"
	done
}

@test "an allowed name is reached by the proxy, which is asked for it by its name" {
	proxy
	through a.example.org pieces.example.org
	[[ $(<"$WORLD/asked") == "a.example.org:80"$'\n'"pieces.example.org:80" ]] || fail "$(<"$WORLD/asked")"
	[[ $(asked a.example.org) == 0 ]] || fail 'the name was resolved here'
	# What the server says first is the server's, also where it came with the proxy's answer.
	carrel run "${PROXY[@]}" --allow early.example.org:2222 -- python3 -c '
import socket
print(socket.create_connection(("early.example.org", 2222)).recv(6).decode())'
	assert_output early
}

@test "the proxy by a name, and as localhost; addresses of the policy are connected to without it" {
	proxy
	local option
	# The name of the proxy is resolved, and leads to a private address: the policy names it.
	for option in "http://localhost:$PROXY_PORT" "http://OTHER.org:$PROXY_PORT/"; do
		carrel run "${RESOLVER[@]}" --egress-proxy "$option" --allow a.example.org -- curl -sS http://a.example.org/
		assert_output 'hello a.example.org'
	done
	carrel run "${RESOLVER[@]}" --egress-proxy "http://none.org:$PROXY_PORT" --allow a.example.org --net-log "$T/log" -- \
		curl -sS http://a.example.org/
	assert_matches "$status" "$CUT"
	assert_matches "$(<"$T/log")" "resolve the proxy's name"
	rm "$WORLD/asked"
	carrel run "${PROXY[@]}" --allow "127.0.0.1:$WEB" --allow "localhost:$WEB" -- curl -sS "http://127.0.0.1:$WEB/"
	assert_output 'hello 127.0.0.1'
	[[ ! -e $WORLD/asked ]] || fail "the proxy was asked: $(<"$WORLD/asked")"
}

@test "the preset ca passes on the variables that name certificates, and nothing without it" {
	export SSL_CERT_FILE=/etc/ssl/company.pem NODE_EXTRA_CA_CERTS=/etc/ssl/company.pem
	carrel run --with ca -- sh -c 'echo "$SSL_CERT_FILE $NODE_EXTRA_CA_CERTS"'
	assert_output '/etc/ssl/company.pem /etc/ssl/company.pem'
	carrel run --unsetenv SSL_CERT_FILE -- sh -c 'echo "<$SSL_CERT_FILE>"' # the control arm
	assert_output '<>'
	unset SSL_CERT_FILE NODE_EXTRA_CA_CERTS
}

@test "the session's own proxy leads there too, with CONNECT and without" {
	proxy
	for option in -p --; do
		carrel run "${PROXY[@]}" --allow b.example.org -- curl -sS -x http://127.0.0.1:3128 "$option" http://b.example.org/
		assert_status 0
		assert_matches "$output" 'hello b.example.org'
	done
}

@test "a proxy that refuses, fails or talks nonsense: the program's connection ends, and the log says why" {
	proxy
	local name word
	while read -r name word; do
		carrel run "${PROXY[@]}" --allow '*.example.org' --net-log "$T/log" -- curl -sS --max-time 60 "http://$name.example.org/"
		assert_matches "$status" "$CUT"
		jq -es --arg why "$word" 'any(.decision == "failed" and (.why | contains($why)))' "$T/log" >/dev/null ||
			fail "$name: $(<"$T/log")"
		rm "$T/log"
	done <<-'END'
		refused the proxy refused
		missing the proxy could not reach it
		garbage the proxy's answer is none
		endless the proxy's answer is none
		half the proxy
	END
	end_proxy
	carrel run "${PROXY[@]}" --allow a.example.org --net-log "$T/log" -- curl -sS http://a.example.org/
	assert_matches "$status" "$CUT"
	assert_matches "$(<"$T/log")" 'connect to the proxy.*ECONNREFUSED'
}

@test "a login: from a file that is the caller's alone, and that no tool and no output shows" {
	proxy me:geheim
	printf 'me:geheim\nmore\n' >"$WS/login"
	chmod 600 "$WS/login"
	PROXY+=(--egress-proxy-login "$WS/login")
	carrel run "${PROXY[@]}" --allow a.example.org --report "$T/report" --net-log "$T/log" -- \
		sh -c 'curl -sS http://a.example.org/; cat login; cat /proc/*/environ'
	assert_matches "$output" 'hello a.example.org'
	[[ $output$stderr != *geheim* && $output$stderr != *bWU6Z2VoZWlt* ]] || fail "$output$stderr"
	carrel policy show "${PROXY[@]}"
	assert_status 0
	assert_matches "$output" "egress-proxy http://127.0.0.1:"
	assert_matches "$output" "hide $WS/login"
	carrel plan "${PROXY[@]}" --allow a.example.org -- true
	run ! grep -rE 'geheim|bWU6Z2VoZWlt' "$T/report" "$T/log" <(printf '%s' "$output")
	# The control arm: without it the proxy refuses.
	carrel run "${PROXY[@]:0:4}" --allow a.example.org --net-log "$T/log" -- curl -sS http://a.example.org/
	assert_matches "$status" "$CUT"
	assert_matches "$(<"$T/log")" 'asks for a login'
	chmod 644 "$WS/login"
	carrel run "${PROXY[@]}" --allow a.example.org -- true
	assert_status 125
	assert_matches "$stderr" 'other users may read the login'
	for text in '' 'me' $'\n:x' $'me:a\tb'; do
		printf '%s' "$text" >"$T/bad"
		chmod 600 "$T/bad"
		carrel run "${PROXY[@]:0:4}" --egress-proxy-login "$T/bad" --allow a.example.org -- true
		assert_status 125
		assert_matches "$stderr" "its first line is USER:PASSWORD"
	done
	carrel run "${PROXY[@]:0:4}" --egress-proxy-login "$T/none" --allow a.example.org -- true
	assert_status 125
}

@test "wrong addresses of a proxy are refused" {
	local url
	for url in proxy.example.org:3128 https://proxy.example.org:3128 http://proxy.example.org http://me:pw@proxy:3128 \
		'http://*.example.org:3128' http://10.0.0.0/8:3128 http://proxy:1,2 http://proxy:70000 http:// 'http://a b:1'; do
		carrel run --egress-proxy "$url" --allow a.example.org -- true
		assert_status 125
		[[ $stderr != *pw@* ]] || fail "$stderr"
	done
	carrel run --egress-proxy http://me:pw@proxy:3128 --allow a.example.org -- true
	assert_matches "$stderr" 'egress-proxy-login FILE'
}
