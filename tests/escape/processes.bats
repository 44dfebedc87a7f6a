#!/usr/bin/env bats
# A tool tries to reach init and the host's processes, and to outlive the session.
load ../lib/common
load escape

@test "nothing that a session does to init ends or stops it" {
	broke attack_tasks end child
	held_by held attack_tasks end 1
	session sh -c 'kill -STOP 1; kill -KILL 1; kill -TERM 1; kill -SEGV 1; exit 7'
	assert_status 7
}

@test "init is not traced, by either call" {
	for call in seize attach; do
		broke attack_tasks "$call" child
		broke "$CARREL" run -- "$T/bin/attack_tasks" "$call" child
		held_by refused:EPERM attack_tasks "$call" 1
	done
}

@test "init's memory is not read or written from another process" {
	for call in vm-read vm-write; do
		broke attack_tasks "$call" child
		held_by refused:EPERM attack_tasks "$call" 1
	done
	broke "$CARREL" run -- "$T/bin/attack_tasks" vm-read child
}

@test "no descriptor is taken out of init" {
	broke attack_tasks getfd child
	held_by refused:EPERM attack_tasks getfd 1
}

@test "init cannot be compared with oneself, or have its memory paged out" {
	broke attack_tasks kcmp child
	held attack_tasks kcmp 1
	held attack_tasks madvise 1
}

@test "init shows neither memory nor environment" {
	for entry in environ mem maps smaps pagemap auxv io syscall stack; do
		[[ $entry == @(syscall|stack) ]] || broke attack_tasks proc-read self "$entry"
		held attack_tasks proc-read 1 "$entry"
	done
}

@test "init shows neither descriptors nor where it is" {
	for entry in exe cwd root fd/0 fd/3 ns/user ns/mnt map_files; do
		[[ $entry == @(map_files|fd/3) ]] || broke attack_tasks proc-link self "$entry"
		held attack_tasks proc-link 1 "$entry"
	done
}

@test "the launcher's own arguments are not init's command line" {
	session sh -c 'tr -d "\0" </proc/1/cmdline; echo; cat /proc/1/comm'
	assert_output $'carrel-init\ncarrel-init'
	SETTINGS=(--env CANARY=in-the-arguments)
	session grep -lz in-the-arguments /proc/1/cmdline /proc/1/environ /proc/1/stat /proc/1/comm
	assert_output ''
	session grep -z CANARY /proc/self/environ
	assert_matches "$output" in-the-arguments
}

@test "secrets in the caller's environment do not get in" {
	export AWS_SECRET_ACCESS_KEY=canary-1 GITHUB_TOKEN=canary-2 SSH_AUTH_SOCK=/canary-3 \
		LD_PRELOAD='' LD_CANARY=canary-4 DOCKER_HOST=unix:///canary-5 BASH_ENV=/canary-6
	run env
	assert_matches "$output" canary-6
	session sh -c 'env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\0" "\n"; :'
	refute_matches "$output" canary
	SETTINGS=(--env GITHUB_TOKEN)
	session env
	assert_matches "$output" 'GITHUB_TOKEN=canary-2'
	refute_matches "$output" canary-1
}

@test "the host's processes are neither seen nor signalled" {
	in_background sleep 1000
	while ((BACKGROUND < 50)); do in_background sleep 1000; done
	broke attack_tasks signal "$BACKGROUND"
	held_by refused:ESRCH attack_tasks signal "$BACKGROUND"
	held attack_tasks proc-read "$BACKGROUND" cmdline
	session sh -c 'set -- /proc/[0-9]*; echo $#'
	assert_output 2
	end_background
}

@test "kill with pid -1 ends the session's processes and no other" {
	in_background sleep 1000
	session sh -c 'kill -KILL -1'
	kill -0 "$BACKGROUND" || fail 'a process of the host was killed'
	end_background
}

@test "a daemon does not outlive the session" {
	local script='(setsid sh -c "while :; do echo >>beat; sleep 0.02; done" >/dev/null 2>&1 &)
		while [ ! -s beat ]; do sleep 0.01; done'
	sh -c "$script"
	[[ $(left) == *process* ]] || fail 'control: it ends by itself'
	kill_left
	rm -f beat
	session sh -c "$script"
	assert_status 0
	assert_nothing_left
}

@test "nor does one that is made init's own child" {
	session python3 -c '
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
CLONE_PARENT = 0x8000
pid = libc.syscall(56 if os.uname().machine == "x86_64" else 220, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
if pid == 0:
    os.setsid()
    time.sleep(60)
    os._exit(0)
print("made" if pid > 0 else os.strerror(ctypes.get_errno()))'
	assert_status 0
	assert_output made
	assert_nothing_left
}

@test "a stopped or traced child does not hold the session" {
	session sh -c 'sleep 1000 & kill -STOP $!; exit 5'
	assert_status 5
	assert_nothing_left
}

@test "limits are not raised, neither one's own nor init's" {
	local files=7

	SETTINGS=(--open-files 64)
	held_by refused:EPERM attack_tasks raise-limit "$files"
	held_by refused:EPERM attack_tasks limit-of 1 "$files"
	held_by refused:EPERM attack_tasks raise-limit 4
	session sh -c 'ulimit -Hn; ulimit -Hc'
	assert_matches "$output" '^64'
	# Up to the hard limit everybody may: without the line in the policy there is room.
	SETTINGS=()
	session sh -c 'ulimit -Sn 32 && ulimit -Sn 64 && ulimit -n'
	assert_output 64
}

@test "init's place in the queue of the out-of-memory killer is not changed" {
	held 'attack_files' oom-score 1 1000
	held 'attack_files' oom-score 1 -1000
	broke attack_files oom-score self 1000
}

@test "another procfs of the host gives no way into its processes" {
	need_root
	in_background env HOST_SECRET=canary sleep 1000
	mkdir "$T/proc"
	broke unshare --mount sh -c 'mount -t proc proc "$1" &&
		exec attack_files read "$1/$2/environ"' sh "$T/proc" "$BACKGROUND"
	# Named by its user it is shown, and the kernel refuses; else nothing is there.
	for settings in --quiet --nested; do
		for shown in --read="$T/proc" --cwd="$WS"; do
			run --separate-stderr unshare --mount sh -c 'mount -t proc proc "$1" && exec \
				"$CARREL" run "$3" "$4" -- attack_files read "$1/$2/environ"' \
				sh "$T/proc" "$BACKGROUND" "$settings" "$shown"
			[[ $shown == --read=* ]] && assert_output refused:EACCES || assert_output absent
			run --separate-stderr unshare --mount sh -c 'mount -t proc proc "$1" && exec \
				"$CARREL" run "$3" "$4" -- attack_files write "$1/$2/root$1/../home/x"' \
				sh "$T/proc" "$BACKGROUND" "$settings" "$shown"
			assert_matches "$output" '^(refused:|absent)'
		done
	done
	end_background
}

@test "the set of namespaces is not left by way of init" {
	for name in user mnt pid net ipc uts cgroup; do
		held attack_calls setns "/proc/1/ns/$name"
	done
	held_by refused:EPERM attack_calls setns /proc/self/ns/user
	held_by refused:EPERM attack_calls setns-process 1
	broke as_admin "$T/bin/attack_calls" setns /proc/self/ns/uts
}
