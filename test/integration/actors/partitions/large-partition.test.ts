/** A partition whose load takes longer than a lease, and two processes that compete for it. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { createJetStreamStore } from '../../../../actors/runtime/store/jetstream-store.ts';
import type { StoreWrite } from '../../../../actors/runtime/store/store.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { buckets } from '../../../../schemas/records/buckets.ts';
import type { ContainerSpec } from '../../../../schemas/api/fields/container.ts';
import { specOf } from '../../../actors/support.ts';
import { createAsker, spawnActors, startCluster } from '../support.ts';
import { acme, container, unplaced } from '../../../actors/support/records.ts';

const deadlineMs = 150_000;

t.test('two actors processes get a large partition served', { timeout: 600_000 }, async (t) => {
  const ground = await startCluster(t, 1);
  const store = createJetStreamStore(ground.nc, buckets.state.bucket(0), randomUUID);
  const epoch =
    (await store.takeEpoch(encodeValue({ token: 'x', owner: 'gone', takenAtMs: 0, released: true }), 0)) ?? 0;
  // Decoding and loading these takes seconds.
  const env = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`VARIABLE_${index}`, 'x'.repeat(24)]));
  const spec: ContainerSpec = specOf('large', { env });
  const [count, batch] = [60_000, 500];
  for (let from = 0; from < count; from += batch) {
    const writes = Array.from({ length: batch }, (_, index): StoreWrite => {
      const record = container({
        spec: { ...spec, name: `c${from + index}` },
        placement: unplaced,
        desired: 'stopped',
      });
      return { key: recordKey(record), value: encodeValue(record) };
    });
    if ((await store.putBatch(writes, epoch)).kind !== 'written') throw new Error('the partition was not filled');
  }
  for (let index = 0; index < 2; index++) {
    const child = spawnActors(ground.nats, 1, { env: { LOG_LEVEL: 'error' }, stdio: ['ignore', 'inherit', 'inherit'] });
    t.teardown(async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    });
  }
  const ask = createAsker(ground.nc, 1);
  const isAnswered = async (): Promise<boolean> => {
    const { code } = await ask({ type: 'container.list', tenant: acme, limit: 1, before: null });
    return code === 'ok';
  };
  const endMs = performance.now() + deadlineMs;
  while (!(await isAnswered().catch(() => false))) {
    if (performance.now() > endMs) throw new Error(`it is not served within ${deadlineMs} ms`);
    await sleep(50);
  }
  t.pass('it is served');
});
