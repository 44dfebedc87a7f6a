#!/usr/bin/env bats
# The mounts and Landlock, each alone in a session that has all the other walls. To take the mounts away, the user who
# started the session enters its mount namespace and makes "/" writable (unwall.c); `nested` takes Landlock away. The
# attempts succeed only without both.
load ../lib/common
load ../lib/live
load escape

setup() {
	escape_setup
	make_runtime_dir "$T/run"
	SESSION=(run)
	mkdir "$T/other"
	make_prey
	[[ $("$CARREL" run --report "$T/report" -- true; field "$T/report" .walls.landlock.state) == on ]] ||
		skip 'no Landlock in this kernel'
	mapfile -t ATTEMPTS <<-ATTEMPTS
		write $T/other/file
		write /proc/self/root$T/other/file
		write-o-path $T/other/file
		write-at $T/other file
		truncate $T/other/file
		ftruncate $T/other/file
		create $T/other/new
		mkdir $T/other/new
		symlink $T/other/new
		fifo $T/other/new
		link $T/other/file $T/other/second
		exchange $T/other/one $T/other/two
		rename $T/other/one $T/other/moved
		unlink $T/other/two
		rmdir $T/other/empty
	ATTEMPTS
}

# make_prey: what anybody may write, outside of what a session may.
make_prey() {
	chmod 0777 "$T/other"
	rm -rf "$T/other"/*
	echo text >"$T/other/file"
	echo text >"$T/other/one"
	echo text >"$T/other/two"
	mkdir "$T/other/empty"
	chmod 0666 "$T/other"/{file,one,two}
}

# the_command: the command of the session, seen from outside; it is in pid namespaces of two depths.
the_command() {
	local pid

	for pid in $(marked); do
		if [[ $(sed -n 's/^NSpid:\t//p' "/proc/$pid/status") == *$'\t'* ]] &&
			grep -qz attempts "/proc/$pid/cmdline"; then
			printf '%s\n' "$pid"
			return
		fi
	done
	fail 'there is no command'
}

unwall() {
	"$CARREL_HELPERS/unwall" "$(the_command)" "$@" || fail "not done: $*"
}

# The file system that has $T is writable from now on, wherever the session shows it.
without_mounts() {
	unwall rw "$(findmnt -n -o TARGET -T "$T/other")"
}

# Another part of the host's tree is seen where nothing should be.
with_a_stray_mount() {
	unwall show "$T/other" /run
}

# arm HOW EXPECTED [ATTEMPT...]: each attempt in a session with $SETTINGS after HOW was done to it; each
# verdict must be EXPECTED.
arm() {
	local how=$1 expected=$2 status=0 line launcher

	shift 2
	(($#)) || set -- "${ATTEMPTS[@]}"
	printf '%s\n' "$@" >"$WS/attempts"
	rm -f "$WS/ready" "$WS/go"
	"$CARREL" "${SESSION[@]}" "${SETTINGS[@]}" --env PATH -- sh -c ': >ready
		until [ -e go ]; do sleep 0.05; done
		while read -r attempt; do
			echo "$attempt: $(attack_files $attempt)"
		done <attempts' >"$T/out" 2>"$T/err" </dev/null 3>&- 4>&- &
	launcher=$!
	wait_for test -e "$WS/ready"
	"$how" || return
	: >"$WS/go"
	wait "$launcher" || status=$?
	output=$(<"$T/out") stderr=$(<"$T/err")
	((status == 0)) || fail 'the session failed'
	(($(wc -l <"$T/out") == $#)) || fail 'not every attempt was made'
	while read -r line; do
		[[ ${line##*: } =~ ^($expected)$ ]] || fail "$how: not $expected: $line"
	done <"$T/out"
}

prey_is_whole() {
	[[ $(<"$T/other/file") == text && $(ls -A "$T/other" | tr '\n' ' ') == 'empty file one two ' ]] ||
		fail "changed: $(ls -A "$T/other")"
}

prey_is_gone() {
	[[ ! -e $T/other/two && ! -e $T/other/empty ]] || fail 'the control arm changed nothing'
}

@test "nothing outside is written, made or removed where either wall is gone; without both it is" {
	arm : refused:EROFS
	arm without_mounts refused:EACCES # Landlock's word
	SETTINGS=(--nested)
	arm : refused:EROFS
	prey_is_whole
	arm without_mounts escaped
	prey_is_gone
}

@test "the same for an execution in a live session" {
	SESSION=(exec)
	begin
	arm : refused:EROFS
	arm without_mounts refused:EACCES
	end_session
	begin --nested
	arm : refused:EROFS
	prey_is_whole
	arm without_mounts escaped
	prey_is_gone
	end_session
}

@test "what Landlock has no word for the mounts hold alone: modes, times, extended attributes" {
	arm : refused:EROFS "touch $T/other/file"
	arm without_mounts escaped "touch $T/other/file"
}

@test "a mount that strays into a session is not written; where only what is named is shown, not read" {
	local -a writing=("write /run/file" "create /run/new" "unlink /run/one")

	need_root
	arm : absent 'read /run/file'
	arm with_a_stray_mount refused:EACCES "${writing[@]}"
	arm with_a_stray_mount escaped 'read /run/file'
	SETTINGS=(--profile strict --read "$T/bin")
	arm with_a_stray_mount refused:EACCES "${writing[@]}" 'read /run/file'
	SETTINGS+=(--nested)
	arm with_a_stray_mount escaped 'read /run/file' "${writing[@]}"
}

@test "a hidden place that is laid bare is covered again" {
	secret "$HOME/.ssh/id"
	SETTINGS=(--report "$T/report")
	arm : absent "read $HOME/.ssh/id"
	lay_bare() { unwall bare "$HOME/.ssh" && wait_for is_covered "$HOME/.ssh"; }
	arm lay_bare absent "read $HOME/.ssh/id"
	assert_field "$T/report" .exit_status 0
	jq -e '.covered_again[0].times > 0' "$T/report" || fail "$(<"$T/report")"
}

# is_covered PATH: init's own table shows a mount there.
is_covered() {
	grep -qF " $1 " "/proc/$(pgrep -P "$launcher" -x carrel-init)/mountinfo"
}
