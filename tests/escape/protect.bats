#!/usr/bin/env bats
# What the host would later run or obey: not changed, not replaced, not brought into being.
load ../lib/common
load ../lib/session
load escape

setup() {
	escape_setup
	SETTINGS=(--env GIT_CONFIG_NOSYSTEM) # inside git has no more been told than outside
	make_repository "$WS"
	ORIGINAL=$(<"$WS/.git/config")
}

make_repository() {
	git -c init.defaultBranch=main init -q "$1"
	mkdir -p "$1/.git/hooks"
	git -C "$1" -c user.name=u -c user.email=u@h commit -q --allow-empty -m first
}

# assert_config: it is what it was, and nothing runs.
assert_config() {
	[[ $(<"$WS/.git/config") == "$ORIGINAL" && ! -L $WS/.git ]] || fail 'the config was changed'
}

# protected COMMAND...: refused inside and without effect; outside it works, tried on a copy.
protected() {
	cp -a "$WS" "$T/control"
	broke env -C "$T/control" "$@"
	rm -rf "$T/control"
	held "$@"
	assert_config
}

@test "git's config is not written, cut, or removed" {
	protected attack_files write .git/config
	protected attack_files truncate .git/config
	protected attack_files ftruncate .git/config
	protected attack_files unlink .git/config
	protected attack_files chmod .git/config
	protected attack_files write-o-path .git/config
	protected attack_files write-at .git config
	protected attack_files write /proc/self/cwd/.git/config
}

@test "nor is another file put in its place" {
	echo evil >"$WS/evil"
	protected attack_files rename evil .git/config
	protected attack_files exchange evil .git/config
	protected attack_files rename .git/config moved
	held_by 'refused:(EXDEV|EEXIST)' attack_files link evil .git/config
	assert_config
}

@test "nor is it written under a second name" {
	protected attack_files link-write .git/config second
	held attack_files link-write .git/config .git/second
	assert_config
}

@test "its directory is not moved from under it" {
	mkdir "$WS/x"
	protected attack_files rename .git y
	protected attack_files exchange .git x
	held attack_files rmdir .git
	session sh -c 'mv .git x/ && mkdir .git && echo evil >.git/config; mv .git y && ln -s x .git'
	((status != 0))
	assert_config
}

@test "a deep protected file stays where it is, with every directory above it" {
	mkdir -p "$WS/a/b/c"
	echo text >"$WS/a/b/c/file"
	SETTINGS=(--protect "$WS/a/b/c/file")
	for directory in a a/b a/b/c; do
		held 'attack_files' rename "$directory" moved
		held 'attack_files' rmdir "$directory"
	done
	session sh -c 'echo evil >a/b/c/file || mv a x || rm -rf a'
	((status != 0))
	[[ $(<"$WS/a/b/c/file") == text ]]
	SETTINGS=()
	session sh -c 'mv a x && mkdir -p a/b/c && echo evil >a/b/c/file'
	[[ $status == 0 && $(<"$WS/a/b/c/file") == evil ]] || fail 'control'
}

@test "no hook is made or changed" {
	protected attack_files create .git/hooks/pre-commit
	echo '#!/bin/sh' >"$WS/.git/hooks/post-checkout"
	chmod 0755 "$WS/.git/hooks/post-checkout"
	protected attack_files write .git/hooks/post-checkout
	protected attack_files rename .git/hooks .git/x
	session sh -c 'rm -rf .git/hooks; mkdir .git/hooks; echo evil >.git/hooks/pre-commit'
	[[ ! -e $WS/.git/hooks/pre-commit && -x $WS/.git/hooks/post-checkout ]]
}

# appears PATH COMMAND: what the command makes at PATH is not there afterwards, but in quarantine,
# and can no longer be executed.
appears() {
	local path=$1 found

	(cd "$(mktemp -d "$T/control.XXXXXX")" && mkdir .git && sh -c "$2" && [[ -e $path || -L $path ]]) ||
		fail "control: $path does not come to be"
	session sh -c "$2"
	assert_status 0
	[[ ! -e $WS/$path && ! -L $WS/$path ]] || fail "$path is still there"
	assert_matches "$stderr" quarantined
	assert_matches "$stderr" "it is now $BASE/carrel-[a-z2-7]+[.]quarantine/"
	found=$(find "$BASE"/carrel-*.quarantine -type f -perm /111 -print -quit)
	[[ -z $found ]] || fail "it can still be executed: $found"
	chmod -R u+rwx "$BASE"
	rm -rf "$BASE"/carrel-*.quarantine
}

