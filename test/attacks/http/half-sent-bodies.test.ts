/**
 * Clients without a token, and tenants with tokens, open more requests than a gateway answers at a
 * time, or fill the memory for bodies, and never finish their bodies. Probes and another tenant's
 * requests must be answered while all of them are open.
 */
import t, { type Test } from 'tap';
import { limits } from '../../../schemas/limits.ts';
import { hiddenRequest } from '../../gateway/smuggling.ts';
import { usualEngines, memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { get, halfPost, openRaw, statusOf, type RawConnection } from '../../gateway/sockets.ts';
import { until } from '../../support/until.ts';

const compute = '/api/v2/compute';
const count = limits.requestsInFlight + 1;
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const attacker = await ground.issuer.mint({ tenant_id: 'attacker' });
const victim = await ground.issuer.mint({ tenant_id: 'victim' });
const json = { 'Content-Type': 'application/json' };

/** Uses so many addresses that no limit of a single address applies. */
function openAll(t: Test, url: string, request: string): RawConnection[] {
  const opened = Array.from({ length: count }, (_, n) => openRaw(url, request, `127.0.1.${1 + (n % 200)}`));
  t.teardown(() => opened.forEach(({ socket }) => socket.destroy()));
  return opened;
}

const bearer = (token: string, bytes: number): Record<string, string> => ({
  ...json,
  Authorization: `Bearer ${token}`,
  'Content-Length': `${bytes}`,
});

/** A create with a large body that comes in two parts: the gateway has to hold the first. */
async function largeCreate(t: Test, url: string, token: string): Promise<number> {
  const body = `${' '.repeat(200_000)}{"name":"large"}`;
  const connection = openRaw(url, halfPost(compute, bearer(token, body.length), body.slice(0, 100_000)));
  t.teardown(() => connection.socket.destroy());
  await statusOf(url, get('/healthz'));
  connection.socket.write(body.slice(100_000));
  await until('a reply', () => connection.status() !== undefined || connection.closed());
  return connection.status() ?? 0;
}

/** The statuses that other clients get at this moment. */
async function othersHear(t: Test, url: string): Promise<void> {
  t.equal(await statusOf(url, get('/healthz')), 200, '/healthz');
  t.equal(await statusOf(url, get('/readyz')), 200, '/readyz');
  t.equal(await statusOf(url, get(compute, victim)), 200, "another tenant's request");
  t.equal(await largeCreate(t, url, victim), 201, "another tenant's create");
}

const statusesOf = (opened: readonly RawConnection[]): (number | undefined)[] =>
  [...new Set(opened.map(({ status }) => status()))].sort();

for (const engine of usualEngines) {
  t.test(`on ${engine}`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });

    await t.test('a stranger gets 401 without sending the rest', async (t) => {
      const opened = openAll(t, url, halfPost(compute, { ...json, 'Content-Length': '100000' }, '{"name":'));
      await until('all connected', () => opened.every(({ socket, closed }) => !socket.connecting || closed()));
      await othersHear(t, url);
      await until('all answered', () => opened.every(({ status, closed }) => status() !== undefined || closed()));
      const statuses = opened.map(({ status }) => status());
      t.ok(statuses.every((status) => status === 401 || status === undefined));
      // A reply can be lost if the connection is closed while more bytes are on their way; most are
      // not.
      t.ok(statuses.filter((status) => status === 401).length > count / 2);
      await until('all closed', () => opened.every(({ closed }) => closed()));
    });

    // The rest is the same code on both engines.
    if (engine === 'node') return;

    await t.test('a tenant takes no more than its share', async (t) => {
      const headers = { ...json, Authorization: `Bearer ${attacker}`, 'Content-Length': '100000' };
      const opened = openAll(t, url, halfPost(compute, headers, '{"name":'));
      await until('many are refused', () => opened.filter(({ status }) => status() === 429).length > count / 3);
      await othersHear(t, url);
      t.ok(
        opened.every(({ status }) => status() === undefined || status() === 429 || status() === 400),
        'the reply is 429, or the time for the body runs out',
      );
    });

    await t.test('strangers on public routes take no permit of a tenant', async (t) => {
      const opened = openAll(t, url, halfPost('/api/v2/hosts/enrol', { ...json, 'Content-Length': '1000' }, '{'));
      await until('most are refused', () => opened.filter(({ status }) => status() === 503).length > count / 2);
      await othersHear(t, url);
      t.equal(await statusOf(url, get('/metrics/forage')), 200, 'nor a permit of public requests without a body');
      t.equal(await statusOf(url, get('/api/v2/openapi.json')), 200);
    });
  });
}

