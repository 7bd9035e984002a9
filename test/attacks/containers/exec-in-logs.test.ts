/**
 * Somebody reads the logs of Longshore's programs, its traces or its audit, and looks for what
 * tenants run and type in their containers, such as passwords: also in what fails, at the level
 * `debug`.
 */
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import type { ContainerId } from '../../../schemas/ids.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { startRig } from '../../e2e/support/rig.ts';
import { ask, open, refused } from '../../integration/sessions/client.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const mark = 'hunter2-the-password';

/** A receiver of spans, and all that it was sent. */
async function startReceiver(t: Test): Promise<{ readonly url: string; readonly sent: () => string }> {
  const chunks: Buffer[] = [];
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, sent: () => Buffer.concat(chunks).toString() };
}

t.test('commands and input in containers', async (t) => {
  const receiver = await startReceiver(t);
  const settings = { LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const rig = await startRig(t, { gateway: settings, actors: settings, agent: settings });
  const acme = await rig.client('acme');
  const small = { cpu_limit: '0.5', mem_limit: '64m' };
  const [container] = await acme.createRunning([{ name: 'web', ...rig.image, ...small }]);
  if (container === undefined) throw new Error('no container');
  const { token } = acme;
  const exec = (command: readonly string[], more: Record<string, string> = {}, id = container.id): string => {
    const query = new URLSearchParams(more);
    for (const part of command) query.append('command', part);
    return `${rig.baseUrl}${compute}/${id}/exec?${query}`;
  };
  const run = (body: object, headers: Record<string, string> = {}) =>
    acme.call('POST', `${compute}/${container.id}/runs`, body, headers);
  const others = await rig.client('rival');
  const reader = await rig.client('acme', 'read');

  await t.test('sessions that succeed', async (t) => {
    const session = await open(exec(['sh', '-c', `echo ${mark}; exec cat`], { stdin: 'true' }), { token });
    await session.send(Buffer.from(`typed ${mark}\n`));
    session.say({ type: 'end' });
    t.match(await session.control('exit'), { code: 0 });
    await session.closed();
    t.equal(session.bytes(1).toString(), `${mark}\ntyped ${mark}\n`);
    t.match(await run({ command: ['echo', mark] }), { status: 200, body: { data: { stdout: `${mark}\n` } } });
  });

  await t.test('sessions that fail on their host', async (t) => {
    for (const [command, more] of [
      [[`/${mark}`], {}],
      [['id'], { workdir: `/${mark}` }],
      [['id'], { user: mark }],
    ] as const) {
      const session = await open(exec(command, more), { token });
      t.match(await session.control('exit'), { code: /12[67]/ });
      await session.closed();
    }
    t.match(await run({ command: [`/${mark}`] }), { status: 200 });
    t.match(await run({ command: ['sh', '-c', `sleep 60; : ${mark}`], timeout: 1 }), { status: 504 });
  });

  await t.test('sessions that are refused', async (t) => {
    const path = exec(['echo', mark]);
    const elsewhere = '01930000-0000-7000-8000-000000000000' as ContainerId;
    const statuses = [
      await refused(path, {}),
      await refused(path, { token: others.token }),
      await refused(path, { token: reader.token }),
      await refused(path, { token, protocols: [mark] }),
      await refused(exec(['echo', mark], { tty: mark }), { token }),
      await refused(exec(['echo', mark], { other: mark }), { token }),
      await refused(exec(['echo', mark], {}, elsewhere), { token }),
    ].map(({ status }) => status);
    t.ok(
      statuses.every((status) => status >= 400 && status < 500),
      statuses.join(),
    );
    t.match(await fetch(path, { headers: { authorization: `Bearer ${token}` } }), { status: 426 });
    t.match(await run({ command: [mark], other: mark }), { status: 422 });
    t.match(await run({ command: [mark] }, { 'if-match': mark }), { status: /4\d\d/ });
    t.match(await run(`{"command":["${mark}"` as unknown as object), { status: 400 });
  });

  await t.test('sessions that end early: a wrong control message, a client that leaves, a lost host', async () => {
    const wrong = await open(exec(['cat'], { stdin: 'true' }), { token });
    wrong.say({ type: mark, [mark]: mark });
    await wrong.closed();
    const left = await open(exec(['sh', '-c', `echo ${mark}; cat`], { stdin: 'true' }), { token });
    await left.send(Buffer.from(mark));
    left.socket.terminate();
    const lost = await open(exec(['sh', '-c', `echo ${mark}; cat`], { stdin: 'true' }), { token });
    await lost.send(Buffer.from(mark));
    await rig.agent.kill9();
    await lost.closed();
    await ask(exec(['echo', mark]), { token });
    await rig.agent.start();
    await (await open(exec(['echo', mark]), { token })).closed();
  });

  const logs = [rig.gateway, rig.actors, rig.agent].map((program) => program.server().logFile);
  const sessions = (event: string) => readFileSync(logs[0] ?? '', 'utf8').match(new RegExp(`"${event}"`, 'g')) ?? [];
  await eventually(
    'each session that began has its end in the log',
    () => Promise.resolve([sessions('session_opened').length, sessions('session_ended').length]),
    ([opened, ended]) => opened !== 0 && opened === ended,
  );
  await t.test('is in no log, no trace and no line of the audit', async (t) => {
    const places: [string, string][] = logs.map((path) => [path, readFileSync(path, 'utf8')]);
    const operator = await rig.client('ops', 'operator');
    for (const [client, path] of [
      [acme, '/api/v2/audit'],
      [operator, '/api/v2/operator/audit'],
    ] as const) {
      const { text } = await client.call('GET', `${path}?limit=500`);
      t.match(text, /container\.exec\.ended/);
      places.push([path, text]);
    }
    await eventually(
      'spans',
      () => Promise.resolve(receiver.sent()),
      (sent) => sent.includes('exec'),
    );
    places.push(['traces', receiver.sent()]);
    const percent = encodeURIComponent(mark);
    const base64 = Buffer.from(mark).toString('base64').slice(0, -4);
    for (const [place, text] of places) {
      t.ok(text.length > 1000, place);
      const lines = text.split('\n').filter((line) => [mark, percent, base64].some((form) => line.includes(form)));
      t.same(lines, [], place);
    }
  });
});