@test "protected files that do not exist do not come to be" {
	local name

	for name in .envrc .bashrc .mcp.json .gitmodules .vimrc .gdbinit .git/config.worktree \
		.git/commondir mise.toml opencode.json .dir-locals-2.el; do
		appears "$name" "echo evil >$name && chmod 755 $name"
	done
}

@test "nor directories with what is in them" {
	appears .vscode/tasks.json 'mkdir .vscode && echo evil >.vscode/tasks.json && chmod 755 .vscode/*'
	appears .claude 'mkdir -p .claude/hooks && touch .claude/settings.json && chmod 0 .claude/hooks'
	appears .helix/languages.toml 'mkdir .helix && echo evil >.helix/languages.toml'
	appears .agents/skills/x 'mkdir -p .agents/skills && echo evil >.agents/skills/x'
	appears .config/fish/config.fish 'mkdir -p .config/fish && echo evil >.config/fish/config.fish'
	[[ -d $WS/.config ]]
}

@test "nor as links, nor behind links" {
	mkdir "$WS/elsewhere"
	appears .envrc 'mkdir -p elsewhere && echo evil >elsewhere/x && ln -s elsewhere/x .envrc'
	appears .vscode 'mkdir -p elsewhere && echo evil >elsewhere/tasks.json && ln -s elsewhere .vscode'
	appears .config 'mkdir -p elsewhere/fish && echo evil >elsewhere/fish/config.fish && ln -s elsewhere .config'
}

@test "nor by a rename of something harmless" {
	appears .envrc 'echo evil >harmless && mv harmless .envrc'
	appears .vscode 'mkdir -p harmless && echo evil >harmless/tasks.json && mv harmless .vscode'
	appears .envrc 'echo evil >harmless2 && ln harmless2 .envrc'
}

@test "nor behind a link in place of a directory that was there" {
	mkdir -p "$WS/.config"
	session sh -c 'mkdir -p y/fish && echo evil >y/fish/config.fish && mv .config moved && ln -s y .config'
	# The control arm: it was done, and stays where nothing obeys it.
	[[ -e $WS/y/fish/config.fish && -d $WS/moved ]] || fail 'not even tried'
	[[ ! -e $WS/.config/fish/config.fish && ! -L $WS/.config ]] || fail 'fish would read it'
	assert_status 0
	assert_matches "$stderr" 'quarantined.*/\.config$'
	rm -rf "$BASE"/carrel-*
}

@test "nor where the quarantine is another file system, and they cannot be copied there" {
	local base deep='cd .git/hooks && for i in $(seq 30); do mkdir d && cd d || exit 1; done; echo tried'

	base=$(mktemp -d /dev/shm/t.XXXXXX)
	rm -rf "$WS/.git/hooks"
	[[ $(stat -c %d "$base") != "$(stat -c %d "$WS")" ]] || skip 'all directories are on one file system'
	TMPDIR=$base session sh -c 'mkdir .git/hooks && echo evil >.git/hooks/pre-commit &&
		chmod 0755 .git/hooks/pre-commit && echo evil >.envrc && '"$deep"
	rm -rf "$base"
	assert_output tried
	assert_status 0
	[[ ! -e $WS/.git/hooks && ! -e $WS/.envrc ]] || fail 'the host would obey it'
	# It is said where it is, and that is not executed.
	[[ $stderr =~ (/[^[:space:]]*/\.carrel-quarantined-[0-9a-f]{16}) ]] || fail 'not said'
	[[ -f ${BASH_REMATCH[1]}/pre-commit && ! -x ${BASH_REMATCH[1]}/pre-commit ]] || fail 'not kept'
}

@test "what is quarantined is reported, with where it is" {
	SETTINGS=(--report "$T/report")
	session sh -c 'echo evil >.envrc'
	assert_field "$T/report" '.quarantined[0].path' "$WS/.envrc"
	local to

	to=$(field "$T/report" '.quarantined[0].to')
	[[ $(<"$to") == evil ]] || fail 'it is not where the report says'
	rm -rf "$BASE"/carrel-*.quarantine
}

