#!/usr/bin/env bats
# carrel mcp, line by line: both eras of the protocol, everything that is no message, clients that break the rules.
# ctest: as=user
load ../lib/common
load ../lib/live

# python: a script on stdin that has `from raw import *`.
python() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CARREL_SOURCE/tests/mcp run --separate-stderr \
		/usr/bin/python3 -c 'import sys, textwrap
from raw import *
exec(compile(textwrap.dedent(sys.stdin.read()), "script", "exec"))'
	assert_status 0
}

@test "the client's revision is spoken, or the newest that begins so" {
	python <<'END'
		for asked, got in (("2025-11-25",) * 2, ("2025-06-18",) * 2, ("2025-03-26",) * 2,
				("2024-11-05",) * 2, ("1999-12-31", "2025-11-25")):
			c = Client()
			result = c.start(asked)
			same(result["protocolVersion"], got)
			same(result["serverInfo"]["name"], "carrel")
			contains(result["instructions"], c.good("status")["scratch"] if asked > "2025-05" else "scratch")
			said, status = c.close()
			same((said, status), ([], 0))
END
	assert_nothing_left
}

@test "a modern client negotiates nothing" {
	python <<'END'
		c = Client()
		found = c.ask("server/discover", {"_meta": MODERN})["result"]
		same(found["supportedVersions"], ["2026-07-28"])
		same(found["resultType"], "complete")
		params = {"name": "exec", "arguments": {"command": "echo hi"}, "_meta": MODERN}
		result = c.ask("tools/call", params)["result"]
		same(result["structuredContent"]["stdout"], "hi\n")
		old = dict(MODERN, **{"io.modelcontextprotocol/protocolVersion": "2020-01-01"})
		error = c.ask("tools/list", {"_meta": old})["error"]
		same((error["code"], error["data"]["requested"]), (-32022, "2020-01-01"))
		same(c.close(), ([], 0))
END
}

@test "what is no message has the standard error, and does no harm" {
	python <<'END'
		c = Client()
		same(c.ask("tools/list")["error"]["code"], -32600)
		c.start()
		for bad, code in (
				(b"{\n", -32700), (b"\xff\xfe\n", -32700), (b'{"a":1,"a":2}\n', -32700),
				(b"[" * 100000 + b"\n", -32700), (b"[" + b"[]," * 200000 + b"[]]\n", -32700),
				(b"42\n", -32600), (b"null\n", -32600), (b"[]\n", -32600), (b"{}\n", -32600),
				(b'{"jsonrpc":"1.0","id":null,"method":"ping"}\n', -32600)):
			c.write(bad)
			same(c.answer(None)["error"]["code"], code)
		same(c.ask("no/such/method")["error"]["code"], -32601)
		same(c.ask("tools/call", {"name": "nosuch"})["error"]["code"], -32602)
		same(c.ask("tools/call", {"name": 7})["error"]["code"], -32602)
		same(c.ask("tools/call", {"name": "exec", "arguments": "ls"})["error"]["code"], -32602)
		same(c.ask("tools/call", [1])["error"]["code"], -32602)
		contains(c.refused("exec", {"command": 5}), "`command` must be of type string")
		contains(c.refused("exec", {"cmd": "ls"}), "did you mean `cwd`?")
		contains(c.refused("exec", {"command": "a\0b"}), "NUL")
		contains(c.refused("exec", {"argv": []}), "must name a program")
		contains(c.refused("exec", {"command": ":", "env": {"A=B": "c"}}), "'='")
		contains(c.refused("exec", {"command": ":", "env": {"CARREL_SESSION": "x"}}), "carrel itself")
		contains(c.refused("read", {"path": ""}), "No such file")
		c.write(b"\n  \n\r\n")
		same(c.ask("ping")["result"], {})
		same(c.close(), ([], 0))
END
}

@test "a line of 100 MB is refused, and not kept" {
	python <<'END'
		c = Client()
		c.start()
		block = b"x" * (1 << 20)
		c.write(b'{"jsonrpc":"2.0","id":1,"method":"')
		for _ in range(100):
			c.write(block)
		c.write(b'"}\n')
		error = c.answer(None)["error"]
		same(error["code"], -32600)
		contains(error["message"], "16 MiB")
		same(c.ask("ping")["result"], {})
		if c.high_water_kib() > 64 << 10:
			fail(f"{c.high_water_kib()} KiB for a line that is skipped")
		same(c.close(), ([], 0))
END
}

@test "an id that is in use is refused; the call that has it goes on" {
	python <<'END'
		c = Client()
		c.start()
		params = {"name": "exec", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done; echo done"}}
		c.request("tools/call", params, id="a")
		c.request("ping", id="a")
		same(c.answer("a")["error"]["code"], -32600)
		open("go", "w").close()
		same(c.answer("a")["result"]["structuredContent"]["stdout"], "done\n")
		same(c.close(), ([], 0))
END
}

@test "a client that does not read makes nobody hold more" {
	python <<'END'
		c = Client()
		c.start()
		request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n'
		sent = 0
		quiet = time.monotonic()
		pending = b""
		while time.monotonic() - quiet < 1.0 and sent < 200000:
			pending = pending or request % (sent + 1)
			done = c.write_some(pending)
			pending = pending[done:]
			if done:
				quiet = time.monotonic()
				sent += not pending
		if sent == 200000:
			fail("everything was taken")
		if c.high_water_kib() > 48 << 10:
			fail(f"{c.high_water_kib()} KiB are held")
		for i in range(1, sent + 1):
			message = c.line()
			same((message["id"], "result" in message), (i, True))
			c.heard.clear()
		if pending:
			c.write(pending)
			same("result" in c.answer(sent + 1), True)
		same(c.ask("ping")["result"], {})
		same(c.close(), ([], 0))
END
}

@test "requests from a file are answered, all of them" {
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo from a file"}}}' \
		>"$T/requests"
	printf '{"jsonrpc":"2.0","id":3,"method":"ping"}' >>"$T/requests" # and no newline
	run --separate-stderr sh -c '"$CARREL" mcp <"$T/requests"'
	assert_status 0
	[[ $(jq -r 'select(.id == 2).result.structuredContent.stdout' <<<"$output") == "from a file" ]] ||
		fail 'no answer to the call'
	[[ $(jq -c 'select(.id == 3).result' <<<"$output") == '{}' ]] || fail 'no answer to the ping'
	run --separate-stderr sh -c '"$CARREL" mcp <"$T/requests" >"$T/answers"'
	assert_status 0
	[[ $(jq -s length "$T/answers") == 3 ]] || fail 'not three answers in the file'
	assert_nothing_left
}

# assert_no_server ERE: one clear line (and perhaps a hint) instead of a server. What had been begun of
# the session ends by itself, after the word has come.
assert_no_server() {
	assert_status 125
	[[ -z $output ]] || fail 'something was written to stdout'
	assert_matches "$stderr" "$1"
	(($(grep -vc '^carrel: hint: ' <<<"$stderr") == 1)) || fail 'not one line'
	await_nothing_left
}

@test "settings that are wrong: no server, one clear line" {
	carrel mcp --no-such-setting </dev/null
	assert_no_server '^carrel: .*no-such-setting'
	carrel mcp --workspace "$T/missing" </dev/null
	assert_no_server '^carrel: .*missing'
	carrel mcp WORD </dev/null
	assert_no_server '^carrel: .carrel mcp. takes settings alone: WORD'
	carrel mcp --help </dev/null
	assert_status 0
	assert_matches "$output" '^usage: carrel mcp'
}
