#!/usr/bin/env bats
# `carrel why`: a command then finds what it said of paths, hosts and system calls, with the line, its place and the
# remedy.
# ctest: once
load ../lib/common
load ../lib/session
load ../lib/live

WHY=$CARREL_SOURCE/tests/lib/why.py

# agrees SUBJECT... -- SETTING...: what is said of the paths is what a command finds.
agrees() {
	local -a subjects=()

	while [[ $1 != -- ]]; do
		subjects+=("$1")
		shift
	done
	shift
	"$CARREL" why --json "$@" -- "${subjects[@]}" >"$T/said" ||
		fail "why $*: no answer"
	"$CARREL" run --quiet "$@" -- /usr/bin/python3 -c "$(<"$WHY")" "${DO-try}" "${subjects[@]}" >"$T/tried" ||
		fail "run $*: no attempt"
	/usr/bin/python3 "$WHY" compare "$T/said" "$T/tried" || fail "with $*"
}

# agrees_live SUBJECT... -- SETTING...: the same of a live session that has these settings.
agrees_live() {
	local -a subjects=()

	while [[ $1 != -- ]]; do
		subjects+=("$1")
		shift
	done
	begin "${@:2}"
	"$CARREL" why -s "$ID" --json "${subjects[@]}" >"$T/said" || fail 'no answer'
	"$CARREL" exec -- /usr/bin/python3 -c "$(<"$WHY")" try "${subjects[@]}" >"$T/tried" || fail 'no attempt'
	/usr/bin/python3 "$WHY" compare "$T/said" "$T/tried" || fail "live, with ${*:2}"
	end_session
	unset CARREL_SESSION
}

# said SUBJECT FILTER [SETTING...]: a value of the one answer.
said() {
	"$CARREL" why --json "${@:3}" -- "$1" >"$T/one" || fail "no answer for $1"
	jq -r ".[0] | $2" "$T/one"
}

# a workspace and a directory beside it, with some of everything
furnish() {
	mkdir -p "$WS/.git/hooks" "$WS/dir/sub" "$T/else/secret" "$T/else/dir" "$T/else/shut" "$HOME/.ssh"
	echo cfg | tee "$WS/.git/config" "$WS/file" "$T/else/file" "$T/else/dir/file" "$T/else/shut/file" >/dev/null
	echo secret | tee "$T/else/secret/key" "$T/else/alone" "$HOME/.ssh/id" >/dev/null
	ln -s /etc/passwd "$WS/out"
	ln -s "$T/else/secret" "$WS/there"
	ln -s dir/../file "$WS/round"
	ln -s /tmp/nothing "$WS/nowhere"
	mkfifo "$WS/fifo"
	: >"$WS/nobody"
	chmod 0000 "$WS/nobody"
	chmod 0500 "$WS/dir/sub"
	chmod 0700 "$T/else/shut"
	chmod 0755 "$T" "$HOME"
	echo theirs | tee "$WS/theirs" "$WS/all" "$WS/group" "$T/else/theirs" "$T/else/all" >/dev/null
	chmod 0600 "$WS/theirs" "$T/else/theirs"
	chmod 0666 "$WS/all" "$T/else/all"
	chmod 0060 "$WS/group"
	if is_root; then # what is somebody else's, in a workspace that is root's
		chown 1234:1234 "$WS/theirs" "$WS/all" "$T/else/theirs" "$T/else/all"
		chown 1234 "$WS/group"
	fi
	# chcon: a program that no other test runs meanwhile. One that runs is ETXTBSY before Landlock is asked.
	PATHS=("$WS/theirs" "$WS/all" "$WS/group" "$T/else/theirs" "$T/else/all" /dev/tty
		"$WS" "$WS/file" "$WS/new" "$WS/.git" "$WS/.git/config" "$WS/.git/hooks" "$WS/.git/hooks/pre-commit"
		"$WS/dir" "$WS/dir/new" "$WS/dir/sub" "$WS/dir/sub/new" "$WS/out" "$WS/there" "$WS/there/key"
		"$WS/round" "$WS/nowhere" "$WS/nobody" "$WS/dir/../file" "$WS/.vscode" "$WS/.bashrc"
		"$T" "$T/else" "$T/else/file" "$T/else/new" "$T/else/secret" "$T/else/secret/key" "$T/else/secret/new"
		"$T/else/alone" "$T/else/dir" "$T/else/dir/file" "$T/else/dir/new" "$T/else/shut" "$T/else/shut/file"
		"$HOME" "$HOME/.ssh" "$HOME/.ssh/id" "$HOME/new" "$BASE"
		/ /etc /etc/passwd /etc/shadow /etc/new /usr/bin/chcon /run /run/new /tmp /tmp/new /var/tmp /dev/null
		/dev/zero /dev/shm /dev/shm/new /dev/kmsg /root /root/new /boot /nothing /nothing/at/all)
}

