#!/usr/bin/env bats
# docs/embedding.md: the test takes each program from there, and it does what the page says.
# ctest: as=user
load ../lib/common
load ../lib/live

setup() {
	live_setup
	PATH=${CARREL%/*}:$PATH
}

# program LANGUAGE NUMBER: a fenced block of the document.
program() {
	awk -v fence="\`\`\`$1" -v want="$2" '
		$0 == "```" { inside = 0 }
		inside && n == want
		$0 == fence { n++; inside = 1 }' "$CARREL_SOURCE/docs/embedding.md"
}

# as_python NUMBER: with the lines on standard input behind it.
as_python() {
	{
		program python "$1"
		cat
	} >"$T/program.py"
	WS=$WS run --separate-stderr /usr/bin/python3 "$T/program.py"
	assert_status 0
}

@test "a command from Python: what it printed, and the report" {
	as_python 1 <<-'END'
		ws = os.environ["WS"]
		output, report = tool(ws, "echo one; echo two >&2; echo made >file; exit 3")
		assert output == "one\ntwo\n", output
		assert (report["status"], report["error"], report["limit"]) == (3, None, None), report
		assert open(ws + "/file").read() == "made\n"
		output, report = tool(ws, "seq 100000")
		assert len(output) < 20200 and "chars omitted" in output, output
		output, report = tool("/nowhere", "true")
		assert (report["started"], report["error"]["code"]) == ("no", "workspace"), report
	END
	assert_matches "$stderr" 'carrel: '
	assert_nothing_left
}

@test "a command from Node: what it printed, and the report" {
	need node
	{
		program js 1
		cat <<-'END'
			import assert from 'node:assert/strict'
			const { output, report } = tool(process.env.WS, 'echo one; echo two >&2; exit 3')
			assert.equal(output, 'one\ntwo\n')
			assert.deepEqual([report.status, report.error], [3, null])
			assert.equal(tool('/nowhere', 'true').report.error.code, 'workspace')
		END
	} >"$T/program.mjs"
	WS=$WS run --separate-stderr node "$T/program.mjs"
	assert_status 0
	assert_nothing_left
}

@test "a conversation from Python: calls at once, slices, what is kept, and the end with the framework" {
	as_python 2 <<-'END'
		from concurrent.futures import ThreadPoolExecutor
		ws = os.environ["WS"]
		s = Session(ws)
		assert s.about["scratch"] in s.prompt()
		assert s.tool("echo out; echo err >&2; exit 3") == (3, "out\nerr\n")
		status, output = s.tool("seq 100000")
		path = output.split("saved to ")[1].split("]")[0]
		assert s.read(path, "50000:50001") == "50000\n50001\n"
		line = "echo {0} >$CARREL_SCRATCH/{0}; echo {0}"
		said = list(ThreadPoolExecutor(8).map(lambda n: s.tool(line.format(n)), range(16)))
		assert said == [(0, f"{n}\n") for n in range(16)], said
		s.keep("7", ws)
		assert open(ws + "/7").read() == "7\n"
		assert s.tool("sleep 1000", timeout="1s")[0] == 124
		s.end()
		Session(ws) # and this one is not ended by anybody
	END
	await_nothing_left
}

@test "nothing of the document is left out" {
	[[ $(grep -c '^```[a-z]' "$CARREL_SOURCE/docs/embedding.md") == 3 ]] || fail 'a program that is not run'
	carrel run --workspace "$WS" --profile ci --report "$T/report.json" -- true
	assert_status 0
	assert_field "$T/report.json" .policy.profile ci
}
