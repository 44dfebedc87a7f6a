#!/usr/bin/env bats
# Network by name with the programs that people run, each with a resolver or a protocol of its own and none with a
# proxy. Each fails first where the policy does not name its server.
# ctest: as=user cost=8
load ../lib/common
load ../lib/names

setup() {
	common_setup
	need python3
	world example.org=127.0.0.1 other.org=127.0.0.1
	ALLOWED=("${OPEN[@]}" --allow "example.org:$WEB")
}

teardown() {
	[[ -z ${SERVER_PID-} ]] || kill -KILL "$SERVER_PID" 2>/dev/null || true
	end_world
	common_teardown
}

# only_allowed COMMAND...: it works, and fails where the same server has a name that the policy does not allow. In the
# command's words the name stands as NAME.
only_allowed() {
	carrel run --timeout 5m "${ALLOWED[@]}" -- "${@//NAME/other.org}"
	[[ $status != 0 && $status != 125 ]] || fail 'not refused'
	assert_matches "$stderr" 'hint: if the command needs it: --allow other\.org'
	carrel run --timeout 5m "${ALLOWED[@]}" -- "${@//NAME/example.org}"
	assert_status 0
}

# serves PROGRAM...: in the background; the first line that it prints is the port that it has, which becomes $PORT and is allowed.
serves() {
	"$@" </dev/null >"$T/server" 2>&1 3>&- 4>&- &
	SERVER_PID=$!
	wait_for grep -qx '[0-9]*' "$T/server"
	PORT=$(head -n 1 "$T/server")
	ALLOWED=("${RESOLVER[@]}" --allow "127.0.0.1:$PORT" --allow "example.org:$PORT")
}

# inside COMMAND...: it works in a session that may reach example.org, and does not hang.
inside() {
	carrel run --timeout 5m "${ALLOWED[@]}" -- "$@"
	assert_status 0
}

# secure_server: node's HTTP/2 over TLS, which also speaks HTTP/1.1 and takes an upgrade to a websocket. PORT is its port.
secure_server() {
	need node openssl
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=example.org \
		-addext subjectAltName=DNS:example.org,DNS:other.org -keyout "$T/key" -out cert 2>/dev/null
	node -e '
		const fs = require("fs"), crypto = require("crypto");
		const [key, cert, where] = process.argv.slice(1);
		const server = require("http2").createSecureServer(
			{ key: fs.readFileSync(key), cert: fs.readFileSync(cert), allowHTTP1: true },
			(request, response) => response.end("over " + request.httpVersion + "\n"));
		server.on("upgrade", (request, socket) => {
			const accept = crypto.createHash("sha1").update(request.headers["sec-websocket-key"] +
				"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
			socket.on("error", () => {});
			socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
				"Sec-WebSocket-Accept: " + accept + "\r\n\r\n");
			socket.on("data", (frame) => {
				const text = frame.subarray(6).map((byte, i) => byte ^ frame[2 + i % 4]);
				socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
			});
		});
		server.listen(0, "127.0.0.1", () => {
			fs.writeFileSync(where + ".new", String(server.address().port));
			fs.renameSync(where + ".new", where);
		});' "$T/key" cert "$T/port" </dev/null >"$T/server.log" 2>&1 3>&- 4>&- &
	SERVER_PID=$!
	wait_for test -s "$T/port"
	PORT=$(<"$T/port")
	ALLOWED=("${RESOLVER[@]}" --allow "127.0.0.1:$PORT" --allow "example.org:$PORT")
}

@test "apt-get: an update and a download from a repository" {
	command -v apt-get dpkg-deb >/dev/null || skip 'no Debian'
	local repository=$WORLD/www/apt

	mkdir -p "$T/desk/DEBIAN" "$repository" apt/etc/apt/apt.conf.d apt/var/lib/apt/lists/partial apt/var/cache/apt/archives/partial
	printf '%s\n' 'Package: desk' 'Version: 1.2.3' 'Architecture: all' 'Maintainer: x <x@example.org>' \
		'Description: a desk' >"$T/desk/DEBIAN/control"
	chmod 0755 "$T/desk" "$T/desk/DEBIAN"
	dpkg-deb --root-owner-group --build "$T/desk" "$repository/desk.deb" >/dev/null
	{
		cat "$T/desk/DEBIAN/control"
		printf 'Filename: ./desk.deb\nSize: %s\nSHA256: %s\n' "$(stat -c %s "$repository/desk.deb")" \
			"$(sha256sum <"$repository/desk.deb" | cut -d ' ' -f 1)"
	} >"$repository/Packages"
	: >apt/status
	printf 'Dir "%s/apt";\nDir::State::status "%s/apt/status";\nAPT::Sandbox::User "";\nAcquire::Languages "none";\nAcquire::Retries "0";\nAPT::Update::Error-Mode "any";\n' \
		"$WS" "$WS" >apt.conf
	# shellcheck disable=SC2016
	only_allowed env APT_CONFIG=apt.conf sh -c 'echo "deb [trusted=yes] $0 ./" >apt/etc/apt/sources.list
		apt-get -q update && apt-get -q download desk' "http://NAME:$WEB/file/apt"
	cmp desk_*.deb "$repository/desk.deb"
}

