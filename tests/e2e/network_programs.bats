#!/usr/bin/env bats
# Programs as they are, without any proxy setting, each to a server on the host's loopback that stands for a remote name: package
# managers, other resolvers than glibc's, other protocols than HTTP/1.1, and many bytes (docs/network.md).
# ctest: as=user cost=8
load ../lib/common
load ../lib/names

setup() {
	common_setup
	need python3
	world example.org=127.0.0.1 other.org=127.0.0.1
	SITE=http://example.org:$WEB
	ALLOWED=("${OPEN[@]}" --allow "example.org:$WEB")
}

teardown() {
	[[ -z ${SERVER-} ]] || kill -KILL "$SERVER" 2>/dev/null || true
	end_world
	common_teardown
}

# serves PROGRAM...: in the background; it prints the port that it has, which becomes $PORT and is allowed.
serves() {
	"$@" </dev/null >"$T/server" 2>&1 3>&- 4>&- &
	SERVER=$!
	wait_for test -s "$T/server"
	PORT=$(head -n 1 "$T/server")
	ALLOWED=("${RESOLVER[@]}" --allow "127.0.0.1:$PORT" --allow "example.org:$PORT")
}

# inside COMMAND...: in a session that may reach the name.
inside() {
	carrel run "${ALLOWED[@]}" -- "$@"
	assert_status 0
}

@test "apt-get: the index of a repository, and a package" {
	need apt-get dpkg-deb
	mkdir -p "$T/deb/DEBIAN"
	printf '%s\n' 'Package: desk' 'Version: 1.2' 'Architecture: all' 'Maintainer: x <x@example.org>' \
		'Description: nothing' >"$T/deb/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$T/deb" "$WORLD/www/desk.deb" >/dev/null
	{
		cat "$T/deb/DEBIAN/control"
		printf 'Filename: desk.deb\nSize: %d\nSHA256: %s\n' "$(stat -c %s "$WORLD/www/desk.deb")" \
			"$(sha256sum <"$WORLD/www/desk.deb" | cut -d' ' -f1)"
	} >"$WORLD/www/Packages"
	echo "deb [trusted=yes] $SITE/file ./" >sources.list
	inside sh -c 'mkdir -p "$TMPDIR/lists/partial" "$TMPDIR/cache/archives/partial"
		set -- -qq -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$TMPDIR/lists" \
			-o Dir::Cache="$TMPDIR/cache" -o Debug::NoLocking=1
		apt-get "$@" update && apt-get "$@" download desk'
	dpkg-deb -I desk_1.2_all.deb | grep -q 'Version: 1.2' || fail 'not fetched'
}

@test "pip: the index of a repository, and a wheel" {
	/usr/bin/python3 -m pip --version >/dev/null 2>&1 || skip 'no pip for /usr/bin/python3 on this machine'
	mkdir -p "$WORLD/www/simple/desk"
	/usr/bin/python3 - "$WORLD/www/simple/desk" <<-'PY'
		import sys, zipfile
		with zipfile.ZipFile(sys.argv[1] + "/desk-1.2-py3-none-any.whl", "w") as z:
		    z.writestr("desk.py", "print('desk')\n")
		    z.writestr("desk-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: desk\nVersion: 1.2\n")
		    z.writestr("desk-1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		    z.writestr("desk-1.2.dist-info/RECORD", "desk.py,,\n")
	PY
	inside /usr/bin/python3 -m pip install -q --no-cache-dir --disable-pip-version-check --trusted-host example.org \
		--index-url "$SITE/file/simple" --target site desk
	[[ -s site/desk.py ]] || fail 'not installed'
}

@test "resolvers of their own: c-ares, musl, Java" {
	need node
	inside node -e 'const d = require("dns").promises
		Promise.all([d.resolve4("example.org"), d.resolve6("example.org"), d.lookup("example.org")]).then(a => console.log(a[0][0], a[1][0], a[2].address))'
	assert_output '198.18.0.1 fd63:6172:7265:6c00::1 198.18.0.1'
	need musl-gcc
	cat >name.c <<-'C'
		#include <netdb.h>
		#include <stdio.h>
		int main(int argc, char **argv)
		{
			struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
			char host[64];
			if (argc != 2 || getaddrinfo(argv[1], "80", &hints, &list))
				return 1;
			for (a = list; a; a = a->ai_next)
				if (!getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST))
					puts(host);
			return 0;
		}
	C
	musl-gcc -static -o name name.c
	inside ./name example.org
	[[ $(sort <<<"$output" | paste -sd ' ') == '198.18.0.1 fd63:6172:7265:6c00::1' ]] || fail "$output"
	carrel run "${ALLOWED[@]}" -- ./name other.org
	assert_status 1
}

