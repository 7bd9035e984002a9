import { Readable } from 'node:stream';
import t from 'tap';
import { createCollector } from '../../../host-agent/logs/collector.ts';
import { loadCursors } from '../../../host-agent/logs/cursors.ts';
import { createPasses } from '../../../host-agent/logs/passes.ts';
import { openSpool } from '../../../host-agent/logs/spool.ts';
import { containerId, quietLog } from '../../actors/support.ts';
import { frameOf, recordsSince } from '../../support/engine/log.ts';
import { temporaryFolder } from '../../support/folder.ts';
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

/** An agent that reads the log of an ended copy of three lines, through the engine. */
async function started(stateDir: string) {
  const disk = quietDisk();
  const written = ['one', 'two', 'three'].map((text, index) => ({ micros: firstMicros + index, text }));
  const engine = {
    logs: (_id: string, { since }: { readonly since: string }) =>
      Promise.resolve({
        status: 200,
        headers: {},
        stream: Readable.from(recordsSince(written, since).map(frameOf)),
      }),
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
