#!/usr/bin/env bats
# tests/lib/vm, as ./dev vm calls it: what it reports of a machine's end. A script stands for qemu here.
# ctest: as=any cost=35
load ../lib/common

setup() {
	common_setup
	need busybox cpio mke2fs
	case $(uname -m) in
	x86_64) kernel=linux-image-amd64 ;;
	aarch64) kernel=linux-image-arm64 ;;
	*) skip "no machine in qemu for $(uname -m)" ;;
	esac
	[[ -r /etc/debian_version ]] || skip 'no Debian'
	B=$T/build
	mkdir -p "$T/bin" "$B/tests" "$B/vm/$kernel"
	# What is in the guest's disk and memory no script asks for: without a source, and without the programs of a base.
	mkdir -p "$T/source/tests"
	cp -r "$CARREL_SOURCE/tests/lib" "$CARREL_SOURCE/tests/lint" "$T/source/tests/"
	printf '#!/bin/sh\n' >"$T/source/tests/lib/vm-base"
	VM=$T/source/tests/lib/vm
	touch "$B/vm/$kernel/initramfs" "$B/vm/$kernel/vmlinuz"
	printf '#!/bin/sh\n' >"$T/bin/cmake"
	qemu "printf 'status 0\n' >\"\$status\""
	PATH=$T/bin:$PATH
	export CARREL_VM_KVM=/dev/null
	unset CI
}

# qemu LINE...: a machine that knows the paths of its ports as $out, $err, $status and $console.
qemu() {
	{
		printf '#!/bin/bash\nfor word; do\n'
		printf '%s\n' 'case $word in file,id=*) IFS=,= read -r _ _ name _ path <<<"$word"' \
			'declare "$name=$path" ;;' 'esac' 'done'
		printf '%s\n' "$@"
	} >"$T/bin/qemu-system-$(uname -m)"
	chmod +x "$T/bin"/*
}

vm() {
	run --separate-stderr "$VM" run "$B" "$T/source" "$@"
}

assert_no_run_left() {
	[[ -z $(find "$B/vm" -name 'run.*') ]] || fail "left: $(ls "$B/vm")"
}

@test "the command's output is on stdout and stderr, and its status ours" {
	qemu 'echo noise; echo noise >&2; echo kernel >"$console"' 'echo to-out >"$out"' \
		'echo to-err >"$err"' 'echo "status 7" >"$status"'
	vm -- false
	assert_status 7
	assert_output to-out
	[[ $stderr == to-err ]]
	assert_no_run_left
}

@test "a machine that does not say how it ended has failed, and its console is shown" {
	for said in '' 'status' 'status x' $'status 0\nstatus 0' 'tatus 0' 'status 0 '; do
		qemu 'echo panic >"$console"' "printf %s ${said@Q} >\"\$status\""
		vm -- true
		assert_status 125
		assert_output ''
		assert_matches "$stderr" 'did not say how it ended'
		assert_matches "$stderr" 'panic'
	done
	qemu 'exit 1' # it never opened its ports
	vm -- true
	assert_status 125
	assert_no_run_left
}

# on_kvm LINE...: a machine that says what it runs on, and where that is KVM does this instead.
on_kvm() {
	: >"$T/kvm"
	export CARREL_VM_KVM=$T/kvm
	qemu "if [[ \"\$*\" == *'-accel kvm'* && \"\$*\" != *name=status* ]]; then" "$@" 'exit; fi' \
		'[[ "$*" =~ -accel\ ([a-z]+) ]]; echo "${BASH_REMATCH[1]}" >"$out"' \
		"printf 'status 0\n' >\"\$status\""
}

@test "KVM is used where a trial shows that it works, and the trial is made once" {
	on_kvm 'echo it works >"$console"' "echo >>${T@Q}/trials"
	for time in first second; do
		vm -- true
		assert_status 0
		assert_output kvm
	done
	[[ $(wc -l <"$T/trials") == 1 ]] || fail "$time: tried again"
	assert_no_run_left
}

@test "where KVM fails, says nothing or hangs the machine is emulated" {
	for trial in 'echo it works >"$console"; exit 1' ':' "echo >>${T@Q}/hung; sleep 600"; do
		rm -f "$B/vm/kvm"
		on_kvm "$trial"
		vm -- true
		assert_status 0
		assert_output tcg
	done
	[[ -s $T/hung ]] || fail 'it was not tried'
	CARREL_VM_KVM=$T/none vm -- true
	assert_output tcg
	assert_no_run_left
}

@test "after its time a machine is killed" {
	qemu 'exec sleep 600'
	vm -t 0.5s -- true
	assert_status 124
	assert_no_run_left
}

@test "what ends the caller ends the machine" {
	qemu "echo \$\$ >${T@Q}/pid" 'exec sleep 600'
	"$VM" run "$B" "$T/source" -- true >/dev/null 2>&1 3>&- &
	caller=$!
	wait_for test -s "$T/pid"
	kill -TERM "$caller"
	status=0
	wait "$caller" || status=$?
	assert_status 143
	# A timeout(1) that has just forked knows of no child, and ends alone; the kernel tells the machine.
	wait_for eval '[[ ! -e /proc/$(<"$T/pid") ]]'
	assert_no_run_left
}

@test "even a caller that is killed takes the machine along, and the next one its directory" {
	qemu "echo \$\$ >${T@Q}/pid" 'exec sleep 600'
	"$VM" run "$B" "$T/source" -- true >/dev/null 2>&1 3>&- &
	caller=$!
	wait_for test -s "$T/pid"
	kill -KILL "$caller"
	wait "$caller" || true
	wait_for eval '[[ ! -e /proc/$(<"$T/pid") ]]'
	wait_for flock --nonblock "$B"/vm/run.?????? true # it is held by whoever is still ending
	qemu "printf 'status 0\n' >\"\$status\""
	vm -- true
	assert_status 0
	assert_no_run_left
}

@test "what is missing is named, and is a skip" {
	rm "$B/vm/$kernel/initramfs"
	vm -- true
	assert_status 77
	assert_output "not run: no kernel to boot: $kernel was not fetched"
	CI=true vm -- true
	assert_status 77
	PATH=$T/bin:/bin CARREL_VM_KERNEL=other vm -- true
	assert_status 77
	assert_no_run_left
}
