/**
 * Tens of thousands of damaged records: a host hears of all of them, in answers that the NATS
 * server accepts.
 */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { createJetStreamStore } from '../../../../actors/runtime/store/jetstream-store.ts';
import type { StoreWrite } from '../../../../actors/runtime/store/store.ts';
import { within } from '../../../../lib/time/backoff.ts';
import { buckets, keys } from '../../../../schemas/records/buckets.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { SyncAnswer } from '../../../../schemas/wire/host.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { agentKey, agentOf, containerId, hostKey } from '../../../actors/support.ts';
import { controlPlane, ownerOn, startCluster } from '../support.ts';
import { acme, hostRecord } from '../../../actors/support/records.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';

const deadlineMs = 60_000;
const host = hostKey('h1');
/** The list of their ids alone exceeds one message. */
const ids = Array.from({ length: 30_000 }, containerId);

t.test('the list of held containers comes in parts that fit a message', { timeout: 300_000 }, async (t) => {
  const ground = await startCluster(t, 1);
  const store = createJetStreamStore(ground.nc, buckets.state.bucket(0), randomUUID);
  const released = encodeValue({ token: 'x', owner: 'gone', takenAtMs: 0, released: true });
  const epoch = (await store.takeEpoch(released, 0)) ?? 0;
  const enrolled = encodeValue(hostRecord(host, { publicKey: agentKey }));
  await store.putBatch([{ key: keys.host(host), value: enrolled }], epoch);
  for (let from = 0; from < ids.length; from += 500) {
    const writes = ids
      .slice(from, from + 500)
      .map((id): StoreWrite => ({ key: keys.container(acme, id), value: Buffer.from('damaged') }));
    if ((await store.putBatch(writes, epoch)).kind !== 'written') throw new Error('the partition was not filled');
  }
  const nc = await controlPlane(ground.nats);
  const owner = ownerOn(ground, nc);
  t.teardown(async () => {
    await owner.stop();
    await nc.close();
  });
  await owner.start();

  /** Asks once; an owner whose lease has lapsed for a moment does not answer. */
  const ask = (held: Record<string, [number, number]>): Promise<SyncAnswer[]> => {
    const inbox = `_INBOX.${randomUUID()}`;
    const answers: SyncAnswer[] = [];
    const all = new Promise<SyncAnswer[]>((resolve, reject) => {
      const subscription = ground.nc.subscribe(inbox, {
        callback: (error, message) => {
          if (error !== null) reject(error);
          t.ok(message.data.length <= (ground.nc.info?.max_payload ?? 0), `${message.data.length} bytes`);
          answers.push(message.json<SyncAnswer>());
          if (answers.length < (answers[0]?.parts ?? 1)) return;
          subscription.unsubscribe();
          resolve(answers);
        },
      });
      ground.nc.publish(subjects.hostSync(agentOf(host)), JSON.stringify({ v: 1, ...protocolFields, held }), {
        reply: inbox,
      });
    });
    return within(all, limits.syncTimeoutMs, 'all parts');
  };
  /** Asks as an agent does: until it gets an answer. */
  const sync = async (held: Record<string, [number, number]>): Promise<SyncAnswer[]> => {
    const endMs = performance.now() + deadlineMs;
    for (;;) {
      try {
        return await ask(held);
      } catch (error) {
        if (performance.now() > endMs) throw error;
      }
    }
  };

  const answers = await sync({});
  t.ok(answers.length > 1);
  t.same(answers.flatMap(({ hold }) => hold).sort(), [...ids].sort());
  const [{ epoch: of = 0, revision = 0 } = {}] = answers;
  t.match(await sync({ 0: [of, revision] }), [{ same: true, hold: [] }], 'what the host holds is not said again');
});
