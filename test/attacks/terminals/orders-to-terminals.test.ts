/**
 * A tenant, an image, a host or the author of a file puts characters that a terminal obeys into
 * what other people read: a clipboard is written, a screen is cleared, a line is forged. The
 * command line shows them; programs, which read a pipe or JSON, get each text as it is.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { programFile } from '../../../dev/stack/programs.ts';
import { farEnd, type Scripted } from '../../cli/client/server.ts';
import { commandLine } from '../../e2e/support/command-line.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.setTimeout(240_000);

/** Writes the clipboard, clears the screen, begins a line of its own, turns the text around. */
const order = 'a\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m\r\nb\u202ec\u2066\u200f\u061c\u007f';
const shown = String.raw`a\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m\r\nb\u202ec\u2066\u200f\u061c\u007f`;
/** A word that is written with a joiner of zero width. */
const letters = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645';

const data = (value: unknown): Scripted => ({ status: 200, body: { data: value } });
const image = { registry: 'docker.io', repository: 'library/web', tag: '1', digest: null };
const container = { id: 'a', name: order, ...image, status: 'running', host_key: order, ports: [], inserted_at: null };
const event = {
  id: '0-1-0',
  ts: '2026-11-24T12:00:00Z',
  type: 'status',
  name: letters,
  container_id: 'a',
  status: 'running',
  reason: 'unhealthy',
  message: order,
  host_key: null,
  by: { subject: order },
};
const by = { tenant: 't', subject: order, token: null, address: null };
const line = {
  id: '0-1-0',
  ts: '2026-11-24T12:00:00Z',
  action: 'login.put',
  outcome: 'forbidden',
  tenant: 't',
  by,
  request_id: 'r',
  target: { registry: order },
  detail: { fields: [order] },
};
const host = {
  key: 'h1',
  region: 'default',
  status: 'up',
  cordoned: false,
  draining: false,
  used: null,
  faults: [],
  agent_version: order,
};
const refusal = { status: 422, body: { error: 'invalid', details: { name: [order], other: [order] } } };
const peer = { id: 'p', name: order, ipv4: '10.0.0.2/32', state: 'active', network: order, expires_at: null };

const escape = '\u001b';
const coloursOf = (codes: string): RegExp => new RegExp(`${escape}\\[(?:${codes})m`, 'g');

/** Output without our colours and the line ends of a terminal. */
const bare = (out: string): string => out.replace(coloursOf('3[1-3]|90|39'), '').replaceAll('\r\n', '\n');

const range = '\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069';
const obeyed = new RegExp(`[${range}]`);

const cases: readonly (readonly [args: readonly string[], answer: Scripted])[] = [
  [['ps', '-o', 'wide'], data([{ container, labels: { a: order } }])],
  [['events'], data([event])],
  [['trace', 'r'], data([{ ...event, request_id: 'r', generation: 1 }])],
  [['audit', '--all', '-o', 'wide'], data([line])],
  [['host', 'ls', '-o', 'wide'], data([host])],
  [['peer', 'ls', '-o', 'wide'], data([peer])],
  [['tenant', 'get', 'acme'], data({ id: order })],
  [['quota'], refusal],
  [['quota'], { status: 404, body: { error: 'not_found', message: order } }],
];

for (const [args, answer] of cases) {
  t.test(`${args.join(' ')}, answered with ${answer.status}`, async (t) => {
    const { url } = await farEnd(t, answer);
    const { longshore, onTerminal } = commandLine(t);
    const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
    const { out } = await onTerminal(args, [], env);
    t.notMatch(bare(out), obeyed);
    t.match(bare(out), shown, 'a person sees all of it, in its line');
    const piped = await longshore([...args, '--json'], { env });
    if (answer.status === 200)
      t.match(JSON.stringify(JSON.parse(piped.out)), JSON.stringify(order).slice(1, -1), 'a program gets it all');
  });
}

t.test('refusals of host-agent', async (t) => {
  const { typing } = commandLine(t);
  const { out, code } = await typing([process.execPath, programFile('host-agent'), order], []);
  t.equal(code, 2);
  t.match(out, 'there is no command a\\u001b]52;');
  t.notMatch(bare(out), obeyed);
});

t.test('names keep joiners of zero width, and a pipe gets each character', async (t) => {
  const { url } = await farEnd(t, data([event]));
  const { longshore, onTerminal } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
  t.match((await onTerminal(['events'], [], env)).out, letters);
  const { out } = await longshore(['events'], { env });
  t.match(out, `unhealthy: ${order.replace('\r\n', String.raw`\r\n`)}\n`, 'exact, but for the end of a line');
  t.same(JSON.parse(bare((await onTerminal(['events', '--json'], [], env)).out)), event, 'JSON has the same value');
});

t.test('log lines keep their colours, and nothing else', async (t) => {
  const text = `\u001b[31mred\u001b[0m ${order.replace('\r\n', '')}`;
  const [found, lines] = [data([container]), data([{ ts: '', stream: 'stdout', line: text }])];
  const { url } = await farEnd(t, found, lines, found, lines);
  const { longshore, onTerminal } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
  const { out } = await onTerminal(['logs', order], [], env);
  t.match(out, '\u001b[31mred\u001b[0m a\\u001b]52;');
  t.notMatch(out.replace(coloursOf('\\d*'), '').replaceAll('\r\n', '\n'), obeyed);
  t.match((await longshore(['logs', order], { env })).out, text, 'a pipe gets what the container wrote');
});

t.test('a file of a stranger can neither hide nor forge lines of its plan', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'longshore.yml');
  const { url } = await farEnd(t, data([]));
  const { onTerminal } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
  writeFileSync(file, JSON.stringify({ peers: { [order]: { routes: ['10.0.0.0/8'] } } }));
  const plan = await onTerminal(['apply', '--dry-run', '-f', file], [], env);
  t.match(plan, { code: 0, out: `+ peer ${shown}` });
  t.notMatch(bare(plan.out), obeyed);
  writeFileSync(file, JSON.stringify({ containers: { web: { image: `web:1${order}`, [order]: 1 } } }));
  const faults = await onTerminal(['apply', '--dry-run', '-f', file], [], env);
  t.match(faults, { code: 1, out: 'containers.web' });
  t.notMatch(bare(faults.out), obeyed);
});

t.test('a server that begins a sign-in', async (t) => {
  const begun = { handle: 'h', user_code: order, verification_uri: order, expires_in: 600, interval: 0 };
  const choose = { status: 'choose', tenants: [order, 'beta'], handle: 'second' };
  const { url } = await farEnd(t, data(begun), data(choose), data({ status: 'denied' }));
  const { onTerminal } = commandLine(t);
  const { out } = await onTerminal(['login', '--server', url], [[/Tenant \(.*\): /, 'beta\n']]);
  // A question moves the cursor by itself.
  t.notMatch(bare(out), new RegExp(`${escape}\\]|[${'\u0007\u202e\u009b'}]`));
  t.match(out, shown);
});
