/**
 * The newest messages of a subject, on a real server: the same as by a full read, whatever other
 * messages lie between, and at lower cost.
 */
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';
import { v7 as uuidv7 } from 'uuid';
import { EventReader } from '../../../gateway/streams/events.ts';
import { LogReader } from '../../../gateway/streams/logs.ts';
import type { LogWish } from '../../../gateway/streams/log-pages.ts';
import { newestOf, type LogLine } from '../../../gateway/streams/log-lines.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { readLast, readStream } from '../../../lib/nats/direct-reads.ts';
import { streams } from '../../../schemas/records/buckets.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LogBlock, LogEntry } from '../../../schemas/api/log.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { createRandom } from '../../actors/support/random.ts';
import { statusEvent } from '../../gateway/support.ts';
import { until } from '../../support/until.ts';
import { controlPlane, startGround } from './support.ts';
import { streamReadMessages } from '../../../gateway/streams/subject-reader.ts';

const ground = await startGround(t);
const js = jetstream(ground.nc);
const reading = await controlPlane(ground.nats);
t.teardown(() => reading.close());
const onMalformed = (): void => void t.fail('a malformed message');
const newLogReader = () => new LogReader(Promise.resolve(reading), systemClock, onMalformed);
const logs = newLogReader();
const events = new EventReader(Promise.resolve(reading), systemClock, onMalformed);
const acme = 'acme' as TenantId;
const host = 'h1' as HostKey;
const newId = (): ContainerId => uuidv7() as ContainerId;
const atOnce = 100;

/** Publishes in the order given. */
async function publish(messages: readonly (readonly [subject: string, text: string])[]): Promise<void> {
  for (let at = 0; at < messages.length; at += atOnce) {
    await Promise.all(messages.slice(at, at + atOnce).map(([subject, text]) => js.publish(subject, text)));
  }
}

/** Blocks of lines, numbered consecutively from 1. */
function blocksOf(id: ContainerId, line = 'a line') {
  let seq = 0;
  const subject = subjects.hostLog(host, acme, id);
  const ts = new Date().toISOString();
  const entry = (): LogEntry => ({ ts, stream: 'stdout', line, seq: ++seq });
  return (lines: number): [string, string] => [
    subject,
    JSON.stringify({ v: 1, lines: Array.from({ length: lines }, entry) } satisfies LogBlock),
  ];
}

async function allLines(id: ContainerId): Promise<LogLine[]> {
  const bounds = { batchMessages: 1_000, batchBytes: 1024 * 1024, timeoutMs: 5_000 };
  const filter = subjects.hostLog(host, acme, id);
  const lines: LogLine[] = [];
  for await (const { data } of readStream(ground.nc, {
    stream: streams.logs.name,
    filter,
    from: { seq: 1 },
    ...bounds,
  }))
    for (const entry of (JSON.parse(new TextDecoder().decode(data)) as LogBlock).lines) {
      lines.push({ seq: entry.seq, json: JSON.stringify(entry) });
    }
  return lines;
}

const seqsOf = (lines: readonly LogLine[]): number[] => lines.map(({ seq }) => seq);

/** Requests and bytes of a read. */
async function costOf(read: () => Promise<unknown>) {
  const before = { ...reading.stats() };
  await read();
  const after = reading.stats();
  return { requests: after.outMsgs - before.outMsgs, bytes: after.inBytes - before.inBytes };
}

t.test('the newest lines equal those of a full read', async (t) => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
  t.comment(`SEED=${seed}`);
  const random = createRandom(seed);
  const container = (most: number) => {
    const id = newId();
    return { id, block: blocksOf(id), most };
  };
  const containers = [container(1), container(1), container(3), container(20), container(20), container(100)] as const;
  const messages: [string, string][] = [];
  for (let burst = 0; burst < 150; burst++) {
    const { block, most } = random.pick(containers);
    const length = 1 + random.below(random.pick([2, 10, 60]));
    for (let n = 0; n < length; n++) messages.push(block(1 + random.below(most)));
    // An agent whose acknowledgement was lost sends its last block again.
    const last = messages.at(-1);
    if (last !== undefined && random.once(4)) messages.push(last);
  }
  await publish(messages);
  for (const { id } of containers) {
    const all = await allLines(id);
    for (const limit of [
      1,
      2,
      limits.logsDefault,
      limits.logsMax,
      ...Array.from({ length: 6 }, () => 1 + random.below(500)),
    ]) {
      const wanted = newestOf(all, limit);
      const filter = subjects.hostLog(host, acme, id);
      const last = await readLast(ground.nc, { stream: streams.logs.name, filter, timeoutMs: 5_000 });
      for (const [what, reader] of [
        ['new', newLogReader()],
        ['used', logs],
      ] as const) {
        const { lines, position } = await reader.newest(acme, id, [host], limit);
        t.same(lines, wanted, `${limit} of ${all.length}, by a ${what} reader`);
        t.same(position.get(host), { next: (last?.sequence ?? 0) + 1, lastSeq: wanted.at(-1)?.seq ?? -1 });
      }
    }
  }
});

