"""egress_seeds.py DIRECTORY - what carrel-egress reads in good order, as seeds of egress_fuzz.c."""
import ssl
import struct
import sys


def name(text):
    return b"".join(bytes([len(x)]) + x.encode() for x in text.split(".")) + b"\0"


def message(flags, kind, answers=b"", count=0):
    return struct.pack("!HHHHHH", 7, flags, 1, count, 0, 0) + name("example.org") + struct.pack("!HH", kind, 1) + answers


def record(owner, kind, data):
    return owner + struct.pack("!HHIH", kind, 1, 60, len(data)) + data


def hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="example.org").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def in_records(data, *sizes):
    out, body = b"", data[5:]
    for size in (*sizes, len(body)):
        out += data[:3] + struct.pack("!H", len(body[:size])) + body[:size]
        body = body[size:]
        if not body:
            break
    return out


FINISHED = b"\x14\x03\x03\0\1\1" + b"\x16\x03\x03\0\x10" + b"\0" * 16
TLS = hello()
SEEDS = {
    "query": b"\0" + message(0x0100, 1),
    "edns": b"\0" + message(0x0100, 28) + b"\0\0\x29\x04\xd0\0\0\0\0\0\0",
    "answer": b"\1" + message(0x8180, 1, record(b"\xc0\x0c", 1, b"\1\1\1\1"), 1) + b"\1",
    "alias": b"\1" + message(0x8180, 1, record(b"\xc0\x0c", 5, name("a.example.org")) + record(
        name("a.example.org"), 1, b"\1\1\1\1"), 2) + b"\1",
    "none": b"\1" + message(0x8183, 1) + record(b"\xc0\x0c", 6, b"\0\0" + b"\0\0\0\x2a" * 5) + b"\1",
    "hello": b"\2" + TLS,
    "records": b"\x42" + in_records(TLS, 1, 5, 100),
    "finished": b"\x2a" + TLS + FINISHED,
    "early": b"\x12" + TLS + b"\x17\x03\x03\0\5early",
    "again": b"\x1e" + TLS + b"\x14\x03\x03\0\1\1" + TLS,
    "get": b"\3GET http://Example.org:81/a?b HTTP/1.1\r\nHost: x\r\nConnection: X-A, close\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc",
    "post": b"\3POST http://[2001:db8::1] HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTE: x\r\n\r\n",
    "connect": b"\3CONNECT example.org:443 HTTP/1.0\r\nProxy-Authorization: x\r\n\r\n",
    "response": b"\7HTTP/1.1 200 OK\r\nContent-Length: 3\r\nKeep-Alive: 5\r\n\r\nabc",
    "response-chunked": b"\7HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    "chunks": b"\x0b3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
    "chunks-strict": b"\x3b3\r\nabc\r\n0\r\n\r\n",
    "socks": b"\x0f\5\1\0\3\x0bexample.org\1\xbb",
    "socks-address": b"\x0f\5\1\0\1\x08\x08\x08\x08\1\xbb",
    "socks-methods": b"\x0f\5\2\0\2",
}
for key, seed in SEEDS.items():
    with open(f"{sys.argv[1]}/{key}", "wb") as f:
        f.write(seed)
