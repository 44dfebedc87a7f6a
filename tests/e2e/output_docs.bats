#!/usr/bin/env bats
# docs/output.md: the test runs each of its examples as it stands there and compares the output.
# ctest: as=user
load ../lib/common

# example NUMBER: the lines of one indented block of the document, without the indentation.
example() {
	awk -v want="$1" '/^    \$ / && !inside { n++; inside = 1 } !/^    / { inside = 0 }
		inside && n == want { print substr($0, 5) }' "$CARREL_SOURCE/docs/output.md"
}

# commands NUMBER: what is typed in it; shown NUMBER: what is shown, with every session called the same.
commands() {
	example "$1" | sed -n 's/^\$ //p'
}

one_session() {
	sed -E 's,/[^ ]*/carrel-[a-z2-7]{20}/,/SESSION/,'
}

shown() {
	example "$1" | grep -v '^\$ ' | one_session
}

@test "every example of the document" {
	local number count=0 PATH=${CARREL%/*}:$PATH

	for number in 1 2; do
		run --separate-stderr bash -c "$(commands "$number" | sed 's/ yes$/ yes >flood/')"
		output=$(one_session <<<"$output")
		assert_output "$(shown "$number")"
		count=$((count + 1))
	done
	[[ -z $(example 3) && $count == 2 ]] || fail 'an example that is not run'
	rm -rf "$BASE"/carrel-*
}
