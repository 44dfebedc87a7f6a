"""What a command can really do, against what `carrel why` says.

    why.py try PATH...             inside a session: tries each, one JSON array on stdout
    why.py calls NAME...           the same for system calls
    why.py compare SAID TRIED      two such files: exits 1 and says where they differ

What is tried is what an outcome of `carrel why --json` means: open(2) for reading; for writing, in a directory making
a file; making what is not there; connect(2).
"""

import ctypes
import errno
import json
import os
import platform
import socket
import stat
import sys

NUMBERS = {
    "x86_64": {"getpid": 39, "getppid": 110, "mount": 165, "umount2": 166, "bpf": 321, "keyctl": 250,
               "io_uring_setup": 425, "clone3": 435, "userfaultfd": 323, "getuid": 102, "pivot_root": 155,
               "swapon": 167, "add_key": 248, "perf_event_open": 298, "kexec_load": 246, "getrandom": 318},
    "aarch64": {"getpid": 172, "getppid": 173, "mount": 40, "umount2": 39, "bpf": 280, "keyctl": 219,
                "io_uring_setup": 425, "clone3": 435, "userfaultfd": 282, "getuid": 174, "pivot_root": 41,
                "swapon": 224, "add_key": 217, "perf_event_open": 241, "kexec_load": 104, "getrandom": 278},
}
# What the kernel itself may refuse with EPERM, behind the filter.
PRIVILEGED = {"mount", "umount2", "pivot_root", "swapon", "bpf", "keyctl", "add_key", "perf_event_open",
              "kexec_load", "io_uring_setup", "userfaultfd"}


def outcome(action):
    try:
        action()
    except OSError as e:
        return errno.errorcode[e.errno]
    return "ok"


def opened(path, flags):
    return outcome(lambda: os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)))


def made(path):
    def make():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            os.unlink(os.path.realpath(path))
        except FileNotFoundError:
            pass  # quarantined meanwhile: it was made
    return outcome(make)


def connected(path):
    def connect():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
    return outcome(connect)


def attempt(path):
    try:
        mode = os.stat(path).st_mode
    except OSError as e:
        name = errno.errorcode[e.errno]
        result = {"read": name, "write": name}
        if name != "ENOENT" or os.path.isdir(os.path.dirname(os.path.realpath(path))):
            result["make"] = made(path)
        return {"exists": False, "outcome": result}
    result = {"read": opened(path, os.O_RDONLY)}
    if stat.S_ISDIR(mode):
        result["write"] = made(os.path.join(path, ".why-probe"))
    else:
        result["write"] = opened(path, os.O_WRONLY)
    if stat.S_ISSOCK(mode):
        result["connect"] = connected(path)
    empty = stat.S_ISREG(mode) and result["read"] == "ok" and os.path.getsize(path) == 0
    return {"exists": True, "outcome": result, "empty": empty or stat.S_ISDIR(mode)}


def call(name):
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    if libc.syscall(NUMBERS[platform.machine()][name], 0, 0, 0, 0, 0, 0) >= 0:
        return {"outcome": {"call": "ok"}}
    return {"outcome": {"call": errno.errorcode[ctypes.get_errno()]}}


def differs(said, tried):
    """In what they do, or None."""
    if said["kind"] == "call":
        name, got = said["outcome"].get("call"), tried["outcome"]["call"]
        if name == "ok":
            return got if got == "ENOSYS" or (got == "EPERM" and said["subject"] not in PRIVILEGED) else None
        return None if name in (None, got) else f"{name}, not {got}"
    if said["exists"] != tried["exists"]:
        return f"exists: {said['exists']}"
    for key, name in said["outcome"].items():
        got = tried["outcome"].get(key)
        if got is not None and got != name:
            return f"{key}: {name}, not {got}"
    missing = set(tried["outcome"]) - set(said["outcome"])
    if missing and said["seen"] != "own":
        return f"nothing is said of {', '.join(missing)}"
    if said["seen"] == "empty" and not tried["empty"]:
        return "it is not empty"
    return None


def main():
    if sys.argv[1] == "try":
        print(json.dumps([attempt(p) for p in sys.argv[2:]]))
        return 0
    if sys.argv[1] == "calls":
        print(json.dumps([call(n) for n in sys.argv[2:]]))
        return 0
    with open(sys.argv[2], encoding="utf-8") as a, open(sys.argv[3], encoding="utf-8") as b:
        said, tried = json.load(a), json.load(b)
    wrong = 0
    if len(said) != len(tried) or not said:
        print(f"{len(said)} answers, {len(tried)} attempts", file=sys.stderr)
        return 1
    for one, other in zip(said, tried):
        difference = differs(one, other)
        if difference:
            wrong = 1
            print(f"{one['subject']}: {one['seen']}: {difference}", file=sys.stderr)
    return wrong


sys.exit(main())
