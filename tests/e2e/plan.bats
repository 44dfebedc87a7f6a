#!/usr/bin/env bats
# The dry run, and `policy show` and `policy check`: they print what is true, and change nothing.
# ctest: once
load ../lib/common

VALIDATE=$CARREL_SOURCE/tests/lib/validate_report.py

# listing: everything below the test's directory, with times.
listing() {
	find "$T" -printf '%p %y %s %T@ %C@\n' | sort
}

@test "plan: nothing is made, with a report, a filter of its own and a cache named" {
	mkdir "$T/cache"
	export XDG_CACHE_HOME=$T/cache
	before=$(listing)
	carrel plan --report "$T/report.json" --syscall 'errno mkdir' --keep -- touch "$WS/ran"
	assert_status 0
	assert_matches "$output" "report +$T/report.json"
	carrel plan --json --report "$T/report.json" --syscall 'errno mkdir' -- touch "$WS/ran"
	assert_status 0
	[[ $(listing) == "$before" ]] || fail 'something was made'
	# What is refused for `plan` alone is done by `run`: the cache and the report appear.
	carrel run --report "$T/report.json" --syscall 'errno mkdir' -- true
	assert_status 0
	[[ -s $T/report.json && -n $(ls "$T/cache/carrel/filters") ]] || fail 'run made nothing'
}

@test "plan: the same twice; no id, no kernel uid" {
	carrel plan -- true
	assert_status 0
	first=$output
	carrel plan -- true
	[[ $output == "$first" ]] || fail 'another plan'
	assert_matches "$output" "$BASE/carrel-SESSION/scratch"
	refute_matches "$output" 'carrel-[a-z2-7]{20}'
	carrel plan --json -- true
	first=$output
	carrel plan --json -- true
	[[ $output == "$first" ]] || fail 'another document'
}

@test "plan: values of the caller's variables are not shown, not even where they are allowed" {
	SECRET_TOKEN=hunter2 carrel plan --env SECRET_TOKEN --env SHOWN=plainly -- true
	assert_status 0
	assert_matches "$output" "SECRET_TOKEN +the caller's \[command line: --env\]"
	assert_matches "$output" 'SHOWN=plainly \[command line: --env\]'
	refute_matches "$output" hunter2
	SECRET_TOKEN=hunter2 carrel plan --verbose --json --env SECRET_TOKEN -- true
	assert_status 0
	assert_matches "$output" SECRET_TOKEN
	refute_matches "$output" hunter2
}

@test "plan: the document has the ports of the network as numbers" {
	carrel plan --json --allow example.org:8443,9000 -- true
	assert_status 0
	jq -e '.operations[] | select(.name == "net-listen") | .ports | index(8443) and index(9000)' \
		<<<"$output" >/dev/null || fail "ports: $(jq -c '.operations[] | select(.name == "net-listen")' <<<"$output")"
}

@test "plan: a bind that nothing can stand on is refused as run refuses it" {
	local settings

	mkdir -p "$T/up/ws" "$T/empty" "$T/full/ws" "$T/full/sub"
	cd "$T/up/ws"
	for settings in "--bind $T/empty:$T/up" "--bind $T/empty:$T/up:rw" "--bind $T/empty:$T" \
		"--bind /etc/passwd:$T/up" "--bind $T/empty:$BASE" "--bind $T/full:$BASE" \
		"--bind $T/empty:$T/full --tmpfs $T/full/sub" "--bind /etc:/etc/passwd/x"; do
		# shellcheck disable=SC2086
		carrel run $settings -- touch ran
		assert_refused 'the destination does not exist|nothing to mount this on'
		refused=$stderr
		# shellcheck disable=SC2086
		carrel plan $settings -- touch ran
		assert_refused 'the destination does not exist|nothing to mount this on'
		[[ $stderr == "$refused" ]] || fail "run says otherwise: $refused"
	done
	[[ ! -e ran ]]
	# Where there is something to stand on, it stands.
	for settings in "--bind $T/full:$T/up" "--bind $T/full:$T/up:rw" \
		"--bind $T/empty:$T/full/sub" "--bind $T/full:$T/empty"; do
		# shellcheck disable=SC2086
		carrel plan $settings -- true
		assert_status 0
		# shellcheck disable=SC2086
		carrel run $settings -- sh -c 'pwd && touch ran'
		assert_output "$T/up/ws"
		rm ran
	done
}

