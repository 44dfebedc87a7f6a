#!/usr/bin/env bats
# Which walls hold under which options of the runtime: the test attacks every claimed wall, on every image, next to the
# same attempts without carrel. It makes the tables of docs/container.md anew and compares them.
# ctest: cost=50 mounts
load ../lib/common
load container

setup_file() {
	set_up_containers slim busybox static
	write_docker_filter
}

teardown_file() {
	remove_containers
}

setup() {
	common_setup
	need_containers
	setup_places
	NEIGHBOURS=(intruder outside)
	need_scopes
}

teardown() {
	remove_places
	common_teardown
}

# The tables are of a kernel whose Landlock keeps signals and abstract sockets in, too.
need_scopes() {
	local abi

	"$CARREL" run --report "$T/abi.json" -- true
	abi=$(jq -r '.walls.landlock.abi // 0' "$T/abi.json")
	((abi >= 6)) || skip "no Landlock in this kernel"
}

# option_sets: one a line: who, then the options.
option_sets() {
	cat <<-SETS
		root
		root --security-opt unmask=ALL
		root --cap-add SYS_ADMIN --cap-add NET_ADMIN
		root --cap-drop=all
		root --security-opt seccomp=DOCKER
		1000
		1000 --security-opt unmask=ALL
		1000 --security-opt unmask=ALL --read-only
		1000 --security-opt unmask=ALL --cap-drop=all
		1000 --security-opt unmask=ALL --security-opt no-new-privileges
		1000 --security-opt unmask=ALL --security-opt seccomp=unconfined
		1000 --security-opt seccomp=DOCKER
		1000 --security-opt unmask=ALL --security-opt seccomp=DOCKER
		1000 --security-opt seccomp=DOCKER --read-only --cap-drop=all
	SETS
}

# use SET: OPTIONS is what podman gets.
use() {
	read -ra OPTIONS <<<"${*//DOCKER/$STORE/docker.json}"
	if [[ ${OPTIONS[0]} == root ]]; then
		OPTIONS=("${OPTIONS[@]:1}")
	else
		OPTIONS=(--user 1000:1000 "${OPTIONS[@]:1}")
	fi
}

# try_inside IMAGE [SETTING...]: the attempts in a session; status, output and $R.
try_inside() {
	local image=$1

	shift
	rm -rf "$R" "${WS:?}"/*
	run --separate-stderr container "${OPTIONS[@]}" "$image" "${NEIGHBOURS[@]}" \
		carrel run --profile container --report /out/report.json "$@" -- intruder try
}

# shape: what the report says of the session, in a few words.
shape() {
	local user pid

	[[ $status == 0 ]] || {
		echo refused
		return
	}
	user=$(field "$R" '.walls["user-namespace"].state')
	pid=$(field "$R" '.walls["pid-namespace"].state')
	case $user-$pid in
	on-on) echo 'all namespaces' ;;
	on-*) echo "the container's /proc" ;;
	*) echo 'Landlock' ;;
	esac
}

is_on() {
	[[ $(field "$R" ".walls[\"$1\"].state") == on ]]
}

refuted() {
	grep -qx "$1 refused" <<<"$output" || fail "$1 was possible: ${OPTIONS[*]}"
}

# check_walls: each wall that the report claims withstood its attempt.
check_walls() {
	local pair

	for pair in net-namespace:network ipc-namespace:shared-memory pid-namespace:see-process \
		mounts:write-outside mounts:read-hidden mounts:read-secrets \
		landlock:write-outside landlock:read-hidden landlock:read-secrets \
		mounts:unix-socket mounts:change-mode landlock:abstract-socket landlock:signal-process landlock:read-process \
		capabilities:capability syscalls:system-call nested-namespaces:namespace; do
		! is_on "${pair%:*}" || refuted "${pair#*:}"
	done
	refuted environment
	grep -qx 'workspace done' <<<"$output" || fail 'the workspace cannot be written'
	grep -qx 'scratch done' <<<"$output" || fail 'the scratch cannot be written'
	[[ -s $WS/from-inside ]] || fail 'the workspace did not keep what was written'
}

# committed NAME: a table of the document.
committed() {
	sed -n "/^<!-- table $1 -->\$/,/^<!-- end -->\$/p" "$CARREL_SOURCE/docs/container.md" |
		sed -e 1d -e '$d'
}

# compare NAME TABLE
compare() {
	[[ $(committed "$1") == "$2" ]] || fail "docs/container.md has another table $1 than: $2"
}

@test "control: without carrel each attempt is done" {
	use root
	run --separate-stderr container "${OPTIONS[@]}" static "${NEIGHBOURS[@]}" intruder try
	assert_status 0
	for what in workspace scratch write-outside read-hidden read-secrets network \
		abstract-socket unix-socket change-mode shared-memory see-process signal-process read-process \
		environment capability system-call namespace; do
		grep -qx "$what done" <<<"$output" || fail "$what is refused by the container"
	done
}

@test "under every option: claimed walls withstand, and the table of the options" {
	local set table podman=rootless without with image
	local -a images=(slim busybox static)
	local count=0

	! is_root || podman=rootful
	table=$'| user and options | as it is | with `degraded` | not root |\n| --- | --- | --- | --- |'
	while IFS= read -r set <&3; do
		use "$set"
		try_inside static
		without=$(shape)
		[[ $status != 0 ]] || check_walls
		try_inside "${images[count++ % 3]}" --degraded
		with=$(shape)
		[[ $status != 0 ]] || check_walls
		[[ $with == refused || $with == 'all namespaces' ]] ||
			assert_matches "$stderr" 'carrel: degraded, without: '
		[[ $status == 0 ]] && is_on unprivileged-uid && uid=yes || uid=no
		[[ $without != refused || $with != refused ]] || uid=-
		table+=$'\n'"| \`${set//DOCKER/docker.json}\` | $without | $with | $uid |"
	done 3< <(option_sets)
	compare "$podman" "$table"
}

@test "the table of the attempts" {
	local -A cell
	local what column table

	for column in 1000:unmask=ALL: 1000::--degraded "1000:seccomp=$STORE/docker.json:--degraded"; do
		IFS=: read -r who option setting <<<"$column"
		use "$who ${option:+--security-opt $option}"
		# shellcheck disable=SC2086 # one word or none
		try_inside static $setting
		assert_status 0
		while read -r what result; do
			cell[$what]+=" $result |"
		done <<<"$output"
	done
	table=$'| attempt | all namespaces | the container\'s /proc | Landlock |\n| --- | --- | --- | --- |'
	for what in workspace scratch write-outside read-hidden read-secrets network \
		abstract-socket unix-socket change-mode shared-memory see-process signal-process read-process \
		environment capability system-call namespace; do
		table+=$'\n'"| $what |${cell[$what]}"
	done
	compare attempts "$table"
}