t.test('a follower loses and repeats no line while lines come and go', async (t) => {
  const id = newId();
  const block = blocksOf(id);
  const other = blocksOf(newId());
  await publish(Array.from({ length: limits.logBlocksPerContainer }, () => block(3)));
  const messages = Array.from({ length: 3_000 }, (_, nth) => (nth % 3 === 0 ? other(1) : block(1 + (nth % 3))));
  let reads = 0;
  let isWritten = false;
  const write = async (): Promise<void> => {
    for (let at = 0; at < messages.length; at += atOnce) {
      // The stream keeps a thousand blocks: one slow read must not be overtaken by what it drops.
      await until('a read has ended', () => at < (reads + 1) * 5 * atOnce);
      await publish(messages.slice(at, at + atOnce));
    }
    isWritten = true;
  };
  const written = write();
  for (; reads < 5 || !isWritten; reads++) {
    const limit = 1 + ((reads * 97) % limits.logsMax);
    const page = await logs.newest(acme, id, [host], limit);
    const seen = seqsOf(page.lines);
    t.equal(seen.length, limit);
    const next = await logs.after(acme, id, [host], page.position);
    seen.push(...seqsOf(next.lines));
    t.same(
      seen,
      Array.from({ length: seen.length }, (_, at) => (seen[0] ?? 0) + at),
    );
  }
  await written;
});

t.test('the cost of a read does not grow with the history', async (t) => {
  const id = newId();
  const block = blocksOf(id, 'x'.repeat(40));
  const blocks = Array.from({ length: limits.logBlocksPerContainer }, () => block(limits.logBlockLines));
  await publish(blocks);
  const blockBytes = blocks[0]?.[1].length ?? 0;
  const full = await costOf(() => logs.newest(acme, id, [host], limits.logsMax));
  t.equal(full.requests, 1);
  t.ok(full.bytes < 2 * blockBytes);

  const [busy, quiet] = [newId(), newId()];
  const [busyBlock, quietBlock, noise] = [blocksOf(busy), blocksOf(quiet), blocksOf(newId())];
  await publish([
    ...Array.from({ length: limits.logBlocksPerContainer }, () => busyBlock(1)),
    // A burst, then single lines at intervals.
    ...Array.from({ length: 900 }, () => quietBlock(10)),
    ...Array.from({ length: 6_000 }, (_, nth) => (nth % 150 === 0 ? quietBlock(1) : noise(1))),
  ]);
  const lineBytes = busyBlock(1)[1].length;
  const small = await costOf(() => logs.newest(acme, busy, [host], limits.logsDefault));
  t.ok(small.requests <= 20, `${small.requests} requests for blocks of one line`);
  const most = 6 * limits.logsDefault * 3 * lineBytes;
  t.ok(small.bytes <= most, `${small.bytes} of at most ${most} bytes`);
  const mixed = await costOf(() => logs.newest(acme, quiet, [host], limits.logsDefault));
  t.ok(mixed.requests <= 40, `${mixed.requests} requests where a silence follows a burst`);
});

t.test('a reader that has the newest lines asks only whether there are others', async (t) => {
  const id = newId();
  const block = blocksOf(id);
  const read = async (limit = 60) => seqsOf((await logs.newest(acme, id, [host], limit)).lines);
  const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  t.same(await read(), []);
  await publish(Array.from({ length: 100 }, () => block(1)));
  t.same(await read(), range(41, 100));
  const again = await costOf(async () => t.same(await read(), range(41, 100)));
  t.equal(again.requests, 1);
  await publish([block(2)]);
  t.same(await read(), range(43, 102), 'a block that came since');
  await publish(Array.from({ length: streamReadMessages + 1 }, () => block(1)));
  t.same(await read(), range(108, 167), 'more blocks than a page has');
  const many = await costOf(async () =>
    t.same(await Promise.all(Array.from({ length: 20 }, () => read())), Array<number[]>(20).fill(range(108, 167))),
  );
  t.equal(many.requests, 2, 'one read for the first, one for all that came meanwhile');
  await (
    await jetstreamManager(ground.nc)
  ).streams.purge(streams.logs.name, {
    filter: subjects.hostLog(host, acme, id),
  });
  t.same(await read(), [], 'a purge takes its last block');
  await publish([block(1)]);
  t.same(await read(), [168]);
});

