#!/usr/bin/env bats
# Network by name and published ports with carrel as the entrypoint of a container: carrel-egress uses the container's
# network.
# ctest: cost=10 mounts
load ../lib/common
load container

setup_file() {
	set_up_containers busybox
}

teardown_file() {
	remove_containers
}

setup() {
	common_setup
	need_containers
	setup_places
	NAME=carrel-network
}

teardown() {
	[[ -e ${STORE-/}/skip ]] || podman_ rm -f -t 0 "$NAME" >/dev/null 2>&1 || true
	remove_places
	common_teardown
}

# in_container COMMAND: a line of shell beside the session, in the background.
in_container() {
	podman_ exec -d "$NAME" sh -c "$1" >/dev/null
}

@test "an allowed name is reached and no other; a server inside is reached at the port that is published" {
	lsm_options
	limit_options
	podman_ run "${OPTIONS_LSM[@]}" "${OPTIONS_LIMIT[@]}" -d --name "$NAME" --log-driver none --network none --pull never \
		-v "$WS:/srv/ws" -v "$OUT:/out" -w /srv/ws -e HOME=/home/u --user 1000:1000 --security-opt unmask=ALL \
		--add-host site.example:127.0.0.1 --add-host other.example:127.0.0.1 \
		--entrypoint carrel busybox run --profile container --report /out/report.json --net-resolver 127.0.0.1:9 \
		--allow site.example:8081 --allow 127.0.0.1:8081 --publish 8080:8090 -- sh -c '>ready
			until [ -e go ]; do sleep 0.05; done
			nc site.example 8081 >got
			nc other.example 8081 >never; echo $? >refused
			echo served | nc -l -p 8080' >/dev/null
	wait_for test -e "$WS/ready"
	in_container 'while echo hello | nc -l -p 8081; do :; done'
	listens() { podman_ exec "$NAME" sh -c 'cat /proc/net/tcp /proc/net/tcp6 | grep -q ":1F91 "'; }
	wait_for listens
	: >"$WS/go"
	wait_for test -s "$WS/refused"
	grep -q hello "$WS/got" || fail 'the name was not reached'
	[[ ! -s $WS/never && $(<"$WS/refused") != 0 ]] || fail 'another name was reached'
	in_container 'until nc 127.0.0.1 8090 | grep served >/out/served; do sleep 0.05; done'
	wait_for test -s "$OUT/served"
	run podman_ wait "$NAME"
	assert_output 0
	assert_field "$R" '[.network.names[] | .decision] | sort | join(" ")' 'allowed denied-name'
	assert_field "$R" '.published[0].host_port' 8090
}
