#!/usr/bin/python3
"""drive.py PROGRAM CASE - one case of tests/egress/program.bats: status 0, or what was not so is on stderr; 77: namespaces
are refused here."""
import ctypes
import errno
import hashlib
import json
import os
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

from world import (A, AAAA, BLOCK, CNAME, HTTPS, LIBC, NAME, NEWNS, ORIGIN, OTHER, POOL, PUBLIC, PUBLISH, REFUSED, RULE, TXT,
                   UNRULE, Egress, Inner, Resolver, add_address, echo, enter_outer, keep_low, query, read_answer, rule_head, serve,
                   unshare, wire_name)

PROGRAM = sys.argv[1]
RESOLVER = "resolver 127.0.0.1:5353"
ZONE = {
    "good.example": [(A, PUBLIC)],
    "other.example": [(A, OTHER)],
    "alias.example": [(CNAME, "good.example")],
    "v6.example": [(AAAA, "2600::1"), (A, PUBLIC)],
}


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


def true(value, what):
    if not value:
        raise AssertionError(what)


class Case:
    def __init__(self, *rules, zone=None, resolver=None, **options):
        self.inner = Inner()
        self.resolver = resolver or Resolver(ZONE if zone is None else zone)
        lines = [r if "\t" in r or r.split()[0] not in ("allow", "deny") else r + "\tline" for r in rules]
        self.egress = Egress(PROGRAM, ([] if resolver else [RESOLVER]) + lines, self.inner, **options).start()
        self.udp = self.inner.udp() if self.egress.dns else None

    def ask(self, name, kind=A, raw=None):
        self.udp.sendto(raw if raw is not None else query(name, kind), ("127.0.0.1", 53))
        return read_answer(self.udp.recv(4096))

    def ask_again(self, name):
        """As a resolver does: a datagram that found a full queue is sent again."""
        self.udp.settimeout(1)
        for _ in range(60):
            try:
                return self.ask(name)
            except TimeoutError:
                pass
        raise AssertionError("no answer about " + name)

    def address(self, name):
        answer = self.ask(name)
        equal((answer["rcode"], len(answer["addresses"])), (0, 1), name)
        return answer["addresses"][0]

    def connect(self, name, port):
        return self.inner.connect((self.address(name), port))

    def is_reset(self, address, port, send=b""):
        """Refused: what is connected is reset."""
        try:
            with self.inner.connect((address, port)) as c:
                if send:
                    c.sendall(send)
                return c.recv(1) == b"never"
        except (ConnectionResetError, BrokenPipeError):
            return True

    def event(self, decision, text):
        return self.egress.event(decision, text)


def read_all(c):
    data = bytearray()
    while True:
        part = c.recv(1 << 16)
        if not part:
            return bytes(data)
        data += part


# --- names -------------------------------------------------------------------------------------
def case_names():
    t = Case("allow good.example", "allow *.wild.example:443", "deny not.wild.example", "allow alias.example",
             "allow empty.example", zone={**ZONE, "a.wild.example": [(A, PUBLIC)], "empty.example": [(TXT, "x")],
                                          "b.wild.example": [(A, OTHER)]})
    first = t.address("good.example")
    true(first.startswith("198.18.0."), first)
    equal(t.address("GOOD.example"), first, "the same name")
    second = t.address("a.wild.example")
    true(second != first and t.address("b.wild.example") not in (first, second), "each name has its own")
    t.address("alias.example")
    equal(t.ask("good.example", AAAA)["rcode"], 0)
    equal(t.ask("good.example", AAAA)["addresses"], [])
    for kind in (TXT, HTTPS, 33, 255, 16, 12):
        answer = t.ask("good.example", kind)
        equal((answer["rcode"], answer["addresses"]), (0, []), kind)
    for name in ("bad.example", "wild.example", "not.wild.example", "x.not-wild.example", "good", "example",
                 "good.example.evil", "secret.good.example", "exfiltrated-data.bad.example"):
        equal(t.ask(name)["rcode"], 3, name)
        equal(t.ask(name, TXT)["rcode"], 3, name)
    equal(t.ask("c.wild.example")["rcode"], 3, "upstream has none")
    equal(t.ask("empty.example")["rcode"], 0, "a name without an address")
    equal(t.ask("localhost")["addresses"], ["127.0.0.1"], "localhost")
    equal(t.ask("x", raw=query("good.example")[:12] + b"\x0cgood.example\0" + b"\0\1\0\1")["rcode"], 3, "a dot in a label")
    equal(t.ask("x", raw=query("good.example")[:12] + b"\x04a\0bc\x07example\0" + b"\0\1\0\1")["rcode"], 3, "a NUL")
    equal({name for name, _, _ in t.resolver.asked},
          {"good.example", "a.wild.example", "b.wild.example", "alias.example", "c.wild.example", "empty.example"},
          "what went upstream")
    for name in ("good.example", "c.wild.example"):
        equal(sorted(k for n, k, _ in t.resolver.asked if n == name), [A, AAAA], name + ": once each")
    equal(t.event("name", "bad.example")["rule"], -1)
    equal(t.event("name", "not.wild.example")["rule"], 2, "the line that denies")
    t.egress.end()


