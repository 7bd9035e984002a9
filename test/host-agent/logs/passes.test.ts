import { PassThrough } from 'node:stream';
import { rmSync } from 'node:fs';
import t, { type Test } from 'tap';
import { createPasses, type PassOrder, type PassParts } from '../../../host-agent/logs/passes.ts';
import type { Cursor } from '../../../host-agent/logs/resume.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { quietLog } from '../../actors/support.ts';
import { base, frameBytes, linesOf, stamp } from '../support/log-lines.ts';
import { engineLog } from './files/engine-log.ts';

const source = { tenant: 'acme' as TenantId, id: '0190a000-0000-7000-8000-000000000001' as ContainerId };

/** An engine whose log is these lines, a millisecond apart. */
const engineWith = (texts: readonly string[]) => ({
  asked: [] as string[],
  logs(id: string, { since }: { since: string }) {
    this.asked.push(`${id} since ${since}`);
    const stream = new PassThrough();
    const frame = (text: string, index: number) =>
      frameBytes({ stream: 'stdout', payload: Buffer.from(`${stamp(base + (index + 1) * 1000)} ${text}\n`) });
    stream.end(Buffer.concat(texts.map(frame)));
    return Promise.resolve({ status: 200, headers: {}, stream });
  },
});

function running(t: Test, engine: PassParts['engine'], ...paths: (string | undefined)[]) {
  const warned: string[] = [];
  let following = { files: 0, engine: 0 };
  const most = { files: 0, engine: 0 };
  let cursor: Cursor = { dockerId: 'a', place: null, seq: 0 };
  const runPass = createPasses({
    engine,
    // The last one stays.
    logPath: () => (paths.length > 1 ? paths.shift() : paths[0]),
    clock: { nowMs: () => base / 1000 + 3_600_000 },
    metrics: {
      logGaps: () => t.fail('a gap'),
      logDamaged: () => t.fail('a damaged record'),
      logFollowers: (from, change) => {
        following = { ...following, [from]: following[from] + change };
        most[from] = Math.max(most[from], following[from]);
      },
    },
    log: { ...quietLog, warn: (event) => void warned.push(event) },
  });
  const texts: string[] = [];
  const order: PassOrder = {
    source,
    dockerId: 'a',
    cursor: () => cursor,
    sink: (block) => {
      texts.push(...linesOf(block).map(({ line }) => line));
      return Promise.resolve(undefined);
    },
    advance: (next) => (cursor = next),
    lossCause: () => 'late',
    onHeldUp: () => undefined,
    follow: false,
    ending: AbortSignal.abort(),
    signal: new AbortController().signal,
  };
  return { run: () => runPass(order), texts, most, warned, following: () => following };
}

t.test('the engine is not asked where its files can be read', async (t) => {
  const log = engineLog(t);
  for (const text of ['a', 'b']) log.say(text);
  const engine = engineWith(['a', 'b']);
  const { run, texts, most, following } = running(t, engine, log.path);
  t.same(await run(), { kind: 'whole' });
  t.same([texts, engine.asked, most], [['a', 'b'], [], { files: 1, engine: 0 }]);
  t.same(following(), { files: 0, engine: 0 });
});

t.test('if the files cannot be read, the engine is asked for what comes after the last line', async (t) => {
  const log = engineLog(t);
  for (const text of ['a', 'b']) log.say(text);
  const engine = engineWith(['a', 'b', 'c', 'd']);
  const { run, texts, most, warned, following } = running(t, engine, log.path);
  await run();
  rmSync(log.path);
  t.match(await run(), { kind: 'asked', lines: 2, heldUpBy: undefined });
  t.same(texts, ['a', 'b', 'c', 'd']);
  t.equal(engine.asked.length, 1);
  t.same(most, { files: 1, engine: 1 });
  await run();
  t.same(warned, ['log_files_unreadable'], 'told once');
  t.same(following(), { files: 0, engine: 0 });
});

t.test('and the files go on behind what the engine gave', async (t) => {
  const log = engineLog(t);
  const engine = engineWith(['a', 'b']);
  for (const text of ['a', 'b', 'c']) log.say(text);
  const { run, texts } = running(t, engine, undefined, log.path);
  await run();
  t.same(texts, ['a', 'b']);
  t.same(await run(), { kind: 'whole' });
  t.same(texts, ['a', 'b', 'c']);
});

t.test('an engine on another machine is asked', async (t) => {
  const engine = engineWith(['a']);
  const { run, texts } = running(t, engine, undefined);
  t.match(await run(), { kind: 'asked', lines: 1 });
  t.same(texts, ['a']);
});

t.test('files that went with their container are no news', async (t) => {
  const log = engineLog(t);
  const gone = new Error('no such container');
  const engine = { ...engineWith([]), logs: () => Promise.reject(gone) };
  const { run, warned } = running(t, engine, `${log.path}.gone`);
  await t.rejects(run(), gone);
  t.same(warned, []);
});
