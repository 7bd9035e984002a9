import { open } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { FileChain } from '../../../../host-agent/logs/files/chain.ts';
import type { OpenFile } from '../../../../host-agent/logs/files/ring.ts';
import { engineLog, type EngineLog } from './engine-log.ts';

/** The newest file; `meanwhile` happens between a look at its size and what follows. */
async function opened({ path }: EngineLog, meanwhile: () => void): Promise<OpenFile> {
  const handle = await open(path, 'r');
  const { dev, ino } = await handle.stat({ bigint: true });
  const stat = async (...given: Parameters<typeof handle.stat>) => {
    const seen = await handle.stat(...given);
    meanwhile();
    return seen;
  };
  return {
    file: `${dev}:${ino}`,
    handle: { stat: stat as typeof handle.stat, read: handle.read.bind(handle), close: () => handle.close() },
  };
}

async function textsOf(t: Test, log: EngineLog, own: OpenFile): Promise<string[]> {
  const chain = new FileChain(log.path, own, 0);
  t.teardown(() => chain.close());
  let content = '';
  for (let chunk = await chain.read(); chunk !== undefined; chunk = await chain.read()) content += String(chunk.bytes);
  return [...content.matchAll(/"log":"(\w+)\\n"/g)].map(([, text]) => text ?? '');
}

t.test('lines that the engine writes, and a rotation, after the end was seen', async (t) => {
  const log = engineLog(t);
  log.say('a');
  let looks = 0;
  const own = await opened(log, () => {
    looks += 1;
    if (looks !== 2) return;
    log.say('b');
    log.rotate();
    log.say('c');
  });
  t.same(await textsOf(t, log, own), ['a', 'b', 'c']);
});

t.test('a file that is gone when it is opened is not the end', async (t) => {
  const log = engineLog(t);
  log.say('a');
  let looks = 0;
  const own = await opened(log, () => {
    looks += 1;
    if (looks > 3) return;
    log.rotate();
    log.say(`after${looks}`);
  });
  t.same(await textsOf(t, log, own), ['a', 'after1', 'after2', 'after3']);
});
