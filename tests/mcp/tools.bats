#!/usr/bin/env bats
# The tools of carrel mcp stay within the walls of the session.
load ../lib/common
load ../lib/live

python() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$CARREL_SOURCE/tests/mcp run --separate-stderr \
		/usr/bin/python3 -c 'import subprocess, sys, textwrap
from raw import *
exec(compile(textwrap.dedent(sys.stdin.read()), "script", "exec"))'
	assert_status 0
}

@test "nothing protected or hidden is read or written, nothing outside" {
	mkdir -p "$WS/.git/hooks" "$HOME/.ssh"
	printf '[core]\n' >"$WS/.git/config"
	echo secret >"$HOME/.ssh/id_test"
	ln -s "$HOME/.ssh/id_test" "$WS/link"
	ln -s /etc/carrel-test "$WS/out"
	mkdir "$WS/hidden" "$WS/bare"
	echo secret | tee "$WS/hidden/file" >"$WS/alone"
	: >"$WS/empty"
	python <<'END'
		ws, home = os.environ["WS"], os.environ["HOME"]
		c = Client("--hide", f"{ws}/hidden", "--hide", f"{ws}/alone")
		c.start()
		for path in (f"{ws}/.git/config", f"{ws}/.git/hooks/post-commit", "/etc/carrel-test",
				f"{ws}/out", "/proc/1/mem", f"{home}/.bashrc", f"{ws}/../base/x",
				f"{ws}/.vscode/tasks.json", f"{ws}/.mcp.json"):
			for append in (False, True):
				c.refused("write", {"path": path, "content": "taken over", "append": append})
		for path in (f"{home}/.ssh/id_test", f"{ws}/link", "/etc/shadow", "/proc/1/environ"):
			result = c.call("read", {"path": path}) # hidden: not there, or empty
			same(result["isError"] or result["structuredContent"]["text"] == "", True)
		# What is hidden is said to be so; what is empty is no refusal.
		for tool, path in (("read", f"{ws}/hidden/file"), ("list", f"{ws}/hidden"), ("read", f"{ws}/alone")):
			contains(c.refused(tool, {"path": path}), f"{path}: the policy hides it: ")
			contains(c.refused(tool, {"path": path}), "command line: --hide")
		contains(c.call("read", {"path": f"{ws}/empty"})["content"][1]["text"], "the file is empty")
		same(c.good("list", {"path": f"{ws}/bare"})["entries"], [])
		contains(c.refused("read", {"path": f"{ws}/nothing"}), "no such file")
		c.refused("read", {"path": "/dev/tty"})
		same(c.good("exec", {"command": "mkfifo f; ls"})["status"], 0)
		c.refused("read", {"path": f"{ws}/f"})
		c.refused("write", {"path": f"{ws}/f", "content": "x"})
		# and the control: what may be done is done
		c.good("write", {"path": f"{ws}/fine", "content": "fine"})
		same(c.good("read", {"path": f"{ws}/fine"})["text"], "fine")
		same(c.close(), ([], 0))
END
	[[ $(<"$WS/.git/config") == '[core]' && ! -e $WS/.git/hooks/post-commit && ! -e $WS/.mcp.json ]]
}

@test "a relative path is in the scratch, and what is written there is nobody's project" {
	python <<'END'
		c = Client()
		c.start()
		scratch = c.good("status")["scratch"]
		same(c.good("write", {"path": "a.sh", "content": "#!/bin/sh\necho ran\n", "executable": True}),
			{"path": f"{scratch}/a.sh", "bytes": 19, "size": 19})
		same(c.good("exec", {"argv": [f"{scratch}/a.sh"]})["stdout"], "ran\n")
		same(c.good("write", {"path": "a.sh", "content": "x", "append": True})["size"], 20)
		same(c.good("write", {"path": "a.sh", "content": "y"})["size"], 1)
		same(c.good("read", {"path": "a.sh"})["text"], "y")
		same(c.good("exec", {"command": 'cat "$CARREL_SCRATCH/a.sh"'})["stdout"], "y")
		c.good("write", {"path": "nul", "content": "a\0b"})
		same(c.good("read", {"path": "nul"})["text"], "a␀b")
		contains(c.refused("write", {"path": "no/such/dir", "content": "x"}), "mkdir -p")
		contains(c.refused("write", {"path": "x", "content": "*", "encoding": "base64"}), "not base64")
		c.good("write", {"path": "half", "content": "a\ud83d"}) # of a character: what cut it in UTF-16 sends that
		same(c.good("exec", {"command": 'cat "$CARREL_SCRATCH/half"', "budget": 100.0})["stdout"], "a\ufffd")
		for what in ({"command": "true"}, {"argv": ["true"]}):
			contains(c.refused("exec", {**what, "cwd": "no/such"}),
				f'`cwd` cannot be entered: "{os.environ["WS"]}/no/such": No such file')
		same(os.listdir(os.environ["WS"]), [])
		names = [e["name"] for e in c.good("list")["entries"]]
		same([n for n in names if n in ("a.sh", "nul", "x")], ["a.sh", "nul"])
END
}