@test "plan: the document is what the schema says, odd names included" {
	local odd=$'odd \xff\n"\\\e[31m'

	mkdir "$WS/$odd"
	"$CARREL" plan --json --workspace "$WS/$odd" -- "$odd" '' $'\x80' >"$T/plan.json"
	printf '%s\0' "$odd" '' $'\x80' >"$T/argv"
	run "$VALIDATE" --schema plan --command "$T/argv" "$T/plan.json"
	assert_status 0
	"$CARREL" plan --json --profile strict --scratch-size 1M --nested >"$T/plan.json"
	run "$VALIDATE" --schema plan "$T/plan.json"
	assert_status 0
	[[ $(jq -c '.command' "$T/plan.json") == '[]' ]]
	carrel plan --workspace "$WS/$odd" -- "$odd"
	assert_status 0
	refute_matches "$output" $'\e'
}

@test "plan: an operation has the same number as text and as JSON" {
	mkdir "$WS/gone"
	carrel plan --json --read "$WS/gone"
	number=$(jq -r --arg path "$WS/gone" '.operations[] | select(.name == "clone" and .path == $path) | .number' <<<"$output")
	[[ $number =~ ^[0-9]+$ ]] || fail "no operation for $WS/gone"
	carrel plan --read "$WS/gone"
	assert_matches "$output" " $number  clone .*<- $WS/gone .*\[command line: --read\]"
}

@test "plan: what the walls are is what the report of run says" {
	carrel plan --json -- true
	jq -S '.walls | map_values(.state)' <<<"$output" >"$T/planned"
	carrel run --report "$T/report.json" -- true
	assert_status 0
	jq -S '.walls | map_values(.state)' "$T/report.json" >"$T/reported"
	run diff "$T/planned" "$T/reported"
	assert_status 0
}

@test "plan: fails as run does" {
	for arguments in "--read $T/none" '--raed /' '--workspace /' '--require nothing' '--write /dev'; do
		# shellcheck disable=SC2086 # words
		carrel plan $arguments
		assert_status 125
		said=$stderr
		# shellcheck disable=SC2086 # words
		carrel run $arguments -- true
		assert_status 125
		[[ $stderr == "$said" ]] || fail "plan said: $said"
	done
}

@test "plan: places that are the session's own, and the workspace itself" {
	for arguments in "--hide $WS" "--protect $WS" "--bind /usr:$WS" "--tmpfs $WS" '--hide /proc' \
		'--tmpfs /dev' '--write /' '--bind /usr:/' "--workspace $BASE"; do
		# shellcheck disable=SC2086 # words
		carrel run $arguments -- touch "$WS/ran"
		assert_status 125
		[[ ! -e $WS/ran ]] || fail "it ran with $arguments"
		refute_matches "$stderr" 'operation [0-9]'
	done
	# the later layer wins: a workspace that is named on the command line is meant
	echo "hide $WS" >"$T/policy"
	carrel run --policy "$T/policy" -- true
	assert_status 125
	carrel run --policy "$T/policy" --workspace "$WS" -- touch "$WS/ran"
	assert_status 0
	[[ -e $WS/ran ]]
	carrel run --read /proc --read /dev -- sh -c 'ls /dev; ls /proc/1/comm'
	assert_status 0
}