t.test('requests in flight from one address are limited, without streams and waits', async (t) => {
  const { url } = await runGateway(t, ground, {
    env: { LIMIT_REQUESTS_PER_ADDRESS: '4', TRUSTED_PROXIES: '127.0.0.1' },
  });
  const half = halfPost(compute, { ...json, Authorization: `Bearer ${attacker}`, 'Content-Length': '100' }, '{');
  const events: RawConnection[] = [];
  for (let n = 0; n < 8; n++) {
    const stream = openRaw(url, get(`${compute}/events?follow=true`, victim), '127.0.0.9');
    events.push(stream);
    await until('the stream is open', () => stream.status() !== undefined);
  }
  t.same(statusesOf(events), [200], 'streams');
  const held = Array.from({ length: 4 }, () => openRaw(url, half, '127.0.0.9'));
  t.teardown(() => [...events, ...held].forEach(({ socket }) => socket.destroy()));
  await until('one too many', async () => (await statusOf(url, get(compute, victim), '127.0.0.9')) === 429);
  t.equal(await statusOf(url, get('/healthz'), '127.0.0.9'), 200, 'probes');
  t.equal(await statusOf(url, get(compute, victim), '127.0.0.10'), 200, 'another address');

  const through = (client: string, request: string): string =>
    request.replace('Host: a', `Host: a\r\nX-Forwarded-For: ${client}`);
  const behind = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4'].map((client) =>
    openRaw(url, through(client, half)),
  );
  t.teardown(() => behind.forEach(({ socket }) => socket.destroy()));
  const asked = (client: string): Promise<number> => statusOf(url, through(client, get(compute, victim)));
  await until('a network of IPv6 is one client', async () => (await asked('2001:db8::5')) === 429);
  t.equal(await asked('2001:db8:0:1::1'), 200, 'another network behind the same proxy');
  t.equal(await statusOf(url, get(compute, victim)), 200, 'the proxy itself');
});

const whole = limits.bodyBytes;
/** Bodies that together exceed the memory for bodies; each lacks its last byte. */
const fullHalves = Math.ceil(limits.bodiesHeldBytes / whole) + 8;

for (const [whose, tokens, addresses, refusal] of [
  ['one tenant', 1, 200, /unfinished request bodies of this tenant fill their 16 MiB/],
  ['one address', 16, 1, /unfinished request bodies from this address fill their 16 MiB/],
] as const) {
  t.test(`unfinished bodies of ${whose} do not fill the memory for all`, async (t) => {
    const { url } = await runGateway(t, ground);
    const attackers = await Promise.all(
      Array.from({ length: tokens }, (_, n) => ground.issuer.mint({ tenant_id: `many-${n}` })),
    );
    const part = ' '.repeat(whole - 1);
    const opened = Array.from({ length: fullHalves }, (_, n) =>
      openRaw(
        url,
        halfPost(compute, bearer(attackers[n % tokens] ?? '', whole), part),
        `127.0.2.${1 + (n % addresses)}`,
      ),
    );
    t.teardown(() => opened.forEach(({ socket }) => socket.destroy()));
    const answered = (): RawConnection[] => opened.filter(({ status }) => status() !== undefined);
    const atMost = limits.bodiesHeldPerTenantBytes / whole;
    await until('those beyond its share are refused', () => answered().length >= fullHalves - atMost);
    await othersHear(t, url);
    // The gateway gives up the bodies that it holds after ten seconds.
    const refused = answered().filter(({ status }) => status() !== 400);
    t.same(statusesOf(refused), [429]);
    t.ok(refused.every(({ text }) => refusal.test(text()) && /retry-after: 1/i.test(text())));
  });
}

t.test('a request keeps its permit until its reply is written', async (t) => {
  const { url } = await runGateway(t, ground, { env: { LIMIT_REQUESTS_PER_ADDRESS: '1' } });
  await until('a second one is refused while a reply waits for the body', async () => {
    const half = openRaw(url, halfPost(compute, { ...json, 'Content-Length': '1000' }, '{'), '127.0.0.11');
    const second = await statusOf(url, get(compute, victim), '127.0.0.11');
    half.socket.destroy();
    return second === 429;
  });
  await until('it is free again', async () => (await statusOf(url, get(compute, victim), '127.0.0.11')) === 200);
});

for (const engine of usualEngines) {
  t.test(`on ${engine}: a stream whose request is not complete ends with its connection`, async (t) => {
    const polls = { streamMs: 20, waitMs: 1000 };
    const { url } = await runGateway(t, ground, { engine, polls });
    const token = await ground.issuer.mint({ exp: Math.ceil(Date.now() / 1000) + 2 });
    const cases = [
      ['chunks that go on', 'Transfer-Encoding: chunked', '2\r\n{}\r\n', hiddenRequest],
      ['chunks that have ended', 'Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n', hiddenRequest],
      ['half of a body', 'Content-Length: 100', '{', `${' '.repeat(99)}${hiddenRequest}`],
    ] as const;
    const endOf = async ([what, framing, part, rest]: (typeof cases)[number]): Promise<void> => {
      const head = get(`${compute}/events?follow=true`, token).trimEnd();
      const stream = openRaw(url, `${head}\r\n${framing}\r\n\r\n${part}`);
      await until(`${what}: an answer`, () => stream.status() !== undefined);
      t.equal(stream.status(), 200, what);
      await until(`${what}: ends with the token`, () => stream.text().includes('unauthenticated'));
      stream.socket.write(rest);
      await until(`${what}: closed`, stream.closed);
      t.equal([...stream.text().matchAll(/HTTP\/1\.1/g)].length, 1, `${what}: nothing behind it is answered`);
    };
    // The parser of node:http is strict, so it keeps the connection after a complete chunked body.
    await Promise.all(cases.filter(([what]) => engine === 'uws' || what !== 'chunks that have ended').map(endOf));
  });
}
