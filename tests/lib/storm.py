#!/usr/bin/python3
"""Many live sessions at once, used and abused; for tests/e2e/stress.bats and tests/soak/run.

    storm.py CARREL many SESSIONS EXECUTIONS    so many sessions, each with executions at once
    storm.py CARREL long EXECUTIONS             one session; nothing of its supervisor may grow
    storm.py CARREL kill SECONDS SEED           SIGKILL at random; sessions beside it are not harmed
    storm.py CARREL gc SECONDS                  gc against gc, start and end
    storm.py CARREL end ROUNDS                  end against exec
Status 0: as promised; else what was not is on stderr. Sessions are ended; what was killed is gc's.
"""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

CARREL = sys.argv[1]
PATIENCE = 120
IDLE_MONITORS = 16  # more than a supervisor keeps waiting (SERVER_IDLE), far less than there are executions
DOCUMENTED = ("is ending", "session ended", "does not answer", "no such live session", "not known",
              "session directory", "cannot be asked", "as many",
              "init ended before the session")
failures = []


def fail(text):
    failures.append(text)


def run(*words, **more):
    return subprocess.run([CARREL, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, **more)


def start():
    done = run("session", "start", "--json")
    if done.returncode:
        raise RuntimeError(f"start: {done.stderr}")
    return json.loads(done.stdout)


def end(session):
    done = run("session", "end", "-s", session["session"])
    if done.returncode:
        fail(f"end: {done.stderr}")


def all_at_once(count, work):
    """work(0) to work(count - 1), each in a thread of its own, sixteen at a time."""
    turn = threading.Semaphore(16)

    def one(index):
        with turn:
            try:
                work(index)
            except Exception as error:  # noqa: everything that went wrong is told
                fail(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def many(sessions, executions):
    begun = [None] * sessions

    def begin(i):
        begun[i] = start()

    def use(i):
        session = begun[i // executions]["session"]
        done = run("exec", "-s", session, "--", "sh", "-c", f"echo {session}-{i}; exit {i % 7}")
        if (done.returncode, done.stdout) != (i % 7, f"{session}-{i}\n"):
            fail(f"execution {i}: {done.returncode} {done.stdout!r} {done.stderr!r}")

    all_at_once(sessions, begin)
    all_at_once(sessions * executions, use)
    listed = json.loads(run("session", "list", "--json").stdout)
    if len(listed) != sessions:
        fail(f"{len(listed)} sessions are listed, not {sessions}")
    all_at_once(sessions, lambda i: end(begun[i]))


def size_of(session):
    """Descriptors, resident KiB, entries of the session directory, processes."""
    pid = session["pid"]
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    entries = sum(len(d) + len(f) for _, d, f in os.walk(session["session_dir"]))
    inside = run("exec", "-s", session["session"], "--", "sh", "-c", "ls -d /proc/[0-9]* | wc -l")
    return len(os.listdir(f"/proc/{pid}/fd")), resident, entries, int(inside.stdout)


def long(executions):
    session = start()
    name = session["session"]

    def use(i):
        kind = i % 4
        words = {0: ["true"], 1: ["sh", "-c", "sleep 1000 & exit 1"], 2: ["no-such-command"],
                 3: ["sh", "-c", "kill -9 $$"]}[kind]
        done = run("exec", "-s", name, "--", *words)
        if done.returncode != {0: 0, 1: 1, 2: 127, 3: 137}[kind]:
            fail(f"execution {i}: {done.returncode} {done.stderr!r}")

    all_at_once(40, use)
    before = size_of(session)
    all_at_once(executions, use)
    deadline = time.monotonic() + PATIENCE
    while True:  # the last monitors may be a moment behind
        after = size_of(session)
        # Some monitors wait for the next execution: how many depends on how many were busy at once.
        grown = [a - b for a, b in zip(after, before)]
        if max(grown[0], grown[3]) <= IDLE_MONITORS or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if max(grown[0], grown[3]) > IDLE_MONITORS or grown[1] > 256 or grown[2] > 0:
        fail(f"descriptors, KiB, entries, processes: {before} became {after}")
    print(f"before {before} after {after}")
    end(session)


def documented(done, words):
    if done.returncode == 125 and not any(text in done.stderr for text in DOCUMENTED):
        fail(f"{words}: {done.stderr!r}")


def marked(pid):
    """Whether it is the test's own, by the limit that common.bash lowers (or the soak's: all have it)."""
    def limit(who):
        with open(f"/proc/{who}/limits", encoding="ascii") as file:
            return [line for line in file if line.startswith("Max msgqueue size")]
    return limit(pid) == limit("self")


def children_of(pid):
    done = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def kill_own(pid):
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if marked(pid):
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except (ProcessLookupError, FileNotFoundError):
        pass
    finally:
        os.close(held)


def kill(seconds, seed):
    dice, stop = random.Random(seed), time.monotonic() + seconds
    bystander = start()
    service = run("exec", "-s", bystander["session"], "--detach", "--name", "one", "--", "sleep", "1000")
    if service.returncode:
        fail(f"service: {service.stderr}")

    def victim(session):
        """One of the client, the supervisor, init, the payload."""
        client = subprocess.Popen([CARREL, "exec", "-s", session["session"], "--", "sh", "-c",
                                   "setsid -f sleep 1000; echo ready; sleep 1000"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        client.stdout.read(dice.choice((0, 1)))
        children = children_of(session["pid"])
        inside = [pid for child in children for pid in children_of(child)]
        kill_own(dice.choice([client.pid, session["pid"], *children, *inside]))
        return client

    def round_of(_):
        session = start()
        clients = [victim(session) for _ in range(3)]
        done = run("exec", "-s", session["session"], "--timeout", "5s", "--", "true")
        documented(done, "exec")
        done = run("session", "end", "-s", session["session"])
        documented(done, "end")
        kill_own(session["pid"])
        for client in clients:
            client.wait(PATIENCE)
            client.stdout.close()

    rounds = 0
    while time.monotonic() < stop and not failures:
        all_at_once(4, round_of)
        rounds += 1
    alive = run("exec", "-s", bystander["session"], "--", "echo", "alive")
    shown = json.loads(run("session", "show", "-s", bystander["session"], "--json").stdout or "{}")
    if alive.stdout != "alive\n" or [x["name"] for x in shown.get("executions", [])] != ["one"]:
        fail(f"the session beside it was harmed: {alive.stderr!r} {shown}")
    end(bystander)
    print(f"{rounds} rounds")


def gc(seconds):
    stop = time.monotonic() + seconds

    def sweep(_):
        while time.monotonic() < stop:
            done = run("gc")
            if done.returncode:
                fail(f"gc: {done.stderr!r}")

    def live(_):
        while time.monotonic() < stop:
            session = start()
            done = run("exec", "-s", session["session"], "--", "echo", "x")
            if done.stdout != "x\n":
                fail(f"gc took a living session: {done.stderr!r}")
            end(session)
            session = start()
            kill_own(session["pid"])

    all_at_once(6, lambda i: sweep(i) if i < 3 else live(i))


def end_against_exec(rounds):
    def one(i):
        session = start()
        execs = [subprocess.Popen([CARREL, "exec", "-s", session["session"], "--", "sleep", "1000"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) for _ in range(1 + i % 8)]
        end(session)
        for process in execs:
            _, text = process.communicate(timeout=PATIENCE)
            if process.returncode not in (125, 143, 137):
                fail(f"exec against end: {process.returncode} {text!r}")
            elif process.returncode == 125 and not any(known in text for known in DOCUMENTED):
                fail(f"exec against end: {text!r}")

    all_at_once(rounds, one)


def main():
    verb, numbers = sys.argv[2], [int(word) for word in sys.argv[3:]]
    {"many": many, "long": long, "kill": kill, "gc": gc, "end": end_against_exec}[verb](*numbers)
    for text in failures[:20]:
        print(f"storm: {text}", file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
