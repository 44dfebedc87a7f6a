#!/usr/bin/env bats
# Attacks on `egress-proxy`: a tool that wants more of the host network's proxy than the names that the policy allows.
# ctest: as=user
load ../lib/common
load ../lib/names

setup() {
	common_setup
	need python3
	world other.org=127.0.0.1
	proxy
}

teardown() {
	end_proxy
	end_world
	common_teardown
}

# inside OPTION... -- CODE: python that has ask(HOST, PORT, TEXT): what the session's proxy, or who is there, answers first.
inside() {
	local code=${*: -1}

	carrel run "${PROXY[@]}" --allow '*.example.org' "${@:1:$#-2}" -- python3 -c "
import socket, sys
def ask(host, port, text):
    try:
        s = socket.create_connection((host, port), 20)
        s.sendall(text)
        return s.recv(64)
    except OSError as e:
        return type(e).__name__.encode()
$code"
}

@test "the proxy itself cannot be reached from inside" {
	local code="print(ask('127.0.0.1', $PROXY_PORT, b'CONNECT evil.org:80 HTTP/1.1\r\nHost: evil.org:80\r\n\r\n'))
print(ask('127.0.0.1', 3128, b'CONNECT 127.0.0.1:$PROXY_PORT HTTP/1.1\r\nHost: 127.0.0.1:$PROXY_PORT\r\n\r\n'))
print(ask('127.0.0.1', 3128, b'CONNECT localhost:$PROXY_PORT HTTP/1.1\r\nHost: localhost:$PROXY_PORT\r\n\r\n'))"
	inside -- "$code"
	assert_output "b'ConnectionRefusedError'
b'HTTP/1.1 403 Forbidden\\r\\nContent-Type: text/plain; charset=utf-8\\r'
b'HTTP/1.1 403 Forbidden\\r\\nContent-Type: text/plain; charset=utf-8\\r'"
	[[ ! -e $WORLD/asked ]] || fail "it was asked: $(<"$WORLD/asked")"
	# The control arm: where the policy lets the session at it, it does what it is told.
	inside --allow "localhost:$PROXY_PORT" -- "$code"
	assert_matches "$output" "b'HTTP/1.1 200 Connection established"
	grep -qx evil.org:80 "$WORLD/asked" || fail "$(<"$WORLD/asked")"
}

@test "it is asked for no name and no port that the policy does not allow" {
	inside -- "
for host in 'evil.org', 'example.org', 'a.example.org.evil.org':
    print(ask('127.0.0.1', 3128, f'CONNECT {host}:80 HTTP/1.1\r\nHost: {host}:80\r\n\r\n'.encode())[:12])
    try:
        print(socket.create_connection((host, 80), 20))
    except OSError as e:
        print(type(e).__name__)
print(ask('127.0.0.1', 3128, b'CONNECT a.example.org:8080 HTTP/1.1\r\nHost: a.example.org:8080\r\n\r\n')[:12])
print(ask('a.example.org', 8080, b''))"
	assert_status 0
	[[ $output != *200* && $output != *socket* ]] || fail "$output"
	[[ ! -e $WORLD/asked ]] || fail "it was asked: $(<"$WORLD/asked")"
}

@test "on port 443 it carries TLS for the allowed name alone" {
	inside -- "print(ask('a.example.org', 443, b'GET / HTTP/1.0\r\nHost: a.example.org\r\n\r\n'))"
	assert_output "b'ConnectionResetError'"
	[[ ! -e $WORLD/asked ]] || fail "it was asked: $(<"$WORLD/asked")"
	# The control arm: without that look it is.
	inside --no-tls-name -- "print(ask('a.example.org', 443, b'GET / HTTP/1.0\r\nHost: a.example.org\r\n\r\n')[:12])"
	assert_output "b'HTTP/1.0 200'"
	[[ $(<"$WORLD/asked") == a.example.org:443 ]] || fail 'it was not asked'
}

@test "a name cannot write into the request that the proxy gets" {
	inside -- '
bad = [b"a\r\nX-Evil: 1\r\n.example.org", b"a b.example.org", b"a:22.example.org", b"a\0.example.org", b"a\xff.example.org", b"a%0d.example.org", b"A@b.example.org"]
for name in bad:
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + b"\0\x50")
    answer = s.recv(10)
    print("granted" if answer[1:2] == b"\0" else "refused")
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(b"CONNECT " + name + b":80 HTTP/1.1\r\nHost: " + name + b":80\r\n\r\n")
    answer = s.recv(64)
    print("granted" if b" 200 " in answer else "refused")
for name in bad:
    label = name.split(b".example")[0]
    query = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + bytes([len(label)]) + label + b"\7example\3org\0\0\1\0\1"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", 53))
    s.send(query)
    print("refused" if s.recv(512)[3] & 15 == 3 else "answered")'
	assert_status 0
	[[ $output != *granted* ]] || fail "$output"
	[[ ! -e $WORLD/asked ]] || fail "it was asked: $(cat -v "$WORLD/asked")"
	# The control arm: a plain name is granted.
	inside -- 'print(ask("127.0.0.1", 3128, b"CONNECT a.example.org:80 HTTP/1.1\r\nHost: a.example.org:80\r\n\r\n")[:12])'
	assert_output "b'HTTP/1.1 200'"
}

@test "a tool that ends while the proxy has not answered leaves nothing behind" {
	inside -- '
for i in range(200):
    try:
        socket.create_connection(("half.example.org", 80), 20).close()
    except ConnectionResetError:
        pass # it was that fast
print(ask("a.example.org", 80, b"GET / HTTP/1.0\r\nHost: a.example.org\r\n\r\n")[:8])'
	assert_matches "$output" 'HTTP/1'
}
