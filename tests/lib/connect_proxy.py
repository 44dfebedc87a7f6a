"""connect_proxy.py DIR WEB [USER:PASSWORD] - the proxy of a host's network, for tests: CONNECT, any name is 127.0.0.1:WEB.

DIR/proxy has its port as soon as it listens, DIR/asked one line for each request: "NAME:PORT". What the first label of a name
says is done: refused, missing (502), garbage, endless, half (of an answer), pieces (an answer byte by byte), early (the
server's first bytes come with the answer).
"""

import base64
import os
import socket
import sys
import threading

GRANTED = b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n"
ANSWERS = {
    "refused": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
    "missing": b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    "garbage": b"SSH-2.0-proxy\r\n\r\n",
    "half": b"HTTP/1.1 200 Conn",
}


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def read_head(client):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1) or sys.exit()
    return head.decode("latin-1")


def grant(client, kind, web):
    server = socket.create_connection(("127.0.0.1", web))
    if kind == "pieces":
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GRANTED:
            client.sendall(bytes([byte]))
    elif kind == "early":
        client.sendall(GRANTED + b"early\n")
    else:
        client.sendall(GRANTED)
    back = threading.Thread(target=copy, args=(server, client))
    back.start()
    copy(client, server)
    back.join()


def endless(client):
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        client.sendall(b"X: " + b"y" * 1000 + b"\r\n")


def serve(client, directory, web, login):
    try:
        head = read_head(client)
        target = head.split()[1]
        with open(f"{directory}/asked", "a", encoding="ascii") as log:
            log.write(target + "\n")
        kind = target.split(".")[0]
        field = "Proxy-Authorization: Basic " + base64.b64encode(login.encode()).decode()
        if not head.startswith("CONNECT ") or head.count("\r\n") > 3 + bool(login):
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        elif login and f"\r\n{field}\r\n" not in head:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        elif kind in ANSWERS:
            client.sendall(ANSWERS[kind])
        elif kind == "endless":
            endless(client)
        else:
            grant(client, kind, web)
    except OSError:
        pass
    finally:
        client.close()


def main():
    directory, web = sys.argv[1], int(sys.argv[2])
    login = sys.argv[3] if len(sys.argv) > 3 else ""
    listener = socket.create_server(("127.0.0.1", 0))
    with open(f"{directory}/proxy.new", "w", encoding="ascii") as file:
        file.write(f"{listener.getsockname()[1]}\n")
    os.rename(f"{directory}/proxy.new", f"{directory}/proxy")
    while True:
        client = listener.accept()[0]
        threading.Thread(
            target=serve, args=(client, directory, web, login), daemon=True
        ).start()


main()