def case_names_six():
    t = Case("allow good.example", "allow *.wild.example:443", six=True,
             zone={**ZONE, "a.wild.example": [(AAAA, "2600::1")]})
    for name in "good.example", "a.wild.example":
        four, six = t.address(name), t.ask(name, AAAA)
        equal((six["rcode"], six["addresses"]), (0, ["fd63:6172:7265:6c00::" + four.removeprefix("198.18.0.")]), name)
        equal(t.ask(name, TXT)["addresses"], [], name)
    equal(t.ask("bad.example", AAAA)["rcode"], 3, "refused as with A")
    equal(t.ask("localhost", AAAA)["addresses"], ["::1"], "localhost")
    equal(t.ask("localhost", A)["addresses"], ["127.0.0.1"], "localhost")
    equal(t.ask("localhost", TXT)["addresses"], [], "localhost")
    t.egress.end()


def hosts(text, path="/etc/hosts"):
    """From now on hosts(5) of this process and of those that it starts; or another such file."""
    unshare(NEWNS)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        os.chmod(file.name, 0o644)
        if LIBC.mount(file.name.encode(), path.encode(), None, 0x1000, None) != 0:  # MS_BIND
            raise OSError(ctypes.get_errno(), "mount")


def case_hosts_and_resolvers():
    """Files as the resolver of a C library reads them: a line with blanks before it, a resolver that is link-local."""
    if not os.path.exists("/proc/net/if_inet6"):
        return
    hosts(f" \t{PUBLIC} here.example\n")
    add_address("fe80::53", 64)
    resolver = Resolver(ZONE, ("fe80::53", 53, 0, 1))
    hosts("nameserver fe80::54%none\nnameserver 127.0.0.1%lo\nnameserver fe80::53%lo\n", "/etc/resolv.conf")
    t = Case("allow here.example", "allow good.example", resolver=resolver)
    t.address("here.example")
    equal(resolver.asked, [], "hosts(5) has it")
    t.address("good.example")
    equal({name for name, _, _ in resolver.asked}, {"good.example"})
    t.egress.end()


def case_host_proxy():
    """The proxy of the host's network is asked for names, but for those of hosts(5)."""
    hosts(f"{PUBLIC} here.example\n10.1.2.3 private.example\n")
    asked = []

    def proxy(c):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += c.recv(1)
        asked.append(head.split()[1].decode())
        c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        echo(c)

    serve((OTHER, 3128), proxy)
    serve((PUBLIC, 80), echo)
    t = Case(f"proxy {OTHER}:3128", "allow *.example:80")
    for name, wanted in (("here.example", []), ("there.example", ["there.example:80"])):
        with t.connect(name, 80) as c:
            c.sendall(b"text")
            equal(c.recv(4), b"text", name)
        equal(asked, wanted, name)
    true(t.is_reset(t.address("private.example"), 80), "hosts(5) leads to a private address")
    t.event("address", "private.example")
    equal(asked, ["there.example:80"], "the proxy is not asked for it")
    equal(t.resolver.asked, [], "nor is the resolver")
    t.egress.end()


def case_dns_over_tcp():
    t = Case("allow good.example", "allow other.example")
    with t.inner.connect(("127.0.0.1", 53)) as c:
        messages = [query("good.example", A, i) for i in range(20)] + [query("bad.example", A, 99)]
        for message in messages:  # in pieces
            for byte in struct.pack("!H", len(message)) + message:
                c.sendall(bytes([byte]))
        answers = {}
        for _ in messages:
            size = struct.unpack("!H", c.recv(2, socket.MSG_WAITALL))[0]
            answer = read_answer(c.recv(size, socket.MSG_WAITALL))
            answers[answer["id"]] = answer
        equal(len(answers), 21)
        equal(answers[99]["rcode"], 3)
        equal(answers[19]["addresses"], [t.address("good.example")])
    with t.inner.connect(("127.0.0.1", 53)) as c:  # several in one piece
        message = query("other.example")
        c.sendall((struct.pack("!H", len(message)) + message) * 10)
        c.shutdown(socket.SHUT_WR)
        true(len(read_all(c)) > 0, "an answer")
    with t.inner.connect(("127.0.0.1", 53)) as c:
        c.sendall(b"\xff\xff" + b"x" * 100)
        equal(c.recv(1), b"", "too long")
    many = [t.inner.connect(("127.0.0.1", 53)) for _ in range(100)]  # more than it holds
    equal(t.address("good.example"), t.address("good.example"))
    for c in many:
        c.close()
    t.egress.end()


