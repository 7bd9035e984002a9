/**
 * Asks every owner of a partition what this host should run, and takes answers in an inbox with a
 * random name. It accepts only answers to its own ask, never a doorbell or another sender's message
 * (A7).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { messageDecoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { limits } from '../../../schemas/limits.ts';
import { SyncAnswer, type Stranger, type SyncAsk } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { ProtocolError, spoken } from '../../../schemas/wire/version.ts';
import {
  accept,
  Assembly,
  digestOfSet,
  isOfVersionHeld,
  orderOf,
  refuse,
  type DesiredSet,
  type Gone,
  type PartitionAnswer,
  type PartitionSet,
} from '../../workload/desired.ts';
import { hearAnswers } from './answer-inbox.ts';

const decodeAnswer = messageDecoder(SyncAnswer);

export type SyncResult =
  /**
   * Every partition in the ask has answered. `due`: partitions with strangers that this ask did not
   * name.
   */
  | { readonly kind: 'complete'; readonly due: readonly number[] }
  /** The deadline came first; the answers until then were taken in. */
  | { readonly kind: 'partial'; readonly missing: readonly number[] }
  /** No owner answered. */
  | { readonly kind: 'silent' }
  /**
   * Another cluster answered, this one was created again, or the host was removed: no answer was
   * taken in.
   */
  | { readonly kind: 'refused'; readonly why: string };

export interface SyncTarget {
  readonly sender: Sender;
  current(): DesiredSet;
  update(next: DesiredSet): void;
  /** Every partition in the ask has answered. */
  settled(): void;
  /** The control plane says that this host was removed. */
  fenced(): void;
  /** The operator's approval of held orphans. */
  orphanWord(word: number): void;
  /** The key that signs credentials of hosts now. */
  signer?(key: string): void;
  /** Containers on the engine that the desired set does not know, the most pressing first. */
  strangers(): readonly Stranger[];
  /** Strangers without a verdict of their owner. */
  unjudged(): readonly Stranger[];
  /** The verdict of the owner on these, for the version of its set that this host has now. */
  verdicts(named: readonly Stranger[], gone: Gone): void;
  /** The incarnation of the cluster that answers. */
  incarnation(announced: number): void;
  /**
   * A sync of all partitions is complete. `ahead`: the highest epoch that this host has of a
   * partition whose owner answered with lower ones alone, so that it was not obeyed; undefined:
   * there is none.
   */
  obeyed?(ahead: number | undefined): void;
}

