"""The cases of tests/egress/program.bats about the session's proxy, for drive.py."""
import os
import socket
import ssl
import struct
import threading

from __main__ import RESOLVER, ZONE, Case, echo, equal, hello_bytes, read_all, serve, tls_server, tls_talk, true
from world import A, OTHER, PUBLIC

PORTS = (80, 443, 3128, 8080)
PROXY = ("127.0.0.1", 3128)


class Web:
    """A server of HTTP/1.1: each path has its own answer, and what it was asked is in @heads."""

    def __init__(self, address, name):
        self.heads, self.connections, self.name = [], 0, name
        serve(address, self._run)

    def _run(self, c):
        self.connections += 1
        file = c.makefile("rb")
        while True:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = file.readline()
                if not line:
                    return
                head += line
            fields = dict(x.lower().split(": ", 1) for x in head.decode("latin1").split("\r\n")[1:] if x)
            body = file.read(int(fields.get("content-length", 0)))
            if fields.get("transfer-encoding"):
                while True:
                    size = int(file.readline(), 16)
                    body += file.read(size)
                    file.readline()
                    if not size:
                        break
            self.heads.append(head.decode("latin1"))
            if self._answer(c, head.split()[1].decode(), body):
                return

    def _answer(self, c, path, body):
        text = self.name.encode() + b" " + path.encode() + b" " + body
        if path.startswith("/chunked"):
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                      b"Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-End: 1\r\n\r\n")
            for at in range(0, len(text), 3):
                c.sendall(b"%x;x=y\r\n" % len(text[at:at + 3]) + text[at:at + 3] + b"\r\n")
            c.sendall(b"0\r\nX-Sum: 1\r\n\r\n")
        elif path.startswith("/end"):
            c.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + text)
            return True
        elif path.startswith("/bad"):
            c.sendall({"/bad1": b"nonsense\r\n\r\n", "/bad2": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                       "/bad3": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                       "/bad4": b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "/bad5": b"HTTP/1.1 200 OK\nX: y\n\n",
                       "/bad6": b"X" * 20000, "/bad7": b""}[path])
            return True
        elif path.startswith("/more"):  # bytes that nobody asked for, in the place of the next response
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text + b"HTTP/1.1 200 OK\r\n\r\nevil")
        else:
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        return False


def response(file, head=False):
    """One response: its status, its fields, its body."""
    status = file.readline().split()
    if not status:
        return None
    fields = {}
    while (line := file.readline().strip()):
        name, value = line.decode("latin1").split(":", 1)
        fields[name.lower()] = value.strip()
    if status[1].startswith(b"1"):
        return response(file, head)
    body = b""
    if head:
        pass
    elif "content-length" in fields:
        body = file.read(int(fields["content-length"]))
    elif "transfer-encoding" in fields:
        while (size := int(file.readline().split(b";")[0], 16)):
            body += file.read(size)
            file.readline()
        while file.readline().strip():
            pass
    else:
        body = file.read()
    return int(status[1]), fields, body.decode()


def ask(t, text):
    """One request, over a connection of its own; None: no response at all."""
    try:
        with t.inner.connect(PROXY) as c:
            c.sendall(text)
            return response(c.makefile("rb"))
    except ConnectionError:
        return None


def get(url, *fields, body=b""):
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: elsewhere.example", *fields, "", ""]).encode() + body