@test "a repository made where there was none runs nothing on the host" {
	rm -rf "$WS/.git"
	session sh -c 'git init -q . && git config core.fsmonitor "touch $PWD/pwned; false" &&
		mkdir -p .git/hooks && printf "#!/bin/sh\ntouch pwned\n" >.git/hooks/post-index-change &&
		chmod 755 .git/hooks/*'
	assert_status 0
	git -C "$WS" status >/dev/null 2>&1 || true
	[[ ! -e $WS/pwned && ! -e $WS/.git/config && ! -e $WS/.git/hooks ]] || fail 'it ran'
	rm -rf "$BASE"/carrel-*.quarantine
	mkdir "$T/control"
	cd "$T/control"
	git init -q .
	git config core.fsmonitor "touch $PWD/pwned; false"
	git status >/dev/null 2>&1 || true
	[[ -e pwned ]] || fail 'control: a config like that runs nothing'
}

@test "a work tree of a repository outside: its config and hooks are not written" {
	git -C "$WS" worktree add -q "$T/tree" -b tree
	cd "$T/tree"
	local attempt

	for attempt in "write $WS/.git/config" "create $WS/.git/hooks/x" "rename $WS/.git $WS/y" \
		"write $WS/.git/worktrees/tree/gitdir" "write $T/tree/.git" "unlink $T/tree/.git" \
		"rename $T/tree/.git $T/tree/x"; do
		# shellcheck disable=SC2086
		held attack_files $attempt
	done
	session sh -c 'echo evil >"$1"' sh "$WS/.git/worktrees/tree/config.worktree"
	[[ ! -e $WS/.git/worktrees/tree/config.worktree ]] || fail 'it is still there'
	rm -rf "$BASE"/carrel-*.quarantine
	assert_config
	session git -c user.name=u -c user.email=u@h commit -q --allow-empty -m second
	assert_status 0
	assert_config
}

@test "a gitfile that names another's repository opens nothing" {
	make_repository "$T/victim"
	rm -rf "$WS/.git"
	echo "gitdir: $T/victim/.git" >"$WS/.git"
	broke attack_files create "$T/victim/.git/new"
	held attack_files create "$T/victim/.git/new"
	held attack_files write "$T/victim/.git/config"
	rm "$WS/.git"
	mkdir -p "$T/victim/.git/worktrees"
	git -C "$T/victim" worktree add -q "$T/tree" -b tree
	printf 'gitdir: %s\n' "$T/victim/.git/worktrees/tree" >"$WS/.git"
	held attack_files create "$T/victim/.git/new"
	ln -sfn "$T/victim/.git" "$WS/link"
	rm "$WS/.git"
	ln -s "$T/victim/.git" "$WS/.git"
	held attack_files create "$T/victim/.git/new"
}

@test "a submodule's config and hooks are not written" {
	make_repository "$T/module"
	git -C "$WS" -c protocol.file.allow=always submodule add -q "$T/module" sub
	ORIGINAL=$(<"$WS/.git/config")
	local attempt

	for attempt in "write .git/modules/sub/config" "create .git/modules/sub/hooks/x" \
		"rename .git/modules/sub .git/modules/x" "write sub/.git" "rename sub moved"; do
		# shellcheck disable=SC2086
		held attack_files $attempt
	done
	assert_config
	session git -C sub -c user.name=u -c user.email=u@h commit -q --allow-empty -m inside
	assert_status 0
}

@test "a repository that the index alone makes a submodule is protected, and stays" {
	local attempt

	mkdir "$WS/deep"
	make_repository "$WS/deep/own"
	git -C "$WS/deep/own" -c user.name=u -c user.email=u@h commit -q --allow-empty -m one
	git -C "$WS" -c advice.addEmbeddedRepo=false add deep/own
	git -C "$WS" -c user.name=u -c user.email=u@h commit -q -m embedded
	printf '#!/bin/sh\n' >"$WS/deep/own/.git/hooks/pre-commit"
	ORIGINAL=$(<"$WS/.git/config")
	for attempt in "write deep/own/.git/config" "create deep/own/.git/hooks/x" \
		"rename deep/own moved"; do
		# shellcheck disable=SC2086
		held attack_files $attempt
	done
	session sh -c ': >new; git add new; git status; git -C deep/own -c user.name=u -c user.email=u@h \
		commit -q --allow-empty -m inside'
	assert_status 0
	[[ -f $WS/deep/own/.git/config && -f $WS/deep/own/.git/hooks/pre-commit ]] ||
		fail 'it is gone'
	assert_nothing_left
}

@test "a git directory that nobody may list is reviewed all the same" {
	local mode

	for mode in 0311 2311; do
		ln -sf "$T/pwned" "$WS/.git/COMMIT_EDITMSG"
		chmod "$mode" "$WS/.git"
		git -C "$WS" -c user.name=u -c user.email=u@h commit -q --allow-empty -m control
		[[ -e $T/pwned ]] || fail 'control'
		rm -f "$T/pwned" "$WS/.git/COMMIT_EDITMSG"
		chmod 0755 "$WS/.git"
		session sh -c "ln -sf '$T/pwned' .git/COMMIT_EDITMSG; chmod $mode .git; stat -c 'mode %04a' .git"
		assert_matches "$output" "mode $mode"
		assert_matches "$stderr" 'quarantined, since the host would obey it: .*/\.git/COMMIT_EDITMSG'
		chmod 0755 "$WS/.git"
		[[ ! -L $WS/.git/COMMIT_EDITMSG ]] || fail "it stands, with $mode"
		rm -rf "$T"/base/carrel-*.quarantine
	done
}

