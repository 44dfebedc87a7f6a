#!/usr/bin/env bats
# carrel mcp: the session lives as long as the client is connected, and no call outlives it.
# ctest: as=user cost=25
load ../lib/common
load ../lib/live

python() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CARREL_SOURCE/tests/mcp run --separate-stderr \
		/usr/bin/python3 -c 'import sys, textwrap
from raw import *
exec(compile(textwrap.dedent(sys.stdin.read()), "script", "exec"))'
	assert_status 0
}

@test "the end of input in the middle of calls ends them and the session" {
	python <<'END'
		c = Client()
		c.start()
		scratch = c.good("status")["scratch"]
		for i in range(4):
			c.begin("exec", {"command": f"touch began{i}; sleep 1000 & sleep 1000"})
		while not all(os.path.exists(f"began{i}") for i in range(4)):
			time.sleep(0.02)
		same(c.close(), ([], 125))
		same(os.path.exists(scratch), False)
END
	assert_matches "$stderr" 'the input has ended, and 4 calls were ended without an answer'
	assert_matches "$stderr" 'hint: keep the input open'
	assert_nothing_left
}

@test "the end of input right behind a short call: it is answered" {
	{
		printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
			'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
			'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo answered"}}}'
	} >"$T/in"
	"$CARREL" mcp <"$T/in" >"$T/out" 2>"$T/err"
	[[ $(jq -r 'select(.id == 2) | .result.structuredContent.stdout' "$T/out") == answered ]]
	[[ ! -s $T/err ]]
}

@test "TERM, INT and HUP end the session at once, KILL soon" {
	python <<'END'
		import signal
		for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
			c = Client()
			c.start()
			scratch = c.good("status")["scratch"]
			c.begin("exec", {"command": "touch began; sleep 1000"})
			while not os.path.exists("began"):
				time.sleep(0.02)
			os.remove("began")
			os.kill(c.pid, number)
			same(c.drain(), ([], 0))
			same(os.path.exists(scratch), False)
		c = Client()
		c.start()
		scratch = c.good("status")["scratch"]
		os.kill(c.pid, signal.SIGKILL)
		c.drain()
		end = time.monotonic() + PATIENCE
		while os.path.exists(scratch):
			if time.monotonic() > end:
				fail("the session outlives its server")
			time.sleep(0.02)
END
	await_nothing_left
}

@test "a client that is gone ends the session, also in the middle of an answer" {
	python <<'END'
		c = Client()
		c.start()
		scratch = c.good("status")["scratch"]
		c.begin("exec", {"command": "seq 100000", "budget": 200000})
		c.process.stdout.close()
		try:
			c.request("tools/list")
		except BrokenPipeError:
			pass # it has noticed already
		same(c.process.wait(PATIENCE), 0)
		same(os.path.exists(scratch), False)
END
	assert_nothing_left
}

@test "a session that is ended from elsewhere: the calls are told, and the server says so" {
	python <<'END'
		c = Client(stderr=subprocess.PIPE)
		c.start()
		session = c.good("status")["session"]
		call = c.begin("exec", {"command": "touch began; sleep 1000"})
		while not os.path.exists("began"):
			time.sleep(0.02)
		subprocess.run([CARREL, "session", "end", "-s", session], check=True, stdout=subprocess.DEVNULL)
		result = c.answer(call)["result"]
		said, status = c.drain()
		same(status, 125)
		contains(c.process.stderr.read().decode(), "the session has ended")
END
	assert_nothing_left
}

@test "cancelled: nothing is answered, and the whole tree is gone" {
	python <<'END'
		c = Client()
		c.start()
		call = c.begin("exec", {"command": "setsid sleep 1234 & sleep 1234 & touch began; wait"})
		while not os.path.exists("began"):
			time.sleep(0.02)
		c.notify("notifications/cancelled", {"requestId": call, "reason": "enough"})
		count = "pgrep -c -f '[s]leep 1234' || :"
		end = time.monotonic() + PATIENCE
		while c.good("exec", {"command": count})["stdout"] != "0\n":
			if time.monotonic() > end:
				fail("something of it is left")
		said, status = c.close()
		same([m for m in said + c.heard if m.get("id") == call], [])
END
}

@test "calls at once do not wait for each other, and 32 are enough" {
	python <<'END'
		c = Client()
		c.start()
		slow = [c.begin("exec", {"command": "until [ -e go ]; do sleep 0.1; done"}) for _ in range(32)]
		contains(c.refused("status"), "32 calls are under way")
		same(c.ask("ping")["result"], {})
		open("go", "w").close()
		for call in slow:
			same(c.answer(call)["result"]["structuredContent"]["status"], 0)
		c.good("status")
		same(c.close(), ([], 0))
END
}

