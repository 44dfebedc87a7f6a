# skips.bash - which skips continuous integration accepts. Sourced by run-test and vm, never run.

# allowed REASON: one of the patterns of tests/lint/allowed-skips is the whole of it.
allowed() {
	local pattern list=${BASH_SOURCE[0]%/*}/../lint/allowed-skips

	while IFS= read -r pattern; do
		[[ $1 =~ ^($pattern)$ ]] && return 0
	done < <(sed -e '/^#/d' -e '/^[[:space:]]*$/d' -e 's/ # .*//' "$list")
	return 1
}
