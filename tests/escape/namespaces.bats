#!/usr/bin/env bats
# Mounts and namespaces: a tool can neither undo one nor make a new one.
load ../lib/common
load escape

@test "no namespace is made by unshare" {
	broke attack_calls unshare user
	for name in user mnt pid net ipc uts cgroup time; do
		[[ $name == user ]] || broke as_admin "$T/bin/attack_calls" unshare "$name"
		held_by refused:EPERM attack_calls unshare "$name"
	done
}

@test "nor by clone, with high bits set or not" {
	broke attack_calls clone user
	for name in user mnt pid net ipc uts cgroup; do
		[[ $name == user ]] || broke as_admin "$T/bin/attack_calls" clone "$name"
		held_by refused:EPERM attack_calls clone "$name"
		held_by refused:EPERM attack_calls clone "$name" high
	done
}

@test "nor by clone3, whose flags no filter can see" {
	broke attack_calls clone3 user
	for name in user mnt pid net time; do
		held_by refused:ENOSYS attack_calls clone3 "$name"
	done
}

@test "even without the filter no second user namespace is made" {
	local settings=(--syscall 'allow unshare' --syscall 'allow clone')

	apart "$CARREL" run "${settings[@]}" -- attack_calls unshare user
	[[ $status == 0 && $(verdict) =~ ^refused:(ENOSPC|EPERM|EUSERS)$ ]] || fail 'made'
	apart "$CARREL" run "${settings[@]}" -- attack_calls clone user
	[[ $status == 0 && $(verdict) =~ ^refused:(ENOSPC|EPERM|EUSERS)$ ]] || fail 'made'
	broke "$CARREL" run --nested -- "$T/bin/attack_calls" unshare user
}

@test "nothing is remounted writable" {
	broke as_admin sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" &&
		exec attack_calls remount "$1"' sh "$HOME"
	held_by refused:EPERM attack_calls remount /
	held_by refused:EPERM attack_calls remount "$WS"
	held_by refused:EPERM attack_calls remount /dev
	held_by refused:EPERM attack_calls mount-setattr /
	held_by refused:EPERM attack_calls mount-setattr "$CARREL_SOURCE"
}

@test "nothing is mounted" {
	mkdir "$WS/a" "$WS/b"
	broke as_admin "$T/bin/attack_calls" mount "$WS/a"
	held_by refused:EPERM attack_calls mount "$WS/a"
	broke as_admin "$T/bin/attack_calls" bind "$WS/a" "$WS/b"
	held_by refused:EPERM attack_calls bind "$WS/a" "$WS/b"
	broke as_admin "$T/bin/attack_calls" fsopen tmpfs
	held_by refused:EPERM attack_calls fsopen tmpfs
	broke as_admin "$T/bin/attack_calls" open-tree "$WS"
	held_by refused:EPERM attack_calls open-tree "$WS"
	broke as_admin "$T/bin/attack_calls" move-mount "$WS/a" "$WS/b"
	held_by refused:EPERM attack_calls move-mount "$WS/a" "$WS/b"
	held_by refused:EPERM attack_calls fspick /
}

@test "nothing is unmounted" {
	secret "$HOME/.netrc"
	broke as_admin sh -c 'mount --bind "$1" "$1" && exec attack_calls umount "$1"' sh "$HOME"
	for place in "$HOME/.netrc" "$WS" /proc /dev /tmp /run; do
		held_by refused:EPERM attack_calls umount "$place"
	done
}

@test "the root is not changed" {
	broke as_admin "$T/bin/attack_calls" chroot "$WS"
	held_by refused:EPERM attack_calls chroot "$WS"
	broke as_admin "$T/bin/attack_calls" pivot-root "$WS"
	held_by refused:EPERM attack_calls pivot-root "$WS"
}

