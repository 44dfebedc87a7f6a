// drive.mjs MODULES ERA - every tool of `carrel mcp`, driven by an official client.
//
// MODULES: the directory whose node_modules has the clients. ERA: sdk (the first client, which
// begins with `initialize`), legacy or modern (the second one, either way).
// From the environment: CARREL, and WS, the workspace, which is empty.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [modules, era] = process.argv.slice(2)
const { CARREL, WS } = process.env
const require = createRequire(join(modules, 'package.json'))
const load = (name) => import(pathToFileURL(require.resolve(name)).href)

// --- connecting ------------------------------------------------------------------------------
async function connect() {
	const first = era === 'sdk'
	const { Client } = await load(
		first ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
	const { StdioClientTransport } = await load(
		first ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio')
	const options = { capabilities: first ? { roots: { listChanged: true } } : {} }
	if (!first)
		options.versionNegotiation = { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' }
	const client = new Client({ name: 'drive', version: '1' }, options)
	const logged = []
	if (first) {
		const types = await load('@modelcontextprotocol/sdk/types.js')
		client.setRequestHandler(types.ListRootsRequestSchema,
			async () => ({ roots: [{ uri: 'file:///offered', name: 'offered' }] }))
		client.setNotificationHandler(types.LoggingMessageNotificationSchema,
			(n) => { logged.push(n.params) })
	}
	const transport = new StdioClientTransport({ command: CARREL,
		args: ['mcp', '--workspace', WS], env: { ...process.env }, stderr: 'inherit' })
	await client.connect(transport)
	return { client, logged }
}

const { client, logged } = await connect()
const first = era === 'sdk'
const call = (name, args = {}, options = undefined) => first
	? client.callTool({ name, arguments: args }, undefined, options)
	: client.callTool({ name, arguments: args }, options)
const text = (result) => result.content.map((c) => c.text ?? '').join('')

async function works(name, args, options) {
	const result = await call(name, args, options)
	assert.ok(!result.isError, `${name}: ${text(result)}`)
	return result
}

async function fails(name, args, pattern) {
	const result = await call(name, args)
	assert.equal(result.isError, true, `${name} succeeded: ${text(result)}`)
	assert.match(text(result), pattern)
}

// --- what is offered -------------------------------------------------------------------------
const { tools } = await client.listTools()
assert.deepEqual(tools.map((t) => t.name),
	['exec', 'read', 'write', 'list', 'promote', 'pad', 'status'])
for (const tool of tools) {
	assert.ok(tool.description.length > 20, tool.name)
	assert.equal(tool.inputSchema.type, 'object')
	assert.equal(tool.outputSchema.type, 'object')
	assert.equal(typeof tool.annotations.readOnlyHint, 'boolean')
}
assert.match(client.getInstructions(), /scratch/)

// --- status ----------------------------------------------------------------------------------
const status = (await works('status')).structuredContent
assert.equal(status.workspace, WS)
assert.ok(existsSync(status.scratch))
if (first) {
	await client.setLoggingLevel('debug')
	let roots = status.roots // the server asks for them meanwhile
	for (const end = Date.now() + 120000; roots.length === 0 && Date.now() < end;)
		roots = (await works('status')).structuredContent.roots
	assert.deepEqual(roots, ['file:///offered'])
}

// --- exec ------------------------------------------------------------------------------------
let result = await works('exec', { command: 'echo out; echo err >&2; exit 3' })
assert.equal(result.structuredContent.status, 3)
assert.equal(result.structuredContent.stdout, 'out\n')
assert.equal(result.structuredContent.stderr, 'err\n')
assert.match(text(result), /out\n[^]*err\n[^]*exit status 3/)
result = await works('exec', { argv: ['cat'], stdin: 'given\n', cwd: '.' })
assert.equal(result.structuredContent.stdout, 'given\n')
result = await works('exec', { command: 'pwd; echo "$A"', env: { A: 'b c' } })
assert.equal(result.structuredContent.stdout, `${WS}\nb c\n`)
result = await works('exec', { command: 'sleep 1000', timeout_seconds: 1 })
assert.equal(result.structuredContent.timed_out, true)
result = await works('exec', { command: 'seq 100000', budget: 1000 })
assert.match(result.structuredContent.stdout, /chars omitted — full output saved to /)
const saved = result.structuredContent.stdout_file
result = await works('exec', { command: 'printf "\\033[31mred\\033[0m\\n"' })
assert.equal(result.structuredContent.stdout, '␛[31mred␛[0m\n')
await fails('exec', { argv: ['/no/such/program'] }, /could not be started/)
await fails('exec', { command: 'a', argv: ['b'] }, /either `command`/)
if (first)
	assert.ok(logged.some((l) => /execution/.test(l.data)))

// --- several at once, progress, cancellation ---------------------------------------------------
const many = await Promise.all(Array.from({ length: 8 }, (_, i) =>
	works('exec', { command: `echo ${i}` })))
assert.deepEqual(many.map((r) => r.structuredContent.stdout.trim()),
	['0', '1', '2', '3', '4', '5', '6', '7'])
const progress = []
await works('exec', { command: 'sleep 2.5' }, { onprogress: (p) => progress.push(p) })
assert.ok(progress.length >= 1, 'no progress was told')
assert.match(progress[0].message, /running for/)
const abort = new AbortController()
const cut = call('exec', { command: `touch ${WS}/began; sleep 1000 & sleep 1000` },
	{ signal: abort.signal })
const cancelled = assert.rejects(cut)
while (!existsSync(join(WS, 'began')))
	await new Promise((done) => setTimeout(done, 20))
abort.abort('enough')
await cancelled
for (let left = 1; left > 0;) { // the whole tree ends
	left = Number((await works('exec', { command: 'pgrep -c -x sleep || :' }))
		.structuredContent.stdout)
}

// --- files -----------------------------------------------------------------------------------
result = await works('write', { path: 'note.txt', content: 'one\ntwo\nthree\n' })
assert.equal(result.structuredContent.path, join(status.scratch, 'note.txt'))
result = await works('read', { path: 'note.txt', lines: '2:2' })
assert.equal(result.structuredContent.text, 'two\n')
result = await works('read', { path: saved, lines: '99999:100000' })
assert.equal(result.structuredContent.text, '99999\n100000\n')
await works('write', { path: join(WS, 'kept.txt'), content: 'kept' })
assert.equal(readFileSync(join(WS, 'kept.txt'), 'utf8'), 'kept')
await fails('write', { path: '/etc/carrel-test', content: 'x' }, /may not do that|no such/i)
await fails('write', { path: join(status.tool_results, 'x'), content: 'x' }, /may not do that/)
await fails('read', { path: 'missing' }, /no such file/i)
await fails('read', {}, /`path` is missing/)
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk' +
	'YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64')
await works('write', { path: 'dot.png', content: png.toString('base64'), encoding: 'base64' })
result = await works('read', { path: 'dot.png' })
const image = result.content.find((c) => c.type === 'image')
assert.equal(image.mimeType, 'image/png')
assert.deepEqual(Buffer.from(image.data, 'base64'), png)
result = await works('list')
assert.deepEqual(result.structuredContent.entries.map((e) => e.name).filter((n) => /^(dot|note)/.test(n)),
	['dot.png', 'note.txt'])

// --- promote ---------------------------------------------------------------------------------
await works('promote', { sources: ['dot.png'], destination: WS })
assert.deepEqual(readFileSync(join(WS, 'dot.png')), png)
assert.ok(!existsSync(join(status.scratch, 'dot.png')))
await fails('promote', { sources: ['missing.png'], destination: WS }, /missing\.png/)

// --- pad ------------------------------------------------------------------------------
await works('pad', { action: 'write', section: 'goal', content: 'find it' })
await works('pad', { action: 'append', section: 'findings', content: 'here' })
await works('pad', { action: 'append', section: 'findings', content: 'and there' })
result = await works('pad', { action: 'read' })
assert.deepEqual(result.structuredContent.sections,
	{ goal: 'find it', findings: 'here\nand there' })
await fails('pad', { op: 'read' }, /called `action`, not `op`/)
await fails('pad', { action: 'write', section: 'goal' }, /`content` is missing/)
await works('pad', { action: 'clear' })

// --- wrong, and the end ------------------------------------------------------------------------
await assert.rejects(call('no_such_tool'))
const closed = call('exec', { command: 'sleep 1000' }).catch((e) => e)
await client.close()
await closed
for (const end = Date.now() + 120000; existsSync(status.scratch);) {
	assert.ok(Date.now() < end, 'the session was not torn down')
	await new Promise((done) => setTimeout(done, 50))
}
console.log(`every tool works: ${era}`)