def case_bad_messages():
    t = Case("allow good.example")
    send = lambda data: t.udp.sendto(data, ("127.0.0.1", 53))
    good = query("good.example")
    for data in (b"", b"x", good[:11], good[:2] + b"\x81" + good[3:]):  # too short, and an answer
        send(data)
    equal(t.ask("", raw=good[:12])["rcode"], 1, "no question")
    equal(t.ask("", raw=good[:-1])["rcode"], 1, "cut")
    equal(t.ask("", raw=good[:4] + b"\0\2" + good[6:])["rcode"], 1, "two questions")
    equal(t.ask("", raw=query("good.example", flags=0x2900))["rcode"], 4, "not a query")
    equal(t.ask("", raw=good[:12] + b"\xc0\x0c" + b"\0\1\0\1")["rcode"], 1, "a loop")
    equal(t.ask("", raw=good[:12] + b"\x3f" * 300)["rcode"], 1, "too long")
    equal(t.ask("", raw=good[:-1] + b"\3")["rcode"], 5, "another class")
    equal(t.ask("", raw=good[:10] + b"\0\1" + good[12:] + b"\0\0\x29\x04\xd0\0\0\0\0\0\0")["rcode"], 0, "EDNS")
    t.udp = t.inner.udp()
    for i in range(3000):
        send(os.urandom(i % 600))
    t.udp = t.inner.udp()
    equal(t.ask_again("good.example")["rcode"], 0, "after all that")
    t.egress.end()


# --- upstream ----------------------------------------------------------------------------------
def case_upstream():
    asked = []

    def flaky(kind, over):
        asked.append(kind)
        return 2 if len(asked) <= 2 else [(A, PUBLIC)]  # SERVFAIL

    def truncated(kind, over):
        if over == "udp":
            return [b"ID" + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + wire_name("long.example") +
                    struct.pack("!HH", kind, 1)]
        return [(A, PUBLIC)]

    def forged(kind, over):
        def one(ident, name, kind, address):
            return ident + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + wire_name(name) + struct.pack(
                "!HH", kind, 1) + b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 60, 4) + socket.inet_aton(address)
        if kind != A:
            return 3
        return [one(b"\0\0", "forged.example", A, "127.0.0.1"), one(b"ID", "good.example", A, "127.0.0.1"),
                one(b"ID", "forged.example", TXT, "127.0.0.1"), one(b"ID", "forged.example", A, PUBLIC)]

    t = Case("resolver 127.0.0.1:5354", "allow *.example", "allow good.example:80", zone={
        **ZONE, "flaky.example": flaky, "long.example": truncated, "forged.example": forged, "fails.example": 2,
        "four.example": lambda kind, over: [(A, PUBLIC)] if kind == A else None,
        "loop1.example": lambda kind, over: [b"ID" + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + wire_name(
            "loop1.example") + struct.pack("!HH", kind, 1) + b"\xc0\x0c" + struct.pack("!HHIH", CNAME, 1, 60, 2) + b"\xc0\x0c"]})
    true(t.address("flaky.example"), "asked again")
    true(t.address("long.example"), "TCP")
    true(("long.example", A, "tcp") in t.resolver.asked, "over TCP")
    true(t.address("four.example"), "the other family does not answer")
    serve((PUBLIC, 80), echo)
    with t.connect("forged.example", 80) as c:
        c.sendall(b"x")
        equal(c.recv(1), b"x", "the answer that was asked for")
    equal(t.ask("fails.example")["rcode"], 2, "SERVFAIL")
    equal(t.event("failed", "fails.example")["port"], 0)
    equal(t.ask("loop1.example")["rcode"], 0, "an alias of itself")
    equal(t.ask("loop1.example")["addresses"], [])
    t.egress.end()


def case_no_resolver():
    e = Egress(PROGRAM, ["resolver 127.0.0.1:5999", "allow good.example\tx"], Inner()).start()
    u = e.inner.udp()
    u.sendto(query("good.example"), ("127.0.0.1", 53))
    equal(read_answer(u.recv(4096))["rcode"], 2, "nobody listens")
    equal(e.event("failed", "good.example")["number"], 111)
    e.end()


# --- connections -------------------------------------------------------------------------------
def small_buffers():
    """Of the calling thread's network namespace: a machine's own may hold more than is sent here, 32 MiB a socket."""
    with open("/proc/sys/net/ipv4/tcp_rmem", "w", encoding="ascii") as f:
        f.write("4096 131072 4194304")


