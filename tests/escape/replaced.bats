#!/usr/bin/env bats
# The host moves a protected file away while a session runs: the mount goes with it, and what a tool then puts in its
# place must not stay. The control arm of each is that the tool could write it.
load ../lib/common

quarantined() {
	compgen -G "$WS/.carrel-quarantine-*/$1.quarantined" >/dev/null
}

teardown() {
	rm -rf "$WS"/.carrel-quarantine-*
	common_teardown
}

@test "a protected file renamed away on the host: what is written in its place is quarantined" {
	git init -q .
	"$CARREL" run -- sh -c '
		: >ready
		until [ ! -e .git/config ]; do sleep 0.02; done
		echo evil >.git/config && cat .git/config' >"$T/out" 2>"$T/err" &
	local pid=$!

	wait_for test -e ready
	mv .git/config .git/config.bak
	wait "$pid" || true
	[[ $(<"$T/out") == evil || $(<"$T/err") == *'removed from outside'* ]]
	[[ ! -e .git/config || $(<.git/config) != evil ]]
}

@test "a session that ends does not unprotect another one in the same workspace" {
	local first second
	"$CARREL" run -- sh -c 'mkdir .vscode; : >first
		until [ -e second ]; do sleep 0.02; done' 2>/dev/null &
	first=$!
	wait_for test -e first
	wait_for test ! -e .vscode # or it goes while the second one begins, which then does not
	"$CARREL" run -- sh -c ': >second
		until [ -e ended ]; do sleep 0.02; done
		mkdir made && echo evil >made/tasks.json && mv made .vscode && echo written' >"$T/out" &
	second=$!
	wait "$first"
	: >ended
	wait "$second"
	[[ $(<"$T/out") == written ]] # it could write: that is what must not stay
	[[ ! -e .vscode ]]
	compgen -G '.carrel-quarantine-*/.vscode.quarantined/tasks.json'
}

@test "a link on the way to a protected path cannot be replaced by a directory" {
	mkdir -p dot/fish
	echo ok >dot/fish/config.fish
	ln -s dot .config
	rm .config && ln -s dot .config # outside it can be replaced
	run "$CARREL" run --protect .config/fish -- sh -c '
		rm .config; mkdir -p .config/fish; echo evil >.config/fish/config.fish'
	[[ -L .config && $(<.config/fish/config.fish) == ok ]]
}