@test "a worktree's way to another configuration is seen among any number of worktrees" {
	local script="git worktree add -q --detach d/in; cp -R .git e
printf '[core]\\n fsmonitor = \"touch %s/pwned;false\"\\n' '$T' >>e/config
echo \"\$PWD/e\" >.git/worktrees/in/commondir; cd .git/worktrees; seq -f j%g COUNT | xargs mkdir"
	local count

	git -C "$WS" -c user.name=u -c user.email=u@h commit -q --allow-empty -m first
	(cd "$WS" && sh -c "${script//COUNT/3000}")
	git -C "$WS" worktree remove d/in || true
	[[ -e $T/pwned ]] || fail 'control'
	for count in 600 3000; do
		rm -rf "$T/pwned" "$WS/.git/worktrees" "$WS/d" "$WS/e"
		session sh -c "${script//COUNT/$count}"
		assert_status 0
		assert_matches "$stderr" 'quarantined, since the host would obey it: .*/\.git/worktrees'
		git -C "$WS" worktree remove d/in || true
		[[ ! -e $T/pwned ]] || fail "it is obeyed, among $count"
		rm -rf "$T"/base/carrel-*.quarantine
	done
}

@test "what the config names in the workspace is protected like it" {
	cd "$WS"
	echo '[user]' >included
	mkdir my-hooks
	git config include.path ../included
	git config core.hooksPath my-hooks
	held attack_files write included
	held attack_files rename included x
	held attack_files create my-hooks/pre-commit
	held attack_files rename my-hooks x
}

@test "a protected link is protected at both ends" {
	mkdir "$WS/settings"
	echo '{}' >"$WS/settings/tasks.json"
	ln -s settings "$WS/.vscode"
	held attack_files unlink .vscode
	held attack_files rename .vscode x
	held attack_files write .vscode/tasks.json
	held attack_files write settings/tasks.json
	held attack_files rename settings x
	[[ $(<"$WS/.vscode/tasks.json") == '{}' ]]
}

@test "no placeholder is seen on the host while the session runs, or after it" {
	local before

	before=$(find "$WS" -path "$WS/.git/objects" -prune -o -print | sort)
	start_and_wait run -- sh -c 'touch ready; sleep 1000'
	rm "$WS/ready"
	[[ $(find "$WS" -path "$WS/.git/objects" -prune -o -print | sort) == "$before" ]]
	signal KILL
	finish
	[[ $(find "$WS" -path "$WS/.git/objects" -prune -o -print | sort) == "$before" ]]
	wait_for "$CARREL" gc
	wait_for assert_nothing_left
}

