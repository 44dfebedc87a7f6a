#!/usr/bin/env bats
# The scratch: its names, who may use it, how large it gets, and when it stays.
load ../lib/common
load ../lib/session

@test "it is CARREL_SCRATCH below the scratch base, private, writable, and empty but for tmp" {
	sh_in 'echo "$CARREL_SESSION $CARREL_SCRATCH"; stat -c "%a %u" "$CARREL_SCRATCH"; touch "$CARREL_SCRATCH/x"; cd "$CARREL_SCRATCH" && pwd'
	assert_status 0
	assert_matches "$output" "^([a-z2-7]{20}) $BASE/carrel-([a-z2-7]{20})/scratch"
	[[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]]
	assert_matches "$output" "700 $(id -u)"
}

@test "the session directory is 0700 and the caller's while it lives" {
	start_and_wait run -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'
	[[ $(stat -c '%a %u' "$(session_dir)") == "700 $(id -u)" ]]
	[[ -d $(session_dir)/scratch && ! -e $(session_dir)/tool-results ]]
	touch "$WS/go"
	finish
	assert_status 0
}

@test "tool-results is a directory of the host where an output may come into it" {
	start_and_wait run --output-budget 1000 -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'
	[[ $(stat -c '%a %u' "$(session_dir)/tool-results") == "700 $(id -u)" ]]
	touch "$WS/go"
	finish
	assert_status 0
}

@test "the CARREL variables name what is there" {
	sh_in 'echo "$CARREL_WORKSPACE"; test -d "$CARREL_TOOL_RESULTS" && cd "$CARREL_WORKSPACE" && pwd
		case $CARREL_TOOL_RESULTS in "${CARREL_SCRATCH%/scratch}/tool-results") echo beside;; esac'
	assert_output "$WS"$'\n'"$WS"$'\nbeside'
}

@test "tool-results can be read, not written" {
	sh_in 'ls "$CARREL_TOOL_RESULTS" && ! touch "$CARREL_TOOL_RESULTS/x" 2>/dev/null && ! mkdir "$CARREL_TOOL_RESULTS/d" 2>/dev/null'
	assert_status 0
}

@test "scratch-env names the scratch under other names, an existing one included" {
	MY_TMP=/elsewhere carrel run --scratch-env MY_TMP --scratch-env OTHER_DIR -- sh -c \
		'test "$MY_TMP" = "$CARREL_SCRATCH" && test "$OTHER_DIR" = "$CARREL_SCRATCH"'
	assert_status 0
	carrel run --scratch-env '1X' -- true
	assert_refused scratch-env
	carrel run --scratch-env 'A=B' -- true
	assert_refused scratch-env
}

@test "what a line about a variable could not change is refused, wherever it stands" {
	local name

	for name in CARREL_SESSION CARREL_WORKSPACE CARREL_SCRATCH CARREL_TOOL_RESULTS PWD; do
		carrel run --env "$name=/x" -- true
		assert_refused "'$name' is carrel's own to set"
		carrel run --unsetenv "$name" -- true
		assert_refused "'$name' is carrel's own to set"
	done
	carrel run --scratch-env PATH -- true
	assert_refused "'PATH' cannot name the scratch"
	printf 'env A=1\nenv CARREL_SCRATCH=/x\n' >"$T/policy"
	carrel run --policy "$T/policy" -- true
	assert_status 125
	assert_matches "$stderr" "$T/policy:2"
	carrel run --env A=1 --scratch-env A -- true
	assert_status 125
	assert_matches "$stderr" 'contradicts'
	# A pattern means what else it matches.
	CARREL_OTHER=1 carrel run --env 'CARREL_*' -- sh -c \
		'test -d "$CARREL_SCRATCH" && test "$CARREL_OTHER" = 1'
	assert_status 0
}

