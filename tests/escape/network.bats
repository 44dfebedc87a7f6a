#!/usr/bin/env bats
# A tool tries the host's network, its sockets, and the families of sockets that no network namespace bounds.
load ../lib/common
load ../lib/session
load escape

# serve KIND ADDRESS: something of the host that answers, until the test ends.
serve() {
	rm -f "$T/serving"
	in_background python3 -c '
import os, socket, sys
kind, address, note = sys.argv[1:4]
if kind == "unix":
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0" + address[1:] if address[0] == "@" else address)
    if address[0] != "@": os.chmod(address, 0o777)
    port = 0
elif kind == "tcp":
    s = socket.socket()
    s.bind((address, 0))
    port = s.getsockname()[1]
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0))
    port = s.getsockname()[1]
if kind != "udp": s.listen()
with open(note + ".new", "w") as f: f.write(str(port))
os.rename(note + ".new", note)
while True:
    if kind == "udp":
        s.sendto(b"!", s.recvfrom(9)[1])
    else:
        c, _ = s.accept()
        try: c.send(b"!")
        except OSError: pass
        c.close()' "$1" "$2" "$T/serving"
	wait_for test -s "$T/serving"
	PORT=$(<"$T/serving")
}

@test "a server on the host's loopback is not reached by TCP" {
	serve tcp 127.0.0.1
	broke attack_calls tcp 127.0.0.1 "$PORT"
	held attack_calls tcp 127.0.0.1 "$PORT"
	broke "$CARREL" run --net host -- "$T/bin/attack_calls" tcp 127.0.0.1 "$PORT"
	end_background
}

@test "nor by UDP" {
	serve udp 127.0.0.1
	broke attack_calls udp 127.0.0.1 "$PORT"
	held attack_calls udp 127.0.0.1 "$PORT"
	end_background
}

@test "nor one on all addresses, by any of them" {
	serve tcp 0.0.0.0
	broke attack_calls tcp 127.0.0.2 "$PORT"
	for address in 127.0.0.2 0.0.0.0 192.0.2.1 169.254.169.254; do
		held attack_calls tcp "$address" "$PORT"
	done
	end_background
}

@test "there is a loopback of one's own and nothing else" {
	session sh -c 'cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d " "'
	assert_output lo
	session sh -c 'ls /proc/net/route && tail -n +2 /proc/net/route'
	assert_output /proc/net/route
}

@test "an abstract socket of the host is not reached" {
	serve unix "@carrel-escape-$$"
	broke attack_calls unix "@carrel-escape-$$"
	held_by refused:ECONNREFUSED attack_calls unix "@carrel-escape-$$"
	end_background
}

@test "nor in the host's network, where Landlock has scopes" {
	serve unix "@carrel-escape-$$"
	SETTINGS=(--net host --report "$T/report")
	session attack_calls unix "@carrel-escape-$$"
	end_background
	[[ $(field "$T/report" '.walls.landlock.state') == on ]] ||
		skip 'no Landlock in this kernel'
	[[ $(verdict) == refused:EPERM ]] || fail 'the socket was reached'
}

@test "no socket below /run, /tmp or /var/tmp is reached" {
	local place

	for place in /tmp /var/tmp; do
		serve unix "$place/carrel-escape-$$"
		broke attack_calls unix "$place/carrel-escape-$$"
		held_by absent attack_calls unix "$place/carrel-escape-$$"
		end_background
		rm -f "$place/carrel-escape-$$"
	done
	is_root || return 0
	serve unix "/run/carrel-escape-$$"
	broke attack_calls unix "/run/carrel-escape-$$"
	held_by absent attack_calls unix "/run/carrel-escape-$$"
	held_by absent attack_calls unix "/var/run/carrel-escape-$$"
	end_background
	rm -f "/run/carrel-escape-$$"
}

@test "no socket of a container engine or an agent in the home directory is reached" {
	local place

	for place in .colima/default/docker.sock .docker/run/docker.sock .1password/agent.sock \
		.ssh/agent .gnupg/S.gpg-agent .lima/sock; do
		mkdir -p "$HOME/${place%/*}"
		serve unix "$HOME/$place"
		broke attack_calls unix "$HOME/$place"
		held_by absent attack_calls unix "$HOME/$place"
		end_background
	done
}

@test "no socket in the runtime directory is reached" {
	export XDG_RUNTIME_DIR=$HOME/runtime
	mkdir -p "$XDG_RUNTIME_DIR/gnupg" "$XDG_RUNTIME_DIR/podman"
	for place in docker.sock podman/podman.sock gnupg/S.gpg-agent bus; do
		serve unix "$XDG_RUNTIME_DIR/$place"
		broke attack_calls unix "$XDG_RUNTIME_DIR/$place"
		held attack_calls unix "$XDG_RUNTIME_DIR/$place"
		end_background
	done
}