@test "what is said of paths is what a command finds, whatever the settings" {
	furnish
	agrees "${PATHS[@]}" --
	agrees "${PATHS[@]}" -- --workspace-mode ro
	agrees "${PATHS[@]}" -- --scratch-size 8M
	agrees "${PATHS[@]}" -- --read "$T/else" --hide "$T/else/secret" --hide "$T/else/alone"
	agrees "${PATHS[@]}" -- --write "$T/else" --hide "$T/else/secret" --protect "$T/else/dir"
	agrees "${PATHS[@]}" -- --write "$T/else" --read "$T/else/dir" --tmpfs "$T/else/secret"
	agrees "${PATHS[@]}" -- --read "$HOME/.ssh" --write "$T/else/shut"
	agrees "${PATHS[@]}" -- --bind "$T/else:/mnt" --write "$WS/.git/hooks"
	agrees "${PATHS[@]}" -- --hide "$WS/dir" --hide "$WS/file" --hide /tmp/new
	agrees "${PATHS[@]}" -- --nested
	agrees /mnt/file /mnt/new /mnt/secret /mnt/secret/key /mnt/shut/file /mnt -- \
		--bind "$T/else:/mnt:rw" --hide "$T/else/secret"
}

@test "the same under the strict profile, where only what is named is shown" {
	furnish
	agrees "${PATHS[@]}" -- --profile strict
	agrees "${PATHS[@]}" -- --profile strict --read "$T/else" --hide "$T/else/secret"
	agrees "${PATHS[@]}" -- --profile strict --write "$T/else/dir" --read "$HOME/.ssh" --workspace-mode ro
}

@test "the same with an overlay, where the protected files are the session's own" {
	furnish
	agrees "${PATHS[@]}" -- --workspace-mode overlay
}

@test "the same where the machine refuses namespaces, and Landlock stands for the mounts" {
	furnish
	export PATHS_FILE=$T/paths
	printf '%s\n' "${PATHS[@]}" >"$PATHS_FILE"
	in_no_namespaces() {
		unshare -Ur bash -c 'echo 0 >/proc/sys/user/max_user_namespaces || exit 77
			mapfile -t paths <"$PATHS_FILE"
			"$CARREL" why --json "$@" -- "${paths[@]}" >"$T/said" || exit 1
			"$CARREL" run --quiet "$@" -- /usr/bin/python3 -c "$(<"$WHY")" try "${paths[@]}" >"$T/tried"' bash --degraded "$@"
	}
	export WHY
	"$CARREL" doctor | grep -q 'landlock.*ABI' || skip 'no Landlock in this kernel'
	unshare -Ur true || skip 'no user namespaces here'
	in_no_namespaces || fail 'no answer, or no attempt'
	/usr/bin/python3 "$WHY" compare "$T/said" "$T/tried"
	in_no_namespaces --read "$T/else"
	/usr/bin/python3 "$WHY" compare "$T/said" "$T/tried"
	in_no_namespaces --write "$T/else"
	/usr/bin/python3 "$WHY" compare "$T/said" "$T/tried"
	run --separate-stderr unshare -Ur bash -c 'echo 0 >/proc/sys/user/max_user_namespaces
		"$CARREL" run --quiet --degraded -- /usr/bin/python3 -c "import socket; socket.socket()" 2>&1 | tail -1
		"$CARREL" why --degraded 127.0.0.1'
	assert_matches "$output" 'PermissionError: .Errno 13.*connect EACCES'
}

