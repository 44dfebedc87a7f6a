#!/usr/bin/env bats
# Policies as the user meets them: their layers, locks and errors; help and man pages.
# ctest: once
load ../lib/common
load ../lib/session

setup() {
	common_setup
	export XDG_CONFIG_HOME=$T/config
	mkdir -p "$T/config/carrel"
	USER_POLICY=$T/config/carrel/policy
}

seen() {
	carrel run "$@" -- sh -c 'echo "${LAYER-none}"'
	assert_status 0
}

@test "layers: user policy, a named file, the command line, each over the last" {
	seen
	assert_output none
	echo 'env LAYER=user' >"$USER_POLICY"
	seen
	assert_output user
	echo 'env LAYER=file' >"$T/policy"
	seen --policy "$T/policy"
	assert_output file
	seen --env LAYER=line --policy "$T/policy"
	assert_output line
	seen --policy "$T/policy" --unsetenv LAYER
	assert_output none
}

@test "of two values the later counts, of lists all: a wrapper can be overridden" {
	echo 'env LAYER=user' >"$USER_POLICY"
	seen --env LAYER=one --timeout 1ms --env LAYER=two --timeout 10m --env OTHER=x
	assert_output two
	seen --env LAYER=one --unsetenv LAYER
	assert_output none
	# shellcheck disable=SC2016
	carrel run --env A=1 --env B=2 -- sh -c 'echo $A $B'
	assert_output '1 2'
	printf 'timeout 5\ntimeout 6\n' >"$USER_POLICY"
	carrel run -- true # in a file they are a mistake
	assert_refused "'timeout' is given twice"
}

@test "a policy from standard input" {
	echo 'env LAYER=stdin' >"$T/policy"
	seen --policy - <"$T/policy"
	assert_output stdin
	seen --policy - < <(cat "$T/policy")
	assert_output stdin
	seen --policy - <<<'env LAYER=here'
	assert_output here
	carrel policy show --policy - < <(printf '\nkeep\n')
	assert_matches "$output" 'keep yes +# standard input:2'
	echo 'env LAYER=named' >"$T/-" # one of that name
	cd "$T"
	seen --workspace "$WS" --policy ./- </dev/null
	assert_output named
}

@test "-c LINE: a shell inside" {
	# shellcheck disable=SC2016
	carrel run -c 'echo $PPID; exit 3'
	assert_status 3
	assert_output 1
	# shellcheck disable=SC2016
	carrel run --command 'echo "$0 $1" && false' --quiet zero one
	assert_status 1
	assert_output 'zero one'
	carrel run -c one -c 'echo two'
	assert_output two
	carrel plan -c 'echo $X'
	assert_matches "$output" "/bin/sh -c 'echo .X'"
	carrel policy show -c true
	assert_status 125
}

@test "what carrel sets anyway can be named, and is passed over with a word" {
	# shellcheck disable=SC2016
	carrel run --env PWD --env "PWD=$WS" --env CARREL_SESSION --env PATH -- sh -c 'echo $PWD'
	assert_output "$WS"
	assert_matches "$stderr" '^carrel: --env is ignored, carrel sets this variable itself: CARREL_SESSION$'
	carrel run --quiet --env PWD -- true
	assert_status 0
	[[ -z $stderr ]] || fail "$stderr"
	ln -s "$WS" "$T/link"
	cd "$T/link"
	carrel run --env "PWD=$T/link" -- true
	assert_status 0
}

@test "syscall in two words, as help prints it" {
	carrel policy show --syscall allow ptrace --syscall 'errno mkdir if arg1 == 1' --keep
	assert_status 0
	assert_matches "$output" $'\nsyscall allow ptrace .*--syscall\nsyscall errno mkdir if arg1'
	carrel run --syscall errno mkdir -- sh -c 'mkdir "$TMPDIR/x" || echo refused'
	assert_output refused
}

# in_etc MAKE COMMAND...: COMMAND after MAKE, a line of shell, in /etc/carrel, which nobody else sees.
in_etc() {
	need_root
	run --separate-stderr unshare --mount bash -c '
		mkdir -p "$1/layer" && mount -t tmpfs none "$1/layer" && mkdir "$1/layer/u" "$1/layer/w" &&
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/layer/u,workdir=$1/layer/w" none /etc &&
		mkdir -p /etc/carrel && cd /etc/carrel && rm -f policy && eval "$2" && cd "$WS" || exit 77
		shift 2; exec "$@"' bash "$T" "$@"
	[[ $status != 77 ]] || skip 'no second file system here'
}

