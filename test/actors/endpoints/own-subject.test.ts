/** Asks for many partitions in one message to the process that serves some of them. */
import t from 'tap';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { OwnSubject } from '../../../actors/endpoints/own-subject.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { StatusWatchers } from '../../../actors/endpoints/status-watchers.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { decodeAnswerPart, encodeAsks, type AnswerPart } from '../../../schemas/wire/codec.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { hostKey, quietLog, tenantId } from '../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../support/memory-store.ts';
import { createPartition } from '../support/partition.ts';
import { until } from '../../support/until.ts';

type Callback = (error: Error | null, message: Msg) => void;

const partitions = 4;
const asker = { rid: 'r', budgetMs: 60_000 };

/** The server, as far as one subscription sees it. */
function createServer() {
  const heard: { subject: string; callback: Callback; isDrained: boolean }[] = [];
  let flush = async (): Promise<void> => Promise.resolve();
  const nc = {
    info: { max_payload: 1024 * 1024 },
    subscribe: (subject: string, { callback }: { callback: Callback }) => {
      const one = { subject, callback, isDrained: false };
      heard.push(one);
      return { drain: async () => Promise.resolve(void (one.isDrained = true)) } as Subscription;
    },
    flush: async () => flush(),
  } as unknown as NatsConnection;
  return {
    heard,
    options: {
      nc,
      clock: systemClock,
      log: quietLog,
      refusals: quietLog,
      slices: createSlices(systemClock),
      watched: new StatusWatchers(systemClock),
      prepare: () => undefined,
    },
    breakFlush: (): void => void (flush = async () => Promise.reject(new Error('disconnected'))),
    mendFlush: (): void => void (flush = async () => Promise.resolve()),
  };
}

async function subjectOf(...served: readonly number[]) {
  const server = createServer();
  const own = new OwnSubject('one', partitions);
  const all = await Promise.all(
    served.map(async (number) => {
      const partition = createPartition({
        number,
        store: createMemoryStore(new MemoryBucket()),
        events: createMemorySink([]),
      });
      await partition.start();
      own.taken(partition);
      return partition;
    }),
  );
  await own.listen({ ...server.options, token: () => own.token });
  const ask = async (...asks: readonly Ask[]): Promise<AnswerPart> => {
    const parts: AnswerPart[] = [];
    const message = {
      reply: '_INBOX.x',
      string: () => encodeAsks(asks.map((one) => JSON.stringify(one))),
      respond: (payload: string) => parts.push(decodeAnswerPart(payload)) > 0,
    } as unknown as Msg;
    server.heard[0]?.callback(null, message);
    const answers = () => parts.flatMap((part) => part.answers);
    await until('all answers', () => answers().length === asks.length);
    return { ...parts[0]!, answers: answers().toSorted((one, other) => one.index - other.index) };
  };
  return { server, own, all, ask };
}

const count = (partition: number): Ask => ({ type: 'peer.count', partition, ...asker });
const codesOf = ({ answers }: AnswerPart): string[] => answers.map(({ code }) => code);

t.test('each ask goes to its partition; those of others are refused, and the rest stands', async (t) => {
  const { server, own, all, ask } = await subjectOf(0, 2);
  t.equal(server.heard[0]?.subject, 'owner.one');
  const part = await ask(count(0), count(1), count(2), count(99), count(0.5));
  t.same(codesOf(part), ['ok', 'not_owner', 'ok', 'not_owner', 'not_owner']);
  t.equal(part.owner, 'one', 'the answer says whose it is');
  own.gone(all[0]!);
  t.same(codesOf(await ask(count(0), count(2))), ['not_owner', 'ok']);
  own.taken(all[0]!);
  t.same(codesOf(await ask(count(0))), ['ok']);
});

t.test('the key of an ask says its partition', async (t) => {
  const [tenant, host] = [tenantId('acme'), hostKey('h1')];
  const { ask } = await subjectOf(partitionOf(tenant, partitions));
  const isToo = partitionOf(host, partitions) === partitionOf(tenant, partitions);
  t.same(codesOf(await ask({ type: 'tenant.get', tenant, ...asker }, { type: 'host.get', host, ...asker })), [
    'ok',
    isToo ? 'not_found' : 'not_owner',
  ]);
});

t.test('a partition that was taken again is not gone with its predecessor', async (t) => {
  const { own, all, ask } = await subjectOf(0, 0);
  own.gone(all[0]!);
  t.same(codesOf(await ask(count(0))), ['ok']);
});

t.test('answers name the process only when the server knows its subject', async (t) => {
  const { breakFlush, mendFlush, options, heard } = createServer();
  const own = new OwnSubject('one', partitions);
  t.equal(own.token, undefined);
  breakFlush();
  await t.rejects(own.listen(options));
  t.equal(own.token, undefined, 'the connection broke');
  mendFlush();
  await own.listen(options);
  t.equal(own.token, 'one');
  t.equal(heard.length, 1, 'one subscription');
  await own.drain();
  t.ok(heard[0]?.isDrained);
  heard[0]!.isDrained = false;
  await own.drain();
  t.notOk(heard[0]?.isDrained, 'once');
});