@test "a name is taken as it is: no variable is put in, and no relative one leads out of the scratch" {
	python <<'END'
		c = Client()
		c.start()
		scratch = c.good("status")["scratch"]
		for name in ("$HOME", "${CARREL_SCRATCH}", "~", "$(id)", "*"):
			same(c.good("write", {"path": name, "content": name})["path"], f"{scratch}/{name}")
			same(c.good("exec", {"argv": ["cat", f"{scratch}/{name}"]})["stdout"], name)
			same(c.good("read", {"path": name})["text"], name)
		c.refused("write", {"path": "$CARREL_SCRATCH/file", "content": "x"})
		open(os.environ["WS"] + "/project", "w").close()
		c.good("read", {"path": os.environ["WS"] + "/project"})
		c.refused("read", {"path": "$CARREL_WORKSPACE/project"})
		for name in ("../file", "../tool-results/file", "../../file", "tmp/../../file"):
			c.refused("write", {"path": name, "content": "x"})
		c.good("write", {"path": os.environ["WS"] + "/file", "content": "the control"})
		same(sorted(os.listdir(os.environ["WS"])), ["file", "project"])
END
	[[ ! -e $BASE/file ]]
}

@test "slices of a file, and the whole of it within a budget" {
	python <<'END'
		import re
		c = Client()
		c.start()
		c.good("exec", {"command": "seq 100000 >$CARREL_SCRATCH/seq; printf 'äöü€𝄞x' >$CARREL_SCRATCH/utf"})
		same(c.good("read", {"path": "seq", "lines": "500:502"})["text"], "500\n501\n502\n")
		same(c.good("read", {"path": "utf", "chars": "2:5"})["text"], "öü€𝄞")
		same(c.good("read", {"path": "seq", "bytes": "1:4"})["text"], "1\n2\n")
		whole = c.good("read", {"path": "seq"})
		same((whole["cut"], len(whole["text"]) <= 20000), (True, True))
		result = c.call("read", {"path": "seq"})
		contains(result["content"][-1]["text"], "`chars`")
		# What is cut says how it goes on, from wherever it began.
		for begin in ({}, {"lines": "500:90000"}, {"chars": "-5000:"}, {"bytes": "77:"}):
			first = c.call("read", {"path": "seq", "budget": 1000, **begin})
			unit, part = re.search(r'goes on with "(chars|bytes)": "(\d+:\d+)"', first["content"][-1]["text"]).groups()
			more = c.good("read", {"path": "seq", unit: part})
			same(more["start"], first["structuredContent"]["end"])
			same(len(more["text"]), 1000)
		contains(c.refused("read", {"path": "seq", "lines": "b:a"}), "lines")
		contains(c.refused("read", {"path": "seq", "lines": "1:2", "chars": "1:2"}), "one of")
		contains(c.refused("read", {"path": os.environ["WS"]}), "directory")
END
}

