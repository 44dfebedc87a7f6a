#!/usr/bin/env bats
# For wrong input carrel prints one clear line that names the cause. The command does not run, nothing is left behind,
# and the status is 125.
# ctest: once
load ../lib/common
load ../lib/session

# refused ERE SETTING...: the command would leave a trace.
refused() {
	local cause=$1

	shift
	carrel run "$@" -- touch "$WS/ran"
	assert_refused "$cause"
	[[ ! -e $WS/ran ]] || fail 'it ran'
}

@test "unknown and abbreviated settings name the nearest one" {
	refused 'tmeout' --tmeout 5
	assert_matches "$stderr" 'timeout'
	refused 'time' --time 5
	assert_matches "$stderr" 'timeout'
	refused 'work' --work .
	assert_matches "$stderr" 'workspace'
	refused 'unknown option: -x' -x
}

@test "hosts: malformed ones, wildcards, ports, sets, and what contradicts" {
	refused 'wildcard' --allow 'a.*.example.org'
	refused 'allow' --allow 'example.org:0'
	refused 'allow' --allow 'example.org:65536'
	refused 'allow' --allow 'exa mple.org'
	refused 'allow' --allow "$(printf 'a%.0s' {1..64}).example.org"
	refused 'allow' --allow 'ex'$'\xc3\xa4''mple.org'
	refused 'allow' --allow 0.0.0.0/0
	refused 'port 53 is that of' --allow example.org:53
	refused "unknown set of hosts '@nmp'" --allow @nmp
	assert_matches "$stderr" "did you mean '@npm'"
	refused 'contradicts .net none. of the same layer' --net none --allow example.org
	refused 'is not an address' --net-resolver example.org
	refused 'the command could write the log' --allow example.org --net-log "$WS/log"
	refused 'is not open for writing' --allow example.org --net-log fd:9
	refused 'more than 64 different ports' --allow "example.org:$(seq -s, 1001 1016)" \
		--allow "example.org:$(seq -s, 1101 1116)" --allow "example.org:$(seq -s, 1201 1216)" \
		--allow "example.org:$(seq -s, 1301 1316)" --allow "example.org:1401"
	mkdir -p "$HOME/.config/carrel/sets"
	echo '@there' >"$HOME/.config/carrel/sets/here"
	echo '@here' >"$HOME/.config/carrel/sets/there"
	refused 'includes itself' --allow @here
}

@test "duplicated, conflicting and incomplete settings" {
	refused "'yes' would be the command: --keep" --keep yes
	refused "'no' would be the command: --keep" --keep no
	assert_matches "$stderr" 'hint: write --keep or --no-keep; a command of that name stands behind --'
	refused 'needs allow.errno' --syscall allow
	refused 'a condition is a part of one argument: --syscall' --syscall allow ptrace if 'arg0 == 0'
	refused "'PWD' is carrel's own" --env PWD=/elsewhere
	refused "'CARREL_X' is carrel's own" --env CARREL_X
	refused 'hide|read' --hide "$T" --read "$T"
	carrel run -c
	assert_refused 'a value is missing: --command'$'\n'"carrel: hint: --command LINE"
	carrel run --timeout
	assert_refused timeout
	refused keep --keep=perhaps
	refused net --net some
	refused net --net nonee
	refused workspace-mode --workspace-mode rw
	refused timeout --timeout 5x
	refused timeout --timeout ''
	refused timeout --timeout 0
	refused timeout --timeout -1
	refused grace --grace forever
	refused open-files --open-files 0
	refused "'3' is less than 16, which carrel itself needs inside: --open-files" --open-files 3
	refused profile --profile agnt
	assert_matches "$stderr" agent
	refused 'hint: agent, ci, container or strict' --profile none-such
	refused syscalls --syscalls none-such
	assert_matches "$stderr" 'hint: default, nested or strict$'
	refused "unknown filter 'supervisor': --syscalls" --syscalls supervisor
	refused "unknown filter 'settled': --syscalls" --syscalls settled
	refused '^carrel: unknown system call: .mkdirr.: --syscall' --syscall 'errno mkdirr'
	assert_matches "$stderr" "hint: did you mean 'mkdir'"
	refused "contradicts 'verbose'" --quiet --verbose
	refused env --env '=x'
	refused lock --lock net
}

