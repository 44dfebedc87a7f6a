#!/usr/bin/env bats
# A tool writes where it may only read, and reads what is hidden.
load ../lib/common
load escape

setup() {
	escape_setup
	mkdir "$T/other"
	chmod 0777 "$T/other"
	echo text >"$T/other/file"
	chmod 0666 "$T/other/file"
}

@test "a file in another directory of the same user is not written" {
	broke attack_files write "$T/other/file"
	held_by refused:EROFS attack_files write "$T/other/file"
}

@test "it is not truncated, by name or by descriptor" {
	held_by refused:EROFS attack_files truncate "$T/other/file"
	held_by refused:EROFS attack_files ftruncate "$T/other/file"
	[[ $(<"$T/other/file") == text ]]
	broke attack_files ftruncate "$T/other/file"
	broke attack_files truncate "$T/other/file"
}

@test "nothing is made there" {
	broke attack_files create "$T/other/new"
	held_by refused:EROFS attack_files create "$T/other/new"
	broke attack_files mkdir "$T/other/new"
	held_by refused:EROFS attack_files mkdir "$T/other/new"
	broke attack_files link "$T/other/file" "$T/other/control"
	held_by refused:EROFS attack_files link "$T/other/file" "$T/other/new"
}

@test "nothing is removed or renamed there" {
	held_by refused:EROFS attack_files unlink "$T/other/file"
	held_by refused:EROFS attack_files rename "$T/other/file" "$T/other/moved"
	held_by 'refused:(EROFS|EXDEV)' attack_files rename "$T/other/file" "$WS/moved"
	touch "$WS/evil"
	held_by 'refused:(EROFS|EXDEV)' attack_files rename "$WS/evil" "$T/other/file"
	[[ $(<"$T/other/file") == text ]]
	broke attack_files rename "$T/other/file" "$T/other/moved"
	broke attack_files unlink "$T/other/moved"
}

@test "no metadata is changed there" {
	for attempt in chmod touch setxattr; do
		broke attack_files "$attempt" "$T/other/file"
		held_by 'refused:(EROFS|EPERM|EACCES)' attack_files "$attempt" "$T/other/file"
	done
}

@test "the home directory and the workspace's parent are not written" {
	for directory in "$HOME" "$T" "$WS/.." "$BASE"; do
		broke attack_files create "$directory/new"
		held_by refused:EROFS attack_files create "$directory/new"
	done
	[[ $(ls -A "$HOME") == .local ]] # where carrel's own state is
}

@test "the system's directories are not written, as root" {
	need_root
	for directory in / /etc /usr /usr/bin /var /root /home /opt; do
		broke attack_files create "$directory/carrel-escape.$$"
		held attack_files create "$directory/carrel-escape.$$"
	done
}

@test "not through a symbolic link in the workspace" {
	ln -s "$T/other" "$WS/link"
	ln -s "$T/other/file" "$WS/link-to-file"
	broke attack_files write "$WS/link/file"
	broke attack_files write "$WS/link-to-file"
	held_by refused:EROFS attack_files write "$WS/link/file"
	held_by refused:EROFS attack_files write "$WS/link-to-file"
	session sh -c 'ln -s "$1" made && exec attack_files write made' sh "$T/other/file"
	[[ $(verdict) == refused:EROFS ]] || fail 'through a link made inside'
}

@test "not through a hard link made inside" {
	held_by refused:EXDEV attack_files link-write "$T/other/file" "$WS/hard"
	broke attack_files link-write "$T/other/file" "$WS/hard"
}

@test "not by way of /proc" {
	for way in /proc/self/root "/proc/self/cwd/../../../../../../../../.." /proc/thread-self/root; do
		broke attack_files write "$way$T/other/file"
		held_by refused:EROFS attack_files write "$way$T/other/file"
	done
	held_by 'refused:(EACCES|EPERM)' attack_files write "/proc/1/root$T/other/file"
	held_by 'refused:(EACCES|EPERM)' attack_files list /proc/1/root/
	held_by 'refused:(EACCES|EPERM)' attack_files list /proc/1/cwd/
	held_by 'refused:(EACCES|EPERM)' attack_files list /proc/1/fd/
	broke attack_files list /proc/self/fd/
}

