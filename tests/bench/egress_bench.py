#!/usr/bin/python3
"""egress_bench.py PROGRAM NOOP ROUNDS - carrel-egress against socat as a plain relay, both between the same client and server.

Each line: what, unit, ours, the reference's name, the reference, the aim, and `more` where larger is better. Server and client are
processes of their own. What is compared runs in turns; figures are medians.
"""
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "egress"))
from world import LIBC, PUBLIC, Egress, Inner, Resolver, A, enter_outer, packed, query, read_answer  # noqa: E402

PROGRAM, NOOP, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
STREAM, CONNECTIONS, IDLE = 1 << 30, 500, 800
RULES = ["resolver 127.0.0.1:5353", "connections 2000", "allow good.example:8080,8081,8082\tbench"]


def median(values):
    return sorted(values)[len(values) // 2]


def say(*columns):
    print("\t".join(str(c) for c in columns), flush=True)


def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)


def in_child(work):
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        try:
            work()
        finally:
            os._exit(0)
    return pid


def listen(port):
    return socket.create_server((PUBLIC, port), backlog=1024)


def send_stream(server):
    data = bytes(1 << 20)
    while True:
        c, _ = server.accept()
        with c:
            try:
                for _ in range(STREAM >> 20):
                    c.sendall(data)
            except OSError:
                pass  # who asked whether socat listens


def answer_one(server):
    while True:
        c, _ = server.accept()
        with c:
            c.sendall(c.recv(1))


def keep_all(server):
    kept = []
    while True:
        kept.append(server.accept()[0])
        kept[-1].sendall(b"x")


def stream(address):
    buffer = bytearray(1 << 20)
    with socket.create_connection(address, 60) as c:
        got, begun = 0, time.monotonic()
        while got < STREAM:
            n = c.recv_into(buffer)
            if n == 0:
                raise EOFError("the stream ended")
            got += n
        return STREAM / (time.monotonic() - begun) / 1e9


def connections(address):
    begun = time.monotonic()
    for _ in range(CONNECTIONS):
        with socket.create_connection(address, 60) as c:
            c.sendall(b"x")
            if c.recv(1) != b"x":
                raise EOFError("no answer")
    return CONNECTIONS / (time.monotonic() - begun)


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def start_ms(rules):
    """From the spawn to READY, and to the end: only then it has taken its rules."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    text = os.memfd_create("rules")
    os.write(text, rules)
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (theirs.fileno(), text)]
    begun = time.monotonic()
    pid = os.posix_spawn(PROGRAM, [PROGRAM], {}, file_actions=[
        (os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)])
    for fd in (*high, text):
        os.close(fd)
    theirs.close()
    if len(ours.recv(4096)) < 16:
        raise EOFError("it is not ready")
    ready = time.monotonic() - begun
    ours.close()
    os.waitpid(pid, 0)
    return ready * 1e3, (time.monotonic() - begun) * 1e3


def noop_ms():
    begun = time.monotonic()
    pid = os.posix_spawn(NOOP, [NOOP], {})
    os.waitpid(pid, 0)
    return (time.monotonic() - begun) * 1e3


def bench_start():
    one = packed(RULES)
    many = packed(RULES[:2] + [f"allow n{i}.example:443\tbench" for i in range(10000)])
    few, few_end, many_end, noop = [], [], [], []
    for _ in range(ROUNDS):
        ready, end = start_ms(one)
        few.append(ready)
        few_end.append(end)
        many_end.append(start_ms(many)[1])
        noop.append(noop_ms())
    say("carrel-egress, spawn to ready", "ms", f"{median(few):.3f}", "spawn + wait", f"{median(noop):.3f}", 3)
    say("  spawn to end, with 10,000 rules", "ms", f"{median(many_end):.3f}", "one rule", f"{median(few_end):.3f}", 10)


def bench_relay(address, socat):
    streams, others, rates, other_rates = [], [], [], []
    for _ in range(5):
        streams.append(INNER.run(stream, (address, 8080)))
        others.append(stream((PUBLIC, 9080)))
        rates.append(INNER.run(connections, (address, 8081)))
        other_rates.append(connections((PUBLIC, 9081)))
    for process in socat:
        process.kill()
        process.wait()
    say("one stream through carrel-egress", "GB/s", f"{median(streams):.2f}", "socat", f"{median(others):.2f}", 0.8, "more")
    say("connections through it", "/s", f"{median(rates):.0f}", "socat", f"{median(other_rates):.0f}", 1, "more")


def bench_idle(egress, address):
    before = pss(egress.process.pid)
    held = [INNER.connect((address, 8082)) for _ in range(IDLE)]
    for c in held:
        if c.recv(1) != b"x":
            raise EOFError("no answer")
    each = (pss(egress.process.pid) - before) * 1024 / IDLE
    say("carrel-egress, idle", "KiB", before, "aim", 400, 1)
    say("  for each idle connection", "bytes", f"{each:.0f}", "aim", 2048, 1)


def main():
    children = [in_child(lambda p=port, w=work: w(listen(p))) for port, work in (
        (8080, send_stream), (8081, answer_one), (8082, keep_all))]
    Resolver({"good.example": [(A, PUBLIC)]})
    egress = Egress(PROGRAM, RULES, INNER, ports=(8080, 8081, 8082)).start()
    udp = INNER.udp()
    udp.sendto(query("good.example"), ("127.0.0.1", 53))
    address = read_answer(udp.recv(4096))["addresses"][0]
    try:
        if shutil.which("socat"):
            socat = [subprocess.Popen(["socat", f"TCP-LISTEN:{port + 1000},fork,reuseaddr,nodelay,backlog=1024",
                                       f"TCP:{PUBLIC}:{port},nodelay"], stderr=subprocess.DEVNULL,
                                      preexec_fn=die_with_parent) for port in (8080, 8081)]
            for port in (9080, 9081):  # until it listens
                while socket.socket().connect_ex((PUBLIC, port)) != 0:
                    pass
            bench_relay(address, socat)
        else:
            print("bench: no socat on this machine: the relay is left out", file=sys.stderr)
        bench_idle(egress, address)
    finally:
        egress.close()
        for pid in children:
            os.kill(pid, signal.SIGKILL)


enter_outer()
INNER = Inner()
bench_start()
main()
