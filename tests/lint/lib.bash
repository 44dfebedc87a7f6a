# lib.bash - what every lint shares: sourced, never run.
#
# A lint is called as  tests/lint/NAME SOURCE [BUILD]  and looks at the tree SOURCE (and at what was
# built of it in BUILD). It prints FILE:LINE: what is wrong, one line for each finding, and
# ends with status 1 where there was one. tests/lint/selftest.bats shows that each can fail.
set -euo pipefail
export LC_ALL=C
unset POSIXLY_CORRECT "${!GIT_@}" # a hook of git's has a GIT_DIR, of another repository

source_dir=$(cd "${1:?the source directory}" && pwd -P)
# shellcheck disable=SC2034 # for those that look at what was built
build_dir=${2-}
lint_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
findings=0
cd "$source_dir"

# complain TEXT...: one finding.
complain() {
	printf '%s\n' "$*"
	findings=$((findings + 1))
}

# complain_lines: each line of stdin is a finding.
complain_lines() {
	local line

	while IFS= read -r line; do
		complain "$line"
	done
}

# finish: the last line of every lint.
finish() {
	((findings == 0)) || {
		printf '%s: %d finding(s)\n' "$(basename "$0")" "$findings"
		exit 1
	}
	exit 0
}

# tracked: every file of the project: those of git, or of the tree where it is not a checkout.
tracked() {
	if [[ -e .git ]] && command -v git >/dev/null; then
		git -c safe.directory='*' ls-files --cached --others --exclude-standard |
			while IFS= read -r file; do
				[[ ! -f $file ]] || printf '%s\n' "$file"
			done
	else
		find . -type f -not -path './build*' | sed 's,^\./,,'
	fi
}

# c_files DIRECTORY...: the C files below, sorted; none is not an error.
c_files() {
	local directory

	for directory; do
		[[ ! -d $directory ]] || find "$directory" -name '*.[ch]' -type f
	done | sort
}

# code FILE...: a line FILE:LINE:TEXT for each line, its comments blanked. Directives stay.
code() {
	(($#)) || return 0
	awk '
	FNR == 1 {
		inside = 0
	}
	{
		line = $0
		text = ""
		while (line != "") {
			if (inside) {
				end = index(line, "*/")
				if (!end)
					break
				line = substr(line, end + 2)
				inside = 0
				continue
			}
			start = index(line, "/*")
			single = index(line, "//")
			if (single && (!start || single < start) &&
				substr(line, 1, single - 1) !~ /"[^"]*$/) {
				text = text substr(line, 1, single - 1)
				break
			}
			if (!start) {
				text = text line
				break
			}
			text = text substr(line, 1, start - 1)
			line = substr(line, start + 2)
			inside = 1
		}
		print FILENAME ":" FNR ":" text
	}' "$@"
}

# found WHY ERE FILE...: each line FILE:LINE:TEXT of code that matches is a finding.
found() {
	local why=$1 ere=$2 line

	shift 2
	while IFS= read -r line; do
		complain "$line   <- $why"
	done < <(code "$@" | grep -E "$ere" || true)
}

# listed FILE: the entries of a list, comments and blank lines aside.
listed() {
	sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$lint_dir/$1"
}
