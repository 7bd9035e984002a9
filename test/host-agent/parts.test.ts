/** The small parts that everything else leans on. */
import t, { type Test } from 'tap';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createLazyFile, readDecoded, writeAtomically } from '../../host-agent/disk/files.ts';
import { createFaults } from '../../host-agent/faults.ts';
import { openSpool } from '../../host-agent/logs/spool.ts';
import { createPulls } from '../../host-agent/images/pulls.ts';
import { RegistryError } from '../../host-agent/images/registries.ts';
import { createQueue } from '../../host-agent/reconcile/queue.ts';
import { createReporter, type ReporterParts } from '../../host-agent/control-plane/reporter.ts';
import { createStops } from '../../host-agent/reconcile/stops.ts';
import { createStateDisk } from '../../host-agent/disk/state-disk.ts';
import type { Engine } from '../../host-agent/docker/engine.ts';
import { createLog } from '../../lib/log.ts';
import type { ContainerId, HostKey, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { ReportAnswer } from '../../schemas/wire/host.ts';
import { describe } from '../../host-agent/reconcile/describe.ts';
import { absent } from '../../host-agent/reconcile/observed.ts';
import { until } from '../support/until.ts';
import { id, restartState, tenant, wanted } from './support/decisions.ts';

const log = createLog('test', 'silent');
const retry = { minMs: 1, maxMs: 20 };

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'longshore-parts-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Work that ends when the test says so. */
function gated() {
  const open = new Map<string, () => void>();
  const begun: string[] = [];
  const work = (key: string): Promise<void> => {
    begun.push(key);
    return new Promise((resolve) => open.set(key, resolve));
  };
  const end = async (key: string): Promise<void> => {
    open.get(key)?.();
    open.delete(key);
    await delay(0);
  };
  return { begun, work, end, working: () => [...open.keys()] };
}

t.test('queue: one worker a key, and nothing that came meanwhile is missed', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 1, patienceMs: 60_000 }, work);
  for (const key of ['a', 'b', 'c', 'a', 'a']) queue.enqueue(key);
  t.same(working(), ['a', 'b'], 'two at a time, and none twice at a time');
  queue.enqueue('a');
  await end('b');
  t.same(working(), ['a', 'c']);
  await end('a');
  t.same(working(), ['c', 'a'], 'looked at again, for it was enqueued meanwhile');
  await end('c');
  await end('a');
  t.same(begun, ['a', 'b', 'c', 'a']);
  await queue.stop();
  queue.enqueue('d');
  t.equal(begun.length, 4, 'after a stop nothing is begun');
});

t.test('queue: what hangs holds up what hangs, and nothing else', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 3, patienceMs: 1 }, work);
  const begins = (key: string, times = 1) =>
    until(
      () => `${key} begun ${times} times, not ${begun.join(' ')}`,
      () => begun.filter((each) => each === key).length === times,
    );
  // As many as the slow workers hold, and one more than the workers.
  for (const key of ['h1', 'h2', 'h3']) queue.enqueue(key);
  for (const key of ['a', 'b', 'c', 'd']) {
    queue.enqueue(key);
    await begins(key);
    await end(key);
  }
  t.same(working(), ['h1', 'h2', 'h3'], 'each of them is still worked on, once');
  for (const key of ['h1', 'h2', 'h3']) queue.enqueue(key);
  t.equal(begun.length, 7, 'and by one worker');
  await end('h1');
  await begins('h1', 2);
  t.same(working().toSorted(), ['h1', 'h2', 'h3'], 'again with the slow ones');
  for (const key of ['h1', 'h2', 'h3']) await end(key);
  await begins('h2', 2);
  await begins('h3', 2);
  for (const key of ['h1', 'h2', 'h3']) await end(key);
  await queue.stop();
});

t.test('queue: slow and quick together are bounded, whatever hangs', async (t) => {
  const { begun, work, end, working } = gated();
  const queue = createQueue<string>({ workers: 2, slowWorkers: 3, patienceMs: 1 }, work);
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
  for (const key of keys) queue.enqueue(key);
  await until(
    () => `five at a time, not ${working().length}`,
    () => working().length === 5,
  );
  while (begun.length < keys.length || working().length > 0) {
    t.ok(working().length <= 5);
    await end(working()[0] ?? '');
  }
  t.same(begun.toSorted(), keys.toSorted(), 'each was looked at once');
  await queue.stop();
});

t.test('all that may hang leaves connections to the engine for lists, probes and pulls', (t) => {
  const hung =
    limits.concurrentSteps + limits.concurrentSlowSteps + limits.concurrentStops + limits.concurrentSlowStops;
  t.ok(hung + limits.concurrentPulls < limits.engineConnections);
  t.end();
});