# with_system POLICY COMMAND...: with that text as the policy of the machine.
with_system() {
	local text=$1

	shift
	mkdir -p "$T/etc"
	printf '%s\n' "$text" >"$T/etc/policy"
	in_etc 'cp "$T/etc/policy" policy' "$@"
}

@test "the policy of the machine stands below the user's" {
	with_system 'env LAYER=system' "$CARREL" run -- sh -c 'echo $LAYER'
	assert_output system
	echo 'env LAYER=user' >"$USER_POLICY"
	with_system 'env LAYER=system' "$CARREL" run -- sh -c 'echo $LAYER'
	assert_output user
}

@test "a policy of the machine that is there and cannot be read is an error" {
	local make

	for make in 'ln -s /nowhere policy' 'ln -s policy policy' 'mkdir policy' 'mkfifo policy'; do
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		assert_refused 'cannot read the policy file: /etc/carrel/policy'
		[[ ! -e $WS/ran ]]
	done
	# An ordinary user who may not look at it: root is stopped by no mode.
	in_etc 'chmod 0700 . && chmod 0755 "$T" && chmod 0777 "$WS"' setpriv --reuid=65534 --regid=65534 \
		--clear-groups env TMPDIR=/tmp "$CARREL" run -- touch "$WS/ran"
	assert_refused 'cannot read the policy file: /etc/carrel/policy: Permission denied'
	[[ ! -e $WS/ran ]]
}

@test "a policy of the machine that others can change is not obeyed, and not passed over" {
	local make

	for make in 'echo quiet >policy; chmod 0646 policy' 'echo quiet >policy; chmod 0664 policy' \
		'echo quiet >policy; chmod 0777 .' 'chmod 0777 .' 'chmod 0775 .' \
		'echo quiet >"$T/policy"; chmod 0777 "$T"; ln -s "$T/policy" policy' \
		'echo "policy $T/more" >policy; echo quiet >"$T/more"; chmod 0666 "$T/more"'; do
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		chmod 0700 "$T"
		assert_refused 'a policy that others can write is not obeyed'
		[[ ! -e $WS/ran ]]
	done
	for make in 'echo quiet >policy; chown 65534 policy' 'chown 65534 .' \
		'echo quiet >policy; chown 65534 .' 'echo quiet >q; chown 65534 q; ln -s q policy'; do
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		assert_refused 'a policy of uid 65534 is not obeyed: /etc/carrel'
		[[ ! -e $WS/ran ]]
	done
	# The way there, from the root on, of links too.
	for make in 'chmod 0777 /etc; echo quiet >policy' 'chmod 0777 /etc' 'chmod 0775 /etc; echo quiet >policy'; do
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		assert_refused $'a policy that others can write is not obeyed: /etc\n.*hint: .* by way of it; chmod'
		[[ ! -e $WS/ran ]]
	done
	mkdir -p "$T/open/way/in" "$T/way/in"
	for make in 'echo quiet >"$T/open/way/in/policy"; ln -s "$T/open/way/in/policy" policy' \
		'echo quiet >"$T/way/in/policy"; ln -sfn "$T/way/in" "$T/open/link"; ln -s "$T/open/link/policy" policy' \
		'echo "policy $T/open/way/in/more" >policy; echo quiet >"$T/open/way/in/more"'; do
		chmod 0755 "$T/open"
		in_etc "$make" "$CARREL" run -- true
		assert_status 0
		chmod 0777 "$T/open"
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		assert_refused "a policy that others can write is not obeyed: $T/open"$'\n.*hint: .* by way of it; chmod'
		[[ ! -e $WS/ran ]]
	done
	for make in 'chown 65534 /etc; echo quiet >policy' 'ln -s "$T/way/in/policy" policy; chown -h 65534 policy' \
		'ln -s "$T/way/in/policy" policy; chown 65534 "$T/way"'; do
		in_etc "$make" "$CARREL" run -- touch "$WS/ran"
		assert_refused "a policy of uid 65534 is not obeyed: (/etc|/etc/carrel/policy|$T/way)"$'\n'
		[[ ! -e $WS/ran ]]
	done
	in_etc 'echo quiet >policy; chmod 0666 policy' "$CARREL" policy check /etc/carrel/policy
	assert_matches "$stderr" 'that others can write'
	# And what only root can change is.
	for make in : 'chmod 0600 policy' 'chmod 1777 .' 'chgrp 65534 policy' 'mv policy q; ln -s q policy'; do
		in_etc "echo 'env LAYER=system' >policy; $make" "$CARREL" run -- sh -c 'echo $LAYER'
		assert_output system
	done
}