@test "pictures come back as pictures, by their bytes" {
	python <<'END'
		import base64, struct, zlib
		c = Client()
		c.start()

		def write(name, data):
			c.good("write", {"path": name, "content": base64.b64encode(data).decode(), "encoding": "base64"})

		def chunk(name, data):
			return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

		def png(width, height):
			return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
				chunk(b"IDAT", zlib.compress(b"\0" * 2)) + chunk(b"IEND", b""))

		def jpeg(width, height):
			return (b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\0" +
				b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + bytes(range(200)) + b"\xff\xd9")

		def gif(width, height):
			return (b"GIF89a" + struct.pack("<HH", width, height) +
				base64.b64decode("gAAAAAAA////IfkEAQAAAAAsAAAAAAEAAQAAAgFEADs="))

		lossless = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
		lossy = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
		extended = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\x3f\x1f\0" + b"\0\0\0"
		for name, data, kind in (("a.txt", png(1, 1), "image/png"), ("b", jpeg(8000, 1), "image/jpeg"),
				("c", gif(1, 8000), "image/gif"), ("d.png", lossless, "image/webp"), ("e", lossy, "image/webp"),
				("f", extended, "image/webp")):
			write(name, data)
			content = c.call("read", {"path": name})["content"]
			image = next(i for i in content if i["type"] == "image")
			same((image["mimeType"], base64.b64decode(image["data"])), (kind, data))
			# What is not whole no host can show, and it would stay in the conversation.
			for end in {3, 12, len(data) // 2, len(data) - (2 if data[:3] == b"GIF" else 1)}: # without its trailer a GIF is whole
				write("cut", data[:end])
				answer = c.call("read", {"path": "cut"})
				assert all(i["type"] != "image" for i in answer["content"]), (name, end)
			contains(c.refused("read", {"path": "cut"}), "not a whole and valid one")
		# Nor what says that it is larger than any of them takes.
		for data in (png(8001, 1), png(1, 2**32 - 1), jpeg(1, 8001), gif(8001, 1), extended[:24] + b"\x40\x1f\0\0\0\0"):
			write("large", data)
			contains(c.refused("read", {"path": "large"}), "8,000 pixels")
		for data in (png(0, 1), jpeg(1, 0), gif(0, 0)):
			write("none", data)
			contains(c.refused("read", {"path": "none"}), "it is not a whole")
		c.good("exec", {"command": "printf '\\211PNG\\r\\n\\032\\n' >$CARREL_SCRATCH/big; truncate -s 100M $CARREL_SCRATCH/big"})
		contains(c.refused("read", {"path": "big"}), "too large")
END
}

@test "what tools write is harmless where it is shown" {
	python <<'END'
		c = Client()
		c.start()
		evil = r"printf '\033]0;t\a\302\233\342\200\256\377\n'"
		shown = "␛]0;t␇<U+009B><U+202E>\ufffd\n"
		same(c.good("exec", {"command": evil})["stdout"], shown)
		c.good("exec", {"command": evil + ' >"$CARREL_SCRATCH/evil"; cd $CARREL_SCRATCH; touch "$(printf "e\\033v")"'})
		same(c.good("read", {"path": "evil"})["text"], shown)
		names = [e["name"] for e in c.good("list")["entries"]]
		same("e␛v" in names, True)
		c.good("pad", {"action": "write", "content": "\033[2J"})
		contains(c.call("pad", {"action": "read"})["content"][0]["text"], "␛[2J")
END
}

@test "the client's roots are shown, and change nothing" {
	python <<'END'
		c = Client()
		c.start(capabilities={"roots": {"listChanged": True}})
		while (message := c.line()) and message.get("method") != "roots/list":
			pass
		c.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": [{"uri": "file:///etc"}]}})
		status = c.good("status")
		same((status["roots"], status["workspace"]), (["file:///etc"], os.environ["WS"]))
		c.refused("write", {"path": "/etc/carrel-test", "content": "x"})
END
}

@test "status counts all that runs, however much it is" {
	python <<'END'
		c = Client()
		c.start()
		session = c.good("status")["session"]
		client = [sys.executable, os.environ["PYTHONPATH"] + "/../lib/control_client.py", session]
		# More than a record of the control protocol holds.
		subprocess.run([*client, "many", "440", "sh", "-c", "sleep 1000 #" + '"' * 50], check=True)
		status = c.good("status")
		same((status["executions_running"], status["executions_total"]), (440, 440))
		same(c.close(), ([], 0))
END
	assert_nothing_left
}

@test "a refusal says what is so, and where it is" {
	python <<'END'
		c = Client()
		c.start()
		ws = os.environ["WS"]
		def text(name, arguments):
			result = c.call(name, arguments)
			same(result["isError"], True)
			return result["content"][0]["text"]
		said = text("exec", {"command": "pwd", "cwd": "nowhere"})
		contains(said, f'"{ws}/nowhere"')
		contains(said, "in the workspace")
		contains(text("exec", {"command": ": " + "x" * 200000}), "a file in the scratch")
		contains(text("list", {"path": "/etc/passwd"}), "It is a file, not a directory")
		contains(text("write", {"path": "/etc/carrel-test", "content": "x"}), "cannot be written: readable. ")
		contains(text("write", {"path": f"{ws}/.mcp.json", "content": "x"}), "cannot be written: protected; ")
		# Of several artifacts, which of them stay; and the tool's own word for what would help.
		for name in ("one", "two"):
			c.good("write", {"path": name, "content": name})
		said = text("promote", {"sources": ["one", "missing"], "destination": ws})
		contains(said, f"only the files with an arrow were promoted: one -> {ws}/one\n")
		contains(said, "cannot find the artifact: missing")
		same(open(f"{ws}/one").read(), "one")
		said = text("promote", {"sources": ["two"], "destination": f"{ws}/one"})
		contains(said, "nothing was promoted: ")
		contains(said, "hint: `overwrite` replaces it")
		same("--force" in said, False)
		c.good("promote", {"sources": ["two"], "destination": f"{ws}/one", "overwrite": True})
		same(open(f"{ws}/one").read(), "two")
		# Ended by a limit, with an output and status 0: again where the shell was slower than its time.
		line = "exec 2>/dev/null; trap 'echo told; exit 0' TERM; while :; do sleep 0.1; done"
		for seconds in (1, 4, 16, 64):
			result = c.call("exec", {"command": line, "timeout_seconds": seconds})
			if result["structuredContent"]["signal"] is None:
				break
		same(result["content"][0]["text"], "told\n[exit status 0; limit: timeout]\n")
		# A file that says it has a page, and has a few characters.
		read = c.good("read", {"path": "/sys/devices/system/cpu/online"})
		same((read["cut"], read["end"]), (False, len(read["text"])))
		same(c.close(), ([], 0))
END
}

