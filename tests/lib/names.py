"""The world outside of the tests of the network: a DNS server with a zone of its own, and a web server.

names.py DIR [--tls CERTIFICATE KEY ADDRESS] NAME=ADDRESS ...: serves until it is killed. When all of it listens, DIR/world has a
line of shell, DNS=PORT WEB=PORT. Each query is a line of DIR/queries, TYPE NAME. The web server answers every GET
below /file/ with what is in DIR/www, and any other with a line that names the host that was asked for.
"""
import functools
import http.server
import os
import socket
import ssl
import sys
import threading

TYPES = {1: "A", 28: "AAAA", 16: "TXT", 65: "HTTPS"}


def answer(query, zone, note):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += query[at] + 1
    name, kind = ".".join(labels).lower(), int.from_bytes(query[at + 1 : at + 3], "big")
    question = query[12 : at + 5]
    print(TYPES.get(kind, kind), name, file=note, flush=True)
    found = [a for a in zone.get(name, []) if kind == (28 if ":" in a else 1)]
    records = b""
    for address in found:
        raw = socket.inet_pton(socket.AF_INET6 if kind == 28 else socket.AF_INET, address)
        records += b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1\0\0\1\x2c" + len(raw).to_bytes(2, "big") + raw
    flags = b"\x81\x80" if name in zone else b"\x81\x83"
    return query[:2] + flags + b"\0\1" + len(found).to_bytes(2, "big") + b"\0\0\0\0" + question + records


def serve_names(server, zone, note):
    while True:
        query, client = server.recvfrom(4096)
        server.sendto(answer(query, zone, note), client)


class Web(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/file/"):
            self.path = self.path[len("/file") :]
            super().do_GET()
            return
        body = f"hello {self.headers.get('Host', '-').split(':')[0]}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):  # pylint: disable=arguments-differ
        pass


def main():
    where, words = sys.argv[1], sys.argv[2:]
    tls = None
    if words and words[0] == "--tls":
        tls, words = words[1:4], words[4:]
    zone = {}
    for word in words:
        name, address = word.split("=")
        zone.setdefault(name, []).append(address)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 0))
    os.makedirs(where + "/www", exist_ok=True)
    handler = functools.partial(Web, directory=where + "/www")
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with open(where + "/queries", "w", encoding="ascii", errors="replace") as note:
        threading.Thread(target=serve_names, args=(names, zone, note), daemon=True).start()
        if tls:
            secure = http.server.ThreadingHTTPServer((tls[2], 443), handler)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls[0], tls[1])
            secure.socket = context.wrap_socket(secure.socket, server_side=True)
            threading.Thread(target=secure.serve_forever, daemon=True).start()
        with open(where + "/world.new", "w", encoding="ascii") as f:
            f.write(f"DNS={names.getsockname()[1]} WEB={web.server_address[1]}\n")
        os.rename(where + "/world.new", where + "/world")
        web.serve_forever()


main()
