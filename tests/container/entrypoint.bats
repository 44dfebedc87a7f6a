#!/usr/bin/env bats
# carrel as the entrypoint of a container, pid 1, on three images: statuses, signals, orphans, and its messages where
# the container refuses walls.
# ctest: cost=30 mounts
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
	NAME=carrel-test
}

teardown() {
	[[ -e ${STORE-/}/skip ]] || podman_ rm -f -t 0 "$NAME" >/dev/null 2>&1 || true
	remove_places
	common_teardown
}

# All walls: an ordinary user, and a /proc that is not masked.
ALL=(--user 1000:1000 --security-opt unmask=ALL)

# start_container [OPTION...] IMAGE COMMAND...: in the background.
start_container() {
	lsm_options
	limit_options
	podman_ run "${OPTIONS_LSM[@]}" "${OPTIONS_LIMIT[@]}" -d --name "$NAME" --log-driver none \
		--network none --pull never -v "$WS:/srv/ws" -v "$OUT:/out" -w /srv/ws \
		-e HOME=/home/u "$@" >/dev/null
}

inside() {
	podman_ exec "$NAME" /usr/bin/intruder "$@"
}

@test "the command's status is the container's, on every image" {
	for image in slim busybox static; do
		run container "${ALL[@]}" "$image" carrel run --profile container -- intruder exit 7
		assert_status 7
	done
	run container "${ALL[@]}" busybox carrel run --profile container -- sh -c 'kill -9 $$'
	assert_status 137
	run container "${ALL[@]}" slim carrel run --profile container -- bash -c 'cat <(echo x)'
	assert_status 0
	assert_output x
	run -127 container "${ALL[@]}" static carrel run --profile container -- absent
}

@test "podman stop: TERM reaches the command, which ends in its own way" {
	start_container "${ALL[@]}" static carrel run --profile container --report /out/report.json \
		-- intruder wait ready
	wait_for test -e "$WS/ready"
	podman_ stop -t 100 "$NAME" >/dev/null
	run podman_ inspect --format '{{.State.ExitCode}}' "$NAME"
	assert_output 7
	assert_field "$R" .status 7
	assert_field "$R" .teardown.result removed
}

@test "podman stop: what ignores TERM is gone after the grace, long before podman would kill" {
	local before=$SECONDS

	start_container "${ALL[@]}" static carrel run --profile container --grace 500ms \
		--report /out/report.json -- intruder deaf ready
	wait_for test -e "$WS/ready"
	podman_ stop -t 300 "$NAME" >/dev/null
	((SECONDS - before < 300))
	run podman_ inspect --format '{{.State.ExitCode}}' "$NAME"
	assert_output 137
	assert_field "$R" .signal.number 9
	assert_field "$R" .teardown.result removed
}

@test "other signals are passed on, those of a runtime's own STOPSIGNAL too" {
	# 39: a real-time signal, as systemd's SIGRTMIN+3 and its like.
	for signal in HUP USR1 39; do
		rm -f "$WS/ready"
		start_container "${ALL[@]}" busybox carrel run --profile container -- \
			sh -c "trap 'exit 9' $signal
				>ready; while :; do sleep 0.05; done"
		wait_for test -e "$WS/ready"
		podman_ kill -s "$signal" "$NAME" >/dev/null
		run podman_ wait "$NAME"
		assert_output 9
		podman_ rm "$NAME" >/dev/null
	done
}

@test "orphans of others in the container are reaped; control: elsewhere they stay" {
	start_container "${ALL[@]}" static carrel run --profile container -- intruder wait ready
	wait_for test -e "$WS/ready"
	orphan=$(inside orphan)
	wait_for inside gone "$orphan"
	podman_ rm -f -t 0 "$NAME" >/dev/null
	rm "$WS/ready"
	start_container static intruder wait /srv/ws/ready
	wait_for test -e "$WS/ready"
	orphan=$(inside orphan)
	zombie() { inside zombie "$orphan"; }
	wait_for zombie
}

