/**
 * Strangers, and a tenant with a token, open more requests than a gateway answers at a time and never send their bodies to
 * the end. Probes and another tenant's requests must be answered while all of them are open.
 */
import t, { type Test } from 'tap';
import { limits } from '../../schemas/limits.ts';
import { engines, memoryOwner, runGateway, serveOwner, startGround, until } from '../gateway/support.ts';
import { get, halfPost, openRaw, statusOf, type RawConnection } from '../gateway/sockets.ts';

const compute = '/api/v2/compute';
const count = limits.requestsInFlight + 1;
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const attacker = await ground.issuer.mint({ tenant_id: 'attacker' });
const victim = await ground.issuer.mint({ tenant_id: 'victim' });
const json = { 'Content-Type': 'application/json' };

/** From so many addresses that no limit of one address is what stops them. */
function openAll(t: Test, url: string, request: string): RawConnection[] {
  const opened = Array.from({ length: count }, (_, n) => openRaw(url, request, `127.0.1.${1 + (n % 200)}`));
  t.teardown(() => opened.forEach(({ socket }) => socket.destroy()));
  return opened;
}

/** What others hear at this moment. */
async function othersHear(t: Test, url: string): Promise<void> {
  t.equal(await statusOf(url, get('/healthz')), 200, '/healthz');
  t.equal(await statusOf(url, get('/readyz')), 200, '/readyz');
  t.equal(await statusOf(url, get(compute, victim)), 200, "another tenant's request");
}

const statusesOf = (opened: readonly RawConnection[]): (number | undefined)[] =>
  [...new Set(opened.map(({ status }) => status()))].sort();

for (const engine of engines) {
  t.test(`on ${engine}`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });

    await t.test('strangers hear 401 without sending the rest', async (t) => {
      const opened = openAll(t, url, halfPost(compute, { ...json, 'Content-Length': '100000' }, '{"name":'));
      await until('all connected', () => opened.every(({ socket, closed }) => !socket.connecting || closed()));
      await othersHear(t, url);
      await until('all answered', () => opened.every(({ status, closed }) => status() !== undefined || closed()));
      const statuses = opened.map(({ status }) => status());
      t.ok(statuses.every((status) => status === 401 || status === undefined));
      // A reply can be lost with a connection that is closed while more is on its way; most are not.
      t.ok(statuses.filter((status) => status === 401).length > count / 2);
      await until('all closed', () => opened.every(({ closed }) => closed()));
    });

    // What follows is the same code on both.
    if (engine === 'node') return;

    await t.test('a tenant holds its share and no more', async (t) => {
      const headers = { ...json, Authorization: `Bearer ${attacker}`, 'Content-Length': '100000' };
      const opened = openAll(t, url, halfPost(compute, headers, '{"name":'));
      await until(
        'more are refused than not',
        () => opened.filter(({ status }) => status() === 429).length > count / 3,
      );
      await othersHear(t, url);
      t.ok(
        opened.every(({ status }) => status() === undefined || status() === 429 || status() === 400),
        'answered 429, or waited for until it is too late',
      );
    });

    await t.test('strangers who post where no credentials are needed take no seat of a tenant', async (t) => {
      const opened = openAll(t, url, halfPost('/api/v2/hosts/enrol', { ...json, 'Content-Length': '1000' }, '{'));
      await until('most are refused', () => opened.filter(({ status }) => status() === 503).length > count / 2);
      await othersHear(t, url);
    });
  });
}

t.test('one address has so many requests at a time, streams and waits not among them', async (t) => {
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
