/**
 * Messages between partitions. The actor of a peer sends the part of the peer that its network
 * stores, until the network acknowledges it; a network asks the actor of a peer that never claimed
 * its address to release it (ADR 7).
 *
 * Level, not edge: after a commit that asks for it, and with every sweep, a look goes through the
 * records of a partition and finds the outstanding items. It sends only what is committed
 * (invariant A3), and an answer changes a record only if the record still says the same. So an item
 * may be lost, repeated or late, and the process may be killed at any point.
 */
import { backoffMs } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/time/slices.ts';
import type { NetworkName, OperationId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Question } from '../../schemas/wire/asks.ts';
import type { Answer } from '../../schemas/wire/codec.ts';
import type { LeaseRecord } from '../../schemas/api/network.ts';
import type { PeerProblem, PeerRecord, PeerTombstoneRecord } from '../../schemas/api/peer.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import { lapse } from '../domain/network/learn.ts';
import type { PartitionClient, Outcome } from '../../lib/rpc/partition-client.ts';
import { acknowledge, refusedBy } from '../domain/peer/decide.ts';
import type { KnownNetwork } from '../domain/network/state.ts';
import { peerNoticeOf } from '../domain/peer/view.ts';
import type { Partition } from '../partition.ts';
import type { PartitionView } from '../domain/state.ts';
import type { Changes, TurnContext } from '../domain/turn.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { minutes } from '../../schemas/limits/units.ts';

/**
 * A reservation that no peer has confirmed is checked after this time, which is far longer than any
 * request takes.
 */
export const reservationTtlMs = 2 * minutes;
/** Messages that one sweep sends from one partition. */
export const outboxItemsPerSweep = 100;

/**
 * One outstanding message. At most one with the same `about` is under way at a time; `version`
 * tells them apart.
 */
export type OutboxItem = { readonly about: string; readonly version: number } & (
  | {
      readonly kind: 'tell';
      readonly network: NetworkName;
      readonly record: PeerRecord | PeerTombstoneRecord;
      readonly incarnation: number;
    }
  | { readonly kind: 'release'; readonly lease: LeaseRecord }
);

type Reply = Pick<Answer, 'code' | 'body'>;

/** Items that wait for one network, or that one network has. */
export interface OutboxLine {
  readonly name: string;
  readonly items: Iterable<OutboxItem>;
}

/** Pure. */
export function* outboxLines(state: PartitionView, nowMs: number): Generator<OutboxLine, void, void> {
  for (const [network, records] of state.vpn.untoldBy()) {
    yield { name: `to ${network}`, items: tellsOf(network, records.values(), state.vpn.incarnation) };
  }
  for (const network of state.vpn.networks()) yield { name: `of ${network.name}`, items: releasesOf(network, nowMs) };
}

/** Pure. */
export function* outboxOf(state: PartitionView, nowMs: number): Generator<OutboxItem, void, void> {
  for (const { items } of outboxLines(state, nowMs)) yield* items;
}

function* tellsOf(
  network: NetworkName,
  records: Iterable<PeerRecord | PeerTombstoneRecord>,
  incarnation: number,
): Generator<OutboxItem, void, void> {
  for (const record of records) {
    const { id, generation: version } = record;
    yield { kind: 'tell', about: `tell ${id}`, version, network, record, incarnation };
  }
}

function* releasesOf(network: KnownNetwork, nowMs: number): Generator<OutboxItem, void, void> {
  for (const lease of network.reservations()) {
    if (lease.state.phase !== 'reserved' || lease.state.atMs + reservationTtlMs > nowMs) continue;
    yield { kind: 'release', about: `release ${lease.peer} ${lease.network}`, version: lease.state.atMs, lease };
  }
  for (const lease of network.unconfirmed()) {
    yield { kind: 'release', about: `release ${lease.peer} ${lease.network}`, version: 0, lease };
  }
}

/** Every attempt at an item has the same operation id. Pure. */
export function questionOf(item: OutboxItem): Question {
  const asker = (op: string) => ({ rid: op, op: op as OperationId });
  switch (item.kind) {
    case 'tell': {
      const { network, record, incarnation } = item;
      const { tenant, id: peer, generation } = record;
      const told = peerNoticeOf(record, incarnation);
      const by = { tenant, peer };
      const op = `tell-${peer}-${generation}`;
      return { type: 'network.learn', network, by, told, incarnation, ...asker(op) };
    }
    case 'release': {
      const { tenant, peer, network } = item.lease;
      return { type: 'peer.forgo', tenant, peer, ...asker(`forgo-${peer}-${network}`) };
    }
  }
}

/**
 * The reason for which the network cannot accept the peer as its record has it; `null` if there is
 * none. Such an answer changes the record, and the item stays due. Pure.
 */
export function problemOf(item: OutboxItem, { code, body }: Reply): PeerProblem | null {
  if (item.kind !== 'tell' || item.record.kind !== 'peer') return null;
  if (code === 'not_found') return 'network';
  return code === 'ok' ? (decodeAnswer('network.learn', body).data?.problem ?? null) : null;
}