# on_a_full_disk WHEN SETTING...: nothing can be renamed, at those of the supervisor's calls.
on_a_full_disk() {
	run --separate-stderr strace -f -qqq -e trace=renameat2 -e signal=none \
		-e inject="renameat2:error=ENOSPC:when=$1" -o "$T/calls" "$CARREL" run "${@:2}" -- \
		sh -c 'echo evil >.envrc; mkdir .vscode; echo text >$CARREL_SCRATCH/kept'
}

@test "on a disk that a tool has filled the scratch makes room for the quarantine" {
	need strace
	on_a_full_disk 1..2 # into the quarantine, and aside
	assert_status 0
	[[ ! -e $WS/.envrc && ! -e $WS/.vscode ]] || fail 'it stands'
	[[ $(cat "$BASE"/carrel-*.quarantine/.envrc) == evil ]]
	rm -rf "$BASE"/carrel-*.quarantine
	assert_nothing_left
	# Where there is no room then either, it is said of each.
	on_a_full_disk 1+
	assert_status 125
	[[ -e $WS/.envrc && -e $WS/.vscode ]] || fail 'control'
	assert_matches "$stderr" "quarantine [^:]*: $WS/.envrc: No space"
	assert_matches "$stderr" "quarantine [^:]*: $WS/.vscode: No space"
	rm -rf "$BASE"/carrel-*.quarantine
	assert_nothing_left
	rm -rf "$WS/.envrc" "$WS/.vscode"
	# What is to be kept makes no room.
	on_a_full_disk 1..2 --keep
	assert_status 125
	[[ -e $WS/.envrc && ! -e $WS/.vscode ]] || fail 'not the first alone'
	[[ $(cat "$BASE"/carrel-*/scratch/kept) == text ]]
	rm -rf "$BASE"/carrel-*
}

swept() {
	"$CARREL" gc >>"$T/swept" 2>&1 && ! session_dir
}

@test "what still runs when the launcher was killed puts nothing back behind gc's review" {
	for _ in {1..10}; do
		# So many that it takes init a while to die.
		start_and_wait run -- sh -c 'attack_files make-again .envrc & touch ready; wait'
		wait_for test -e "$WS/.envrc"
		signal KILL
		wait "$LAUNCHER" 2>/dev/null || true
		: >"$T/swept"
		swept || wait_for swept # at once, while init dies
		assert_matches "$(<"$T/swept")" quarantine
		rm -rf "$BASE"/carrel-*.quarantine
		await_nothing_left
		[[ ! -e $WS/.envrc ]] || fail 'it is back'
	done
}

@test "an overlay keeps everything from the host, what stands below it included" {
	mkdir "$WS/sub"
	secret "$WS/sub/.env"
	SETTINGS=(--workspace-mode overlay --hide "$WS/sub/.env")
	session sh -c 'mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo evil >sub/new
		echo evil >top; echo evil >>.git/config; rm -rf .git; cat sub/.env; :'
	refute_matches "$output" 'the secret'
	[[ ! -e $WS/.git/hooks/pre-commit && ! -e $WS/sub/new && ! -e $WS/top ]] ||
		fail 'the host has it'
	assert_config
	SETTINGS=()
	session sh -c 'echo text >top'
	[[ -e $WS/top ]] || fail 'control'
}

@test "replaced on the host during the session, a protected file ends the session" {
	start_and_wait run -- sh -c 'touch ready; while :; do echo "[evil]" >>.git/config; done 2>/dev/null'
	git -C "$WS" config user.name u
	finish
	assert_matches "$stderr" 'removed from outside'
	assert_status 125
	start_and_wait run -- sh -c 'touch ready; sleep 1'
	echo >"$T/unrelated"
	mv "$T/unrelated" "$T/unrelated2"
	finish
	assert_status 0
}

@test "so does a hidden one" {
	secret "$HOME/.netrc"
	secret "$HOME/.ssh/id"
	start_and_wait run -- sh -c 'touch ready; sleep 1000'
	secret "$HOME/.netrc.new"
	mv "$HOME/.netrc.new" "$HOME/.netrc"
	finish
	assert_matches "$stderr" 'removed from outside'
	start_and_wait run -- sh -c 'touch ready; sleep 1000'
	mv "$HOME/.ssh" "$HOME/.ssh.old"
	rm -rf "$HOME/.ssh.old"
	finish
	assert_matches "$stderr" 'removed from outside'
}