/** Asks once. `only`: the partitions that a doorbell named; undefined: all. */
export function sync(
  nc: NatsConnection,
  target: SyncTarget,
  only: readonly number[] | undefined,
  log: Log,
  timeoutMs: number = limits.syncTimeoutMs,
  signal?: AbortSignal,
): Promise<SyncResult> {
  const before = target.current();
  const held = namedSets(before, only);
  const named = namedFor(target.strangers(), only, before.partitions);
  const ask: SyncAsk = {
    v: 1,
    ...spoken,
    ...(only === undefined ? {} : { partitions: [...only] }),
    held: Object.fromEntries([...held].map(([partition, { epoch, revision }]) => [partition, [epoch, revision]])),
    ...(named.length === 0 ? {} : { strangers: [...named] }),
    joined: true,
    digests: digestsOf(held),
  };
  const assembly = new Assembly();
  const answered = new Set<number>();
  /** Their owners answered with changes that do not lead to the owners' sets. */
  const doubted = new Set<number>();
  /** By partition whose owner is not obeyed: the epoch that this host has. */
  const ahead = new Map<number, number>();
  let partitions = before.partitions;
  let isOver = false;

  return new Promise((resolve) => {
    const finish = (result: SyncResult): void => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', expire);
      inbox.end();
      resolve(result);
    };
    const expire = (): void => {
      const wanted = only ?? Array.from({ length: partitions ?? 0 }, (_, partition) => partition);
      const missing = wanted.filter((partition) => !answered.has(partition));
      finish(answered.size + doubted.size === 0 ? { kind: 'silent' } : { kind: 'partial', missing });
    };
    const take = (data: Uint8Array): void => {
      for (const answer of answersIn(decodeAnswer(data))) if (!isOver) takeOne(answer);
    };
    const takeOne = (answer: SyncAnswer): void => {
      const refusal = refuse(target.current(), answer);
      if (refusal !== undefined) {
        log.error('sync_refused', { ...refusal, ours: before.cluster });
        finish({ kind: 'refused', why: refusal.kind });
        return;
      }
      if (answer.fenced === true) {
        target.fenced();
        finish({ kind: 'refused', why: 'fenced' });
        return;
      }
      partitions = answer.partitions;
      target.incarnation(answer.incarnation ?? 0);
      if (answer.orphan_word !== null) target.orphanWord(answer.orphan_word);
      if (answer.signer !== undefined) target.signer?.(answer.signer);
      const whole = assembly.add(answer);
      if (whole === undefined) return;
      const has = target.current().sets.get(whole.partition);
      if (has !== undefined && orderOf(whole).epoch < has.epoch) ahead.set(whole.partition, has.epoch);
      else ahead.delete(whole.partition);
      const next = accept(target.current(), partitions, whole, held);
      if (next !== target.current()) target.update(next);
      if (next.doubted.has(whole.partition)) {
        log.error('sync_digest_differs', { partition: whole.partition });
        doubted.add(whole.partition);
      } else {
        answered.add(whole.partition);
        doubted.delete(whole.partition);
      }
      takeVerdicts(whole, next);
      const isHeard = (partition: number): boolean => answered.has(partition) || doubted.has(partition);
      const isDone = only === undefined ? answered.size + doubted.size === partitions : only.every(isHeard);
      if (!isDone) return;
      if (doubted.size > 0) {
        // What they desire is not known: nothing is an orphan, and the next ask comes soon.
        expire();
        return;
      }
      target.settled();
      if (only === undefined) target.obeyed?.(ahead.size === 0 ? undefined : Math.max(...ahead.values()));
      finish({ kind: 'complete', due: unasked(target.unjudged(), named, partitions) });
    };
    const takeVerdicts = (whole: PartitionAnswer, current: DesiredSet): void => {
      const count = current.partitions;
      if (count === null || !isOfVersionHeld(current, whole)) return;
      const own = named.filter(({ tenant }) => partitionOf(tenant, count) === whole.partition);
      if (own.length > 0) target.verdicts(own, whole.gone);
    };

    const inbox = hearAnswers(nc, subjects.hostInbox(target.sender), (error, message) => {
      if (error !== null) {
        log.warn('sync_subscription_failed', { error });
        return;
      }
      if (message.data.length === 0 && message.headers?.code === 503) {
        finish({ kind: 'silent' });
        return;
      }
      try {
        take(message.data);
      } catch (error) {
        log.warn(error instanceof ProtocolError ? 'protocol_refused' : 'sync_answer_malformed', { error });
      }
    });
    const timer = setTimeout(expire, timeoutMs);
    signal?.addEventListener('abort', expire, { once: true });
    try {
      nc.publish(subjects.hostSync(target.sender), JSON.stringify(ask), { reply: inbox.subject });
    } catch (error) {
      log.debug('sync_not_sent', { error });
      finish({ kind: 'silent' });
    }
  });
}

/** The sets that the ask names: of the partitions in it, except those that are to be sent whole. */
function namedSets(
  { sets, doubted }: DesiredSet,
  only: readonly number[] | undefined,
): ReadonlyMap<number, PartitionSet> {
  const isNamed = (partition: number): boolean =>
    !doubted.has(partition) && (only === undefined || only.includes(partition));
  return new Map([...sets].filter(([partition]) => isNamed(partition)));
}

function digestsOf(sets: ReadonlyMap<number, PartitionSet>): NonNullable<SyncAsk['digests']> {
  const digests = [...sets].flatMap(([partition, set]) => {
    const digest = digestOfSet(set);
    return digest === undefined ? [] : [[String(partition), digest] as const];
  });
  return Object.fromEntries(digests);
}

/** The answer, and those for the other partitions that it speaks for. */
function answersIn({ also = [], ...answer }: SyncAnswer): SyncAnswer[] {
  if (!answer.same || answer.fenced === true) return [answer];
  // What else it says is of its own partition.
  const of = ([partition, epoch, revision]: (typeof also)[number]): SyncAnswer => ({
    ...answer,
    partition,
    epoch,
    revision,
    orphan_word: null,
    gone: [],
  });
  return [answer, ...also.map(of)];
}

/** Strangers of the partitions in the ask, as many as one ask may hold. */
function namedFor(
  strangers: readonly Stranger[],
  only: readonly number[] | undefined,
  partitions: number | null,
): readonly Stranger[] {
  const isAsked = ({ tenant }: Stranger): boolean =>
    only === undefined || partitions === null || only.includes(partitionOf(tenant, partitions));
  return strangers.filter(isAsked).slice(0, limits.syncStrangers);
}

/** Partitions of strangers that appeared after the ask, or did not fit into it. */
function unasked(unjudged: readonly Stranger[], named: readonly Stranger[], partitions: number): readonly number[] {
  const asked = new Set(named.map(({ id }) => id));
  const due = unjudged.filter(({ id }) => !asked.has(id)).map(({ tenant }) => partitionOf(tenant, partitions));
  return [...new Set(due)];
}