@test "where root is nobody's id, what belongs to nobody is root's" {
	# shellcheck disable=SC2016
	in_etc 'echo "env LAYER=system" >policy; chmod 0755 "$T"' setpriv --reuid=1234 --regid=1234 \
		--clear-groups unshare --user --map-current-user sh -c '
			stat -c %u /etc/carrel/policy && HOME=/nowhere exec "$CARREL" policy show'
	[[ $stderr != *unshare:* ]] || skip 'no user namespaces here'
	assert_matches "$output" '^65534'
	assert_matches "$output" 'env +LAYER=system'
}

@test "a policy of the user's that others can change is not obeyed" {
	local mode way

	echo 'env LAYER=user' >"$USER_POLICY"
	for mode in 0646 0602; do
		chmod "$mode" "$USER_POLICY"
		carrel run -- true
		assert_refused "a policy that others can write is not obeyed: $USER_POLICY"
	done
	for mode in 0400 0644 0664; do # his own group is most often nobody else's
		chmod "$mode" "$USER_POLICY"
		seen
		assert_output user
	done
	chmod 0777 "${USER_POLICY%/*}"
	carrel run -- true
	assert_refused "a policy that others can write is not obeyed: ${USER_POLICY%/*}"
	chmod 0755 "${USER_POLICY%/*}"
	# What is above, and where links lead and lie. In a sticky directory names are their owners'.
	mkdir -p "$T/open/link" "$T/way"
	mv "$T/config" "$T/way"
	ln -s "$T/way/config" "$T/open/link/config"
	for way in "$T/way/config" "$T/open/link/config"; do
		export XDG_CONFIG_HOME=$way
		chmod 1777 "$T/way" "$T/open"
		seen
		assert_output user
		chmod 0777 "$T/way"
		carrel run -- true
		assert_refused "a policy that others can write is not obeyed: $T/way"$'\n.*hint: .*/policy is found by way of it'
	done
	chmod 0755 "$T/way"
	chmod 0777 "$T/open"
	carrel run -- true
	assert_refused "a policy that others can write is not obeyed: $T/open"$'\n'
	mv "$T/way/config" "$T"
	export XDG_CONFIG_HOME=$T/config
	seen
	assert_output user
	# One that is named may be anybody's.
	echo 'env LAYER=file' >"$T/named"
	chmod 0666 "$T/named"
	seen --policy "$T/named"
	assert_output file
	printf 'policy %s\n' "$T/named" >"$USER_POLICY"
	seen
	assert_output file
	is_root || return 0
	chgrp 65534 "$USER_POLICY"
	chmod 0664 "$USER_POLICY"
	carrel run -- true
	assert_refused "a policy that others can write is not obeyed"
	chmod 0644 "$USER_POLICY"
	chown 65534 "$USER_POLICY"
	carrel run -- true
	assert_refused "a policy of uid 65534 is not obeyed: $USER_POLICY"
}

@test "a lock of the machine holds against what is added to a live session" {
	XDG_RUNTIME_DIR=$T/run
	export XDG_RUNTIME_DIR
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	adds() {
		with_system "$1" bash -c 'id=$("$CARREL" session start --json --net allow --net-live 3>&- 4>&- | jq -r .session)
			"$CARREL" session allow -s "$id" example.org
			said=$?
			"$CARREL" session end -s "$id"
			exit "$said"'
	}
	adds $'net none' # the control arm
	assert_status 0
	adds $'lock allow'
	assert_status 125
	assert_matches "$stderr" 'carrel: the system policy locks `allow`: example.org'
	adds $'lock net-live'
	assert_status 125
	assert_matches "$stderr" "'net-live' loosens 'net-live', which the system policy locks"
}