@test "Java's HTTP client" {
	need java
	cat >Get.java <<-'JAVA'
		import java.net.URI;
		import java.net.http.*;
		class Get {
			public static void main(String[] a) throws Exception {
				System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(),
					HttpResponse.BodyHandlers.ofString()).body());
			}
		}
	JAVA
	inside java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Get.java "$SITE"
	assert_output 'hello example.org'
}

@test "Go's own resolver and client" {
	need go
	cat >get.go <<-'GO'
		package main
		import ("io"; "net/http"; "os")
		func main() {
			r, err := http.Get(os.Args[1])
			if err != nil { panic(err) }
			io.Copy(os.Stdout, r.Body)
		}
	GO
	CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=$T/go go build -o get get.go
	inside ./get "$SITE"
	assert_output 'hello example.org'
}

@test "TLS 1.2 and 1.3 with openssl" {
	need openssl
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=example.org \
		-addext subjectAltName=DNS:example.org -keyout "$T/key" -out ca.pem 2>"$T/log" || fail "$(<"$T/log")"
	serves python3 -u -c 'import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1])
def serve(c):
    try:
        c = context.wrap_socket(c, server_side=True)
        c.sendall(c.version().encode() + b"\n")
        c.unwrap()
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()' "$T/key" "$PWD/ca.pem"
	local version
	for version in 2 3; do
		inside openssl s_client -quiet -verify_return_error -CAfile ca.pem -verify_hostname example.org "-tls1_$version" -connect "example.org:$PORT"
		assert_output "TLSv1.$version"
	done
}

@test "HTTP/2" {
	need node curl
	curl --version | grep -q HTTP2 || skip 'no HTTP/2 in curl on this machine'
	serves node -e 'const s = require("http2").createServer((q, r) => r.end("over HTTP/" + q.httpVersion + "\n"))
		s.listen(0, "127.0.0.1", () => console.log(s.address().port))'
	inside curl -sS --http2-prior-knowledge "http://example.org:$PORT/a"
	assert_output 'over HTTP/2.0'
}

@test "a websocket" {
	need node
	node --experimental-websocket -e 'process.exit(typeof WebSocket == "function" ? 0 : 1)' 2>/dev/null || skip 'no WebSocket in node on this machine'
	serves python3 -u -c 'import base64, hashlib, re, socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1])
while True:
    c = listener.accept()[0]
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += c.recv(1)
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", head)[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
              + base64.b64encode(hashlib.sha1(key).digest()) + b"\r\n\r\n")
    size = c.recv(2)[1] & 127
    frame = c.recv(4 + size, socket.MSG_WAITALL)
    text = bytes(b ^ frame[i % 4] for i, b in enumerate(frame[4:]))
    c.sendall(bytes([0x81, len(text)]) + text.upper() + b"\x88\x02\x03\xe8")'
	inside node --no-warnings --experimental-websocket -e 'const s = new WebSocket(process.argv[1])
		s.onopen = () => s.send("desk"); s.onmessage = m => { console.log(m.data); s.close() }' "ws://example.org:$PORT/"
	assert_output DESK
}

@test "ssh, where the server speaks first" {
	need ssh ssh-keygen
	local sshd=/usr/sbin/sshd
	[[ -x $sshd ]] || skip 'no sshd on this machine'
	ssh-keygen -q -t ed25519 -N '' -f "$T/host"
	ssh-keygen -q -t ed25519 -N '' -f key
	cp key.pub "$T/authorized"
	serves sh -c 'exec "$0" -D -e -p 0 -o ListenAddress=127.0.0.1 -h "$1" -o AuthorizedKeysFile="$2" -o StrictModes=no -o PidFile=none -o UsePAM=no 2>&1 |
		sed -un "s/^Server listening on .* port \([0-9]*\).*/\1/p"' "$sshd" "$T/host" "$T/authorized"
	inside ssh -F none -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -p "$PORT" example.org echo over ssh
	assert_output 'over ssh'
}

@test "many bytes, and many connections at once, arrive whole" {
	need curl
	head -c 32M /dev/urandom >"$WORLD/www/large"
	# shellcheck disable=SC2016
	inside sh -c 'curl -sS "$0/file/large" | sha256sum' "$SITE"
	[[ ${output%% *} == "$(sha256sum <"$WORLD/www/large" | cut -d' ' -f1)" ]] || fail 'other bytes'
	inside python3 -c '
import socket, sys
all_ = [socket.create_connection(("example.org", int(sys.argv[1]))) for _ in range(500)]
for c in all_:
    c.sendall(b"GET / HTTP/1.0\r\nHost: example.org\r\n\r\n")
print(sum(b"hello example.org" in c.makefile("rb").read() for c in all_))' "$WEB"
	assert_output 500
}
