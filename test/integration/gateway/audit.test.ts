/**
 * The log of a gateway names each write that an operator must repeat after a restore, and contains
 * no secret.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { memoryOwner, okData, recordingLog, refusal, serveOwner, type AnswerOf } from '../../gateway/support.ts';
import { runGateway, startGround } from './support.ts';

const ground = await startGround(t);
const otherwise = memoryOwner();
const answers: Partial<Record<Ask['type'], AnswerOf>> = {
  'tenant.revoke': okData({}, 'created'),
  'tenant.put': okData({}),
  'host.update': okData({}),
  'host.remove': okData({}, 'accepted'),
  'host.join_token': okData({ key: 'h1' }),
  'host.enrol': okData({ host: 'h1', region: 'eu', cluster: 'c', natsUrls: [], jwt: 'jwt' }, 'created'),
  'peer.update': okData({ network: 'office', files_changed_at: '2026-11-28T00:00:00.000Z' }),
  'peer.remove': { code: 'no_content', body: '' },
  'peer.token.remove': { code: 'no_content', body: '' },
  'peer.link.remove': { code: 'no_content', body: '' },
  'peer.password': okData({}),
  'secret.remove': { code: 'no_content', body: '' },
  'login.remove': { code: 'no_content', body: '' },
  'network.remove': { code: 'no_content', body: '' },
};
let refusing: AnswerOf | undefined;
serveOwner(ground.nc, (ask) => {
  const answer = answers[ask.type];
  return answer === undefined ? otherwise(ask) : (refusing ?? answer);
});

const log = recordingLog();
const gateway = await runGateway(t, ground, {
  log,
  env: { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`, PUBLIC_URL: 'https://vpn.test' },
});
const peer = randomUUID();
const peerToken = randomUUID();
const joinToken = `lsj_h1_${'s'.repeat(43)}`;
const token = await ground.issuer.mint({ scope: 'operator' });
const audit = () => log.events.filter(({ fields }) => 'outcome' in fields);

interface Case {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly event: string;
  readonly fields: object;
}

const operator = '/api/v2/operator';
const peers = `/api/forage/peers/${peer}`;
const cases: readonly Case[] = [
  {
    method: 'POST',
    path: `${operator}/tenants/beta/revocations`,
    body: { jti: 'token-7', exp: 2_000_000_000 },
    event: 'revoked',
    fields: { tenant: 'beta', match: { jti: 'token-7', exp: 2_000_000_000 } },
  },
  {
    method: 'POST',
    path: `${operator}/tenants/beta/revocations`,
    body: {},
    event: 'revoked',
    fields: { tenant: 'beta', match: {} },
  },
  {
    method: 'PUT',
    path: `${operator}/tenants/beta`,
    body: { regions: ['eu'] },
    event: 'tenant_changed',
    fields: { tenant: 'beta', settings: { regions: ['eu'] } },
  },
  {
    method: 'PUT',
    path: `${operator}/tenants/beta`,
    body: { regions: ['eu'], repair: true },
    event: 'tenant_changed',
    fields: { tenant: 'beta', settings: { regions: ['eu'] }, repair: true },
  },
  { method: 'DELETE', path: `${operator}/hosts/h1`, event: 'host_removed', fields: { host: 'h1' } },
  { method: 'POST', path: `${operator}/hosts/h1/join-token`, event: 'join_token_replaced', fields: { host: 'h1' } },
  {
    method: 'POST',
    path: '/api/v2/hosts/enrol',
    body: { join_token: joinToken, public_key: createUser().getPublicKey() },
    event: 'host_enrolled',
    fields: { host: 'h1' },
  },
  {
    method: 'PATCH',
    path: `${operator}/hosts/h1`,
    body: { renew_expired: false },
    event: 'host_changed',
    fields: { host: 'h1', change: { renew_expired: false } },
  },
  {
    method: 'PATCH',
    path: peers,
    body: { enabled: false },
    event: 'peer_changed',
    fields: { tenant: 'acme', peer, enabled: false },
  },
  {
    method: 'PATCH',
    path: peers,
    body: { expires_at: '2100-01-01T00:00:00.000Z' },
    event: 'peer_changed',
    fields: { tenant: 'acme', peer, expires_at: '2100-01-01T00:00:00.000Z' },
  },
  { method: 'DELETE', path: peers, event: 'peer_removed', fields: { tenant: 'acme', peer } },
  {
    method: 'DELETE',
    path: `${peers}/tokens/${peerToken}`,
    event: 'peer_token_removed',
    fields: { tenant: 'acme', peer, token_id: peerToken },
  },
  {
    method: 'DELETE',
    path: `${peers}/links/${peerToken}`,
    event: 'peer_link_removed',
    fields: { tenant: 'acme', peer, link_id: peerToken },
  },
  {
    method: 'POST',
    path: `/api/forage/p12/${peer}/password`,
    event: 'peer_password_changed',
    fields: { tenant: 'acme', peer },
  },
  {
    method: 'DELETE',
    path: '/api/v2/compute/secrets/db',
    event: 'secret_removed',
    fields: { tenant: 'acme', secret: 'db' },
  },
  {
    method: 'DELETE',
    path: '/api/v2/compute/registries/docker.io',
    event: 'registry_removed',
    fields: { tenant: 'acme', registry: 'docker.io' },
  },
  { method: 'DELETE', path: `${operator}/networks/office`, event: 'network_removed', fields: { network: 'office' } },
];

async function send({ method, path, body }: Pick<Case, 'method' | 'path' | 'body'>, requestId: string) {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'x-request-id': requestId,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text };
}

const secretsIn = (text: string): string[] =>
  ['join_token', 'p12_password'].flatMap((name) => new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1] ?? []);

t.test('each write that a restore undoes makes one event, with its content and without secrets', async (t) => {
  for (const [index, one] of cases.entries()) {
    const requestId = `done-${index}`;
    log.events.length = 0;
    const { status, text } = await send(one, requestId);
    t.ok(status < 300, `${one.event} ${status} ${text}`);
    t.same(audit(), [{ event: one.event, fields: { ...one.fields, outcome: 'done', requestId } }], one.event);
    const said = JSON.stringify(log.events);
    for (const secret of [token, joinToken, ...secretsIn(text)]) t.notOk(said.includes(secret), 'no secret in the log');
  }
});

t.test('a write with an unknown outcome makes an event, too', async (t) => {
  refusing = refusal('unavailable');
  t.teardown(() => (refusing = undefined));
  for (const [index, one] of cases.entries()) {
    const requestId = `unknown-${index}`;
    log.events.length = 0;
    t.equal((await send(one, requestId)).status, 503, one.event);
    t.same(audit(), [{ event: one.event, fields: { ...one.fields, outcome: 'unknown', requestId } }], one.event);
  }
});

t.test('a write that changes nothing about security makes no event', async (t) => {
  log.events.length = 0;
  t.equal((await send({ method: 'PATCH', path: peers, body: { name: 'phone' } }, 'rename')).status, 200);
  t.equal((await send({ method: 'DELETE', path: `${operator}/hosts/h1?force=maybe` }, 'invalid')).status, 422);
  refusing = refusal('not_found');
  t.teardown(() => (refusing = undefined));
  t.equal((await send({ method: 'DELETE', path: peers }, 'nobody')).status, 404);
  t.equal((await send({ method: 'DELETE', path: `${operator}/hosts/h1` }, 'none')).status, 404);
  t.same(audit(), []);
});
