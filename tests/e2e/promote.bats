#!/usr/bin/env bats
# `run --promote`: the files of the scratch that it names are in the workspace after the command has ended.
# ctest: cost=35

load ../lib/common

# ino FILE
ino() {
	stat -c %i "$1"
}

@test "artifacts are moved after success, and the scratch goes" {
	carrel run --report "$T/r" --promote '*.txt:out' --promote 'd:kept/here' -- sh -c '
		cd "$CARREL_SCRATCH" && echo a >a.txt && echo b >b.txt && echo c >c.bin
		mkdir -p d/e && echo z >d/e/z && ln -s e d/l'
	assert_status 0
	[[ $(<out/a.txt) == a && $(<out/b.txt) == b && $(<kept/here/d/e/z) == z ]]
	[[ -L kept/here/d/l && ! -e out/c.bin ]]
	[[ -O out/a.txt ]] || fail 'it does not belong to the caller'
	keep_report "$T/r"
	assert_field "$T/r" '.promoted | length' 3
	assert_field "$T/r" '.promoted[0].source' a.txt
	assert_field "$T/r" '.promoted[0].destination' "$WS/out/a.txt"
	assert_field "$T/r" '.promoted[0].how' renamed
	assert_field "$T/r" '.promoted[2].files' 1
	assert_field "$T/r" '.promoted[2].bytes' 2
	assert_nothing_left
}

@test "out of a scratch that is memory, also when all of its session is dead" {
	local left
	# With a process left, init is killed, and with it the session's mounts go, before anything is promoted.
	for left in ':' 'setsid sleep 1000 >/dev/null 2>&1 <&- &'; do
		rm -rf out kept
		carrel run --scratch-size 4M --report "$T/r" --promote '*.txt:out' --promote 'd:kept/here' \
			--promote '/tmp/t:out' -- sh -c '
			cd "$CARREL_SCRATCH" && echo a >a.txt && echo b >b.txt && echo left >c.bin && echo t >/tmp/t
			mkdir -p d/e && echo z >d/e/z && ln -s e d/l && mkfifo fifo; '"$left"
		assert_status 0
		[[ $(<out/a.txt) == a && $(<out/b.txt) == b && $(<out/t) == t && $(<kept/here/d/e/z) == z ]]
		[[ -L kept/here/d/l && ! -e out/c.bin ]]
		[[ -O out/a.txt && -O kept/here/d/e ]] || fail 'it does not belong to the caller'
		keep_report "$T/r"
		assert_field "$T/r" '.promoted | length' 4
		assert_field "$T/r" '[.promoted[].how] | unique | join(" ")' copied
		assert_field "$T/r" .promoted[3].destination "$WS/out/t"
		# What is left: c.bin.
		assert_field "$T/r" .scratch.files 1
		assert_field "$T/r" .scratch.bytes 5
		assert_field "$T/r" .scratch.truncated false
		assert_field "$T/r" .scratch.kept false
		assert_field "$T/r" .teardown.result removed
		assert_nothing_left
	done
}

@test "nothing is promoted where the command fails, is killed or runs out of time" {
	local script
	for script in 'exit 3' 'kill -9 $$' 'sleep 1000'; do
		carrel run --timeout 1 --report "$T/r" --promote '*:out' -- \
			sh -c 'echo a >"$CARREL_SCRATCH/a"; '"$script"
		((status != 0)) || fail 'it succeeded'
		assert_field "$T/r" '.promoted | length' 0
		[[ ! -e out ]] || fail 'something was promoted'
		assert_nothing_left
	done
}

@test "what cannot be promoted stays in the scratch, and the others are promoted" {
	mkdir out
	echo old >out/b
	carrel run --quiet --report "$T/r" --promote '?:out' -- \
		sh -c 'cd "$CARREL_SCRATCH" && echo a >a && echo b >b && echo c >c'
	assert_status 125
	assert_matches "$stderr" "the destination exists: $WS/out/b"
	[[ $(<out/a) == a && $(<out/b) == old && $(<out/c) == c ]]
	keep_report "$T/r"
	assert_field "$T/r" .error.code promote
	assert_field "$T/r" '.promoted[1].errno_name' EEXIST
	assert_field "$T/r" .scratch.kept true
	assert_field "$T/r" .teardown.result kept
	local scratch
	scratch=$(field "$T/r" .scratch.path)
	assert_matches "$stderr" "kept: $scratch"
	[[ $(<"$scratch/b") == b && ! -e $scratch/a ]]
	rm -r "${scratch%/scratch}"
}

