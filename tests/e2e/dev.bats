#!/usr/bin/env bats
# The script `dev` and what CI runs: it sets up only what is needed, and the output of a command is the command's own.
# ctest: as=any
load ../lib/common

setup() {
	common_setup
	DEV=$CARREL_SOURCE/dev
	mkdir "$T/bin" "$T/b"
	for tool in bash cat cut dirname env flock getent id mktemp nproc rm sed; do
		ln -s "$(command -v "$tool")" "$T/bin/$tool"
	done
}

# fake NAME LINE...: a program in the short PATH. What it is called with is in $T/log.
fake() {
	local name=$1

	shift
	printf '#!%s/bin/bash\necho "%s $*" >>%q\n' "$T" "$name" "$T/log" >"$T/bin/$name"
	printf '%s\n' "$@" >>"$T/bin/$name"
	chmod +x "$T/bin/$name"
}

# fake_packages [MISSING]: dpkg-query knows every package of the script as installed, but for one.
fake_packages() {
	fake dpkg-query 'shift 2' 'for p; do [[ $p == "'"${1-}"'" ]] || printf "%s=installed " "$p"; done' \
		"exit 1"
	fake apt-get 'echo noise'
	fake sudo 'exec "$@"'
}

dev() {
	PATH=$T/bin CARREL_BUILD=$T/b run --separate-stderr bash "$DEV" "$@"
}

@test "an unknown command is status 2 and a usage on stderr" {
	dev tset
	assert_status 2
	assert_output ''
	assert_matches "$stderr" 'no such command: tset'
}

@test "nothing is installed when nothing is missing" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages
	dev deps
	assert_status 0
	[[ $(cat "$T/log") != *apt-get* ]]
	(($(grep -c dpkg-query "$T/log") == 1))
}

@test "only what is missing is installed" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages scdoc
	dev deps build
	assert_status 0
	assert_output ''
	assert_matches "$(cat "$T/log")" 'apt-get update -qq'
	assert_matches "$(cat "$T/log")" 'apt-get install .* scdoc'
	refute_matches "$(cat "$T/log")" 'apt-get install .* cmake'
	is_root || assert_matches "$(cat "$T/log")" 'sudo apt-get'
}

@test "a failing apt-get stops everything" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages scdoc
	fake apt-get 'exit 100'
	fake cmake
	dev run -- true
	assert_status 100
	! grep -q '^cmake' "$T/log"
}

@test "lists that cannot be fetched are no reason to stop, where they are there" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages scdoc
	fake apt-get '[[ $1 != update ]]'
	dev deps build
	assert_status 0
	assert_matches "$stderr" 'apt-get update failed'
	assert_matches "$(cat "$T/log")" 'apt-get install .* scdoc'
}

@test "elsewhere the missing packages are named, and it stops" {
	dev run -- true
	assert_status 1
	assert_output ''
	assert_matches "$stderr" 'missing .*cmake.*ninja-build.*musl-tools'
}

@test "run: building says nothing, and the command gets the arguments" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages
	fake cmake 'echo noise; echo noise >&2' \
		"printf '%s\n' '#!$T/bin/bash' 'echo \"ran: \$*\"' 'exit 7' >$T/b/carrel" \
		"$(command -v chmod) +x $T/b/carrel"
	dev run --timeout 1m -- 'a b' c
	assert_status 7
	assert_output 'ran: run --timeout 1m -- a b c'
	[[ -z $stderr ]]
}

@test "run: a build that fails is shown on stderr, and nothing runs" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	fake_packages
	fake cmake 'echo broken; exit 3'
	dev run -- true
	assert_status 3
	assert_output ''
	assert_matches "$stderr" 'broken'
}

# suite FAILED...: a ctest that says these have failed; a line for each time that it is called.
suite() {
	fake_packages
	fake cmake
	fake useradd
	printf '%s\n' "$@" >"$T/failed"
	fake ctest "count=\$($(command -v grep) -c '^ctest' '$T/log')" 'echo "run $count"' \
		"$(command -v mkdir) -p Testing/Temporary" \
		"cat '$T/failed' >Testing/Temporary/LastTestsFailed.log" \
		"((count > $T_FAILS)) || exit 8"
}

@test "test: of a whole run few that failed are run once more, alone, and named" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	T_FAILS=1 suite '3:unit/a@root' '17:e2e/b@user'
	dev test
	assert_status 0
	assert_output $'run 1\nrun 2'
	assert_matches "$stderr" 'once more, alone: unit/a@root e2e/b@user'
	assert_matches "$(cat "$T/log")" 'ctest .*--rerun-failed -j 1'
}

@test "test: what fails twice has failed; so have many, what was asked for, and what did not run" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	T_FAILS=2 suite '3:unit/a@root'
	dev test
	assert_status 8
	assert_output $'run 1\nrun 2'
	T_FAILS=1 suite 1:a 2:b 3:c 4:d
	rm "$T/log"
	dev test
	assert_status 8
	assert_output 'run 1'
	T_FAILS=1 suite 1:a
	rm "$T/log"
	dev test -R a
	assert_status 8
	assert_output 'run 1'
	fake ctest 'exit 7'
	dev test
	assert_status 7
}

@test "test: one run at a time in a build, a second waits for the first" {
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	T_FAILS=0 suite
	exec {first}>>"$T/b/tests.lock"
	flock "$first"
	PATH=$T/bin CARREL_BUILD=$T/b bash "$DEV" test >"$T/out" 2>"$T/err" </dev/null {first}>&- 3>&- &
	wait_for grep -q 'waiting for the other run' "$T/err"
	! grep -qs '^ctest' "$T/log" || fail 'it did not wait'
	exec {first}>&-
	wait $!
	grep -q '^ctest' "$T/log"
}

@test "CI runs the suite with CI set and no stdin" {
	mkdir -p "$T/ci/.ci"
	cp "$CARREL_SOURCE/.ci/run" "$T/ci/.ci/run"
	printf '#!/bin/bash\necho "$* $CI"\ncat\nexit 9\n' >"$T/ci/dev"
	chmod +x "$T/ci/dev"
	run --separate-stderr "$T/ci/.ci/run" <<<'stdin'
	assert_status 9
	assert_output 'test true'
}

@test "what is installed" {
	prefix=${CARREL%/bin/carrel}
	for file in bin/carrel libexec/carrel/carrel-policy libexec/carrel/carrel-inspect \
		share/man/man1/carrel.1 share/man/man1/carrel-run.1 share/man/man5/carrel-policy.5 \
		share/bash-completion/completions/carrel share/zsh/site-functions/_carrel \
		share/fish/vendor_completions.d/carrel.fish share/carrel/policy/agent \
		share/carrel/policy/strict share/carrel/policy/ci share/carrel/policy/container \
		share/carrel/policy/hide share/carrel/policy/protect share/doc/carrel/README.md \
		share/doc/carrel/LICENSE share/doc/carrel/report.schema.json; do
		[[ -s $prefix/$file ]] || fail "$file is not installed"
		[[ -r $prefix/$file ]] || fail "$file cannot be read"
	done
	for file in bin/carrel libexec/carrel/carrel-policy libexec/carrel/carrel-inspect; do
		[[ -x $prefix/$file ]] || fail "$file cannot be executed"
	done
}

@test "the licence is whole" {
	assert_matches "$(cat "$CARREL_SOURCE/LICENSE")" 'Apache License.*Version 2\.0.*END OF TERMS AND CONDITIONS'
}
