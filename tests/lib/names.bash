# names.bash - the world outside of the tests of the network (names.py). After `load ../lib/common`:  load ../lib/names

# curl's status where its connection is refused or reset: 7 by connect(2), 55 or 56 by what it asks the socket next.
# shellcheck disable=SC2034 # for the tests
CUT='^(7|55|56)$'

# world [--tls CERTIFICATE KEY ADDRESS] NAME=ADDRESS...: DNS and WEB are its ports, RESOLVER the option that asks it.
world() {
	WORLD=$T/world.d
	mkdir -p "$WORLD/www"
	python3 "$CARREL_SOURCE/tests/lib/names.py" "$WORLD" "$@" </dev/null >"$T/world.log" 2>&1 3>&- 4>&- &
	WORLD_PID=$!
	wait_for test -s "$WORLD/world"
	# shellcheck disable=SC1091 # it is made here
	source "$WORLD/world"
	RESOLVER=(--net-resolver "127.0.0.1:$DNS")
	# shellcheck disable=SC2034 # for the tests
	OPEN=("${RESOLVER[@]}" --allow "127.0.0.1:$WEB") # names lead there
}

end_world() {
	kill -KILL "$WORLD_PID" 2>/dev/null || true
	wait "$WORLD_PID" 2>/dev/null || true
}

# asked NAME: how often the world was asked for the address of that name.
asked() {
	grep -c "^A $1\$" "$WORLD/queries" || true
}

# proxy [USER:PASSWORD]: the proxy of the host's network (connect_proxy.py), behind world(): PROXY are the options that name it, and
# no resolver answers.
proxy() {
	python3 "$CARREL_SOURCE/tests/lib/connect_proxy.py" "$WORLD" "$WEB" "$@" </dev/null >"$T/proxy.log" 2>&1 3>&- 4>&- &
	PROXY_PID=$!
	wait_for test -s "$WORLD/proxy"
	PROXY_PORT=$(<"$WORLD/proxy")
	# shellcheck disable=SC2034 # for the tests
	PROXY=(--net-resolver 127.0.0.1:9 --egress-proxy "http://127.0.0.1:$PROXY_PORT")
}

end_proxy() {
	[[ -z ${PROXY_PID-} ]] || kill -KILL "$PROXY_PID" 2>/dev/null || true
	[[ -z ${PROXY_PID-} ]] || wait "$PROXY_PID" || true
	PROXY_PID=
}
