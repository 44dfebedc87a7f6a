#!/usr/bin/env bats
# Git in a directory of a work tree, and git as root: everyday work, and the notice where it cannot work. The test does
# not use /var/tmp, where a session shows nothing of the host's.
load ../lib/common

# Not below /var/tmp: there is nothing of the host's in a session.
setup() {
	if is_root; then
		COMMON_DIR=/srv common_setup
	else
		COMMON_DIR=$(getent passwd "$EUID" | cut -d : -f 6) common_setup
	fi
}

# repository DIR: with one commit by somebody, and a directory `sub`.
repository() {
	git -c init.defaultBranch=main init -q "$1"
	mkdir "$1/sub"
	echo a >"$1/sub/a"
	git -C "$1" add .
	git -C "$1" -c user.name=t -c user.email=t@example.org commit -qm one
}

# as_t: what is needed to commit.
as_t=(-c user.name=t -c user.email=t@example.org)

@test "a directory of a work tree: git fails, and the remedy is told" {
	need git
	repository "$WS"
	cd sub
	echo b >b
	carrel run -- git add b
	((status != 0)) || fail 'git wrote an index outside of the workspace'
	assert_matches "$stderr" "part of a git work tree, .*: $WS"
	assert_matches "$stderr" "hint: with --workspace git the workspace is all of $WS"
	carrel run -- sh -c 'cd . && git add b'
	assert_matches "$stderr" '--workspace git'

	carrel run --workspace git -- sh -c 'git "$@" add b && git "$@" commit -qm two && pwd' sh "${as_t[@]}"
	assert_status 0
	assert_output "$WS/sub"
	[[ $(git -C "$WS" log --format=%s -1) == two ]]
}

@test "the remedy is told where it is one, and nowhere else" {
	need git
	repository "$WS"
	carrel run -- git rev-parse nothing # all of the work tree is the workspace
	refute_matches "$stderr" 'workspace git'
	cd sub
	local arguments
	for arguments in '-- false' '--quiet -- git add .' '--workspace . -- git add .' \
		'--workspace-mode ro -- git add .' '-- git --version' '-- sh -c :gitlab;false'; do
		# shellcheck disable=SC2086 # words
		carrel run $arguments
		refute_matches "$stderr" 'workspace git'
	done
	mkdir "$T/plain"
	cd "$T/plain"
	carrel run -- git status
	refute_matches "$stderr" 'workspace git'
}

@test "a live session in a directory of a work tree says so once" {
	need git
	repository "$WS"
	cd sub
	carrel session start
	assert_status 0
	assert_matches "$stderr" 'hint: with --workspace git'
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	"$CARREL" session end "$id"
	carrel session start --workspace git
	assert_status 0
	refute_matches "$stderr" 'workspace git'
	assert_matches "$output" "workspace $WS"$'\n'"*"
	id=$(awk '/^session/ { print $2 }' <<<"$output")
	"$CARREL" session end "$id"
}

@test "workspace git: a linked worktree, a policy's line, no work tree at all" {
	need git
	repository "$WS"
	git worktree add -q "$T/linked" -b linked
	cd "$T/linked/sub"
	echo c >c
	carrel run --workspace git -- sh -c 'git "$@" add c && git "$@" commit -qm linked' sh "${as_t[@]}"
	assert_status 0
	[[ $(git log --format=%s -1) == linked ]]

	mkdir -p "$HOME/.config/carrel" "$T/plain/deep"
	echo 'workspace git' >"$HOME/.config/carrel/policy"
	cd "$WS/sub"
	carrel run -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$WS"
	cd "$T/plain/deep"
	carrel run -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$T/plain/deep"
	carrel run --workspace . -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$T/plain/deep"
}

@test "workspace git widens nothing by a .git that is none, or by the home's" {
	need git
	mkdir -p "$WS/a/.git" "$HOME/project/sub" "$WS/c/b"
	cd "$WS/a"
	carrel run --workspace git -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$WS/a"
	echo 'not a gitfile' >"$WS/c/.git"
	cd "$WS/c/b"
	carrel run --workspace git -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$WS/c/b"
	git init -q "$HOME"
	cd "$HOME/project/sub"
	carrel run --workspace git -- sh -c 'echo $CARREL_WORKSPACE'
	assert_status 0
	assert_output "$HOME/project/sub"
	git init -q "$HOME/project"
	carrel run --workspace git -- sh -c 'echo $CARREL_WORKSPACE'
	assert_output "$HOME/project"
}

@test "as root: a work tree of another user is not taken" {
	need_root
	need git
	repository "$WS"
	chown -R nobody "$WS"
	cd sub
	carrel run --workspace git -- true
	assert_status 125
	assert_matches "$stderr" "the git work tree belongs to somebody else: $WS"
}

@test "who commits is known, and nothing else of the configuration as root" {
	need git
	chmod 700 "$HOME"
	cat >"$HOME/.gitconfig" <<-'END'
		[user]
			name = "A \"quoted\" \\ Name"
			email = me@example.org
			signingkey = SECRET-KEY
		[init]
			defaultBranch = trunk
		[alias]
			lg = log --format='%an <%ae>'
			boom = !touch /nowhere
			with = -c http.extraHeader=SECRET-HEADER status
		[credential]
			helper = store --file SECRET-FILE
		[core]
			pager = SECRET-PAGER
		[url "https://SECRET-TOKEN@example.org/"]
			insteadOf = ex:
	END
	carrel run -- sh -c 'git init -q . && git symbolic-ref HEAD && git commit -q --allow-empty -m one && git lg'
	assert_status 0
	assert_output $'refs/heads/trunk\nA "quoted" \\ Name <me@example.org>'
	is_root || return 0
	carrel run -- cat "$HOME/.gitconfig"
	assert_status 0
	refute_matches "$output" 'SECRET|credential|pager|boom|url'
	carrel run -- sh -c 'echo x >>~/.gitconfig'
	((status != 0)) || fail 'the configuration was written'
	carrel run --hide "$HOME/.gitconfig" -- git config --global user.name
	((status != 0)) || fail 'what is hidden was shown'
	carrel run --profile strict -- git config --global user.name
	((status != 0)) || fail 'strict shows the home'
	# What is named as a whole is seen as it is.
	carrel run --read "$HOME" -- git config --global core.pager
	assert_output SECRET-PAGER
}

@test "as root: the configuration below XDG_CONFIG_HOME, a link, a FIFO, one that git refuses" {
	need_root
	need git timeout
	chmod 700 "$HOME"
	mkdir -p "$HOME/.config/git" "$HOME/dot"
	printf '[user]\n\tname = X D G\n' >"$HOME/.config/git/config"
	carrel run -- git config --global user.name
	assert_output 'X D G'
	printf '[user]\n\tname = Linked\n' >"$HOME/dot/gitconfig"
	ln -s dot/gitconfig "$HOME/.gitconfig"
	carrel run -- git config user.name
	assert_output Linked
	rm "$HOME/.gitconfig"
	mkfifo "$HOME/.gitconfig"
	run --separate-stderr timeout 60 "$CARREL" run -- true
	assert_status 0
	rm "$HOME/.gitconfig"
	printf '[user\nname = x\n' >"$HOME/.gitconfig"
	carrel run -- true
	assert_status 0
}
