#!/usr/bin/env bats
# Descriptors beside 0, 1 and 2: what --pass-fd gives a command, and at which numbers.
load ../lib/common
load ../lib/session
load ../lib/live

@test "descriptors have their numbers inside, also where these change places, and nothing else is there" {
	carrel run --pass-fd 3:4 --pass-fd 4:3 --pass-fd 5:900 --report "$T/report.json" -- sh -c \
		'cat <&3; cat <&4; cat /proc/self/fd/900; ls /proc/self/fd | tr "\n" " "' \
		3< <(echo three) 4< <(echo four) 5< <(echo five) 6</dev/null
	assert_status 0
	# The last descriptor is the one that ls has opened.
	assert_output $'four\nthree\nfive\n0 1 2 3 4 5 900 '
	keep_report "$T/report.json"
	[[ $(jq -c .pass_fds "$T/report.json") == '[{"from":4,"to":3,"kind":"pipe"},{"from":3,"to":4,"kind":"pipe"},{"from":5,"to":900,"kind":"pipe"}]' ]]
	# What a shell makes of <(...), by name: as root too, where the command is another user.
	carrel run --pass-fd 63 -- cat /dev/fd/63 63< <(echo by name)
	assert_output 'by name'
	# Of two with one number inside the later, as an alias and its user write them; one may have two numbers.
	carrel run --pass-fd 3:7 --pass-fd 4:7 --pass-fd 4:8 -- sh -c 'cat <&8; cat <&7' 3</dev/null 4< <(echo later)
	assert_output later
	carrel plan --pass-fd 5:9 -- true
	assert_matches "$output" "descriptor +the caller's 5, inside 9 +\\[command line: --pass-fd\\]"
	carrel policy show --pass-fd 5
	assert_matches "$output" $'\npass-fd 5:5 '
}

@test "who waits for the end of a pipe does not wait for carrel" {
	mkfifo "$WS/go"
	# The command closes its end and goes on: the reader is to see that, while carrel waits for the command.
	run --separate-stderr bash -c '{ exec "$CARREL" run --pass-fd 5 -- sh -c "echo text >&5; exec 5>&-; read x <go" 5>&1 >/dev/null; } |
		{ cat; echo end of file; echo go >go; }'
	assert_output $'text\nend of file'
}

@test "a jobserver: make in a session takes its jobs from the make outside" {
	need make
	# make takes the first numbers that are free, and says in MAKEFLAGS which: bats has 3 and 4.
	printf 'outer:\n\t+"$(CARREL)" run $(PASS) -- $(MAKE) -f inner all\n' >"$WS/Makefile"
	# Each job waits until both run: with one job alone that would never be.
	printf 'all: a b\n%s:\n\ttouch %s.here; until test -e %s.here; do sleep 0.01; done\n' a a b >"$WS/inner"
	printf '%s:\n\ttouch %s.here; until test -e %s.here; do sleep 0.01; done\n' b b a >>"$WS/inner"
	run --separate-stderr bash -c 'exec 3>&- 4>&-; exec timeout 60 make -s -j2 PASS="--pass-fd 3 --pass-fd 4"'
	assert_status 0
	refute_matches "$output$stderr" 'jobserver unavailable'
	rm "$WS"/?.here
	# Without it make says so: it would use one job (here none waits for another).
	sed -i 's/; until.*//' "$WS/inner"
	run --separate-stderr timeout 60 make -s -j2 PASS=
	assert_status 0
	assert_matches "$output$stderr" 'jobserver unavailable'
	# A pipe with a name, as later versions of make have it.
	mkfifo "$T/tokens"
	exec 7<>"$T/tokens"
	printf + >&7
	carrel run --pass-fd 7:3 -- sh -c 'head -c 1 <&3; echo; printf + >&3'
	assert_output +
	[[ $(head -c 1 <&7) == + ]] || fail 'the token is not back'
	exec 7<&-
}

@test "exec: for one command of a session, and not for the next" {
	begin
	inside --pass-fd 5:9 --pass-fd 6:3 --report "$T/report.json" -- sh -c 'cat <&9; cat <&3' 5< <(echo nine) 6< <(echo three)
	assert_status 0
	assert_output $'nine\nthree'
	keep_report "$T/report.json"
	[[ $(jq -c .pass_fds "$T/report.json") == '[{"from":6,"to":3,"kind":"pipe"},{"from":5,"to":9,"kind":"pipe"}]' ]]
	inside -- ls /proc/self/fd
	assert_output $'0\n1\n2\n3'
	# A request that is too long for its record.
	inside --pass-fd 5:9 -- sh -c 'cat <&9; echo ${#1}' sh "$(printf '%0100000d' 0)" 5< <(echo long)
	assert_output $'long\n100000'
	inside --pass-fd 5 --detach --name service -- sh -c 'cat <&5' 5< <(echo served)
	assert_status 0
	has_served() { [[ $("$CARREL" session logs service) == served ]]; }
	wait_for has_served
	end_session
}

@test "a connected socket, a device and a sealed memfd are passed" {
	run --separate-stderr python3 - "$CARREL" <<-'PYTHON'
		import fcntl, os, socket, subprocess, sys
		ours, theirs = socket.socketpair()
		ours.settimeout(30)
		memfd = os.memfd_create("words", os.MFD_ALLOW_SEALING)
		os.write(memfd, b"sealed\n")
		os.lseek(memfd, 0, os.SEEK_SET)
		fcntl.fcntl(memfd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
		zero = os.open("/dev/zero", os.O_RDONLY)
		fds = [theirs.fileno(), memfd, zero]
		r = subprocess.run([sys.argv[1], "run", f"--pass-fd={fds[0]}:7", f"--pass-fd={fds[1]}:8", f"--pass-fd={fds[2]}:9",
		                    "--", "sh", "-c", "cat <&8; head -c 3 <&9 | tr '\\0' 0; echo; echo said >&7"], pass_fds=fds)
		print("status", r.returncode, ours.recv(100))
	PYTHON
	assert_output $'sealed\n000\nstatus 0 '"b'said\\n'"
}
