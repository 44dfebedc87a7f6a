#!/usr/bin/python3
"""A client of the control protocol, written from docs/control-protocol.md alone.

    control_client.py ID VERB [ARGUMENT...]

Each answer is shown as a line: its name, and what it says. Status 0; 3 after an ERROR; 4 where the
connection ended before the answer. Verbs:
    layout                  the numbers of the document, as this client has them
    exec COMMAND...         run it; its stdout and stderr are shown as they are
    pty COMMAND...          the same at a terminal
    given-up                at a terminal, killed before START
    signal N FLAG COMMAND... the same; the signal is sent when it has said "ready"
    passed COMMAND...       the same; it has the end of a pipe with "passed" in it as descriptor 9
    detach NAME COMMAND...  a service
    many N COMMAND...       N services without a name
    show FLAG | stop NAME | end
    open FLAGS PATH         a file: its path inside, and what is in it
    bad WHAT                a request that must be refused; WHAT: see BAD
    stall                   ask without reading, until the connection is ended
"""
import array
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import sys
import tempfile
import threading

MAGIC, VERSION, SIZE = 0x6C727263, 1, 80
RECORD = struct.Struct("=IHHQIiIIiIIIQQQQ")
REQUEST = struct.Struct("=IIIIQQQQQQQQ")
BODY_MAX, FDS_MAX, BODY_FD, TEXT_MAX = 65536, 12, 4294967295, 1 << 20
KINDS = {
    1: "EXEC", 2: "START", 3: "SIGNAL", 4: "CONTINUE", 5: "CLOSE", 6: "SHOW", 7: "STOP", 8: "OPEN",
    9: "CLASSIFY", 10: "END", 11: "LOG", 12: "MOVED", 13: "ALLOW", 64: "ACCEPTED", 65: "TERMINAL", 66: "STOPPED", 67: "ENDED", 68: "TEXT",
    69: "OPENED", 70: "DONE", 71: "ERROR",
}
KIND = {name: number for number, name in KINDS.items()}
PATIENCE = 120


class Gone(Exception):
    pass


class Answer:
    def __init__(self, data, fds):
        (self.magic, self.version, kind, self.tag, self.execution, self.number, self.flag, self.streams,
         self.wait_status, self.started, self.limit, size, self.wall_us, *_) = RECORD.unpack(data[:SIZE])
        apart = size == BODY_FD
        if self.magic != MAGIC or self.version != VERSION or len(data) != SIZE + (0 if apart else size):
            raise ValueError("no record of this version")
        self.name, self.body, self.fds = KINDS[kind], data[SIZE:], fds
        if apart:
            if os.fstat(fds[-1]).st_size > TEXT_MAX:
                raise ValueError("too long a text")
            self.body = os.pread(fds[-1], TEXT_MAX, 0)

    def texts(self):
        return [text.decode() for text in self.body.split(b"\0")[:-1]]

    def say(self):
        if self.name == "ENDED":
            status = self.wait_status
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
            print(f"ENDED {how} started {self.started} limit {self.limit} errno {self.number}", flush=True)
        elif self.name == "ERROR":
            print("ERROR " + "|".join(self.texts()), flush=True)
        else:
            print(f"{self.name} {self.number} {self.body.decode(errors='replace')}".rstrip(), flush=True)


def state_directory():
    runtime, uid = os.environ.get("XDG_RUNTIME_DIR", ""), os.geteuid()
    if runtime.startswith("/"):
        return runtime + "/carrel"
    if os.access(f"/run/user/{uid}", os.W_OK | os.X_OK):
        return f"/run/user/{uid}/carrel"
    return f"/tmp/carrel-{uid}"