t.test('stops: so many at a time, also after failures; one that hangs gives up its place', async (t) => {
  const stops = createStops({ workers: 2, slowWorkers: 1, patienceMs: 20 });
  let now = 0;
  let most = 0;
  const run = (id: string, fails = false) =>
    stops.run(id, async () => {
      most = Math.max(most, ++now);
      await delay(0);
      now -= 1;
      if (fails) throw new Error('as told');
    });
  const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((id) => run(id, id < 'c')));
  t.equal(most, 2);
  t.same(
    outcomes.map(({ status }) => status === 'fulfilled'),
    [false, false, true, true, true],
  );

  let asked = 0;
  const ends: (() => void)[] = [];
  const hang = (id: string) =>
    stops.run(id, () => {
      asked += 1;
      return new Promise<void>((resolve) => void ends.push(resolve));
    });
  const hung = [hang('x'), hang('y'), hang('x')];
  await run('a');
  t.equal(asked, 2, 'one that is asked for again is asked for once');
  for (const end of ends) end();
  await Promise.all(hung);
  await run('x');
});

/** An engine that pulls until the test ends it, or the signal does. */
function pullingEngine() {
  const pulling = new Map<string, () => void>();
  const aborted: string[] = [];
  const engine = {
    imageId: (reference: string) => Promise.resolve(pulling.has(reference) ? undefined : `id of ${reference}`),
    pull: (reference: string, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const end = (): void => {
          pulling.delete(reference);
          resolve();
        };
        pulling.set(reference, end);
        signal.addEventListener('abort', () => {
          aborted.push(reference);
          end();
        });
      }),
  } as unknown as Engine;
  return { engine, pulling, aborted };
}

t.test('pulls of one image are one pull, and end when nobody waits', async (t) => {
  const { engine, pulling, aborted } = pullingEngine();
  const all = createPulls(engine, () => Promise.resolve(), { pull: () => undefined });
  const ids = ['a', 'b', 'c'] as ContainerId[];
  const ask = () => Promise.all(ids.map((each) => all.get('r/x:1', 'always', { tenant, id: each })));
  const first = ask();
  await delay(0);
  t.same([...pulling.keys()], ['r/x:1']);
  pulling.get('r/x:1')?.();
  t.same(await first, Array(3).fill('id of r/x:1'));
  const left = ask();
  await delay(0);
  ids.slice(1).forEach((each) => all.leave(each));
  t.same(aborted, [], 'one still waits');
  all.leave('a' as ContainerId);
  await left;
  t.same(aborted, ['r/x:1']);
});

t.test('pulls: one that is given up before it has a place takes none', async (t) => {
  const { engine, pulling } = pullingEngine();
  const all = createPulls(engine, () => Promise.resolve(), { pull: () => undefined });
  const ask = (tag: string) => all.get(`r/x:${tag}`, 'always', { tenant, id: tag as ContainerId });
  const tags = Array.from({ length: limits.pullsPerTenant + 2 }, (_, index) => `v${index}`);
  const asked = tags.map(ask);
  await delay(0);
  t.equal(pulling.size, limits.pullsPerTenant);
  const [given, last] = tags.slice(-2) as [string, string];
  all.leave(given as ContainerId);
  t.match(await asked.at(-2)?.catch((error: unknown) => error), { fault: { kind: 'aborted' } });
  pulling.get('r/x:v0')?.();
  await delay(0);
  t.same(
    [...pulling.keys()],
    [...tags.slice(1, limits.pullsPerTenant), last].map((tag) => `r/x:${tag}`),
  );
  all.stop();
  await Promise.allSettled(asked);
});

t.test(
  'pulls: a registry that is not permitted is never asked; an image that is there needs no permission',
  async (t) => {
    const { engine, pulling } = pullingEngine();
    const present = { ...engine, imageId: (reference: string) => Promise.resolve(`id of ${reference}`) };
    const refusal = new RegistryError('not_allowed', 'no');
    const all = createPulls(present, () => Promise.reject(refusal), { pull: () => undefined });
    const forWhom = { tenant, id: 'a' as ContainerId };
    t.equal(await all.get('10.0.0.1:6379/x:1', 'if_not_present', forWhom), 'id of 10.0.0.1:6379/x:1');
    t.equal(await all.get('10.0.0.1:6379/x:1', 'always', forWhom).catch((error: unknown) => error), refusal);
    t.equal(pulling.size, 0);
  },
);