@test "a policy from standard input that is none, or the workspace's" {
	echo 'timeout 5' >"$WS/policy"
	refused 'a file in the workspace is never read as policy' --policy - <"$WS/policy"
	refused 'standard input: No data' --policy - </dev/null
	assert_matches "$stderr" 'hint: it comes from a pipe or a file; a file named - is ./-'
	refused 'Is a directory' --policy - <"$T"
	refused "unknown setting 'kepe': standard input:2" --policy - < <(printf 'keep\nkepe\n')
	refused 'relative' --policy - < <(echo 'read x')
	refused 'larger than|too large' --policy - < <(head -c 1100000 /dev/zero)
	carrel attest --policy - < <(echo keep)
	((status != 0))
	assert_matches "$stderr" 'standard input only once'
}

@test "no command, and unknown verbs" {
	carrel run
	assert_refused command
	carrel run --
	assert_refused command
	carrel run --timeout 5 --
	assert_refused command
	carrel rnu -- true
	assert_refused run
	carrel $'nosuch\e[31m'
	assert_refused 'no such verb: nosuch\\x1b\[31m'
	carrel policy
	assert_refused 'hint: show, check or presets'
	carrel help gc
	assert_output 'usage: carrel gc [--dry-run] [--scratch-base DIR]'
	carrel gc --scratch-base "$T/gone"
	assert_refused 'No such file or directory'
	carrel
	assert_status 125
}

@test "a workspace that is missing, a file, or no project" {
	touch "$T/file"
	ln -s "$T/gone" "$T/dangling"
	ln -s / "$T/root"
	refused 'no such workspace' --workspace "$T/gone"
	refused 'no such workspace' --workspace "$T/dangling"
	refused 'not a directory' --workspace "$T/file"
	for dir in / /usr /etc /etc/ssl /bin /lib /proc /proc/self /dev /sys /run /home /tmp /var /var/tmp /usr/lib/ /usr/../etc "$HOME" "$T/root" "$HOME/../home"; do
		refused 'cannot be the workspace' --workspace "$dir"
	done
	refused '' --workspace ''
	cd "$HOME"
	refused 'cannot be the workspace'
	assert_matches "$stderr" 'hint:.*--workspace'
	cd /
	refused 'cannot be the workspace'
}

@test "workspace git beside a directory of that name: which one is asked" {
	mkdir git
	carrel run --workspace git -- true
	assert_status 125
	assert_matches "$stderr" 'there is a directory of that name: git'
	assert_matches "$stderr" 'hint: write ./git for the directory'
	carrel run --workspace ./git -- sh -c 'echo $CARREL_WORKSPACE'
	assert_status 0
	assert_output "$WS/git"
}

@test "a directory above the home is refused as well" {
	refused 'cannot be the workspace' --workspace "$T"
}

@test "a workspace that the caller cannot write, unless it is read-only" {
	if is_root; then
		skip 'only an ordinary user can lack the right to write'
	fi
	chmod 0555 "$WS"
	refused 'cannot be written'
	assert_matches "$stderr" 'hint:.*workspace-mode ro'
	carrel run --workspace-mode ro -- true
	assert_status 0
	chmod 0755 "$WS"
}

@test "paths of rules that are missing, with the line that named them" {
	for setting in read write; do
		refused "$T/gone" --$setting "$T/gone"
		assert_matches "$stderr" "command line: --$setting"
		assert_matches "$stderr" "hint: .* -$T/gone"
		carrel run --$setting "-$T/gone" -- true
		assert_status 0
	done
	refused "$T/gone" --bind "$T/gone:/mnt"
	refused "nothing to mount this on: $WS \\(command line: --bind" --scratch-base /var/tmp --bind "/usr/share:$T"
	assert_matches "$stderr" 'hint: .* /usr/share/ws'
	refused 'bind' --bind "$T"
	refused '' --bind "$T:relative"
	refused 'dev' --dev no-such-node
	refused '' --dev /etc/passwd
	printf 'net none\nread %s\n' "$T/gone" >"$T/policy"
	refused "$T/policy:2" --policy "$T/policy"
	refused 'cwd|working directory' --cwd "$T/gone"
}