@test "what cannot be promoted out of memory stays in a copy of it on disk" {
	mkdir out
	echo old >out/b
	echo secret >"$T/secret"
	carrel run --quiet --scratch-size 4M --report "$T/r" --promote '?:out' -- sh -c '
		cd "$CARREL_SCRATCH" && echo a >a && echo b >b && mkdir d && echo e >d/e && ln -s "$1" d/link &&
		mkfifo d/fifo && ln b d/f && echo g >d/g && chmod 0 d/e && chmod 755 b' sh "$T/secret"
	assert_status 125
	assert_matches "$stderr" "the destination exists: $WS/out/b"
	[[ $(<out/a) == a && $(<out/b) == old && ! -e out/d ]]
	keep_report "$T/r"
	assert_field "$T/r" .error.code promote
	assert_field "$T/r" .scratch.kept true
	assert_field "$T/r" .scratch.files 4
	local scratch
	scratch=$(field "$T/r" .scratch.path)
	assert_matches "$stderr" "kept: $scratch"
	[[ $(<"$scratch/b") == b && $(stat -c %a "$scratch/b") == 755 && ! -e $scratch/a ]]
	[[ $(stat -c '%a %s' "$scratch/d/e") == '0 2' && -O $scratch/d/f ]]
	[[ $(readlink "$scratch/d/link") == "$T/secret" && ! -e $scratch/d/fifo ]]
	rm -r "${scratch%/scratch}"
}

