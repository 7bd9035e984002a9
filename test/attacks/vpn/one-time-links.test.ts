/**
 * Somebody reads the mail, the chat or the history with a one-time link to the files of a peer:
 * after its owner has opened it, before, or by guessing. Real gateways and a real owner.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { PeerLinkView, RedeemedLink } from '../../../schemas/api/peer-link.ts';
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import { limits } from '../../../schemas/limits.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { newToken } from '../../../gateway/auth/random-tokens.ts';
import { recordingLog, stoppableClock } from '../../gateway/support.ts';
import { runGateway, startGround, startOwnerOn } from '../../integration/gateway/support.ts';

t.setTimeout(120_000);

const ground = await startGround(t);
await startOwnerOn(t, ground);
const log = recordingLog();
const env = {
  VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  VPN_DEFAULT_NETWORK: 'office',
  PUBLIC_URL: 'https://vpn.test',
};
const gateways = await Promise.all([runGateway(t, ground, { env, log }), runGateway(t, ground, { env, log })]);
const [{ url }, { url: otherUrl }] = gateways;
const [acme, rival, operator] = await Promise.all([
  ground.issuer.mint({ tenant_id: 'acme' }),
  ground.issuer.mint({ tenant_id: 'rival' }),
  ground.issuer.mint({ scope: 'operator' }),
]);

interface Answer<T> {
  readonly status: number;
  readonly text: string;
  readonly data: T;
  readonly headers: Headers;
}

async function call<T>(token: string, method: string, path: string, body?: object): Promise<Answer<T>> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const { data } = (text === '' ? {} : JSON.parse(text)) as { data: T };
  return { status: answer.status, text, data, headers: answer.headers };
}

interface Link extends PeerLinkView {
  readonly url: string;
}
const newVerifier = (): string => randomBytes(32).toString('base64url');
/** The token, as the page reads it: the fragment leaves the browser only in this body. */
const tokenIn = (link: Link): string => new URL(link.url).hash.slice(1);

