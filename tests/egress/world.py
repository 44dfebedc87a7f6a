"""carrel-egress alone, in a world made for it: for tests/egress/drive.py and tests/bench/egress_bench.py.

Two network namespaces. In the outer one, where carrel-egress runs, are a DNS server and the servers that names lead to; in
the inner one, which stands for a session, are the block of addresses, the listeners, and the clients. A thread that
entered the inner one makes its sockets there.
"""
import ctypes
import fcntl
import ipaddress
import json
import os
import re
import socket
import struct
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER, NEWNET = 0x00020000, 0x10000000, 0x40000000
RECORD = struct.Struct("=IIIiiIIIQQQ512s")
MAGIC = 0x63656731
SOCKETS, RULE, END, READY, EVENT, REFUSED, DONE, UNRULE, POOL, PUBLISH = range(1, 11)
DECISIONS = ["", "allowed", "name", "port", "address", "tls", "limit", "failed", "published"]
PUBLIC, OTHER = "8.8.8.8", "1.1.1.1"  # the outer namespace's own


def unshare(flags):
    if LIBC.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14s", b"lo", 0x41, b"")  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS


def add_address(address, bits):
    """RTM_NEWADDR on lo (index 1): on a loopback the whole block is local."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    raw = socket.inet_pton(family, address)
    attributes = b"".join(struct.pack("HH", 4 + len(raw), kind) + raw for kind in (2, 1))
    flags = 2 if ":" in address else 0  # IFA_F_NODAD: it can be used at once
    body = struct.pack("BBBBI", family, bits, flags, 0, 1) + attributes
    message = struct.pack("IHHII", 16 + len(body), 20, 0x405, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(message)
        error = struct.unpack("i", s.recv(4096)[16:20])[0]
        if error:
            raise OSError(-error, "RTM_NEWADDR " + address)


def keep_low():
    """3 to 5 are what the program is given: nothing else shall stand there."""
    while os.open("/dev/null", os.O_RDONLY) < 8:
        pass


def enter_outer():
    """This process, once, as long as it has one thread: the first user of namespaces of its own."""
    keep_low()
    uid, gid = os.getuid(), os.getgid()
    unshare(NEWUSER | NEWNET)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open("/proc/self/" + name, "w", encoding="ascii") as f:
            f.write(text)
    loopback_up()
    for address in (PUBLIC, OTHER):
        add_address(address, 32)


def run_in_thread(work, *arguments):
    result = []

    def run():
        try:
            result.append((True, work(*arguments)))
        except BaseException as error:  # pylint: disable=broad-except
            result.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if not result[0][0]:
        raise result[0][1]
    return result[0][1]


class Inner:
    """The inner namespace."""

    def __init__(self):
        self.fd = run_in_thread(self._make)

    @staticmethod
    def _make():
        unshare(NEWNET)
        loopback_up()
        add_address("198.18.0.0", 15)
        add_address("192.0.2.7", 32)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def run(self, work, *arguments):
        def enter():
            if LIBC.setns(self.fd, NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            return work(*arguments)

        return run_in_thread(enter)

    def connect(self, address, timeout=20):
        return self.run(socket.create_connection, address, timeout)

    def listener(self, port, address="0.0.0.0"):
        def make():
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, port))
            s.listen(1024)
            return s

        return self.run(make)

    def udp(self, address=None):
        def make():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            if address:
                s.bind(address)
            s.settimeout(20)
            return s

        return self.run(make)


NAME, BELOW, BLOCK, LOCALHOST, ORIGIN = 0, 1, 2, 3, 255


def rule_head(kind, deny=0, family=0, bits=0, ports=(), name=b"", line=0, address=b""):
    """struct egress_rule_head of wire.h, and what stands behind it."""
    return struct.pack(f"=IBBBBBBH{len(ports)}H", line, kind, deny, family, bits, len(ports), 0, len(name),
                       *ports) + address + name


def packed_rule(line):
    """"allow RULE" as carrel hands it over."""
    verb, rule = line.split(" ", 1)
    bracketed = re.fullmatch(r"\[(.*)\](/\d+)?(?::(.*))?", rule)
    host, _, ports = rule.partition(":")
    if bracketed:
        host, ports = bracketed[1] + (bracketed[2] or ""), bracketed[3]
    deny = verb == "deny"
    values = {"deny": deny, "ports": sorted({int(p) for p in ports.split(",")}) if ports else () if deny else (80, 443)}
    try:
        net = ipaddress.ip_network(host)
        values.update(kind=BLOCK, family=net.version, bits=net.prefixlen, address=net.network_address.packed.ljust(16, b"\0"))
    except ValueError:
        below = host.startswith("*.")
        values.update(kind=LOCALHOST if host == "localhost" else BELOW if below else NAME)
        if host != "localhost":
            values.update(name=host.removeprefix("*.").lower().encode() + b"\0")
    return rule_head(**values)


def packed(rules):
    """The settings as lines, a NUL, the rules: "allow RULE<TAB>SOURCE"."""
    text, out, last = "", [b"\0"], None
    for line in rules:
        if not line.startswith(("allow ", "deny ")):
            text += line + "\n"
            continue
        rule, source = line.split("\t")
        if source != last:
            out.append(rule_head(ORIGIN, name=source.encode() + b"\0"))
        out.append(packed_rule(rule))
        last = source
    return text.encode() + b"".join(out)


class Egress:
    """The program, its channel and what it said. RULES: lines, or the bytes that it is to read."""

    def __init__(self, program, rules, inner, ports=(80, 443, 8080), log=False, dns=True, log_fd=None, six=False):
        self.inner, self.events, self.pending, self.log_lost, self.lost = inner, [], [], None, None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        text = os.memfd_create("rules", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(text, rules if isinstance(rules, bytes) else packed(rules))
        fcntl.fcntl(text, fcntl.F_ADD_SEALS, 0xF)
        log_r, log_w = os.pipe()
        # In the child 3, 4 and 5, whatever they are here: first out of each other's way.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in
                (theirs.fileno(), text, log_w if log_fd is None else log_fd)]

        def place():
            for fd, to in zip(high, (3, 4, 5)):
                os.dup2(fd, to)

        self.process = subprocess.Popen(
            [program] + (["--log"] if log else []), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, close_fds=True, pass_fds=(3, 4, 5), preexec_fn=place)
        for fd in high + [text, log_w]:
            os.close(fd)
        theirs.close()
        self.log = os.fdopen(log_r, encoding="utf-8")
        self.channel = ours
        self.channel.settimeout(20)
        self.ready = None
        self.ports, self.dns, self.six = ports, dns, six

    def start(self):
        """Wait for READY, then hand over the sockets."""
        self.ready = self.receive()
        assert self.ready["kind"] == READY, self.ready
        fds = []
        if self.dns:
            fds = [self.inner.udp(("127.0.0.1", 53)), self.inner.listener(53, "127.0.0.1")]
        listeners = [self.inner.listener(port) for port in self.ports]
        self.send(SOCKETS, number=int(self.dns) | 2 * self.six, fds=fds + listeners)
        for s in fds + listeners:
            s.close()
        return self

    def send(self, kind, number=0, text="", fds=(), magic=MAGIC, raw=None, rule=-1, port=0):
        record = raw if raw is not None else RECORD.pack(
            magic, kind, 0, number, rule, port, 0, 0, 0, 0, 0, text.encode())
        socket.send_fds(self.channel, [record], [s.fileno() for s in fds])

    def receive(self):
        data = self.channel.recv(4096)
        if not data:
            raise EOFError
        v = RECORD.unpack(data)
        assert v[0] == MAGIC
        return {"kind": v[1], "decision": DECISIONS[v[2]] if v[2] < len(DECISIONS) else v[2],
                "number": v[3], "rule": v[4], "port": v[5], "lost": v[6], "count": v[7],
                "in": v[8], "out": v[9], "us": v[10], "text": v[11].split(b"\0")[0].decode()}

    def event(self, decision, text):
        """The next event of this decision about @text; others are kept for later."""
        for i, event in enumerate(self.pending):
            if (event["decision"], event["text"]) == (decision, text):
                return self.pending.pop(i)
        while True:
            event = self.receive()
            assert event["kind"] == EVENT, event
            self.events.append(event)
            if (event["decision"], event["text"]) == (decision, text):
                return event
            self.pending.append(event)

    def end(self):
        """As the supervisor does: END, events, DONE, the end."""
        self.send(END)
        while True:
            record = self.receive()
            if record["kind"] == DONE:
                self.log_lost, self.lost = record["number"], record["lost"]
                break
            self.events.append(record)
        status = self.process.wait(20)
        assert status == 0, status
        self.close()
        return self.events

    def close(self):
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()

    def log_lines(self):
        return [json.loads(line) for line in self.log]


# --- DNS ---------------------------------------------------------------------------------------
A, CNAME, TXT, AAAA, HTTPS = 1, 5, 16, 28, 65


def wire_name(name):
    return b"".join(bytes([len(x)]) + x.encode("latin1") for x in name.split(".") if x) + b"\0"


def query(name, kind=A, ident=0x1234, flags=0x0100):
    return struct.pack("!HHHHHH", ident, flags, 1, 0, 0, 0) + wire_name(name) + struct.pack("!HH", kind, 1)


def read_name(message, at):
    labels, end = [], None
    while message[at]:
        if message[at] >= 0xC0:
            end = end or at + 2
            at = (message[at] & 0x3F) << 8 | message[at + 1]
            continue
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin1"))
        at += 1 + message[at]
    return ".".join(labels), end or at + 1


def read_answer(message):
    ident, flags, questions, answers, authorities, _ = struct.unpack("!HHHHHH", message[:12])
    at, addresses = 12, []
    for _ in range(questions):
        _, at = read_name(message, at)
        at += 4
    for _ in range(answers):
        _, at = read_name(message, at)
        kind, _, _, size = struct.unpack("!HHIH", message[at:at + 10])
        at += 10
        if kind == A:
            addresses.append(socket.inet_ntoa(message[at:at + size]))
        elif kind == AAAA:
            addresses.append(socket.inet_ntop(socket.AF_INET6, message[at:at + size]))
        at += size
    return {"id": ident, "rcode": flags & 15, "addresses": addresses, "authorities": authorities}


class Resolver:
    """A DNS server: @zone maps a name to a list of (type, text), or to a function that gets (type, over) and returns bytes,
    None (no answer) or an rcode. What it was asked is in @asked."""

    def __init__(self, zone, address=("127.0.0.1", 5353), ttl=300):
        self.zone, self.asked, self.ttl = zone, [], ttl
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.udp.bind(address)
        self.tcp = socket.create_server(address, family=family)
        threading.Thread(target=self._serve_udp, daemon=True).start()
        threading.Thread(target=self._serve_tcp, daemon=True).start()

    def _serve_udp(self):
        while True:
            message, sender = self.udp.recvfrom(4096)
            for answer in self._answers(message, "udp"):
                self.udp.sendto(answer, sender)

    def _serve_tcp(self):
        while True:
            c, _ = self.tcp.accept()
            with c:
                size = struct.unpack("!H", c.recv(2, socket.MSG_WAITALL))[0]
                for answer in self._answers(c.recv(size, socket.MSG_WAITALL), "tcp"):
                    c.sendall(struct.pack("!H", len(answer)) + answer)

    def _answers(self, message, over):
        name, end = read_name(message, 12)
        kind = struct.unpack("!H", message[end:end + 2])[0]
        self.asked.append((name, kind, over))
        question = message[12:end + 4]
        entry = self.zone.get(name)
        if callable(entry):
            entry = entry(kind, over)
        if entry is None and name in self.zone:
            return []
        if isinstance(entry, bytes):
            return [message[:2] + entry[2:]]
        if isinstance(entry, list) and entry and isinstance(entry[0], bytes):
            return [answer.replace(b"ID", message[:2], 1) for answer in entry]
        if entry is None or isinstance(entry, int):
            rcode = 3 if entry is None else entry
            return [message[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, 0, 0, 0) + question]
        records = b""
        count = 0
        for owner, rkind, text in self._chain(name, entry, kind):
            data = wire_name(text) if rkind == CNAME else socket.inet_pton(
                socket.AF_INET if rkind == A else socket.AF_INET6, text)
            records += wire_name(owner) + struct.pack("!HHIH", rkind, 1, self.ttl, len(data)) + data
            count += 1
        return [message[:2] + struct.pack("!HHHHH", 0x8180, 1, count, 0, 0) + question + records]

    def _chain(self, name, entry, kind):
        for rkind, text in entry:
            if rkind == CNAME:
                yield name, CNAME, text
                yield from self._chain(text, self.zone.get(text, []), kind)
            elif rkind == kind:
                yield name, rkind, text


def serve(address, handle):
    """Each connection to @address in a thread of its own."""
    server = socket.create_server(address, backlog=1024)

    def loop():
        while True:
            try:
                c, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=run, args=(c,), daemon=True).start()

    def run(c):
        with c:
            try:
                handle(c)
            except OSError:
                pass  # the client's end of it is what is looked at

    threading.Thread(target=loop, daemon=True).start()
    return server


def echo(c):
    while True:
        data = c.recv(65536)
        if not data:
            return
        c.sendall(data)
