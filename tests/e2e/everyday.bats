#!/usr/bin/env bats
# Ordinary work in a session: builds, interpreters, git, and programs that must fail at once instead of hanging.
load ../lib/common
load ../lib/session

@test "make and gcc build and run a program" {
	need gcc make
	printf '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n' >main.c
	printf 'prog: main.o\n\tgcc -o $@ $<\nmain.o: main.c\n\tgcc -c -o $@ $<\n' >Makefile
	carrel run -- sh -c 'make -j2 >/dev/null && ./prog'
	assert_status 0
	assert_output built
	[[ -x prog ]]
}

@test "cmake configures and builds" {
	need cmake gcc make
	printf 'int main(void) { return 0; }\n' >main.c
	printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_executable(p main.c)\n' >CMakeLists.txt
	carrel run -- sh -c 'cmake -S . -B out -G "Unix Makefiles" >/dev/null && cmake --build out >/dev/null && out/p'
	assert_status 0
}

@test "python: venv, multiprocessing, sqlite, threads" {
	carrel run -- sh -c '/usr/bin/python3 -m venv --without-pip v && v/bin/python -c "import sys; assert sys.prefix.endswith(\"/v\")"'
	assert_status 0
	carrel run -- /usr/bin/python3 -c '
import multiprocessing, sqlite3, subprocess, threading
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(square, range(10))))
    db = sqlite3.connect("db"); db.execute("create table t (x)"); db.commit()
    t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
    subprocess.run(["true"], check=True)
'
	assert_status 0
	assert_output $'285\nthread'
}

@test "node, and npm running a script" {
	need node npm
	echo '{"name": "p", "version": "1.0.0", "scripts": {"hello": "node -e \"console.log(6*7)\""}}' >package.json
	carrel run -- npm run --silent hello
	assert_status 0
	assert_output 42
	[[ ! -e $HOME/.npm ]]
}

# git_in ARGUMENT...: git, with nothing of the caller's configuration.
git_in() {
	git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main "$@"
}

@test "git: status, commit, branch, worktree, clone of a local repository" {
	need git
	git_in init -q . && echo a >a && git_in add a && git_in commit -qm one
	cat >work <<-'END'
		set -e
		g() { git -c user.name=t -c user.email=t@example.org "$@"; }
		g status --porcelain >/dev/null
		echo b >b; g add b; g commit -qm two
		g checkout -q -b topic; echo c >c; g add c; g commit -qm three; g checkout -q main; g merge -q topic
		g worktree add -q wt topic; (cd wt; echo d >d; g add d; g commit -qm four)
		g stash list; g gc -q; g log --oneline | wc -l
		g clone -q . "$CARREL_SCRATCH/copy"; g -C "$CARREL_SCRATCH/copy" log --oneline | wc -l
	END
	carrel run --env GIT_CONFIG_NOSYSTEM -- sh work
	assert_status 0
	assert_output $'3\n3'
	[[ $(git -C "$WS" log --oneline | wc -l) == 3 ]]
	[[ -z $(git -C "$WS" status --porcelain -- a b c) ]]
	git -C "$WS" fsck --strict >/dev/null
}

@test "git: what the host would run cannot be planted" {
	need git
	git_in init -q . && echo a >a && git_in add a && git_in commit -qm one
	before=$(<.git/config)
	carrel run -- sh -c 'git config core.fsmonitor "touch /tmp/owned"; echo "#!/bin/sh" >.git/hooks/pre-commit; echo x >>.git/config; :' 2>/dev/null
	[[ $(<.git/config) == "$before" && ! -e .git/hooks/pre-commit ]]
}

@test "who and where: getpwuid, whoami, locale, date" {
	carrel run -- sh -c 'whoami; getent passwd "$(id -u)" | cut -d: -f1; locale >/dev/null; date +%Y >/dev/null; LC_ALL=C.UTF-8 printf "\303\244\n" | wc -m'
	assert_status 0
	assert_matches "$output" "^$(id -un)"$'\n'"$(id -un)"
}

@test "sudo and su are dead" {
	need sudo
	ends_soon carrel run -- sudo -n id
	[[ $status != 0 ]]
	refute_matches "$output" 'uid=0\(root\).*uid=0'
	is_root || refute_matches "$output" 'uid=0'
}

@test "without a network everything fails at once, and nothing hangs" {
	if command -v curl >/dev/null; then
		ends_soon carrel run -- curl -sS -m 1000 https://192.0.2.1/
		((status != 0))
	fi
	ends_soon carrel run -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
	((status != 0))
	assert_matches "$stderr" 'unreachable|denied|not permitted'
	ends_soon carrel run -- getent hosts carrel-test.example.org
	((status != 0))
	ends_soon carrel run -- /usr/bin/python3 -c 'import urllib.request; urllib.request.urlopen("http://example.org", timeout=1000)'
	assert_status 1
	assert_matches "$stderr" 'URLError|gaierror'
}

@test "a package manager fails with an error of the network or of rights, not with a crash" {
	need apt-get
	ends_soon carrel run --timeout 1000s -- apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=300 update
	((status != 0 && status < 124)) || fail 'a crash or a hang'
}

@test "a local server and its client work without a network" {
	carrel run -- /usr/bin/python3 -c '
import socket, threading
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        s = socket.create_server((host, 0), family=family)
    except OSError as error:
        assert family == socket.AF_INET6, error  # a kernel without IPv6
        continue
    threading.Thread(target=lambda: s.accept()[0].sendall(b"hello"), daemon=True).start()
    assert socket.create_connection(s.getsockname()[:2], timeout=120).recv(5) == b"hello"
print("ok")'
	assert_status 0
	assert_output ok
}

@test "net host reaches a listener of the host's loopback, net none does not" {
	/usr/bin/python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
import os; os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    c, _ = s.accept(); c.sendall(b"host\n"); c.close()' "$T/port" >/dev/null 2>&1 3>&- &
	server=$!
	wait_for test -e "$T/port"
	echo 'net host' >"$T/shared"
	local -a call=(bash -c 'cat </dev/tcp/127.0.0.1/'"$(<"$T/port")" --net host)
	for way in '--net host --' --net=host "--policy $T/shared --"; do
		carrel run $way "${call[@]}"
		assert_output host
	done
	# Init begins with what the words look like; what counts is the policy.
	for way in '' -- --net=none; do
		carrel run $way "${call[@]}"
		[[ $status != 0 && -z $output ]]
	done
	kill "$server"
}

@test "carrel in carrel is refused with a clear word, and works where the policy says nested" {
	cp "$CARREL" "$WS/carrel"
	carrel run -- ./carrel run --workspace "$WS" -- echo inner
	assert_status 125
	assert_output ''
	assert_matches "$stderr" '^carrel: .*(namespace)'
	assert_matches "$stderr" 'nested'
}

@test "nothing of the session is left in the home" {
	carrel run -- sh -c 'python3 -c "import json"; git --version >/dev/null 2>&1; :'
	# But carrel's own place for records, which has none, and one empty directory for the next.
	[[ $(cd "$HOME" && find . -mindepth 1 | sort | tr '\n' ' ') == \
		'./.local ./.local/state ./.local/state/carrel ./.local/state/carrel/sessions ./.local/state/carrel/sessions/.spare ' ]]
}
