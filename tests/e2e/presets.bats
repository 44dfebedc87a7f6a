#!/usr/bin/env bats
# with NAME and cache NAME: what they give, who shares it, and what carrel refuses.
# shellcheck disable=SC2016 # the command's own variables
load ../lib/common
load ../lib/session
load ../lib/live

CACHES=.cache/carrel/caches

# agent_at PATH: a socket that answers each client with a word. In the background; its pid is in AGENT.
agent_at() {
	/usr/bin/python3 -c 'import os, socket, sys
os.umask(0o077)
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
while True:
    client, _ = s.accept()
    client.send(b"agent\n")
    client.close()' "$1" </dev/null >/dev/null 2>&1 3>&- 4>&- &
	AGENT=$!
	wait_for test -S "$1"
}

end_agent() {
	kill "$AGENT"
	wait "$AGENT" 2>/dev/null || true
}

ask='import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
sys.stdout.write(s.recv(16).decode())'

# refused ERE SETTING...: the command would leave a trace.
refused() {
	local cause=$1

	shift
	carrel run "$@" -- touch "$WS/ran"
	assert_refused "$cause"
	[[ ! -e $WS/ran ]] || fail 'it ran'
}

# --- caches -----------------------------------------------------------------------------------

@test "a cache is shared by the sessions that name it, and by nothing else" {
	mkdir -p "$HOME/.npm" "$HOME/.cache/ccache"
	echo own >"$HOME/.npm/file"
	carrel run --cache npm --cache ccache -- sh -c 'echo first >$npm_config_cache/file; echo object >$CCACHE_DIR/file'
	assert_status 0
	[[ -z $stderr ]]
	[[ $(<"$HOME/$CACHES/npm/file") == first && $(<"$HOME/$CACHES/ccache/file") == object ]]
	[[ $(<"$HOME/.npm/file") == own && -z $(ls -A "$HOME/.cache/ccache") ]] || fail "the user's own was touched"
	[[ $(stat -c %a "$HOME/$CACHES") == 700 && $(stat -c %a "$HOME/$CACHES/npm") == 700 ]]
	carrel run --cache npm -- sh -c 'cat $npm_config_cache/file; echo second >$npm_config_cache/file'
	assert_output first
	# A live session as well; and without it the cache is in the scratch, and the shared one cannot be written.
	begin --cache npm
	inside -- sh -c 'cat $npm_config_cache/file'
	assert_output second
	end_session
	carrel run --cache ccache -- sh -c 'echo $npm_config_cache; echo x >"$1/file"; echo x >"$1/../npm/file"' sh "$HOME/$CACHES/npm"
	assert_matches "$output" '/scratch/\.cache/npm$'
	[[ $(<"$HOME/$CACHES/npm/file") == second ]] || fail 'a session without it wrote to it'
}

@test "what may write all caches of the user cannot write carrel's" {
	carrel run --cache pip -- true
	carrel run --write "$HOME/.cache" --cache npm -- sh -c 'cd "$1"; echo fine >plain; echo x >carrel/caches/pip/file; mkdir carrel/caches/new
		mv carrel moved; rm -rf carrel/caches/pip; echo mine >carrel/caches/npm/file' sh "$HOME/.cache"
	[[ $(<"$HOME/.cache/plain") == fine && $(<"$HOME/$CACHES/npm/file") == mine ]] || fail "the control: $stderr"
	[[ -d $HOME/$CACHES/pip && -z $(ls -A "$HOME/$CACHES/pip") && ! -e $HOME/$CACHES/new && ! -e $HOME/.cache/moved ]]
}