@test "a socket at another place is refused, or the report says that it can be reached" {
	serve unix "$HOME/other.sock"
	broke attack_calls unix "$HOME/other.sock"
	SETTINGS=(--report "$T/report")
	session attack_calls unix "$HOME/other.sock"
	if [[ $(verdict) == escaped ]]; then
		assert_field "$T/report" '.walls["unix-sockets"].state' unavailable
	fi
	SETTINGS=(--profile strict --read "$T/bin")
	held attack_calls unix "$HOME/other.sock"
	end_background
}

@test "no raw, packet, vsock or kernel crypto socket" {
	for kind in raw raw6 packet; do
		broke as_admin "$T/bin/attack_calls" socket "$kind"
		held attack_calls socket "$kind"
	done
	for kind in packet-old vsock alg; do
		held 'attack_calls' socket "$kind"
	done
	SETTINGS=(--net host)
	for kind in raw raw6 packet packet-old vsock alg; do
		held 'attack_calls' socket "$kind"
	done
}

@test "no netlink beyond the routing tables" {
	local -a kinds=(audit uevent generic netfilter diag xfrm connector)

	broke attack_calls socket netlink-uevent
	broke attack_calls socket netlink-generic
	for kind in "${kinds[@]}"; do
		held_by refused:EAFNOSUPPORT attack_calls socket "netlink-$kind"
	done
	SETTINGS=(--net host)
	for kind in "${kinds[@]}"; do
		held_by refused:EAFNOSUPPORT attack_calls socket "netlink-$kind"
	done
}

@test "the host's sockets that are there when a session starts are not reached by path" {
	local path=$T/place/server.sock kind

	mkdir "$T/place"
	chmod 0755 "$T/place"
	serve unix "$path"
	broke attack_calls unix "$path"
	held attack_calls unix "$path"
	SETTINGS=(--profile strict --read "$T")
	held attack_calls unix "$path"
	mkdir "$T/other"
	SETTINGS=(--bind "$T/place:$T/other")
	held attack_calls unix "$T/other/server.sock"
	# By the name of a link, and where another line shows the directory.
	ln -s "$path" "$T/link"
	SETTINGS=(--read "$T/place")
	held attack_calls unix "$T/link"
	end_background
	serve unix "$WS/server.sock"
	broke attack_calls unix "$WS/server.sock"
	SETTINGS=(--workspace-mode ro)
	held attack_calls unix "$WS/server.sock"
	SETTINGS=()
	session attack_calls unix "$WS/server.sock"
	[[ $(verdict) == escaped ]] || fail "in a workspace that is writable: $(verdict)"
	end_background
	rm "$path"
	serve unix "$path"
	# The control arms inside: who names it, or makes its directory writable, is let through.
	for kind in "--unix-socket $path" "--write $T/place"; do
		read -ra SETTINGS <<<"$kind"
		session attack_calls unix "$path"
		[[ $(verdict) == escaped ]] || fail "$kind: $(verdict)"
	done
	end_background
}

@test "nor where hundreds of other lines stand before the one that shows its directory" {
	local place i

	# In /tmp: only what a line shows of it is the host's.
	place=$(mktemp -d /tmp/carrel-socket.XXXXXX)
	chmod 0755 "$place"
	SETTINGS=()
	for i in $(seq 300); do
		mkdir -p "$T/many/$i"
		SETTINGS+=(--read "$T/many/$i")
	done
	serve unix "$place/server.sock"
	broke attack_calls unix "$place/server.sock"
	held attack_calls unix "$place/server.sock"
	SETTINGS+=(--read "$place")
	held attack_calls unix "$place/server.sock"
	end_background
	rm -r "$place"
}

@test "a server that is started again during the session is not reached either" {
	local path=$T/server.sock

	serve unix "$path"
	# It is bare for as long as it takes to cover it again, and for no longer.
	start run -- sh -c ': >begun; while [ ! -e restarted ]; do sleep 0.05; done
		for i in $(seq 300); do said=$("$@"); [ "${said##*escaped*}" ] && break; sleep 0.1; done; echo "$said"' \
		sh attack_calls unix "$path"
	wait_for test -e "$WS/begun"
	end_background
	rm "$path"
	serve unix "$path"
	broke attack_calls unix "$path"
	: >"$WS/restarted"
	finish
	end_background
	assert_matches "${output##*$'\n'}" '^(refused:[A-Z]+|absent|held)$'
}
