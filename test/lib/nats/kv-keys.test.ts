import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import {
  checkInFlight,
  compareAndSet,
  expectedSequence,
  StoreError,
  wrongLastSequence,
} from '../../../lib/nats/kv-keys.ts';

interface Put {
  readonly value: string;
  readonly expected: string;
  readonly ttl: string;
}

/** A key's stream as the server keeps it: it refuses a message that names another last sequence. */
class KeyStream {
  readonly puts: Put[] = [];
  sequence = 0;
  failure: { readonly code: number; readonly err_code: number; readonly description: string } | undefined;

  put(value: string, head: MsgHdrs | undefined): object {
    const expected = head?.get(expectedSequence) ?? '';
    this.puts.push({ value, expected, ttl: head?.get('Nats-TTL') ?? '' });
    if (this.failure !== undefined) return { error: this.failure };
    if (expected !== '' && expected !== String(this.sequence)) {
      return { error: { code: 400, err_code: wrongLastSequence, description: 'wrong last sequence' } };
    }
    return { seq: ++this.sequence };
  }
}

const connectionTo = (stream: KeyStream) =>
  ({
    request: async (_subject: string, value: string, { headers }: { headers?: MsgHdrs }) =>
      Promise.resolve({ data: Buffer.from(JSON.stringify(stream.put(value, headers))) }),
  }) as unknown as NatsConnection;

t.test('a key changes only from the revision that was expected', async (t) => {
  const stream = new KeyStream();
  const set = (value: string, expected: number) =>
    compareAndSet(connectionTo(stream), '$KV.b.k', value, expected, { timeoutMs: 1 });
  t.equal(await set('first', 0), 1, 'the key did not exist');
  t.equal(await set('second', 0), undefined, 'it exists');
  t.equal(await set('second', 1), 2);
  t.equal(await set('third', 1), undefined, 'another has changed it');
  t.equal(stream.sequence, 2);
});

t.test('an answer that does not say what happened is an error, and no refusal', async (t) => {
  const stream = new KeyStream();
  stream.failure = { code: 400, err_code: checkInFlight, description: 'busy' };
  const set = () => compareAndSet(connectionTo(stream), '$KV.b.k', 'v', 0, { timeoutMs: 1, ttlMs: 1500 });
  await t.rejects(set(), new StoreError('moving $KV.b.k: busy'));
  t.same(stream.puts, [{ value: 'v', expected: '0', ttl: '2s' }], 'a time to live is whole seconds, rounded up');
});
