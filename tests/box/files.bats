#!/usr/bin/env bats
# What a command can read and write: workspace modes, the rules of a policy, and which of two rules wins.
load ../lib/common
load ../lib/session

# Not below /var/tmp, which is the scratch's inside: what the rules do not name has to be seen.
setup() {
	if is_root; then
		COMMON_DIR=/srv common_setup
		chmod 0755 "$T"
	else
		COMMON_DIR=$(getent passwd "$EUID" | cut -d : -f 6) common_setup
	fi
	D=$T/data
	mkdir -p "$D/a/b/c"
	echo top >"$D/file"
	echo mid >"$D/a/file"
	echo low >"$D/a/b/file"
	echo leaf >"$D/a/b/c/file"
}

# in_box SETTING... -- SCRIPT: a shell script, $D is its first argument.
in_box() {
	local -a settings=()

	while [[ $1 != -- ]]; do
		settings+=("$1")
		shift
	done
	carrel run "${settings[@]}" -- sh -c "$2" sh "$D"
}

@test "direct: the workspace is the host's, and the rest is read-only" {
	in_box -- 'echo x >new; rm old 2>/dev/null; mkdir d; ! echo x >"$1/file" && ! touch "$1/new" && ! mkdir "$1/d" && ! rm "$1/file" && ! chmod 777 "$1/file" && ! mv "$1/file" "$1/g" && ! ln "$1/file" link' 2>/dev/null
	assert_status 0
	[[ $(<"$WS/new") == x && -d $WS/d && $(<"$D/file") == top ]]
	[[ $(stat -c %u:%g "$WS/new") == "$EUID:$(id -g)" ]]
}

@test "ro: the workspace can be read, and not written" {
	echo old >"$WS/file"
	in_box --workspace-mode ro -- 'cat file; ! echo x >file && ! touch new && ! rm file && ! mkdir d && echo x >"$CARREL_SCRATCH/f"'
	assert_status 0
	assert_output old
	[[ $(<"$WS/file") == old && $(ls -A "$WS") == file ]]
}

@test "overlay: changes are seen inside, the host keeps what it had" {
	echo old >"$WS/file"
	echo gone >"$WS/gone"
	mkdir "$WS/dir"
	echo in >"$WS/dir/in"
	in_box --workspace-mode overlay -- 'echo new >file && rm gone && echo more >>dir/in && mkdir dir/sub && echo x >dir/sub/x && mv dir/in dir/moved && cat file dir/moved dir/sub/x && ! test -e gone && chmod 700 file'
	assert_status 0
	assert_output $'new\nin\nmore\nx'
	[[ $(<"$WS/file") == old && $(<"$WS/gone") == gone && $(<"$WS/dir/in") == in ]]
	[[ $(find "$WS" | wc -l) == 5 ]] || fail "$(find "$WS")"
	assert_nothing_left
}

@test "read, write and hide of directories and of single files" {
	in_box --write "$D/a" --hide "$D/a/b" -- 'echo w >"$1/a/file"; cat "$1/a/file"; ls -A "$1/a/b" | wc -l; ! cat "$1/a/b/file" 2>/dev/null; ! touch "$1/a/b/x" 2>/dev/null; ! touch "$1/x" 2>/dev/null'
	assert_status 0
	assert_output $'w\n0'
	[[ $(<"$D/a/file") == w && $(<"$D/a/b/file") == low ]]
	in_box --write "$D/file" --hide "$D/a/file" -- 'echo w >"$1/file" && ! touch "$1/new" 2>/dev/null; test ! -s "$1/a/file" && ! rm -f "$1/a/file" 2>/dev/null'
	assert_status 0
	[[ $(<"$D/file") == w && -s $D/a/file ]]
}