@test "plan: a bind shows nothing more of the host than what it binds" {
	mkdir -p "$T/project/sub/conf" "$WS/at/sub"
	echo kept >"$T/project/sub/conf/file"
	: >"$WS/at/sub/other"
	carrel run --bind "$T/project:$WS/at:rw" --protect "$T/project/sub/conf/file" \
		--protect "$T/project/absent" -- sh -c 'cd at; ls sub; echo lost >sub/conf/file
			mv sub s2; mkdir sub; : >absent; : >new'
	assert_status 0
	assert_output conf
	[[ $(<"$T/project/sub/conf/file") == kept && -e $T/project/new ]] || fail 'protected is written'
	[[ ! -e $T/project/absent && ! -e $T/project/s2 ]] || fail 'something protected appeared'
	[[ -e $(echo "$T"/project/.carrel-quarantine-*/absent.quarantined) ]] || fail 'not kept'
	mkdir -p "$T/all"
	carrel run --bind "/:$WS/at" -- sh -c 'ls at/proc at/run at/tmp at/var/tmp at/dev | grep -v : || true; ls at/etc/passwd'
	assert_status 0
	assert_matches "$output" 'at/etc/passwd$'
	refute_matches "${output//t.??????/}" '[0-9]'
}

@test "plan: a bind over the home: rules are about what is seen there" {
	mkdir -p "$T/other/.ssh" "$T/other/.aws" "$HOME/.ssh" "$HOME/.gnupg"
	echo key | tee "$T/other/.ssh/key" "$T/other/.aws/key" "$HOME/.ssh/key" >/dev/null
	echo rc >"$T/other/.bashrc"
	echo host >"$HOME/.bashrc"
	ln -s nowhere "$T/other/.netrc"
	carrel run --bind "$T/other:$HOME:rw" --protect "$HOME/.bashrc" --protect "$HOME/.profile" -- sh -c '
		cd; ls .ssh .aws | grep key; cat .bashrc; echo more >>.bashrc; echo x >.profile; echo new >new'
	assert_status 0
	assert_output rc
	[[ $(<"$T/other/.bashrc") == rc && -e $T/other/new && ! -e $T/other/.profile ]] ||
		fail 'not protected'
	[[ $(<"$HOME/.bashrc") == host && ! -e $HOME/.profile ]] || fail 'the host was changed'
	rm -rf "$T"/other/.carrel-quarantine-*
	carrel run --bind "$T/other:$HOME" --read "$HOME/.ssh" -- cat "$HOME/.ssh/key"
	assert_status 0
	assert_output key
}

@test "plan: as root, what is bound into the workspace is not opened by the workspace's owner" {
	need_root
	mkdir "$WS/at" "$T/open"
	echo secret >"$T/open/private"
	chmod 0600 "$T/open/private"
	chmod 0755 "$T" "$T/open"
	carrel run --bind "$T/open:$WS/at" -- cat at/private
	assert_status 1
	assert_matches "$stderr" 'Permission denied'
	carrel run --bind "$T/open:$WS/at:rw" -- cat at/private
	assert_status 0
	assert_output secret
}

@test "plan and policy show: help lists the settings" {
	for verb in plan 'policy show'; do
		# shellcheck disable=SC2086 # words
		carrel $verb --help
		assert_status 0
		assert_matches "$output" 'usage: carrel '"$verb"
		assert_matches "$output" '--scratch-size'
	done
}

@test "policy show: a policy that reads back as itself, with the place of each line" {
	echo 'hide ~/private # mine' >"$T/policy"
	carrel policy show --policy "$T/policy" --read /srv --env A=b
	assert_status 0
	assert_matches "$output" "hide \\\$HOME/private +# $T/policy:1"
	assert_matches "$output" 'read /srv +# command line: --read'
	assert_matches "$output" 'hide \$HOME/.ssh +# list:hide:[0-9]+'
	printf '%s\n' "$output" >"$T/shown"
	sed -E 's/ +# .*//; /^$/d' "$T/shown" >"$T/bare"
	carrel policy check "$T/shown"
	assert_status 0
	carrel policy show --policy "$T/shown"
	assert_status 0
	sed -E 's/ +# .*//; /^$/d' <<<"$output" | sort -u >"$T/again"
	run diff <(sort -u "$T/bare") "$T/again"
	assert_status 0
}

