#!/usr/bin/env bats
# Input that is odd and has to work.
# ctest: once
load ../lib/common
load ../lib/session

# works_in DIR: a session with DIR as the current directory reads and writes there, under the same path.
works_in() {
	(
		cd "$1" || exit 9
		rm -f made
		echo given >given
		"$CARREL" run -- sh -c 'cat given && echo made >made && pwd -P >here' >"$T/out" || exit
		[[ $(<"$T/out") == given && $(<made) == made && $(<here) == "$(pwd -P)" ]]
	) || fail "not in $1"
	assert_nothing_left
}

@test "a workspace with spaces, newlines, quotes, glob characters, bytes that are no UTF-8" {
	for name in 'a b' $'new\nline' "it's" 'dou"ble' '*' '[x]' 'a$HOME' '~' 'a\b' $'\xff\xfe' '-rf' 'a:b' '#c' "$(printf 'x%.0s' {1..255})"; do
		mkdir "$WS/$name"
		works_in "$WS/$name"
		carrel run --workspace "$WS/${name//\$/\\$}" -- touch "$WS/$name/named"
		assert_status 0
		[[ -e $WS/$name/named ]]
	done
}

@test "a workspace far down: paths of nearly PATH_MAX" {
	local name dir=$WS

	name=$(printf 'x%.0s' {1..200})
	while ((${#dir} < 3600)); do
		dir+=/$name
		mkdir "$name"
		cd "$name"
		((${#dir} < 1600 || ${#dir} > 3400)) || works_in "$dir"
	done
	works_in "$dir"
}

@test "a workspace that is a symlink, or reached through one" {
	mkdir "$T/real" "$T/real/sub"
	ln -s real "$T/link"
	works_in "$T/link"
	works_in "$T/link/sub"
	carrel run --workspace "$T/link" -- sh -c 'echo "$CARREL_WORKSPACE"; touch there'
	assert_status 0
	assert_output "$T/real"
	[[ -e $T/real/there ]] || [[ -e $WS/there ]]
}

@test "a workspace under /tmp, and under the scratch base" {
	dir=$(mktemp -d /tmp/e2e.XXXXXX)
	works_in "$dir"
	rm -rf "$dir"
	mkdir "$BASE/project"
	works_in "$BASE/project"
	carrel run --scratch-base "$T" -- sh -c 'touch ok; ls "$CARREL_SCRATCH"'
	assert_status 0
}

@test "the scratch base inside the workspace" {
	mkdir "$WS/tmp"
	carrel run --scratch-base "$WS/tmp" -- sh -c 'touch ok; echo x >"$CARREL_SCRATCH/f"; cat "$CARREL_SCRATCH/f"'
	assert_status 0
	assert_output x
	[[ -z $(ls -A "$WS/tmp") ]]
}

@test "a workspace on another mount, and one that has mounts below it" {
	need_root
	mkdir "$T/mnt"
	unshare --mount bash -c '
		mount -t tmpfs none "$1" || exit 77
		mkdir -p "$1/a/b" && mount -t tmpfs none "$1/a/b" && cd "$1/a" || exit 77
		"$CARREL" run -- sh -c "echo x >b/f; echo y >g; cat b/f g"' bash "$T/mnt" >"$T/out" || skip 'no second file system here'
	[[ $(<"$T/out") == $'x\ny' ]]
}

@test "a home that is a symlink, missing, relative, empty or not set" {
	mkdir "$T/h2" "$T/h2/.ssh"
	echo key >"$T/h2/.ssh/id"
	ln -s h2 "$T/hl"
	# $T itself is not shown. Elsewhere in it, such a file is seen.
	HOME=$T carrel run --read "$T/h2" -- cat "$T/h2/.ssh/id"
	[[ $output == key ]]
	HOME=$T/hl carrel run --read "$T/h2" -- cat "$T/h2/.ssh/id"
	[[ $status != 0 && $output != *key* ]] || fail 'the key is seen past a link'
	HOME=$T/hl carrel run --read "$T/h2" --bind "$T/h2:$T/hl" -- sh -c 'cat ~/.ssh/id'
	[[ $status != 0 && $output != *key* ]] || fail 'the key is seen through a link'
	for home in "$T/none" relative ''; do
		HOME=$home carrel run -- true
		assert_status 0
	done
	(unset HOME && "$CARREL" run -- true)
}

@test "where HOME says nothing, the account's home is the home" {
	local account

	account=$(getent passwd "$(id -u)" | cut -d : -f 6)
	echo 'env WHERE=$HOME' >"$T/policy"
	for home in relative ''; do
		HOME=$home carrel run --policy "$T/policy" -- sh -c 'echo "$WHERE"'
		[[ $output == "$account" ]] || fail "HOME=$home: $output"
	done
	(unset HOME && "$CARREL" run --policy "$T/policy" -- sh -c 'echo "$WHERE"') >"$T/out"
	[[ $(<"$T/out") == "$account" ]]
}

@test "keys in the account's home are hidden where HOME is not set, or another" {
	local other

	need_root
	mkdir -p "$T/account/.ssh" "$T/account/.config/gh"
	echo key | tee "$T/account/.ssh/id" >"$T/account/.config/gh/hosts.yml"
	ln -s account "$T/link"
	# as FILE CONTENT: `cat`s of the keys, where the account is what the file says.
	as() {
		echo "$1" >"$T/passwd"
		unshare --mount bash -c 'mount --bind "$1/passwd" /etc/passwd || exit 77
			"$CARREL" run --read "$1/account" -- sh -c "cat $1/account/.ssh/id; cat $1/account/.config/gh/hosts.yml"' \
			bash "$T" 2>/dev/null || true
	}
	HOME=$T as "other:x:4242:0::$T/account:/bin/sh" >"$T/control"
	[[ $(<"$T/control") == $'key\nkey' ]] || fail 'elsewhere such a file is not seen either'
	for other in "$T" "$T/link" "$T/account" "$T/account/" ''; do
		HOME=$other as "root:x:0:0:root:$T/account:/bin/sh" >"$T/out"
		[[ ! -s $T/out ]] || fail "HOME=$other: $(<"$T/out")"
	done
	(unset HOME && as "root:x:0:0:root:$T/account:/bin/sh") >"$T/out"
	[[ ! -s $T/out ]]
}

@test "keys where an XDG variable says are hidden" {
	mkdir -p "$T/c/gh" "$T/c/other" "$T/s/bash"
	echo key | tee "$T/c/gh/key" "$T/s/bash/key" >"$T/c/other/key"
	export XDG_CONFIG_HOME=$T/c XDG_STATE_HOME=$T/s
	carrel run --read "$T/c" --read "$T/s" -- sh -c "cat $T/c/other/key; cat $T/c/gh/key $T/s/bash/key"
	assert_output key
	XDG_CONFIG_HOME=$HOME/.config XDG_STATE_HOME=$HOME/.local/state carrel run --read "$T/c" \
		--read "$T/s" -- cat "$T/c/gh/key" "$T/s/bash/key"
	assert_output $'key\nkey'
}

@test "relative paths: against the current directory, or that of the policy file" {
	mkdir "$WS/sub" "$T/data" "$T/etc"
	echo data >"$T/data/file"
	cd "$WS/sub"
	carrel run --workspace .. --read ../../data -- sh -c 'touch a ../b && cat ../../data/file'
	assert_status 0
	assert_output data
	echo 'read ../data' >"$T/etc/policy"
	carrel run --policy ../../etc/policy --workspace . -- cat "$T/data/file"
	assert_output data
	carrel run --workspace . --cwd / -- pwd
	assert_output /
}

@test "closed standard streams" {
	"$CARREL" run -- sh -c 'touch ran1; read x' <&- || [[ $? == 1 ]]
	"$CARREL" run -- touch ran2 >&-
	"$CARREL" run -- touch ran3 2>&-
	"$CARREL" run -- touch ran4 <&- >&- 2>&-
	[[ -e ran1 && -e ran2 && -e ran3 && -e ran4 ]]
	# no descriptor of carrel's slips into their place
	"$CARREL" run -- sh -c 'readlink /proc/self/fd/0 >fds' <&-
	[[ $(<fds) == /dev/null ]]
}

@test "standard streams of every usual kind" {
	echo text >"$T/in"
	[[ $("$CARREL" run -- cat <"$T/in") == text ]]
	[[ $(echo text | "$CARREL" run -- cat) == text ]]
	[[ $("$CARREL" run -- cat </dev/null) == '' ]]
	"$CARREL" run -- sh -c 'echo one; echo two >&2' >"$T/both" 2>&1
	[[ $(<"$T/both") == $'one\ntwo' ]]
	echo zero >"$T/app"
	"$CARREL" run -- echo one >>"$T/app"
	[[ $(<"$T/app") == $'zero\none' ]]
	mkfifo "$T/fifo"
	"$CARREL" run -- echo through >"$T/fifo" 3>&- &
	[[ $(<"$T/fifo") == through ]]
	wait $!
	head -c 3000000 /dev/urandom >"$T/big"
	"$CARREL" run -- cat <"$T/big" >"$T/copy"
	cmp "$T/big" "$T/copy"
	"$CARREL" run -- cat <"$T/big" | cmp - "$T/big"
}

@test "what the command does not read stays for the next reader" {
	printf 'one\ntwo\nthree\n' >"$T/in"
	{
		"$CARREL" run -- sh -c 'read x; echo "$x"'
		cat
	} <"$T/in" >"$T/out"
	[[ $(<"$T/out") == $'one\ntwo\nthree' ]] || fail "$(<"$T/out")"
}

@test "a reader that goes away ends the writer, not the launcher's manners" {
	ends_soon bash -c 'set -o pipefail; "$CARREL" run -- yes | head -n 1 >/dev/null; [[ ${PIPESTATUS[0]} == 141 ]]'
	ends_soon bash -c '"$CARREL" run -- yes 2>&1 | head -n 1'
}

@test "PATH empty or not set, TERM unknown" {
	[[ $(PATH='' "$CARREL" run -- /bin/echo ok) == ok ]]
	[[ $(unset PATH && "$CARREL" run -- /bin/echo ok) == ok ]]
	run -127 --separate-stderr env PATH= "$CARREL" run -- no-such-thing
	TERM=no-such-terminal carrel run -- sh -c 'echo $TERM'
	assert_output no-such-terminal
}

@test "3,000 environment variables and an argument of 120 KiB" {
	local i

	for ((i = 0; i < 3000; i++)); do
		export "CC_MANY_$i=value $i"
	done
	carrel run --env 'CC_MANY_*' -- sh -c 'env | grep -c ^CC_MANY_'
	assert_output 3000
	carrel run -- sh -c 'env | grep -c ^CC_MANY_ || true'
	assert_output 0
	for ((i = 0; i < 3000; i++)); do
		unset "CC_MANY_$i"
	done
	carrel run -- sh -c 'echo ${#1}' sh "$(head -c 122880 /dev/zero | tr '\0' x)"
	assert_output 122880
}

@test "the environment: what the list names gets in, secrets do not" {
	AWS_SECRET_ACCESS_KEY=hush-hush GITHUB_TOKEN=hush-hush SSH_AUTH_SOCK=/hush-hush LD_PRELOAD=hush-hush BASH_ENV=hush-hush LANG=C.UTF-8 LC_TIME=C FOO=hush-hush \
		carrel run --env BAR=bar --env 'BAZ=$WORKSPACE/x' --unsetenv LC_TIME -- env
	assert_status 0
	refute_matches "$output" hush-hush
	refute_matches "$output" LC_TIME
	assert_matches "$output" 'LANG=C.UTF-8'
	assert_matches "$output" 'BAR=bar'
	assert_matches "$output" "BAZ=$WS/x"
	FOO=passed carrel run --env FOO -- sh -c 'echo $FOO'
	assert_output passed
	(($(env -u FOO "$CARREL" run --env FOO -- env | grep -c '^FOO=') == 0))
}

@test "duplicated and malformed variables of the caller" {
	run --separate-stderr python3 - "$CARREL" <<-'END'
		import ctypes, os, sys
		libc = ctypes.CDLL(None)
		argv = [sys.argv[1].encode(), b"run", b"--", b"sh", b"-c", b"echo $LANG"]
		env = [b"LANG=first", b"LANG=second", b"novalue", b"=x", b"", b"PATH=/usr/bin:/bin", b"TMPDIR=" + os.environb[b"TMPDIR"]]
		a = (ctypes.c_char_p * (len(argv) + 1))(*argv, None)
		e = (ctypes.c_char_p * (len(env) + 1))(*env, None)
		libc.execve(argv[0], a, e)
	END
	assert_status 0
	[[ $output == first || $output == second ]]
}

@test "an argv[0] that is empty or missing does not confuse it" {
	run --separate-stderr bash -c 'exec -a "" "$CARREL" run -- echo ok'
	assert_output ok
}

@test "a umask that takes the owner's rights is the command's, not the session's" {
	local mask settings

	for mask in 0777 0377 0177; do
		for settings in '' '--workspace-mode overlay' '--scratch-size 1M' '--output-budget 1000'; do
			# shellcheck disable=SC2086
			(umask "$mask" && "$CARREL" run $settings --report "$T/report.json" -- sh -c 'umask
				mktemp -u >/dev/null && ls "$CARREL_TOOL_RESULTS" && cd "$CARREL_SCRATCH" && ls -A
				umask 022 && echo x >y && cat y') >"$T/out" 2>&1 ||
				fail "$mask $settings: $(<"$T/out")"
			[[ $(<"$T/out") == "$mask"$'\ntmp\nx' ]] || fail "$mask $settings: $(<"$T/out")"
			[[ $(stat -c %a "$T/report.json") == 600 ]] || fail 'the report cannot be read'
			rm "$T/report.json"
		done
	done
	(umask 0777 && "$CARREL" run -- touch made)
	[[ $(stat -c %a "$WS/made") == 0 ]] || fail 'the command has another umask'
	await_nothing_left
}