async function redeem(token: string, verifier: string, at = url): Promise<Answer<RedeemedLink>> {
  const answer = await fetch(`${at}/api/forage/links/redeem`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, verifier }),
  });
  const text = await answer.text();
  const { data } = JSON.parse(text) as { data: RedeemedLink };
  return { status: answer.status, text, data, headers: answer.headers };
}
const alike = ({ status, text, headers }: Answer<unknown>) => [
  status,
  text,
  [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
];
/** The files, from this gateway and not from where PUBLIC_URL leads. */
const statusesOf = async ({ config_url, qr_url, profile_url, p12_url }: RedeemedLink): Promise<number[]> => {
  const statuses: number[] = [];
  for (const file of [config_url, qr_url, profile_url, p12_url]) {
    const { status, body } = await fetch(file.replace(env.PUBLIC_URL, url));
    await body?.cancel();
    statuses.push(status);
  }
  return statuses;
};
const [served, refusedAll] = [[200, 200, 200, 200], Array<number>(4).fill(401)];

const made = await call(operator, 'POST', '/api/v2/operator/networks', {
  name: 'office',
  endpoint: 'vpn.example.com',
  ipv4_pool: '10.86.0.0/24',
  tenants: ['acme', 'rival'],
});
t.equal(made.status, 201, made.text);

let peers = 0;
async function newPeer(tenant = acme) {
  const { status, text, data } = await call<{ id: string }>(tenant, 'POST', '/api/forage/peers', {
    name: `peer-${peers++}`,
  });
  if (status !== 201) throw new Error(text);
  const path = `/api/forage/peers/${data.id}`;
  const link = async (body: object = {}): Promise<Link> => {
    const answer = await call<Link>(tenant, 'POST', `${path}/links`, body);
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.data;
  };
  return { id: data.id, path, link };
}

t.test('the browser that comes first has the files, at every gateway; all others are refused alike', async (t) => {
  const { id, path, link } = await newPeer();
  const [mine, theirs] = [newVerifier(), newVerifier()];
  const one = await link();
  t.match(one.url, /^https:\/\/vpn\.test\/vpn#lsl_\d+_[\w-]{43}$/);
  const first = await redeem(tokenIn(one), mine);
  t.equal(first.status, 200, first.text);
  t.match(first.data, { peer_id: id, network: 'office', state: 'active' });
  t.equal(first.headers.get('cache-control'), 'no-store');
  t.same(await statusesOf(first.data), served);
  t.same((await redeem(tokenIn(one), mine, otherUrl)).data, first.data, 'the same answer again');
  t.same((await redeem(tokenIn(one), mine)).text, first.text, 'it may be sent again after a lost answer');

  const junk = await redeem('x', mine);
  t.same([junk.status, junk.text], [401, '{"error":"unauthenticated"}']);
  const expected = alike(junk);
  t.same(alike(await redeem(tokenIn(one), theirs)), expected, 'a second browser');
  t.same(alike(await redeem(tokenIn(one), theirs, otherUrl)), expected, 'a second browser, at another gateway');
  t.same(alike(await redeem(newToken('link', 0).text, theirs)), expected, 'a guess');
  t.same(alike(await redeem(first.data.download_token, mine)), expected, 'another kind of token');
  t.same(await statusesOf(first.data), served, 'and the first is not disturbed');

  const other = await newPeer();
  const config = `${url}/api/forage/config/${other.id}?token=${first.data.download_token}`;
  t.equal((await fetch(config)).status, 404, 'the token opens this peer alone');
  const asPac = await fetch(`${url}/api/forage/pac?token=${first.data.download_token}`);
  t.equal(asPac.status, 401);
  const asLink = await fetch(`${url}/api/forage/config/${id}?token=${tokenIn(one)}`);
  t.equal(asLink.status, 401, 'a link by itself opens no file');

  const listed = await call<PeerLinkView[]>(acme, 'GET', `${path}/links`);
  t.match(listed.data, [{ id: one.id, redeemed_at: /^20/ }]);
  t.notMatch(listed.text, /url|ls[ld]_/, 'a list shows no URL');
});

t.test('two browsers at one moment: one has it', async (t) => {
  const { link } = await newPeer();
  const token = tokenIn(await link());
  const answers = await Promise.all([url, otherUrl, url, otherUrl].map((at) => redeem(token, newVerifier(), at)));
  t.same(answers.map(({ status }) => status).sort(), [200, 401, 401, 401]);
});

t.test('a link ends: by its time, revoked, with its peer’s keys, while its peer is disabled', async (t) => {
  const verifier = newVerifier();
  const expected = alike(await redeem('x', verifier));
  const { path, link } = await newPeer();
  const expiresAtMs = Date.now() + 2000;
  const short = await link({ expires_at: new Date(expiresAtMs).toISOString() });
  const [revoked, used, waiting] = [await link(), await link(), await link()];
  const { data } = await redeem(tokenIn(used), verifier);
  t.same(await statusesOf(data), served);

  t.equal((await call(rival, 'DELETE', `${path}/links/${used.id}`)).status, 404, 'another tenant revokes nothing');
  t.equal((await call(rival, 'GET', `${path}/links`)).status, 404);
  t.equal((await call(rival, 'POST', `${path}/links`, {})).status, 404);
  t.equal((await call(acme, 'DELETE', `${path}/links/${revoked.id}`)).status, 204);
  t.same(alike(await redeem(tokenIn(revoked), verifier)), expected, 'revoked');
  await sleep(Math.max(0, expiresAtMs - Date.now() + 100));
  t.same(alike(await redeem(tokenIn(short), verifier)), expected, 'expired');

  t.equal((await call(acme, 'PATCH', path, { enabled: false })).status, 200);
  t.same(alike(await redeem(tokenIn(waiting), verifier)), expected, 'of a disabled peer');
  t.same(alike(await redeem(tokenIn(used), verifier)), expected);
  t.same(await statusesOf(data), refusedAll);
  t.equal((await call(acme, 'PATCH', path, { enabled: true })).status, 200);
  t.same(await statusesOf(data), served, 'enabled again, as for other tokens');

  t.equal((await call(acme, 'POST', `${path}/rotate`)).status, 200);
  t.same(await statusesOf(data), refusedAll, 'after a rotation');
  for (const one of [used, waiting]) t.same(alike(await redeem(tokenIn(one), verifier)), expected, 'rotated');
  const next = await link();
  t.equal((await redeem(tokenIn(next), verifier)).status, 200, 'a new link has the new keys');
  t.equal((await call(acme, 'DELETE', `${path}/links/${next.id}`)).status, 204, 'revoked after it was used');
  t.same(alike(await redeem(tokenIn(next), verifier)), expected);
});

t.test('the same link of another tenant’s peer says nothing of it', async (t) => {
  const [own, theirs] = [await newPeer(), await newPeer(rival)];
  const foreign = await theirs.link();
  t.equal((await call(acme, 'DELETE', `${own.path}/links/${foreign.id}`)).status, 404);
  const { status, data } = await redeem(tokenIn(foreign), newVerifier());
  t.same([status, data.peer_id], [200, theirs.id]);
});

t.test('a wrong body is refused without a word of what was sent', async (t) => {
  const post = async (body: string) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/forage/links/redeem`, { method: 'POST', headers, body });
    return { status: answer.status, text: await answer.text() };
  };
  const { path, link } = await newPeer();
  const token = tokenIn(await link());
  const verifier = newVerifier();
  const rows: readonly (readonly [body: object, status: number, details?: object])[] = [
    [{ token }, 422, { verifier: ["can't be blank"] }],
    [{ verifier }, 422, { token: ["can't be blank"] }],
    [{ token, verifier: 'short' }, 422, { verifier: ['must be 32 random bytes in base64url: 43 characters'] }],
    [{ token, verifier, peer: 'x' }, 422, { peer: ['is not known'] }],
    [{ token: [token], verifier }, 422, { token: ['must be a string'] }],
    [{ token, verifier, padding: 'x'.repeat(limits.bodyDefaultBytes) }, 413],
  ];
  for (const [body, status, details] of rows) {
    const answer = await post(JSON.stringify(body));
    t.equal(answer.status, status, answer.text);
    if (details !== undefined) t.same(JSON.parse(answer.text), { error: 'invalid', details });
    for (const secret of [token, verifier]) t.notOk(answer.text.includes(secret));
  }
  t.equal((await post('{')).status, 400);
  t.match((await call<PeerLinkView[]>(acme, 'GET', `${path}/links`)).data, [{ redeemed_at: null }], 'it is not used');
  for (const [body, details] of [
    [{ expires_at: '2020-01-01T00:00:00Z' }, { expires_at: ['must be in the future'] }],
    [{ expires_at: '2999-01-01T00:00:00Z' }, { expires_at: ['must be within seven days'] }],
    [{ scope: 'download' }, { scope: ['is not known'] }],
  ]) {
    const { status, text } = await call(acme, 'POST', `${path}/links`, body);
    t.same([status, JSON.parse(text)], [422, { error: 'invalid', details }]);
  }
});

t.test('guesses are limited by address', async (t) => {
  const clock = stoppableClock();
  const limited = { ...env, RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1', RATE_LIMIT_AUTH_FAILURES_BURST: '3' };
  const gateway = await runGateway(t, ground, { env: limited, clock });
  t.teardown(() => clock.goOn());
  clock.stop();
  const { link } = await newPeer();
  const token = tokenIn(await link());
  const verifier = newVerifier();
  const right = async () => (await redeem(token, verifier, gateway.url)).status;
  t.same([await right(), await right()], [200, 200], 'right ones do not count');
  const statuses: number[] = [];
  for (let count = 0; count < 4; count++)
    statuses.push((await redeem(newToken('link', 0).text, verifier, gateway.url)).status);
  t.same(statuses, [401, 401, 401, 429]);
  t.equal(await right(), 429, 'from there also a right one');
  const guess = await fetch(`${gateway.url}/api/forage/pac?token=${newToken('pac', 0).text}`);
  t.equal(guess.status, 401, 'tokens in URLs have a budget of their own');
});

t.test('a request with a key has its URL again; no log and no line of the audit has a secret', async (t) => {
  const { id, path } = await newPeer();
  const create = async () => {
    const answer = await fetch(`${url}${path}/links`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${acme}`,
        'content-type': 'application/json',
        'idempotency-key': `for ${id}`.replace(' ', '-'),
      },
      body: '{}',
    });
    return ((await answer.json()) as { data: Link }).data;
  };
  const one = await create();
  t.same(await create(), one);
  const verifier = newVerifier();
  const { data, headers } = await redeem(tokenIn(one), verifier);
  const requestId = headers.get('x-request-id');
  const audit = await call<AuditLine[]>(acme, 'GET', '/api/v2/audit?limit=500');
  t.match(
    audit.data.filter(({ request_id }) => request_id === requestId),
    [
      {
        action: 'peer.link.redeem',
        outcome: 'done',
        tenant: 'acme',
        by: { tenant: null, subject: null, token: null, address: '127.0.0.1' },
        target: { peer: id, link: one.id },
      },
    ],
    'its tenant sees who opened it',
  );
  const links = audit.data.filter(({ action }) => action === 'peer.link.create').map(({ target }) => target['link']);
  t.ok(links.includes(one.id), 'and who made it');
  const all = await call<AuditLine[]>(operator, 'GET', '/api/v2/operator/audit?limit=500');
  const told = JSON.stringify([log.events, audit.text, all.text]);
  for (const secret of [tokenIn(one), verifier, data.download_token])
    t.notOk(told.includes(secret), 'no secret is told');
  t.match(told, 'peer.link.redeem');
});