@test "with some hosts allowed a result and status say so, and status what was added since" {
	python <<'END'
		c = Client("--allow", "example.org", "--net-live", "--net-resolver", "127.0.0.1:9")
		contains(c.start()["instructions"], "\nCommands reach only the hosts that the user has allowed: example.org. Do not retry others")
		result = c.call("exec", {"command": "python3 -c 'import socket; socket.getaddrinfo(\"other.org\", 443)'"})
		same(result["structuredContent"]["notes"], ["this session reaches only what `status` lists as allowed. Refused: other.org. Do not retry it: say what you need"])
		same("notes" in c.call("exec", {"command": "echo 'npm error code ENOTFOUND' >&2; exit 1"})["structuredContent"], False)
		result = c.call("exec", {"command": "python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 443)'"})
		same(result["structuredContent"]["notes"], ["an allowed name could not be resolved: example.org: Connection refused. If it is needed, say so"])
		same(c.good("status")["allow"], ["example.org:80,443"])
		same(c.good("status")["refused"], ["other.org"])
		contains(c.call("status", {})["content"][0]["text"], "network: refused so far, do not retry: other.org\n")
		session = c.good("status")["session"]
		subprocess.run([os.environ["CARREL"], "session", "allow", "-s", session, "other.org:443"], check=True)
		status = c.good("status")
		same((status["net"], status["allow"], status["allow_more"], status["refused"]), ("allow", ["other.org:443", "example.org:80,443"], 0, []))
		result = c.call("status", {})
		contains(result["content"][0]["text"], "network: these hosts and no others: other.org:443 example.org:80,443\n")
END
}

@test "a result says what would be tried again in vain: the network, and what is in quarantine" {
	python <<'END'
		ws = os.environ["WS"]
		c = Client()
		instructions = c.start()["instructions"]
		contains(instructions, "There is no network but this session's own loopback")
		contains(instructions, "is moved to quarantine")
		def notes(command):
			result = c.call("exec", {"command": command})
			for note in result["structuredContent"].get("notes", []):
				contains(result["content"][0]["text"], "[" + note + "]")
			return result["structuredContent"].get("notes", [])
		no_network = ["this session has no network: do not retry a download or an installation"]
		same(notes("python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'"), no_network)
		same(notes("! python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))' 2>/dev/null; exit 3"), no_network)
		# The kernel counts, whatever is written. Not where it did not fail, nor where it failed of something else.
		same(notes("! python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'"), [])
		same(notes("echo 'npm error code ENOTFOUND' >&2; exit 1"), no_network) # of the command before
		same(notes("echo 'npm error code ENOTFOUND' >&2; exit 1"), [])
		same(notes("ls /nowhere"), [])
		said, = notes(f"echo x >{ws}/.envrc")
		contains(said, f"{ws}/.envrc is protected: what was made there was moved to {ws}/.carrel-quarantine-")
		same(notes("true"), [])
		said, = notes(f"echo y >{ws}/.envrc; false")
		contains(said, f"{ws}/.envrc is protected")
		same(notes(f"touch {ws}/.mcp.json {ws}/.bashrc").__len__(), 2)
		c.close()
		c = Client("--net", "host")
		contains(c.start()["instructions"], "Commands have this machine's network.")
		same(notes("echo 'Could not resolve host' >&2; exit 6"), [])
		same(c.close(), ([], 0))
END
	rm -rf "$WS"/.carrel-quarantine-*
}
