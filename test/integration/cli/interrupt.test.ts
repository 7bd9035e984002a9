/**
 * Ctrl-C, as a process gets it: nothing is left half done, what waits stops waiting, and the exit
 * code is the documented one.
 */
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { exitCodes } from '../../../cli/terminal/errors.ts';
import { commandLine, type Options, type Ran } from '../../e2e/support/command-line.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { farEnd, type Scripted } from '../../cli/client/server.ts';

t.setTimeout(300_000);

/** No status: no answer comes. */
interface Answer extends Partial<Scripted> {
  /** Ctrl-C comes with this request. */
  readonly interrupts?: true;
  /** More may come. */
  readonly isStream?: true;
}

interface Interrupted extends Ran {
  readonly requests: readonly string[];
}

/** Runs a command against a server that answers by method and path. */
async function interrupted(
  t: Test,
  args: readonly string[],
  answers: Readonly<Record<string, Answer>>,
  options: Options = {},
): Promise<Interrupted> {
  let interrupt = (): void => {};
  const requests: string[] = [];
  const { url } = await farEnd(t, (response, { method, path }) => {
    const request = `${method} ${path.replace(/\?.*/, '')}`;
    requests.push(request);
    const { status, headers, body, interrupts, isStream }: Answer = answers[request] ?? { status: 404 };
    if (interrupts === true) interrupt();
    if (status === undefined) return;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.write(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
    if (isStream !== true) response.end();
  });
  const { longshore } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c', ...options.env };
  const ran = await longshore(args, { started: (by) => (interrupt = by), ...options, env });
  t.equal(ran.code, exitCodes.interrupted, `${args.join(' ')}: ${ran.out}${ran.err}`);
  return { ...ran, requests };
}

const compute = '/api/v2/compute';
const containers = '/api/v2/containers';
const ok = (data: unknown): Answer => ({ status: 200, body: { data } });
const never: Answer = { interrupts: true };
const web = { id: '0197c0de-0000-7000-8000-000000000001', name: 'web', status: 'running', env: {} };
const db = { ...web, id: '0197c0de-0000-7000-8000-000000000002', name: 'db' };
const explained = { reason: null, message: null, addresses: [] };
const pending = { id: web.id, status: 'pending', desired: 'running', generation: 1, ...explained };
const atWeb = `${compute}/${web.id}`;
const policy = { [`GET ${atWeb}/policy`]: ok({ restart: 'always', health: null }) };
/** A container that never gets the awaited status. */
const waited = { ...policy, [`GET ${atWeb}/status`]: ok(pending), [`GET ${atWeb}/wait`]: {} };
const listed = { [`GET ${compute}`]: ok([web, db]) };

/** Ctrl-C when this was said. */
const after =
  (text: RegExp): NonNullable<Options['watch']> =>
  ({ out, err }, interrupt) => {
    if (text.test(out + err)) interrupt();
  };

t.test('run: a container is made whole, or not at all', async (t) => {
  const args = ['run', 'web', '--secret', 'A=db', '--restart', 'never'];
  const { requests, err } = await interrupted(t, args, { [`POST ${containers}`]: never });
  t.same(requests, [`POST ${containers}`]);
  t.equal(err, '');
});

t.test('run and update: a container that is waited for goes on', async (t) => {
  const watch = after(/^web: pending/m);
  const run = await interrupted(t, ['run', 'web'], { ...waited, [`POST ${containers}`]: ok(web) }, { watch });
  t.notOk(run.requests.some((request) => request.startsWith('DELETE')));
  const changing = ok({ ...pending, update: { phase: 'pulling' } });
  const update = await interrupted(
    t,
    ['update', 'web', '--cpu', '1.0'],
    {
      ...listed,
      ...waited,
      [`GET ${containers}/${web.id}/spec`]: ok({
        name: 'web',
        image: {},
        env: {},
        process: {},
        policy: {},
        secrets: {},
      }),
      [`PUT ${containers}/${web.id}/spec`]: ok({}),
      [`GET ${atWeb}/status`]: changing,
    },
    { watch },
  );
  t.equal(update.requests.filter((request) => request.startsWith('PUT')).length, 1);
});

t.test('rm: no other container is removed', async (t) => {
  const { requests, err } = await interrupted(t, ['rm', 'web', 'db'], { ...listed, [`DELETE ${atWeb}`]: never });
  t.same(requests, [`GET ${compute}`, `DELETE ${atWeb}`]);
  t.equal(err, '');
});

t.test('apply: before its plan is made, nothing changes', async (t) => {
  const input = 'containers: {web: {image: web}}';
  const list = 'GET /api/v2/containers';
  const { requests } = await interrupted(t, ['apply', '-f', '-'], { [list]: never }, { input });
  t.same(requests, [list]);
});

t.test('commands that wait or follow', async (t) => {
  await interrupted(t, ['wait', 'web'], { ...listed, ...waited, [`GET ${atWeb}/wait`]: never });
  await interrupted(t, ['ps'], { [`GET ${compute}`]: { status: 503, headers: { 'retry-after': '20' }, ...never } });
  const headers = { 'content-type': 'text/event-stream' };
  const event = { ts: 'now', name: 'web', type: 'created', status: null, reason: null, host_key: null };
  const events = { status: 200, headers, body: `id: 1\ndata: ${JSON.stringify(event)}\n\n`, isStream: true } as const;
  const watch = after(/now web created/);
  await interrupted(t, ['events', '-f'], { [`GET ${compute}/events/stream`]: events }, { watch });
  const sample = { at: 'now', cpu_millis: 1, mem_bytes: 1, mem_limit: null, net_rx_bytes: null, net_tx_bytes: null };
  const samples = { ...events, body: `data: ${JSON.stringify({ ...sample, pids: null })}\n\n` };
  await interrupted(
    t,
    ['stats', '-f', 'web'],
    { ...listed, [`GET ${atWeb}/stats/stream`]: samples },
    { watch: after(/^now/m) },
  );
  await interrupted(t, ['exec', 'web', 'sh'], { ...listed, [`GET ${atWeb}/exec`]: never });
  await interrupted(t, ['doctor'], { 'GET /healthz': never });
});

t.test('login, before a person has confirmed it in a browser', async (t) => {
  const begun = { handle: 'h', user_code: 'AB-CD', verification_uri: 'http://at', expires_in: 600, interval: 60 };
  const { url } = await farEnd(t, { status: 200, body: { data: begun } });
  const { config, longshore } = commandLine(t);
  const ran = await longshore(['login', '--server', url, '--tenant', 'acme'], { watch: after(/code AB-CD/) });
  t.match(ran, { code: exitCodes.interrupted, out: '', err: /^Open http:\/\/at in a browser.*\n$/ });
  t.notOk(existsSync(config), 'nobody is signed in');
});

t.test('a command that reads its input', async (t) => {
  const { requests } = await interrupted(
    t,
    ['network', 'set', 'office', '--file', '-'],
    { 'GET /api/v2/operator/networks/office': { ...ok({}), ...never } },
    { typed: [] },
  );
  t.equal(requests.length, 1);
});

t.test('backup: its folder is not left half written', async (t) => {
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  const { port } = await new Promise<AddressInfo>((resolve) =>
    silent.once('listening', () => resolve(silent.address() as AddressInfo)),
  );
  const folder = join(temporaryFolder(t), 'backup');
  const { longshore } = commandLine(t);
  const ran = await longshore(['backup', folder], {
    env: { NATS_URLS: `nats://127.0.0.1:${port}` },
    started: (interrupt) =>
      silent.once('connection', (socket) => {
        t.teardown(() => socket.destroy());
        interrupt();
      }),
  });
  t.equal(ran.code, exitCodes.interrupted, ran.out);
  t.notOk(existsSync(folder));
});