@test "without the filter the lack of capabilities refuses the same" {
	SETTINGS=()
	for call in mount umount2 chroot mount_setattr open_tree; do
		SETTINGS+=(--syscall "allow $call")
	done
	held_by refused:EPERM attack_calls remount /
	held_by refused:EPERM attack_calls umount /proc
	held_by refused:EPERM attack_calls chroot /
	held_by refused:EPERM attack_calls mount-setattr /
	held_by refused:EPERM attack_calls open-tree /
}

@test "a mount point is not renamed, removed or exchanged" {
	secret "$HOME/.netrc"
	mkdir "$WS/x"
	for place in /tmp /dev/shm "$WS" "$HOME/.netrc"; do
		held attack_files rename "$place" "$WS/x/moved"
		held attack_files exchange "$place" "$WS/x"
		held attack_files rmdir "$place"
	done
	broke attack_files rename "$WS/x" "$WS/y"
}

@test "there is nothing above the root" {
	session sh -c 'cd /; cd ..; cd ../..; stat -c %i . /; ls /..'
	((${#lines[@]} > 3))
	[[ ${lines[0]} == "${lines[1]}" ]] || fail 'the root has a parent'
	session sh -c 'cd -P /proc/self/root/..; pwd -P'
	assert_output /
}

@test "in a nested namespace no mount of the session is undone" {
	# Of a session of root's the uid 0 cannot be mapped on: nobody in it has CAP_SETFCAP.
	! is_root || return 0
	secret "$HOME/.netrc"
	git init -q "$WS"
	SETTINGS=(--nested)
	held_by absent unshare --user --map-root-user --mount "$T/bin/attack_files" read "$HOME/.netrc"
	for way in 'umount "$HOME/.netrc"' 'umount -l "$HOME"' 'mount --bind "$HOME" /mnt' \
		'mount -o remount,bind,rw /' 'umount -l "$WS/.git/config"'; do
		session unshare --user --map-root-user --mount sh -c "$way"
		((status != 0)) || fail "$way"
	done
	session unshare --user --map-root-user --mount sh -c \
		'mount --rbind "$HOME" /mnt && cat /mnt/.netrc; umount -l /mnt/.netrc; cat /mnt/.netrc'
	refute_matches "$output" 'the secret'
	session unshare --user --map-root-user --mount sh -c 'echo "[x]" >>.git/config'
	((status != 0)) || fail 'a protected file was written'
	run unshare --user --map-root-user --mount sh -c \
		'mount --bind /dev/null "$HOME/.netrc" && umount "$HOME/.netrc" && cat "$HOME/.netrc"'
	assert_output 'the secret'
}

@test "the host's shared memory, queues and names are not there" {
	local key=$(($$ + 70000)) name # no other test that runs has this pid

	broke attack_tasks plant-shm "$key" "$T/bin/attack_tasks" find-shm "$key"
	run --separate-stderr attack_tasks plant-shm "$key" "$CARREL" run -- attack_tasks find-shm "$key"
	assert_output absent
	broke attack_tasks plant-queue "/carrel-$key" "$T/bin/attack_tasks" find-queue "/carrel-$key"
	run --separate-stderr attack_tasks plant-queue "/carrel-$key" "$CARREL" run -- \
		attack_tasks find-queue "/carrel-$key"
	assert_output absent
	name=/dev/shm/carrel-escape-$key
	secret "$name"
	broke attack_files read "$name"
	held_by absent attack_files read "$name"
	rm -f "$name"
	session sh -c 'echo evil >"$1"' sh "$name"
	[[ ! -e $name ]] || fail 'the host has it'
}

@test "the host's name and clock stay what they are" {
	held_by refused:EPERM attack_calls call sethostname
	held_by refused:EPERM attack_calls call setdomainname
	held_by refused:EPERM attack_calls call settimeofday
	held_by refused:EPERM attack_calls call clock_settime
	broke as_admin "$T/bin/attack_calls" call sethostname
	session sh -c 'echo evil >/proc/sys/kernel/hostname'
	((status != 0))
}
