#!/usr/bin/env bats
# Limits of a live session and of its executions, where cgroup v2 is delegated: each execution ends by its own limit,
# which its report names, and no other execution notices.
load ../lib/common
load ../lib/session

ROOT=/sys/fs/cgroup

setup() {
	local own

	common_setup
	R=$T/report.json
	export XDG_RUNTIME_DIR=$T/run
	mkdir -m 0700 "$XDG_RUNTIME_DIR"
	cp "$CARREL_HELPERS/bomb" "$WS/bomb"
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	PLACE=$ROOT${own%/*}
	[[ -w $PLACE/cgroup.subtree_control && $(<"$PLACE/cgroup.controllers") == *memory* ]] ||
		skip 'no cgroup v2 delegated'
	BEFORE=$(groups_of_sessions)
}

teardown() {
	local status=0 after

	[[ -z ${CARREL_SESSION-} ]] || end || status=1
	[[ -n ${BATS_TEST_COMPLETED-} ]] || end_left || status=1
	common_teardown || status=1
	after=$(groups_of_sessions)
	if [[ -n ${BATS_TEST_COMPLETED-} && ${BEFORE-} != "$after" ]]; then
		printf 'groups left behind: %s\n' "$after" >&2
		status=1
	fi
	return "$status"
}

groups_of_sessions() {
	find "$ROOT" -type d -name 'carrel-????????????????????' | sort
}

# begin SETTINGS...: a session, in CARREL_SESSION; its group, if it has one, is GROUP.
begin() {
	timeout "$PATIENCE" "$CARREL" session start "$@" </dev/null >"$T/session" 2>"$T/session.err" 3>&- ||
		fail "$(<"$T/session.err")"
	CARREL_SESSION=$(sed -n 's/^session //p' "$T/session")
	export CARREL_SESSION
	GROUP=$PLACE/carrel-$CARREL_SESSION
}

end() {
	timeout "$PATIENCE" "$CARREL" session end 3>&- || return
	unset CARREL_SESSION
	[[ ! -e $GROUP ]]
}

# execution STATUS OPTIONS... -- COMMAND...: one that must end like that; its report is in $R.
execution() {
	local want=$1

	status=0
	timeout "$PATIENCE" "$CARREL" exec --report "$R" "${@:2}" </dev/null >"$T/out" 2>"$T/err" 3>&- || status=$?
	output=$(<"$T/out")
	# shellcheck disable=SC2034 # for fail
	stderr=$(<"$T/err")
	((status == want)) || fail "not $want: $(jq -c . "$R")"
}

# limit_is WORD [FILTER]: that ended it, the rest of its report is as FILTER says, and its group is gone.
limit_is() {
	local number

	keep_report "$R"
	number=$(jq -er --arg word "$1" 'if .limit == (if $word == "" then null else $word end) and
		('"${2-true}"') then .execution else null end' "$R") ||
		fail "not '$1', or not ${2-true}: $(jq -c . "$R")"
	wait_for no_group "exec-$number"
}

# no_group PATTERN: below the session's. A killed process may take a moment to end.
no_group() {
	[[ -z $(find "$GROUP" -mindepth 1 -name "$1") ]]
}

# bystander OPTIONS...: an execution that waits, and then says that it is well.
# shellcheck disable=SC2120
bystander() {
	rm -f ready ready.told
	"$CARREL" exec "$@" -- sh -c "$(waits ready); ./bomb memory 4" \
		</dev/null >"$T/well" 2>&1 3>&- &
	BYSTANDER=$!
	wait_for test -e ready
}

bystander_is_well() {
	tell ready
	wait "$BYSTANDER" || fail "the bystander: $?: $(<"$T/well")"
	[[ $(<"$T/well") == survived ]] || fail "the bystander: $(<"$T/well")"
}

# each_bomb OPTIONS...: every kind, in one execution each, in the session that there is.
# shellcheck disable=SC2120
each_bomb() {
	execution 137 "$@" --memory 32M -- ./bomb memory 512
	limit_is memory '.started == "yes" and .signal.number == 9 and .error == null and
		.limits.oom_kills >= 1 and .limits.memory_peak_bytes <= 33554432 and
		.limits.memory_peak_bytes > 20000000'
	execution 1 "$@" --pids 20 -- ./bomb tasks 300
	limit_is pids '.limits.tasks_peak == 20 and .limits.tasks_refused == 1 and
		.limits.pids_by == "cgroup"'
	assert_output 19
	execution 153 "$@" --file-size 1M -- ./bomb file 50 # RLIMIT_FSIZE: without a group
	[[ ! -e big || $(stat -c %s big) -le $((1 << 20)) ]]
	limit_is file-size '.limits == null'
}

@test "each bomb ends by the limit of its execution, with its word, and nobody else notices" {
	begin
	bystander
	# Who asks for nothing has no group, and does not pay for one.
	[[ -z $(find "$GROUP" -mindepth 1 -type d) ]]
	jq -e '.limits == null' <("$CARREL" exec --report fd:3 -- true 3>&1 >&2 </dev/null) >/dev/null
	each_bomb
	execution 0 --pids 20 -- ./bomb count 300
	limit_is '' '.limits.tasks_refused == 1'
	status=0
	timeout "$PATIENCE" "$CARREL" exec --report "$R" --memory 64M --output-max 4096 -- yes \
		</dev/null >"$T/out" 2>"$T/err" 3>&- || status=$?
	((status != 0 && $(stat -c %s "$T/out") <= 4096))
	limit_is output
	execution 0 --cpus 0.2 -- ./bomb spin 1500
	limit_is '' '.limits.throttled_periods >= 3 and .limits.throttled_us > 0 and .limits.cpu_us > 0 and
		.limits.cpu_us < .wall_us / 2'
	[[ -z $(find "$GROUP" -mindepth 1 -type d) ]]
	timeout "$PATIENCE" "$CARREL" session show --json | jq -e '.executions | length == 1' >/dev/null
	bystander_is_well
	end
}

@test "the session's own limits: an execution that reaches them ends, and the others do not" {
	begin --memory 64M --pids 24 --cpus 2
	# One execution cannot have all that there is: room to remove the files in memory that it left.
	[[ $(<"$GROUP/executions/memory.max") == $((68 << 20)) && $(<"$GROUP/pids.max") == 24 ]]
	[[ $(<"$GROUP/cpu.max") == '200000 100000' ]]
	grep -q . "$GROUP/init/cgroup.procs"
	bystander
	execution 137 -- ./bomb memory 512
	limit_is memory
	execution 1 -- ./bomb tasks 300
	limit_is pids
	((output >= 8 && output < 24)) || fail "it got $output"
	execution 0 -- ./bomb memory 8
	limit_is ''
	assert_output survived
	bystander_is_well
	# Less for one execution, and not more.
	execution 125 --memory 200M -- true
	assert_field "$R" .error.code loosens
	execution 125 --pids 25 -- true
	assert_field "$R" .error.code loosens
	execution 125 --cpus 3 -- true
	assert_field "$R" .error.code loosens
	execution 137 --memory 20M --pids 10 --cpus 0.5 -- ./bomb memory 48
	limit_is memory
	end
}

@test "an execution with too little memory to begin: the word is memory, and the session goes on" {
	begin
	execution 125 --memory 4K -- sh -c ': >ran'
	limit_is memory '.error.code == "limit" and .started != "yes"'
	[[ ! -e ran ]]
	execution 0 --memory 32M -- true
	end
}

# fill STATUS NAME: more than the session's memory into /dev/shm/NAME. It stays when who wrote it is killed.
# With a buffer of 2 MiB it is larger than the bystander: the kernel chooses by what a process itself holds.
fill() {
	# shellcheck disable=SC2016 # for the inner shell
	execution "$1" -- sh -c 'dd if=/dev/zero of="/dev/shm/$0" bs=2M count=100 2>/dev/null && stat -c %s "/dev/shm/$0"' "$2"
}

@test "files in memory that fill a session: who wrote them ends, the session goes on, and they can be removed" {
	local i

	begin --tmpfs /dev/shm:400M # The control arm: what the same does without a limit.
	fill 0 file
	assert_output $((200 << 20))
	execution 0 -- rm /dev/shm/file
	end
	begin --memory 64M --tmpfs /dev/shm:400M
	bystander
	fill 137 file
	limit_is memory '.started == "yes"'
	bystander_is_well
	# What the next one can have is not enough for much, but for this.
	execution 137 -- ./bomb memory 8
	limit_is memory
	execution 0 -- bash -c 'rm -r /dev/shm/*'
	execution 0 -- ./bomb memory 48
	assert_output survived
	fill 137 file
	# They take the rest, too. It may be that the next does not even begin; init is not among those who die.
	for ((i = 0; i < 4; i++)); do
		status=0
		# shellcheck disable=SC2016 # for the inner shell
		timeout "$PATIENCE" "$CARREL" exec --report "$R" -- sh -c 'head -c 200M /dev/zero >"/dev/shm/$0"' "$i" \
			</dev/null >"$T/out" 2>"$T/err" 3>&- || status=$?
		((status == 137 || status == 125)) || fail "$status: $(jq -c . "$R")"
		limit_is memory
	done
	timeout "$PATIENCE" "$CARREL" session show --json | jq -e '.executions | length == 0' >/dev/null
	grep -q . "$GROUP/init/cgroup.procs"
	end
}

@test "services, terminals and views have limits too" {
	local number

	begin
	"$CARREL" exec --detach --name service --memory 40M --pids 9 -- \
		sh -c "$(waits up); ./bomb memory 512" </dev/null 3>&-
	wait_for test -e up
	number=$(basename "$GROUP"/exec-*)
	[[ $(<"$GROUP/$number/memory.max") == $((40 << 20)) && $(<"$GROUP/$number/pids.max") == 10 ]]
	tell up
	wait_for test ! -e "$GROUP/$number"
	timeout "$PATIENCE" "$CARREL" session show --json | jq -e '.executions | length == 0' >/dev/null
	"$CARREL" exec --detach --name service --memory 40M -- sleep 1000 </dev/null 3>&-
	wait_for compgen -G "$GROUP/exec-*"
	"$CARREL" exec --stop service 3>&-
	wait_for no_group '*-*'
	execution 137 --tty yes --memory 32M -- ./bomb memory 512
	limit_is memory
	execution 1 --tty yes --pids 20 -- ./bomb tasks 300
	limit_is pids
	execution 137 --workspace-mode ro --memory 32M -- ./bomb memory 512
	limit_is memory
	execution 1 --workspace-mode ro --net none --pids 20 -- ./bomb tasks 300
	limit_is pids
	execution 0 --workspace-mode ro -- true
	end
	begin --memory 200M
	execution 137 --workspace-mode ro --memory 32M -- ./bomb memory 512
	limit_is memory
	execution 137 --tty yes --memory 32M -- ./bomb memory 512
	limit_is memory
	end
}

@test "what an execution leaves behind ends with its group" {
	begin
	execution 0 --memory 64M -- sh -c 'setsid sleep 1000 & setsid sleep 1000 & :'
	limit_is ''
	execution 124 --memory 64M --pids 20 --timeout 1s --grace 1s -- bash -c \
		'trap "" TERM; b() { b | b & b; }; b 2>/dev/null; while :; do sleep 1; done'
	limit_is timeout
	execution 0 -- sh -c '! grep -lx sleep /proc/[0-9]*/comm'
	end
}

# A traced process stops on its way out, killed or not: ptrace(2), PTRACE_EVENT_EXIT.
@test "an execution that a tool keeps from ending holds up nobody, and its group goes when it can" {
	local client group

	cp "$CARREL_HELPERS/attack_tasks" "$WS/attack_tasks"
	begin
	"$CARREL" exec --memory 64M --grace 1s -- \
		sh -c 'echo $$ >pid && mv pid victim && exec ./attack_tasks traceable' </dev/null 3>&- &
	client=$!
	wait_for test -e victim
	group=$(basename "$GROUP"/exec-*)
	"$CARREL" exec --detach -- ./attack_tasks hold-exit "$(<victim)" let-go </dev/null 3>&-
	wait_for is_traced "$group"
	kill "$client"
	wait "$client" || true
	wait_for no_execution "${group#exec-}"
	execution 0 -- true
	[[ -n $(find "$GROUP" -name "$group") ]]
	touch let-go
	wait_for no_group "$group"
	end
}

# is_traced GROUP: a process of it.
is_traced() {
	sed 's:.*:/proc/&/status:' "$GROUP/$1/cgroup.procs" | xargs grep -q 'TracerPid:.*[1-9]'
}

# no_execution N: the session has ended with it.
no_execution() {
	"$CARREL" session show --json 3>&- | jq -e --arg n "$1" 'all(.executions[]; .execution != ($n | tonumber))'
}

# in_its_group N: the execution N is.
in_its_group() {
	find "$GROUP" -path "*/exec-$1/cgroup.procs" -exec cat {} + | grep -q .
}

@test "a killed supervisor's groups go with gc" {
	local pid

	for settings in '' '--memory 100M --pids 50'; do
		# shellcheck disable=SC2086 # several words
		begin $settings --json
		pid=$(jq -r .pid "$T/session")
		CARREL_SESSION=$(jq -r .session "$T/session") GROUP=$PLACE/carrel-$CARREL_SESSION
		"$CARREL" exec --detach --name service --memory 40M -- sleep 1000 </dev/null 3>&-
		wait_for in_its_group 1
		kill -KILL "$pid"
		wait_for test ! -e "/proc/$pid"
		unset CARREL_SESSION
		carrel gc
		assert_status 0
		[[ ! -e $GROUP ]] || fail "left: $(find "$GROUP")"
	done
}

# in_group GROUP COMMAND...: from a shell that is in the group.
in_group() {
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$@"
}

# leave GROUP: the group and what carrel made in it; nobody is in it any more.
leave() {
	local group

	while IFS= read -r group; do
		wait_for rmdir "$group"
	done < <(find "$1" -depth -type d)
}

@test "a group that was delegated with its processes: only a session that asks for limits moves them" {
	local own=$PLACE/session-own.$$

	mkdir "$own"
	/usr/bin/python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.delegate", b"1")' "$own" ||
		skip 'no user xattrs on cgroups'
	cat >script <<-'SCRIPT'
		place() { sed -n 's/^0:://p' /proc/self/cgroup; }
		"$CARREL" session start >id && id=$(sed -n 's/^session //p' id) || exit
		place
		"$CARREL" exec -s "$id" -- true && echo well
		"$CARREL" exec -s "$id" --memory 32M -- true 2>&1 || echo $?
		"$CARREL" session end "$id"
		"$CARREL" session start --pids 30 >id && id=$(sed -n 's/^session //p' id) || exit
		place
		"$CARREL" exec -s "$id" --memory 32M -- ./bomb memory 512 || echo $?
		"$CARREL" exec -s "$id" --pids 9 -- ./bomb tasks 100 || echo $?
		"$CARREL" session end "$id"
	SCRIPT
	run in_group "$own" bash ./script 3>&-
	leave "$own"
	assert_status 0
	assert_matches "$output" "^[^
]*/session-own\.[0-9]+
well
carrel: [^
]*the session has no cgroup[^
]*
carrel: hint: [^
]*
125
[^
]*/carrel.callers
137
8
1\$"
}