def case_relay():
    size = 32 << 20
    data = os.urandom(1 << 20) * 32
    seen = []

    def server(c):
        seen.append(hashlib.sha256(read_all(c)).digest())  # until the client's half is closed
        c.sendall(data)

    small_buffers()
    t = Case("connections 100", "allow good.example:8080", "allow other.example:80")
    t.inner.run(small_buffers)
    serve((PUBLIC, 8080), server)
    serve((OTHER, 80), echo)
    with t.connect("good.example", 8080) as c:
        c.sendall(data)
        c.shutdown(socket.SHUT_WR)
        equal(hashlib.sha256(read_all(c)).digest(), hashlib.sha256(data).digest(), "what came")
    equal(seen, [hashlib.sha256(data).digest()], "what went")
    event = t.event("allowed", "good.example")
    equal((event["in"], event["out"], event["port"], event["rule"]), (size, size, 8080, 0))
    # A reader that does not read holds the writer back, and gets all of it when it does.
    with t.connect("other.example", 80) as c:
        sent = 0
        c.setblocking(False)
        while select.select([], [c], [], 1)[1]:
            sent += c.send(data[sent % size:][:1 << 20])
            true(sent < 64 << 20, "nothing is held back")
        c.settimeout(20)
        c.shutdown(socket.SHUT_WR)
        equal(hashlib.sha256(read_all(c)).digest(), hashlib.sha256((data + data)[:sent]).digest(), "held back")
    t.egress.end()


def case_refused():
    t = Case("allow good.example:80", "allow other.example:8080", "allow closed.example:8080",
             zone={**ZONE, "closed.example": [(A, PUBLIC)]})
    serve((PUBLIC, 80), echo)
    serve((OTHER, 80), echo)
    with t.connect("good.example", 80) as c:  # control
        c.sendall(b"x")
        equal(c.recv(1), b"x")
    other = t.address("other.example")
    true(t.is_reset(other, 80), "not at this port")
    equal(t.event("port", "other.example")["port"], 80)
    true(t.is_reset("198.18.7.7", 80), "nobody's address")
    equal(t.event("port", "198.18.7.7")["rule"], -1)
    true(t.is_reset("198.18.0.0", 80), "the first of the block")
    true(t.is_reset("127.0.0.1", 80), "the loopback")
    true(t.is_reset("192.0.2.7", 80), "an address without a rule")
    closed = t.address("closed.example")
    true(t.is_reset(closed, 8080), "nobody listens")
    equal(t.event("failed", "closed.example")["number"], 111)
    for _ in range(200):
        t.is_reset("198.18.7.8", 80)
    events = [e for e in t.egress.end() if e["text"] == "198.18.7.8"]
    equal(sum(e["count"] for e in events), 200, "each is counted")
    true(len(events) <= 60, "and not each is told")


def case_reset_passes():
    def server(c):
        c.recv(1)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    t = Case("allow good.example:80")
    serve((PUBLIC, 80), server)
    true(t.is_reset(t.address("good.example"), 80, b"x"), "a server's reset")
    t.egress.end()


def case_addresses():
    """What a name must not lead to, and (control) does where a rule says so."""
    inside = {"loop.example": "127.0.0.1", "private.example": "10.1.2.3", "meta.example": "169.254.169.254",
              "zero.example": "0.0.0.0", "block.example": "198.18.3.3", "docs.example": "192.0.2.9"}
    six = {"six.example": "::1", "mapped.example": "::ffff:127.0.0.1", "nat.example": "64:ff9b::7f00:1",
           "link.example": "fe80::1", "local.example": "fd00::1"}
    zone = {**{n: [(A, a)] for n, a in inside.items()}, **{n: [(AAAA, a)] for n, a in six.items()},
            "mixed.example": [(A, "127.0.0.1"), (A, PUBLIC)]}
    serve(("127.0.0.1", 80), echo)
    t = Case("allow *.example:80", "deny 1.1.1.1", zone={**zone, "denied.example": [(A, OTHER)]})
    for name in (*inside, *six, "denied.example"):
        true(t.is_reset(t.address(name), 80), name)
        equal(t.event("address", name)["port"], 80, name)
    serve((PUBLIC, 80), lambda c: c.sendall(b"public"))
    serve((OTHER, 80), echo)
    with t.connect("mixed.example", 80) as c:
        equal(read_all(c), b"public", "the address that may be")
    t.egress.end()


def case_addresses_allowed():
    t = Case("allow *.example:80", "allow localhost:80", "allow 192.0.2.7:80", zone={
        "loop.example": [(A, "127.0.0.1")], "private.example": [(A, "10.1.2.3")]})
    serve(("127.0.0.1", 80), echo)
    for address in (t.address("loop.example"), "127.0.0.1"):
        with t.inner.connect((address, 80)) as c:
            c.sendall(b"x")
            equal(c.recv(1), b"x", address)
    true(t.is_reset(t.address("private.example"), 80), "another one is not")
    t.egress.end()


def case_happy_eyeballs():
    """An address that says nothing is not waited for."""
    silent = socket.socket()
    silent.bind((OTHER, 80))
    silent.listen(0)
    fill = [socket.socket() for _ in range(4)]
    for s in fill:
        s.setblocking(False)
        s.connect_ex((OTHER, 80))
    serve((PUBLIC, 80), echo)
    t = Case("allow two.example:80", "allow v6.example:80", zone={**ZONE, "two.example": [(A, OTHER), (A, PUBLIC)]})
    for name in ("two.example", "v6.example"):
        with t.connect(name, 80) as c:
            c.sendall(b"x")
            equal(c.recv(1), b"x", name)
    t.egress.end()