def case_proxy_http():
    """Requests with the whole address: many over one connection, to several servers, each decided about."""
    t = Case("allow good.example", "allow other.example:80,443", "deny bad.other.example", "allow rebind.example",
             "allow gone.example:8080", "allow nothere.example",
             ports=PORTS, zone={**ZONE, "rebind.example": [(A, "127.0.0.1")], "gone.example": [(A, PUBLIC)]})
    one, two = Web((PUBLIC, 80), "one"), Web((OTHER, 80), "two")
    with t.inner.connect(PROXY) as c:
        file = c.makefile("rb")
        for url, wanted in (("http://good.example/a?b", "one /a?b "), ("HTTP://GOOD.example:80?q", "one /?q "),
                            ("http://good.example", "one / "), ("http://other.example/x", "two /x "),
                            ("http://good.example/chunked", "one /chunked "), ("http://good.example./more", "one /more "),
                            ("http://good.example/after", "one /after ")):
            c.sendall(get(url, "Proxy-Connection: keep-alive", "Connection: X-Mine, keep-alive", "X-Mine: secret",
                          "Proxy-Authorization: Basic eDp5", "TE: trailers", "Upgrade: h2c", "X-Kept: yes"))
            got = response(file)
            true(got, url)
            status, fields, body = got
            equal((status, body), (200, wanted), url)
            true("x-hop" not in fields and "keep-alive" not in fields, fields)
        c.sendall(get("http://good.example/1", "Content-Length: 3", body=b"abc") +  # all at once
                  get("http://good.example/2", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") +
                  get("http://good.example/end"))
        equal([response(file)[2] for _ in range(3)], ["one /1 abc", "one /2 abcde", "one /end "], "one after the other")
        equal(file.read(1), b"", "a body without a length ends the connection")
    head = one.heads[0]
    equal((head.split("\r\n")[:2], "X-Kept: yes" in head), (["GET /a?b HTTP/1.1", "Host: good.example"], True), "the head")
    for gone in ("elsewhere", "secret", "Proxy", "TE:", "Upgrade", "Connection"):
        true(gone not in head, f"{gone} was passed on: {head}")
    equal((one.connections, two.connections), (3, 1), "one connection for each server, as long as it may be kept")
    for url, status, said in (
            ("http://evil.example/", 403, "--allow evil.example\n"), ("http://good.example:8080/", 403, "--allow good.example:8080\n"),
            ("http://bad.other.example/", 403, "deny line"), ("http://8.8.8.8/", 403, "--allow 8.8.8.8\n"),
            ("http://[2600::1]:81/", 403, "--allow [2600::1]:81\n"), ("http://localhost/", 403, "--allow 127.0.0.1\n"),
            ("http://0.0.0.0/", 403, "allow 0.0.0.0 port 80\n"), ("http://[::]/", 403, "allow :: port 80\n"),
            ("http://[::ffff:7f00:2]/", 403, "allow ::ffff:127.0.0.2 port 80\n"),
            ("http://rebind.example/", 403, "private address"), ("http://good.example:443/", 403, "TLS"),
            ("http://gone.example:8080/", 502, "ECONNREFUSED"), ("http://nothere.example/", 502, "ENOENT"),
            ("https://good.example/", 400, "CONNECT"), ("/", 400, "proxy"), ("http://x@good.example/", 400, "one way"),
            ("http://good.example:0/", 400, "one way"), ("http://0x8.8/", 400, "one way"),
            *((f"http://good.example/bad{i}", 502, "EPROTO") for i in range(1, 7))):
        status_got, fields, body = ask(t, get(url))
        equal((status_got, said in body, fields["connection"]), (status, True, "close"), f"{url}: {body}")
    equal(t.event("name", "evil.example")["port"], 80)
    equal(t.event("name", "bad.other.example")["rule"], 2)
    equal((t.event("port", "good.example")["port"], t.event("port", "8.8.8.8")["rule"]), (8080, -1))
    equal(t.event("tls", "good.example")["port"], 443)
    t.event("address", "rebind.example")
    true("evil.example" not in [name for name, _, _ in t.resolver.asked], "it was asked for upstream")
    event = t.event("allowed", "other.example")
    equal((event["rule"], event["port"], event["in"] > 0, event["out"] > 0), (1, 80, True, True))
    # A response without end, when the client is gone, and one that ends too early.
    equal(ask(t, get("http://good.example/bad7"))[0], 502)
    t.egress.end()


def case_proxy_smuggling():
    """What two readers could read in two ways goes no further."""
    t = Case("allow good.example:80", ports=PORTS)
    web = Web((PUBLIC, 80), "one")
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: good.example\r\n\r\n"
    for fields in (["Content-Length: 3", "Transfer-Encoding: chunked"], ["Content-Length: 0", "Content-Length: 47"],
                   ["Content-Length: 0, 47"], ["Content-Length: +0"], ["Content-Length: 0x0"], ["Content-Length:"],
                   ["Transfer-Encoding: chunked, identity"], ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: gzip, chunked"],
                   ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding : chunked"],
                   ["Transfer-Encoding: chunked\0"], ["X: y\r\n Transfer-Encoding: chunked"], [" X: y"], ["X"],
                   ["Connection: Content-Length", "Content-Length: 3"], ["Proxy-Connection: transfer-encoding"],
                   ["Connection: host"], ["Host: second.example"], ["X: y\nContent-Length: 47"], ["X: y\rZ: 1"],
                   ["Content-Length: 9999999999999999999"], [*["X: y"] * 200], ["X: " + "y" * 20000]):
        got = ask(t, get("http://good.example/", *fields, body=b"0\r\n\r\n" + smuggled))
        equal(got and got[0], 400, fields)
    equal(web.heads, [], "something went to the server")
    for body in (b"0\n\r\n", b"0;x=y\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"-1\r\n", b"\r\n", b"1\r\nab\r\n0\r\n\r\n", b"1 \r\na\r\n",
                 b"fffffffffffffffff\r\n"):
        got = ask(t, get("http://good.example/", "Transfer-Encoding: chunked", body=body + smuggled))
        equal(got and got[0], 502, body)
    true(not any("smuggled" in head for head in web.heads), web.heads)
    got = ask(t, get("http://good.example/", "Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\n\r\n"))
    equal(got[2], "one / a", "the control arm")
    for bad in (b"\r\nGET http://good.example/ HTTP/1.1\r\n\r\n", b"GET http://good.example/ HTTP/2.0\r\n\r\n",
                b"GET  http://good.example/ HTTP/1.1\r\n\r\n", b"GET http://good.example/ HTTP/1.1 \r\n\r\n",
                b"G(T http://good.example/ HTTP/1.1\r\n\r\n", b"GET http://good.example/\r\n\r\n", b"\x16\x03\x01\0\5hello\r\n\r\n"):
        got = ask(t, bad)
        equal(got and got[0], 400, bad)
    t.egress.end()


def tunnel(t, place, early=b""):
    c = t.inner.connect(PROXY)
    c.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode() + early)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = c.recv(1)
        if not byte:
            break
        head += byte
    return c, int(head.split()[1]) if head else None


