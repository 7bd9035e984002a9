/**
 * Rate limits of tenants and addresses, in one gateway and over several through Redis; and how
 * gateways learn of revocations.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import t from 'tap';
import { startRedis } from '../../../dev/servers/redis.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { isRestoring } from '../../../schemas/records/cluster.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { memoryOwner, recordingLog, revocationsOf, serveOwner, type AnswerOf } from '../../gateway/support.ts';
import { runGateway, startGround, type RunningGateway } from './support.ts';
import { createKey } from '../../gateway/tokens.ts';
import { until } from '../../support/until.ts';

const compute = '/api/v2/compute';

// Before the first test: tap ends a file that has a teardown and nothing to do for a moment.
const ground = await startGround(t);

const owner = memoryOwner();
const revocations: Revocation[] = [];
let revocationsAnswer: ((ask: Extract<Ask, { type: 'revocation.list' }>) => AnswerOf) | undefined;
/** Partitions asked for revocations, and the number of revocations then. */
const asked: string[] = [];
serveOwner(ground.nc, (ask) => {
  if (ask.type === 'revocation.list') {
    asked.push(`${ask.partition}: ${revocations.length}`);
    if (revocationsAnswer !== undefined) return revocationsAnswer(ask);
    return revocationsOf(revocations.filter(({ tenant }) => partitionOf(tenant, ground.partitions) === ask.partition));
  }
  if (ask.type === 'tenant.revoke') revocations.push(ask.revocation);
  return owner(ask);
});
const get = async (url: string, token: string): Promise<Response> => {
  const response = await fetch(`${url}${compute}`, { headers: { authorization: `Bearer ${token}` } });
  await response.text();
  return response;
};
const revoke = async (url: string, tenant: string, body: unknown): Promise<number> => {
  const response = await fetch(`${url}/api/v2/operator/tenants/${tenant}/revocations`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await ground.issuer.mint({ tenant_id: 'ops', scope: 'operator' })}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
};

/** Text for the message of an assertion: the requests of each gateway, and what it knows. */
async function seenBy({ url, registry, nc }: RunningGateway): Promise<string> {
  const counted = /^longshore_gateway_(?:requests_total|revocations|ready|retries_total)\b.*$/gm;
  const lines = (await registry.metrics()).match(counted) ?? [];
  return [url, nc.getServer(), ...lines].join('; ');
}

t.test('a tenant over its rate gets 429, others do not', async (t) => {
  const env = { RATE_LIMIT_TENANT_PER_SECOND: '1', RATE_LIMIT_TENANT_BURST: '5' };
  const { url, registry } = await runGateway(t, ground, { env });
  const token = await ground.issuer.mint();
  const startMs = performance.now();
  const responses = await Promise.all(Array.from({ length: 50 }, () => get(url, token)));
  const refilled = Math.ceil((performance.now() - startMs) / 1000);
  const refused = responses.filter(({ status }) => status === 429);
  const served = responses.length - refused.length;
  t.ok(served >= 5 && served <= 5 + refilled, `${served} served, at most ${refilled} of them refilled`);
  for (const { headers } of refused) t.equal(headers.get('retry-after'), '1');
  t.equal((await get(url, await ground.issuer.mint({ tenant_id: 'other' }))).status, 200);
  t.match(
    await registry.metrics(),
    new RegExp(`longshore_gateway_rate_limited_total\\{limit="tenant"\\} ${refused.length}`),
  );
});

t.test('an address that fails too often is refused before its tokens are verified', async (t) => {
  const env = {
    RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1',
    RATE_LIMIT_AUTH_FAILURES_BURST: '3',
    TRUSTED_PROXIES: '127.0.0.0/8',
  };
  const { url } = await runGateway(t, ground, { env });
  const good = await ground.issuer.mint();
  t.equal((await get(url, good)).status, 200);
  const bad = await ground.issuer.mint({}, { key: await createKey('EdDSA', ground.issuer.keys.EdDSA.kid) });
  const startMs = performance.now();
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 60) statuses.push((await get(url, bad)).status);
  const refilled = Math.ceil((performance.now() - startMs) / 1000);
  const verified = statuses.slice(0, -1);
  t.equal(statuses.at(-1), 429);
  t.ok(verified.every((status) => status === 401));
  t.ok(verified.length >= 3 && verified.length <= 3 + refilled, `${verified.length} verified`);
  t.equal((await get(url, good)).status, 200, 'a token that was verified before is still accepted');
  const elsewhere = await fetch(`${url}${compute}`, {
    headers: { authorization: `Bearer ${bad}`, 'x-forwarded-for': '192.0.2.7' },
  });
  t.equal(elsewhere.status, 401, 'another client of the same proxy');
  t.equal((await fetch(`${url}${compute}`)).status, 401, 'requests without credentials are never limited');
});

