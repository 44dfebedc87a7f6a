#!/usr/bin/env bats
# System calls that take rights over the machine, or reach past the namespaces.
load ../lib/common
load escape

# reaches CALL: outside, as the administrator of a namespace, the kernel itself answers. Where it
# does not, as in a container with a filter of its own or by sysctl, there is nothing to compare.
reaches() {
	run --separate-stderr as_admin "$T/bin/attack_calls" call "$1"
	[[ $(verdict) == escaped ]] && return 0
	run --separate-stderr attack_calls call "$1"
	[[ $(verdict) == escaped ]]
}

# refused CALL...: EPERM by the filter; at least one of them answers outside.
refused() {
	local call reached=0

	for call; do
		! reaches "$call" || reached=1
		held_by refused:EPERM attack_calls call "$call"
	done
	((reached)) || fail "control: none of them gets through outside: $*"
}

@test "no io_uring" {
	refused io_uring_setup io_uring_enter io_uring_register
}

@test "no bpf, no perf events, no userfaultfd" {
	refused bpf perf_event_open userfaultfd
}

@test "no keys" {
	refused keyctl
}

@test "no modules, no other kernel" {
	held_by refused:EPERM attack_calls call init_module
	held_by refused:EPERM attack_calls call finit_module
	held_by refused:EPERM attack_calls call delete_module
	held_by refused:EPERM attack_calls call kexec_load
	is_root || return 0
	# A kernel without modules says ENOSYS.
	run attack_calls call finit_module
	[[ $output != refused:EPERM ]] || fail 'control: nobody may'
}

@test "no swap, accounting, quota, reboot, kernel log" {
	for call in swapon acct quotactl reboot syslog; do
		held_by refused:EPERM attack_calls call "$call"
	done
	is_root || return 0
	broke attack_calls call swapon
	broke attack_calls call syslog
}

@test "no look into other processes' pages or descriptors" {
	refused move_pages migrate_pages pidfd_getfd setns
}

@test "no handles, no fanotify" {
	held_by refused:EPERM attack_calls call fanotify_init
	held_by refused:EPERM attack_calls call open_by_handle_at
	is_root || return 0
	broke attack_calls call open_by_handle_at
}

@test "no clock is set" {
	refused settimeofday clock_settime adjtimex
}

@test "no ports, no descriptor table of one's own" {
	[[ $(uname -m) == x86_64 ]] || skip "no iopl on $(uname -m)"
	refused iopl ioperm modify_ldt
}

@test "the x32 ABI dies" {
	[[ $(uname -m) == x86_64 ]] || skip "no x32 on $(uname -m)"
	broke attack_calls x32
	held_by killed:SIGSYS attack_calls x32
}

@test "the 32-bit ABI dies, from a 64-bit program" {
	[[ $(uname -m) == x86_64 ]] || skip "no int80 on $(uname -m)"
	run --separate-stderr attack_calls int80
	[[ $(verdict) == escaped ]] || skip 'no 32-bit ABI in this kernel'
	held_by killed:SIGSYS attack_calls int80
}

@test "no personality that makes memory executable or shows another kernel" {
	for persona in 0x0400000 0x0020000 0x0008 0x0100000; do
		broke attack_calls personality "$persona"
		held_by refused:EPERM attack_calls personality "$persona"
	done
	broke "$CARREL" run -- "$T/bin/attack_calls" personality 0x0040000
}

@test "no ioctl that types into, redirects or reprograms a terminal" {
	# TIOCSTI TIOCLINUX TIOCCONS TIOCSETD TIOCVHANGUP: /dev/null answers ENOTTY.
	for request in 0x5412 0x541c 0x541d 0x5423 0x5437; do
		broke attack_calls ioctl 0 "$request"
		held_by refused:EPERM attack_calls ioctl 0 "$request"
	done
	broke "$CARREL" run -- "$T/bin/attack_calls" ioctl 0 0x5401
}

@test "nor with bits set above those that the kernel looks at" {
	for request in 0x100005412 0xffffffff00005412 0x8000000000005412 0x10000541c; do
		broke attack_calls ioctl 0 "$request"
		held_by refused:EPERM attack_calls ioctl 0 "$request"
	done
}

@test "no lease, no notification by signal on files of others" {
	session python3 -c '
import fcntl, os
f = os.open("/etc/hostname", os.O_RDONLY)
for name, command, value in ("lease", 1024, 1), ("notify", 1026, 4):
    try:
        fcntl.fcntl(f if name == "lease" else os.open("/etc", os.O_RDONLY), command, value)
        print("escaped")
    except PermissionError:
        print("refused:EPERM")'
	assert_output $'refused:EPERM\nrefused:EPERM'
	run python3 -c '
import fcntl, os
fcntl.fcntl(os.open("/etc", os.O_RDONLY), 1026, 4)
print("escaped")'
	assert_output escaped
}

@test "a filter of one's own does not lift the session's" {
	session python3 -c '
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000))
program = Program(1, ctypes.addressof(code))
print(libc.prctl(22, 2, ctypes.byref(program), 0, 0))
import os
os.execvp("attack_calls", ["attack_calls", "call", "io_uring_setup"])'
	[[ $(verdict) == refused:EPERM ]] || fail 'lifted'
}

@test "a call refused by number is not made by a debugger changing the number" {
	session python3 -c '
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long] * 4
if os.uname().machine != "x86_64":
    print("held"); sys.exit()
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    r = libc.syscall(39)                        # getpid
    os._exit(0 if r == -1 and ctypes.get_errno() == 1 else 9 if r > 0 else 1)
os.waitpid(pid, 0)
libc.ptrace(24, pid, 0, 0)                      # PTRACE_SYSCALL, until it calls getpid
regs = (ctypes.c_ulonglong * 27)()
while True:
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        print({0: "refused:EPERM", 9: "untouched"}.get(os.WEXITSTATUS(status), "escaped"))
        break
    libc.ptrace(12, pid, 0, ctypes.addressof(regs))
    if regs[15] == 39:                          # orig_rax; 155 is pivot_root
        regs[15] = 155
        libc.ptrace(13, pid, 0, ctypes.addressof(regs))
    libc.ptrace(24, pid, 0, 0)'
	[[ $(verdict) =~ ^(refused:EPERM|held)$ ]] || fail 'the filter was passed'
}