def case_proxy_connect():
    directory = os.environ["T"]
    t = Case("allow good.example", "allow good.example:8080", "allow 8.8.8.8:8080", "allow rebind.example:8080",
             "allow gone.example:8081", "allow localhost:8080", ports=PORTS, log=True,
             zone={**ZONE, "rebind.example": [(A, "10.0.0.1")], "gone.example": [(A, PUBLIC)]})
    tls_server(directory)
    serve((PUBLIC, 8080), echo)
    serve(("127.0.0.1", 8080), lambda c: c.sendall(b"host"))
    address = t.address("good.example")
    for place in ("good.example:8080", "8.8.8.8:8080", f"{address}:8080", "GOOD.example.:8080"):
        c, status = tunnel(t, place, b"early ")
        equal(status, 200, place)
        c.sendall(b"later")
        c.shutdown(socket.SHUT_WR)
        equal(read_all(c), b"early later", place)
        c.close()
    c, status = tunnel(t, "localhost:8080")
    equal((status, read_all(c)), (200, b"host"), "the host's loopback, which a line names")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        c, status = tunnel(t, "good.example:443")
        equal(status, 200)
        true(tls_talk(c, "good.example", version), version)
    c, status = tunnel(t, "good.example:443", hello_bytes("good.example"))
    equal((status, c.recv(1)), (200, b"\x16"), "a ClientHello at once")
    for early in (hello_bytes("evil.example"), b"GET / HTTP/1.1\r\n\r\n", hello_bytes("good.example") + hello_bytes("evil.example")):
        c, status = tunnel(t, "good.example:443", early)
        equal(status, 200)
        try:
            equal(c.recv(1), b"", "it was let through")
        except ConnectionError:
            pass
    t.event("tls", "good.example")
    for place, status in (("good.example:22", 403), ("evil.example:443", 403), ("1.1.1.1:443", 403), ("8.8.8.8:443", 403),
                          ("[::1]:8080", 502), ("rebind.example:8080", 403), ("gone.example:8081", 502), ("good.example", 400),
                          ("good.example:x", 400), ("good.example:65616", 400), ("http://good.example:8080", 400),
                          ("good.example:8080\0.evil.example:8080", 400), ("2130706433:8080", 400), ("198.18.99.9:443", 403)):
        equal(tunnel(t, place)[1], status, place)
    with t.inner.connect(PROXY) as c:  # behind requests of the same connection
        c.sendall(b"GET http://good.example:8080/ HTTP/1.1\r\n")  # in pieces
        c.sendall(b"\r\n")
        true(response(c.makefile("rb"))[0] == 502, "an echo is no response")
    t.egress.end()
    lines = t.egress.log_lines()
    denied = [x for x in lines if x["decision"] == "denied-name"]
    equal((denied[0]["name"], denied[0]["port"]), ("evil.example", 443))
    true(any(x.get("source") == "line" and x["decision"] == "allowed" and x["port"] == 8080 for x in lines), lines)


