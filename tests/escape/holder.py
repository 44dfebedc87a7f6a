"""holder.py map|cwd|flight PATH HITS DONE [CONTROL]: as hammer.py, with something else than an open descriptor.

map: a shared mapping of the file PATH. cwd: the directory PATH as working directory. flight: a descriptor of PATH that
was sent and is not received yet. All else is closed before PATH is covered again.
"""
import array
import mmap
import os
import socket
import sys
import time

mode, path, hits, done = sys.argv[1:5]
control = len(sys.argv) > 5  # where nothing is covered ever


def is_covered():
    if mode == "cwd":
        return not os.access(path, os.W_OK)
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return True
    return False


def hold():
    """What it takes to use PATH later; OSError where it is covered."""
    if mode == "cwd":
        os.chdir(path)
        if not os.access(".", os.W_OK):
            os.chdir("/")
            raise PermissionError
        return None
    fd = os.open(path, os.O_RDWR)
    try:
        if mode == "map":
            return mmap.mmap(fd, 4, mmap.MAP_SHARED)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        return ours, theirs
    finally:
        os.close(fd)


def use(held):
    if mode == "cwd":
        with open("evil", "w") as f:
            f.write("evil")
    elif mode == "map":
        held[:4] = b"evil"
    else:
        fds = array.array("i")
        _, data, _, _ = held[1].recvmsg(1, socket.CMSG_LEN(fds.itemsize))
        fds.frombytes(data[0][2][: fds.itemsize])
        os.pwrite(fds[0], b"evil", 0)


while not os.path.exists(done):
    for _ in range(500):
        try:
            held = hold()
        except OSError:
            continue
        while not is_covered() and not control:
            time.sleep(0.001)
        use(held)
        with open(hits, "a") as f:
            f.write(path + "\n")