@test "the more specific rule wins, in either order" {
	for order in "--hide $D --write $D/a/b" "--write $D/a/b --hide $D"; do
		# shellcheck disable=SC2086
		in_box $order -- 'ls -A "$1"; ls -A "$1/a"; echo w >"$1/a/b/made" && cat "$1/a/b/file"; cat "$1/file" 2>/dev/null'
		assert_output $'a\nb\nlow'
		[[ $(<"$D/a/b/made") == w ]]
		rm "$D/a/b/made"
	done
	for order in "--write $D --hide $D/a/b" "--hide $D/a/b --write $D"; do
		# shellcheck disable=SC2086
		in_box $order -- 'echo w >"$1/a/made"; ls -A "$1/a/b"; ! touch "$1/a/b/x" 2>/dev/null && ! rmdir "$1/a/b" 2>/dev/null && ! mv "$1/a/b" "$1/a/z" 2>/dev/null && ! mv "$1/a" "$1/z" 2>/dev/null'
		assert_status 0
		assert_output ''
		[[ $(<"$D/a/made") == w && $(<"$D/a/b/file") == low ]]
		rm "$D/a/made"
	done
	for order in "--write $D --read $D/a" "--read $D/a --write $D"; do
		# shellcheck disable=SC2086
		in_box $order -- 'touch "$1/ok" && ! touch "$1/a/x" 2>/dev/null && cat "$1/a/file"'
		assert_status 0
		assert_output mid
	done
}

@test "three levels: writable in hidden in writable" {
	in_box --write "$D" --hide "$D/a" --write "$D/a/b" --hide "$D/a/b/c" -- 'touch "$1/x" "$1/a/b/x" && ! touch "$1/a/x" 2>/dev/null; ls -A "$1/a"; ls -A "$1/a/b/c"'
	assert_output b
	[[ -e $D/x && -e $D/a/b/x ]]
}

@test "protect: read-only inside something writable, its ancestors stay where they are" {
	mkdir "$WS/x" "$WS/x/y"
	echo keep >"$WS/x/y/file"
	in_box --protect "$WS/x/y/file" -- 'touch x/y/new && cat x/y/file; ! echo no >x/y/file; ! rm -f x/y/file
		for pair in "x z" "x/y z" "x/y x/z" "x/y/file g" "x/y/file x/y/g"; do
			/usr/bin/python3 -c "import os, sys; os.rename(*sys.argv[1:])" $pair && echo "renamed $pair"
		done; :' 2>/dev/null # not mv: where rename fails with EXDEV it copies
	assert_status 0
	assert_output keep
	[[ $(<"$WS/x/y/file") == keep && -e $WS/x/y/new ]]
}

@test "a protected path that is absent stays absent; there is never a placeholder on the host" {
	start_and_wait run --protect "$WS/absent" --protect "$WS/no/such" -- sh -c 'ls -A >listed; touch ready; while [ ! -e go ]; do sleep 0.02; done'
	[[ ! -e $WS/absent && ! -e $WS/no && ! -e $WS/.git && ! -e $WS/.vscode ]]
	touch "$WS/go"
	finish
	assert_status 0
	[[ $(<"$WS/listed") == listed ]]
	[[ $(ls -A "$WS") == $'go\nlisted\nready' ]]
}

@test "bind shows a directory or a file elsewhere, read-only unless rw" {
	in_box --bind "$D/a:/mnt" -- 'cat /mnt/file; ! touch /mnt/x 2>/dev/null'
	assert_status 0
	assert_output mid
	in_box --bind "$D/a:/mnt:rw" -- 'echo w >/mnt/made'
	assert_status 0
	[[ $(<"$D/a/made") == w ]]
	in_box --bind "$D/file:$D/none/deep/f" -- 'touch "$CARREL_WORKSPACE/ran"'
	assert_refused 'the destination does not exist'
	assert_matches "$stderr" 'hint:.*tmpfs'
	[[ ! -e $D/none && ! -e $WS/ran ]]
	in_box --tmpfs "$D/a" --bind "$D/file:$D/a/deep/f" -- 'cat "$1/a/deep/f"'
	assert_status 0
	assert_output top
	[[ ! -e $D/a/deep ]]
}

@test "tmpfs: empty, writable, of the size that was asked for, gone afterwards" {
	in_box --tmpfs "$D/a:1M" -- 'ls -A "$1/a"; echo x >"$1/a/x"; dd if=/dev/zero of="$1/a/big" bs=64k count=100 2>/dev/null; stat -c %s "$1/a/big"'
	assert_status 0
	((output <= 1048576 && output > 500000)) || fail size
	[[ -e $D/a/file && ! -e $D/a/big ]]
	assert_nothing_left
}

@test "/dev: what tools need and nothing else; dev adds a node" {
	in_box -- 'for n in null zero full random urandom tty ptmx; do test -c "/dev/$n" || echo "no $n"; done; for n in pts shm fd; do test -d "/dev/$n" || echo "no $n"; done; ls /dev | tr "\n" " "; echo x >/dev/null; head -c 3 /dev/zero | wc -c; echo x >/dev/shm/f && cat /dev/shm/f'
	assert_status 0
	refute_matches "$output" 'no [a-z]'
	refute_matches "$output" '(kmsg|mem|vda|sda|loop|fuse|net|kvm|input)'
	[[ -c /dev/fuse ]] || skip '/dev/fuse cannot be opened: it is not there'
	in_box --dev /dev/fuse -- 'test -c /dev/fuse'
	assert_status 0
}

