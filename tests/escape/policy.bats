#!/usr/bin/env bats
# The policy comes from the caller, never from files that tools can write, and nothing leads the launcher astray when it
# starts.
load ../lib/common
load ../lib/session
load escape

# network: lo means that the policy in question had no effect.
network() {
	session sh -c 'tail -n +3 /proc/net/dev | wc -l; ls /proc/net >/dev/null; readlink /proc/self/ns/net'
}

@test "no file in the workspace is read as policy by itself" {
	local name inside

	outside=$(readlink /proc/self/ns/net)
	for name in .carrel/policy carrel/policy policy .config/carrel/policy carrel.policy .carrel; do
		rm -rf "$WS/.carrel"
		mkdir -p "$WS/$(dirname "$name")"
		[[ $name == .carrel ]] || echo 'net host' >"$WS/$name"
	done
	network
	refute_matches "$output" "${outside//[][]/.}"
	SETTINGS=(--net host)
	network
	assert_matches "$output" "${outside//[][]/.}"
}

@test "nor when it is named, by its name or through a link" {
	echo 'net host' >"$WS/policy"
	ln -s "$WS/policy" "$T/link"
	ln -s "$WS" "$T/directory"
	for path in "$WS/policy" policy "$T/link" "$T/directory/policy" "$WS/../ws/policy" \
		/proc/self/cwd/policy; do
		apart "$CARREL" run --policy "$path" -- true
		assert_refused
	done
	echo 'net host' >"$T/policy"
	carrel run --policy "$T/policy" -- true
	assert_status 0
}

@test "nor when another policy includes it" {
	echo 'net host' >"$WS/policy"
	echo "policy $WS/policy" >"$T/policy"
	apart "$CARREL" run --policy "$T/policy" -- true
	assert_refused 'workspace'
}

@test "nor as the user's policy, where the configuration lies in the workspace" {
	mkdir -p "$WS/carrel"
	echo 'net host' >"$WS/carrel/policy"
	XDG_CONFIG_HOME=$WS apart "$CARREL" run -- true
	assert_refused 'workspace'
	mkdir -p "$WS/.config/carrel"
	echo 'net host' >"$WS/.config/carrel/policy"
	mkdir "$WS/inner"
	HOME=$WS apart "$CARREL" run --workspace "$WS/.config" -- true
	assert_refused
}

@test "carrel's own policies and filters are not written where all of the cache is" {
	mkdir -p "$HOME/.cache/carrel/filters" "$HOME/.config/carrel"
	echo quiet >"$HOME/.config/carrel/policy"
	SETTINGS=(--write "$HOME/.cache" --write "$HOME/.config")
	held_by refused:EROFS attack_files create "$HOME/.cache/carrel/filters/x"
	held_by refused:EROFS attack_files write "$HOME/.config/carrel/policy"
	held attack_files rename "$HOME/.cache/carrel" "$HOME/.cache/x"
	session attack_files create "$HOME/.cache/x"
	[[ $(verdict) == escaped ]] || fail 'control'
	rm -rf "$HOME/.cache/carrel" "$HOME/.config/carrel"
	session sh -c 'mkdir -p ~/.cache/made/filters ~/.config/made
		echo "net host" >~/.config/made/policy; echo evil >~/.cache/made/filters/x
		mv ~/.config/made ~/.config/carrel && mv ~/.cache/made ~/.cache/carrel'
	assert_status 0
	[[ ! -e $HOME/.cache/carrel && ! -e $HOME/.config/carrel ]] || fail 'they are there'
	rm -rf "$HOME"/.c*/.carrel-quarantine-*
}

@test "a compiled filter cannot be forged for the next session" {
	local forge='
import glob, hashlib, struct, sys
for name in glob.glob(sys.argv[1] + "/carrel/filters/*.bpf"):
    data = bytearray(open(name, "rb").read())
    code = struct.pack("<HBBI", 6, 0, 0, 0x7fff0000)
    data[48:80] = hashlib.sha256(code).digest()
    data[80:84] = struct.pack("<I", 1)
    try:
        open(name, "wb").write(data[:88] + code)
    except OSError as e:
        print("refused:" + str(e.errno))'
	mkdir -m 0700 "$T/cache"
	export XDG_CACHE_HOME=$T/cache
	SETTINGS=(--syscall 'errno mkdir' --write "$T/cache")
	session true
	assert_status 0
	[[ -n $(find "$T/cache" -name '*.bpf') ]] || fail 'nothing is kept'
	held attack_calls call io_uring_setup
	session python3 -c "$forge" "$T/cache"
	held_by refused:EPERM attack_calls call io_uring_setup
	python3 -c "$forge" "$T/cache"
	session attack_calls call io_uring_setup
	[[ $(verdict) == escaped ]] || fail 'control: a forged one has no effect'
	# In the workspace it could be of a session that had another cache: the same file is not believed.
	mv "$T/cache" "$WS/cache"
	SETTINGS=(--syscall 'errno mkdir')
	XDG_CACHE_HOME=$WS/cache held attack_calls call io_uring_setup
}

