"""raw.py - a client of `carrel mcp` that says exactly the bytes it is told to.

For the tests: whatever it waits for comes within a generous time or is a failure.
"""
import fcntl
import json
import os
import selectors
import subprocess
import sys
import time

CARREL = os.environ["CARREL"]
PATIENCE = 120
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def fail(text):
    sys.exit(f"raw.py: {text}")


class Client:
    def __init__(self, *settings, stderr=None):
        self.process = subprocess.Popen(
            [CARREL, "mcp", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.rest = b""
        self.heard = []
        self.last_id = 1000
        for stream in (self.process.stdin, self.process.stdout):
            fd = stream.fileno()
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)

    # --- bytes ------------------------------------------------------------------------------
    def wait(self, stream, event, end):
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            if not selector.select(max(0, end - time.monotonic())):
                fail(f"waited in vain; heard: {self.heard[-3:]}")

    def write(self, data):
        """All of it, whether or not there are answers to read: these are kept."""
        end = time.monotonic() + PATIENCE
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.process.stdin.fileno(), view) :]
            except BlockingIOError:
                self.wait(self.process.stdin, selectors.EVENT_WRITE, end)

    def write_some(self, data):
        """What goes in without waiting; the number of bytes."""
        try:
            return os.write(self.process.stdin.fileno(), data)
        except BlockingIOError:
            return 0

    def line(self):
        """The next line, parsed; None at the end."""
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            try:
                block = os.read(self.process.stdout.fileno(), 1 << 20)
            except BlockingIOError:
                self.wait(self.process.stdout, selectors.EVENT_READ, end)
                continue
            if not block:
                if self.rest:
                    fail(f"the last line has no end: {self.rest!r}")
                return None
            self.rest += block
        text, self.rest = self.rest.split(b"\n", 1)
        message = json.loads(text)
        self.heard.append(message)
        return message

    # --- messages ---------------------------------------------------------------------------
    def send(self, *values):
        self.write(b"".join(json.dumps(v).encode() + b"\n" for v in values))

    def answer(self, wanted):
        """The answer to the request `wanted`; notifications before it are passed over."""
        for seen in self.heard:
            if isinstance(seen, dict) and "method" not in seen and seen.get("id") == wanted:
                self.heard.remove(seen)
                return seen
        while True:
            message = self.line()
            if message is None:
                fail(f"the end, and no answer to {wanted}")
            if isinstance(message, dict) and "method" not in message and message.get("id") == wanted:
                self.heard.remove(message)
                return message

    def request(self, method, params=None, id=None):
        if id is None:
            self.last_id += 1
            id = self.last_id
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return id

    def ask(self, method, params=None):
        return self.answer(self.request(method, params))

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def start(self, revision="2025-11-25", capabilities=None):
        result = self.ask(
            "initialize",
            {
                "protocolVersion": revision,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "raw", "version": "1"},
            },
        )["result"]
        self.notify("notifications/initialized")
        return result

    def begin(self, name, arguments=None, meta=None):
        params = {"name": name, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        return self.request("tools/call", params)

    def call(self, name, arguments=None, meta=None):
        answer = self.answer(self.begin(name, arguments, meta))
        if "result" not in answer:
            fail(f"{name}: {answer}")
        return answer["result"]

    def good(self, name, arguments=None):
        result = self.call(name, arguments)
        if result["isError"]:
            fail(f"{name}: {result}")
        return result["structuredContent"]

    def refused(self, name, arguments=None):
        result = self.call(name, arguments)
        if not result["isError"]:
            fail(f"{name} succeeded: {result}")
        return result["content"][0]["text"]

    # --- the end ----------------------------------------------------------------------------
    def high_water_kib(self):
        with open(f"/proc/{self.pid}/status") as status:
            return next(int(l.split()[1]) for l in status if l.startswith("VmHWM"))

    def close(self):
        """The end of input; what is said until the end, and the exit status."""
        self.process.stdin.close()
        return self.drain()

    def drain(self):
        said = []
        while (message := self.line()) is not None:
            said.append(message)
        return said, self.process.wait(PATIENCE)


def same(have, want):
    if have != want:
        fail(f"have {have!r}, want {want!r}")


def contains(text, part):
    if part not in text:
        fail(f"{part!r} is not in {text!r}")
