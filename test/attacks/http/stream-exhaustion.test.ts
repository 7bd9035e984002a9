/**
 * A tenant opens as many streams as it can, reads none of them, and half of its connections are
 * dead. Other tenants still open streams and get their events; the memory of the gateway stays
 * bounded, whatever is published for the attacker; what nobody reads gives its place back.
 */
import { jetstream } from '@nats-io/jetstream';
import t from 'tap';
import { v7 as uuidv7 } from 'uuid';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { memoryOwner, serveOwner, statusEvent, usualEngines } from '../../gateway/support.ts';
import { get, openRaw } from '../../gateway/sockets.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { listen } from '../../support/http/event-stream.ts';
import { until } from '../../support/until.ts';

const events = '/api/v2/compute/events?follow=true';
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const js = jetstream(ground.nc);
const container = uuidv7() as ContainerId;

const publish = (tenant: string, from: number, count: number, text = '') => {
  const message = Array.from({ length: count }, (_, n) => ({
    ...statusEvent(`1-${from + n}-0`, container),
    message: text,
  }));
  return js.publish(subjects.event(tenant as TenantId, container), JSON.stringify(message));
};

for (const engine of usualEngines) {
  t.test(`on ${engine}`, async (t) => {
    const [hostile, victim] = [`hostile-${engine}`, `victim-${engine}`];
    const { url } = await runGateway(t, ground, { engine });
    const tokens = {
      hostile: await ground.issuer.mint({ tenant_id: hostile }),
      victim: await ground.issuer.mint({ tenant_id: victim }),
    };
    const open = (n: number) => {
      const opened = openRaw(url, get(events, tokens.hostile), `127.0.2.${1 + (n % 200)}`);
      t.teardown(() => opened.socket.destroy());
      return opened;
    };

    const all = Array.from({ length: limits.streamsPerTenant + 20 }, (_, n) => open(n));
    await until('replies', () => all.every(({ status }) => status() !== undefined));
    const refused = all.filter(({ status }) => status() === 429);
    t.equal(refused.length, 20, 'a tenant has so many streams and no more, from however many addresses');
    t.match(refused[0]?.text(), /retry-after/i);
    const held = all.filter(({ status }) => status() === 200);

    const theirs = await listen(t, `${url}${events}`, { authorization: `Bearer ${tokens.victim}` });
    t.equal(theirs.response.status, 200, 'another tenant has places of its own');

    for (const { socket } of held) socket.pause();
    const before = process.memoryUsage().rss;
    const text = 'x'.repeat(1000);
    const published = 150;
    for (let round = 0; round < published; round++) await publish(hostile, 1 + round * 64, 64, text);
    await publish(victim, 1, 1);
    await until('the victim has its event', () => theirs.frames.length === 1);
    const grown = process.memoryUsage().rss - before;
    // All that was published, held for each stream, would be 350 MiB.
    const most = 2 * limits.streamsPerTenant * 2 * limits.streamBufferBytes + 192 * 1024 * 1024;
    t.ok(grown < most, `${Math.round(grown / 2 ** 20)} MiB more, of at most ${Math.round(most / 2 ** 20)}`);

    for (const { socket } of held) socket.destroy();
    await until('their places are free again', async () => {
      const next = open(0);
      await until('a reply', () => next.status() !== undefined || next.closed());
      const isOpen = next.status() === 200;
      if (!isOpen) next.socket.destroy();
      return isOpen;
    });
    await publish(victim, 2, 1);
    await until('the victim’s stream goes on', () => theirs.frames.length === 2);
  });
}

t.test('all tenants together, and one address', async (t) => {
  const { url } = await runGateway(t, ground, { env: { LIMIT_STREAMS_PER_ADDRESS: '40' } });
  const tokens = await Promise.all([0, 1, 2].map((n) => ground.issuer.mint({ tenant_id: `many-${n}` })));
  const opened = tokens.flatMap((token) =>
    Array.from({ length: 20 }, () => {
      const connection = openRaw(url, get(events, token), '127.0.3.1');
      t.teardown(() => connection.socket.destroy());
      return connection;
    }),
  );
  await until('replies', () => opened.every(({ status }) => status() !== undefined));
  t.equal(opened.filter(({ status }) => status() === 200).length, 40, 'an address has so many streams');
  const elsewhere = openRaw(url, get(events, tokens[2]), '127.0.3.2');
  t.teardown(() => elsewhere.socket.destroy());
  await until('a reply', () => elsewhere.status() !== undefined);
  t.equal(elsewhere.status(), 200, 'and others have theirs');
  t.ok(limits.streams > limits.streamsPerTenant * 100, 'the process has places for many tenants');
});