@test "who moves carrel's own places for one session has not left them to its tools" {
	local dir

	umask 077
	for dir in .config .cache; do
		mkdir "$HOME/$dir"
		XDG_CONFIG_HOME=$T/c XDG_CACHE_HOME=$T/c carrel run --write "$HOME/$dir" -- \
			sh -c 'mkdir "$0/carrel" "$0/other"; echo "net host" >"$0/carrel/policy"; :' "$HOME/$dir"
		[[ -d $HOME/$dir/other ]] || fail 'control: nothing can be made there'
		[[ ! -e $HOME/$dir/carrel ]] || fail "the next launch would obey what is in ~/$dir"
		assert_matches "$stderr" "quarantined, since the host would obey it: .*/$dir/carrel"
	done
}

@test "a command is not taken for a setting" {
	local name

	for name in --inadvisable -h --net=host --help -x; do
		printf '#!/bin/sh\necho "ran $0 $*"\n' >"$WS/$name"
		chmod 0755 "$WS/$name"
		session "./$name" --net host
		assert_output "ran ./$name --net host"
		PATH=$WS:$PATH session "$name" --keep
		assert_matches "$output" "ran .*$name --keep"
	done
	carrel run --inadvisable -- true
	assert_refused
}

@test "what follows the command is the command's" {
	session sh -c 'echo "$@"' sh --net host --keep -- --policy x
	assert_output '--net host --keep -- --policy x'
	session readlink /proc/self/ns/net
	[[ $output != "$(readlink /proc/self/ns/net)" ]]
}

@test "the working directory is not searched for the command" {
	printf '#!/bin/sh\necho evil\n' >"$WS/ls-like"
	chmod 0755 "$WS/ls-like"
	for path in ":$PATH" "$PATH:" "/nowhere::$PATH"; do
		PATH=$path session ls-like
		assert_status 127
	done
	PATH=$PATH:. sh -c ls-like | grep -q evil || fail 'control'
}

@test "a locale, a loader's or a shell's variable of the caller loads nothing inside" {
	export LD_PRELOAD_CANARY=x LD_AUDIT='' BASH_ENV="$WS/env" ENV="$WS/env" PYTHONSTARTUP="$WS/env" \
		GIT_CONFIG_GLOBAL="$WS/env" GIT_SSH_COMMAND=evil PERL5OPT=-w NODE_OPTIONS=--title=x
	echo 'echo evil' >"$WS/env"
	run bash -c :
	assert_output evil
	session bash -c 'env | grep -cE "^(LD_|BASH_ENV|ENV=|PYTHONSTARTUP|GIT_|PERL5OPT|NODE_OPTIONS)"'
	assert_output 0
}

# swap A B: the two names are exchanged until the file $T/stop is there.
swap() {
	in_background python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None)
a, b, stop = (os.fsencode(x) for x in sys.argv[1:4])
while not os.path.exists(stop):
    for _ in range(50):
        libc.renameat2(-100, a, -100, b, 2)' "$1" "$2" "$T/stop"
}

@test "a workspace exchanged for a link while the session starts: the right one or none" {
	local i ran=0 refused=0

	mkdir -p "$T/race/place" "$T/victim"
	touch "$T/race/place/mark"
	chmod -R a+rX "$T/race" "$T/victim"
	ln -s "$T/victim" "$T/race/link"
	swap "$T/race/place" "$T/race/link"
	for ((i = 0; i < 150; i++)); do
		run "$CARREL" run --quiet --workspace "$T/race/place" --cwd / -- \
			sh -c '[ -e "$CARREL_WORKSPACE/mark" ] && [ ! -e "$2/wrong" ] &&
				echo x >"$CARREL_WORKSPACE/written"; echo "$CARREL_WORKSPACE"' sh "$T" "$T"
		if ((status == 0)); then
			ran=$((ran + 1))
		else
			refused=$((refused + 1))
		fi
	done
	touch "$T/stop"
	wait "$BACKGROUND" || true
	# Where the name was the link when it was resolved, the victim was what the caller named.
	((ran > 0 && ran + refused == 150))
	[[ -z $(find "$T/victim" -name written -print -quit) ]] || fail 'written in the wrong place'
}
