/**
 * A host whose credentials have ended, on a real gateway, owner and NATS server: it comes back by
 * itself, and one that may not is refused as every other.
 */
import { randomUUID } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { createUser } from '@nats-io/nkeys';
import type { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../../actors/cluster.ts';
import type { Owner } from '../../../../actors/owner.ts';
import { createApi } from '../../../../dev/api.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { issuerOf, lifetimeOf, type Identity } from '../../../../host-agent/link/identity/identity.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { quick } from '../../../host-agent/support/agent.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { signedRenewal } from '../../../support/host-user.ts';
import { keysNamed, runKeys } from '../../ops/keys-command.ts';
import { until } from '../../../support/until.ts';
import { ownerOn } from '../../actors/support.ts';
import { controlPlane, runGateway, startGround } from '../../gateway/support.ts';

t.setTimeout(480_000);
const ttlMs = 6_000;
const operatorApi = '/api/v2/operator';

async function startWorld(t: Test, hostCredentialsTtlMs = ttlMs) {
  const ground = await startGround(t, 2);
  const cluster = await joinCluster(ground.nc, { partitions: ground.partitions, replicas: 1, newId: randomUUID });
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const startOwner = async (): Promise<Owner> => {
    const next = ownerOn({ ...ground, cluster }, nc, { hostCredentialsTtlMs });
    await next.start();
    return next;
  };
  let owner = await startOwner();
  t.teardown(() => owner.stop());
  const gateway = await runGateway(t, ground);
  const token = await ground.issuer.mint({ tenant: 'ops', subject: 'op', scope: 'operator', lifetimeS: 3600 });
  const call = async (method: string, path: string, body?: unknown, isOperator = true) => {
    const response = await fetch(gateway.url + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(isOperator ? { authorization: `Bearer ${token}` } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, json: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
  const engine = await simulatedEngine(t);
  return {
    nats: ground.nats,
    gateway,
    call,
    engine,
    /** Does what a restart of actors does, which reads their files again. */
    restartOwner: async () => {
      await owner.stop();
      owner = await startOwner();
    },
    joinToken: (key: string) => createApi(gateway.url).joinToken(token, { key, region: 'default' }),
  };
}

type World = Awaited<ReturnType<typeof startWorld>>;

function startAgent(t: Test, { gateway, engine }: World, stateDir: string, joinToken = '') {
  const env = {
    ...process.env,
    ...quick,
    DOCKER_HOST: engine.host,
    STATE_DIR: stateDir,
    LONGSHORE_URL: gateway.url,
    LONGSHORE_JOIN_TOKEN: joinToken,
  };
  const child: ChildProcess = spawn(process.execPath, [join(repositoryRoot, 'dist/host-agent/main.js')], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const lines: { readonly event: string; readonly reason?: string }[] = [];
  createInterface({ input: child.stderr! }).on('line', (line) => lines.push(JSON.parse(line) as never));
  const exit = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  const of = (event: string) => lines.filter((line) => line.event === event);
  return {
    of,
    logged: (event: string) =>
      until(
        () => `${event}; last: ${JSON.stringify(lines.slice(-8))}`,
        () => of(event).length > 0,
        undefined,
        60_000,
      ),
    stop: async () => {
      child.kill('SIGTERM');
      await exit;
    },
  };
}

async function refusalsAt(registry: Registry): Promise<number> {
  const metric = await registry.getSingleMetric('longshore_gateway_requests_total')?.get();
  return (metric?.values ?? [])
    .filter(({ labels }) => labels['route'] === 'host.renew' && String(labels['status']) === '401')
    .reduce((sum, { value }) => sum + value, 0);
}

const identityIn = (stateDir: string) => JSON.parse(readFileSync(join(stateDir, 'identity.json'), 'utf8')) as Identity;
const seedIn = (stateDir: string) => new Uint8Array(readFileSync(join(stateDir, 'agent.nk')));

t.test('an agent that was off until its credentials ended comes back, and a fenced one does not', async (t) => {
  const world = await startWorld(t);
  const { call } = world;
  const stateDir = join(temporaryFolder(t), 'agent');
  const token = await world.joinToken('h1');
  const first = startAgent(t, world, stateDir, token);
  await first.logged('session_started');
  await first.stop();
  const ended = (): boolean => (lifetimeOf(identityIn(stateDir).jwt)?.untilMs ?? Infinity) <= Date.now();
  await until('the end of its credentials', ended, undefined, 60_000);

  // The join token is still in its settings, and not valid any more.
  t.match(await call('POST', `${operatorApi}/hosts/h1/join-token`), { status: 201 });
  const second = startAgent(t, world, stateDir, token);
  await second.logged('session_started');
  t.equal(second.of('join_token_refused').length, 1);
  t.ok(second.of('credentials_renewed').length > 0);
  t.notOk(ended());
  const lines = (): Promise<{ readonly json: unknown }> => call('GET', `${operatorApi}/audit?action=host.renew`);
  await until('a line of the audit', async () => ((await lines()).json as { data: unknown[] }).data.length > 0);
  t.match((await lines()).json, { data: [{ action: 'host.renew', outcome: 'done', target: { key: 'h1' } }] });

  await call('DELETE', `${operatorApi}/hosts/h1?force=true`);
  await second.logged('host_fenced');
  await second.logged('credentials_renew_failed');
  await second.stop();
  const third = startAgent(t, world, stateDir);
  await third.logged('credentials_renew_failed');
  await sleep(8_000);
  t.equal(third.of('session_started').length, 0);
  t.equal(third.of('credentials_renew_failed').length, 1, 'said once');
  t.ok(third.of('nats_refused').length <= 2);
  t.match(third.of('credentials_renew_failed')[0]?.reason, /removed or is fenced/);
  const refusals = await refusalsAt(world.gateway.registry);
  t.ok(refusals >= 2 && refusals < 20, `${refusals} attempts, ever more rarely`);
});

t.test('no host is cut off while the signing key of hosts is rotated and revoked', async (t) => {
  const world = await startWorld(t, 3_600_000);
  const folder = dirname(world.nats.hostsAccountFile);
  const env = { NATS_URLS: world.nats.url };
  const [connected, off] = ['connected', 'off'].map((name) => join(temporaryFolder(t), name)) as [string, string];
  const agent = startAgent(t, world, connected, await world.joinToken('h1'));
  const sleeper = startAgent(t, world, off, await world.joinToken('h2'));
  await agent.logged('session_started');
  await sleeper.logged('session_started');
  await sleeper.stop();

  t.match(await runKeys(['rotate', folder, 'hosts-signing'], env), { code: 0 });
  await world.restartOwner();
  const [oldKey, newKey] = keysNamed(folder, 'hosts-signing');
  const isOf = (key?: string) => (): boolean => issuerOf(identityIn(connected).jwt) === key;
  t.ok(isOf(oldKey)());
  await until('credentials by the new key', isOf(newKey));
  const listed = (): Promise<string> => runKeys(['list', folder], env).then(({ out }) => out);
  const count = (text: string, key?: string) => new RegExp(`^hosts-signing +${key} .* (\\d+)$`, 'm').exec(text)?.[1];
  await until('a connection by them', async () => count(await listed(), newKey) === '1');
  t.equal(count(await listed(), oldKey), '0');

  t.match(await runKeys(['revoke', folder, 'hosts-signing'], env), {
    code: 0,
    out: `Revoked: hosts-signing ${oldKey}`,
  });
  const isUp = async (host: string): Promise<boolean> => {
    const { json } = await world.call('GET', `${operatorApi}/hosts/${host}`);
    return (json as { data: { status: string } }).data.status === 'up';
  };
  await until('h1 is up', () => isUp('h1'));
  t.equal(agent.of('nats_refused').length, 0, 'a host that is connected notices nothing');
  const back = startAgent(t, world, off);
  await back.logged('session_started');
  t.ok(back.of('nats_refused').length > 0, 'a host that was off is refused,');
  t.ok(back.of('credentials_renewed').length > 0, 'asks a gateway, and comes back');
  await until('h2 is up', () => isUp('h2'));
});

t.test('each that may not renew gets the same 401', async (t) => {
  const world = await startWorld(t);
  const { call } = world;
  const stateDir = join(temporaryFolder(t), 'agent');
  const agent = startAgent(t, world, stateDir, await world.joinToken('h1'));
  await agent.logged('session_started');
  await agent.stop();
  const seed = seedIn(stateDir);
  const h1 = 'h1' as HostKey;
  const renew = (body: object) => call('POST', '/api/v2/hosts/renew', body, false);
  const good = signedRenewal(seed, h1);
  const renewed = await renew(good);
  t.match(renewed, { status: 200, json: { data: { host: 'h1', region: 'default', jwt: /^e/ } } });

  const patch = (more: object) => call('PATCH', `${operatorApi}/hosts/h1`, more);
  const refusals: [string, () => object | Promise<object>][] = [
    ['a nonce that was used', () => good],
    ['a signature of something else', () => ({ ...signedRenewal(seed, h1), nonce: good.nonce })],
    ['a clock that is late', () => signedRenewal(seed, h1, Date.now() - limits.renewSkewMs - 2_000)],
    ['a clock that is early', () => signedRenewal(seed, h1, Date.now() + limits.renewSkewMs + 2_000)],
    ['an unknown host', () => signedRenewal(seed, 'h2' as HostKey)],
    ['another key', () => signedRenewal(createUser().getSeed(), h1)],
    [
      'an operator forbids it',
      async () => {
        t.match(await patch({ renew_expired: false }), { status: 200, json: { data: { renew_expired: false } } });
        return signedRenewal(seed, h1);
      },
    ],
    [
      'a fenced host',
      async () => {
        t.match(await patch({ renew_expired: true }), { status: 200 });
        t.match(await renew(signedRenewal(seed, h1)), { status: 200 }, 'allowed again');
        t.match(await call('DELETE', `${operatorApi}/hosts/h1?force=true`), { status: 202 });
        return signedRenewal(seed, h1);
      },
    ],
    [
      'a host that was removed',
      async () => {
        t.match(await call('DELETE', `${operatorApi}/hosts/h1?force=true&dead=true`), { status: 202 });
        return signedRenewal(seed, h1);
      },
    ],
  ];
  for (const [name, body] of refusals) {
    t.match(await renew(await body()), { status: 401, text: '{"error":"unauthenticated"}' }, name);
  }
  t.match(await renew({ ...good, nonce: 'short' }), { status: 422 });
});

t.test('renewals are limited by host, and wrong ones by address', async (t) => {
  const world = await startWorld(t);
  const stateDir = join(temporaryFolder(t), 'agent');
  const agent = startAgent(t, world, stateDir, await world.joinToken('h1'));
  await agent.logged('session_started');
  await agent.stop();
  const renew = (body: object) => world.call('POST', '/api/v2/hosts/renew', body, false);
  const seed = seedIn(stateDir);
  const statuses: number[] = [];
  for (let count = 0; count <= limits.renewalsKept; count++) {
    statuses.push((await renew(signedRenewal(seed, 'h1' as HostKey))).status);
  }
  t.same(statuses, [...Array.from({ length: limits.renewalsKept }, () => 200), 429]);
});
