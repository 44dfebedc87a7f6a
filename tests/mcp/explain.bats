#!/usr/bin/env bats
# The tool exec reports what the walls refused the command, where the server was started with --explain.
# ctest: as=user
load ../lib/common
load ../lib/live

python() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CARREL_SOURCE/tests/mcp run --separate-stderr \
		/usr/bin/python3 -c 'import sys, textwrap
from raw import *
exec(compile(textwrap.dedent(sys.stdin.read()), "script", "exec"))'
	assert_status 0
}

@test "what a command was refused is in its answer, each command's own; explain false leaves it out" {
	mkdir "$HOME/data"
	python <<'END'
		data = os.environ["HOME"] + "/data"
		c = Client("--explain", "--read", os.environ["HOME"])
		c.start()
		for name in ("one", "two"):
			answer = c.good("exec", {"command": f"touch {data}/{name} || true"})
			contains(answer["denials"], f"make {data}/{name}: EROFS, touch")
			contains(answer["denials"], f"--write {data}")
			same(answer["denials"].count("EROFS"), 1)
		contains(c.good("exec", {"command": "true"})["denials"], "nothing was refused")
		same("denials" in c.good("exec", {"command": f"touch {data}/x || true", "explain": False}), False)
END
}

@test "without an observer nothing is said, and who asks is told why" {
	python <<'END'
		c = Client()
		c.start()
		same("denials" in c.good("exec", {"command": "touch /etc/x || true"}), False)
		contains(c.good("exec", {"command": "true", "explain": True})["denials"], "--explain")
END
}
