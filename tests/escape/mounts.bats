#!/usr/bin/env bats
# Hidden and protected files, at the other paths where the host's mounts show them.
load ../lib/common
load ../lib/session
load escape

setup() {
	escape_setup
	IN=(unshare --mount --propagation private)
	AS=()
	if ! is_root; then
		IN=(unshare --user --map-root-user --mount --propagation private)
		AS=(unshare --user --map-user="$(id -u)" --map-group="$(id -g)")
	fi
	"${IN[@]}" "${AS[@]}" true 2>/dev/null || skip 'no user namespaces for the user here'
	secret "$HOME/.ssh/id"
	mkdir "$HOME/.ssh/part" "$T/else" "$T/other"
	secret "$HOME/.ssh/part/key"
}

# among MOUNTS SCRIPT: where MOUNTS were made, a script of the user's, in which `inside` begins a session.
among() {
	run --separate-stderr "${IN[@]}" bash -c "set -eu
		$1
		script=\$1
		shift
		exec \"\$@\" bash -euc \"\$script\"" mounts "inside() { \"\$CARREL\" run \"\$@\"; }
		$2" "${AS[@]}"
}

# hides MOUNTS FILE...: each can be read outside, and where a line says so; and otherwise not.
hides() {
	local mounts=$1 file

	shift
	for file; do
		among "$mounts" "cat '$file'"
		[[ $status == 0 && $output == 'the secret' ]] || fail "control: $file is not even there"
		among "$mounts" "inside --read '$file' -- cat '$file'"
		[[ $status == 0 && $output == 'the secret' ]] || fail "control: $file is not shown where a line says so"
		among "$mounts" "inside -- sh -c 'cat \"\$1\" | grep . || echo none' sh '$file'"
		[[ $status == 0 && $output == none ]] || fail "$file is shown"
	done
}

@test "a bind mount of a directory above it" {
	hides "mount --bind '$T' '$T/else'" "$T/else/home/.ssh/id"
	hides "mount --bind '$HOME' '$T/else'" "$T/else/.ssh/id"
}

@test "of the hidden directory, of a part of it, and of a file" {
	touch "$T/file"
	hides "mount --bind '$HOME/.ssh' '$T/else'" "$T/else/id"
	hides "mount --bind '$HOME/.ssh/part' '$T/else'" "$T/else/key"
	hides "mount --bind '$HOME/.ssh/id' '$T/file'" "$T/file"
}

@test "of what is a mount itself, and of another bind mount" {
	hides "mount --bind '$T/home' '$T/home'; mount --bind '$T/home' '$T/else'
		mount --bind '$T/else/.ssh' '$T/other'" "$T/else/.ssh/id" "$T/other/id"
	hides "mount -t tmpfs x '$HOME/.ssh'; echo the secret >'$HOME/.ssh/id'
		mount --bind '$HOME/.ssh' '$T/else'" "$T/else/id"
}

@test "of the root, with all that is mounted on it" {
	hides "mount --rbind / '$T/else'" "$T/else$HOME/.ssh/id"
}

@test "at a place with odd characters" {
	local odd=$T/$'a b\t\\040#'

	mkdir "$odd"
	hides "mount --bind '$HOME' '$odd'" "$odd/.ssh/id"
}

@test "an overlay shows what is in its layers, and they what is in it" {
	local mounts

	mkdir "$T/"{low,up,work,memory}
	secret "$T/low/.ssh/id"
	mounts="mount -t tmpfs x '$T/memory'; mkdir '$T/memory/'{up,work}
		mount -t overlay x -o 'lowerdir=$HOME:$T/low,upperdir=$T/memory/up,workdir=$T/memory/work' '$T/else'"
	"${IN[@]}" bash -ec "$mounts" 2>/dev/null || skip 'no user namespaces that may mount an overlay here'
	hides "$mounts" "$T/else/.ssh/id"
	mounts="mount -t tmpfs x '$T/memory'; mkdir '$T/memory/'{up,work}
		mount -t overlay x -o 'lowerdir=$T/low,upperdir=$T/memory/up,workdir=$T/memory/work' '$HOME'
		mkdir '$HOME/.gnupg'; echo the secret >'$HOME/.gnupg/key'"
	hides "$mounts" "$T/low/.ssh/id" "$T/memory/up/.gnupg/key"
}