@test "a lock of the machine holds against what one command of a live session is passed" {
	XDG_RUNTIME_DIR=$T/run
	export XDG_RUNTIME_DIR
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	passes() {
		with_system "$1" bash -c 'id=$("$CARREL" session start --json 3>&- 4>&- | jq -r .session)
			"$CARREL" exec -s "$id" --pass-fd 5 -- cat /dev/fd/5 5< <(echo passed)
			said=$?
			"$CARREL" session end -s "$id"
			exit "$said"'
	}
	passes '' # the control arm
	assert_status 0
	assert_output passed
	passes 'lock pass-fd'
	assert_status 125
	assert_output ''
	assert_matches "$stderr" 'carrel: .*pass-fd'
}

@test "a lock of the machine holds against a published port" {
	publishes() {
		with_system "$1" "$CARREL" run --publish 8080:0 -- touch "$WS/ran"
	}
	publishes 'net none' # the control arm
	assert_status 0
	rm "$WS/ran"
	publishes 'lock publish'
	assert_status 125
	assert_matches "$stderr" "carrel: 'publish' loosens 'publish', which the system policy locks: command line: --publish"
	[[ ! -e $WS/ran ]] || fail 'the command ran'
	printf 'publish 8080:0\n' >"$USER_POLICY"
	with_system 'lock publish' "$CARREL" run -- touch "$WS/ran"
	assert_status 125
	assert_matches "$stderr" "locks: $USER_POLICY:1"
	[[ ! -e $WS/ran ]] || fail 'the command ran'
	with_system $'publish 8081:0\nlock publish' "$CARREL" run -- touch "$WS/own"
	assert_status 125
	assert_matches "$stderr" "locks: $USER_POLICY:1"
	rm "$USER_POLICY"
	with_system $'publish 8081:0\nlock publish' "$CARREL" run -- touch "$WS/ran" # the machine's own
	assert_status 0
}

@test "a lock: later layers may tighten, not loosen, and are told file and line" {
	with_system $'net none\nlock net' "$CARREL" run --net host -- touch "$WS/ran"
	assert_status 125
	assert_matches "$stderr" "'?net'? is locked|locked"
	[[ ! -e $WS/ran ]]
	printf '# mine\nnet host\n' >"$USER_POLICY"
	with_system $'net none\nlock net' "$CARREL" run -- touch "$WS/ran"
	assert_status 125
	assert_matches "$stderr" "$USER_POLICY:2"
	rm "$USER_POLICY"
	with_system $'timeout 50\nlock timeout' "$CARREL" run --timeout 20 -- true
	assert_status 0
	with_system $'timeout 50\nlock timeout' "$CARREL" run --timeout 60 -- true
	assert_status 125
	# Of two values on the command line the one that counts is judged; standard input is a file like others.
	with_system $'timeout 50\nlock timeout' "$CARREL" run --timeout 20 --timeout 60 -- true
	assert_status 125
	with_system $'timeout 50\nlock timeout' "$CARREL" run --timeout 60 --timeout 20 -- true
	assert_status 0
	with_system 'lock policy' "$CARREL" run --policy - -- touch "$WS/ran" < <(echo 'net host')
	assert_status 125
	assert_matches "$stderr" 'locked.*policy|policy.*locked'
	[[ ! -e $WS/ran ]]
	with_system $'net none\nlock net' "$CARREL" run -- true
	assert_status 0
}

@test "errors of each layer name file and line" {
	printf 'net none\n\nkeeep\n' >"$USER_POLICY"
	carrel run -- touch "$WS/ran"
	assert_refused "$USER_POLICY:3"
	assert_matches "$stderr" 'keep'
	[[ ! -e $WS/ran ]]
	rm "$USER_POLICY"
	printf 'profile agent\nhide "unclosed\n' >"$T/policy"
	carrel run --policy "$T/policy" -- true
	assert_refused "$T/policy:2"
}

@test "a policy in the workspace is never read, and refused where it is named" {
	mkdir -p "$WS/.config/carrel" "$WS/.carrel" "$WS/carrel"
	for f in .carrel/policy .config/carrel/policy carrel/policy policy .carrel.policy carrel.policy; do
		mkdir -p "$WS/$(dirname "$f")"
		echo 'env LAYER=workspace' >"$WS/$f"
	done
	seen
	assert_output none
	carrel run --policy "$WS/policy" -- touch "$WS/ran"
	assert_refused 'never read as policy'
	ln -s "$WS/policy" "$T/link"
	carrel run --policy "$T/link" -- touch "$WS/ran"
	assert_refused 'never read as policy'
	XDG_CONFIG_HOME=$WS carrel run -- touch "$WS/ran"
	assert_refused 'never read as policy'
	[[ ! -e $WS/ran ]]
}

