#!/usr/bin/env bats
# A tool can neither change nor replace nor create what the host would later run or obey.
# ctest: cost=45
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

# appears PATH COMMAND: what the command makes at PATH is not there afterwards, but in quarantine, under a name
# that nothing obeys.
appears() {
	local path=$1 found

	(cd "$(mktemp -d "$T/control.XXXXXX")" && mkdir .git && sh -c "$2" && [[ -e $path || -L $path ]]) ||
		fail "control: $path does not come to be"
	session sh -c "$2" # it may go before all of it is made
	[[ ! -e $WS/$path && ! -L $WS/$path ]] || fail "$path is still there"
	assert_matches "$stderr" quarantined
	assert_matches "$stderr" "it is now $WS(/[.]git)?/[.]carrel-quarantine-[a-z2-7]{20}/.*[.]quarantined"
	found=$(find "$WS" -path '*/.carrel-quarantine-*/*' -prune ! -name '*.quarantined' -printf '%f ')
	[[ $found == '.gitignore ' ]] || fail "a name that may be obeyed: $found"
	[[ $(git -C "$WS" status --porcelain) != *carrel-quarantine* ]] || fail 'git looks at it'
	chmod -R u+rwx "$WS"
	rm -rf "$WS"/{,.git/}.carrel-quarantine-*
}

@test "protected files that do not exist do not come to be" {
	local name

	for name in .envrc .bashrc .mcp.json .gitmodules .vimrc .gdbinit .git/config.worktree \
		.git/commondir mise.toml opencode.json .dir-locals-2.el; do
		appears "$name" "echo evil >$name && chmod 755 $name"
	done
}

@test "start-up files of a home that may be written are not, nor do they come to be" {
	local name

	mkdir -p "$HOME/.config/fish"
	for name in .bashrc .profile .zshrc .config/fish/config.fish; do
		echo mine >"$HOME/$name"
	done
	SETTINGS=(--write "$HOME")
	session sh -c 'echo written >~/plain'
	[[ $(<"$HOME/plain") == written ]] || fail 'control: the home cannot be written'
	for name in .bashrc .profile .zshrc .config/fish/config.fish; do
		# shellcheck disable=SC2016
		session sh -c 'echo evil >>~/"$1" || { echo evil >~/x && mv ~/x ~/"$1"; }' sh "$name"
		((status != 0)) || fail "$name was written"
		[[ $(<"$HOME/$name") == mine ]] || fail "$name is another"
	done
	session sh -c 'mv ~/.config ~/c && mkdir -p ~/.config/fish && echo evil >~/.config/fish/config.fish'
	[[ $(<"$HOME/.config/fish/config.fish") == mine ]] || fail 'its directory was moved'
	for name in .zshenv .gitconfig .config/autostart/x.desktop; do
		# shellcheck disable=SC2016
		session sh -c 'mkdir -p "$(dirname ~/"$1")" && echo evil >~/"$1"' sh "$name"
		[[ ! -e $HOME/$name ]] || fail "$name is there"
		assert_matches "$stderr" "quarantined.*: $HOME/"
	done
	# A part of it.
	SETTINGS=(--write "$HOME/.config")
	session sh -c 'echo plain >~/.config/plain; echo evil >>~/.config/fish/config.fish'
	[[ $(<"$HOME/.config/plain") == plain && $(<"$HOME/.config/fish/config.fish") == mine ]]
	# What is named is meant.
	SETTINGS=(--write "$HOME" --write "$HOME/.bashrc")
	session sh -c 'echo mine too >>~/.bashrc'
	assert_status 0
	[[ $(<"$HOME/.bashrc") == $'mine\nmine too' ]]
}

@test "nor directories with what is in them" {
	appears .vscode/tasks.json 'mkdir .vscode && echo evil >.vscode/tasks.json && chmod 755 .vscode/*'
	appears .claude 'mkdir -p .claude/hooks && touch .claude/settings.json && chmod 0 .claude/hooks'
	appears .helix/languages.toml 'mkdir .helix && echo evil >.helix/languages.toml'
	appears .agents/skills/x 'mkdir -p .agents/skills && echo evil >.agents/skills/x'
	appears .config/fish/config.fish 'mkdir -p .config/fish && echo evil >.config/fish/config.fish'
	appears .hg/sharedpath 'mkdir .hg && echo /tmp/evil >.hg/sharedpath'
	appears .jj/repo/config.toml 'mkdir -p .jj/repo && echo evil >.jj/repo/config.toml'
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
	assert_matches "$stderr" 'obey it: [^ ]*/\.config'
	rm -rf "$BASE"/carrel-*
}

