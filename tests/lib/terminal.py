#!/usr/bin/python3
"""A terminal with somebody at it, for the tests.

    terminal.py [--size ROWSxCOLS] COMMAND...     with a script of steps on stdin

The command gets a pseudo-terminal of its own, as its controlling one. Steps, one per line:
    expect TEXT      wait until TEXT has been shown behind what was expected last
    send TEXT        type TEXT; \\r, \\x03 and other escapes of Python as in a string
    size ROWSxCOLS   the window is resized
    signal NAME      to the command, not to its group
    modes            remember the terminal's modes; without it those that it began with
    same             the modes are those that were remembered
    hangup           the terminal goes away
    wait             for the command to end
Exit status: the command's (128+N for a signal); 99 where a step failed, which is then on stderr
together with all that was shown. What was shown goes to stdout.
"""
import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 120


def fail(why, shown):
    sys.stderr.write(f"terminal.py: {why}\nshown: {bytes(shown)!r}\n")
    sys.exit(99)


class Terminal:
    def __init__(self, command, size):
        self.shown, self.at, self.status, self.kept = bytearray(), 0, None, None
        # The slave stays open here: the terminal outlives the command and its modes can be read.
        self.master, self.slave = os.openpty()
        self.kept = self.modes()  # now: the command may change them at once
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for number in range(3):
                os.dup2(self.slave, number)
            os.closerange(3, 64)
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execvp(command[0], command)

    def read(self, seconds):
        """What there is, or comes within so long; whether there was anything."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            self.shown += os.read(self.master, 65536)
        except OSError:  # EIO: nobody has the other side open
            time.sleep(seconds)
            return False
        return True

    def expect(self, text):
        end = time.monotonic() + PATIENCE
        while (found := self.shown.find(text, self.at)) < 0:
            if time.monotonic() > end:
                fail(f"waited in vain for {text!r}", self.shown)
            self.read(0.1)
        self.at = found + len(text)

    def modes(self):
        return termios.tcgetattr(self.slave)

    def same(self):
        end = time.monotonic() + PATIENCE  # whoever puts them back may be a moment behind
        while self.modes() != self.kept:
            if time.monotonic() > end:
                fail(f"modes: {self.kept} became {self.modes()}", self.shown)
            self.read(0.05)

    def wait(self):
        end = time.monotonic() + PATIENCE
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
            elif time.monotonic() > end:
                fail("it does not end", self.shown)
            else:
                self.read(0.05)
        while self.read(0):  # a read gives a few KiB at most
            pass


def size_of(text):
    rows, columns = map(int, text.split("x"))
    return struct.pack("HHHH", rows, columns, 0, 0)


def step(terminal, verb, rest):
    text = rest.encode().decode("unicode_escape").encode("latin-1")
    if verb == "expect":
        terminal.expect(text)
    elif verb == "send":
        os.write(terminal.master, text)
    elif verb == "size":
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, size_of(rest))
    elif verb == "signal":
        os.kill(terminal.pid, getattr(signal, "SIG" + rest))
    elif verb == "modes":
        terminal.kept = terminal.modes()
    elif verb == "same":
        terminal.same()
    elif verb == "hangup":
        os.close(terminal.slave)
        os.close(terminal.master)
        terminal.read = time.sleep
    elif verb == "wait":
        terminal.wait()
    else:
        fail(f"no such step: {verb}", b"")


def main():
    arguments, size = sys.argv[1:], "24x80"
    if arguments[0] == "--size":
        size, arguments = arguments[1], arguments[2:]
    steps = [line.rstrip("\n").lstrip().partition(" ") for line in sys.stdin]
    terminal = Terminal(arguments, size_of(size))
    try:
        for verb, _, rest in steps:
            if verb:
                step(terminal, verb, rest)
        terminal.wait()
    except OSError as error:
        fail(str(error), terminal.shown)
    sys.stdout.buffer.write(terminal.shown)
    sys.stdout.flush()
    sys.exit(terminal.status)


main()
