/** Enrolment by an operator, against a gateway that the test plays. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join as pathOf } from 'node:path';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { join, type Joining } from '../../../host-agent/commands/join.ts';
import { lockStateDir } from '../../../host-agent/lock.ts';
import { settings } from '../../../host-agent/settings.ts';
import { ConfigurationError, readSettings } from '../../../lib/config.ts';
import { createLog } from '../../../lib/log.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { temporaryFolder } from '../../support/folder.ts';

/** Credentials that permit sessions, as this release signs them. */
const jwt = `a.${Buffer.from(JSON.stringify({ nats: { sub: { allow: ['session.h1.U.*'] } } })).toString('base64url')}.c`;

const tokenFor = (host: string): string => `lsj_${host}_${'x'.repeat(43)}`;

/** Answers with these statuses, one after the other, and then with the last. */
async function startGateway(t: Test, ...statuses: number[]) {
  const asked: { readonly join_token: string; readonly public_key: string }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push(JSON.parse(Buffer.concat(chunks).toString()) as (typeof asked)[number]);
      const status = (statuses.length > 1 ? statuses.shift() : statuses[0]) ?? 201;
      const data = { host: 'h1', region: 'eu', cluster: 'c', natsUrls: [], jwt };
      response.writeHead(status).end(JSON.stringify(status === 201 ? { data } : { error: 'unauthenticated' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Nothing listens there. */
async function closedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

function joining(t: Test, url: string, more: Partial<Joining> = {}) {
  const stateDir = pathOf(temporaryFolder(t), 'state');
  const said: string[] = [];
  const env = { STATE_DIR: stateDir, LONGSHORE_URL: url, RETRY_MIN: '1ms', RETRY_MAX: '2ms' };
  const parts: Joining = {
    settings: readSettings(settings, env),
    token: { kind: 'argument', token: tokenFor('h1') },
    url: undefined,
    stdin: Readable.from([]),
    clock: systemClock,
    patienceMs: 60_000,
    say: (line) => said.push(line),
    log: createLog('test', 'silent'),
    ...more,
  };
  return { stateDir, said, parts, identity: pathOf(stateDir, 'identity.json') };
}

async function faultOf(work: Promise<void>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults.join();
    throw error;
  }
  return 'none';
}

t.test('enrols, and keeps the identity; again, beside its agent too, it changes nothing and asks nobody', async (t) => {
  const gateway = await startGateway(t, 503, 201);
  const { parts, said, identity, stateDir } = joining(t, gateway.url);
  await join(parts);
  t.match(said.join('\n'), /Waiting: .*503[^]*enrolled as h1, in region eu of cluster c/);
  t.match(JSON.parse(readFileSync(identity, 'utf8')), { host: 'h1', cluster: 'c' });
  t.equal(gateway.asked.length, 2);
  t.equal(new Set(gateway.asked.map(({ public_key }) => public_key)).size, 1, 'the key on disk');

  const before = readFileSync(identity, 'utf8');
  await join(parts);
  const lock = await lockStateDir(stateDir);
  await join({ ...parts, token: { kind: 'settings' } });
  await lock.stop();
  t.match(said.at(-1), /enrolled already, as h1/);
  t.equal(readFileSync(identity, 'utf8'), before);
  t.equal(gateway.asked.length, 2);
});

t.test('a host whose credentials are of release 0.1.0 is enrolled again', async (t) => {
  const gateway = await startGateway(t);
  const { parts, identity } = joining(t, gateway.url);
  await join(parts);
  const enrolled = readFileSync(identity, 'utf8');
  writeFileSync(identity, enrolled.replace(jwt, 'a.e30.c'));
  await join(parts);
  t.equal(gateway.asked.length, 2);
  t.equal(readFileSync(identity, 'utf8'), enrolled);
});

t.test('the token comes from a file, standard input or the settings', async (t) => {
  const gateway = await startGateway(t);
  const file = pathOf(temporaryFolder(t), 'token');
  writeFileSync(file, `${tokenFor('h2')}\n`);
  const sources: Partial<Joining>[] = [
    { token: { kind: 'file', path: file } },
    { token: { kind: 'stdin' }, stdin: Readable.from([`${tokenFor('h2')}\n`]) },
    {
      token: { kind: 'settings' },
      settings: readSettings(settings, {
        STATE_DIR: pathOf(temporaryFolder(t), 'state'),
        LONGSHORE_JOIN_TOKEN_FILE: file,
      }),
      url: gateway.url,
    },
  ];
  for (const source of sources) await join(joining(t, gateway.url, source).parts);
  t.same(
    gateway.asked.map(({ join_token }) => join_token),
    sources.map(() => tokenFor('h2')),
  );
});

t.test('a token that the gateway refuses', async (t) => {
  for (const [status, words] of [
    [401, /unknown, expired \(a token lasts an hour\) or used already: make a new one with POST .*join-token/],
    [422, /does not have the form/],
  ] as const) {
    const gateway = await startGateway(t, status);
    const { parts, identity } = joining(t, gateway.url);
    t.match(await faultOf(join(parts)), words);
    t.equal(gateway.asked.length, 1, 'no retry can help');
    t.notOk(existsSync(identity));
  }
});

t.test('a gateway that does not answer: says so, and gives up', async (t) => {
  let monotonicMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (monotonicMs += 30_000) };
  const { parts, said } = joining(t, await closedUrl(), { clock });
  t.match(await faultOf(join(parts)), /127\.0\.0\.1.*ECONNREFUSED.*join again with the same token/);
  t.equal(said.length, 1, 'said once');
});

t.test('a token for another host than that of the state folder is not used', async (t) => {
  const gateway = await startGateway(t);
  const { parts } = joining(t, gateway.url);
  await join(parts);
  const fault = await faultOf(join({ ...parts, token: { kind: 'argument', token: tokenFor('h2') } }));
  t.match(fault, /that of host h1, and the token is for host h2/);
  t.equal(gateway.asked.length, 1);
});

t.test('refuses to write beside a running agent, and without a token', async (t) => {
  const gateway = await startGateway(t);
  const { parts, stateDir } = joining(t, gateway.url, { token: { kind: 'settings' } });
  t.match(await faultOf(join(parts)), /a join token is required/);
  const lock = await lockStateDir(stateDir);
  t.match(await faultOf(join(parts)), /another agent runs/);
  await lock.stop();
  t.equal(gateway.asked.length, 0);
});