@test "each verb has a help, and run's names every group" {
	carrel --help
	assert_status 0
	for verb in run gc plan policy doctor attest; do
		assert_matches "$output" "$verb"
	done
	for verb in run gc; do
		carrel "$verb" --help
		assert_status 0
		assert_matches "$output" '^usage: carrel '
		[[ -z $stderr ]]
	done
	# What one needs every day comes first, each setting once.
	carrel help
	assert_matches "$output" $'\n  run .*\n  why .*\n\nmore:\n.*\n  gc '
	carrel run --help
	assert_matches "$output" $'\n\n  carrel run -- make test\n.*\neveryday:\n  --write .*\n\nfiles:\n'
	[[ $(grep -c -- '^  --net ' <<<"$output") == 1 ]] || fail 'not once'
	for word in workspace scratch-size timeout net syscalls profile report; do
		assert_matches "$output" "--$word "
	done
	carrel --version
	assert_matches "$output" '^carrel [0-9]+\.[0-9]+\.[0-9]+$'
}

@test "there is a man page for each verb" {
	for page in carrel.1 carrel-run.1 carrel-gc.1 carrel-plan.1 carrel-policy.1 carrel-policy.5 carrel-doctor.1 carrel-attest.1; do
		[[ -s $CARREL_SOURCE/docs/man/$page.scd ]] || fail "no $page"
	done
}

@test "profiles: each of them runs a command" {
	for profile in agent strict ci container; do
		carrel run --profile "$profile" -- sh -c 'echo ok >made; cat made'
		assert_status 0
		assert_output ok
	done
	carrel run --profile ci -- sh -c 'echo $CI $TZ $LC_ALL'
	assert_output 'true UTC C.UTF-8'
}

@test "quiet and verbose" {
	carrel run --quiet --keep -- true
	[[ -z $stderr ]]
	rm -rf "$BASE"/carrel-????????????????????
	carrel run --verbose --net host -- true
	assert_status 0
	assert_matches "$stderr" "workspace: $WS: direct"
	assert_matches "$stderr" 'net-namespace: off'
	local id
	id=$(sed -n 's/^carrel: session: //p' <<<"$stderr")
	assert_matches "$stderr" "scratch: $BASE/carrel-$id/scratch"
}

@test "check: a line that is too long is one mistake" {
	{
		printf '# '
		head -c 20000 /dev/zero | tr '\0' x
		printf '\nnonsense\n'
	} >"$T/long"
	carrel policy check "$T/long"
	assert_status 1
	[[ $(grep -c '^carrel: ' <<<"$stderr") == 2 ]] || fail "$stderr"
	assert_matches "$stderr" "$T/long:1"
	assert_matches "$stderr" "$T/long:2"
}

@test "proxies and certificates: with the host's network too they pass only where they are named, as carrel-run(1) does" {
	local name example
	local -a names=(http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
		SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO)

	for name in "${names[@]}"; do
		export "$name=http://user:password@proxy.example"
	done
	carrel run --net host -- env
	assert_status 0
	refute_matches "$output" password
	# As a reader of the page has it: from `carrel run` up to the command, which is another one here.
	example=$(sed -n 's/^\tcarrel run \(--with proxy\) -- .*/\1/p' "$CARREL_SOURCE/docs/man/carrel-run.1.scd" | tr -d '\\')
	[[ -n $example ]] || fail 'no example'
	run --separate-stderr bash -c "\"\$CARREL\" run $example -- env"
	assert_status 0
	for name in "${names[@]}"; do
		grep -qx "$name=http://user:password@proxy.example" <<<"$output" || fail "not passed: $name"
	done
}