t.test('without Redis a revocation holds at once here, and after a restart', async (t) => {
  const { url } = await runGateway(t, ground);
  const token = await ground.issuer.mint({ tenant_id: 'leak', sub: 'mallory' });
  t.equal((await get(url, token)).status, 200);
  t.equal(await revoke(url, 'leak', { sub: 'mallory' }), 201);
  t.equal((await get(url, token)).status, 401);
  asked.length = 0;
  const other = await runGateway(t, ground);
  // Never 200: until the owner of the tenant has said what is revoked, the answer is 503.
  let status = 503;
  await until('the owner is heard', async () => ({ status } = await get(other.url, token)).status !== 503);
  t.equal(status, 401, `a gateway asks the owners at start: ${asked.join()}; ${await seenBy(other)}`);
});

t.test('until the owners have reported revocations, no token is accepted', async (t) => {
  revocationsAnswer = () => ({ code: 'unavailable', body: '' });
  const { url } = await runGateway(t, ground, { untilReady: false });
  const token = await ground.issuer.mint();
  await until('listening', async () => (await fetch(`${url}/healthz`)).status === 200);
  const response = await get(url, token);
  t.equal(response.status, 503);
  t.ok(response.headers.get('retry-after'));
  t.equal((await fetch(`${url}/readyz`)).status, 503);
  t.equal(
    (await get(url, await ground.issuer.mint({ exp: 1 }))).status,
    401,
    'a token that can be refused without owners still is',
  );
  revocationsAnswer = () => ({ code: 'ok', body: '{"data":[{"nonsense":1}]}' });
  t.equal((await get(url, token)).status, 503);
  revocationsAnswer = undefined;
  await until('ready', async () => (await fetch(`${url}/readyz`)).status === 200);
  t.equal((await get(url, token)).status, 200);
});

t.test('only the tenant with a damaged record is refused; all pages are read', async (t) => {
  const asked: (string | null)[] = [];
  let isDamaged = true;
  revocationsAnswer = ({ partition, after }) => {
    if (partition !== partitionOf('broken', ground.partitions)) return revocationsOf([]);
    asked.push(after);
    const all = isDamaged ? ['broken' as TenantId] : [];
    if (after === null) return revocationsOf([], { unreadable: all, more: true, next: '7.1' });
    const late: Revocation = {
      tenant: 'broken' as TenantId,
      match: { by: 'jti', value: 'late' },
      issuedUntilS: 10 ** 10,
      untilMs: 10 ** 13,
    };
    return revocationsOf(isDamaged ? [] : [late], { whole: false, next: '7.2' });
  };
  t.teardown(() => (revocationsAnswer = undefined));
  const log = recordingLog();
  const gateway = await runGateway(t, ground, { log });
  const { url } = gateway;
  t.same([...new Set(asked)].slice(0, 2), [null, '7.1'], await seenBy(gateway));
  t.equal((await get(url, await ground.issuer.mint({ tenant_id: 'whole' }))).status, 200);
  const response = await fetch(`${url}${compute}`, {
    headers: { authorization: `Bearer ${await ground.issuer.mint({ tenant_id: 'broken' })}` },
  });
  t.equal(response.status, 503, await seenBy(gateway));
  t.match(await response.json(), { error: 'unavailable', message: /the record of this tenant is damaged/ });
  t.match(
    log.events.find(({ event }) => event === 'revocations_unreadable'),
    { fields: { tenant: 'broken' } },
  );
  t.equal((await fetch(`${url}/readyz`)).status, 200, 'the gateway is ready');

  isDamaged = false;
  const other = await runGateway(t, ground);
  t.equal((await get(other.url, await ground.issuer.mint({ tenant_id: 'broken' }))).status, 200);
  const late = await ground.issuer.mint({ tenant_id: 'broken', jti: 'late' });
  t.equal((await get(other.url, late)).status, 401, 'a revocation of the second page counts');
});