t.test('files: whole or not at all, private, and set aside where unreadable', async (t) => {
  const dir = folder(t);
  const path = join(dir, 'a.json');
  await writeAtomically(path, 'one');
  await writeAtomically(path, 'two');
  t.equal(readFileSync(path, 'utf8'), 'two');
  t.equal(statSync(path).mode & 0o777, 0o600);
  const fail = (): never => {
    throw new Error('unreadable');
  };
  t.equal(await readDecoded(path, fail, log), undefined);
  t.same(readdirSync(dir), ['a.json.unreadable']);
  t.equal(await readDecoded(path, fail, log), undefined, 'and goes on without');

  let content = 0;
  const lazy = createLazyFile(path, () => String(content), 1000, createStateDisk(createFaults(log), retry, log));
  for (content = 1; content < 100; content++) lazy.touch();
  await lazy.flush();
  t.equal(readFileSync(path, 'utf8'), '100', 'the newest content, however long the pause');
});

t.test('files: what the disk refused is written as soon as it can be, and the fault is then over', async (t) => {
  const dir = folder(t);
  // A file in the place of its folder: nothing can be written there.
  const blocked = join(dir, 'state');
  writeFileSync(blocked, '');
  const faults = createFaults(log);
  const path = join(blocked, 'a.json');
  let content = 'one';
  const lazy = createLazyFile(path, () => content, 0, createStateDisk(faults, retry, log));
  lazy.touch();
  await lazy.flush();
  t.match(faults.list(), [{ kind: 'state_unwritable', message: /free space: / }]);
  content = 'two';
  rmSync(blocked);
  await until('the end of the fault, without another touch', () => faults.list().length === 0);
  t.equal(readFileSync(path, 'utf8'), 'two', 'the newest content');
});

t.test('spool: bounded, the oldest dropped and counted, sent in order', async (t) => {
  const dir = folder(t);
  let dropped = 0;
  const open = () =>
    openSpool(
      dir,
      () => 1,
      (lines) => (dropped += lines),
      log,
      1000,
    );
  const block = (text: string) =>
    JSON.stringify({ v: 1, lines: [{ ts: '2026-01-02T03:04:05Z', stream: 'stdout', line: text, seq: 1 }] });
  const source = (name: string) => ({ tenant, id: name as ContainerId });
  const one = '0190a000-0000-7000-8000-00000000000';
  const spool = await open();
  for (const digit of ['1', '2', '3']) await spool.add(source(one + digit), [block(digit.repeat(250))], 1);
  t.equal(dropped, 1);
  writeFileSync(join(dir, 'spool', '0-0.ndjson'), 'garbage');

  const again = await open();
  const sent: string[] = [];
  const ending = new AbortController();
  const running = again.run((each) => {
    sent.push(each.id);
    return Promise.resolve(undefined);
  }, ending.signal);
  await again.settled(source(`${one}3`), ending.signal);
  t.same(sent, [`${one}2`, `${one}3`]);
  t.same(readdirSync(join(dir, 'spool')), []);
  ending.abort();
  await running;
});

t.test('spool: a tenant that fills it loses its own files, and delays no other', async (t) => {
  let dropped = 0;
  const spool = await openSpool(
    folder(t),
    () => 1,
    (lines) => (dropped += lines),
    log,
    4000,
  );
  const of = (name: string, number: number) => ({
    tenant: name as TenantId,
    id: `0190a000-0000-7000-8000-00000000000${number}` as ContainerId,
  });
  const block = JSON.stringify({
    v: 1,
    lines: [{ ts: '2026-01-02T03:04:05Z', stream: 'stdout', line: 'x'.repeat(500), seq: 1 }],
  });
  await spool.add(of('quiet', 9), [block], 1);
  for (let number = 0; number < 9; number++) await spool.add(of('noisy', number), [block], 10);
  t.equal(dropped, 40, 'the oldest four of the noisy tenant');

  const ending = new AbortController();
  const sent: string[] = [];
  // The control plane takes nothing of the noisy tenant.
  const running = spool.run(async (source, _block, _lines, signal) => {
    if (source.tenant === 'noisy') await once(signal, 'abort');
    else sent.push(source.tenant);
    return undefined;
  }, ending.signal);
  await spool.settled(of('quiet', 9), ending.signal);
  t.same(sent, ['quiet']);
  ending.abort();
  await running;
});