@test "a policy file that is missing, a directory, too large, or no text" {
	refused 'policy file' --policy "$T/gone"
	refused 'policy file' --policy "$T"
	mkfifo "$T/fifo"
	ends_soon refused 'policy file' --policy "$T/fifo"
	head -c 1048577 /dev/zero | tr '\0' '#' >"$T/big"
	refused 'policy' --policy "$T/big"
	printf 'net none\n\0\n' >"$T/nul"
	refused "$T/nul:2" --policy "$T/nul"
	{
		printf 'net none\nhide /'
		head -c 102400 /dev/zero | tr '\0' x
		echo
	} >"$T/long"
	refused "$T/long:2" --policy "$T/long"
	printf 'net none\nhidden /etc\n' >"$T/word"
	refused "$T/word:2.*hide|hide" --policy "$T/word"
	printf 'net none' >"$T/cut"
	carrel run --policy "$T/cut" -- true
	[[ $status == 0 || $stderr == *"$T/cut:1"* ]]
	printf 'policy %s\n' "$T/b" >"$T/a"
	printf 'policy %s\n' "$T/a" >"$T/b"
	refused "$T/b:1" --policy "$T/a"
	dd if=/dev/urandom of="$T/random" bs=1k count=100 2>/dev/null
	refused "$T/random:[0-9]" --policy "$T/random"
}

@test "a scratch base that is missing, a file, the root, the home, or not sticky" {
	touch "$T/file"
	refused 'scratch base' --scratch-base "$T/gone"
	refused 'scratch base' --scratch-base "$T/file"
	refused 'scratch base' --scratch-base /
	refused 'scratch base' --scratch-base "$HOME"
	mkdir "$T/open"
	chmod 0777 "$T/open"
	refused 'sticky' --scratch-base "$T/open"
	TMPDIR=$T/gone refused 'scratch base'
	assert_matches "$stderr" 'hint:.*TMPDIR.*--scratch-base'
}

@test "a scratch base that is not writable, or somebody else's" {
	mkdir "$T/other"
	if is_root; then
		chown 12345 "$T/other"
		refused 'somebody else' --scratch-base "$T/other"
	else
		chmod 0555 "$T/other"
		refused 'cannot be written' --scratch-base "$T/other"
		refused 'scratch base' --scratch-base /etc
	fi
}

@test "a scratch base that is full: nothing ran, and what fills it is not touched" {
	need_root
	mkdir "$T/small"
	unshare --mount bash -c '
		mount -t tmpfs -o size=64k,nr_inodes=4,mode=1777 none "$1" || exit 77
		touch "$1/a" "$1/b" "$1/c"
		"$CARREL" run --scratch-base "$1" -- touch "$2/ran"
		echo "$?"; ls -A "$1"' bash "$T/small" "$WS" >"$T/out" 2>"$T/err" || skip 'no second file system here'
	[[ $(<"$T/out") == $'125\na\nb\nc' ]] || fail "$(<"$T/out") $(<"$T/err")"
	assert_matches "$(<"$T/err")" '^carrel: .*No space left'
	assert_matches "$(<"$T/err")" 'hint:.*scratch-base'
	[[ ! -e $WS/ran ]]
}

@test "a state directory that is full: nothing ran, and what fills it is not touched" {
	need_root
	local inodes

	# No name can be made; or names can be made, and nothing can be written to them.
	for inodes in nr_inodes=5 nr_inodes=100; do
		mkdir "$T/small"
		unshare --mount bash -c '
			mount -t tmpfs -o size=64k,mode=0700,"$3" none "$1" || exit 77
			mkdir -m 0700 "$1/carrel" "$1/carrel/sessions"
			head -c 1M /dev/zero >"$1/a" 2>/dev/null
			[[ $3 == nr_inodes=100 ]] || touch "$1/b"
			XDG_STATE_HOME=$1 "$CARREL" run -- touch "$2/ran"
			echo "$?"; ls "$1/carrel/sessions"' bash "$T/small" "$WS" "$inodes" >"$T/out" 2>"$T/err" ||
			skip 'no second file system here'
		[[ $(<"$T/out") == 125 ]] || fail "$inodes: $(<"$T/out") $(<"$T/err")"
		assert_matches "$(<"$T/err")" '^carrel: .*state directory.*No space left'
		assert_matches "$(<"$T/err")" 'hint:.*XDG_STATE_HOME'
		[[ ! -e $WS/ran ]]
		rmdir "$T/small"
	done
	assert_nothing_left
}

@test "quarantine: words, ids and numbers that are none" {
	carrel quarantine put
	assert_status 125
	assert_matches "$stderr" 'there is no such verb: put'
	carrel quarantine restore
	assert_status 125
	carrel quarantine show a b
	assert_status 125
	carrel quarantine list --jsn
	assert_status 125
	carrel quarantine show ''
	assert_status 125
	assert_matches "$stderr" 'nothing in quarantine has this id'
	carrel quarantine remove ../sessions nothing
	assert_status 125
	assert_matches "$stderr" 'has this id: \.\./sessions'
	assert_matches "$stderr" 'has this id: nothing'
	refused quarantine-for --quarantine-for 0
	refused quarantine-for --quarantine-for long
}

