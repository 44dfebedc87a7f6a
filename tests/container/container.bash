# container.bash - containers of podman, on images made here. After `load ../lib/common`.
#
# Everything podman keeps is below one directory of the file's own, so that files may run beside one
# another and nothing stays. The images are made of the machine's own files: `slim` (bash, coreutils and
# the libraries they ask for), `busybox`, and `static` (the launcher, a static program, nothing else).
#
# In a container: the workspace is /srv/ws ($WS of the test), /out is $OUT, and /home/u is the home.

# podman_ ARGUMENT...: podman with a storage of our own, and locks: otherwise all podmans of a user share one
# piece of memory, and who comes while the first of them makes it fails. runc, as crun refuses hybrid cgroups.
podman_() {
	CONTAINERS_CONF=$STORE/containers.conf XDG_RUNTIME_DIR=$STORE/xdg TMPDIR=$STORE/tmp \
		HOME=$STORE podman --root "$STORE/root" --runroot "$STORE/run" \
		--tmpdir "$STORE/tmp" --storage-driver vfs \
		--cgroup-manager=cgroupfs --events-backend=none --runtime runc "$@"
}

# egress_program: the path of carrel-egress that belongs to the launcher.
egress_program() {
	local dir=${COMMON_CARREL%/*}

	[[ -e $dir/carrel-egress ]] || dir=$dir/../libexec/carrel
	printf '%s\n' "$dir/carrel-egress"
}

# make_tree DIR: what all images have.
make_tree() {
	local dir=$1

	mkdir -p "$dir"/{bin,dev,etc,out,proc,root,run,sys,tmp,secrets} "$dir"/usr/bin \
		"$dir"/var/tmp "$dir"/srv/ws "$dir"/home/u/{open,.ssh}
	printf 'root:x:0:0:root:/root:/bin/sh\nu:x:1000:1000::/home/u:/bin/sh\n' >"$dir/etc/passwd"
	printf 'key\n' >"$dir/home/u/.ssh/id"
	printf 'token\n' >"$dir/secrets/token"
	chmod -R a+rX,u+w "$dir"
	chmod 1777 "$dir/tmp" "$dir/var/tmp"
	chmod 0777 "$dir/home/u/open" "$dir/out" "$dir/srv/ws"
	cp "$COMMON_CARREL" "$dir/usr/bin/carrel"
	cp "$COMMON_HELPERS/intruder" "$dir/usr/bin/intruder"
	mkdir -p "$dir/usr/libexec/carrel"
	cp "$(egress_program)" "$dir/usr/libexec/carrel/carrel-egress"
}

# add_program DIR FILE: with the libraries that it asks for.
add_program() {
	local dir=$1 file library

	file=$(readlink -f "$2")
	cp "$file" "$dir/usr/bin/${2##*/}"
	ldd "$file" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
		mkdir -p "$dir${library%/*}"
		cp -L "$library" "$dir$library"
	done
}

make_slim() {
	local name

	for name in bash cat env id ls mkdir rm sleep sort touch true; do
		add_program "$1" "$(type -P "$name")"
	done
	ln -s ../usr/bin/bash "$1/bin/sh"
}

make_busybox() {
	local name

	cp "$(command -v busybox)" "$1/bin/busybox"
	for name in cat env grep id ls mkdir nc sh sleep sort touch true; do
		ln -s busybox "$1/bin/$name"
	done
}

# make_image NAME: slim, busybox or static.
make_image() {
	make_tree "$STORE/tree"
	[[ $1 == static ]] || "make_$1" "$STORE/tree"
	tar -C "$STORE/tree" --owner=0 --group=0 --numeric-owner -cf - . |
		podman_ import - "localhost/$1" >"$STORE/log" 2>&1 || return
	rm -rf "$STORE/tree"
}

