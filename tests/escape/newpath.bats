#!/usr/bin/env bats
# carrel moves away what a tool makes at a protected path that was absent, while the session lives and not only at its
# end.
# ctest: cost=30
load ../lib/common
load ../lib/session
load ../lib/live
load escape

setup() {
	escape_setup
	make_runtime_dir "$T/run"
	git -c init.defaultBranch=main init -q "$WS"
	rm -rf "$WS/.git/hooks"
	git -C "$WS" -c user.name=u -c user.email=u@h commit -q --allow-empty -m first
}

teardown() {
	live_teardown
}

commits() {
	git -C "$WS" -c user.name=u -c user.email=u@h commit -q --allow-empty -m more
}

# Each at once as a whole, so that it is what a tool would want.
MAKE='mkdir -p new/hooks new/vscode; printf "#!/bin/sh\necho ran >%s\n" "$PWD/pwned" >new/hooks/pre-commit
chmod 755 new/hooks/pre-commit; echo evil | tee new/vscode/tasks.json new/envrc >new/mcp.json
mv new/hooks .git/hooks; mv new/vscode .vscode; mv new/envrc .envrc; mv new/mcp.json .mcp.json'

nothing_stands() {
	local path

	for path in .git/hooks .vscode .envrc .mcp.json; do
		[[ ! -e $WS/$path && ! -L $WS/$path ]] || return 1
	done
}

control() {
	(cd "$WS" && sh -c "$MAKE")
	commits
	[[ -e $WS/pwned ]] || fail 'control: the hook does not run'
	rm -rf "$WS"/{pwned,.git/hooks,.vscode,.envrc,.mcp.json}
}

@test "run: what a tool makes at a protected path is gone while it still runs" {
	local wait

	control
	for wait in 0 3; do # looked for; then watched
		start_and_wait run --report "$T/report" -- sh -c "sleep $wait; $MAKE; : >ready; sleep 1000"
		wait_for nothing_stands
		commits
		[[ ! -e $WS/pwned ]] || fail 'it ran'
		[[ -f $(echo "$WS"/.git/.carrel-quarantine-*/hooks.quarantined/pre-commit) ]] || fail 'it is lost'
		# It is told as it happens.
		assert_matches "$(<"$T/err")" "quarantined, since the host would obey it: $WS/.envrc"
		signal TERM
		finish
		assert_field "$T/report" '[.quarantined[].path] | sort | join(" ")' \
			"$WS/.envrc $WS/.git/hooks $WS/.mcp.json $WS/.vscode"
		rm -rf "$WS"/ready "$WS"/new "$WS"/{,.git/}.carrel-quarantine-*
	done
}

@test "a live session: the same, and it is said at its end" {
	control
	begin
	inside -- sh -c "$MAKE"
	wait_for nothing_stands
	sleep 2.5 # from now on it is watched
	inside -- sh -c "$MAKE"
	wait_for nothing_stands
	commits
	[[ ! -e $WS/pwned ]] || fail 'it ran'
	(($("$CARREL" session show --json "$ID" | jq .quarantined) >= 8)) || fail 'not counted'
	[[ -n $(compgen -G "$WS/.git/.carrel-quarantine-*/hooks.quarantined/pre-commit") ]] || fail 'it is lost'
	apart "$CARREL" session end "$ID"
	assert_matches "$stderr" "quarantined, since the host would obey it: $WS/.envrc"
	rm -rf "$WS"/{,.git/}.carrel-quarantine-*
}