# links COUNT: one file under so many names. Each becomes a file of its own, which takes 0.2 s here.
links() {
	echo "cd \"\$CARREL_SCRATCH\" && echo text >x0 && python3 -c 'import os
for i in range($1): os.link(\"x0\", \"x%d\" % (i + 1))'"
}

SLOWLY=(strace -qqq -e trace=fsync -e signal=none -e 'inject=fsync:delay_enter=200000')

@test "a time-out holds for the promotion as well: what is left stays in the scratch" {
	local begun=$SECONDS
	need strace
	# The control arm: it takes as long as the tool likes.
	run --separate-stderr "${SLOWLY[@]}" -o "$T/trace" "$CARREL" run --promote 'x*:out' -- sh -c "$(links 20)"
	assert_status 0
	(($(ls out | wc -l) == 21 && SECONDS - begun >= 4)) || fail 'it is not slow anyway'
	# The command itself must be over by then, and all of them promoted takes a minute.
	is_cut() {
		rm -rf out "$BASE"/carrel-*
		run --separate-stderr "${SLOWLY[@]}" -o "$T/trace" "$CARREL" run --timeout "$((TIME * 4))s" --grace 1s \
			--report "$T/r" --promote 'x*:out' -- sh -c "$(links 300)"
		((status != 124))
	}
	given_time is_cut
	assert_status 125
	assert_matches "$stderr" 'the time-out came before everything was promoted'
	keep_report "$T/r"
	(($(ls out | wc -l) < 300)) || fail 'it went on'
	assert_field "$T/r" '[.promoted[] | select(.errno == null)] | length' "$(ls out | wc -l)"
	assert_field "$T/r" '[.promoted[] | select(.errno != null) | .errno] | unique == [62]' true
	[[ -e $(echo "$BASE"/carrel-*/scratch/x300) ]] || fail 'it is lost'
	rm -rf "$BASE"/carrel-*
	carrel gc
}

@test "nor do names like carrel's own, with whatever a tool put in them, hold it up" {
	local stray=out/.carrel-promote-0123456789abcdef

	need strace
	carrel run -- sh -c 'mkdir -p "$1" && seq 500 | sed "s|^|$1/|" | xargs touch' sh "$stray"
	assert_status 0
	# A removal takes so long that all of them would be 25 s.
	run --separate-stderr strace -f --seccomp-bpf -e trace=unlinkat -e inject=unlinkat:delay_enter=50000 \
		-o "$T/trace" "$CARREL" run --timeout 10s --promote 'a:out' -- sh -c 'echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ -e out/a ]] || fail 'nothing was promoted'
	[[ -d $stray ]] || fail 'all of it was removed first'
	# The control arm: where there is time, what a crash left is removed.
	rm out/a
	carrel run --promote 'a:out' -- sh -c 'echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ -e out/a && ! -e $stray ]] || fail 'it stays for ever'
}

@test "so does a signal" {
	local tracer

	need strace
	"${SLOWLY[@]}" -o "$T/trace" "$CARREL" run --promote 'x*:out' -- sh -c "$(links 200)" 2>"$T/err" &
	tracer=$!
	wait_for test -e out/x1
	pkill -TERM -P "$tracer"
	status=0
	wait "$tracer" || status=$?
	((status == 125)) || fail "status $status: $(<"$T/err")"
	assert_matches "$(<"$T/err")" 'a signal came before everything was promoted'
	(($(ls out | wc -l) < 100)) || fail 'it went on'
	rm -rf "$BASE"/carrel-*
	carrel gc
}

@test "a name without wild cards must be there; a pattern may match nothing" {
	carrel run --promote '*.png:out' -- true
	assert_status 0
	[[ ! -e out ]]
	assert_matches "$stderr" 'nothing in the scratch matches, and nothing is promoted: [*]\.png'
	carrel run --quiet --promote '*.png:out' -- true
	assert_status 0
	[[ -z $stderr ]]
	carrel run --promote 'a.png:out' -- true
	assert_status 125
	assert_matches "$stderr" 'there is no such artifact: a.png'
	assert_matches "$stderr" 'hint: it is looked for below \$CARREL_SCRATCH, and then below \$TMPDIR'
	rm -r "$BASE"/carrel-*
	carrel run --promote 'd/a.png:out' -- sh -c 'mkdir d && : >d/a.png'
	assert_status 125
	assert_matches "$stderr" "hint: it is in the workspace, and stays there: $WS/d/a.png"
	rm -r "$BASE"/carrel-*
}

@test "what tools leave below TMPDIR is found by its name there" {
	carrel run --promote 'dist/a:out' --promote 'dist/*.whl:out' -- \
		sh -c 'mkdir "$TMPDIR/dist" && echo a >"$TMPDIR/dist/a" && echo w >"$TMPDIR/dist/b.whl"'
	assert_status 0
	[[ $(<out/a) == a && $(<out/b.whl) == w && -z $stderr ]]
	# What is in the scratch itself comes first, alone.
	carrel run --promote 'x:first' -- sh -c 'echo tmp >"$TMPDIR/x" && echo scratch >"$CARREL_SCRATCH/x"'
	assert_status 0
	[[ $(<first/x) == scratch ]]
	carrel session start
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	carrel exec -s "$id" -- sh -c 'echo live >"$TMPDIR/live"'
	carrel promote -s "$id" live out
	assert_status 0
	[[ $(<out/live) == live ]]
	carrel promote -s "$id" live out
	assert_status 125
	assert_matches "$stderr" 'cannot find the artifact: live'
	carrel session end "$id"
}

@test "what tools leave below /tmp is found by that name" {
	carrel run --promote '/tmp/a:.' --promote '/var/tmp/b:.' -- \
		sh -c 'echo a >/tmp/a && echo b >/var/tmp/b'
	assert_status 0
	[[ $(<a) == a && $(<b) == b ]]
}

@test "any name can be promoted" {
	local odd=$'new\nline \xff\xfe "q" $x \\'
	carrel run --report "$T/r" --promote 'd/*:out' -- sh -c '
		mkdir "$CARREL_SCRATCH/d" && echo 1 >"$CARREL_SCRATCH/d/$1" && echo 2 >"$CARREL_SCRATCH/d/$2"' \
		sh "$odd" "$(printf 'x%.0s' {1..255})"
	assert_status 0
	keep_report "$T/r"
	[[ $(<"out/$odd") == 1 ]]
	# The file itself may have a star in its name, and a directory a colon.
	carrel run --promote '\*:a\:b' -- sh -c 'cd "$CARREL_SCRATCH" && echo 1 >"*" && echo 2 >x'
	assert_status 0
	[[ $(<'a:b/*') == 1 && ! -e a:b/x ]]
}

@test "protected, hidden and read-only paths are refused, whether they exist or not" {
	mkdir -p ro sub
	local to
	for to in .git/hooks .git .vscode/tasks ro ro/x; do
		carrel run --read "$WS/ro" --promote "a:$to" -- touch "$WS/ran"
		assert_refused "the destination is protected: $WS/$to"
		assert_matches "$stderr" 'command line: --promote'
	done
	[[ ! -e .git && ! -e .vscode && ! -e ro/x ]]
	# By the name of the artifact.
	carrel run --promote '.git:.' -- sh -c 'echo "gitdir: /x" >"$CARREL_SCRATCH/.git"'
	assert_status 125
	[[ ! -e .git ]]
	rm -r "$BASE"/carrel-*
	carrel run --hide "$WS/sub" --promote 'a:sub' -- touch "$WS/ran"
	assert_refused 'the destination is protected'
}

@test "where to: the workspace, or what promote-to names, judged before anything runs" {
	local to
	mkdir "$T/other"
	for to in "$T/other" /etc ../other "$HOME" ~/x sub/../../other; do
		carrel run --promote "a:$to" -- touch "$WS/ran"
		assert_refused 'artifacts cannot be promoted there'
	done
	carrel run --promote-to "$T/missing" -- touch "$WS/ran"
	assert_refused 'cannot promote to this directory: .*missing'
	carrel run --promote '/etc/passwd:.' -- touch "$WS/ran"
	assert_refused 'only what is in the scratch'
	carrel run --promote '../x:.' -- touch "$WS/ran"
	assert_refused 'only what is in the scratch'
	carrel run --promote 'nothing' -- touch "$WS/ran"
	assert_refused 'no directory to go to'
	[[ ! -e ran ]]
	ln -s other "$T/link"
	carrel run --promote-to "$T/link" --promote "a:$T/link/new" -- \
		sh -c 'echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ $(<"$T/other/new/a") == a ]]
}

@test "a read-only workspace takes artifacts all the same" {
	carrel run --workspace-mode ro --promote 'a:out' -- \
		sh -c '! touch x 2>/dev/null && echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ $(<out/a) == a ]]
}

@test "links, FIFOs and hard links that tools leave" {
	echo secret >"$T/secret"
	mkdir "$T/dir"
	echo secret >"$T/dir/a"
	carrel run --report "$T/r" --promote 'd/*:out' --promote 'd/dir/a:out' -- sh -c '
		mkdir "$CARREL_SCRATCH/d" && cd "$CARREL_SCRATCH/d" && echo a >a && ln a b &&
		ln -s "$1/secret" link && ln -s "$1/dir" dir && mkfifo fifo' sh "$T"
	assert_status 125
	[[ ! -e out/link && ! -e out/fifo && ! -L out/dir ]]
	[[ $(<out/a) == a && $(<out/b) == a && $(ino out/a) != $(ino out/b) ]]
	[[ $(<"$T/dir/a") == secret ]]
	assert_field "$T/r" '[.promoted[] | select(.source == "d/link")][0].errno_name' ELOOP
	assert_field "$T/r" '[.promoted[] | select(.source == "d/fifo")][0].errno_name' EINVAL
	assert_field "$T/r" '[.promoted[] | select(.source == "d/a")][0].how' copied
	rm -r "$BASE"/carrel-*
}

@test "a link in the workspace is not followed, though a link to the workspace is" {
	mkdir "$T/victim"
	# Control: by name, the link leads there.
	ln -s "$T/victim" out
	cp /dev/null out/control && [[ -e $T/victim/control ]]
	carrel run --promote 'a:out' -- sh -c 'echo a >"$CARREL_SCRATCH/a"'
	# Before the launch the link is seen; it leads out of the workspace.
	assert_refused 'cannot be promoted there'
	rm out
	carrel run --promote 'a:out' -- \
		sh -c 'echo a >"$CARREL_SCRATCH/a" && ln -s "$1" out' sh "$T/victim"
	assert_status 125
	assert_matches "$stderr" 'symbolic link'
	[[ ! -e $T/victim/a ]]
	rm -r "$BASE"/carrel-*
	ln -s "$WS" "$T/ws-link"
	rm out
	carrel run --workspace "$T/ws-link" --promote "a:$T/ws-link/out" -- \
		sh -c 'echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ $(<out/a) == a ]]
}

@test "to another file system, and what a crash left there is removed" {
	[[ $(stat -c %d /dev/shm) != $(stat -c %d "$BASE") ]] || skip 'no second file system here'
	local to
	to=$(mktemp -d /dev/shm/carrel-test.XXXXXX)
	mkdir "$to/.carrel-promote-0123456789abcdef"
	carrel run --report "$T/r" --promote-to "$to" --promote "d:$to" -- sh -c '
		cd "$CARREL_SCRATCH" && mkdir -p d/e && echo z >d/e/z && chmod 0 d/e/z && chmod 500 d/e'
	local found
	found=$(cd "$to" && find . -printf '%P %m\n' | sort)
	rm -rf "$to" 2>/dev/null || { chmod -R u+rwx "$to"; rm -rf "$to"; }
	assert_status 0
	assert_matches "$(field "$T/r" '.promoted[0].how')" 'copied|reflinked'
	[[ $found == *'d/e 500'*'d/e/z 0'* ]] || fail "$found"
	refute_matches "$found" carrel-promote
}

@test "a promotion that a policy file asks for" {
	mkdir "$T/other"
	printf 'promote a:out\npromote-to "%s"\n' "$T/other" >"$T/policy"
	carrel run --policy "$T/policy" -- sh -c 'echo a >"$CARREL_SCRATCH/a"'
	assert_status 0
	[[ $(<out/a) == a ]]
	run -0 --separate-stderr "$CARREL" policy show --policy "$T/policy"
	assert_matches "$output" 'promote \$SCRATCH/a:\$WORKSPACE/out'
	assert_matches "$output" "promote-to $T/other"
}
