# carrel doctor: what it says of this machine, and of one that is made worse.
load ../lib/common

# verdict CHECK [ON]: of the JSON in $output, the worst where there are several.
verdict() {
	jq -r --arg check "$1" --arg on "${2-}" '
		[.checks[] | select(.check == $check and ($on == "" or .on == $on)) | .verdict] |
		if index("FAIL") then "FAIL" elif index("warn") then "warn"
		elif index("note") then "note" elif index("ok") then "ok" else "none" end' <<<"$output"
}

# assert_verdict CHECK VERDICT
assert_verdict() {
	[[ $(verdict "$1") == "$2" ]] || fail "$1 is $(verdict "$1"), not $2"
}

# in_user_namespace SCRIPT: root of a user namespace of its own, with a mount namespace of its own.
in_user_namespace() {
	run --separate-stderr unshare --user --map-root-user --mount \
		sh -c "$1; exec \"\$CARREL\" doctor --json"
}

# one_cause REMEDY: a single failure, and REMEDY is its; besides that of a root with one uid, as in_user_namespace has it.
one_cause() {
	jq -e --arg remedy "$1" '[.checks[] | select(.verdict == "FAIL" and .check != "unprivileged-uid")] |
		length == 1 and (.[0].remedy | contains($remedy))' <<<"$output" ||
		fail "not one failure with the remedy $1: $(jq -c '[.checks[] | select(.verdict == "FAIL")]' <<<"$output")"
}

@test "sessions work here, and the status says with what" {
	carrel doctor --strict --json
	case $(jq -r .worst <<<"$output") in
	ok | note) assert_status 0 ;;
	warn) assert_status 1 ;;
	*) fail 'sessions do not work here' ;;
	esac
	# What only another kernel has is no fault of this machine.
	carrel doctor --json
	if [[ $(jq -r '.checks[] | select(.check == "landlock").text' <<<"$output") == ABI* ]]; then
		assert_status 0
	fi
	local check

	for check in plan open-files user-namespace mount-namespace pid-namespace ipc-namespace \
		uts-namespace net-namespace cgroup-namespace clone3 mount-api tmpfs devpts procfs \
		nested-namespaces idmapped-mounts syscalls capabilities keyring scratch-base session; do
		assert_verdict "$check" ok
	done
	assert_nothing_left
}

@test "what is said about limits is what a run is told" {
	carrel doctor --json
	local said remedy

	said=$(jq -r '.checks[] | select(.check == "cgroup") | .verdict' <<<"$output")
	remedy=$(jq -r '.checks[] | select(.check == "cgroup") | .remedy' <<<"$output")
	carrel run --memory 200M --pids 100 --cpus 2 -- true
	if [[ $said == ok ]]; then
		assert_status 0
	else
		[[ $said == note ]] || fail "the verdict is $said"
		assert_refused 'cannot be limited'
		[[ $stderr == *"${remedy:0:25}"* ]] || fail "another remedy: $remedy"
	fi
}

@test "every line has a verdict, and what is bad has a remedy" {
	carrel doctor
	while IFS= read -r line; do
		assert_matches "$line" '^(ok  |note|warn|FAIL) [a-z0-9-]+( .*)?: .|^       remedy: .'
	done <<<"$output"
	carrel doctor --json
	jq -e '[.checks[] | select(.verdict == "warn" or .verdict == "FAIL") | .remedy != null] |
		all' <<<"$output"
}

@test "a home directory or / is no fault of the machine" {
	cd "$HOME"
	carrel doctor --json
	assert_verdict plan ok
	assert_verdict session ok
	cd /
	carrel doctor --json
	assert_verdict session ok
	assert_nothing_left
}

@test "worse: no user namespaces by sysctl" {
	in_user_namespace 'echo 0 >/proc/sys/user/max_user_namespaces'
	assert_status 2
	assert_verdict user-namespace FAIL
	assert_verdict clone3 note
	assert_verdict session note
	[[ $(verdict sysctl user.max_user_namespaces) == note ]] || fail 'the sysctl is not named'
	one_cause 'sysctl -w user.max_user_namespaces'
}

@test "worse: /proc is masked, as in a container" {
	in_user_namespace 'mount -t tmpfs none /proc/scsi 2>/dev/null ||
		mount -t tmpfs none /proc/fs || mount -t tmpfs none /proc/tty'
	assert_status 2
	assert_verdict procfs FAIL
	assert_verdict mount-api ok
	one_cause 'systempaths=unconfined'
}

@test "control: the same without the mask" {
	in_user_namespace true
	assert_verdict procfs ok
	assert_verdict user-namespace ok
}

@test "worse: a scratch base that is noexec" {
	in_user_namespace "mount -t tmpfs -o noexec none $BASE"
	assert_verdict scratch-base warn
	assert_matches "$output" 'noexec'
}

@test "worse: a scratch base that is missing, not sticky, or somebody else's" {
	export TMPDIR=$T/nonesuch
	carrel doctor --json
	assert_status 2
	assert_verdict plan FAIL
	export TMPDIR=$BASE
	chmod 0777 "$BASE"
	carrel doctor --json
	assert_status 2
	assert_verdict scratch-base FAIL
	assert_verdict plan FAIL
	chmod 1777 "$BASE"
	carrel doctor --json
	assert_verdict scratch-base ok
}

@test "worse: few descriptors" {
	run --separate-stderr bash -c 'ulimit -n 24; exec "$CARREL" doctor --json'
	assert_status 2
	assert_verdict open-files FAIL
}

@test "worse: inside a session" {
	cp -R "$(dirname "$CARREL")/.." "$WS/usr" # where sessions see it
	carrel run -- "$WS/usr/bin/carrel" doctor --json
	assert_status 2
	assert_verdict user-namespace FAIL
	assert_verdict mount-api note
	assert_verdict session note
}

@test "a policy that cannot be planned is quoted" {
	mkdir -p "$HOME/.config/carrel"
	echo 'read /nonesuch/at/all' >"$HOME/.config/carrel/policy"
	carrel doctor --json
	assert_status 2
	assert_verdict plan FAIL
	assert_matches "$output" 'nonesuch/at/all'
}

@test "options" {
	carrel doctor --help
	assert_status 0
	assert_matches "$output" '^usage: carrel doctor'
	carrel doctor --jsn
	assert_refused 'no such option'
	carrel doctor --json --json
	assert_refused 'once'
	carrel doctor --strict --strict
	assert_refused 'once'
	carrel doctor now
	assert_refused 'now'
}
