#!/usr/bin/env bats
# A tool tries to leave a session with `net allow`: past its names, its addresses, its resolver and its listeners.
load ../lib/common
load ../lib/names
load escape

setup() {
	escape_setup
	need python3 curl
	world example.org=127.0.0.1 deep.example.org=127.0.0.1 \
		private.org=10.1.2.3 metadata.org=169.254.169.254 other.org=127.0.0.1
	NAMED=("${RESOLVER[@]}" --allow "example.org:$WEB")
	SETTINGS=("${OPEN[@]}" --allow "example.org:$WEB")
}

teardown() {
	end_world
	common_teardown
}

# fetches URL: the control arm, in a session with $SETTINGS.
fetches() {
	session curl -sS --max-time 30 "$1"
	assert_status 0
	assert_matches "$output" '^hello '
}

# refused URL [STATUS]: curl's; it ends by itself, long before its own time-out.
refused() {
	session curl -sS --max-time 60 "$1"
	assert_matches "${status-}" "^(${2:-7|35|52|55|56})\$"
	refute_matches "$output" hello
}

@test "addresses that no line names: the host's own and others, by both families" {
	local port=$WEB

	fetches "http://example.org:$port"
	SETTINGS=("${NAMED[@]}")
	broke python3 -c 'import socket, sys; s = socket.create_connection(("127.0.0.1", sys.argv[1])); print("escaped")' "$port"
	for address in 127.0.0.1 127.0.0.2 '[::1]' '[::ffff:127.0.0.1]' 198.18.0.1 198.18.99.99 \
		'[fd63:6172:7265:6c00::1]' '[fd63:6172:7265:6c00::9999]' '[fd63:6172:7265:6c00:1::1]'; do
		refused "http://$address:$port"
	done
	for address in 192.0.2.1 169.254.169.254 '[2001:db8::1]'; do
		refused "http://$address:$port" '7|28'
	done
}

@test "a name that leads to the host, or to a private network, is refused after resolution" {
	fetches "http://example.org:$WEB" # with `allow 127.0.0.1:PORT` that is no attempt
	SETTINGS=("${NAMED[@]}" --allow "private.org:$WEB" --allow "metadata.org:$WEB" --report "$T/r.json")
	for name in example.org private.org metadata.org; do
		refused "http://$name:$WEB"
		assert_field "$T/r.json" '.network.names[] | select(.decision == "denied-address") | .name' "$name"
	done
}

@test "other ports of an allowed name" {
	fetches "http://example.org:$WEB"
	SETTINGS+=(--allow "other.org:8443")
	refused "http://example.org:8443" '7|35|52|55|56'
	refused "http://example.org:81" 7
}

@test "deny wins over a wildcard and over an address block" {
	SETTINGS=("${OPEN[@]}" --allow "*.example.org:$WEB")
	fetches "http://deep.example.org:$WEB"
	SETTINGS+=(--deny deep.example.org)
	refused "http://deep.example.org:$WEB" 6
	refused "http://example.org:$WEB" 6
	SETTINGS=("${OPEN[@]}")
	fetches "http://127.0.0.1:$WEB"
	SETTINGS+=(--deny 127.0.0.0/8)
	refused "http://127.0.0.1:$WEB"
}

# tunnel NAME...: in one session, asks for what a tool could put a message into, by several types.
tunnel() {
	session python3 - "$@" <<-'EOF2'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.settimeout(30)
		for kind, name in [(k, n) for k in (1, 28, 16, 33, 255, 65) for n in sys.argv[1:]]:
		    name = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0"
		    s.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + name + bytes([0, kind, 0, 1]), ("127.0.0.1", 53))
		    s.recv(4096)
	EOF2
	assert_status 0
}

@test "the resolver is no tunnel: only allowed names are sent upstream, and once" {
	tunnel secret.example.org secret.other.org example.org EXAMPLE.org
	! grep -q secret "$WORLD/queries" || fail 'a message was sent upstream'
	[[ $(asked example.org) == 1 ]] || fail "asked $(asked example.org) times"
	! grep -qvE '^(A|AAAA) ' "$WORLD/queries" || fail "other types were sent: $(cat "$WORLD/queries")"
	SETTINGS=("${OPEN[@]}" --allow "*.example.org:$WEB") # the control arm: names below it are allowed
	tunnel secret.example.org
	grep -q secret "$WORLD/queries" || fail 'the attempt reaches nothing even where it may'
}