@test "names with spaces, newlines, quotes, globs, colons and bytes that are no UTF-8" {
	local name

	for name in 'a b' $'new\nline' "it's" 'dou"ble' 'st*r' '[x]' 'co:lon' $'\xff\xfe' '-dash' '#hash' 'back\slash'; do
		mkdir "$D/$name"
		echo secret >"$D/$name/f"
		# On the command line a backslash takes the meaning from * ? [ in hide.
		quoted=${name//\[/\\[}
		quoted=${quoted//\*/\\*}
		carrel run --hide "$D/$quoted" -- cat "$D/$name/f"
		[[ $status != 0 && $output != *secret* ]] || fail "not hidden: $name"
		carrel run --write "$D/$name" -- sh -c 'echo made >"$1/g"' sh "$D/$name"
		assert_status 0
		[[ $(<"$D/$name/g") == made ]]
	done
}

@test "hide with a pattern, and a place that is only a link" {
	mkdir "$D/keys"
	for n in one.key two.key three.txt; do echo "$n" >"$D/keys/$n"; done
	ln -s keys "$D/alias"
	in_box --hide "$D/keys/*.key" -- 'cat "$1"/keys/* 2>/dev/null'
	assert_output three.txt
	in_box --hide "$D/alias" -- 'cat "$1/keys/one.key" "$1/alias/one.key" 2>/dev/null | wc -c'
	assert_output 0
}

@test "read-only survives a mount below" {
	need_root
	mkdir "$D/m"
	unshare --mount bash -c 'mount -t tmpfs none "$1/m" && mkdir "$1/m/n" && mount -t tmpfs none "$1/m/n" || exit 77
		"$CARREL" run -- sh -c "! touch \"$1/m/x\" && ! touch \"$1/m/n/x\"" 2>/dev/null && echo held
		"$CARREL" run --write "$1" -- sh -c "touch \"$1/m/n/y\"" && echo writable' bash "$D" >"$T/out" || skip 'no second file system here'
	[[ $(<"$T/out") == $'held\nwritable' ]] || fail "$(<"$T/out")"
}

@test "as root the command reads no more than anybody, unless the policy reads it in" {
	need_root
	echo root-only >"$D/private"
	chmod 0600 "$D/private"
	in_box -- 'cat "$1/private" /etc/shadow 2>/dev/null; ls /root 2>/dev/null | wc -l'
	refute_matches "$output" 'root-only|:\*:|\$'
	in_box --read "$D/private" -- 'cat "$1/private"'
	assert_output root-only
	# A directory: of one that anybody may read what anybody reads, of a closed one all.
	mkdir -m 0755 "$D/open"
	mkdir -m 0700 "$D/closed"
	cp -p "$D/private" "$D/open"
	cp -p "$D/private" "$D/closed"
	in_box --read "$D/open" -- 'cat "$1/open/private" 2>/dev/null; ls "$1/open"'
	assert_output private
	in_box --read "$D/closed" -- 'cat "$1/closed/private"'
	assert_output root-only
}

@test "strict: the home is hidden, the system can be read" {
	echo secret >"$HOME/file"
	carrel run --profile strict -- sh -c 'cat ~/file 2>/dev/null; ls / >/dev/null && cat /etc/os-release >/dev/null && touch made'
	assert_status 0
	assert_output ''
	[[ -e $WS/made ]]
}

@test "the home's keys are hidden by default, other files of it are not" {
	mkdir "$HOME/.ssh" "$HOME/.aws"
	echo secret >"$HOME/.ssh/id"
	echo secret >"$HOME/.netrc"
	echo secret >"$HOME/.aws/credentials"
	echo plain >"$HOME/notes"
	carrel run -- sh -c 'cat ~/.ssh/id ~/.netrc ~/.aws/credentials 2>/dev/null; ls -A ~/.ssh ~/.aws; cat ~/notes'
	refute_matches "$output" secret
	is_root || assert_matches "$output" plain
	carrel run --read "$HOME/.netrc" -- cat "$HOME/.netrc"
	assert_output secret
}