/**
 * The change that the answer makes in this partition; `undefined` if there is none, and the item is
 * due again later. Pure.
 */
export function outcomeOf(
  item: OutboxItem,
  answer: Reply,
): ((state: PartitionView, context: Pick<TurnContext, 'nowMs'>) => Changes) | undefined {
  switch (item.kind) {
    case 'tell': {
      const { record } = item;
      const problem = problemOf(item, answer);
      if (problem !== null && record.kind === 'peer') return (state) => refusedBy(state, record, problem);
      // The peer was removed and so was its network: nothing is left to tell.
      return answer.code === 'ok' || answer.code === 'not_found' ? (state) => acknowledge(state, record) : undefined;
    }
    case 'release': {
      const isReleased = answer.code === 'ok' && !decodeAnswer('peer.forgo', answer.body).data.there;
      return isReleased ? (state, context) => lapse(state, item.lease, context) : undefined;
    }
  }
}

/** An item, and the question that sends it. */
export interface Outgoing {
  readonly item: OutboxItem;
  readonly question: Question;
}

/** The partition that it goes to: as `addressOf` says of its question. */
const destinationOf = (item: OutboxItem, partitions: number): number =>
  partitionOf(item.kind === 'tell' ? item.network : item.lease.tenant, partitions);

/** Groups items by destination, so that the answers of one owner are settled together. Pure. */
export function byPartition(items: readonly OutboxItem[], partitions: number): Outgoing[][] {
  const groups = new Map<number, Outgoing[]>();
  for (const item of items) {
    const question = questionOf(item);
    const to = destinationOf(item, partitions);
    const group = groups.get(to);
    if (group === undefined) groups.set(to, [{ item, question }]);
    else group.push({ item, question });
  }
  return [...groups.values()];
}

/**
 * The owner's answer; `undefined` if none came in time. An owner that refuses explains why in the
 * body; the client's own `unavailable` has none.
 */
const answerOf = (outcome: Outcome): Outcome | undefined =>
  outcome.code === 'timeout' || (outcome.code === 'unavailable' && outcome.body === '') ? undefined : outcome;

/** The fields of a log line. They name no peer. */
const saidOf = (partition: Partition, item: OutboxItem) => ({
  partition: partition.number,
  item: item.kind,
  network: item.kind === 'tell' ? item.network : item.lease.network,
});

/** The items of one partition that are under way, and those that failed and are not due yet. */
interface Round {
  /** By what they are about, and the partition that they went to. */
  readonly underWay: Map<string, number>;
  readonly failures: Map<string, { readonly version: number; readonly count: number; readonly dueMs: number }>;
  /** From this number of failures on, those of items that no longer exist are looked for. */
  forgetAt: number;
  /** The lines in the order of their turns: a line that had one goes behind those that had none. */
  turns: Set<string>;
  isLooking: boolean;
  isLookWanted: boolean;
}

const newRound = (): Round => ({
  underWay: new Map(),
  failures: new Map(),
  forgetAt: 2 * outboxItemsPerSweep,
  turns: new Set(),
  isLooking: false,
  isLookWanted: false,
});

export interface Outbox {
  /** Looks through a partition, and sends what is due. */
  look(partition: Partition): void;
  stop(): void;
}

export interface OutboxOptions {
  readonly client: Pick<PartitionClient, 'ask' | 'stop'>;
  readonly partitions: number;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
}

