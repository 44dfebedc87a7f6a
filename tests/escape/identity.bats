#!/usr/bin/env bats
# What a process may do by its identity: capabilities, set-uid programs, keys.
load ../lib/common
load escape

@test "no capability in any of the five sets" {
	broke attack_tasks capability
	held_by absent attack_tasks capability
	session grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status
	((${#lines[@]} == 5))
	for line in "${lines[@]}"; do
		assert_matches "$line" '^Cap...:.0000000000000000$'
	done
}

@test "no_new_privs is set, and cannot be cleared" {
	broke attack_tasks new-privs
	held_by held attack_tasks new-privs
	session python3 -c '
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(38, 0, 0, 0, 0)
print(libc.prctl(39, 0, 0, 0, 0))'
	assert_output 1
}

@test "the securebits are locked" {
	broke attack_tasks securebits
	held_by held attack_tasks securebits
	broke as_admin "$T/bin/attack_tasks" clear-securebits
	held_by refused:EPERM attack_tasks clear-securebits
}

@test "nobody else is become" {
	broke as_admin "$T/bin/attack_tasks" become 0
	is_root && broke attack_tasks become 65534
	held attack_tasks become 65534
	held attack_tasks become 1234
	held attack_tasks join-group 4
	is_root || held attack_tasks become 0
}

@test "a set-uid program has no effect" {
	need_root
	cp "$T/bin/attack_tasks" "$T/suid"
	chown nobody "$T/suid"
	chmod 4755 "$T/suid"
	broke "$T/suid" is-effectively "$(id -u nobody)"
	held_by held "$T/suid" is-effectively "$(id -u nobody)"
	cp -p "$T/suid" "$WS/suid"
	chown nobody "$WS/suid"
	chmod 4755 "$WS/suid"
	held_by held "$WS/suid" is-effectively "$(id -u nobody)"
}

@test "a set-uid program of the machine runs as anybody's" {
	local program

	! is_root || return 0
	for program in /usr/bin/su /bin/su /usr/bin/passwd /usr/bin/mount; do
		[[ -u $program ]] && break
	done
	[[ -u $program ]] || skip "only root can make a set-uid program"
	# The loader says what it was told by the kernel, except to a program with other rights.
	run env LD_SHOW_AUXV=1 "$program" --version
	refute_matches "$output" AT_SECURE
	session env LD_SHOW_AUXV=1 "$program" --version
	assert_matches "$output" 'AT_SECURE: +0'
}

@test "a file's capabilities have no effect" {
	need_root
	need setcap
	cp "$T/bin/attack_tasks" "$T/capable"
	setcap cap_net_raw+ep "$T/capable"
	broke setpriv --reuid=nobody --clear-groups "$T/capable" has-raw-right
	held "$T/capable" has-raw-right
}

@test "sudo and su refuse" {
	for program in sudo su; do
		command -v "$program" >/dev/null || continue
		session sh -c "$program -n true </dev/null || $program -c true </dev/null"
		((status != 0)) || is_root || fail "$program works"
	done
	held_by absent attack_tasks capability
}

@test "root inside is nobody outside" {
	need_root
	session sh -c 'id -u; cat /proc/self/uid_map'
	assert_matches "$output" $'^0\n *0 +[1-9][0-9]{4,} +1$'
}

@test "keys in the session keyring stay outside" {
	broke attack_tasks plant-key session carrel-escape "$T/bin/attack_tasks" read-key session carrel-escape
	run --separate-stderr attack_tasks plant-key session carrel-escape \
		"$CARREL" run -- attack_tasks read-key session carrel-escape
	[[ $(verdict) == refused:EPERM ]] || fail 'read'
	run --separate-stderr attack_tasks plant-key session carrel-escape "$CARREL" run \
		--syscall 'allow keyctl' -- attack_tasks read-key session carrel-escape
	[[ $(verdict) =~ ^refused:(ENOKEY|EACCES)$ ]] || fail 'read, where the filter lets it'
}

@test "keys in the user keyring are not read" {
	broke attack_tasks plant-key user carrel-escape "$T/bin/attack_tasks" read-key user carrel-escape
	run --separate-stderr attack_tasks plant-key user carrel-escape \
		"$CARREL" run -- attack_tasks read-key user carrel-escape
	[[ $(verdict) == refused:EPERM ]] || fail 'read'
}

@test "no key is added or asked for" {
	broke attack_tasks add-key
	held_by refused:EPERM attack_tasks add-key
	held_by refused:EPERM attack_tasks request-key
}
