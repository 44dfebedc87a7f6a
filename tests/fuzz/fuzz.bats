#!/usr/bin/env bats
# Each fuzzer runs with AddressSanitizer and UndefinedBehaviorSanitizer over its seeds and some thousands of mutations
# of them, always the same ones; with FULL_TESTS=1 for five minutes each, over different ones every time.
# ctest: as=any cost=50
load ../lib/common

setup_file() {
	local probe=$BATS_FILE_TMPDIR/probe

	echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' >"$probe.c"
	clang -fsanitize=fuzzer,address,undefined "$probe.c" -o "$probe" 2>/dev/null || true
}

setup() {
	common_setup
	need clang
	[[ -x $BATS_FILE_TMPDIR/probe ]] || skip 'no libFuzzer on this machine'
	mkdir "$T/corpus" "$T/seeds"
	cd "$CARREL_SOURCE" || return
}

# build NAME SOURCE... [-lLIBRARY]: tests/fuzz/NAME_fuzz.c with what it tests.
build() {
	clang -gline-tables-only -O1 -D_GNU_SOURCE -DCARREL_LIBFUZZER -DCARREL_VERSION='"0"' -Isrc \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		"tests/fuzz/$1_fuzz.c" "${@:2}" -o "$T/fuzz"
}

# fuzz RUNS OPTION... SEEDS...: the time is a bound for slow machines, not a measure.
fuzz() {
	local -a how=("-runs=$1" -seed=1 -max_total_time=30)

	[[ ! ${FULL_TESTS-} ]] || how=(-max_total_time=300)
	# Without a limit for one input: a loaded machine is no hang.
	run "$T/fuzz" "${how[@]}" -artifact_prefix="$T/" -print_final_stats=1 "${@:2}"
	assert_status 0
	[[ $output =~ number_of_executed_units:\ +([0-9]+) ]] || fail 'nothing was run'
	printf '# %s\n' "${BASH_REMATCH[0]}" >&3
	((BASH_REMATCH[1] >= 1000)) || fail 'next to nothing was run'
}

@test "the fuzzers find a fault that is planted" {
	cat >"$T/probe.c" <<-'PROBE'
		#include <stdlib.h>
		int LLVMFuzzerTestOneInput(const char *d, unsigned long n) {
			char *copy = malloc(n + 1);
			if (n > 2 && d[0] == 'b' && d[1] == 'a' && d[2] == 'd')
				*(volatile char *)(copy + n + 1) = 0;
			free(copy);
			return 0;
		}
	PROBE
	clang -g -O1 -fsanitize=fuzzer,address,undefined "$T/probe.c" -o "$T/fuzz"
	run "$T/fuzz" -seed=1 -runs=1000000 -max_total_time=60 -artifact_prefix="$T/"
	((status != 0))
	assert_matches "$output" 'heap-buffer-overflow'
}

@test "no bytes break the reader of policies" {
	build policy src/plan/policy*.c src/plan/netrule*.c src/plan/{names,pass,path,settings}.c \
		src/base/{text,error,arena,json,writer,fd,glob}.c
	for file in tests/golden/*/policy; do
		file=${file%/policy}
		# The first byte: as a policy of the user's.
		printf '\0%s' "$(<"$file/policy")" >"$T/seeds/${file##*/}.user"
	done
	fuzz 8000 -max_len=4096 -dict=tests/fuzz/policy.dict "$T/corpus" policy "$T/seeds"
}

@test "no bytes break the reader of the agent's messages" {
	build message src/agent/server*.c src/agent/{message,lines,field,harmless,buffer}.c \
		src/base/text.c -ljansson
	fuzz 20000 -max_len=4096 -dict=tests/fuzz/message.dict "$T/corpus" tests/fuzz/message
}

@test "no bytes break the readers of git's configuration and index, and of requests" {
	build records src/host/git/git{config,index}.c src/box/request.c
	make_records
	fuzz 50000 -max_len=2048 "$T/corpus" "$T/seeds"
}

@test "no bytes break what is looked at of a picture" {
	build image src/agent/{image,buffer}.c src/base/base64.c
	make_pictures
	fuzz 50000 -max_len=512 "$T/corpus" "$T/seeds"
}

@test "no bytes break the readers of queries, of answers, and of a connection's first bytes" {
	build egress src/egress/{dns_message,hello,http_body,http_message,proxy_message}.c
	/usr/bin/python3 -B tests/fuzz/egress_seeds.py "$T/seeds"
	fuzz 100000 -max_len=1024 "$T/corpus" "$T/seeds"
}

# make_pictures: the smallest of each kind.
make_pictures() {
	base64 -d >"$T/seeds/gif" <<<R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7
	base64 -d >"$T/seeds/lossless" <<<UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==
	base64 -d >"$T/seeds/lossy" <<<UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA
	base64 -d >"$T/seeds/png" <<<iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
	printf '\xff\xd8\xff\xc0\0\x0b\x08\0\1\0\1\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0\1\xff\xd9' >"$T/seeds/jpeg"
}

# make_records: a repository's own files, and a request as the client makes it.
make_records() {
	local version object=0123456789012345678901234567890123456789

	git init -q "$T/repo"
	git -C "$T/repo" config remote.origin.url 'https://example.org/a "b"'
	git -C "$T/repo" config core.hooksPath '/x y\z # no comment'
	printf '\0' | cat - "$T/repo/.git/config" >"$T/seeds/config"
	for version in 2 3 4; do
		rm -f "$T/repo/.git/index"
		git -C "$T/repo" update-index --index-version "$version" --add \
			--cacheinfo "160000,$object,dir/sub" --cacheinfo "160000,$object,dir/sub2" \
			--cacheinfo "100644,$object,file"
		printf '\1' | cat - "$T/repo/.git/index" >"$T/seeds/index-$version"
		printf '\2' | cat - "$T/repo/.git/index" >"$T/seeds/index-$version-32"
	done
	/usr/bin/python3 -c 'import struct, sys
sys.stdout.buffer.write(b"\3" + struct.pack("=IIIIQQQQQQQQ", 1, 2, 1, 0o22, *[0] * 8) +
	b"sh\0-c\0A=b\0/tmp\0name\0")' >"$T/seeds/request"
}