@test "policy show: JSON; no command; a home as the working directory" {
	carrel policy show --json --timeout 5m
	assert_status 0
	[[ $(jq -r '.rules[] | select(.setting == "timeout") | .milliseconds' <<<"$output") == 300000 ]]
	carrel policy show -- true
	assert_status 125
	cd "$HOME"
	carrel policy show
	assert_status 0
}

@test "policy check: every fault, with file and line" {
	cat >"$T/wrong" <<-'POLICY'
		raed /
		read /usr
		timeout 0
		hide ~/.ssh
		write $NOSUCH/x
		syscall allow opne
		syscall errno mkdir if arg9 == 1
		lock net
		net none
		net host
	POLICY
	carrel policy check "$T/wrong"
	assert_status 1
	[[ -z $output ]] || fail 'something on stdout'
	for line in 1 3 5 6 7 8 10; do
		assert_matches "$stderr" "$T/wrong:$line(:|"$'\n'"|$)"
	done
	for line in 2 4; do
		refute_matches "$stderr" "$T/wrong:$line(:|"$'\n'"|$)"
	done
	assert_matches "$stderr" "did you mean 'read'"
	assert_matches "$stderr" "did you mean 'open'"
}

@test "policy check: what is right is passed over in silence; the other statuses" {
	echo 'read /usr' >"$T/right"
	echo 'lock net' >"$T/system"
	carrel policy check "$T/right" "$T/right"
	assert_status 0
	[[ -z $output$stderr ]] || fail 'it said something'
	carrel policy check "$T/right" "$T/system"
	assert_status 1
	carrel policy check --system "$T/system"
	assert_status 0
	carrel policy check "$T/none"
	assert_status 125
	carrel policy check
	assert_status 125
	carrel policy check --sytsem "$T/right"
	assert_status 125
	carrel policy chekc "$T/right"
	assert_status 125
	assert_matches "$stderr" "did you mean 'check'"
	carrel policy
	assert_status 125
	mkfifo "$T/fifo"
	carrel policy check "$T/fifo"
	assert_status 125
	# relative, as any command takes a name
	cd "$T"
	carrel policy check right
	assert_status 0
}

@test "policy check: includes, loops, the shipped texts" {
	echo "policy $T/b" >"$T/a"
	echo 'raed /' >"$T/b"
	carrel policy check "$T/a"
	assert_status 1
	assert_matches "$stderr" "$T/b:1"
	echo "policy $T/a" >"$T/b"
	carrel policy check "$T/a"
	assert_status 1
	for name in agent strict ci container; do
		carrel policy check "$CARREL_SOURCE/policy/$name"
		assert_status 0
	done
}

@test "a full disk for the answer is a failure" {
	[[ -c /dev/full ]] || skip 'no /dev/full'
	for verb in plan 'policy show'; do
		# shellcheck disable=SC2086 # words
		run "$CARREL" $verb >/dev/full
		run bash -c '"$1" $2 >/dev/full' bash "$CARREL" "$verb"
		assert_status 125
	done
}

@test "plan: a limit that cannot be held here is refused as run refuses it, behind the plan" {
	for limit in '--memory 1G' '--cpus 1' '--pids 50' '--memory 1G --pids 50'; do
		# shellcheck disable=SC2086
		carrel run $limit -- true
		local ran=$status said=$stderr
		# shellcheck disable=SC2086
		carrel plan $limit -- true
		assert_status "$ran"
		[[ $(grep -v hint: <<<"$stderr") == "$(grep -v hint: <<<"$said")" ]] ||
			fail "$limit: run says $said"
		assert_matches "$output" 'limits|memory|cpus|pids'
	done
}