@test "the attempts are not blind: told of another session they differ" {
	furnish
	"$CARREL" why --json --read "$T/else" -- "${PATHS[@]}" >"$T/said"
	carrel run --quiet -- /usr/bin/python3 -c "$(<"$WHY")" try "${PATHS[@]}"
	assert_status 0
	printf '%s' "$output" >"$T/tried"
	run /usr/bin/python3 "$WHY" compare "$T/said" "$T/tried"
	assert_status 1
}

@test "what is said of system calls is what they answer" {
	local -a calls=(getpid getppid mount umount2 bpf keyctl io_uring_setup clone3 userfaultfd getuid pivot_root
		swapon add_key perf_event_open kexec_load getrandom)

	DO=calls
	agrees "${calls[@]}" --
	agrees "${calls[@]}" -- --profile strict
	agrees "${calls[@]}" -- --nested
	agrees "${calls[@]}" -- --syscall 'errno getppid' --syscall 'errno getuid' --syscall 'allow keyctl'
	[[ $(said getppid '.outcome.call' --syscall 'errno getppid') == EPERM ]]
	[[ $(said getppid '.lines[0].line' --syscall 'errno getppid') == 'syscall errno getppid' ]]
	[[ $(said getppid '.lines[0].place' --syscall 'errno getppid') == 'command line: --syscall' ]]
	[[ $(said getpid '.seen') == allowed && $(said clone3 '.seen') == unknown ]]
	[[ $(said socket '.seen') == depends ]]
	(($(said socket '.lines | length') > 2))
}

@test "what is said of hosts is what connect(2) answers" {
	local try='import errno, socket, sys
s = socket.socket()
try:
    s.connect((sys.argv[1], int(sys.argv[2])))
    print("ok")
except OSError as e:
    print(errno.errorcode[e.errno])' port

	/usr/bin/python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
import signal; signal.pause()' >"$T/port" 3>&- 4>&- &
	wait_for test -s "$T/port"
	port=$(<"$T/port")
	carrel run -- /usr/bin/python3 -c "$try" 192.0.2.1 9
	assert_output "$(said 192.0.2.1:9 '.outcome.connect')"
	assert_output ENETUNREACH
	# The host's loopback is another one, and with `net host` it is the same.
	[[ $(said "127.0.0.1:$port" '.seen') == own ]]
	carrel run -- /usr/bin/python3 -c "$try" 127.0.0.1 "$port"
	assert_output ECONNREFUSED
	[[ $(said "127.0.0.1:$port" '.seen' --net host) == host ]]
	carrel run --net host -- /usr/bin/python3 -c "$try" 127.0.0.1 "$port"
	assert_output ok
	[[ $(said example.org '.lines[0].line + "|" + .lines[0].place') == 'net none|profile:agent:'* ]]
	[[ $(said example.org '.changes[0].option') == '--allow example.org' ]]
	kill %1
}

@test "a socket of the host: what is said is what connect(2) does" {
	/usr/bin/python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); os.chmod(sys.argv[1], 0o777)
t = socket.socket(socket.AF_UNIX); t.bind(sys.argv[2]); t.listen(); os.chmod(sys.argv[2], 0o700)
print("ready", flush=True)
import signal; signal.pause()' "$WS/open" "$WS/shut" >"$T/ready" 3>&- 4>&- &
	wait_for test -s "$T/ready"
	agrees "$WS/open" "$WS/shut" --
	agrees "$WS/open" "$WS/shut" -- --workspace-mode ro
	agrees "$WS/open" "$WS/shut" -- --hide "$WS/open"
	agrees_live "$WS/open" "$WS/shut" -- --workspace-mode ro
	kill %1
}