def case_limits():
    t = Case("connections 3", "bytes 100000", "allow good.example:80")
    serve((PUBLIC, 80), echo)
    address = t.address("good.example")
    held = []
    for _ in range(3):
        c = t.inner.connect((address, 80))
        c.sendall(b"x")
        equal(c.recv(1), b"x")
        held.append(c)
    true(t.is_reset(address, 80), "a fourth")
    equal(t.event("limit", "good.example")["port"], 80)
    held.pop().close()
    t.event("allowed", "good.example")
    with t.inner.connect((address, 80)) as c:
        try:
            c.sendall(b"y" * 200000)
            true(len(read_all(c)) < 100000, "no more than may be")
        except ConnectionError:
            pass
    true(t.is_reset(address, 80), "all bytes are used up")
    events = t.egress.end()
    true(sum(e["in"] + e["out"] for e in events if e["decision"] == "allowed") <= 100000, "as counted")


def case_many():
    t = Case("allow good.example:80", ports=(80,))
    serve((PUBLIC, 80), echo)
    address = t.address("good.example")

    def work():
        held = [socket.create_connection((address, 80), 60) for _ in range(500)]
        for c in held:
            c.sendall(b"x")
        for c in held:
            equal(c.recv(1), b"x")
        for c in held:
            c.close()
        for _ in range(10000 if os.environ.get("FULL_TESTS") else 2000):
            with socket.create_connection((address, 80), 60) as c:
                c.sendall(b"x")
                equal(c.recv(1), b"x")

    threading.Thread(target=lambda: [0 for _ in iter(lambda: t.egress.channel.recv(4096), b"")], daemon=True).start()
    t.inner.run(work)
    fds = len(os.listdir(f"/proc/{t.egress.process.pid}/fd")) if os.access(
        f"/proc/{t.egress.process.pid}/fd", os.R_OK) else 0
    true(fds < 40, f"{fds} descriptors are left")
    t.egress.close()