@test "what stands over a mount is what is seen there" {
	echo public >"$T/other/id"
	among "mount --bind '$HOME/.ssh' '$T/else'; mount --bind '$T/other' '$T/else'" \
		"inside -- cat '$T/else/id'"
	[[ $status == 0 && $output == public ]]
	among "mount --bind '$HOME' '$T/else'; mount -t tmpfs x '$T/else'" "inside -- ls '$T/else'"
	[[ $status == 0 && -z $output ]]
}

@test "a bind or memory over the other place" {
	local mounts="mount --bind '$HOME' '$T/else'"

	echo public >"$T/other/file"
	among "$mounts" "inside --bind '$T/other:$T/else' -- ls '$T/else'"
	[[ $status == 0 && $output == file ]]
	among "$mounts" "inside --tmpfs '$T/else' -- ls -A '$T/else'"
	[[ $status == 0 && -z $output ]]
	among "$mounts" "inside --bind '$T/else:$T/other' -- sh -c 'cat \"\$1\" || echo none' sh '$T/other/.ssh/id'"
	[[ $status == 0 && $output == none ]] || fail 'shown by a bind of the other place'
}

@test "the plan and a live session know it" {
	local mounts="mount --bind '$HOME' '$T/else'"

	among "$mounts" "\"\$CARREL\" plan -- true"
	assert_matches "$output" "attach .* -> $T/else/.ssh .*# hidden: a mount shows $HOME/.ssh here \[list:hide:"
	among "$mounts" "export XDG_RUNTIME_DIR='$T/other'; chmod 0700 '$T/other'
		id=\$(\"\$CARREL\" session start | sed -n 's/^session //p')
		\"\$CARREL\" exec -s \"\$id\" -- sh -c 'cat \"\$1\" || echo none' sh '$T/else/.ssh/id'
		\"\$CARREL\" why -s \"\$id\" '$T/else/.ssh/id'
		\"\$CARREL\" session end \"\$id\""
	[[ $status == 0 ]] || fail 'a live session'
	assert_matches "$output" $'^none\n.*hidden'
}

@test "a locked hide holds at the other place" {
	need_root
	[[ ! -e /etc/carrel ]] || skip 'this machine has a policy'
	among "mount --bind '$HOME' '$T/else'; mount -t tmpfs x /etc -o mode=755 2>/dev/null || true
		mkdir -p /etc/carrel; printf 'hide %s\nlock hide\n' '$HOME/.ssh' >/etc/carrel/policy" \
		"inside --read '$T/else/.ssh' -- true"
	assert_refused locked
}

@test "the workspace in a hidden directory is refused at the other place, too, unless it is named" {
	among "mount --bind '$HOME/.ssh/part' '$T/else'; cd '$T/else'" "inside -- cat key"
	assert_refused 'the workspace is hidden'
	among "mount --bind '$HOME/.ssh/part' '$T/else'" "inside --workspace '$T/else' -- cat key"
	[[ $status == 0 && $output == 'the secret' ]]
}

@test "hiding the other place does not hide the home" {
	echo public >"$HOME/file"
	among "mount --bind '$T' '$T/else'" "inside --hide '$T/else' -- sh -c 'cat \"\$1\"; ls \"\$2\"' sh '$HOME/file' '$T/else'"
	[[ $status == 0 && $output == public ]]
}

@test "the records of sessions are not written there" {
	local state=.local/state/carrel mounts="mount --bind '$HOME' '$T/else'"

	session true # makes them
	among "$mounts" "inside --write '$T/else/$state' -- true"
	assert_refused 'the records of sessions lie here'
	among "$mounts" "touch '$T/else/$state/forged'; rm '$T/else/$state/forged'
		inside --write '$T/else' -- sh -c 'touch \"\$1/file\"; ls -A \"\$1/$state\"; touch \"\$1/$state/forged\" 2>/dev/null || echo refused' sh '$T/else'"
	[[ $status == 0 && $output == refused && -e $HOME/file ]] || fail 'a record can be forged'
	among "mount --bind '$T' '$T/else'" "inside --write '$T/else/base' -- true"
	assert_refused 'this is the scratch base'
}

@test "neither the host's processes nor its temporary files are seen there" {
	secret "$BASE/carrel-x"
	hides "mount --bind '$T' '$T/else'" "$T/else/base/carrel-x"
	rm "$BASE/carrel-x"
	among "mount --rbind /proc '$T/else'" "[[ -e '$T/else/self' ]]; inside -- ls '$T/else'"
	[[ $status == 0 && -z $output ]] || fail "the host's processes"
	is_root || return 0
	among "mount -t proc x '$T/else'" "[[ -e '$T/else/self' ]]; inside -- ls '$T/else'"
	[[ $status == 0 && -z $output ]] || fail "the host's processes, by a procfs of their own"
}

@test "the root of pid 1 is the session's" {
	session sh -c 'cat "/proc/1/root$1"; ls "/proc/1/root/proc" | grep -c "^[0-9]*$"' sh "$HOME/.ssh/id"
	refute_matches "$output" 'the secret'
	session sh -c 'cat "/proc/self/root$1" || echo none' sh "$HOME/.ssh/id"
	[[ $status == 0 && $output == none ]]
	[[ $(cat "/proc/self/root$HOME/.ssh/id") == 'the secret' ]] || fail control
}

@test "a protected file is not written at another writable place" {
	local mounts="mount --bind '$T/ws' '$T/else'" write="sh -c 'echo evil >\"\$1\" || echo refused' sh"

	mkdir "$WS/in"
	echo text >"$WS/.envrc"
	among "$mounts" "inside --write '$T/else' -- $write '$T/else/harmless'"
	[[ $status == 0 && $(<"$WS/harmless") == evil ]] || fail 'control: the other place is not writable'
	among "$mounts" "inside --write '$T/else' -- $write '$T/else/.envrc'"
	[[ $status == 0 && $output == refused && $(<"$WS/.envrc") == text ]] || fail 'written'
	among "$mounts" "inside --write '$T/else' -- sh -c 'mv \"\$1/.envrc\" \"\$1/x\" || rm \"\$1/.envrc\" || echo refused' sh '$T/else'"
	[[ $status == 0 && $output == refused && $(<"$WS/.envrc") == text ]] || fail 'moved away'
	among "$mounts" "inside --workspace-mode ro --write '$T/else' -- $write '$T/else/.envrc'"
	[[ $status == 0 && $output == refused && $(<"$WS/.envrc") == text ]] || fail 'written, beside a workspace to be read'
	among "mount --bind '$T/ws' '$WS/in'" "inside -- $write '$WS/in/.envrc'"
	[[ $status == 0 && $output == refused && $(<"$WS/.envrc") == text ]] || fail 'written inside the workspace'
	among true "inside --write '$WS' --bind '$WS:$T/else:rw' -- $write '$T/else/.envrc'"
	[[ $status == 0 && $output == refused && $(<"$WS/.envrc") == text ]] || fail 'written through a bind'
	among "$mounts" "echo evil >'$T/else/.envrc'"
	[[ $(<"$WS/.envrc") == evil ]] || fail 'control: it is another file'
}

@test "nor comes into being there" {
	local mounts="mount --bind '$WS' '$T/else'" mode

	for mode in direct ro; do
		among "$mounts" "inside --workspace-mode $mode --write '$T/else' -- sh -c 'echo evil >\"\$1/.envrc\"; echo good >\"\$1/file\"' sh '$T/else'"
		[[ $(<"$WS/file") == good && ! -e $WS/.envrc ]] || fail "it stays ($mode)"
		assert_matches "$stderr" quarantined
		rm -rf "$WS/"{file,.carrel-quarantine-*}
	done
}

# The kernel's rules are about files, not about paths: what allows the other place allowed this one.
@test "without namespaces it is hidden at both places" {
	local both="cat '$HOME/.ssh/id' '$T/else/.ssh/id'; cat '$HOME/file' '$T/else/file'"
	local begin="\"\$CARREL\" run --degraded --quiet --read / --workspace '$WS' -- sh -c \"$both\""

	need capsh
	echo public >"$HOME/file"
	IN=(unshare --user --map-root-user --mount --propagation private) AS=()
	"${IN[@]}" true 2>/dev/null || skip 'no user namespaces for the user here'
	among "mount --bind '$HOME' '$T/else'" "$both"
	[[ $output == $'the secret\nthe secret\npublic\npublic' ]] || fail control
	among "mount --bind '$HOME' '$T/else'; echo 0 >/proc/sys/user/max_user_namespaces" \
		"exec capsh --drop=cap_sys_admin -- -c '${begin//\'/\'\\\'\'}'"
	[[ $stderr == *'no Landlock'* ]] && skip 'no Landlock in this kernel'
	[[ $output == $'public\npublic' ]] || fail 'shown'
	assert_matches "$stderr" 'Permission denied'
}