@test "the line that decides is named with its place; so is that of a shipped text" {
	local line

	mkdir -p "$HOME/.ssh" "$T/else"
	printf '# two lines\nhide %s\n' "$T/else" >"$T/policy"
	line=$(said "$HOME/.ssh" '.lines[0].place' --read "$T")
	[[ $line == list:hide:* ]]
	[[ $(sed -n "${line##*:}p" "$CARREL_SOURCE/policy/hide") == 'hide ~/.ssh' ]] || fail "it is not $line"
	[[ $(said "$T/else" '.lines[0].place' --read "$T" --policy "$T/policy") == "$T/policy:2" ]]
	[[ $(said "$T/else" '.lines[0].line' --read "$T" --policy "$T/policy") == "hide $T/else" ]]
	[[ $(said "$T/else" '.lines[0].place' --read "$T" --hide "$T/else") == 'command line: --hide' ]]
	line=$(said mount '.lines[0].place')
	grep -q "$(sed -n "${line##*:}p" "$CARREL_SOURCE/policy/${line%:*}")" <(said mount '.lines[0].line')
}

# A remedy is taken at its word: with it, a command can.
# remedied SUBJECT TO [SETTING...]: sets OPTION, the words.
remedied() {
	local option

	option=$(said "$1" ".changes[] | select(.to == \"$2\") | .option" "${@:3}")
	[[ -n $option && $option != null ]] || fail "$1: nothing changes it: $(<"$T/one")"
	eval "OPTION=($option)"
}

@test "the remedy that is named works" {
	furnish
	remedied "$HOME/.ssh/id" read
	carrel run "${OPTION[@]}" -- cat "$HOME/.ssh/id"
	assert_output secret
	remedied "$WS/.git/config" write
	carrel run "${OPTION[@]}" -- sh -c "echo more >>'$WS/.git/config'"
	assert_status 0
	remedied "$WS/file" write --workspace-mode ro
	carrel run --workspace-mode ro "${OPTION[@]}" -- sh -c "echo more >>'$WS/file'"
	assert_status 0
	remedied "$T/else/file" read
	carrel run "${OPTION[@]}" -- cat "$T/else/file"
	assert_output cfg
	remedied "$T/else/fresh" make --read "$T"
	carrel run --read "$T" "${OPTION[@]}" -- touch "$T/else/fresh"
	[[ -e $T/else/fresh ]]
	# What is protected and is not there: no line lets a session make it, and it says what comes first.
	[[ $(said "$WS/.vscode" '.changes[0].fixed') == "no line lets a session make it; once it is there, --write $WS/.vscode" ]]
	mkdir "$WS/.vscode"
	remedied "$WS/.vscode" write
	carrel run "${OPTION[@]}" -- mkdir "$WS/.vscode/made"
	assert_status 0
	[[ -d $WS/.vscode/made ]] || fail 'it was quarantined'
	remedied 'keyctl' call
	DO=calls agrees keyctl -- "${OPTION[@]}"
	echo odd >"$T/else/a \$b'c"
	remedied "$T/else/a \$b'c" read
	carrel run "${OPTION[@]}" -- cat "$T/else/a \$b'c"
	assert_output odd
}

@test "what no option changes has none: modes, what is not there, the session's own" {
	furnish
	[[ $(said /nothing '.seen + " " + (.changes | map(select(.to == "read")) | length | tostring)') == 'absent 0' ]]
	[[ $(said "$WS/nobody" '.seen') == closed ]]
	assert_matches "$(said "$WS/nobody" '.because')" 'mode 0000'
	[[ $(said /proc/self/status '.seen') == own ]]
	[[ $(said "$WS/file" '.changes | length') == 0 ]]
	[[ $(said "$T/else" '.changes[0].fixed' --read "$T" --hide "$T/else") == *'command line: --hide'* ]]
}

@test "a lock of the system policy is named in place of a remedy" {
	need_root
	mkdir "$T/else"
	run --separate-stderr unshare -m sh -c '
		mount -t tmpfs none /etc -o mode=755 && mkdir /etc/carrel
		printf "lock hide net syscalls\nhide %s\n" "$2" >/etc/carrel/policy
		"$1" why --json "$2" example.org keyctl' sh "$CARREL" "$T/else"
	assert_status 0
	[[ $(jq -r '.[0].changes[0].option' <<<"$output") == null ]]
	assert_matches "$(jq -r '.[0].changes[0].fixed' <<<"$output")" "'read' loosens 'hide'.*/etc/carrel/policy:1"
	assert_matches "$(jq -r '.[1].changes[0].fixed' <<<"$output")" "'allow' loosens 'net'.*/etc/carrel/policy:1"
	assert_matches "$(jq -r '.[2].changes[0].fixed' <<<"$output")" "loosens 'syscalls'.*/etc/carrel/policy:1"
}

@test "words are told apart: a slash is a path, a name of a call is the call, ./ makes it a path" {
	: >"$WS/read"
	: >Makefile
	: >example.org
	[[ $(said read '.kind') == call && $(said ./read '.kind') == path ]]
	carrel why read
	assert_matches "$stderr" "^carrel: note: 'read' is taken for the system call; the file of that name is ./read$"
	[[ $(said Makefile '.kind') == path && $(said example.org '.kind') == path ]]
	[[ $(said example.org:80 '.kind') == host && $(said localhost '.kind') == host ]]
	[[ $(said '[::1]:80' '.kind') == host && $(said ::1 '.kind') == host && $(said 192.0.2.1 '.kind') == host ]]
	[[ $(said write '.kind') == call && $(said . '.kind') == path ]]
}

@test "a live session says the same, without a setting" {
	furnish
	begin --read "$T/else" --hide "$T/else/secret" --syscall 'errno getppid'
	"$CARREL" why -s "$ID" --json "${PATHS[@]}" getppid mount example.org >"$T/said"
	"$CARREL" exec -- /usr/bin/python3 -c "$(<"$WHY")" try "${PATHS[@]}" >"$T/tried"
	jq '[.[] | select(.kind == "path")]' "$T/said" >"$T/paths"
	/usr/bin/python3 "$WHY" compare "$T/paths" "$T/tried"
	[[ $(jq -r '.[-3].outcome.call + .[-3].lines[0].line' "$T/said") == 'EPERMsyscall errno getppid' ]]
	[[ $(jq -r '.[-2].outcome.call + " " + .[-2].lines[0].place' "$T/said") == 'EPERM default.policy:'* ]]
	[[ $(jq -r '.[-1].seen + " " + .[-1].lines[0].line' "$T/said") == 'no-network net none' ]]
	# A setting means a new session, where nothing is named; without one it is that of the environment.
	[[ $(said "$T/else/secret" '.seen' --net none) == absent && $(jq -r '.[0].session' "$T/one") == null ]]
	[[ $(said "$T/else/secret" '.session') == "$ID" ]]
	carrel why --json "$T/else/secret"
	[[ $(jq -r '.[0] | .seen + " " + .lines[0].line + " " + .changes[0].option' <<<"$output") == \
		"empty hide $T/else/secret --read $T/else/secret" ]]
	end_session
}

@test "and so it does with other settings: read-only, in memory, only what is named" {
	furnish
	agrees_live "${PATHS[@]}" -- --workspace-mode ro --scratch-size 8M
	agrees_live "${PATHS[@]}" -- --profile strict --write "$T/else" --hide "$T/else/secret" --protect "$T/else/dir"
	agrees_live "${PATHS[@]}" -- --workspace-mode overlay --read "$HOME/.ssh"
}

@test "for people: one block, nothing that a terminal obeys" {
	local odd

	odd=$WS/$'a\nb\e[31m'
	: >"$odd"
	carrel why "$odd" mount
	assert_status 0
	assert_matches "$output" 'a\\x0ab\\x1b\[31m'
	assert_matches "$output" '  seen     writable: read ok, write ok'
	assert_matches "$output" '  seen     refused: call EPERM'
	[[ -z $stderr ]] || fail 'something was said'
}

@test "nothing is changed by asking" {
	local before

	before=$(find "$T" | sort)
	carrel why "$WS/new" "$HOME/.ssh" mount example.org
	assert_status 0
	[[ $(find "$T" | sort) == "$before" ]] || fail 'something was made'
}