class Connection:
    def __init__(self, session):
        directory = os.open(state_directory(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        seen = os.fstat(directory)
        if seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            raise ValueError("the state directory is not to be trusted")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(f"/proc/self/fd/{directory}/{session}")
        os.close(directory)

    def send(self, kind, body=b"", fds=(), *, tag=7, execution=0, number=0, flag=0, streams=0,
             size=None, version=VERSION, magic=MAGIC):
        record = RECORD.pack(magic, version, KIND.get(kind, kind), tag, execution, number, flag, streams,
                             0, 0, 0, len(body) if size is None else size, 0, 0, 0, 0)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([record, body], beside, socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionResetError):
            pass  # why is there to be read

    def receive(self):
        for _ in range(2):
            try:
                data, beside, flags, _ = self.socket.recvmsg(
                    SIZE + BODY_MAX, socket.CMSG_SPACE(4 * FDS_MAX), socket.MSG_CMSG_CLOEXEC)
                break
            except ConnectionResetError:
                data = b""
        if not data:
            raise Gone
        fds = array.array("i")
        for level, kind, content in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content)
        return Answer(data, list(fds))

    def until(self, *names):
        while True:
            answer = self.receive()
            if answer.name == "ERROR":
                answer.say()
                sys.exit(3)
            if answer.name in names:
                return answer


def request(words, *, flags=0, env=(), cwd="", name="", timeout_ms=0, numbers=None):
    texts = [*words, *env, cwd, name] + ([] if numbers is None else [numbers])
    head = REQUEST.pack(flags | (32 if numbers is not None else 0), len(words), len(env), 0o022, timeout_ms, *[0] * 7)
    return head + b"".join(os.fsencode(text) + b"\0" for text in texts)


def sealed(body):
    fd = os.memfd_create("request", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(body)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def send_exec(c, body, fds, streams):
    if len(body) > BODY_MAX:
        fds = [*fds, sealed(body)]
        c.send("EXEC", fds=fds, streams=streams, size=BODY_FD)
    else:
        c.send("EXEC", body, fds, streams=streams)


def null():
    return os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)


def copy(fd, wanted=None, seen=None):
    said = b""
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:  # EIO: the other side of a terminal is closed
            data = b""
        if not data:
            return
        os.write(1, data)
        said += data
        if wanted and wanted in said:
            seen.set()


def execute(c, words, number=0, flag=0, numbers=None, fds=()):
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    send_exec(c, request(words, numbers=numbers), [null(), theirs, theirs, *fds], 7)
    os.close(theirs)
    execution = c.until("ACCEPTED").execution
    ready = threading.Event()
    reader = threading.Thread(target=copy, args=(ours, b"ready", ready))
    reader.start()
    if number:
        ready.wait(PATIENCE)
        c.send("SIGNAL", execution=execution, number=number, flag=flag)
    ended = c.until("ENDED")
    reader.join(PATIENCE)
    ended.say()


def detach_many(c, count, words):
    fd = null()
    for _ in range(count):
        send_exec(c, request(words, flags=2), [fd, fd, fd], 7)
        c.until("DONE")


def at_terminal(c, words):
    send_exec(c, request(words, flags=1), [], 0)
    execution = c.until("ACCEPTED").execution
    master = c.until("TERMINAL").fds[0]
    ready = threading.Event()
    reader = threading.Thread(target=copy, args=(master, b"ready", ready))
    reader.start()
    c.send("START", execution=execution, flag=1)
    while True:
        answer = c.until("STOPPED", "ENDED")
        if answer.name == "ENDED":
            break
        answer.say()
        c.send("CONTINUE", execution=execution, flag=1)
    c.send("CLOSE", execution=execution)
    reader.join(PATIENCE)
    answer.say()


def listening():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(tempfile.mktemp(dir=os.getcwd()))
    s.listen()
    return s.detach()


def regular():
    return os.open(tempfile.mkstemp(dir=os.getcwd())[1], os.O_RDWR)


def with_stream(make):
    return lambda c: c.send("EXEC", request(["/bin/true"]), [null(), make(), null()], streams=7)


def unsealed(c):
    fd = os.memfd_create("request", os.MFD_ALLOW_SEALING)
    os.write(fd, request(["/bin/true"]))
    c.send("EXEC", fds=[null(), null(), null(), fd], streams=7, size=BODY_FD)


def plain(body, **fields):
    return lambda c: c.send("EXEC", body, [null(), null(), null()], streams=7, **fields)


def passed(numbers, *fds):
    return lambda c: c.send("EXEC", request(["/bin/true"], numbers=numbers),
                            [null(), null(), null(), *[make() for make in fds]], streams=7)


BAD = {
    "version": lambda c: c.send("SHOW", version=2),
    "magic": lambda c: c.send("SHOW", magic=1),
    "short": lambda c: c.socket.send(b"crrl"),
    "kind": lambda c: c.send(99),
    "answer-kind": lambda c: c.send("ENDED"),
    "body-missing": lambda c: c.send("SHOW", size=100),
    "body-over": lambda c: c.send("STOP", b"x" * (BODY_MAX + 1)),
    "body-unwanted": lambda c: c.send("SHOW", b"x"),
    "descriptors": lambda c: c.send("SHOW", fds=[0] * 13),
    "descriptors-unwanted": lambda c: c.send("SHOW", fds=[0]),
    "streams-lied": lambda c: c.send("EXEC", request(["/bin/true"]), [0], streams=7),
    "streams-missing": lambda c: c.send("EXEC", request(["/bin/true"]), [null()], streams=1),
    "streams-many": lambda c: c.send("EXEC", request(["/bin/true"]), [null()] * 4, streams=15),
    "no-argument": plain(request([])),
    "text-missing": plain(request(["/bin/true"])[:-1]),
    "text-over": plain(request(["/bin/true"]) + b"x\0"),
    "relative-cwd": plain(request(["/bin/true"], cwd="x")),
    "variable": plain(request(["/bin/true"], env=["=x"])),
    "own-variable": plain(request(["/bin/true"], env=["CARREL_SESSION=x"])),
    "own-directory": plain(request(["/bin/true"], env=["PWD=/x"])),
    "flags": plain(request(["/bin/true"], flags=1 << 9)),
    "name-number": plain(request(["/bin/true"], flags=2, name="12")),
    "name": plain(request(["/bin/true"], flags=2, name="a b")),
    "terminal-service": plain(request(["/bin/true"], flags=3)),
    "unsealed": unsealed,
    "over-4m": lambda c: send_exec(c, request(["x" * (4 << 20)]), [null(), null(), null()], 7),
    "clock": plain(request(["/bin/true"], timeout_ms=1 << 63)),
    "looser": plain(request(["/bin/true"], timeout_ms=3600_000)),
    "directory": with_stream(lambda: os.open("/", os.O_RDONLY)),
    "regular": with_stream(regular),
    "listening": with_stream(listening),
    "pidfd": with_stream(lambda: os.pidfd_open(os.getpid())),
    "path": with_stream(lambda: os.open("/etc/passwd", os.O_PATH)),
    "passed-none": passed(""),
    "passed-missing": passed("3,9", null),
    "passed-over": passed("3", null, null),
    "passed-order": passed("9,3", null, null),
    "passed-twice": passed("3,3", null, null),
    "passed-stream": passed("2", null),
    "passed-number": passed("1024", null),
    "passed-many": passed("3,4,5,6,7,8,9,10,11", *[null] * 9),
    "passed-word": passed("3,", null),
    "passed-directory": passed("3", lambda: os.open("/", os.O_RDONLY)),
    "passed-regular": passed("3", regular),
    "passed-pidfd": passed("3,4", null, lambda: os.pidfd_open(os.getpid())),
    "passed-listening": passed("3", listening),
    "execution": lambda c: c.send("SIGNAL", execution=1, number=9),
    "start-nothing": lambda c: c.send("START", execution=1),
    "signal-number": lambda c: c.send("SIGNAL", execution=1, number=99),
    "service": lambda c: c.send("STOP", b"nothing\0"),
    "log": lambda c: c.send("LOG", b"nothing\0"),
    "no-word": lambda c: c.send("STOP", b"\0"),
    "log-no-word": lambda c: c.send("LOG", b"\0"),
    "log-no-service": plain(request(["/bin/true"], flags=16)),
    "no-nul": lambda c: c.send("STOP", b"nothing"),
    "open-relative": lambda c: c.send("OPEN", b"etc/passwd\0"),
    "open-flags": lambda c: c.send("OPEN", b"/etc/passwd\0", number=os.O_DIRECT),
}


def one_answer(c):
    answer = c.receive()
    answer.say()
    if answer.name == "ERROR":
        sys.exit(3)
    return answer


def stall(c):
    c.socket.settimeout(None)
    poll = select.poll()
    poll.register(c.socket, select.POLLHUP)
    while not poll.poll(0):
        try:
            c.socket.sendmsg([RECORD.pack(MAGIC, VERSION, 6, *[0] * 13)], [], socket.MSG_NOSIGNAL)
        except OSError:
            break
    print("dropped")


def open_file(c, flags, path):
    c.send("OPEN", os.fsencode(path) + b"\0", number=flags)
    answer = one_answer(c)
    if answer.fds:
        print(os.read(answer.fds[0], 4096).decode(errors="replace") if not flags & 3 else
              os.write(answer.fds[0], b"written\n"))


def main():
    if sys.argv[1:] == ["layout"]:
        assert RECORD.size == REQUEST.size == SIZE
        for name, number in KIND.items():
            print(f"CONTROL_{name} {number}")
        print(f"CONTROL_VERSION {VERSION}\nCONTROL_BODY_MAX {BODY_MAX}\nCONTROL_FDS_MAX {FDS_MAX}")
        return
    session, verb, *rest = sys.argv[1:]
    c = Connection(session)
    try:
        if verb == "exec":
            execute(c, rest)
        elif verb == "passed":
            fd, end = os.pipe2(os.O_CLOEXEC)
            os.write(end, b"passed\n")
            os.close(end)
            execute(c, rest, numbers="9", fds=[fd])
        elif verb == "long":
            execute(c, ["sh", "-c", "echo ${#1}", "sh", "x" * int(rest[0])] + ["y"] * 500)
        elif verb == "pty":
            at_terminal(c, rest)
        elif verb == "given-up":
            send_exec(c, request(["/bin/true"], flags=1), [], 0)
            c.send("SIGNAL", execution=c.until("ACCEPTED").execution, number=9, flag=1)
            c.until("ENDED").say()
        elif verb == "signal":
            execute(c, rest[2:], int(rest[0]), int(rest[1]))
        elif verb == "detach":
            body = request(rest[1:], flags=2, name=rest[0])
            send_exec(c, body, [null(), null(), null()], 7)
            if one_answer(c).name == "ACCEPTED":
                one_answer(c)
        elif verb == "many":
            detach_many(c, int(rest[0]), rest[1:])
        elif verb == "show":
            c.send("SHOW", flag=int(rest[0]))
            print(c.until("TEXT").body.decode())
        elif verb == "stop":
            c.send("STOP", os.fsencode(rest[0]) + b"\0")
            one_answer(c)
        elif verb == "open":
            open_file(c, int(rest[0]), rest[1])
        elif verb == "end":
            c.send("END")
            one_answer(c)
        elif verb == "bad":
            BAD[rest[0]](c)
            one_answer(c)
        elif verb == "stall":
            stall(c)
        else:
            sys.exit(f"no such verb: {verb}")
    except Gone:
        print("gone")
        sys.exit(4)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