# --- TLS ---------------------------------------------------------------------------------------
def hello_bytes(name, **versions):
    """A real ClientHello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def tls_server(directory):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=good.example",
                    "-keyout", directory + "/key", "-out", directory + "/cert"], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/cert", directory + "/key")
    seen = []

    def handle(c):
        with context.wrap_socket(c, server_side=True) as s:
            seen.append(s.version())
            s.sendall(s.recv(100))
            s.unwrap()

    serve((PUBLIC, 443), handle)
    return seen


def tls_talk(c, name, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    with context.wrap_socket(c, server_hostname=name) as s:
        s.sendall(b"x" * 100)
        return s.recv(100) == b"x" * 100


def case_tls():
    directory = os.environ["T"]
    t = Case("allow good.example:443", "allow 8.8.8.8:443")
    tls_server(directory)
    address = t.address("good.example")
    connect = lambda: t.inner.connect((address, 443))
    for version in (None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        true(tls_talk(connect(), "good.example", version), version)
    true(tls_talk(connect(), "GOOD.example"), "upper case")
    for name in ("other.example", "good.example.evil", "evil.good.example", None, "8.8.8.8"):
        try:
            tls_talk(connect(), name)
        except (ConnectionError, ssl.SSLEOFError):
            continue
        raise AssertionError(f"{name} was let through")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x00\x00", b"\x80\x2e\1\3\1", b"\0",
                 b"\x16\x03\x01\xff\xff" + b"x" * 100, b"\x16\x02\x01\x00\x05hello"):
        true(t.is_reset(address, 443, data), data)
    hello = hello_bytes("good.example")
    evil = hello_bytes("evil.example")
    true(t.is_reset(address, 443, hello + evil), "a second ClientHello")
    true(t.is_reset(address, 443, hello + b"\x14\x03\x03\0\1\1" + evil), "a second one behind ChangeCipherSpec")
    inner = hello[5:] + evil[5:]
    true(t.is_reset(address, 443, b"\x16\x03\x01" + struct.pack("!H", len(inner)) + inner), "two in one record")
    event = t.event("tls", "good.example")
    equal((event["port"], event["rule"]), (443, 0))
    t.egress.end()


def records(hello, *sizes):
    """The same handshake message in records of these sizes."""
    body, out = hello[5:], b""
    for size in sizes:
        out += hello[:3] + struct.pack("!H", len(body[:size])) + body[:size]
        body = body[size:]
    return out + (hello[:3] + struct.pack("!H", len(body)) + body if body else b"")


def case_tls_pieces():
    """In pieces and in several records it is read as in one."""
    got = []
    t = Case("allow good.example:443")
    serve((PUBLIC, 443), lambda c: (got.append(c.recv(1)), c.sendall(b"reached")))
    address = t.address("good.example")
    for name, passes in (("good.example", True), ("evil.example", False)):
        hello = hello_bytes(name)
        shapes = [hello, records(hello, 1, 3, 60), records(hello, 4), records(hello, 100, 1, 1, 1, 1)]
        for i, shape in enumerate(shapes):
            for step in (len(shape), 50, 7):
                with t.inner.connect((address, 443)) as c:
                    try:
                        for at in range(0, len(shape), step):
                            c.sendall(shape[at:at + step])
                        answer = c.recv(7, socket.MSG_WAITALL)
                    except ConnectionError:
                        answer = b""
                    equal(answer == b"reached", passes, f"{name}, shape {i}, {step} bytes at a time")
    true(t.is_reset(address, 443, records(hello_bytes("good.example"), *[1] * 100)), "too many records")
    # A byte out of order, which one reader would see and another not.
    hello = hello_bytes("good.example")
    with t.inner.connect((address, 443)) as c:
        c.send(hello[:60])
        c.send(b"X", socket.MSG_OOB)
        try:
            c.sendall(hello[60:])
            answer = c.recv(7)
        except ConnectionError:
            answer = b""
        equal(answer, b"", "urgent data in a ClientHello")
    t.egress.end()


def case_tls_name_no():
    t = Case("tls-name no", "allow good.example:443")
    tls_server(os.environ["T"])
    address = t.address("good.example")
    for name in ("evil.example", None):
        true(tls_talk(t.inner.connect((address, 443)), name), name)
    t.egress.end()


# --- the program -------------------------------------------------------------------------------
def case_channel():
    for what in ({"magic": 1}, {"raw": b"short"}, {"raw": b"\0" * 9999}, {}):
        t = Egress(PROGRAM, [RESOLVER, "allow good.example\tx"], Inner()).start()
        t.send(77, **what)
        equal(t.process.wait(20), 125, what)
        true(isinstance(t.inner.run(connect_error, ("198.18.0.1", 80)), ConnectionRefusedError), "closed")
        t.close()
    inner = Inner()
    t = Egress(PROGRAM, [RESOLVER, "allow good.example\tx"], inner).start()
    t.channel.close()
    equal(t.process.wait(20), 125, "the supervisor is gone")
    origin, name = rule_head(ORIGIN, name=b"x\0"), rule_head(NAME, name=b"a.example\0", ports=(80, 443))
    four = {"kind": BLOCK, "family": 4, "bits": 32, "address": bytes(16)}
    for rules, why in (
            (["nonsense"], "no such line"), (b"tls-name no\n", "cannot be read"), (b"tls-name no\0", "has no end"),
            (b"", "cannot be read"), (b"\0" + name, "without a source"), *((b"\0" + origin + bad, "that is none") for bad in (
                b"\1", name[:11], name[:-1], name[:13], rule_head(4), rule_head(NAME), rule_head(NAME, name=b"a.example"),
                rule_head(NAME, name=b"a\0b\0"), rule_head(ORIGIN, name=b"x"), rule_head(NAME, name=b"a\0", ports=[80] * 17),
                rule_head(**{**four, "family": 5}), rule_head(**{**four, "bits": 33}),
                rule_head(**{**four, "family": 6, "bits": 129}), rule_head(**{**four, "address": bytes(15)})))):
        t = Egress(PROGRAM, rules, inner)
        equal(t.process.wait(20), 125, rules)
        true(why in t.process.stderr.read().decode(), why)
        t.close()


def connect_error(address):
    try:
        socket.create_connection(address, 20).close()
    except OSError as error:
        return error
    return None


def case_rules_added():
    t = Case("allow good.example", "deny bad.example")
    serve((OTHER, 80), echo)
    equal(t.ask("other.example")["rcode"], 3)
    t.event("name", "other.example")
    t.egress.send(RULE, text="allow other.example:80\tthe user")
    record = t.egress.receive()
    equal((record["kind"], record["number"]), (REFUSED, 0))
    with t.connect("other.example", 80) as c:
        c.sendall(b"x")
        equal(c.recv(1), b"x")
    equal(t.event("allowed", "other.example")["rule"], 2)
    t.egress.send(RULE, text="allow 0x7f.1\tthe user")
    record = t.egress.receive()
    equal((record["kind"], record["number"] > 0), (REFUSED, True))
    true("looks like an address" in record["text"], record["text"])
    t.egress.end()


def answered(t):
    """The number of REFUSED, the answer to a rule that was sent; what was decided meanwhile is passed over."""
    while True:
        record = t.egress.receive()
        if record["kind"] == REFUSED:
            return record["number"]


def case_rules_removed():
    t = Case("allow good.example:80")
    serve((PUBLIC, 80), echo)
    serve((OTHER, 80), echo)
    for text in ("allow other.example:80\tthe user", "allow good.example:80\tthe user"):
        t.egress.send(RULE, text=text)
        equal(answered(t), 0, text)
    with t.connect("other.example", 80) as other, t.connect("good.example", 80) as good:
        for c in (other, good):
            c.sendall(b"x")
            equal(c.recv(1), b"x")
        for rule, number in ((1, 0), (2, 0), (1, errno.ENOENT), (0, errno.ENOENT), (3, errno.ENOENT), (-1, errno.ENOENT)):
            t.egress.send(UNRULE, rule=rule)
            equal(answered(t), number, f"taken back: {rule}")
        try:
            equal(other.recv(1), "a reset", "what only that rule allowed")
        except ConnectionResetError:
            pass
        good.sendall(b"y")
        equal(good.recv(1), b"y", "what a line of the policy allows as well")
    equal(t.ask("other.example")["rcode"], 3, "it is no name any more")
    equal(t.ask("good.example")["rcode"], 0, "a line of the policy stays")
    t.egress.send(RULE, text="allow other.example:80\tthe user")
    equal(answered(t), 0, "once more")
    equal(t.ask("other.example")["rcode"], 0)
    t.egress.end()


def case_published():
    t = Case("allow good.example:80", ports=(80,))
    outer = socket.create_server(("127.0.0.1", 0))
    port = outer.getsockname()[1]
    inner_socket = lambda family: t.inner.run(socket.socket, family, socket.SOCK_STREAM)
    t.egress.send(PUBLISH, port=7070, fds=[outer])
    pool = [inner_socket(socket.AF_INET) for _ in range(3)]
    t.egress.send(POOL, fds=pool)
    for s in [outer, *pool]:
        s.close()

    def talk(data):
        with socket.create_connection(("127.0.0.1", port), 20) as c:
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
            return read_all(c)

    try:
        equal(talk(b"x"), "a reset", "nobody listens inside")
    except (ConnectionResetError, BrokenPipeError):
        pass
    server = t.inner.listener(7070, "127.0.0.1")

    def answer():
        while True:
            c, _ = server.accept()
            with c:
                echo(c)

    threading.Thread(target=answer, daemon=True).start()
    for i in range(20):  # more than the pool has: each socket is used again
        equal(talk(bytes([i]) * 70000), bytes([i]) * 70000, f"connection {i}")
    event = t.egress.receive()
    while event["decision"] != "published":
        event = t.egress.receive()
    equal((event["port"], event["in"] > 0, event["out"] > 0), (7070, True, True), "what is told of it")
    t.egress.end()
    t = Egress(PROGRAM, [RESOLVER, "allow good.example\tx"], Inner()).start()
    with socket.socket() as s:
        t.send(POOL, fds=[s])
    equal(t.process.wait(20), 125, "sockets where no port is published")
    t.close()


def case_confined():
    t = Case("allow good.example")
    pid = t.egress.process.pid
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        equal(int(status[key], 16), 0, key)
    equal((status["NoNewPrivs"], status["Seccomp"], status["Threads"]), ("1", "2", "1"))
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        equal([line.split()[4] for line in f if line.startswith("Max core")], ["0"], "core")
    # It dies with what started it, also where that cannot say so.
    child = subprocess.Popen([sys.executable, "-c", PARENT, PROGRAM], stdout=subprocess.PIPE)
    grandchild = int(child.stdout.readline())
    fd = os.pidfd_open(grandchild)
    child.kill()
    child.wait()
    true(select.select([fd], [], [], 20)[0], "it is alive")
    t.egress.end()


def before_confined():
    """Not dumpable: then its files below /proc are root's. Only an ordinary user sees that."""
    e = Egress(PROGRAM, ["resolver 127.0.0.1"], None)
    e.receive()
    equal(os.stat(f"/proc/{e.process.pid}/status").st_uid, 0, "dumpable")
    e.close()


