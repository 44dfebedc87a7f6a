#!/usr/bin/env bats
# `publish`: servers of the session on the host's loopback (docs/network.md).
# ctest: as=user
load ../lib/common
load ../lib/live
load ../lib/names

# host_port N: the port of the host that the kernel has chosen for the Nth one.
host_port() {
	jq -er ".published[${1-0}].host_port" "$T/begun"
}

# serves PORT ADDRESS: a server inside, ready. It says what it was sent, and ends when that ends.
serves() {
	cat >"$WS/serves.py" <<-'EOF2'
		import socket, sys, threading
		s = socket.create_server((sys.argv[2], int(sys.argv[1])), family=socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET)
		open("serves-" + sys.argv[1], "w").write("1\n")
		def echo(c):
		    while data := c.recv(65536):
		        c.sendall(data)
		    c.shutdown(socket.SHUT_WR)
		    c.close()
		while True:
		    threading.Thread(target=echo, args=(s.accept()[0],)).start()
	EOF2
	rm -f "$WS/serves-$1"
	inside --detach --name "on$1" -- python3 serves.py "$1" "$2"
	assert_status 0
	wait_for test -s "$WS/serves-$1"
}

# echoes PORT [COUNT [SIZE]]: so many connections at once to the host's port, by both families, each with so many bytes.
echoes() {
	python3 - "$@" <<-'EOF2'
		import socket, sys, threading
		port, count, size = (list(map(int, sys.argv[1:])) + [1, 100])[:3] if len(sys.argv) < 4 else map(int, sys.argv[1:])
		told = []
		def talk(n):
		    c = socket.create_connection(("::1" if n % 2 else "127.0.0.1", port))
		    def send():
		        c.sendall(bytes([n % 256]) * size)
		        c.shutdown(socket.SHUT_WR)
		    t = threading.Thread(target=send)
		    t.start()
		    got = b"".join(iter(lambda: c.recv(65536), b""))
		    t.join()
		    told.append(got == bytes([n % 256]) * size)
		all_of_them = [threading.Thread(target=talk, args=(n,)) for n in range(count)]
		for t in all_of_them: t.start()
		for t in all_of_them: t.join()
		sys.exit(0 if told == [True] * count else f"{told.count(True)} of {count}")
	EOF2
}

# is_reset PORT
is_reset() {
	python3 -c 'import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
try: sys.exit(f"it says {c.recv(1)}")
except ConnectionResetError: pass' "$1"
}

# is_closed PORT
is_closed() {
	python3 -c 'import socket, sys
try: socket.create_connection(("127.0.0.1", int(sys.argv[1])))
except ConnectionRefusedError: sys.exit()
sys.exit("somebody listens")' "$1"
}

@test "a server inside is reached on both loopbacks; with nobody there it is reset; the end closes it" {
	begin --publish 8080:0 --publish 9090:0 --report "$T/r.json"
	local one two

	one=$(host_port) two=$(host_port 1)
	is_reset "$one"
	serves 8080 127.0.0.1
	serves 9090 ::1
	echoes "$one"
	echoes "$two"
	echoes "$one" 1 20000000
	echoes "$one" 150 3000 # more than there are sockets: the others wait
	echoes "$two" 100 3000
	carrel session show
	assert_matches "$output" $'\npublished    8080 at 127.0.0.1:'"$one"
	carrel session show --json
	[[ $(jq -c .published <<<"$output") == "$(jq -c .published "$T/begun")" ]] || fail 'not the same ports'
	carrel exec --stop on8080
	is_reset "$one"
	pkill -KILL -P "$SUPERVISOR" carrel-egress
	wait_for is_closed "$two"
	end_session
	keep_report "$T/r.json"
	assert_field "$T/r.json" '.network == null' true
	[[ $(jq -c '[.published[] | [.port, .times]]' "$T/r.json") == '[[8080,152],[9090,101]]' ]] || fail "$(jq -c .published "$T/r.json")"
	assert_field "$T/r.json" .published[0].host_port "$one"
	is_closed "$one"
	# Beside names, with a port that was asked for, in `run`: told where the kernel chose it.
	carrel run --publish "$one" --publish 9090:0 --allow example.org --net-resolver 127.0.0.1:9 --report "$T/r.json" -- \
		python3 -c 'import socket; s = socket.create_server(("", 9090)); s.settimeout(0.01)
try: s.accept()
except TimeoutError: print("served")'
	assert_status 0
	assert_output served
	assert_matches "$stderr" '^carrel: port 9090 is published at 127.0.0.1:[0-9]+$'
	keep_report "$T/r.json"
	assert_field "$T/r.json" '.published[0] | "\(.port) \(.host_port)"' "$one $one"
}

@test "what cannot be published is one line, and nothing is started" {
	local port

	refused() {
		carrel run "${@:2}" -- touch "$WS/ran"
		assert_refused "$1"
		[[ ! -e $WS/ran ]] || fail 'the command ran'
	}
	refused "port 80 is privileged: only 1024 and above can be published: --publish" --publish 80
	refused "port 443 is privileged" --publish 8080:443
	for port in 65536 8000-8010 http '' 8080: :8080 8080:9:9 -1 0 8080,8081 127.0.0.1:8080; do
		refused "is not a port: PORT\\[:HOSTPORT\\]|is empty|needs" --publish "$port"
	done
	refused "two lines '--publish' contradict each other about '8080'" --publish 8080 --publish 8080:9090
	refused 'port 8081 cannot be published: another one has that port of the host' --publish 8080:9000 --publish 8081:9000
	refused 'port 8080 cannot be published: with `net host` it is the host.s already' --publish 8080 --net host
	refused 'port 8080 cannot be published: an `allow` line names it, so no server inside can have it' --publish 8080 --allow example.org:8080
	# shellcheck disable=SC2046
	refused 'that is one more than a session can have' $(for port in {8000..8016}; do echo "--publish $port:0"; done)
	begin --publish 8080:0
	port=$(host_port)
	carrel run --publish "9090:$port" -- touch "$WS/ran"
	assert_status 125
	assert_matches "$stderr" "^carrel: cannot listen on the host's loopback for \`publish\`: 127.0.0.1:$port: Address (already )?in use"$'\n''carrel: hint: --publish 9090:0 takes a port that is free$'
	[[ ! -e $WS/ran ]] || fail 'the command ran'
	end_session
	carrel plan --publish 8080:9000
	assert_matches "$output" 'net-publish +8080:9000'
	carrel policy show --publish 8080 --publish 9090:0
	assert_matches "$output" 'publish 8080:8080 +# command line: --publish'
	assert_matches "$output" 'publish 9090:0'
}