export function createOutbox({ client, partitions, clock, slices, log }: OutboxOptions): Outbox {
  // A partition that is loaded again is the same object; its outstanding items are in its records.
  const rounds = new WeakMap<Partition, Round>();
  let isStopped = false;

  function roundOf(partition: Partition): Round {
    let round = rounds.get(partition);
    if (round === undefined) rounds.set(partition, (round = newRound()));
    return round;
  }

  /**
   * The items that are due: each partition that they go to has a limit of its own, and the lines
   * take turns. So nothing waits for a partition that is away, or for a network that refuses. Each
   * item is a step of its own, because a hundred thousand may be waiting for their next attempt.
   */
  function* due(round: Round, lines: Iterable<OutboxLine>): Generator<void, OutboxItem[], void> {
    const { underWay, failures } = round;
    const nowMs = clock.monotonicMs();
    const places = new Map<number, number>();
    for (const to of underWay.values()) places.set(to, (places.get(to) ?? 0) + 1);
    const isFull = (to: number): boolean => (places.get(to) ?? 0) >= outboxItemsPerSweep;
    const isDue = ({ about, version }: OutboxItem): boolean => {
      const failed = failures.get(about);
      const rests = failed !== undefined && failed.version === version && failed.dueMs > nowMs;
      return !rests && !underWay.has(about);
    };
    function* next(items: Iterator<OutboxItem>): Generator<void, OutboxItem | undefined, void> {
      for (let one = items.next(); one.done !== true; one = items.next()) {
        yield;
        const item = one.value;
        const to = destinationOf(item, partitions);
        // The others of its line go there too.
        if (isFull(to) && item.kind === 'tell') return undefined;
        if (isFull(to) || !isDue(item)) continue;
        places.set(to, (places.get(to) ?? 0) + 1);
        return item;
      }
      return undefined;
    }
    const found: OutboxItem[] = [];
    const waiting = new Map(Array.from(lines, ({ name, items }) => [name, items[Symbol.iterator]()]));
    const known = [...round.turns].filter((name) => waiting.has(name));
    round.turns = new Set([...[...waiting.keys()].filter((name) => !round.turns.has(name)), ...known]);
    for (const name of round.turns) {
      const items = waiting.get(name);
      const item = items && (yield* next(items));
      if (item === undefined) continue;
      found.push(item);
      round.turns.delete(name);
      round.turns.add(name);
    }
    return found;
  }

  function look(partition: Partition): void {
    if (isStopped) return;
    const round = roundOf(partition);
    round.isLookWanted = true;
    if (round.isLooking) return;
    round.isLooking = true;
    slices
      .run('outbox', looking(partition, round))
      .catch((error: unknown) => log.error('outbox_item_failed', { partition: partition.number, error }))
      .finally(() => {
        round.isLooking = false;
        if (round.isLookWanted) look(partition);
      });
  }

  /** A change during a look may be in a part that was looked at already, so it looks again. */
  function* looking(partition: Partition, round: Round): Generator<void, void, void> {
    while (round.isLookWanted && !isStopped) {
      round.isLookWanted = false;
      yield* forget(partition, round);
      const looked = partition.view;
      const found = yield* due(round, outboxLines(looked, clock.nowMs()));
      partition.survey(
        // The partition was loaded again, so what was found may never have been committed. The next
        // look reads the new state.
        (state) => (state === looked ? found : []),
        (committed) => setOutAll(partition, round, committed),
      );
    }
  }

  function setOutAll(partition: Partition, round: Round, found: readonly OutboxItem[]): void {
    // Another look may have sent some of them meanwhile.
    const items = found.filter(({ about }) => !round.underWay.has(about));
    for (const item of items) round.underWay.set(item.about, destinationOf(item, partitions));
    for (const group of byPartition(items, partitions)) {
      setOut(partition, round, group).catch((error: unknown) =>
        log.error('outbox_item_failed', { partition: partition.number, error }),
      );
    }
  }

  async function setOut(partition: Partition, round: Round, group: readonly Outgoing[]): Promise<void> {
    const deadlineMs = clock.monotonicMs() + limits.outboxTimeoutMs;
    const outcomes = await Promise.all(group.map(({ question }) => client.ask('write', question, deadlineMs)));
    for (const { item } of group) round.underWay.delete(item.about);
    if (isStopped) return;
    let isAnyTaken = false;
    for (const [index, { item }] of group.entries()) {
      try {
        const outcome = outcomes[index];
        if (settle(partition, round, item, outcome && answerOf(outcome))) isAnyTaken = true;
      } catch (error) {
        log.error('outbox_item_failed', { ...saidOf(partition, item), error });
        settle(partition, round, item, undefined);
      }
    }
    // There is room again for items that found none, and the state has changed.
    if (isAnyTaken) look(partition);
  }

  /** @returns `true` if the item is done; otherwise it stays in the record for a later look */
  function settle(partition: Partition, round: Round, item: OutboxItem, answer: Outcome | undefined): boolean {
    const { about, version } = item;
    const outcome = answer === undefined ? undefined : outcomeOf(item, answer);
    const problem = answer === undefined ? null : problemOf(item, answer);
    const isTaken = outcome !== undefined && partition.change('outbox', (state, context) => [outcome(state, context)]);
    if (outcome !== undefined && problem === null) {
      round.failures.delete(about);
      if (answer?.code === 'not_found') log.warn('network_gone', saidOf(partition, item));
      return isTaken;
    }
    const before = round.failures.get(about);
    const count = before?.version === version ? before.count : 0;
    const restMs = backoffMs(count, { minMs: limits.retryMinMs, maxMs: limits.retryMaxMs });
    round.failures.set(about, { version, count: count + 1, dueMs: clock.monotonicMs() + restMs });
    // Logged once for each item.
    if (count === 0 && problem !== null) log.error('peer_refused', { ...saidOf(partition, item), problem });
    else if (count === 0 && answer !== undefined && answer.code !== 'ok') {
      log.warn('outbox_item_refused', { ...saidOf(partition, item), code: answer.code });
    }
    return false;
  }

  /** Forgets failures of items that no longer exist, once there are enough failures to look for. */
  function* forget(partition: Partition, round: Round): Generator<void, void, void> {
    const { failures } = round;
    if (failures.size < round.forgetAt) return;
    const wanted = new Set<string>();
    for (const { about } of outboxOf(partition.view, clock.nowMs())) {
      wanted.add(about);
      yield;
    }
    for (const about of failures.keys()) {
      if (!wanted.has(about)) failures.delete(about);
      yield;
    }
    round.forgetAt = 2 * Math.max(failures.size, outboxItemsPerSweep);
  }

  return {
    look,
    stop() {
      isStopped = true;
      client.stop();
    },
  };
}