PARENT = """
import os, socket, subprocess, sys, time
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.set_inheritable(a.fileno(), True)
m = os.memfd_create("rules")
os.write(m, b"resolver 127.0.0.1\\n\\0")
x, y = os.dup(b.fileno()), os.dup(m)
import fcntl
x, y = fcntl.fcntl(x, fcntl.F_DUPFD, 50), fcntl.fcntl(y, fcntl.F_DUPFD, 50)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], {}, file_actions=[(os.POSIX_SPAWN_DUP2, x, 3),
    (os.POSIX_SPAWN_DUP2, y, 4), (os.POSIX_SPAWN_DUP2, a.fileno(), 6)])
a.settimeout(20)
a.recv(4096)
print(pid, flush=True)
time.sleep(1000)
"""


def case_killed():
    t = Case("allow good.example:80")
    serve((PUBLIC, 80), echo)
    address = t.address("good.example")
    c = t.inner.connect((address, 80))
    c.sendall(b"x")
    equal(c.recv(1), b"x")
    t.egress.process.send_signal(signal.SIGKILL)
    t.egress.process.wait(20)
    try:
        equal(c.recv(1), b"", "an open connection")
    except ConnectionError:
        pass
    true(isinstance(t.inner.run(connect_error, (address, 80)), ConnectionRefusedError), "a new one")
    t.udp.connect(("127.0.0.1", 53))
    try:
        t.udp.send(query("good.example"))
        t.udp.recv(100)
    except ConnectionRefusedError:
        return t.egress.close()
    raise AssertionError("a name resolves")