@test "plan: limits that are no operations, what is promoted and where to" {
	mkdir "$T/kept"
	carrel plan --memory 1G --pids 7 --cpus 1.5 --output-budget 0 --output-max 1M --merge-output \
		--lifetime 3h --promote '*.txt:out' --promote-to "$T/kept" -- true
	# The status is that of the test above.
	assert_matches "$output" 'memory +1G \[command line: --memory\]'
	assert_matches "$output" 'pids +7 \['
	assert_matches "$output" 'cpus +1.5 \['
	assert_matches "$output" 'output +0 characters'
	assert_matches "$output" 'output-max +1M \['
	assert_matches "$output" 'lifetime +3h \['
	assert_matches "$output" "scratch/\\*.txt -> $WS/out \\[command line: --promote\\]"
	assert_matches "$output" "  $T/kept \\[command line: --promote-to\\]"
	carrel plan --json --memory 1G --output-budget 0 --promote '*.txt:out' --promote-to "$T/kept" -- true
	printf '%s\n' "$output" >"$T/plan.json"
	"$VALIDATE" --schema plan "$T/plan.json"
	assert_field "$T/plan.json" .policy.memory 1073741824
	assert_field "$T/plan.json" .policy.output_budget 0
	assert_field "$T/plan.json" '.policy.output_max == null' true
	assert_field "$T/plan.json" '.promote[0].directory' "$WS/out"
	assert_field "$T/plan.json" '.promote_to[0].source.setting' promote-to
}

@test "plan and --verbose: what of the repositories was not granted" {
	printf 'gitdir: %s/elsewhere\n' "$T" >"$WS/.git"
	carrel plan -- true
	assert_matches "$output" "noted in the repositories of the workspace"
	assert_matches "$output" "  $WS/.git: "
	carrel run --verbose -- true
	assert_matches "$stderr" "note: $WS/.git: "
	carrel run -- true
	[[ -z $stderr ]] || fail "$stderr"
}

@test "plan: what run fails at, plan says in the same words" {
	local settings refused

	: >"$WS/file"
	mkdir "$WS/dir"
	ln -s nowhere "$WS/link"
	for settings in "--cwd $WS/nowhere" '--cwd file' '--cwd /nowhere/at/all' "--cwd $WS/link" "--report $T/nowhere/report" \
		'--report dir' '--report fd:77' '--report fd:1' '--scratch-base /proc' '--scratch-base /sys/kernel'; do
		# shellcheck disable=SC2086
		carrel run $settings -- touch ran
		assert_refused
		refused=$stderr
		# shellcheck disable=SC2086
		carrel plan $settings -- touch ran
		assert_status 125
		[[ $stderr == "$refused" ]] || fail "run says otherwise, for $settings: $refused"
	done
	[[ ! -e ran && ! -e $T/nowhere ]]
	# What is there inside alone, and where a report can go.
	for settings in "--cwd $WS/dir" '--cwd /tmp' '--cwd /dev/shm' \
		"--tmpfs /opt --bind $WS/dir:/opt/made/up --cwd /opt/made" '--report dir/report' '--report fd:7' '--report /dev/null'; do
		# shellcheck disable=SC2086
		carrel plan $settings -- true 7>>"$T/seven"
		assert_status 0
		# shellcheck disable=SC2086
		carrel run $settings -- true 7>>"$T/seven"
		assert_status 0
	done
}

@test "more repositories than a plan can hold: the hint is true" {
	local i

	for ((i = 0; i < 260; i++)); do
		mkdir -p "r$i/.git/objects" "r$i/.git/refs" "r$i/.git/hooks"
		echo 'ref: refs/heads/main' >"r$i/.git/HEAD"
		: >"r$i/.git/config"
	done
	carrel run -- true
	assert_refused 'more paths to mount than the 768 that a plan can hold'
	[[ $stderr =~ ([0-9]+)\ of\ them\ are\ for\ git\ repositories.*--workspace.*--workspace-mode\ ro ]]
	((BASH_REMATCH[1] > 500))
	carrel run --workspace r7 -- true
	assert_status 0
	carrel run --workspace-mode ro -- true
	assert_status 0
}