@test "progress for a call that asked for it, at least each second or two" {
	python <<'END'
		c = Client()
		c.start()
		c.call("exec", {"command": "echo x; sleep 3.5"}, meta={"progressToken": "t"})
		told = [m["params"] for m in c.heard if m.get("method") == "notifications/progress"]
		if not told:
			fail("nothing was told")
		same({p["progressToken"] for p in told}, {"t"})
		same([p["progress"] for p in told], sorted({p["progress"] for p in told}))
		contains(told[-1]["message"], "2 characters of output")
		c.heard.clear()
		c.call("exec", {"command": "sleep 2"})
		same([m for m in c.heard if "method" in m], [])
END
}

@test "an endless output costs no memory" {
	python <<'END'
		c = Client()
		c.start()
		result = c.good("exec", {"command": "head -c 300000000 /dev/zero | tr '\\0' x; echo end"})
		same(result["stdout_chars"], 300000004)
		contains(result["stdout"], "chars omitted — full output saved to ")
		same(result["stdout"].endswith("xend\n"), True)
		same(os.path.getsize(result["stdout_file"]), 300000004)
		if c.high_water_kib() > 48 << 10:
			fail(f"{c.high_water_kib()} KiB")
END
}

@test "a writer of the pad that was stopped with the lock in its hand holds up no other call" {
	python <<'END'
		c = Client()
		c.start()
		c.good("pad", {"action": "write", "content": "before"})
		session = c.good("status")["session"]
		pad = os.environ["HOME"] + "/.local/state/carrel/sessions/" + session + "/pad"
		held = os.open(pad, os.O_RDONLY | os.O_DIRECTORY)
		fcntl.flock(held, fcntl.LOCK_EX)
		said = c.call("pad", {"action": "write", "content": "after"})
		same(said["isError"], True)
		if "busy" not in said["content"][0]["text"]:
			fail(said)
		same(c.ask("ping")["result"], {})
		os.close(held)
		same(c.good("pad", {"action": "read"})["sections"], {"main": "before"})
		same(c.close()[1], 0)
END
}

@test "a command that kills its own monitor has no good end" {
	python <<'END'
		c = Client()
		c.start()
		contains(c.refused("exec", {"command": "kill -KILL $PPID; sleep 1000"}), "is not known")
		same(c.good("exec", {"command": "echo next"})["stdout"], "next\n")
		same(c.close()[1], 0)
END
}

@test "output-max ends a command, and no more than that is saved" {
	python <<'END'
		c = Client("--output-max", "1M")
		c.start()
		said = c.good("exec", {"command": "yes"})
		same((said["limit"], said["signal"]), ("output", "SIGKILL"))
		same(os.stat(said["stdout_file"]).st_size, 1 << 20)
		same(c.good("exec", {"command": "yes | head -c 1000000"})["limit"], None)
		same(c.close()[1], 0)
END
}

@test "the session's output-budget is what a call has, and the most; merge-output holds too" {
	python <<'END'
		c = Client("--output-budget", "40", "--merge-output")
		c.start()
		for budget in ({}, {"budget": 200}):
			said = c.good("exec", {"command": "seq 1000; echo last >&2", **budget})
			contains(said["stdout"], "... [3,858 chars omitted")
			contains(said["stdout"], "\nlast\n")
			same("stderr" in said, False)
		same(c.good("exec", {"command": "echo e >&2", "merge_output": False})["stderr"], "e\n")
		same(c.close()[1], 0)
END
}

@test "what the session has to say at its end is said on stderr" {
	mkdir -p "$T/work"
	python <<'END'
		with open(os.environ["T"] + "/said", "w") as said:
			c = Client("--workspace", os.environ["T"] + "/work", "--keep", stderr=said)
			c.start()
			scratch = c.good("write", {"path": "a", "content": "kept"})["path"]
			same(c.good("exec", {"command": "echo >.envrc"})["status"], 0)
			same(c.close(), ([], 0))
		same(open(scratch).read(), "kept")
		said = open(os.environ["T"] + "/said").read()
		contains(said, "carrel: kept: " + os.path.dirname(scratch))
		contains(said, "carrel: quarantined, since the host would obey it: ")
END
	rm -rf "$BASE"/carrel-*
}
