"""forge.py DIR HOME ROOT: records as no carrel made them, each for a directory of its own in ROOT.

Each kind of note in many shapes, the rest of the record as it should be: that names a directory at ROOT/carrel-ID, by
a path that is right and an inode that is not, or says of HOME/.ssh/id that it was absent in a way that must not count.
Prints how many were made.
"""
import os
import socket
import sys

records, home, root = sys.argv[1:]
letters = "abcdefghijklmnopqrstuvwxyz234567"
made = 0


def fresh():
    """A name for a record, and a directory with something in it for that to name."""
    global made
    number, text = made, ""
    for _ in range(20):
        text += letters[number % 32]
        number //= 32
    made += 1
    record = os.path.join(records, text)
    victim = os.path.join(root, "carrel-" + text)
    os.mkdir(victim, 0o700)
    open(os.path.join(victim, "file"), "w").close()
    os.mkdir(record, 0o700)
    return record, victim


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def sparse(path):
    with open(path, "wb") as f:
        f.truncate(1 << 40)


def listen(path):
    with socket.socket(socket.AF_UNIX) as s:
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        s.bind(os.path.basename(path))
        os.chdir(here)


def closed(path):
    write(path, b"")
    os.chmod(path, 0)


def deep(path):
    os.mkdir(path)
    here = os.getcwd()
    os.chdir(path)
    for _ in range(500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)


# What may stand where a note is expected.
shapes = [
    lambda p: write(p, b""),
    lambda p: write(p, b"\0"),
    lambda p: write(p, b"\n" * 100),
    lambda p: write(p, b"absent"),
    lambda p: write(p, b"\xff" * 4096),
    lambda p: write(p, os.urandom(1 << 20)),
    lambda p: write(p, b"absent\0" * 1000000),
    lambda p: write(p, b"99999999999999999999999999\n"),
    lambda p: write(p, b"-1\n"),
    lambda p: write(p, b"1 " * 2000),
    sparse,
    os.mkfifo,
    listen,
    closed,
    deep,
    os.mkdir,
    lambda p: os.symlink("/dev/zero", p),
    lambda p: os.symlink(home + "/.ssh/id", p),
    lambda p: os.symlink(home + "/.ssh", p),
    lambda p: os.symlink("/" + "x/" * 2000, p),
    lambda p: os.symlink("a" * 4095, p),
    lambda p: os.symlink(os.path.basename(p), p),
    lambda p: os.symlink("../" * 40 + home[1:] + "/.ssh", p),
    lambda p: os.symlink("1:2:3", p),
    lambda p: os.symlink("18446744073709551616:1", p),
]

# What a note of protected paths may not say; %h is the home.
notes = [
    "absent\0%h\0%h/.ssh/id\0000",                     # unfinished
    "absent\0%h/.ssh\0%h/.ssh\0000\0",                 # the root itself
    "absent\0%h\0/etc/../%h/.ssh/id\0000\0",           # not canonical
    "absent\0%h/.\0%h/./.ssh/id\0000\0",
    "absent\0%h/\0%h/.ssh/id\0000\0",
    "absent\0%h//.ssh\0%h//.ssh/id\0000\0",
    "absent\0/nowhere\0%h/.ssh/id\0000\0",             # not below its root
    "absent\0%h/.s\0%h/.ssh/id\0000\0",
    "absent\0%h\0%h/.ssh/id\00099999\0",               # more existed than there is
    "absent\0%h\0%h/.ssh/id\0-1\0",
    "absent\0%h\0%h/.ssh/id\0x\0",
    "absent\0%h\0\0000\0",
    "absent\0.\0.ssh/id\0000\0",
    "absent\0\0%h/.ssh/id\0000\0",
    "ABSENT\0%h\0%h/.ssh/id\0000\0",
    "present\0%h/.ssh/id\0",
    "protect\0%h/.ssh/id\0",                           # rules, where nothing was begun
    "watch\0%h/.ssh/id\0",
    "link\0%h/.ssh/id\0/x\0",
    "write\0%h\0",
    "init\0000\0001\0absent\0%h\0%h/.ssh/id\0000\0",   # no process has that number
    "init\0999999999999\0001\0absent\0%h\0%h/.ssh/id\0000\0",
    "begun\0001\0001\0001\0001\0%h\0write\0%h\0init\0001\0001\0absent\0%h\0%h/.ssh/id\0000\0",
    "begun\0001\0009999999999\0001\0001\0%h\0absent\0%h\0%h/.ssh/id\0000\0",
    "begun\0001\0001\0001\0001\0%h/../x\0absent\0%h\0%h/.ssh/id\0000\0",
    "begun\0001\0001\0001\0001\0%h\0begun\0001\0001\0001\0001\0%h\0absent\0%h\0%h/.ssh/id\0000\0",
    "begun\0001\0001\0001\0001\0%h\0protect\0%h/.ssh/../.ssh/id\0absent\0%h\0%h/.ssh/id\0000\0",
    "absent\0" + "/" + "x" * 5000 + "\0%h/.ssh/id\0000\0",
    "absent\0%h\0%h/.ssh/id/\0000\0",
    "absent\0%h\0%h/.ssh/id/.\0000\0",
    "absent\0%h\0%h/\0000\0",
    "absent\0%h\0%h/.ssh/missing\0000\0",              # what is not there stays away
    "absent\0%h\0%h/.ssh/id\0" + "9" * 300 + "\0",
]

for kind in "where", "inode", "protected", "keep", "output", "path", "promotion", "pad", "cgroup":
    for shape in shapes:
        record, victim = fresh()
        if kind != "where":
            os.symlink(victim, os.path.join(record, "where"))
        if kind != "inode":
            os.symlink("1:1", os.path.join(record, "inode"))
        shape(os.path.join(record, kind))
for note in notes:
    record, victim = fresh()
    os.symlink(victim, os.path.join(record, "where"))
    os.symlink("1:1", os.path.join(record, "inode"))
    write(os.path.join(record, "protected"), note.replace("%h", home).encode())
# Directories that are records of nothing, and places that are none.
for target in (home, home + "/.ssh", "/", "/etc", root, root + "/carrel-" + "x" * 20 + "/..", "carrel-" + "a" * 20):
    record, victim = fresh()
    os.symlink(target, os.path.join(record, "where"))
    st = os.stat(target if os.path.exists(target) else root)
    os.symlink("%d:%d" % (st.st_dev, st.st_ino), os.path.join(record, "inode"))
print(made)