t.test('only the tenant with too many revocations is refused', async (t) => {
  const tenant = 'noisy' as TenantId;
  const many = Array.from({ length: limits.revocationsPerTenant * 2 + 1 }, (_, n): Revocation => ({
    tenant,
    match: { by: 'jti', value: `token ${n}` },
    issuedUntilS: 10 ** 10,
    untilMs: 10 ** 13,
  }));
  revocationsAnswer = ({ partition }) =>
    revocationsOf(partition === partitionOf(tenant, ground.partitions) ? many : []);
  t.teardown(() => (revocationsAnswer = undefined));
  const { url, registry } = await runGateway(t, ground);
  t.equal((await get(url, await ground.issuer.mint({ tenant_id: tenant }))).status, 503);
  t.equal((await get(url, await ground.issuer.mint({ tenant_id: 'quiet' }))).status, 200);
  t.match(await registry.metrics(), /longshore_gateway_tenants_refused 1/);
});

t.test('with Redis', async (t) => {
  const folder = join(temporaryFolder(t), 'redis');
  mkdirSync(folder);
  const redis = await startRedis({ folder });
  t.teardown(() => redis.stop());
  const env = { ...redis.settings, RATE_LIMIT_TENANT_PER_SECOND: '1', RATE_LIMIT_TENANT_BURST: '40' };
  const log = recordingLog();
  const one = await runGateway(t, ground, { env, log });
  const other = await runGateway(t, ground, { env, log });
  await until('connected', () => log.events.filter(({ event }) => event === 'redis_connected').length === 4);

  const token = await ground.issuer.mint({ tenant_id: 'spread', jti: 'stolen' });
  t.equal((await get(other.url, token)).status, 200);
  t.equal(await revoke(one.url, 'spread', { jti: 'stolen' }), 201);
  await until('heard by the other', async () => (await get(other.url, token)).status === 401);

  const busy = await ground.issuer.mint({ tenant_id: 'busy' });
  t.equal((await get(other.url, busy)).status, 200);
  // The growth of the sum is what other gateways admitted, so a gateway must have read the sum
  // before.
  const shared = new Redis({
    port: redis.port,
    username: 'gateway',
    password: redis.password,
    disableClientInfo: true,
  });
  t.teardown(() => shared.disconnect());
  shared.on('error', () => {});
  const { entry } = await readClusterEntry(ground.nc);
  const key = `longshore:${entry === undefined || isRestoring(entry) ? '' : entry.id}:rate:busy`;
  await until('the sum is known', async () => (await shared.incrby(key, 0)) > 0);
  await until('one gateway refuses', async () => {
    const responses = await Promise.all(Array.from({ length: 20 }, () => get(one.url, busy)));
    return responses.some(({ status }) => status === 429);
  });
  // Two requests a second, while one token a second comes back: the gateway's own burst of 40 would
  // last beyond the deadline.
  const asOther = async (): Promise<boolean> => {
    await sleep(1000);
    const responses = await Promise.all([get(other.url, busy), get(other.url, busy)]);
    return responses.some(({ status }) => status === 429);
  };
  await until('what one gateway let through, the other does not', asOther, undefined, 25_000);

  await redis.server().kill9();
  await until('noticed', () => log.events.some(({ event }) => event === 'redis_unreachable'));
  t.equal(
    (await get(one.url, await ground.issuer.mint({ tenant_id: 'calm' }))).status,
    200,
    'the gateway continues without Redis',
  );
  t.equal(await revoke(one.url, 'calm', {}), 201);
  await sleep(600);
  t.ok(log.events.filter(({ event }) => event === 'redis_unreachable').length <= 4, 'logged once for each connection');
});