@test "the host's resolver and UDP are not reached" {
	SETTINGS=("${NAMED[@]}")
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
s.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1", ("127.0.0.1", int(sys.argv[1]))); s.recv(512)' "$DNS"
	held attack_calls udp 127.0.0.1 "$DNS"
	held attack_calls socket raw
}

@test "sockets of the host, by path and by abstract name" {
	in_background python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind("\0" + sys.argv[1]); s.listen()
open(sys.argv[2], "w").write("1")
while True: s.accept()[0].send(b"!")' "names-$$" "$T/serving"
	wait_for test -s "$T/serving"
	broke attack_calls unix "@names-$$"
	held attack_calls unix "@names-$$"
	end_background
}

# routes: gives the loopback one more address, by rtnetlink.
ROUTES='import socket, struct
body = struct.pack("BBBBI", 2, 32, 0, 254, 1) + struct.pack("HH4s", 8, 2, b"\xc0\0\2\x63") + struct.pack("HH4s", 8, 1, b"\xc0\0\2\x63")
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack("IHHII", 16 + len(body), 20, 0x405, 1, 0) + body)
error = struct.unpack("i", s.recv(4096)[16:20])[0]
print("escaped" if error == 0 else "refused:" + __import__("errno").errorcode[-error])'

@test "addresses and routes cannot be changed from inside" {
	broke as_admin python3 -c "$ROUTES"
	held_by refused:EPERM python3 -c "$ROUTES"
}

# takes PORT: listens in the place of carrel-egress.
TAKES='import errno, socket, sys
for address in ("0.0.0.0", "127.0.0.1", "198.18.0.2", "::"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        if kind == socket.SOCK_DGRAM and sys.argv[1] != "53": continue
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind((address, int(sys.argv[1])))
            if kind == socket.SOCK_STREAM: s.listen()
        except OSError as e:
            last = errno.errorcode[e.errno]
            continue
        print("escaped")
        sys.exit()
print("refused:" + last)'

@test "nothing inside takes a port of the listeners, or the resolver's" {
	SETTINGS+=(--allow "example.org:45678")
	session python3 -c "$TAKES" 45679
	assert_output escaped
	held_by refused:EADDRINUSE python3 -c "$TAKES" 45678
	held python3 -c "$TAKES" 53
}

@test "carrel-egress is nobody's to kill or to look into" {
	session sh -c 'ls /proc | grep -c "^[0-9]"; grep -l carrel-egress /proc/[0-9]*/comm; pkill -KILL carrel-egress; true'
	refute_matches "$output" comm
	fetches "http://example.org:$WEB"
}

@test "a flood of connections ends at the limit, and takes nothing from the next session" {
	SETTINGS+=(--net-connections 8 --report "$T/r.json")
	session python3 -c 'import socket, sys
held = [socket.create_connection(("example.org", int(sys.argv[1]))) for _ in range(64)]
ended = 0
while ended < 56: # the others are refused: each is closed, or reset
    import select
    for s in select.select(held, [], [])[0]:
        held.remove(s); s.close(); ended += 1
print("ended", ended)' "$WEB"
	assert_output 'ended 56'
	assert_field "$T/r.json" 'any(.network.names[]; .decision == "denied-limit")' true
	SETTINGS=("${OPEN[@]}" --allow "example.org:$WEB")
	fetches "http://example.org:$WEB"
}

@test "the strict filter with a network: TCP and UDP sockets, and no others" {
	SETTINGS+=(--syscalls strict)
	fetches "http://example.org:$WEB" # a name is resolved by UDP
	refused "http://127.0.0.2:$WEB"
	held attack_calls socket raw
	session python3 -c 'import errno, socket
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), (socket.AF_NETLINK, socket.SOCK_RAW, 0), (socket.AF_VSOCK, socket.SOCK_STREAM, 0)):
    try:
        socket.socket(family, kind, protocol)
    except OSError as e:
        assert e.errno == errno.EAFNOSUPPORT, e
    else:
        raise SystemExit(f"{family} {kind} {protocol} was made")
socket.socket(socket.AF_INET6).close()
print("all refused")'
	assert_status 0
	assert_output 'all refused'
	SETTINGS=(--syscalls strict) # without a network not even these
	session python3 -c 'import socket; socket.socket()'
	assert_status 1
	assert_matches "$stderr$output" 'Address family not supported'
}