@test "no user namespaces: the sysctl is named" {
	need unshare
	# In a user namespace of its own, the limit is the test's to set.
	if is_root; then
		skip 'only an ordinary user needs a user namespace for everything'
	fi
	run --separate-stderr unshare --user --map-current-user --keep-caps bash -c '
		echo 0 >/proc/sys/user/max_user_namespaces || exit 77
		exec setpriv --inh-caps=-all --bounding-set=-all --ambient-caps=-all "$CARREL" run -- touch "$WS/ran"'
	[[ $status != 77 ]] || skip 'no user namespaces here'
	assert_refused 'user namespace'
	assert_matches "$stderr" 'max_user_namespaces'
	[[ ! -e $WS/ran ]]
}

@test "namespaces refused by a filter or an LSM: EPERM from clone3 and unshare" {
	need strace
	# Only the first call is failed: strace follows nothing else.
	run --separate-stderr strace -f -qqq -e trace=clone3,unshare -e signal=none \
		-e inject=clone3,unshare:error=EPERM -o /dev/null "$CARREL" run -- touch "$WS/ran"
	assert_refused 'namespace'
	assert_matches "$stderr" 'hint:'
	[[ ! -e $WS/ran ]]
}

@test "few descriptors: it works or says that it needs more" {
	need prlimit
	for n in {4..40}; do # whatever was inherited, one of them hits each place
		run --separate-stderr prlimit --nofile=$n "$CARREL" run -- touch "$WS/ran"
		if [[ $status != 0 ]]; then
			assert_refused '(No file descriptors available|descriptor)'
			assert_matches "$stderr" 'hint: raise `ulimit -n`'
			[[ ! -e $WS/ran ]]
		fi
		rm -f "$WS/ran"
	done
}

@test "files that may not grow: the remedy is named" {
	run bash -c 'ulimit -f 0; exec "$CARREL" run -- touch "$WS/ran"' # stderr is a pipe
	stderr=$output output=
	assert_refused 'File too large'
	assert_matches "$stderr" 'hint: raise `ulimit -f`'
	[[ ! -e $WS/ran ]]
}

@test "no further process: it says so" {
	if is_root; then
		skip 'only an ordinary user has a limit of processes'
	fi
	run --separate-stderr bash -c 'ulimit -u 1; exec "$CARREL" run -- touch "$WS/ran"'
	assert_refused
	assert_matches "$stderr" 'ulimit -u'
	[[ ! -e $WS/ran ]]
}

@test "the working directory is gone" {
	mkdir "$T/gone"
	cd "$T/gone"
	rmdir "$T/gone"
	refused 'current directory no longer exists'
	assert_matches "$stderr" 'hint:.*--workspace'
}

@test "standard streams that would be a way out" {
	apart "$CARREL" run -- touch "$WS/ran" <"$T"
	assert_refused 'standard input is a directory'
	assert_matches "$stderr" 'hint: redirect it: </dev/null'
	[[ ! -e $WS/ran ]]
}

@test "a message with control characters stays on one line" {
	refused '' --workspace "$T/"$'a\nb\x1b[31m'
	refute_matches "$stderr" $'\x1b'
	refused '' --"$(printf 'a\nb')"
}

# wrong ERE ARGUMENT...: one clear line, status 2, nothing on stdout.
wrong() {
	carrel why "${@:2}"
	assert_status 2
	[[ -z $output ]] || fail 'something was written to stdout'
	(($(grep -vc '^carrel: hint: ' <<<"$stderr") == 1)) || fail 'not one line'
	assert_matches "$stderr" "$1"
}

@test "why: one line, status 2" {
	local long

	ln -s loop loop
	: >file
	wrong 'nothing to look up'
	wrong 'an empty word' ''
	wrong 'this path cannot be looked up: .*/loop: Too many levels' ./loop
	wrong 'this path cannot be looked up: .*/file/x: Not a directory' ./file/x
	wrong 'this is no path, no host and no system call: opennat' opennat
	assert_matches "$stderr" "hint: did you mean 'openat'"
	wrong 'this is no path, no host and no system call: no such' 'no such'
	wrong 'no system call: a.x0ab' $'a\nb'
	wrong 'not of a host: https://example.org/x' https://example.org/x
	wrong 'no port: example.org:http' example.org:http
	wrong 'no port: example.org:70000' example.org:70000
	long=$(printf '%04095d' 0)
	wrong 'cannot be looked up: .*File name too long' "/$long"
	wrong 'cannot be looked up: .*File name too long' "./${long//0000/000\/}"
	wrong 'unknown option: --jason' --jason x
	wrong 'unknown setting|unknown option' --hid x y
	wrong 'setting of the whole session' -s abc --read /x y
	wrong 'no such live session' -s aaaaaaaaaaaaaaaaaaaa /x
	# Nothing is printed of the good ones before a bad one.
	wrong 'no system call' --json /etc nonsuch
}

