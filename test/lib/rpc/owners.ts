/**
 * A client of partitions in virtual time, and owners that answer it: no sleep is real, and what
 * takes how long is exact.
 */
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Test } from 'tap';
import { decodeAsks } from '../../../lib/rpc/decode.ts';
import { PartitionClient, type LaneKind, type Outcome, type RetryReason } from '../../../lib/rpc/partition-client.ts';
import { addressOf, protocolOfAsk, type Ask, type NewAsks, type Question } from '../../../schemas/wire/asks.ts';
import { encodeAnswer, encodeAnswers, notOwner } from '../../../schemas/wire/codec.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { protocolVersion } from '../../../schemas/wire/version.ts';
import { quietLog } from '../../actors/support.ts';
import { createRandom } from '../../actors/support/random.ts';
import { Nats, type Connection, type Weather } from '../../sim/world/nats.ts';
import { World } from '../../sim/world/time.ts';
import { ofPartition } from './support.ts';

const tripMs = 1;
/** Asks that an owner of the last release does not know. */
const newAsks: NewAsks = { 'metadata.list': protocolVersion, 'metadata.put': protocolVersion };
const calm: Weather = {
  delayMs: () => tripMs / 4,
  copies: () => 1,
  fate: () => 'done',
  lateMs: () => 0,
  lagMs: () => 0,
  isBusy: () => false,
  page: () => ({ messages: Infinity, fate: 'whole', lost: [0, 0] }),
};

export interface Told extends Outcome {
  readonly tookMs: number;
}

export interface Stage {
  readonly world: World;
  readonly client: PartitionClient;
  /** The client's messages since the last look: subject, and partitions of its asks. */
  messages(): (readonly [subject: string, ...partitions: number[]])[];
  readonly retries: Map<RetryReason, number>;
  /** One ask for each partition, in one tick. */
  ask(kind: LaneKind, partitions: readonly number[], withinMs?: number): Promise<Told[]>;
  /** Any ask. */
  pose(kind: LaneKind, question: Question): Promise<Outcome>;
  /** A process that serves partitions. */
  owner(name: string, partitions: readonly number[], hasName?: boolean): Owner;
}

export interface Owner {
  readonly serves: Set<number>;
  /** Asks for these are heard and not answered. */
  readonly stalled: Set<number>;
  /** Asks that were executed, by operation id or id of the request. */
  readonly executed: string[];
  take(partition: number): void;
  /** It is refused from now on; its subject has the subscriber for a while. */
  give(partition: number): void;
  /** The process is replaced by one of another release. */
  release(protocol: number): void;
  end(): Promise<void>;
}

/** Runs the story in virtual time. `change` may change what the client's connection does. */
export async function play(
  t: Test,
  partitions: number,
  story: (stage: Stage) => Promise<void>,
  change: (connection: NatsConnection) => NatsConnection = (connection) => connection,
): Promise<void> {
  const world = new World();
  const nats = new Nats(world, calm);
  const random = createRandom(1);
  await world.run(
    () => random.below(2 ** 30) / 2 ** 30,
    async () => {
      const stage = stageIn(world, nats, partitions, change);
      let isDone = false;
      const end = world.spawn(world.stage, () => story(stage)).finally(() => (isDone = true));
      end.catch(() => {});
      t.ok(await world.until(() => isDone, 120_000), 'the story came to its end');
      await end;
      stage.client.stop();
    },
  );
}

function stageIn(world: World, nats: Nats, partitions: number, change: (nc: NatsConnection) => NatsConnection): Stage {
  const process = world.process('gateway');
  const sent: (readonly [string, ...number[]])[] = [];
  const retries = new Map<RetryReason, number>();
  const nc = change(nats.connect(process).asClient);
  const publish = nc.publish.bind(nc);
  nc.publish = (subject, payload, options) => {
    sent.push([subject, ...asksOf(String(payload)).map((ask) => partitionOfAsk(ask, partitions))]);
    publish(subject, payload, options);
  };
  const client = new PartitionClient({
    requestDeadlineMs: 10_000,
    newAsks,
    clock: process.clock,
    log: quietLog,
    meters: {
      batch: () => {},
      retry: (reason, items) => retries.set(reason, (retries.get(reason) ?? 0) + items),
    },
  });
  world.as(process, () => client.open(nc, partitions));
  return {
    world,
    client,
    messages: () => sent.splice(0),
    retries,
    ask: (kind, asked, withinMs = 10_000) =>
      world.spawn(process, () =>
        Promise.all(
          asked.map(async (partition) => {
            const startMs = world.nowMs;
            const outcome = await client.ask(kind, ofPartition(kind, partition), startMs + withinMs);
            return { ...outcome, tookMs: world.nowMs - startMs };
          }),
        ),
      ),
    pose: (kind, question) => world.spawn(process, () => client.ask(kind, question, world.nowMs + 10_000)),
    owner: (name, own, hasName = true) =>
      createOwner(nats.connect(world.process(name)), name, own, { hasName, partitions }),
  };
}

const asksOf = (payload: string): Ask[] =>
  decodeAsks(payload).map((ask) => {
    if (ask instanceof Error) throw ask;
    return ask;
  });
function partitionOfAsk(ask: Ask, partitions: number): number {
  const address = addressOf(ask);
  return typeof address === 'number' ? address : partitionOf(address, partitions);
}

function createOwner(
  connection: Connection,
  name: string,
  own: readonly number[],
  { hasName, partitions }: { readonly hasName: boolean; readonly partitions: number },
): Owner {
  let protocol = protocolVersion;
  const serves = new Set<number>();
  const stalled = new Set<number>();
  const executed: string[] = [];
  const onMessage = (message: Msg): void => {
    const asks = asksOf(message.string());
    const lines = asks.flatMap((ask, index) => {
      const partition = partitionOfAsk(ask, partitions);
      if (!serves.has(partition)) return [encodeAnswer({ index, code: notOwner, body: '' })];
      executed.push('op' in ask ? ask.op : ask.rid);
      if (stalled.has(partition)) return [];
      if (protocol < protocolOfAsk(ask, newAsks)) return [encodeAnswer({ index, code: 'internal', body: '' })];
      return [encodeAnswer({ index, code: 'ok', body: `"${name} ${partition}"` })];
    });
    const answers = encodeAnswers(lines, hasName ? name : undefined);
    if (lines.length > 0) message.respond(answers.replace(/^\d+/, String(protocol)));
  };
  const hear = (subject: string): void =>
    void connection.subscribe(subject, {
      callback: (_, message) => onMessage(message),
    });
  const heard = new Set<number>();
  const take = (partition: number): void => {
    serves.add(partition);
    if (!heard.has(partition)) hear(subjects.partition(partition));
    heard.add(partition);
  };
  if (hasName) hear(subjects.owner(name));
  for (const partition of own) take(partition);
  return {
    serves,
    stalled,
    executed,
    take,
    give: (partition) => void serves.delete(partition),
    release: (version) => (protocol = version),
    end: () => connection.close(),
  };
}