def socks(t, request, methods=b"\5\1\0", early=b""):
    c = t.inner.connect(PROXY)
    c.sendall(methods)
    method = c.recv(2)
    if method != b"\5\0":
        return c, method
    c.sendall(request + early)
    return c, c.recv(10, socket.MSG_WAITALL)


def by_name(name, port):
    return b"\5\1\0\3" + bytes([len(name)]) + name.encode("latin1") + struct.pack("!H", port)


def by_address(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return b"\5\1\0" + (b"\4" if ":" in address else b"\1") + socket.inet_pton(family, address) + struct.pack("!H", port)


def case_proxy_socks():
    t = Case("allow good.example:443,8080", "allow 8.8.8.8:8080", "allow gone.example:8081", "deny bad.example",
             ports=PORTS, zone={**ZONE, "gone.example": [(A, PUBLIC)]})
    tls_server(os.environ["T"])
    serve((PUBLIC, 8080), echo)
    own = t.address("good.example")
    for request in (by_name("good.example", 8080), by_address("8.8.8.8", 8080), by_address(own, 8080), by_name("8.8.8.8", 8080)):
        c, reply = socks(t, request, early=b"early ")
        equal(reply[:2], b"\5\0", request)
        c.sendall(b"later")
        c.shutdown(socket.SHUT_WR)
        equal(read_all(c), b"early later", request)
    c, reply = socks(t, by_name("good.example", 443))
    true(reply[1] == 0 and tls_talk(c, "good.example"), "TLS")
    c, reply = socks(t, by_name("good.example", 443), early=hello_bytes("evil.example"))
    try:
        equal((reply[1], c.recv(1)), (0, b""), "another name")
    except ConnectionError:
        pass
    for request, code in ((by_name("evil.example", 443), 2), (by_name("good.example", 22), 2), (by_address("1.1.1.1", 443), 2),
                          (by_address("::1", 443), 2), (by_name("bad.example", 443), 2), (by_name("gone.example", 8081), 5),
                          (b"\5\2\0\3\1x\0\1", 7), (b"\5\3\0\3\1x\0\1", 7), (b"\5\1\0\7\1x\0\1", 8), (by_name("a b", 80), 8),
                          (by_name("good.example\0", 8080), 8), (by_name("good.example", 0), 8), (by_name("127.1", 8080), 8)):
        c, reply = socks(t, request)
        equal((reply[:2], read_all(c)), (bytes([5, code]), b""), request)
    equal(socks(t, b"", b"\5\1\1")[1], b"\5\xff", "no method")
    c, method = socks(t, b"", b"\5\2\1\2")
    equal(method, b"\5\2", "a password, where the client has nothing else")
    c.sendall(b"\1\4user\6secret")
    equal(c.recv(2), b"\1\0")
    c.sendall(by_name("good.example", 8080))
    equal(c.recv(10, socket.MSG_WAITALL)[1], 0)
    with t.inner.connect(PROXY) as c:
        c.sendall(b"\4\1\x1f\x90\x08\x08\x08\x08\0")
        equal(read_all(c)[:2], b"\0\x5b", "SOCKS 4")
    t.egress.end()


def case_proxy_limits():
    """A client that says nothing, or a little now and then, holds one place, for so long."""
    t = Case("connections 4", "bytes 300000", "allow good.example:80", ports=PORTS)
    Web((PUBLIC, 80), "one")
    slow = [t.inner.connect(PROXY) for _ in range(4)]
    slow[0].sendall(b"GET http://good.example/ HT")
    slow[1].sendall(b"\5")
    true(t.is_reset("127.0.0.1", 3128, b"GET"), "a fifth")
    equal(t.event("limit", "127.0.0.1")["port"], 3128)
    stop = threading.Event()

    def drip():
        while not stop.wait(0.2):
            try:
                slow[0].sendall(b"T")
            except OSError:
                return

    threading.Thread(target=drip, daemon=True).start()
    for c in slow:  # each ends, however it goes on
        try:
            equal(c.recv(1), b"", "an answer")
        except ConnectionError:
            pass
    stop.set()
    equal(ask(t, get("http://good.example/"))[0], 200, "then there is room")
    with t.inner.connect(PROXY) as c:
        try:
            c.sendall(get("http://good.example/", "Content-Length: 400000", body=b"x" * 400000))
            got = response(c.makefile("rb"))
            true(got is None or got[0] == 503, got)
        except ConnectionError:
            pass
    t.event("limit", "good.example")
    equal(ask(t, get("http://good.example/")), None, "all bytes are used up")
    t.egress.end()