@test "--learn: onto a link, onto a file, into what the session can write, into nothing" {
	echo kept >"$T/there"
	ln -s "$T/there" "$T/link"
	mkdir "$T/dir"
	carrel run --learn "$T/link" -- true
	assert_refused 'this is a symbolic link: '
	carrel run --learn "$T/there" -- true
	assert_refused 'this exists already: '
	[[ $(<"$T/there") == kept ]]
	carrel run --learn learned -- true
	assert_refused 'would lie where the session can write: '
	carrel run --write "$T/dir" --learn "$T/dir/learned" -- true
	assert_refused 'would lie where the session can write: '
	ln -s "$T/dir" "$WS/way"
	carrel run --learn way/learned -- true
	assert_refused 'would lie where the session can write: '
	carrel run --learn "$T/none/learned" -- true
	assert_refused 'cannot write what is learned: .*: No such file'
	carrel run --learn "$T/dir/" -- true
	assert_refused 'this exists already: '
	carrel run --learn "$T/dir/." -- true
	assert_refused 'this is a directory: |this exists already: |would lie '
	[[ -z $(ls -A "$T/dir") ]]
}

@test "--learn: onto a full disk: status 125, and no file is left" {
	need_root
	mkdir "$T/full"
	run --separate-stderr unshare --mount bash -c '
		mount -t tmpfs -o size=16k none "$1" && { head -c 64k /dev/zero >"$1/fill" 2>/dev/null || :; }
		"$CARREL" run --learn "$1/learned" -- sh -c "touch /srv/x || :"
		status=$?
		[[ ! -e $1/learned ]] || echo left
		exit $status' bash "$T/full"
	assert_status 125
	[[ $output != *left* ]]
	assert_matches "$stderr" 'cannot write what was learned: .*/learned: No space left'
}

@test "--explain: a policy on standard input cannot be read again" {
	carrel run --policy - --explain -- true <<<'quiet'
	assert_refused 'cannot be explained: it has to be a file: --policy -'
}

@test "--pass-fd: what is no number, not open, carrel's own, beyond a limit, too many" {
	wrong() { # [FURTHER OPTION] REGEX VALUE
		carrel run "${@:3}" --pass-fd "$2" -- touch "$WS/ran"
		assert_refused "$1"
		[[ ! -e $WS/ran ]]
	}

	local value n
	local -a many=()

	for value in x 3:x 3: :3 -3 +3 3:4:5 ' 3' 03x 4294967296 99999999999999999999; do
		wrong 'is not a descriptor: N.:M.' "$value"
	done
	for value in 0 1 2 5:0 2:5; do
		wrong 'only descriptors above 2 are passed' "$value"
	done
	wrong 'a number above 1023 inside' 5:1024
	wrong 'a number above 1023 inside' 2147483647
	wrong 'the descriptor is not open: pass-fd 250:9' 250:9
	wrong 'carrel itself writes to this descriptor' 5 --report fd:5 5>/dev/null
	wrong 'no descriptor above 19: pass-fd 5:20' 5:20 --open-files 20 5</dev/null
	for n in {10..18}; do
		many+=(--pass-fd "5:$n")
	done
	wrong 'more than 8 descriptors are passed' 5:19 "${many[@]}" 5</dev/null
	# One that carrel opened is not the caller's.
	for n in {5..9}; do
		wrong 'the descriptor is not open' "$n" 
	done
	carrel session start --pass-fd 5 5</dev/null
	assert_refused 'a live session is given no descriptors'
	run --separate-stderr bash -c 'ulimit -n 64; exec "$CARREL" run --pass-fd 5:64 -- true 5</dev/null'
	assert_refused 'no descriptor above 63'
}

@test "an address space that is too small: the hint names ulimit" {
	run --separate-stderr bash -c 'ulimit -v 50000; exec "$CARREL" run -- true'
	assert_refused 'out of memory'
	assert_matches "$stderr" 'hint: the caller.s address space is limited \(`ulimit -v`\)'
}
