/**
 * Logs, events and waits, read from real streams: the newest, followed, resumed without loss or
 * repetition, and ended.
 */
import { jetstream, type JetStreamClient } from '@nats-io/jetstream';
import { connect } from 'node:net';
import t from 'tap';
import { v7 as uuidv7 } from 'uuid';
import type { Container } from '../../../schemas/api/container.ts';
import { type Event } from '../../../schemas/api/event.ts';
import { compareEvents } from '../../../schemas/event-id.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { TestIssuer } from '../../gateway/tokens.ts';
import {
  usualEngines,
  okData,
  memoryOwner,
  refusal,
  serveOwner,
  statusEvent,
  statusView,
} from '../../gateway/support.ts';
import { runGateway, startGround } from './support.ts';
import { holdToComponent } from '../../support/http/api-answers.ts';
import { hold, listen, type Frame } from '../../support/http/event-stream.ts';
import { until } from '../../support/until.ts';

const compute = '/api/v2/compute';
// The engines run in parallel: most of the time is spent waiting.
t.jobs = 2;
const ground = await startGround(t);
const js: JetStreamClient = jetstream(ground.nc);
const acme = 'acme' as TenantId;

interface Traced {
  history: HostKey[];
  gone: boolean;
}
/** The owner's answers about containers, set by the tests. */
const traces = new Map<string, Traced>();
const statuses = new Map<string, string>();
/** The gateway's asks for the status of each container. */
const statusAsks = new Map<string, number>();
const memory = memoryOwner();
/** The events that the owner has and the stream may not show yet, by tenant; oldest first. */
const recents = new Map<TenantId, readonly string[]>();
const lastEntry = 50;
serveOwner(ground.nc, (ask) => {
  if (ask.type === 'container.trace') {
    const trace = ask.tenant === acme || ask.tenant.startsWith('several-') ? traces.get(ask.id) : undefined;
    return trace === undefined ? refusal('not_found') : okData(trace);
  }
  if (ask.type === 'container.status') {
    const status = statuses.get(ask.id);
    statusAsks.set(ask.id, (statusAsks.get(ask.id) ?? 0) + 1);
    return status === undefined ? refusal('not_found') : okData(statusView(ask.id, status));
  }
  if (ask.type === 'event.recent') {
    const { from } = ask;
    const after = 'after' in from ? from.after : '';
    const known = (recents.get(ask.tenant) ?? []).filter((id) => compareEvents(id, after) > 0);
    const ids = 'after' in from ? known.slice(0, ask.limit) : known.slice(-ask.limit);
    const events = ids.map((id) => statusEvent(id, ask.container ?? anyContainer));
    return okData({ events, by: events.map(() => null), more: ids.length < known.length, last: lastEntry });
  }
  return memory(ask);
});
const anyContainer = uuidv7() as ContainerId;

const newContainer = (...hosts: string[]): ContainerId => {
  const id = uuidv7() as ContainerId;
  traces.set(id, { history: hosts as HostKey[], gone: false });
  return id;
};

const entry = (seq: number): LogEntry => ({
  ts: new Date(seq / 1000).toISOString(),
  stream: seq % 2 === 0 ? 'stdout' : 'stderr',
  line: `line ${seq} \u2028 "ü"`,
  seq,
});

const publishLines = (id: ContainerId, host: string, seqs: readonly number[], tenant = acme) =>
  js.publish(subjects.hostLog(host as HostKey, tenant, id), JSON.stringify({ v: 1, lines: seqs.map(entry) }));

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

const publishEvents = (container: ContainerId, ids: readonly string[], tenant = acme) =>
  js.publish(subjects.event(tenant, container), JSON.stringify(ids.map((id) => statusEvent(id, container))));

/** Content of the frames of an event, each checked against the document. */
function carriedBy<T>(frames: readonly Frame[], wanted: string, component: string): T[] {
  const carried = frames.filter(({ event }) => event === wanted).map(({ data }) => data);
  for (const data of carried) holdToComponent(component, data);
  return carried as T[];
}

const seqsOf = (frames: readonly Frame[]): number[] =>
  carriedBy<LogEntry>(frames, 'log', 'LogEntry').map(({ seq }) => seq);
