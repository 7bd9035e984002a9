/**
 * Batched direct reads: what arrives with a gap is not taken for the whole, and writers do not hold
 * a reader up.
 */
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import { readBatch, readStream } from '../../../lib/nats/direct-reads.ts';
import { controlPlane } from '../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';

async function connected(t: Test): Promise<NatsConnection> {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  return nc;
}

const page = {
  stream: 'PAGES',
  filter: '>',
  from: { seq: 1 },
  batchMessages: 10,
  batchBytes: 10_000,
  timeoutMs: 5_000,
};

/** Answers like the server: the messages 1 to 5 and their end, without those that are lost. */
function answerPages(nc: NatsConnection, lostIn: (attempt: number) => readonly number[]): { asked: number } {
  const count = { asked: 0 };
  nc.subscribe('$JS.API.DIRECT.GET.PAGES', {
    callback: (_error, message) => {
      const lost = lostIn(++count.asked);
      for (let sequence = 1; sequence <= 6; sequence++) {
        if (lost.includes(sequence)) continue;
        const head = sequence === 6 ? headers(204, 'EOB') : headers();
        if (sequence < 6) {
          head.set('Nats-Subject', `k.${sequence}`);
          head.set('Nats-Sequence', String(sequence));
        }
        head.set('Nats-Num-Pending', String(Math.max(5 - sequence, 0)));
        head.set('Nats-Last-Sequence', String(sequence - 1));
        message.respond('', { headers: head });
      }
    },
  });
  return count;
}

t.test('a page with a gap is not taken for the whole', async (t) => {
  for (const [name, lost] of [
    ['its first message', [1]],
    ['one between', [3]],
    ['several between', [2, 3, 4]],
    ['its last message', [5]],
    ['all but its end', [1, 2, 3, 4, 5]],
  ] as const) {
    const nc = await connected(t);
    answerPages(nc, () => lost);
    await t.rejects(readBatch(nc, page), { name: 'PageGapError' }, name);
  }
});

t.test('a page with a gap is asked for again, and so is one without an end', async (t) => {
  const nc = await connected(t);
  const count = answerPages(nc, (attempt) => (attempt === 1 ? [4] : attempt === 2 ? [6] : []));
  const { messages, pending } = await readBatch(nc, { ...page, timeoutMs: 500, attempts: 3 });
  t.same(
    messages.map(({ sequence }) => sequence),
    [1, 2, 3, 4, 5],
  );
  t.equal(pending, 0);
  t.equal(count.asked, 3);
});

t.test(
  'writers overwrite, delete and add while a real stream is read: readers finish, and see what nobody touches',
  async (t) => {
    const nc = await connected(t);
    const manager = await jetstreamManager(nc);
    const bounds = { allow_direct: true, max_msgs_per_subject: 1 };
    await manager.streams.add({ name: 'BUSY', subjects: ['busy.>'], ...bounds });
    const [still, moving] = [200, 50];
    const timeout = 10_000;
    await Promise.all(
      Array.from({ length: still }, async (_, index) =>
        nc.request(`busy.still.${index}`, 'x'.repeat(200), { timeout }),
      ),
    );
    let isOver = false;
    const write = async (): Promise<void> => {
      for (let round = 0; !isOver; round++) {
        const ack = await nc.request(`busy.moving.${round % moving}`, 'y'.repeat(200), { timeout });
        if (round % 5 === 0) await manager.streams.deleteMessage('BUSY', ack.json<{ seq: number }>().seq, false);
      }
    };
    const writing = write();
    const read = { stream: 'BUSY', filter: 'busy.>', batchMessages: 7, batchBytes: 100_000, timeoutMs: 10_000 };
    for (let reads = 0; reads < 20; reads++) {
      const seen = new Set<string>();
      for await (const { subject } of readStream(nc, { ...read, from: { seq: 1 } })) {
        if (subject.startsWith('busy.still.')) seen.add(subject);
      }
      t.equal(seen.size, still);
    }
    isOver = true;
    await writing;
  },
);