@test "with a way to it that comes into being, or is exchanged, while the session lives" {
	mkdir -p "$WS/.config"
	start_and_wait run -- sh -c ': >ready; sleep 2.5; mkdir -p a/fish b/fish
		echo evil | tee a/fish/config.fish >b/fish/config.fish
		mv .config c; mv a .config; while [ -e .config/fish/config.fish ]; do sleep 0.01; done; : >one
		mv .config d; ln -s b .config; while [ -L .config ]; do sleep 0.01; done; : >two
		mkdir .vscode; while [ -e .vscode ]; do sleep 0.01; done; : >three; sleep 1000'
	wait_for test -e "$WS/one"
	wait_for test -e "$WS/two"
	wait_for test -e "$WS/three"
	[[ ! -e $WS/.config/fish/config.fish ]] || fail 'fish would read it'
	[[ -e $WS/b/fish/config.fish ]] || fail 'what the link led to was touched'
	signal TERM
	finish
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "in a directory whose mode is in the way, with the bits that no filter lets anybody give" {
	local mode path

	for mode in 2555 0555 2000; do
		start_and_wait run --report "$T/report" -- sh -c "$MAKE; chmod $mode .git; : >ready; chmod 2555 .; sleep 1000"
		wait_for nothing_stands
		signal TERM
		finish
		chmod 0755 "$WS" "$WS/.git"
		nothing_stands || fail 'it stands'
		for path in .envrc .git/hooks .mcp.json .vscode; do
			field "$T/report" '.quarantined[].path' | grep -qxF "$WS/$path" || fail "not said: $path"
		done
		rm -rf "$WS"/ready "$WS"/new "$WS"/{,.git/}.carrel-quarantine-*
	done
}

@test "hundreds of git directories that all change at once keep the launcher from neither its time-out nor a signal" {
	local i

	git init -q "$WS/child1"
	rm -r "$WS/child1/.git/hooks"
	for i in {2..60}; do
		cp -r "$WS/child1" "$WS/child$i"
	done
	run --separate-stderr timeout "$PATIENCE" "$CARREL" run --timeout 3s --grace 1s --report "$T/report" -- sh -c '
		for i in 1 2 3 4; do while :; do :; done & done
		while :; do for d in child*; do
			printf "[core]\n" >$d/.git/config.worktree; mkdir -p $d/.git/hooks; : >$d/.git/commondir
		done; done 2>/dev/null'
	assert_status 124 # and not by timeout(1), which would have written no report
	assert_field "$T/report" .limit timeout
	((($(find "$WS"/child*/.git -maxdepth 1 -name commondir | wc -l)) == 0)) || fail 'it stands'
	rm -rf "$WS"/child* "$WS"/{,.git/}.carrel-quarantine-*
}

AGAIN='while :; do echo evil >.envrc; mkdir .vscode; ln -s x .git/hooks; done 2>/dev/null'

@test "a tool that makes it again and again keeps the launcher from neither its time-out nor a signal" {
	is_counted() {
		rm -rf "$WS"/{,.git/}.carrel-quarantine-*
		run --separate-stderr timeout "$PATIENCE" "$CARREL" run --timeout "$((TIME * 3))s" --grace 1s \
			--report "$T/report" -- sh -c "$AGAIN"
		# Not by timeout(1), which would have written no report.
		[[ $status == 124 && $(field "$T/report" .limit) == timeout ]] || return
		(($(field "$T/report" '[.quarantined[].times] | add // 0') > 20))
	}
	given_time is_counted
	[[ ! -e $WS/.envrc && ! -e $WS/.vscode && ! -L $WS/.git/hooks ]] || fail 'it stands'
	# What is kept of it, and what is said, does not grow with it.
	(($(find "$WS"/.carrel-quarantine-* -type f | wc -l) < 12)) || fail 'too much is kept'
	(($(wc -l <<<"$stderr") < 20)) || fail 'too much is said'
	start_and_wait run --grace 1s -- sh -c "sleep 2.5; : >ready; $AGAIN"
	wait_for eval '(($(grep -c quarantined "$T/err") > 1))'
	signal TERM
	ends_soon finish
	[[ ! -e $WS/.envrc && ! -L $WS/.git/hooks ]] || fail 'it stands'
	rm -rf "$WS"/{,.git/}.carrel-quarantine-*
}

@test "a tool that moves the quarantine directory to a protected path moves nothing there" {
	start_and_wait run -- sh -c ': >ready; echo evil >.envrc; while [ -e .envrc ]; do sleep 0.01; done
		mv .carrel-quarantine-* .vscode; while [ -e .vscode ]; do sleep 0.01; done
		echo evil >.envrc; while [ -e .envrc ]; do sleep 0.01; done; : >gone; sleep 1000'
	wait_for test -e "$WS/gone"
	signal TERM
	finish
	nothing_stands || fail 'it stands'
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "where inotify is refused that is said, and it is looked for all the same" {
	need strace
	run --separate-stderr strace -qqq -e trace=inotify_init1 -e signal=none -e inject=inotify_init1:error=EMFILE \
		-o "$T/calls" "$CARREL" run -- sh -c 'sleep 2.5; echo evil >.envrc
			while [ -e .envrc ]; do sleep 0.01; done; echo gone'
	assert_status 0
	assert_output gone
	assert_matches "$stderr" 'protected paths cannot be watched'
	rm -rf "$WS"/.carrel-quarantine-*
}

@test "git init and git clone in an empty workspace come to their end" {
	git -C "$WS" bundle create -q "$T/bundle" HEAD main
	chmod 0644 "$T/bundle"
	rm -rf "$WS/.git"
	session git clone -q "$T/bundle" .
	assert_status 0
	[[ -d $WS/.git/objects ]]
	rm -rf "$WS"/{,.git/}.carrel-quarantine-* "$WS/.git"
	session sh -c 'sleep 0.1; git init -q .'
	assert_status 0
	[[ -d $WS/.git/objects ]]
}