@test "a profile of the user's own: over the user's policy, under the command line, from a shipped one" {
	local dir=$XDG_CONFIG_HOME/carrel/profiles

	mkdir -p "$dir"
	printf 'env FROM=policy\nenv POLICY=1\n' >"$USER_POLICY"
	printf 'profile strict\nenv FROM=profile\nread %s/data\n' "$T" >"$dir/mine"
	mkdir "$T/data"
	echo data >"$T/data/file"
	carrel run --profile mine -- sh -c 'echo "$FROM $POLICY"; cat "$1"; ls /srv 2>/dev/null || echo strict' sh "$T/data/file"
	assert_status 0
	assert_output $'profile 1\ndata\nstrict'
	carrel run --profile mine --env FROM=command -- sh -c 'echo "$FROM"'
	assert_output command
	carrel run --profile mine --report "$T/r" -- true
	assert_field "$T/r" .policy.profile mine
	# Without a `profile` line it starts from the default one; and another's policy may choose it.
	echo 'env FROM=plain' >"$dir/plain"
	echo 'profile plain' >>"$USER_POLICY"
	carrel run -- sh -c 'echo "$FROM"'
	assert_output plain
	carrel policy check "$USER_POLICY"
	assert_status 0
	carrel run --profile agent -- sh -c 'echo "$FROM"'
	assert_output policy
}

@test "a profile of the user's own that is none, unsafe, nested, or in the workspace" {
	local dir=$XDG_CONFIG_HOME/carrel/profiles

	mkdir -p "$dir"
	echo 'timeout 1h' >"$dir/good"
	carrel run --profile good -- true
	assert_status 0
	carrel run --profile goood -- true
	assert_status 125
	assert_matches "$stderr" "unknown profile 'goood': --profile"
	carrel run --profile ../policy -- true
	assert_status 125
	assert_matches "$stderr" 'unknown profile'
	chmod 666 "$dir/good"
	carrel run --profile good -- true
	assert_status 125
	assert_matches "$stderr" 'a policy that others can write is not obeyed'
	chmod 644 "$dir/good"
	chmod 777 "$dir"
	carrel run --profile good -- true
	assert_status 125
	assert_matches "$stderr" 'a policy that others can write is not obeyed'
	chmod 755 "$dir"
	echo 'profile good' >"$dir/nested"
	carrel run --profile nested -- true
	assert_status 125
	assert_matches "$stderr" "starts from a shipped one, not from 'good'"
	echo 'tmeout 1h' >"$dir/bad"
	carrel run --profile bad -- true
	assert_status 125
	assert_matches "$stderr" "$dir/bad:1"
	mkfifo "$dir/fifo"
	carrel run --profile fifo -- true
	assert_status 125
	mkdir "$WS/carrel" "$WS/carrel/profiles"
	echo 'timeout 1h' >"$WS/carrel/profiles/inside"
	XDG_CONFIG_HOME=$WS carrel run --profile inside -- true
	assert_status 125
	assert_matches "$stderr" 'a file in the workspace is never read as policy'
}

@test "a profile of the user's own loosens nothing that the machine's policy locked" {
	need_root
	mkdir -p "$XDG_CONFIG_HOME/carrel/profiles"
	printf 'write -%s/data\nnet host\n' "$T" >"$XDG_CONFIG_HOME/carrel/profiles/mine"
	mkdir "$T/data"
	# The control arm: nothing is locked.
	in_etc true "$CARREL" run --profile mine -- true
	assert_status 0
	in_etc 'echo lock net >policy' "$CARREL" run --profile mine -- true
	assert_status 125
	assert_matches "$stderr" 'lock'
	in_etc 'echo lock write >policy' "$CARREL" run --profile mine -- true
	assert_status 125
	assert_matches "$stderr" 'lock'
	# What the machine's policy means is a shipped one.
	in_etc 'echo profile mine >policy' "$CARREL" run -- true
	assert_status 125
	assert_matches "$stderr" "unknown profile 'mine'"
}

@test "an execution gets no terminal where the machine's policy locked that there is none" {
	local script='id=$("$CARREL" session start | sed -n "s/^session //p"); "$CARREL" exec -s "$id" --tty yes -- true
		status=$?; "$CARREL" session end "$id"; exit $status'

	in_etc 'echo tty no >policy' sh -c "$script" # the control arm: it is not locked
	assert_status 0
	in_etc 'printf "tty no\nlock tty\n" >policy' sh -c "$script"
	assert_status 125
	assert_matches "$stderr" 'tighten .*: tty'
}