@test "where nothing is delegated a session has pids alone, by rlimit" {
	need_root
	local foreign=$ROOT/session-foreign.$$ base

	mkdir "$foreign"
	base=$(mktemp -d /var/tmp/limits.XXXXXX)
	chmod 1777 "$base"
	mkdir "$base"/{ws,home,tmp}
	cp "$CARREL_HELPERS/bomb" "$base/ws"
	chmod 1777 "$base"/*
	cat >"$base/ws/script" <<-'SCRIPT'
		"$CARREL" session start --memory 100M 2>&1 || echo $?
		"$CARREL" session start --pids 24 >id && id=$(sed -n 's/^session //p' id) || exit
		"$CARREL" exec -s "$id" --report fd:5 -- ./bomb tasks 100 5>&1 >out || echo $?
		cat out
		"$CARREL" exec -s "$id" -- true && echo well
		"$CARREL" session end "$id"
	SCRIPT
	cd "$base/ws"
	run in_group "$foreign" setpriv --reuid=65534 --regid=65534 --clear-groups \
		env -u XDG_RUNTIME_DIR TMPDIR="$base/tmp" HOME="$base/home" bash ./script 3>&-
	cd /
	rm -rf "$base"
	leave "$foreign"
	assert_status 0
	assert_matches "$output" 'cannot be limited: no cgroup is delegated to this user'
	assert_matches "$output" '"limit": ?"pids"'
	assert_matches "$output" $'\n1\n(1[0-9]|2[0-3])\nwell'
}