@test "as it is: the message names what is missing and the options that grant it" {
	run container static carrel run --profile container -- intruder exit 0
	assert_status 125
	assert_matches "$output" 'cannot be given an unprivileged uid'
	assert_matches "$output" '--user 1000:1000 .*systempaths=unconfined.*\(docker\)'
	assert_matches "$output" '--user 1000:1000 --security-opt unmask=ALL. \(podman\)'
	run container --user 1000:1000 static carrel run --profile container -- intruder exit 0
	assert_status 125
	assert_matches "$output" 'systempaths=unconfined. \(docker\) or .--security-opt unmask=ALL. \(podman\)'
	run container --user 1000:1000 --security-opt seccomp="$STORE/docker.json" static \
		carrel run --profile container -- intruder exit 0
	assert_status 125
	assert_matches "$output" 'seccomp=unconfined --security-opt unmask=ALL. \(podman\)'
}

@test "what the messages name is enough: as another user, and as root" {
	run container "${ALL[@]}" static carrel run --profile container -- intruder exit 0
	assert_status 0
	run container --user 1000:1000 --security-opt seccomp=unconfined \
		--security-opt unmask=ALL static carrel run --profile container -- intruder exit 0
	assert_status 0
	# The root of a rootless podman may not idmap what was mounted outside, whatever it is given.
	is_root || return 0
	run container --cap-add SYS_ADMIN --cap-add NET_ADMIN static \
		carrel run --profile container -- intruder exit 0
	assert_status 0
}

@test "require refuses, degraded or not" {
	run container --user 1000:1000 static carrel run --profile container --degraded \
		--require pid-namespace -- intruder exit 0
	assert_status 125
	assert_matches "$output" 'requires the wall pid-namespace'
}

@test "a live session without its own /proc is refused, degraded too, and the option is named" {
	local -a degraded

	# refused [OPTION...]: of the container.
	refused() {
		run container "$@" static carrel session start "${degraded[@]}"
		assert_status 125
		assert_matches "$output" '--security-opt unmask=ALL'
		[[ $output != *', or accept fewer walls with --degraded'* ]] || fail 'what does not help is offered'
	}
	degraded=(--degraded)
	refused --user 1000:1000
	assert_matches "$output" 'this machine cannot hold a live session'
	refused --user 1000:1000 --security-opt "seccomp=$STORE/docker.json"
	degraded=()
	refused
	refused --user 1000:1000
	refused --user 1000:1000 --security-opt "seccomp=$STORE/docker.json"
	# A command of its own it can have.
	run container --user 1000:1000 static carrel run -- true
	assert_matches "$output" ', or accept fewer walls with --degraded'
}

@test "degraded without namespaces: status, stop, grace, nothing left, on every image" {
	local -a docker=(--user 1000:1000 --security-opt "seccomp=$STORE/docker.json")
	local bomber=$((2000 + $$ % 60000)) # of no other container, nor of another checkout's

	run container "${docker[@]}" static carrel run --profile container --degraded -- true
	[[ $output != *'no Landlock'* ]] || skip 'no Landlock in this kernel'
	for image in slim busybox static; do
		# The bomb takes every process that its uid may have: a uid of its own.
		PROCESSES=500 run container "${docker[@]}" --user "$bomber:$bomber" "$image" intruder alone \
			carrel run --profile container --degraded -- intruder bomb
		assert_status 0
		assert_matches "$output" 'left 0'
	done
	start_container "${docker[@]}" static carrel run --profile container --degraded \
		--grace 500ms --report /out/report.json -- intruder deaf ready
	wait_for test -e "$WS/ready"
	podman_ stop -t 300 "$NAME" >/dev/null
	assert_field "$R" .signal.number 9
	assert_field "$R" '.walls["user-namespace"].state' unavailable
	assert_field "$R" .teardown.result removed
}
