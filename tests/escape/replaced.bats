#!/usr/bin/env bats
# Protected things that are moved away on the host while a session runs: the mount goes with them, and
# what the tools put in their place must not stay. The control arm of each is what the tools could write.
load ../lib/common

quarantined() {
	compgen -G "$BASE/carrel-*.quarantine/$1" >/dev/null
}

teardown() {
	rm -rf "$BASE"/carrel-*.quarantine
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
	"$CARREL" run -- sh -c 'mkdir .vscode; echo mine >.vscode/x
		until [ -e second ]; do sleep 0.02; done' 2>/dev/null &
	local first=$!

	wait_for test -e .vscode/x
	run "$CARREL" run -- sh -c '
		: >second
		until [ ! -e .vscode ]; do sleep 0.02; done
		mkdir .vscode && echo evil >.vscode/tasks.json && echo written'
	wait "$first"
	[[ $output == *written* ]] # it could write: that is what must not stay
	[[ ! -e .vscode ]]
	quarantined '.vscode'
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