const idsOf = (frames: readonly Frame[]): string[] => carriedBy<Event>(frames, 'event', 'Event').map(({ id }) => id);

const authorization = async (issuer: TestIssuer, claims = {}) => ({
  authorization: `Bearer ${await issuer.mint(claims)}`,
});

for (const engine of usualEngines) {
  t.test(`on ${engine}`, { buffered: true }, async (t) => {
    const gateway = await runGateway(t, ground, { engine });
    const headers = await authorization(ground.issuer);
    const get = async (path: string): Promise<{ status: number; data: unknown[] }> => {
      const url = `${gateway.url}${compute}${path}`;
      const response = await fetch(url, { headers });
      const text = await response.text();
      hold(url, response, text);
      const body = JSON.parse(text) as { data?: unknown[] };
      return { status: response.status, data: body.data ?? [] };
    };
    const logsOf = async (id: string, query = ''): Promise<number[]> =>
      ((await get(`/${id}/logs${query}`)).data as LogEntry[]).map(({ seq }) => seq);

    await t.test('a list of logs has the newest lines, oldest first, each once', async (t) => {
      const id = newContainer('h1', 'h2');
      t.same(await logsOf(id), []);
      for (let from = 1000; from < 1600; from += 10) await publishLines(id, 'h1', range(from, from + 9));
      await publishLines(id, 'h1', range(1590, 1599)); // sent again after a lost acknowledgement
      await publishLines(id, 'h2', range(1600, 1604));
      await publishLines(id, 'h3', range(1605, 1609)); // never its host
      await publishLines(id, 'h2', range(1700, 1704), 'rival' as TenantId);
      await js.publish(subjects.hostLog('h2' as HostKey, acme, id), 'rubbish');
      t.same(await logsOf(id), range(1555, 1604));
      t.same(await logsOf(id, '?limit=3'), range(1602, 1604));
      t.same(await logsOf(id, '?limit=500'), range(1105, 1604));
      const [first] = (await get(`/${id}/logs?limit=1`)).data;
      t.same(first, entry(1604));
      t.match(await gateway.registry.metrics(), /longshore_gateway_malformed_log_blocks_total [1-9]/);

      traces.set(id, { history: ['h1', 'h2'] as HostKey[], gone: true });
      t.equal((await logsOf(id)).length, 50, 'the lines are readable when the container is gone');
      const rival = await authorization(ground.issuer, { tenant_id: 'rival' });
      t.equal((await fetch(`${gateway.url}${compute}/${id}/logs`, { headers: rival })).status, 404);
    });

    await t.test('the lines of several containers are one list, in pages', async (t) => {
      const [one, other] = [newContainer('h1', 'h2'), newContainer('h1')];
      const tenant = `several-${engine}` as TenantId;
      for (const [id, name] of [
        [one, 'one'],
        [other, 'other'],
      ] as const) {
        memory.containers.set(`${tenant} ${id}`, { id, name, tenant_id: tenant } as Container);
      }
      const several = await authorization(ground.issuer, { tenant_id: tenant });
      await publishLines(one, 'h1', range(1000, 1300), tenant);
      await publishLines(other, 'h1', range(1200, 1400), tenant);
      await publishLines(one, 'h2', range(1301, 1310), tenant);
      await publishLines(other, 'h2', range(1500, 1510), tenant); // never its host
      const page = async (query: string) => {
        const url = `${gateway.url}${compute}/logs?${query}`;
        const response = await fetch(url, { headers: several });
        const text = await response.text();
        hold(url, response, text);
        return JSON.parse(text) as {
          data: { name: string; container_id: string; seq: number }[];
          next_cursor?: string;
        };
      };
      const all = [
        ...range(1000, 1310).map((seq) => ({ seq, id: one, name: 'one' })),
        ...range(1200, 1400).map((seq) => ({ seq, id: other, name: 'other' })),
      ].sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : 1));
      const shown = all.map(({ seq, name }) => `${name} ${seq}`);
      for (const order of ['asc', 'desc']) {
        const lines: string[] = [];
        for (let cursor = ''; ;) {
          const { data, next_cursor: next } = await page(`order=${order}&limit=97${cursor}`);
          lines.push(...data.map(({ name, seq }) => `${name} ${seq}`));
          if (next === undefined) break;
          cursor = `&cursor=${next}`;
        }
        t.same(lines, order === 'asc' ? shown : shown.toReversed(), order);
      }
      t.same((await page('limit=2')).data, [
        { container_id: other, name: 'other', ...entry(1399) },
        { container_id: other, name: 'other', ...entry(1400) },
      ]);
    });

    await t.test('a log stream has the newest lines, then new ones, and resumes by the last number', async (t) => {
      const id = newContainer('h1');
      await publishLines(id, 'h1', range(1, 10));
      const url = `${gateway.url}${compute}/${id}/logs?follow=true&limit=4`;
      const first = await listen(t, url, headers);
      t.equal(first.response.headers.get('content-type'), 'text/event-stream');
      t.ok(first.response.headers.get('x-request-id'));
      await until('the tail', () => first.frames.length === 4);
      await publishLines(id, 'h1', range(11, 12));
      await until('what came', () => first.frames.length === 6);
      t.same(seqsOf(first.frames), range(7, 12));
      t.equal(first.frames.at(-1)?.id, '12');
      first.leave();

      await publishLines(id, 'h1', range(13, 300));
      traces.get(id)?.history.push('h2' as HostKey);
      await publishLines(id, 'h2', range(301, 310));
      const second = await listen(t, url, { ...headers, 'last-event-id': '12' });
      await until('the rest', () => second.frames.length >= 298);
      await publishLines(id, 'h1', range(13, 300)); // a block that was sent again
      traces.get(id)?.history.push('h3' as HostKey);
      await publishLines(id, 'h3', [311]);
      await until('of a host that it has just come to', () => second.frames.length >= 299);
      t.same(seqsOf(second.frames), range(13, 311), 'no line is lost or comes twice');
      second.leave();
    });

    await t.test('a log stream says what cannot be gone on behind, and begins with the oldest line', async (t) => {
      const id = newContainer('h1');
      await publishLines(id, 'h1', range(5, 8));
      const url = `${gateway.url}${compute}/${id}/logs/stream?limit=1`;
      const inTenMinutes = `${(Date.now() + 600_000) * 1000}`;
      const away: [id: string, reason: string][] = [
        ['garbage', 'unknown'],
        [inTenMinutes, 'unknown'],
        ['4', 'expired'],
      ];
      for (const [lastId, reason] of away) {
        const stream = await listen(t, url, { ...headers, 'last-event-id': lastId });
        await until('all that is kept', () => stream.frames.length === 5);
        const [reset, ...rest] = stream.frames;
        t.match(reset, { event: 'reset', data: { reason, oldest: '5' } }, lastId);
        t.same(seqsOf(rest), range(5, 8), lastId);
        stream.leave();
      }
      const resumed = await listen(t, url, { ...headers, 'last-event-id': '5' });
      await until('the rest', () => resumed.frames.length === 3);
      t.same(seqsOf(resumed.frames), range(6, 8));
      resumed.leave();
    });

    await t.test('a log stream ends when the container is gone', async (t) => {
      const id = newContainer('h1');
      await publishLines(id, 'h1', [1]);
      const stream = await listen(t, `${gateway.url}${compute}/${id}/logs?follow=true`, headers);
      await until('the first line', () => stream.frames.length === 1);
      traces.set(id, { history: ['h1'] as HostKey[], gone: true });
      await publishLines(id, 'h1', [2]);
      await until('the end', () => stream.raw.ended);
      t.match(stream.frames.at(-1), { event: 'end', data: { reason: 'done' } });
      t.same(seqsOf(stream.frames), [1, 2]);
    });

    await t.test('the newest events of one container and of all, each once; followed and resumed', async (t) => {
      const tenant = `events-${engine}` as TenantId;
      const ofTenant = await authorization(ground.issuer, { tenant_id: tenant });
      const [one, other] = [uuidv7() as ContainerId, uuidv7() as ContainerId];
      const list = async (query = ''): Promise<string[]> => {
        const response = await fetch(`${gateway.url}${compute}/events${query}`, { headers: ofTenant });
        return ((await response.json()) as { data: Event[] }).data.map(({ id }) => id);
      };
      t.same(await list(), []);
      const publishFirst = async (): Promise<void> => {
        await publishEvents(one, ['1-5-0'], tenant);
        await publishEvents(other, ['1-5-1'], tenant);
        await publishEvents(one, ['1-5-2', '1-6-0'], tenant);
      };
      await publishFirst();
      // The checkpointer died before it had moved its mark, and publishes again.
      await publishFirst();
      await publishEvents(other, ['1-7-0'], tenant);
      t.same(await list(), ['1-5-0', '1-5-1', '1-5-2', '1-6-0', '1-7-0'], 'in the order in which they happened');
      t.same(await list('?limit=2'), ['1-6-0', '1-7-0']);

      const url = `${gateway.url}${compute}/events?follow=true&limit=2`;
      const first = await listen(t, url, ofTenant);
      await until('the tail', () => first.frames.length === 2);
      await publishEvents(one, ['1-8-0', '1-8-1'], tenant);
      await until('what came', () => first.frames.length === 4);
      const [, , middle] = first.frames;
      t.match(middle, { event: 'event', data: { id: '1-8-0' } });
      first.leave();

      await publishEvents(one, ['1-8-0', '1-8-1'], tenant);
      await publishEvents(one, ['1-9-0'], tenant);
      const second = await listen(t, url, { ...ofTenant, 'last-event-id': middle?.id ?? '' });
      await until('the rest', () => second.frames.length === 2);
      t.same(idsOf(second.frames), ['1-8-1', '1-9-0'], 'from the middle of a message on');
      second.leave();
      const away: [id: string, reason: string][] = [
        ['garbage', 'unknown'],
        ['2-8-1', 'unknown'],
        // A restore undid it.
        ['1-80-0', 'unknown'],
        ['1-4-0', 'expired'],
      ];
      for (const [id, reason] of away) {
        const own = await listen(t, `${gateway.url}${compute}/events/stream?limit=1`, {
          ...ofTenant,
          'last-event-id': id,
        });
        await until('all that is kept', () => own.frames.length >= 9);
        const [reset, ...rest] = own.frames;
        t.match(reset, { event: 'reset', data: { reason, oldest: '1-5-0' } }, id);
        t.same(idsOf(rest), await list(), id);
        own.leave();
      }

      traces.set(one, { history: [], gone: true });
      await publishEvents(one, ['1-9-1']);
      t.same(
        ((await get(`/${one}/events`)).data as Event[]).map(({ id }) => id),
        ['1-9-1'],
        'of its own tenant only',
      );
    });

    await t.test('events that the stream does not show yet: listed, followed and resumed, each once', async (t) => {
      const tenant = `recent-${engine}` as TenantId;
      const ofTenant = await authorization(ground.issuer, { tenant_id: tenant });
      const one = uuidv7() as ContainerId;
      const list = async (query = ''): Promise<string[]> => {
        const response = await fetch(`${gateway.url}${compute}/events${query}`, { headers: ofTenant });
        return ((await response.json()) as { data: Event[] }).data.map(({ id }) => id);
      };
      await publishEvents(one, ['1-5-0', '1-6-0'], tenant);
      recents.set(tenant, ['1-6-0', '1-7-0', '1-7-1']);
      t.same(await list(), ['1-5-0', '1-6-0', '1-7-0', '1-7-1']);
      t.same(await list('?limit=1'), ['1-7-1']);

      const url = `${gateway.url}${compute}/events?follow=true&limit=3`;
      const first = await listen(t, url, ofTenant);
      await until('what the owner knows, too', () => first.frames.length === 3);
      recents.set(tenant, ['1-7-0', '1-7-1', '1-8-0']);
      await publishEvents(one, ['1-7-0'], tenant);
      await until('more of it', () => first.frames.length === 4);
      await publishEvents(one, ['1-7-1', '1-8-0', '1-9-0'], tenant);
      await until('what came in the stream', () => first.frames.length === 5);
      t.same(idsOf(first.frames), ['1-6-0', '1-7-0', '1-7-1', '1-8-0', '1-9-0']);
      first.leave();

      for (const [index, frame] of first.frames.entries()) {
        const resumed = await listen(t, url, { ...ofTenant, 'last-event-id': frame.id });
        recents.set(tenant, ['1-9-0', '1-10-0']);
        await until('the rest', () => resumed.frames.length >= 5 - index);
        t.same(idsOf(resumed.frames), [...idsOf(first.frames).slice(index + 1), '1-10-0'], `after ${frame.id}`);
        resumed.leave();
      }
    });

    await t.test('a stream ends with its token', async (t) => {
      const id = newContainer('h1');
      const open = async (lifeS: number) =>
        listen(
          t,
          `${gateway.url}${compute}/${id}/logs?follow=true`,
          await authorization(ground.issuer, { exp: Math.floor(Date.now() / 1000) + lifeS }),
        );
      let stream = await open(2);
      // On an overloaded machine the token may expire before the request arrives.
      for (let lifeS = 4; stream.response.status === 401 && lifeS <= 32; lifeS *= 2) stream = await open(lifeS);
      t.equal(stream.response.status, 200);
      await until('the end', () => stream.raw.ended);
      t.match(stream.frames.at(-1), { event: 'end', data: { reason: 'unauthenticated' } });
    });

    await t.test('the streams of a tenant are limited', async (t) => {
      const tenant = `many-${engine}`;
      const ofTenant = await authorization(ground.issuer, { tenant_id: tenant });
      const url = `${gateway.url}${compute}/events?follow=true`;
      const open = await Promise.all(Array.from({ length: limits.streamsPerTenant }, () => listen(t, url, ofTenant)));
      const refused = await fetch(url, { headers: ofTenant });
      t.equal(refused.status, 429);
      t.ok(refused.headers.get('retry-after'));
      t.same(await refused.json(), {
        error: 'rate_limited',
        message: 'your tenant has too many open streams and waits; close one',
      });
      t.match(await gateway.registry.metrics(), /longshore_gateway_open_streams\{route="event.list"\} 32/);
      for (const { leave } of open) leave();
      await until('room again', async () => {
        const response = await fetch(url, { headers: ofTenant });
        await response.body?.cancel();
        return response.status === 200;
      });
    });

    await t.test('a client that does not read is dropped', async (t) => {
      const id = newContainer('h1');
      const block = range(1, 400).map((seq) => ({ ...entry(seq), line: 'x'.repeat(100) }));
      let publishedBytes = 0;
      for (let n = 0; n < 300; n++) {
        const lines = block.map((line) => ({ ...line, seq: n * 1000 + line.seq }));
        const message = JSON.stringify({ v: 1, lines });
        publishedBytes += message.length;
        await js.publish(subjects.hostLog('h1' as HostKey, acme, id), message);
      }
      const { hostname, port } = new URL(gateway.url);
      const { inBytes: before } = gateway.nc.stats();
      const socket = connect(Number(port), hostname).pause();
      t.teardown(() => socket.destroy());
      socket.write(
        `GET ${compute}/${id}/logs?follow=true HTTP/1.1\r\nHost: ${hostname}\r\n` +
          `Authorization: ${headers.authorization}\r\nLast-Event-ID: 0\r\n\r\n`,
      );
      // The lines that the gateway has read are in its memory or in the kernel's buffers, which are
      // smaller than the stream.
      const readBytes = (): number => gateway.nc.stats().inBytes - before;
      await until('the first lines', () => readBytes() > limits.streamBufferBytes / 2);
      const heldBytes = await settled(readBytes);
      t.ok(heldBytes < publishedBytes / 2, `it read ${heldBytes} of ${publishedBytes} bytes`);
      let seen = 0;
      let rest = '';
      const decoder = new TextDecoder();
      for await (const chunk of socket) {
        const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        seen += lines.filter((line) => line === 'event: log').length;
        if (lines.some((line) => line.includes('"seq":299400}'))) break;
      }
      t.equal(seen, 300 * 400, 'a client that reads again has lost nothing');
    });

    await t.test('wait', async (t) => {
      const id = uuidv7() as ContainerId;
      const wait = async (query: string) => {
        const response = await fetch(`${gateway.url}${compute}/${id}/wait?${query}`, { headers });
        return { status: response.status, json: (await response.json()) as { data?: Container; error?: string } };
      };
      t.match(await wait('timeout=1'), { status: 404 });
      statuses.set(id, 'pending');
      t.match(await wait('status=pending'), { status: 200, json: { data: { status: 'pending' } } });
      t.match(await wait('status=running&timeout=1'), { status: 504, json: { error: 'timeout' } });

      const askedBefore = statusAsks.get(id) ?? 0;
      const gone = wait('status=removed&timeout=60');
      await until('a look', () => (statusAsks.get(id) ?? 0) > askedBefore);
      statuses.set(id, 'removing');
      t.match(await wait('status=running'), { status: 409, json: { error: 'conflict' } });
      statuses.delete(id);
      t.match(await gone, { status: 200, json: { data: { id, status: 'removing', desired: 'removed' } } });
      for (const query of ['status=nope', 'timeout=0', 'timeout=301', 'timeout=x']) {
        statuses.set(id, 'running');
        memory.containers.set(`acme ${id}`, { id } as unknown as Container);
        t.match(await wait(query), { status: 422, json: { error: 'invalid' } }, query);
      }
    });

    await t.test('a doorbell wakes streams and waits', async (t) => {
      const minutes = 60_000;
      const polls = { streamMs: 10 * minutes, waitMs: 10 * minutes };
      const deaf = await runGateway(t, ground, { engine, polls });

      const id = newContainer('h1');
      await publishLines(id, 'h1', [1]);
      const lines = await listen(t, `${deaf.url}${compute}/${id}/logs?follow=true`, headers);
      await until('the first line', () => lines.frames.length === 1);
      // Each line rings a doorbell. The gateway may look before the stream shows a line, so there
      // are several.
      let seq = 1;
      await until('a line after a doorbell', async () => {
        await publishLines(id, 'h1', [++seq]);
        return lines.frames.length > 1;
      });
      lines.leave();

      const tenant = `doorbells-${engine}` as TenantId;
      const ofTenant = await authorization(ground.issuer, { tenant_id: tenant });
      await publishEvents(id, ['1-1-0'], tenant);
      const events = await listen(t, `${deaf.url}${compute}/events?follow=true`, ofTenant);
      await until('the first event', () => events.frames.length === 1);
      let entryNumber = 1;
      await until('an event after a doorbell', async () => {
        await publishEvents(id, [`1-${++entryNumber}-0`], tenant);
        return events.frames.length > 1;
      });
      events.leave();

      statuses.set(id, 'pending');
      const waiting = fetch(`${deaf.url}${compute}/${id}/wait?timeout=60`, { headers });
      await until('a look', () => statusAsks.has(id));
      statuses.set(id, 'running');
      ground.nc.publish(subjects.changed(acme, id));
      t.equal((await waiting).status, 200);
    });
  });
}

/** The value once it has stayed the same for a while. */
async function settled(read: () => number): Promise<number> {
  for (let value = read(); ;) {
    await sleep(500);
    const now = read();
    if (now === value) return now;
    value = now;
  }
}

t.test('the streams of an address are limited as configured', async (t) => {
  const { url } = await runGateway(t, ground, { env: { LIMIT_STREAMS_PER_ADDRESS: '2' } });
  const open = async (tenant: string) =>
    listen(t, `${url}${compute}/events?follow=true`, await authorization(ground.issuer, { tenant_id: tenant }));
  const first = await open('office-1');
  t.equal(first.response.status, 200);
  t.equal((await open('office-2')).response.status, 200);
  const refused = await fetch(`${url}${compute}/events?follow=true`, {
    headers: await authorization(ground.issuer, { tenant_id: 'office-3' }),
  });
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('retry-after'), '5');
  t.match(await refused.json(), { error: 'rate_limited', message: /^your address has/ });
  first.leave();
  await until('room again', async () => (await open('office-3')).response.status === 200);
});