# set_up_containers IMAGE...: in setup_file. Where it cannot be done, $STORE/skip says why.
set_up_containers() {
	local name

	STORE=$(mktemp -d "${COMMON_DIR:-/var/tmp}/c.XXXXXX")
	export STORE
	mkdir -m 0700 "$STORE/xdg" "$STORE/tmp"
	printf '[engine]\nlock_type = "file"\n' >"$STORE/containers.conf"
	for name in podman runc busybox tar; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$name" >/dev/null ||
			echo "no $name on this machine" >"$STORE/skip"
	done
	if ! is_root && ! command -v newuidmap >/dev/null; then
		echo 'no newuidmap on this machine' >"$STORE/skip"
	fi
	[[ ! -e $STORE/skip ]] || return 0
	for name; do
		make_image "$name" || {
			refuse_podman
			return 0
		}
	done
	container "$1" /usr/bin/intruder exit 0 >"$STORE/log" 2>&1 || refuse_podman
}

refuse_podman() {
	printf 'podman cannot run containers here: %s\n' "$(tail -n 1 "$STORE/log")" \
		>"$STORE/skip"
}

need_containers() {
	[[ ! -e $STORE/skip ]] || skip "$(<"$STORE/skip")"
}

# remove_containers: in teardown_file. A rootless podman leaves a process that holds its namespace,
# and files that only that namespace may remove.
remove_containers() {
	local pause=$STORE/tmp/pause.pid

	[[ -n ${STORE-} && -d $STORE ]] || return 0
	if ! is_root && [[ ! -e $STORE/skip ]]; then
		podman_ unshare rm -rf "$STORE/root" >/dev/null 2>&1 || true
	fi
	for pause in "$STORE"/tmp/pause.pid "$STORE"/xdg/libpod/tmp/pause.pid; do
		[[ ! -s $pause ]] || kill "$(<"$pause")" 2>/dev/null || true
	done
	rm -rf "$STORE"
}

# lsm_options: what a security module of the machine would add is another matter: see docs/container.md.
lsm_options() {
	OPTIONS_LSM=()
	[[ $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) != Y ]] ||
		OPTIONS_LSM+=(--security-opt apparmor=unconfined)
	[[ ! -e /sys/fs/selinux/enforce ]] || OPTIONS_LSM+=(--security-opt label=disable)
}

# limit_options: limits that a podman without CAP_SYS_RESOURCE can set; it lowers its own limit of processes to
# the machine's pids. They are counted for each uid of the kernel: as root, the containers of all files that
# run beside this one share a uid 1000, maybe with a person, so that only a uid of its own gets a small limit.
limit_options() {
	local most=20000 hard

	hard=$(ulimit -Hu)
	[[ $hard == unlimited ]] || ((hard >= most)) || most=$hard
	OPTIONS_LIMIT=(--ulimit nofile=1024:1024
		--ulimit "nproc=${PROCESSES:-$most}:${PROCESSES:-$most}")
}

# container [OPTION...] IMAGE COMMAND...: `podman run`, to its end; $PROCESSES bounds those of its user.
container() {
	lsm_options
	limit_options
	podman_ run "${OPTIONS_LSM[@]}" "${OPTIONS_LIMIT[@]}" --rm --log-driver none \
		--network none --pull never \
		-v "${WS:-$STORE/tmp}:/srv/ws" -v "${OUT:-$STORE/tmp}:/out" -w /srv/ws \
		-e HOME=/home/u -e SECRET=hunter2 "$@"
}

# The places that a container and the test share: whoever the container's user is.
setup_places() {
	OUT=$T/out
	mkdir "$OUT"
	chmod 0777 "$OUT" "$WS"
	chmod 0711 "$T"
	export R=$OUT/report.json
}

# remove_places: what a container's user made belongs to nobody we know.
remove_places() {
	is_root || [[ ! -d ${T-} ]] ||
		podman_ unshare rm -rf "$WS" "$OUT" >/dev/null 2>&1 || true
}

# With this filter: as with docker's own, no namespaces and no mounts but for CAP_SYS_ADMIN.
write_docker_filter() {
	local -a refused=(unshare setns mount umount2 pivot_root open_tree move_mount fsopen
		fsconfig fsmount fspick mount_setattr keyctl add_key request_key)
	local names

	names=$(printf '"%s",' "${refused[@]}")
	cat >"$STORE/docker.json" <<-JSON
		{"defaultAction": "SCMP_ACT_ALLOW",
		"syscalls": [
		{"names": [${names%,}], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
		{"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
		"args": [{"index": 0, "value": 268435456, "valueTwo": 268435456,
		"op": "SCMP_CMP_MASKED_EQ"}]},
		{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}
	JSON
}