@test "not through a descriptor that was opened for its path only" {
	broke attack_files write-o-path "$T/other/file"
	held_by refused:EROFS attack_files write-o-path "$T/other/file"
	broke attack_files write-at "$T/other" file
	held_by refused:EROFS attack_files write-at "$T/other" file
}

@test "a policy that makes just that directory writable is the difference" {
	SETTINGS=(--write "$T/other")
	broke "$CARREL" run "${SETTINGS[@]}" -- "$T/bin/attack_files" write "$T/other/file"
	held_by refused:EROFS attack_files create "$T/new"
	SETTINGS=(--workspace-mode ro)
	held_by refused:EROFS attack_files create "$WS/new"
	broke "$CARREL" run -- "$T/bin/attack_files" create "$WS/new"
}

# --- what is hidden ---------------------------------------------------------------------------

# hidden_in_home: the paths below ~ that the shipped list hides.
hidden_in_home() {
	sed -nE 's|^hide ~/([^*?[]+)$|\1|p' "$CARREL_SOURCE/policy/hide"
}

@test "each hidden place in the home directory is empty inside, as file and as directory" {
	local -a places
	local place kind

	mapfile -t places < <(hidden_in_home)
	((${#places[@]} > 60)) || fail "only ${#places[@]} places in the list"
	for kind in file directory; do
		rm -rf "$HOME"
		mkdir "$HOME"
		for place in "${places[@]}"; do
			# One that lies in another gets there with it.
			[[ ! -e $HOME/$place ]] || continue
			if [[ $kind == file ]]; then
				secret "$HOME/$place"
			else
				secret "$HOME/$place/inner"
			fi
		done
		run grep -rl 'the secret' "$HOME"
		((${#lines[@]} > 60)) || fail "control: only ${#lines[@]} can be read outside"
		session sh -c 'grep -rl "the secret" "$HOME"; echo end'
		assert_output end
	done
}

@test "nor can a hidden file be read by other ways to it" {
	secret "$HOME/.netrc"
	secret "$HOME/.ssh/id_ed25519"
	ln -s "$HOME/.ssh/id_ed25519" "$WS/link"
	ln -s "$HOME/.ssh" "$WS/directory"
	local -a ways=("$WS/link" "$WS/directory/id_ed25519" "/proc/self/root$HOME/.ssh/id_ed25519"
		"/proc/self/cwd/../home/.ssh/id_ed25519" "$HOME/../home/.netrc")
	for way in "${ways[@]}"; do
		broke attack_files read "$way"
		held_by absent attack_files read "$way"
	done
	held attack_files link "$HOME/.netrc" "$WS/hard"
	broke attack_files link "$HOME/.netrc" "$WS/hard"
}

@test "nor where a bind shows its directory at another place" {
	secret "$HOME/.netrc"
	secret "$HOME/.ssh/id"
	mkdir "$T/mnt"
	SETTINGS=(--bind "$HOME:$T/mnt:ro")
	session cat "$T/mnt/.netrc" "$T/mnt/.ssh/id"
	refute_matches "$output" 'the secret'
	secret "$HOME/open"
	session cat "$T/mnt/open"
	assert_output 'the secret'
}

@test "a hidden place that is a symbolic link is hidden at both ends" {
	secret "$T/vault/id"
	ln -s "$T/vault" "$HOME/.ssh"
	broke attack_files read "$HOME/.ssh/id"
	broke attack_files read "$T/vault/id"
	held_by absent attack_files read "$HOME/.ssh/id"
	held_by absent attack_files read "$T/vault/id"
}

@test "a hidden file in the workspace can be neither read, written, nor moved out of hiding" {
	mkdir -p "$WS/deep/er"
	secret "$WS/deep/er/.env"
	SETTINGS=(--hide "$WS/deep/er/.env")
	held_by absent attack_files read "$WS/deep/er/.env"
	held attack_files write "$WS/deep/er/.env"
	held_by refused:EBUSY attack_files unlink "$WS/deep/er/.env"
	held_by 'refused:(EBUSY|EXDEV)' attack_files rename "$WS/deep/er/.env" "$WS/x"
	held_by 'refused:(EBUSY|EXDEV)' attack_files rename "$WS/deep/er" "$WS/x"
	held_by refused:EBUSY attack_files rename "$WS/deep" "$WS/x"
	held attack_files link "$WS/deep/er/.env" "$WS/x"
	SETTINGS=()
	broke "$CARREL" run -- "$T/bin/attack_files" read "$WS/deep/er/.env"
}

@test "a policy that reads it in shows it: the control arm of hiding" {
	secret "$HOME/.ssh/id"
	held_by absent attack_files read "$HOME/.ssh/id"
	broke "$CARREL" run --read "$HOME/.ssh" -- "$T/bin/attack_files" read "$HOME/.ssh/id"
}

@test "the machine's own secrets are hidden, as root" {
	need_root
	for file in /etc/shadow /etc/gshadow; do
		broke attack_files read "$file"
		held_by absent attack_files read "$file"
	done
}

@test "root does not lend the command its right to read" {
	need_root
	secret "$T/other/roots"
	chmod 0600 "$T/other/roots"
	mkdir "$T/closed"
	secret "$T/closed/file"
	chown -R nobody "$T/closed"
	chmod 0700 "$T/closed"
	broke attack_files read "$T/other/roots"
	held_by refused:EACCES attack_files read "$T/other/roots"
	broke attack_files read "$T/closed/file"
	held attack_files read "$T/closed/file"
	broke "$CARREL" run --read "$T/other" -- "$T/bin/attack_files" read "$T/other/file"
	session setpriv --reuid=nobody --clear-groups cat "$T/closed/file"
	((status != 0)) && refute_matches "$output" 'the secret'
}

@test "no file is opened by its handle" {
	need_root
	broke attack_files by-handle "$T/other/file"
	held_by refused:EPERM attack_files by-handle "$T/other/file"
}

# --- what outlives the session ----------------------------------------------------------------

@test "no set-uid file is made in the workspace" {
	for call in chmod fchmod fchmodat fchmodat2 open creat mknod; do
		broke attack_files setuid-file "$call" "$WS/control-$call"
		held attack_files setuid-file "$call" "$WS/$call"
		[[ ! -u $WS/$call ]] || fail "$call made one"
	done
}

# --- devices ----------------------------------------------------------------------------------

@test "no device node is made" {
	for kind in b c; do
		held_by refused:EPERM attack_files mknod "$kind" "$WS/node"
	done
	is_root || return 0
	for kind in b c; do
		broke attack_files mknod "$kind" "$WS/node"
	done
}

@test "a device node that lies about cannot be opened" {
	need_root
	mknod -m 0666 "$T/other/node" c 1 3
	mknod -m 0666 "$WS/node" c 1 3
	broke attack_files open-device "$T/other/node"
	held_by refused:EACCES attack_files open-device "$T/other/node"
	held_by refused:EACCES attack_files open-device "$WS/node"
}

@test "the machine's devices are not in /dev" {
	session find /dev -type b -o -type c -not -name null -not -name zero -not -name full \
		-not -name random -not -name urandom -not -name tty -not -path '/dev/pts*'
	assert_status 0
	assert_output ''
	run find /dev -type b -o -type c -not -name null -not -name zero -not -name full \
		-not -name random -not -name urandom -not -name tty -not -path '/dev/pts*'
	((${#lines[@]})) || skip '/dev/mem cannot be opened: there are no devices here'
}

@test "the kernel's settings are not written, as root" {
	local file

	need_root
	for file in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sys/kernel/panic \
		/proc/sys/net/ipv4/ip_forward /proc/sys/fs/file-max /proc/sys/kernel/modprobe; do
		[[ -e $file ]] || continue
		broke attack_files rewrite "$file"
		held attack_files rewrite "$file"
	done
	for file in /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/power/state \
		/sys/module/printk/parameters/time; do
		[[ -e $file ]] || continue
		broke attack_files open-write "$file"
		held attack_files open-write "$file"
	done
}

@test "no control group is made or left, as root" {
	local file

	need_root
	[[ -w /sys/fs/cgroup/cgroup.procs || -d /sys/fs/cgroup/unified ]] ||
		skip 'no cgroup v2 delegated'
	broke attack_files mkdir "/sys/fs/cgroup/carrel-escape-$$"
	held attack_files mkdir "/sys/fs/cgroup/carrel-escape-$$"
	held attack_files open-write /sys/fs/cgroup/cgroup.procs
	while IFS= read -r file; do
		held attack_files open-write "$file"
	done < <(find /sys/fs/cgroup -maxdepth 2 -name release_agent)
}