t.test('reports', async (t) => {
  interface Sent {
    session: number;
    partition: number;
    items: { id: string; seq: number; observation: { status: string } }[];
  }
  const start = (t: Test, answer: (sent: Sent, count: number) => ReportAnswer | 'silence') => {
    const sent: Sent[] = [];
    const stale: number[] = [];
    const ending = new AbortController();
    t.teardown(() => ending.abort());
    const parts: ReporterParts = {
      sender: () => ({ host: 'h1' as HostKey, user: 'U' }),
      backoff: { minMs: 5, maxMs: 20 },
      metrics: { report: () => undefined },
      log,
      signal: ending.signal,
      onStaleSession: () => stale.push(1),
      onContact: () => undefined,
      request: (_, payload) => {
        const report = JSON.parse(payload) as Sent;
        sent.push(report);
        const answered = answer(report, sent.length);
        if (answered === 'silence') return Promise.reject(new Error('timeout'));
        return Promise.resolve(Buffer.from(JSON.stringify(answered)));
      },
    };
    return { reporter: createReporter(parts), sent, stale };
  };
  const observed = (name: string, status: 'stopped' | 'running' = 'running', of = 'acme') => {
    const description = describe(wanted(status), absent, restartState());
    if (description === undefined) throw new Error('described');
    return { tenant: of as TenantId, id: name as ContainerId, generation: 3, description };
  };
  const ids = (sent: Sent[]) => sent.map(({ items }) => items.map((item) => item.id));

  await t.test('what is set together goes together; the unchanged is not said again', async (t) => {
    const { reporter, sent } = start(t, () => ({ ok: true }));
    reporter.restart({ session: 7, partitions: 1 });
    reporter.set(observed('a'));
    reporter.set(observed('b'));
    await until('a report', () => sent.length === 1 || undefined);
    t.same(ids(sent), [['a', 'b']]);
    reporter.set(observed('a'));
    reporter.set(observed('b', 'stopped'));
    await until('another', () => sent.length === 2 || undefined);
    t.same(ids(sent).at(-1), ['b']);
    reporter.repeat();
    await until('everything again', () => sent.length === 3 || undefined);
    t.same(ids(sent).at(-1), ['a', 'b']);
    t.same(
      sent.flatMap(({ items }) => items.map(({ seq }) => seq)),
      [1, 2, 3, 1, 3],
      'what is said again keeps its number',
    );
  });

  await t.test('unanswered → again, with the newest and a higher seq', async (t) => {
    const { reporter, sent } = start(t, ({ items }) =>
      items[0]?.observation.status === 'stopped' ? { ok: true } : 'silence',
    );
    reporter.restart({ session: 1, partitions: 1 });
    reporter.set(observed('a', 'running'));
    await until('several attempts', () => sent.length > 2 || undefined);
    reporter.set(observed('a', 'stopped'));
    await until('the newest', () => sent.at(-1)?.items[0]?.observation.status === 'stopped' || undefined);
    const count = sent.length;
    await delay(50);
    t.equal(sent.length, count, 'acknowledged, and not said again');
    t.same(
      [...new Set(sent.flatMap(({ items }) => items.map(({ seq, observation }) => `${seq} ${observation.status}`)))],
      ['1 pending', '2 stopped'],
    );
    reporter.restart({ session: 2, partitions: 1 });
    await until('everything in the new session', () => sent.length === count + 1 || undefined);
    t.equal(sent.at(-1)?.items[0]?.seq, 1, 'numbered from the beginning in a new session');
  });

  await t.test('partitions do not wait for one another', async (t) => {
    const { reporter, sent } = start(t, ({ partition }) => (partition === 0 ? 'silence' : { ok: true }));
    reporter.restart({ session: 1, partitions: 2 });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) reporter.set(observed(name, 'running', name));
    await until('the other partition', () => sent.some(({ partition }) => partition === 1) || undefined);
  });

  await t.test('one that is refused holds up no other', async (t) => {
    const { reporter, sent } = start(t, ({ items }) =>
      items.some((item) => item.id === 'bad') ? { ok: false, error: 'invalid' } : { ok: true },
    );
    reporter.restart({ session: 1, partitions: 1 });
    for (const name of ['a', 'bad', 'c']) reporter.set(observed(name));
    await until('four reports', () => sent.length === 4 || undefined);
    await delay(50);
    t.same(ids(sent), [['a', 'bad', 'c'], ['a'], ['bad'], ['c']]);
  });

  await t.test('a stale session → a new one is asked for, and all is said in it from seq 1', async (t) => {
    const { reporter, sent, stale } = start(t, ({ session }) =>
      session === 1 ? { ok: false, error: 'stale_session' } : { ok: true },
    );
    reporter.restart({ session: 1, partitions: 1 });
    reporter.set(observed('a'));
    await until('word of it', () => stale.length > 0 || undefined);
    reporter.restart({ session: 2, partitions: 1 });
    const last = await until('a report in the new session', () => sent.find(({ session }) => session === 2));
    t.match(last.items, [{ id: 'a', seq: 1 }]);
  });

  t.equal(id.length, 36);
});
