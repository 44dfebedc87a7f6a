"""hammer.py read|write PATH HITS DONE [CONTROL]: opens PATH as fast as it can, until DONE exists.

What it gets hold of it keeps until the path is covered again, and then uses: what was opened while something was
uncovered must be of no use then. HITS gets a line for each use that worked.
"""
import os
import sys
import time

mode, path, hits, done = sys.argv[1:5]
control = len(sys.argv) > 5  # where nothing is covered ever
flags = os.O_RDONLY if mode == "read" else os.O_WRONLY | os.O_APPEND


def use(fd):
    if mode == "write":
        os.write(fd, b"# evil\n")
        return True
    return os.pread(fd, 4096, 0) != b""


def is_bare(fd):
    return mode == "write" or os.fstat(fd).st_size > 0


def is_directory_covered():
    """It is not there: in a directory that is covered, or has the host removed it?"""
    above = os.path.dirname(path)
    try:
        return os.stat(above).st_dev != os.stat(os.path.dirname(above)).st_dev
    except OSError:
        return False


def is_covered():
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        return is_directory_covered()
    except OSError:
        return True
    bare = is_bare(fd)
    os.close(fd)
    return not bare


while not os.path.exists(done):
    for _ in range(500):
        try:
            fd = os.open(path, flags)
        except OSError:
            continue
        if is_bare(fd):
            while not is_covered() and not control:
                time.sleep(0.001)
            if use(fd):
                with open(hits, "a") as f:
                    f.write(path + "\n")
        os.close(fd)
