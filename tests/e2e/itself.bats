#!/usr/bin/env bats
# carrel builds itself in a session: a whole build of real size, with every wall up. It builds without optimisation,
# without debug information and with one libc, since these would only cost the compiler's time.
# ctest: as=user cost=70
load ../lib/common

@test "carrel builds itself in a session, and what it built runs a command" {
	cp -r "$CARREL_SOURCE" "$WS/carrel"
	cd "$WS/carrel"
	run -0 "$CARREL" run -- sh -c 'cmake -S . -B build -G Ninja -DCARREL_TESTS=OFF -DCARREL_LIBC=glibc \
		-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG= && ./dev build'
	[[ -x build/carrel && -x build/carrel-policy && -x build/carrel-inspect ]]
	run -0 build/carrel run -- sh -c 'echo built inside'
	[[ $output == "built inside" ]]
}

@test "make -j2 builds in a session" {
	for i in 1 2 3 4 5 6; do
		printf 'int f%s(void);\nint f%s(void) { return %s; }\n' "$i" "$i" "$i" >"f$i.c"
	done
	printf 'int main(void) { return 0; }\n' >main.c
	printf 'all: f1.o f2.o f3.o f4.o f5.o f6.o main.o\n\t$(CC) -o all $^\n' >Makefile
	run -0 "$CARREL" run -- make -s -j2
	[[ -x all ]]
	run -0 "$CARREL" run -- ./all
}