def case_log():
    t = Case("allow good.example:80\tpolicy:3", "deny bad.example\tpolicy:4", log=True)
    serve((PUBLIC, 80), echo)
    with t.connect("good.example", 80) as c:
        c.sendall(b"four")
        equal(c.recv(4, socket.MSG_WAITALL), b"four")
    t.event("allowed", "good.example")
    t.ask("bad.example")
    t.ask("a\"b\x1b.example")
    true(t.is_reset(t.address("good.example"), 8080), "port")
    t.egress.end()
    lines = t.egress.log_lines()
    for line in lines:
        true(line.pop("time").endswith("Z"), "time")
    equal(lines[0].pop("duration_us") > 0, True)
    equal(lines[0], {"decision": "allowed", "name": "good.example", "port": 80, "address": PUBLIC, "rule": 0,
                     "source": "policy:3", "bytes_in": 4, "bytes_out": 4})
    equal(lines[1], {"decision": "denied-name", "name": "bad.example", "rule": 1, "source": "policy:4"})
    equal(lines[2], {"decision": "denied-name", "name": "a?b?.example"})
    equal(lines[3], {"decision": "denied-port", "name": "good.example", "port": 8080})


def case_supervisor_that_does_not_read():
    """What it does not take is counted to the last."""
    t = Case("allow good.example")
    names = [f"n{i}.bad.example" for i in range(1000)]
    for name in names:
        equal(t.ask(name)["rcode"], 3, name)
    events = t.egress.end()
    true(t.egress.lost > 0, "it took all")
    equal(sum(e["count"] + e["lost"] for e in events) + t.egress.lost, len(names))


def case_log_that_is_full():
    """A file at its limit, as a disk that is full: a line that breaks off is no part of the next, and all of it goes on."""
    room = 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * (room - 21) + b"\n")
        file.flush()
        t = Case("allow good.example", log=True, log_fd=file.fileno())
        serve((PUBLIC, 80), echo)
        for name in "a.example", "b.example":
            equal(t.ask(name)["rcode"], 3, name)
        resource.prlimit(t.egress.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        equal(t.ask("c.example")["rcode"], 3)
        t.address("good.example")
        t.egress.end()
        equal(t.egress.log_lost, 2, "counted")
        file.seek(room - 20)
        torn, whole = file.read().decode().splitlines()
    equal(len(torn), 20, torn)
    whole = json.loads(whole)
    equal((whole["name"], whole["lost"]), ("c.example", 2))


def case_log_that_nobody_reads():
    r, w = os.pipe()
    t = Case("allow good.example", log=True, log_fd=w)
    for i in range(3000):
        equal(t.ask(f"n{i}.bad.example")["rcode"], 3)
        if i % 50 == 0:
            while True:
                try:
                    t.egress.channel.setblocking(False)
                    t.egress.receive()
                except BlockingIOError:
                    break
                finally:
                    t.egress.channel.settimeout(20)
    os.close(r)
    equal(t.ask("good.example")["rcode"], 0)
    t.egress.end()


def case_many_names():
    """A tool asks for more names than are kept: it gets an answer, and others go on."""
    zone = type("Zone", (dict,), {"get": lambda self, name, default=None: [(A, PUBLIC)],
                                  "__contains__": lambda self, name: True})()
    t = Case("allow *.wild.example", zone=zone)
    first = t.address("first.wild.example")
    stop = threading.Event()
    threading.Thread(target=lambda: drain(t.egress, stop), daemon=True).start()
    answers = {0: 0, 2: 0}
    sent = 0
    for start in range(0, 17000, 50):
        for i in range(start, start + 50):
            t.udp.sendto(query(f"n{i}.wild.example"), ("127.0.0.1", 53))
            sent += 1
        for _ in range(50):
            answers[read_answer(t.udp.recv(4096))["rcode"]] += 1
    equal(answers[0], 16383, "names")
    equal(answers[2], sent - 16383, "and no more")
    equal(t.address("first.wild.example"), first, "one that it had")
    stop.set()
    t.egress.close()


def drain(egress, stop):
    while not stop.is_set():
        try:
            if not egress.channel.recv(4096):
                return
        except OSError:
            return


def main():
    if "before_" + sys.argv[2] in globals():
        keep_low()
        globals()["before_" + sys.argv[2]]()
    try:
        enter_outer()
    except OSError as error:
        print("no namespaces here:", error)
        sys.exit(77)
    if sys.argv[2].startswith("proxy_"):
        import proxy  # it takes names of this module, which all are there now
        getattr(proxy, "case_" + sys.argv[2])()
    else:
        globals()["case_" + sys.argv[2]]()
    sys.stdout.flush()
    os._exit(0)  # servers still stand in threads


main()