@test "TMPDIR is the policy's where it says so itself" {
	carrel run -- sh -c 'test "$TMPDIR" = "$CARREL_SCRATCH/tmp"'
	assert_status 0
	carrel run --env "TMPDIR=$WS/mine" -- sh -c 'mkdir mine && echo kept >"$(mktemp)" && cat mine/*'
	assert_output kept
	[[ $(cat "$WS"/mine/*) == kept ]]
	carrel run --scratch-env TMPDIR -- sh -c 'test "$TMPDIR" = "$CARREL_SCRATCH"'
	assert_status 0
	carrel run --unsetenv TMPDIR -- sh -c 'test -z "${TMPDIR+set}" && mktemp'
	assert_status 0
	carrel run --env '*' -- sh -c 'test "$TMPDIR" = "$CARREL_SCRATCH/tmp"'
	assert_status 0
	await_nothing_left
}

@test "/tmp, /var/tmp and TMPDIR land in the scratch, and not on the host's" {
	sh_in 'echo a >/tmp/carrel-t1; echo b >/var/tmp/carrel-t2; echo c >"$TMPDIR/carrel-t3"
		stat -c %a /tmp; cd "$CARREL_SCRATCH"; find . -name "carrel-t?" | sed "s,.*/,," | sort | tr "\n" " "'
	assert_status 0
	assert_matches "$output" '^700'
	assert_matches "$output" 'carrel-t1 carrel-t2 carrel-t3'
	[[ ! -e /tmp/carrel-t1 && ! -e /var/tmp/carrel-t2 ]]
}

@test "mktemp and python's tempfile work, and stay inside" {
	sh_in 'f=$(mktemp); d=$(mktemp -d); python3 -c "import tempfile; print(tempfile.mkdtemp())"; echo "$f $d"'
	assert_status 0
	await_nothing_left
}

@test "cache variables point into the scratch" {
	carrel run -- env
	for name in XDG_CACHE_HOME npm_config_cache PIP_CACHE_DIR CARGO_HOME GOCACHE GOMODCACHE CCACHE_DIR UV_CACHE_DIR; do
		assert_matches "$output" "(^|"$'\n'")$name=$BASE/carrel-[a-z2-7]+/scratch"
	done
}

@test "scratch-size bounds it: ENOSPC for the command, not for the launcher" {
	carrel run --scratch-size 2M -- sh -c '
		df --output=size -B1 "$CARREL_SCRATCH" | tail -n 1
		dd if=/dev/zero of="$CARREL_SCRATCH/big" bs=64k count=1000 2>&1 | grep -o "No space left"
		echo still >&2; dd if=/dev/zero of=/tmp/big bs=64k count=1000 2>/dev/null || exit 33'
	assert_status 33
	assert_matches "$output" '2097152'
	assert_matches "$output" 'No space left'
	[[ $stderr == still ]]
	assert_nothing_left
}

@test "sizes that are none are refused" {
	for size in 0 '' -1 12x 18446744073709551616 99999999999999999999999 1e3 0x10 ' 1' 1KK 17179869184G . 1.5; do
		carrel run --scratch-size "$size" -- true
		assert_refused scratch-size
	done
	for size in 1M 1MiB 1048576 1024K; do
		carrel run --scratch-size "$size" -- true
		assert_status 0
	done
}

@test "--keep says where, however long that is" {
	local base=$BASE part

	part=$(printf 'd%.0s' {1..200})
	while ((${#base} < 1600)); do
		base+=/$part
	done
	mkdir -p "$base"
	carrel run --keep --scratch-base "$base" -- sh -c 'echo "$CARREL_SCRATCH"'
	assert_status 0
	[[ $stderr == "carrel: kept: $output" ]]
	rm -rf "${BASE:?}/$part"
}

@test "--keep leaves it and says where" {
	carrel run --keep -- sh -c 'echo kept >"$CARREL_SCRATCH/file"; echo "$CARREL_SCRATCH"'
	assert_status 0
	[[ $stderr == "carrel: kept: $output" ]]
	[[ $(<"$output/file") == kept ]]
	[[ $(stat -c %u "$output/file") == "$(id -u)" ]]
	# neither another run nor gc takes it
	kept=$output
	carrel gc
	carrel run -- true
	[[ -e $kept/file ]]
	rm -rf "$BASE"/carrel-*
}

@test "CARREL_KEEP=true is --keep, false and nothing are not, and anything else is refused" {
	CARREL_KEEP=true carrel run -- true
	assert_matches "$stderr" "^carrel: kept: $BASE/carrel-"
	rm -rf "$BASE"/carrel-*
	carrel gc # or the next run would begin a sweep, which may still run when that has ended
	for value in '' false; do
		CARREL_KEEP=$value carrel run -- true
		assert_status 0
		assert_nothing_left
	done
	CARREL_KEEP=yes carrel run -- true
	assert_refused CARREL_KEEP
	CARREL_KEEP=true carrel run --no-keep -- true
	assert_status 0
	assert_nothing_left
}

@test "keep-for: gc leaves it until the time is over, then removes it" {
	carrel run --keep-for 1h -- true
	assert_matches "$stderr" 'kept: '
	carrel gc
	assert_output ''
	[[ -d $(session_dir) ]]
	rm -rf "$BASE"/carrel-*
	carrel run --keep-for 1s -- true
	gone() { "$CARREL" gc >/dev/null && ! session_dir >/dev/null; }
	wait_for gone
	assert_nothing_left
}

@test "a bounded scratch that is kept is kept, on disk" {
	local kind
	for kind in --keep '--keep-for 1h'; do
		# shellcheck disable=SC2086
		carrel run $kind --scratch-size 1M --report "$T/r" -- \
			sh -c 'echo kept >"$CARREL_SCRATCH/file"; truncate -s 1T "$CARREL_SCRATCH/hole"; echo "$CARREL_SCRATCH"; exit 3'
		assert_status 3
		[[ $stderr == "carrel: kept: $output" ]]
		[[ $(<"$output/file") == kept && $(stat -c %u "$output/file") == "$(id -u)" ]]
		[[ $(stat -c %s "$output/hole") == 1099511627776 ]]
		assert_field "$T/r" .scratch.files 2
		assert_field "$T/r" .scratch.bytes 1099511627781
		rm -rf "$BASE"/carrel-*
	done
}

@test "a bounded scratch takes no more of the disk than it may hold, when it is kept" {
	# Control: one name, and all of it is kept.
	carrel run --keep --scratch-size 4M -- sh -c 'dd if=/dev/zero of="$CARREL_SCRATCH/a" bs=1M count=3 2>/dev/null'
	assert_status 0
	[[ $(stat -c %s "$BASE"/carrel-*/scratch/a) == 3145728 ]]
	rm -rf "$BASE"/carrel-*
	carrel run --keep --scratch-size 4M -- sh -c '
		cd "$CARREL_SCRATCH" && dd if=/dev/zero of=a bs=1M count=3 2>/dev/null && echo small >small &&
		for i in 1 2 3 4 5 6 7 8 9; do ln a "$i"; done'
	assert_status 125
	assert_matches "$stderr" 'files with several names need more room than there is'
	assert_matches "$stderr" "kept in part: $BASE/carrel-"
	[[ $(<"$(echo "$BASE"/carrel-*/scratch/small)") == small ]]
	(($(du -s -B1 "$BASE" | cut -f 1) < 6000000)) || fail 'the disk holds more than scratch-size'
	rm -rf "$BASE"/carrel-*
}

@test "gone after success, failure, time-out and a command that cannot be executed" {
	for args in 'true' 'false' "sh -c kill\ -9\ \$\$"; do
		eval "carrel run -- $args"
		assert_nothing_left
	done
	carrel run --timeout 200ms -- sh -c 'mkdir -p "$CARREL_SCRATCH/a"; sleep 1000'
	assert_status 124
	assert_nothing_left
	run -127 --separate-stderr "$CARREL" run -- /no/such/command
	assert_nothing_left
	touch "$WS/plain"
	carrel run -- ./plain
	assert_status 126
	assert_nothing_left
}

@test "gone after TERM, INT and HUP" {
	for s in TERM INT HUP; do
		start_and_wait run -- sh -c 'mkdir -p "$CARREL_SCRATCH/a/b"; touch ready; exec sleep 1000'
		signal "$s"
		finish
		assert_nothing_left
	done
}

@test "gone although the scratch base is full" {
	need_root
	mkdir "$T/small"
	unshare --mount bash -c '
		mount -t tmpfs -o size=1m,mode=1777 none "$1" || exit 77
		TMPDIR=$1 "$CARREL" run -- sh -c "cat /dev/zero >\$CARREL_SCRATCH/big; exit 5"
		echo "$?"; ls -A "$1" | wc -l' bash "$T/small" >"$T/out" 2>"$T/err" || skip 'no second file system here'
	! grep -q 'has no idmapped mounts' "$T/err" || skip 'no idmapped mounts on tmpfs in this kernel'
	[[ $(<"$T/out") == $'5\n0' ]] || fail "$(<"$T/out") $(<"$T/err")"
}

@test "40 launches at once do not collide, and leave nothing" {
	for i in {1..40}; do
		"$CARREL" run -- sh -c 'echo "$CARREL_SESSION" >"$CARREL_SCRATCH/me"; sleep 0.1; test "$(cat "$CARREL_SCRATCH/me")" = "$CARREL_SESSION" && cat "$CARREL_SCRATCH/me"' \
			>"$T/out.$i" 2>"$T/err.$i" 3>&- &
	done
	wait
	[[ $(cat "$T"/err.*) == '' ]] || fail "$(cat "$T"/err.*)"
	(($(cat "$T"/out.* | sort -u | wc -l) == 40))
	assert_nothing_left
}

@test "a scratch base on a noexec mount, and one that others cannot write" {
	chmod 0700 "$BASE"
	carrel run -- true
	assert_status 0
	need_root
	mkdir "$T/noexec"
	unshare --mount bash -c '
		mount -t tmpfs -o noexec,mode=1777 none "$1" || exit 77
		TMPDIR=$1 "$CARREL" run -- sh -c "echo ok >\$CARREL_SCRATCH/f && cat \$CARREL_SCRATCH/f"' bash "$T/noexec" >"$T/out" ||
		skip 'no second file system here'
	[[ $(<"$T/out") == ok ]]
}