t.test('the newest events of a tenant, whose containers each have a subject', async (t) => {
  const tenant = 'events' as TenantId;
  const ids = Array.from({ length: 1_300 }, () => newId());
  await publish(
    ids.map((id, entry) => [
      subjects.event(tenant, id),
      JSON.stringify([0, 1].map((nth) => statusEvent(`0-${entry}-${nth}`, id))),
    ]),
  );
  const all = ids.flatMap((_, entry) => [`0-${entry}-0`, `0-${entry}-1`]);
  for (const limit of [1, 2, 3, 50, 500]) {
    const page = await events.newest(subjects.eventsOfTenant(tenant), limit);
    t.same(
      page.events.map(({ event }) => event.id),
      all.slice(-limit),
    );
    t.same((await events.after(subjects.eventsOfTenant(tenant), page.position)).events, []);
  }
  const [first = newId(), second = newId()] = ids;
  await publish([[subjects.event(tenant, first), JSON.stringify([statusEvent('0-2000-0', first)])]]);
  await publish([[subjects.event(tenant, second), JSON.stringify([statusEvent('0-2001-0', second)])]]);
  const later = await events.newest(subjects.eventsOfTenant(tenant), 3);
  t.same(
    later.events.map(({ event }) => event.id),
    [all.at(-1), '0-2000-0', '0-2001-0'],
    'what came since',
  );
  t.same((await events.after(subjects.eventsOfTenant(tenant), later.position)).events, []);
});

t.test('the past in pages: all lines of all hosts, by their times, each once', async (t) => {
  const id = newId();
  const [first, second] = [host, 'h2' as HostKey];
  const startMs = Date.now() - 3_600_000;
  /** A block of a host, with a line for each minute. */
  const block = (on: HostKey, minutes: readonly number[]): [string, string] => [
    subjects.hostLog(on, acme, id),
    JSON.stringify({
      v: 1,
      lines: minutes.map((minute) => ({
        ts: new Date(startMs + minute * 60_000).toISOString(),
        stream: 'stdout',
        line: `minute ${minute}`,
        seq: (startMs + minute * 60_000) * 1000,
      })),
    } satisfies LogBlock),
  ];
  const noise = (): [string, string][] => Array.from({ length: 700 }, () => blocksOf(newId())(1));
  const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);
  // The first host was cut off from minute 10 on; its lines up to minute 20 come last.
  await publish([block(first, range(0, 5)), ...noise(), block(first, range(5, 10))]);
  for (const minute of range(20, 40)) await publish([block(second, [minute]), ...noise().slice(0, 30)]);
  await publish([...noise(), block(first, range(10, 20)), block(first, range(10, 20))]);

  const pages = async (wish: Partial<LogWish>): Promise<{ minutes: number[]; pages: number }> => {
    const minutes: number[] = [];
    const asked: LogWish = {
      ...{ order: 'desc', sinceMs: undefined, untilMs: undefined, contains: undefined, limit: 7 },
      ...{ after: undefined, ...wish },
    };
    for (let count = 1, after: number | undefined; count < 50; count++) {
      const page = await logs.past(acme, id, [first, second], { ...asked, after });
      minutes.push(...page.entries.map(({ line }) => Number(line.slice('minute '.length))));
      after = page.next;
      if (after === undefined) return { minutes, pages: count };
    }
    throw new Error('the pages do not end');
  };
  const all = range(0, 40);
  t.same((await pages({ order: 'asc' })).minutes, all);
  t.same((await pages({})).minutes, all.toReversed());
  const between = { sinceMs: startMs + 8 * 60_000, untilMs: startMs + 25 * 60_000 };
  t.same(await pages({ ...between, order: 'asc', limit: 100 }), { minutes: range(8, 25), pages: 1 });
  t.same(await pages({ ...between, limit: 100 }), { minutes: range(8, 25).toReversed(), pages: 1 });
  t.same((await pages({ contains: '5' })).minutes, [35, 25, 15, 5]);
  t.same((await pages({ untilMs: startMs })).minutes, []);
  const { lines, older } = await logs.newest(acme, id, [first, second], 7);
  const before = await logs.past(acme, id, [first, second], {
    ...{ order: 'desc', sinceMs: undefined, untilMs: undefined, contains: undefined, limit: 7 },
    after: older,
  });
  t.same(
    [...lines.map(({ seq }) => seq).toReversed(), ...before.entries.map(({ seq }) => seq)],
    range(26, 40)
      .toReversed()
      .map((minute) => (startMs + minute * 60_000) * 1000),
    'the page before the newest',
  );
});

t.test('the events of a tenant in pages, in both directions', async (t) => {
  const tenant = 'past' as TenantId;
  const ids = Array.from({ length: 40 }, newId);
  const names = ids.flatMap((_, entry) => [`0-${entry}-0`, `0-${entry}-1`]);
  await publish(
    ids.map((id, entry): [string, string] => [
      subjects.event(tenant, id),
      JSON.stringify([statusEvent(`0-${entry}-0`, id), statusEvent(`0-${entry}-1`, id)]),
    ]),
  );
  for (const order of ['asc', 'desc'] as const) {
    const found = await events.past({
      ...{ subject: subjects.eventsOfTenant(tenant), order, fromMs: undefined, toMs: undefined, at: undefined },
      ...{ matches: () => true, wanted: 1000 },
    });
    const got = found.items.map(({ item }) => item.id);
    t.same(got, order === 'asc' ? names : names.toReversed());
    t.equal(found.next, undefined);
  }
});
