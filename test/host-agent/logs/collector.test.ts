import { PassThrough, Readable } from 'node:stream';
import t from 'tap';
import { createCollector } from '../../../host-agent/logs/collector.ts';
import { loadCursors } from '../../../host-agent/logs/cursors.ts';
import { createPasses } from '../../../host-agent/logs/passes.ts';
import { openSpool } from '../../../host-agent/logs/spool.ts';
import { containerId, quietLog } from '../../actors/support.ts';
import { frameOf, recordsSince } from '../../support/engine/log.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { quietDisk } from '../support/disk.ts';
import { tenant } from '../support/decisions.ts';

const clock = { nowMs: () => Date.parse('2026-01-02T03:05:00Z'), monotonicMs: () => performance.now() };
const firstMicros = Date.parse('2026-01-02T03:04:05Z') * 1000;
const nothing = () => undefined;
const metrics = {
  logGaps: nothing,
  logDamaged: nothing,
  logFollowers: nothing,
  logDropped: nothing,
  logAbandoned: nothing,
};

const written = ['one', 'two', 'three'].map((text, index) => ({ micros: firstMicros + index, text }));

/** An agent that reads logs through the engine: by default that of an ended copy of three lines. */
async function started(
  stateDir: string,
  streamOf = (_id: string, since: string): Readable => Readable.from(recordsSince(written, since).map(frameOf)),
) {
  const disk = quietDisk();
  const engine = {
    logs: (id: string, { since }: { readonly since: string }) =>
      Promise.resolve({ status: 200, headers: {}, stream: streamOf(id, since) }),
  };
  const cursors = await loadCursors(stateDir, disk, quietLog);
  const sent: string[] = [];
  const collector = createCollector({
    runPass: createPasses({ engine, logPath: nothing, clock, metrics, log: quietLog }),
    cursors,
    spool: await openSpool(stateDir, clock.nowMs, nothing, quietLog),
    publish: (_source, block) => {
      sent.push(...(JSON.parse(block) as { lines: { line: string }[] }).lines.map(({ line }) => line));
      return Promise.resolve(undefined);
    },
    backoff: { minMs: 10, maxMs: 100 },
    clock,
    metrics,
    log: quietLog,
  });
  return { collector, cursors, sent };
}

t.test('an agent that is killed after a drain sends no line again, after those of the next copy', async (t) => {
  const stateDir = temporaryFolder(t);
  const source = { tenant, id: containerId() };
  const { collector, sent } = await started(stateDir);
  await collector.drain(source, 'old');
  t.same(sent, ['one', 'two', 'three']);

  // As a process finds it that starts now.
  const second = await started(stateDir);
  await second.collector.drain(source, 'old');
  t.same(second.sent, []);
  await collector.stop();
  await second.collector.stop();
});

t.test('a drain that failed has drained nothing: the next one reads on', async (t) => {
  const broken = new Readable({ read: () => void broken.destroy(new Error('the engine broke off')) });
  const streams = [new PassThrough(), broken];
  const { collector, sent } = await started(
    temporaryFolder(t),
    (_, since) => streams.shift() ?? Readable.from(recordsSince(written, since).map(frameOf)),
  );
  const source = { tenant, id: containerId() };
  await t.rejects(collector.drain(source, 'old'), { message: /cannot be saved before it goes \(attempt 1 of/ });
  await collector.drain(source, 'old');
  t.same(sent, ['one', 'two', 'three']);
  await collector.stop();
});

t.test('a drain is not broken off by a look that follows the next copy', async (t) => {
  const source = { tenant, id: containerId() };
  const old = new PassThrough();
  const asked: string[] = [];
  let opened = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const { collector, sent } = await started(temporaryFolder(t), (id) => {
    asked.push(id);
    opened();
    if (id === 'new') return Readable.from([frameOf({ micros: firstMicros + 10, text: 'four' })]);
    return asked.length === 1 ? old : Readable.from([]);
  });
  const drained = collector.drain(source, 'old');
  await isOpen;
  collector.follow(source, 'new', 'new:1');
  for (const record of written) old.write(frameOf(record));
  old.end();
  await drained;
  t.same(sent.slice(0, 3), ['one', 'two', 'three']);
  await until('the next copy', () => sent.includes('four'));
  t.same(sent, ['one', 'two', 'three', 'four']);
  await collector.stop();
});