@test "pip: a wheel from an index" {
	local -a pip
	local index=$WORLD/www/simple/desk

	pip=(/usr/share/python-wheels/pip-*.whl /usr/lib/python3*/ensurepip/_bundled/pip-*.whl)
	[[ -e ${pip[0]} ]] || pip=("${pip[1]}")
	[[ -e ${pip[0]} ]] || fail 'python has no wheel of pip (ensurepip)'
	mkdir -p "$index"
	python3 - "$index" <<-'WHEEL'
		import sys, zipfile
		with zipfile.ZipFile(sys.argv[1] + "/desk-1.2.3-py3-none-any.whl", "w") as wheel:
		    wheel.writestr("desk.py", "legs = 4\n")
		    wheel.writestr("desk-1.2.3.dist-info/METADATA", "Metadata-Version: 2.1\nName: desk\nVersion: 1.2.3\n")
		    wheel.writestr("desk-1.2.3.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		    wheel.writestr("desk-1.2.3.dist-info/RECORD", "")
	WHEEL
	echo '<a href="desk-1.2.3-py3-none-any.whl">desk-1.2.3-py3-none-any.whl</a>' >"$index/index.html"
	only_allowed /usr/bin/python3 "${pip[0]}/pip" --isolated --no-cache-dir --disable-pip-version-check --retries 0 \
		install -q --no-deps --no-compile --target site --trusted-host NAME --index-url "http://NAME:$WEB/file/simple/" desk
	[[ $(<site/desk.py) == 'legs = 4' ]] || fail 'not installed'
}

@test "HTTP/2, and a websocket" {
	secure_server
	if command -v curl >/dev/null && [[ $(curl -V) == *HTTP2* ]]; then
		only_allowed curl -sS --http2 --cacert cert "https://NAME:$PORT/"
		assert_output 'over 2.0'
	fi
	only_allowed node -e '
		const [name, port] = process.argv.slice(1);
		const request = require("https").request({ host: name, port, ca: require("fs").readFileSync("cert"), headers: {
			Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": 13, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==" } });
		request.on("upgrade", (response, socket) => {
			socket.once("data", (frame) => { console.log(frame.subarray(2).toString()); socket.destroy(); });
			const mask = [1, 2, 3, 4], text = Buffer.from("a frame").map((byte, i) => byte ^ mask[i % 4]);
			socket.write(Buffer.from([0x81, 0x80 | text.length, ...mask, ...text]));
		});
		request.end();' NAME "$PORT"
	assert_output 'a frame'
}

@test "resolvers of their own: c-ares in node, and musl's" {
	need node
	only_allowed node -e 'require("dns").resolve4(process.argv[1], (error, found) => {
		if (error) throw error;
		require("http").get({ host: found[0], port: process.argv[2], headers: { Host: process.argv[1] } },
			(response) => response.pipe(process.stdout));
	})' NAME "$WEB"
	assert_output 'hello example.org'
	cp "$CARREL_HELPERS/fetch" fetch # /var/tmp is the session's own
	only_allowed ./fetch NAME "$WEB"
	assert_matches "$output" 'hello example.org'
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
	inside java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Get.java "http://example.org:$WEB"
	assert_output 'hello example.org'
}

@test "Go's own resolver and client" {
	need go
	cat >get.go <<-'GO'
		package main
		import ("io"; "net"; "os")
		func main() {
			c, err := net.Dial("tcp", "example.org:" + os.Args[1])
			if err != nil { panic(err) }
			io.WriteString(c, "GET / HTTP/1.0\r\nHost: example.org\r\n\r\n")
			io.Copy(os.Stdout, c)
		}
	GO
	CGO_ENABLED=0 GOFLAGS=-mod=mod GOCACHE=$T/go go build -o get get.go
	inside ./get "$WEB"
	assert_matches "$output" 'hello example.org'
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

@test "ssh, where the server speaks first" {
	need ssh ssh-keygen
	[[ -x /usr/sbin/sshd ]] || skip 'no sshd on this machine'
	ssh-keygen -q -t ed25519 -N '' -f "$T/host"
	ssh-keygen -q -t ed25519 -N '' -f key
	cp key.pub "$T/authorized"
	serves python3 -u -c 'import socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1])
while True:
    c = listener.accept()[0]
    subprocess.Popen(["/usr/sbin/sshd", "-i", "-f", "/dev/null", "-h", sys.argv[1], "-o", "AuthorizedKeysFile=" + sys.argv[2],
                      "-o", "StrictModes=no", "-o", "UsePAM=no"], stdin=c, stdout=c, stderr=subprocess.DEVNULL)
    c.close()' "$T/host" "$T/authorized"
	inside ssh -F none -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
		-l "$(id -un)" -p "$PORT" example.org echo over ssh
	assert_output 'over ssh'
}

@test "a gigabyte arrives whole" {
	need curl
	truncate -s 1G "$WORLD/www/huge" # zeros, of which the disk holds none
	# shellcheck disable=SC2016
	carrel run --timeout 5m --report "$T/r.json" "${ALLOWED[@]}" -- sh -c 'curl -sS -w "%{stderr}%{size_download}" "$0/file/huge" | tr -d "\0" | wc -c' "http://example.org:$WEB"
	assert_status 0
	assert_output 0
	[[ $stderr == 1073741824 ]] || fail "not whole: $stderr"
	assert_field "$T/r.json" '.network.names[] | select(.bytes_in > 1073741824) | .name' example.org
}

@test "many bytes arrive whole" {
	need curl
	head -c 32M /dev/urandom >"$WORLD/www/large"
	# shellcheck disable=SC2016
	inside sh -c 'curl -sS "$0/file/large" | sha256sum' "http://example.org:$WEB"
	[[ ${output%% *} == "$(sha256sum <"$WORLD/www/large" | cut -d' ' -f1)" ]] || fail 'other bytes'
}