@test "every cache's variables lead into it" {
	local text name
	local -a names=()
	for text in "$CARREL_SOURCE"/policy/*.cache; do
		name=${text##*/}
		names+=(--cache "${name%.cache}")
	done
	((${#names[@]} > 20))
	carrel run "${names[@]}" -- env
	assert_status 0
	for text in "$CARREL_SOURCE"/policy/*.cache; do
		name=${text##*/}
		name=${name%.cache}
		grep -q "^# $name - " "$text"
		while read -r variable; do
			assert_matches "$output" "(^|"$'\n'")$variable=$HOME/$CACHES/$name(/[a-z]+)?("$'\n'"|\$)"
		done < <(sed -n 's/^env \([A-Za-z_]*\)=.*/\1/p' "$text")
		[[ -d $HOME/$CACHES/$name ]]
	done
}

@test "in a policy file several on a line; XDG_CACHE_HOME; plan makes nothing" {
	echo 'cache npm pip' >"$T/policy"
	export XDG_CACHE_HOME=$T/elsewhere
	carrel plan --policy "$T/policy" -- true
	assert_status 0
	[[ ! -e $XDG_CACHE_HOME ]]
	carrel run --policy "$T/policy" -- sh -c 'echo x >$npm_config_cache/f; echo y >$PIP_CACHE_DIR/f'
	assert_status 0
	[[ -f $XDG_CACHE_HOME/carrel/caches/npm/f && -f $XDG_CACHE_HOME/carrel/caches/pip/f ]]
}

@test "a cache that is none: names, links, somebody else's" {
	refused "'\.\./x' is not the name of a cache: --cache" --cache ../x
	refused "'' is not the name of a cache" --cache ''
	refused "'/etc' is not the name of a cache" --cache /etc
	refused "'npm,pip' is not the name of a cache" --cache npm,pip
	assert_matches "$stderr" 'hint: one name each: --cache A --cache B'
	refused "unknown cache 'npx'" --cache npx
	assert_matches "$stderr" "hint: did you mean 'npm'"
	refused "unknown cache 'ssh-agent'" --cache ssh-agent
	refused "'npm' takes no second word" --cache npm:x
	mkdir -p "$HOME/$CACHES" "$T/target"
	chmod 0700 "$HOME/$CACHES"
	ln -s "$T/target" "$HOME/$CACHES/npm"
	refused "cannot make the cache: .*/caches/npm" --cache npm
	rm "$HOME/$CACHES/npm"
	: >"$HOME/$CACHES/npm"
	refused "cannot make the cache: .*/caches/npm: Not a directory" --cache npm
	rm "$HOME/$CACHES/npm"
	mkdir "$HOME/$CACHES/npm"
	chmod 0777 "$HOME/$CACHES/npm"
	refused "the cache is not a directory of the caller's alone: .*/caches/npm" --cache npm
	chmod 0700 "$HOME/$CACHES/npm"
	mv "$HOME/.cache/carrel" "$T/carrel"
	ln -s "$T/carrel" "$HOME/.cache/carrel"
	refused "cannot make the cache: .*/caches" --cache npm
	rm "$HOME/.cache/carrel"
	XDG_CACHE_HOME=/proc/nowhere refused "cannot make the cache: /proc/nowhere/carrel/caches" --cache npm
	[[ -z $(ls -A "$T/target") ]]
}

# --- presets ----------------------------------------------------------------------------------

@test "ssh-agent: the agent answers with it, and not without" {
	local dir
	dir=$(mktemp -d /tmp/carrel-agent.XXXXXX)
	agent_at "$dir/agent"
	export SSH_AUTH_SOCK=$dir/agent
	carrel run -- /usr/bin/python3 -c "$ask" "$dir/agent"
	((status != 0)) || fail 'it is reached without'
	carrel run -- sh -c 'echo "$SSH_AUTH_SOCK."'
	assert_output .
	carrel run --with ssh-agent -- sh -c 'exec /usr/bin/python3 -c "$1" "$SSH_AUTH_SOCK"' sh "$ask"
	assert_output agent
	carrel run --profile strict --with ssh-agent -- sh -c 'exec /usr/bin/python3 -c "$1" "$SSH_AUTH_SOCK"' sh "$ask"
	assert_output agent
	unset SSH_AUTH_SOCK
	end_agent
	refused '\$SSH_AUTH_SOCK stands for nothing here: with:ssh-agent:' --with ssh-agent
	assert_matches "$stderr" 'hint: it is not set where carrel is started'
	rm -r "$dir"
}

@test "a preset that gives nothing on this machine says so" {
	local note='^carrel: the preset gives nothing here: no file, device or variable of it exists: ca$'

	unset SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT CARGO_HTTP_CAINFO
	carrel run --with ca --with session-proxy -- sh -c 'exit 3'
	assert_status 3
	assert_matches "$stderr" "$note"
	carrel run --with ca -- true
	assert_status 0
	assert_matches "$stderr" "$note"
	carrel run --quiet --with ca -- true
	[[ -z $stderr ]] || fail "it says: $stderr"
	NODE_EXTRA_CA_CERTS=/etc/own.pem carrel run --with ca -- true
	[[ -z $stderr ]] || fail "it says: $stderr"
	carrel run --with session-proxy -- true
	[[ -z $stderr ]] || fail "it says: $stderr"
	begin --with ca
	assert_matches "$(<"$T/begin.err")" "$note"
	end_session
}

@test "x11: the display and its cookie, and not without" {
	local socket=/tmp/.X11-unix/X$((10000 + RANDOM)) answers='cat "$XAUTHORITY"; echo "$DISPLAY"; python3 -c "$1" "$2"'

	# It belongs to the machine: where there is none an X server would make it.
	mkdir -m 1777 "${socket%/*}" 2>/dev/null || [[ -w ${socket%/*} ]] || skip 'needs root'
	agent_at "$socket"
	chmod 0777 "$socket" # as Xorg makes it
	echo cookie >"$T/authority"
	chmod 0600 "$T/authority"
	export DISPLAY=:${socket##*/X} XAUTHORITY=$T/authority
	carrel run --with x11 -- sh -c "$answers" sh "$ask" "$socket"
	assert_status 0
	assert_output $'cookie\n'"$DISPLAY"$'\nagent'
	carrel run -- sh -c "${answers#*;}" sh "$ask" "$socket"
	assert_status 1
	assert_output ''
	unset XAUTHORITY
	(umask 077 && echo own >"$HOME/.Xauthority")
	carrel run --with x11 -- cat "$HOME/.Xauthority"
	assert_output own
	end_agent
	rm "$socket"
}

@test "gpu: its devices, and not without" {
	local dev=$T/dev

	is_root || skip 'only root can make a device'
	mkdir "$dev"
	# A /dev with a device that stands for a processor's: what is read from it is zeros.
	run --separate-stderr unshare --mount bash -c '
		set -e
		mount -t tmpfs none "$1"
		for node in null zero full random urandom tty; do
			mknod -m 0666 "$1/$node" c $((0x$(stat -c %t "/dev/$node"))) $((0x$(stat -c %T "/dev/$node")))
		done
		mknod -m 0666 "$1/nvidia3" c 1 5
		mkdir "$1/pts" "$1/shm"
		mount --move "$1" /dev
		echo "$("$2" run --with gpu -- head -c 3 /dev/nvidia3 | od -An -tx1)"
		! "$2" run -- head -c 3 /dev/nvidia3' bash "$dev" "$CARREL"
	assert_status 0
	assert_output ' 00 00 00'
	assert_matches "$stderr" '/dev/nvidia3.*No such file'
}

@test "podman's socket only with a second word" {
	mkdir "$T/run/podman"
	chmod 0700 "$T/run/podman"
	refused "'podman' gives away more than a session is, and is not given so easily: --with" --with podman
	assert_matches "$stderr" 'hint: where that is meant: --with podman:gives-account'
	refused 'not given so easily' --with podman:yes
	refused "unknown setting|not given so easily" --with docker
	assert_matches "$stderr" 'hint: where that is meant: --with docker:gives-root'
	echo 'with podman' >"$T/policy"
	refused "'podman' gives away" --policy "$T/policy"
	assert_matches "$stderr" 'hint: where that is meant: with podman:gives-account'
	agent_at "$T/run/podman/podman.sock"
	carrel run --with podman:gives-account -- /usr/bin/python3 -c "$ask" "$T/run/podman/podman.sock"
	assert_output agent
	end_agent
}

@test "proxy: the caller's variables, and a network" {
	export HTTPS_PROXY=http://me@proxy.example:3128 NODE_EXTRA_CA_CERTS=/etc/own.pem
	carrel run -- sh -c 'echo "$HTTPS_PROXY$NODE_EXTRA_CA_CERTS."; readlink /proc/self/ns/net'
	[[ ${lines[0]} == . && ${lines[1]} != "$(readlink /proc/self/ns/net)" ]]
	carrel run --with proxy -- sh -c 'echo "$HTTPS_PROXY $NODE_EXTRA_CA_CERTS"; readlink /proc/self/ns/net'
	[[ ${lines[0]} == 'http://me@proxy.example:3128 /etc/own.pem' && ${lines[1]} == "$(readlink /proc/self/ns/net)" ]]
	# What comes later counts.
	carrel run --with proxy --net none -- readlink /proc/self/ns/net
	[[ $output != "$(readlink /proc/self/ns/net)" ]]
	carrel policy show --with proxy
	assert_matches "$output" 'net +host +# with:proxy:[0-9]+'
}

@test "all that ship are listed, each with what it gives away, and can be planned" {
	carrel policy presets
	assert_status 0
	local listed=$output text name second
	export SSH_AUTH_SOCK=/tmp/agent
	for text in "$CARREL_SOURCE"/policy/*.with; do
		name=${text##*/}
		name=${name%.with}
		grep -q "^# $name - " "$text" && grep -q '^# gives away: ' "$text"
		assert_matches "$listed" "  $name +[a-z].*"$'\n'" +gives away: "
		second=$(sed -n 's/^# second word: /:/p' "$text")
		carrel policy show --with "$name$second"
		assert_status 0
		assert_matches "$output" "# with:$name:"
	done
	for text in "$CARREL_SOURCE"/policy/*.cache; do
		name=${text##*/}
		assert_matches "$listed" "  ${name%.cache} +[a-z]"
	done
	carrel policy presets more
	assert_refused '`policy presets` takes no arguments: more'
}

@test "a preset of the user's own" {
	mkdir -p "$HOME/.config/carrel/with"
	printf '# what the team needs\nenv TEAM=blue\nread %s/shared\n' "$T" >"$HOME/.config/carrel/with/team"
	mkdir "$T/shared"
	carrel run --with team -- sh -c 'echo $TEAM'
	assert_output blue
	carrel policy presets
	assert_matches "$output" $'\n''  team'$'\n'
	printf '# second word: sure\nenv TEAM=red\n' >"$HOME/.config/carrel/with/team"
	refused "'team' gives away" --with team
	carrel run --with team:sure -- sh -c 'echo $TEAM'
	assert_output red
	# A shipped one cannot be replaced, and what others can write is not obeyed.
	echo 'env TEAM=green' >"$HOME/.config/carrel/with/proxy"
	carrel run --with proxy -- sh -c 'echo "$TEAM."'
	assert_output .
	chmod 0666 "$HOME/.config/carrel/with/team"
	refused 'a policy that others can write is not obeyed: .*/carrel/with/team' --with team:sure
	rm "$HOME/.config/carrel/with/team"
	refused "unknown preset 'team': --with" --with team
	assert_matches "$stderr" 'hint: ca, docker, gpu, podman, proxy, session-proxy, ssh-agent or x11'
	refused "'../with/team' is not the name of a preset" --with ../with/team
	refused 'a value is missing: --with' --with
	# No command writes one.
	carrel run --write "$HOME/.config" -- sh -c 'echo "env X=y" >"$1/mine"' sh "$HOME/.config/carrel/with"
	[[ ! -e $HOME/.config/carrel/with/mine ]] || fail 'a command made a preset'
}

@test "unix-socket: a socket, and a daemon's only with a second word" {
	mkdir "$T/place"
	agent_at "$T/place/sql"
	carrel run --read "$T/place" -- /usr/bin/python3 -c "$ask" "$T/place/sql"
	((status != 0)) || fail 'it is reached without'
	carrel run --unix-socket "$T/place/sql" -- /usr/bin/python3 -c "$ask" "$T/place/sql"
	assert_output agent
	printf 'unix-socket %s\nunix-socket -%s\n' "$T/place/sql" "$T/place/none" >"$T/policy"
	carrel run --policy "$T/policy" -- /usr/bin/python3 -c "$ask" "$T/place/sql"
	assert_output agent
	carrel policy show --unix-socket "$T/place/sql"
	assert_matches "$output" "unix-socket +$T/place/sql +# command line: --unix-socket"
	end_agent
	: >"$T/place/file"
	refused "this is not a unix socket: $T/place/file \(command line: --unix-socket\)" --unix-socket "$T/place/file"
	refused "this is not a unix socket: $T/place \(" --unix-socket "$T/place"
	refused "there is no such path: $T/place/none \(command line: --unix-socket\)" --unix-socket "$T/place/none"
	refused "'docker.sock' gives away more than a session is, and is not given so easily: --unix-socket" --unix-socket /run/docker.sock
	assert_matches "$stderr" 'hint: where that is meant: --unix-socket /run/docker.sock:gives-root'
	refused "'docker.sock' gives away" --unix-socket "-$T/docker.sock:yes/docker.sock"
	refused "'sql' takes no second word" --unix-socket "$T/place/sql:gives-root"
	agent_at "$T/place/podman.sock"
	carrel run --unix-socket "$T/place/podman.sock:gives-root" -- /usr/bin/python3 -c "$ask" "$T/place/podman.sock"
	assert_output agent
	end_agent
}

@test "a daemon's socket is given by no other line: not by write, read or bind of it, by a link to it, or of a directory that holds it" {
	local line at=$T/place/docker.sock

	mkdir "$T/place" "$T/links"
	ln -s "$at" "$T/links/innocent"
	ln -s "$T/place" "$T/links/dir"
	agent_at "$at"
	connect() { carrel run "${@:2}" -- /usr/bin/python3 -c "$ask" "$1"; }
	# Without a session, and with the word, it answers.
	apart /usr/bin/python3 -c "$ask" "$at"
	assert_output agent
	connect "$at" --unix-socket "$at:gives-root"
	assert_output agent
	# Its directory is shown, and it is not in it; another one made there meanwhile is the command's own.
	for line in "write $T/place" "read $T/place" "write $T/links/dir" "workspace $T/place"; do
		connect "$at" "--${line%% *}" "${line#* }"
		((status != 0)) || fail "it is reached: $line"
		[[ $output != agent ]]
	done
	for line in rw ro; do
		connect "$WS/there/docker.sock" --bind "$T/place:$WS/there:$line"
		((status != 0)) || fail "it is reached: bind $line"
	done
	# A line that names it shows it there as well.
	connect "$at" --write "$T/place" --unix-socket "$at:gives-root"
	assert_output agent
	end_agent
	[[ -S $at ]] || /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$at"
	for line in "write $at" "read $at" "bind $at:/srv/x:rw" "bind $at:/srv/x" "write $T/links/innocent" "write $T/links/dir/docker.sock" \
		"unix-socket $T/links/innocent"; do
		refused "'$at' gives away more than a session is, and is not given so easily: command line: --${line%% *}" "--${line%% *}" "${line#* }"
		assert_matches "$stderr" "hint: where that is meant: --unix-socket $at:gives-root"
	done
	# What is called so and is no socket is a file.
	echo text >"$T/place/podman.sock"
	carrel run --read "$T/place/podman.sock" -- cat "$T/place/podman.sock"
	assert_output text
}
