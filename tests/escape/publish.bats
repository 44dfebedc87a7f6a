#!/usr/bin/env bats
# A published port leads from the host to one server inside, and nowhere else: not out, and not to other ports.
load ../lib/common
load ../lib/live
load escape

setup() {
	escape_setup
	make_runtime_dir "$T/run"
}

# session COMMAND...: in the live session.
session() {
	apart "$CARREL" exec -s "$ID" --env PATH -- "$@" </dev/null
}

# serve: something of the host that answers on both loopbacks; its port is in PORT.
serve() {
	in_background python3 -c 'import os, select, socket, sys
while True:
    four = socket.create_server(("127.0.0.1", 0))
    try: six = socket.create_server(("::1", four.getsockname()[1]), family=socket.AF_INET6)
    except OSError: continue
    break
open(sys.argv[1] + ".new", "w").write(str(four.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    for s in select.select([four, six], [], [])[0]:
        c = s.accept()[0]
        c.send(b"!")
        c.close()' "$T/serving"
	wait_for test -s "$T/serving"
	PORT=$(<"$T/serving")
}

# reaches PORT [FAMILY]: somebody answers there.
REACHES='import errno, socket, sys
for host in sys.argv[2:] or ["127.0.0.1", "::1"]:
    try:
        c = socket.create_connection((host, int(sys.argv[1])), 60)
        if c.recv(1): print("escaped"); sys.exit()
    except OSError as e: last = errno.errorcode.get(e.errno, "EIO")
print("refused:" + last)'

@test "the host is not reached by it: neither its loopback nor the ports that were published" {
	serve
	begin --publish 8080:0
	local published

	published=$(jq -er '.published[0].host_port' "$T/begun")
	broke python3 -c "$REACHES" "$PORT"
	held_by refused:ECONNREFUSED python3 -c "$REACHES" "$PORT"
	# Nothing of the host listens in the session, at its own number or the other.
	held_by refused:ECONNREFUSED python3 -c "$REACHES" 8080
	held_by refused:ECONNREFUSED python3 -c "$REACHES" "$published"
	# No socket or descriptor of it is anybody's inside.
	session sh -c 'cat /proc/net/tcp /proc/net/tcp6 | grep -c ":"; ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c socket: || true'
	assert_output $'0\n0'
	end_session
	end_background
}

# answers: a server inside on a port that is not published, and one on the port that is, which answers with what it has got.
ANSWERS='import os, socket, sys, threading
def serve(port, text):
    s = socket.create_server(("", port))
    def each():
        while True:
            c, a = s.accept()
            c.send(text + b" " + a[0].encode() + b"\n")
            c.close()
    threading.Thread(target=each).start()
serve(8080, b"published")
serve(8081, b"private")
open("answers", "w").write("1\n")'

@test "the host reaches that port and no other, whatever it sends; many at once take nothing from the next" {
	begin --publish 8080:0
	local published

	published=$(jq -er '.published[0].host_port' "$T/begun")
	"$CARREL" exec -s "$ID" --detach -- python3 -c "$ANSWERS" >/dev/null
	wait_for test -s "$WS/answers"
	session python3 -c "$REACHES" 8081 127.0.0.1 # the control arm: it is there
	assert_output escaped
	run --separate-stderr python3 -c "$REACHES" 8081
	assert_output refused:ECONNREFUSED
	run python3 -c 'import socket, sys
a = ("127.0.0.1", int(sys.argv[1]))
held = [socket.create_connection(a) for _ in range(150)]  # nobody of them reads
for c in held: c.close()
for request in (b"", b"CONNECT 127.0.0.1:8081 HTTP/1.1\r\n\r\n", b"\x05\x01\0\x05\x01\0\x01\x7f\0\0\x01\x1f\x91"):
    c = socket.create_connection(a)
    c.sendall(request)
    try: print(c.recv(100).decode().strip())
    except ConnectionResetError: print("published 127.0.0.1")  # it ended before it had read what was sent' "$published"
	assert_output $'published 127.0.0.1\npublished 127.0.0.1\npublished 127.0.0.1'
	end_session
}

@test "a server inside that neither reads nor ends keeps its own port busy, and the session answers" {
	begin --publish 8080:0 --publish 9090:0 --net-live --net allow
	local one two

	one=$(jq -er '.published[0].host_port' "$T/begun") two=$(jq -er '.published[1].host_port' "$T/begun")
	"$CARREL" exec -s "$ID" --detach -- python3 -c 'import socket, time
s = socket.create_server(("", 8080))
open("hangs", "w").write("1\n")
held = []
while True: held.append(s.accept())' >/dev/null
	wait_for test -s "$WS/hangs"
	run python3 -c 'import socket, sys
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(100)]
print("connected")
for c in held:
    c.setblocking(False)
    try: c.send(b"x" * 100000)
    except BlockingIOError: pass' "$one"
	assert_output connected
	session echo on
	assert_output on
	carrel session allow example.org
	assert_status 0
	# Each port has sockets of its own: the other one serves.
	"$CARREL" exec -s "$ID" --detach -- python3 -c 'import socket
s = socket.create_server(("", 9090))
open("serves", "w").write("1\n")
while True:
    c = s.accept()[0]
    c.send(b"!")
    c.close()' >/dev/null
	wait_for test -s "$WS/serves"
	run --separate-stderr python3 -c "$REACHES" "$two"
	assert_output escaped
	end_session
}