@test "nor in a tree that is deep, or on a base that is another file system" {
	local base
	base=$(mktemp -d /dev/shm/t.XXXXXX)
	rm -rf "$WS/.git/hooks"
	# Made beside it: from elsewhere mv copies, and loses half of what it copies to.
	TMPDIR=$base session sh -c 'cd .git && mkdir made && echo evil >made/pre-commit && chmod 0755 made/pre-commit &&
		(cd made && for i in $(seq 30); do mkdir d && cd d || exit 1; done) &&
		mv made hooks && echo evil >../.envrc && echo tried'
	rm -rf "$base"
	assert_output tried
	assert_status 0
	[[ ! -e $WS/.git/hooks && ! -e $WS/.envrc ]] || fail 'the host would obey it'
	# It is said where it is.
	[[ $stderr =~ (/[^[:space:]]*/\.git/\.carrel-quarantine-[a-z2-7]{20}/hooks\.quarantined) ]] || fail 'not said'
	[[ $(<"${BASH_REMATCH[1]}/pre-commit") == evil ]] || fail 'not kept'
}

@test "nor can a later session put it back" {
	session sh -c 'echo evil >.envrc; mkdir -p .git/hooks; rm -rf .git/hooks'
	session sh -c 'cp .carrel-quarantine-*/.envrc.quarantined .envrc && echo tried'
	assert_output tried
	[[ ! -e $WS/.envrc ]] || fail 'it is back'
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "a quarantine directory that a tool has made, or a link of its name, is no way out" {
	mkdir "$WS/victim"
	session sh -c 'ln -s victim ".carrel-quarantine-$CARREL_SESSION"; echo evil >.envrc'
	[[ ! -e $WS/.envrc && -z $(ls -A "$WS/victim") ]] || fail 'it went through the link'
	assert_matches "$stderr" "it is now $WS/[.]carrel-quarantine-[a-z2-7]{20}-[0-9a-f]{8}/[.]envrc"
	session sh -c 'mkdir -m 777 ".carrel-quarantine-$CARREL_SESSION"; echo evil >.envrc'
	[[ ! -e $WS/.envrc ]] || fail 'it stands'
	assert_matches "$stderr" "it is now $WS/[.]carrel-quarantine-[a-z2-7]{20}-[0-9a-f]{8}/[.]envrc"
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "what is quarantined is reported, with where it is" {
	SETTINGS=(--report "$T/report")
	session sh -c 'echo evil >.envrc'
	assert_field "$T/report" '.quarantined[0].path' "$WS/.envrc"
	local to

	to=$(field "$T/report" '.quarantined[0].to')
	[[ $(<"$to") == evil ]] || fail 'it is not where the report says'
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "a repository made where there was none runs nothing on the host" {
	rm -rf "$WS/.git"
	session sh -c 'mkdir made && printf "#!/bin/sh\ntouch pwned\n" >made/post-index-change && chmod 755 made/* &&
		git init -q . && rm -rf .git/hooks && mv made .git/hooks &&
		git config core.fsmonitor "touch $PWD/pwned; false"'
	assert_status 0
	git -C "$WS" status >/dev/null 2>&1 || true
	[[ ! -e $WS/pwned && ! -e $WS/.git/config && ! -e $WS/.git/hooks ]] || fail 'it ran'
	rm -rf "$WS"/.carrel-quarantine-*
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
	rm -rf "$WS"/.carrel-quarantine-*
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
		rm -rf "$WS"/.carrel-quarantine-*
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
		rm -rf "$WS"/.carrel-quarantine-*
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

# on_a_full_disk WHEN SETTING...: nothing can be renamed, at those of the supervisor's calls, nor any directory made. With the first
# call it looks for a record's directory to use again.
on_a_full_disk() {
	run --separate-stderr strace -f -qqq -e trace=renameat2,mkdirat -e signal=none \
		-e inject="renameat2:error=ENOSPC:when=$1" -o "$T/calls" "$CARREL" run "${@:2}" -- \
		sh -c 'echo evil >.envrc; mkdir .vscode; echo text >$CARREL_SCRATCH/kept'
}

@test "on a disk that a tool has filled what appeared is renamed where it is, or else removed" {
	need strace
	on_a_full_disk 2 # into the quarantine
	assert_status 0
	[[ ! -e $WS/.envrc && ! -e $WS/.vscode ]] || fail 'it stands'
	[[ $(cat "$WS"/.carrel-quarantine-*-????????????????) == evil ]] || fail 'not renamed'
	rm -rf "$WS"/.carrel-quarantine-*
	on_a_full_disk 2..3 # nor under a longer name
	[[ ! -e $WS/.envrc && $(cat "$WS"/~?????) == evil ]] || fail 'not renamed'
	rm -rf "$WS"/.carrel-quarantine-* "$WS"/~*
	# Where a directory has not even room for that, it goes, and that is said.
	on_a_full_disk 1+ --keep
	assert_status 0
	[[ ! -e $WS/.envrc && ! -e $WS/.vscode ]] || fail 'it stands'
	assert_matches "$stderr" "quarantined[^:]*: $WS/.envrc"
	assert_matches "$stderr" "it was removed: the disk has no room"
	[[ $(cat "$BASE"/carrel-*/scratch/kept) == text ]]
	rm -rf "$BASE"/carrel-* "$WS"/.carrel-quarantine-*
}

swept() {
	"$CARREL" gc >>"$T/swept" 2>&1 && ! session_dir
}

@test "what still runs when the launcher was killed puts nothing back behind gc's review" {
	local found=0

	for _ in {1..10}; do
		# So many that it takes init a while to die.
		start_and_wait run -- sh -c 'attack_files make-again .envrc & touch ready; wait'
		wait_for test -e "$WS/.envrc"
		signal KILL
		wait "$LAUNCHER" 2>/dev/null || true
		: >"$T/swept"
		swept || wait_for swept # at once, while init dies
		# The launcher may have been killed just after it had taken away the last of them.
		[[ $(<"$T/swept") != *quarantine* ]] || ((++found))
		rm -rf "$WS"/.carrel-quarantine-*
		await_nothing_left
		[[ ! -e $WS/.envrc ]] || fail 'it is back'
	done
	((found > 0)) || fail 'nothing ever stood when the launcher died'
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

# quick: the last `session` ended within so many seconds of the wall's clock.
quick() {
	((SECONDS - BEGUN <= $1)) || fail "it took $((SECONDS - BEGUN)) s"
}

# What a tool leaves for the review to choke on: an index of 4,000 submodules, under thousands of names.
LINK_FARM='C=$(git rev-parse HEAD); seq -f "160000 $C 0	a/b%g" 4000 | git update-index --index-info
	mkdir -p a; git init -q a/b1; git -C a/b1 config core.fsmonitor "touch $PWD/pwned; false"
	cp .git/index .git/sharedindex.0; cd .git
	perl -e '\''link("sharedindex.0", "sharedindex.$_") or die for 1..4000'\'''

@test "a farm of links to an index holds nothing up, and is seen through" {
	BEGUN=$SECONDS
	SETTINGS+=(--timeout 60s)
	session sh -c "$LINK_FARM"
	assert_status 0
	assert_matches "$stderr" 'quarantined, since the host would obey it: .*/a/b1/\.git/config'
	quick 60
	git -C "$WS" status >/dev/null 2>&1 || true
	[[ ! -e $WS/pwned ]] || fail 'it ran'
	rm -rf "$BASE"/carrel-*.quarantine
	# The control arm: what git does where nobody looks.
	(cd "$WS" && rm -rf a && mkdir -p a && git init -q a/b1 &&
		git -C a/b1 config core.fsmonitor "touch $WS/pwned; false")
	git -C "$WS" status >/dev/null 2>&1 || true
	[[ -e $WS/pwned ]] || fail 'control: that repository runs nothing'
}

@test "a time-out holds whatever tools leave behind: a farm of links, and a scratch of many files" {
	SETTINGS+=(--timeout 4s --grace 1s --report "$T/report.json")
	BEGUN=$SECONDS
	# shellcheck disable=SC2016
	session sh -c "$LINK_FARM
		cd \"\$TMPDIR\" && mkdir many && cd many &&
		perl -e 'for (1 .. 30000) { open(my \$f, \">\", \$_) or die }'
		touch ready; sleep 1000"
	# The review came to its end, or not, and then what it did not see is taken away unread: both are said.
	[[ $status == 124 || $status == 125 ]] || fail 'another status'
	quick 60
	keep_report "$T/report.json"
	assert_field "$T/report.json" .limit timeout
	git -C "$WS" status >/dev/null 2>&1 || true
	[[ ! -e $WS/pwned ]] || fail 'it ran'
	# What there was no time for goes in the background.
	await_nothing_left
}

@test "git init and git clone in the workspace's root leave what works" {
	rm -rf "$WS/.git"
	session sh -c 'git init -q . && echo 1 >f && git add f &&
		git -c user.name=u -c user.email=u@h commit -q -m mine'
	assert_status 0
	[[ $(git -C "$WS" log --format=%s) == mine && -e $WS/.git/config ]] || fail 'it is no repository'
	[[ ! $stderr =~ quarantined ]] || fail "what git writes was taken away: $stderr"
	# It is a repository like any other from then on.
	held attack_files write .git/config
	rm -rf "$WS/.git" "$WS/f"
	# shellcheck disable=SC2016
	session sh -c 'O=$TMPDIR/origin; git init -q "$O" && git -C "$O" -c user.name=u -c user.email=u@h \
		commit -q --allow-empty -m first &&
		git -c "url.$O.insteadOf=https://example.com/x" clone -q https://example.com/x .'
	assert_status 0
	[[ ! $stderr =~ quarantined && $(git -C "$WS" log --format=%s) == first ]] || fail "$stderr"
	git -C "$WS" status
}

@test "npm init leaves what works" {
	command -v npm >/dev/null || skip 'no npm packages here: no npm'
	session env npm_config_update_notifier=false npm init -y
	assert_status 0
	[[ -s $WS/package.json && ! $stderr =~ quarantined ]] || fail 'it is gone'
}

@test "the start and the review open no device that stands for a file of git's" {
	local file

	command -v python3 >/dev/null || fail 'python3 is missing'
	for file in .git/config .git/index .gitmodules; do
		rm -rf "$WS/.git" "$WS/.gitmodules"
		make_repository "$WS"
		rm -f "${WS:?}/$file"
		mkfifo "$WS/$file"
		run opened_by "$WS/$file" cat "$WS/$file"
		assert_matches "$output" opened
		run opened_by "$WS/$file" "$CARREL" run -- true
		[[ ! $output =~ opened ]] || fail "$file was opened"
	done
	rm -rf "$BASE"/carrel-*.quarantine
}

# opened_by FILE COMMAND...: "opened" where somebody opened it while the command ran.
opened_by() {
	python3 - "$@" <<-'PYTHON'
		import ctypes, os, select, subprocess, sys
		libc = ctypes.CDLL(None, use_errno=True)
		watch = libc.inotify_init1(os.O_NONBLOCK)
		assert libc.inotify_add_watch(watch, os.fsencode(sys.argv[1]), 0x20) >= 0
		child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
		if "cat" in sys.argv[2]:
		    os.close(os.open(sys.argv[1], os.O_WRONLY))
		child.wait()
		if select.select([watch], [], [], 0)[0]:
		    print("opened")
	PYTHON
}

@test "a worktree that is gone is not taken over by another user" {
	is_root || skip 'needs root'
	git -C "$WS" worktree add -q "$T/stale" -b stale
	chmod 0755 "$T"
	cp "$T/stale/.git" "$T/dot-git"
	cd "$T/stale"
	# The control arm: the caller's own.
	session git update-ref refs/heads/mine HEAD
	assert_status 0
	git -C "$WS" rev-parse -q --verify mine
	rm -rf "$T/stale"
	mkdir "$T/stale"
	cp "$T/dot-git" "$T/stale/.git"
	cd "$T/stale"
	local owned

	for owned in "$T/stale" "$T/stale/.git"; do
		chown 0:0 "$T/stale" "$T/stale/.git"
		chown 12345 "$owned"
		session git -c safe.directory='*' update-ref refs/heads/theirs HEAD
		((status != 0)) || fail 'it could write'
		if git -C "$WS" rev-parse -q --verify theirs; then fail 'it was written'; fi
	done
}
